"""The words tests are written in, so that each reads as a short story. Knows the public faces of the rooms only."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import Agent
from agent.agent import AsyncAgent
from neuro.backends.scripted import ScriptedBackend
from tools.audit import MemoryAudit
from tools.context import ToolContext, ToolResult
from tools.define import define_tool, registering_in
from tools.door import Door, new_call
from tools.form import CallForm, from_model
from tools.program import Sandbox
from tools.sexp import read_one
from tools.table import CognitiveTool, ToolTable
from tools.workspace import Workspace


def form(text: str) -> CallForm:
    """The call form that ``text`` spells."""
    return from_model(read_one(text))


def tool(
    name: str = "probe",
    body: Callable[..., Any] = lambda: "done",
    guard: Callable[..., Any] | None = None,
    params: dict[str, dict[str, Any]] | None = None,
    table: ToolTable | None = None,
    **options: Any,
) -> CognitiveTool:
    """A tool in ``table`` (or in a table of its own)."""
    with registering_in(table if table is not None else ToolTable()):
        return define_tool(
            name, "A tool for a test.", parameters=params or {}, body=body, guard=guard, **options
        )


class Spy:
    """A function that remembers its calls; a body or guard that must, or must not, have run."""

    def __init__(self, answer: Any = True) -> None:
        self.answer = answer
        self.calls = 0

    def __call__(self) -> Any:
        self.calls += 1
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    @property
    def ran(self) -> bool:
        return self.calls > 0


@dataclass
class Gateway:
    """A door on a table of its own, with its audit in memory."""

    door: Door
    workspace: Path

    def pass_through(self, text: str | CallForm, **marks: Any) -> ToolResult:
        """Take one form through the door."""

        async def go() -> ToolResult:
            sandbox = Sandbox()
            try:
                call = new_call(form(text) if isinstance(text, str) else text, **marks)
                return await self.door.dispatch(call, ToolContext(Workspace(self.workspace), sandbox=sandbox))
            finally:
                await sandbox.aclose()

        return asyncio.run(go())

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.door.audit.rows()


def gateway(*tools: CognitiveTool, workspace: Path | str = ".", **parts: Any) -> Gateway:
    """A gateway to just these tools."""
    return Gateway(Door(ToolTable(tools), audit=MemoryAudit(), **parts), Path(workspace))


def scripted(*replies: str) -> ScriptedBackend:
    return ScriptedBackend(list(replies))


def agent(workspace: Path, *replies: str, **options: Any) -> Agent:
    """A synchronous agent whose model says ``replies`` one after the other."""
    return Agent(workspace=workspace, model=scripted(*replies), audit=MemoryAudit(), **options)


def async_agent(workspace: Path, *replies: str, **options: Any) -> AsyncAgent:
    return AsyncAgent(workspace=workspace, model=scripted(*replies), audit=MemoryAudit(), **options)


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


def command() -> list[str]:
    """The installed ``quoth`` of this environment."""
    script = Path(sysconfig.get_path("scripts"), "quoth")
    if script.exists():
        return [str(script)]
    found = shutil.which("quoth")
    return [found] if found else [sys.executable, "-m", "agent"]


def quoth(
    *words: str, cwd: Path, stdin: str | None = None, env: dict[str, str] | None = None, seconds: float = 120
) -> Said:
    """Run the command in ``cwd`` as a person would, without a terminal."""
    done = subprocess.run(
        [*command(), *words],
        cwd=cwd,
        input=stdin if stdin is not None else "",
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    return Said(done.returncode, done.stdout, done.stderr)


def files(root: Path, contents: dict[str, str | bytes]) -> Path:
    """Put files under ``root``."""
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def lines(*parts: Iterable[str] | str) -> str:
    """Text made of lines."""
    flat: Sequence[str] = [p for part in parts for p in ([part] if isinstance(part, str) else part)]
    return "\n".join(flat) + "\n"
