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

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from quoth.tools.call.call import Call, EditedCall, Verdict, ask, deny
from quoth.tools.call.ports import QUOTED, Audit
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent import plan_approvals as plans
from quoth.tools.consent.decisions import Decisions
from quoth.tools.consent.request_store import PENDING_SECONDS
from quoth.tools.consent.requests import (
    Person,
    _clock_time,
    _decision,
    _verdict,
    _who,
)
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm, canonical, from_model
from quoth.tools.lisp.reader import read_one
from quoth.tools.policy.scope import (
    covers,
    read_scope,
)
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Statement, Store

EDITED_SECONDS = 60.0  # the edited call is made at once; its approval is for nothing else
KEPT_SECONDS = 180 * 86400.0  # requests that are over are remembered so long, for offers and for people


class Broker(Decisions):
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
        super().__init__(store, table, workspace, audit=audit, clock=clock)
        self._person = person
        self._asking: set[str] = set()  # the requests a person is being asked about just now

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
