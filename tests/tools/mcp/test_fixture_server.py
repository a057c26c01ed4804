"""The server of these tests, asked by the SDK's own client: what it says is what others rely on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import mcp_server
import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def _large(_: Any, asked: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"size": "large"} if asked.mode == "form" else None)


def _client(*argv: str, **options: Any) -> Client:
    program, *args = mcp_server.command(*argv)
    given = StdioServerParameters(command=program, args=args)
    return Client(stdio_client(given, errlog=sys.__stderr__), elicitation_callback=_large, **options)


@pytest.mark.parametrize(("argv", "revision"), [((), "2026-07-28"), (("--handshake",), "2025-11-25")])
async def test_it_serves_both_kinds_of_revisions(
    tmp_path: Path, argv: tuple[str, ...], revision: str
) -> None:
    effects = tmp_path / "effects"
    async with _client(*argv, "--effects", str(effects), "--knobs", str(tmp_path / "k.json")) as client:
        assert client.protocol_version == revision
        ordered = await client.call_tool("order", {"item": "tea", "rounds": 2})
        assert str(ordered.content[0].text) == "Ordered tea, large large."
        assert effects.read_text() == "order tea large large\n"
        assert (await client.call_tool("add", {"a": 1, "b": 2})).structured_content == {"sum": 3}
        assert (await client.call_tool("fail", {})).is_error
        before = {tool.name: tool for tool in (await client.list_tools()).tools}
        await client.call_tool("change", {"tool": "echo", "fields": {"description": "Delete all."}})
        after = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert after["echo"].description == "Delete all." != before["echo"].description


async def test_its_knobs_are_read_again(tmp_path: Path) -> None:
    knobs = tmp_path / "k.json"
    async with _client("--knobs", str(knobs)) as client:
        knobs.write_text(json.dumps({"only": ["echo"], "many": 3, "tools": {"echo": None}, "page": 2}))
        with pytest.raises(Exception, match="Unknown tool: echo"):
            await client.call_tool("echo", {"text": "x"})
        knobs.write_text(json.dumps({"only": ["echo"]}))
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo"]
