"""A client of the Agent Client Protocol for tests: that of the package, and what it was shown and asked."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acp import connect_to_agent, spawn_agent_process
from acp.core import RequestError
from acp.helpers import text_block
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    Implementation,
    PromptResponse,
    ReadTextFileResponse,
    RequestPermissionResponse,
)
from commands import Forked, command

SECONDS = 60
WRITE = '(write-file :path "b.txt" :content "two\\n")'  # the first reply of the script r.txt


class Editor:
    """The client: picks an option by ``picks``, a name for each question in turn; None cancels the question,
    and ``wait`` never answers it. ``says`` answers questions in words. ``buffers`` are its unsaved texts, by
    path; a file is saved as ``formats`` changes it. It never answers about the files in ``silent``, and
    refuses those in ``refuses``. ``on_question`` and ``on_write`` are called when one comes."""

    def __init__(self, *picks: str | None, says: str = "") -> None:
        self.picks, self.says = list(picks), says
        self.buffers: dict[str, str] = {}
        self.silent: set[str] = set()
        self.refuses: set[str] = set()
        self.formats: Callable[[str], str] = lambda text: text
        self.on_question: Callable[[], None] = lambda: None
        self.on_write: Callable[[], None] = lambda: None
        self.files: list[str] = []  # the requests for files
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.offered: list[list[Any]] = []
        self.questions: list[str] = []
        self.question_came = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def request_permission(self, session_id: str, tool_call: Any, options: list[Any], **_: Any) -> Any:
        self.asked.append(tool_call)
        self.offered.append(options)
        self.question_came.set()
        self.on_question()
        pick = self.picks.pop(0)
        if pick == "wait":
            await asyncio.sleep(SECONDS)
        if pick is None or pick == "wait":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=pick))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def read_text_file(self, path: str, session_id: str, **_: Any) -> ReadTextFileResponse:
        await self._asked_for("read", path)
        if path not in self.buffers and not Path(path).exists():
            raise RequestError.resource_not_found(path)
        text = self.buffers[path] if path in self.buffers else Path(path).read_text()
        return ReadTextFileResponse(content=text)

    async def write_text_file(self, content: str, path: str, session_id: str, **_: Any) -> None:
        await self._asked_for("write", path)
        self.on_write()
        self.buffers.pop(path, None)
        Path(path).write_text(self.formats(content))

    async def _asked_for(self, what: str, path: str) -> None:
        self.files.append(f"{what} {path}")
        if path in self.silent:
            await asyncio.Event().wait()
        if path in self.refuses:
            raise RequestError.internal_error({"details": "it is locked"})

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Any:
        self.questions.append(message)
        from acp.schema import AcceptElicitationResponse

        return AcceptElicitationResponse(action="accept", content={"answer": self.says})

    async def say(self, session: str, *blocks: Any) -> PromptResponse:
        """Send a prompt of texts or blocks, and wait for the end of the turn."""
        prompt = [text_block(block) if isinstance(block, str) else block for block in blocks]
        return await asyncio.wait_for(self.agent.prompt(session_id=session, prompt=prompt), SECONDS)

    def words(self) -> str:
        """What the agent has said."""
        chunks = [one for one in self.updates if one.session_update == "agent_message_chunk"]
        return "".join(one.content.text for one in chunks)

    def calls(self) -> list[tuple[str, str]]:
        """Each call that began, by its title, and its last state."""
        begun = {one.tool_call_id: one for one in self.updates if one.session_update == "tool_call"}
        states = {
            one.tool_call_id: one.status for one in self.updates if one.session_update == "tool_call_update"
        }
        return [(one.title, states.get(id, one.status)) for id, one in begun.items()]


@dataclass(frozen=True)
class Agent:
    """The process of ``quoth acp``, with the words of one that asyncio has started."""

    forked: Forked
    stdin: asyncio.StreamWriter

    @property
    def pid(self) -> int:
        return self.forked.pid

    @property
    def returncode(self) -> int | None:
        return self.forked.poll()

    def kill(self) -> None:
        self.forked.kill()

    async def wait(self) -> int:
        return await asyncio.to_thread(self.forked.wait, SECONDS)


@contextlib.asynccontextmanager
async def _fork(client: Editor, *words: str, cwd: Path) -> AsyncIterator[tuple[Any, Agent]]:
    """As ``spawn_agent_process``, by a fork of a process that has imported all (commands.py)."""
    loop = asyncio.get_running_loop()
    (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
    with tempfile.TemporaryFile() as err:
        forked = Forked([*words], cwd, dict(os.environ), [theirs_in, theirs_out, err.fileno()])
    os.close(theirs_in)
    os.close(theirs_out)
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    heard, _ = await loop.connect_read_pipe(lambda: protocol, os.fdopen(ours_out, "rb", 0))
    told, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(ours_in, "wb", 0))
    process = Agent(forked, asyncio.StreamWriter(told, flow, None, loop))
    agent = connect_to_agent(client, process.stdin, reader, use_unstable_protocol=True)
    try:
        yield agent, process
    finally:
        await agent.close()
        told.close()
        await process.wait()
        heard.close()


@contextlib.asynccontextmanager
async def editor(
    folder: Path, *words: str, client: Editor, forms: bool = False, fs: str = "", real: bool = False
) -> AsyncIterator[Editor]:
    """A client of ``quoth acp`` with these words, which runs in the folder. ``fs`` is what it announces to do
    with files: ``read``, ``write``, both or nothing. A ``real`` one is Python itself, started by the
    package."""
    announced: dict[str, Any] = {"fs": {f"{what}TextFile": True for what in fs.split()}}
    capabilities = ClientCapabilities.model_validate(
        announced | ({"elicitation": {"form": {}}} if forms else {})
    )
    opened = (
        spawn_agent_process(
            client, *command(), "acp", *words, env=dict(os.environ), cwd=folder, use_unstable_protocol=True
        )
        if real
        else _fork(client, "acp", *words, cwd=folder)
    )
    async with opened as (agent, process):
        client.agent, client.process = agent, process
        await asyncio.wait_for(
            agent.initialize(
                protocol_version=1,
                client_info=Implementation(name="probe", version="1"),
                client_capabilities=capabilities,
            ),
            SECONDS,
        )
        yield client


def scripted(folder: Path, *words: str) -> tuple[str, ...]:
    """The options of ``quoth acp`` with the script of a folder as its model."""
    return ("--model", f"scripted:{folder}/r.txt", *words)


async def refused(work: Callable[[], Any]) -> str:
    """The sentence with which the agent refuses a request."""
    try:
        await asyncio.wait_for(work(), SECONDS)
    except RequestError as error:
        return str(error.data["details"])
    raise AssertionError("the agent did not refuse it")
