"""Loads the tool table of an agent: the tools that ship, and those of a user's files.

It knows how tools are loaded and nothing of what runs them, so that listing tools stays quick.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from quoth.tools.errors import UsageError
from quoth.tools.hy_loader import load_hy_file
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

ToolSource = str | Path | CognitiveTool


def load_tools(sources: Iterable[ToolSource], table: ToolTable | None = None) -> ToolTable:
    """``table``, or a new one of the tools that ship, with those of ``sources`` added. Raises UsageError."""
    if table is None:
        import_module("quoth.tools.builtin")
        table = cognitive_tools.copy()
    for source in sources:
        if isinstance(source, CognitiveTool):
            table.register(source, replace=source.name in table and table.get(source.name) is source)
            continue
        if not isinstance(source, str | Path):
            raise UsageError(f"{source!r} is no tool; tools are .hy files, or tools made in Python.")
        path = Path(source)
        if path.suffix != ".hy":
            raise UsageError(f"{path} is no tool file; tools are written in files that end in .hy.")
        with registering_in(table):
            load_hy_file(path)
    return table


def with_search(table: ToolTable) -> ToolTable:
    """A copy of the table with ``describe`` and ``search-tools``, for a belt that shows one line per tool."""
    from quoth.tools.builtin import search_tools

    more = table.copy()
    for tool in search_tools():
        if tool.name not in more:
            more.register(tool)
    return more
