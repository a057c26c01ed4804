"""The halves of ``@modelcontextprotocol/conformance``: for clients, run upon quoth's own connection to MCP
servers, and for servers.

The half for clients starts a server for each scenario, all at once, and a command that gets the server's
URL. Here that command only hands the scenario over a socket to one process, which runs a few at a time:
starting a Python with the SDK for each would take most of the time.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import npm
import yaml

from quoth.tools.errors import QuothError
from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.connection import Callbacks, Connection, LoginNeeded
from quoth.tools.mcp.login import RegisteredClient, login

PACKAGE = "@modelcontextprotocol/conformance"
AT_ONCE = 2
SECONDS = 180  # for a scenario, of which most wait for their turn
MOST_LOGINS = 3  # of a scenario; a server that always wants more is given up
# Runs for each scenario in the place of a client: hands it over, and waits for its exit code.
HANDOVER = """
import os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect(sys.argv[1])
names = ("MCP_CONFORMANCE_SCENARIO", "MCP_CONFORMANCE_CONTEXT")
link.sendall("\\0".join([sys.argv[2], *(os.environ.get(name, "") for name in names)]).encode() + b"\\n")
sys.exit(link.makefile().readline().strip() != "done")
"""


@dataclass(frozen=True)
class Scenario:
    name: str
    url: str
    context: Mapping[str, Any]

    @property
    def config(self) -> ServerConfig:
        return ServerConfig("conformance", url=self.url)

    @property
    def client(self) -> RegisteredClient:
        return RegisteredClient(
            self.context.get("client_id", ""),
            self.context.get("client_secret", ""),
            "https://conformance-test.local/client-metadata.json",
        )


async def run_suite(revision: str, folder: Path) -> tuple[int, str, dict[str, str]]:
    """Run all scenarios that a revision requires. Returns the suite's exit code, its output, and how quoth
    refused the server of a scenario. What a revision only reports, without requiring it, ends at once."""
    address, turns = folder / "turns", asyncio.Semaphore(AT_ONCE)
    reported = not_required(revision)
    program = folder / "handover.py"
    program.write_text(HANDOVER)
    refusals: dict[str, str] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        url, name, context = (await reader.readline()).decode().rstrip("\n").split("\0")
        async with turns:
            try:
                if name not in reported:
                    await run(Scenario(name, url, json.loads(context or "{}")))
                writer.write(b"done\n")
            except QuothError as error:
                refusals[name] = str(error)
                writer.write(b"failed\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_unix_server(serve, address)
    command = f"{sys.executable} -I -S {program} {address}"
    code, output = await suite(revision, folder, "client", "--command", command)
    server.close()
    await server.wait_closed()
    return code, output, refusals


async def suite(revision: str, folder: Path, *half: str) -> tuple[int, str]:
    """Run a half of the suite, whose files are then in ``results``; its exit code and its output."""
    process = await asyncio.create_subprocess_exec(
        *(npm.NODE, npm.program(PACKAGE), *half, "--requirements", revision),
        *("--timeout", str(SECONDS * 1000), "--output-dir", str(folder / "results")),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=folder,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


def passed(output: str) -> set[str]:
    """The scenarios that passed, by the summary of the suite's output."""
    lines = output.partition("=== SUMMARY ===")[2].partition("Total:")[0].splitlines()
    lines = lines or output.partition("=== SUITE SUMMARY ===")[2].splitlines()
    return {line.split(":")[0].removeprefix("✓ ") for line in lines if line[:1] == "✓"}


async def examine(url: str, revision: str, folder: Path) -> tuple[int, str, dict[str, set[str]]]:
    """Run all scenarios for servers of a revision. Returns the suite's exit code, its output, and the checks
    of required scenarios that did not succeed, by what became of them."""
    code, output = await suite(revision, folder, "server", "--url", url)
    reported, others = not_required(revision), dict[str, set[str]]()
    for file in folder.glob("results/*/checks.json"):
        if not any(file.parent.name.startswith(f"server-{name}-20") for name in reported):
            for check in json.loads(file.read_text()):
                if check["status"] not in ("SUCCESS", "INFO"):
                    others.setdefault(check["status"], set()).add(check["id"])
    return code, output, others


def not_required(revision: str) -> set[str]:
    """The scenarios that a revision reports only: extensions, and what came after its release."""
    said = yaml.safe_load(Path(npm.program(PACKAGE, f"requirements/{revision}.yaml")).read_text())
    return {one["scenario"] for one in said["not_scored"]}


async def run(scenario: Scenario) -> None:
    """What quoth's user does in a scenario: connect, and call the tools that the server offers."""
    act = ACTIONS.get(scenario.name) or partial(use_all, scenario.context.get("toolCalls"))
    for left in reversed(range(MOST_LOGINS)):
        try:
            async with aclosing(_connection(scenario)) as connection:
                await act(connection)
            return
        except LoginNeeded:
            if not left:
                raise
            await login(scenario.config, Path.cwd(), visit, scenario.client)


def _connection(scenario: Scenario) -> Connection:
    return Connection(scenario.config, Path.cwd(), callbacks=Callbacks(elicit=defaults))


async def visit(address: str) -> None:
    """A browser of a person who agrees to all: it follows the redirect."""
    async with httpx2.AsyncClient() as browser:
        await browser.get(address, follow_redirects=True)


async def defaults(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Answer with the defaults of the schema."""
    asked = getattr(params, "requested_schema", {}).get("properties", {})
    return types.ElicitResult(
        action="accept", content={name: one["default"] for name, one in asked.items() if "default" in one}
    )


async def use_all(calls: Sequence[Mapping[str, Any]] | None, connection: Connection) -> None:
    """Make the ``calls`` of a scenario, otherwise call each tool with arguments that fit its schema."""
    tools = (await connection.tools()).tools
    for call in calls or [{"name": tool.name, "arguments": fitting(tool.input_schema)} for tool in tools]:
        await answered(connection, call["name"], call["arguments"])


async def answered(connection: Connection, name: str, arguments: Mapping[str, Any]) -> None:
    """Call a tool, and answer what it asks."""
    result = await connection.call(name, arguments)
    while isinstance(result, types.InputRequiredResult):
        answers = {
            key: await defaults(None, request.params)
            for key, request in (result.input_requests or {}).items()
            if isinstance(request, types.ElicitRequest)
        }
        result = await connection.call(name, arguments, state=result.request_state, answers=answers)


def fitting(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for a schema of plain types."""
    samples = {"string": "text", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
    return {
        name: one.get("default", samples.get(one.get("type", "string")))
        for name, one in schema.get("properties", {}).items()
    }


async def add(connection: Connection) -> None:
    await connection.tools()
    await answered(connection, "add_numbers", {"a": 5, "b": 3})


async def only_list(connection: Connection) -> None:
    await connection.tools()


ACTIONS: dict[str, Callable[[Connection], Awaitable[None]]] = {
    "tools_call": add,
    "json-schema-ref-no-deref": only_list,  # its server has no calls
}
