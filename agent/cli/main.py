"""The command ``quoth``: options in, one agent, exit codes out.

Knows how commands are spelt and printed; imports what a command needs only when that command runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli import consent as consent_cli
from quoth.agent.cli import flight as flight_cli
from quoth.agent.cli import policy as policy_cli
from quoth.agent.cli import replay as replay_cli
from quoth.agent.cli import session as session_cli
from quoth.agent.cli.audit import add_audit, audit
from quoth.agent.cli.common import (
    DONE,
    EXIT_OF_RUN,
    FAILED,
    USAGE,
    _common,
    _interrupted,
    _Parser,
    _show_result,
    _table,
    _text,
    _with_agent,
    add_limits,
    how_to_go_on,
    limits_of,
    option_of,
)
from quoth.agent.terminal.output import (
    OutputError,
    complain,
    let_go_of_stdout,
    open_streams,
    print_json,
    print_line,
)
from quoth.tools.errors import QuothError, StoreError, UsageError, did_you_mean

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.registry.table import CognitiveTool


def parser() -> argparse.ArgumentParser:
    """The whole command line. Common options may stand before or after the command."""
    whole = _Parser(
        prog="quoth",
        parents=[_common("tools_before")],
        description="A homoiconic agent loop. Without a command: the REPL.",
    )
    whole.add_argument("--version", action="store_true", help="print the version")
    commands = whole.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[_common("tools_after")], help=help, description=help)

    run = command("run", "Give one task to the model and let it use tools; the reply goes to stdout.")
    run.add_argument("task", metavar="TASK", nargs="+", help="what to do; - reads it from stdin")
    add_limits(run)
    call = command("call", "Take one call form through the door, without a model.")
    call.add_argument("form", metavar="FORM", help="such as '(echo :text \"hi\")'; - reads it from stdin")
    read = command("read", "Read a model's reply and show the calls in it.")
    read.add_argument("file", metavar="FILE", nargs="?", default="-", help="the reply (default: stdin)")
    tools = command("tools", "List the tools, or show one: schema, source form, expansion.")
    tools.add_argument("name", metavar="NAME", nargs="?", help="the tool to show")
    belt = command("belt", "Show what a model is told of the tools.")
    belt.add_argument(
        "--view",
        default="lisp",
        metavar="VIEW",
        help="lisp, plist, json, tags, run, bare, openai, anthropic or mcp (default: lisp)",
    )
    evaluate = command("eval", "Run a Lisp program in the sandbox; its inner calls pass the door.")
    evaluate.add_argument("form", metavar="FORM", help="such as '(* 6 7)'; - reads it from stdin")
    dry: dict[str, Any] = {"dest": "dry_run", "action": "store_const"}
    evaluate.add_argument(
        "--dry-run", **dry, const=True, help="only show what it may call; nothing is done but reading"
    )
    evaluate.add_argument("--dry-run=pure", **dry, const="pure", help="the same, and nothing is read either")
    flight_cli.add_commands(command)
    add_audit(command("audit", "Show what was called in this workspace, or verify that nobody changed it."))
    policy_cli.add_commands(commands, _common)
    consent_cli.add_commands(command)
    session_cli.add_commands(command)
    replay_cli.add_commands(command)
    return whole


def _options(words: Sequence[str]) -> argparse.Namespace:
    whole = parser()
    options, extra = whole.parse_known_args(words)
    if not extra:
        return options
    command = f"quoth {options.command}" if options.command else "quoth"
    if extra[0].startswith("-"):
        known = _common("tools").format_help().replace(",", " ").split()
        name = extra[0].partition("=")[0]
        hint = (
            did_you_mean(name, [word for word in known if word.startswith("--")]) or f" See: {command} --help"
        )
        raise UsageError(f"{command} has no option {name}.{hint}")
    raise UsageError(f"{command} does not take this too: {extra[0]}. Is a form without quotes around it?")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no mistake of a user ends in a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    as_json = "--json" in words
    open_streams()
    try:
        return _main(words, as_json)
    except BrokenPipeError:  # whoever read our output has enough
        let_go_of_stdout()
        return DONE
    except OutputError as error:
        let_go_of_stdout()
        complain(str(error))
        return FAILED


def _main(words: Sequence[str], as_json: bool) -> int:
    try:
        options = _options(words)
        if options.version:
            from importlib.metadata import version

            print_json({"version": version("quoth")}) if as_json else print_line(f"quoth {version('quoth')}")
            return DONE
        return COMMANDS[options.command](options)
    except OutputError:
        raise
    except StoreError as error:  # nobody's mistake
        if as_json:
            print_json({"status": "error", "message": str(error)})
        complain(str(error))
        return FAILED
    except QuothError as error:
        if as_json:
            print_json({"status": "invalid", "message": str(error)})
        complain(str(error))
        return USAGE
    except KeyboardInterrupt:
        return _interrupted(as_json)


# What commands share


# Commands


def repl(options: argparse.Namespace) -> int:
    from quoth.agent.repl.repl import Repl

    if sys.stdin is None:
        raise UsageError("Standard input is closed.")
    picked_up = session_cli.pick_up(options)

    def work(agent: AsyncAgent) -> Coroutine[Any, Any, int]:
        return Repl(agent, option_of(options, "json", False), picked_up).run()

    return _with_agent(options, work, limits=limits_of(options, option_of(options, "limits")))


def run(options: argparse.Namespace) -> int:
    from quoth.agent.terminal.progress import Progress

    as_json = option_of(options, "json", False)
    task = _text(" ".join(options.task))

    async def work(agent: AsyncAgent) -> int:
        reply = await agent.run(task)
        if as_json:
            print_json(reply.to_json())
        elif reply.status == "done":
            print_line(reply.text)
        how_to_go_on(agent, options)
        return EXIT_OF_RUN[reply.status]

    return _with_agent(options, work, on_event=Progress())


def call(options: argparse.Namespace) -> int:
    from quoth.agent.terminal.progress import Progress

    form = _text(options.form)

    async def work(agent: AsyncAgent) -> int:
        result = await agent.call(form)
        code = _show_result(result, option_of(options, "json", False))
        how_to_go_on(agent, options)
        return code

    return _with_agent(options, work, on_event=Progress())  # sub-agents alone tell it anything


def evaluate(options: argparse.Namespace) -> int:
    from quoth.agent.terminal.progress import Progress

    form = _text(options.form)
    if options.dry_run:
        return consent_cli.dry_run(options, form)

    async def work(agent: AsyncAgent) -> int:
        result = await agent.eval(form)
        code = _show_result(result, option_of(options, "json", False))
        how_to_go_on(agent, options)
        return code

    return _with_agent(options, work, on_event=Progress())


def read(options: argparse.Namespace) -> int:
    from quoth.neuro.prompt.dialects import TAGS, named_dialect

    try:
        text = _text("-") if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {options.file}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{options.file} is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"{options.file} cannot be read: {error.strerror}.") from None
    # Without a dialect every spelling is read, and the tags of the tools that have one.
    wanted = option_of(options, "dialect")
    dialect = TAGS if wanted is None else named_dialect(wanted)
    reading = dialect.read_text(text, _table(options))
    if option_of(options, "json", False):
        print_json(reading.to_json())
    else:
        from quoth.tools.lisp.forms import canonical

        for found in reading.calls:
            print_line(canonical(found.form))
            for repair in found.repairs:
                complain(f"line {found.line}: mended: {repair}")
        for fault in reading.errors:
            complain(str(fault))
        if not reading.calls and not reading.errors:
            complain("There is no call in this text.")
    return USAGE if reading.errors else DONE


def tools(options: argparse.Namespace) -> int:
    table = _table(options)
    as_json = option_of(options, "json", False)
    if options.name:
        tool = table.get(options.name)
        from quoth.agent.terminal.tool_page import tool_page

        print_json(tool.describe() | _origin(tool)) if as_json else print_line(tool_page(tool))
    elif as_json:
        print_json([tool.describe() for tool in table])
    else:
        width = max((len(tool.name) for tool in table), default=0)
        for tool in table:
            first = " ".join(tool.description.split()).split(". ")[0].rstrip(".")
            print_line(f"{tool.name:<{width}}  {first}.")
            print_line(f"{'':<{width}}  {tool.signature()}")
    return DONE


def _origin(tool: CognitiveTool) -> dict[str, Any]:
    from quoth.agent.terminal.tool_page import expansions

    return {"source": tool.source, "form": tool.form, "expansion": expansions(tool), "version": tool.version}


def belt(options: argparse.Namespace) -> int:
    from quoth.neuro.prompt.belt import belt as view_of
    from quoth.neuro.prompt.belt import belt_json

    table = _table(options)
    if option_of(options, "json", False):
        print_json(belt_json(table, options.view))
    else:
        print_line(view_of(table, options.view).rstrip("\n"))
    return DONE


COMMANDS: dict[str | None, Callable[[argparse.Namespace], int]] = {
    None: repl,
    "run": run,
    "call": call,
    "read": read,
    "tools": tools,
    "belt": belt,
    "eval": evaluate,
    "fly": flight_cli.fly,
    "audit": audit,
    "policy": policy_cli.policy,
    "trust": policy_cli.trust,
    "pending": consent_cli.pending,
    "approve": consent_cli.approve,
    "deny": consent_cli.deny,
    "resume": session_cli.resume,
    "sessions": session_cli.sessions,
    "log": session_cli.log,
    "fork": session_cli.fork,
    "export": session_cli.export,
    "import": session_cli.import_session,
    "rm": session_cli.remove,
    "replay": replay_cli.replay,
    "lift": replay_cli.lift,
}
