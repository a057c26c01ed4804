"""A connection to a server as a process: its environment, its end with ours, its restart, its log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_server
import pytest
from mcp import Client
from words import wait_until

from quoth.tools.call.redaction import SENT
from quoth.tools.errors import UsageError
from quoth.tools.mcp import stdio
from quoth.tools.mcp.config import OWN_NAME, ServerConfig
from quoth.tools.mcp.connection import Connection, Deadlines, McpError, McpTimeout
from quoth.tools.mcp.server_log import MAX_BYTES, ServerLog
from quoth.tools.mcp.stdio import folder_of

KEYS = {"OPENAI_API_KEY": "sk-own-key", "QUOTH_MODEL": "x", "AWS_SECRET": "y"}
PLAIN = {name: os.environ[name] for name in ("HOME", "PATH") if name in os.environ}


def connection(tmp_path: Path, *argv: str, environ: Mapping[str, str] = PLAIN, **more: Any) -> Connection:
    program, *args = mcp_server.command(*argv)
    config = ServerConfig("fixture", program, tuple(args), **more)
    return Connection(config, tmp_path, environ=environ, withheld=("OPENAI_API_KEY",))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end by itself is sent SIGTERM soon."""
    monkeypatch.setattr(stdio, "GRACE", 0.5)


def script(tmp_path: Path, text: str, **more: Any) -> Connection:
    """A connection to a program of the shell."""
    return Connection(ServerConfig("sh", "sh", ("-c", text), cwd="."), tmp_path, environ=PLAIN, **more)


def text(result: Any) -> str:
    return str(result.content[0].text)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def pids(path: Path) -> list[int]:
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize(("argv", "revision"), [((), "2026-07-28"), (("--handshake",), "2025-11-25")])
async def test_both_kinds_of_revisions_are_spoken(
    argv: tuple[str, ...], revision: str, tmp_path: Path
) -> None:
    changes: asyncio.Queue[str] = asyncio.Queue()
    knobs = str(tmp_path / "knobs")
    async with aclosing(connection(tmp_path, *argv, "--knobs", knobs)) as server:
        server.on_change(changes.put_nowait)
        listed = await server.tools()
        assert (listed.version, listed.server and listed.server.name) == (revision, "fixture")
        assert text(await server.call("echo", {"text": "hé"})) == "hé"
        assert changes.empty()  # nothing has to be listed again
        (sum_,) = [tool for tool in listed.tools if tool.name == "add"]
        assert sum_.output_schema is not None
        await server.call("change", {"tool": "echo", "fields": {"title": "other"}})
        assert await asyncio.wait_for(changes.get(), 30) == "tools"
        assert {tool.name: tool.title for tool in (await server.tools()).tools}["echo"] == "other"
        assert await server.resources()
        assert await server.prompts()


async def test_a_change_between_a_list_and_the_stream_of_changes_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: asyncio.Queue[str] = asyncio.Queue()
    listed, listen = asyncio.Event(), Client.listen

    @asynccontextmanager
    async def late(client: Client, **kinds: bool) -> AsyncIterator[Any]:
        await listed.wait()
        async with listen(client, **kinds) as events:
            yield events

    monkeypatch.setattr("quoth.tools.mcp.connection.MOMENT", 0.01)
    monkeypatch.setattr(Client, "listen", late)
    async with aclosing(connection(tmp_path, "--knobs", str(tmp_path / "knobs"))) as server:
        server.on_change(changes.put_nowait)
        await server.tools()
        await server.call("change", {"tool": "echo", "fields": {"title": "other"}})
        assert changes.empty()
        listed.set()
        assert await asyncio.wait_for(changes.get(), 30) == "tools"


async def test_a_server_sees_what_is_named_and_never_a_key_of_ours(tmp_path: Path) -> None:
    env = {"NAMED": "${GIVEN}"}
    given = {**PLAIN, **KEYS, "GIVEN": "1", "TERM": "xterm", "LANG": "C.UTF-8"}
    async with aclosing(connection(tmp_path, environ=given, env=env)) as server:
        seen = text(await server.call("environment", {})).split()
    assert set(seen) - {"LC_CTYPE"} == {*PLAIN, "TERM", "NAMED"}  # LC_CTYPE is of Python itself
    async with aclosing(connection(tmp_path, environ=given, env={"K": "${OPENAI_API_KEY}"})) as server:
        with pytest.raises(UsageError, match="which quoth gives to no server") as caught:
            await server.tools()
    assert "sk-own" not in str(caught.value)


async def test_a_server_that_dies_answers_each_open_call_and_starts_again(tmp_path: Path) -> None:
    async with aclosing(connection(tmp_path)) as server:
        waiting = [asyncio.create_task(server.call("wait", {"steps": 9, "seconds": 60})) for _ in range(3)]
        await server.call("echo", {"text": "x"})
        with pytest.raises(McpError) as caught:
            await server.call("die", {})
        assert str(caught.value) == (
            f"The MCP server fixture ended with exit code 3 before it answered. Its log is {server.log}."
        )
        done, left = await asyncio.wait(waiting, timeout=10)
        assert not left
        assert [type(one.exception()) for one in done] == [McpError] * 3
        assert all(getattr(one.exception(), "sent", False) for one in done)
        assert text(await server.call("echo", {"text": "again"})) == "again"  # at once, the first time


async def test_one_that_dies_again_and_again_is_started_less_often(tmp_path: Path) -> None:
    async with aclosing(script(tmp_path, "echo x >> starts; echo why >&2; exit 5")) as server:
        for _ in range(2):
            with pytest.raises(McpError, match=r"^The MCP server sh ended with exit code 5\. Its log is "):
                await server.tools()
        with pytest.raises(McpError) as caught:
            await server.tools()
        assert "It failed 2 times in a row; quoth starts it again in 1 seconds at the earliest." in str(
            caught.value
        )
        assert (tmp_path / "starts").read_text() == "x\nx\n"
        assert server.log.read_text() == "why\nwhy\n"
        assert server.log.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (ServerConfig("a", "no-such-program"), "could not be started: No such file or directory"),
        (ServerConfig("a", "/etc/passwd"), "could not be started: Permission denied"),
        (ServerConfig("a", "true", cwd="nowhere"), "could not be started: its cwd is not a folder"),
        (ServerConfig("a", url="http://127.0.0.1:9/mcp"), "the server cannot be reached"),
    ],
)
async def test_one_that_cannot_be_started_says_why(
    config: ServerConfig, sentence: str, tmp_path: Path
) -> None:
    async with aclosing(Connection(config, tmp_path, environ=PLAIN)) as server:
        with pytest.raises(McpError, match="The MCP server a ") as caught:
            await server.tools()
    assert sentence in str(caught.value)


LEAVES = {
    "one that ignores SIGTERM": 'trap "" TERM HUP INT; echo $$ >> pids; while :; do sleep 1; done',
    "a child": "sleep 100 & echo $! $$ >> pids; wait",
    "a child in a session of its own": "setsid sh -c 'echo $$ >> pids; sleep 100' & echo $$ >> pids; wait",
    "a child, and the server is gone": "setsid sh -c 'echo $$ >> pids; exec sleep 100' & sleep 0.2; exit",
}


@pytest.mark.parametrize("leaves", LEAVES)
async def test_all_its_processes_end_with_the_connection(leaves: str, tmp_path: Path) -> None:
    soon = Deadlines(connect=1)
    async with aclosing(script(tmp_path, LEAVES[leaves], deadlines=soon)) as server:
        with pytest.raises(McpError):
            await server.tools()
    assert pids(tmp_path / "pids")
    assert all(map(is_gone, pids(tmp_path / "pids")))


async def test_a_server_that_ignores_the_end_of_its_stdin_gets_sigterm(tmp_path: Path) -> None:
    program = "trap 'echo asked >> pids; exit' TERM; echo ready >&2; while :; do sleep 0.1; done"
    server = script(tmp_path, program, deadlines=Deadlines(connect=1))
    with pytest.raises(McpError):
        await server.tools()
    await server.aclose()
    assert server.log.read_text().startswith("ready\n")
    assert (tmp_path / "pids").read_text() == "asked\n"


OURS = """
import asyncio, sys
from pathlib import Path
from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.connection import Connection
async def main():
    server = Connection(ServerConfig("a", sys.argv[1], tuple(sys.argv[2:]), cwd="."), Path.cwd())
    await server.tools()
    print("ready", flush=True)
    await asyncio.sleep(100)
asyncio.run(main())
"""


@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_all_its_processes_end_when_we_are_killed(by: signal.Signals, tmp_path: Path) -> None:
    program = 'setsid sleep 100 & echo $! $$ >> pids; exec "$@"'
    argv = ["sh", "-c", program, "sh", *mcp_server.command()]
    ours = subprocess.Popen(
        [sys.executable, "-c", OURS, *argv],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert ours.stdout is not None
    with ours:
        assert ours.stdout.readline() == b"ready\n"
        ours.send_signal(by)
    wait_until(lambda: all(map(is_gone, pids(tmp_path / "pids"))))


async def test_deadlines(tmp_path: Path) -> None:
    """Progress resets the idle deadline, never the total."""
    async with aclosing(connection(tmp_path)) as server:
        await server.tools()
        slow = {"steps": 30, "seconds": 0.1}
        assert text(await server.call("wait", slow, idle=2.5, deadline=60)) == "30 steps"
        with pytest.raises(McpTimeout, match=r"did not answer within 0\.4 seconds without progress"):
            await server.call("wait", {"steps": 1, "seconds": 60}, idle=0.4)
        with pytest.raises(McpTimeout, match=r"did not answer within 0\.5 seconds\.") as caught:
            await server.call("wait", {"steps": 1000, "seconds": 0.05}, deadline=0.5, idle=30)
        assert caught.value.sent
        assert text(await server.call("echo", {"text": "still here"})) == "still here"
    async with aclosing(script(tmp_path, "exec sleep 100", deadlines=Deadlines(connect=0.3))) as server:
        with pytest.raises(McpError, match=r"The MCP server sh did not answer within 0\.3 seconds\."):
            await server.tools()


async def test_one_call_that_is_cancelled_leaves_the_others_alone(tmp_path: Path) -> None:
    async with aclosing(connection(tmp_path)) as server:
        other = asyncio.create_task(server.call("wait", {"steps": 5, "seconds": 0.1}))
        call = asyncio.create_task(server.call("wait", {"steps": 1, "seconds": 60}))
        await server.call("echo", {"text": "x"})
        call.cancel()
        await asyncio.wait({call})
        assert call.cancelled()
        assert text(await other) == "5 steps"


async def test_a_closed_connection_is_not_begun_again(tmp_path: Path) -> None:
    server = connection(tmp_path)
    await server.aclose()  # never begun
    with pytest.raises(McpError, match="The connection to the MCP server fixture is closed"):
        await server.tools()


@asynccontextmanager
async def over_http(*argv: str) -> AsyncIterator[str]:
    """The fixture's server over HTTP; yields its URL."""
    command = mcp_server.command("--http", *argv)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_a_server_over_http(tmp_path: Path) -> None:
    async with over_http() as url:
        config = ServerConfig("far", url="${URL}", headers={"X-Token": "${TOKEN}"})
        environ = {"URL": url, "TOKEN": "secret-token"}
        async with aclosing(Connection(config, tmp_path, environ=environ)) as server:
            assert (await server.tools()).version == "2026-07-28"
            assert text(await server.call("echo", {"text": "x"})) == "x"
            called = asyncio.create_task(server.call("wait", {"steps": 100, "seconds": 1}))
            with pytest.raises(McpError, match="The MCP server far "):
                await server.call("die", {})
            with pytest.raises(McpError, match="The MCP server far "):
                await asyncio.wait_for(called, 10)
    assert not server.log.exists()


async def test_a_secret_that_a_server_is_given_comes_back_from_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs print their arguments; a server may answer with its environment."""
    monkeypatch.setenv("FAR_TOKEN", "plum-stone-1")
    words = ("-c", 'echo "$1 $OWN_TOKEN $MODE" >&2; exit 5', "sh", "Authorization: Bearer ${FAR_TOKEN}")
    env = {"OWN_TOKEN": "date-stone-2", "MODE": "plain"}
    config = ServerConfig("sh", "sh", words, env)
    async with aclosing(Connection(config, tmp_path)) as server:
        with pytest.raises(McpError, match="ended with exit code 5"):
            await server.tools()
    assert server.log.read_text() == "Authorization: Bearer [secret] [secret] plain\n"
    assert SENT.without("plum-stone-1, date-stone-2, plain") == "[secret], [secret], plain"


async def test_a_header_that_a_server_is_sent_comes_back_from_nowhere(tmp_path: Path) -> None:
    async with over_http() as url:
        headers = {"Authorization": "Bearer plum-stone-1", "X-Toolsets": "issues"}
        config = ServerConfig("far", url=f"{url}?toolset=issues", headers=headers)
        async with aclosing(Connection(config, tmp_path)) as server:
            await server.tools()
    assert SENT.without("plum-stone-1, issues") == "[secret], issues"


def test_a_log_is_bounded_and_contains_no_secret(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "a.log", ["secret-value", "short"])
    log.feed(b"has secret-")
    log.feed(b"value here, short\nend")
    log.end()
    assert (tmp_path / "a.log").read_text() == "has [secret] here, short\nend\n"
    for _ in range(100):
        log.feed(b"x" * 50_000)
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert all(size <= MAX_BYTES for size in sizes)


def test_nothing_of_the_sdk_is_imported_without_a_server(tmp_path: Path) -> None:
    seen = (
        "import sys, quoth; from quoth.tools.mcp import config, connection, server_log\n"
        "from quoth.agent.client import Agent; Agent(model='scripted:x.hy')\n"
        "from quoth.agent.cli.main import main; main(['call', '(list-files)', '--yes'])\n"
        "import json; print(json.dumps([name for name in sys.modules if name.split('.')[0] in"
        " ('mcp', 'mcp_types', 'httpx2', 'jsonschema', 'anyio_')]))"
    )
    (tmp_path / "x.hy").write_text('(defn reply [messages] "done")')
    done = subprocess.run(
        [sys.executable, "-c", seen], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_only_a_servers_own_workspace_is_where_it_starts(tmp_path: Path) -> None:
    mine = folder_of(ServerConfig("a", "npx", source="~/.config/quoth/mcp.json"), tmp_path)
    assert [*mine.iterdir()] == []
    assert tmp_path not in (mine, *mine.parents)
    assert folder_of(ServerConfig("a", "npx", source=OWN_NAME), tmp_path) == tmp_path
    assert folder_of(ServerConfig("a", "npx", cwd="sub", source="x.json"), tmp_path) == tmp_path / "sub"
