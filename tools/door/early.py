"""Begins the body of a call that only reads before the call's turn: while its reply still arrives, or while
the calls before it run.

Nothing is reserved or recorded here, and nobody is asked. In its turn the call passes all stages of the door
like any other, and the last of them takes the value of this body. It must not know receipts or logs.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.door.execution import forget
from quoth.tools.door.parts import Parts
from quoth.tools.door.stages import (
    ask_guard,
    ask_policy,
    check_arguments,
    find_receipt,
    look_up,
    require_unmoved,
    value_of_body,
)
from quoth.tools.door.state import CallState
from quoth.tools.errors import ToolError


def may_begin_early(door: Parts, call: Call) -> bool:
    """Whether a call may be begun before its turn, as far as its tool tells: it declares that it reads and
    nothing else, and no reviewer, limit or cost stands in its way."""
    if call.tool not in door.table or door.gate_programs:
        return False
    tool = door.table.get(call.tool)
    if set(tool.effects) != {"reads"} or tool.cost == "expensive" or tool.gate or tool.ends_turn:
        return False
    if tool.cooldown or tool.daily_limit:
        return False
    try:
        return not door.limits.left(tool, call)
    except Exception:  # what cannot be counted is said in its turn
        return False


class EarlyBody:
    """The body of one call, begun early if nothing is against it. With ``after``, only if that call was begun
    early too: whatever is refused or asks stops those behind it."""

    def __init__(self, door: Parts, state: CallState, after: EarlyBody | None) -> None:
        self.state = state
        self.begun = False
        self._after = after
        self._turn = asyncio.Event()
        self._allowed: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        state.context = self._waiting(state)
        self._task = asyncio.create_task(self._run(door))
        self._task.add_done_callback(forget)

    @property
    def running(self) -> bool:
        """Whether it is still at work."""
        return not self._task.done()

    @property
    def refused(self) -> bool:
        """Whether it is known by now that its body was not begun."""
        return self._allowed.done() and not self._allowed.result()

    async def fits(self, state: CallState) -> bool:
        """Whether this body is that of the call that now has its turn, and was begun."""
        mine = self.state
        return (
            await asyncio.shield(self._allowed)
            and mine.tool is state.tool
            and mine.call.form.digest == state.call.form.digest
            and mine.call.confidence == state.call.confidence
        )

    async def value(self, state: CallState) -> Any:
        """The value of the body, for the call that has its turn; whatever the body raises, it raises."""
        mine = self.state
        state.started = mine.started
        self._turn.set()
        try:
            return await self._task
        finally:
            state.ended, state.waits = state.ended or mine.ended, state.waits or mine.waits
            state.refused = state.refused or mine.refused
            state.verdicts.update(mine.verdicts)
            state.said += mine.said
            state.context.side_effects.extend(mine.context.side_effects)
            state.context.written.extend(mine.context.written)

    async def drop(self) -> None:
        """Stop it and wait until it has ended."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self, door: Parts) -> Any:
        try:
            return await self._value(door)
        finally:  # what it has done is told in its turn; nothing of it knows this body
            done = self.state.context
            self.state.context = ToolContext(
                done.workspace, side_effects=done.side_effects, written=done.written
            )

    async def _value(self, door: Parts) -> Any:
        state = self.state
        try:
            before = self._after is None or await asyncio.shield(self._after._allowed)
            self.begun = before and await _is_allowed(door, state) and not self._is_made_before()
        finally:
            self._allowed.set_result(self.begun)
        if not self.begun:
            return None
        return await value_of_body(state)

    def _is_made_before(self) -> bool:
        """Whether the same call stands before this one: then the receipt of that one answers this."""
        digest, one = self.state.call.form.digest, self._after
        while one is not None and one.state.call.form.digest != digest:
            one = one._after
        return one is not None

    def _waiting(self, state: CallState) -> ToolContext:
        """The context of the body: its own calls, its questions to a model and its sub-agents wait for the
        call's turn, for they are recorded and paid for."""
        context = state.context

        async def turn() -> None:
            if not self.begun:  # a guard asks; in its turn it is told
                raise ToolError(f"{state.call.tool} has to wait for its turn.")
            state.clock.pause()
            try:
                await self._turn.wait()
            finally:
                state.clock.go_on()

        given = context.services
        services: Any = dataclasses.replace(
            given, model=_Later(given.model, turn), team=_Later(given.team, turn)
        )
        assert context.dispatch is not None, "the door gives each call a way to make others"
        dispatch, permission = _later(context.dispatch, turn), _Later(context.permission, turn)
        return dataclasses.replace(context, services=services, dispatch=dispatch, permission=permission)


def _later(function: Callable[..., Awaitable[Any]], turn: Callable[[], Awaitable[None]]) -> Any:
    async def wait(*args: Any, **named: Any) -> Any:
        await turn()
        return await function(*args, **named)

    return wait


class _Later:
    """A service whose asynchronous methods wait for ``turn``."""

    def __init__(self, of: Any, turn: Callable[[], Awaitable[None]]) -> None:
        self._of, self._turn = of, turn

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return _later(found, self._turn) if inspect.iscoroutinefunction(found) else found


async def _is_allowed(door: Parts, state: CallState) -> bool:
    """Whether nothing and nobody is against the call. In its turn it is judged again."""
    with contextlib.suppress(Exception):  # what fails here is told in its turn
        for stage in (look_up, check_arguments, find_receipt, ask_policy, ask_guard):
            if await stage(door, state) is not None:
                return False
        require_unmoved(state)
        door.audit.prepare()
        return not state.questions
    return False
