"""A list of models of which the first that can answers does: ``cascade:A,B,…``.

Knows backends, and when another may answer in the place of one; it must not know tools, forms or the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Backend,
    Completion,
    ContextFullError,
    ModelError,
    MovedError,
    RequestOptions,
    ToolsRefusedError,
    takes_images,
)
from quoth.neuro.backends.context_window import window_of
from quoth.neuro.backends.messages import Messages

PATIENCE = 2.0  # seconds that a model may ask to be waited for while another can be asked


class CascadeRun:
    """One conversation's way down a list of models: it never goes back up. To whoever asks, it is the model
    that is asked next; when that one fails and there is another, MovedError says so."""

    def __init__(self, models: Sequence[Backend], place: int = 0) -> None:
        self.models = tuple(models)
        self._place = place

    @property
    def _now(self) -> Backend:
        return self.models[self._place]

    @property
    def _next(self) -> Backend | None:
        below = self.models[self._place + 1 :]
        return below[0] if below else None

    @property
    def name(self) -> str:
        return self._now.name

    @property
    def takes_grammar(self) -> bool:
        return self._now.takes_grammar

    @property
    def tool_view(self) -> str:
        return self._now.tool_view

    @property
    def context(self) -> int | None:
        return self._now.context

    @property
    def takes_images(self) -> bool:
        return takes_images(self._now)

    @property
    def thinking_tokens(self) -> int:
        """Tokens that its reply may have beyond the limit."""
        return getattr(self._now, "thinking_tokens", 0)

    @property
    def roomier(self) -> bool:
        """Whether the next model reads more than this one."""
        return self._next is not None and window_of(self._next).tokens > window_of(self._now).tokens

    def for_run(self) -> CascadeRun:
        """A way of its own down the list, from here on."""
        return CascadeRun(self.models, self._place)

    def stand_at(self, place: int, name: str) -> None:
        """Go on from where a conversation stood when it was broken off, if the list is the same."""
        kind = name.partition(":")[0]
        if place < len(self.models) and self.models[place].name.partition(":")[0] == kind:
            self._place = place

    async def complete(
        self,
        messages: Messages,
        *,
        on_text: Callable[[str], None] | None = None,
        options: RequestOptions = NO_OPTIONS,
        **asked: Any,
    ) -> Completion:
        shown = False

        def show(piece: str) -> None:
            nonlocal shown
            shown = shown or bool(piece)
            if on_text is not None:
                on_text(piece)

        if self._next is not None:
            options = replace(options, patience=PATIENCE)
        try:
            heard = None if on_text is None else show
            return await self._now.complete(messages, on_text=heard, options=options, **asked)
        except ModelError as error:
            following = self._next
            if following is None or shown or not self._may_move(error):
                raise
            sentence = f"{self.name} did not answer; {following.name} is asked instead. {error}"
            self._place += 1
            raise MovedError(sentence, self._place, begun=error.begun) from error

    def _may_move(self, error: ModelError) -> bool:
        """Whether another model may answer what this one did not."""
        return self.roomier if isinstance(error, ContextFullError) else bool(error.why)

    async def aclose(self) -> None:
        """Do nothing: whoever opened the models closes them."""


class Cascade(CascadeRun):
    """The list itself. Each request to it begins with the first model, and goes down the list by itself; a
    run takes a way of its own (``for_run``)."""

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        tools: bytes | None = None,
        **asked: Any,
    ) -> Completion:
        """As of any backend. Raises ToolsRefusedError where the next model takes other tools than these."""
        way = self.for_run()
        while True:
            try:
                own = grammar if way.takes_grammar else None
                return await way.complete(messages, grammar=own, tools=tools, **asked)
            except MovedError as error:
                if tools is not None and way.tool_view != self.tool_view:
                    raise ToolsRefusedError(str(error)) from error

    async def aclose(self) -> None:
        for ended in await asyncio.gather(*(one.aclose() for one in self.models), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended


class Missing:
    """A model that cannot be asked, for the reason ``why``; its place in a list is that of a model ``like``
    another."""

    def __init__(self, name: str, why: str, like: Backend) -> None:
        self.name = name
        self.tool_view, self.takes_grammar, self.context = like.tool_view, like.takes_grammar, like.context
        self._why = why

    async def complete(self, messages: Messages, **asked: object) -> Completion:
        raise ModelError(self._why, "key")

    async def aclose(self) -> None:
        """Do nothing: it holds nothing."""


def is_same(one: Backend, other: Backend | None) -> bool:
    """Whether both are one backend, or ways down one list."""
    if isinstance(one, CascadeRun) and isinstance(other, CascadeRun):
        return one.models == other.models
    return one is other


def for_run(backend: Backend) -> Backend:
    """The backend as one run asks it."""
    return backend.for_run() if isinstance(backend, CascadeRun) else backend
