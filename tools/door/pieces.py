"""The pieces of a body that is a generator, shown to a person as lines when they come."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quoth.tools.call.redaction import SENT, Redactor
from quoth.tools.door.state import CallState

if TYPE_CHECKING:
    from quoth.tools.shell.program import OutputLines


class Pieces:
    """Shows the pieces of one call, each as a line, without declared secrets and texts that look like one."""

    def __init__(self, state: CallState, secrets: Collection[str]) -> None:
        self._state, self._secrets = state, secrets

    @cached_property
    def _lines(self) -> OutputLines:
        from quoth.tools.shell.program import OutputLines  # here: few bodies are generators

        return OutputLines(self._state.context.shows)

    @cached_property
    def _hide(self) -> Redactor:
        call, tool = self._state.call, self._state.known_tool
        return Redactor(call.form, tool.params, self._secrets, by_looks=False)

    def show(self, piece: Any) -> None:
        self._lines.add(SENT.without(self._hide.text(f"{piece}\n")).encode("utf-8", "replace"))

    def end(self) -> None:
        """End the output, if there was a piece."""
        if "_lines" in self.__dict__:
            self._lines.end()
