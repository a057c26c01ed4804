"""Loads the tool table of an agent: the tools that ship, and tools from a user's files and functions.

It imports nothing that runs tools, so that listing tools stays fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from quoth.tools.errors import UsageError, no_such
from quoth.tools.hy_loader import load_hy_file
from quoth.tools.py_loader import load_py_file
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

ToolSource = str | Path | CognitiveTool | Callable[..., Any]
LOADERS = {".hy": load_hy_file, ".py": load_py_file}
KNOWLEDGE_RULES = Path(__file__).parent / "knowledge" / "chat_rules.hy"  # a policy for the knowledge tools


def load_tools(
    sources: Iterable[ToolSource],
    table: ToolTable | None = None,
    without: Sequence[str] = (),
    *,
    knowledge: bool = False,
) -> ToolTable:
    """``table``, or a new table of the tools that ship, with the tools of ``sources`` added: files, tools,
    functions, methods and partials. With ``knowledge`` also the tools of a knowledge base. Tools that the
    process has defined elsewhere are not in it. Tools named in ``without`` are removed first, so that a
    source may reuse the name. Raises UsageError."""
    if table is None:
        import_module("quoth.tools.builtin")
        table = ToolTable(tool for tool in cognitive_tools if tool.ships)
    if knowledge:
        table = with_knowledge(table)
    if without:
        table = _left_out(table, without)
    for source in sources:
        if callable(source):
            tool = _function_tool(source)
            table.register(tool, replace=tool.name in table and table.get(tool.name) is tool)
            continue
        if not isinstance(source, str | Path):
            raise UsageError(f"{source!r} is not a tool; tools are .hy and .py files, functions and methods.")
        path = Path(source)
        load = LOADERS.get(path.suffix)
        if load is None:
            raise UsageError(f"{path} is not a tool file: its name must end in .hy or .py.")
        known = {*table}
        with registering_in(table):
            load(path)
        if path.suffix == ".py" and known.issuperset(table):  # a .hy file may define only macros
            raise UsageError(
                f"{path} defines no tool. Write @cognitive_tool (from quoth) above each function "
                "that is a tool."
            )
    return table


def _function_tool(source: Callable[..., Any]) -> CognitiveTool:
    if isinstance(source, CognitiveTool):
        return source
    from quoth.tools.registry.function import tool_of  # here: most agents have files of tools

    return tool_of(source)


def _left_out(table: ToolTable, without: Sequence[str]) -> ToolTable:
    """A copy of the table without the tools of these names."""
    for name in without:
        if name not in table:
            names, lead = table.names(), "The built-in tools are"
            raise UsageError(no_such("built-in tool", name, names, lead, " to leave out"))
    gone = {table.get(name).name for name in without}
    return table.where(lambda tool: tool.name not in gone)


def with_search(table: ToolTable) -> ToolTable:
    """A copy of the table with ``describe`` and ``search-tools``, for a tool list with one line per tool."""
    from quoth.tools.builtin import search_tools

    return _with(table, search_tools())


def with_knowledge(table: ToolTable) -> ToolTable:
    """A copy of the table with ``research``, ``source``, ``claim``, ``learning`` and ``summarize``, for an
    agent that has a knowledge base. A tool of the table with such a name stays."""
    from quoth.tools.builtin import knowledge_tools

    return _with(table, knowledge_tools())


def _with(table: ToolTable, tools: Iterable[CognitiveTool]) -> ToolTable:
    """A copy of the table with the tools whose names are free."""
    more = table.copy()
    for tool in tools:
        if tool.name not in more:
            more.register(tool)
    return more


def with_shown(table: ToolTable, name: str) -> ToolTable:
    """The table with a tool of this name shown, for an agent that can use it: ``sources``, ``skill``. The
    table may lack the tool."""
    if name not in table or table.get(name).shown:
        return table
    more = table.copy()
    more.register(replace(table.get(name), shown=True), replace=True)
    return more
