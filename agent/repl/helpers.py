"""The functions that every prompt has: ``describe``, ``source``, ``macroexpand`` and ``macroexpand-1``.

Knows tools and Hy's macros; it makes no call.
"""

from __future__ import annotations

import builtins
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from quoth.agent.repl.tool_functions import ToolFunction
from quoth.agent.terminal.output import shown
from quoth.tools.errors import UsageError
from quoth.tools.registry.table import CognitiveTool, ToolTable


def helpers(module: ModuleType, table: Callable[[], ToolTable]) -> dict[str, Any]:
    """The functions by their names. ``module`` has the macros, ``table`` the tools."""

    def tool_of(what: Any) -> CognitiveTool | None:
        if isinstance(what, ToolFunction):
            return what.tool
        if isinstance(what, CognitiveTool):
            return what
        return table().get(str(what)) if isinstance(what, str) else None

    def meant(what: Any) -> Any:
        """A quoted name is that of a macro, which has no value."""
        import hy

        if not isinstance(what, hy.models.Symbol):
            return what
        macros = {**getattr(builtins, "_hy_macros", {}), **getattr(module, "_hy_macros", {})}
        return macros.get(hy.mangle(what), what)

    def describe(what: Any) -> None:
        """Print what a tool, or a function, is for and how it is called; a macro's name is quoted."""
        what = meant(what)
        sys.stdout.write(shown(_described(what, tool_of(what))) + "\n")

    def source(what: Any) -> None:
        """Print the form that a tool, or the text that a function, was made by."""
        what = meant(what)
        sys.stdout.write(shown(_source(what, tool_of(what))) + "\n")

    def macroexpand(form: Any) -> Any:
        """Expand the macro that a quoted form begins with, until it is none: (macroexpand '(when a b))."""
        import hy

        return hy.macroexpand(form, module)

    def macroexpand_1(form: Any) -> Any:
        """Expand the macro that a quoted form begins with once."""
        import hy

        return hy.macroexpand_1(form, module)

    made = {
        "describe": describe,
        "source": source,
        "macroexpand": macroexpand,
        "macroexpand-1": macroexpand_1,
    }
    for name, helper in made.items():
        helper.__qualname__ = name  # which an error of Python's would show
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
