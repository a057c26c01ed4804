"""A workspace in which flights are flown by processes that are killed: for tests of what comes after.

Each life is forked from a server that has loaded everything and begun nothing, so that it begins at once.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from words import files, lines, tool

from quoth import Agent
from quoth.agent.flight.plan_file import PlanFile
from quoth.agent.session.session import Session
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.call import ALLOW, Call, Verdict
from quoth.tools.call.context import ToolContext
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

PROCESSES = multiprocessing.get_context("forkserver")
# What a life would import. The server of Python 3.11 does not know our path, and skips what it does not find.
PROCESSES.set_forkserver_preload(
    [
        "hypothesis",
        "pydantic.json_schema",
        "pydantic.plugin._loader",
        "pydantic.type_adapter",
        "pydantic.types",
        "pydantic_monty",
        "pytest",
        "zoneinfo",
        "quoth",
        "quoth.agent.client",
        "quoth.agent.flight.engine",
        "quoth.agent.loop",
        "quoth.agent.plan.check",
        "quoth.neuro.embed.select",
        "quoth.tools.builtin",
        "quoth.tools.builtin.eval_body",
        "quoth.tools.memory.sqlite",
        "quoth.tools.registry.code_version",
    ]
)
PLAN = lines(
    "#+TITLE: Killed",
    "* PLAN Demand",
    ":PROPERTIES:",
    ':EXPECT: (= (look) "seen")',
    ":END:",
    "** PLAN two calls",
    "#+NAME: sum",
    "#+begin_src hy",
    "[(put 1) (put 2)]",
    "#+end_src",
    "#+begin_src hy :var s=sum",
    "(len s)",
    "#+end_src",
    "** PLAN shaky",
    ":PROPERTIES:",
    ":RETRY: 1",
    ":ON-FAIL: continue",
    ":MAY-FAIL: t",
    ":END:",
    "#+begin_src hy",
    "(+ (len (look)) (/ 1 0))",
    "#+end_src",
    "* PLAN Build",
    "** PLAN prose",
    ":PROPERTIES:",
    ":EXPECT: (= 1 1)",
    ":ON-FAIL: continue",
    ":END:",
    "Do it.",
)
REPLIES = ["(put 3)", "(look)", "It is done."]


def by_the_place(messages: Messages) -> str:
    """A model whose reply depends on the conversation alone, as it is for another process."""
    return REPLIES[sum(message["role"] == "assistant" for message in messages)]


class Allows:
    """A person who says yes to each question, also to whether what was begun may begin again."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        return ALLOW


class World:
    """A workspace in which processes come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = dict(os.environ)  # that of the process that lives is older
        files(folder, {"plan.org": PLAN})
        self.ticks = 0
        self.kill = 0  # die at this tick

    def tick(self) -> None:
        self.ticks += 1
        if self.ticks == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def put(self, x: int, ctx: ToolContext) -> str:
        self.tick()
        with (self.folder / "puts").open("a") as out:
            out.write(f"{x}\n")
        ctx.effect(f"put:{x}")
        return f"put {x}"

    def fly(self) -> str:
        """A flight in this process."""
        number = {"x": {"type": int}}
        tools = [
            tool("put", self.put, params=number, effects=["writes"]),
            tool("look", lambda: "seen", effects=["reads"]),
        ]
        model = ScriptedBackend(by_the_place)
        given: dict[str, Any] = {"tools": tools, "model": model, "user": "ann", "consent": Allows()}
        with Agent(workspace=self.folder, **given) as agent:
            return agent.fly(self.folder / "plan.org").status

    def life(self, kill: int = 0) -> tuple[bool, str]:
        """A flight in a process of its own that dies at that tick; whether it did, and what it said."""
        self.kill = kill
        ours, theirs = PROCESSES.Pipe(duplex=False)
        process = PROCESSES.Process(target=self._live, args=(theirs,))
        process.start()
        theirs.close()
        try:
            said = ours.recv()
        except EOFError:
            said = ""
        process.join()
        return process.exitcode == -signal.SIGKILL, said

    def _live(self, out: Any) -> None:
        os.environ.update(self.environ)
        self._watch(Transcript, "add")
        self._watch(PlanFile, "_replace", after=True)
        try:
            out.send(self.fly())
        except Exception as error:
            out.send(repr(error))

    def _watch(self, kind: Any, name: str, *, after: bool = False) -> None:
        work: Callable[..., Any] = getattr(kind, name)

        def watched(*args: Any, **more: Any) -> Any:
            self.tick()
            done = work(*args, **more)
            if after:
                self.tick()
            return done

        setattr(kind, name, watched)

    @property
    def text(self) -> str:
        """The file without times and names of sessions."""
        text = re.sub(r"\[\d{4}-[^]]*\]", "[now]", (self.folder / "plan.org").read_text())
        return re.sub(r"session s\w+", "session s", text)

    def verify(self) -> None:
        store = Store(store_path(self.folder))
        transcript = Transcript(lambda: store)
        for name, *_ in transcript.sessions():
            transcript.verify(name)
            assert not Session(transcript, name, "ann", self.folder).unfinished()
        store.close()
