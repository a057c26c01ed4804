"""The REPL: Lisp of a person is evaluated, a line with ``,`` is a command, anything else goes to the agent.

entries.py classifies entries, interpreter.py carries them out, commands.py has the commands. A chat at the
terminal is a REPL without Lisp.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.commands import COMMANDS, SHORT, Command, help_text
from quoth.agent.repl.entries import as_command, is_open, kind_of
from quoth.agent.repl.interpreter import Interpreter
from quoth.agent.reply import Reply
from quoth.agent.run.surroundings import untrusted
from quoth.agent.terminal.input import StdinLines
from quoth.agent.terminal.output import is_dumb
from quoth.agent.terminal.pages import rules_line
from quoth.tools.call.call import ToolResult
from quoth.tools.errors import QuothError, did_you_mean
from quoth.tools.policy.files import at_home
from quoth.tools.text import number_of

T = TypeVar("T")

ENTRIES = (
    ("(form)", "evaluate Lisp, all of Hy, on this machine; tools are functions"),
    ("any text", "send it to the agent as the next message of the conversation"),
)


class _Interrupted(Exception):
    """Ctrl-C ended the current entry."""


class Repl(Interpreter):
    """Reads entries and carries them out until the end of input; shows a prompt only on a terminal.

    Ctrl-C stops the current entry and returns to the prompt. ``as_json`` prints each result as JSON on one
    line; ``picked_up`` is the message about the conversation that is continued.
    """

    commands: ClassVar[dict[str, Command]] = COMMANDS
    entries: tuple[tuple[str, str], ...] = ENTRIES
    lisp: ClassVar[bool] = True  # whether forms are evaluated

    def __init__(self, agent: AsyncAgent, as_json: bool = False, picked_up: str = "") -> None:
        super().__init__(agent, as_json)
        self.help = help_text(self.commands, *self.entries)
        self._picked_up = picked_up
        self._edits = self.interactive and not is_dumb()
        self._editor: Any = None
        self._lines = StdinLines()
        self._task: asyncio.Task[Any] | None = None
        self._pressed = False

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
        if note := untrusted(self.agent.workspace.home):
            self.complain(note)
        if self._picked_up:
            for line in (self._picked_up, *self.agent.host.changes()):
                self.complain(line)
        try:
            await self._guarded(self._begin())
            while True:
                try:
                    text = await self._read()
                except EOFError:
                    return 0
                except KeyboardInterrupt:  # Ctrl-C at the prompt drops the line
                    if self._editor is not None and not self._editor.typed:
                        self.complain("To leave: exit, or Ctrl-D.")
                    continue
                except _Interrupted:
                    return 130
                await self._guarded(self.one(text.strip()))
        except EOFError:  # ,quit
            return 0
        except SystemExit as left:
            return left.code if isinstance(left.code, int) else 0

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work of an entry and print its errors, so that the prompt returns."""
        try:
            await self._stoppable(work)
        except QuothError as error:
            self.complain(str(error))
        except _Interrupted:
            self.complain("Interrupted.")

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work``. Ctrl-C ends it and raises _Interrupted, but a run ends by itself."""
        self._pressed = False
        self.agent.broker.listen()  # an earlier Ctrl-C does not apply to this entry
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
        if self._task is not None and not self.agent.host.interrupt_politely():
            self._pressed = True
            self._task.cancel()

    # Entries

    def greeting(self) -> str:
        return banner(self.agent)

    async def _begin(self) -> None:
        """Evaluate the startup files: the user's, and the workspace's if it is trusted."""
        from quoth.agent.repl.loaded import startup_files

        files, notes = startup_files(self.agent.workspace.home)
        for note in notes:
            self.complain(note)
        for name, text in files:
            outcome = await self._evaluated(text, name)
            if outcome.error is not None:
                self.complain(f"{name} was only partly evaluated.")
                self._tell_fault(outcome.error, text)

    async def one(self, text: str) -> None:
        """Carry out one entry: a Lisp form, a command, or text for the agent."""
        kind = kind_of(text, lambda name: self.person.is_bound(name))
        if kind == "word":
            text, kind = as_command(text), "command"
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
            self.complain(f"There is no command ,{name}.{hint} To list commands: ,help")
            return
        work = command.do(self, rest.strip())
        if work is not None:
            await work

    # Reading

    async def _read(self) -> str:
        """One entry; Lisp continues over lines until its parentheses are closed."""
        self._tell_changed_files()
        text = await self._line("quoth> ")
        while not self._edits and is_open(text):
            try:
                text += "\n" + await self._line("...... ")
            except EOFError:
                break
        return text

    def _tell_changed_files(self) -> None:
        """Report loaded files that changed; does not load them again by itself."""
        if self.interactive:
            for path in self.person.files.news():
                self.complain(f"{path.name} changed. To load it again: ,reload")

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
        """A line, edited by the terminal; without a prompt if stdin is not a terminal."""
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
    """Do the work, but return a SystemExit, which would end the event loop if raised."""
    try:
        return await work
    except SystemExit as left:
        return left


# The banner: the model, the folder, the session, the rules and a first task


SUGGESTION = "What does {} say?"  # a task in words that the embedded model solves: tests/bench/first_task.py
TEXTS, LARGEST, LOOKED_AT = (".txt", ".md", ".org"), 2000, 500
NAME = re.compile(r"[A-Za-z0-9][\w.-]*")
WAYS = "(form) evaluates Lisp, other text goes to the agent, ,help shows help."


def banner(agent: AsyncAgent) -> str:
    """The banner: one line per item."""
    tools = number_of(len(agent.host.listed().visible), "tool")
    rows = {
        "model": _model(agent),
        "folder": f"{at_home(agent.workspace.root)}, {tools}",
        "session": agent.session,
        "rules": rules_line(agent.policy),
    }
    if name := _smallest_text(agent.workspace.root):
        rows["try"] = SUGGESTION.format(name)
    return "\n".join([f"quoth. {WAYS}", *(f"  {name:<8} {said}" for name, said in rows.items())])


def _model(agent: AsyncAgent) -> str:
    try:
        return agent.models.backend().name
    except QuothError as error:
        return str(error)


def _smallest_text(folder: Path) -> str:
    """The smallest small text file of a folder, the quickest for a small model to read; empty if none."""
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in islice(entries, LOOKED_AT):
            if (
                entry.name.endswith(TEXTS)
                and NAME.fullmatch(entry.name)
                and entry.is_file(follow_symlinks=False)
            ):
                found.append((entry.stat().st_size, entry.name))
    return min((one for one in found if 0 < one[0] <= LARGEST), default=(0, ""))[1]


# A chat of one person: each line is a message, and the reply is printed


class ChatRepl(Repl):
    """Reads messages and commands until the end of input; Lisp is a message too. ``chat`` is the agent's copy
    for this chat."""

    commands: ClassVar[dict[str, Command]] = {
        name: command for name, command in COMMANDS.items() if command.chat
    }
    entries = (("any text", "send it as the next message of the chat"),)

    lisp = False

    def __init__(self, chat: AsyncAgent, as_json: bool = False) -> None:
        super().__init__(chat, as_json)
        chat.deliver = None  # the Reply contains all messages in order
        self._told: set[str] = set()  # the shown follow-ups, by run and call

    def greeting(self) -> str:
        return "quoth chat. Each line is a message. To list commands: ,help"

    async def _begin(self) -> None:
        """Do nothing: a chat does not evaluate startup files."""

    async def one(self, text: str) -> None:
        if text.startswith(","):
            await self.command(text)
        elif text:
            self.show(await self.agent.say(text))

    def show(self, done: ToolResult | Reply) -> None:
        if isinstance(done, Reply) and not self.as_json:
            if done.status in ("done", "pending"):
                self.speech.finish(done.text)
            for one in done.follow_ups:
                if one.call not in self._told:
                    self._told.add(one.call)
                    self._write(one.text)
            for text in done.messages:
                self._write(text)
            if done.status == "pending":
                self.tell_waiting()
        else:
            super().show(done)

    async def _read(self) -> str:
        return await self._line("quoth> ")

    def _names(self) -> dict[str, object]:
        return {}
