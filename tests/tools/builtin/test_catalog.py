"""The tools that tell of tools: they ask the catalog of the host, and are in no table until added."""

from __future__ import annotations

import asyncio
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sentences import THERE_IS_NO_TOOL_NAMED
from words import form

from quoth.tools.builtin import search_tools
from quoth.tools.call.call import ToolResult, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.errors import UnknownToolError
from quoth.tools.registry.table import ToolTable, cognitive_tools


class OneTool:
    """A catalog of one tool."""

    def describe(self, name: str) -> str:
        if name != "echo":
            raise UnknownToolError(name, ["echo"])
        return "- echo: all of it"

    async def search(self, words: str, limit: int) -> list[str]:
        return [f"- echo: {words}"][:limit]


def ask(text: str, catalog: Any) -> ToolResult:
    door = Door(ToolTable(search_tools()), audit=MemoryAudit())
    return asyncio.run(
        door.dispatch(new_call(form(text)), ToolContext(Workspace(Path(".")), catalog=catalog))
    )


def test_a_tool_is_described_in_full() -> None:
    assert ask('(describe :name "echo")', OneTool()).value == "- echo: all of it"


def test_an_unknown_tool_is_told_with_the_nearest() -> None:
    result = ask('(describe :name "ecko")', OneTool())
    assert (result.status, result.message) == ("error", f"{THERE_IS_NO_TOOL_NAMED} ecko. Did you mean echo?")


def test_tools_are_found_by_words() -> None:
    assert ask('(search-tools :words "say it")', OneTool()).value == ["- echo: say it"]


@pytest.mark.parametrize("call", ['(describe :name "echo")', '(search-tools :words "x")'])
def test_without_a_catalog_that_is_what_it_says(call: str) -> None:
    result = ask(call, None)
    assert (result.status, result.message) == ("error", "This agent has no catalog of tools.")


def test_they_only_read_and_no_other_table_has_them() -> None:
    import_module("quoth.tools.builtin")
    assert [tool.name for tool in search_tools()] == ["describe", "search-tools"]
    assert all(tool.effects == ("reads",) for tool in search_tools())
    assert not any(tool.name in cognitive_tools for tool in search_tools())
