"""Shows the progress of a flight on stderr: as a live tree on a capable terminal, otherwise as lines.

A line has the format ``plan.org:12: DONE demand-table, 0.1 s``, so that editors can jump to the step.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from quoth.agent.events import AgentEvent, SubAgent
from quoth.agent.flight.report import StepReport
from quoth.agent.plan.model import Part, Plan
from quoth.agent.reply import CallRecord
from quoth.agent.terminal.forms import shortened
from quoth.agent.terminal.output import columns_of, may_draw, shown
from quoth.agent.terminal.progress import Progress, screens
from quoth.tools.lisp.forms import CallForm

COLORS = {"DONE": "green", "FAILED": "red", "DENIED": "red", "SKIPPED": "yellow", "RUNNING": "cyan",
          "WAITING": "cyan"}  # fmt: skip
TEXT_CHARS = 160


class Lines(Progress):
    """A listener that prints a line for each step that begins, ends or waits, and in between the words and
    calls of models."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.spoken: set[str] = set()  # titles of the steps whose models' words were shown

    def __call__(self, event: AgentEvent) -> None:
        step = event.data
        if event.kind == "step" and isinstance(step, StepReport):
            self._clear()
            self._out.write(shown(line_of(step)).replace("\n", "\n    ") + "\n")
            self._out.flush()
        elif event.kind not in ("flight", "landed", "step"):
            super().__call__(event)
            if event.kind == "said" and len(event.path) == 1:
                self._turn_to(event.path)
                self._line("‹", "none", str(event.data), "  ")
                self.spoken.add(event.path[0].task)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Do nothing: lines do not disturb a question."""
        yield


def line_of(step: StepReport) -> str:
    """Return the report of a step as a line; the reason of a failure may add indented lines."""
    line = f"{step.place}: {step.word} {step.id}"
    if step.status == "begun":
        return line
    line += f", {step.seconds:.1f} s"
    if step.status == "done" or not step.text:
        return line
    return f"{line}: {step.text}"


class Tree:
    """A listener that draws all steps of the plan as a live tree: TODO word, time, and current activity."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._plan: Plan | None = None
        self._steps: dict[str, StepReport] = {}
        self._began: dict[str, float] = {}
        self._now: dict[str, str] = {}  # the current activity, by the title of the step
        self._tokens: dict[str, int] = {}
        self._live: Any = None
        self.spoken: set[str] = set()  # titles of the steps whose models' words were shown
        self._speaks: SubAgent | None = None  # the step of the last words
        self._bar = ""  # the progress bar of a model in preparation

    def __call__(self, event: AgentEvent) -> None:
        data = event.data
        if event.kind == "flight" and isinstance(data, Plan):
            self._plan = data
            self._start()
        elif event.kind == "step" and isinstance(data, StepReport):
            self._steps[data.id] = data
            if data.status == "begun":
                self._began.setdefault(data.id, self._clock())
        elif event.kind == "landed":
            self.stop()
        elif event.kind == "said" and len(event.path) == 1:
            self._say(str(data), event.path[0])
        elif event.path:
            self._in_step(event)

    def _say(self, text: str, step: SubAgent) -> None:
        """Print a block of a model's words above the tree, under the title of its step."""
        from rich.text import Text

        from quoth.agent.terminal.speech import laid_out

        self.spoken.add(step.task)
        if self._live is None:
            return
        head = "" if step == self._speaks else f"▷ {shown(step.task)}"
        words = Text.from_ansi(laid_out(text, columns_of(self._stream)))
        self._live.console.print(Text.assemble((head, "magenta"), "\n", words), soft_wrap=True)
        self._speaks = step

    def _in_step(self, event: AgentEvent) -> None:
        title, said, data = event.path[0].task, "", event.data
        if event.kind == "written" or (event.kind == "call" and isinstance(data, CallForm)):
            said = f"→ {data}"
        elif event.kind == "result" and isinstance(data, CallRecord):
            said = f"← {data.result.status}"
        elif event.kind in ("turn", "text"):
            said = {"turn": "… reading", "text": "… writing"}[event.kind]
        elif event.kind == "thought":
            usage = data.usage
            self._tokens[title] = self._tokens.get(title, 0) + usage.input_tokens + usage.output_tokens
        if said:
            self._now[title] = " ".join(shortened(shown(said), TEXT_CHARS).split())

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the tree from the screen during a question."""
        drawn = self._live is not None
        self.stop()
        try:
            yield
        finally:
            if drawn:
                self._start()

    def _start(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=self._stream)
        self._live = Live(
            get_renderable=self.drawn, console=console, refresh_per_second=8, redirect_stdout=False
        )
        self._live.start()
        screens.append(self._show_bar)

    def _show_bar(self, bar: str) -> None:
        self._bar = bar

    def stop(self) -> None:
        """Stop drawing and leave the last tree on the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            screens.remove(self._show_bar)

    def drawn(self) -> Any:
        """Return the current tree, for rich to print."""
        from rich.tree import Tree as Drawn

        assert self._plan is not None, "there is a flight"
        top = Drawn(_text(self._plan.title or self._plan.source.name, "bold"))
        nodes: dict[str, Any] = {}
        for part in self._plan.parts:
            above = nodes[part.parent.id] if part.parent is not None else top
            nodes[part.id] = above.add(self._node(part))
        if self._bar:
            top.add(_text(self._bar, "dim"))
        return top

    def _node(self, part: Part) -> Any:
        title = part.title or part.id
        if not part.is_step:
            return _text(title, "dim" if part.is_note else "")
        step = self._steps.get(part.id)
        if step is None:
            return _text(f"{'DONE   ' if part.todo == 'DONE' else ' '} {title}", "dim")
        if step.status == "begun":
            from rich.spinner import Spinner

            took = self._clock() - self._began[part.id]
            tokens = f", {self._tokens[title]} tokens" if title in self._tokens else ""
            said = f"{title}  {took:.0f} s{tokens}  {self._now.get(title, '')}".rstrip()
            return Spinner("dots", _text(said, "cyan"))
        cost = step.usage.input_tokens + step.usage.output_tokens
        used = f", {cost} tokens" if cost else ""
        line = f"{step.word:<7} {title}  {step.seconds:.1f} s{used}"
        text = "" if title in self.spoken else " ".join(shortened(shown(step.text), TEXT_CHARS).split())
        return _text(f"{line}  {text}" if text else line, COLORS.get(step.word, ""))


def _text(text: str, style: str) -> Any:
    from rich.text import Text

    return Text(shown(text), style=style, overflow="ellipsis", no_wrap=True)


class AskWhilePaused:
    """Wraps AskTerminal so that the display of the flight pauses during each question."""

    def __init__(self, person: Any, look: Lines | Tree) -> None:
        self._person = person
        self._look = look

    async def request(self, *asked: Any) -> Any:
        with self._look.paused():
            return await self._person.request(*asked)

    async def answer(self, *asked: Any) -> Any:
        with self._look.paused():
            return await self._person.answer(*asked)

    @property
    def human(self) -> bool:
        return bool(self._person.human)

    @property
    def asking(self) -> bool:
        return bool(self._person.asking)

    def interrupt(self) -> None:
        self._person.interrupt()

    def show_changes_by(self, find: Any) -> None:
        self._person.show_changes_by(find)

    def withdraw(self, *what: Any) -> None:
        self._person.withdraw(*what)


def flight_display() -> Lines | Tree:
    """Return the listener that shows a flight on stderr, which may be closed."""
    return Tree(sys.stderr) if sys.stderr is not None and may_draw(sys.stderr) else Lines(sys.stderr)
