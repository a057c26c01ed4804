"""What the door would say of a call: looked up, checked, judged by policy and guard, and not made.

Knows the door's stages. Nothing is reserved, nobody is asked, nothing is recorded. An argument may be
unknown; what depends on it is asked rather than allowed, since nobody can tell.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

from quoth.tools.call.call import Call, ToolResult, Verdict
from quoth.tools.call.context import ToolContext
from quoth.tools.call.preview import CallPreview, RemainingQuota
from quoth.tools.call.values import UNKNOWN
from quoth.tools.door.parts import Parts
from quoth.tools.door.stages import CallState, ask_guard, ask_policy, check_arguments, look_up
from quoth.tools.errors import InvalidCallError, QuothError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.effects import EffectsPolicy, by_effects
from quoth.tools.policy.predicates import paths_in
from quoth.tools.policy.scope import guessed, path_arguments, resolved
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import CognitiveTool


async def _never(call: Call, context: ToolContext) -> ToolResult:
    raise AssertionError("a call that is only looked at makes no other")


async def look_at(
    door: Parts, call: Call, context: ToolContext, unknown: Callable[[Any], bool], guards: bool
) -> CallPreview:
    """Look at a call. ``unknown`` says whether a value is; without ``guards`` no guard is run either."""
    names = tuple(door.table.names())
    own = dataclasses.replace(context, dry=False, side_effects=[], said=[], tool_names=names)
    state = CallState(call, own, _never)
    if (ended := await look_up(door, state)) is not None:
        return CallPreview(call.form, "unknown" if ended.status == "unknown" else "deny", ended.message)
    tool = state.known_tool
    try:
        bound = bind(tool.name, tool.params, call.form.args, call.form.positional)
    except InvalidCallError as error:
        return CallPreview(call.form, "invalid", str(error))
    holes = [name for name, value in bound.items() if unknown(value)]
    if holes:
        by_name = {param.name: param for param in tool.params}
        strange = [name for name in bound if name not in by_name]
        missing = [param.name for param in tool.params if param.required and param.name not in bound]
        if strange or missing:
            said = f":{strange[0]} is unknown" if strange else f":{missing[0]} is missing"
            return CallPreview(call.form, "invalid", f"{tool.name}: {said}.")
        defaults = {param.name: param.default for param in tool.params if not param.required}
        known = {name: value for name, value in {**defaults, **bound}.items() if name not in holes}
        try:
            given = {name: value for name, value in bound.items() if name in known}
            seen, args = resolved(tool, CallForm(tool.name, given), known, context.workspace)
        except InvalidCallError as error:
            return CallPreview(call.form, "invalid", str(error))
        order = dict.fromkeys([*bound, *seen.args])
        form = CallForm(tool.name, {name: seen.args.get(name, bound.get(name)) for name in order})
        state.args = {**args, **dict.fromkeys(holes, UNKNOWN)}
    elif (ended := await check_arguments(door, state)) is not None:
        return CallPreview(call.form, "invalid", ended.message)
    else:
        form = state.call.form
    verdict = await _verdict(door, state, tool, holes, guards)
    reason = verdict.reason.rstrip(".")
    words = {name: "x" if name in holes else value for name, value in state.args.items()}
    named = path_arguments(tool, words)
    known_all = bool(named) and not any(name in holes for name in named)
    paths = tuple(str(path) for path in paths_in(list(named.values()))) if known_all else None
    return CallPreview(
        form,
        verdict.kind,
        reason,
        tool.effects,
        tool.cost,
        tool.gate and door.gate is not None,
        tool.version,
        _left(door, tool, call),
        paths,
        guessed(tool, {n: v for n, v in words.items() if n not in holes}, context.workspace),
        frozenset(param.name for param in tool.params if param.secret),
    )


async def _verdict(
    door: Parts, state: CallState, tool: CognitiveTool, holes: list[str], guards: bool
) -> Verdict:
    depends = f"it depends on {', '.join(f':{name}' for name in holes)}"
    found = _by_policy(door, state, tool, holes, depends) if holes else await _strict(door, state)
    if found.kind == "deny" or not tool.guarded:
        return found
    if not guards:
        return Verdict(found.kind, f"{found.reason or 'the policy allows it'}; its guard was not asked")
    state.verdicts.pop("guard", None)
    ended = await ask_guard(door, state)
    if ended is not None:
        return Verdict("deny", _after(state.verdicts.get("guard", ""), ended.message))
    said = state.verdicts.get("guard", "allow")
    if said.startswith("ask"):
        asked = _asked(found), _after(said, "it asks first")
        return Verdict("ask", "; ".join(part for part in asked if part))
    return found


def _asked(found: Verdict) -> str:
    return found.reason if found.kind == "ask" else ""


def _after(said: str, otherwise: str) -> str:
    return said.partition(": ")[2] or otherwise


async def _strict(door: Parts, state: CallState) -> Verdict:
    """What the policy says of a call that is known through and through."""
    explain = getattr(door.policy, "explain", None)
    ended = await ask_policy(door, state)
    said = state.verdicts.get("policy", "")
    kind: Literal["allow", "ask", "deny"] = "deny" if ended else "ask" if said.startswith("ask") else "allow"
    reason = _after(said, "")
    if not reason and isinstance(door.policy, EffectsPolicy):
        return by_effects(state.known_tool)
    if not reason and callable(explain):
        reason = explain(state.known_tool, state.call, state.args, state.context).verdict.reason
    return Verdict(kind, reason or state.verdicts.get("rule", ""))


def _by_policy(door: Parts, state: CallState, tool: CognitiveTool, holes: list[str], depends: str) -> Verdict:
    """The same where arguments are unknown: only what holds for every value of theirs is certain."""
    explain = getattr(door.policy, "explain", None)
    if isinstance(door.policy, EffectsPolicy):
        return by_effects(tool)
    try:
        if not callable(explain):
            return Verdict("ask", depends)
        why = explain(tool, state.call, state.args, state.context)
    except QuothError as error:
        return Verdict("ask", f"{depends} ({error})")
    verdict: Verdict = why.verdict
    if why.decided is not None and why.decided.truth is None:
        return Verdict("ask", f"{depends}: {why.decided.rule.place} says {why.decided.rule.text}")
    return verdict


def _left(door: Parts, tool: CognitiveTool, call: Call) -> tuple[RemainingQuota, ...]:
    """What the limits leave of this tool; nothing is taken."""
    look = getattr(door.limits, "left", None)
    found = look(tool, call) if callable(look) else ()
    return tuple(RemainingQuota(count, words) for count, words in found)
