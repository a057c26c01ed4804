"""What a call may do through the door while it runs: make and preview calls, ask which files and addresses
the rules leave it, and have kept what it is about to write.

It knows the state of that call and the door's parts; it must not know the stages, nor the context that it is
a part of.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from quoth.tools.call.call import Call, ToolResult, _inner
from quoth.tools.call.context import ToolContext
from quoth.tools.call.keeping import NO_FILE
from quoth.tools.door.parts import Parts
from quoth.tools.door.preview import preview_call
from quoth.tools.door.state import CallState
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.table import CognitiveTool, cognitive_tools

if TYPE_CHECKING:
    from quoth.tools.call.keeping import FileWrite
    from quoth.tools.call.preview import CallPreview
    from quoth.tools.policy.walking import Walk

READER, LISTER = "read-file", "list-files"  # the tools whose rules hold for what others read and name


class Inner:
    """The door as the guard and the body of one call see it; ``given`` is the context that the call came
    with, ``dispatch`` takes its calls through the whole door."""

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
        """A call the body makes: through this door, and what it did counts as done by the body too."""
        state, given = self._state, self._given
        state.made[form.digest] += 1
        inner = _inner(self._call, form, name or f"{form.digest[:16]}.{state.made[form.digest]}")
        around = given.changed(clocks=self.clocks, dry=dry or given.dry, written=[])
        result = await self._dispatch(inner, around)
        self.effects.extend(result.side_effects)
        state.effects_of_calls += len(result.side_effects)
        if result.audit.get("written") is False:
            state.broken = result.message  # whatever the body makes of the error
            raise StoreError(result.message)
        return result

    async def look(self, form: CallForm, unknown: Callable[[Any], bool], guards: bool = True) -> CallPreview:
        """What would become of such a call."""
        inner = _inner(self._call, form, "look")
        return await preview_call(self._door, inner, self._given, unknown, guards)

    @cached_property
    def walk(self) -> Walk:
        """What the rules say of the files that this call comes upon, once its arguments are known."""
        from quoth.tools.policy.walking import Walk  # here: few calls walk

        state, given, tables = self._state, self._given, (self._door.table, cognitive_tools)
        reader, lister = (_shipped(name, tables) for name in (READER, LISTER))
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
        """Whether the rules name an address of the own network to which this call leads."""
        from quoth.tools.policy.reach import may_reach  # here: few calls go there

        state, given = self._state, self._given
        seen = given.origins
        return may_reach(
            self._door.policy, state.known_tool, state.call, state.args, given.workspace, address, seen
        )

    def keep(self, write: FileWrite) -> str:
        """What the body is about to write: kept, and remembered for the programs that go with it."""
        state, versions = self._state, self._door.versions
        state.acted = True
        held = NO_FILE if write.before is None else write.before.digest.hex()
        if write.root == self._given.workspace.root and state.bound.get(write.path, held) != held:
            raise ToolError(
                f"{write.path} was changed after its change was approved, so it was not written."
                " Make the call again."
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


def _shipped(name: str, tables: tuple[Any, ...]) -> CognitiveTool | None:
    """The tool that reads, or lists, files; the rules about it hold where it is not offered, too."""
    return next((table.get(name) for table in tables if name in table), None)
