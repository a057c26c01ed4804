"""A registry of typed tools (seed 002), for programs without an agent: ``register`` and ``dispatch``.

Each tool is a function from a model to a model; ``echo`` ships. A call passes a door, like every call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any, ParamSpec, TypeVar, Unpack

from pydantic import BaseModel, Field

from quoth.tools.call.call import ToolResult, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.door.stages import RETURNED
from quoth.tools.errors import InvalidCallError, ToolError
from quoth.tools.lisp.forms import from_json
from quoth.tools.registry.define import current_table, registering_in
from quoth.tools.registry.function import ModelSettings, tool_of
from quoth.tools.registry.function import register as register_tool
from quoth.tools.registry.python_types import PythonType
from quoth.tools.registry.strict_model import StrictModel
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.registry.values import plain, plain_but_secrets, secret_text

P = ParamSpec("P")
R = TypeVar("R")

import_module("quoth.tools.builtin")


class EchoToolInput(StrictModel):
    """The input of ``echo``."""

    text: str = Field(description="What to return")


class EchoToolOutput(StrictModel):
    """The output of ``echo``: the same text."""

    text: str


class Registry:
    """Typed tools by name, in a separate table."""

    def __init__(self, table: ToolTable | None = None) -> None:
        self._table = ToolTable() if table is None else table

    @property
    def table(self) -> ToolTable:
        """The table of the tools."""
        return self._table

    def register(
        self, name: str, input_schema: type[BaseModel], **options: Unpack[ModelSettings]
    ) -> Callable[[Callable[P, R]], Callable[P, R]]:
        """A decorator that adds a function of one ``input_schema`` as a tool; the function stays unchanged.
        Raises a ValueError for a name that is taken."""
        decorate = register_tool(name, input_schema, **options)

        def define(function: Callable[P, R]) -> Callable[P, R]:
            with registering_in(self.table):
                return decorate(function)

        return define

    def dispatch(
        self,
        name: str | Callable[..., Any],
        raw_input: Mapping[str, Any] | BaseModel,
        context: ToolContext | None = None,
    ) -> Any:
        """The value of a call, by the tool's name or function: the function's return value, if it declares
        a type, otherwise plain data. Raises UnknownToolError; pydantic's ValidationError if the tool has an
        input model, InvalidCallError if it has none; and ToolError for any other call that is not ok. A
        ``context`` with its own door, such as ``quoth.testing.tool_context()``, takes the call through
        that."""
        tool = self.table.get(name if isinstance(name, str) else tool_of(name).name)
        is_echo = tool.name == "echo" and tool.ships
        taken = EchoToolInput if is_echo else tool.input_model
        if taken is not None:
            PythonType(taken).value_of(plain(raw_input, secret=secret_text))
        form = from_json({"tool": tool.name, "args": plain_but_secrets(raw_input)})
        context = ToolContext(Workspace(".")) if context is None else context
        door, given = Door(self.table), context
        go = given.dispatch or (lambda form: door.dispatch(new_call(form), given))
        returned: list[Any] = []
        result = _waited(lambda: go(form), returned)
        if result.status == "invalid":
            raise InvalidCallError(result.message)
        if not result.ok:
            raise ToolError(result.message)
        if is_echo:
            return EchoToolOutput(text=result.value)
        if tool.returns is None or tool.returns.own is None:
            return result.value
        if returned:
            return returned[-1]  # after the values of the calls that its body made
        return PythonType(tool.returns.own).value_of(result.value, given.workspace.root)

    def names(self) -> list[str]:
        """The names of the tools, sorted."""
        return self.table.names()


def _waited(go: Callable[[], Awaitable[ToolResult]], returned: list[Any]) -> ToolResult:
    """The result of a call, for a caller that cannot await it; in a coroutine its loop waits, too. The values
    of its body and of the bodies within are added to ``returned``."""

    async def gone() -> ToolResult:
        RETURNED.set(returned)
        return await go()

    def run() -> ToolResult:
        return asyncio.run(gone())

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(run).result()


class _Current(Registry):
    """The registry of the current table: that of the process, or of the agent whose file is loaded."""

    @property
    def table(self) -> ToolTable:
        return current_table()


echo_tool: CognitiveTool = cognitive_tools.get("echo")
registry: Registry = _Current()
register = registry.register
dispatch = registry.dispatch
