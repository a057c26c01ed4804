"""What a step of one form costs in a flight, as the plan grows, beside the same form through agent.eval and
agent.call. Prints an Org table of CPU and wall milliseconds.

python tests/bench/flights.py [--steps 10 100 1000] [--rounds N]
Each round flies a new plan of each length and then makes as many programs and calls, in one agent with a
store on disk. All blocks differ, as they do where people write them. That a plan is read and checked is
counted too.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from quoth import Agent

STEPS = [10, 100, 1000]
MOST = 200  # calls and programs in a round, at most


def form(number: int) -> str:
    return f'(echo :text "line {number}")'


def plan(first: int, steps: int) -> str:
    head = "#+TODO: PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED\n"
    blocks = (f"* PLAN Step {n}\n#+begin_src hy\n{form(first + n)}\n#+end_src\n" for n in range(steps))
    return head + "".join(blocks)


def measured(work: Callable[[], None], number: int) -> tuple[float, float]:
    """CPU and wall milliseconds of each of so many things."""
    cpu, wall = time.process_time(), time.monotonic()
    work()
    return (time.process_time() - cpu) * 1000 / number, (time.monotonic() - wall) * 1000 / number


def spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, nargs="+", default=STEPS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    kinds = ("flight", "agent.eval", "agent.call")
    found: dict[tuple[int, str], list[tuple[float, float]]] = {}
    first = 0
    with tempfile.TemporaryDirectory() as folder, Agent(workspace=folder, user="ann") as agent:

        def fly(first: int, steps: int) -> None:
            path = Path(folder) / f"p{first}.org"
            path.write_text(plan(first, steps))
            assert agent.fly(path).ok
            path.unlink()

        def evaluate(first: int, number: int) -> None:
            assert all(agent.eval(form(first + n)).ok for n in range(number))

        def call(first: int, number: int) -> None:
            assert all(agent.call(form(first + n)).ok for n in range(number))

        fly(1_000_000, 5)
        evaluate(1_000_010, 5)
        call(1_000_020, 5)
        for _ in range(options.rounds):
            for steps in options.steps:
                for kind, work in zip(kinds, (fly, evaluate, call), strict=True):
                    number = steps if work is fly else min(steps, MOST)
                    cost = measured(partial(work, first, number), number)
                    found.setdefault((steps, kind), []).append(cost)
                    first += number
    print("| steps | what | CPU ms a step | wall ms a step | CPU, agent.call = 1 |\n|---+---+---+---+---|")
    for steps in options.steps:
        floor = statistics.median(cpu for cpu, _ in found[steps, "agent.call"])
        for kind in kinds:
            cpu, wall = (list(one) for one in zip(*found[steps, kind], strict=True))
            times = statistics.median(cpu) / floor
            print(f"| {steps} | {kind} | {spread(cpu)} | {spread(wall)} | {times:.1f} |")


if __name__ == "__main__":
    main()
