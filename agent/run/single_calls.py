"""Single calls through the door of an agent, without a model.

Knows a host; it must not know runs or conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from quoth.agent.run.host import Host
from quoth.tools.call.call import Route, ToolResult, new_call
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm, from_model
from quoth.tools.lisp.printer import Code
from quoth.tools.lisp.reader import ReadError, read_one


class SingleCalls(Host):
    """A Host that makes single calls."""

    async def call(self, form: str | CallForm, *, route: Route = "call") -> ToolResult:
        """One call form through the door, without a model. An unreadable form is an ``invalid`` result."""
        self._require_open()
        if isinstance(form, str):
            try:
                form = from_model(read_one(form))
            except (ReadError, InvalidCallError) as error:
                caret = f"\n{error.caret()}" if isinstance(error, ReadError) else ""
                empty = new_call(CallForm(""), route=route, user=self.user, session=self.session)
                with self._session.used("call"):
                    return self.door.unreadable(empty, self.context(), str(form), f"{error}{caret}")
        return await self._call(form, route)

    async def _call(self, form: CallForm, route: Route, key: str = "") -> ToolResult:
        """Take a call through the door. With ``key`` an earlier call is resumed."""
        await self.renew()
        with self._session.used("call"):
            return await self._recorded_call(form, route, key)

    async def _recorded_call(self, form: CallForm, route: Route, key: str) -> ToolResult:
        self._session.open(self.given)
        marks: dict[str, Any] = {"key": key} if key else {}
        call = new_call(form, route=route, user=self.user, session=self.session, **marks)
        if not key:
            call = replace(call, key=f"{self.session}/{call.id}")
        result = await self.door.dispatch(call, self.context())
        if result.audit.get("written") is False:  # it is broken off, and what it replaces still counts
            return result
        if not key and result.status != "pending":
            for other in self.broker.superseded_calls(call):
                said = {"status": "cancelled", "message": f"It was made again as call {call.id}."}
                self.transcript.add(self.session, "receipt", said, key=other, status="cancelled")
        if result.status != "pending":
            self._session.forget_opening()
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

        self._require_open()
        form, _ = self.table.get("eval").checked(CallForm("eval", {"form": Code(program)}))
        call = new_call(form, route="eval", user=self.user, session=self.session)
        origins = partial(origins_of_plan, self.table, call, plan["shapes"], self.origins)
        return self.broker.ask_for_plan(replace(call, origins=origins), plan)
