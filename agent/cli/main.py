"""The command ``quoth``: parses the command line, runs one command, and returns its exit code.

Knows which commands there are and how errors are reported. A file of commands is imported when one is given,
and imports what it needs when it runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

from quoth.agent.cli.common import interrupted, tell_workspace
from quoth.agent.cli.options import (
    BEFORE,
    DONE,
    FAILED,
    USAGE,
    Options,
    Parser,
    ReplOptions,
    add_command,
    parsed,
)
from quoth.agent.terminal.output import (
    OutputError,
    complain,
    let_go_of_stdout,
    open_streams,
    print_json,
    print_line,
    show_traceback,
    tracebacks,
)
from quoth.tools.errors import QuothError, StoreError

# Each command by what it is for: the function that runs it, or a table of its actions, and what it does.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "a model": {
        "run": ("run.run", "Give one task to the model and let it use tools; the reply goes to stdout."),
        "chat": ("run.chat", "Chat with the model, or serve many chats through a gateway."),
        "fly": ("flight.fly", "Run a flight plan, an Org file, step by step, and write its results into it."),
        "resume": ("run.resume", "Go on with what waited or was broken off, or with the conversation."),
        "models": (
            "models.models",
            "Show the models and what is missing; test one; store the keys of providers.",
        ),
    },
    "tools": {
        "call": ("call.call", "Take one call form through the door, without a model."),
        "eval": ("call.evaluate", "Run a Lisp program in the sandbox; its inner calls pass the door."),
        "read": ("call.read", "Read a model's reply and show the calls in it."),
        "tools": ("tools.tools", "List the tools, show one, or test the examples of a file."),
        "belt": ("tools.belt", "Show what a model is told of the tools."),
    },
    "rules": {
        "policy": (
            "policy.ACTIONS",
            "Check rules, explain how a call is judged, or print rules to begin with.",
        ),
        "trust": ("policy.trust", "Let the rules, settings, skills and AGENTS.md of a workspace count."),
        "audit": ("audit.audit", "Show what was called in this workspace, or verify that nobody changed it."),
        "pending": ("consent.pending", "List what waits for a person's decision, or show one request."),
        "approve": ("consent.approve", "Approve a request: once, for a while, a kind of calls, or another."),
        "deny": ("consent.deny", "Deny a request; the reason is what the caller is told."),
        "answer": ("consent.answer", "Answer in words what a call asks."),
    },
    "sessions": {
        "sessions": ("session.sessions", "List the sessions of this workspace, the latest at the end."),
        "log": ("session.log", "Show what happened in a session, or one event of it: ID.N."),
        "diff": ("undo.diff", "Show what a session has changed in files."),
        "undo": ("undo.undo", "Put the files back that a session has written, as they were before."),
        "stats": ("audit.stats", "Show calls, denials, tokens and cost by day, and calls by tool."),
        "gc": ("session.gc", "Remove old sessions, after asking you. The audit stays."),
        "rm": ("session.remove", "Remove sessions. The audit keeps what was called."),
        "replay": ("undo.replay", "Run a session again from its transcript and show what is different now."),
        "lift": ("undo.lift", "Write the successful calls of a session as one Lisp program."),
        "fork": ("session.fork", "Begin a new session with the first events of another."),
        "export": ("session.export", "Write a session as a text of forms, without secrets."),
        "import": ("session.import_session", "Take a session from such a text."),
    },
    "memory": {
        "memory": ("memory.ACTIONS", "See, search and change what is remembered."),
        "knowledge": ("knowledge.ACTIONS", "See and forget what was filed in knowledge/."),
        "remind": ("remind.remind", "Tell what is due in memory.org, each once."),
    },
    "machines": {
        "worker": (
            "machines.worker",
            "Run calls of other machines with the tools of your files, over Redis.",
        ),
        "catalog": ("machines.ACTIONS", "Publish tools in Redis for other machines, and see what is there."),
    },
    "quoth itself": {
        "help": ("help.read_manual", "Read the manual: a page, or what it says of some words."),
        "doctor": (
            "doctor.doctor",
            "Check models, keys, store, rights and terminal; say how to fix each problem.",
        ),
        "new": ("help.new", "Write a commented tool, plan, policy or bridge, or the examples of README."),
        "completion": ("help.completion", "Print a script with which a shell completes commands and files."),
    },
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
                *(f"  {title:<13} {' '.join(names)}" for title, names in COMMANDS.items()),
                "",
                *(f"  {flag:<17} {told}" for flag, told in shown),
                "\nquoth COMMAND --help shows a command, quoth help settings every setting. Examples:",
                *(f"  {line}" for line in EXAMPLES[""]),
                "",
            ]
        )


def parser(words: Sequence[str] = ()) -> Parser:
    """Return the parser of the whole command line; where ``words`` begin with a command, of that one
    alone. The file of a command is imported when the command is given."""
    whole = Whole(prog="quoth", description="A homoiconic agent loop. Without a command: the REPL.")
    whole.add_fields(ReplOptions, BEFORE)
    whole.add_argument(
        "--version", dest="instead", action="store_const", const=version, help="print the version"
    )
    whole.set_defaults(kind=ReplOptions, do=_repl)
    known = {name: one for rows in COMMANDS.values() for name, one in rows.items()}
    one = words[0] if words and words[0] in known and words[0] != "completion" else ""
    parsers = whole.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser)
    for name, (place, about) in known.items():
        if one in ("", name):
            add_command(parsers, name, about, partial(_found, place))
    return whole


def _found(place: str) -> Any:
    """What runs a command, from its file."""
    file, _, name = place.partition(".")
    return getattr(import_module(f"quoth.agent.cli.{file}"), name)


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
            show_traceback(error)
        if as_json:
            print_json({"status": "error" if own else "invalid", "message": str(error)})
        complain(str(error))
        return FAILED if own else USAGE
