"""Previews a call: looks it up, checks it, and judges it by policy and guard, without making it.

It knows the door's stages. It reserves, asks and records nothing. An argument may be unknown; a verdict that
depends on it is ask rather than allow.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from quoth.tools.call.call import ALLOW, Call, ToolResult, Verdict, ask, deny
from quoth.tools.call.canonical import guessed_targets, path_arguments, paths_in, resolved
from quoth.tools.call.context import ToolContext
from quoth.tools.call.preview import CallPreview
from quoth.tools.call.values import UNKNOWN
from quoth.tools.door.parts import Parts
from quoth.tools.door.stages import ask_guard, ask_policy, check_arguments, look_up, not_permitted
from quoth.tools.door.state import CallState
from quoth.tools.errors import InvalidCallError, QuothError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.effects import with_maker
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import CognitiveTool


async def _never(call: Call, context: ToolContext) -> ToolResult:
    raise AssertionError("a call that is only looked at makes no other")


async def preview_call(
    door: Parts, call: Call, context: ToolContext, unknown: Callable[[Any], bool], guards: bool
) -> CallPreview:
    """Preview a call. ``unknown`` tells which values are unknown; without ``guards`` no guard runs."""
    names = door.table.sorted_names
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
        try:
            form = _bind_known(state, bound, holes)
        except InvalidCallError as error:
            return CallPreview(call.form, "invalid", str(error))
    elif (ended := await check_arguments(door, state)) is not None:
        return CallPreview(call.form, "invalid", ended.message)
    else:
        form = state.call.form
    verdict = await _verdict(door, state, tool, holes, guards)
    reason = verdict.reason.rstrip(".")
    if verdict.kind == "ask":
        reason = with_maker(tool, reason)
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
        bool(door.gate_programs) or (tool.gate and door.gate is not None),
        tool.version,
        tuple(door.limits.left(tool, call)),
        paths,
        guessed_targets(tool, {n: v for n, v in words.items() if n not in holes}, context.workspace),
        frozenset(param.name for param in tool.params if param.secret),
    )


def _bind_known(state: CallState, bound: dict[str, Any], holes: list[str]) -> CallForm:
    """The form of a call some of whose arguments are unknown; the others are resolved. Raises
    InvalidCallError."""
    tool, workspace = state.known_tool, state.context.workspace
    names = {param.name for param in tool.params}
    strange = [name for name in bound if name not in names]
    missing = [param.name for param in tool.params if param.required and param.name not in bound]
    if strange or missing:
        said = f":{strange[0]} is unknown" if strange else f":{missing[0]} is missing"
        raise InvalidCallError(f"{tool.name}: {said}.")
    defaults = {param.name: param.default for param in tool.params if not param.required}
    known = {name: value for name, value in {**defaults, **bound}.items() if name not in holes}
    given = {name: value for name, value in bound.items() if name in known}
    seen, args = resolved(tool, CallForm(tool.name, given), known, workspace)
    state.args = {**args, **dict.fromkeys(holes, UNKNOWN)}
    order = dict.fromkeys([*bound, *seen.args])
    return CallForm(tool.name, {name: seen.args.get(name, bound.get(name)) for name in order})


async def _verdict(
    door: Parts, state: CallState, tool: CognitiveTool, holes: list[str], guards: bool
) -> Verdict:
    depends = f"it depends on {', '.join(f':{name}' for name in holes)}"
    if holes:
        found = not_permitted(door, state) or _by_policy(door, state, tool, depends)
    else:
        found = await _strict(door, state)
    if found.kind == "deny" or not (tool.guarded or tool.path_params):
        return found
    if tool.guarded and (not guards or tool.guarded_there):
        return Verdict(found.kind, f"{found.reason or 'the policy allows it'}; its guard was not asked")
    ended = await ask_guard(door, state)
    guard = state.verdicts.get("guard", ALLOW)
    assert isinstance(guard, Verdict), "a guard edits nothing"
    if ended is not None:
        return deny(guard.for_model or ended.message)
    if guard.kind == "ask":
        asked = found.reason if found.kind == "ask" else "", guard.reason or "it asks first"
        return ask("; ".join(part for part in asked if part))
    return found


async def _strict(door: Parts, state: CallState) -> Verdict:
    """The policy's verdict on a call whose arguments are all known."""
    ended = await ask_policy(door, state)
    said = state.verdicts["policy"]
    assert isinstance(said, Verdict), "a policy edits nothing"
    return Verdict("deny" if ended else said.kind, said.for_model or said.rule)


def _by_policy(door: Parts, state: CallState, tool: CognitiveTool, depends: str) -> Verdict:
    """The policy's verdict where some arguments are unknown: only what holds for every value of theirs."""
    try:
        return door.policy.judge_unknown(tool, state.call, state.args, state.context, depends)
    except QuothError as error:
        return ask(f"{depends} ({error})")
