"""The one door: every call form passes these stages in this order, and nothing else runs a guard or a body.

Read ``STAGES`` for the order and each stage for its rule; a stage returns None to let the call go on, or the
Outcome that ends it. The door knows no model and no loop, and takes nothing a model says about permission.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import dataclasses
import inspect
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from quoth.tools.call.context import (
    ALLOW,
    PERMISSION,
    ROUTES,
    Call,
    GateDecision,
    PermissionNeeded,
    Status,
    ToolContext,
    ToolError,
    ToolFailure,
    ToolResult,
    Verdict,
    ask,
    deny,
    encodable,
    plain,
)
from quoth.tools.call.deadline import Clock
from quoth.tools.call.redaction import Redactor, redact
from quoth.tools.door.execution import brief, run_function
from quoth.tools.errors import InvalidCallError, QuothError, StoreError, UnknownToolError
from quoth.tools.history.audit import Audit, MemoryAudit
from quoth.tools.history.receipts import NoReceipts, Receipts
from quoth.tools.history.transcript import CallLog, NoCallLog
from quoth.tools.lisp.forms import CallForm, from_json
from quoth.tools.policy.policy import SILENT_EFFECTS, EffectsPolicy, Policy
from quoth.tools.policy.predicates import UNKNOWN, paths_in
from quoth.tools.policy.scope import as_written, checked
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.tools.door.preview import Look
    from quoth.tools.policy.walking import Walk

GUARD_SECONDS = 10.0
GATE_SECONDS = 2.0
MAX_DEPTH = 10
MAX_PERMISSIONS = 20  # that one body may ask for
READER = "read-file"  # the tool whose rules hold for what other tools read
PROGRAMS = "eval"  # the tool whose body is a program in the sandbox
QUOTED = "these words stand in"
BEGUN_BEFORE = "it was begun before, and how that ended is not known"
VERDICTS = ("policy", "rule", "guard", "gate", "consent")


@dataclass(frozen=True)
class Refusal:
    """The call is over a limit; ``reason`` says which, and when there is room again."""

    reason: str


class Reservation:
    """The place kept for one call within its limits; this one keeps none, for a call that nothing limits.

    ``commit`` when the body begins: the call has counted from then on, whatever the body does. ``release``
    gives the place back, and does nothing after ``commit``. ``left`` tells the model what it has left.
    """

    left: str = ""

    def commit(self) -> None:
        """Count the call for good."""

    def release(self) -> None:
        """Do not count it."""


class Limits(Protocol):
    """Counts calls: keeps a place for this one, or refuses it."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal: ...


class Gate(Protocol):
    """An outside reviewer of the calls of tools with ``:gate`` (seed 000); a Verdict may ask a person too."""

    async def check(
        self, tool: CognitiveTool, call: Call, context: ToolContext
    ) -> GateDecision | Verdict: ...


@dataclass(frozen=True)
class Instead:
    """A person wants another call of the same tool made in place of this one; ``by`` says who, for the audit,
    ``call`` is the id it is to have."""

    form: CallForm
    by: str = ""
    call: str = ""


class Consent(Protocol):
    """Whoever can say yes for the person. ``None``, and a Verdict that asks, mean not now: the call stays
    pending. tools/consent/broker.py is the one that remembers."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | Instead | None: ...

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """The program of ``call`` begins to run."""

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """The call was allowed, or ``instead`` was to be made in its place, and that has come to wait for
        another decision."""


class NoLimits:
    """Stands where no counter is. A tool that declares a limit is refused: an unkept promise fails closed."""

    def reserve(self, tool: CognitiveTool, call: Call) -> Reservation | Refusal:
        if tool.cooldown or tool.daily_limit:
            return Refusal("its :cooldown or :daily-limit cannot be counted here, so it is not run")
        return Reservation()


class NobodyToAsk:
    """Consent where nobody is and nothing keeps the question: it is refused at once, for nobody would ever
    answer it."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | Instead | None:
        return deny(f"a person's approval is needed ({reason}), and nobody can be asked here")

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """Nothing was approved."""

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """Nothing is kept."""


@dataclass(frozen=True)
class Outcome:
    """How a passage ended: a status, a value if it is ok, a sentence if it is not; ``note`` is for the audit
    alone, in place of the sentence."""

    status: Status
    value: Any = None
    message: str = ""
    note: str = ""


@dataclass
class Passage:
    """One call on its way through the stages: what has been found out about it so far."""

    call: Call
    context: ToolContext
    tool: CognitiveTool | None = None
    args: dict[str, Any] = field(default_factory=dict)
    reservation: Reservation = field(default_factory=Reservation)
    questions: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    verdicts: dict[str, str] = field(default_factory=dict)  # who said what, for the audit
    permitted: set[str] = field(default_factory=set)  # what a person has allowed the body
    refused: bool = False  # by a person
    begun: bool = False  # before, in a process that was killed
    clock: Clock = field(default_factory=Clock)  # stands still while a person is asked about an inner call
    made: Counter[str] = field(default_factory=Counter)  # the calls the body has made, by digest

    @property
    def known_tool(self) -> CognitiveTool:
        assert self.tool is not None, "look-up comes first"
        return self.tool


class _Permission:
    """The PermissionBroker of one passage: what was not allowed yet ends the body with the question."""

    def __init__(self, permitted: set[str]) -> None:
        self._permitted = permitted

    async def request(self, what: str, reason: str) -> None:
        if what not in self._permitted:
            raise PermissionNeeded(what, reason)


class Door:
    """The door to one table. Its parts are given by the host and cannot be reached from a form.

    ``workspace`` and the other services come with each call's ToolContext. One door may serve many sessions.
    """

    def __init__(
        self,
        table: ToolTable = cognitive_tools,
        *,
        policy: Policy | None = None,
        limits: Limits | None = None,
        gate: Gate | None = None,
        consent: Consent | None = None,
        audit: Audit | None = None,
        receipts: Receipts | None = None,
        log: CallLog | None = None,
        together: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.table = table
        self.policy = policy or EffectsPolicy()
        self.limits = limits or NoLimits()
        self.gate = gate
        self.consent = consent or NobodyToAsk()
        self.audit = audit or MemoryAudit()
        self.receipts = receipts or NoReceipts()
        self.log = log or NoCallLog()
        self._together = together  # what is written down within it is on disk at once, or none of it
        self.max_depth = max_depth

    def narrowed(self, table: ToolTable) -> Door:
        """This door with fewer tools: the same policy, limits, consent, audit and receipts. Raises
        UnknownToolError for a tool that it does not have."""
        for tool in table:
            self.table.get(tool.name)
        door = copy.copy(self)
        door.table = table
        return door

    async def dispatch(self, call: Call, context: ToolContext) -> ToolResult:
        """Take one call through all stages and return its result; never raises for anything a call can do.

        asyncio.CancelledError alone passes through, after the audit row is written.
        """
        started, now = time.monotonic(), datetime.now(UTC)
        passage = Passage(call, context)

        async def nested(form: CallForm, name: str = "", dry: bool = False) -> ToolResult:
            """A call the body makes: through this door, and what it did counts as done by the body too."""
            passage.made[form.digest] += 1
            inner = _inner(call, form, name or f"{form.digest[:16]}.{passage.made[form.digest]}")
            if passage.permitted:  # the body has begun again: what it had done is not done twice
                inner = dataclasses.replace(inner, resumed=True)
            clocks = passage.context.inner_clocks
            around = dataclasses.replace(context, clocks=clocks, dry=dry or context.dry, written=[])
            result = await self.dispatch(inner, around)
            passage.context.side_effects.extend(result.side_effects)
            return result

        async def look(form: CallForm, unknown: Callable[[Any], bool], guards: bool = True) -> Look:
            """What would become of such a call."""
            from quoth.tools.door.preview import look_at  # here: it knows the door

            return await look_at(self, _inner(call, form, "look"), context, unknown, guards)

        @lru_cache(maxsize=1)
        def walk() -> Walk:
            """What the rules say of the files that this call comes upon, once its arguments are known."""
            from quoth.tools.policy.walking import Walk  # here: few calls walk

            tool, reader = passage.known_tool, self._reader()
            return Walk(self.policy, tool, passage.call, passage.args, context.workspace, reader)

        passage.context = dataclasses.replace(
            context,
            side_effects=[],
            said=passage.said,
            written=[*context.written],
            tool_names=tuple(self.table.names()),
            inner_clocks=(*context.clocks, passage.clock),
            shown=self._shown,
            may_list=lambda path: walk().may_list(path),
            may_read=lambda path: walk().may_read(path),
            dispatch=nested,
            look=look,
            permission=_Permission(passage.permitted),
        )
        stage, outcome = "look-up", Outcome("cancelled", message=f"{call.tool} was cancelled.")
        try:
            for stage, step in STAGES:  # noqa: B007  the row says where it ended
                ended = await step(self, passage)
                if ended is not None:
                    outcome = ended
                    break
        except Exception as error:  # a part of the host failed; the call has its result nevertheless
            outcome = Outcome("error", message=f"{call.tool} stopped at {stage}: {brief(error)}.")
        finally:
            with contextlib.suppress(Exception):  # a place that cannot be given back stays taken
                passage.reservation.release()
            result = self._record(passage, stage, outcome, started, now)
        return result

    def unreadable(self, call: Call, context: ToolContext, text: str, message: str) -> ToolResult:
        """The result of what was meant as a call and could not be read, in the audit like any; ``call`` has
        the marks and an empty form."""
        passage = Passage(call, dataclasses.replace(context, side_effects=[]))
        outcome = Outcome("invalid", message=message)
        return self._record(passage, "reader", outcome, time.monotonic(), datetime.now(UTC), text)

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult:
        """The result of a call that its host stops before the door (a run's own limit), in the audit like
        any."""
        passage = Passage(call, dataclasses.replace(context, side_effects=[]))
        return self._record(
            passage, "host", Outcome(status, message=message), time.monotonic(), datetime.now(UTC)
        )

    def _record(
        self,
        passage: Passage,
        stage: str,
        outcome: Outcome,
        started: float,
        now: datetime,
        unread: str = "",
    ) -> ToolResult:
        """The last stage: the receipt and the audit row, written before anybody sees the result."""
        call = passage.call
        row = {
            "tool": passage.tool.name if passage.tool else encodable(call.tool)[:200],
            "digest": call.form.digest,
            "status": outcome.status,
            "stage": stage,
            "duration_ms": int((time.monotonic() - started) * 1000),
            "ts": now.isoformat(timespec="milliseconds"),
            "route": call.route,
        }
        if stage == "body" and outcome.status == "pending":
            with contextlib.suppress(Exception):  # then the approval stays used
                self.consent.waits(call)
        effects = tuple(passage.context.side_effects)
        name = str(row["tool"])
        record, consent = "receipt", passage.verdicts.get("consent", "")
        try:
            with self._together():
                passage.said += [said for write in passage.context.written if (said := write())]
                message = outcome.message or "\n".join(passage.said)
                result = ToolResult(call.id, name, outcome.status, outcome.value, message, effects, row)
                if passage.tool is not None and stage != "receipt":
                    asked = consent.startswith("allow")
                    self.receipts.keep(passage.tool, call, result, decided=passage.refused, asked=asked)
                self.log.ends(passage.tool, call, result, consent)
                record = "audit row"
                evidence = self._evidence(passage, outcome.note or message, effects)
                self.audit.write(row | evidence | ({"form": redact(unread[:2000])} if unread else {}))
        except Exception as error:
            # What cannot be recorded is not acknowledged.
            said, why = "The call was done, but its" if outcome.status == "ok" else "The", brief(error)
            if isinstance(error, StoreError):  # all that belongs to the call is written at once
                record, why = "receipt", error.why or why
            message = f"{said} {record} could not be written: {why.rstrip('.')}."
            row |= {"status": "error", "written": False}
            return ToolResult(call.id, name, "error", None, message, effects, row)
        return result

    def _evidence(self, passage: Passage, message: str, effects: tuple[str, ...]) -> dict[str, Any]:
        """Who called what, who said what of it and what came of it, without secrets; for the audit alone."""
        call, tool = passage.call, passage.tool
        if tool is None and call.tool in self.table:
            tool = self.table.get(call.tool)
        hide = Redactor(call.form, tool.params if tool else (), self.table.secrets)
        said = {name: hide.text(passage.verdicts.get(name, "")) for name in VERDICTS}
        return said | {
            "id": call.id,
            "session": call.session,
            "user": call.user,
            "parent": call.parent,
            "depth": call.depth,
            "round": call.round,
            "place": call.order,
            "side_effects": tuple(hide.text(effect) for effect in effects),
            "message": hide.text(message),
            "form": hide.form_text(),
            "schema_hash": self._schema_hash(),
            "repairs": hide.text("; ".join((*call.repairs, *call.written))),
        }

    def _reader(self) -> CognitiveTool | None:
        """The tool that reads a file; the rules about it hold where it is not offered, too."""
        tables = (self.table, cognitive_tools)
        return next((table.get(READER) for table in tables if READER in table), None)

    def _shown(self, form: CallForm) -> str:
        """A form without declared secrets."""
        params = self.table.get(form.tool).params if form.tool in self.table else ()
        return str(Redactor(form, params, self.table.secrets, by_looks=False).form)

    def _schema_hash(self) -> str:
        """Which tools there were to call; one whose schema cannot be made must not stop the others."""
        try:
            return self.table.schema_hash
        except Exception:
            return ""


def new_call(form: CallForm, **marks: Any) -> Call:
    """A Call with a fresh id; ``marks`` are the host's (route, user, session, depth, parent, round, order,
    message). With ``key`` it is the call of that key, carried on unless ``resumed`` says otherwise."""
    return Call(id=secrets.token_hex(5), form=form, **{"resumed": "key" in marks, **marks})


def _inner(call: Call, form: CallForm, name: str) -> Call:
    """A call made by the body of ``call``: one deeper, same user and session. Its key is the same whenever
    the outer call is carried on."""
    return dataclasses.replace(
        call,
        id=secrets.token_hex(5),
        form=form,
        route="program" if call.tool == PROGRAMS else "tool",
        depth=call.depth + 1,
        parent=call.id,
        plan=_run_of(call),
        key=f"{call.key or call.id}/{name}",
        event=0,
        repairs=(),
        quoted="",
    )


def _run_of(call: Call) -> str:
    """The run that what ``call`` makes belongs to: what a tool or a sub-agent does by itself is of none."""
    if call.tool != PROGRAMS:
        return ""
    return call.plan if call.parent is not None else call.key or call.id


async def dispatch(
    name: str, args: Mapping[str, Any], context: ToolContext, *, table: ToolTable = cognitive_tools
) -> ToolResult:
    """Dispatch by name and raw arguments (seed 002) through a door of its own on ``table``."""
    return await Door(table).dispatch(new_call(from_json({"tool": name, "args": args})), context)


# The stages


async def look_up(door: Door, passage: Passage) -> Outcome | None:
    call = passage.call
    if call.route not in ROUTES:
        return Outcome(
            "denied", message=f"{call.tool} came by a way that the door does not know: {call.route}."
        )
    if call.depth > door.max_depth:
        return Outcome("denied", message=f"{call.tool} is nested deeper than {door.max_depth} calls.")
    try:
        passage.tool = door.table.get(call.tool)
    except UnknownToolError as error:
        hint = ""
        if "eval" in door.table and not error.nearest:
            hint = " To compute something, give a Lisp program to eval: (eval (* 2 (+ 3 4)))."
        return Outcome("unknown", message=f"{error}{hint}")
    if passage.context.dry and not only_reads(passage.tool):
        return Outcome("denied", message=f"{call.tool} does more than read, and this is a dry run.")
    return None


def only_reads(tool: CognitiveTool) -> bool:
    """Whether a dry run may make a call of this tool."""
    return set(tool.effects) <= SILENT_EFFECTS and tool.cost != "expensive"


async def check_arguments(door: Door, passage: Passage) -> Outcome | None:
    tool, form = passage.known_tool, passage.call.form
    try:
        canonical_form, passage.args = checked(tool, form, passage.context.workspace)
    except InvalidCallError as error:
        return Outcome("invalid", message=f"{error} It is called as {tool.signature()}.")
    # From here on the call is its canonical self: one digest, however it was spelt, wherever its links led.
    written = as_written(tool, passage.args)
    passage.call = dataclasses.replace(passage.call, form=canonical_form, written=written)
    return None


async def find_receipt(door: Door, passage: Passage) -> Outcome | None:
    """A call that was made before, and need not be made again, is answered by what came of it then, unless a
    rule or its guard would deny it by now."""
    found = door.receipts.find(passage.known_tool, passage.call)
    if found is None:
        passage.begun = passage.call.resumed and door.receipts.begun(passage.known_tool, passage.call)
        return None
    if (ended := await ask_policy(door, passage) or await ask_guard(door, passage)) is not None:
        return ended
    note = f"answered by the receipt of call {found.call}"
    return Outcome(found.status, found.value, found.message, note)


async def check_limits(door: Door, passage: Passage) -> Outcome | None:
    """Keep a place for the call. It is given back when a later stage ends the call before the body."""
    try:
        reserved = door.limits.reserve(passage.known_tool, passage.call)
        if isinstance(reserved, Reservation):
            passage.reservation = reserved
            return None
        if not isinstance(reserved, Refusal):
            raise TypeError(f"{reserved!r} is no reservation")
        over = reserved.reason
    except Exception as error:
        over = _uncounted(error)
    return Outcome("limited", message=f"{passage.call.tool} is limited: {over}.")


def _uncounted(error: Exception) -> str:
    return f"its calls could not be counted ({brief(error)})"


async def ask_policy(door: Door, passage: Passage) -> Outcome | None:
    try:
        verdict = _verdict(door.policy.judge(passage.known_tool, passage.call, passage.args, passage.context))
    except Exception as error:
        verdict = deny(f"the policy failed ({brief(error)})")
    passage.verdicts["rule"] = verdict.rule
    return _weigh(passage, "policy", verdict)


async def ask_guard(door: Door, passage: Passage) -> Outcome | None:
    """The tool's own guard: True or a Verdict. One that raises, hangs or returns anything else denies."""
    tool = passage.known_tool
    guard = tool._guard
    if guard is None:
        return None
    try:
        given = _bindings(guard, passage, deny=deny, ask=ask)
        unknown = [name for name, value in passage.args.items() if value is UNKNOWN]
        if unknown and ("call" in given or any(value is UNKNOWN for value in given.values())):
            names = ", ".join(f":{name}" for name in unknown)
            return _weigh(passage, "guard", ask(f"it depends on {names} for its guard"))
        said = await run_function(guard, given, passage.context, GUARD_SECONDS)
    except TimeoutError:
        return _weigh(passage, "guard", deny(f"its guard did not answer within {GUARD_SECONDS:g} s"))
    except Exception as error:
        return _weigh(passage, "guard", deny(f"its guard failed ({brief(error)})"))
    if isinstance(said, Verdict):
        return _weigh(passage, "guard", said)
    if said is True:
        return _weigh(passage, "guard", ALLOW)
    if said is False:
        return _weigh(passage, "guard", deny("its guard refused these arguments"))
    return _weigh(
        passage,
        "guard",
        deny(f'its guard returned {said!r}; a guard returns True, False, (deny "why") or (ask "why")'),
    )


async def ask_gate(door: Door, passage: Passage) -> Outcome | None:
    tool = passage.known_tool
    if not tool.gate or door.gate is None:
        return None
    try:
        async with asyncio.timeout(GATE_SECONDS):
            said = await door.gate.check(tool, passage.call, passage.context)
            if isinstance(said, GateDecision):
                said = ALLOW if said.approved is True else deny(said.reason)
            verdict = _verdict(said)
    except Exception as error:
        if tool.gate_failure == "open":
            passage.verdicts["gate"] = f"failed open: {brief(error)}"
            passage.said.append(f"The gate failed ({brief(error)}) and {tool.name} fails open.")
            return None
        verdict = deny(f"the gate failed ({brief(error)})")
    return _weigh(passage, "gate", verdict)


async def ask_consent(door: Door, passage: Passage) -> Outcome | None:
    """A person decides what policy, guard or gate would not, and of words that may be a quotation whatever
    these say; nobody there means that the call waits."""
    if passage.begun:
        passage.questions.append(BEGUN_BEFORE)
    if passage.call.quoted:
        passage.questions.append(f"{QUOTED} {passage.call.quoted}")
    if not passage.questions:
        return None
    call = passage.call
    if passage.begun or passage.verdicts.get("gate", "").startswith("ask"):
        call = dataclasses.replace(call, plan="")  # whoever approved a plan has not seen this question
    return await _ask_person(door, passage, call, "; ".join(passage.questions))


async def _ask_permission(door: Door, passage: Passage, needed: PermissionNeeded) -> Outcome | None:
    """Ask what the body asks, outside of its deadline; a request like any other, of this call and that
    permission."""
    if len(passage.permitted) >= MAX_PERMISSIONS:
        return Outcome(
            "error", message=f"{passage.call.tool} asked for more than {MAX_PERMISSIONS} permissions."
        )
    form = CallForm(passage.call.tool, {**passage.call.form.args, PERMISSION: needed.what})
    call = dataclasses.replace(passage.call, form=form)
    ended = await _ask_person(door, passage, call, needed.message.rstrip("."))
    if ended is None:
        passage.permitted.add(needed.what)
    return ended


async def _ask_person(door: Door, passage: Passage, call: Call, reason: str) -> Outcome | None:
    """Ask, while the deadlines of the calls around this one stand still."""
    if passage.context.dry:
        return Outcome("denied", message=f"{call.tool} asks a person, and this is a dry run.")
    tool, clocks = passage.known_tool, passage.context.clocks
    for clock in clocks:
        clock.pause()
    try:
        try:
            said = await door.consent.request(tool, call, reason)
        finally:
            for clock in clocks:
                clock.go_on()
        if isinstance(said, Instead):
            return await _make_instead(door, passage, said)
        verdict = _verdict(said) if said is not None else ask(reason)
    except Exception as error:
        verdict = deny(f"consent could not be asked ({brief(error)})")
    else:
        passage.refused = verdict.kind == "deny"
    if verdict.kind == "ask":
        passage.verdicts["consent"] = "pending"
        why = (verdict.reason or reason).rstrip(".")
        return Outcome("pending", message=f"{tool.name} waits for a person's approval: {why}.")
    ended = _weigh(passage, "consent", verdict)
    if ended is None and verdict.reason:
        passage.verdicts["consent"] = f"allow: {verdict.reason}"
    return ended


async def _make_instead(door: Door, passage: Passage, instead: Instead) -> Outcome:
    """The call a person wants in place of this one, through the whole door; its result is this one's."""
    passage.reservation.release()
    name, outer = instead.call or secrets.token_hex(5), passage.call
    key = f"{outer.key or outer.id}/edited"
    call = dataclasses.replace(outer, id=name, form=instead.form, key=key, quoted="")
    passage.verdicts["consent"] = f"{instead.by or 'edited'}: made as call {call.id}"
    result = await door.dispatch(call, passage.context)
    passage.context.side_effects.extend(result.side_effects)
    if result.status == "pending":
        door.consent.waits(outer, instead.form)
    tool = passage.known_tool
    hide = Redactor(instead.form, tool.params, door.table.secrets, by_looks=False)
    said = f"A person changed the call to {hide.form}."
    return Outcome(result.status, result.value, f"{said} {result.message}".strip())


async def run_body(door: Door, passage: Passage) -> Outcome | None:
    tool = passage.known_tool
    body = tool._body
    assert body is not None, "define_tool gives every tool a body"
    try:
        _require_unmoved(passage)
    except ToolError as error:
        return Outcome("error", message=f"{tool.name} was not run: {error}")
    try:
        door.audit.prepare()
    except Exception as error:
        return Outcome("error", message=f"{tool.name} was not run: {brief(error)}.")
    try:
        passage.reservation.commit()
    except Exception as error:
        return Outcome("limited", message=f"{tool.name} is limited: {_uncounted(error)}.")
    if tool.name == PROGRAMS and passage.call.parent is None:
        with contextlib.suppress(Exception):  # then each of its calls is asked by itself
            door.consent.begins(tool, passage.call)
    try:
        with contextlib.nullcontext() if only_reads(tool) else door._together():
            door.receipts.begins(tool, passage.call)
            door.log.begins(tool, passage.call, passage.verdicts.get("consent", ""))
        told, kept = len(passage.said), len(passage.context.written)
        while True:
            try:
                made = await run_function(
                    body, _bindings(body, passage), passage.context, tool.timeout, passage.clock
                )
                break
            except PermissionNeeded as needed:
                if (ended := await _ask_permission(door, passage, needed)) is not None:
                    return ended
                passage.made.clear()
                del passage.said[told:]
                del passage.context.written[kept:]
        value = plain(made)
        if left := passage.reservation.left:
            passage.said.append(left)
        return Outcome("ok", value)
    except TimeoutError:
        return Outcome("timeout", message=f"{tool.name} did not finish within {tool.timeout:g} s.")
    except ToolFailure as failure:
        return Outcome(failure.status, message=failure.message)
    except (ToolError, QuothError) as error:
        return Outcome("error", message=str(error))
    except Exception as error:
        return Outcome("error", message=f"{tool.name} failed: {brief(error)}.")


STAGES: tuple[tuple[str, Callable[[Door, Passage], Awaitable[Outcome | None]]], ...] = (
    ("look-up", look_up),
    ("validation", check_arguments),
    ("receipt", find_receipt),
    ("limits", check_limits),
    ("policy", ask_policy),
    ("guard", ask_guard),
    ("gate", ask_gate),
    ("consent", ask_consent),
    ("body", run_body),
)


# Helpers of the stages


def _weigh(passage: Passage, who: str, verdict: Verdict) -> Outcome | None:
    """Allow goes on, ask leaves a question for the consent stage; deny, or any other word, ends the
    passage."""
    if verdict.kind == "allow":  # nothing to explain; a rule that allowed it has its own column
        passage.verdicts[who] = "allow"
        return None
    passage.verdicts[who] = f"{verdict.kind}: {verdict.reason}" if verdict.reason else verdict.kind
    if verdict.kind == "ask":
        passage.questions.append((verdict.reason or "it asks first").rstrip("."))
        return None
    reason = verdict.reason or "no reason was given"
    return Outcome("denied", message=f"{passage.call.tool} was denied: {reason.rstrip('.')}.")


def _require_unmoved(passage: Passage) -> None:
    """Raises ToolError when a path leads elsewhere than when the call was judged and asked about."""
    workspace = passage.context.workspace
    for param in passage.known_tool.path_params:
        for path in paths_in(passage.args.get(param.name)):
            workspace.unmoved(path, workspace.locate(path))


def _verdict(said: Any) -> Verdict:
    """``said`` if it is a Verdict; whoever answers a question with anything else has failed."""
    if isinstance(said, Verdict):
        return said
    raise TypeError(f"{said!r} is no verdict")


def _bindings(function: Callable[..., Any], passage: Passage, **more: Any) -> dict[str, Any]:
    """What a guard or body takes by name: its parameters, ``call`` and ``ctx``."""
    offered = {"call": passage.call, "ctx": passage.context, **more}
    offered |= {name.replace("-", "_"): value for name, value in passage.args.items()}
    wanted = _parameters(function)
    return {name: value for name, value in offered.items() if name in wanted}


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The names a function takes, looked up once."""
    return frozenset(inspect.signature(function).parameters)
