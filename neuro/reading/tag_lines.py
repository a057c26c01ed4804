"""The lines of response tags, the first chat bot's dialect (seed 000): ``RESEARCH: some query`` is a call.

This file has the notation of a line, the meaning of its words, and the reasons why a line is not a call.
scanner.py decides where in a reply a line counts. Without a pattern of the tag, each required parameter
except the last gets one word (or a text in double quotes) and the last the rest of the line; with a pattern,
its groups are the arguments. A JSON object of arguments is always accepted."""

from __future__ import annotations

import json
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from quoth.neuro.reading.result import Fault, Passed
from quoth.tools import lazy_regex
from quoth.tools.errors import did_you_mean
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.param_types import TEXTS, takes_text
from quoth.tools.registry.parameters import CONFIDENCE, Param
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.safe_regex import compiled
from quoth.tools.text import short

Tags = Mapping[str, CognitiveTool | str]

SECONDS = 0.05  # maximum time to match the pattern of a tag with one line
MAX_PASSED, SHOWN = 100, 300  # maximum of reported lines of a reply, and of characters of each
NO_MATCH = "it does not match the pattern of its tag"
TOO_SLOW = "the pattern of its tag takes too long"
EXAMPLE = "it is announced as an example or quotation"
QUOTED = "it is inside a quotation or a comment"
TEMPLATE = "it only repeats how the tag is written"

_pattern = lru_cache(maxsize=256)(compiled)
_NUMBER = lazy_regex.compile(r"([+-]?(?:[0-9]{1,9}(?:\.[0-9]*)?|\.[0-9]+))(?:[ \t]?(%))?\Z")
_PLAIN = lazy_regex.compile(r'[^\s{"\\][^\x00-\x1f\x7f]*(?<!\s)')  # plain text that needs no quotes
_WORD = lazy_regex.compile(r'("(?:[^"\\]|\\.)*"|\S+)[ \t]*')


# Writing a line


def prefix_of(tool: CognitiveTool) -> str:
    """The prefix of a tool's tag; without a tag, its name in capitals, for measurements."""
    return tool.tag.prefix if tool.tag else tool.name.upper()


def tag_line(tool: CognitiveTool) -> str:
    """The line that shows a model how to call the tool: its example, or ``RESEARCH: [query]``. For several
    free texts it is JSON with their names, because otherwise a model cannot separate them."""
    if tool.tag and tool.tag.example:
        return tool.tag.example
    slots = _slots(tool)
    if not all(param.choices for param in slots[:-1]):
        return (
            f"{prefix_of(tool)}: {{" + ", ".join(f'"{param.name}": {_slot(param)}' for param in slots) + "}"
        )
    return f"{prefix_of(tool)}: " + " ".join(map(_slot, slots))


def spell_tag(tool: CognitiveTool, form: CallForm) -> str:
    """The line that calls a tool with these arguments."""
    if takes_line(tool) and len(form.args) == 1:
        text = str(form.args.get(_slots(tool)[0].name, ""))
        if _PLAIN.fullmatch(text):
            return f"{prefix_of(tool)}: {text}"
    return f"{prefix_of(tool)}: " + json.dumps(dict(form.args), ensure_ascii=False)


def takes_line(tool: CognitiveTool) -> bool:
    """Whether plain text after a tag can be a whole call: the tool needs exactly one text, or one program."""
    needed = [param for param in tool.offered if param.required]
    patterned = tool.tag is not None and tool.tag.pattern
    return not patterned and len(needed) == 1 and needed[0].type in (*TEXTS, Code) and not needed[0].choices


def is_template(tool: CognitiveTool, words: str) -> bool:
    """Whether the line is exactly the one in the prompt: small models repeat it with its brackets."""
    return "[" in words and f"{prefix_of(tool)}: {words}" == tag_line(tool)


def tag_fault(tool: CognitiveTool, reason: str, at: tuple[int, int]) -> Fault:
    """The fault for a model about a line with the tool's tag that is not a call."""
    tag, hint = prefix_of(tool), f"write {tag_line(tool)}"
    if reason == TEMPLATE:
        hint = "put words of your own in the place of each [name]"
        return Fault(f"This line only repeats how {tag} is written", *at, hint)
    what = "takes too long to match" if reason == TOO_SLOW else "does not match"
    return Fault(f"The pattern of {tag} {what} this line", *at, hint)


def _slots(tool: CognitiveTool) -> list[Param]:
    """The parameters for plain text: the required ones, or the first if none is required."""
    return [param for param in tool.offered if param.required] or list(tool.offered[:1])


def _slot(param: Param) -> str:
    if param.choices:
        return "[" + "|".join(str(choice) for choice in param.choices) + "]"
    if param.type is Code:  # brackets would be copied into the program
        return "(…)"
    return f"[{param.name}]"


# Reading a line


def tag_arguments(tool: CognitiveTool, rest: str) -> dict[str, Any] | None:
    """The arguments of a call, read from the text after its tag; None if the tag's pattern does not match.
    Raises TimeoutError if matching takes too long."""
    if (named := _named(tool, rest)) is not None:
        return named
    if tool.tag and tool.tag.pattern:
        found = _pattern(tool.tag.pattern).fullmatch(rest, timeout=SECONDS)
        params = {param.name: param for param in tool.params}
        return found and {
            name: _value(params[name], word)
            for name, word in zip(tool.tag.groups, found.groups(), strict=True)
            if word is not None
        }
    slots = _slots(tool)
    arguments: dict[str, Any] = {}
    for param in slots[:-1]:
        if (word := _WORD.match(rest)) is None:
            break
        arguments[param.name] = _value(param, word[1])
        rest = rest[word.end() :]
    if slots and rest:
        arguments[slots[-1].name] = _value(slots[-1], rest)
    return arguments


def tag_form(tool: CognitiveTool | str, words: str) -> CallForm | None:
    """The call of a tagged line. If only the name of the tool is known, the words are the single argument."""
    if isinstance(tool, str):
        return CallForm(kebab(tool), {}, (words,) if words else ())
    arguments = tag_arguments(tool, words)
    return None if arguments is None else CallForm(tool.name, arguments)


def _named(tool: CognitiveTool, rest: str) -> dict[str, Any] | None:
    """The arguments by name, if the text is a JSON object of the tool's arguments."""
    if not rest.startswith("{"):
        return None
    try:
        data = json.loads(rest)
    except (ValueError, RecursionError):
        return None
    named = {kebab(key): value for key, value in data.items()}
    return named if set(named) <= {param.name for param in tool.params} else None


def _value(param: Param, word: str) -> Any:
    """The value of a word: unchanged for a text parameter, otherwise as JSON if possible."""
    if takes_text(param.type) and not word.startswith('"'):
        return word
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word


def confidence_of(words: str) -> float | None:
    """The confidence after CONFIDENCE:, from 0 to 1; None if it is not a number. Models also write
    percentages."""
    if (number := _NUMBER.match(words)) is None:
        return None
    return min(1.0, max(0.0, float(number[1]) / (100 if number[2] else 1)))


# Lines that look like tags but are not calls

_LIKE = lazy_regex.compile(
    r"""^(?P<lead>[ \t]*+(?:>[ \t]*+|(?:[-*+•]|\#{1,6}|\d{1,9}[.)])[ \t]++)*+)(?P<mark>[*_`]{0,3}+)
        (?P<head>[A-Za-z][A-Za-z0-9_-]{0,63}+)[*_`]{0,3}+:(?P<rest>[^\n]*+)""",
    re.MULTILINE | re.VERBOSE,
)


def passed_lines(
    text: str,
    tags: Tags,
    *,
    calls: list[tuple[int, int]],
    known: Mapping[int, str],
    fences: list[int],
    read: int,
    stopped: str,
    line_of: Callable[[int], int],
) -> list[Passed]:
    """The lines that look like tags but are not calls, each with the reason. ``calls`` are the spans of
    calls, ``known`` has reasons by the offsets of tags, ``fences`` are the beginnings and ends of fences in
    turn, and from ``read`` on nothing was read, because of ``stopped``."""

    def found() -> Iterator[tuple[re.Match[str], str]]:
        starts = [start for start, _ in calls]
        for line in _LIKE.finditer(text):
            place = line.start("head")
            before = bisect(starts, place)
            if place not in known and before and place < calls[before - 1][1]:
                continue
            reason = known.get(place) or _reason(line, tags, fenced=bisect(fences, place) % 2 == 1)
            if reason and stopped and place >= read:
                reason = f"it was not read: {stopped}"
            if reason:
                yield line, reason

    passed: list[Passed] = []
    for line, reason in found():
        if len(passed) == MAX_PASSED:
            break
        passed.append(Passed(line_of(line.start("head")), short(line[0].strip(), SHOWN), reason))
    return passed


def _reason(line: re.Match[str], tags: Tags, *, fenced: bool) -> str:
    """Why such a line is not a call; empty if it cannot be meant as one."""
    head, lead = line["head"], line["lead"]
    spaced = not line["rest"] or line["rest"][0].isspace()
    plain = spaced and not fenced and not lead.strip() and not line["mark"]
    if head == CONFIDENCE and head not in tags:
        return "its confidence is not a number" if plain else ""
    if head not in tags:
        if head.upper() in tags:
            return f"a tag is written in capitals, {head.upper()}" if not fenced else ""
        if not plain or len(head) < 2 or head != head.upper():
            return ""
        return f"no tool has the tag {head}.{did_you_mean(head, tags)}".rstrip(".")
    if fenced:
        return "it is in a fence"
    if ">" in lead:
        return "it is quoted"
    if lead.strip():
        return "it is in a list or headline"
    if line["mark"]:
        return "it is set in bold, italics or as code"
    return "it is in a form" if spaced else "there is no blank after its colon"
