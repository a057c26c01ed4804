"""The functions of the prompt: the tools, whose calls go through the door, and ``describe``, ``source``,
``pmap``, ``macroexpand`` and ``macroexpand-1``.
"""

from __future__ import annotations

import asyncio
import builtins
import concurrent.futures
import inspect
import sys
from collections.abc import Callable, Coroutine, Iterable
from pathlib import PurePath
from types import ModuleType
from typing import Any

from quoth.agent.terminal.output import shown
from quoth.tools.call.call import ToolResult
from quoth.tools.call.context import CallFailed, running_context
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.lisp.printer import Code, show, to_value
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.values import plain

Make = Callable[[CallForm], Coroutine[Any, Any, ToolResult]]


class FormCaller:
    """Runs the calls of forms on the agent's event loop, while the thread of the forms waits.

    ``results`` are the results of the form being evaluated. Calls in a tool's body have that body as their
    caller, so that the door sees them as nested calls."""

    def __init__(self, make: Make, loop: asyncio.AbstractEventLoop) -> None:
        self._make, self._loop = make, loop
        self._waiting: concurrent.futures.Future[ToolResult] | None = None
        self.results: list[ToolResult] = []

    def call(self, form: CallForm) -> Any:
        """The value of a call; on the event loop itself, an awaitable of it. Raises CallFailed."""
        inside = running_context()
        make = self._make if inside is None or inside.dispatch is None else inside.dispatch
        work = make(form)
        if asyncio.events._get_running_loop() is self._loop:  # the body of an async tool
            return self._awaited(work)
        future = asyncio.run_coroutine_threadsafe(_result_of(work), self._loop)
        if inside is not None:
            return _value(future.result())
        self._waiting = future
        try:
            result = future.result()
        except concurrent.futures.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            self._waiting = None
        self.results.append(result)
        return _value(result)

    async def _awaited(self, work: Any) -> Any:
        return _value(await work)

    def interrupt(self) -> bool:
        """Cancel the call that a form waits for; return False if there is none."""
        waiting = self._waiting
        return waiting is not None and waiting.cancel()


async def _result_of(work: Any) -> ToolResult:
    result: ToolResult = await work
    return result


def _value(result: ToolResult) -> Any:
    if not result.ok:
        from quoth.agent.terminal.forms import failure_text

        raise CallFailed(result, failure_text(result))
    return result.value


class ToolFunction:
    """A tool of the table as a function; looks the tool up by name at each call."""

    def __init__(self, name: str, table: Callable[[], ToolTable], caller: FormCaller) -> None:
        self.__name__ = name
        self._table, self._caller = table, caller

    @property
    def tool(self) -> CognitiveTool:
        return self._table().get(self.__name__)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return f"{self.tool.signature()}\n{self.tool.description}"

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Run the call. Raises CallFailed with the message of its result."""
        given = {kebab(name): _argument(value) for name, value in named.items()}
        return self._caller.call(CallForm(self.__name__, given, tuple(map(_argument, args))))

    def __repr__(self) -> str:
        return f"<tool {self.__name__}>"


def _argument(value: Any) -> Any:
    """A value as an argument of a call: a form becomes a program, a path or a tool its name."""
    import hy.models as m

    if isinstance(value, Code):
        return value
    if isinstance(value, m.Object):
        if isinstance(value, m.Symbol | m.Expression):
            return Code(show(value))
        value = _data_of(value)
    if isinstance(value, ToolFunction):
        return value.__name__
    if isinstance(value, CognitiveTool):
        return value.name
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _argument(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_argument(item) for item in value]
    return value if isinstance(value, str | int | float | bytes | None) else plain(value)


def _data_of(model: Any) -> Any:
    """A quoted literal as data."""
    return to_value(model)


# Helpers of every prompt


def helpers(module: ModuleType, table: Callable[[], ToolTable]) -> dict[str, Any]:
    """The functions by name. ``module`` contains the macros, ``table`` the tools."""

    def tool_of(what: Any) -> CognitiveTool | None:
        if isinstance(what, ToolFunction):
            return what.tool
        if isinstance(what, CognitiveTool):
            return what
        return table().get(str(what)) if isinstance(what, str) else None

    def meant(what: Any) -> Any:
        """A quoted name means a macro, because macros have no value."""
        import hy

        if not isinstance(what, hy.models.Symbol):
            return what
        macros = {**getattr(builtins, "_hy_macros", {}), **getattr(module, "_hy_macros", {})}
        return macros.get(hy.mangle(what), what)

    def describe(what: Any) -> None:
        """Print the purpose and parameters of a tool or function, or of a macro given by its quoted name."""
        what = meant(what)
        sys.stdout.write(shown(_described(what, tool_of(what))) + "\n")

    def source(what: Any) -> None:
        """Print the source form of a tool, or the source text of a function."""
        what = meant(what)
        sys.stdout.write(shown(_source(what, tool_of(what))) + "\n")

    def macroexpand(form: Any) -> Any:
        """Expand the macro at the head of a quoted form until the head is not a macro: (macroexpand '(when a
        b))."""
        import hy

        return hy.macroexpand(form, module)

    def macroexpand_1(form: Any) -> Any:
        """Expand the macro at the head of a quoted form once."""
        import hy

        return hy.macroexpand_1(form, module)

    def pmap(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the values of a function for each item, one after the other."""
        return [function(item) for item in items]

    made = {
        "describe": describe,
        "pmap": pmap,
        "source": source,
        "macroexpand": macroexpand,
        "macroexpand-1": macroexpand_1,
    }
    for name, helper in made.items():
        helper.__qualname__ = name  # Python's errors show this name
    return made


def _described(what: Any, tool: CognitiveTool | None) -> str:
    if tool is None:
        name = getattr(what, "__name__", type(what).__name__)
        try:
            signature = str(inspect.signature(what))
        except (TypeError, ValueError):
            signature = ""
        return f"{name}{signature}\n{inspect.getdoc(what) or 'It has no docstring.'}"
    lines = [tool.signature(), tool.description]
    for param in tool.params:
        if param.hidden:
            continue
        default = "" if param.required else f" (default {param.default!r})"
        lines.append(f"  :{param.name}  {param.doc}{default}".rstrip())
    lines += [f"Example: {example}" for example in tool.examples[:2]]
    return "\n".join(lines)


def _source(what: Any, tool: CognitiveTool | None) -> str:
    if tool is not None:
        if tool.source:
            return tool.source.rstrip()
        raise UsageError(f"The source of {tool.name} is not known here.")
    try:
        return inspect.getsource(what).rstrip()
    except (OSError, TypeError):
        name = getattr(what, "__name__", repr(what))
        raise UsageError(f"The source of {name} is not known here.") from None
