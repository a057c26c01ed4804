"""The decisions of people: the possible decisions on a request, and how they are checked and recorded."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, get_args

from quoth.tools.call.call import Call, Changes
from quoth.tools.call.canonical import bound_form
from quoth.tools.call.ports import asks_fact
from quoth.tools.call.redaction import SECRET, Redactor
from quoth.tools.consent import plan_approvals as plans
from quoth.tools.consent.requests import (
    Decision,
    Kind,
    Request,
    _clock_time,
    _who,
    decision_row,
    request_digest,
)
from quoth.tools.consent.rows import PENDING_SECONDS, RequestRow, RequestStore, Rows
from quoth.tools.consent.shown import Files, fits, look, of_text, replaced, to_text
from quoth.tools.door.changes import changes_of
from quoth.tools.errors import ANSWER, PERMISSION, InvalidCallError, UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.lisp.forms import CallForm, canonical, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import encodable
from quoth.tools.text import count

APPROVAL_SECONDS = 86400.0
DURATION_SECONDS = 3600.0
SCOPE_SECONDS = 8 * 3600.0
LONGEST_SECONDS = 30 * 86400.0
ENOUGH = 3  # equal approvals before a rule is offered


class Proposal(NamedTuple):
    """A call that waits for a decision, for display: its tool, its redactor, its changes, and the contents of
    the files that an approval of these changes is bound to."""

    tool: CognitiveTool
    hide: Redactor
    changes: Changes
    files: Files = MappingProxyType({})


class ChangeDiffersError(UsageError):
    """The changes of a call differ from the changes that the approving person was shown."""


class Decisions(RequestStore):
    """The part of the broker that hosts and commands use to list, preview and decide requests."""

    def ask_for_plan(self, call: Call, plan: Mapping[str, Any], *, bound: bool = False) -> str:
        """Open a request to approve ``plan``, the result of the dry run ``call``, as a whole, and return its
        id. Only the host calls this. With ``bound``, an approval is for the run ``call``; otherwise for the
        program's next run."""
        tool, text = self._tools(call.session).get(call.tool), str(call.form.args["form"])
        shapes = [self._with_files(call.session, shape) for shape in plan["shapes"]]
        asks = replace(call, form=plans.request_form(tool, text, plan))
        digest = request_digest(asks.form, tool.version, call.session)
        secrets = self._tools(call.session).secrets
        hide = Redactor(replace(asks.form, args={"form": Code(text)}), (), secrets, by_looks=False)
        shown = canonical(replace(asks.form, args={**asks.form.args, "form": hide.form.args["form"]}))
        number = len(plan["shapes"])
        origins = call.origins()  # before the store is locked
        reason = f"it is the plan of a program, with {count(number, 'call')} that need approval"
        run_of = call.key or call.id if bound else ""

        def act(rows: Rows) -> str:
            found = rows.where(digest=digest, state="pending", used_by=run_of)
            for row in found:
                if row.expires > rows.now:
                    return row.id
            more = {"program": plan["program"], "shapes": json.dumps(shapes), "plan": plan["text"]}
            decided = {"shown": shown, "touches": "[]", "rule": "", "used_by": run_of}
            return self._insert(rows, tool, asks, reason, PENDING_SECONDS, origins, **decided, **more)

        return self._rows.change(call.session, call.user, act)

    def _with_files(self, session: str, shape: Mapping[str, Any]) -> dict[str, Any]:
        """A call of a plan with the contents of its files: as the dry run found them, or as the plan says
        they were shown."""
        if (tool := self._tools(session).find(shape["tool"])) is None:
            return dict(shape)
        args = {name: pattern["is"] for name, pattern in shape["args"].items() if "is" in pattern}
        found = replaced(tool, args, self._place(session))
        known = shape.get("files", {})
        return {**shape, "files": {path: known.get(path, digest) for path, digest in found.items()}}

    def left_by(self, call: Call) -> dict[str, str]:
        """The digests that calls of an approved plan have left, by file."""
        rows = self._rows.look(call.session, call.user)
        found = [row for row in rows.where(used_by=call.key or call.id, state="used") if row.program]
        return {path: digest for row in found for path, digest in json.loads(row.files or "{}").items()}

    def plan_of(self, request: str) -> str:
        """The text of the plan that a request is about; empty for a request about one call."""
        row = self._rows.find(request)
        return row.plan if row else ""

    def changes_of(self, tool: CognitiveTool, call: Call) -> Changes | None:
        """The changes of a call to the present files; None if its tool has no ``:changes``."""
        return changes_of(tool, call, self._place(call.session))

    def proposal(self, request: str, *, shown: bool = True) -> Proposal | None:
        """The call of an open request with its changes; None if its tool has no ``:changes``. If they are
        ``shown`` to a person, from now on an approval is for these changes. Raises UsageError."""
        row = self._find(request)
        if (
            row.state != "pending"
            or row.expires <= self._rows.now()
            or row.tool not in self._tools(row.session)
        ):
            return None
        if row.request.question is not None:
            return None
        asked, form = self._require_open(request)
        tool = self._tool(asked)
        call = Call(asked.call, form, asked.route, asked.user, asked.session, parent=asked.parent)
        if plans.PLAN in form.args:
            return None
        changes, files = look(tool, call, self._place(call.session))
        if shown and (text := to_text(files)) != row.files:
            self._rows.change(asked.session, asked.user, lambda rows: self._renew(rows, request, text))
        if changes is None:
            return None
        if tool.version != row.version:
            changes = Changes(trouble=f"{tool.name} has changed since this was asked.")
        return Proposal(tool, Redactor(form, tool.params, by_looks=False), changes, files)

    def edited(self, request: str, form: CallForm) -> Proposal:
        """The call ``form``, which a person would run instead of an open request, with its changes. Raises
        UsageError."""
        asked, _ = self._require_open(request)
        tool = self._tool(asked)
        call = Call(asked.call, form, asked.route, asked.user, asked.session, parent=asked.parent)
        changes, files = look(tool, call, self._place(call.session))
        return Proposal(tool, Redactor(form, tool.params, by_looks=False), changes or Changes(), files)

    def _renew(self, rows: Rows, request: str, files: str) -> None:
        for row in rows.where(id=request, state="pending"):
            rows.put(replace(row, files=files))

    def differs(self, request: str, shown: Files | None = None) -> bool:
        """Whether the present changes of an open request differ from the changes ``shown`` last."""
        row = self._find(request)
        if (
            row.state != "pending"
            or row.tool not in self._tools(row.session)
            or (shown is None and not row.files)
        ):
            return False
        asked, form = self._require_open(request)
        if ANSWER in form.args or PERMISSION in form.args or plans.PLAN in form.args:
            return False
        call = Call(asked.call, form, asked.route, asked.user, asked.session, parent=asked.parent)
        then = of_text(row.files) if shown is None else shown
        return not fits(then, look(self._tool(asked), call, self._place(call.session))[1])

    def is_planned(self, call: Call, text: str) -> bool:
        """Whether a plan of the program ``text`` is approved for this very run, ``call``."""
        from quoth.tools.program.compiler import program_digest  # here: most calls are in no program

        return plans.is_approved(self._rows.look(call.session, call.user), program_digest(text), call)

    def preview(self, request: str, decision: Decision) -> Decision:
        """The decision with its defaults, to show before it is recorded. Raises UsageError like
        ``decide``."""
        asked, form = self._require_open(request)
        if decision.kind not in get_args(Kind):
            kinds = [kind for kind in get_args(Kind) if kind != "answer"]
            raise UsageError(f"A decision must be {', '.join(kinds)}; not {decision.kind}.")
        if decision.seconds is not None and not 0 < decision.seconds <= LONGEST_SECONDS:
            raise UsageError(
                f"A grant lasts at most {LONGEST_SECONDS / 86400:g} days, and longer than no time."
            )
        if asked.question is not None or decision.kind == "answer":
            return _fitting(asked, decision)
        if decision.kind in ("duration", "scope") and asks_fact(asked.reason):
            raise UsageError(
                f"Request {asked.id} is about a past fact, and is decided once:"
                f" quoth approve {asked.id}, or: quoth deny {asked.id} --why TEXT"
            )
        if decision.kind == "once" or (decision.kind == "deny" and not decision.rule):
            return decision
        if plans.PLAN in form.args:
            raise UsageError("A plan can only be approved unchanged, for one run of its program, or denied.")
        if decision.kind == "duration":
            return replace(decision, seconds=decision.seconds or DURATION_SECONDS)
        tool = self._tool(asked)
        if decision.kind == "edit":
            if decision.form is None:
                raise UsageError("An edit needs the new call.")
            if decision.form.tool != tool.name:
                raise UsageError(
                    f"An edited call must call the same tool, {tool.name}; this one calls"
                    f" {decision.form.tool}."
                )
            try:
                return replace(decision, form=bound_form(tool, decision.form, self._place(asked.session)))
            except InvalidCallError as error:
                raise UsageError(f"{error} It is called as {tool.signature()}.") from None
        if PERMISSION in form.args:
            raise UsageError(
                f"{tool.name} itself requests {asked.form}; no scope covers that. Approve it once or for a"
                " while."
            )
        from quoth.tools.policy.scope import covers, denying, read_scope, suggested  # here: few are scopes

        rule = read_scope(decision.rule or suggested(tool, form), tool)
        call = Call(asked.call, form, asked.route, asked.user, asked.session, parent=asked.parent)
        if not covers(rule, tool, call, self._place(call.session)):
            raise UsageError(f"{rule.text} does not cover the requested call, {asked.form}.")
        if decision.kind == "deny":
            why = decision.why or f"{denying(rule.text)} is a rule of this session"
            return replace(decision, rule=rule.text, seconds=decision.seconds or LONGEST_SECONDS, why=why)
        return replace(decision, rule=rule.text, seconds=decision.seconds or SCOPE_SECONDS)

    def decide(self, request: str, decision: Decision, shown: Files | None = None) -> Request:
        """Record a decision. ``shown`` are the file contents that the person was just shown. Raises
        UsageError, without any change, for a request that is not open, or a scope or edit that does not match
        it; raises ChangeDiffersError for an approval of a call whose changes differ from the shown ones."""
        filled = self.preview(request, decision)
        if filled.kind == "once" and self.differs(request, shown):
            raise ChangeDiffersError(
                "The change differs from the one you were shown. To see it:"
                f" quoth pending {self.find(request).id}"
            )
        asked, form = self._require_open(request)
        if filled.form is not None:  # the edited call is bound to the files as they are now
            instead = Call(asked.call, filled.form, asked.route, asked.user, asked.session)
            _, found = look(self._tool(asked), instead, self._place(instead.session))
            if shown is not None and not fits(shown, found):
                raise ChangeDiffersError("The edited call would change other files than you were shown.")
            shown = found
        tool = self._tools(asked.session).find(asked.tool)
        params = _params(asked, form) if tool is None else tool.params
        why = encodable(Redactor(form, params, by_looks=False).text(filled.why))
        filled = replace(filled, by=encodable(filled.by), why=why)
        lasts = {
            "answer": LONGEST_SECONDS,
            "deny": filled.seconds or PENDING_SECONDS,
            "duration": filled.seconds,
            "scope": filled.seconds,
        }
        grants = filled.kind in ("duration", "scope") or bool(filled.kind == "deny" and filled.rule)
        recorded = False

        def act(rows: Rows) -> RequestRow:
            nonlocal recorded
            (row,) = rows.where(id=request) or [self._find(request)]
            if row.state != "pending" or row.expires <= rows.now:
                raise UsageError(self._closed(row.request))
            if not recorded:
                self._record(asked, form, filled, params)
                recorded = True
            done = replace(
                row,
                state="decided",
                decision=filled.kind,
                decided=rows.now,
                decider=filled.by,
                why=filled.why,
                edited=canonical(filled.form) if filled.form else encodable(filled.answer),
                form="",
                files=row.files if shown is None else to_text(shown),
                expires=rows.now + (lasts.get(filled.kind) or APPROVAL_SECONDS),
                granted=filled.rule if grants else None,
            )
            rows.put(done)
            return done

        with self._together():
            return self._rows.change(asked.session, asked.user, act).request

    def granted(self, session: str | None = None, user: str | None = None) -> list[RequestRow]:
        """The requests whose decisions still last: granted permissions, and rules that deny."""
        return [
            row
            for row in self._rows.every(waiting=False)
            if row.lasts(self._rows.now()) and session in (None, row.session) and user in (None, row.user)
        ]

    def revoke(self, request: str, by: str) -> Request:
        """End what a decision grants, or denies from now on; its calls are asked about again. Raises
        UsageError."""
        asked = self._find(request)
        shown = from_model(read_one(asked.shown))

        def act(rows: Rows) -> RequestRow:
            (row,) = rows.where(id=request) or [asked]
            if not row.lasts(rows.now):
                raise UsageError(f"Request {row.id} grants nothing now. quoth policy revoke lists what does.")
            ended = replace(row, expires=rows.now)
            rows.put(ended)
            return ended

        with self._together():
            ended = self._rows.change(asked.session, asked.user, act)
            if self._audit is not None:
                consent = f"revoked by {_who(by)} (request {asked.id})"
                decision = Decision(by=by, rule=asked.granted or "")
                told = decision_row(decision, consent, asked.tool, shown.digest, asked.shown)
                marks = {"session": asked.session, "user": by or asked.user, "parent": asked.call}
                self._audit.write(told | marks)
        return ended.request

    def _together(self) -> contextlib.AbstractContextManager[object]:
        """A decision and its audit row are written together."""
        if isinstance(self._audit, StoreAudit):
            return self._store().transaction()
        return contextlib.nullcontext()

    def offer(self, request: str) -> str:
        """A rule that would allow a call that was approved ENOUGH times, or an empty text. It is only a
        suggestion for a policy file."""
        asked = self.find(request)
        if not asked.rule or asked.decision != "once":
            return ""
        times = self._rows.approvals(asked.tool, asked.rule, asked.user)
        return asked.rule if times >= ENOUGH else ""

    def _require_open(self, request: str) -> tuple[Request, CallForm]:
        row = self._find(request)
        asked = row.request
        if asked.state != "pending" or asked.expires <= self._rows.now():
            raise UsageError(self._closed(asked))
        try:
            return asked, from_model(read_one(row.form))
        except (ReadError, InvalidCallError) as error:  # for example numbers of thousands of digits
            raise UsageError(f"The call of request {asked.id} cannot be read back: {error}") from None

    def _closed(self, asked: Request) -> str:
        if asked.state == "pending":
            return f"Request {asked.id} expired at {_clock_time(asked.expires)}."
        done = {"deny": "denied", "edit": "edited", "answer": "answered"}.get(asked.decision, "approved")
        when = _clock_time(asked.decided or 0)
        return f"Request {asked.id} was {done} before, by {_who(asked.decider)} at {when}."

    def _tool(self, asked: Request) -> CognitiveTool:
        if (tool := self._tools(asked.session).find(asked.tool)) is None:
            raise UsageError(
                f"The tool {asked.tool} is not loaded, so this cannot be checked; give its file: --tools FILE"
            )
        return tool

    def _record(self, asked: Request, form: CallForm, decision: Decision, params: Sequence[Param]) -> None:
        """Write the decision to the audit."""
        if self._audit is None:
            return
        words = {"once": "approved once", "duration": "approved for a while", "scope": "granted a scope"}
        said = (
            words.get(decision.kind)
            or {"edit": "edited", "deny": "denied", "answer": "answered"}[decision.kind]
        )
        shown = asked.form
        if plans.PLAN not in form.args:  # another argument may also contain a secret
            hide = Redactor(form, params)
            shown = hide.text(asked.form) if hide.found else shown
        consent = f"{said} by {_who(decision.by)} (request {asked.id})"
        row = decision_row(decision, consent, asked.tool, form.digest, shown)
        marks = {"session": asked.session, "user": decision.by or asked.user, "parent": asked.call}
        self._audit.write(row | marks)


def _fitting(asked: Request, decision: Decision) -> Decision:
    """An answer, or a refusal to answer, with the choice that it means. Raises UsageError if a question would
    be approved, or a request for approval answered."""
    id = asked.id
    if asked.question is None:
        raise UsageError(
            f"Request {id} needs a yes or a no, not an answer in words: quoth approve {id}, or:"
            f" quoth deny {id} --why TEXT"
        )
    if decision.kind == "deny":
        return decision
    if decision.kind != "answer":
        raise UsageError(
            f"Request {id} is a question, and is answered in words, not approved: quoth answer {id} TEXT"
        )
    return replace(decision, answer=asked.question.answer(decision.answer))


def _params(asked: Request, form: CallForm) -> list[Param]:
    """The parameters of a call whose tool is unknown; parameters that were not shown are treated as
    secret."""
    with contextlib.suppress(ReadError, InvalidCallError):
        shown = from_model(read_one(asked.form)).args
        return [Param(name, secret=shown.get(name) == SECRET != value) for name, value in form.args.items()]
    return []
