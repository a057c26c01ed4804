"""``quoth acp``: sessions of quoth for a client of the Agent Client Protocol on stdio, such as Emacs or Zed.

Each session is an AsyncAgent in the folder that the client names. Requests that wait stay in the store when
the client cancels or vanishes. Source: https://agentclientprotocol.com, protocol 1.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence
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
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    StopReason,
    UnstructuredCommandInput,
    Usage,
)

from quoth.agent.acp.asking import AcpPerson
from quoth.agent.acp.buffers import NOT_FOUND, ClientBuffers
from quoth.agent.acp.commands import COMMANDS, command_in, run_command, with_attached
from quoth.agent.acp.loops import OnLoop
from quoth.agent.acp.session import AcpSession
from quoth.agent.acp.shape import taken
from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import ReplyReason
from quoth.agent.session.index import find_session, fork_session, place_in, summaries
from quoth.agent.session.render import title
from quoth.tools.errors import QuothError, UsageError, no_such
from quoth.tools.history.outline import SessionRow
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store
from quoth.tools.text import short
from quoth.tools.visible import visible

PROTOCOL = 1
# Error codes of the protocol and of JSON-RPC.
INVALID_PARAMS, INTERNAL, AUTH_REQUIRED = -32602, -32603, -32000
NAME_CHARS = 60  # of a client's name
LISTED = 50  # sessions of one page of session/list
METHOD = "login"
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


class OpenAgent(Protocol):
    """Opens the agent of a session: a new one, or the one with this id. ``servers`` are files with the MCP
    servers of the client."""

    def __call__(
        self, folder: Path, session: str | None, consent: Any, channel: str, servers: Sequence[Path]
    ) -> AsyncAgent: ...


# Opens the store of a folder's workspace, or None if it has none.
ReadStore = Callable[[Path], AbstractContextManager[Store | None]]


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
                mcp_capabilities=McpCapabilities(http=True),
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                    fork=SessionForkCapabilities(),
                ),
            ),
            auth_methods=[AuthMethodAgent(id=METHOD, name=LOGIN, description=f"Run in a terminal: {LOGIN}")],
        )

    async def authenticate(self, method_id: str, **_: Any) -> None:
        """The key is stored in a terminal, and looked for at the next prompt."""
        if method_id != METHOD:
            raise _refusal(no_such("login method", method_id, [METHOD]))

    # Sessions

    async def new_session(
        self, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> NewSessionResponse:
        talk = await self._opened(cwd, None, mcp_servers)
        return NewSessionResponse(
            session_id=talk.agent.session, modes=talk.modes(), config_options=talk.options()
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> LoadSessionResponse:
        """Open a session, show it as it was, and ask again about what waits, once."""
        talk = await self._opened(cwd, session_id, mcp_servers)
        with _sentences():
            for update in talk.updates.of_transcript(talk.agent.transcript.events(talk.agent.session)):
                talk.show(update)
        _begin(talk)
        talk.resume_later()
        await talk.shown()
        return LoadSessionResponse(modes=talk.modes(), config_options=talk.options())

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ResumeSessionResponse:
        talk = await self._opened(cwd, session_id, mcp_servers)
        _begin(talk)
        talk.resume_later()
        return ResumeSessionResponse(modes=talk.modes(), config_options=talk.options())

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: list[Any] | None = None, **_: Any
    ) -> ForkSessionResponse:
        with _sentences(), self._reading(_folder(cwd)) as store:
            found = find_session(store, session_id)
            assert store is not None, "a session was found in it"
            new, _count = fork_session(store, found)
        talk = await self._opened(cwd, new, mcp_servers)
        return ForkSessionResponse(session_id=new, modes=talk.modes(), config_options=talk.options())

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
        if cursor and not cursor.isdecimal():
            said = f"Unknown cursor {visible(cursor)}. It must be the nextCursor of an earlier answer."
            raise _refusal(said)
        start = place_in(cursor) if cursor else 0
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
        talk.show_options()
        await talk.shown()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        talk = self._talk(session_id)
        with _sentences():
            await talk.use_option(config_id, value)
        await talk.shown()
        return SetSessionConfigOptionResponse(config_options=[*talk.options()])

    # A turn

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        talk = self._talk(session_id)
        agent = talk.agent
        with _sentences(), talk.turn() as turn:
            text, files = taken(prompt)
            if command := command_in(text):
                name, rest = with_attached(*command, prompt)
                said = await talk.until_cancelled(run_command(agent, name, rest), turn)
                if said:
                    talk.show(update_agent_message_text(f"{said}\n"))
                talk.end_turn()
                await talk.shown()
                return PromptResponse(stop_reason="cancelled" if turn.is_set() else "end_turn")
            if not files and not text:
                raise UsageError("The prompt is empty.")
            await self._require_model(agent)
            talk.show_title(text)
            reply = await agent.follow(text or "Look at the attachments.", files=files)
        if reply.status == "pending":
            talk.show(update_agent_message_text(f"{reply.said}\nTo be asked again: /resume\n"))
        talk.end_turn()
        await talk.shown()
        if reply.reason == "failed":
            raise _refusal(reply.said, INTERNAL)
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
            raise _refusal(said)
        return self._talks[session]

    def _require_session(self, folder: Path, session: str) -> None:
        """Refuse a session without a record; a client then begins a new one."""
        with self._reading(folder) as store:
            try:
                found = find_session(store, session)
            except UsageError as error:
                raise _refusal(str(error), NOT_FOUND) from None
        if found != session:
            raise _refusal(f"There is no session {session}. Did you mean {found}?", NOT_FOUND)

    async def _require_model(self, agent: AsyncAgent) -> None:
        """Refuse a prompt where no model can be asked, in the words that say how to get one."""
        try:
            await agent.models.open()
        except UsageError as error:
            said = str(error) if "quoth models login" in str(error) else f"{error} Or: {LOGIN}"
            raise _refusal(said, AUTH_REQUIRED) from None

    async def _opened(self, cwd: str, session: str | None, servers: list[Any] | None) -> AcpSession:
        folder = _folder(cwd)
        async with self._turn_to_open:
            with _sentences():
                if session is not None:
                    self._require_session(folder, session)
                    if (before := self._talks.pop(session, None)) is not None:
                        await before.aclose()
                person = AcpPerson(self._client, self._name, forms=self._forms)
                files: list[Path] = []
                if servers:
                    from quoth.agent.acp.client_servers import keep_servers  # here: few clients pass any

                    files = keep_servers(self._name, servers)
                agent = self._opening(folder, session, person, f"acp {self._name}", files)
            person.session, person.root = agent.session, str(agent.workspace.root)
            if self._files is not None and self._files.read_text_file:
                buffers = ClientBuffers(self._client, agent.session, folder, self._files)
                agent.workspace.buffers, person.may_have_typed = buffers, buffers.forget
            with _sentences():
                talk = AcpSession(agent, self._client, loaded=session is not None)
            self._talks[agent.session] = talk

        def heard(event: AgentEvent) -> None:
            if event.kind in ("call", "result"):
                person.may_have_typed()
            talk.hear(event)

        agent.on_event = heard
        return talk

    def answered(self, answer: Any) -> None:
        """Begin a new session once its client knows the id by the answer."""
        if (talk := self._talks.get(getattr(answer, "session_id", ""))) is not None:
            _begin(talk)


def _begin(talk: AcpSession) -> None:
    """Send what a session begins with, and look for the models that can be chosen in it."""
    for note in (*talk.agent.policy.notes, *talk.agent.config.notes):
        talk.show(update_agent_message_text(f"{note}\n"))
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
    talk.look_for_models()


def _folder(cwd: str) -> Path:
    """The folder that a client names. Raises RequestError."""
    if not Path(cwd).is_absolute() or not Path(cwd).is_dir():
        said = f"cwd must be the absolute path of a folder, not {cwd}."
        raise _refusal(said)
    return Path(cwd)


def _refusal(said: str, code: int = INVALID_PARAMS) -> RequestError:
    """An error of the protocol. Clients show the message, the details, or both."""
    return RequestError(code, said, {"details": said})


@contextlib.contextmanager
def _sentences() -> Iterator[None]:
    """Within it an error of quoth is an error of the protocol, with its sentence."""
    try:
        yield
    except QuothError as error:
        raise _refusal(str(error)) from None
