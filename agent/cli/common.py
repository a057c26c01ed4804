"""What all commands share: common options, exit codes, the agent of a command, how results are shown.

Knows no single command; the commands import it.
"""

from __future__ import annotations

import argparse
import shlex
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.output import complain
from quoth.tools.errors import UsageError

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.tools.storage.database import Store
import sys
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, NoReturn

from quoth.agent.terminal.output import is_terminal, print_json, print_line, results_only
from quoth.agent.terminal.person import is_inside, require_person
from quoth.tools.errors import did_you_mean

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent
    from quoth.agent.run.run import RunLimits
    from quoth.tools.call.call import ToolResult

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


def _interrupted(as_json: bool) -> int:
    if as_json:
        print_json({"status": "interrupted", "message": "Interrupted."})
    complain("Interrupted.")
    return INTERRUPTED


def option_of(options: argparse.Namespace, name: str, default: Any = None) -> Any:
    return getattr(options, name, default)


def _text(argument: str) -> str:
    """The argument itself, or stdin for ``-``."""
    from quoth.agent.terminal.input import read_stdin

    return read_stdin() if argument == "-" else argument


def _tool_files(options: argparse.Namespace) -> list[str]:
    return [*option_of(options, "tools_before", ()), *option_of(options, "tools_after", ())]


def _asks(options: argparse.Namespace) -> bool:
    """Whether a person can be asked: at a terminal, and not inside of a program that a tool has started."""
    terminal = is_terminal(sys.stdin) and is_terminal(sys.stderr)
    return terminal and not option_of(options, "no_input", False) and not is_inside()


def _agent(
    options: argparse.Namespace, *, asked: Callable[[Any], Any] = lambda person: person, **more: Any
) -> AsyncAgent:
    """An agent as the options want it; ``asked`` may stand before the person at the terminal."""
    from quoth.agent.client import AsyncAgent
    from quoth.agent.run.options import ModelOptions, ToolOptions
    from quoth.agent.terminal.ask import AskTerminal
    from quoth.agent.terminal.person import user_name

    consent: Any = None
    if option_of(options, "yes", False):
        require_person()
        consent = "yes"
    elif _asks(options):
        consent = asked(
            AskTerminal(
                user=option_of(options, "user") or user_name(), workspace=option_of(options, "workspace", ".")
            )
        )
    more.setdefault("limits", limits_of(options))
    return AsyncAgent(
        workspace=option_of(options, "workspace", "."),
        tools=ToolOptions(_tool_files(options), option_of(options, "belt", "full")),
        model=ModelOptions(
            option_of(options, "model"), option_of(options, "base_url"), option_of(options, "dialect")
        ),
        policy=option_of(options, "policy"),
        user=option_of(options, "user"),
        session=option_of(options, "session"),
        consent=consent,
        **more,
    )


def _with_agent(
    options: argparse.Namespace, work: Callable[[AsyncAgent], Coroutine[Any, Any, int]], **more: Any
) -> int:
    """Run ``work`` with an agent; the first Ctrl-C stops a run at a safe point, the next one everything."""
    import asyncio
    import signal

    from quoth.agent.terminal.interrupt import interrupt_politely

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
                return _interrupted(option_of(options, "json", False))
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
    from quoth.agent.terminal.text import show_value, told

    if result.ok:
        if result.value is not None:
            print_line(show_value(result.value).rstrip("\n"))
        if result.message:
            complain(result.message)
    else:
        complain(told(result))
    return EXIT_OF.get(result.status, FAILED)


def _table(options: argparse.Namespace) -> Any:
    """The table alone, for commands that call nothing."""
    from quoth.tools.loading import load_tools

    with results_only():
        return load_tools(_tool_files(options))


def write_new(path: Path, text: str) -> None:
    """Write a file that was not there. Raises UsageError."""
    try:
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"There is a file {path} already.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}.") from None


def how_to_go_on(agent: AsyncAgent, options: argparse.Namespace) -> None:
    """Tell a person what to do about the calls that wait, if any do."""
    if not agent.waits:
        return
    place = place_of(options)
    waiting = agent.broker.requests(session=agent.session)
    ids = [request.id for request in waiting if request.user == agent.user]
    for name in ids:
        complain(f"To decide: quoth approve {name}{place}, or: quoth deny {name}{place} --why TEXT")
    complain(f"{'Then go' if ids else 'To go'} on with: quoth resume {shlex.quote(agent.session)}{place}")


def place_of(options: argparse.Namespace) -> str:
    """The workspace, for a command that is to be typed next."""
    workspace = getattr(options, "workspace", None)
    return "" if workspace is None else f" --workspace {shlex.quote(workspace)}"


def take_over(options: argparse.Namespace, session: str, user: str) -> None:
    """Give the options the session was begun with to those that are not given now. A file of tools that is
    not there any more is left out; AsyncAgent.changes tells of it."""
    from quoth.agent.session.session import Session
    from quoth.tools.call.redaction import SECRET
    from quoth.tools.history.transcript import Transcript

    given: dict[str, Any] = {}
    foreign = False
    with open_store(options) as store:
        if store is not None:
            known = Session(Transcript(lambda: store), session, user, Path())
            given, foreign = known.given(), known.foreign()
    options.session = session
    options.limits = None if foreign else given.get("limits")
    if not hasattr(options, "user"):
        options.user = user
    more: dict[str, Any] = {
        name: given[name.replace("_", "-")]
        for name in ("model", "base_url", "policy", "dialect", "belt")
        if given.get(name.replace("_", "-")) and not hasattr(options, name)
    }
    if given.get("tools") and not (hasattr(options, "tools_before") or hasattr(options, "tools_after")):
        more["tools_after"] = [file for file in given["tools"] if foreign or Path(file).exists()]
    if foreign and (outside := [name for name in more if _reaches_out(name, more[name])]):
        chosen = " ".join(_as_typed(name, one) for name in outside for one in _listed(more[name]))
        raise UsageError(
            f"Session {session} was imported, and what runs code, makes rules or names a server is for you to"
            f" choose: it had {chosen}. Give these, or others."
        )
    if SECRET in str(more.get("base_url", "")):
        raise UsageError(
            f"The address of the model's server held a secret, which is not kept when all has ended:"
            f" {more['base_url']}. Give it again: --base-url URL"
        )
    for name, value in more.items():
        setattr(options, name, value)


def _reaches_out(name: str, value: Any) -> bool:
    """Whether a setting runs code, loosens rules or sends the conversation to a server: nobody here has
    chosen it if it was imported. So does every model but the embedded ones: its name is that of a file, of a
    provider or of what a server has."""
    from quoth.agent.run.subagents import EMBEDDED

    if name == "model":
        return value not in EMBEDDED
    return name in ("tools_after", "policy", "base_url") and bool(value)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def open_store(options: argparse.Namespace) -> AbstractContextManager[Store | None]:
    from quoth.tools.storage.database import existing_store

    return existing_store(Path(getattr(options, "workspace", ".")))


def _as_typed(name: str, value: str) -> str:
    return f"--{name.removesuffix('_after').replace('_', '-')} {shlex.quote(value)}"
