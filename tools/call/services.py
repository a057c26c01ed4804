"""The services a host may give its tools: memory, messages, models, search, sources, sharing.

Each is a narrow protocol, with a null implementation that names the missing service. The host binds a service
to one agent, so that no tool can name another agent's blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

from quoth.tools.call.call import Call, Record, Verdict
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.lazy_dataclass import dataclass

if TYPE_CHECKING:  # the types of values are imported only when a service is used
    from quoth.tools.call.question import Question
    from quoth.tools.call.service_types import (
        Block,
        BlockKind,
        BlockPermission,
        BlockVersion,
        Filed,
        Known,
        Origin,
        SearchDomain,
        SearchHit,
        SearchOptions,
        SearchScope,
        Source,
        WebHit,
    )


Caller: TypeAlias = Any  # the ToolContext of a call, which contains these services


class MemoryStore(Protocol):
    """The memory blocks of one agent; the store itself checks permissions (tools/memory/checks.py).

    An unknown label raises ToolError; only ``get_block`` returns None. An operation that the permission of a
    block forbids raises ToolFailure, ``denied``. An operation that needs a person asks ``ctx.permission``
    before it changes anything. Every operation is one transaction.
    """

    async def create_block(
        self,
        label: str,
        text: str = "",
        *,
        kind: BlockKind = "working",
        permission: BlockPermission = "read_write",
        description: str = "",
        limit: int = 0,
    ) -> Block:
        """A new block. ``limit`` 0 is the default of its kind. Raises ToolError if the label is taken."""
        ...

    async def get_block(self, label: str) -> Block | None: ...

    async def list_blocks(self, kind: BlockKind | None = None) -> Sequence[Block]:
        """The agent's own blocks, sorted by label: all, or only one ``kind``."""
        ...

    async def update_block_text(self, label: str, text: str) -> Block: ...

    async def append_to_block(self, label: str, text: str) -> Block:
        """Append text as a new line: a newline separates it from the existing text."""
        ...

    async def replace_in_block(self, label: str, old: str, new: str) -> Block:
        """Replace every occurrence of ``old``. Raises ToolError if it is not in the text."""
        ...

    async def move_block(self, label: str, kind: BlockKind, *, to: str = "") -> Block:
        """Give a block another kind, in place. With ``to``, write its text to the block of that label and
        return that block: a block archived under another label is deleted under its own, which needs
        ``admin``; a block loaded from the archive also stays in the archive."""
        ...

    async def swap_blocks(self, archive_label: str, load_label: str, *, to: str = "") -> Block:
        """Archive one block and load another from the archive, both or neither; returns the loaded block."""
        ...

    async def delete_block(self, label: str) -> None: ...

    async def history(self, label: str) -> Sequence[BlockVersion]:
        """The earlier texts of a block, the newest first."""
        ...

    async def undo(self, label: str) -> Block:
        """Undo the last change of a block's text, as a new version. Raises ToolError if there is none."""
        ...

    async def search_blocks(
        self, query: str, limit: int = 10, domain: SearchDomain = "archival_memory"
    ) -> Sequence[SearchHit]:
        """Search archival blocks; with the domain ``all`` also core and working blocks and conversations;
        with ``conversations`` only conversations. Raises ToolError for any other domain."""
        ...

    async def persist_block(self, label: str) -> None:
        """Return when the block is safe on disk."""


class Embedder(Protocol):
    """Turns texts into vectors that are close to each other for texts that are close in meaning."""

    @property
    def name(self) -> str:
        """The model with its version. Vectors of different names are never compared."""
        ...

    @property
    def dimensions(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        """A vector of length 1 for each text, as little-endian float32. Raises ToolError on failure."""
        ...


USER = "user"  # the channel to the user of the session


class Router(Protocol):
    """Delivers messages to people and other agents. Raises ToolError if that is not possible."""

    async def send_message(self, message: str, *, to: str = USER) -> None: ...

    async def list_channels(self) -> Sequence[str]:
        """The names, beside ``user``, to which messages can be sent."""
        ...


class ModelProvider(Protocol):
    """A model for tools. Each request is independent: it neither sees nor changes a conversation."""

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str: ...


class Team(Protocol):
    """Other models, and sub-agents that do part of the work of a call."""

    async def may_use(self, model: str) -> Verdict:
        """Whether a call may choose that model without approval; for guards."""
        ...

    async def model(self, spec: str) -> ModelProvider:
        """The model named ``spec``, other than the agent's own. Raises ToolError if it is unknown."""
        ...

    async def run(
        self,
        task: str,
        *,
        call: Call,
        context: Caller,
        data: str = "",
        tools: Sequence[str] | None = None,
        model: str | None = None,
        steps: int | None = None,
        calls: int | None = None,
    ) -> str:
        """Let a sub-agent of ``call``, working in ``context``, do a task, and return its answer.

        ``data`` is appended once to the task. ``tools`` narrows the caller's tools (None: all of them);
        ``steps`` and ``calls`` bound its share of the caller's budget. Raises ToolFailure with the
        sub-agent's status: a pending sub-agent waits for a person, and the next attempt at the same call
        resumes it. A team with worktrees has a further method, ``beside(call, context)``: its result is a
        ``context`` with a session and a git worktree of its own.
        """
        ...


class PermissionBroker(Protocol):
    """Asks a person, on behalf of the call that is running."""

    async def request(self, what: str, reason: str) -> None:
        """Return once ``what`` is allowed; otherwise raise ToolFailure, ``denied`` or ``pending``."""

    async def ask(self, question: Question) -> str:
        """The person's answer, in words. Raises ToolFailure, ``denied`` or ``pending``, if there is none."""
        ...


class Search(Protocol):
    """Searches the data that the agent may see; the implementation must respect the scope."""

    async def search(self, query: str, scope: SearchScope, options: SearchOptions) -> Sequence[SearchHit]: ...


class SourceManager(Protocol):
    """The data sources the host has opened for the agent."""

    async def list_sources(self) -> Sequence[Source]: ...

    async def read_source(self, name: str) -> str:
        """The text of a source, or of its part ``NAME/part``; for a source with parts, the list of its parts.
        Raises ToolError, with the nearest name, for an unknown one."""
        ...


class SharedBlocks(Protocol):
    """Blocks that several agents use. ``permission`` limits what the other agent may do."""

    async def share_block(
        self, label: str, agent_id: str, permission: BlockPermission = "read_only"
    ) -> None: ...

    async def unshare_block(self, label: str, agent_id: str) -> None: ...

    async def list_shared_blocks(self) -> Sequence[Block]:
        """The blocks that other agents share with this one."""
        ...


class KnowledgeBase(Protocol):
    """Knowledge that people and their agent have gathered, in files that both may edit (tools/knowledge/).

    The same content filed twice is one entry with two origins. Raises ToolError, with file and line, if an
    entry belongs in a file that cannot be parsed; that file stays unchanged. A search skips it.
    """

    async def add_source(
        self, title: str, text: str, origin: Origin, *, addresses: Sequence[str] = ()
    ) -> Filed:
        """File a source: one file each, named from the title."""
        ...

    async def add_claim(self, text: str, origin: Origin) -> Filed: ...

    async def add_learning(self, category: str, text: str, origin: Origin) -> Filed: ...

    async def add_note(self, title: str, text: str, origin: Origin) -> Filed:
        """File a note, such as a summary, in the inbox."""
        ...

    async def look_up(self, query: str, limit: int = 5) -> Sequence[Known]:
        """The entries that match the words, the best first."""
        ...


class WebSearch(Protocol):
    """Finds pages or files for a query. It opens none of them."""

    @property
    def name(self) -> str:
        """The place that is searched, for people; without secrets."""
        ...

    async def find(self, query: str, limit: int = 10) -> Sequence[WebHit]:
        """The best matches, the best first. Raises ToolError with a sentence if the search fails."""
        ...


# The implementations of services that the host did not configure


def _missing(protocol: type, lack: str, service: str) -> Any:
    """An implementation of ``protocol`` whose every method raises a ToolError that says what to configure."""
    sentence = f"{lack}: Agent({f'services=Services({service}=…)' if service else 'consent=…'})."

    async def method(self: object, *_: object, **__: object) -> NoReturn:
        raise ToolError(sentence)

    return type(f"No{protocol.__name__}", (), dict.fromkeys(_methods(protocol), method))()


@cache
def _methods(protocol: type) -> list[str]:
    """Cached, because each call of an agent uses it."""
    return [name for name, part in vars(protocol).items() if callable(part) and not name.startswith("_")]


NO_MEMORY: MemoryStore = _missing(MemoryStore, "No memory is configured; give the agent one", "memory")
NO_ROUTER: Router = _missing(Router, "No router for messages is configured; give the agent one", "router")
NO_MODEL: ModelProvider = _missing(
    ModelProvider, "No model for tools is configured; give the agent one", "model"
)
NO_SEARCH: Search = _missing(Search, "No search is configured; give the agent one", "search")
NO_SOURCES: SourceManager = _missing(
    SourceManager, "No sources are open; open one with --source NAME=PATH, or from Python", "sources"
)
NO_SHARED_BLOCKS: SharedBlocks = _missing(
    SharedBlocks, "No shared blocks are configured; give the agent some", "shared_blocks"
)
NO_TEAM: Team = _missing(Team, "No other models or agents are configured; give the agent a team", "team")
NO_KNOWLEDGE: KnowledgeBase = _missing(
    KnowledgeBase, "No knowledge base is open; open one with --knowledge, or from Python", "knowledge_base"
)
NO_WEB_SEARCH: WebSearch = _missing(
    WebSearch, "No search is configured; name a server or folder with --search, or from Python", "web_search"
)
NO_PERMISSION: PermissionBroker = _missing(
    PermissionBroker, "No person can be asked for permission; give the agent a consent", ""
)


@dataclass(frozen=True)
class Services(Record):
    """The services of one agent's tools. Raises UsageError for an object without a required method."""

    memory: MemoryStore = NO_MEMORY
    router: Router = NO_ROUTER
    model: ModelProvider = NO_MODEL
    search: Search = NO_SEARCH
    sources: SourceManager = NO_SOURCES
    shared_blocks: SharedBlocks = NO_SHARED_BLOCKS
    team: Team = NO_TEAM
    knowledge_base: KnowledgeBase = NO_KNOWLEDGE
    web_search: WebSearch = NO_WEB_SEARCH

    def __post_init__(self) -> None:
        for field, protocol in zip(fields(Services), PROTOCOLS, strict=True):
            given = getattr(self, field.name)
            for method in _methods(protocol):
                if not callable(getattr(given, method, None)):
                    raise UsageError(
                        f"Services({field.name}=…) needs a {protocol.__name__}, but {type(given).__name__} "
                        f"has no method {method}."
                    )


PROTOCOLS = (  # as above
    MemoryStore,
    Router,
    ModelProvider,
    Search,
    SourceManager,
    SharedBlocks,
    Team,
    KnowledgeBase,
    WebSearch,
)
NO_SERVICES = Services()
