"""A reply that arrives in pieces: each call is reported as soon as its last bracket has arrived.

Runs the scan of scanner.py on the text so far, when it is worthwhile. It runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from quoth.neuro.reading.forms import LINE
from quoth.neuro.reading.reply import read_reply
from quoth.neuro.reading.result import FoundCall, Reading
from quoth.neuro.reading.scanner import CONTEXT, Scan
from quoth.neuro.reading.tag_lines import Tags
from quoth.tools.lisp.reader import Lines

MAX_TRIES = (
    8  # walks over one unfinished part; then its brackets must close, or it must double, before the next
)

_OPENERS, _CLOSERS = re.compile(r"[(\[{]").findall, re.compile(r"[)\]}]").findall


class ReplyStream:
    """Takes the pieces of a reply and returns the calls that each piece completes.

    A call that ``feed`` reports is in the final Reading, in the same order, unless a thought ends behind it
    that began with the reply, unmarked. A call that is certain only at the end (its own end is missing, or it
    follows a thought, a family's markup, or a form that is never closed) is in the final Reading alone, after
    the first ``reported`` calls; one with many unpaired brackets in its texts may be reported late.
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
        self._length = 0  # of the whole text so far
        self._walked = 0  # how far behind the place where it stopped the last walk had looked
        self._tries = 0  # the walks that stopped there
        self._open = 0  # brackets of the unfinished form that are opened less those closed, in texts too

    def feed(self, piece: str) -> list[FoundCall]:
        """The calls that this piece completes."""
        self._all.append(piece)
        self._length += len(piece)
        if not self._scan.stopped:
            self._pieces.append(piece)
            if self._is_due(piece):
                self._walk()
        found = self._scan.calls[self.reported :]
        self.reported += len(found)
        return found

    def _is_due(self, piece: str) -> bool:
        """Whether to walk on: where a form may begin in the piece, or the unfinished one end. So the time is
        linear; where this errs, a call is reported later, never wrongly."""
        scan, line = self._scan, "\n" in piece
        if scan.waits_for == LINE:
            return line
        closers, tries = _CLOSERS(piece), MAX_TRIES
        grown = self._length - scan.base - scan.position >= 2 * self._walked
        if scan.waits_for is None:
            self._tries *= not line  # a form begins a line, or follows another
            due = bool(_OPENERS(piece)) or (line and bool(self._tags))
        else:
            self._open += len(_OPENERS(piece)) - len(closers)
            due, tries = bool(closers), tries + tries * (self._open <= 0)
            if grown and scan.text[scan.waits_for] != "(":  # more of it may say that it is no call
                return True
        if due and not grown:
            due = self._tries < tries
            self._tries += due
        return due

    def end(self, *, cut: bool = False) -> Reading:
        """The reading of the whole reply, equal to ``read_reply`` of it."""
        return read_reply("".join(self._all), self._known, self._tags, cut=cut)

    def _walk(self) -> None:
        scan = self._scan
        self._window += "".join(self._pieces)
        self._pieces.clear()
        scan.text = self._window
        scan.lines = Lines(self._window, *self._place)
        place = scan.position
        scan.run()
        self._tries *= scan.position == place
        self._walked = len(self._window) - scan.position
        if scan.waits_for is not None and scan.waits_for >= 0:
            form = self._window[scan.waits_for :]
            self._open = len(_OPENERS(form)) - len(_CLOSERS(form))
        line = self._window.rfind("\n", 0, scan.position) + 1
        scan.quotations.read(self._window, line, scan.base)
        keep = max(0, min(line, scan.position - CONTEXT))
        self._place = scan.lines.at(keep)
        self._window = self._window[keep:]
        scan.base += keep
        scan.position -= keep
