"""The permission broker: what a person was asked, what the person decided, and each decision used once.

Knows the store, forms and scopes; it must not know terminals, models or the loop. No tool can reach it: the
store lies outside every workspace, and what a model says of permission is an argument like any other.

A request is bound to the SHA-256 of the canonical form, the version of the tool and the session, and to the
user who asked; whatever differs in one of them is another request. It stays open for PENDING_SECONDS. What a
person decides of it:

- once: this call may be made one time, within APPROVAL_SECONDS of the decision;
- duration: this very call, as often as it is made in its session, until the time is over;
- scope: every call of its session, and of this version of the tool, that an allow rule covers, until the time
  is over. It answers questions only: what a rule, a guard or a gate denies stays denied;
- edit: not this call, but the same tool with other arguments, which passes the whole door;
- deny: the reason becomes the result of the call.

An approval is marked as used, and synced, before the body begins: a process that is killed in between has
used it. Only a call that came to wait again, for a decision its body needs, keeps it for when that very call
is carried on. A plan, what a dry run found that a program may call, is approved as a whole, once: for one run
of that very program, and in it for the calls that the plan names (tools/consent/plan_approvals.py). The true
form is kept only while the request is open, and that of an edit until it is made; what is shown of either
hides declared secrets.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

from quoth.tools.call.call import Call, EditedCall, Verdict, ask, deny
from quoth.tools.call.ports import BEGUN_BEFORE, QUOTED, Audit
from quoth.tools.call.redaction import SECRET, Redactor, redact
from quoth.tools.call.values import encodable
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent import plan_approvals as plans
from quoth.tools.consent.requests import (
    _SHOWN,
    Decision,
    Kind,
    Person,
    Request,
    _clock_time,
    _decision,
    _shown,
    _verdict,
    _who,
    request_digest,
)
from quoth.tools.errors import PERMISSION, InvalidCallError, UsageError, did_you_mean
from quoth.tools.history.audit import StoreAudit
from quoth.tools.lisp.forms import CallForm, canonical, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.policy.effects import by_effects
from quoth.tools.policy.scope import (
    arguments,
    bound_form,
    covers,
    guessed,
    read_scope,
    suggested,
    touched,
)
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Statement, Store
from quoth.tools.text import count

PENDING_SECONDS = 7 * 86400.0
APPROVAL_SECONDS = 86400.0
DURATION_SECONDS = 3600.0
SCOPE_SECONDS = 8 * 3600.0
LONGEST_SECONDS = 30 * 86400.0
EDITED_SECONDS = 60.0  # the edited call is made at once; its approval is for nothing else
KEPT_SECONDS = 180 * 86400.0  # requests that are over are remembered so long, for offers and for people
ENOUGH = 3  # equal approvals after which a rule is offered

_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is taken for another


class Broker:
    """The door's Consent, kept in the store of one workspace.

    ``person`` is asked at once; without one a call is pending at once, and goes on when somebody has decided
    and the call is made again. ``clock`` gives seconds since 1970.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        table: ToolTable,
        workspace: Workspace,
        *,
        person: Person | None = None,
        audit: Audit | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._table = table
        self._workspace = workspace
        self._person = person
        self._audit = audit
        self._clock = clock
        self._asking: set[str] = set()  # the requests a person is being asked about just now

    # For the door

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        """What was decided of this very call; else what the person says now; else it is pending."""
        digest = self._digest(tool, call)
        if (settled := self._settle(tool, call, digest) or self._planned(tool, call)) is not None:
            return settled
        person = self._person
        if person is not None and not getattr(person, "human", True):
            return _verdict(await person.request(tool, call, reason))
        opened = self._open(tool, call, digest, reason, asking=person is not None)
        told = Redactor(call.form, tool.params, by_looks=False).text(reason)
        waiting = ask(f"{told} (request {opened})")
        if person is None:
            return waiting
        try:
            said = await person.request(tool, call, self.find(opened).reason)
        finally:
            self._asking.discard(opened)
        if said is None or (isinstance(said, Verdict) and said.kind == "ask"):
            return waiting
        try:
            self.decide(opened, _decision(said))
        except UsageError as error:
            if (settled := self._settle(tool, call, digest)) is not None:  # decided elsewhere meanwhile
                return settled
            if any(one.id == opened for one in self.requests()):  # a rule or an edit that does not fit
                return ask(f"{told} (request {opened}). {error}")
            return deny(str(error))
        return self._settle(tool, call, digest, opened) or waiting

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """A call, or the one made ``instead`` of it, has come to wait for another decision: what the call has
        used up of decisions is kept for it, and for nobody else, until it is carried on."""
        self._store().execute(
            "UPDATE requests SET state = 'decided', used = NULL, used_by = ?, edited = ?"
            " WHERE state = 'used' AND decision = ? AND used_by = ?",
            (
                call.key or call.id,
                "" if instead is None else canonical(instead),
                "once" if instead is None else "edit",
                call.id,
            ),
        )

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """A program begins to run: an approval of its plan is for this run from now on."""
        if not self._store().execute("SELECT 1 FROM plans WHERE program = ?", (plans.program_of(call),)):
            return
        with self._store().transaction() as run:
            plans.claim(run, tool, call, self._clock())

    def _planned(self, tool: CognitiveTool, call: Call) -> Verdict | None:
        """Allow a call that belongs to the plan of the program that makes it."""
        if call.route != "program":
            return None
        with self._store().transaction() as run:
            found = plans.covering(run, tool, call, self._leads(tool, call), self._clock())
        if found is None:
            return None
        return Verdict("allow", f"approved with its plan by {_who(found[1])} (request {found[0]})")

    def made_again(self, call: Call) -> list[str]:
        """The ids of the calls whose decisions ``call`` has used up: they need not be carried on any more."""
        found = self._store().execute(
            "SELECT DISTINCT call FROM requests WHERE used_by = ? AND call != used_by", (call.id,)
        )
        return [str(name) for (name,) in found]

    def interrupt(self) -> None:
        """Take a question that is being asked back, and ask no other until ``listen``; the requests stay
        open."""
        self._tell("interrupt")

    def listen(self) -> None:
        """Ask the person again."""
        self._tell("listen")

    def _tell(self, what: str) -> None:
        tell = getattr(self._person, what, None)
        if callable(tell):
            tell()

    def _settle(
        self, tool: CognitiveTool, call: Call, digest: str, request: str = ""
    ) -> Verdict | EditedCall | None:
        """Use up a decision about this call, or find a grant that covers it. One transaction: of two calls
        that come together one gets it. A decision that has its user already is for that call alone."""
        with self._store().transaction() as run:
            now = self._clock()
            found = run(
                "UPDATE requests SET state = 'used', used = ?, used_by = ? WHERE seq = ("
                " SELECT seq FROM requests"
                " WHERE digest = ? AND user = ? AND state = 'decided' AND expires > ?"
                " AND decision IN ('once', 'edit', 'deny') AND used_by IN ('', ?, ?)"
                " AND (? = '' OR id = ?) ORDER BY used_by = '', decided, seq LIMIT 1)"
                " RETURNING id, decision, decider, why, edited",
                (now, call.id, digest, call.user, now, call.id, call.key, request, request),
            )
            if found:
                return self._used(run, tool, call, now, *found[0])
            grants = run(
                "SELECT request, grants.digest, grants.rule, granter, grants.expires, touches"
                " FROM grants JOIN requests ON requests.id = request"
                " WHERE grants.session = ? AND grants.user = ? AND grants.tool = ? AND grants.expires > ?"
                " AND version = ? ORDER BY grants.seq",
                (call.session, call.user, tool.name, now, tool.version),
            )
        for request_id, bound, rule, granter, expires, touches in grants:
            # A scope answers for a quotation only where it was given for that very call.
            if bound == digest if not rule or call.quoted else self._covered(rule, tool, call, touches):
                until = f"until {_clock_time(expires)}"
                return Verdict("allow", f"granted {until} by {_who(granter)} (request {request_id})", rule)
        return None

    def _used(
        self,
        run: Statement,
        tool: CognitiveTool,
        call: Call,
        now: float,
        request: str,
        decision: str,
        decider: str,
        why: str,
        edited: str,
    ) -> Verdict | EditedCall:
        """What a decision that was just used up means for the call."""
        if decision == "deny":
            return deny(f"the person said: {why}" if why else "the person said no")
        if decision == "edit":
            form = from_model(read_one(edited))
            run("UPDATE requests SET edited = '' WHERE id = ?", (request,))
            instead = replace(call, id=secrets.token_hex(5), form=form)
            self._insert(
                run,
                tool,
                instead,
                f"{request} was edited",
                now,
                EDITED_SECONDS,
                form="",
                state="decided",
                decision="once",
                decided=now,
                decider=decider,
                used_by=instead.id,
            )
            return EditedCall(form, f"edited by {_who(decider)} (request {request})", instead.id)
        return Verdict("allow", f"approved by {_who(decider)} (request {request})")

    def _covered(self, rule: str, tool: CognitiveTool, call: Call, touches: str) -> bool:
        try:
            return covers(read_scope(rule, tool), tool, call, self._workspace, json.loads(touches))
        except UsageError:  # the tool has changed, and the rule is about an argument it has no more
            return False

    def _open(self, tool: CognitiveTool, call: Call, digest: str, reason: str, *, asking: bool) -> str:
        """The id of an open request for this call: the one there is, or a new one. A question that is being
        asked belongs to the call it is asked for; its twin gets a question of its own."""
        with self._store().transaction() as run:
            now = self._clock()
            found = run(
                "SELECT id FROM requests WHERE digest = ? AND user = ? AND state = 'pending' AND expires > ?"
                " AND (instr(reason, ?) > 0) = ?",
                (digest, call.user, now, QUOTED, bool(call.quoted)),
            )
            free = [str(name) for (name,) in found if name not in self._asking]
            if free:
                opened = free[0]
            elif found and not asking:
                opened = str(found[0][0])
            else:
                run("DELETE FROM requests WHERE expires < ?", (now - KEPT_SECONDS,))
                run("DELETE FROM grants WHERE expires < ?", (now,))
                run(
                    "UPDATE requests SET form = '', edited = '' WHERE (form != '' OR edited != '')"
                    " AND expires <= ?",
                    (now,),
                )
                opened = self._insert(run, tool, call, reason, now, PENDING_SECONDS)
            if asking:
                self._asking.add(opened)
            return opened

    def _history(self, run: Statement, tool: CognitiveTool, call: Call, digest: str, shown: str) -> str:
        """What a person should know of earlier approvals before giving another."""
        changed = run(
            "SELECT 1 FROM requests WHERE session = ? AND user = ? AND tool = ? AND shown = ?"
            " AND version != ? AND state = 'decided' AND decision NOT IN ('edit', 'deny') LIMIT 1",
            (call.session, call.user, tool.name, shown, tool.version),
        )
        lost = []
        if isinstance(self._audit, StoreAudit):  # else the end of a call is recorded where we cannot look
            lost = run(
                "SELECT used FROM requests WHERE digest = ? AND state = 'used' AND decision != 'deny'"
                " AND used_by NOT IN (SELECT id FROM audit) ORDER BY used DESC LIMIT 1",
                (digest,),
            )
        notes = ""
        if changed:
            notes += "; the tool has changed since it was approved"
        if lost:
            notes += f"; approved and begun at {_clock_time(lost[0][0])}, and how that ended is not known"
        return notes

    def _insert(
        self,
        run: Statement,
        tool: CognitiveTool,
        call: Call,
        reason: str,
        now: float,
        seconds: float,
        **more: Any,
    ) -> str:
        """A new request; ``more`` are the columns of one that is decided already."""
        hide = Redactor(call.form, tool.params, by_looks=False)
        digest = self._digest(tool, call)
        history = "" if more else self._history(run, tool, call, digest, str(hide.form))
        told = reason.replace(f"; {BEGUN_BEFORE}", "") if "approved and begun" in history else reason
        # Only a question that comes of the tool's effects alone could be answered by a rule.
        by_rule = reason == by_effects(tool).reason and PERMISSION not in call.form.args
        name = "".join(secrets.choice(_LETTERS) for _ in range(5))
        values = {
            "id": name,
            "digest": digest,
            "tool": tool.name,
            "version": tool.version,
            "form": canonical(call.form),
            "shown": str(hide.form),
            "reason": encodable(hide.text("; ".join([told, *call.written]))) + history,
            "touches": json.dumps([hide.text(path) for path in self._touches(tool, call.form)]),
            "user": call.user,
            "session": call.session,
            "route": call.route,
            "call": call.id,
            "parent": call.parent,
            "message": encodable(hide.text(call.message))[:2000],
            "rule": suggested(tool, call.form) if by_rule else "",
            "asked": now,
            "expires": now + seconds,
            "state": "pending",
            **more,
        }
        marks = ", ".join("?" * len(values))
        run(f"INSERT INTO requests ({', '.join(values)}) VALUES ({marks})", list(values.values()))  # noqa: S608
        return name

    def _digest(self, tool: CognitiveTool, call: Call) -> str:
        return request_digest(call.form, tool.version, call.session, self._leads(tool, call))

    def _leads(self, tool: CognitiveTool, call: Call) -> dict[str, str]:
        return guessed(tool, self._arguments(tool, call.form), self._workspace)

    def _arguments(self, tool: CognitiveTool, form: CallForm) -> dict[str, Any]:
        own = {name: value for name, value in form.args.items() if name != PERMISSION}
        try:
            return arguments(tool, replace(form, args=own), self._workspace)
        except InvalidCallError:  # nothing that came through the door
            return {}

    def _touches(self, tool: CognitiveTool, form: CallForm) -> list[str]:
        open_names = {param.name for param in tool.params if not param.secret}
        args = self._arguments(tool, form)
        return touched(tool, {name: args[name] for name in args if name in open_names}, self._workspace)

    # For people

    def ask_for_plan(self, call: Call, plan: Mapping[str, Any], *, bound: bool = False) -> str:
        """The id of an open request to approve a plan as a whole: what the dry run ``call`` of its program
        came to. Only the host asks for that. When ``bound`` an approval is for the run that ``call`` is, and
        else for the next run of the program, whichever that is."""
        tool, text = self._table.get(call.tool), str(call.form.args["form"])
        asks = replace(call, form=plans.request_form(tool, text, plan))
        digest = request_digest(asks.form, tool.version, call.session)
        hide = Redactor(
            replace(asks.form, args={"form": Code(text)}), (), self._table.secrets, by_looks=False
        )
        shown = canonical(replace(asks.form, args={**asks.form.args, "form": hide.form.args["form"]}))
        number = len(plan["shapes"])
        reason = f"it is the plan of a program, with {count(number, 'call')} that would be asked"
        run_of = call.key or call.id if bound else ""
        with self._store().transaction() as run:
            now = self._clock()
            found = run(
                "SELECT id FROM requests WHERE digest = ? AND user = ? AND state = 'pending' AND expires > ?"
                " AND used_by = ?",
                (digest, call.user, now, run_of),
            )
            if found:
                return str(found[0][0])
            opened = self._insert(
                run,
                tool,
                asks,
                reason,
                now,
                PENDING_SECONDS,
                shown=shown,
                touches="[]",
                rule="",
                used_by=run_of,
            )
            plans.keep(run, opened, plan)
        return opened

    def plan_of(self, request: str) -> str:
        """What the plan says that a request is about; empty for a request of one call."""
        with self._store().transaction() as run:
            return plans.text_of(run, request)

    def requests(self, *, session: str | None = None, every: bool = False) -> list[Request]:
        """The open requests, the oldest first; with ``every`` the decided and used ones too."""
        sql = f"SELECT {_SHOWN} FROM requests WHERE 1"  # noqa: S608
        values: list[Any] = []
        if not every:
            sql += " AND state = 'pending' AND expires > ?"
            values.append(self._clock())
        if session is not None:
            sql += " AND session = ?"
            values.append(session)
        return [_shown(row) for row in self._store().execute(sql + " ORDER BY seq", values)]

    def find(self, request: str) -> Request:
        """One request, whatever became of it. Raises UsageError with the nearest id."""
        found = self._store().execute(f"SELECT {_SHOWN} FROM requests WHERE id = ?", (request,))  # noqa: S608
        if not found:
            open_ids = [one.id for one in self.requests()]
            hint = did_you_mean(request, open_ids) or " quoth pending lists what is open."
            raise UsageError(f"There is no request {request}.{hint}")
        return _shown(found[0])

    def preview(self, request: str, decision: Decision) -> Decision:
        """The decision with all that was left open filled in, or the UsageError that ``decide`` would raise:
        what a person must see before it is granted."""
        asked, form = self._require_open(request)
        if decision.kind not in get_args(Kind):
            raise UsageError(f"A decision is {', '.join(get_args(Kind))}; not {decision.kind}.")
        if decision.seconds is not None and not 0 < decision.seconds <= LONGEST_SECONDS:
            raise UsageError(
                f"A grant lasts at most {LONGEST_SECONDS / 86400:g} days, and longer than no time."
            )
        if decision.kind == "deny" or decision.kind == "once":
            return decision
        if plans.PLAN in form.args:
            raise UsageError("A plan is approved as it is, for one run of its program; or denied.")
        if decision.kind == "duration":
            return replace(decision, seconds=decision.seconds or DURATION_SECONDS)
        tool = self._tool(asked)
        if decision.kind == "edit":
            if decision.form is None:
                raise UsageError("An edit needs the call to make instead.")
            if decision.form.tool != tool.name:
                raise UsageError(
                    f"An edited call keeps its tool, {tool.name}; this is one of {decision.form.tool}."
                )
            try:
                return replace(decision, form=bound_form(tool, decision.form, self._workspace))
            except InvalidCallError as error:
                raise UsageError(f"{error} It is called as {tool.signature()}.") from None
        if PERMISSION in form.args:
            raise UsageError(
                f"{asked.form} is what {tool.name} itself asks for; no scope covers that. Approve it once or"
                " for a while."
            )
        rule = read_scope(decision.rule or suggested(tool, form), tool)
        call = Call(asked.call, form, asked.route, asked.user, asked.session, parent=asked.parent)
        if not covers(rule, tool, call, self._workspace):
            raise UsageError(f"{rule.text} does not cover the call that was asked for, {asked.form}.")
        return replace(decision, rule=rule.text, seconds=decision.seconds or SCOPE_SECONDS)

    def decide(self, request: str, decision: Decision) -> Request:
        """Record what a person decided. Raises UsageError for a request that is not open, and for a scope or
        an edit that does not fit it; then nothing is changed."""
        filled = self.preview(request, decision)
        asked, form = self._require_open(request)
        params = self._table.get(asked.tool).params if asked.tool in self._table else _params(asked, form)
        why = encodable(Redactor(form, params, by_looks=False).text(filled.why))
        filled = replace(filled, by=encodable(filled.by), why=why)
        with self._store().transaction() as run:
            now = self._clock()
            lasts = {"deny": PENDING_SECONDS, "duration": filled.seconds, "scope": filled.seconds}
            expires = now + (lasts.get(filled.kind) or APPROVAL_SECONDS)
            edited = canonical(filled.form) if filled.kind == "edit" and filled.form else ""
            done = run(
                "UPDATE requests SET state = 'decided', decision = ?, decided = ?, decider = ?, why = ?,"
                " edited = ?, form = '', expires = ? WHERE id = ? AND state = 'pending' AND expires > ?"
                " RETURNING digest",
                (
                    filled.kind,
                    now,
                    filled.by,
                    filled.why,
                    edited,
                    expires,
                    request,
                    now,
                ),
            )
            if not done:
                raise UsageError(self._closed(self.find(request)))
            self._record(asked, form, filled, params)
            if filled.kind in ("duration", "scope"):
                run(
                    "INSERT INTO grants"
                    " (request, digest, tool, rule, user, session, granter, granted, expires)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        request,
                        done[0][0],
                        asked.tool,
                        filled.rule,
                        asked.user,
                        asked.session,
                        filled.by,
                        now,
                        expires,
                    ),
                )
        return self.find(request)

    def offer(self, request: str) -> str:
        """The rule that would allow what has been approved ENOUGH times, or nothing. It is only offered:
        whoever wants it writes it into a policy file."""
        asked = self.find(request)
        if not asked.rule or asked.decision != "once":
            return ""
        ((count,),) = self._store().execute(
            "SELECT count(*) FROM requests WHERE tool = ? AND rule = ? AND user = ? AND decision = 'once'",
            (asked.tool, asked.rule, asked.user),
        )
        return asked.rule if count >= ENOUGH else ""

    def _require_open(self, request: str) -> tuple[Request, CallForm]:
        found = self._store().execute(f"SELECT {_SHOWN}, form FROM requests WHERE id = ?", (request,))  # noqa: S608
        asked = _shown(found[0][:-1]) if found else self.find(request)
        if asked.state != "pending" or asked.expires <= self._clock():
            raise UsageError(self._closed(asked))
        try:
            return asked, from_model(read_one(found[0][-1]))
        except (ReadError, InvalidCallError) as error:  # numbers of thousands of digits and the like
            raise UsageError(f"The call of request {asked.id} cannot be read back: {error}") from None

    def _closed(self, asked: Request) -> str:
        if asked.state == "pending":
            return f"Request {asked.id} expired at {_clock_time(asked.expires)}."
        done = {"deny": "denied", "edit": "edited"}.get(asked.decision, "approved")
        when = _clock_time(asked.decided or 0)
        return f"Request {asked.id} was {done} before, by {_who(asked.decider)} at {when}."

    def _tool(self, asked: Request) -> CognitiveTool:
        if asked.tool not in self._table:
            raise UsageError(
                f"There is no tool {asked.tool} here to check that with; give its file: --tools FILE.hy"
            )
        return self._table.get(asked.tool)

    def _record(self, asked: Request, form: CallForm, decision: Decision, params: Sequence[Param]) -> None:
        """The decision in the audit, in the transaction that makes it count: nothing counts that was not
        recorded, and nothing is recorded that does not count."""
        if self._audit is None:
            return
        words = {"once": "approved once", "duration": "approved for a while", "scope": "granted a scope"}
        said = words.get(decision.kind) or {"edit": "edited", "deny": "denied"}[decision.kind]
        shown = asked.form
        if plans.PLAN not in form.args:  # a secret may stand in another argument, too
            hide = Redactor(form, params)
            shown = hide.text(asked.form) if hide.found else shown
        self._audit.write(
            {
                "id": secrets.token_hex(5),
                "ts": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "session": asked.session,
                "user": decision.by or asked.user,
                "route": "decision",
                "parent": asked.call,
                "depth": 0,
                "round": 0,
                "place": 0,
                "tool": asked.tool,
                "digest": form.digest,
                "status": "denied" if decision.kind == "deny" else "ok",
                "stage": "consent",
                "duration_ms": 0,
                "side_effects": (),
                "policy": "",
                "rule": redact(decision.rule)[:2000],
                "guard": "",
                "gate": "",
                "consent": f"{said} by {_who(decision.by)} (request {asked.id})",
                "message": redact(decision.why)[:2000],
                "form": redact(shown)[:2000],
                "schema_hash": "",
                "repairs": "",
            }
        )


def _params(asked: Request, form: CallForm) -> list[Param]:
    """The parameters of a call whose tool is not known here: those are secret that were not shown."""
    with contextlib.suppress(ReadError, InvalidCallError):
        shown = from_model(read_one(asked.form)).args
        return [Param(name, secret=shown.get(name) == SECRET != value) for name, value in form.args.items()]
    return []
