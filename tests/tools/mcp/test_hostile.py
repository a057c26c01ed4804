"""A server that does everything to run, leak or hang: a real process at the other end of a connection.

Each test has a deadline; what it says about memory and processes is asked of the kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import hostile_mcp
import mcp_server
import mcp_types as types
import pytest
from examples import many

from quoth.tools.mcp import stdio
from quoth.tools.mcp.asking import Questions
from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.connection import Callbacks, Connection, Deadlines, McpError

SECONDS = 60.0  # for a whole test: the machine may be busy
SOON = Deadlines(connect=30, list=20, call=4, idle=2)
MB = 1_000_000


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not end by itself is sent SIGTERM soon."""
    monkeypatch.setattr(stdio, "GRACE", 0.5)


def _effects(folder: Path) -> list[str]:
    file = folder / "effects"
    return file.read_text().splitlines() if file.exists() else []


def _left(folder: Path) -> list[str]:
    """The processes whose command names the folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it has ended
                continue
            found += [line] if f"{folder}/effects" in line else []
    return found


def _peak_memory() -> int:
    """The most memory of this process since it was asked last, in bytes."""
    status = Path("/proc/self/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    Path("/proc/self/clear_refs").write_text("5")
    return int(line.split()[1]) * 1024


@asynccontextmanager
async def _hostile(
    folder: Path,
    behaviour: str,
    *argv: str,
    deadlines: Deadlines = SOON,
    questions: Questions | None = None,
) -> AsyncIterator[Connection]:
    """A connection to the server; afterwards no process of it is left."""
    program, *args = hostile_mcp.command(behaviour, *argv, "--effects", str(folder / "effects"))
    asks = questions or Questions("hostile", folder)
    callbacks = Callbacks(elicit=asks.elicit, roots=asks.roots)
    config = ServerConfig("hostile", program, tuple(args))
    connection = Connection(config, folder, deadlines=deadlines, callbacks=callbacks)
    try:
        async with asyncio.timeout(SECONDS):
            yield connection
    finally:
        await asyncio.wait_for(connection.aclose(), SECONDS)
    assert _left(folder) == []


def _text(result: object) -> str:
    return str(result.content[0].text)  # type: ignore[attr-defined]


# A few of the points, unless all are wanted (--hypothesis-profile=explore).
SOME = (0, 3, 6, 9, 11, 16, 18) if many(1) <= 30 else range(hostile_mcp.DIE_POINTS)


@pytest.mark.parametrize("point", SOME)
async def test_a_server_that_dies_answers_the_call_that_was_open(tmp_path: Path, point: int) -> None:
    modern = ["--modern"] if point in (3, 13) else []
    async with _hostile(tmp_path, "die", str(point), *modern) as connection:
        try:
            await connection.tools()
            said = _text(await connection.call("act", {"text": "once"}))
        except McpError as error:
            said = str(error)
            assert "hostile" in said
        assert (said == "acted") == (point == 12), said  # it dies after its last answer there
    assert len(_effects(tmp_path)) <= 1


async def test_all_calls_that_are_open_are_answered_when_their_server_dies(tmp_path: Path) -> None:
    deadlines = Deadlines(connect=30, list=20, call=50, idle=50)
    async with _hostile(tmp_path, "die", "14", deadlines=deadlines) as connection:
        await connection.tools()
        calls = [connection.call("act", {"text": str(number)}) for number in range(5)]
        said = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in said] == [McpError] * 5


@pytest.mark.parametrize("point", [0, 1])
async def test_a_line_of_100_mb_ends_the_server_and_takes_no_memory(tmp_path: Path, point: int) -> None:
    async with _hostile(tmp_path, "line", str(point)) as connection:
        _peak_memory()
        before = _peak_memory()
        with pytest.raises(McpError, match="more than 16 MB"):
            await (connection.tools() if point else connection.call("act", {"text": "now"}))
        assert _peak_memory() - before < 60 * MB


@pytest.mark.parametrize(("behaviour", "point"), [("half", 0), ("silent", 0), ("silent", 1), ("progress", 0)])
async def test_a_server_that_does_not_answer_is_given_up(tmp_path: Path, behaviour: str, point: int) -> None:
    deadlines = Deadlines(1, 20, 4, 2) if point else Deadlines(30, 20, 1, 0.5)
    async with _hostile(tmp_path, behaviour, str(point), deadlines=deadlines) as connection:
        with pytest.raises(McpError, match="did not answer within"):
            await connection.call("act", {"text": "now"})


async def test_only_the_first_answer_with_the_right_id_counts(tmp_path: Path) -> None:
    async with _hostile(tmp_path, "ids") as connection:
        assert _text(await connection.call("act", {"text": "now"})) == "right"
    async with _hostile(tmp_path, "twice") as connection:
        assert _text(await connection.call("act", {"text": "now"})) == "first"
        assert _text(await connection.call("act", {"text": "now"})) == "first"


async def test_an_answer_after_the_call_was_cancelled_is_that_of_no_call(tmp_path: Path) -> None:
    async with _hostile(tmp_path, "late") as connection:
        with pytest.raises(McpError, match="did not answer within"):
            await connection.call("act", {"text": "first"}, deadline=1)
        assert _text(await connection.call("act", {"text": "second"})) == "acted"
    assert _effects(tmp_path) == ["act second"]


@pytest.mark.parametrize("argv", [("pages",), ("pages", "1"), ("many",)])
async def test_a_list_without_an_end_is_refused(tmp_path: Path, argv: Sequence[str]) -> None:
    async with _hostile(tmp_path, *argv) as connection:
        with pytest.raises(McpError, match=r"maximum is 5000|does not end"):
            await connection.tools()


@pytest.mark.parametrize("behaviour", ["flood", "noise"])
async def test_noise_is_no_answer(tmp_path: Path, behaviour: str) -> None:
    deadlines = Deadlines(connect=30, list=30, call=50, idle=50)
    async with _hostile(tmp_path, behaviour, deadlines=deadlines) as connection:
        await connection.tools()
        assert _text(await connection.call("act", {"text": "now"})) == "acted"
    assert connection.log.stat().st_size < 5 * MB


@pytest.mark.parametrize("point", range(hostile_mcp.ERROR_SHAPES))
async def test_an_answer_of_another_shape_is_a_failure_in_a_sentence(tmp_path: Path, point: int) -> None:
    async with _hostile(tmp_path, "errors", str(point)) as connection:
        (said,) = await asyncio.gather(connection.call("act", {"text": "now"}), return_exceptions=True)
    if isinstance(said, BaseException):
        assert isinstance(said, McpError)
        assert "MCP server hostile" in str(said)
        assert len(str(said)) < 3_000


async def test_a_task_is_refused_with_a_sentence(tmp_path: Path) -> None:
    async with _hostile(tmp_path, "errors", "7") as connection:
        with pytest.raises(
            McpError, match=r"sent a task instead of a result\. quoth does not wait for tasks"
        ):
            await connection.call("act", {"text": "now"})


async def test_a_server_that_ignores_every_signal_ends_with_its_grandchild(tmp_path: Path) -> None:
    async with _hostile(tmp_path, "stubborn") as connection:
        await connection.call("act", {"text": "now"})
    (pids,) = [line.split()[1:] for line in _effects(tmp_path) if line.startswith("pids")]
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


async def test_requests_without_an_end_are_answered_and_ask_nobody(tmp_path: Path) -> None:
    deadlines = Deadlines(connect=30, list=20, call=50, idle=50)
    async with _hostile(tmp_path, "asks", deadlines=deadlines) as connection:
        assert _text(await connection.call("act", {"text": "now"})) == "asked"
    assert _effects(tmp_path) == []


async def test_the_clocks_of_a_call_stand_still_while_a_person_is_asked(tmp_path: Path) -> None:
    """The person thinks for longer than both deadlines, and the call still ends with an answer."""
    deadlines = Deadlines(connect=30, list=20, call=1.5, idle=1)

    async def elicit(context: Any, params: Any) -> Any:
        await asyncio.sleep(2)
        return types.ElicitResult(action="accept", content={"size": "large"})

    program, *args = mcp_server.command("--handshake")
    config = ServerConfig("fixture", program, tuple(args))
    connection = Connection(config, tmp_path, deadlines=deadlines, callbacks=Callbacks(elicit=elicit))
    try:
        await connection.tools()
        assert _text(await connection.call("order", {"item": "tea"})) == "Ordered tea, large."
        with pytest.raises(McpError, match="did not answer within"):
            await connection.call("wait", {"steps": 1, "seconds": 20})
    finally:
        await connection.aclose()
