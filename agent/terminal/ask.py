"""Asks a person at the terminal whether a call may run, and turns the answer into a decision.

Knows the broker's decisions (tools/consent/broker.py). The host creates it; no tool and no model can reach
it.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.terminal.forms import laid_out, stands
from quoth.agent.terminal.input import Answers, answers, edited, named_editor
from quoth.agent.terminal.output import is_terminal, set_in, shown
from quoth.agent.terminal.question import (
    ASKS,
    CHANGED,
    FORM_ASKS,
    columns,
    question,
    words_prompt,
    words_rows,
)
from quoth.tools.call.call import Call, Changes, Verdict
from quoth.tools.call.canonical import arguments
from quoth.tools.call.redaction import SECRET, Redactor
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.decisions import LONGEST_SECONDS, SCOPE_SECONDS
from quoth.tools.consent.requests import Decision, SayYes
from quoth.tools.errors import InvalidCallError, UsageError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.policy.scope import covers, left_open, read_scope, suggested
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import SECONDS
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.call.question import Question


ANSWER_SECONDS = 600.0
UNITS = {unit[0]: float(SECONDS[unit]) for unit in ("second", "minute", "hour", "day")}
HELP = """\
  y       yes: run this call once
  y 30m   yes, and the same call again in the next 30 minutes (s, m, h, d)
  s       yes, and every call of a kind in this session; you see the rule first
  e       edit the form (in $EDITOR if set); the edited call runs instead
  v       view everything: the whole form and all its changes
  n       no, the default; other words are a no with that reason for the model
  Ctrl-C  decide later: the call waits"""
WHOLE = "  Allow it? y, n (default), s, e, ? for help, or a reason to refuse: "
CUT = "  Allow it? v to view all, then y or s; n (default), e, ?, or a reason: "


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
    """Ask a yes-no question at the terminal. Raises UsageError without a terminal."""
    return asyncio.run(confirm(question, no_input=no_input))


async def confirm(question: str, *, no_input: bool) -> bool:
    """The same, where a loop of asyncio runs already."""
    if no_input or not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(f"{shown(question)} To say yes, add --yes.")
    try:
        return (await answers().ask(f"{shown(question)} [y/N] ")).strip().lower() in ("y", "yes")
    except EOFError:
        return False


class AskTerminal:
    """Shows a call to the person at the terminal and asks for a decision.

    It asks one question at a time, on stderr, because stdout is for results. Text typed before the question
    is dropped. Of a form that fills the screen only head and tail are shown, and the person cannot approve it
    before seeing the rest. Without an answer within ANSWER_SECONDS the call stays pending. After an interrupt
    this call and all later ones stay pending until ``listen``.
    ``user`` is recorded with the decision;
    ``workspace`` resolves the paths in a scope.
    """

    human = True

    def __init__(self, lines: Answers | None = None, user: str = "", workspace: Path | str = ".") -> None:
        self._lines = lines or answers()
        self._user = user
        self._workspace = workspace
        self._turn = asyncio.Lock()
        self._waiting: asyncio.Future[str] | None = None
        self._interrupted = False
        self._alone = False  # whether the person wants to be asked no more
        self._now: Call | None = None  # what the question is about
        self._outcome = ""  # of one that was answered elsewhere
        self._draft = ""  # what the person wrote in place of it
        self._find_changes: Callable[[CognitiveTool, Call], Changes | None] = lambda tool, call: None

    def show_changes_by(self, find: Callable[[CognitiveTool, Call], Changes | None]) -> None:
        """Use this to find out what a call would change."""
        self._find_changes = find

    def withdraw(self, call: Call, outcome: str) -> None:
        """Say, once it is cancelled, that the question about a call was answered elsewhere."""
        if self._now is call:
            self._outcome = outcome

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Decision | Verdict | None:
        return await self._in_turn(call, lambda: self._ask(tool, call, reason))

    async def answer(self, tool: CognitiveTool, call: Call, question: Question) -> Decision | None:
        """What the person says to a question of a call."""
        return await self._in_turn(call, lambda: self.words(question))

    async def _in_turn(self, call: Call, ask: Callable[[], Awaitable[Decision | None]]) -> Decision | None:
        async with self._turn:
            if self._alone:
                return None
            self._interrupted, self._now, self._outcome = False, call, ""
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    return await ask()
            except TimeoutError:
                _say("\n  No answer came; the call waits.\n")
                return None
            except asyncio.CancelledError:
                if self._outcome:
                    _say(f"  Decided elsewhere: {visible(self._outcome)}.\n")
                if not self._interrupted:
                    raise
                _say("\n")
                return None
            finally:
                self._now = None

    async def words(self, question: Question) -> Decision | None:
        """Show a question until there is an answer in words; None when the input has ended."""
        asks = ASKS if question.form is None else FORM_ASKS
        _say("\n".join(["", asks, *words_rows(question, columns()), ""]))
        stands("")
        while True:
            try:
                said = await self._line(words_prompt(question))
                if said.strip() == "?":
                    reader = "The model" if question.form is None else "The server"
                    raise UsageError(f"{reader} reads your answer exactly as you write it.")
                return Decision("answer", self._user, answer=question.answer(said))
            except EOFError:
                return None
            except UsageError as error:
                _tell(f"{error} Ctrl-C leaves it for later.")

    async def _ask(self, tool: CognitiveTool, call: Call, reason: str) -> Decision | None:
        """Show the question until it has an answer; None when it was taken back."""
        hide = Redactor(call.form, tool.params, by_looks=False)
        changes = await self._changes(tool, call)
        origins = call.origins()
        asks = question(tool, hide, reason, changes, origins, call.route)
        complete = asks.complete
        _say(f"{asks.brief}\n")
        self._draft = ""
        while True:
            said = await self._answer(WHOLE if complete else CUT)
            if said == "?":
                _say(HELP + "\n")
            elif said.lower() == "v":
                _say(asks.whole + "\n")
                complete = True
            elif not complete and re.match(r"(y|yes|s|scope)\b", said, re.IGNORECASE):
                _say("  You have seen only a part of it. Type v to view all of it.\n")
            else:
                decision = await self._decided(said, tool, call)
                if decision is None:
                    continue
                if decision.kind in ("deny", "edit") or (now := await self._changes(tool, call)) == changes:
                    _say("\n")
                    return decision
                changes, asks = now, question(tool, hide, reason, now, origins, call.route)
                complete = asks.complete
                _say(f"  {CHANGED}\n{asks.brief}\n")

    async def _changes(self, tool: CognitiveTool, call: Call) -> Changes | None:
        """What the call would change, as the files are now."""
        return await asyncio.to_thread(self._find_changes, tool, call)

    async def _decided(self, said: str, tool: CognitiveTool, call: Call) -> Decision | None:
        """The decision that an answer means; None, after a word about it, to ask again."""
        try:
            return await self._decision(said, tool, call)
        except (UsageError, InvalidCallError) as error:
            _tell(str(error))
            return None

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
            return await self._edit(tool, call, rest)
        if word in ("", "n", "no") and not rest:
            return Decision("deny", self._user)
        if word == "n":
            return Decision("deny", self._user, why=rest)
        if said.startswith("("):
            raise UsageError(
                "A form is not an answer. To run it instead of this call: e FORM. To refuse with it as the"
                " reason: n FORM."
            )
        if said.startswith(","):
            raise UsageError(
                "A command of the prompt is not an answer. To refuse with these words as the reason: n WORDS."
            )
        if not rest:  # a mistyped letter is not a reason
            raise UsageError(f"{said} is not an answer. Please answer y (allow), n (refuse) or ? (help).")
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

    async def _edit(self, tool: CognitiveTool, call: Call, text: str) -> Decision | None:
        """Return the checked call to run instead as a decision, or None to ask again. Without ``text`` the
        person changes the form in their editor, or in a line where they have named none."""
        shown = Redactor(call.form, tool.params, by_looks=False).form
        said = text or await self._rewritten(tool.name, shown)
        if not said or (not text and call_of(said) == shown):
            _say("  Nothing was changed.\n")
            return None
        form = _with_secrets(call_of(said), tool, call.form)
        if form.tool != tool.name:
            raise UsageError(f"An edited call must call the same tool, {tool.name}.")
        try:
            arguments(tool, form, Workspace(self._workspace))
        except InvalidCallError as error:
            raise UsageError(f"{error} It is called as {tool.signature()}.") from None
        return Decision("edit", self._user, form=form)

    async def _rewritten(self, name: str, form: CallForm) -> str:
        """The form as the person rewrote it. A rewritten form that was refused is offered again."""
        if not named_editor() or not is_terminal(sys.stdin):
            text = self._draft or str(form)
            self._draft = await self._answer("  The call to run instead: ", text)
        else:
            written: list[str] = []
            text = self._draft or laid_out(form)
            await asyncio.to_thread(edited, text, name, written.append, ".hy")
            self._draft = written[-1].strip()
        return self._draft

    async def _answer(self, question: str, text: str = "") -> str:
        """One line of the person; the end of input is an empty one. ``text`` is there to be edited."""
        try:
            return (await self._line(question, text)).strip()
        except EOFError:
            return ""

    async def _line(self, question: str, text: str = "") -> str:
        """One line of the person. Raises EOFError at the end of input."""
        asked = self._lines.ask(question, text) if text else self._lines.ask(question)
        self._waiting = asyncio.ensure_future(asked)
        try:
            return await self._waiting
        except EOFError:
            _say("\n")
            raise
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


class SaysYes(AskTerminal):
    """The person at the terminal who has allowed everything beforehand with ``--yes``, and is asked only what
    wants an answer in words."""

    human = False

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        return await SayYes().request(tool, call, reason)


def _tell(text: str) -> None:
    """Print sentences for the person who is asked, indented and wrapped at words."""
    _say(f"  {set_in(visible(text, lines=True), '  ', columns(), 2, words=True)}\n")


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _with_secrets(form: CallForm, tool: CognitiveTool, true: CallForm) -> CallForm:
    """The form that a person wrote, with each hidden secret in its place again. Raises UsageError if one was
    moved."""
    secret = {param.name for param in tool.params if param.secret}
    own = {name: true.args[name] for name in secret & set(true.args) if form.args.get(name) == SECRET}
    form = replace(form, args={**form.args, **own})
    if SECRET in str(form) and SECRET not in str(true):
        raise UsageError(f"{SECRET} stands for a value that is not shown; write the value itself there.")
    return form
