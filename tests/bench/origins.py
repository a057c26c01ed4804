"""What it costs to know where values come from. Prints Org tables: a step with rules about origins beside one
without, the memory of the index beside the texts it has seen, and its look-ups.

python tests/bench/origins.py [--steps N] [--size BYTES]

Each step of a run calls a tool that returns mails and one that sends to an address in them. Two runs take
turns, step by step, in one process: one under a rule that allows the sending, one under a rule that allows it
only to known addresses. The figure is the median of the ratios of neighbours, of processor time with all
threads.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

from quoth import AsyncAgent, cognitive_tool
from quoth.agent.run.limits import RunLimits
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.origin.index import OriginIndex

RULES = {
    "without": "(allow (send-to))",
    "with": "(ask (send-to :address (not (or (in-task) (in-field)))))\n(allow (send-to))",
}
_WORDS = ["".join(random.Random(n).choices("abcdefghijklmnop", k=2 + n % 8)) for n in range(900)]


def mails(size: int, seed: int) -> list[dict[str, Any]]:
    """Mails of about 2,500 bytes."""
    rng = random.Random(seed)
    found, left = [], size
    while left > 0:
        body = "\n".join(" ".join(rng.choices(_WORDS, k=12)) for _ in range(35))
        sender = f"{rng.choice(_WORDS)}.{rng.randint(1, 10**6)}@{rng.choice(_WORDS)}.example"
        subject = " ".join(rng.choices(_WORDS, k=5))
        found.append({"id": rng.randint(1, 10**9), "sender": sender, "subject": subject, "body": body})
        left -= sum(len(str(value)) for value in found[-1].values())
    return found


class Turns:
    """Lets two runs step in turn, and notes what each step took."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {name: [] for name in RULES}
        self._turn = asyncio.Condition()
        self._whose = next(iter(RULES))
        self._begun = 0.0

    async def next(self, name: str) -> None:
        async with self._turn:
            if self._begun and self._whose == name:
                self.took[name].append((time.process_time() - self._begun) * 1000)
                self._whose = next(other for other in RULES if other != name)
                self._turn.notify_all()
            await self._turn.wait_for(lambda: self._whose in (name, ""))
            self._begun = time.process_time()

    async def leave(self) -> None:
        async with self._turn:
            self._whose = ""
            self._turn.notify_all()


class Alternating(ScriptedBackend):
    """A model that steps when it is its run's turn."""

    def __init__(self, name: str, turns: Turns, replies: list[str]) -> None:
        super().__init__(list(replies))
        self.side, self.turns = name, turns

    async def complete(self, *args: Any, **more: Any) -> Completion:
        await self.turns.next(self.side)
        return await super().complete(*args, **more)


async def run(name: str, turns: Turns, folder: Path, seen: list[list[dict[str, Any]]]) -> None:
    @cognitive_tool(replace=True, effects=["reads"], free_text=["subject", "body"])
    def read_mails(page: int) -> list[dict[str, Any]]:
        """Read mails."""
        return seen[page]

    @cognitive_tool(replace=True, effects=["net"])
    def send_to(address: str) -> str:
        """Send it."""
        return "sent"

    replies = ["(read-mails :page 0)"]
    for page, found in enumerate(seen):
        then = f"(read-mails :page {page + 1})" if page + 1 < len(seen) else ""
        replies.append(f'(send-to :address "{found[3]["sender"]}") {then}')
    (work := folder / name).mkdir()
    (work / "rules.hy").write_text(RULES[name])
    limits = RunLimits(steps=len(seen) + 5, calls=3 * len(seen), context=1_000_000_000)
    model = Alternating(name, turns, [*replies, "Done."])
    async with AsyncAgent(
        workspace=work, tools=[read_mails, send_to], model=model, policy=work / "rules.hy", limits=limits
    ) as agent:
        reply = await agent.run("Answer my mails.")
        await turns.leave()
    assert reply.text == "Done.", reply
    assert all(call.result.ok for call in reply.calls), reply.calls


def steps(count: int, size: int) -> None:
    seen = [mails(size, seed) for seed in range(count)]

    async def both() -> Turns:
        turns = Turns()
        with tempfile.TemporaryDirectory() as folder:
            os.environ["QUOTH_STATE"] = f"{folder}/state"
            await asyncio.gather(*(run(name, turns, Path(folder), seen) for name in RULES))
        return turns

    took = asyncio.run(both()).took
    plain, known = (took[name][3:count] for name in RULES)
    ratio = statistics.median(b / a for a, b in zip(plain, known, strict=False))
    print("| steps | result, bytes | step without, ms | with, ms | ratio |\n|-")
    medians = f"{statistics.median(plain):.2f} | {statistics.median(known):.2f}"
    print(f"| {count} | {size:,} | {medians} | {ratio:.3f} |")


def index_alone(size: int) -> None:
    print("\nA look-up of a value in the task, in a field, in a text and nowhere, in µs:\n")
    print("| results | texts, MB | index, MB | of the texts | task | field | text | nowhere |\n|-")
    for count in (10, 50, 200):
        seen = [mails(size, seed) for seed in range(count)]
        texts = sum(len(str(value)) for found in seen for mail in found for value in mail.values())
        tracemalloc.start()
        index = OriginIndex()
        index.say("Answer the mail of ann@x.example.")
        for found in seen:
            index.result("read-mails", found, ("subject", "body"))
        index.find("ann@x.example")
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        last = seen[-1]
        cost = [
            _micros(index, ["ann@x.example", "Ann@X.example", "the mail"]),
            _micros(index, [mail["sender"] for mail in last]),
            _micros(index, [" ".join(mail["body"].split()[5:9]) for mail in last]),
            _micros(index, [f"{number}@evil.example" for number in range(40)]),
        ]
        shown = " | ".join(f"{one:,.1f}" for one in cost)
        print(f"| {count} | {texts / 1e6:.1f} | {used / 1e6:.1f} | {used / texts:.2f} | {shown} |")


def _micros(index: OriginIndex, values: list[Any]) -> float:
    took = []
    for value in values:
        begun = time.perf_counter()
        index.find(value)
        took.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(took)


def main() -> None:
    parser = argparse.ArgumentParser(description="What it costs to know where values come from.")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--size", type=int, default=100_000)
    given = parser.parse_args()
    steps(given.steps, given.size)
    index_alone(given.size)


if __name__ == "__main__":
    main()
