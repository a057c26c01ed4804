"""The door of a run as the loop sees it: the transcript answers calls that were made before, and those that
are made now are written to it.

Tools run only through the real door, and a finished call is not repeated. Knows sessions and doors; it must
not know models (recorder.py).
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quoth.agent.run.budget import Budget
from quoth.agent.run.observation import BEGUN, NOT_MADE
from quoth.agent.run.run import CALLING, RUNNING, Run, RunParts, RunStoppedError
from quoth.agent.session.past import Past, PastCall
from quoth.agent.session.session import RunLog
from quoth.neuro.backends.base import Usage
from quoth.tools.call.call import Call, ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.door.door import Door
from quoth.tools.errors import Status
from quoth.tools.history.call_log import key_in
from quoth.tools.registry.table import ToolTable

PATIENCE = 0.5  # seconds in which a call may end by itself once a person has interrupted the run


class RecordedDoor:
    """A door that repeats no call: the receipt answers a finished one. For a log that is not live it makes
    no call at all."""

    def __init__(self, parts: RunParts, past: Past, log: RunLog) -> None:
        self._door = parts.door
        self._past = past
        self._log = log
        self._live = log.live
        self._differs = parts.differs
        self._recorded = Usage(), Budget(0, 0)  # what the run had spent when that was recorded last
        self._run: Callable[[], Run | None] = lambda: None

    @property
    def run(self) -> Run | None:
        """Its run, which holds it."""
        return self._run()

    @run.setter
    def run(self, run: Run) -> None:
        self._run = weakref.ref(run)

    @property
    def table(self) -> ToolTable:
        return self._door.table

    def use(self, table: ToolTable) -> None:
        """Go on with these tools."""
        self._door = self._door.with_tools(table)

    def narrowed(self, table: ToolTable) -> Door:
        """The real door with fewer tools, for a sub-agent, which has a past of its own."""
        return self._door.narrowed(table)

    def may_run_beside(self, call: Call) -> bool:
        """Whether the call may run at the same time as others of its reply. One that is known from an
        earlier process may not: it is answered in its turn."""
        return self._live and key_in(call) not in self._past.calls and self._door.may_run_beside(call)

    async def dispatch(self, call: Call, context: ToolContext) -> ToolResult:
        past = self._past.calls.get(key_in(call))
        if self.run is not None:
            self.run.state.sent += self._past.sent_in(key_in(call))
        if past is not None and past.finished:
            return self._recalled(past, call)
        if not self._live:
            return self._broken_off(past, call)
        run = self.run
        assert run is not None, "a door is the door of a run"
        if run.state.interrupted:
            return self.refuse(call, context, "cancelled", "The run was interrupted before this call.")
        # A place in a limit and a decision may have been taken for a call of which no event tells yet.
        marked = call.changed(run=self._log.run, event=self._log.reply, resumed=self._log.recalled)
        budget = run.budget
        if not run.state.doing:
            self._recorded = run.state.usage, replace(budget)

        def written() -> str:
            """Record what the run has spent since, beside the receipt: a resumed run does not count it again.
            Of calls that run side by side, the first to end may record what another has spent."""
            usage, before = self._recorded
            self._recorded = run.state.usage, replace(budget)
            if run.state.usage != usage or budget.steps_taken != before.steps_taken:
                spent = {
                    "usage": {
                        name: value - getattr(usage, name)
                        for name, value in vars(run.state.usage).items()
                        if value != getattr(usage, name)
                    },
                    "steps": budget.steps_taken - before.steps_taken,
                    "calls": budget.calls_taken - before.calls_taken,
                }
                if budget.bounded:
                    spent["tokens"] = budget.tokens_taken - before.tokens_taken
                    spent["cost"] = budget.cost_taken - before.cost_taken
                self._log.add("spent", spent, parent=self._log.reply, key=key_in(call))
            return ""

        token, key_token = RUNNING.set(run), CALLING.set(key_in(call))
        work = self._door.dispatch(marked, context.changed(written=[written]))
        began = time.monotonic()
        try:
            result = await run.stoppably(work, PATIENCE)
        except RunStoppedError:
            return _cancelled(call, f"{call.tool} was cancelled.", "body", time.monotonic() - began)
        finally:
            RUNNING.reset(token)
            CALLING.reset(key_token)
        if result.audit.get("written") is False:
            self._log.broken = result.message
        return result

    def refuse(self, call: Call, context: ToolContext, status: Status, message: str) -> ToolResult:
        past = self._past.calls.get(key_in(call))
        if past is not None and past.finished:
            return self._recalled(past, call)
        if not self._live:
            return self._broken_off(past, call)
        return self._door.refuse(self._marked(call), context, status, message)

    def unreadable(self, call: Call, context: ToolContext, text: str, message: str) -> None:
        if self._live and key_in(call) not in self._past.faults:
            self._door.unreadable(self._marked(call), context, text, message)

    def record(self, stage: str, message: str, **marks: Any) -> None:
        """Write an audit row about what befell the run apart from its calls."""
        self._door.record(stage, message, **marks)

    def _marked(self, call: Call) -> Call:
        return call.changed(run=self._log.run, event=self._log.reply)

    def _recalled(self, past: PastCall, call: Call) -> ToolResult:
        self._past.unused -= 1
        if (spent := self._past.spent.get(key_in(call))) is not None and self.run is not None:
            data = spent.data
            usage, budget = Usage(**data["usage"]), self.run.budget
            self.run.spend(usage)
            budget.steps_taken += data["steps"]
            budget.calls_taken += data["calls"]
            budget.take(data.get("tokens", usage.tokens), data.get("cost", 0.0), usage.seconds)
        if self._differs is not None:
            self._differs(past.begun, call)
        return past.result()

    def _broken_off(self, past: PastCall | None, call: Call) -> ToolResult:
        """The result of a call that has none, for a conversation that continues without it."""
        if self._differs is not None:
            self._differs(past.begun if past is not None else None, call)
        if past is not None and past.receipt is not None and past.receipt.status == "pending":
            return past.result()
        return _cancelled(call, BEGUN if past is not None and past.begun is not None else NOT_MADE, "host")


def _cancelled(call: Call, message: str, stage: str, seconds: float = 0.0) -> ToolResult:
    """The result of a call whose receipt, if it has one, says the same."""
    audit = {
        "tool": call.tool,
        "status": "cancelled",
        "stage": stage,
        "duration_ms": int(seconds * 1000),
    }
    return ToolResult(call.id, call.tool, "cancelled", None, message, (), audit)
