"""Prints what a model says as it says it: each block of words once it is complete, on stdout if that is a
terminal. Calls are shown by Progress.

Knows events and terminals. Where stdout is no terminal it prints a reply once, at its end.
"""

from __future__ import annotations

from typing import TextIO

from quoth.agent.events import RunEvent
from quoth.agent.terminal.forms import stands
from quoth.agent.terminal.output import (
    columns_of,
    is_dumb,
    is_terminal,
    may_draw,
    print_data,
    print_drawn,
    results,
)
from quoth.agent.terminal.progress import Progress
from quoth.neuro.reading.words import squeezed


class Speech(Progress):
    """A listener that prints the words of a run, and else is Progress. ``finish`` prints what of a reply is
    not on the screen yet."""

    def __init__(self, out: TextIO | None = None, color: bool | None = None, *, aloud: bool = True) -> None:
        super().__init__(out, color)
        self._speaks = aloud and is_terminal(results())
        self._spoken: list[str] = []  # the blocks of the model's latest reply

    def watch(self, agent: object) -> None:
        """Do nothing: a person is shown the same of every agent."""

    def __call__(self, event: RunEvent) -> None:
        super().__call__(event)
        if event.path:  # its caller tells what a sub-agent said
            return
        if event.kind == "turn":
            self._spoken = []
        elif event.kind == "said" and self._speaks:
            self._say(str(event.data))

    def finish(self, text: str) -> None:
        """Print what of a reply is not on the screen yet."""
        if self.unsaid(text):
            self._say(text)

    def unsaid(self, text: str) -> bool:
        """Whether a reply is not on the screen yet."""
        told = squeezed(text)
        return bool(told) and not squeezed("".join(self._spoken)).endswith(told)

    def _say(self, text: str) -> None:
        self._clear()
        stands("")
        if self._speaks:
            before = "\n" if self._spoken else ""
            self._spoken.append(text)
            print_words(text, before)
        else:
            print_data(text)


def print_words(text: str, before: str = "") -> None:
    """Print words of a model on stdout: laid out on a terminal, else as they are."""
    out = results()
    if not is_terminal(out) or is_dumb():
        print_data(before + text)
        return
    from quoth.agent.terminal.markdown import laid_out

    print_drawn(before + laid_out(text, columns_of(out), may_draw(out)))
