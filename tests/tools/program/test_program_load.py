"""Many programs at once through one agent: each gets its own result, and nothing is left behind.

Knows the agent's face and what the system says of this process; nothing of how programs wait for a worker.
"""

from __future__ import annotations

import asyncio
import gc
import os
from pathlib import Path
from typing import Any

import pytest
from examples import many
from sentences import IT_EXCEEDED_ITS_TIME
from words import async_agent, sandboxes, tool

from quoth.agent.client import AsyncAgent
from quoth.tools.call.call import deny
from quoth.tools.sandbox.pool import MAX_WORKERS, SandboxLimits
from quoth.tools.sandbox.runner import Sandbox

PROGRAMS = many(4)  # over a thousand under ``explore``
LIMITS = SandboxLimits(seconds=0.5, memory=64 * 1024 * 1024)


def expected(n: int) -> tuple[str, str, Any]:
    """The ``n``-th program, and the status and the value (or the end of the message) it has."""
    if n % 200 == 7:
        return f"(while True {n})", "error", f"{IT_EXCEEDED_ITS_TIME}."
    return (
        (f"(+ {n} 1)", "ok", n + 1),
        (f'(echo :text "{n}")', "ok", str(n)),
        (f'(lfor x (range 3) (echo :text f"{{x}} of {n}"))', "ok", [f"{x} of {n}" for x in range(3)]),
        (f"(/ {n} 0)", "error", "ZeroDivisionError: division by zero"),
        (f"(closed :n {n})", "denied", f"never. (in (closed :n {n}))"),
        (f"(try (closed :n {n}) (except [PermissionError] {n}))", "ok", n),
        (f"(later :n {n})", "ok", n),
        (f"(do-mac {n})", "invalid", "^"),
        (f"(len (lfor i (range {n}) (* i i)))", "ok", n),
        (f'(raise (ValueError "{n}"))', "error", f"ValueError: {n}"),
    )[n % 10]


async def later(n: int) -> int:
    await asyncio.sleep(0.01)
    return n


@pytest.fixture
def busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncAgent:
    """An agent with a tool that waits, and one that is always denied."""
    monkeypatch.setattr("quoth.tools.sandbox.runner.Sandbox", lambda: Sandbox(LIMITS))
    one: dict[str, Any] = {"params": {"n": {"type": int}}}
    closed = tool("closed", body=later, guard=lambda: deny("never"), **one)
    return async_agent(tmp_path, tools=[closed, tool("later", body=later, **one)])


async def round_of(agent: AsyncAgent, programs: list[tuple[str, str, Any]]) -> None:
    """Run all the programs at once and look at each result."""
    results = await asyncio.gather(*(agent.eval(text) for text, _, _ in programs))
    for (text, status, said), result in zip(programs, results, strict=True):
        assert result.status == status, (text, result)
        if result.ok:
            assert result.value == said, text
        else:
            assert result.message.endswith(said), (text, result.message)


def handles() -> int:
    return len(os.listdir("/proc/self/fd"))


def memory() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def test_many_programs_at_once_have_their_results_and_leave_nothing(
    busy: AsyncAgent, tmp_path: Path
) -> None:
    programs = [expected(n) for n in range(PROGRAMS)]
    async with async_agent(tmp_path) as first:  # the sandbox's library opens some handles once a process
        await first.eval("1")
    before = handles()
    await round_of(busy, programs)
    assert 1 <= sandboxes() <= MAX_WORKERS
    first_memory, first_handles = memory(), handles()
    await round_of(busy, programs)
    assert sandboxes() <= MAX_WORKERS
    # Two rounds alike: what the second adds is a leak. The audit in memory is what may grow.
    assert memory() / first_memory < 1.5
    assert handles() <= first_handles + 8
    await busy.aclose()
    assert sandboxes() == 0
    assert handles() <= before


async def test_programs_that_are_cancelled_leave_nothing(busy: AsyncAgent) -> None:
    running = [asyncio.create_task(busy.eval(f"(while True {n})")) for n in range(100)]
    await asyncio.sleep(0.3)
    for task in running:
        task.cancel()
    assert all(
        isinstance(end, BaseException) for end in await asyncio.gather(*running, return_exceptions=True)
    )
    assert (await busy.eval("(+ 1 2)")).value == 3
    await busy.aclose()
    assert sandboxes() == 0


async def test_a_worker_that_is_left_is_seen(busy: AsyncAgent) -> None:
    await busy.eval("1")
    assert sandboxes() >= 1
    await busy.aclose()


async def test_programs_inside_of_programs_wait_for_no_worker_that_waits_for_them(busy: AsyncAgent) -> None:
    nested = [(f'(+ 1 (eval "(+ {n} (later :n 1))"))', "ok", n + 2) for n in range(PROGRAMS)]
    try:
        await round_of(busy, nested)
        assert sandboxes() <= MAX_WORKERS
    finally:
        await busy.aclose()
    assert sandboxes() == 0
