"""What a write costs with what was there kept, beside the same write without. Prints an Org table.

python tests/bench/undo.py [--rounds N]

Each call of write-file goes through the whole door, with receipts, transcript and audit on disk. The two ways
take turns, call by call, on files that hold another text each time; the figure is the median of the ratios of
neighbours, for both are as slow as the disk is at that moment.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import tempfile
import time
from pathlib import Path

from quoth.agent.client import AsyncAgent
from quoth.tools.lisp.forms import CallForm

SIZES = (200, 10_000, 100_000, 1_000_000)


def text(size: int, seed: int) -> str:
    """Lines of words, as compressible as a program is."""
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(400)]
    lines: list[str] = []
    while size > 0:
        lines.append(" ".join(rng.choices(words, k=8)))
        size -= len(lines[-1]) + 1
    return "\n".join(lines)


async def measure(rounds: int) -> None:
    print("| bytes | without, ms | kept, ms | ratio |\n|-")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"] = f"{folder}/state"
        work = Path(folder, "work")
        work.mkdir()
        async with AsyncAgent(workspace=work, consent="yes", session="bench") as agent:
            versions = agent.door.versions
            for size in SIZES:
                texts = [text(size, seed) for seed in range(20)]
                took: dict[bool, list[float]] = {False: [], True: []}
                for turn in range(rounds + 2):
                    for kept in (False, True) if turn % 2 else (True, False):
                        agent.door.versions = versions if kept else None
                        name = "kept.txt" if kept else "plain.txt"
                        args = {"path": name, "content": texts[turn % 20] + f"\n{turn}"}
                        begun = time.perf_counter()
                        result = await agent.call(CallForm("write-file", args))
                        took[kept].append((time.perf_counter() - begun) * 1000)
                        assert result.ok, result.message
                plain, kept_ms = took[False][2:], took[True][2:]
                ratio = statistics.median(b / a for a, b in zip(plain, kept_ms, strict=True))
                medians = f"{statistics.median(plain):.2f} | {statistics.median(kept_ms):.2f}"
                print(f"| {size:,} | {medians} | {ratio:.2f} |")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=100)
    asyncio.run(measure(options.parse_args().rounds))
