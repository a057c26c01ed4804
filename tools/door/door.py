"""The one door: every call form passes these stages in this order, and nothing else runs a guard or a body.

Read ``STAGES`` for the order and each stage for its rule; a stage returns None to let the call go on, or the
Outcome that ends it. The door knows no model and no loop, and takes nothing a model says about permission.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import (
    Call,
    ToolResult,
    _inner,
    new_call,
)
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import Redactor, redact
from quoth.tools.call.values import encodable
from quoth.tools.door.execution import brief
from quoth.tools.door.parts import Parts
from quoth.tools.door.preview import look_at
from quoth.tools.door.stages import STAGES, CallState, Outcome, _Permission
from quoth.tools.errors import (
    Status,
    StoreError,
)
from quoth.tools.lisp.forms import CallForm, from_json
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools

if TYPE_CHECKING:
    from quoth.tools.call.preview import CallPreview
    from quoth.tools.policy.walking import Walk

READER = "read-file"  # the tool whose rules hold for what other tools read
VERDICTS = ("policy", "rule", "guard", "gate", "consent")


class Door(Parts):
    """The door to one table. Its parts are given by the host and cannot be reached from a form.

    ``workspace`` and the other services come with each call's ToolContext. One door may serve many sessions.
    """

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
        state = CallState(call, context, self.dispatch)

        async def nested(form: CallForm, name: str = "", dry: bool = False) -> ToolResult:
            """A call the body makes: through this door, and what it did counts as done by the body too."""
            state.made[form.digest] += 1
            inner = _inner(call, form, name or f"{form.digest[:16]}.{state.made[form.digest]}")
            if state.permitted:  # the body has begun again: what it had done is not done twice
                inner = dataclasses.replace(inner, resumed=True)
            clocks = state.context.inner_clocks
            around = dataclasses.replace(context, clocks=clocks, dry=dry or context.dry, written=[])
            result = await self.dispatch(inner, around)
            state.context.side_effects.extend(result.side_effects)
            return result

        async def look(form: CallForm, unknown: Callable[[Any], bool], guards: bool = True) -> CallPreview:
            """What would become of such a call."""
            return await look_at(self, _inner(call, form, "look"), context, unknown, guards)

        @lru_cache(maxsize=1)
        def walk() -> Walk:
            """What the rules say of the files that this call comes upon, once its arguments are known."""
            from quoth.tools.policy.walking import Walk  # here: few calls walk

            tool, reader = state.known_tool, self._reader()
            return Walk(self.policy, tool, state.call, state.args, context.workspace, reader)

        state.context = dataclasses.replace(
            context,
            side_effects=[],
            said=state.said,
            written=[*context.written],
            tool_names=tuple(self.table.names()),
            inner_clocks=(*context.clocks, state.clock),
            shown=self._shown,
            may_list=lambda path: walk().may_list(path),
            may_read=lambda path: walk().may_read(path),
            dispatch=nested,
            look=look,
            permission=_Permission(state.permitted),
        )
        stage, outcome = "look-up", Outcome("cancelled", message=f"{call.tool} was cancelled.")
        try:
            for stage, step in STAGES:  # noqa: B007  the row says where it ended
                ended = await step(self, state)
                if ended is not None:
                    outcome = ended
                    break
        except Exception as error:  # a part of the host failed; the call has its result nevertheless
            outcome = Outcome("error", message=f"{call.tool} stopped at {stage}: {brief(error)}.")
        finally:
            with contextlib.suppress(Exception):  # a place that cannot be given back stays taken
                state.reservation.release()
            result = self._record(state, stage, outcome, started, now)
        return result

    def unreadable(self, call: Call, context: ToolContext, text: str, message: str) -> ToolResult:
        """The result of what was meant as a call and could not be read, in the audit like any; ``call`` has
        the marks and an empty form."""
        state = CallState(call, dataclasses.replace(context, side_effects=[]), self.dispatch)
        outcome = Outcome("invalid", message=message)
        return self._record(state, "reader", outcome, time.monotonic(), datetime.now(UTC), text)

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult:
        """The result of a call that its host stops before the door (a run's own limit), in the audit like
        any."""
        state = CallState(call, dataclasses.replace(context, side_effects=[]), self.dispatch)
        return self._record(
            state, "host", Outcome(status, message=message), time.monotonic(), datetime.now(UTC)
        )

    def _record(
        self,
        state: CallState,
        stage: str,
        outcome: Outcome,
        started: float,
        now: datetime,
        unread: str = "",
    ) -> ToolResult:
        """The last stage: the receipt and the audit row, written before anybody sees the result."""
        call = state.call
        row = {
            "tool": state.tool.name if state.tool else encodable(call.tool)[:200],
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
        effects = tuple(state.context.side_effects)
        name = str(row["tool"])
        record, consent = "receipt", state.verdicts.get("consent", "")
        try:
            with self.together():
                state.said += [said for write in state.context.written if (said := write())]
                message = outcome.message or "\n".join(state.said)
                result = ToolResult(call.id, name, outcome.status, outcome.value, message, effects, row)
                if state.tool is not None and stage != "receipt":
                    asked = consent.startswith("allow")
                    self.receipts.keep(state.tool, call, result, decided=state.refused, asked=asked)
                self.log.ends(state.tool, call, result, consent)
                record = "audit row"
                evidence = self._evidence(state, outcome.note or message, effects)
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

    def _evidence(self, state: CallState, message: str, effects: tuple[str, ...]) -> dict[str, Any]:
        """Who called what, who said what of it and what came of it, without secrets; for the audit alone."""
        call, tool = state.call, state.tool
        if tool is None and call.tool in self.table:
            tool = self.table.get(call.tool)
        hide = Redactor(call.form, tool.params if tool else (), self.table.secrets)
        said = {name: hide.text(state.verdicts.get(name, "")) for name in VERDICTS}
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


async def dispatch(
    name: str, args: Mapping[str, Any], context: ToolContext, *, table: ToolTable = cognitive_tools
) -> ToolResult:
    """Dispatch by name and raw arguments (seed 002) through a door of its own on ``table``."""
    return await Door(table).dispatch(new_call(from_json({"tool": name, "args": args})), context)


# The stages


# Helpers of the stages
