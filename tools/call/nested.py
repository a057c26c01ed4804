"""The calls that a body makes of other tools (``ctx.call``): awaited, or waited for in its thread.

It knows forms, results and event loops; it must not know contexts, tables or the door.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from typing import Any

from quoth.tools.call.call import ToolResult
from quoth.tools.errors import Pending, ToolError
from quoth.tools.lisp.forms import CallForm, from_model, kebab
from quoth.tools.registry.values import plain

STEP = 0.1  # seconds between two looks of a thread that waits, at which it can be stopped
ON_THE_LOOP = "This would block the event loop: in an async body write await ctx.call(…), without wait()."

_loop: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "quoth_loop", default=None
)


def use_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Have the calls of a body, in a thread of its own, run in this event loop."""
    _loop.set(loop)


class CallFailed(ToolError):
    """A call within a body, or a form, did not end well; ``result`` is its ToolResult."""

    def __init__(self, result: ToolResult, sentence: str = "") -> None:
        super().__init__(sentence or result.message)
        self.result = result


class NestedCall(Awaitable[Any]):
    """A call of another tool: ``await`` it in an async body, and ``wait()`` for it in any other. Both return
    the value of the call, and raise CallFailed where it is not ok."""

    def __init__(self, form: CallForm, dispatch: Callable[[CallForm], Awaitable[ToolResult]]) -> None:
        self.form, self._dispatch = form, dispatch

    def __await__(self) -> Generator[Any, Any, Any]:
        loop = _loop.get()
        if loop is None or asyncio.get_running_loop() is loop:
            return self._value().__await__()
        return asyncio.wrap_future(self._begun(loop)).__await__()  # the body's thread has a loop of its own

    def wait(self) -> Any:
        """The value, for a body without ``async``; its thread is blocked meanwhile."""
        loop, here = _loop.get(), asyncio.events._get_running_loop()
        if here is not None and here is loop:
            raise ToolError(ON_THE_LOOP)
        if loop is None:
            return asyncio.run(self._value())
        future = self._begun(loop)
        try:
            while not future.done():
                concurrent.futures.wait([future], STEP)
            return future.result()
        finally:
            future.cancel()

    def _begun(self, loop: asyncio.AbstractEventLoop) -> concurrent.futures.Future[Any]:
        return asyncio.run_coroutine_threadsafe(self._value(), loop)

    async def _value(self) -> Any:
        result = await self._dispatch(self.form)
        if result.ok:
            return result.value
        if result.status == "pending":
            raise Pending(result.message)
        raise CallFailed(result)


def nested_form(tool: Any, args: Sequence[Any], named: Mapping[str, Any]) -> CallForm:
    """The form of a call of a tool, which is its name, its function, or the text of a whole form."""
    if isinstance(tool, str) and tool.lstrip().startswith("("):
        from quoth.tools.lisp.reader import read_one  # here: it imports Hy

        tool = from_model(read_one(tool))
    if isinstance(tool, CallForm):
        if args or named:
            raise ToolError(f"{tool} has its arguments already.")
        return tool
    if callable(tool):
        from quoth.tools.registry.function import tool_of  # here: most bodies name a tool

        tool = tool_of(tool).name
    given = {kebab(name): _argument(value) for name, value in named.items()}
    return CallForm(kebab(tool), given, tuple(map(_argument, args)))


def _argument(value: Any) -> Any:
    return value if isinstance(value, str | int | float | None) else plain(value)
