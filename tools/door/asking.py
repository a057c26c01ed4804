"""Asks a person about one call: to approve it, to grant a permission to its body, or to answer in words. Also
weighs the verdicts of policy, guard, gate and person. While a person is asked, the call's clocks are stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import secrets
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import ArgumentOrigin, Call, EditedCall, Verdict, Voice, ask, deny
from quoth.tools.call.ports import BEGUN_BEFORE, LOST_REQUEST, QUOTED, PersonAnswer, asks_fact
from quoth.tools.call.redaction import Redactor
from quoth.tools.door.execution import brief, kind_of
from quoth.tools.door.state import CallState, Outcome, Parts
from quoth.tools.errors import PERMISSION, Pending, ToolFailure, raise_if_broken
from quoth.tools.lisp.forms import CallForm

if TYPE_CHECKING:
    from quoth.tools.call.question import Question

MAX_PERMISSIONS = 20  # requests of one body
MAX_QUESTIONS = 20


class Permission:
    """The PermissionBroker of one call. Its body is suspended while a person is asked, and continues with the
    answer; without an answer the call ends as pending."""

    def __init__(self, door: Parts, state: CallState) -> None:
        self._door, self._state = door, state
        self._loop = asyncio.get_running_loop()

    @property
    def given(self) -> frozenset[str]:
        """The permissions that a person has granted to this call."""
        return frozenset(self._state.permitted)

    def acted(self) -> None:
        """Note that the body has begun to act, even without a recorded effect."""
        self._state.acted = True

    async def request(self, what: str, reason: str) -> None:
        if what not in self._state.permitted:
            needed = Pending(reason, permission=what)
            await self._ask(lambda: ask_permission(self._door, self._state, needed))

    async def ask(self, question: Question) -> str:
        if question.text not in self._state.answers:
            await self._ask(lambda: ask_question(self._door, self._state, question))
        return self._state.answers[question.text]

    async def _ask(self, ask: Callable[[], Coroutine[Any, Any, Outcome | None]]) -> None:
        """Ask on the event loop of the door: a body in a thread may have its own loop."""
        state = self._state
        if state.ended is None:
            if asyncio.get_running_loop() is self._loop:
                ended = await ask()
            else:
                ended = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ask(), self._loop))
            state.ended = state.ended or ended
        self._require(state.ended)

    def _require(self, ended: Outcome | None) -> None:
        if ended is None:
            return
        if ended.status != "pending":
            raise ToolFailure(ended.status, ended.message)
        self._state.waits = True
        raise Pending(ended.message)


def weigh(state: CallState, who: Voice, verdict: Verdict) -> Outcome | None:
    """Store a verdict. Allow continues; ask adds a question for the consent stage; anything else denies the
    call."""
    state.verdicts[who] = verdict
    if verdict.kind == "allow":
        return None
    if verdict.kind == "ask":
        state.questions.append((verdict.reason or "it asks first").rstrip("."))
        return None
    message, whole = (
        f"{state.call.tool} was denied: {(reason or 'no reason was given').rstrip('.')}."
        for reason in (verdict.for_model, verdict.reason)
    )
    return Outcome("denied", message=message, note=whole if verdict.told else "")


def require_verdict(said: Any) -> Verdict:
    """Return ``said``. Raises TypeError unless it is a Verdict."""
    if isinstance(said, Verdict):
        return said
    raise TypeError(f"{said!r} is not a Verdict")


async def ask_consent(door: Parts, state: CallState) -> Outcome | None:
    """Ask a person if policy, guard or gate did not allow the call, or if its words may be a quotation; then
    repeat the body's earlier questions, and ask whether the body may begin again. Without an answer the call
    is pending."""
    facts = (BEGUN_BEFORE, LOST_REQUEST)
    elsewhere = state.known_tool.remote and any(one.message.startswith(facts) for one in state.inside)
    fact = state.begun and not elsewhere
    if fact and not state.inside:
        state.questions.append(BEGUN_BEFORE)
    if state.call.quoted:
        state.questions.append(f"{QUOTED} {state.call.quoted}")
    if state.questions and (ended := await _ask_about_call(door, state)) is not None:
        return ended
    for needed in state.inside:
        if needed.question is None:
            ended = await ask_permission(door, state, needed)
        else:
            ended = await ask_question(door, state, needed.question)
        if ended is not None:
            return ended
    if fact and state.inside:
        call = dataclasses.replace(state.call, program_run="")
        return await _ask_person(door, state, call, BEGUN_BEFORE)
    return None


async def _ask_about_call(door: Parts, state: CallState) -> Outcome | None:
    call = state.call
    gate, guard = state.verdicts.get("gate"), state.verdicts.get("guard")
    if isinstance(guard, Verdict) and guard.kind == "allow" and guard.reason:
        state.questions.append(guard.reason)  # the guard does not ask, but the person sees its reason
    if isinstance(guard, Verdict) and guard.each_time:
        call = dataclasses.replace(call, program_run="", each_time=True)
    if state.begun or (isinstance(gate, Verdict) and gate.kind == "ask"):
        call = dataclasses.replace(call, program_run="")  # approved plans do not cover this question
    return await _ask_person(door, state, call, "; ".join(state.questions))


async def ask_permission(door: Parts, state: CallState, needed: Pending) -> Outcome | None:
    """Ask a person for a permission that the body requests or has requested. The request is bound to this
    call and this permission."""
    if len(state.permitted) >= MAX_PERMISSIONS:
        return Outcome(
            "error", message=f"{state.call.tool} asked for more than {MAX_PERMISSIONS} permissions."
        )
    form = CallForm(state.call.tool, {**state.call.form.args, PERMISSION: needed.permission})
    call = dataclasses.replace(state.call, form=form)
    ended = await _ask_person(door, state, call, needed.message.rstrip("."))
    if ended is None:
        state.permitted.add(needed.permission)
    return ended


async def ask_question(door: Parts, state: CallState, question: Question) -> Outcome | None:
    """Ask a person the body's question; the request is bound to this call and this question."""
    from quoth.tools.call.question import marked  # here: few calls ask a question

    tool = state.known_tool
    if len(state.answers) >= MAX_QUESTIONS:
        return Outcome("error", message=f"{tool.name} asked more than {MAX_QUESTIONS} questions.")
    if state.context.dry:
        return Outcome("denied", message=f"{tool.name} asks a person, and this is a dry run.")
    call = dataclasses.replace(state.call, form=marked(state.call.form, question))
    try:
        with _paused(state):
            said = await door.consent.answer(tool, call, question)
    except Exception as error:
        raise_if_broken(error)
        said = _not_asked("the question", error)
    if isinstance(said, PersonAnswer):
        state.answers[question.text] = said.text
        state.verdicts["consent"] = Verdict("allow", said.by)
        return None
    state.refused = said.kind == "deny"
    if said.kind == "ask":
        state.verdicts["consent"] = said
        state.request = said.request
        why = said.reason.rstrip(".")
        return Outcome("pending", message=f"{tool.name} waits for a person's answer: {why}.")
    return weigh(state, "consent", said)


def _not_asked(what: str, error: Exception) -> Verdict:
    failed, told = (f"{what} could not be asked ({said})" for said in (brief(error), kind_of(error)))
    return deny(failed, told=told)


@contextlib.contextmanager
def _paused(state: CallState) -> Iterator[None]:
    """Stop the clocks of the call and of the enclosing calls while a person is asked."""
    clocks = state.context.inner_clocks
    for clock in clocks:
        clock.pause()
    try:
        yield
    finally:
        for clock in clocks:
            clock.go_on()


async def _ask_person(door: Parts, state: CallState, call: Call, reason: str) -> Outcome | None:
    """Ask a person, with the clocks of the enclosing calls paused."""
    if state.context.dry:
        return Outcome("denied", message=f"{call.tool} asks a person, and this is a dry run.")
    tool = state.known_tool
    call = telling_origins(state, call)
    try:
        with _paused(state):
            said = await door.consent.request(tool, call, reason)
        if isinstance(said, EditedCall):
            return await _make_instead(door, state, said)
        verdict = require_verdict(said) if said is not None else ask(reason)
    except Exception as error:
        raise_if_broken(error)
        verdict = _not_asked("consent", error)
    else:
        state.refused = verdict.kind == "deny"
        if verdict.kind == "allow" and asks_fact(reason):
            verdict = dataclasses.replace(verdict, reason=f"{verdict.reason}; it is run again".lstrip("; "))
    if verdict.kind == "ask":
        state.verdicts["consent"] = verdict
        state.request = verdict.request
        why = (verdict.reason or reason).rstrip(".")
        return Outcome("pending", message=f"{tool.name} waits for a person's approval: {why}.")
    return weigh(state, "consent", verdict)


def telling_origins(state: CallState, call: Call) -> Call:
    """The call with the origins of its arguments, which are computed only when they are read: an automatic
    yes does not read them."""
    origins = state.context.origins
    if origins is None:
        return call

    @cache
    def tell() -> Sequence[ArgumentOrigin]:
        from quoth.tools.origin.arguments import origins_of_arguments  # here: few calls are asked about

        return origins_of_arguments(state.known_tool, state.call, state.args, origins)

    return dataclasses.replace(call, origins=tell)


async def _make_instead(door: Parts, state: CallState, instead: EditedCall) -> Outcome:
    """Run the call that a person chose instead, through the whole door; returns its outcome."""
    state.reservation.release()
    name, outer = instead.call or secrets.token_hex(5), state.call
    key = f"{outer.key or outer.id}/edited"
    call = dataclasses.replace(outer, id=name, form=instead.form, key=key, quoted="", edited=True)
    state.verdicts["consent"] = instead._replace(call=call.id)
    result = await state.dispatch(call, state.context)
    if result.audit.get("written") is False:
        state.broken = result.message
    state.context.side_effects.extend(result.side_effects)
    state.said += [result.follow_up] if result.follow_up else []
    if result.status == "pending":
        state.request = result.request
        door.consent.waits(outer, instead.form)
    tool = state.known_tool
    hide = Redactor(instead.form, tool.params, door.table.secrets, by_looks=False)
    said = f"A person changed the call to {hide.form}."
    return Outcome(result.status, result.value, f"{said} {result.message}".strip())
