"""Asks the gate of a call, with a time limit, and turns its answer or failure into a verdict."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from quoth.tools.call.call import ALLOW, NO_GATE, Call, FailedOpen, GateDecision, Verdict, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Gate
from quoth.tools.door.execution import brief, kind_of, run_function
from quoth.tools.errors import ToolError, raise_if_broken
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import short

GATE_SECONDS = 2.0
GRACE_SECONDS = 0.2  # for a late gate to clean up
ANSWERS = 'GateDecision, (allow), (ask "why") or (deny "why")'


class GateError(ToolError):
    """A gate failed: a sentence of ours, and the gate's own ``words``, which are never shown to a model."""

    def __init__(self, sentence: str, words: str = "") -> None:
        super().__init__(f"{sentence}: {words}" if words else sentence)
        self.sentence = sentence


def with_arguments(check: Callable[..., Any], tool: Any, call: Any, context: Any) -> partial[Any]:
    """``check`` with the arguments that it takes: ``tool``, ``call`` and ``ctx`` by name; otherwise all three
    in this order, or the tool and the context. Raises TypeError if neither matches."""
    known = {"tool": tool, "call": call, "ctx": context, "context": context}
    signature = inspect.signature(check)
    if signature.parameters.keys() <= known.keys():
        return partial(check, **{name: known[name] for name in signature.parameters})
    try:
        signature.bind(tool, call, context)
        return partial(check, tool, call, context)
    except TypeError:
        signature.bind(tool, context)
        return partial(check, tool, context)


async def gate_verdict(
    gate: Gate | None,
    tool: CognitiveTool,
    call: Call,
    context: ToolContext,
    *,
    seconds: float | None = None,
    closed: bool = False,
) -> Verdict:
    """The gate's verdict on a call. If the gate fails, the tool's ``:gate-failure`` decides; with ``closed``
    the call is always denied. A late gate is stopped, and can change nothing afterwards."""
    if gate is None:
        return NO_GATE
    most = GATE_SECONDS if seconds is None else seconds
    own = dataclasses.replace(context, said=[])  # a gate's ``ctx.say`` is not part of the tool's result
    began = time.monotonic()
    try:
        check = with_arguments(gate.check, tool, call, own)
        said = await run_function(check, {}, own, most, grace=GRACE_SECONDS)
        if time.monotonic() - began > most:  # it blocked the event loop
            raise TimeoutError
        return _verdict(said)
    except TimeoutError:
        failure = told = f"it did not answer within {most:g} s"
    except GateError as error:
        failure, told = str(error).rstrip("."), error.sentence
    except Exception as error:
        raise_if_broken(error)
        failure = str(error).rstrip(".") if isinstance(error, ToolError) else brief(error)
        told = kind_of(error)
    if tool.gate_failure == "open" and not closed:
        return FailedOpen("allow", failure, told=told)
    return deny(f"the gate failed ({failure})", told=f"the gate failed ({told})")


def _verdict(said: Any) -> Verdict:
    """The answer of a gate as a Verdict. Raises GateError for an invalid answer."""
    if isinstance(said, GateDecision) and isinstance(said.approved, bool) and isinstance(said.reason, str):
        return ALLOW if said.approved else deny(said.reason)
    if isinstance(said, Verdict) and said.kind in ("allow", "ask", "deny") and isinstance(said.reason, str):
        return said
    raise GateError(f"it answered {short(repr(said), 100)}; a gate must answer {ANSWERS}")
