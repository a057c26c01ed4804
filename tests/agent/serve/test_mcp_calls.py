"""The calls of one MCP client, at the same time and after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from words import files

from quoth.agent.cli.mcp_serve import opening_tools
from quoth.agent.cli.options import RunOptions
from quoth.agent.serve.mcp_calls import ClientCalls, McpClient
from quoth.agent.serve.mcp_shape import form_of
from quoth.tools.call.call import ToolResult
from quoth.tools.consent.requests import Decision

WAITS = "echo begun >> {0}; while [ ! -e free ]; do sleep 0.02; done"
SECONDS = 60
CTX: Any = SimpleNamespace(session=SimpleNamespace(client_capabilities=None), protocol_version="2025-11-25")
PARAMS: Any = SimpleNamespace(request_state=None, input_responses=None)
ANN = McpClient("ann")


async def test_a_call_made_again_while_it_runs_is_another_one_though_a_third_was_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = files(tmp_path / "shop", {"model.hy": "", "rules.hy": "(allow (shell))"})
    monkeypatch.chdir(folder)
    options = RunOptions(model="scripted:model.hy", policy="rules.hy")
    calls = ClientCalls(opening_tools(options, ["shell"]), lambda ctx: ANN, tells=False)

    def call(name: str) -> asyncio.Task[Any]:
        form = form_of("shell", {"argv": ["sh", "-c", WAITS.format(name)]})
        return asyncio.create_task(calls.decided(CTX, form, PARAMS))

    async def begun(name: str, times: int) -> None:
        async with asyncio.timeout(SECONDS):
            while not (folder / name).exists() or len((folder / name).read_text().split()) < times:
                await asyncio.sleep(0.02)

    try:
        first, third = call("same"), call("other")
        await begun("same", 1)
        await begun("other", 1)
        third.cancel()
        await asyncio.wait({third})
        second = call("same")
        await asyncio.wait({second, asyncio.create_task(begun("same", 2))}, return_when="FIRST_COMPLETED")
        (folder / "free").touch()
        for result in await asyncio.gather(first, second):
            assert isinstance(result, ToolResult)
            assert result.status == "ok", result.message
    finally:
        (folder / "free").touch()
        await calls.aclose()


async def test_a_program_goes_on_after_a_restart_where_it_waited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = files(tmp_path / "shop", {"model.hy": "", "rules.hy": '(allow (shell :argv ["sh" ...]))'})
    monkeypatch.chdir(folder)
    opening = opening_tools(RunOptions(model="scripted:model.hy", policy="rules.hy"), ["*"])
    run = '(shell :argv ["sh" "-c" "echo run >> ran"])'
    form = form_of("eval", {"program": f'(do {run} (write-file :path "new" :content "hi"))'})

    async def started() -> ToolResult:
        """The call in a server of its own, which then ends; what waits is approved."""
        calls = ClientCalls(opening, lambda ctx: ANN, tells=False)
        try:
            result = await calls.decided(CTX, form, PARAMS)
            assert isinstance(result, ToolResult)
            if result.request:
                calls.agents[0].broker.decide(result.request, Decision("once", by="ann"))
            return result
        finally:
            await calls.aclose()

    assert (await started()).status == "pending"
    assert (await started()).status == "ok"
    assert (folder / "ran").read_text() == "run\n"
