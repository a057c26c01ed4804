"""``quoth acp``: sessions of quoth for a client of the Agent Client Protocol on stdio, such as Emacs or Zed.

Each session is an AsyncAgent in the folder that the client names. Requests that wait stay in the store when
the client cancels or vanishes. Source: https://agentclientprotocol.com, protocol 1.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from acp.core import RequestError
from acp.helpers import update_agent_message_text, update_available_commands
from acp.schema import (
    AgentCapabilities,
    AuthMethodAgent,
    AvailableCommand,
    AvailableCommandInput,
    ClientCapabilities,
    CloseSessionResponse,
    FileSystemCapabilities,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionInfoUpdate,
    SessionListCapabilities,
    SessionMode,
    SessionModeState,
    SessionResumeCapabilities,
    StopReason,
    UnstructuredCommandInput,
    Usage,
)

from quoth.agent.acp.asking import AcpPerson
from quoth.agent.acp.buffers import ClientBuffers
from quoth.agent.acp.commands import COMMANDS, command_in, run_command
from quoth.agent.acp.loops import OnLoop
from quoth.agent.acp.shape import Updates, taken
from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply, ReplyReason
from quoth.agent.session.index import find_session, fork_session, place_in, summaries
from quoth.agent.session.render import title
from quoth.agent.session.session import is_driven
from quoth.tools.call.call import PROGRAMS
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.history.outline import SessionRow
from quoth.tools.history.transcript import Transcript
from quoth.tools.policy.limits import only_reads
from quoth.tools.storage.database import Store
from quoth.tools.text import listed, short
from quoth.tools.visible import visible

PROTOCOL = 1
NAME_CHARS = 60  # of a client's name
LISTED = 50  # sessions of one page of session/list
LOGIN = "quoth models login PROVIDER"
STOPS: dict[ReplyReason, StopReason] = {
    "answered": "end_turn",
    "pending": "end_turn",
    "refused": "refusal",
    "max-steps": "max_turn_requests",
    "budget": "max_turn_requests",
    "max-tokens": "max_tokens",
    "cancelled": "cancelled",
}
MODES = SessionModeState(
    current_mode_id="ask",
    available_modes=[
        SessionMode(id="ask", name="Ask", description="Ask about each call that the rules do not allow."),
        SessionMode(id="read", name="Read only", description="Use only tools that read."),
        SessionMode(id="plan", name="Plan", description="Only read; other calls become steps of a plan."),
    ],
)


class OpenAgent(Protocol):
    """Opens the agent of a session: a new one, or the one with this id."""

    def __call__(self, folder: Path, session: str | None, consent: Any, channel: str) -> AsyncAgent: ...


# Opens the store of a folder's workspace, or None if it has none.
ReadStore = Callable[[Path], AbstractContextManager[Store | None]]


class AcpSession:
    """One session of a client: sends what happens as updates, in order."""

    def __init__(self, agent: AsyncAgent, client: Any) -> None:
        self.agent, self.tools = agent, agent.table
        # Programs and sub-agents have these tools alone, too.
        self.reading = agent.table.where(lambda tool: only_reads(tool) or tool.name == PROGRAMS)
        self.updates = Updates(agent.table, str(agent.workspace.root))
        self.titled = False
        self._client = client
        self._waiting: asyncio.Queue[Any] = asyncio.Queue()
        self._sending = asyncio.create_task(self._send())
        self._resuming: asyncio.Task[None] | None = None
        self._turns: set[asyncio.Event] = set()  # prompts in progress; set: cancelled by the client
        self._closed = False

    def modes(self) -> SessionModeState:
        """The modes, with the present one. The mode ``read`` has a fixed list of tools, which the tools of
        ``--remote`` would replace before each turn."""
        remote = self.agent.host.parts.remote is not None
        return SessionModeState(
            current_mode_id="plan" if self.agent.host.plan else "ask",
            available_modes=[mode for mode in MODES.available_modes if mode.id != "read" or not remote],
        )

    @contextlib.contextmanager
    def turn(self) -> Iterator[asyncio.Event]:
        """A prompt is answered in this context; the event is set when the client cancels it."""
        if not self._turns:
            self.agent.broker.listen()  # an earlier cancel does not apply to this turn
        turn = asyncio.Event()
        self._turns.add(turn)
        try:
            yield turn
        finally:
            self._turns.discard(turn)

    async def cancel(self) -> None:
        """Stop the prompts in progress, also those whose run has not yet begun."""
        turns = [*self._turns]
        for turn in turns:
            turn.set()
        while not self.agent.interrupt() and self._turns.intersection(turns):  # noqa: ASYNC110  a run begins
            await asyncio.sleep(0.05)

    def use_mode(self, mode: str) -> None:
        """Change the mode between turns. Raises UsageError."""
        if self._turns or self.agent.host.running:
            raise UsageError("A turn is in progress. Wait for its end or cancel it, then change the mode.")
        if mode not in (known := [one.id for one in self.modes().available_modes]):
            raise UsageError(f"Unknown mode {mode}. The modes are {listed(known)}.")
        self.agent.host.use_plan_mode(mode == "plan")
        self.agent.runs.use_tools(self.reading if mode == "read" else self.tools)

    def hear(self, event: AgentEvent) -> None:
        for update in self.updates.of(event):
            self.show(update)

    def show(self, update: Any) -> None:
        if not self._closed:
            self._waiting.put_nowait(update)

    async def shown(self) -> None:
        """Wait until all updates are sent: they come before the answer to a request."""
        await self._waiting.join()

    async def _send(self) -> None:
        while True:
            update = await self._waiting.get()
            try:
                with contextlib.suppress(Exception):  # a client that has gone ends the connection
                    await self._client.session_update(session_id=self.agent.session, update=update)
            finally:
                self._waiting.task_done()

    def resume_later(self) -> None:
        """Ask again about what waits in a session that was loaded, and continue it. A turn that was broken
        off is continued by the person."""
        if is_driven(Path(self.agent.store.path), self.agent.session):
            self.show(update_agent_message_text("Another process continues this session.\n"))
        elif self.agent.runs.waits:
            self._resuming = asyncio.create_task(self._resumed())
        elif self.agent.runs.unfinished():
            self.show(update_agent_message_text("The last turn was broken off. To continue it: /resume\n"))

    async def _resumed(self) -> None:
        try:
            for done in await self.agent.resume():
                if isinstance(done, Reply) and not done.ok:  # the words of an answer came as events
                    self.show(update_agent_message_text(f"{done.said}\n"))
        except QuothError as error:
            self.show(update_agent_message_text(f"{error}\n"))

    async def aclose(self) -> None:
        for turn in self._turns:
            turn.set()
        self.agent.interrupt()
        if self._resuming is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait([self._resuming], timeout=5)
            self._resuming.cancel()
        await self.agent.aclose()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.shown(), 1)
        self._closed = True
        self._sending.cancel()
        while not self._waiting.empty():  # a prompt that still ends waits for none of them
            self._waiting.get_nowait()
            self._waiting.task_done()


class AcpServer:
    """The agent side of one connection. ``opening`` opens the agents of its sessions, ``reading`` the store
    in which sessions are found."""

    def __init__(self, opening: OpenAgent, reading: ReadStore) -> None:
        self._opening, self._reading = opening, reading
        self._talks: dict[str, AcpSession] = {}
        self._client: Any = None
        self._turn_to_open = asyncio.Lock()  # else two requests would open one session twice
        self._name, self._forms = "client", False
        self._files: FileSystemCapabilities | None = None  # of the client

    def on_connect(self, conn: Any) -> None:
        """Take the client; called on the loop of its connection."""
        self._client = OnLoop(conn, asyncio.get_running_loop())

    async def aclose(self) -> None:
        """Stop all sessions: the client has gone. What waits stays in the store."""
        await asyncio.gather(*(talk.aclose() for talk in self._talks.values()), return_exceptions=True)

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        self._name = short(visible(client_info.name), NAME_CHARS) if client_info else "client"
        self._files = getattr(client_capabilities, "fs", None)
        asks = getattr(client_capabilities, "elicitation", None)
        self._forms = getattr(asks, "form", None) is not None
        return InitializeResponse(
            protocol_version=PROTOCOL,
            agent_info=Implementation(name="quoth", version=version("quoth")),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    fork=SessionForkCapabilities(),
                ),
            ),
            auth_methods=[AuthMethodAgent(id="login", name=LOGIN, description=f"Run in a terminal: {LOGIN}")],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """Nothing to do here: the key is stored in a terminal, and looked for at the next prompt."""

    # Sessions

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        talk = await self._opened(cwd, None, mcp_servers)
        return NewSessionResponse(session_id=talk.agent.session, modes=talk.modes())

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a session, show it as it was, and ask again about what waits, once."""
        talk = await self._opened(cwd, session_id, mcp_servers)
        with _sentences():
            for update in talk.updates.of_transcript(talk.agent.transcript.events(talk.agent.session)):
                talk.show(update)
        talk.resume_later()
        await talk.shown()
        return LoadSessionResponse(modes=talk.modes())

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        talk = await self._opened(cwd, session_id, mcp_servers)
        talk.resume_later()
        return ResumeSessionResponse(modes=talk.modes())

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ForkSessionResponse:
        with _sentences(), self._reading(_folder(cwd)) as store:
            found = find_session(store, session_id)
            assert store is not None, "a session was found in it"
            new, _count = fork_session(store, found)
        talk = await self._opened(cwd, new, mcp_servers)
        return ForkSessionResponse(session_id=new, modes=talk.modes())

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        """The sessions of a folder's workspace, the latest first; without a folder the open ones."""
        if cwd is None:
            opened = [
                SessionInfo(session_id=name, cwd=str(one.agent.workspace.root))
                for name, one in self._talks.items()
            ]
            return ListSessionsResponse(sessions=opened)
        start = place_in(cursor) if cursor and cursor.isdecimal() else 0
        with _sentences(), self._reading(_folder(cwd)) as store:
            if store is None:
                return ListSessionsResponse(sessions=[])
            rows = [*Transcript(lambda: store).sessions()][::-1]
            page = [*summaries(store, (SessionRow(*row) for row in rows[start : start + LISTED]))]
        found = [
            SessionInfo(session_id=one.id, cwd=cwd, title=title(one.task), updated_at=one.last)
            for one in page
        ]
        more = str(start + LISTED) if start + LISTED < len(rows) else None
        return ListSessionsResponse(sessions=found, next_cursor=more)

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        talk = self._talk(session_id)
        del self._talks[session_id]
        await talk.aclose()
        return CloseSessionResponse()

    async def set_session_mode(self, mode_id: str, session_id: str, **_: Any) -> None:
        talk = self._talk(session_id)
        with _sentences():
            talk.use_mode(mode_id)

    # A turn

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        talk = self._talk(session_id)
        agent = talk.agent
        with _sentences(), talk.turn() as turn:
            text, files = taken(prompt)
            if command := command_in(text):
                talk.show(update_agent_message_text(f"{await run_command(agent, *command)}\n"))
                await talk.shown()
                return PromptResponse(stop_reason="cancelled" if turn.is_set() else "end_turn")
            if not files and not text:
                raise UsageError("The prompt is empty.")
            self._require_model(agent)
            if not talk.titled:
                talk.titled = True
                talk.show(SessionInfoUpdate(session_update="session_info_update", title=title(text)))
            reply = await agent.follow(text or "Look at the attachments.", files=files)
        if reply.status == "pending":
            talk.show(update_agent_message_text(f"{reply.said}\n"))
        await talk.shown()
        if reply.reason == "failed":
            raise RequestError.internal_error({"details": reply.said})
        used = reply.usage
        return PromptResponse(
            stop_reason=STOPS[reply.reason],
            usage=Usage(
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                total_tokens=used.input_tokens + used.output_tokens,
            ),
        )

    async def cancel(self, session_id: str, **_: Any) -> None:
        if (talk := self._talks.get(session_id)) is not None:
            await talk.cancel()

    # Helpers

    def _talk(self, session: str) -> AcpSession:
        if session not in self._talks:
            said = f"Session {session} is not open here. Open it with session/load."
            raise RequestError.invalid_params({"details": said})
        return self._talks[session]

    def _require_model(self, agent: AsyncAgent) -> None:
        """Refuse a prompt where no model can be asked, in the words that say how to get one."""
        try:
            agent.models.backend()
        except UsageError as error:
            raise RequestError.auth_required({"details": f"{error} Or: {LOGIN}"}) from None

    async def _opened(self, cwd: str, session: str | None, servers: list[Any] | None) -> AcpSession:
        if servers:
            said = "quoth takes no MCP servers from a client. Leave mcpServers empty."
            raise RequestError.invalid_params({"details": said})
        folder = _folder(cwd)
        async with self._turn_to_open:
            with _sentences():
                if session is not None:
                    with self._reading(folder) as store:
                        found = find_session(store, session)
                    if found != session:
                        raise UsageError(f"There is no session {session}. Did you mean {found}?")
                    if (before := self._talks.pop(session, None)) is not None:
                        await before.aclose()
                person = AcpPerson(self._client, self._name, forms=self._forms)
                agent = self._opening(folder, session, person, f"acp {self._name}")
            person.session, person.root = agent.session, str(agent.workspace.root)
            if self._files is not None and self._files.read_text_file:
                agent.workspace.buffers = ClientBuffers(self._client, agent.session, folder, self._files)
            talk = self._talks[agent.session] = AcpSession(agent, self._client)
        agent.on_event = talk.hear
        talk.show(
            update_available_commands(
                AvailableCommand(
                    name=name,
                    description=about,
                    input=AvailableCommandInput(UnstructuredCommandInput(hint=hint)) if hint else None,
                )
                for name, (about, hint) in COMMANDS.items()
            )
        )
        return talk


def _folder(cwd: str) -> Path:
    """The folder that a client names. Raises RequestError."""
    if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
        said = f"cwd must be the absolute path of a folder, not {cwd}."
        raise RequestError.invalid_params({"details": said})
    return Path(cwd)


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Within it an error of quoth is an error of the protocol, with its sentence."""
    try:
        yield
    except QuothError as error:
        raise RequestError.invalid_params({"details": str(error)}) from None
