"""The door as seen from a running call: it runs and previews inner calls, checks files and addresses against
the rules, and keeps the old content of files before they are written.

A preview looks a call up, validates it, and judges it by policy and guard; it reserves, asks and records
nothing. An argument may be unknown; a verdict that depends on it is ask rather than allow.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import ALLOW, Call, CallPreview, ToolResult, Verdict, _inner, ask, deny
from quoth.tools.call.canonical import guessed_targets, path_arguments, paths_in, resolved
from quoth.tools.call.context import AuditDetails, ToolContext
from quoth.tools.call.keeping import NO_FILE, FileWrite
from quoth.tools.door.stages import ask_guard, ask_policy, check_arguments, look_up, not_permitted
from quoth.tools.door.state import CallState, Parts
from quoth.tools.errors import InvalidCallError, QuothError, StoreError, ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import with_maker
from quoth.tools.registry.arguments import bind
from quoth.tools.registry.table import CognitiveTool, cognitive_tools
from quoth.tools.registry.values import UNKNOWN

if TYPE_CHECKING:
    from quoth.tools.policy.policy import Walk


async def _never(call: Call, context: ToolContext) -> ToolResult:
    raise AssertionError("a preview runs no calls")


async def preview_call(
    door: Parts, call: Call, context: ToolContext, unknown: Callable[[Any], bool], guards: bool
) -> CallPreview:
    """Preview a call. ``unknown`` returns whether a value is unknown; without ``guards`` no guard runs."""
    names = door.table.tool_names
    fresh: dict[str, Any] = {"side_effects": [], "audit": AuditDetails(), "said": []}
    own = context.changed(dry=False, tool_names=names, **fresh)
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
    assert isinstance(guard, Verdict), "a guard cannot edit a call"
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
    assert isinstance(said, Verdict), "a policy cannot edit a call"
    return Verdict("deny" if ended else said.kind, said.for_model or said.rule)


def _by_policy(door: Parts, state: CallState, tool: CognitiveTool, depends: str) -> Verdict:
    """The policy's verdict if some arguments are unknown: a verdict that is valid for all their values."""
    try:
        return door.policy.judge_unknown(tool, state.call, state.args, state.context, depends)
    except QuothError as error:
        return ask(f"{depends} ({error})")


READER, LISTER = "read-file", "list-files"  # their rules also apply to files that other tools read and name


class Inner:
    """The door as the guard and the body of one call see it; ``given`` is the call's original context,
    ``dispatch`` takes inner calls through the whole door."""

    def __init__(
        self,
        door: Parts,
        state: CallState,
        given: ToolContext,
        dispatch: Callable[[Call, ToolContext], Awaitable[ToolResult]],
    ) -> None:
        self._door, self._state, self._given, self._dispatch = door, state, given, dispatch
        self._call = state.call
        self.effects: list[str] = []
        self.clocks = (*given.clocks, state.clock)

    async def dispatch(self, form: CallForm, name: str = "", dry: bool = False) -> ToolResult:
        """Run an inner call of the body through this door; its effects also count as the body's."""
        state, given = self._state, self._given
        state.made[form.digest] += 1
        inner = _inner(self._call, form, name or f"{form.digest[:16]}.{state.made[form.digest]}")
        if state.known_tool.served is not None:
            inner = inner.changed(route="mcp-server")  # its server asks for it
        around = given.changed(clocks=self.clocks, dry=dry or given.dry, written=[])
        if hear := self._door.inner:
            hear(inner, None)
        result = await self._dispatch(inner, around)
        if hear:
            hear(inner, result)
        self.effects.extend(result.side_effects)
        state.effects_of_calls += len(result.side_effects)
        state.request = state.request or result.request
        if result.audit.get("written") is False:
            state.broken = result.message  # even if the body catches the error
            raise StoreError(result.message)
        return result

    async def look(self, form: CallForm, unknown: Callable[[Any], bool], guards: bool = True) -> CallPreview:
        """Preview an inner call."""
        inner = _inner(self._call, form, "look")
        return await preview_call(self._door, inner, self._given, unknown, guards)

    @cached_property
    def walk(self) -> Walk:
        """The rules for the files that this call finds, once its arguments are known."""
        from quoth.tools.policy.policy import Walk  # here: few calls walk

        state, given = self._state, self._given
        # The rules about it apply even if the tool is not offered.
        reader, lister = (
            self._door.table.find(name) or cognitive_tools.find(name) for name in (READER, LISTER)
        )
        return Walk(
            self._door.policy,
            state.known_tool,
            state.call,
            state.args,
            given.workspace,
            reader,
            lister,
            given.origins,
        )

    def may_list(self, path: str) -> bool:
        return self.walk.may_list(path)

    def may_read(self, path: str) -> bool:
        return self.walk.may_read(path)

    def may_look(self, path: str) -> bool:
        return self.walk.may_look(path)

    def may_reach(self, address: str) -> bool:
        """Whether a rule names this address of the local network for this call."""
        from quoth.tools.policy.urls import may_reach  # here: few calls go there

        state, given = self._state, self._given
        seen = given.origins
        return may_reach(
            self._door.policy, state.known_tool, state.call, state.args, given.workspace, address, seen
        )

    def keep(self, write: FileWrite) -> str:
        """Keep the old content of a file that the body is about to write; note it for ``after`` programs."""
        state, versions = self._state, self._door.versions
        state.acted = True
        held = NO_FILE if write.before is None else write.before.digest.hex()
        if write.root == self._given.workspace.root and state.bound.get(write.path, held) != held:
            raise ToolError(
                f"{write.path} has changed since the call was approved, so it was not written."
                " Repeat the call."
            )
        after = NO_FILE if write.after is None else write.after.hex()
        if write.path in state.bound:
            state.bound[write.path] = after
        if wrote := getattr(self._door.consent, "wrote", None):
            wrote(self._call, write.path, after)
        if write.after is None:
            state.files.pop(write.path, None)
        elif write.root == self._given.workspace.root:
            state.files.setdefault(write.path, None if write.before is None else write.before.data)
        try:
            return "" if versions is None else versions.keep(state.call, write)
        except StoreError as error:
            state.broken = str(error)
            raise
