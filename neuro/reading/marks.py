"""The marks of thoughts; and where any mark of a template is a mark, and where it is a word of the reply.

A mark is a word inside a code span, inside quotation marks, or between two words of a sentence. What a call
form or a fence contains is never looked at here: the scan passes over these. A tag line in a quotation, a
comment or a piece of code is no call: a quotation ends with its paragraph; a comment and an element of HTML
last until they are closed, and in a comment or in code nothing else counts.
"""

from __future__ import annotations

import re
from typing import Final

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


def opened(text: str, position: int) -> tuple[int, int] | None:
    """Which of the PAIRS begins a thought at ``position``, and where the thought itself begins."""
    for pair, match in enumerate(_BEGINS):
        if found := match(text, position):
            return pair, found.end()
    return None


def closed(text: str, position: int) -> int:
    """Where the mark at ``position`` that ends a thought ends itself; -1 if it is none."""
    found = _ENDS(text, position)
    return found.end() if found else -1


def end_of_thought(text: str, pair: int, start: int) -> tuple[int, int] | None:
    """The offsets of the mark that ends a thought: marks inside it may be nested; where these do not match,
    of the last that ends one. None if it never ends."""
    depth, last = 1, None
    for found in _WITHIN[pair].finditer(text, start):
        if found["begin"]:
            depth += not is_word(text, *found.span())
            continue
        last, depth = found.span(), depth - 1
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


def ends_words(text: str, start: int, end: int) -> bool:
    """Whether a mark ends a line whose words are not a whole sentence, so that they may speak of it."""
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    word = before.rstrip(" \t")
    ends = not text[end : end + _NEAR].partition("\n")[0].strip()
    return ends and len(word) < len(before) and (word[-1:].isalnum() or word[-1:] in (",", ";", ":"))


def in_sentence(text: str, start: int, end: int) -> bool:
    """Whether a sentence goes on around a mark, or around a section of calls."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    spoken = after[:1] in tuple(".,:;!?)") or (after[:1] == " " and after[1:].isalpha())
    return spoken and before[1:] in (" ", "\t") and (before[0].isalnum() or before[0] in ",;")


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


# Each mark that opens a quotation, with those that close it.
_QUOTATIONS = {"“": "”", "„": "“”", "«": "»", "‹": "›", "‚": "‘", "‘": "’", "「": "」", "『": "』"}
_COMMENT = "-->"
_ELEMENTS = "blockquote|details|pre|script|style|template|textarea|xmp"
_QUOTING = re.compile(
    rf"""
      (?P<paragraph> \n[ \t\r]*\n )
    | (?P<comment> <!-- | --> )
    | (?P<code> (?<!`)``+ )                                   # one alone is often left open, or an accent
    | ^[ \t]*<(?P<element> /?(?:{_ELEMENTS}) )\b
    | </(?P<end> {_ELEMENTS} )\b
    | (?P<straight> " )
    | (?P<mark> [“”„«»‹›‚‘「」『』] | ’(?!\w) )                # behind it a letter: don’t
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_OPENS = re.compile(r'(?<![\w"”\\])"(?=\w)')  # 5" is a length
_FENCE = re.compile(r"[ \t]*```")


class Quotations:
    """What is open where the text was read to."""

    def __init__(self, read_to: int = 0) -> None:
        self.read_to = read_to  # in the whole text
        self._closers: list[str] = []  # of what is open, the innermost last

    def is_open(self, *, plainly: bool = False) -> bool:
        """Whether anything is open; ``plainly``: but what is often left open, a straight quote or code."""
        return any(not plainly or closer[0] not in '"`' for closer in self._closers)

    def read(self, text: str, end: int, base: int = 0) -> None:
        """Read on to the beginning of a line, ``end``, in a text that begins at ``base`` of the whole one."""
        begin = max(0, self.read_to - base)
        for found in _QUOTING.finditer(text, begin, end):
            self._meet(found, text)
        self.read_to = max(self.read_to, end + base)

    def _meet(self, found: re.Match[str], text: str) -> None:
        mark, inner = found[0].lstrip().lower(), self._closers[-1] if self._closers else ""
        kind = found.lastgroup
        if kind in ("element", "end"):
            self._element((found["element"] or f"/{found['end']}").lower(), inner)
        elif inner == _COMMENT or inner[:1] == "`":
            if mark == inner:
                self._closers.pop()
        elif kind == "paragraph":
            self._closers = [closer for closer in self._closers if closer[0] == "/"]
        elif kind == "comment":
            if mark != _COMMENT:
                self._closers.append(_COMMENT)
        elif kind == "code":
            if not _FENCE.match(text, text.rfind("\n", 0, found.start()) + 1):
                self._closers.append(mark)
        elif inner and mark in inner:
            self._closers.pop()
        elif kind == "straight":
            if _OPENS.match(text, found.start()):
                self._closers.append(mark)
        elif mark in _QUOTATIONS:
            self._closers.append(_QUOTATIONS[mark])

    def _element(self, name: str, inner: str) -> None:
        if inner == _COMMENT or inner[:1] == "`":
            return
        if name[0] != "/":
            self._closers.append(f"/{name}")
        elif name in self._closers:
            del self._closers[self._closers.index(name) :]
