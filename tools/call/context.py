"""What travels with a call: the Call, the ToolContext a tool may use, the uniform ToolResult, the verdicts.

Knows no table and no door. Everything here is set by the host: none of it can be said by a model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from quoth.tools.call.call import ToolResult
from quoth.tools.call.services import NO_PERMISSION, NO_SERVICES, Services
from quoth.tools.lisp.forms import CallForm

if TYPE_CHECKING:
    from quoth.tools.call.deadline import PausableClock
    from quoth.tools.call.preview import CallPreview
    from quoth.tools.call.service_types import SearchHit, SearchOptions, SearchScope
    from quoth.tools.call.services import (
        MemoryStore,
        ModelProvider,
        PermissionBroker,
        Router,
        SharedBlocks,
        SourceManager,
        Team,
    )
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.program.compiler import Program


class Dispatch(Protocol):
    """Makes a nested call, through the same door. ``name`` tells this use of the tool from every other of the
    body, whenever it is carried on; without one it is counted. A ``dry`` call, and all that it makes, does
    nothing but read: the door sees to that."""

    def __call__(self, form: CallForm, name: str = "", dry: bool = False) -> Awaitable[ToolResult]: ...


class Looks(Protocol):
    """Says what would become of a nested call, and makes it not. ``unknown`` says which values are not known
    yet; without ``guards`` not even a guard is run."""

    def __call__(
        self, form: CallForm, unknown: Callable[[Any], bool], guards: bool = True
    ) -> Awaitable[CallPreview]: ...


class Catalog(Protocol):
    """What tools may know of the other tools, in words for a model."""

    def describe(self, name: str) -> str:
        """One tool in full. Raises UnknownToolError, which names the nearest."""
        ...

    def search(self, words: str, limit: int) -> list[str]:
        """One line for each tool that fits the words, the best first."""
        ...


class ProgramRunner(Protocol):
    """Runs programs out of reach of this process (tools/sandbox/runner.py)."""

    async def run(
        self,
        program: Program,
        names: Iterable[str],
        call: Callable[[CallForm, str], Awaitable[Any]],
        *,
        state: Mapping[str, Any] | None = None,
        values: bytes | None = None,
        listing: Sequence[dict[str, Any]] = (),
        keep: Callable[[bytes, list[dict[str, Any]]], None] | None = None,
    ) -> tuple[Any, str]:
        """The program's value and what it printed; ``call`` answers its calls."""
        ...

    def worker(self) -> AbstractAsyncContextManager[Any]:
        """A worker of its own, once one is free."""
        ...


class Pages(Protocol):
    """Shows texts of this session that a model was not shown whole."""

    def page(self, id: str, start: int = 1) -> tuple[str, str]:
        """A part of the text, from its character ``start`` on, and which part that is. Raises ToolError."""
        ...


def _anything(path: str) -> bool:
    return True


@dataclass(frozen=True)
class ToolContext:
    """What a body or guard may know and use, all of it set by the host.

    ``dispatch`` makes a nested call, through the same door, and ``look`` only looks at one. In a ``dry``
    context no call does more than read, and nobody is asked. ``knowledge`` is what the host's knowledge base
    holds on the message, ``confidence`` how sure the model said it is (0 to 1). ``services`` holds what the
    host gave; ``permission`` asks a person on behalf of this one call. ``written`` is written down together
    with the result, or not at all; each of it returns a sentence to be said, or nothing. A tool that walks
    through folders asks ``may_list`` before it names a file and ``may_read`` before it opens one.
    """

    workspace: Workspace
    user: str = ""
    session: str = ""
    user_message: str = ""
    dispatch: Dispatch | None = None
    look: Looks | None = None
    dry: bool = False
    tool_names: tuple[str, ...] = ()
    sandbox: ProgramRunner | None = None
    snapshots: Snapshots | None = None  # where programs wait
    may_list: Callable[[str], bool] = _anything  # whether the rules let a file be named, for what walks
    may_read: Callable[[str], bool] = _anything  # and whether they let it be read
    shown: Callable[[CallForm], str] = str  # a form as people may see it, without declared secrets
    catalog: Catalog | None = None
    pages: Pages | None = None
    side_effects: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    written: list[Callable[[], str]] = field(default_factory=list)
    clocks: tuple[PausableClock, ...] = ()  # of the calls around this one
    inner_clocks: tuple[PausableClock, ...] = ()  # those, and that of this call, for the calls it makes
    agent_id: str = ""
    knowledge: str | None = None
    confidence: float | None = None
    services: Services = NO_SERVICES
    permission: PermissionBroker = NO_PERMISSION

    @property
    def chat_id(self) -> str:
        """The session, as a chat bot calls it."""
        return self.session

    @property
    def memory(self) -> MemoryStore:
        return self.services.memory

    @property
    def router(self) -> Router:
        return self.services.router

    @property
    def model(self) -> ModelProvider:
        return self.services.model

    @property
    def team(self) -> Team:
        return self.services.team

    @property
    def sources(self) -> SourceManager:
        return self.services.sources

    @property
    def shared_blocks(self) -> SharedBlocks:
        return self.services.shared_blocks

    async def search(
        self, query: str, scope: SearchScope = "agent", options: SearchOptions | None = None
    ) -> Sequence[SearchHit]:
        """Search what this agent may see: its own things, those shared with it, or all."""
        from quoth.tools.call.service_types import SearchOptions, check_scope

        check_scope(scope)
        return await self.services.search.search(query, scope, options or SearchOptions())

    def effect(self, what: str) -> None:
        """Record something done to the world, as ``wrote:src/x.py``; it goes into the result and the
        audit."""
        self.side_effects.append(what)

    def say(self, text: str) -> None:
        """A message that goes with an ok result, beside its value."""
        self.said.append(text)


@dataclass(frozen=True)
class Kept:
    """What a session keeps: the sandbox's state, and name, type and length of each value. ``generation`` is
    that of what is there, or that which the new values were made from."""

    state: bytes
    listing: list[dict[str, Any]]
    generation: str = ""


class Snapshots(Protocol):
    """Keeps where programs stand, by the key of their call, and the values of sessions."""

    def keep(self, key: str, session: str, digest: str, state: Mapping[str, Any]) -> None: ...

    def find(self, key: str, digest: str) -> dict[str, Any] | None:
        """The state of a call whose program has this digest. Raises SnapshotError."""
        ...

    def drop(self, key: str) -> None:
        """The call has ended."""

    def values(self, session: str, user: str) -> Kept | None: ...

    def keep_values(self, session: str, user: str, kept: Kept) -> Callable[[], str]:
        """What writes them down. It returns a sentence when they cannot be kept, or nothing."""
        ...
