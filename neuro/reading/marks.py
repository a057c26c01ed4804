"""The marks of thoughts; and where any mark of a template is a mark, and where it is a word of the reply.

A mark is a word inside a code span, inside quotation marks, or between two words of a sentence. What a call
form or a fence contains is never looked at here: the scan passes over these.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

NAMES: Final = r"(?i:think|thinking|thoughts?|reasoning|scratch_?pad|seed:think)"

# What begins a thought, and what ends it. An analysis of harmony that is addressed to a tool is a call.
PAIRS: Final = (
    (rf"<{NAMES}>", rf"</{NAMES}>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|channel>thought\b", r"<channel\|>"),
    (r"\Aanalysis(?=[A-Z])", r"assistant(?=commentary)|assistantfinal"),  # its marks were stripped
    (
        r"(?:<\|start\|>assistant\s*+)?+<\|channel\|>\s*+analysis\b(?![^<]{0,200}?\bto=)[^<]*+(?:<\|message\|>)?+",
        r"<\|end\|>|(?=<\|(?:start|channel|call|return)\|>)",
    ),
)
BEGIN: Final = "|".join(begin for begin, _ in PAIRS)
END: Final = "|".join(end for _, end in PAIRS[:-2])  # the last two end as every message does

_BEGINS: Final = [re.compile(begin).match for begin, _ in PAIRS]
_WITHIN: Final = [
    re.compile(rf"(?P<begin>(?:{begin})(?:\s*+(?:{begin}))*+)|(?:{end})") for begin, end in PAIRS
]
_ENDS: Final = re.compile(END).match
_MARK: Final = re.compile(rf"{BEGIN}|{END}")

_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
_NEAR = 400  # characters of a line that are looked at
_BETWEEN = {"**", "()"}  # the characters around a mark that is spoken of
# A mark in a list or a table, with what is said of it.
_LISTED = re.compile(r"[ \t]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t]++|\|.*?\|?[ \t]*+)\Z").match
_EXPLAINED = re.compile(r"[ \t]*+[|:,;=–—)]|[ \t]++[a-z]").match


class Opened(NamedTuple):
    """The beginning of a thought: which of the PAIRS it is, and where the thought itself begins."""

    pair: int
    start: int


class Closed(NamedTuple):
    """The end of a thought, and where its mark ends."""

    start: int
    end: int


def opened(text: str, position: int) -> Opened | None:
    for pair, match in enumerate(_BEGINS):
        if found := match(text, position):
            return Opened(pair, found.end())
    return None


def closed(text: str, position: int) -> int:
    """Where the mark at ``position`` that ends a thought ends itself; -1 if it is none."""
    found = _ENDS(text, position)
    return found.end() if found else -1


def end_of_thought(text: str, thought: Opened) -> Closed | None:
    """Where a thought ends: marks inside it may be nested; where these do not match, at the last that ends
    one. None if it never ends."""
    depth, last = 1, None
    for found in _WITHIN[thought.pair].finditer(text, thought.start):
        if found["begin"]:
            depth += not is_word(text, *found.span())
            continue
        last, depth = Closed(*found.span()), depth - 1
        if not depth:
            break
    return last


def is_open(line: str, before: bool) -> bool:
    """Whether a thought is open at the end of a line; ``before``: where it begins."""
    for found in _MARK.finditer(line):
        if not is_word(line, *found.span()):
            before = _ENDS(line, found.start()) is None
    return before


def may_think(text: str) -> bool:
    """Whether a mark of thoughts is somewhere in the text."""
    return _MARK.search(text) is not None


def without_marks(thought: str) -> str:
    """A thought as it is kept: its words."""
    return _MARK.sub("", thought).strip()


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a mark stands between quotation marks."""
    return start > 0 and _QUOTES.get(text[start - 1]) == text[end : end + 1]


def is_word(text: str, start: int, end: int) -> bool:
    """Whether a mark is spoken of: it is quoted, in a string, or a sentence goes on around it."""
    if is_quoted(text, start, end) or in_sentence(text, start, end):
        return True
    line = text.rfind("\n", max(0, start - _NEAR), start) + 1 or max(0, start - _NEAR)
    before, after = text[line:start], text[end : end + 1]
    if before[-1:] + after in _BETWEEN and not text.startswith("</", start):
        return True
    if (before.strip() and after in (",", ";")) or (_LISTED(before) and _EXPLAINED(text, end)):
        return True
    if text.count('"', line, start) % 2 == 0:
        return False
    stop = text.find("\n", end, end + _NEAR)
    return text.find('"', end, stop if stop >= 0 else end + _NEAR) >= 0


def follows_words(text: str, start: int) -> bool:
    """Whether a sentence may go on at a place."""
    before = text[max(0, start - 2) : start]
    return len(before) == 2 and before[1] in " \t" and (before[0].isalnum() or before[0] in ",;")


def ends_words(text: str, start: int, end: int) -> bool:
    """Whether a mark ends a line whose words are not a whole sentence, so that they may speak of it."""
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    word = before.rstrip(" \t")
    ends = not text[end : end + _NEAR].partition("\n")[0].strip()
    return ends and len(word) < len(before) and (word[-1:].isalnum() or word[-1:] in (",", ";", ":"))


def in_sentence(text: str, start: int, end: int) -> bool:
    """Whether a sentence goes on around a mark, or around a section of calls."""
    after = text[end : end + 2]
    spoken = after[:1] in tuple(".,:;!?)") or (after[:1] == " " and after[1:].isalpha())
    return spoken and follows_words(text, start)


def is_alone(text: str, start: int, end: int) -> bool:
    """Whether a mark is all that its line holds."""
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    return not before.rpartition("\n")[2].strip() and not after.partition("\n")[0].strip()


def is_draft(text: str, start: int, end: int) -> bool:
    """Whether what cannot be read is a draft in a thought: it is whole by its quotes and brackets, and behind
    it a thought ends that began with the reply."""
    draft = text[start:end]
    if draft.count('"') % 2 or any(draft.count(a) != draft.count(b) for a, b in ("()", "[]", "{}")):
        return False
    found = _MARK.search(text, end)
    while found and is_word(text, *found.span()):
        found = _MARK.search(text, found.end())
    return found is not None and _ENDS(text, found.start()) is not None
