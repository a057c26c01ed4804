"""A call of an MCP server's tool through quoth with its whole door, beside the bare SDK's call on stdio; and
a table with a thousand tools of a server. CPU time of this process, in turn.

python tests/bench/mcp_calls.py [--rounds N] [--calls N]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "vocabulary"))

import mcp_server  # noqa: E402  it is beside the other words of the tests
from mcp.client.client import Client  # noqa: E402
from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: E402

from quoth import AsyncAgent  # noqa: E402
from quoth.tools.mcp.config import ServerConfig  # noqa: E402
from quoth.tools.mcp.entries import schema_fault, with_servers  # noqa: E402
from quoth.tools.mcp.pins import pinned, write_pins  # noqa: E402
from quoth.tools.mcp.servers import LiveServers, ServerSetup, fields_of, pins_of  # noqa: E402
from quoth.tools.registry.table import ToolTable  # noqa: E402

MANY = 1_000


async def cpu_ms(call: Callable[[], Awaitable[Any]], calls: int) -> float:
    began = time.process_time()
    for _ in range(calls):
        await call()
    return (time.process_time() - began) / calls * 1000


async def calls(folder: Path, rounds: int, number: int) -> list[tuple[float, float, float]]:
    """CPU milliseconds of a call in each round: ours, of a tool that ships, and the bare SDK's."""
    program, *args = mcp_server.command(real=True)
    file = folder / "servers.json"
    file.write_text(json.dumps(mcp_server.config(name="shop", real=True)))
    config = ServerConfig("shop", program, tuple(args), source=str(file))
    connection = ServerSetup(folder).connection(config)
    listed = fields_of((await connection.tools()).tools)
    await connection.aclose()
    write_pins(pins_of(config, folder), pinned("shop", config.target, listed, fault=schema_fault))
    policy = folder / "policy.hy"
    policy.write_text("(allow (shop--echo))")
    agent = AsyncAgent(workspace=folder, mcp=[str(file)], policy=str(policy))
    parameters = StdioServerParameters(command=program, args=args)
    pairs = []
    async with agent, Client(stdio_client(parameters)) as client:
        await client.list_tools()

        async def ours() -> None:
            result = await agent.call('(shop--echo :text "x")')
            assert result.ok, result.message

        async def shipped() -> None:
            assert (await agent.call('(list-files :path ".")')).ok

        async def theirs() -> None:
            assert not (await client.call_tool("echo", {"text": "x"})).is_error

        for _ in range(rounds + 1):
            pairs.append([await cpu_ms(one, number) for one in (ours, shipped, theirs)])
    return [(one, two, three) for one, two, three in pairs[1:]]  # the first fills caches


def tables(folder: Path, rounds: int) -> list[float]:
    """CPU milliseconds to add the tools of a server to a table."""
    config = ServerConfig("many", "none", source=str(folder / "many.json"))
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}
    listed = [
        {"name": f"tool-{n}", "description": f"Return {n}.", "inputSchema": schema} for n in range(MANY)
    ]
    write_pins(pins_of(config, folder), pinned("many", config.target, listed, fault=schema_fault))
    found = []
    for _ in range(rounds + 1):
        began = time.process_time()
        table = with_servers(ToolTable(), LiveServers({"many": config}, ServerSetup(folder)), {})
        found.append((time.process_time() - began) * 1000)
        assert len(table.names()) == MANY
    return sorted(found[1:])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--calls", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.environ["QUOTH_STATE"] = str(folder / "state")
        (folder / "work").mkdir()
        pairs = asyncio.run(calls(folder / "work", given.rounds, given.calls))
        built = tables(folder, given.rounds)
    ratios = sorted(one / other for one, _, other in pairs)
    ours, shipped, theirs = (statistics.median(values) for values in zip(*pairs, strict=True))
    print("| what | median ms of CPU | beside the bare SDK |")
    print("|---+---+---|")
    print(
        f"| a call, through the whole door | {ours:.2f} | {statistics.median(ratios):.2f}"
        f" ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
    )
    print(f"| a call of list-files | {shipped:.2f} | {shipped / theirs:.2f} |")
    print(f"| the bare SDK's call | {theirs:.2f} | 1 |")
    print(f"| a table of {MANY:,} tools of a server | {statistics.median(built):.0f} | |")


if __name__ == "__main__":
    main()
