"""The command line as data: typed options, the parser that is built from them, and exit codes.

Each field of an options class is an option of the command line. Knows no single command and runs none.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from quoth.agent.cli.parser import AFTER, PLACES, WITHIN, Parser, is_repeated, options_of
from quoth.agent.settings import CommandSettings
from quoth.tools.errors import UsageError
from quoth.tools.policy.project import Project, find_project, given_project

if TYPE_CHECKING:
    import argparse

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
    from quoth.agent.terminal.input import user_name

    return ["--user", user] if user and user != user_name() else []


@dataclass(init=False, repr=False, eq=False)
class Options(CommandSettings):
    """The options that every command has, with those of its ``groups`` of settings in its help.

    Every command understands every setting but those of a run, so that a script may give all the same."""

    groups: ClassVar[str] = ""  # of settings, or the flags of some, beside the common ones
    works_in_workspace: ClassVar[bool] = True  # whether the command first prints where that is
    limits: Mapping[str, Any] | None = None  # those of the session that is continued

    @property
    def project(self) -> Project:
        """Where the workspace is: in the folder that is named, else found. Raises UsageError."""
        return find_project() if self.workspace is None else given_project(self.workspace)

    @property
    def folder(self) -> Path:
        """The path of the workspace, relative where one stands in it. Raises UsageError."""
        project = self.project
        return Path() if project.root == project.here else project.root

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
        from quoth.agent.terminal.input import user_name

        return self.user or user_name()

    def typed(self, *words: str, also: str = "") -> str:
        """Return a ``quoth`` command for the same workspace, quoted for a shell; ``also`` is added as is."""
        place: list[str] = [] if self.workspace is None else ["--workspace", self.workspace]
        if self.shared:  # a URL that was typed holds no password
            given = {"--shared": self.shared, "--prefix": self.prefix, "--key": self.key}
            place += [word for name, value in given.items() if value for word in (name, value)]
        return " ".join(["quoth", *(shlex.quote(word) for word in (*words, *place))]) + also


THOUGHTS = "also what the model thinks, dimmed"
WORK = "model tools policy services memory redis session asking"  # what an agent needs


@dataclass(init=False, repr=False, eq=False)
class AgentOptions(Options):
    """Options of a command that runs calls."""

    groups = WORK


@dataclass(init=False, repr=False, eq=False)
class ReplOptions(AgentOptions):
    """Options of the REPL."""

    thoughts: bool = switch("--thoughts", THOUGHTS)


@dataclass(init=False, repr=False, eq=False)
class RunOptions(Options):
    """Options of a command that asks a model."""

    groups = f"{WORK} limits"


@dataclass(init=False, repr=False, eq=False)
class StreamOptions(RunOptions):
    """Also how a run is shown while it goes on."""

    groups = f"{RunOptions.groups} plan"
    stream: bool = switch("--stream", "with --json: each event as a line of JSON, as it happens")
    thoughts: bool = switch("--thoughts", THOUGHTS)


@dataclass(init=False, repr=False, eq=False)
class CatalogOptions(Options):
    groups = "policy --tools --prefix --key --redis-ca"
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
        parser.fill = lambda parser: parser.add_fields(kind, AFTER)
        parser.set_defaults(kind=kind, do=do)

    def group(self, name: str, help: str, add: Callable[[Commands], None]) -> None:
        """Add a command with subcommands, which ``add`` adds when the command is given."""
        parser = self._parsers.add_parser(name, help=help, description=help)

        def fill(parser: Parser) -> None:
            parser.add_fields(Options, WITHIN)
            add(Commands(parser.add_subparsers(dest="action", metavar="ACTION", required=True)))

        parser.fill = fill


def parsed(parser: Parser, words: Sequence[str]) -> tuple[Callable[[Any], int], Options]:
    """Parse a command line into the function of its command and the options. Raises UsageError."""
    found, extra = parser.parse_known_args(words)
    given = vars(found)
    if extra:
        _refuse(extra[0], " ".join(["quoth", *filter(None, [given.get("command")])]), found.kind)
    for one in filter(is_repeated, options_of(found.kind)):
        given[one.name] = [word for place in PLACES for word in given.pop(one.name + place, ())]
    names = {one.name for one in options_of(found.kind)}
    return given.get("instead", found.do), found.kind(
        **{name: value for name, value in given.items() if name in names}
    )


def _refuse(word: str, command: str, kind: type[Options]) -> NoReturn:
    if not word.startswith("-"):
        raise UsageError(
            f"{command} does not take this too: {word}. Is a text or form without quotes around it?"
        )
    name = word.partition("=")[0]
    known = [one.metadata["flags"][0] for one in options_of(kind) if one.metadata["flags"]]
    from quoth.agent.cli.mistakes import no_option  # here: most commands are there

    raise no_option(name, command, known, f". See: {command} --help")
