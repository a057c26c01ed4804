"""The options of an agent that are more than simple values: its tools, model, policy and limits. Its services
are in channels.py.

Each keyword of Agent takes the simple value or one of these.
"""

from __future__ import annotations

import functools
import math
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

from quoth.agent.config.config import NO_CONFIG, Config
from quoth.agent.config.loading import user_config
from quoth.agent.run.channels import HostServices, service_options
from quoth.agent.run.limits import AfterTags, RunLimits
from quoth.agent.settings import ROWS, is_given
from quoth.neuro.backends.base import PlainBackend
from quoth.neuro.backends.providers import ServerSettings, key_in_file
from quoth.tools.call.ports import Audit, Gate
from quoth.tools.call.redaction import redact_url
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError, did_you_mean, no_such
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import kebab
from quoth.tools.loading import ToolSource, load_tools, with_search
from quoth.tools.policy.project import find_project, mark_narrowed, policy_files, require_no_worktree
from quoth.tools.policy.spending import DailyBudget, Rule
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import EFFECTS
from quoth.tools.storage.paths import (
    agents_dir,
    cache_dir,
    catalog_key_path,
    keys_path,
    real_path,
    state_dir,
    user_servers,
)

if TYPE_CHECKING:
    from quoth.agent.run.own import RemoteTools
    from quoth.tools.catalog.connection import RedisUrl
    from quoth.tools.catalog.remote_table import LiveCatalog
    from quoth.tools.door.user_gates import GateProgram
    from quoth.tools.shared.opening import Shared

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class ToolOptions:
    """The tools of an agent, and how its model sees them: ``ToolOptions(["shop.hy"], belt="search")``.

    ``tools`` are ``.hy`` and ``.py`` files, functions, methods and partials, in addition to the built-in
    tools, ``["shop.hy", double]``; a ToolTable replaces them all. ``belt="search"`` lists each tool in one
    line, for a table that is too large; ``"few"`` shows six that fit the task in full, and the names of the
    others; ``"full"`` shows every tool in full. The default is few for a model that must act, else full.
    ``without`` names
    built-in tools to leave out, ``without=["block", "recall"]``. ``mcp`` are JSON files that list MCP servers
    under ``mcpServers``, ``mcp=["servers.json"]``; the tools of a server can be called once ``quoth mcp
    trust`` has shown them to a person. With ``mcp_sampling=True`` servers may ask the agent's model.

    ``remote="redis://HOST:PORT"`` adds the tools that workers there have published under the ``prefix``,
    signed with the key in the file ``key`` (default: the key in QUOTH_CATALOG_KEY, or this user's). If a tool
    exists here too, ``local=["read-file"]`` uses the one here.
    """

    tools: ToolSource | Iterable[ToolSource] | ToolTable = ()
    belt: Literal["full", "few", "search"] | None = None
    without: Iterable[str] = ()
    mcp: Iterable[str | Path] = ()
    mcp_sampling: bool = False
    remote: str | RedisUrl | LiveCatalog | None = field(default=None, repr=False)  # may contain a password
    local: Iterable[str] = ()
    prefix: str = "sg"
    key: str | Path | None = None

    def __post_init__(self) -> None:
        if self.belt not in (None, "full", "few", "search"):
            raise UsageError(f"belt is full, few or search, not {self.belt!r}.")
        one = isinstance(self.tools, str | Path) or callable(self.tools)
        if not one and not isinstance(self.tools, Iterable):
            raise UsageError(f"tools are files of tools, functions or a ToolTable, not {self.tools!r}.")
        if not isinstance(self.tools, ToolTable):
            tools: Any = [self.tools] if one else self.tools
            object.__setattr__(self, "tools", tuple(tools))
        files = (self.mcp,) if isinstance(self.mcp, str | Path) else tuple(self.mcp)
        if wrong := next((one for one in files if not isinstance(one, str | Path)), None):
            raise UsageError(f"mcp is a list of JSON files, such as servers.json, not {wrong!r}.")
        object.__setattr__(self, "mcp", files)
        for option in ("without", "local"):
            names = getattr(self, option)
            names = (names,) if isinstance(names, str) else names
            object.__setattr__(self, option, tuple(map(kebab, names)))
        if self.local and self.remote is None:
            raise UsageError("local needs remote: it keeps a local tool that is remote too.")

    @property
    def searched(self) -> bool:
        """Whether the model searches the tools instead of seeing them all."""
        return self.belt == "search"

    @property
    def files(self) -> list[str]:
        """The absolute paths of the tool files."""
        return [str(real_path(tool)) for tool in self._sources() if isinstance(tool, str | Path)]

    def open_remote(
        self, here: ToolTable, audit: Audit | None = None, tell: Callable[[str], None] = lambda text: None
    ) -> RemoteTools | None:
        """The remote tools besides the ones that are ``here``; None without a remote. For ``audit`` and
        ``tell`` see open_catalog. Raises QuothError."""
        if self.remote is None:
            return None
        from quoth.agent.run.own import RemoteTools, open_catalog  # here: most agents have none

        catalog = open_catalog(self.remote, self.prefix, self.key, audit, tell)
        return RemoteTools(here, catalog, tuple(self.local))

    @property
    def place(self) -> dict[str, Any]:
        """The place of remote tools, for the opening of a session: without user and password."""
        if self.remote is None:
            return {}
        from quoth.agent.run.own import place_of
        from quoth.tools.catalog.payload import kept_key

        local = {"local": list(self.local)} if self.local else {}
        return {**place_of(self.remote), "prefix": self.prefix, **kept_key(self.key), **local}

    def load(self, *, knowledge: bool = False) -> ToolTable:
        """The table of these tools; ``knowledge`` adds the tools of a knowledge base. Raises UsageError for a
        value that is not a tool."""
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
    spec, ``base_url="http://localhost:8080/v1"``. ``dialect`` is the notation in which the model calls tools
    (neuro/prompt/dialects.py), ``dialect="plist"``; None chooses it by the model's family. With
    ``must_act=True`` the model must call a tool before it answers. ``after_tags="stop"`` ends a run with the
    first reply that contains calls: they are run, and the model sees the results with its next message; with
    ``"continue"`` it sees them at once. None means ``stop`` in a chat and ``continue`` elsewhere.

    ``instructions`` is text for the model before any task, ``instructions="Answer in German."``.
    ``temperature`` is the sampling temperature, 0 to 2, ``temperature=0.7``. ``timeout`` is the number of
    seconds that the server of a spec may be silent, ``timeout=30``. ``api_key`` is its key,
    ``api_key="sk-…"``, or ``api_key="@FILE"`` for a file that only its owner may read. None leaves each of
    them to the user's configuration.
    """

    model: str | PlainBackend | None = None
    base_url: str | None = field(default=None, repr=False)  # it may contain a password
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
            raise UsageError(f"{told} works only with a model spec; set it in your Backend instead.")

    @property
    def settings(self) -> ServerSettings:
        """The settings of the server of a spec. Raises UsageError for an unusable key file."""
        key = self.api_key
        if self.key_file is not None:
            key = key_in_file(self.key_file)
        return ServerSettings(self.base_url, key, self.timeout, self.temperature)

    def overridden(self, **overrides: Any) -> ModelOptions:
        """These options, replaced by the ``overrides`` that are not None."""
        return replace(self, **{name: value for name, value in overrides.items() if value is not None})

    @property
    def key_file(self) -> Path | None:
        """The file of the key; None if the key is not in a file."""
        key = self.api_key or ""
        return Path(key[1:]).expanduser() if key.startswith("@") else None

    @property
    def spec(self) -> str | None:
        """The spec of the model with absolute paths; None for an object or the default."""
        return _absolute(self.model) if isinstance(self.model, str) else None


def _is_number(given: Any, least: float, most: float) -> bool:
    """Whether a value is None or a number from ``least`` to ``most``."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return given is None or (number and least <= given <= most)


def _absolute(spec: str) -> str:
    kind, _, path = spec.partition(":")
    if kind == "cascade":
        return f"{kind}:{','.join(_absolute(one.strip()) for one in path.split(','))}"
    is_path = kind in ("scripted", "local") and path
    return f"{kind}:{real_path(Path(path).expanduser())}" if is_path else spec


MAY_ALLOW = " :may-allow"


@dataclass(frozen=True)
class Review:
    """The model that reviews calls, a spec or a Backend. It may allow calls of tools whose effects are all in
    ``may_allow``. As a text: ``local :may-allow :reads :writes``."""

    model: str | PlainBackend
    may_allow: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: str | Review) -> Review:
        """The review in a text. Raises UsageError."""
        if isinstance(given, Review):
            return given
        if not isinstance(given, str) or not given.strip():
            raise UsageError(f"review is the spec of a model or Review(…), not {given!r}.")
        model, _, effects = given.partition(MAY_ALLOW)
        words = tuple(word.removeprefix(":") for word in effects.split())
        for word in words:
            if word not in EFFECTS:
                raise UsageError(no_such("effect", word, EFFECTS))
        if MAY_ALLOW in given and not words:
            raise UsageError(f"{MAY_ALLOW.strip()} needs effects, such as :reads :writes.")
        return cls(model.strip(), words)

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else self.model.name

    @property
    def spec(self) -> str | None:
        """It as a text; None for a Backend."""
        effects = "".join(f" :{effect}" for effect in self.may_allow)
        return (
            None if not isinstance(self.model, str) else self.model + (MAY_ALLOW + effects if effects else "")
        )


@dataclass(frozen=True)
class PolicyOptions:
    """Rules and limits of an agent, in addition to the user's and the workspace's rules:
    ``PolicyOptions("rules.hy", gate=g)``.

    ``agent`` is the name of an agent of the user's configuration, ``agent="reviewer"`` for
    ``agents/reviewer.hy``: its rules and tools, and its model, instructions and limits where none are given.

    ``file`` is a file of rules, ``"rules.hy"``. ``gate`` judges the calls of tools that require one
    (tools/call/ports.py, Gate), ``gate=Reviewer()``, or a Hy file that defines its ``check``,
    ``gate="gate.hy"``. ``quotas`` adds limits to the limits of tools and rules,
    ``quotas=[Quota("search", 3, per="hour")]``. ``budgets`` are the daily budgets of users for models,
    ``budgets=[DailyBudget(cost=5)]``. The days of quotas and budgets begin at midnight in the time zone
    ``zone="Europe/Berlin"``. ``gate_command`` is a program that judges every call,
    ``gate_command=["./gate.py"]`` (tools/door/user_gates.py). ``review`` is a model that looks at each call
    before the person is asked, ``review="local"`` (agent/run/review.py).

    ``shared="redis://HOST:PORT"`` shares the limits and the requests for approval between all machines with
    the same Redis, the same ``prefix`` of its keys and the same key in the file ``key`` (default: the key in
    QUOTH_CATALOG_KEY, or this user's).
    """

    file: str | Path | None = None
    gate: Gate | str | Path | None = None
    quotas: Iterable[Rule] = ()
    zone: str = "UTC"
    shared: str | RedisUrl | None = field(default=None, repr=False)  # it may contain a password
    prefix: str = "sg"
    key: str | Path | None = None
    budgets: Sequence[DailyBudget] = ()
    gate_command: str | Sequence[str] | None = None
    agent: str | None = None
    review: str | Review | None = None

    def __post_init__(self) -> None:
        if self.gate_command is not None:
            from quoth.tools.door.user_gates import gate_words  # here: most agents have none

            if not isinstance(self.gate_command, str | list | tuple):
                raise UsageError(
                    f"gate_command is a list of a program and its arguments, not {self.gate_command!r}."
                )
            object.__setattr__(self, "gate_command", gate_words(self.gate_command, "The gate command"))
        if self.review is not None:
            review = Review.of(self.review)
            if isinstance(review.model, str):
                review = replace(review, model=_absolute(review.model))
            object.__setattr__(self, "review", review)
        several = isinstance(self.budgets, list | tuple)
        if not (several and all(isinstance(one, DailyBudget) for one in self.budgets)):
            raise UsageError(f"budgets is a list such as [DailyBudget(cost=5)], not {self.budgets!r}.")
        if not (self.file is None or isinstance(self.file, str | Path)):
            raise UsageError(f"policy is the path of a file of rules, not {self.file!r}.")
        if not isinstance(self.agent, str | None):
            raise UsageError(f"agent is the name of an agent or None, not {self.agent!r}.")
        if not (self.gate is None or isinstance(self.gate, str | Path) or hasattr(self.gate, "check")):
            raise UsageError(
                f"gate is an object with a method check, or the path of a file, not {self.gate!r}."
            )

    @property
    def gate_file(self) -> Path | None:
        """The absolute path of the gate's file; None if it is not in a file."""
        return real_path(self.gate) if isinstance(self.gate, str | Path) else None

    @property
    def place(self) -> dict[str, Any]:
        """The place of shared limits and requests, for the opening of a session: without user and
        password."""
        if self.shared is None:
            return {}
        from quoth.tools.catalog.connection import redis_url
        from quoth.tools.catalog.payload import kept_key
        from quoth.tools.shared.server import VARIABLE

        url = redis_url(self.shared, VARIABLE, typed=False) if isinstance(self.shared, str) else self.shared
        return {**url.kept("shared"), "prefix": self.prefix, **kept_key(self.key)}

    def open_shared(self) -> Shared | None:
        """The limits and requests that machines share; None if they share none. Raises UsageError."""
        if self.shared is None:
            return None
        from quoth.tools.shared.opening import open_shared  # here: most agents share nothing

        return open_shared(self.shared, self.prefix, self.key)

    def open_gate_programs(self, config: Config, secrets: Callable[[], Collection[str]]) -> list[GateProgram]:
        """The programs that judge every call: the user's and the one of these options. They do not see the
        parameters named in ``secrets``. Raises UsageError."""
        if config.gate_command is None and self.gate_command is None:
            return []
        from quoth.tools.door.user_gates import GateProgram, gate_words  # here: most agents have none

        own = config.gate_command and gate_words(config.gate_command, "(gate-command …) in config.hy")
        return [GateProgram(argv, secrets) for argv in (own, self.gate_command) if argv]

    def open_gate(self) -> Gate | None:
        """The gate. Raises UsageError for a file without one."""
        if isinstance(self.gate, str | Path):
            from quoth.tools.door.user_gates import FileGate  # here: most agents have none

            return FileGate(self.gate)
        return self.gate


@dataclass(frozen=True)
class Settings:
    """All settings of an agent: its model, tools, rules and services, the limits of each run, whether it
    begins in plan mode, and whether it works in a git worktree of its session."""

    model: ModelOptions
    tools: ToolOptions
    policy: PolicyOptions
    services: HostServices
    limits: RunLimits
    plan: bool = False
    worktree: bool = False

    def opening(self) -> dict[str, Any]:
        """The settings that the opening of a session keeps: without secrets, all paths absolute."""
        parts = (("tools", self.tools), ("model", self.model), ("policy", self.policy))
        said = {key: value for part, group in parts for key, value in kept(part, group).items()}
        plan = {name: True for name in ("plan", "worktree") if getattr(self, name)}
        places = {**self.tools.place, **self.policy.place}
        return {**said, **places, "limits": vars(self.limits), **self.services.kept, **plan}


# Conversions of fields that an opening keeps in another form, and the fields that it always has.
KEPT_AS: dict[str, Callable[[Any], Any]] = {
    "model.model": lambda model: model.spec,
    "model.base_url": lambda model: model.base_url and redact_url(model.base_url),
    "tools.tools": lambda tools: tools.files,
    "tools.without": lambda tools: list(tools.without),
    "tools.mcp": lambda tools: [str(real_path(file)) for file in tools.mcp],
    "policy.file": lambda policy: policy.file and str(real_path(policy.file)),
    "policy.gate": lambda policy: policy.gate_file and str(policy.gate_file),
    "policy.gate_command": lambda policy: policy.gate_command and shlex.join(policy.gate_command),
    "policy.review": lambda policy: policy.review and policy.review.spec,
}
ALWAYS = ("model", "base_url", "dialect", "tools", "policy")


def kept(part: str, group: Any) -> dict[str, Any]:
    """The fields of a group of settings that the opening of a session keeps, by their names there."""
    found: dict[str, Any] = {}
    for name, row in ROWS.items():
        holder, _, keyword = row.to.partition(".")
        if holder == part and row.kept:
            value = KEPT_AS[row.to](group) if row.to in KEPT_AS else getattr(group, keyword)
            if is_given(value) or name in ALWAYS:
                found[row.kept] = value
    return found


def workspace_of(
    folder: str | Path | None, policies: PolicyOptions, tools: ToolOptions, models: ModelOptions
) -> Workspace:
    """The only folder that file tools may touch, by default the project's root, and the files in it that they
    may not. Raises UsageError."""
    root = _project_root() if folder is None else Path(folder)
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a folder.")
    require_no_worktree(real_path(root))
    mark_narrowed(root)
    files = policy_files(root, policies.file, policies.gate_file)
    secret = _secret_files(tools, policies, models)
    return Workspace(root, protected=(state_dir(), cache_dir(), agents_dir(), *files), secret=secret)


def _project_root() -> Path:
    project = find_project()
    project.require_rules()
    return project.root


def _secret_files(tools: ToolOptions, policies: PolicyOptions, models: ModelOptions) -> set[Path]:
    """The files with access data for other machines and models: keys and URLs. No tool may read them."""

    files = {keys_path(), user_config(), user_servers(), *map(Path, tools.mcp)}
    files |= {catalog_key_path(key) for key in (None, tools.key, policies.key)}
    files |= {models.key_file} if models.key_file is not None else set()
    for url in (tools.remote, policies.shared):
        if isinstance(url, str):
            files |= {Path(url[1:])} if url.startswith("@") else set()
        elif url is not None:
            given: Any = url
            files |= {*getattr(given, "url", given).files}  # of a catalog, or the URL itself
    return files


ToolChoice = ToolSource | Iterable[ToolSource] | ToolTable | ToolOptions
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


def run_limits(given: RunLimits | None, config: Config = NO_CONFIG) -> RunLimits:
    """The limits of a run; a configured value replaces a default."""
    limits = RunLimits() if given is None else given
    if not isinstance(limits, RunLimits):
        raise UsageError(f"limits are RunLimits(steps=10, …), not {given!r}.")
    default = vars(RunLimits())
    configured: dict[str, Any] = {**config.budget, "reply_tokens": config.reply_tokens}
    unsaid = {name: one for name, one in configured.items() if vars(limits)[name] == default[name]}
    limits = replace(limits, **unsaid)
    for name in ("reply_tokens", "tokens", "cost", "seconds", "parallel"):
        value = getattr(limits, name)
        whole = name not in ("cost", "seconds")
        kinds = (int,) if whole else (int, float)
        if value is not None and (type(value) not in kinds or not (1 if whole else 0) <= value < math.inf):
            what = "a whole number, 1 or more" if whole else "a number from 0"
            raise UsageError(f"{name} of RunLimits must be {what}, not {value!r}.")
    return limits


def with_longest(limits: RunLimits, reply: int | None) -> RunLimits:
    """These limits, with the maximum of reply tokens if it is given. Raises UsageError."""
    if reply is None:
        return limits
    if type(reply) is not int or reply < 1:
        raise UsageError(f"reply_tokens must be None or a whole number, 1 or more, not {reply!r}.")
    return replace(limits, reply_tokens=reply)


# The keywords of Agent

PARTS: dict[str, tuple[type[Any], Callable[[Any], Any]]] = {
    "tools": (ToolOptions, lambda given: tool_options(() if given is None else given)),
    "model": (ModelOptions, model_options),
    "policy": (PolicyOptions, policy_options),
    "services": (HostServices, service_options),
    "limits": (RunLimits, run_limits),
}


def takes_fields(make: Callable[P, T]) -> Callable[P, T]:
    """Let the maker of an agent take the fields of its option groups as keywords too, if only one group has a
    field of that name: ``Agent(base_url="http://…")``. Raises TypeError with the nearest name."""
    written = signature(make)
    own = {name: one for name, one in written.parameters.items() if one.kind is not one.VAR_KEYWORD}

    @functools.wraps(make)
    def taking(*args: P.args, **named: P.kwargs) -> T:
        found: dict[str, dict[str, Any]] = {}
        for name in named.keys() - own.keys():
            holders = [part for part, (group, _) in PARTS.items() if name in group.__dataclass_fields__]
            if not holders:
                known = [*own, *(one.name for group, _ in PARTS.values() for one in fields(group))]
                raise TypeError(f"Agent has no keyword {name!r}.{did_you_mean(name, known)}")
            if len(holders) > 1:
                ways = " or ".join(f"{PARTS[part][0].__name__}({name}=…)" for part in holders)
                raise TypeError(f"Agent has no keyword {name!r}: give {ways}.")
            found.setdefault(holders[0], {})[name] = named.pop(name)
        for part, values in found.items():
            named[part] = replace(PARTS[part][1](named.get(part)), **values)
        return make(*args, **named)

    # ``help`` shows the named parameters; type checkers see the fields too.
    taking.__signature__ = written.replace(parameters=list(own.values()))  # type: ignore[attr-defined]
    return taking
