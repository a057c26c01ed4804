"""The command ``quoth``: options in, one agent, exit codes out.

Knows how commands are spelt and printed; imports what a command needs only when that command runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from quoth.agent.cli import consent as consent_cli
from quoth.agent.cli import flight as flight_cli
from quoth.agent.cli import policy as policy_cli
from quoth.agent.cli import replay as replay_cli
from quoth.agent.cli import session as session_cli
from quoth.agent.cli.audit import add_audit, audit
from quoth.agent.terminal.output import (
    OutputError,
    complain,
    is_terminal,
    let_go_of_stdout,
    open_streams,
    print_json,
    print_line,
    results_only,
)
from quoth.agent.terminal.requests import is_inside, require_person
from quoth.tools.errors import QuothError, StoreError, UsageError, did_you_mean

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.run.run import RunLimits
    from quoth.tools.call.context import ToolResult
    from quoth.tools.registry.table import CognitiveTool

DONE, FAILED, USAGE, PENDING, INTERRUPTED = 0, 1, 2, 3, 130
EXIT_OF = {"ok": DONE, "invalid": USAGE, "unknown": USAGE, "pending": PENDING, "cancelled": INTERRUPTED}
EXIT_OF_RUN = {"done": DONE, "failed": FAILED, "pending": PENDING, "interrupted": INTERRUPTED}


class _Parser(argparse.ArgumentParser):
    """argparse with one sentence instead of a page for a mistake, and exit code 2."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        message = message[:1].upper() + message[1:].rstrip(".")
        raise UsageError(f"{message}. See: {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        print_line(message.rstrip("\n"))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.dest == "command" and value not in (action.choices or ()):
            known = list(action.choices or ())
            hint = did_you_mean(value, known) or f" The commands are {', '.join(known)}."
            raise UsageError(f"There is no command {value}.{hint}")
        super()._check_value(action, value)


def _common(place: str) -> _Parser:
    """The options every command has. ``place`` holds the ``--tools``: those before the command and those
    after it are kept apart, for the later list would drop the earlier one."""
    common = _Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = common.add_argument_group("common options")
    group.add_argument(
        "--model",
        metavar="SPEC",
        help="openai:NAME, anthropic:NAME, ollama:NAME, llamacpp:NAME, local, "
        "local:/path.gguf, local-small, scripted:FILE",
    )
    group.add_argument(
        "--dialect",
        metavar="NAME",
        help="how the model calls tools: call-form, plist, json, tags, native, run (default: by model)",
    )
    group.add_argument(
        "--belt", metavar="KIND", choices=("full", "search"), help="full, or search: one line a tool"
    )
    group.add_argument("--base-url", metavar="URL", help="an OpenAI-compatible server")
    group.add_argument(
        "--max-reply-tokens",
        dest="tokens",
        type=_at_least_one,
        metavar="N",
        help="tokens one reply of the model may have (default: by what it can read)",
    )
    group.add_argument(
        "--workspace", metavar="DIR", help="the folder the file tools may touch (default: here)"
    )
    group.add_argument(
        "--tools", metavar="FILE.hy", action="append", dest=place, help="a file of tools; may be repeated"
    )
    group.add_argument(
        "--policy", metavar="FILE", help="rules for this run, beside yours and the workspace's"
    )
    group.add_argument("--user", metavar="NAME", help="who is asking (default: the login name)")
    group.add_argument("--session", metavar="ID", help="the session the calls belong to (default: a new one)")
    group.add_argument("--json", action="store_true", help="machine-readable, on stdout alone")
    group.add_argument("--yes", action="store_true", help="allow what would be asked")
    group.add_argument("--no-input", action="store_true", help="never ask; such a call stays pending")
    return common


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {text}")
    return int(text)


def _seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of seconds is needed, not {text}")
    return float(text)


# The limits of a run that can be given, by their names in RunLimits. A test compares the defaults.
LIMITS: dict[str, tuple[str, Callable[[str], Any], str, str]] = {
    "steps": ("--max-steps", _at_least_one, "N", "at most so many turns of the model (default: 25)"),
    "calls": ("--max-calls", _at_least_one, "N", "at most so many calls (default: 100)"),
    "repeats": (
        "--max-repeats",
        _at_least_one,
        "N",
        "stop when one call has come back so often (default: 3)",
    ),
    "context": (
        "--max-context",
        _at_least_one,
        "N",
        "tokens the model can read at once (default: as known of the model)",
    ),
    "window": (
        "--repeat-window",
        _seconds,
        "SECONDS",
        "answer a call that comes back within it by its earlier result; 0: never (default: 300)",
    ),
}


def add_limits(command: argparse.ArgumentParser) -> None:
    for name, (option, kind, metavar, help) in LIMITS.items():
        command.add_argument(option, dest=name, type=kind, metavar=metavar, help=help)


def limits_of(options: argparse.Namespace, before: dict[str, Any] | None = None) -> RunLimits:
    """The limits that are given, beside those of the session that is gone on with. What another version knew
    as a limit is none here."""
    from dataclasses import fields

    from quoth.agent.run.run import RunLimits

    given = {
        name: value for name in (*LIMITS, "tokens") if (value := getattr(options, name, None)) is not None
    }
    known = {one.name for one in fields(RunLimits)}
    kept = {name: value for name, value in (before or {}).items() if name in known}
    return RunLimits(**{**kept, **given})


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
            from quoth import __version__

            print_json({"version": __version__}) if as_json else print_line(f"quoth {__version__}")
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


def _interrupted(as_json: bool) -> int:
    if as_json:
        print_json({"status": "interrupted", "message": "Interrupted."})
    complain("Interrupted.")
    return INTERRUPTED


# What commands share


def _option(options: argparse.Namespace, name: str, default: Any = None) -> Any:
    return getattr(options, name, default)


def _text(argument: str) -> str:
    """The argument itself, or stdin for ``-``."""
    from quoth.agent.terminal.input import read_stdin

    return read_stdin() if argument == "-" else argument


def _tool_files(options: argparse.Namespace) -> list[str]:
    return [*_option(options, "tools_before", ()), *_option(options, "tools_after", ())]


def _asks(options: argparse.Namespace) -> bool:
    """Whether a person can be asked: at a terminal, and not inside of a program that a tool has started."""
    terminal = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    return terminal and not _option(options, "no_input", False) and not is_inside()


def _agent(
    options: argparse.Namespace, *, asked: Callable[[Any], Any] = lambda person: person, **more: Any
) -> AsyncAgent:
    """An agent as the options want it; ``asked`` may stand before the person at the terminal."""
    from quoth.agent.client import AsyncAgent, user_name
    from quoth.agent.terminal.ask import AskTerminal

    consent: Any = None
    if _option(options, "yes", False):
        require_person()
        consent = "yes"
    elif _asks(options):
        consent = asked(
            AskTerminal(
                user=_option(options, "user") or user_name(), workspace=_option(options, "workspace", ".")
            )
        )
    more.setdefault("limits", limits_of(options))
    return AsyncAgent(
        workspace=_option(options, "workspace", "."),
        tools=_tool_files(options),
        model=_option(options, "model"),
        base_url=_option(options, "base_url"),
        dialect=_option(options, "dialect"),
        belt=_option(options, "belt", "full"),
        policy=_option(options, "policy"),
        user=_option(options, "user"),
        session=_option(options, "session"),
        consent=consent,
        **more,
    )


def _with_agent(
    options: argparse.Namespace, work: Callable[[AsyncAgent], Coroutine[Any, Any, int]], **more: Any
) -> int:
    """Run ``work`` with an agent; the first Ctrl-C stops a run at a safe point, the next one everything."""
    import asyncio
    import signal

    from quoth.agent.terminal.progress import interrupt_politely

    async def go() -> int:
        loop = asyncio.get_running_loop()
        async with _agent(options, **more) as agent:
            for note in agent.policy.notes:
                complain(note)
            task = asyncio.ensure_future(work(agent))
            pressed = False

            def interrupt() -> None:
                nonlocal pressed
                pressed = True
                if not interrupt_politely(agent):
                    task.cancel()

            before = signal.getsignal(signal.SIGINT)
            loop.add_signal_handler(signal.SIGINT, interrupt)
            for ending in (signal.SIGTERM, signal.SIGHUP):  # what was started is stopped then too
                loop.add_signal_handler(ending, task.cancel)
            try:
                code = await task
                return INTERRUPTED if pressed and code == PENDING else code  # a question was taken back
            except asyncio.CancelledError:
                return _interrupted(_option(options, "json", False))
            finally:
                for heard in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    loop.remove_signal_handler(heard)
                signal.signal(signal.SIGINT, before)  # asyncio does not put it back

    if options.command is None:  # the REPL draws on stdout
        return asyncio.run(go())
    with results_only():
        return asyncio.run(go())


def _show_result(result: ToolResult, as_json: bool) -> int:
    if as_json:
        print_json(result.to_json())
        return EXIT_OF.get(result.status, FAILED)
    from quoth.agent.run.run import show_value, told

    if result.ok:
        if result.value is not None:
            print_line(show_value(result.value).rstrip("\n"))
        if result.message:
            complain(result.message)
    else:
        complain(told(result))
    return EXIT_OF.get(result.status, FAILED)


# Commands


def repl(options: argparse.Namespace) -> int:
    from quoth.agent.repl.repl import Repl

    if sys.stdin is None:
        raise UsageError("Standard input is closed.")
    picked_up = session_cli.pick_up(options)

    def work(agent: AsyncAgent) -> Coroutine[Any, Any, int]:
        return Repl(agent, _option(options, "json", False), picked_up).run()

    return _with_agent(options, work, limits=limits_of(options, _option(options, "limits")))


def run(options: argparse.Namespace) -> int:
    from quoth.agent.terminal.progress import Progress

    as_json = _option(options, "json", False)
    task = _text(" ".join(options.task))

    async def work(agent: AsyncAgent) -> int:
        reply = await agent.run(task)
        if as_json:
            print_json(reply.to_json())
        elif reply.status == "done":
            print_line(reply.text)
        session_cli.how_to_go_on(agent, options)
        return EXIT_OF_RUN[reply.status]

    return _with_agent(options, work, listener=Progress())


def call(options: argparse.Namespace) -> int:
    from quoth.agent.terminal.progress import Progress

    form = _text(options.form)

    async def work(agent: AsyncAgent) -> int:
        result = await agent.call(form)
        code = _show_result(result, _option(options, "json", False))
        session_cli.how_to_go_on(agent, options)
        return code

    return _with_agent(options, work, listener=Progress())  # sub-agents alone tell it anything


def evaluate(options: argparse.Namespace) -> int:
    from quoth.agent.terminal.progress import Progress

    form = _text(options.form)
    if options.dry_run:
        return consent_cli.dry_run(options, form)

    async def work(agent: AsyncAgent) -> int:
        result = await agent.eval(form)
        code = _show_result(result, _option(options, "json", False))
        session_cli.how_to_go_on(agent, options)
        return code

    return _with_agent(options, work, listener=Progress())


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
    wanted = _option(options, "dialect")
    dialect = TAGS if wanted is None else named_dialect(wanted)
    reading = dialect.read_text(text, _table(options))
    if _option(options, "json", False):
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
    as_json = _option(options, "json", False)
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
    if _option(options, "json", False):
        print_json(belt_json(table, options.view))
    else:
        print_line(view_of(table, options.view).rstrip("\n"))
    return DONE


def _table(options: argparse.Namespace) -> Any:
    """The table alone, for commands that call nothing."""
    from quoth.tools.loading import load_tools

    with results_only():
        return load_tools(_tool_files(options))


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
