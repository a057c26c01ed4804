"""The stage of plan mode: a call that does more than read is not made but becomes a step of a plan.

It knows one call and its tool; where steps are kept, and what a plan is, it must not know. It stands behind
policy and guard, so that what they deny is no step, and before reviewer and person, who judge a call that is
made: that comes when the plan is flown.
"""

from __future__ import annotations

from quoth.tools.call.call import PROGRAMS
from quoth.tools.call.canonical import paths_in
from quoth.tools.call.context import Planning
from quoth.tools.door.asking import telling_origins
from quoth.tools.door.changes import changes_of
from quoth.tools.door.parts import Parts
from quoth.tools.door.state import CallState, Outcome
from quoth.tools.errors import ToolError
from quoth.tools.policy.effects import changes_nothing

FILES = frozenset({"reads", "writes"})
LOOKING = ("read", "list", "output", "wait")  # operations of tools that ship, which change nothing


async def note_in_plan(door: Parts, state: CallState) -> Outcome | None:
    """In plan mode, let a call that only reads go on, and note any other one as a step."""
    planning, tool = state.context.planning, state.known_tool
    if planning is None:
        return None
    if tool.name == PROGRAMS:
        planning.enters(state.call)
        return None
    paths = [str(path) for param in tool.path_params for path in paths_in(state.args.get(param.name))]
    operation = state.args.get("operation") if tool.ships else None
    if operation in LOOKING or (operation is None and changes_nothing(tool)):
        return _reads(planning, state, paths)
    if not FILES.issuperset(tool.effects):  # what a program or a server does is not told by a path
        paths = []
    if (fault := _fault(planning, state, paths)) is not None:
        return Outcome("error", message=fault)
    return Outcome("denied", message=planning.note(telling_origins(state, state.call), paths))


def _reads(planning: Planning, state: CallState, paths: list[str]) -> Outcome | None:
    """Tell a reader of the steps that change what it reads: they are not made yet."""
    for path in paths:
        if not (step := planning.changing([path])):
            continue
        if not _exists(state, path):
            return Outcome("error", message=f"{path} is not there yet; step {step} of the plan is about it.")
        state.notes.append(f"{path} is as it was before the plan; step {step} of the plan changes it.")
    return None


def _fault(planning: Planning, state: CallState, paths: list[str]) -> str | None:
    """Why a call would fail as things are, unless an earlier step may have changed them by then."""
    tool = state.known_tool
    if tool.remote or planning.changing(paths, perhaps=True):
        return None
    found = changes_of(tool, state.call, state.context.workspace)
    if found is None or not found.fails:
        return None
    return f"{tool.name} is no step of the plan. {found.trouble}"


def _exists(state: CallState, path: str) -> bool:
    try:
        return state.context.workspace.resolve(path).exists()
    except (ToolError, OSError):
        return True  # its reader says what is wrong with it
