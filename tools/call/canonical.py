"""The canonical form of a call, which rules, requests, receipts and the body see: its arguments are named and
validated, each path is resolved once. Also which arguments of a call are paths, and where they lead.

Must not know rules or the door.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from quoth.tools.call.workspace import ELSEWHERE, Workspace
from quoth.tools.errors import InvalidCallError, ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string
from quoth.tools.registry.param_types import WorkspacePath, with_paths
from quoth.tools.registry.table import CognitiveTool

PATHS = {"path", "file", "folder", "dir", "directory", "cwd", "source", "target", "destination"}


def workspace_of(tool: CognitiveTool, workspace: Workspace) -> Workspace:
    """The folder that the paths of a tool mean: the workspace, or that of the worker who makes its calls."""
    return ELSEWHERE if tool.remote else workspace


def paths_in(value: Any) -> Iterator[str]:
    """The paths in a value: itself, or the items of a list or dictionary."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, Mapping)):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from paths_in(item)


def resolved(
    tool: CognitiveTool, form: CallForm, args: Mapping[str, Any], workspace: Workspace
) -> tuple[CallForm, dict[str, Any]]:
    """A validated call with each path in its canonical spelling, in the form and in the arguments. A
    default path that is a link, or leads out of the workspace, is added to the form, so that an approval
    of the form is bound to that place. Raises InvalidCallError."""
    found, given = dict(args), dict(form.args)
    seen: dict[str, WorkspacePath] = {}
    place = workspace_of(tool, workspace)

    def spelt(path: str) -> WorkspacePath:
        if path not in seen:  # looked up once: form and arguments never differ
            seen[path] = place.canonical(path)
        return seen[path]

    for param in tool.path_params:
        name = param.name
        if name not in args:
            continue
        try:
            found[name] = with_paths(param.type, args[name], spelt)
        except ToolError as error:
            raise InvalidCallError(f"{tool.name}: :{name}: {error}") from None
        if name in given or found[name] != args[name]:
            given[name] = with_paths(param.type, args[name], lambda path: str(spelt(path)))
    return CallForm(tool.name, given), found


def checked(tool: CognitiveTool, form: CallForm, workspace: Workspace) -> tuple[CallForm, dict[str, Any]]:
    """A call as the door sees it: its form with named arguments, and all its arguments as JSON data.
    Raises InvalidCallError."""
    return resolved(tool, *tool.checked(form), workspace)


def arguments(tool: CognitiveTool, form: CallForm, workspace: Workspace) -> dict[str, Any]:
    """All arguments of a form, as JSON data. Raises InvalidCallError."""
    return checked(tool, form, workspace)[1]


def bound_form(tool: CognitiveTool, form: CallForm, workspace: Workspace) -> CallForm:
    """The form as the door sees it, with named arguments. Raises InvalidCallError."""
    return checked(tool, form, workspace)[0]


def as_written(tool: CognitiveTool, args: Mapping[str, Any]) -> tuple[str, ...]:
    """A note for each path argument whose original spelling differs from the one that is judged and shown."""
    return tuple(
        f":{param.name} was written {print_string(path.written)}"
        for param in tool.path_params
        if not param.secret
        for path in paths_in(args.get(param.name))
        if isinstance(path, WorkspacePath) and path.written != path
    )


def is_path(name: str, value: Any) -> bool:
    """Whether a text is probably the path of a file or folder, guessed from its argument's name. This is
    for tools whose parameter types do not say so."""
    return isinstance(value, str) and bool(value) and name.rpartition("-")[2] in PATHS


def path_arguments(tool: CognitiveTool, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are paths, by their type, or by ``is_path`` where they have none."""
    typed = {param.name for param in tool.path_params}
    return {name: value for name, value in args.items() if name in typed or is_path(name, value)}


def touched(tool: CognitiveTool, args: Mapping[str, Any], workspace: Workspace) -> list[str]:
    """The files and folders a call names, links resolved: relative if in the workspace, else absolute."""
    found, place = [], workspace_of(tool, workspace)
    for value in path_arguments(tool, args).values():
        for path in paths_in(value):
            with contextlib.suppress(ToolError):
                found.append(str(place.canonical(path)))
    return found


def guessed_targets(tool: CognitiveTool, args: Mapping[str, Any], workspace: Workspace) -> dict[str, str]:
    """Where the arguments lead that are paths by ``is_path`` only, if their target differs from their
    text. The form does not contain the target, so an approval, also of a plan, is bound to this too."""
    found = {}
    workspace = workspace_of(tool, workspace)
    for name, value in path_arguments(tool, args).items():
        if isinstance(value, str) and not isinstance(value, WorkspacePath):
            with contextlib.suppress(ToolError):
                if value.startswith("~") or workspace.goes_through_link(value):
                    found[name] = workspace.spelling(workspace.locate(value))
    return found
