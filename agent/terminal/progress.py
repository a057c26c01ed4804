"""Shows progress on stderr: calls, results and bars, never on stdout.

Knows how events are printed, not where they come from.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from quoth.agent.events import RunEvent, SubAgent, Waiting
from quoth.agent.reply import CallRecord, Reply
from quoth.agent.terminal.forms import brief
from quoth.agent.terminal.output import colored, complain, may_draw, shown
from quoth.agent.terminal.question import stands
from quoth.agent.terminal.text import shortened, show_value
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import short
from quoth.tools.visible import visible

SHOWN_LINES = 6
# Where a call may begin in a reply: it is shown once it is complete, without its declared secrets.
_CALL = re.compile(
    r'[(\[]\s*[\w?!*-]+\s*[:"(\[{=]|\(\s*:|[{<]\s*["/|\w]|```|^[ \t]*[A-Z_-]{2,}:', re.MULTILINE
)
_UNDECIDED = re.compile(r"[(\[{<`]\s*[\w?!*-]*\s*$")  # an end that may yet become one
IN_A_CALL = "writing"  # shown instead of its words
_LAST = 400  # characters of a reply that are kept to be shown


def weights_progress() -> Callable[[int, int], None]:
    """Return a callback ``(done, total)``, in bytes, that shows the one-time assembly of the embedded model's
    file: as a bar if ``may_draw``, else as one line."""
    drawn, last = may_draw(sys.stderr), -1

    def show(done: int, total: int) -> None:
        nonlocal last
        percent = done * 100 // total if total else 100
        if percent == last:
            return
        began, last = last < 0, percent
        if drawn:
            end = "\n" if done >= total else ""
            sys.stderr.write(
                f"\rPreparing the model (once)  {'█' * (percent * 30 // 100):<30} {percent:3}%{end}"
            )
            sys.stderr.flush()
        elif began:
            complain(f"Preparing the model (once), {total / 10**6:,.0f} MB")

    return show


class Progress:
    """A listener that prints each call, result and fault as it happens. Those of a sub-agent are indented
    below its task."""

    def __init__(self, out: TextIO | None = None, color: bool | None = None) -> None:
        self._out = out or sys.stderr or io.StringIO()  # stderr may be closed
        self._color = may_draw(self._out) if color is None else color
        self._waiting = False
        self._words: dict[tuple[SubAgent, ...], str] = {}  # the last of each reply that comes
        self._told = ""  # why a request waits, said last
        self._path: tuple[SubAgent, ...] = ()  # to the sub-agent that speaks
        self._written: list[tuple[tuple[SubAgent, ...], str]] = []  # calls shown before their reply had ended

    def __call__(self, event: RunEvent) -> None:
        kind, data, path = event.kind, event.data, event.path
        if kind in ("usage", "question"):  # a person is asked by whoever asks
            return
        if kind not in ("turn", "text", "thought"):
            if path:
                self._clear()
                self._turn_to(path)
            self._path = path
        if kind == "waiting" and isinstance(data, Waiting):
            self._wait_on(data)
        elif kind == "turn":
            self._written = [said for said in self._written if said[0] != path]
            self._wait("… reading")
        elif kind == "text":
            self._hear(str(data), path)
        else:
            self._clear()
        if kind != "text":
            self._words.pop(path, None)
        if kind != "waiting":
            self._told = ""
        if kind == "written":
            self._written.append((path, data))
            self._call(data)
        elif kind == "call" and isinstance(data, CallForm):
            if (said := (path, str(data))) in self._written:
                self._written.remove(said)
            else:
                self._call(str(data))
        elif kind == "result" and isinstance(data, CallRecord):
            self._result(data)
        elif kind in ("fault", "note", "compaction"):
            self._line("!", "yellow", str(data))
        elif kind == "end" and isinstance(data, Reply) and data.status != "done":
            self._line("■", "yellow", f"{data.status}: {data.said}")

    def _turn_to(self, path: tuple[SubAgent, ...]) -> None:
        """Print the tasks on ``path`` that the last event did not have; sub-agents may run concurrently."""
        before = self._path
        for place, agent in enumerate(path):
            self._path = path[: place + 1]
            if before[place : place + 1] != (agent,):
                before = ()
                self._line("▷", "magenta", " ".join(shortened(agent.task, 160).split()))
        self._path = path

    def _hear(self, piece: str, path: tuple[SubAgent, ...]) -> None:
        """Show on a terminal the last words of the reply that comes, as many as a line has room for."""
        if not self._color:
            return
        from rich.cells import cell_len

        if (said := self._words.get(path, "")) != IN_A_CALL:
            said += piece
            self._words[path] = said = IN_A_CALL if _CALL.search(said) else said[-_LAST:]
        shown_now = " ".join(_UNDECIDED.sub("", said).split()) or IN_A_CALL
        words, room = visible(shown_now), self._room()
        while words and cell_len(words) > room:
            words = words[1:]
        self._wait(f"… {words}")

    def _room(self) -> int:
        with suppress(OSError, ValueError):  # no terminal; one that does not tell its width says 0
            return (os.get_terminal_size(self._out.fileno()).columns or 80) - 3
        return 77

    def _wait(self, doing: str) -> None:
        """Show on a terminal what the model is doing, in a line that the next event erases."""
        if self._color:
            self._wipe()
            self._out.write(colored(doing, "dim"))
            self._out.flush()
            self._waiting = True

    def _wait_on(self, waiting: Waiting) -> None:
        """Say why once, and on a terminal count down in a line below."""
        if waiting.seconds < 1:
            self._told = self._told if waiting.seconds > 0 else ""
            self._wait("… reading")
            return
        if self._told != waiting.reason:
            self._clear()
            self._line("!", "yellow", str(waiting))
            self._told = waiting.reason
        self._wait(f"… {waiting.seconds:.0f} s")

    def _clear(self) -> None:
        if self._waiting:
            self._wipe()
            self._out.flush()
            self._waiting = False

    def _wipe(self) -> None:
        from rich.control import Control
        from rich.segment import ControlType

        self._out.write(str(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 0))))

    def _call(self, form: str) -> None:
        said = brief(form)
        self._line("→", "cyan", visible(said, lines=True))
        if self._color and said == form:
            stands(form)

    def _result(self, record: CallRecord) -> None:
        result = record.result
        took = result.audit.get("duration_ms", 0)
        mark = "green" if result.ok else "red"
        body = show_value(result.value) if result.ok else result.message
        lines = body.splitlines() or [""]
        more = [f"… {len(lines) - SHOWN_LINES} more lines"] if len(lines) > SHOWN_LINES else []
        brief = [short(line, 160) for line in lines[:SHOWN_LINES]] + more
        self._line("←", mark, f"{result.status}, {took} ms: " + "\n".join(brief))

    def _line(self, sign: str, color: str, text: str) -> None:
        mark = colored(sign, color) if self._color else sign
        pad = "  " * len(self._path)
        stands("")
        rows = shown(text).replace("\n", f"\n{pad}    ")  # set in: no row of its own
        self._out.write(f"{pad}{mark} {rows}\n")
        self._out.flush()
