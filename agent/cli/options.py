"""The command line as data: typed options, the parser that is built from them, and exit codes.

Each field of an options class is an option of the command line. Knows no single command and runs none.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeVar

from quoth.agent.cli import values
from quoth.agent.cli.parser import AFTER, PLACES, WITHIN, Parser, is_repeated
from quoth.neuro.backends.providers import specs
from quoth.tools.errors import UsageError
from quoth.tools.policy.project import Project, find_project, given_project

if TYPE_CHECKING:
    from quoth.agent.run.run import RunLimits

DONE, FAILED, USAGE, PENDING, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_OF_RUN = {"done": DONE, "failed": FAILED, "pending": PENDING, "interrupted": INTERRUPTED}


def option(flags: str, metavar: str | None, help: str, default: Any = None, **more: Any) -> Any:
    """Return a dataclass field for an option; ``more`` goes to argparse. Options with the same ``rivals`` are
    mutually exclusive."""
    known = {name: value for name, value in {"metavar": metavar, **more}.items() if value is not None}
    return field(default=default, metadata={"flags": flags.split(), "help": help, **known})


def argument(metavar: str, help: str, default: Any = None, **more: Any) -> Any:
    """Return a dataclass field for a positional argument."""
    return option("", metavar, help, default, **more)


def switch(flag: str, help: str, **more: Any) -> Any:
    """Return a dataclass field that is True if its option is given."""
    return option(flag, None, help, default=False, action="store_true", **more)


def as_user(user: str | None) -> list[str]:
    """The words by which a command is typed for this user: none for the user of this machine."""
    from quoth.agent.terminal.person import user_name

    return ["--user", user] if user and user != user_name() else []


@dataclass(init=False, repr=False, eq=False)
class Options:
    """The options that every command has. One that was not given is None, empty or False.

    All subclasses share one ``__init__``: generating one for each would double a command's start time."""

    model: str | None = option("--model", "SPEC", f"{specs()} (default: see quoth models)")
    dialect: str | None = option(
        "--dialect",
        "NAME",
        "how the model calls tools: call-form, plist, json, tags, native, run (default: by model)",
    )
    after_tags: Literal["stop", "continue"] | None = option(
        "--after-tags",
        "WHAT",
        "after a reply with calls, stop or continue (default: stop in a chat, else continue)",
        choices=("stop", "continue"),
    )
    belt: Literal["full", "search"] | None = option(
        "--belt", "KIND", "full, or search: one line a tool", choices=("full", "search")
    )
    base_url: str | None = option("--base-url", "URL", "the address of the model's server")
    instructions: str | None = option(
        "--instructions", "TEXT", "what the model is told before any task, or @FILE that holds it"
    )
    temperature: float | None = option(
        "--temperature", "T", "how freely the model chooses its words, from 0 to 2", type=values.temperature
    )
    timeout: float | None = option(
        "--timeout",
        "SECONDS",
        "how long the model's server may be silent (default: 120)",
        type=values.at_least_one,
    )
    api_key: str | None = option(
        "--api-key",
        "@FILE",
        "the key of the model's server (default: see quoth models)",
        type=values.key_file,
    )
    reply_tokens: int | None = option(
        "--max-reply-tokens",
        "N",
        "tokens one reply of the model may have (default: by what it can read)",
        type=values.at_least_one,
    )
    workspace: str | None = option(
        "--workspace", "DIR", "the folder the file tools may touch (default: the project's root)"
    )
    tools: Sequence[str] = option(
        "--tools", "FILE", "a .hy or .py file of tools; may be repeated", action="append", default=()
    )
    without: Sequence[str] = option(
        "--without", "NAME", "leave out a tool that ships; may be repeated", action="append", default=()
    )
    remote: str | None = option(
        "--remote", "URL", "redis://…, where workers offer tools (a password: in QUOTH_REDIS, or @FILE)"
    )
    local: Sequence[str] = option(
        "--local",
        "TOOL",
        "keep this tool here though it is remote too; may be repeated",
        action="append",
        default=(),
    )
    prefix: str | None = option("--prefix", "NAME", "what the keys in Redis begin with (default: sg)")
    key: str | None = option("--key", "FILE", "the key shared with the workers (default: QUOTH_CATALOG_KEY)")
    redis_ca: str | None = option("--redis-ca", "FILE", "the CA of a rediss:// server")
    shared: str | None = option(
        "--shared", "URL", "redis://…, where machines share limits and requests (default: QUOTH_SHARED)"
    )
    sources: Sequence[str] = option(
        "--source",
        "NAME=PATH",
        "a folder or file that tools may read; may be repeated",
        action="append",
        default=(),
    )
    channels: Sequence[str] = option(
        "--channel",
        "NAME=WHERE",
        "a file or web address that messages can be sent to; may be repeated",
        action="append",
        default=(),
    )
    knowledge: bool = switch("--knowledge", "gather sources, claims and learnings in the folder knowledge/")
    search: str | None = option(
        "--search", "WHERE", "where research looks: a SearXNG server, an address with {query}, or a folder"
    )
    search_keys: str | None = option(
        "--search-keys", "MAP", "where a server's answer has results=,title=,url=,text="
    )
    policy: str | None = option("--policy", "FILE", "rules for this run, beside yours and the workspace's")
    gate: str | None = option("--gate", "FILE.hy", "a reviewer of the calls of tools that want one")
    gate_command: str | None = option(
        "--gate-command", "CMD", "a program that judges every call: JSON on stdin, exit 0 allows, 2 denies"
    )
    boundary: str | None = option(
        "--boundary",
        "KIND",
        "what confines programs: bubblewrap, landlock, seatbelt or none (default: the best that works)",
        choices=("bubblewrap", "landlock", "seatbelt", "none"),
    )
    memory: str | None = option(
        "--memory",
        "URL",
        "postgresql://…, the memory (default: QUOTH_MEMORY, or that of the workspace)",
    )
    user: str | None = option("--user", "NAME", "who is asking (default: the login name)", type=values.a_name)
    session: str | None = option(
        "--session", "ID", "the session the calls belong to (default: a new one)", type=values.a_name
    )
    trace: str | None = option(
        "--trace", "FILE", "append a line of JSON to FILE for each run, turn, request and call"
    )
    trace_content: bool = switch(
        "--trace-content", "also prompts, replies, arguments and results, without secrets"
    )
    json: bool = switch("--json", "machine-readable, on stdout alone")
    yes: bool = switch("--yes", "allow what would be asked")
    no_input: bool = switch("--no-input", "never ask; such a call stays pending")
    debug: bool = switch("--debug", "show the traceback of each error on stderr")
    works_in_workspace: ClassVar[bool] = True  # whether the command first prints where that is
    limits: Mapping[str, Any] | None = None  # those of the session that is continued
    planning: bool = False  # whether that session is in plan mode

    def __init__(self, **given: Any) -> None:
        vars(self).update({one.name: one.default for one in fields(self)} | given)

    @property
    def project(self) -> Project:
        """Where the workspace is: in the folder that is named, else found. Raises UsageError."""
        return find_project() if self.workspace is None else given_project(self.workspace)

    @property
    def folder(self) -> Path:
        """The path of the workspace, relative where one stands in it. Raises UsageError."""
        project = self.project
        return Path() if project.root == project.here else project.root

    @property
    def plans(self) -> bool:
        """Whether a run is in plan mode."""
        given = vars(self).get("plan")
        return self.planning if given is None else bool(given)

    def like(self, *words: str) -> str:
        """Return a ``quoth`` command with the tools and rules of this one, quoted for a shell."""
        files = (("--tools", self.tools), ("--without", self.without), ("--source", self.sources))
        given = [word for flag, values in files for value in values for word in (flag, value)]
        judges = (("--policy", self.policy), ("--gate", self.gate), ("--gate-command", self.gate_command))
        given += [word for flag, value in judges if value for word in (flag, value)]
        return self.typed(*words, *given, *as_user(self.user), *(["--knowledge"] if self.knowledge else []))

    @property
    def memory_url(self) -> str | None:
        """The URL of the memory's database; None for that of the workspace."""
        return self.memory or os.environ.get("QUOTH_MEMORY") or None

    @property
    def shares(self) -> bool:
        """Whether limits and requests are shared with other machines."""
        return bool(self.shared or os.environ.get("QUOTH_SHARED"))

    @property
    def key_prefix(self) -> str:
        """What the keys in Redis begin with."""
        from quoth.tools.catalog.store import PREFIX

        return self.prefix or PREFIX

    @property
    def asker(self) -> str:
        """The user's name; the login name by default."""
        from quoth.agent.terminal.person import user_name

        return self.user or user_name()

    def typed(self, *words: str, also: str = "") -> str:
        """Return a ``quoth`` command for the same workspace, quoted for a shell; ``also`` is added as is."""
        place: list[str] = [] if self.workspace is None else ["--workspace", self.workspace]
        if self.shared:  # a URL that was typed holds no password
            given = {"--shared": self.shared, "--prefix": self.prefix, "--key": self.key}
            place += [word for name, value in given.items() if value for word in (name, value)]
        return " ".join(["quoth", *(shlex.quote(word) for word in (*words, *place))]) + also


@dataclass(init=False, repr=False, eq=False)
class RunOptions(Options):
    """Options for the limits of a run, named as in RunLimits. A test compares the defaults in the help."""

    steps: int | None = option(
        "--max-steps", "N", "at most so many turns of the model (default: 25)", type=values.at_least_one
    )
    calls: int | None = option(
        "--max-calls", "N", "at most so many calls (default: 100)", type=values.at_least_one
    )
    tokens: int | None = option(
        "--max-tokens",
        "N",
        "stop before a request that may take more tokens, in and out (default: no bound)",
        type=values.at_least_one,
    )
    cost: float | None = option(
        "--max-cost",
        "USD",
        "stop before a request that may cost more (default: no bound; needs quoth[prices])",
        type=values.dollars,
    )
    seconds: float | None = option(
        "--max-seconds",
        "N",
        "stop after so many seconds, without those in which you are asked (default: no bound)",
        type=values.at_least_one,
    )
    repeats: int | None = option(
        "--max-repeats",
        "N",
        "stop after the same call was repeated N times (default: 3)",
        type=values.at_least_one,
    )
    context: int | None = option(
        "--max-context",
        "N",
        "tokens the model can read at once (default: as known of the model)",
        type=values.at_least_one,
    )
    window: float | None = option(
        "--repeat-window",
        "SECONDS",
        "answer a call that comes back within it by its earlier result; 0: never (default: 300)",
        type=values.seconds,
    )


LIMITS = [one for one in fields(RunOptions) if one.name not in {one.name for one in fields(Options)}]


def limits_of(options: Options, before: Mapping[str, Any] | None = None) -> RunLimits:
    """Return the limits of a run: the options given, then the session's limits ``before``, then defaults.
    Unknown limits in ``before``, from another version, are ignored."""
    from quoth.agent.run.run import RunLimits

    typed = vars(options)
    given = {name: typed.get(name) for name in (*(one.name for one in LIMITS), "reply_tokens")}
    return replace(
        RunLimits.of(before or {}), **{name: value for name, value in given.items() if value is not None}
    )


@dataclass(init=False, repr=False, eq=False)
class StreamOptions(RunOptions):
    """Also how a run is shown while it goes on."""

    stream: bool = switch("--stream", "with --json: each event as a line of JSON, as it happens")
    plan: bool | None = option(
        "--plan",
        None,
        "plan mode: what does more than read is not made, and becomes a step of a flight plan",
        action=argparse.BooleanOptionalAction,
    )


@dataclass(init=False, repr=False, eq=False)
class CatalogOptions(Options):
    redis: str | None = option(
        "--redis", "URL", "redis://…, rediss://… or @FILE that holds it (default: QUOTH_REDIS)"
    )


@dataclass(init=False, repr=False, eq=False)
class OfferOptions(CatalogOptions):
    """For whoever offers tools to other machines: quoth catalog and quoth worker."""

    allow: Sequence[str] = option(
        "--allow",
        "TOOL=USER,…",
        "who alone may call a tool; may be repeated (default: everybody)",
        action="append",
        default=(),
    )


# The parser

OptionsT = TypeVar("OptionsT", bound=Options)


class Commands:
    """The registry to which a file of commands adds its own."""

    def __init__(self, parsers: argparse._SubParsersAction[Parser], whole: Parser | None = None) -> None:
        self._parsers = parsers
        self.whole = whole  # the parser of the command line, for whoever looks at all of it

    def add(self, name: str, help: str, kind: type[OptionsT], do: Callable[[OptionsT], int]) -> None:
        """Add a command that parses its options as ``kind`` and runs ``do``, which returns the exit code."""
        parser = self._parsers.add_parser(name, help=help, description=help)
        parser.fill = lambda parser: parser.add_fields(kind, AFTER, Options)
        parser.set_defaults(kind=kind, do=do)

    def group(self, name: str, help: str, add: Callable[[Commands], None]) -> None:
        """Add a command with subcommands, which ``add`` adds when the command is given."""
        parser = self._parsers.add_parser(name, help=help, description=help)

        def fill(parser: Parser) -> None:
            parser.add_fields(Options, WITHIN, Options)
            add(Commands(parser.add_subparsers(dest="action", metavar="ACTION", required=True)))

        parser.fill = fill


def parsed(parser: Parser, words: Sequence[str]) -> tuple[Callable[[Any], int], Options]:
    """Parse a command line into the function of its command and the options. Raises UsageError."""
    found, extra = parser.parse_known_args(words)
    given = vars(found)
    if extra:
        _refuse(extra[0], " ".join(["quoth", *filter(None, [given.get("command")])]), found.kind)
    for one in filter(is_repeated, fields(found.kind)):
        given[one.name] = [word for place in PLACES for word in given.pop(one.name + place, ())]
    names = {one.name for one in fields(found.kind)}
    return given.get("instead", found.do), found.kind(
        **{name: value for name, value in given.items() if name in names}
    )


def _refuse(word: str, command: str, kind: type[Options]) -> NoReturn:
    if not word.startswith("-"):
        raise UsageError(
            f"{command} does not take this too: {word}. Is a text or form without quotes around it?"
        )
    name = word.partition("=")[0]
    known = [one.metadata["flags"][0] for one in fields(kind) if one.metadata.get("flags")]
    from quoth.agent.cli.mistakes import no_option  # here: most commands are there

    raise no_option(name, command, known, f". See: {command} --help")
