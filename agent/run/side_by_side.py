"""Several runs of one agent at once: a session holds one run at a time, so each further one gets its own.

Knows how a host is put beside another; it must not know what a run is, or who asks for one.
"""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from quoth.agent.run.host import Host
from quoth.agent.run.single_calls import SingleCalls
from quoth.agent.session.index import new_session
from quoth.tools.errors import BusyError

BUSY = (
    "This agent's session is at work: one message of a conversation is answered after another. Await that "
    "first; several tasks at once are run(…), each in a session of its own."
)
NO_OVERRIDES: Mapping[str, Any] = {}

H = TypeVar("H", bound="SideBySide")
T = TypeVar("T")
P = ParamSpec("P")


class SideBySide(SingleCalls):
    """A Host that knows whether its session is at work, and then lends a host beside itself."""

    _at_work = 0
    _beside: tuple[Host, ...] = ()

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        """Within this context no run begins in the session of this host."""
        self._at_work += 1
        try:
            yield
        finally:
            self._at_work -= 1

    @contextlib.contextmanager
    def free(self, overrides: Mapping[str, Any] = NO_OVERRIDES) -> Iterator[Self]:
        """Within this context the host for one more run: this one, unless the run has ``overrides``; where
        its session is at work, one with the same parts and a session of its own."""
        busy, made = bool(self._at_work or self.running), self.overridden(overrides)
        if not busy and made is self:
            with self.at_work():
                yield self
            return
        made = copy.copy(made)
        made._at_work, made._beside, made._running = 0, (), None
        if busy:
            made.session, made.named = new_session(), ""
            made._open_record()
        self._beside += (made,)
        try:
            with made.at_work(), contextlib.nullcontext() if busy else self.at_work():
                yield made
        finally:
            self._beside = tuple(one for one in self._beside if one is not made)

    def for_chat(self, chat: str, session: str = "") -> Self:
        made = super().for_chat(chat, session)
        made._at_work, made._beside = 0, ()
        return made

    @property
    def stopping(self) -> bool:
        return super().stopping or any(one.stopping for one in self._beside)

    def interrupt(self) -> bool:
        stopped = [one.interrupt() for one in self._beside]
        return super().interrupt() or any(stopped)


def working(
    method: Callable[Concatenate[H, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[H, P], Coroutine[Any, Any, T]]:
    """Decorate a method of SideBySide that works in the host's own session, which nobody removes meanwhile.
    Raises BusyError while something else works there, or removes it."""

    @functools.wraps(method)
    async def work(self: H, /, *args: P.args, **named: P.kwargs) -> T:
        if self._at_work:
            raise BusyError(BUSY)
        with self.at_work(), self._session.used("chat message" if self.chat else "run"):
            return await method(self, *args, **named)

    return work
