"""Shows the events of a run on stderr: calls, results and bars."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from quoth.agent.events import AgentEvent, SubAgent, Waiting
from quoth.agent.reply import CallRecord, Reply
from quoth.agent.terminal.forms import brief, shortened, show_value, stands
from quoth.agent.terminal.output import (
    colored,
    columns_of,
    complain,
    draw_bar,
    is_terminal,
    may_draw,
    set_in,
    shown,
)
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import number_of, short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.neuro.backends.weights import Doing
    from quoth.neuro.backends.weights import Progress as Watch


SHOWN_LINES = 6
INNER_CALLS = 20  # calls of one program that are shown
# Where a call may begin in a reply. A call is shown when it is complete, without its declared secrets.
_CALL = re.compile(
    r'[(\[]\s*[\w?!*-]+\s*[:"(\[{=]|\(\s*:|[{<]\s*["/|\w]|```|^[ \t]*[A-Z_-]{2,}:', re.MULTILINE
)
_UNDECIDED = re.compile(r"[(\[{<`]\s*[\w?!*-]*\s*$")  # an end that may become a call
IN_A_CALL = "writing"  # shown instead of the words of a call
BAR = 75  # columns of the longest bar
_LAST = 400  # characters of a reply kept for the last line
READING = "reading"  # shown until the first word of the model, or for one second
# What draws the screen now, such as the tree of a flight. A bar between its frames would be torn apart.
screens: list[Callable[[str], None]] = []
_waiting: weakref.WeakSet[Progress] = weakref.WeakSet()  # objects that show the thinking time of a model


# The work of an embedded model before its answer, as a title, and whether its unit is bytes. Where no bar can
# be drawn, these print a line; only the screen of a run shows other kinds of work.
DOING: dict[Doing, tuple[str, bool]] = {
    "fetching": ("Fetching the model", True),
    "preparing": ("Preparing the model (once)", True),
    "loading": ("Loading the model", False),
    "reading": ("reading", False),
}


def weights_progress() -> Watch:
    """Return a callback ``(doing, done, total)`` that shows the progress of an embedded model until its first
    word: as a bar if ``may_draw``, otherwise as one line per kind of work."""
    drawn, last = may_draw(sys.stderr), ("", -1)

    def show(doing: Doing, done: int, total: int) -> None:
        nonlocal last
        percent = done * 100 // total if total else 100
        if (doing, percent) == last:
            return
        began, last = doing != last[0], (doing, percent)
        title, counts_bytes = DOING[doing]
        bar = f"{title}  {'█' * (percent * 30 // 100):<30} {percent:3}%"
        if doing == "fetching" and done < total:
            bar += f", {(total - done) / 10**6:,.0f} MB left"
        if drawing := [*screens[-1:], *(one.show_bar for one in _waiting)]:
            drawing[0]("" if done >= total else title if doing == "loading" else bar)
        elif drawn and counts_bytes:
            draw_bar(f"{bar:{BAR}}" if doing == "fetching" else bar, ended=done >= total)
        elif began and counts_bytes:
            complain(f"{title}, {total / 10**6:,.0f} MB")

    return show


class Progress:
    """A listener that prints calls, results and faults as they happen, those of a sub-agent indented below
    its task. On a terminal, its last line shows the model's thinking time in seconds, its approximate number
    of tokens, and its last words."""

    def __init__(
        self,
        out: TextIO | None = None,
        color: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._out = out or sys.stderr or io.StringIO()  # stderr may be closed
        self._color = may_draw(self._out) if color is None else color
        self._clock = clock
        self._waiting = False
        self._began: float | None = None  # the time of the request to the model
        self._written_chars = self._pieces = 0  # characters and pieces of its reply so far
        self._doing = READING
        self._bar = ""  # the progress of an embedded model before its first word
        self._timer: asyncio.TimerHandle | None = None
        self._asked = False  # a person reads a question, so draw nothing over it
        self._words: dict[tuple[SubAgent, ...], str] = {}  # the last words of each incoming reply
        self._told = ""  # the last reason printed for a waiting request
        self._ran = False  # whether a program wrote output since the last call
        self._path: tuple[SubAgent, ...] = ()  # from the main agent to the sub-agent of the last event
        # Depth of each running call: 0 for a call of a reply, 1 for a call inside it, below 0 for a hidden
        # call.
        self._depths: dict[str, int] = {}
        self._made: dict[str, int] = {}  # the number of inner calls of each running call
        self._written: list[tuple[tuple[SubAgent, ...], str]] = []  # calls shown before their reply had ended
        # Calls without a result: their present number and their highest number.
        self._open: dict[tuple[SubAgent, ...], list[int]] = {}

    def __call__(self, event: AgentEvent) -> None:
        kind, data, path = event.kind, event.data, event.path
        if kind in ("usage", "question"):  # another part prints the question
            self._asked = self._asked or kind == "question"
            return
        if kind == "output":
            self._run(str(data))
            return
        if kind in ("call", "result") and event.parent and self._unseen(event):
            return
        self._asked = self._asked and kind in ("turn", "text", "said", "thought")
        if kind not in ("turn", "text", "said", "thought"):
            if path:
                self._clear()
                self._turn_to(path)
            self._path = path
        if kind == "waiting" and isinstance(data, Waiting):
            self._wait_on(data)
        elif kind == "turn":
            self._written = [said for said in self._written if said[0] != path]
            self._open.pop(path, None)
            self._think()
        elif kind == "text":
            self._hear(str(data), path)
        elif kind == "said":
            self._clear()
            self._doing = ""
        else:
            self.stop()
        if kind != "text":
            self._words.pop(path, None)
        if kind != "waiting":
            self._told = ""
        if kind == "written":
            self._written.append((path, data))
            self._call(data)
        elif kind in ("call", "result") and event.parent and not path:
            self._inside(event)
        elif kind == "call" and isinstance(data, CallForm):
            self._depths[event.call] = 0
            if (said := (path, str(data))) in self._written:
                self._written.remove(said)
            else:
                self._call(str(data))
        elif kind == "result" and isinstance(data, CallRecord):
            self._result(data)
            self._depths.pop(event.call, None)
        elif kind in ("fault", "note", "compaction"):
            self._line("!", "yellow", str(data))
        elif kind == "end" and isinstance(data, Reply) and data.status != "done":
            self._line("■", "yellow", f"{data.status}: {data.said}")

    def _unseen(self, event: AgentEvent) -> bool:
        """Whether a program that is not shown, such as a person's or that of a step, has made this call. A
        sub-agent that such a call starts is shown: its path is longer."""
        mark = -1 - len(event.path)
        unseen = self._depths.get(event.parent, mark) == mark
        if unseen and event.kind == "call":
            self._depths[event.call] = mark
        elif unseen:
            self._depths.pop(event.call, None)
        return unseen

    def _inside(self, event: AgentEvent) -> None:
        """Print a call that a program or a tool made, below that one, and its result if it is not ok."""
        depth = self._depths[event.parent] + 1
        if isinstance(event.data, CallForm):
            self._depths[event.call] = depth
            self._made[event.parent] = made = self._made.get(event.parent, 0) + 1
            if made <= INNER_CALLS:
                self._line("→", "cyan", visible(brief(str(event.data)), lines=True), depth=depth)
            elif made == INNER_CALLS + 1:
                self._line("…", "dim", "more calls", depth=depth)
        elif isinstance(event.data, CallRecord):
            self._depths.pop(event.call, None)
            self._made.pop(event.call, None)
            if not event.data.result.ok:
                result = event.data.told
                self._line("←", "red", short(f"{result.status}: {result.message}", 160), depth=depth)

    def _turn_to(self, path: tuple[SubAgent, ...]) -> None:
        """Print the tasks on ``path`` that the last event did not have; sub-agents may run concurrently."""
        before = self._path
        for place, agent in enumerate(path):
            self._path = path[: place + 1]
            if before[place : place + 1] != (agent,):
                before = ()
                self._line("▷", "magenta", " ".join(shortened(agent.task, 160).split()))
        self._path = path

    def _think(self) -> None:
        """Start to show the thinking time of the model."""
        self._began, self._pieces, self._written_chars, self._doing = self._clock(), 0, 0, READING
        if self._color:
            _waiting.add(self)
        self._draw()
        self._tick()

    def show_bar(self, bar: str) -> None:
        """Show the model's progress in the last line; the model's thread calls this."""
        self._bar = bar
        self._draw()

    def _tick(self) -> None:
        """Redraw the last line each second, if an event loop is running."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return
        if self._color and self._began is not None:
            self._timer = loop.call_later(1, self._again)

    def _again(self) -> None:
        self._draw()
        self._tick()

    def stop(self) -> None:
        """Erase the last line: the model has finished, or its caller stopped waiting."""
        self._began, self._bar = None, ""
        _waiting.discard(self)
        self._tick()
        self._clear()

    def _hear(self, piece: str, path: tuple[SubAgent, ...]) -> None:
        """On a terminal, show as many of the reply's last words as fit in one line."""
        self._pieces, self._bar = self._pieces + 1, ""
        self._written_chars += len(piece)
        if not self._color:
            return
        if (said := self._words.get(path, "")) != IN_A_CALL:
            said += piece
            self._words[path] = said = IN_A_CALL if _CALL.search(said) else said[-_LAST:]
        self._doing = " ".join(_UNDECIDED.sub("", said).split()) or IN_A_CALL
        self._draw()

    def _run(self, text: str) -> None:
        """On a terminal, show the last output line of a program until the program ends."""
        if not text:
            self._clear()
            return
        self._ran, self._asked = True, False
        if self._color:
            lines = filter(str.strip, reversed(text.split("\n")))
            self._began, self._doing = None, next(lines, "")
            self._draw()

    def _draw(self) -> None:
        from rich.cells import cell_len

        figures = self._figures()
        words = visible(self._bar or self._doing)
        room = columns_of(self._out) - 3 - (len(figures) + 2 if figures else 0)
        while words and cell_len(words) > room:
            words = words[1:]
        self._wait(f"… {'  '.join(filter(None, (figures, words)))}")

    def _figures(self) -> str:
        """The thinking time in seconds and the number of tokens; empty during the first second."""
        seconds = 0 if self._began is None else int(self._clock() - self._began)
        if not seconds:
            return ""
        tokens = max(self._pieces, self._written_chars // 5)  # few servers report tokens before the end
        return f"{seconds} s" + (f", ~{tokens} tokens" if tokens else "")

    def _wait(self, doing: str) -> None:
        """On a terminal, show the model's activity in a line that the next event erases."""
        if self._color and not self._asked:
            self._out.write(
                self._wiped() + colored(doing, "dim")
            )  # in one write, because a model's thread draws too
            self._out.flush()
            self._waiting = True

    def _wait_on(self, waiting: Waiting) -> None:
        """Print the reason once; on a terminal, count down in the line below."""
        if waiting.seconds < 1:
            self._told = self._told if waiting.seconds > 0 else ""
            self._think()
            return
        if self._told != waiting.reason:
            self._clear()
            self._line("!", "yellow", str(waiting))
            self._told = waiting.reason
        self._began = None
        self._wait(f"… {waiting.seconds:.0f} s")

    def _clear(self) -> None:
        if self._waiting:
            self._out.write(self._wiped())
            self._out.flush()
            self._waiting = False

    def _wiped(self) -> str:
        from rich.control import Control
        from rich.segment import ControlType

        return str(Control(ControlType.CARRIAGE_RETURN, (ControlType.ERASE_IN_LINE, 0)))

    def _call(self, form: str) -> None:
        self._ran = False
        count = self._open.setdefault(self._path, [0, 0])
        count[:] = [count[0] + 1, max(count[1], count[0] + 1)]
        self._line("→", "cyan", visible(brief(form), lines=True))
        if self._color:
            stands(form)

    def _result(self, record: CallRecord) -> None:
        result = record.told
        took = result.audit.get("duration_ms", 0)
        mark = "green" if result.ok else "red"
        body = show_value(result.value) if result.ok else result.message
        lines = body.splitlines() or [""]
        lines = _some(lines, 2 if self._ran else SHOWN_LINES)  # a program's message is in its last lines
        if result.ok:  # after the value, the messages of the tool and of programs run after a write
            lines += _some(result.message.splitlines(), SHOWN_LINES)
        brief = [short(line, 160) for line in lines]
        name = self._name(record) if self._is_one_of_several() else ""
        self._line("←", mark, f"{name}{result.status}, {took} ms: " + "\n".join(brief))

    def _is_one_of_several(self) -> bool:
        """Whether other calls were open at the same time as this one."""
        count = self._open.setdefault(self._path, [1, 1])
        count[0] -= 1
        several = count[1] > 1
        if count[0] < 1:
            del self._open[self._path]
        return several

    @staticmethod
    def _name(record: CallRecord) -> str:
        """The tool and its first text argument, such as ``read-file notes.txt: ``."""
        form = record.shown or record.form
        first = next((one for one in (*form.positional, *form.args.values()) if isinstance(one, str)), "")
        return " ".join(filter(None, (form.tool, short(" ".join(first.split()), 40)))) + ": "

    def show_thoughts(self, text: str) -> None:
        """Print the model's thoughts, dimmed on a terminal with colours."""
        self._clear()
        self._line("∴", "dim", text)

    def _line(self, sign: str, color: str, text: str, margin: str = "    ", depth: int = 0) -> None:
        mark = colored(sign, color) if self._color else sign
        pad = "  " * (len(self._path) + depth)
        stands("")
        text, margin = shown(text), f"{pad}{margin}"  # indented, so that no row looks like quoth's own
        if is_terminal(self._out):
            rows = set_in(text, margin, columns_of(self._out), len(pad) + 2, words=True)
        else:
            rows = text.replace("\n", f"\n{margin}")
        if color == "dim" and self._color:
            rows = "\n".join(colored(row, "dim") for row in rows.split("\n"))
        self._out.write(f"{pad}{mark} {rows}\n")
        self._out.flush()


def _some(lines: list[str], first: int) -> list[str]:
    """At most SHOWN_LINES of the lines, the first ``first`` and then the last, with a line that counts the
    others between."""
    more = len(lines) - SHOWN_LINES
    if more < 2:  # a line that counts one line saves no room
        return lines
    return [*lines[:first], f"… {number_of(more, 'more line')}", *lines[first + more :]]
