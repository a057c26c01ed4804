"""How often a model solves the task in words that README, the page start and the banner of the REPL suggest.
Not a test; it prints an Org table. A reply at temperature 0 depends on the name of the folder alone, so each
repeat is in a folder of another name.

python tests/bench/first_task.py [--model local] [--repeat 5] [--folder plans/examples/shop]
                                 [--task TEXT --says WORD …]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from pathlib import Path

from quoth import ModelOptions
from quoth.agent.client import AsyncAgent
from quoth.neuro.backends.select import choose_backend

ROOT = Path(__file__).parents[2]
NAMES = ("shop", "fruit", "my-project", "quoth", "2026", "a", "Notes", "src")


async def bench(model: str, folder: Path, task: str, words: list[str], repeat: int) -> int:
    backend, solved = choose_backend(model), 0
    print("| folder | solved | calls | s | answer |\n|---+---+---+---+---|")
    try:
        for number in range(repeat):
            with tempfile.TemporaryDirectory() as made:
                root = Path(made) / NAMES[number % len(NAMES)]
                shutil.copytree(folder, root)
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
    finally:
        await backend.aclose()
    print(f"{solved} of {repeat} solved by {model}: {task}")
    return solved


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--model", default="local")
    options.add_argument("--repeat", type=int, default=5)
    options.add_argument("--folder", type=Path, default=ROOT / "plans/examples/shop")
    options.add_argument("--task", default="How many pears were sold on Monday? Look in monday.txt.")
    options.add_argument("--says", nargs="+", default=["30"], help="words that the answer must contain")
    asked = options.parse_args()
    asyncio.run(bench(asked.model, asked.folder, asked.task, asked.says, asked.repeat))


if __name__ == "__main__":
    main()
