"""The changes between two openings of a session: its tools, their files, its policy, its memory.

An opening is the data of ``given`` in agent/run/host.py. The person and the model get notice of every tool
that has changed or vanished.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.paths import is_missing

MANY = 300  # tools


@dataclass(frozen=True)
class ToolDrift:
    """The changed, vanished and new tools by name, sorted; whether the policy changed; missing tool files;
    the change of the memory."""

    changed: tuple[str, ...] = ()
    vanished: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    policy: bool = False
    files: tuple[str, ...] = ()
    memory: tuple[str, str] = ("", "")  # its kinds then and now; empty: the workspace's

    def __iter__(self) -> Iterator[str]:
        """One sentence for each, for a person."""
        yield from (f"The tool file {file} is not there any more." for file in self.files)
        yield from (f"The tool {name} has changed since the session was last used." for name in self.changed)
        yield from (f"The tool {name} was removed since the session was last used." for name in self.vanished)
        yield from (f"The tool {name} was added since the session was last used." for name in self.new)
        if self.policy:
            yield "The policy has changed since the session was last used."
        then, now = (f"another ({kind})" if kind else "that of the workspace" for kind in self.memory)
        if then != now:
            again = " To use the earlier one: --memory URL, or QUOTH_MEMORY." if not self.memory[1] else ""
            yield f"The memory is {now}; earlier it was {then}.{again}"

    def told(self, table: ToolTable) -> str:
        """The message for the model about changed tools, without tools that ``table`` hides; empty if none
        changed."""
        parts = []
        if changed := [name for name in self.changed if name not in table.hidden]:
            called = ", ".join(table.get(name).signature() for name in changed)
            parts.append(f"These tools have changed since you saw them; they are called as {called}.")
        if vanished := [name for name in self.vanished if name not in table.hidden]:
            parts.append(f"These tools are gone and cannot be called any more: {', '.join(vanished)}.")
        # New built-in tools come with a new version of quoth; an older conversation does not need them.
        new = [table.get(name) for name in self.new if name in table and name not in table.hidden]
        if made := [f"{one.signature()}: {one.description}" for one in new if one.shown and not one.ships]:
            parts.append(f"These tools are new: {'; '.join(made)}")
        return " ".join(parts)


def told_versions(tools: Iterable[CognitiveTool]) -> dict[str, str] | str:
    """The versions of local tools for an opening: a dictionary, or for thousands of tools a text with one
    line each, which is written and read much faster."""
    versions = {tool.name: tool.outline for tool in tools}
    if len(versions) <= MANY:
        return versions
    return "\n".join(f"{name} {version}" for name, version in versions.items())


def versions_of(given: Mapping[str, Any]) -> dict[str, str]:
    """The version of each tool of an opening, including remote tools."""
    found: dict[str, str] = {}
    for told in (given.get("versions") or {}, given.get("remote-versions") or ""):
        if isinstance(told, str):
            told = {name: version for name, _, version in (line.partition(" ") for line in told.splitlines())}
        found |= told
    return found


def changes_of(then: Mapping[str, Any], now: Mapping[str, Any]) -> ToolDrift:
    """The changes between two openings; none for a session that was never opened (``then`` is empty)."""
    if not then:
        return ToolDrift()
    before, after = versions_of(then), versions_of(now)
    return ToolDrift(
        tuple(sorted(name for name in before.keys() & after.keys() if before[name] != after[name])),
        tuple(sorted(before.keys() - after.keys())),
        tuple(sorted(after.keys() - before.keys())),
        then.get("rules", now["rules"]) != now["rules"],
        tuple(file for file in then.get("tools") or () if is_missing(file)),
        (str(then.get("memory") or ""), str(now.get("memory") or "")),
    )
