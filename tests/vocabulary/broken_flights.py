"""A workspace in which flights are flown by processes that are killed: for tests of what comes after.

Each life is this file as a script, forked off the process that waits for commands. So it imports nothing that
is not ready there.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from commands import quoth

from quoth import Agent
from quoth.agent.flight.plan_file import PlanFile
from quoth.agent.session.session import Session
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.call import ALLOW, Call, Verdict
from quoth.tools.call.context import ToolContext
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.define import define_tool, registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

PLAN = """\
#+TITLE: Killed
* PLAN Demand
:PROPERTIES:
:EXPECT: (= (look) "seen")
:END:
** PLAN two calls
#+NAME: sum
#+begin_src hy
[(put 1) (put 2)]
#+end_src
#+begin_src hy :var s=sum
(len s)
#+end_src
** PLAN shaky
:PROPERTIES:
:RETRY: 1
:ON-FAIL: continue
:MAY-FAIL: t
:END:
#+begin_src hy
(+ (len (look)) (/ 1 0))
#+end_src
* PLAN Build
** PLAN prose
:PROPERTIES:
:EXPECT: (= 1 1)
:ON-FAIL: continue
:END:
Do it.
"""
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

    def __init__(self, folder: Path, kill: int = 0) -> None:
        self.folder = folder
        self.ticks = 0
        self.kill = kill  # die at this tick

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

    def live(self) -> str:
        """A flight in this process."""
        self._watch(Transcript, "add")
        self._watch(PlanFile, "_replace", after=True)
        with registering_in(ToolTable()):
            number = {"x": {"type": int}}
            put = define_tool("put", "Put.", parameters=number, body=self.put, effects=["writes"])
            look = define_tool("look", "Look.", parameters={}, body=lambda: "seen", effects=["reads"])
        model = ScriptedBackend(by_the_place)
        given: dict[str, Any] = {"tools": [put, look], "model": model, "user": "ann", "consent": Allows()}
        with Agent(workspace=self.folder, **given) as agent:
            return agent.fly(self.folder / "plan.org").status

    def life(self, kill: int = 0) -> tuple[bool, str]:
        """A flight in a process of its own that dies at that tick; whether it did, and what it said."""
        ended = quoth(__file__, str(self.folder), str(kill), cwd=self.folder)
        assert not ended.err
        return ended.code == -signal.SIGKILL, ended.out

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


if __name__ == "__main__":
    print(World(Path(sys.argv[1]), int(sys.argv[2])).live(), end="")
