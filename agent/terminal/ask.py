"""Asks a person at the terminal whether a call may be made, and turns the answer into a decision.

Knows the broker's decisions (tools/consent/broker.py). The host creates it; no tool and no model can reach
it.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from quoth.agent.terminal.input import Answers, answers
from quoth.agent.terminal.output import is_terminal, shown
from quoth.tools.call.call import Call
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.decisions import LONGEST_SECONDS, SCOPE_SECONDS
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.policy.scope import arguments, covers, left_open, read_scope, suggested
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import SECONDS
from quoth.tools.visible import mixed, visible

ANSWER_SECONDS = 600.0
UNITS = {unit[0]: float(SECONDS[unit]) for unit in ("second", "minute", "hour", "day")}
HELP = """\
  y          once, this very call
  y 30m      this very call, as often as it comes in the next 30 minutes (s, m, h, d)
  s          every call of a kind: the rule is shown before it counts
  e          another call of the same tool in its place
  v          show the whole form again
  n          no; any other words are a no with that reason, which the caller is told
  Ctrl-C     not now: the call waits"""
ROOM = 10  # lines of the screen for what stands around the form
NARROWEST, LOWEST = 20, 6
WHOLE = "  Allow it? [y/N/s/e/? for help, or why not] "
CUT = "  Allow it? [v shows all of it, then y/s; N/e/? for help, or why not] "


def seconds_of(text: str) -> float:
    """Parse a time such as ``30m``, ``2h`` or ``1d`` into seconds. Raises UsageError."""
    written = text.strip()
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]+)?)\s*([smhd])", written)
    if not found or float(found[1]) == 0:
        raise UsageError(f"A time is written 30s, 10m, 2h or 1d, not {written or 'nothing'}.")
    seconds = float(found[1]) * UNITS[found[2]]
    if seconds > LONGEST_SECONDS:
        raise UsageError(f"A grant lasts at most {LONGEST_SECONDS / UNITS['d']:g} days, not {written}.")
    return seconds


def call_of(text: str) -> CallForm:
    """Parse a call form that a person has typed. Raises UsageError, with a caret for a syntax error."""
    try:
        return from_model(read_one(text))
    except ReadError as error:
        raise UsageError(f"{error}\n{error.caret()}") from None
    except InvalidCallError as error:
        raise UsageError(str(error)) from None


def confirmed(question: str, *, no_input: bool) -> bool:
    """Ask a yes-no question at the terminal. Raises UsageError if nobody can be asked."""
    if no_input or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"{shown(question)} Say so with --yes.")
    try:
        return asyncio.run(answers().ask(f"{shown(question)} [y/N] ")).strip().lower() in ("y", "yes")
    except EOFError:
        return False


class AskTerminal:
    """Shows a call to the person at the terminal and asks for a decision.

    It asks one question at a time, on stderr, because stdout is for results. Text typed before the question
    is dropped. Of a form that fills the screen only head and tail are shown, and the person cannot approve it
    before seeing the rest. Without an answer within ANSWER_SECONDS the call stays pending. After an interrupt
    this call and all later ones stay pending until ``listen``. ``user`` is recorded with the decision;
    ``workspace`` resolves the paths in a scope.
    """

    def __init__(self, lines: Answers | None = None, user: str = "", workspace: Path | str = ".") -> None:
        self._lines = lines or answers()
        self._user = user
        self._workspace = workspace
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[str] | None = None
        self._interrupted = False
        self._alone = False  # whether the person wants to be asked no more

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Decision | None:
        async with self._turn:
            if self._alone:
                return None
            self._interrupted = False
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await self._ask(tool, call, reason)
            except TimeoutError:
                _say("\n  No answer came; the call waits.\n")
                return None
            except asyncio.CancelledError:
                if not self._interrupted:
                    raise
                _say("\n")
                return None

    async def _ask(self, tool: CognitiveTool, call: Call, reason: str) -> Decision:
        hide = Redactor(call.form, tool.params, by_looks=False)
        whole = _margin(visible(str(hide.form), lines=True))
        because = visible(f"asked because {hide.text(reason)}", lines=True).replace("\n", "\n    ")
        notes = "".join(
            f"\n  {note}" for note in [because, mixed(f"{hide.form} {hide.text(reason)}")] if note
        )
        brief = _cut(whole)
        question = WHOLE if brief == whole else CUT
        _say(f"\n{brief}{notes}\n")
        while True:
            said = await self._answer(question)
            if said == "?":
                _say(HELP + "\n")
            elif said.lower() == "v":
                _say(whole + "\n")
                question = WHOLE
            elif question is CUT and re.match(r"(y|yes|s|scope)\b", said, re.IGNORECASE):
                _say("  Only a part of it was shown; v shows all of it.\n")
            else:
                try:
                    decision = await self._decision(said, tool, call)
                except (UsageError, InvalidCallError) as error:
                    _say("".join(f"  {line}\n" for line in visible(str(error), lines=True).splitlines()))
                else:
                    if decision is not None:
                        return decision

    async def _decision(self, said: str, tool: CognitiveTool, call: Call) -> Decision | None:
        """Return the decision that an answer means, or None to ask again. Raises UsageError and
        InvalidCallError for an answer that means none."""
        word, _, rest = said.partition(" ")
        word, rest = word.lower().rstrip(",;.!"), rest.strip()
        if word in ("y", "yes"):
            if not rest:
                return Decision("once", self._user)
            return Decision("duration", self._user, seconds=seconds_of(rest))
        if word in ("s", "scope") and (not rest or rest.startswith("(")):
            return await self._scope(tool, call, rest)
        if word in ("e", "edit") and (not rest or rest.startswith("(")):
            return await self._edit(tool, rest)
        if word in ("", "n", "no") and not rest:
            return Decision("deny", self._user)
        if word == "n":
            return Decision("deny", self._user, why=rest)
        if not rest:  # a slip of the finger is no reason
            raise UsageError(f"{said} is no answer. y allows it, n refuses it, ? shows what else there is.")
        return Decision("deny", self._user, why=said)

    async def _scope(self, tool: CognitiveTool, call: Call, rule: str) -> Decision | None:
        """Show a rule and return it as a decision once confirmed, or None to ask again."""
        while True:
            read = read_scope(rule or suggested(tool, call.form), tool)
            if not covers(read, tool, call, Workspace(self._workspace)):
                raise UsageError(f"{read.text} does not cover this call.")
            leaves = f"  {said}\n" if (said := left_open(read.text)) else ""
            said = await self._answer(
                f"  {visible(read.text)}\n{leaves}"
                f"  Allow that in this session for {SCOPE_SECONDS / 3600:g} hours? [y/N, or another rule] "
            )
            if not said.startswith("("):
                return Decision("scope", self._user, rule=read.text) if said.lower() in ("y", "yes") else None
            rule = said

    async def _edit(self, tool: CognitiveTool, text: str) -> Decision | None:
        """Return the checked call to make instead as a decision, or None to ask again."""
        said = text or await self._answer("  The call to make instead: ")
        if not said:
            return None
        form = call_of(said)
        if form.tool != tool.name:
            raise UsageError(f"An edited call keeps its tool, {tool.name}.")
        try:
            arguments(tool, form, Workspace(self._workspace))
        except InvalidCallError as error:
            raise UsageError(f"{error} It is called as {tool.signature()}.") from None
        return Decision("edit", self._user, form=form)

    async def _answer(self, question: str) -> str:
        """One line of the person; the end of input is an empty one."""
        self._waiting = asyncio.ensure_future(self._lines.ask(question))
        try:
            return (await self._waiting).strip()
        except EOFError:
            _say("\n")
            return ""
        finally:
            if not self._waiting.done():
                self._waiting.cancel()
            self._waiting = None

    @property
    def asking(self) -> bool:
        """Whether a question waits for an answer now."""
        return self._waiting is not None

    def interrupt(self) -> None:
        """Withdraw the question, and ask no more until ``listen``."""
        if self._waiting is not None:
            self._interrupted = self._alone = True
            self._waiting.cancel()

    def listen(self) -> None:
        """Allow questions again after an interrupt."""
        self._alone = False


def _margin(text: str) -> str:
    """Return the form with a mark before each line after the first, so that none imitates the question."""
    return text.replace("\n", "\n│ ")


def _cut(text: str) -> str:
    """Return the text if it fits on the screen, else its head and tail with the length of the gap."""
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):
        columns, rows = 80, 24
    columns, rows = max(columns, NARROWEST), max(rows - ROOM, LOWEST)
    lines = [part for line in text.split("\n") for part in _wrapped(line, columns)]
    if len(lines) <= rows:
        return text
    head, tail = lines[: rows * 2 // 3], lines[-(rows // 3) :]
    total, kept = sum(map(len, lines)), sum(map(len, [*head, *tail]))
    gap = f"[… {total - kept} of {total} characters are not shown here; v shows all …]"
    return "\n".join([*head, gap, *tail])


def _wrapped(line: str, columns: int) -> list[str]:
    """Split a line as the screen wraps it; if it is not all ASCII, each character counts as two columns."""
    width = columns if line.isascii() else columns // 2
    return [line[at : at + width] for at in range(0, len(line), width)] or [""]


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
