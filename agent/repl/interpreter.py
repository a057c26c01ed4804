"""Carries out the entries of a REPL and shows their results: Lisp, text for the agent, files, plans.

repl.py reads the entries, runs the commands and handles Ctrl-C.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.loaded import digest_of_file
from quoth.agent.repl.values import as_hy, as_plain, fault_text, safely_printed, trace_text
from quoth.agent.reply import Reply, WrittenPlan
from quoth.agent.terminal.forms import budget_text, failure_text, show_value
from quoth.agent.terminal.input import answers
from quoth.agent.terminal.output import (
    complain,
    print_colored,
    print_data,
    print_drawn,
    print_json,
    print_line,
    results_only,
)
from quoth.agent.terminal.speech import Speech
from quoth.tools.call.call import PROGRAMS, ToolResult
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.registry.values import plain
from quoth.tools.text import number_of
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.repl.person import EntryOutcome, PromptNames


class Interpreter:
    """Carries out entries. ``as_json`` prints each result as JSON on one line."""

    help: str  # the text of ,help

    def __init__(self, agent: AsyncAgent, as_json: bool = False) -> None:
        self.agent = agent
        self.speech = Speech(aloud=not as_json)
        agent.on_event = self.speech
        self.as_json = as_json
        self._sent: list[str] = []  # messages for the JSON output of the present entry
        agent.deliver = self._sent.append if as_json else print_data
        self.interactive = sys.stdin.isatty() and sys.stdout.isatty()
        self._failed: BaseException | None = None  # the exception of the last failed form

    @cached_property
    def person(self) -> PromptNames:
        """The person's module, created at first use."""
        from quoth.agent.repl.person import PromptNames

        return PromptNames(self.agent, asyncio.get_running_loop(), as_hy if self.interactive else as_plain)

    async def say(self, text: str) -> None:
        """Send text to the agent; its reply becomes the value of ``_``, a text that is never evaluated."""
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

    async def _evaluated(self, text: str, name: str = "") -> EntryOutcome:
        # Prints of forms go beside the results of a program, and cannot send control characters to a
        # terminal.
        beside = results_only() if self.as_json else safely_printed() if self.interactive else nullcontext()
        with beside:
            return await self.person.evaluate(text, name)

    def _tell_fault(self, error: BaseException, text: str) -> None:
        self._failed = error
        self.complain(fault_text(error, text, self.person.bound()))

    def last_trace(self) -> str:
        """The traceback of the last exception. Raises UsageError if there was none."""
        if self._failed is None:
            raise UsageError("No form has raised an exception yet.")
        return trace_text(self._failed)

    def _print_json(self, outcome: EntryOutcome, text: str) -> None:
        """The result of an entry, in the format of a call of the tool ``eval``."""
        from quoth.tools.call.context import CallFailed

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
        """Load a file of tools; if a tool wrote it, ask first. Raises UsageError."""
        if writer := self.person.files.writer(path):
            asked = digest_of_file(path)
            await self._must_confirm(path, writer)
            if digest_of_file(path) != asked:
                raise UsageError(f"{path.name} changed during the question, so it was not loaded.")
        loaded = await self.person.load(path)
        had = number_of(len(loaded.tools), "tool")
        self.tell(f"{path.name}: {had}{': ' if loaded.tools else ''}{', '.join(loaded.tools)}")

    async def _must_confirm(self, path: Path, writer: str) -> None:
        """Ask whether to load a file that a tool wrote. Raises UsageError after a no."""
        wrote = f"{visible(str(path))} was written by {writer}, and may contain text of a model."
        if not self.interactive:
            raise UsageError(f"{wrote} Read it, then load it at a terminal.")
        said = await answers().ask(f"{wrote} Load its present text? [y/N] ")
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
            print_line(report.page())
        for note in report.notes:
            self.complain(note)
        if report.status == "pending":
            self.tell_waiting(f",fly {plan}")

    # Showing

    def show(self, done: ToolResult | Reply) -> None:
        """Show the result of a message or of a resumed call."""
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
            if done.plan is not None:
                self._tell_plan(done.plan)
        elif done.ok:
            if done.message:
                self.complain(done.message)
            if done.value is not None:
                self._write(show_value(done.value).rstrip("\n"))
        else:
            self.complain(failure_text(done))
        if done.status == "pending":
            self.tell_waiting()

    def _tell_plan(self, plan: WrittenPlan) -> None:
        if plan.steps:
            steps = number_of(plan.steps, "step")
            self.complain(f"The plan has {steps}; none of its calls has run: {plan.file}")
        path = os.path.relpath(self.agent.workspace.root / plan.file)
        self.complain(f"Edit it as you like. To approve it as a whole: quoth approve {path}")
        self.complain(f"To fly it: ,fly {path}")

    def tell_waiting(self, how: str = ",resume.") -> None:
        """Print how to decide or answer the waiting requests, and then how to continue."""
        asked = [request.question for request in self.agent.broker.requests(session=self.agent.session)]
        decide = [",approve or ,deny"] if None in asked or not asked else []
        decide += [",answer"] if any(asked) else []
        self.complain(f"To list waiting requests: ,pending. To decide: {' or '.join(decide)}. Then: {how}")

    def tell(self, text: str) -> None:
        """Print the output of a command: to stderr if stdout is for a program."""
        if self.as_json:
            self.complain(text)
        else:
            print_line(text)

    def tell_drawn(self, text: str) -> None:
        """Print the output of a command in quoth's own colours."""
        if self.as_json:
            self.complain(text)
        else:
            print_drawn(text.rstrip("\n"))

    def tell_colored(self, lines: Callable[[bool], Iterable[str]]) -> None:
        """Print the output of a command, in colours if the terminal has them."""
        if not self.as_json:
            print_colored(lines)
        elif text := "\n".join(lines(False)):
            self.complain(text)

    def _write(self, text: str) -> None:
        print_data(text)

    def complain(self, text: str) -> None:
        complain(text, name="")
