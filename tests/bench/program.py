"""A small program with two inner calls: ours, raw Monty and smolagents' executor. Prints an Org table.

python tests/bench/program.py [--rounds N]; smolagents (pip install smolagents) is measured where it is.
Ours is check + compile + run, each inner call through a door with policy, limits, audit and receipts.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from quoth.agent.client import AsyncAgent
from quoth.tools.program import compiler as program
from quoth.tools.program.compiler import compile_program
from quoth.tools.sandbox.macros import compile_expanded

LISP = """
(setv first (echo :text "one two three") second (echo :text "four five"))
(let [words (+ (.split first) (.split second))]
  (sum (lfor word words :if (> (len word) 3) (len word))))
"""
PYTHON = """
first = echo(text="one two three")
second = echo(text="four five")
words = first.split() + second.split()
sum([len(word) for word in words if len(word) > 3])
"""
QUOTES = """(setv form '(read-file :path "a" :n 1)) (+ 10 (len (+ `(do ~form) '(x))))"""
MACROS = f"""
(defmacro unless2 [test #* body] `(if ~test None (do ~@body)))
{"(unless2 (= 1 2) 13)" * 50}
"""
ANSWER = 13
Act = Callable[[], Awaitable[Any]]


def echo(text: str) -> str:
    return text


def with_agent(agent: AsyncAgent, *, again: bool = False) -> Act:
    """All of it; with ``again`` the program is known from before."""

    async def act() -> Any:
        if not again:
            program._compiled.cache_clear()
        return (await agent.eval(LISP)).value

    return act


def with_sandbox(agent: AsyncAgent, text: str = LISP) -> Act:
    """Ours without a door: what checking, compiling and running cost."""
    sandbox: Any = agent.context().sandbox

    async def call(form: Any, name: str) -> Any:
        return form.args["text"]

    async def act() -> Any:
        program._compiled.cache_clear()
        return (await sandbox.run(await compile_expanded(text, ["echo"], sandbox), ["echo"], call))[0]

    return act


async def only_compiled() -> Any:
    program._compiled.cache_clear()
    compile_program(LISP)
    return ANSWER


def with_monty(pool: Any) -> Act:
    async def act() -> Any:
        async with pool.checkout() as session:
            return await session.feed_run(PYTHON, external_lookup={"echo": echo})

    return act


def with_smolagents() -> Act:
    executor = import_module("smolagents.local_python_executor").LocalPythonExecutor([])
    executor.send_tools({"echo": echo})

    async def act() -> Any:
        return executor(PYTHON).output

    return act


def processor() -> float:
    """Seconds of processor that this process and the sandbox's workers have used."""
    used = time.process_time()
    for listed in Path("/proc/self/task").glob("*/children"):
        for child in listed.read_text().split():
            for task in Path(f"/proc/{child}/task").glob("*/schedstat"):
                used += int(task.read_text().split()[0]) / 1e9
    return used


async def seconds(act: Act, repeat: int) -> tuple[float, float]:
    """What a program takes: seconds, and seconds of processor."""
    used, started = processor(), time.perf_counter()
    for _ in range(repeat):
        await act()
    return (time.perf_counter() - started) / repeat, (processor() - used) / repeat


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


async def measure(root: Path, rounds: int, repeat: int) -> None:
    import pydantic_monty as monty

    async with AsyncAgent(workspace=root, model="scripted:none") as agent, monty.AsyncMonty() as pool:
        acts: dict[str, Act] = {
            "quoth, all of it": with_agent(agent),
            "quoth, the same program again": with_agent(agent, again=True),
            "quoth without the door": with_sandbox(agent),
            "a program of two quotes, without the door": with_sandbox(agent, QUOTES),
            "50 calls of a macro, without the door": with_sandbox(agent, MACROS),
            "quoth, check + compile alone": only_compiled,
            "raw Monty": with_monty(pool),
        }
        if importlib.util.find_spec("smolagents"):
            acts["smolagents LocalPythonExecutor"] = with_smolagents()
        else:
            print("smolagents is not installed (pip install smolagents): it is left out.", file=sys.stderr)
        for name, act in acts.items():  # once, so that all is warm
            found = await act()
            assert found == ANSWER, f"{name}: {found}"
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in acts}
        for _ in range(rounds):  # interleaved, so that a busy moment hits all alike
            for name, act in acts.items():
                times[name].append(await seconds(act, repeat))
    print(
        "| what | ms | ms of processor | raw Monty = 1, processor | smolagents = 1 |\n|---+---+---+---+---|"
    )
    peers = ("raw Monty", "smolagents LocalPythonExecutor")
    for name, found in times.items():
        walls, used = zip(*found, strict=True)
        ratios = [
            spread([mine / other for mine, (_, other) in zip(used, times[peer], strict=True)])
            if peer in times
            else "-"
            for peer in peers
        ]
        took = (spread([one * 1e3 for one in each]) for each in (walls, used))
        print(f"| {name} | {' | '.join((*took, *ratios))} |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument("--repeat", type=int, default=10)
    given = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="quoth-program-") as folder:
        asyncio.run(measure(Path(folder), given.rounds, given.repeat))


if __name__ == "__main__":
    main()
