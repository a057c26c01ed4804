"""Many chats in one process, with a model that answers at once: what a message costs beside a floor written
by hand, what a waiting chat keeps, and whether a slow tool of one chat holds up the others. Prints tables.

python tests/bench/chat.py [cost] [memory] [--chats 300] [--rounds 5]

A message goes the whole way: accepted on disk, what is known looked up, the model asked, tags read and their
tools called through the door, follow-ups sent, answered on disk. The floor is the same model and one synced
commit of SQLite. "One at a time" is the time from a message to its reply while nothing else is to do, with
all chats open; "all at once" a message's share when each chat sends one in the same moment; "a steady stream"
what a message takes longer than its model, which takes half a second, when each chat sends one within ten
seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw

from quoth import HostServices, ModelOptions, ToolOptions
from quoth.agent.chat.chats import Chats
from quoth.agent.chat.inbox import Inbox
from quoth.agent.chat.lines import ChatMessage, Outgoing
from quoth.agent.client import AsyncAgent
from quoth.neuro.backends.base import Completion
from quoth.tools.call.service_types import Origin
from quoth.tools.call.workspace import Workspace
from quoth.tools.knowledge.base import FileKnowledge

TOOLS = """
(require quoth [def-cognitive-tool])
(import asyncio)

(def-cognitive-tool note
  "Note something."
  :parameters [what {:type str}]
  :tag "NOTE"
  :body (.say ctx f"Noted: {what}"))

(def-cognitive-tool dawdle
  "Take two seconds."
  :tag "DAWDLE"
  :body (await (asyncio.sleep 2)))
"""
TOPICS = ("solar cells", "heat pumps", "wind", "batteries", "insulation")
TEXTS = {
    "words": "It depends on the roof, its slope and where it looks; south is best, and 30 degrees.",
    "a tag": "I note that.\nNOTE: the roof looks south\nCONFIDENCE: 0.8",
}
SLOW = 0.5  # seconds of a model that thinks, in the steady stream
STREAM = 10.0  # seconds within which each chat sends its message there


class Model:
    """Answers with ``text`` after ``seconds``; it remembers how long that really was, and no message."""

    name = "scripted:bench"
    takes_grammar = False
    tool_view = "openai"
    context = None

    def __init__(self) -> None:
        self.text = TEXTS["words"]
        self.seconds = 0.0
        self.texts: dict[str, str] = {}  # other replies, by what the user says
        self.took: dict[str, float] = {}

    async def complete(self, messages: Any, **_: Any) -> Completion:
        began = time.perf_counter()
        said = str(messages[-1]["content"]) if len(messages) else ""
        if self.seconds:
            await asyncio.sleep(self.seconds)
        self.took[said] = time.perf_counter() - began
        return Completion(self.texts.get(said, self.text))

    async def aclose(self) -> None:
        pass


class Bot:
    """A gateway without its lines: messages go in, and ``say`` returns when the reply came."""

    def __init__(self, host: AsyncAgent, model: Model) -> None:
        self.host, self.model = host, model
        self.told = 0
        self.replies: dict[Any, asyncio.Future[Outgoing]] = {}
        self.chats = Chats(host.runs, Inbox(lambda: host.store), self.sent)

    async def sent(self, line: Outgoing) -> bool:
        if line.kind in ("reply", "error"):
            assert line.kind == "reply", line.text
            self.replies[line.id].set_result(line)
        return True

    async def say(self, chat: str, text: str = "What do you think of solar cells on this roof?") -> float:
        """The seconds from the message to its reply."""
        self.told += 1
        number = self.told
        reply = self.replies[number] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        refused = self.chats.accept(ChatMessage(number, f"user-{chat}", chat, text))
        assert refused is None, refused
        await reply
        del self.replies[number]
        return time.perf_counter() - began


@asynccontextmanager
async def bot() -> Any:
    """A bot in a workspace of its own, with a knowledge base of a hundred entries."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = f"{folder}/state"
        root = Path(folder, "bot")
        root.mkdir()
        (root / "bot.hy").write_text(TOOLS)
        base = FileKnowledge(Workspace(root))
        for number in range(50):
            topic = TOPICS[number % len(TOPICS)]
            origin = Origin("ann", "2026-11-23T09:00:00+00:00")
            await base.add_claim(f"Claim {number}: {topic} cost {number} marks a year.", origin)
            await base.add_learning(
                "factual", f"{topic} number {number} was built in {1950 + number}.", origin
            )
        model = Model()
        async with AsyncAgent(
            workspace=root,
            tools=ToolOptions([str(root / "bot.hy")]),
            model=ModelOptions(model, dialect="tags"),
            services=HostServices(knowledge_base=base),
        ) as host:
            yield Bot(host, model)


# The floor


class Floor:
    """The least that such a bot does: ask the model, and write what it said to disk."""

    def __init__(self, folder: str, model: Model) -> None:
        self.model = model
        self.db = apsw.Connection(f"{folder}/floor.sqlite")
        settings = ("journal_mode = WAL", "synchronous = FULL")
        for line in (*(f"PRAGMA {one}" for one in settings), "CREATE TABLE said (chat, text)"):
            self.db.execute(line).fetchall()

    async def say(self, chat: str, text: str = "") -> float:
        began = time.perf_counter()
        reply = await self.model.complete(())
        self.db.execute("INSERT INTO said VALUES (?, ?)", (chat, reply.text))
        return time.perf_counter() - began


# What is measured


def p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def spread(values: Sequence[float], unit: float = 1e3, digits: int = 1) -> str:
    """The median, and the least and the most of the rounds."""
    low, high = min(values) * unit, max(values) * unit
    return f"{statistics.median(values) * unit:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


async def one_at_a_time(say: Callable[..., Any], names: list[str]) -> list[float]:
    return [await say(name) for name in names]


async def all_at_once(one: Bot, names: list[str]) -> list[float]:
    began = time.perf_counter()
    await asyncio.gather(*(one.say(name) for name in names))
    return [(time.perf_counter() - began) / len(names)]


async def steady(one: Bot, names: list[str]) -> list[float]:
    """What each message took longer than its model."""
    one.model.seconds = SLOW

    async def later(name: str, seconds: float) -> float:
        await asyncio.sleep(seconds)
        return await one.say(name) - SLOW

    dice = random.Random(4)
    took = await asyncio.gather(*(later(name, dice.uniform(0, STREAM)) for name in names))
    one.model.seconds = 0.0
    return took


async def beside_a_slow_tool(one: Bot, names: list[str]) -> list[float]:
    """What other chats' messages take while a tool of one chat is at work for two seconds."""
    one.model.texts["slow"] = "DAWDLE:"
    slow = asyncio.ensure_future(one.say("slow", "slow"))
    took = []
    for name in itertools.cycle(names):
        if slow.done():
            break
        took.append(await one.say(name))
    assert await slow >= 2
    return took


async def cost(count: int, rounds: int) -> None:
    names = [f"chat-{number}" for number in range(count)]
    print(f"| a message of {count} chats | when | p50, ms | p95, ms | floor, p95, ms | ratio | CPU, ms |")
    print("|---+---+---+---+---+---+---|")
    async with bot() as one:
        with tempfile.TemporaryDirectory() as folder:
            floor = Floor(folder, one.model)
            ways: dict[str, Callable[[], Awaitable[list[float]]]] = {
                "one at a time": lambda: one_at_a_time(one.say, names),
                "all at once, its share": lambda: all_at_once(one, names),
                "a steady stream": lambda: steady(one, names),
                "beside a slow tool": lambda: beside_a_slow_tool(one, names),
            }
            for kind, text in TEXTS.items():
                one.model.text = text
                await one_at_a_time(one.say, names)  # each chat has begun
                found: dict[str, list[tuple[float, float, float, float]]] = {}
                for _ in range(rounds):
                    least = p95(await one_at_a_time(floor.say, names))
                    for when, way in ways.items():
                        cpu, told = time.process_time(), one.told
                        took = await way()
                        cpu = (time.process_time() - cpu) / (one.told - told)
                        row = (statistics.median(took), p95(took), least, cpu)
                        found.setdefault(when, []).append(row)
                for when, rows in found.items():
                    middle, most, floors, cpus = zip(*rows, strict=True)
                    ratio = f"{statistics.median(most) / statistics.median(floors):.1f}"
                    told_ = (spread(middle), spread(most), spread(floors, digits=2), ratio, spread(cpus))
                    print(f"| {kind} | {when} | " + " | ".join(told_) + " |", flush=True)


def resident() -> int:
    """The memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def memory(count: int, messages: int = 5) -> None:
    """What a chat keeps when it has had some messages and waits for the next."""
    print("| chats | messages in each | resident, KB a chat | traced, KB a chat |")
    print("|---+---+---+---|")
    async with bot() as one:
        for name in range(20):
            await one.say(f"warm-{name}")
        gc.collect()
        tracemalloc.start()
        before, traced = resident(), tracemalloc.get_traced_memory()[0]
        for number in range(messages):
            one.model.text = f"{TEXTS['words']} {number}"
            for name in range(count):
                await one.say(f"chat-{name}")
        one.model.took.clear()
        gc.collect()
        more = resident() - before
        kept = tracemalloc.get_traced_memory()[0] - traced
        if "--snapshot" in sys.argv:
            for line in tracemalloc.take_snapshot().statistics("lineno")[:25]:
                print(line, file=sys.stderr)
        tracemalloc.stop()
        print(f"| {count} | {messages} | {more / count / 1e3:.0f} | {kept / count / 1e3:.0f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=["cost", "memory", []])
    parser.add_argument("--chats", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--snapshot", action="store_true", help="show where the memory is")
    given = parser.parse_args()
    for part in given.parts or ("cost", "memory"):
        print()
        asyncio.run(cost(given.chats, given.rounds) if part == "cost" else memory(given.chats))
