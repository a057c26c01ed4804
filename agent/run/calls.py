"""Single calls through the door of an agent, without a model.

Knows a host; it must not know runs or conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from quoth.agent.run.host import SessionHost
from quoth.agent.run.subagents import services_for
from quoth.tools.call.call import Route, ToolResult, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one


class Calls:
    """The single calls of one host's session."""

    def __init__(self, host: SessionHost) -> None:
        self.host = host

    def context(self, user_message: str = "", *, user: str = "", knowledge: str = "") -> ToolContext:
        """The context of a call that is part of no run."""
        host = self.host
        return host.context(user_message, user=user, knowledge=knowledge, services=services_for(host))

    async def call(self, form: str | CallForm, *, route: Route = "call") -> ToolResult:
        """One call form through the door, without a model. An unreadable form is an ``invalid`` result."""
        self.host.require_open()
        if isinstance(form, str):
            try:
                form = from_model(read_one(form))
            except (ReadError, InvalidCallError) as error:
                caret = f"\n{error.caret()}" if isinstance(error, ReadError) else ""
                empty = new_call(CallForm(""), route=route, user=self.host.user, session=self.host.session)
                with self.host.record.used("call"):
                    return self.host.door.unreadable(empty, self.context(), str(form), f"{error}{caret}")
        return await self.again(form, route)

    async def again(self, form: CallForm, route: Route, key: str = "") -> ToolResult:
        """Take a call through the door. With ``key`` an earlier call is resumed."""
        await self.host.renew()
        with self.host.record.used("call"):
            return await self._recorded_call(form, route, key)

    async def _recorded_call(self, form: CallForm, route: Route, key: str) -> ToolResult:
        self.host.record.open(self.host.given)
        marks: dict[str, Any] = {"key": key} if key else {}
        call = new_call(form, route=route, user=self.host.user, session=self.host.session, **marks)
        if not key:
            call = replace(call, key=f"{self.host.session}/{call.id}")
        result = await self.host.door.dispatch(call, self.context())
        if result.audit.get("written") is False:  # it is broken off, and what it replaces still counts
            return result
        if not key and result.status != "pending":
            for other in self.host.broker.superseded_calls(call):
                said = {"status": "cancelled", "message": f"It was made again as call {call.id}."}
                self.host.transcript.add(self.host.session, "receipt", said, key=other, status="cancelled")
        if result.status != "pending":
            self.host.record.forget_opening()
        return result

    async def eval(
        self, program: str, *, route: Route = "eval", dry_run: bool | Literal["pure"] = False
    ) -> ToolResult:
        """A Lisp program in the sandbox: a call of the ``eval`` tool. Its inner calls pass the door too.

        With ``dry_run`` the value is a plan of the calls it may make (tools/dryrun/call_plan.py), and only
        reading calls are made; with ``"pure"`` none."""
        more = {"dry-run": dry_run} if dry_run else {}
        return await self.call(CallForm("eval", {"form": Code(program), **more}), route=route)

    def ask_for_plan(self, program: str, plan: Mapping[str, Any]) -> str:
        """Create a request to approve a whole ``plan``, made by a dry run of ``program`` in this session; the
        request's id."""
        from quoth.tools.origin.arguments import origins_of_plan  # here: few programs have a plan

        self.host.require_open()
        form, _ = self.host.table.get("eval").checked(CallForm("eval", {"form": Code(program)}))
        call = new_call(form, route="eval", user=self.host.user, session=self.host.session)
        origins = partial(origins_of_plan, self.host.table, call, plan["shapes"], self.host.parts.origins)
        return self.host.broker.ask_for_plan(replace(call, origins=origins), plan)
