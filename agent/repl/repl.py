"""The REPL: a line that starts with ``(`` is Lisp, one with ``,`` a command, anything else goes to the agent.

Knows one agent and a terminal; what a line does is done by the agent.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
import sys
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.terminal.input import StdinLines
from quoth.agent.terminal.interrupt import interrupt_politely
from quoth.agent.terminal.next_step import tell_next
from quoth.agent.terminal.output import complain, is_dumb, print_json, print_line
from quoth.agent.terminal.progress import Progress
from quoth.agent.terminal.requests import decide, listing, page
from quoth.agent.terminal.text import budget_text, failure_text, show_value
from quoth.tools.call.call import ToolResult
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import QuothError, UsageError, did_you_mean
from quoth.tools.lisp.reader import ReadError, read_all

T = TypeVar("T")

HELP = """\
(form)         run Lisp in the sandbox; tools are functions, each call passes the door
any text       give it to the agent; the conversation goes on from line to line
,help          this text
,tools         list the tools
,tool NAME     show a tool: schema, source form, expansion
,belt          what the model is shown
,models        which models there are, and what is missing
,pending       list what waits for your decision in this session; with an ID: all of that request
,approve ID    approve it once; ,approve ID for 30m: as often as it comes within that time
,deny ID WHY   refuse it; the caller is told the reason
,resume        go on with what waited
,new           forget the conversation
,quit          leave (Ctrl-D does too)"""
COMMANDS = ("help", "tools", "tool", "belt", "models", "pending", "approve", "deny", "resume", "new", "quit")


class _Interrupted(Exception):
    """Ctrl-C ended the current entry."""


class Repl:
    """Reads entries and carries them out until the end of input; without a terminal it shows no prompt.

    Ctrl-C stops the current entry and returns to the prompt. ``as_json`` prints each result as JSON on one
    line; ``picked_up`` is the message about the conversation that is continued.
    """

    greeting = "quoth. (form) runs Lisp, text goes to the agent, ,help lists commands."
    help = HELP

    def __init__(self, agent: AsyncAgent, as_json: bool = False, picked_up: str = "") -> None:
        self.agent = agent
        self._picked_up = picked_up
        agent.on_event = Progress()
        self.as_json = as_json
        self._sent: list[str] = []  # messages that go into the JSON of what is being done
        agent.deliver = self._sent.append if as_json else print_line
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._edits = self.interactive and not is_dumb()
        self._prompt: Any = None
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
            self._complain(self.greeting)
        if self._picked_up:
            for line in (self._picked_up, *self.agent.changes()):
                self._complain(line)
        while True:
            try:
                text = await self._read()
            except EOFError:
                return 0
            except KeyboardInterrupt:  # Ctrl-C at the prompt drops the line
                continue
            except _Interrupted:
                return 130
            if text.strip().replace(", ", ",", 1).partition(" ")[0] in (",quit", ",q", ",exit"):
                return 0
            try:
                await self._stoppable(self.one(text.strip()))
            except QuothError as error:
                self._complain(str(error))
            except _Interrupted:
                self._complain("Interrupted.")

    async def _stoppable(self, work: Coroutine[Any, Any, T]) -> T:
        """Do ``work``; Ctrl-C ends it and raises _Interrupted; a run ends by itself."""
        self._pressed = False
        self.agent.broker.listen()  # Ctrl-C was for an earlier line
        task: asyncio.Task[T] = asyncio.ensure_future(work)
        self._task = task
        try:
            return await task
        except asyncio.CancelledError:
            if not self._pressed:
                raise
            raise _Interrupted from None
        finally:
            self._task = None

    def _interrupt(self) -> None:
        if self._task is not None and not interrupt_politely(self.agent):
            self._pressed = True
            self._task.cancel()

    async def one(self, text: str) -> None:
        """Carry out one entry: a Lisp form, a command, or text for the agent."""
        if not text:
            return
        if text.startswith(","):
            name, _, rest = text[1:].strip().partition(" ")
            if name == "resume":
                await self._resume(rest.strip())
            elif name == "models":
                await self._models()
            else:
                self._command(name, rest.strip())
        elif text.startswith("("):
            self._show(await self.agent.eval(text, route="repl"))
        else:
            self._show(await self.agent.say(text))

    def _show(self, done: ToolResult | Reply) -> None:
        """What came of a line."""
        if self.as_json:
            print_json({"messages": self._sent} | done.to_json() if self._sent else done.to_json())
            self._sent.clear()
        elif isinstance(done, Reply):
            if done.status == "done" and (text := done.text if done.unsent is None else done.unsent):
                self._write(text)
            for one in done.follow_ups:
                self._write(one.text)
            if done.bounded:
                self._complain(f"{budget_text(done.spent, done.left)}.")
        elif done.ok:
            if done.message:
                self._complain(done.message)
            if done.value is not None:
                self._write(show_value(done.value).rstrip("\n"))
        else:
            self._complain(failure_text(done))
        if done.status == "pending":
            self._tell_waiting()

    def _tell_waiting(self) -> None:
        self._complain(",pending shows what waits; ,approve or ,deny it, then ,resume.")

    async def _models(self) -> None:
        from quoth.agent.terminal.model_list import list_models

        found = await list_models(self.agent.config)
        self._tell(str(found))
        for trouble in found.troubles:
            self._complain(trouble)

    async def _resume(self, session: str) -> None:
        if session not in ("", self.agent.session):
            raise UsageError(f",resume goes on with this session; for another: quoth resume {session}")
        for done in await self.agent.resume():
            self._show(done)

    def _command(self, name: str, rest: str) -> None:
        if name == "help":
            self._tell(self.help)
        elif name == "tools":
            self._tell("\n".join(tool.signature() for tool in self.agent.listed().visible))
        elif name == "tool":
            from quoth.agent.terminal.tool_page import tool_page

            if not rest:
                raise UsageError(",tool needs the name of a tool; ,tools lists them.")
            self._tell(tool_page(self.agent.table.get(rest)))
        elif name == "belt":
            from quoth.neuro.prompt.belt import belt
            from quoth.neuro.prompt.dialects import CALL_FORM

            self._tell(
                belt(self.agent.offers.table(self.agent.table, CALL_FORM, self.agent.user)).rstrip("\n")
            )
        elif name == "pending":
            self._pending(rest)
        elif name in ("approve", "deny"):
            self._decide(name, rest)
        elif name == "new":
            self.agent.forget()
            self._tell("A new conversation.")
        else:
            self._complain(f"There is no command ,{name}; ,help lists them." + did_you_mean(name, COMMANDS))

    def _pending(self, request: str) -> None:
        broker = self.agent.broker
        if request:
            self._tell(page(broker.find(request), time.time(), broker.plan_of(request)))
        else:
            self._tell(listing(broker.requests(session=self.agent.session)) or "Nothing waits.")

    def _decide(self, name: str, rest: str) -> None:
        request, _, more = rest.partition(" ")
        if not request:
            raise UsageError(f",{name} needs the ID of a request; ,pending lists them.")
        decision = Decision("deny", self.agent.user, why=more.strip())
        if name == "approve":
            decision = _approval(more.strip(), self.agent.user)
        decided = decide(self.agent.broker, request, decision)
        self._tell(str(decided))
        for line in decided.advice():
            self._complain(line)
        session = decided.request.session
        how = ",resume" if session == self.agent.session else f"quoth resume {shlex.quote(session)}"
        tell_next("To go on", how, name="")

    async def _read(self) -> str:
        """One entry; Lisp goes on over lines until its parentheses are closed."""
        text = await self._line("quoth> ")
        while text.lstrip().startswith("("):
            try:
                read_all(text)
                break
            except ReadError as error:
                if not error.incomplete:
                    break
            try:
                text += "\n" + await self._line("...... ")
            except EOFError:
                break
        return text

    async def _line(self, prompt: str) -> str:
        if not self._edits:
            return await self._plain_line(prompt)
        if self._prompt is None:
            from quoth.agent.repl.line import LineEditor

            self._prompt = LineEditor(self.agent, dict, lambda: dict.fromkeys(COMMANDS, ""))
        return str(await self._prompt.read(prompt))

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

    def _tell(self, text: str) -> None:
        """What a command shows: beside the results when those are for a program."""
        if self.as_json:
            self._complain(text)
        else:
            self._write(text)

    def _write(self, text: str) -> None:
        print_line(text)

    def _complain(self, text: str) -> None:
        complain(text, name="")


def _approval(when: str, user: str) -> Decision:
    """Once, or ``for 30m``. Raises UsageError."""
    from quoth.agent.terminal.ask import seconds_of

    word, _, span = when.partition(" ")
    if not when:
        return Decision("once", user)
    if word != "for":
        raise UsageError(f"It is ,approve ID, or ,approve ID for 30m; not {when}.")
    return Decision("duration", user, seconds=seconds_of(span))
