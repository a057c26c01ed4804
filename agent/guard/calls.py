"""A call of another agent as a call form, with an entry of the table that is made for it.

``{"tool_name": "NotebookEdit", …}`` of Claude Code becomes ``(claude-code--notebook-edit …)``, and a tool of
an MCP server, ``mcp__github__get_issue``, becomes ``(github--get-issue …)``, the name that the tool has here.
The entry describes the tool to rules; its body does nothing, because the agent runs the call.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from quoth.agent.guard.formats import ANY_COMMAND, FORMATS, UNKNOWN_EFFECTS, AgentFormat, AgentTool
from quoth.tools.call.canonical import is_path
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.annotations import WorkspacePath
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.schema_params import own_name, own_names
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.tool import ServedTool
from quoth.tools.registry.values import UNKNOWN

MCP = re.compile(r"mcp__(?P<server>.+?)__(?P<tool>.+)", re.DOTALL)
GEMINI_MCP = re.compile(r"mcp_(?P<server>[^_]+)_(?P<tool>.+)", re.DOTALL)  # without the context of the call
PATCHED = re.compile(
    r"^[ \t]*\*\*\*[ \t]+(?:Add File|Update File|Delete File|Move to):[ \t]*(.*?)[ \t\r]*$", re.MULTILINE
)
PATCH = re.compile(r"\*\*\*[ \t]+Begin Patch")
COMMANDS = ("command", "cmd")
OF_PROCESS = ("/proc/self/", "/proc/thread-self/")  # they are of the guard's own process here
EDITION = "guard 1"  # a part of each entry's version: an approval is for what the arguments meant


async def _run_by_agent() -> None:
    """The body of every entry: the agent runs the call."""


def served_by(agent: AgentFormat, tool: str) -> ServedTool | None:
    """The MCP server of a tool, and the tool's name there; None for a tool of the agent itself."""
    found = MCP.fullmatch(tool) or (GEMINI_MCP.fullmatch(tool) if agent.flat else None)
    return ServedTool(_server(found["server"]), found["tool"], "") if found else None


def name_of(agent: AgentFormat, tool: str) -> str:
    """The name of an agent's tool in rules. A server with the name of an agent is not taken for the agent."""
    if (served := served_by(agent, tool)) is None:
        return f"{agent.name}--{own_name(tool) or 'x'}"
    return f"{'mcp--' if served.server in FORMATS else ''}{served.server}--{own_name(served.tool) or 'x'}"


def _server(name: str) -> str:
    """As tools/mcp/config.py names servers, for any text."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "x"


def row_of(agent: AgentFormat, tool: str, given: Mapping[str, Any]) -> AgentTool:
    """The facts about an agent's tool. Of a tool that is in no row, which may be newer than this table, the
    names of its arguments tell which of them are paths and which is a command line."""
    if tool in agent.tools:
        return agent.tools[tool]
    if served_by(agent, tool) is not None:
        return AgentTool(UNKNOWN_EFFECTS)
    texts = [wire for wire, value in given.items() if isinstance(value, str)]
    paths = tuple(wire for wire in texts if is_path(own_name(wire), given[wire]))
    command = next((wire for wire in texts if own_name(wire) in COMMANDS), "")
    return AgentTool(ANY_COMMAND if command else UNKNOWN_EFFECTS, paths, command=command)


def call_of(
    agent: AgentFormat, tool: str, given: Mapping[str, Any], cwd: str
) -> tuple[CognitiveTool, CallForm]:
    """The entry and the form of one call. Raises InvalidCallError for arguments that cannot be judged."""
    row = row_of(agent, tool, given)
    values = {name: value for name, value in given.items() if value is not None or name not in row.paths}
    if row.here and not any(name in values for name in row.paths):
        values[row.here] = cwd
    params, args = [], {}
    for name, wire in own_names(values).items():
        kind, value = cast("Any", Any), values[wire]
        if wire in row.paths:
            kind, value = _paths(tool, wire, value, cwd)
        elif wire == row.patch:
            params.append(Param("paths", list[WorkspacePath], outside=True))
            args["paths"] = patched_paths(tool, value, cwd)
            name = "patch"  # an approval is for this very text
        elif wire == row.command and not isinstance(value, str):
            raise InvalidCallError(f'{tool}: "{wire}" is not a text.')
        params.append(Param(name, kind, outside=True))
        args[name] = value
    if row.patch and "paths" not in args:
        raise InvalidCallError(f'{tool}: "{row.patch}" is missing.')
    if row.command and argument_name(row.command) not in args:
        raise InvalidCallError(f'{tool}: "{row.command}" is missing.')
    name, served = name_of(agent, tool), served_by(agent, tool)
    return _entry(name, agent.title, row.effects, tuple(params), served), CallForm(name, args)


class EntryCall(NamedTuple):
    """The entry of a tool, and arguments of a call of it."""

    tool: CognitiveTool
    args: Mapping[str, Any]


def entries_with(agent: AgentFormat, effect: str, path: Any, cwd: str) -> Iterator[EntryCall]:
    """The calls by which the agent's own tools would read, or write, this file, which may be UNKNOWN: a
    command line that does it is judged by the same rules."""
    for name, row in agent.tools.items():
        if effect not in row.effects or row.command or row.here or not (row.paths or row.patch):
            continue
        tool = _known(agent, name)
        if path is not UNKNOWN:
            given = {row.patch: f"*** Update File: {path}"} if row.patch else {row.paths[0]: path}
            _, form = call_of(agent, name, given, cwd)
            yield EntryCall(tool, {key: value for key, value in form.args.items() if key != "patch"})
        else:
            yield EntryCall(tool, {"paths" if row.patch else argument_name(row.paths[0]): UNKNOWN})


def known_tools() -> list[CognitiveTool]:
    """An entry of each tool that the formats know, to check rules about them."""
    return [tool for agent in FORMATS.values() for tool in _known_of(agent)]


def _known_of(agent: AgentFormat) -> Iterator[CognitiveTool]:
    return (_known(agent, tool) for tool in agent.tools)


def _known(agent: AgentFormat, tool: str) -> CognitiveTool:
    row = agent.tools[tool]
    params = [Param(argument_name(one), WorkspacePath, default=None) for one in row.paths]
    params += [Param(argument_name(row.command), default=None)] if row.command else []
    if row.patch:
        params += [Param("paths", list[WorkspacePath], default=None), Param("patch", default=None)]
    params += [Param(argument_name(one), Any, default=None) for one in row.also]
    return _entry(name_of(agent, tool), agent.title, row.effects, tuple(params))


@lru_cache(1000)
def _entry(
    name: str,
    title: str,
    effects: tuple[str, ...],
    params: tuple[Param, ...],
    served: ServedTool | None = None,
) -> CognitiveTool:
    about = f"A tool of {title}, which runs it."
    return CognitiveTool(name, about, params, effects, code=EDITION, served=served, _body=_run_by_agent)


def patched_paths(tool: str, patch: Any, cwd: str) -> list[str]:
    """The files that a patch of Codex names. Raises InvalidCallError if it names none."""
    found = PATCHED.findall(patch) if isinstance(patch, str) else []
    if not found:
        raise InvalidCallError(f"{tool}: the patch names no file.")
    return [absolute_path(tool, one, cwd) for one in dict.fromkeys(found)]


def _paths(tool: str, wire: str, value: Any, cwd: str) -> tuple[Any, Any]:
    if isinstance(value, str):
        return WorkspacePath, absolute_path(tool, value, cwd)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return list[WorkspacePath], [absolute_path(tool, one, cwd) for one in value]
    raise InvalidCallError(f'{tool}: "{wire}" is not a path.')


def absolute_path(tool: str, path: str, cwd: str) -> str:
    """The path from the root of the system. ``~`` is the home folder for some tools and a name for others; it
    is the home here, so a folder of such a name is refused. Raises InvalidCallError."""
    if path.startswith("~"):
        if os.path.lexists(os.path.join(cwd, path.split("/")[0])):  # noqa: PTH118  any text
            raise InvalidCallError(f"{tool}: {path} may be in the home folder or in {cwd}; write it in full.")
        return path
    whole = os.path.join(cwd, path)  # noqa: PTH118  links are resolved later, before ``..``
    if os.path.normpath(whole).startswith(OF_PROCESS):
        raise InvalidCallError(f"{tool}: {path} is another file for each process; write it in full.")
    return whole


def argument_name(wire: str) -> str:
    """The name of an argument in rules: ``filePath`` and ``file_path`` are ``file-path``."""
    return next(iter(own_names([wire])))
