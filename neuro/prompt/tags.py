"""Response tags, the first chat bot's dialect (seed 000): a line ``RESEARCH: some query`` is a call.

Knows tools and their tags; neuro/reading/reply.py finds the tags in a reply. A tag is followed by a JSON
object of arguments, or by plain text: then each required parameter but the last gets one word (or a text in
double quotes) and the last the rest of the line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.parameters import TEXTS, Param
from quoth.tools.registry.table import CognitiveTool, ToolTable

_LINE = re.compile(r'[^\s{"\\][^\x00-\x1f\x7f]*(?<!\s)')  # plain text that is read as it is
_WORD = re.compile(r'("(?:[^"\\]|\\.)*"|\S+)[ \t]*')


def tagged(table: ToolTable) -> dict[str, CognitiveTool]:
    """The tools that have a tag, by tag. Raises UsageError when two have the same."""
    found: dict[str, CognitiveTool] = {}
    for tool in table:
        if tool.tag in found:
            raise UsageError(f"The tools {found[tool.tag].name} and {tool.name} share the tag {tool.tag}.")
        if tool.tag:
            found[tool.tag] = tool
    return found


def tag_line(tool: CognitiveTool) -> str:
    """The line that shows a model how to call the tool: ``RESEARCH: [query]``. For several free texts it is
    JSON with their names, because a model cannot tell where one ends and the next begins."""
    slots = _slots(tool)
    if not all(param.choices for param in slots[:-1]):
        return f"{tool.tag}: {{" + ", ".join(f'"{param.name}": {_slot(param)}' for param in slots) + "}"
    return f"{tool.tag}: " + " ".join(map(_slot, slots))


def spell_tag(tool: CognitiveTool, form: CallForm) -> str:
    """The line that calls a tool with these arguments."""
    if takes_line(tool) and len(form.args) == 1:
        text = str(form.args.get(_slots(tool)[0].name, ""))
        if _LINE.fullmatch(text):
            return f"{tool.tag}: {text}"
    return f"{tool.tag}: " + json.dumps(dict(form.args), ensure_ascii=False)


def takes_line(tool: CognitiveTool) -> bool:
    """Whether plain text after a tag can be a whole call: the tool needs exactly one text, or one program."""
    needed = [param for param in tool.offered if param.required]
    return len(needed) == 1 and needed[0].type in (*TEXTS, Code) and not needed[0].choices


def _slots(tool: CognitiveTool) -> list[Param]:
    """The parameters plain text can fill: those required, or the first when none is."""
    return [param for param in tool.offered if param.required] or list(tool.offered[:1])


def _slot(param: Param) -> str:
    if param.choices:
        return "[" + "|".join(str(choice) for choice in param.choices) + "]"
    return f"[{param.name}]"


def tag_arguments(tool: CognitiveTool, rest: str) -> dict[str, Any]:
    """The arguments of a call, read from the text after its tag."""
    if (named := _named(tool, rest)) is not None:
        return named
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


def _named(tool: CognitiveTool, rest: str) -> dict[str, Any] | None:
    """The arguments by name, when the text is a JSON object of just such."""
    if not rest.startswith("{"):
        return None
    try:
        data = json.loads(rest)
    except (ValueError, RecursionError):
        return None
    named = {kebab(key): value for key, value in data.items()}
    return named if set(named) <= {param.name for param in tool.params} else None


def _value(param: Param, word: str) -> Any:
    """The value a word spells: a text stands for itself, anything else is JSON where it can be."""
    quoted = word.startswith('"') and word.endswith('"') and len(word) > 1
    if param.type in TEXTS and not quoted:
        return word
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word
