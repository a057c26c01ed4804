"""Finds what rules about files do not see: parameters that are texts and name files, since the door sees a
path by its type alone, and programs that no boundary confines.

It knows a tool, the workspace and what rules are about; it must not judge any call.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator

from quoth.tools.call.canonical import paths_in
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.policy.policy import Layer
from quoth.tools.policy.predicates import ANY_PATH
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool

READER = "read-file"  # a rule about it says which files may be read
NAMES = {"path", "paths", "file", "files", "filename", "folder", "folders", "dir", "directory", "cwd"}


def unseen_paths(tool: CognitiveTool, workspace: Workspace) -> Iterator[str]:
    """A sentence for each parameter of a user's tool that is a text and seems to name files: by its name, or
    because an example gives it one that is there."""
    if tool.ships or tool.remote:
        return
    for param in tool.params:
        given = (example.args.get(param.name) for example in tool.examples)
        named = param.name.rpartition("-")[2] in NAMES
        if _is_text(param) and (named or any(_is_there(workspace, value) for value in given)):
            yield (
                f":{param.name} of {tool.name} is a text, so nothing keeps it inside the workspace. If it"
                " names a file, give it :type path (in Python: WorkspacePath)."
            )


def unconfined(tool: CognitiveTool, layers: Iterable[Layer]) -> Iterator[str]:
    """A sentence where a user's tool runs programs, which see the files that a rule forbids reading."""
    if tool.ships or tool.remote or "runs" not in tool.effects:
        return
    for rule in (rule for layer in layers for rule in layer.orders.rules):
        if rule.kind != "allow" and rule.tool in (None, READER) and ANY_PATH in rule.arguments:
            yield (
                f"Programs that {tool.name} runs are not confined: they see the files that"
                f" {rule.place} forbids reading. The tool shell hides them."
            )
            return


def _is_text(param: Param) -> bool:
    """Whether its values are texts, or lists of them, and it declares no path and no choices."""
    kinds = {param.type, *typing.get_args(param.type)}
    return str in kinds and not param.holds_paths and not param.choices


def _is_there(workspace: Workspace, value: object) -> bool:
    """Whether a value names something of the workspace, or below it."""
    for text in paths_in(value):
        try:
            real = workspace.locate(text)
            if text.strip(" ./") and real.exists():
                return True
        except (ToolError, OSError):
            continue
    return False
