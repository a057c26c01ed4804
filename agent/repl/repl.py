"""The REPL: Lisp of a person is evaluated, a line with ``,`` is a command, anything else goes to the agent.

Knows one agent, one person's module and a terminal. What an entry is, is told in entries.py; what Lisp does,
by person.py; what the commands are, in commands.py.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Coroutine
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.banner import banner
from quoth.agent.repl.commands import COMMANDS, SHORT, Command, help_text
from quoth.agent.repl.entries import WORDS, is_open, kind_of
from quoth.agent.repl.printed import safely_printed
from quoth.agent.repl.values import as_hy, as_plain
from quoth.agent.reply import Reply
from quoth.agent.terminal.input import StdinLines, answers
from quoth.agent.terminal.interrupt import interrupt_politely
from quoth.agent.terminal.output import (
    complain,
    is_dumb,
    print_drawn,
    print_json,
    print_line,
    results_only,
)
from quoth.agent.terminal.speech import Speech
from quoth.agent.terminal.text import budget_text, failure_text, show_value
from quoth.tools.call.call import PROGRAMS, ToolResult
from quoth.tools.call.values import plain
from quoth.tools.errors import QuothError, ToolError, UsageError, did_you_mean
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.agent.repl.person import Outcome, Person

T = TypeVar("T")

FIRST = (
    ("(form)", "evaluate Lisp, all of Hy, on this machine; tools are functions, each call passes the door"),
    ("any text", "give it to the agent; the conversation goes on from line to line"),
)


class _Interrupted(Exception):
    """Ctrl-C ended the current entry."""


class Repl:
    """Reads entries and carries them out until the end of input; without a terminal it shows no prompt.

    Ctrl-C stops the current entry and returns to the prompt. ``as_json`` prints each result as JSON on one
    line; ``picked_up`` is the message about the conversation that is continued.
    """

    commands: ClassVar[dict[str, Command]] = COMMANDS
    first: tuple[tuple[str, str], ...] = FIRST
    lisp: ClassVar[bool] = True  # whether a form is evaluated

    def __init__(self, agent: AsyncAgent, as_json: bool = False, picked_up: str = "") -> None:
        self.agent = agent
        self._picked_up = picked_up
        self.speech = Speech(aloud=not as_json)
        agent.on_event = self.speech
        self.as_json = as_json
        self._sent: list[str] = []  # messages that go into the JSON of what is being done
        agent.deliver = self._sent.append if as_json else print_line
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._edits = self.interactive and not is_dumb()
        self._editor: Any = None
        self._lines = StdinLines()
        self._task: asyncio.Task[Any] | None = None
        self._pressed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed: BaseException | None = None  # what the last form has raised

    @cached_property
    def person(self) -> Person:
        """The person's module, made when something is first asked of it."""
        from quoth.agent.repl.person import Person

        return Person(self.agent, asyncio.get_running_loop(), as_hy if self.interactive else as_plain)

    @property
    def help(self) -> str:
        return help_text(self.commands, *self.first)

    async def run(self) -> int:
        """Run until the end of input or ``,quit``, and return the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        try:
            return await self._run()
        finally:
            loop.remove_signal_handler(signal.SIGINT)

    async def _run(self) -> int:
        if self.interactive:
            self.complain(self.greeting())
        if self._picked_up:
            for line in (self._picked_up, *self.agent.changes()):
                self.complain(line)
        try:
            await self._guarded(self._begin())
            while True:
                try:
                    text = await self._read()
                except EOFError:
                    return 0
                except KeyboardInterrupt:  # Ctrl-C at the prompt drops the line
                    continue
                except _Interrupted:
                    return 130
                await self._guarded(self.one(text.strip()))
        except EOFError:  # ,quit
            return 0
        except SystemExit as left:
            return left.code if isinstance(left.code, int) else 0

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of an entry; what goes wrong in it is told, and the prompt comes again."""
        try:
            await self._stoppable(work)
        except QuothError as error:
            self.complain(str(error))
        except _Interrupted:
            self.complain("Interrupted.")

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work``; Ctrl-C ends it and raises _Interrupted; a run ends by itself."""
        self._pressed = False
        self.agent.broker.listen()  # Ctrl-C was for an earlier line
        task: asyncio.Task[T | SystemExit] = asyncio.ensure_future(_kept_from_the_loop(work))
        self._task = task
        try:
            done = await task
        except asyncio.CancelledError:
            if not self._pressed:
                raise
            raise _Interrupted from None
        finally:
            self._task = None
            self.speech.stop()
        if isinstance(done, SystemExit):
            raise done
        return done

    def _interrupt(self) -> None:
        if self._task is not None and not interrupt_politely(self.agent):
            self._pressed = True
            self._task.cancel()

    # Entries

    def greeting(self) -> str:
        return banner(self.agent)

    async def _begin(self) -> None:
        """Evaluate the files of the start, the user's own and the trusted one of the workspace."""
        from quoth.agent.repl.startup import startup_files

        files, notes = startup_files(self.agent.workspace.root)
        for note in notes:
            self.complain(note)
        for name, text in files:
            outcome = await self._evaluated(text, name)
            if outcome.error is not None:
                self.complain(f"{name} was not evaluated to its end.")
                self._tell_fault(outcome.error, text)

    async def one(self, text: str) -> None:
        """Carry out one entry: a Lisp form, a command, or text for the agent."""
        kind = kind_of(text, lambda name: self.person.is_bound(name))
        if kind == "word":
            text, kind = WORDS[text], "command"
        if kind == "command":
            await self.command(text)
        elif kind == "lisp":
            await self._lisp(text)
        elif kind == "prose":
            await self.say(text)

    async def command(self, text: str) -> None:
        name, _, rest = text[1:].strip().partition(" ")
        command = self.commands.get(SHORT.get(name, name))
        if command is None:
            hint = did_you_mean(name, self.commands)
            self.complain(f"There is no command ,{name}; ,help lists them.{hint}")
            return
        work = command.do(self, rest.strip())
        if work is not None:
            await work

    async def say(self, text: str) -> None:
        """Give text to the agent; its reply is the value ``_``, a text that nothing evaluates."""
        reply = await self.agent.say(text)
        self.show(reply)
        if reply.status == "done" and reply.text:
            self._remember(reply.text)

    def _remember(self, text: str) -> None:
        self.person.remember(text)

    # Lisp

    async def _lisp(self, text: str) -> None:
        outcome = await self._evaluated(text)
        error = outcome.error
        if isinstance(error, SystemExit):
            raise error
        if self.as_json:
            self._print_json(outcome, text)
        elif error is not None:
            self._tell_fault(error, text)
        else:
            if outcome.printed:
                self._write(outcome.printed)
            for result in outcome.results:
                if result.message:
                    self.complain(result.message)
        if any(result.status == "pending" for result in outcome.results):
            self.tell_waiting()

    async def _evaluated(self, text: str, name: str = "") -> Outcome:
        # What forms print stands beside the results of a program, and does not steer a terminal.
        beside = results_only() if self.as_json else safely_printed() if self.interactive else nullcontext()
        with beside:
            return await self.person.evaluate(text, name)

    def _tell_fault(self, error: BaseException, text: str) -> None:
        from quoth.agent.repl.faults import fault_text

        self._failed = error
        self.complain(fault_text(error, text, self.person.bound()))

    def last_trace(self) -> str:
        """The traceback of the last exception. Raises UsageError."""
        from quoth.agent.repl.faults import trace_text

        if self._failed is None:
            raise UsageError("No form has raised an exception yet.")
        return trace_text(self._failed)

    def _print_json(self, outcome: Outcome, text: str) -> None:
        """What came of an entry, as a call of the tool ``eval`` would say it."""
        from quoth.agent.repl.faults import fault_text
        from quoth.agent.repl.tool_functions import CallFailed

        said: dict[str, Any] = {"status": "ok"}
        if isinstance(error := outcome.error, CallFailed):
            said = {"status": error.result.status, "message": error.result.message}
        elif error is not None:
            self._failed = error
            told = fault_text(error, text, self.person.bound())
            status = "invalid" if told.startswith("invalid: ") else "error"
            said = {"status": status, "message": told.removeprefix("invalid: ")}
        else:
            try:
                said["value"] = plain(outcome.value)
            except (ToolError, RecursionError):
                said["message"] = outcome.printed
        effects = tuple(effect for result in outcome.results for effect in result.side_effects)
        self.show(ToolResult(secrets.token_hex(5), PROGRAMS, side_effects=effects, **said))

    async def load(self, path: Path) -> None:
        """Load a file of tools, after a person has said so if a tool has written it. Raises UsageError."""
        if writer := self.person.files.writer(path):
            await self._must_confirm(path, writer)
        loaded = await self.person.load(path)
        had = number_of(len(loaded.tools), "tool")
        self.tell(f"{path.name}: {had}{': ' if loaded.tools else ''}{', '.join(loaded.tools)}")

    async def _must_confirm(self, path: Path, writer: str) -> None:
        """Ask whether a file that a tool has written is to be loaded. Raises UsageError unless it is."""
        wrote = f"{path} was written by {writer}, and may hold what a model has said."
        if not self.interactive:
            raise UsageError(f"{wrote} Read it, then load it at a terminal.")
        said = await answers().ask(f"{wrote} Load it as it is now? [y/N] ")
        if said.strip().lower() not in ("y", "yes"):
            raise UsageError(f"{path.name} was not loaded.")

    async def fly(self, plan: str) -> None:
        """Fly a plan as ``quoth fly`` does. Raises UsageError."""
        from quoth.agent.flight.progress import Lines

        heard = self.agent.on_event
        self.agent.on_event = Lines(sys.stderr)
        try:
            report = await self.agent.fly(plan)
        finally:
            self.agent.on_event = heard
        if self.as_json:
            print_json(report.to_json())
        else:
            self._write(report.page())
        for note in report.notes:
            self.complain(note)
        if report.status == "pending":
            self.complain(f",pending shows what waits; ,approve or ,deny it, then ,fly {plan}")

    # Showing

    def show(self, done: ToolResult | Reply) -> None:
        """Show what came of a message, or of a call that waited."""
        if self.as_json:
            print_json({"messages": self._sent} | done.to_json() if self._sent else done.to_json())
            self._sent.clear()
        elif isinstance(done, Reply):
            if done.status == "done":
                self.speech.finish(done.text if done.unsent is None else done.unsent)
            for one in done.follow_ups:
                self._write(one.text)
            if done.bounded:
                self.complain(f"{budget_text(done.spent, done.left)}.")
        elif done.ok:
            if done.message:
                self.complain(done.message)
            if done.value is not None:
                self._write(show_value(done.value).rstrip("\n"))
        else:
            self.complain(failure_text(done))
        if done.status == "pending":
            self.tell_waiting()

    def tell_waiting(self) -> None:
        self.complain(",pending shows what waits; ,approve or ,deny it, then ,resume.")

    def tell(self, text: str) -> None:
        """What a command shows: beside the results when those are for a program."""
        if self.as_json:
            self.complain(text)
        else:
            self._write(text)

    def tell_drawn(self, text: str) -> None:
        """What a command shows in quoth's own colours."""
        if self.as_json:
            self.complain(text)
        else:
            print_drawn(text.rstrip("\n"))

    def _write(self, text: str) -> None:
        print_line(text)

    def complain(self, text: str) -> None:
        complain(text, name="")

    # Reading

    async def _read(self) -> str:
        """One entry; Lisp goes on over lines until its parentheses are closed."""
        self._tell_changed_files()
        text = await self._line("quoth> ")
        while not self._edits and is_open(text):
            try:
                text += "\n" + await self._line("...... ")
            except EOFError:
                break
        return text

    def _tell_changed_files(self) -> None:
        """Say which files have changed since they were loaded; none is loaded again unasked."""
        if self.interactive:
            for path in self.person.files.news():
                self.complain(f"{path.name} has changed; ,reload loads it again.")

    async def _line(self, prompt: str) -> str:
        if not self._edits:
            return await self._plain_line(prompt)
        if self._editor is None:
            from quoth.agent.repl.line import LineEditor

            self._editor = LineEditor(self.agent, self._names, self._words, self.lisp)
        return str(await self._editor.read(prompt))

    def _names(self) -> Any:
        return self.person.bound()

    def _words(self) -> dict[str, str]:
        return {command.name: command.help for command in self.commands.values()}

    async def _plain_line(self, prompt: str) -> str:
        """A line that the terminal edits, or that comes from no terminal, and then without a prompt."""
        if self.interactive:
            sys.stdout.write(prompt)
            sys.stdout.flush()
        try:
            return await self._stoppable(self._lines.read())
        except _Interrupted:
            if not self.interactive:
                raise
            sys.stdout.write("\n")
            raise KeyboardInterrupt from None


async def _kept_from_the_loop(work: Coroutine[Any, Any, T]) -> T | SystemExit:
    """Do the work; an event loop would end at its SystemExit, so that is returned."""
    try:
        return await work
    except SystemExit as left:
        return left
