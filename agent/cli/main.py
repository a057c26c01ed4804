"""The command ``quoth``: parses the command line, runs one command, and returns its exit code.

Knows which files have commands and how errors are reported. Each file adds its commands with ``add`` and
imports what they need only when they run.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from quoth.agent.cli.common import interrupted
from quoth.agent.cli.options import DONE, FAILED, USAGE, Commands, Options, ReplOptions, parsed
from quoth.agent.cli.parser import BEFORE, Parser
from quoth.agent.cli.project import tell_workspace
from quoth.agent.terminal.output import (
    OutputError,
    complain,
    let_go_of_stdout,
    open_streams,
    print_json,
    print_line,
)
from quoth.tools.errors import QuothError, StoreError

# Which commands each file adds, in the order of the help.
FILES = {
    "run": "run",
    "chat": "chat",
    "models": "models",
    "call": "call read",
    "tools": "tools belt",
    "program": "eval",
    "flight": "fly",
    "audit": "audit",
    "policy": "policy trust",
    "consent": "pending approve deny",
    "answer": "answer",
    "memory": "memory",
    "knowledge": "knowledge",
    "catalog": "catalog",
    "remind": "remind",
    "session": "sessions log fork export import rm",
    "gc": "gc",
    "undo": "undo diff",
    "stats": "stats",
    "resume": "resume",
    "replay": "replay lift",
    "worker": "worker",
    "manual": "help",
    "doctor": "doctor",
    "new": "new",
    "completion": "completion",
}


HELP = {
    "a model": "run chat fly resume models",
    "tools": "call eval read tools belt",
    "rules": "policy trust audit pending approve deny answer",
    "sessions": "sessions log diff undo stats gc rm replay lift fork export import",
    "memory": "memory knowledge remind",
    "machines": "worker catalog",
    "quoth itself": "help doctor new completion",
}
SHOWN = ("model", "workspace", "tools", "policy", "user", "session", "json", "yes")  # in the help of quoth


class Whole(Parser):
    """The parser of the whole command line, whose help fits one screen."""

    def format_help(self) -> str:
        from quoth.agent.cli.examples import EXAMPLES  # here: one reads help seldom

        rows: dict[str, Any] = {one.dest.removesuffix(BEFORE): one for one in self._actions}
        rows["model"].help = "openai:NAME, local, … (default: see quoth models)"
        shown = [
            (f"{one.option_strings[0]} {one.metavar or ''}", one.help) for one in map(rows.__getitem__, SHOWN)
        ]
        return "\n".join(
            [
                "usage: quoth [OPTION ...] [COMMAND ...]\n",
                f"{self.description}\n",
                *(f"  {title:<13} {names}" for title, names in HELP.items()),
                "",
                *(f"  {flag:<17} {told}" for flag, told in shown),
                "\nquoth COMMAND --help shows a command, quoth help settings every setting. Examples:",
                *(f"  {line}" for line in EXAMPLES[""]),
                "",
            ]
        )


def parser(words: Sequence[str] = ()) -> Parser:
    """Return the parser of the whole command line; where ``words`` begin with a command, of the commands of
    its file alone. Common options may precede or follow the command."""
    whole = Whole(prog="quoth", description="A homoiconic agent loop. Without a command: the REPL.")
    whole.add_fields(ReplOptions, BEFORE)
    whole.add_argument(
        "--version", dest="instead", action="store_const", const=version, help="print the version"
    )
    whole.set_defaults(kind=ReplOptions, do=_repl)
    commands = Commands(whole.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser), whole)
    for file in files_of(words):
        import_module(f"quoth.agent.cli.{file}").add(commands)
    return whole


def files_of(words: Sequence[str]) -> list[str]:
    """The files whose commands a command line needs. Completion is of all commands."""
    named = [file for file, names in FILES.items() if words and words[0] in names.split()]
    return list(FILES) if not named or named == ["completion"] else named


def _repl(options: ReplOptions) -> int:
    from quoth.agent.cli import run  # here: most command lines name a command

    return run.repl(options)


def version(options: Options) -> int:
    from importlib.metadata import version

    number = version("quoth")
    print_json({"version": number}) if options.json else print_line(f"quoth {number}")
    return DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. A user's mistake prints a sentence, no traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    open_streams()
    try:
        if "--debug" not in words:
            return _main(words, "--json" in words)
        from quoth.agent.terminal.output import tracebacks  # here: most commands show none

        with tracebacks():
            return _main(words, "--json" in words, debug=True)
    except BrokenPipeError:  # whoever read our output has enough
        let_go_of_stdout()
        return DONE
    except OutputError as error:
        let_go_of_stdout()
        complain(str(error))
        return FAILED


def _main(words: Sequence[str], as_json: bool, debug: bool = False) -> int:
    try:
        do, options = parsed(parser(words), words)
        if options.boundary:
            os.environ["QUOTH_BOUNDARY"] = options.boundary  # for this process and a quoth that it starts
        if options.works_in_workspace and do is not version:
            tell_workspace(options)
        return do(options)
    except OutputError:
        raise
    except KeyboardInterrupt:
        return interrupted(as_json)
    except QuothError as error:
        own = isinstance(error, StoreError)  # nobody's mistake
        if debug:
            from quoth.agent.terminal.output import show_traceback

            show_traceback(error)
        if as_json:
            print_json({"status": "error" if own else "invalid", "message": str(error)})
        complain(str(error))
        return FAILED if own else USAGE
