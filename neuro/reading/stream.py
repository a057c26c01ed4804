"""A reply that arrives in pieces: each call is reported as soon as its last bracket has arrived.

Runs the scan of scanner.py on the text so far. A watch counts brackets and says when scanning is worthwhile,
so that the time is linear however the pieces are cut. It runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from quoth.neuro.reading.forms import LINE, OPENER
from quoth.neuro.reading.reply import read_reply
from quoth.neuro.reading.result import FoundCall, Reading
from quoth.neuro.reading.scanner import CONTEXT, Scan
from quoth.neuro.reading.tag_lines import Tags
from quoth.tools.lisp.reader import Lines

MAX_TRIES = 8  # walks over one unfinished form; after these it must double before the next

_OUTSIDE, _PEEK, _CODE, _STRING, _COMMENT, _DELIMITER, _BRACKETED, _LINE = range(8)
_OPENER = re.compile(r"[(\[{\n]").search
_WORD_END = re.compile(r"[^\s\w-]").search
_LINE_END = re.compile(r"\n").search
_IN_LISP = re.compile(r'[()\[\]{}";#]').search
_IN_DATA = re.compile(r"""[()\[\]{}"']""").search
_IN_STRING = {'"': re.compile(r'["\\]').search, "'": re.compile(r"['\\\n]").search}
_IN_DELIMITER = re.compile(r"[\[\]\n\r]").search


class ReplyStream:
    """Takes the pieces of a reply and returns the calls that each piece completes.

    A call that ``feed`` reports is in the final Reading, in the same order, unless a thought ends behind it
    that began with the reply, unmarked. A call that is certain only at the end (its own end is missing, or it
    follows a thought, a family's markup, or a form that is never closed) is in the final Reading alone, after
    the first ``reported`` calls.
    """

    def __init__(self, known: Collection[str] = (), tags: Tags | None = None) -> None:
        self.reported = 0
        self._known = known
        self._tags = tags or {}
        self._all: list[str] = []
        self._scan = Scan("", known, self._tags, final=False)
        self._window = ""  # what the scan has not passed yet, and CONTEXT before it
        self._place = (1, 1)  # line and column of the window
        self._pieces: list[str] = []  # what came behind the window
        self._watch = _Watch(bool(self._tags))

    def feed(self, piece: str) -> list[FoundCall]:
        """The calls that this piece completes."""
        self._all.append(piece)
        position = 0
        while not self._scan.stopped and (stop := self._watch.pause(piece, position)) >= 0:
            self._pieces.append(piece[position:stop])
            self._walk()
            position = stop
        if not self._scan.stopped:
            self._pieces.append(piece[position:])
        found = self._scan.calls[self.reported :]
        self.reported += len(found)
        return found

    def end(self, *, cut: bool = False) -> Reading:
        """The reading of the whole reply, equal to ``read_reply`` of it."""
        return read_reply("".join(self._all), self._known, self._tags, cut=cut)

    def _walk(self) -> None:
        scan = self._scan
        self._window += "".join(self._pieces)
        self._pieces.clear()
        scan.text = self._window
        scan.lines = Lines(self._window, *self._place)
        scan.run()
        self._watch.look(scan)
        line = self._window.rfind("\n", 0, scan.position) + 1
        scan.quotations.read(self._window, line, scan.base)
        keep = max(0, min(line, scan.position - CONTEXT))
        self._place = scan.lines.at(keep)
        self._window = self._window[keep:]
        scan.base += keep
        scan.position -= keep


class _Watch:
    """Where in the stream it is worth walking on: at the start of a form, and where its last bracket closes.

    It only counts brackets outside of texts. Where it errs, a call is reported later, never wrongly.
    """

    def __init__(self, tags: bool) -> None:
        self.tags = tags
        self.mode = _OUTSIDE
        self.tried = False  # whether this line has been looked at: a form begins a line
        self.chained = False  # or follows another
        self.lisp = True
        self.depth = 0
        self.sharp = False  # right behind a #
        self.escaped = False
        self.quote = '"'
        self.closer = ""  # of a bracket string; or its delimiter as far as it is known
        self.tail = ""  # of what has been seen of it
        self.start = -1  # of the unfinished form, in the whole text
        self.tries = 0
        self.tried_at = 0  # the length at the last of these
        self.length = 0  # of the unfinished form, as far as it has been seen

    def pause(self, piece: str, position: int) -> int:
        """The offset behind the character at which to walk on, or -1."""
        end = len(piece)
        while position < end:
            before = position
            position, walk = self._next(piece, position)
            self.length += position - before
            if walk:
                return position
        return -1

    def _next(self, piece: str, position: int) -> tuple[int, bool]:
        """Pass over some characters; whether to walk on behind them."""
        mode, end = self.mode, len(piece)
        if mode == _CODE:
            return self._code(piece, position)
        if mode == _STRING:
            if self.escaped:
                self.escaped = False
                return position + 1, False
            found = _IN_STRING[self.quote](piece, position)
            if found is None:
                return end, False
            self.escaped = found[0] == "\\"
            if not self.escaped:
                self.mode = _CODE
            return found.end(), False
        if mode == _OUTSIDE:
            found = _OPENER(piece, position)
            if found is None:
                return end, False
            if found[0] == "\n":
                self.tried = False
                return found.end(), self.tags
            return found.end(), self.chained or not self.tried
        if mode in (_PEEK, _LINE):
            found = (_WORD_END if mode == _PEEK else _LINE_END)(piece, position)
            return (end, False) if found is None else (found.end(), True)
        if mode == _COMMENT:
            found = _LINE_END(piece, position)
            if found is None:
                return end, False
            self.mode = _CODE
            return found.end(), False
        return self._bracket_string(piece, position), False

    def _code(self, piece: str, position: int) -> tuple[int, bool]:
        if self.sharp:
            self.sharp = False
            if piece[position] == "[":
                self.mode, self.closer = _DELIMITER, ""
                return position + 1, False
        found = (_IN_LISP if self.lisp else _IN_DATA)(piece, position)
        if found is None:
            return len(piece), False
        char = found[0]
        if char in "([{":
            self.depth += 1
        elif char in ")]}":
            self.depth -= 1
            if self.depth <= 0:
                self.depth = 1  # unless the walk says that it is over
                self.tries += 1
                return found.end(), self.tries <= MAX_TRIES or self._has_doubled()
        elif char == "#":
            self.sharp = True
        elif char == ";":
            self.mode = _COMMENT
        else:
            self.mode, self.quote = _STRING, char
        return found.end(), False

    def _has_doubled(self) -> bool:
        if self.length < 2 * self.tried_at:
            return False
        self.tried_at = self.length
        return True

    def _bracket_string(self, piece: str, position: int) -> int:
        if self.mode == _DELIMITER:
            found = _IN_DELIMITER(piece, position)
            self.closer += piece[position : found.start() if found else len(piece)]
            if found is None and len(self.closer) < 100:
                return len(piece)
            if found is None or found[0] != "[":  # that was no bracket string
                self.mode = _CODE
                self.depth += 1
                return found.start() if found else len(piece)
            self.mode, self.closer, self.tail = _BRACKETED, f"]{self.closer}]", ""
            return found.end()
        seen = self.tail + piece[position:]
        stop = seen.find(self.closer)
        if stop < 0:
            self.tail = seen[1 - len(self.closer) :]
            return len(piece)
        self.mode = _CODE
        return position + stop + len(self.closer) - len(self.tail)

    def look(self, scan: Scan) -> None:
        """Set the watch by where a walk has stopped."""
        text, start = scan.text, scan.waits_for
        self.chained = bool(scan.chained)
        if start is None:
            self.mode, self.start = _OUTSIDE, -1
            self.tried = not text.endswith("\n")
        elif start == LINE:
            self.mode, self.start = _LINE, -1
        elif start == OPENER:
            self.mode, self.start, self.tried = _OUTSIDE, -1, False
        elif start + scan.base != self.start or self.mode == _PEEK:
            self._begin(text, start)
            self.start = start + scan.base

    def _begin(self, text: str, start: int) -> None:
        """Count from the start of an unfinished form to the end of what is there."""
        self.lisp = text[start] == "("
        self.mode, self.depth, self.sharp, self.escaped, self.length = _CODE, 0, False, False, 0
        position = start
        while position >= 0:
            position = self.pause(text, position)
        self.tries = self.tried_at = 0
        if text[start] in "[{" and _WORD_END(text, start + 1) is None:
            self.mode = _PEEK  # a few characters more may say that it is no call
