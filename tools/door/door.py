"""The one door: every call form passes the stages in their order, and only the door runs guards and bodies.

``STAGES`` in tools/door/stages.py is that order. The door ignores anything a model says about permission.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from quoth.tools.call.call import Call, ToolResult, new_call
from quoth.tools.call.context import AuditDetails, ToolContext
from quoth.tools.call.redaction import Redactor
from quoth.tools.door.asking import Permission
from quoth.tools.door.execution import brief
from quoth.tools.door.inner import Inner
from quoth.tools.door.recording import acknowledged, record_end
from quoth.tools.door.stages import STAGES
from quoth.tools.door.state import CallState, Outcome, Parts
from quoth.tools.errors import ServerError, Status, StoreError, ToolNotFound, ToolRateLimited
from quoth.tools.history.audit import row_of_host
from quoth.tools.lisp.forms import CallForm, from_json, kebab
from quoth.tools.registry.table import ToolTable

FAILURES = ("error", "invalid")
_GUESS = re.compile(r" Did you mean [^?]+\?$")  # a guess of another program or file


def with_tool_named(outcome: Outcome, form: CallForm, table: ToolTable) -> Outcome:
    """The outcome. If its error quotes an argument that is the name of a tool, the message says how to call
    that tool."""
    if outcome.status not in FAILURES:
        return outcome
    for text in _texts([*form.args.values(), *form.positional]):
        name = kebab(text)
        if name in table.visible and name != form.tool and _is_quoted(text, outcome.message):
            hint = f"{name} is a tool: {_shape(table, name)}"
            return replace(outcome, message=f"{_GUESS.sub('', outcome.message)} {hint}")
    return outcome


def _texts(values: list[Any]) -> Iterator[str]:
    for value in values:
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str))


def _is_quoted(text: str, message: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(text)}(?![\w-])", message) is not None


def _shape(table: ToolTable, name: str) -> str:
    """A call of the tool with its required arguments left open."""
    required = [f":{one.name} …" for one in table.get(name).offered if one.required]
    return f"({' '.join([name, *required])})"


class Door(Parts):
    """The door to one table of tools. The host supplies its parts; a form cannot reach them.

    ``workspace`` and the other services come with each call's ToolContext. One door may serve many sessions.
    """

    def narrowed(self, table: ToolTable) -> Door:
        """A door with only the tools of ``table``, and the same policy, limits, consent, audit and receipts.
        Raises UnknownToolError for a tool that this door does not have."""
        for name in table.names():
            self.table.get(name)
        return self.with_tools(table)

    def with_tools(self, table: ToolTable) -> Door:
        """The same door with other tools."""
        return replace(self, table=table)

    async def dispatch(self, call: Call, context: ToolContext) -> ToolResult:
        """Take one call through all stages and return its result, also for an error.

        Only asyncio.CancelledError passes through, after the audit row is written.
        """
        if self.tracer is None:
            return await self._through(call, context)
        with self.tracer.passage(call, self.table) as ended:
            result = await self._through(call, context)
            ended(result)
        return result

    async def _through(self, call: Call, context: ToolContext) -> ToolResult:
        state = self._state(call, context)
        stage, outcome = "look-up", Outcome("cancelled", message=f"{call.tool} was cancelled.")
        try:
            for stage, step in STAGES:  # noqa: B007  the row names the last stage
                ended = await step(self, state)
                if ended is not None:
                    outcome = ended
                    break
        except Exception as error:  # a part of the host failed; the call still needs a result
            if isinstance(error, StoreError) and not isinstance(error, ServerError):
                state.broken = state.broken or str(error)
            outcome = Outcome("error", message=f"{call.tool} stopped at {stage}: {brief(error)}.")
        finally:
            with contextlib.suppress(Exception):  # a slot that cannot be released stays reserved
                state.reservation.release()
            outcome = with_tool_named(outcome, call.form, self.table)
            result = record_end(self, state, stage, outcome)
        try:
            return await acknowledged(self, state, result)
        finally:
            state.context = context  # drops the cycle: its own context refers to this state

    def may_run_beside(self, call: Call) -> bool:
        """Whether a call may run at the same time as others: its tool declares only reads, and no gate, limit
        or cost applies to it."""
        if call.tool not in self.table or self.gate_programs:
            return False
        tool = self.table.get(call.tool)
        if set(tool.effects) != {"reads"} or tool.cost == "expensive" or tool.gate or tool.ends_turn:
            return False
        if tool.cooldown or tool.daily_limit:
            return False
        try:
            return not self.limits.left(tool, call)
        except Exception:  # the call reports a failing counter itself
            return False

    def _state(self, call: Call, context: ToolContext) -> CallState:
        if call.confidence is None and context.confidence is not None:
            call = call.changed(confidence=float(context.confidence))
        if self.client and not call.client:
            call = call.changed(client=self.client)
        state = CallState(call, context, self.dispatch)
        state.context = self._context(state, context)
        return state

    async def execute(self, name: str, context: ToolContext, /, **args: Any) -> ToolResult:
        """Call a tool by name with arguments, for a program (seed 000). Raises ToolNotFound and
        ToolRateLimited; returns the result for any other status."""
        marks = {"user": context.user, "session": context.session, "message": context.user_message}
        result = await self.dispatch(new_call(from_json({"tool": name, "args": args}), **marks), context)
        if result.audit["stage"] == "look-up" and result.status == "unknown":
            raise ToolNotFound(name, self.table.names())
        if result.audit["stage"] == "limits":
            at = result.audit.get("room_at")
            raise ToolRateLimited(result.message, datetime.fromisoformat(at) if at else None)
        return result

    def unreadable(self, call: Call, context: ToolContext, text: str, message: str) -> ToolResult:
        """Record a call that could not be parsed, and return its result. ``text`` is the model's text;
        ``call`` has the host's fields and an empty form."""
        return record_end(
            self, self._unmade(call, context), "reader", Outcome("invalid", message=message), text
        )

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult:
        """Record a call that the host stops before the door (because of a run's limit), and return its
        result."""
        return record_end(self, self._unmade(call, context), "host", Outcome(status, message=message))

    def record(self, stage: str, message: str, **marks: Any) -> None:
        """Write an audit row about an event of a run that is not a call."""
        self.audit.write(row_of_host(stage, message, **marks))

    def _unmade(self, call: Call, context: ToolContext) -> CallState:
        return CallState(call, context.changed(side_effects=[], audit=AuditDetails()), self.dispatch)

    def _context(self, state: CallState, given: ToolContext) -> ToolContext:
        """The context of a call's guard and body: ``given``, with this door for their inner calls."""
        inner = Inner(self, state, given, self.dispatch)
        return given.changed(
            side_effects=inner.effects,
            audit=AuditDetails(),
            keep=inner.keep,
            said=state.said,
            written=[*given.written],
            tool_names=self.table.tool_names,
            unnamed=self.table.hidden,
            inner_clocks=inner.clocks,
            tool=state.call.tool,
            route=state.call.route,
            confidence=state.call.confidence,
            shown=self._shown,
            may_list=inner.may_list,
            may_read=inner.may_read,
            may_look=inner.may_look,
            may_reach=inner.may_reach,
            dispatch=inner.dispatch,
            look=inner.look,
            permission=Permission(self, state),
        )

    def _shown(self, form: CallForm) -> str:
        """A form without declared secrets."""
        return str(Redactor.of(form, self.table, by_looks=False).form)
