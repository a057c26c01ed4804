"""A run that is interrupted at a random moment: in a request, a stream, a wait for the next try, a question
to a person, a call, calls side by side, a program, a sub-agent, a process. Nothing of it is left at work, and
it goes on until it is done, with each call made at most once."""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from examples import many
from loopback import Handler, Server, loopback
from words import tool, wait_until

from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.options import ModelOptions
from quoth.neuro.backends.openai import OpenAIBackend
from quoth.tools.builtin.process import run_argv
from quoth.tools.call.call import Call, Verdict
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import BEGUN_BEFORE
from quoth.tools.consent.requests import Decision
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.receipts import StoreReceipts
from quoth.tools.loading import load_tools
from quoth.tools.registry.table import CognitiveTool

TEXT = {"text": {"type": str}}
EVENTS = 93  # that a listener is told of in an unbroken run, more or less
MAX_LIVES = 6

ENDS = (("done", "All is done."), ("interrupted", "The run was interrupted."))
Calls = list[tuple[str, dict[str, str]]]
SAID: dict[str, list[Calls | str]] = {
    "Lead.": [
        [("look", {"text": "a"}), ("peer", {"text": "b"}), ("look", {"text": "c"})],
        [("mark", {"text": "one"}), ("look", {"text": "d"})],
        [("eval", {"form": '(do (mark :text "p1") (look :text "e") (mark :text "p2"))'})],
        [("cognitive-loop", {"task": "Help."})],
        [("start", {"text": "s"}), ("mark", {"text": "two"})],
        "All is done.",
    ],
    "Help.": [[("look", {"text": "f"}), ("mark", {"text": "h1"})], "Helped."],
}


class World:
    """What is done in the world, and a model that takes its time to say its lines."""

    def __init__(self, folder: Path, seed: str) -> None:
        self.folder = folder
        self.done: list[str] = []
        self.asked: list[str] = []
        self.chance = random.Random(seed)
        self.native = self.chance.random() < 0.5
        self.long = self.chance.choice(["one", "p1", "h1", "s", "two", *[""] * 10])
        self.events = 0
        self.until: int | None = None
        self.interrupts: Callable[[], Any] = lambda: None
        self.busy = False
        self.shown: list[list[dict[str, Any]]] = []  # the conversations that the model was shown

    # The tools

    def seconds(self, text: str) -> float:
        """How long something takes: a moment; but one thing takes too long, until it has been cut off."""
        if text != self.long:
            return 0.01
        self.long = ""
        self.stop()
        return 60.0

    def stop(self) -> None:
        """Interrupt the run in a moment."""
        asyncio.get_running_loop().call_later(self.chance.uniform(0, 0.03), self.interrupts)

    def hear(self, event: AgentEvent) -> None:
        self.events += 1
        if self.events == self.until:
            self.stop()

    def tools(self) -> list[CognitiveTool]:
        async def look(text: str) -> str:
            await asyncio.sleep(0.02)
            return f"seen {text}"

        def peer(text: str) -> str:
            for _ in range(20):
                time.sleep(0.001)
            return f"peered at {text}"

        async def mark(text: str) -> str:
            await asyncio.sleep(0.005)
            self.done.append(text)
            await asyncio.sleep(self.seconds(text))
            return f"marked {text}"

        async def start(text: str, ctx: ToolContext) -> str:
            self.done.append(text)
            return await run_argv(["sleep", f"{self.seconds(text)}"], ctx=ctx)

        made = [
            tool("look", look, params=TEXT, effects=["reads"]),
            tool("peer", peer, params=TEXT, effects=["reads"]),
            tool("mark", mark, params=TEXT, effects=["writes"]),
            tool("start", start, params=TEXT, effects=["runs"]),
        ]
        shipped = load_tools((), None)
        return [*made, shipped.get("eval"), shipped.get("cognitive-loop")]

    # The person

    asking = False

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        """Allows a call after a moment, but not one that may have been done before. Who is interrupted says
        nothing."""
        self.asked.append(reason)
        self.asking, self._told = True, asyncio.Event()
        try:
            await asyncio.wait_for(self._told.wait(), 0.01)
            return None
        except TimeoutError:
            return Verdict("deny", "no") if BEGUN_BEFORE in reason else Verdict("allow", "yes")
        finally:
            self.asking = False

    def interrupt(self) -> None:
        if self.asking:
            self._told.set()

    # The model

    def answer(self, handler: Handler) -> None:
        messages = json.loads(handler.server.requests[-1][2])["messages"]
        self.shown.append(messages)
        self.busy = not self.busy and self.chance.random() < 0.1
        if self.busy:
            handler.send(429, b"{}", retry_after="0.05")
            return
        task = next(m["content"] for m in messages if m["role"] == "user")
        line = SAID[task][sum(m["role"] == "assistant" for m in messages)]
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        pieces = [{"choices": [{"index": 0, "delta": delta}]} for delta in self._pieces(line)]
        for said in [*map(json.dumps, pieces), "[DONE]"]:
            time.sleep(0.002)
            data = f"data: {said}\n\n".encode()
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        handler.wfile.write(b"0\r\n\r\n")

    def _pieces(self, line: Calls | str) -> Iterator[dict[str, Any]]:
        if isinstance(line, list) and self.native:
            for place, (name, arguments) in enumerate(line):
                function = {"name": name, "arguments": json.dumps(arguments)}
                yield {"tool_calls": [{"index": place, "id": f"c{place}-{name}", "function": function}]}
            return
        if isinstance(line, list):
            line = "\n".join(f"({name} {_written(arguments)})" for name, arguments in line) + "\n"
        for start in range(0, len(line), 25):
            yield {"content": line[start : start + 25]}

    # The runs

    def agent(self, server: Server) -> AsyncAgent:
        backend = OpenAIBackend("m", base_url=server.base_url, api_key="k")
        return AsyncAgent(
            workspace=self.folder,
            session="s",
            user="ann",
            tools=self.tools(),
            model=ModelOptions(backend, dialect="native" if self.native else "call-form"),
            consent=self,
            limits=RunLimits(window=0),
            on_event=self.hear,
        )

    async def live(self, server: Server, until: int | None) -> str:
        """One life of the session; how it ended. It is interrupted after so many events."""
        self.events, self.until = 0, until
        async with self.agent(server) as agent:
            own, self.interrupts = agent.models.backend(), agent.interrupt
            if not any(event.kind == "stimulus" for event in agent.transcript.events("s")):
                reply: Any = await agent.run("Lead.")
            elif agent.runs.unfinished():
                for request in agent.broker.requests():
                    kind = "deny" if BEGUN_BEFORE in request.reason else "once"
                    agent.broker.decide(request.id, Decision(kind, "ann"))
                (reply,) = await agent.resume()
            else:  # it had ended when the interrupt came
                return "done"
            assert isinstance(reply, Reply)
            await own.aclose()
            agent.transcript.verify("s")
            assert not StoreAudit(lambda: agent.store).verify().faults
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:  # a generator that nobody holds any more is closed by a task of the loop
            _, others = await asyncio.wait(others, timeout=5)
        assert others == set()
        assert (reply.status, reply.text or reply.error) in ENDS
        return reply.status


def _written(arguments: dict[str, str]) -> str:
    return " ".join(
        f":{name} {value if name == 'form' else json.dumps(value)}" for name, value in arguments.items()
    )


def at_work() -> tuple[set[threading.Thread], set[str], int]:
    """The threads, the child processes and the open files and sockets of this process."""
    others = ("process_request_thread", "quoth-idle")
    threads = {one for one in threading.enumerate() if not any(name in one.name for name in others)}
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return threads, set(children), len(os.listdir("/proc/self/fd"))


def unanswered(messages: list[dict[str, Any]]) -> list[str]:
    """The native calls that have no result right behind the reply they stand in."""
    wanted: list[str] = []
    for message in messages:
        if message["role"] == "tool" and message["tool_call_id"] in wanted:
            wanted.remove(message["tool_call_id"])
        elif wanted:
            return wanted
        wanted += [call["id"] for call in message.get("tool_calls") or ()]
    return wanted


def seen_through(folder: Path, seed: str) -> World:
    """Interrupt a run at moments of a seeded choice, and go on with it until it is done."""
    world = World(folder, seed)
    untils = [world.chance.randrange(1, EVENTS) for _ in range(world.chance.choice((1, 1, 2, 3)))]
    with loopback(world.answer) as server:
        before = at_work()
        for until in [*untils, *[None] * MAX_LIVES]:
            status = asyncio.run(world.live(server, until))
            wait_until(lambda: at_work()[:2] == before[:2])
            if status == "done":
                break
            assert status == "interrupted"
        else:
            raise AssertionError("it does not end")
        wait_until(lambda: at_work() == before)
    return world


@pytest.fixture(scope="module", autouse=True)
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A run that nobody interrupts. It opens what a process keeps open, such as the engine of the sandbox."""
    world = World(tmp_path_factory.mktemp("unbroken"), "unbroken")
    world.long = ""
    with loopback(world.answer) as server:
        assert asyncio.run(world.live(server, None)) == "done"
    assert EVENTS * 0.5 < world.events < EVENTS * 1.5
    return world


@pytest.mark.parametrize("number", range(8 if many(1) <= 30 else 200))
def test_a_run_that_is_interrupted_at_any_moment_leaves_nothing_at_work_and_goes_on(
    tmp_path: Path, number: int, unbroken: World
) -> None:
    world = seen_through(tmp_path, f"{number}")
    again = {text: count for text, count in Counter(world.done).items() if count > 1}
    assert again == {}
    if not any(BEGUN_BEFORE in reason for reason in world.asked):
        assert sorted(world.done) == sorted(unbroken.done) == ["h1", "one", "p1", "p2", "s", "two"]
    assert [shown for shown in world.shown if unanswered(shown)] == []


def test_it_is_found_out_when_what_had_begun_is_made_again(
    tmp_path: Path, unbroken: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoreReceipts, "begun", lambda self, tool, call: False)
    world = World(tmp_path, "forgets")
    world.long = "one"
    with loopback(world.answer) as server:
        for _ in range(2):
            status = asyncio.run(world.live(server, None))
    assert status == "done"
    assert Counter(world.done)["one"] == 2
