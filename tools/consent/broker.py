"""The permission broker: asks a person, stores requests and decisions, and uses each decision once.

No tool can reach it: the store is outside every workspace, and a model's text about permission is an ordinary
argument.

A request is bound to the SHA-256 of the canonical form, the version of the tool and the session, and to its
user; if one of them differs, it is another request. It stays open for PENDING_SECONDS. A person decides one
of:

- once: this call may run one time, within APPROVAL_SECONDS of the decision;
- duration: this very call may run any number of times in its session, until the time is over;
- scope: every call of its session, and of this version of the tool, that an allow rule covers, until the time
  is over. It answers questions only: what a rule, a guard or a gate denies stays denied;
- edit: not this call, but the same tool with other arguments, which passes the whole door;
- deny: the reason becomes the result of the call; with a scope, also of every later call of its session that
  the scope covers, until the time is over;
- answer: words, to a question that the body of a call asks. They allow nothing, and belong to the call that
  has used them.

An approval is marked as used, and synced, before the body begins; if the process is killed after that, it
stays used. Only a call that is pending again, for a decision that its body needs, keeps it for its own
resumption. A plan, the calls that a dry run found in a program, is approved as a whole: for one run of
exactly that program, and for the calls that the plan names (tools/consent/plan_approvals.py). The true form
is stored only while the request is open, and an edited form until its call runs; declared secrets are never
shown.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quoth.tools.call.call import Call, Changes, EditedCall, Verdict, ask, deny
from quoth.tools.call.ports import QUOTED, Audit, PersonAnswer, Reviewer, asks_fact
from quoth.tools.call.redaction import Redactor
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent import plan_approvals as plans
from quoth.tools.consent.decisions import Decisions
from quoth.tools.consent.requests import (
    QUESTION,
    Decision,
    Person,
    _clock_time,
    _decision,
    _verdict,
    _who,
)
from quoth.tools.consent.rows import PENDING_SECONDS, RequestRow, RequestRows, Rows
from quoth.tools.consent.shown import Files, fits, look, of_text, replaced, to_text
from quoth.tools.errors import ANSWER, PERMISSION, InvalidCallError, Pending, QuothError, UsageError
from quoth.tools.lisp.forms import CallForm, canonical, from_model
from quoth.tools.lisp.read_error import ReadError
from quoth.tools.lisp.reader import read_one
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.text import one_line

if TYPE_CHECKING:
    from quoth.tools.call.question import Question

ELSEWHERE_SECONDS = 0.5  # interval of checks whether a question was answered elsewhere
DIFFERS = "its change differs from the one that was approved"
EDITED_SECONDS = 60.0  # the edited call runs at once; its approval is for nothing else

_ELSEWHERE: Final = object()


class Broker(Decisions):
    """The door's Consent, stored for one workspace, or in ``rows`` that several machines share.

    ``person`` is asked at once. Without one, a call is pending until a person has decided and the call is
    repeated. ``clock`` returns seconds since 1970; ``channel`` is the place where the users of these calls
    are reached; ``asked`` is called with the id of each request before a person is asked.
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
        channel: str = "",
        rows: RequestRows | None = None,
        reviewer: Reviewer | None = None,
        asked: Callable[[str], None] = lambda request: None,
    ) -> None:
        super().__init__(store, table, workspace, audit=audit, clock=clock, channel=channel, rows=rows)
        self._person = person
        self._reviewer = reviewer
        self._asked = asked
        self._asking: dict[
            str, str
        ] = {}  # requests that a person is now being asked about: session by request
        self._questions: dict[str, asyncio.Future[Any]] = {}  # the person's answer to each of them
        self._opening = threading.Lock()
        self._settled: set[str] = set()  # calls that have used a decision
        self._stale: set[str] = set()  # calls whose approval was for another change
        self._bound: dict[str, dict[str, str]] = {}  # by call: the file digests of its approval
        self._looked: dict[str, tuple[Changes | None, Files]] = {}  # by call: the changes shown last
        self._tell("show_changes_by", self._shown)

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        """The existing decision on this very call, otherwise the person's answer, otherwise an ask with the
        request id."""
        digest, fact = self._digest(tool, call), asks_fact(reason)
        settled = await self._settle(tool, call, digest, fact=fact)
        if settled is None and not fact:
            settled = await self._planned(tool, call)
        if settled is not None:
            if call.id not in self._settled:  # a grant or a plan has allowed it
                self._close(call, digest)
            return settled
        if self._reviewer is None or fact or self._is_open(call, digest):
            return await self._ask(tool, call, reason, digest)
        reviewed = await self._reviewer.review(tool, call, reason)
        if reviewed.kind != "ask":
            return reviewed
        said = await self._ask(tool, call, f"{reason}; {reviewed.reason}", digest)
        if isinstance(said, Verdict) and said.kind == "allow":
            return replace(said, reason=f"{said.reason}; {reviewed.reason}".lstrip("; "))  # for the audit
        return said

    async def _ask(
        self, tool: CognitiveTool, call: Call, reason: str, digest: str
    ) -> Verdict | EditedCall | None:
        """The person's answer; without one, an ask with the request id."""
        fact = asks_fact(reason)
        if call.id in self._stale:
            self._stale.discard(call.id)
            reason = f"{reason}; {DIFFERS}"
        person = self._person
        if person is not None and not getattr(person, "human", True):
            if not fact:
                self._close(call, digest)
                return _verdict(await person.request(tool, call, reason))
            person = None  # an automatic yes cannot answer a question of fact
        files = to_text((await self._look(tool, call))[1])
        opened = self._open(tool, call, digest, reason, files, asking=person is not None)
        told = self._told(tool, call, reason)
        waiting = _waiting(told, opened)
        self._asked(opened)
        if person is None:
            return waiting
        with self._put(call, opened):
            said = await self._wait(person.request(tool, call, self.find(opened).reason), call, opened)
            decided = None if said is _ELSEWHERE or _undecided(said) else _decision(said)
        _, shown = self._looked.pop(call.id, (None, None))
        if decided is not None and decided.kind == "edit":  # the person saw changes of the other call
            shown = None
        if said is _ELSEWHERE:
            return await self._settle(tool, call, digest, opened, fact=fact) or waiting
        if decided is None:
            return waiting
        try:
            await asyncio.to_thread(self.decide, opened, decided, shown)
        except UsageError as error:
            if (
                settled := await self._settle(tool, call, digest, fact=fact)
            ) is not None:  # elsewhere meanwhile
                return settled
            if any(one.id == opened for one in self.requests()):  # an invalid rule or edit
                return replace(waiting, reason=f"{waiting.reason}. {error}")
            return deny(str(error))
        return await self._settle(tool, call, digest, opened, fact=fact) or waiting

    async def answer(self, tool: CognitiveTool, call: Call, question: Question) -> PersonAnswer | Verdict:
        """The earlier answer to this very call, otherwise the person's present answer, otherwise an ask with
        the request id. Only a person's own words become an answer: no rule, grant or ``--yes`` does."""
        digest = self._digest(tool, call)
        if (known := self._answered(call, digest)) is not None:
            return known
        answer = getattr(self._person, "answer", None)
        opened = self._open(tool, call, digest, QUESTION, "", asking=answer is not None)
        waiting = _waiting(one_line(self._told(tool, call, question.text), 200), opened)
        self._asked(opened)
        if answer is None:
            return waiting
        shown = self.find(opened).question or question
        with self._put(call, opened):
            said = await self._wait(answer(tool, call, shown), call, opened)
        if said is None:
            return waiting
        if said is not _ELSEWHERE:
            try:
                self.decide(opened, said if isinstance(said, Decision) else Decision("answer", answer=said))
            except UsageError as error:
                if (known := self._answered(call, digest)) is not None:  # answered elsewhere meanwhile
                    return known
                return ask(f"{waiting.reason}. {error}")
        return self._answered(call, digest, opened) or waiting

    def _is_open(self, call: Call, digest: str) -> bool:
        """Whether a request for this very call is open: the reviewer has seen it."""
        rows = self._rows.look(call.session, call.user)
        return any(row.expires > rows.now for row in rows.where(digest=digest, state="pending"))

    def _close(self, call: Call, digest: str) -> None:
        """End an open request for this very call, unless a person is being asked about it."""

        def opened(rows: Rows) -> list[RequestRow]:
            found = rows.where(digest=digest, state="pending")
            return [row for row in found if row.id not in self._asking and not asks_fact(row.reason)]

        def act(rows: Rows) -> None:
            for row in opened(rows):
                _expire(rows, row.id)

        if opened(self._rows.look(call.session, call.user)):
            self._rows.change(call.session, call.user, act)

    def _shown(self, tool: CognitiveTool, call: Call) -> Changes | None:
        """The changes of a call, for the person who is asked about it now. If they are the same as before,
        they are not shown again, and the approval is for the earlier content of the files."""
        now = look(tool, call, self._place(call.session))
        if call.id not in self._looked or self._looked[call.id][0] != now[0]:
            self._looked[call.id] = now
        return now[0]

    def bound(self, call: Call) -> Mapping[str, str]:
        return self._bound.pop(call.id, {})

    def wrote(self, call: Call, path: str, digest: str) -> None:
        """Note the content that a call of an approved plan leaves in a file, so that a later call of the plan
        may change it again."""
        if call.program_run and plans.of_run(self._rows.look(call.session, call.user), call):
            self._rows.change(call.session, call.user, lambda rows: plans.left(rows, call, path, digest))

    def _told(self, tool: CognitiveTool, call: Call, text: str) -> str:
        return Redactor(call.form, tool.params, by_looks=False).text(text)

    def _answered(self, call: Call, digest: str, request: str = "") -> PersonAnswer | Verdict | None:
        """The answer that this call has used or may use; a refusal to answer is a denial. A used answer
        belongs to its call, so that the question is not asked again when the call is resumed."""
        name = call.key or call.id

        def act(rows: Rows) -> PersonAnswer | Verdict | None:
            found = [
                row
                for row in rows.where(digest=digest)
                if row.decision in ("answer", "deny")
                and row.expires > rows.now
                and row.used_by in ("", name)
                and request in ("", row.id)
            ]
            if not found:
                return None
            row = min(found, key=lambda row: (row.used_by == "", row.decided or 0))
            if row.state == "decided":
                rows.put(replace(row, state="used", used=rows.now, used_by=name))
            by = f"{_who(row.decider)} (request {row.id})"
            if row.decision == "answer":
                return PersonAnswer(row.edited, f"answered by {by}")
            return deny(f"the person did not answer: {row.why}" if row.why else "the person did not answer")

        found = self._rows.change(call.session, call.user, act)
        if found is not None:
            self._settled.add(call.id)
        return found

    @contextlib.contextmanager
    def _put(self, call: Call, request: str) -> Iterator[None]:
        """A context while a person is asked. If asking fails, the request ends, because no person sees it,
        and the same call asks again."""
        try:
            yield
        except Exception:
            self._looked.pop(call.id, None)
            with contextlib.suppress(Exception):  # only the failure itself counts
                self._rows.change(call.session, call.user, lambda rows: _expire(rows, request))
            raise
        finally:
            self._asking.pop(request, None)

    async def _wait(self, asked: Awaitable[Any], call: Call, request: str) -> Any:
        """The person's answer; _ELSEWHERE if the request was decided elsewhere meanwhile: then the question
        is withdrawn."""
        asking = self._questions[request] = asyncio.ensure_future(asked)
        try:
            while not (await asyncio.wait({asking}, timeout=ELSEWHERE_SECONDS))[0]:
                with contextlib.suppress(QuothError):  # a request that cannot be looked up is still asked
                    if (found := self.find(request)).state != "pending":
                        self._tell("withdraw", call, f"{found.outcome}{found.why and ': '}{found.why}")
                        return _ELSEWHERE
        finally:
            withdrawn = self._questions.pop(request, None) is None
            if not asking.done():
                asking.cancel()
                await asyncio.wait({asking})
                if not asking.cancelled():
                    asking.exception()  # it was withdrawn; its outcome does not count
        return None if withdrawn else asking.result()

    def waits(self, call: Call, instead: CallForm | None = None) -> None:
        """Reserve the decisions that ``call`` has used for its resumption: it, or the call ``instead`` that
        replaced it, is pending on another decision."""

        def act(rows: Rows) -> None:
            decision, edited = ("once", "") if instead is None else ("edit", canonical(instead))
            for row in rows.where(state="used", decision=decision, used_by=call.id):
                kept = replace(row, state="decided", used=None, used_by=call.key or call.id)
                rows.put(replace(kept, edited=edited))

        self._rows.change(call.session, call.user, act)

    def asked_inside(self, tool: CognitiveTool, call: Call) -> list[Pending]:
        """The earlier requests of this very call's body: permissions that are open, or decided and unused,
        and open questions. They are asked before the body begins again."""
        rows = self._rows.look(call.session, call.user)
        found = [
            row
            for row in rows.where(tool=tool.name)
            if row.expires > rows.now
            and (
                row.state == "pending" or (row.state == "decided" and row.used_by in ("", call.id, call.key))
            )
        ]
        asked: list[Pending] = []
        for row in sorted(found, key=lambda row: row.decided or row.asked):
            with contextlib.suppress(ReadError, InvalidCallError):
                args = from_model(read_one(row.shown)).args
                name, question = args.get(PERMISSION), row.request.question
                more = {PERMISSION: name} if isinstance(name, str) else {ANSWER: args.get(ANSWER)}
                if not isinstance(name, str) and (question is None or row.state != "pending"):
                    continue
                asks = replace(call, form=replace(call.form, args={**call.form.args, **more}))
                if self._digest(tool, asks) != row.digest:
                    continue
                if question is not None:
                    asked.append(Pending(question.text, question=question))
                elif name not in [one.permission for one in asked]:
                    asked.append(Pending(row.reason, permission=str(name)))
        return asked

    def begins(self, tool: CognitiveTool, call: Call) -> None:
        """A program starts: from now on an approval of its plan is bound to this run."""
        program = plans.program_of(call)
        if program and self._rows.look(call.session, call.user).where(program=program, state="decided"):
            self._rows.change(call.session, call.user, lambda rows: plans.claim(rows, tool, call))

    async def _look(self, tool: CognitiveTool, call: Call) -> tuple[Changes | None, Files]:
        """The changes of a call, found in a thread: a slow editor delays this call only."""
        return await asyncio.to_thread(look, tool, call, self._place(call.session))

    async def _planned(self, tool: CognitiveTool, call: Call) -> Verdict | None:
        """Allow a call that belongs to the approved plan of its program."""
        if not call.program_run:
            return None
        leads = self._leads(tool, call)
        args = self._arguments(tool, call.form, call.session)
        digests = await asyncio.to_thread(replaced, tool, args, self._place(call.session))
        found = self._rows.change(
            call.session, call.user, lambda rows: plans.covering(rows, tool, call, leads, digests)
        )
        if found is None:
            return None
        self._bound[call.id] = digests
        return Verdict("allow", f"approved with its plan by {_who(found[1])} (request {found[0]})")

    def superseded_calls(self, call: Call) -> list[str]:
        """The ids of earlier calls whose decisions ``call`` has used: they need not be resumed."""
        if call.id not in self._settled:
            return []
        rows = self._rows.look(call.session, call.user)
        found = [row for name in {call.id, call.key} - {""} for row in rows.where(used_by=name)]
        return list(dict.fromkeys(row.call for row in found if row.call != call.id))

    def asking(self, sessions: Collection[str]) -> bool:
        """Whether the person is being asked a question of one of these sessions now."""
        return bool(getattr(self._person, "asking", False) and self._of(sessions))

    def interrupt(self, sessions: Collection[str]) -> None:
        """Withdraw the questions of these sessions, and ask no other until ``listen``, unless the person is
        asked questions of other sessions, too; requests stay open."""
        own = self._of(sessions)
        if len(own) == len(self._asking):
            self._tell("interrupt")
            return
        for request in own:
            if (asked := self._questions.pop(request, None)) is not None:
                asked.cancel()

    def _of(self, sessions: Collection[str]) -> list[str]:
        """The requests of these sessions that the person is asked about now."""
        return [request for request, session in self._asking.items() if session in sessions]

    def listen(self) -> None:
        """Ask the person again from now on."""
        self._tell("listen")

    def _tell(self, what: str, *more: Any) -> None:
        tell = getattr(self._person, what, None)
        if callable(tell):
            tell(*more)

    async def _settle(
        self, tool: CognitiveTool, call: Call, digest: str, request: str = "", *, fact: bool = False
    ) -> Verdict | EditedCall | None:
        """Use up a decision on this call, or find a grant that covers it. It is one transaction, so only one
        of two concurrent calls gets the decision. A decision that is reserved for a call is used only by that
        call. A question of ``fact`` is answered only by a decision on a request that asked it."""

        def usable(rows: Rows) -> list[RequestRow]:
            return [
                row
                for row in rows.where(digest=digest, state="decided")
                if row.decision in ("once", "edit", "deny")
                and row.expires > rows.now
                and row.used_by in ("", call.id, call.key)
                and request in ("", row.id)
                and (not fact or asks_fact(row.reason))
            ]

        now: Files = {}  # computed before the store is locked
        if any(row.files for row in usable(self._rows.look(call.session, call.user))):
            now = (await self._look(tool, call))[1]

        def act(rows: Rows) -> Verdict | EditedCall | list[RequestRow]:
            found = []
            for row in usable(rows):
                if row.decision != "once" or not row.files or fits(of_text(row.files), now):
                    found.append(row)
                else:  # it was for another change
                    rows.put(replace(row, expires=rows.now))
                    self._stale.add(call.id)
            if found:
                row = min(found, key=lambda row: (row.used_by == "", row.decided or 0))
                rows.put(replace(row, state="used", used=rows.now, used_by=call.id, edited=""))
                if row.decision == "once" and row.files:
                    self._bound[call.id] = {path: digest for path, (digest, _) in now.items()}
                return self._used(rows, tool, call, row)
            if fact:
                return []
            refused = rows.where(tool=tool.name, decision="deny")
            of = {"tool": tool.name, "version": tool.version, "state": "decided"}
            lasting = rows.where(**of, decision="duration", digest=digest)
            known = [*refused, *lasting, *rows.where(**of, decision="scope")]
            return [row for row in known if row.lasts(rows.now)]

        settled = self._rows.change(call.session, call.user, act)
        if not isinstance(settled, list):
            self._settled.add(call.id)
            return settled
        for row in settled:
            # A scope covers a quotation, and each-time questions, only if it was granted for that very call.
            rule = row.granted or ""
            if row.decision == "deny":
                if self._covered(rule, tool, call):
                    return deny(f"the person said: {row.why}")
            elif (
                row.digest == digest
                if not rule or call.quoted or call.each_time
                else self._covered(rule, tool, call, row.touches)
            ):
                until = f"until {_clock_time(row.expires)}"
                return Verdict("allow", f"granted {until} by {_who(row.decider)} (request {row.id})", rule)
        return None

    def _used(self, rows: Rows, tool: CognitiveTool, call: Call, row: RequestRow) -> Verdict | EditedCall:
        """The verdict, or edited call, that results from a decision just used."""
        if row.decision == "deny":
            return deny(f"the person said: {row.why}" if row.why else "the person said no")
        if row.decision == "edit":
            form = from_model(read_one(row.edited))
            instead = replace(call, id=secrets.token_hex(5), form=form)
            more: dict[str, Any] = {"form": "", "state": "decided", "decision": "once", "decided": rows.now}
            more |= {"decider": row.decider, "used_by": instead.id, "files": row.files}
            self._insert(rows, tool, instead, f"{row.id} was edited", EDITED_SECONDS, **more)
            return EditedCall(form, f"edited by {_who(row.decider)} (request {row.id})", instead.id)
        return Verdict("allow", f"approved by {_who(row.decider)} (request {row.id})")

    def _covered(self, rule: str, tool: CognitiveTool, call: Call, touches: str = "null") -> bool:
        from quoth.tools.policy.scope import covers, read_scope  # here: most sessions have no scope

        try:
            return covers(read_scope(rule, tool), tool, call, self._place(call.session), json.loads(touches))
        except UsageError:  # the tool has changed, and no longer has an argument of the rule
            return False

    def _open(
        self, tool: CognitiveTool, call: Call, digest: str, reason: str, files: str, *, asking: bool
    ) -> str:
        """The id of an open request for this call and its ``files``, existing or new. While a person is being
        asked, the request belongs to the call that asked; an identical call gets its own."""

        def act(rows: Rows) -> str:
            found = [
                row.id
                for row in rows.where(digest=digest, state="pending")
                if row.expires > rows.now
                and (QUOTED in row.reason) == bool(call.quoted)
                and asks_fact(row.reason) == asks_fact(reason)
            ]
            free = [name for name in found if name not in self._asking]
            if free or (found and not asking):
                return (free or found)[0]
            rows.prune()
            return self._insert(rows, tool, call, reason, PENDING_SECONDS, origins, files)

        origins = call.origins()  # before the store is locked
        with self._opening:  # two equal concurrent questions have separate requests
            opened = self._rows.change(call.session, call.user, act)
            if asking:
                self._asking[opened] = call.session
        return opened


def _waiting(told: str, request: str) -> Verdict:
    """The verdict on a call whose request is open; its id is in the reason, and in ``request``."""
    return replace(ask(f"{told} (request {request})"), request=request)


def _undecided(said: Any) -> bool:
    return said is None or (isinstance(said, Verdict) and said.kind == "ask")


def _expire(rows: Rows, request: str) -> None:
    for row in rows.where(id=request, state="pending"):
        rows.put(replace(row, expires=rows.now))
