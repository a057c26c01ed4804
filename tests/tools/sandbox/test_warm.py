"""A session begins with the wall that an earlier one built: the same wall, and nothing of that session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from quoth.tools.errors import ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.program.compiler import compile_program
from quoth.tools.sandbox import runner
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox
from quoth.tools.sandbox.wall import raise_wall


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(SandboxLimits(seconds=20.0, calls=20))
    yield made
    await made.aclose()


async def answer(form: CallForm, name: str) -> Any:
    return form.args.get("text", form.positional)


async def run(sandbox: Sandbox, text: str) -> Any:
    return (await sandbox.run(compile_program(text, ["echo"]), ["echo"], answer))[0]


async def test_the_wall_is_built_once_for_all_programs(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[None] = []

    async def counted(session: Any) -> None:
        built.append(None)
        await raise_wall(session)

    monkeypatch.setattr(runner, "raise_wall", counted)
    assert [await run(sandbox, '[(echo :text "a")]') for _ in range(3)] == [["a"]] * 3
    assert len(built) == 1


async def test_nothing_of_a_program_is_in_the_session_of_the_next(sandbox: Sandbox) -> None:
    await run(sandbox, "(setv secret 1) (defn len [_] 0) (setv dict 1 list 2) secret")
    with pytest.raises(ToolError, match="secret"):
        await run(sandbox, "secret")
    assert await run(sandbox, "(len (list [1 2]))") == 2


async def test_a_later_program_meets_the_same_wall_and_the_same_limits(sandbox: Sandbox) -> None:
    for _ in range(2):
        with pytest.raises(ToolError, match=r"too large|hashed"):
            await run(sandbox, "(setv x 1) (for [_ (range 60)] (setv x #(x x))) (echo :text #{x})")
        with pytest.raises(ToolError, match="its limit of calls"):
            await run(sandbox, '(for [_ (range 30)] (echo :text "a"))')


async def test_a_call_that_waits_gives_its_worker_to_a_path_that_wants_one(sandbox: Sandbox) -> None:
    gone = sandbox._when_wanted()
    sandbox._free = asyncio.Semaphore(1)

    async def hold() -> None:
        async with sandbox.worker():
            await gone

    holder = asyncio.create_task(hold())
    await asyncio.sleep(0)
    assert await asyncio.wait_for(run(sandbox, '[(echo :text "b")]'), 60) == ["b"]
    await holder
    assert sandbox._waiting == 0
    assert sandbox._told == set()
