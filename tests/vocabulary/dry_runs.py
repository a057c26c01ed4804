"""A house of tools that do things, in which programs are run dry. Knows the door and the sandbox."""

from __future__ import annotations

import asyncio
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from words import Spy, gateway, tool

from quoth.tools.call.call import ToolResult, ask, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.sandbox.runner import Sandbox

TEXT: dict[str, dict[str, Any]] = {"x": {"type": Any, "default": None}}


class House:
    """A door to tools that do things, each of which remembers its calls, and one sandbox for them all."""

    def __init__(self) -> None:
        import_module("quoth.tools.builtin")
        self.loop = asyncio.new_event_loop()
        self.sandbox = Sandbox()
        self.did: list[tuple[str, Any]] = []

    def tools(self) -> list[CognitiveTool]:
        def body(name: str) -> Any:
            return lambda x: self.did.append((name, x)) or f"{name} {x}"

        return [
            tool("look", body=body("look"), params=TEXT, effects=["reads"]),
            tool("sh", body=body("sh"), params=TEXT, effects=["runs"]),
            tool("muse", body=body("muse"), params=TEXT, cost="expensive"),
            tool("closed", body=body("closed"), params=TEXT, guard=Spy(deny("keep out"))),
            tool("careful", body=body("careful"), params=TEXT, guard=Spy(ask("it is hot"))),
        ]

    def run(self, text: str, *more: CognitiveTool, workspace: Path | str = ".", **parts: Any) -> ToolResult:
        """A program, dry unless ``dry`` says otherwise."""
        dry, marks = parts.pop("dry", True), parts.pop("marks", {})
        self.did.clear()
        table = ToolTable([*cognitive_tools.tools(), *self.tools(), *more])
        door: Door = gateway(**parts).door
        door.table = table
        args: dict[str, Any] = {"form": Code(text)} | ({"dry-run": dry} if dry else {})
        context = ToolContext(Workspace(Path(workspace)), sandbox=self.sandbox)
        call = new_call(CallForm("eval", args), **marks)
        return self.loop.run_until_complete(door.dispatch(call, context))

    def plan(self, text: str, *more: CognitiveTool, **parts: Any) -> Any:
        result = self.run(text, *more, **parts)
        assert result.ok, result.message
        return result.value

    def tree(self, text: str, *more: CognitiveTool, **parts: Any) -> list[str]:
        """The lines of the plan without what is said of the calls."""
        said: str = self.plan(text, *more, **parts)["text"]
        # Two spaces before the remark on a call; a line that is a remark itself has only its padding there.
        return [re.sub(r"(?<=\S)  ; .*", "", line) for line in said.split("\n")]
