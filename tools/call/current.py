"""The context of the call whose guard or body is running.

It knows nothing of what a call does.
"""

from __future__ import annotations

import contextvars

from quoth.tools.call.context import ToolContext
from quoth.tools.call.keeping import use_keeper
from quoth.tools.errors import ToolError

_current: contextvars.ContextVar[ToolContext | None] = contextvars.ContextVar("quoth_context", default=None)


def current_context() -> ToolContext:
    """The context of the call whose guard or body is running. Raises ToolError outside of one."""
    context = _current.get()
    if context is None:
        raise ToolError("There is no call running; this works only inside the guard or body of a tool.")
    return context


def running_context() -> ToolContext | None:
    """The context of the running call, or None outside of one."""
    return _current.get()


def enter_context(context: ToolContext) -> contextvars.Context:
    """A copy of the current contextvars with ``context`` as the running call's; for the door."""
    copy = contextvars.copy_context()
    copy.run(_current.set, context)
    copy.run(use_keeper, context.keep)
    return copy
