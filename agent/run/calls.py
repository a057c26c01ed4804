"""Single calls through the door of an agent, without a model."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

from quoth.agent.run.host import SessionHost, require_text
from quoth.agent.run.subagents import services_for
from quoth.agent.session.origins import past_calls
from quoth.tools.call.call import Call, Route, ToolResult, Verdict, deny, new_call
from quoth.tools.call.canonical import as_written, checked
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import Redactor
from quoth.tools.errors import InvalidCallError, UnknownToolError, UsageError
from quoth.tools.history.event import content_of, read_form
from quoth.tools.history.receipts import bound_to
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.reader import ReadError, read_one
from quoth.tools.policy.limits import changes_nothing
from quoth.tools.registry.values import encodable

if TYPE_CHECKING:
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation


class Calls:
    """The single calls of one host's session."""

    def __init__(self, host: SessionHost) -> None:
        self.host = host
        self._made: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by user and key

    def context(self, user_message: str = "", *, user: str = "", knowledge: str = "") -> ToolContext:
        """The context of a call outside of any run."""
        host = self.host
        return host.context(user_message, user=user, knowledge=knowledge, services=services_for(host))

    async def call(
        self, form: str | CallForm, *, route: Route = "call", user: str = "", key: str = ""
    ) -> ToolResult:
        """One call form through the door, without a model. An unreadable form is an ``invalid`` result.

        ``user`` is the principal of the call, if it is not the user of the session: rules, quotas and
        the audit name it. ``key`` is the id that a client gave its request: the same call made again under
        it returns its receipt, also in another process. Raises UsageError where the key belongs to another
        call, or the user is not a text."""
        self.host.require_open()
        require_text("user", user)
        if isinstance(form, str):
            try:
                form = from_model(read_one(form))
            except (ReadError, InvalidCallError) as error:
                caret = f"\n{error.caret()}" if isinstance(error, ReadError) else ""
                user = user or self.host.user
                empty = new_call(CallForm(""), route=route, user=user, session=self.host.session)
                with self.host.record.used("call"):
                    return self.host.door.unreadable(empty, self.context(), str(form), f"{error}{caret}")
        if not key:
            return await self.again(form, route, user=user)
        async with self._made.setdefault(f"{user}\n{key}", asyncio.Lock()):  # the second returns the receipt
            return await self.again(form, route, self._own_key(form, user, key), user)

    async def again(self, form: CallForm, route: Route, key: str = "", user: str = "") -> ToolResult:
        """Take a call through the door. With ``key`` an earlier call is resumed."""
        await self.host.renew()
        with self.host.record.used("call"):
            return await self._recorded_call(form, route, key, user or self.host.user)

    def _own_key(self, form: CallForm, user: str, key: str) -> str:
        """The key in this session of the call that a client names ``key``. Raises UsageError."""
        name = "k" + hashlib.sha256(encodable(f"{user or self.host.user}\n{key}").encode()).hexdigest()[:20]
        sql = "SELECT form FROM events WHERE session = ? AND run = '' AND key = ? AND kind = 'call' LIMIT 1"
        # The event of a call that has ended is without its secrets; the receipt is bound to them.
        kept = "SELECT 1 FROM receipts WHERE key = ? AND digest = ? LIMIT 1"
        whole = f"{self.host.session}/{name}"
        for (text,) in self.host.store.execute(sql, (self.host.session, name)):
            with contextlib.suppress(InvalidCallError, UnknownToolError):  # the door reports it
                form, _ = checked(self.host.table.get(form.tool), form, self.host.workspace)
            made = read_form(content_of(text)["form"])
            receipt = whole, bound_to(form, user or self.host.user)
            if made.digest != form.digest and not self.host.store.execute(kept, receipt):
                shown = Redactor.of(made, self.host.table).form
                raise UsageError(
                    f"The key {key} belongs to the call {shown}. Give each call a key of its own."
                )
        return whole

    async def _recorded_call(self, form: CallForm, route: Route, key: str, user: str) -> ToolResult:
        self.host.record.open(self.host.given)
        marks: dict[str, Any] = {"key": key} if key else {}
        call = new_call(form, route=route, user=user, session=self.host.session, **marks)
        if not key:
            call = call.changed(key=f"{self.host.session}/{call.id}")
        result = await self.host.door.dispatch(call, self.context(user=user))
        if result.audit.get("written") is False:  # it was broken off, so the earlier call still counts
            return result
        if not key and result.status != "pending":
            for other in self.host.broker.superseded_calls(call):
                said = {"status": "cancelled", "message": f"It was run again as call {call.id}."}
                self.host.transcript.add(self.host.session, "receipt", said, key=other, status="cancelled")
        if result.status != "pending":
            self.host.record.forget_opening()
        return result

    async def eval(
        self, program: str, *, route: Route = "eval", dry_run: bool | Literal["pure"] = False
    ) -> ToolResult:
        """A Lisp program in the sandbox: a call of the ``eval`` tool. Its inner calls pass the door too.

        With ``dry_run`` the value is a plan of its possible calls (tools/dryrun/call_plan.py), and only
        calls that read are run; with ``"pure"``, none."""
        more = {"dry-run": dry_run} if dry_run else {}
        return await self.call(CallForm("eval", {"form": program, **more}), route=route)

    def ask_for_plan(self, program: str, plan: Mapping[str, Any]) -> str:
        """Create a request to approve the whole ``plan`` that a dry run of ``program`` in this session made.
        Returns the request's id."""
        from quoth.tools.origin.arguments import origins_of_plan  # here: few programs have a plan

        self.host.require_open()
        form, _ = self.host.table.get("eval").checked(CallForm("eval", {"form": program}))
        call = new_call(form, route="eval", user=self.host.user, session=self.host.session)
        origins = partial(origins_of_plan, self.host.table, call, plan["shapes"], self.host.parts.origins)
        return self.host.broker.ask_for_plan(replace(call, origins=origins), plan)


# How the rules of a host would judge a call, as data and as lines for a person. No call is run, and no person
# is asked.


def judged(host: SessionHost, text: str, route: Route, **marks: Any) -> tuple[Call, Explanation, list[Limit]]:
    """The call of a form, the judgement of the rules, and the limits of its tool. Raises UsageError."""
    try:
        form: CallForm = from_model(read_one(text))
    except ReadError as error:
        raise UsageError(f"{error}\n{error.caret()}") from None
    tool = host.table.get(form.tool)
    form, args = checked(tool, form, host.workspace)
    written = as_written(tool, args)
    marks = {"route": route, "client": host.door.client, **marks}
    call = new_call(form, user=host.user, session=host.session, written=written, **marks)
    return call, host.policy.explain(tool, call, args, host.context()), host.policy.limits_of(tool)


def explained(host: SessionHost, text: str, route: Route, **marks: Any) -> str:
    """The judgement of a call of this form, as ``quoth policy explain`` prints it."""
    from quoth.agent.terminal.pages import explanation_lines  # here: few calls are explained

    return "\n".join(explanation_lines(*judged(host, text, route, **marks)))


@dataclass(frozen=True)
class JudgedCall:
    """A call of a session and its judgement by the current rules; its form is without secrets."""

    id: str
    form: CallForm
    route: Route
    user: str
    verdict: Verdict

    def to_json(self) -> dict[str, Any]:
        said = self.verdict
        told = {"verdict": said.kind, "reason": said.reason, "rule": said.rule, "origin": said.origin}
        return {"id": self.id, "form": str(self.form), "route": self.route, "user": self.user, **told}


def judged_again(host: SessionHost) -> Iterator[JudgedCall]:
    """The calls of the host's session that do more than read, in order: each as the current rules judge it,
    given what the session had seen at that call."""
    for event, call, origins in past_calls(host.transcript, host.session, lambda: host.table):
        tool = host.table.find(call.tool)
        if changes_nothing(tool) if tool is not None else not event.data.get("does"):
            continue
        if tool is None:
            said = deny(f"the tool {call.tool} no longer exists")
        else:
            try:
                form, args = checked(tool, call.form, host.workspace)
                call = replace(call, form=form, client=host.door.client)
                context = replace(host.context(user=call.user), origins=origins)
                said = host.policy.explain(tool, call, args, context).verdict
            except InvalidCallError as error:
                said = deny(str(error))
        hide = Redactor.of(call.form, host.table)
        told = replace(said, reason=hide.text(said.reason.rstrip(".")), origin=hide.text(said.origin))
        yield JudgedCall(f"{host.session}.{event.seq}", hide.form, call.route, call.user, told)
