"""Whether a call writes a file that other programs obey, and whether an allow names it.

It knows calls and paths; it must not know how rules are written or where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from quoth.tools.call.canonical import paths_in
from quoth.tools.call.obeyed import obeyed_parts, repository_made
from quoth.tools.call.values import UNKNOWN
from quoth.tools.call.workspace import ELSEWHERE, Elsewhere, Workspace
from quoth.tools.errors import ToolError
from quoth.tools.policy.predicates import EvaluationContext, Truth
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.text import file_name

WRITING = frozenset(("writes", "deletes"))
UNNAMED = "unnamed"
FROM_TOP = Elsewhere("/")  # for rules that name absolute paths


class Obeyed(NamedTuple):
    """A path that a call writes, the number of its part that has other programs obey the file, and why."""

    path: WorkspacePath
    number: int
    why: str


def obeyed_in(args: Mapping[str, Any], facts: EvaluationContext) -> Iterator[Obeyed]:
    """The paths of a call that others obey, once for each part that has them do so."""
    if WRITING.isdisjoint(facts.tool.effects):
        return
    for param in facts.tool.path_params:
        value = args.get(param.name)
        for path in () if value is UNKNOWN else paths_in(value):
            try:
                place = facts.trail(path)
            except ToolError:
                continue  # such a call is refused
            if place is None or not isinstance(path, WorkspacePath):
                continue
            for number in obeyed_parts(place.parts):
                yield Obeyed(path, number, f"other programs obey {file_name(place.parts[number])}")
            if folder := repository_made(facts.workspace.root, place.parts):
                why = (
                    f"git runs what the settings of {folder} say, and {file_name(path)} makes it a repository"
                )
                yield Obeyed(path, len(place.parts) - 1, why)


def names_all(
    test: Callable[[Mapping[str, Any], EvaluationContext], Truth],
    args: Mapping[str, Any],
    facts: EvaluationContext,
) -> bool:
    """Whether an allow that matches a call names each part that has others obey a file: it would not match
    if the part had another name with the same ending. Links are not followed: a model may have made one."""

    def fits(path: WorkspacePath, other: str, workspace: Workspace) -> bool:
        instead = {name: _with(value, path, WorkspacePath(other)) for name, value in args.items()}
        context = EvaluationContext(facts.tool, facts.call, workspace, facts.origins)
        return test(instead, context) is not False

    for obeyed in obeyed_in(args, facts):
        path, parts = obeyed.path, obeyed.path.removeprefix("./").split("/")
        if len(parts) <= obeyed.number:
            return False
        if not (fits(path, path, ELSEWHERE) or fits(path, f"{facts.root}/{path}", FROM_TOP)):
            return False
        parts[obeyed.number] = _another(parts[obeyed.number])
        if fits(path, "/".join(parts), facts.workspace):
            return False
    return True


def _another(part: str) -> str:
    """Another name that ends likewise, unless its ending is what others obey."""
    ending = PurePath(part).suffix
    if part.startswith("."):
        return f".{UNNAMED}{ending}"
    return UNNAMED if ending.lower() == ".code-workspace" else f"{UNNAMED}{ending}"


def _with(value: Any, path: WorkspacePath, other: WorkspacePath) -> Any:
    if isinstance(value, WorkspacePath):
        return other if value == path else value
    if isinstance(value, list):
        return [_with(item, path, other) for item in value]
    if isinstance(value, Mapping):
        return {name: _with(item, path, other) for name, item in value.items()}
    return value
