"""Flights that are killed (SIGKILL): wherever that happens, the next one ends with the same file as one that
was never broken off."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from words import files, lines, tool

from agent import Agent
from agent.flight_file import PlanFile
from agent.session import Session
from neuro.backends.base import Messages
from neuro.backends.scripted import ScriptedBackend
from tools.context import ToolContext
from tools.store import Store, store_path
from tools.transcript import Transcript

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
STRIDE = 4  # every fourth place; with 1 it takes minutes
REPLIES = ["(put 3)", "(look)", "It is done."]


def by_the_place(messages: Messages) -> str:
    """A model whose reply depends on the conversation alone, as it is for another process."""
    return REPLIES[sum(message["role"] == "assistant" for message in messages)]


class World:
    """A workspace in which processes come and go."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
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
            tool("put", self.put, params=number, effects=["memory"]),
            tool("look", lambda: "seen", effects=["reads"]),
        ]
        model = ScriptedBackend(by_the_place)
        given: dict[str, Any] = {"tools": tools, "model": model, "user": "ann", "consent": "yes"}
        with Agent(workspace=self.folder, **given) as agent:
            return agent.fly(self.folder / "plan.org").status

    def life(self, kill: int) -> tuple[bool, str]:
        """A flight in a process of its own that dies at that tick; whether it did, and what it said."""
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            said = "it raised"
            try:
                self.kill = kill
                self._watch(Transcript, "add")
                self._watch(PlanFile, "_replace", after=True)
                said = self.fly()
            except BaseException as error:
                said = repr(error)
            finally:
                os.write(theirs, said.encode()[:4000])
                os._exit(0)
        os.close(theirs)
        _, status = os.waitpid(child, 0)
        with os.fdopen(ours, "rb") as pipe:
            said = pipe.read().decode()
        return os.WIFSIGNALED(status), said

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


def world(tmp_path: Path, name: str) -> World:
    folder = tmp_path / name
    folder.mkdir()
    return World(folder)


def test_a_flight_that_is_killed_anywhere_ends_with_the_same_file_as_an_unbroken_one(tmp_path: Path) -> None:
    unbroken = world(tmp_path, "unbroken")
    assert unbroken.life(0) == (False, "done")
    assert re.findall(r"^\*+ (\w+)", unbroken.text, re.MULTILINE) == [
        "DONE",
        "DONE",
        "FAILED",
        "DONE",
        "DONE",
    ]
    for kill in range(2, 1000, STRIDE):
        broken = world(tmp_path, f"w{kill}")
        killed, _ = broken.life(kill)
        if not killed:
            break
        assert broken.life(0) == (False, "done"), kill
        assert broken.text == unbroken.text, kill
        broken.verify()
    assert kill > 40


def test_a_flight_that_is_killed_again_and_again_comes_to_its_end(tmp_path: Path) -> None:
    unbroken, broken = world(tmp_path, "unbroken"), world(tmp_path, "broken")
    unbroken.life(0)
    lives, killed = 0, True
    while killed:
        lives += 1
        killed, said = broken.life(5 + lives)
    assert said == "done"
    assert lives > 3
    assert broken.text == unbroken.text
    broken.verify()
