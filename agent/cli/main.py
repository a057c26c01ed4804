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

# The commands by need: the function that runs each, or the table of its actions, and its description.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "a model": {
        "run": ("run.run", "Give the model one task; it may use the tools. The reply goes to stdout."),
        "chat": ("run.chat", "Chat with the model, or serve many chats through a gateway."),
        "fly": (
            "watch.fly",
            "Run a flight plan, an Org file, step by step, and write the results into the file.",
        ),
        "acp": ("acp.acp", "Serve an editor, such as Emacs or Zed, by the Agent Client Protocol."),
        "resume": (
            "run.resume",
            "Continue a session: calls that waited, a run that was interrupted, or the conversation.",
        ),
        "worktrees": ("worktrees.ACTIONS", "List, compare, merge and remove the worktrees of agents."),
        "models": (
            "models.models",
            "List the models you can use and what each lacks; test one; store API keys.",
        ),
        "test": (
            "evaluations.ACTIONS",
            "Keep sessions as test cases, and count how many runs of each a model passes.",
        ),
    },
    "tools": {
        "call": ("call.call", "Run one call form without a model, under the same rules."),
        "eval": ("call.evaluate", "Run a Lisp program in the sandbox; the rules judge each call in it."),
        "read": ("call.read", "Show the calls that quoth reads in a model's reply."),
        "tools": ("tools.tools", "List the tools, show one, or test the examples of a file."),
        "belt": ("tools.belt", "Show the tool list as a model receives it."),
        "mcp": ("mcp.ACTIONS", "Use the tools of MCP servers, once you trust them."),
    },
    "rules": {
        "policy": (
            "policy.ACTIONS",
            "Check rules, explain the verdict on a call, or print example rules.",
        ),
        "trust": ("policy.trust", "Use the rules, settings, skills and AGENTS.md that a workspace brings."),
        "guard": (
            "guard.guard",
            "Judge the calls of another agent, as its hook. What hooks never see: quoth help guard.",
        ),
        "audit": (
            "audit.audit",
            "Show every call of this workspace, or verify that the record is unchanged.",
        ),
        "pending": ("consent.pending", "List the requests that wait for a decision, or show one in full."),
        "approve": (
            "consent.approve",
            "Approve a request once, for a time, for a kind of calls, or in an edited form.",
        ),
        "deny": ("consent.deny", "Deny a request; the model reads the reason."),
        "answer": ("consent.answer", "Answer a question of a call in words."),
    },
    "sessions": {
        "sessions": ("session.sessions", "List the sessions of this workspace, the latest last."),
        "log": ("session.log", "Show the events of a session, or one event: ID.N."),
        "diff": ("undo.diff", "Show the changes of a session in files."),
        "undo": ("undo.undo", "Take back the file changes of a session."),
        "stats": ("audit.stats", "Show calls, denials, tokens and cost by day, and calls by tool."),
        "gc": ("session.gc", "Remove old sessions, after asking you. The audit stays."),
        "rm": ("session.remove", "Remove sessions. The audit keeps their calls."),
        "replay": ("undo.replay", "Run a session again from its transcript and show the differences."),
        "lift": ("undo.lift", "Write the successful calls of a session as one Lisp program."),
        "fork": ("session.fork", "Begin a new session with the first events of another."),
        "export": ("session.export", "Write a session to a file of Lisp forms, without secrets."),
        "import": ("session.import_session", "Read a session from an exported file."),
    },
    "memory": {
        "memory": ("memory.ACTIONS", "Show, search and change the memory."),
        "knowledge": ("knowledge.ACTIONS", "Show and remove the entries in knowledge/."),
        "remind": ("remind.remind", "Print the reminders that are due in memory.org, each once."),
    },
    "machines": {
        "worker": (
            "machines.worker",
            "Run calls of other machines with the tools of your files, through Redis.",
        ),
        "catalog": (
            "machines.ACTIONS",
            "Publish tools in Redis for other machines, and show the published ones.",
        ),
    },
    "quoth": {
        "serve": ("serve.serve", "Serve chat clients, MCP clients and the pages of quoth view on loopback."),
        "view": ("view.view", "Open pages in your browser: what waits, with its differences."),
        "help": ("help.read_manual", "Show the manual: a page, or the answer to a question in your words."),
        "doctor": (
            "doctor.doctor",
            "Check models, keys, store, permissions and terminal; say how to fix each problem.",
        ),
        "new": (
            "help.new",
            "Write a commented tool, plan, policy or bridge to start from, or the README's example.",
        ),
        "completion": ("help.completion", "Print a script that lets your shell complete commands and files."),
    },
}
SHOWN = ("model", "workspace", "tools", "policy", "user", "session", "json", "yes")  # in the help of quoth


class Whole(Parser):
    """The parser of the whole command line, whose help fits one screen."""

    def format_help(self) -> str:
        from quoth.agent.cli.examples import EXAMPLES  # here: one reads help seldom

        rows: dict[str, Any] = {one.dest.removesuffix(BEFORE): one for one in self._actions}
        rows["model"].help = "openai:NAME, local, … (default: see quoth models)"
        rows["user"].help = "name of the user (default: the login name)"
        shown = [
            (f"{one.option_strings[0]} {one.metavar or ''}", one.help) for one in map(rows.__getitem__, SHOWN)
        ]
        return "\n".join(
            [
                "usage: quoth [OPTION ...] [COMMAND ...]\n",
                f"{self.description}\n",
                *(f"  {title:<9} {' '.join(names)}" for title, names in COMMANDS.items()),
                "",
                *(f"  {flag:<17} {told}" for flag, told in shown),
                "\nOptions of a command: quoth COMMAND --help. The manual: quoth help. Examples:",
                *(f"  {line}" for line in EXAMPLES[""]),
                "",
            ]
        )


def parser(words: Sequence[str] = ()) -> Parser:
    """Return the parser of the whole command line; where ``words`` begin with a command, of that one
    alone. The file of a command is imported when the command is given."""
    about = "Run a model with tools, under your rules. Without a command: the REPL."
    whole = Whole(prog="quoth", description=about)
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
    except BrokenPipeError:  # the reader of our output closed it
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
