"""What is prose in a reply: the meaning of marks, quotations, and its words in blocks as they arrive."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from quoth.neuro.reading.result import Reading
from quoth.tools import lazy_regex

# The marks of thoughts; and whether a mark of a template is a mark or a word of the reply.
#
# A mark is a word inside a code span, inside quotation marks, or between two words of a sentence. The
# contents of call forms and fences are not considered here: the scan skips them. A tag line in a quotation, a
# comment or a piece of code is not a call: a quotation ends with its paragraph; a comment and an element of
# HTML last until they are closed, and inside a comment or code nothing else counts.


NAMES: Final = r"(?i:think|thinking|thoughts?|reasoning|scratch_?pad|seed:think)"

# The marks that begin and end a thought. An analysis of harmony that is addressed to a tool is a call.
PAIRS: Final = (
    (rf"<{NAMES}>", rf"</{NAMES}>"),
    (r"\[THINK\]", r"\[/THINK\]"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"◁think▷", r"◁/think▷"),
    (r"<\|channel>thought\b", r"<channel\|>"),
    (r"\Aanalysis(?=[A-Z])", r"assistant(?=commentary)|assistantfinal"),  # with stripped marks
    (
        r"(?:<\|start\|>assistant\s*+)?+<\|channel\|>\s*+analysis\b(?![^<]{0,200}?\bto=)[^<]*+(?:<\|message\|>)?+",
        r"<\|end\|>|(?=<\|(?:start|channel|call|return)\|>)",
    ),
)
BEGIN: Final = "|".join(begin for begin, _ in PAIRS)
END: Final = "|".join(end for _, end in PAIRS[:-2])  # the last two end like every message

_BEGINS: Final = [lazy_regex.compile(begin) for begin, _ in PAIRS]
_WITHIN: Final = [
    lazy_regex.compile(rf"(?P<begin>(?:{begin})(?:\s*+(?:{begin}))*+)|(?:{end})") for begin, end in PAIRS
]
_ENDS: Final = lazy_regex.compile(END)
_MARK: Final = lazy_regex.compile(rf"{BEGIN}|{END}")

_QUOTES: Final = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}
_NEAR = 400  # maximum of characters of a line that are read
_BETWEEN = {"**", "()"}  # the characters around a mark that is only mentioned
# A mark in a list or a table, with its explanation.
_LISTED = lazy_regex.compile(r"[ \t]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t]++|\|.*?\|?[ \t]*+)\Z")
_EXPLAINED = lazy_regex.compile(r"[ \t]*+[|:,;=–—)]|[ \t]++[a-z]")


def opened(text: str, position: int) -> tuple[int, int] | None:
    """The index in PAIRS of the mark that begins a thought at ``position``, and the offset of the thought."""
    for pair, begin in enumerate(_BEGINS):
        if found := begin.match(text, position):
            return pair, found.end()
    return None


def closed(text: str, position: int) -> int:
    """The end offset of the mark at ``position`` that ends a thought; -1 if there is none."""
    found = _ENDS.match(text, position)
    return found.end() if found else -1


def end_of_thought(text: str, pair: int, start: int) -> tuple[int, int] | None:
    """The offsets of the mark that ends a thought; marks inside it may be nested. If these do not match, the
    offsets of the last end mark. None if the thought never ends."""
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
    """Whether a thought is open at the end of a line; ``before``: whether it was open at its beginning."""
    for found in _MARK.finditer(line):
        if not is_word(line, *found.span()):
            before = _ENDS.match(line, found.start()) is None
    return before


def may_think(text: str) -> bool:
    """Whether the text contains a mark of thoughts."""
    return _MARK.search(text) is not None


def without_marks(thought: str) -> str:
    """The words of a thought, without marks."""
    return _MARK.sub("", thought).strip()


def is_quoted(text: str, start: int, end: int) -> bool:
    """Whether a mark is between quotation marks."""
    return start > 0 and _QUOTES.get(text[start - 1]) == text[end : end + 1]


def is_word(text: str, start: int, end: int) -> bool:
    """Whether a mark is only mentioned: it is quoted, in a string, or inside a sentence."""
    if is_quoted(text, start, end) or in_sentence(text, start, end):
        return True
    line = text.rfind("\n", max(0, start - _NEAR), start) + 1 or max(0, start - _NEAR)
    before, after = text[line:start], text[end : end + 1]
    if before[-1:] + after in _BETWEEN and not text.startswith("</", start):
        return True
    if (before.strip() and after in (",", ";")) or (_LISTED.match(before) and _EXPLAINED.match(text, end)):
        return True
    if text.count('"', line, start) % 2 == 0:
        return False
    stop = text.find("\n", end, end + _NEAR)
    return text.find('"', end, stop if stop >= 0 else end + _NEAR) >= 0


def ends_words(text: str, start: int, end: int) -> bool:
    """Whether a mark ends a line whose words are not a whole sentence: they may only mention it."""
    before = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    word = before.rstrip(" \t")
    ends = not text[end : end + _NEAR].partition("\n")[0].strip()
    return ends and len(word) < len(before) and (word[-1:].isalnum() or word[-1:] in (",", ";", ":"))


def in_sentence(text: str, start: int, end: int) -> bool:
    """Whether a mark, or a section of calls, is inside a sentence."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    spoken = after[:1] in tuple(".,:;!?)") or (after[:1] == " " and after[1:].isalpha())
    return spoken and before[1:] in (" ", "\t") and (before[0].isalnum() or before[0] in ",;")


def is_alone(text: str, start: int, end: int) -> bool:
    """Whether a mark is alone on its line."""
    before, after = text[max(0, start - _NEAR) : start], text[end : end + _NEAR]
    return not before.rpartition("\n")[2].strip() and not after.partition("\n")[0].strip()


def is_draft(text: str, start: int, end: int) -> bool:
    """Whether an unreadable form is a draft in a thought: its quotes and brackets are complete, and after it
    a thought ends that began with the reply."""
    draft = text[start:end]
    if draft.count('"') % 2 or any(draft.count(a) != draft.count(b) for a, b in ("()", "[]", "{}")):
        return False
    found = _MARK.search(text, end)
    while found and is_word(text, *found.span()):
        found = _MARK.search(text, found.end())
    return found is not None and _ENDS.match(text, found.start()) is not None


# Each mark that opens a quotation, with its closing marks.
_QUOTATIONS = {"“": "”", "„": "“”", "«": "»", "‹": "›", "‚": "‘", "‘": "’", "「": "」", "『": "』"}
_COMMENT = "-->"
_ELEMENTS = "blockquote|details|pre|script|style|template|textarea|xmp"
_QUOTING = lazy_regex.compile(
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
_OPENS = lazy_regex.compile(r'(?<![\w"”\\])"(?=\w)')  # 5" is a length
_FENCE = lazy_regex.compile(r"[ \t]*```")


class Quotations:
    """The open quotations at the current position of the text."""

    def __init__(self, read_to: int = 0) -> None:
        self.read_to = read_to  # the position in the whole text
        self._closers: list[str] = []  # the closing marks of open quotations, the innermost last

    def is_open(self, *, plainly: bool = False) -> bool:
        """Whether a quotation is open; ``plainly``: without straight quotes and code, which are often left
        open."""
        return any(not plainly or closer[0] not in '"`' for closer in self._closers)

    def read(self, text: str, end: int, base: int = 0) -> None:
        """Read up to ``end``, the beginning of a line, in a text that begins at ``base`` of the whole
        text."""
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


# The words of a reply as they arrive, in blocks (a paragraph, a list, a fence) and without its calls.


_CODE_FENCE = lazy_regex.compile(r"[ \t]*(`{3,}+|~{3,}+)([^`\n]*)")
# The end of a block that belongs to the form after it: a mark, or the beginning of a fence.
_OPENS_WITH = lazy_regex.compile(r"(?:[^\s`~].*(?:```|~~~)[\w+-]*|<[^<>\n]*>|\[TOOL_CALLS\])\s*\Z")
# Text that may become a call with more text: the beginning of a form, a fence, a mark or a tag.
_MAY_BE_A_CALL = lazy_regex.compile(
    r"^[^\w\n]*+(?:(?<=[(\[{])|[\w.-]++\(|[\w -]{1,30}:)|<|```|~~~", re.MULTILINE
)


class ReplyWords:
    """Takes the pieces of a reply. ``feed`` returns the blocks that a piece completes, up to the first block
    with a call or something similar; ``rest`` returns the remaining words when the reply has ended. Together
    they are always the words of the whole reply, each once."""

    def __init__(self, read: Callable[[str], Reading]) -> None:
        self._read = read
        self._said: list[str] = []
        self._block: list[str] = []  # the lines of the incomplete block
        self._line: list[str] = []  # the pieces of the incomplete line; only the last may be empty
        self._fence = ""  # the opening marks of the block's fence
        self._thinks = False  # whether a thought is open at the end of the block
        self._gap = False  # whether the block ends with a blank line
        self._held: list[str] = []  # the blocks from the first one that may contain a call

    def feed(self, piece: str) -> list[str]:
        """The blocks that this piece completes."""
        if self._held:
            self._held.append(piece)
            return []
        before = len(self._said)
        *lines, rest = piece.split("\n")
        for place, line in enumerate(lines):
            self._take("".join([*self._line, line]))
            self._line = []
            if self._held:
                self._held.append("\n".join(["", *lines[place + 1 :], rest]))
                self._line = []
                return self._said[before:]
        self._line.append(rest)
        if self._ends_block("".join(self._line[:2])):
            self._complete()
            if self._held:
                self._held += ["\n", *self._line]
        return self._said[before:]

    def rest(self, words: str) -> str:
        """The part of the reply's ``words``, which are now known, that ``feed`` has not returned."""
        said, place, lines = "".join(map(squeezed, self._said)), 0, words.split("\n")
        # Line by line, because the end of a reply may show that an earlier mark belonged to a call.
        while lines and (found := said.find(squeezed(lines[0]), place)) >= 0:
            place = found + len(squeezed(lines.pop(0)))
        return "\n".join(lines).strip("\n")

    def so_far(self, *, calls: bool) -> str:
        """The received part of a reply that was broken off; without ``calls`` only certain words."""
        tail = self.tail(calls=calls) or ("[… a call that was not read …]" if self.tail(calls=True) else "")
        return "\n\n".join(filter(None, [*self._said, tail]))

    def tail(self, *, calls: bool = False) -> str:
        """The incomplete block; without ``calls`` it is empty if it may contain a call."""
        if self._held:
            return "".join(self._held).strip() if calls else ""
        text = "\n".join([*self._block, "".join(self._line)]).strip("\n")
        return text if calls or not (_MAY_BE_A_CALL.search(text) or _differs(self._read(text), text)) else ""

    def _take(self, line: str) -> None:
        """Take a whole line, which may complete the block before it, or its own block."""
        if self._thinks or (not self._fence and is_open(line, False)):
            if not self._thinks and self._block:
                self._complete()
                if self._held:
                    self._held.append("\n" + line)
                    return
            self._block.append(line)
            self._thinks = is_open(line, True)
            return
        fence = _CODE_FENCE.match(line)
        flush = bool(line) and not line[0].isspace()
        if self._fence:
            self._block.append(line)
            if fence and not fence[2].strip() and fence[1].startswith(self._fence):
                self._fence = ""
                if flush:
                    self._complete()
            return
        if self._ends_block(line) or (flush and fence):
            self._complete()
            if self._held:
                self._held.append("\n" + line)
                return
        self._block.append(line)
        self._gap = not line.strip()
        self._fence = fence[1] if fence else ""

    def _ends_block(self, line: str) -> bool:
        """Whether a line begins another block: it is after a blank line, or looks like a form."""
        if self._fence or self._thinks or not line or not self._block or line[0].isspace():
            return False
        return self._gap or line[0] in "({<"

    def _complete(self) -> None:
        text = "\n".join(self._block)
        self._block, self._gap = [], False
        if not text.strip():
            return
        # With a carriage return, a form is a call only with the line end; a fence may begin inside a line.
        reading = self._read(f"{text}\n")
        if reading.reasoning and not reading.calls:
            if not reading.display:  # only a thought
                return
            words = reading.display
        else:
            words = text
        if _differs(reading, words) or _OPENS_WITH.search(text):
            self._held = [text]
        else:
            self._said.append(words.strip("\n"))


def _differs(reading: Reading, text: str) -> bool:
    """Whether a block contains a call, or other text that is not displayed unchanged."""
    return bool(reading.calls or reading.errors) or squeezed(reading.display) != squeezed(text)


def squeezed(text: str) -> str:
    """The text without blanks, to compare words independent of layout."""
    return "".join(text.split())
