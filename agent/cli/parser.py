"""The parser of the command line: fields of options classes become its options, and a mistake a sentence.

Knows fields, argparse and words; it must not know which options there are.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from typing import Any, NoReturn

from quoth.agent.settings import GROUPS
from quoth.agent.terminal.output import print_line
from quoth.tools.errors import UsageError, did_you_mean, nearest
from quoth.tools.visible import visible

# Where an option stands that may be repeated: before the command, before its action, or after both.
PLACES = BEFORE, WITHIN, AFTER = "_before", "_within", "_after"
OF_A_RUN = ("limits", "plan")  # groups of settings that only commands take which name them


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


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises UsageError for a mistake, and returns only the options given."""

    fill: Callable[[Parser], None] | None = None  # adds the options of a command that is the one given
    words: Sequence[str] = ()  # what is parsed

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False, argument_default=argparse.SUPPRESS)

    def parse_known_args(self, *words: Any, **more: Any) -> Any:
        if self.fill is not None:
            fill, self.fill = self.fill, None
            fill(self)
        self.words = list(words[0] or ()) if words else []
        return super().parse_known_args(*words, **more)

    def format_help(self) -> str:
        """The help, and below it examples of the command, if it has any."""
        from quoth.agent.cli.examples import EXAMPLES  # here: one reads help seldom

        if not (lines := EXAMPLES.get(self.prog.removeprefix("quoth").strip())):
            return super().format_help()
        return "\n".join([super().format_help(), "examples:", *(f"  {line}" for line in lines), ""])

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
                raise no_option(wrong, self.prog, ours, f"; those of each {what} stand behind it.")
            raise no_command(what, str(value), self.prog, known)
        super()._check_value(action, value)

    def add_fields(self, kind: type[Any], place: str) -> None:
        """Add the options of ``kind``; help shows the settings of its groups. ``place``, of PLACES, ends the
        attribute of an option that may be repeated, because a later list would replace an earlier one."""
        shown = {"common", *kind.groups.split()}
        parts: dict[str, Any] = {}  # of the help, and options that exclude each other
        for one in options_of(kind):
            more = {name: value for name, value in one.metadata.items() if name != "flags"}
            row, rivals = more.pop("row", None), more.pop("rivals", "")
            where: Any = self
            if rivals:
                where = parts.get(rivals) or parts.setdefault(rivals, self.add_mutually_exclusive_group())
            elif row and not shown & {row.group, *one.metadata["flags"]}:
                more["help"] = argparse.SUPPRESS
            elif row:
                title = GROUPS[row.group]
                where = parts.get(title) or parts.setdefault(title, self.add_argument_group(title))
            if flags := one.metadata["flags"]:
                where.add_argument(
                    *flags, dest=f"{one.name}{place}" if is_repeated(one) else one.name, **more
                )
            else:
                where.add_argument(one.name, **more)


# What other programs call our commands, where the spelling alone would not lead there.
MEANT = {
    word: ours
    for ours, words in {
        "run": "ask prompt do exec task query",
        "chat": "talk",
        "sessions": "ls list history",
        "log": "show cat transcript",
        "rm": "delete remove",
        "resume": "continue",
        "models": "login logout auth key keys providers",
        "tools": "functions",
        "fly": "flight plan plans",
        "policy": "rules permissions",
        "pending": "requests approvals",
        "new": "init create scaffold template",
        "doctor": "check status diagnose info health",
        "help": "man manual docs",
        "quoth, without a command": "repl shell",
        "quoth --version": "version",
        "quoth tools test": "test",
    }.items()
    for word in words.split()
}


def no_command(what: str, word: str, program: str, known: Sequence[str]) -> UsageError:
    """The error for a ``what``, command or action, that ``program`` has not."""
    whole = f" of {program}" if what == "action" else ""
    meant = MEANT.get(word.lower(), "") if what == "command" else ""
    hint = f" Did you mean {meant}?" if meant and meant.split(",")[0].split()[0] in (*known, "quoth") else ""
    hint = hint or did_you_mean(word, known) or f" The {what}s{whole} are {', '.join(known)}."
    return UsageError(f"There is no {what} {visible(word)}{whole}.{hint}")


def no_option(word: str, program: str, known: Sequence[str], where: str) -> UsageError:
    """The error for an option that ``program`` has not; ``where`` is said if none ``known`` is near."""
    near = nearest(word.lstrip("-"), [one.lstrip("-") for one in known if abs(len(one) - len(word)) < 4])
    return UsageError(
        f"{program} has no option {visible(word)}{where if near is None else f'. Did you mean --{near}?'}"
    )
