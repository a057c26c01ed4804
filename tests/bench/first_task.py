"""How often a model solves the tasks in words that README, the page start and the banner of the REPL suggest.
Not a test; it prints an Org table. A reply at temperature 0 depends on the name of the folder alone, so each
repeat is in a folder of another name.

python tests/bench/first_task.py [local|local-small|any --model spec] [--repeat 5]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from quoth import Backend, ModelOptions
from quoth.agent.client import AsyncAgent
from quoth.agent.repl.repl import SUGGESTION
from quoth.agent.terminal.output import FIRST_TASK
from quoth.neuro.backends.select import choose_backend

SHOP = Path(__file__).parents[2] / "plans" / "examples" / "shop"
NAMES = ("shop", "fruit", "my-project", "quoth", "2026")
TASKS = ((FIRST_TASK, ("30",)), (SUGGESTION.format("tuesday.txt"), ("apples", "3", "plums", "9")))


async def bench(backend: Backend, task: str, words: tuple[str, ...], repeat: int) -> int:
    solved = 0
    for number in range(repeat):
        with tempfile.TemporaryDirectory() as made:
            root = Path(made) / NAMES[number % len(NAMES)]
            shutil.copytree(SHOP, root)
            began = time.monotonic()
            async with AsyncAgent(workspace=root, model=ModelOptions(backend)) as agent:
                reply = await agent.run(task)
        good = reply.status == "done" and all(word in reply.text for word in words)
        solved += good
        print(
            f"| {root.name} | {'yes' if good else 'no'} | {len(reply.calls)} "
            f"| {time.monotonic() - began:.0f} | {' '.join(reply.said.split())[:160]} |",
            flush=True,
        )
    return solved


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("model", nargs="?", default="local")
    options.add_argument("--repeat", type=int, default=5)
    asked = options.parse_args()
    backend = choose_backend(asked.model)
    try:
        for task, words in TASKS:
            print("| folder | solved | calls | s | answer |\n|---+---+---+---+---|")
            solved = await bench(backend, task, words, asked.repeat)
            print(f"{solved} of {asked.repeat} solved by {asked.model}: {task}\n", flush=True)
    finally:
        await backend.aclose()


if __name__ == "__main__":
    asyncio.run(main())
