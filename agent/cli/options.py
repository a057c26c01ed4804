"""The command line as data: typed options, those of a session that is taken over, and exit codes.

Each field of an options class is an option of the command line. Knows no single command and runs none.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, field, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeVar

from quoth.agent.settings import FLAGS, GROUPS, ROWS, CommandSettings, is_given
from quoth.agent.terminal.output import print_line
from quoth.tools.advice import instead
from quoth.tools.errors import UsageError, did_you_mean, nearest
from quoth.tools.policy.project import Project, find_project, given_project
from quoth.tools.storage.paths import is_missing
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.storage.database import Store


# The parser: fields of options classes become its options, and a mistake a sentence.

# The positions of an option that may be repeated: before the command, before its action, or after both.
PLACES = BEFORE, WITHIN, AFTER = "_before", "_within", "_after"
OF_A_RUN = ("limits", "plan")  # groups of settings for commands that name them
OF_ALL = ("common", "asking")  # groups for every command, also one that asks nothing


def options_of(kind: type[Any]) -> list[Field[Any]]:
    """The options that a command with these takes."""
    left_out = set(OF_A_RUN) - set(kind.groups.split())
    rows = ((one, one.metadata.get("row")) for one in fields(kind) if one.metadata)
    return [one for one, row in rows if row is None or row.group not in left_out]


def is_repeated(one: Field[Any]) -> bool:
    """Whether an option may be given several times, before and after the command."""
    return one.metadata.get("action") == "append"


# argparse asks the disk for a translation of each of its words, of which there is none: half of its time.
vars(argparse)["_"] = str


class HelpText(argparse.HelpFormatter):
    """Help that is never wider than 80 columns."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=min(80, shutil.get_terminal_size().columns) - 2)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError for a mistake, and returns only the options given."""

    fill: Callable[[Parser], None] | None = None  # adds the options of a command that is the one given
    words: Sequence[str] = ()  # the command line

    def __init__(self, **options: Any) -> None:
        super().__init__(
            **options,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
            formatter_class=HelpText,
            add_help=False,
        )
        self._positionals.title = "arguments"
        self.add_argument("-h", "--help", action="help", help="print this help and exit")

    def parse_known_args(self, *words: Any, **more: Any) -> Any:
        if self.fill is not None:
            fill, self.fill = self.fill, None
            fill(self)
        self.words = list(words[0] or ()) if words else []
        return super().parse_known_args(*words, **more)

    def format_usage(self) -> str:
        """The command with its own options; those of the groups are ``[OPTION ...]``."""
        own = [one for one in self._optionals._group_actions if one.dest != "help"]
        others = argparse.Action([], "others", metavar="[OPTION ...]")
        text = self._get_formatter()
        text.add_usage(
            None, [*own, others, *self._positionals._group_actions], self._mutually_exclusive_groups
        )
        return text.format_help()

    def format_help(self) -> str:
        """What the command does, its arguments and options, then the groups of settings, and examples."""
        from quoth.agent.cli.examples import EXAMPLES  # here: one reads help seldom

        text = self._get_formatter()
        text.add_text(self.description)
        for group in self._action_groups:
            text.start_section(group.title)
            text.add_arguments(group._group_actions)
            text.end_section()
        lines = EXAMPLES.get(self.prog.removeprefix("quoth").strip(), ())
        examples = ["", "examples:", *(f"  {line}" for line in lines), ""] if lines else []
        return self.format_usage() + "\n" + text.format_help() + "\n".join(examples)

    def error(self, message: str) -> NoReturn:
        message = message[:1].upper() + message[1:].rstrip(".")
        raise UsageError(f"{message}. See: {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        print_line(message.rstrip("\n"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        known = list(action.choices or ())
        if action.dest in ("command", "action") and value not in known:
            what = str(action.dest)
            before = self.words[: self.words.index(value)] if value in self.words else ()
            options = (word.partition("=")[0] for word in before if word.startswith("--"))
            if wrong := next((one for one in options if one not in self._option_string_actions), ""):
                ours = [one for one in self._option_string_actions if one.startswith("--")]
                raise no_option(wrong, self.prog, ours, f"; the options of a {what} go after it.")
            raise no_command(what, str(value), self.prog, known)
        super()._check_value(action, value)

    def add_fields(self, kind: type[Any], place: str) -> None:
        """Add the options of ``kind``; help shows the settings of its groups, and AFTER the command there are
        no others. ``place``, of PLACES, ends the attribute of an option that may be repeated, because a later
        list would replace an earlier one."""
        shown = {"common", *kind.groups.split()}
        titles = dict.fromkeys(GROUPS.values())
        parts: dict[str, Any] = {title: self.add_argument_group(title) for title in titles}
        for one in options_of(kind):
            more = {name: value for name, value in one.metadata.items() if name != "flags"}
            row, rivals = more.pop("row", None), more.pop("rivals", "")
            where: Any = self
            if rivals:
                where = parts.get(rivals) or parts.setdefault(rivals, self.add_mutually_exclusive_group())
            elif row and not shown & {row.group, *one.metadata["flags"]}:
                if place == AFTER and row.group not in OF_ALL:
                    continue
                more["help"] = argparse.SUPPRESS
            elif row:
                where = parts[GROUPS[row.group]]
            if flags := one.metadata["flags"]:
                where.add_argument(
                    *flags, dest=f"{one.name}{place}" if is_repeated(one) else one.name, **more
                )
            else:
                where.add_argument(one.name, **more)


def no_command(what: str, word: str, program: str, known: Sequence[str]) -> UsageError:
    """The error for a ``what``, command or action, that ``program`` has not."""
    whole = f" of {program}" if what == "action" else ""
    meant = instead("command").get(word.lower(), "") if what == "command" else ""
    hint = f" Did you mean {meant}?" if meant and meant.split(",")[0].split()[0] in (*known, "quoth") else ""
    hint = hint or did_you_mean(word, known, f"The {what}s{whole} are")
    return UsageError(f"There is no {what} {visible(word)}{whole}.{hint}")


def no_option(word: str, program: str, known: Sequence[str], where: str) -> UsageError:
    """The error for an option that ``program`` has not; ``where`` is said if none ``known`` is near."""
    near = nearest(word.lstrip("-"), [one.lstrip("-") for one in known if abs(len(one) - len(word)) < 4])
    return UsageError(
        f"{program} has no option {visible(word)}{where if near is None else f'. Did you mean --{near}?'}"
    )


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


class Options(CommandSettings):
    """The options that every command has, with those of its ``groups`` of settings in its help.

    Before the command every setting but those of a run is taken, so that a script gives all the same.
    After the command only the settings that it uses are taken."""

    groups: ClassVar[str] = ""  # of settings, or the flags of some, beside the common ones
    works_in_workspace: ClassVar[bool] = True  # whether the command first prints where that is
    limits: Mapping[str, Any] | None = None  # those of the session that is continued

    @property
    def project(self) -> Project:
        """Where the workspace is: in the folder that is named, else found. Raises UsageError."""
        return find_project() if self.workspace is None else given_project(self.workspace)

    @property
    def folder(self) -> Path:
        """The path of the workspace, relative if the current folder is in it. Raises UsageError."""
        project = self.project
        return Path() if project.root == project.here else project.root

    def like(self, *words: str) -> str:
        """Return a ``quoth`` command with the tools and rules of this one, quoted for a shell."""
        files = (("--tools", self.tools), ("--without", self.without), ("--source", self.sources))
        given = [word for flag, values in files for value in values for word in (flag, value)]
        judges = (
            *(("--policy", self.policy), ("--gate", self.gate), ("--gate-command", self.gate_command)),
            ("--review", self.review),
        )
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
        if self.shared:  # a typed URL contains no password
            given = {"--shared": self.shared, "--prefix": self.prefix, "--key": self.key}
            place += [word for name, value in given.items() if value for word in (name, value)]
        return " ".join(["quoth", *(shlex.quote(word) for word in (*words, *place))]) + also


THOUGHTS = "print the model's thoughts too, dimmed"
WORK = "agent model tools policy services memory redis session asking"  # what an agent needs
REMOTE = "--remote --local --prefix --key --redis-ca"  # what the table of remote tools needs
SHARED = "--shared --prefix --key --redis-ca"  # what shared requests need


class AgentOptions(Options):
    """Options of a command that runs calls."""

    groups = WORK


class ReplOptions(AgentOptions):
    """Options of the REPL."""

    thoughts: bool = switch("--thoughts", THOUGHTS)


class RunOptions(Options):
    """Options of a command that asks a model."""

    groups = f"{WORK} limits"


class StreamOptions(RunOptions):
    """Also how a run is shown while it works."""

    groups = f"{RunOptions.groups} plan"
    stream: bool = switch("--stream", "with --json: print each event as a line of JSON when it happens")
    thoughts: bool = switch("--thoughts", THOUGHTS)


class CatalogOptions(Options):
    groups = "--policy --tools --prefix --key --redis-ca"
    redis: str | None = option(
        "--redis",
        "URL",
        "Redis to use: redis://…, rediss://… or @FILE that contains the URL (default: QUOTH_REDIS)",
    )


class OfferOptions(CatalogOptions):
    """Options of the commands that offer tools to other machines: quoth catalog and quoth worker."""

    allow: Sequence[str] = option(
        "--allow",
        "TOOL=USER,…",
        "let only these users call a tool; may be repeated (default: every user may)",
        action="append",
        default=(),
    )


# Commands

OptionsT = TypeVar("OptionsT", bound=Options)


Actions = Mapping[str, tuple[Callable[[Any], int], str]]  # of a command: what runs each, and what it does


def add_command(parsers: Any, name: str, about: str, find: Callable[[], Any]) -> None:
    """Add a command; ``find`` gives the function that runs it, which is annotated with its options, or its
    Actions. It is asked when the command is given."""
    parser = parsers.add_parser(name, help=about, description=about)

    def fill(parser: Parser) -> None:
        found = find()
        if isinstance(found, Mapping):
            parser.add_fields(Options, WITHIN)
            actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
            for action, (do, said) in found.items():
                add_command(actions, action, said, partial(lambda do: do, do))
        else:
            kind = vars(import_module(found.__module__))[found.__annotations__["options"]]
            parser.add_fields(kind, AFTER)
            parser.set_defaults(kind=kind, do=found)

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
            f"{command}: unexpected argument {word}. If it is part of a text or form, put the whole"
            " in quotes."
        )
    name = word.partition("=")[0]
    if name in FLAGS.values():
        raise UsageError(f"{command} does not use {name}. See: {command} --help")
    known = [one.metadata["flags"][0] for one in options_of(kind) if one.metadata["flags"]]

    raise no_option(name, command, known, f". See: {command} --help")


PLACE = ("prefix", "key", "redis_ca")  # they go with the remote or shared server that is taken


def take_over(options: OptionsT, store: Store | None, session: str, user: str) -> OptionsT:
    """Return the options, with those of the session for the ones not given now. Missing files of tools are
    left out; AsyncAgent.changes reports them. Raises UsageError if an imported session would choose code,
    rules or a server, or if the address of the server held a secret."""
    from quoth.agent.session.session import Session
    from quoth.tools.call.redaction import SECRET
    from quoth.tools.history.transcript import Transcript

    said: dict[str, Any] = {}
    foreign = False
    if store is not None:
        known = Session(Transcript(lambda: store), session, user, Path())
        said, foreign = known.given(), known.foreign()
    now = vars(options)
    left_out = {name for name in ("remote", *PLACE) if options.remote}
    left_out = left_out - {*PLACE} if said.get("shared") and not options.shares else left_out
    left_out |= {"shared"} if options.shares else set()
    left_out |= {"search_keys"} if options.search and "://" not in options.search else set()  # it is a folder
    more: dict[str, Any] = {
        name: said[row.kept]
        for name, row in ROWS.items()
        if row.kept in said and row.kept != "limits" and name not in left_out
        if is_given(said[row.kept]) and now[name] in (getattr(CommandSettings, name), [])
    }
    for name in more.keys() & {"tools", "mcp"} if not foreign else ():
        more[name] = [file for file in more[name] if not is_missing(file)]
    for name in more.keys() & {"sources", "channels"}:
        more[name] = [f"{one}={where}" for one, where in more[name].items()]
    if said.get("search") == "" and not (options.search or os.environ.get("QUOTH_SEARCH")):
        raise UsageError(
            f"Session {session} searched at an address that is not kept. Give it again: --search URL, or in"
            " QUOTH_SEARCH."
        )
    if "channels" in more:
        more["channels"] = _with_address(more["channels"], session)
    if foreign and (outside := [name for name in more if reaches_out(name, more[name])]):
        values = ((name, more[name] if isinstance(more[name], list) else [more[name]]) for name in outside)
        chosen = " ".join(f"{FLAGS[name]} {shlex.quote(one)}" for name, several in values for one in several)
        raise UsageError(
            f"Session {session} was imported, and what runs code, makes rules or names a server is for you to"
            f" choose: it had {chosen}. Give these, or others."
        )
    if SECRET in str(more.get("base_url", "")):
        raise UsageError(
            f"The address of the model's server held a secret, which is not kept:"
            f" {more['base_url']}. Give it again: --base-url URL"
        )
    limits = None if foreign else said.get("limits")
    who = user if options.user is None else options.user
    return replace(options, session=session, user=who, limits=limits, **more)


def _with_address(channels: list[str], session: str) -> list[str]:
    """The channels whose address is kept. Raises UsageError if the environment does not name another."""
    from quoth.agent.run.channels import VARIABLE, channels_of

    named = channels_of((), os.environ.get(VARIABLE, ""))
    for name in (word.rstrip("=") for word in channels if word.endswith("=")):
        if name not in named:
            raise UsageError(
                f"Session {session} had the channel {name}, whose address is not kept. Give it again:"
                f" --channel {name}=URL, or in {VARIABLE}."
            )
    return [word for word in channels if not word.endswith("=")]


def reaches_out(name: str, value: Any) -> bool:
    """Whether a setting of an imported session needs the user's own choice: it runs code, makes rules or
    sends the conversation to a server. Every model but the embedded ones counts, for it names a file, a
    provider or a server's model."""
    from quoth.agent.run.subagents import EMBEDDED

    return ROWS[name].outside and not (name == "model" and value in EMBEDDED)
