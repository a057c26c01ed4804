"""A workspace with a plan in it, and the words that plans and flights are told in. Knows agents and plans."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from words import files, lines, scripted, tool

from quoth import Agent, AsyncAgent, FlightReport
from quoth.agent.plan.model import TODO_WORDS
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.org.document import load
from quoth.tools.registry.table import CognitiveTool


class Field:
    """A workspace with a plan in it, and tools that count; each flight might be one of another process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "plan.org"
        self.puts: list[int] = []
        self.fails = 0  # so many calls of shaky fail
        self.heard: list[str] = []

    def put(self, x: int, ctx: ToolContext) -> str:
        self.puts.append(x)
        ctx.effect(f"put:{x}")
        return f"put {x}"

    def shaky(self) -> str:
        if self.fails:
            self.fails -= 1
            raise RuntimeError("it shook")
        return "steady"

    async def meet(self) -> str:
        """Ends only when two are there at once."""
        self.puts.append(0)
        while len(self.puts) < 2:
            await asyncio.sleep(0.01)
        return "met"

    @property
    def tools(self) -> list[CognitiveTool]:
        number = {"x": {"type": int, "default": 0}}
        return [
            tool("put", self.put, params=number, effects=["writes"]),
            tool("look", lambda: "seen", effects=["reads"]),
            tool("shaky", self.shaky),
            tool("meet", self.meet),
        ]

    def plan(self, *parts: str) -> None:
        files(self.folder, {"plan.org": lines(*parts)})

    def agent(self, *replies: Any, **options: Any) -> Agent:
        model = options.pop("model", None) or scripted(*replies)
        given = {"user": "ann", "tools": self.tools, "model": model, **options}
        return Agent(workspace=self.folder, **given)

    def fly(self, *replies: Any, wanted: dict[str, Any] | None = None, **options: Any) -> FlightReport:
        with self.agent(*replies, **options) as agent:
            return agent.fly(self.path, **(wanted or {}))

    @property
    def text(self) -> str:
        return self.path.read_text()

    @property
    def words(self) -> dict[str, str]:
        """The TODO words that stand in the file, by title."""
        return {entry.title: entry.todo for entry in load(self.path.read_bytes(), TODO_WORDS).entries[1:]}

    def edit(self, old: str, new: str) -> None:
        assert old in self.text
        self.path.write_text(self.text.replace(old, new))

    def decide(self, kind: Any = "once", **more: Any) -> str:
        with self.agent() as agent:
            request = agent.broker.requests()[0]
            return agent.broker.decide(request.id, Decision(kind, "ann", **more)).form


def step(title: str, *body: str, head: str = "*", **properties: str) -> str:
    """A step; ``on_fail`` is the property ON-FAIL."""
    drawer = [f":{name.upper().replace('_', '-')}: {value}" for name, value in properties.items()]
    drawer = [":PROPERTIES:", *drawer, ":END:"] if drawer else []
    return "\n".join([f"{head} PLAN {title}", *drawer, *body])


def block(*code: str, head: str = "hy", name: str = "") -> str:
    named = [f"#+NAME: {name}"] if name else []
    return "\n".join([*named, f"#+begin_src {head}", *code, "#+end_src"])


def statuses(report: FlightReport) -> dict[str, str]:
    return {step.id: step.status for step in report.steps}


def approve(field: Field, *only: str, decision: Decision | None = None, **options: Any) -> None:
    """What ann does with quoth approve."""
    from quoth.agent.flight.approval import coverage, record
    from quoth.agent.flight.plan_file import PlanFile

    plan = (file := PlanFile(field.path)).plan

    async def work() -> None:
        async with AsyncAgent(workspace=field.folder, tools=field.tools, user="ann", **options) as it:
            for each in plan.steps:
                if not only or each.id in only:
                    said, seen = decision or Decision("once", "ann"), await coverage(it.host, plan, each)
                    record(it.store, it.audit, plan, str(file.path), each, it.table, said, seen)

    asyncio.run(work())


def denied(field: Field, *only: str) -> None:
    approve(field, *only, decision=Decision("deny", "ann", why="too early"))
