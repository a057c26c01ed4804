"""A turn through ``/v1/chat/completions`` beside the same turn through AsyncAgent, and a call through
``/mcp`` beside the same through AsyncAgent; in turns, in one process, over a socket of loopback.

python tests/bench/serve.py [--rounds N] [--turns N]

The model is scripted. A turn of the server is one of a chat that grows: the client sends all of it each time,
as chat clients do. CPU is that of the whole process, the client's own part included: the time on the clock is
what the aim is about.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "vocabulary"))

import httpx
import uvicorn

from quoth import AsyncAgent
from quoth.agent.cli.serve import listening
from quoth.agent.serve.app import build_app
from quoth.agent.serve.keys import AccessKey, Keys
from quoth.agent.serve.mcp_http import client_of, mcp_part
from quoth.agent.serve.mcp_server import McpServer
from quoth.agent.serve.openai import openai_part
from quoth.neuro.backends.select import ScriptedBackend

TOKEN = "t" * 32
REVISION = "2026-07-28"
Measured = tuple[float, float]  # milliseconds on the clock, and of CPU


def answer(messages: Any) -> str:
    return "It is noted."


async def measured(work: Callable[[int], Awaitable[Any]], number: int) -> Measured:
    """Milliseconds of one piece of work, on the clock and of CPU."""
    began, cpu = time.perf_counter(), time.process_time()
    for at in range(number):
        await work(at)
    return ((time.perf_counter() - began) * 1000 / number, (time.process_time() - cpu) * 1000 / number)


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server in this process."""

    def agent(**more: Any) -> AsyncAgent:
        return AsyncAgent(model=ScriptedBackend(answer), workspace=folder, **more)

    key = AccessKey("me", TOKEN, frozenset({"ask", "decide"}))
    chats = openai_part(lambda key, model: agent(user=key.name))
    tools = McpServer(
        lambda client: agent(session="mcp-bench"), client_of, secret=b"s" * 32, place=str(folder)
    )
    app = build_app([chats, mcp_part(tools)], Keys((key,)))
    config = uvicorn.Config(app, log_level="warning", lifespan="on")
    server = uvicorn.Server(config)
    with listening(0) as sock:
        running = asyncio.create_task(server.serve(sockets=[sock]))
        headers = {"Authorization": f"Bearer {TOKEN}"}
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        try:
            async with httpx.AsyncClient(base_url=url, headers=headers, timeout=120) as client:
                yield client
        finally:
            server.should_exit = True
            await running


async def turns(folder: Path, client: httpx.AsyncClient, rounds: int, number: int) -> list[list[Measured]]:
    """A chat through the server and one through AsyncAgent, in each round."""
    found = []
    for _ in range(rounds + 1):
        messages: list[dict[str, str]] = []

        async def ours(at: int, messages: list[dict[str, str]] = messages) -> None:
            messages.append({"role": "user", "content": f"Note {at}."})
            said = await client.post("/v1/chat/completions", json={"model": "quoth", "messages": messages})
            messages.append(said.json()["choices"][0]["message"])

        async with AsyncAgent(model=ScriptedBackend(answer), workspace=folder) as agent:

            async def bare(at: int, agent: AsyncAgent = agent) -> None:
                assert (await agent.say(f"Note {at}.")).said == "It is noted."

            found.append([await measured(work, number) for work in (ours, bare)])
    return found[1:]  # the first fills caches


async def calls(folder: Path, client: httpx.AsyncClient, rounds: int, number: int) -> list[list[Measured]]:
    """The call of a tool that reads through ``/mcp`` and through AsyncAgent."""
    prefix = "io.modelcontextprotocol/"
    meta = {
        f"{prefix}protocolVersion": REVISION,
        f"{prefix}clientInfo": {"name": "bench", "version": "1"},
        f"{prefix}clientCapabilities": {},
    }
    params = {"name": "list-files", "arguments": {"path": "."}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    own = {"MCP-Protocol-Version": REVISION, "Mcp-Method": "tools/call", "Mcp-Name": "list-files"}
    own["Accept"] = "application/json, text/event-stream"

    async def ours(at: int) -> None:
        said = await client.post("/mcp", content=json.dumps(body), headers=own | {"Content-Type": JSON})
        assert said.status_code == 200, said.text

    async with AsyncAgent(workspace=folder) as agent:

        async def bare(at: int) -> None:
            assert (await agent.call('(list-files :path ".")')).ok

        found = [[await measured(ours, number), await measured(bare, number)] for _ in range(rounds + 1)]
    return found[1:]


JSON = "application/json"


async def both(folder: Path, rounds: int, number: int) -> tuple[list[list[Measured]], list[list[Measured]]]:
    async with served(folder) as client:
        return (await turns(folder, client, rounds, number), await calls(folder, client, rounds, number))


def row(what: str, pairs: list[list[Measured]]) -> str:
    cells = []
    for kind in (0, 1):
        ratios = sorted(ours[kind] / bare[kind] for ours, bare in pairs)
        ours, bare = (statistics.median(pair[at][kind] for pair in pairs) for at in (0, 1))
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        cells += [f"{ours:.1f}", f"{bare:.1f}", spread]
    return f"| {what} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turns", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.environ["QUOTH_STATE"] = str(folder / "state")
        (folder / "work").mkdir()
        talked, called = asyncio.run(both(folder / "work", given.rounds, given.turns))
    print(
        "| what | served, ms | AsyncAgent, ms | ratio | served, CPU ms | AsyncAgent, CPU ms | ratio of CPU |"
    )
    print("|---+---+---+---+---+---+---|")
    print(row("a turn through /v1", talked))
    print(row("a call through /mcp", called))


if __name__ == "__main__":
    main()
