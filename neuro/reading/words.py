"""The words of a reply as they come, in blocks (a paragraph, a list, a fence) and without its calls.

Knows blocks and a reader of calls; it must not know tools, dialects or who listens.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from quoth.neuro.reading.marks import is_open
from quoth.neuro.reading.result import Reading

_FENCE = re.compile(r"[ \t]*(`{3,}+|~{3,}+)([^`\n]*)")
# The end of a block that goes with the form behind it: a mark, or a fence that begins there.
_OPENS = re.compile(r"(?:[^\s`~].*(?:```|~~~)[\w+-]*|<[^<>\n]*>|\[TOOL_CALLS\])\s*\Z")
# What may become a call when more of it comes: the beginning of a form, a fence, a mark or a tag.
_MAY_BE_A_CALL = re.compile(r"^[^\w\n]*+(?:(?<=[(\[{])|[\w.-]++\(|[\w -]{1,30}:)|<|```|~~~", re.MULTILINE)


class ReplyWords:
    """Takes the pieces of a reply. ``feed`` returns the blocks that a piece completes, up to the first that
    holds a call or something like one; what follows that is known only when the reply has ended, by ``rest``.
    So the blocks together are always the words of the whole reply, each once.
    """

    def __init__(self, read: Callable[[str], Reading]) -> None:
        self._read = read
        self._said: list[str] = []
        self._block: list[str] = []  # the lines of the block that is not complete
        self._line: list[str] = []  # the pieces of the line that is not complete; only the last may be empty
        self._fence = ""  # the marks that opened the fence which the block is in
        self._thinks = False  # whether a thought is open where the block ends
        self._gap = False  # whether the block ends in a blank line
        self._held: list[str] = []  # from the first block on that may be no words

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
        """What ``feed`` has not returned of the reply's words, which are known now."""
        said, place, lines = "".join(map(squeezed, self._said)), 0, words.split("\n")
        # Line by line, for the end of a reply may tell that a mark said before belonged to a call.
        while lines and (found := said.find(squeezed(lines[0]), place)) >= 0:
            place = found + len(squeezed(lines.pop(0)))
        return "\n".join(lines).strip("\n")

    def so_far(self, *, calls: bool) -> str:
        """What came of a reply that was broken off; without ``calls`` only what is certainly no call."""
        tail = self.tail(calls=calls) or ("[… a call that was not read …]" if self.tail(calls=True) else "")
        return "\n\n".join(filter(None, [*self._said, tail]))

    def tail(self, *, calls: bool = False) -> str:
        """The block that is not complete yet; without ``calls`` it is empty if it may hold one."""
        if self._held:
            return "".join(self._held).strip() if calls else ""
        text = "\n".join([*self._block, "".join(self._line)]).strip("\n")
        return text if calls or not (_MAY_BE_A_CALL.search(text) or _differs(self._read(text), text)) else ""

    def _take(self, line: str) -> None:
        """Take a whole line, which may complete the block before it, or the one it belongs to."""
        if self._thinks or (not self._fence and is_open(line, False)):
            if not self._thinks and self._block:
                self._complete()
                if self._held:
                    self._held.append("\n" + line)
                    return
            self._block.append(line)
            self._thinks = is_open(line, True)
            return
        fence = _FENCE.match(line)
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
        """Whether a line that begins so begins another block: behind a blank line, or as a form does."""
        if self._fence or self._thinks or not line or not self._block or line[0].isspace():
            return False
        return self._gap or line[0] in "({<"

    def _complete(self) -> None:
        text = "\n".join(self._block)
        self._block, self._gap = [], False
        if not text.strip():
            return
        # A call that a carriage return follows is one only with the line end; a fence may begin in a line.
        reading = self._read(f"{text}\n")
        if reading.reasoning and not reading.calls:
            if not reading.display:  # a thought, and nothing else
                return
            words = reading.display
        else:
            words = text
        if _differs(reading, words) or _OPENS.search(text):
            self._held = [text]
        else:
            self._said.append(words.strip("\n"))


def _differs(reading: Reading, text: str) -> bool:
    """Whether a block holds a call, or anything else that is not shown as it stands."""
    return bool(reading.calls or reading.errors) or squeezed(reading.display) != squeezed(text)


def squeezed(text: str) -> str:
    """The text without its blanks, by which words are compared however they are laid out."""
    return "".join(text.split())
