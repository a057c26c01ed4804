"""The options of an agent that are more than simple values: its tools, model, policy and services.

Each keyword of Agent takes the simple value or one of these. Knows how each is checked; it must not know how
an agent is put together from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from quoth.agent.config.config import NO_CONFIG, Config
from quoth.agent.config.loading import user_config
from quoth.agent.run.run import AfterTags, RunLimits
from quoth.neuro.backends.base import PlainBackend
from quoth.neuro.backends.keys import keys_path
from quoth.neuro.backends.settings import Settings
from quoth.tools.call.ports import Audit, Gate
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
from quoth.tools.loading import ToolSource, load_tools, with_search
from quoth.tools.policy.quotas import Rule
from quoth.tools.policy.spending import DailyBudget
from quoth.tools.registry.table import ToolTable

if TYPE_CHECKING:
    from quoth.agent.run.remote_tools import RemoteTools
    from quoth.tools.catalog.connection import RedisUrl
    from quoth.tools.catalog.remote_table import LiveCatalog
    from quoth.tools.shared.opening import Shared


@dataclass(frozen=True)
class ToolOptions:
    """The tools of an agent, and how its model is shown them: ``ToolOptions(["shop.hy"], belt="search")``.

    ``tools`` are ``.hy`` files or CognitiveTools beside those that ship, ``["shop.hy", double]``; or a
    ToolTable in place of them all. ``belt="search"`` shows the model one line a tool, for a table that is too
    large to show; the default, ``"full"``, shows it all. ``without`` names tools that ship and are left out,
    ``without=["block", "recall"]``.

    ``remote="redis://HOST:PORT"`` adds the tools that workers there have published under the ``prefix``,
    signed with the key in the file ``key`` (None: that of QUOTH_CATALOG_KEY, or of this user). Of a tool that
    is here too, the one here counts if ``local`` names it, ``local=["read-file"]``.
    """

    tools: str | Path | Iterable[ToolSource] | ToolTable = ()
    belt: Literal["full", "search"] = "full"
    without: Iterable[str] = ()
    remote: str | RedisUrl | LiveCatalog | None = field(default=None, repr=False)  # it may hold a password
    local: Iterable[str] = ()
    prefix: str = "sg"
    key: str | Path | None = None

    def __post_init__(self) -> None:
        if self.belt not in ("full", "search"):
            raise UsageError(f"belt is full or search, not {self.belt!r}.")
        if not isinstance(self.tools, Iterable | Path):
            raise UsageError(f"tools are files of tools, CognitiveTools or a ToolTable, not {self.tools!r}.")
        if not isinstance(self.tools, ToolTable):
            tools = [self.tools] if isinstance(self.tools, str | Path) else self.tools
            object.__setattr__(self, "tools", tuple(tools))
        for option in ("without", "local"):
            names = getattr(self, option)
            object.__setattr__(self, option, (names,) if isinstance(names, str) else tuple(names))
        if self.local and self.remote is None:
            raise UsageError("local keeps a tool here that is remote too; it goes with remote.")

    @property
    def searched(self) -> bool:
        """Whether the model searches the tools, instead of being shown them all."""
        return self.belt == "search"

    @property
    def files(self) -> list[str]:
        """The absolute paths of the tool files."""
        return [str(Path(tool).resolve()) for tool in self._sources() if isinstance(tool, str | Path)]

    def open_remote(
        self, here: ToolTable, audit: Audit | None = None, tell: Callable[[str], None] = lambda text: None
    ) -> RemoteTools | None:
        """The remote tools beside those that are ``here``, if there are to be any; for ``audit`` and ``tell``
        see open_catalog. Raises QuothError."""
        if self.remote is None:
            return None
        from quoth.agent.run.remote_tools import RemoteTools, open_catalog  # here: most agents have none

        catalog = open_catalog(self.remote, self.prefix, self.key, audit, tell)
        return RemoteTools(here, catalog, tuple(self.local))

    @property
    def kept(self) -> dict[str, Any]:
        """Where the remote tools are, for the opening of a session: without user and password."""
        if self.remote is None:
            return {}
        from quoth.agent.run.remote_tools import place_of
        from quoth.tools.catalog.signing import kept_key

        local = {"local": list(self.local)} if self.local else {}
        return {**place_of(self.remote), "prefix": self.prefix, **kept_key(self.key), **local}

    def load(self, *, knowledge: bool = False) -> ToolTable:
        """The table of these tools; with ``knowledge`` also those of a knowledge base. Raises UsageError for
        anything that is not a tool."""
        table = self.tools if isinstance(self.tools, ToolTable) else None
        table = load_tools(self._sources(), table, tuple(self.without), knowledge=knowledge)
        return with_search(table) if self.searched else table

    def _sources(self) -> Iterable[ToolSource]:
        return self.tools if isinstance(self.tools, tuple) else ()


@dataclass(frozen=True)
class ModelOptions:
    """The model of an agent, and how to use it: ``ModelOptions("openai:gpt-x", dialect="native")``.

    ``model`` is a spec, ``"local"``, ``"openai:…"`` or ``"scripted:talk.txt"``; a Backend, which is not
    closed with the agent; or None for the default, chosen at the first run. ``base_url`` is the server of a
    spec, ``base_url="http://localhost:8080/v1"``. ``dialect`` is how the model calls tools
    (neuro/prompt/dialects.py), ``dialect="plist"``; None chooses it by the model's family. ``must_act=True``
    makes the model call a tool before it answers. ``after_tags="stop"`` ends a run with the first reply that
    holds calls: each is made, and the model sees the results at its next message; with ``"continue"`` it goes
    on at once. None is ``stop`` in a chat and ``continue`` elsewhere.

    ``instructions`` are told to the model before any task, ``instructions="Answer in German."``.
    ``temperature`` is that of sampling, ``temperature=0.7``. ``timeout`` is how many seconds the server of a
    spec may be silent, ``timeout=30``, and ``api_key`` its key, ``api_key="sk-…"`` or, in a file that only
    its owner may read, ``api_key="@FILE"``. None leaves each of them to the user's configuration.
    """

    model: str | PlainBackend | None = None
    base_url: str | None = field(default=None, repr=False)  # it may hold a password
    dialect: str | None = None
    must_act: bool | None = None
    after_tags: AfterTags | None = None
    instructions: str | None = None
    temperature: float | None = None
    timeout: float | None = None
    api_key: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.after_tags not in (None, "stop", "continue"):
            raise UsageError(f"after_tags is stop, continue or None, not {self.after_tags!r}.")
        for name, kind in (("instructions", "a text"), ("api_key", "a text")):
            if not isinstance(said := vars(self)[name], str | None):
                raise UsageError(f"{name} is {kind} or None, not {type(said).__name__}.")
        if not _is_number(self.temperature, 0, 2):
            raise UsageError(f"temperature is a number from 0 to 2 or None, not {self.temperature!r}.")
        if not _is_number(self.timeout, 0.001, float("inf")):
            raise UsageError(f"timeout is a number of seconds above 0 or None, not {self.timeout!r}.")
        given = not isinstance(self.model, str | None)
        if given and (told := next((name for name in ("timeout", "api_key") if vars(self)[name]), "")):
            raise UsageError(
                f"{told} is for a model that is named by a spec; give it to your Backend itself."
            )

    @property
    def settings(self) -> Settings:
        """How the server of a spec is reached. Raises UsageError for a file of a key that cannot be used."""
        key = self.api_key
        if self.key_file is not None:
            from quoth.neuro.backends.keys import key_in_file

            key = key_in_file(self.key_file)
        return Settings(self.base_url, key, self.timeout, self.temperature)

    @property
    def key_file(self) -> Path | None:
        """The file that the key is in, if it is in one."""
        key = self.api_key or ""
        return Path(key[1:]).expanduser() if key.startswith("@") else None

    @property
    def kept(self) -> dict[str, Any]:
        """What is said of the requests, for the opening of a session."""
        said = {name: vars(self)[name] for name in ("instructions", "temperature", "timeout")}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def spec(self) -> str | None:
        """The spec of the model with absolute paths; None for an object or the default."""
        return _absolute(self.model) if isinstance(self.model, str) else None


def _is_number(given: Any, least: float, most: float) -> bool:
    """Whether it is None or a number between these."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return given is None or (number and least <= given <= most)


def _absolute(spec: str) -> str:
    kind, _, path = spec.partition(":")
    if kind == "cascade":
        return f"{kind}:{','.join(_absolute(one.strip()) for one in path.split(','))}"
    is_path = kind in ("scripted", "local") and path
    return f"{kind}:{Path(path).expanduser().resolve()}" if is_path else spec


@dataclass(frozen=True)
class PolicyOptions:
    """What an agent may do, in addition to its user's and workspace's rules:
    ``PolicyOptions("rules.hy", gate=g)``.

    ``file`` is a file of rules, ``"rules.hy"``. ``gate`` judges the calls of tools that require one
    (tools/call/ports.py, Gate), ``gate=Reviewer()``, or a Hy file that defines its ``check``,
    ``gate="gate.hy"``. ``quotas`` are limits in addition to those that tools
    and rules declare, ``quotas=[Quota("search", 3, per="hour")]``; their days begin at midnight in the time
    zone ``zone="Europe/Berlin"``, and so do those of ``budgets``, what users may spend on models in a day:
    ``budgets=[DailyBudget(cost=5)]``. With ``shared="redis://HOST:PORT"`` the limits, and the requests for
    approval, are those of all machines that share this Redis, the ``prefix`` of its keys and the key in the
    file ``key`` (None: that of QUOTH_CATALOG_KEY, or of this user).
    """

    file: str | Path | None = None
    gate: Gate | str | Path | None = None
    quotas: Iterable[Rule] = ()
    zone: str = "UTC"
    shared: str | RedisUrl | None = field(default=None, repr=False)  # it may hold a password
    prefix: str = "sg"
    key: str | Path | None = None
    budgets: Iterable[DailyBudget] = ()

    def __post_init__(self) -> None:
        if not (self.file is None or isinstance(self.file, str | Path)):
            raise UsageError(f"policy is the path of a file of rules, not {self.file!r}.")
        if not (self.gate is None or isinstance(self.gate, str | Path) or hasattr(self.gate, "check")):
            raise UsageError(
                f"gate is an object with a method check, or the path of a file, not {self.gate!r}."
            )

    @property
    def gate_file(self) -> Path | None:
        """The absolute path of the file that the gate is in; None where there is no file."""
        return Path(self.gate).resolve() if isinstance(self.gate, str | Path) else None

    def open_shared(self) -> Shared | None:
        """The limits and requests that machines share, if they do. Raises UsageError."""
        if self.shared is None:
            return None
        from quoth.tools.shared.opening import open_shared  # here: most agents share nothing

        return open_shared(self.shared, self.prefix, self.key)

    def open_gate(self) -> Gate | None:
        """The gate. Raises UsageError for a file that defines none."""
        if isinstance(self.gate, str | Path):
            from quoth.tools.door.gate_file import FileGate  # here: most agents have none

            return FileGate(self.gate)
        return self.gate


def secret_files(tools: ToolOptions, policies: PolicyOptions, models: ModelOptions) -> set[Path]:
    """The files that tell how to get to other machines, and that no tool may read: keys and URLs, also those
    of models."""
    from quoth.tools.catalog.signing import key_path

    files = {keys_path(), user_config(), *(key_path(key) for key in (None, tools.key, policies.key))}
    files |= {models.key_file} if models.key_file is not None else set()
    for url in (tools.remote, policies.shared):
        if isinstance(url, str):
            files |= {Path(url[1:])} if url.startswith("@") else set()
        elif url is not None:
            given: Any = url
            files |= {*getattr(given, "url", given).files}  # of a catalogue, or itself
    return files


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
    gives them to OpenTelemetry (README, "Traces"); with ``trace_content=True`` also prompts, replies,
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


ToolChoice = str | Path | Iterable[ToolSource] | ToolTable | ToolOptions
ModelChoice = str | PlainBackend | ModelOptions
PolicyChoice = str | Path | PolicyOptions


def tool_options(given: ToolChoice) -> ToolOptions:
    return given if isinstance(given, ToolOptions) else ToolOptions(given)


def model_options(given: ModelChoice | None) -> ModelOptions:
    if not (given is None or isinstance(given, str | ModelOptions) or hasattr(given, "complete")):
        raise UsageError(f"model is a spec, a Backend or ModelOptions(…), not {given!r}.")
    return given if isinstance(given, ModelOptions) else ModelOptions(given)


def policy_options(given: PolicyChoice | None) -> PolicyOptions:
    return given if isinstance(given, PolicyOptions) else PolicyOptions(given)


def service_options(given: Services | None) -> HostServices:
    if given is None or isinstance(given, HostServices):
        return given or HostServices()
    if not isinstance(given, Services):
        raise UsageError(f"services is a Services(memory=…, …), not {given!r}.")
    return HostServices(**vars(given))


def run_limits(given: RunLimits | None, config: Config = NO_CONFIG) -> RunLimits:
    """The limits of a run: as given, and where those are the defaults, as configured."""
    limits = RunLimits() if given is None else given
    if not isinstance(limits, RunLimits):
        raise UsageError(f"limits are RunLimits(steps=10, …), not {given!r}.")
    default = vars(RunLimits())
    configured: dict[str, Any] = {**config.budget, "reply_tokens": config.reply_tokens}
    unsaid = {name: one for name, one in configured.items() if vars(limits)[name] == default[name]}
    limits = replace(limits, **unsaid)
    for name in ("reply_tokens", "tokens", "cost", "seconds"):
        value = getattr(limits, name)
        whole = name.endswith("tokens")
        kinds = (int,) if whole else (int, float)
        if value is not None and (type(value) not in kinds or not (1 if whole else 0) <= value < math.inf):
            what = "a whole number from 1" if whole else "a number from 0"
            raise UsageError(f"{name} of RunLimits is {what}, not {value!r}.")
    return limits
