"""What a host gives the tools of an agent: memory, knowledge, sources, channels; and where its run is traced.

Knows how each is checked; it must not know how an agent is put together from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from quoth.tools.call.ports import Audit
from quoth.tools.call.services import (
    NO_KNOWLEDGE,
    NO_MEMORY,
    NO_ROUTER,
    NO_SOURCES,
    NO_WEB_SEARCH,
    Embedder,
    Services,
    SourceManager,
)
from quoth.tools.errors import UsageError


@dataclass(frozen=True)
class HostServices(Services):
    """The services that a host gives the tools of an agent, and its knowledge:
    ``HostServices(memory=notes, knowledge="It is blue.")``.

    ``sources`` may also be folders and files by name, ``sources={"manual": "docs/manual"}``. Where no
    ``router`` is given, messages to the user are events named ``message`` and stand in the Reply, and
    ``channels`` are the other names that a message can be sent to, files or web addresses
    (agent/run/channels.py): ``channels={"ops": "ops.jsonl"}``. ``channel="discord"`` says where the user is
    met; requests for approval show it.

    With a ``knowledge_base`` the agent has the tools that file what was learned, and the rules that allow
    them in a chat; ``web_search`` is where its tool ``research`` looks:
    ``web_search=open_web_search("https://searx.example")``.

    Beside the fields of Services, tools may read ``knowledge``, what the host knows of the matter;
    ``confidence=0.9``, how sure it is, from 0 to 1; and ``agent_id="librarian"``, who calls. ``audit``
    records the calls in place of the store, ``audit=MemoryAudit()``.

    Without ``memory`` the agent has that of its workspace; with ``memory_url="postgresql://…"`` that of a
    database, which is part of no record. ``embedder`` turns its texts into vectors, ``embedder=MyModel()``;
    None is the one that is installed, or that QUOTH_EMBEDDER names.

    ``trace="run.jsonl"`` appends a line to that file for each run, turn, request and call, ``trace="otel"``
    gives them to OpenTelemetry (``quoth help traces``); with ``trace_content=True`` also prompts, replies,
    arguments and results, without secrets.
    """

    knowledge: str | None = None
    confidence: float | None = None
    agent_id: str = "agent"
    audit: Audit | None = None
    memory_url: str | None = field(default=None, repr=False)  # it may hold a password
    embedder: Embedder | None = None
    sources: Any = NO_SOURCES  # a SourceManager, or paths by name
    channels: Mapping[str, str | Path] = field(default_factory=dict)
    channel: str = "python"
    trace: str | Path | None = None
    trace_content: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.sources, Mapping):
            object.__setattr__(self, "sources", _folders(self.sources))
        super().__post_init__()
        if not isinstance(self.channels, Mapping):
            raise UsageError(f"channels are places by name, {{'ops': 'ops.jsonl'}}, not {self.channels!r}.")
        if self.channels and self.router is not NO_ROUTER:
            raise UsageError("A router brings every message; leave channels or router out.")
        if not isinstance(self.channel, str):
            raise UsageError(f"channel is a text, not {self.channel!r}.")
        sure, number = self.confidence, isinstance(self.confidence, int | float)
        if not (self.knowledge is None or isinstance(self.knowledge, str)):
            raise UsageError(f"knowledge is a text or None, not {self.knowledge!r}.")
        if sure is not None and not (number and not isinstance(sure, bool) and 0 <= sure <= 1):
            raise UsageError(f"confidence is a number from 0 to 1 or None, not {sure!r}.")
        if not (self.trace is None or isinstance(self.trace, str | Path)):
            raise UsageError(f"trace is the path of a file, 'otel' or None, not {self.trace!r}.")
        if not (isinstance(self.agent_id, str) and self.agent_id):
            raise UsageError(f"agent_id is a text that is not empty, not {self.agent_id!r}.")
        if self.memory_url is not None and not isinstance(self.memory_url, str):
            raise UsageError("memory_url is the URL of a database or None.")
        if self.memory_url and self.memory is not NO_MEMORY:
            raise UsageError("An agent has one memory: give memory or memory_url, not both.")

    @property
    def memory_kind(self) -> str:
        """The kind of database in which the memory is; empty for that of the workspace."""
        return "postgresql" if self.memory_url else ""

    @property
    def gathers(self) -> bool:
        """Whether there is a knowledge base."""
        return self.knowledge_base is not NO_KNOWLEDGE

    @property
    def kept(self) -> dict[str, Any]:
        """The folders and channels for the opening of a session, and whether it gathers knowledge; of a web
        address only the name, because any part of it may be secret."""
        from quoth.agent.run.channels import channel

        kept: dict[str, Any] = {}
        if self.gathers:
            kept["knowledge"] = True
        if self.web_search is not NO_WEB_SEARCH:
            kept["search"] = ""  # an address, or what the host has made
            kept |= getattr(self.web_search, "kept", {})
        if isinstance(paths := getattr(self.sources, "paths", None), Mapping):
            kept["sources"] = {name: str(path) for name, path in paths.items()}
        if self.channels:
            made = [channel(name, where) for name, where in self.channels.items()]
            kept["channels"] = {one.name: "" if one.is_web else one.where for one in made}
        return kept

    @property
    def for_tools(self) -> Services:
        """Only the fields of Services."""
        return Services(**{one.name: getattr(self, one.name) for one in fields(Services)})


def _folders(paths: Mapping[str, str | Path]) -> SourceManager:
    if not paths:
        return NO_SOURCES
    from quoth.tools.call.sources import FolderSources  # here: few agents have sources

    return FolderSources(paths)


def service_options(given: Services | None) -> HostServices:
    if given is None or isinstance(given, HostServices):
        return given or HostServices()
    if not isinstance(given, Services):
        raise UsageError(f"services is a Services(memory=…, …), not {given!r}.")
    return HostServices(**vars(given))
