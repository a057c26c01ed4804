"""A program that is one call with literal arguments runs without the sandbox; nobody can tell but by time."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from quoth.tools.errors import Pending, ToolError, ToolFailure
from quoth.tools.lisp.forms import CallForm
from quoth.tools.program import compiler
from quoth.tools.program.compiler import ProgramError, compile_program, free_names
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox

TOOLS = ("echo", "read-file", "eval", "more", "get", "print", "pmap", "class", "grep-search")

LITERAL = [
    '(echo :text "x")',
    '(echo "x")',
    "(more)",
    '(eval "(+ 1 2)")',
    '(eval :form "(f)" :dry-run True)',
    r'(read-file :path "a\nb" :start 1 :end -3)',
    '(echo :as "x" :class None)',
    '(echo [1 2.5 ["a" True]])',
    "(echo :a 1e300 :b 0.1 :c -0.0 :d 0x10 :e 1_000)",
    '(echo "é“\u200b\'\\"")',
    "(echo :text :foo)",
    "(echo :text true :other nil)",
    '(echo :text #[[raw "x" ]])',
]
COMPUTED = [
    '(print "x")',
    '(pmap "x")',
    '(get "x" 0)',
    '(class "x")',
    "(echo :text 12345678901234567890123)",
    '(echo :text "a" "b")',
    "(echo :a_b 1)",
    '(grep_search :pattern "a.b")',
    "(echo :text (+ 1 2))",
    '(echo :text f"{1}")',
    '(echo :text {"a" 1})',
    '(echo :text b"x")',
    "(echo #* [1])",
    '(echo "x") (echo "y")',
    '[(echo "x")]',
    "(setv x 1)",
    '(len "x")',
]


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    made = Sandbox(SandboxLimits(seconds=20.0, calls=1))
    yield made
    await made.aclose()


@pytest.mark.parametrize("text", LITERAL)
def test_a_literal_call_is_the_python_that_hy_would_make(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program, names = compile_program(text, TOOLS), free_names(text, TOOLS)
    assert program.call is not None
    monkeypatch.setattr(compiler, "single_call", lambda forms, names: None)
    monkeypatch.setattr(compiler, "_compiled", compiler._compiled.__wrapped__)
    assert compile_program(text, TOOLS) == dataclasses.replace(program, call=None)
    assert free_names(text, TOOLS) == names


@pytest.mark.parametrize("text", COMPUTED)
def test_every_other_program_is_for_the_sandbox(text: str) -> None:
    assert compile_program(text, TOOLS).call is None


VALUES: dict[str, Any] = {
    "a text": "a",
    "an odd text": "é\u200b\0",
    "half a letter": "\ud800",
    "data": {"a": [1, None, True, 0.5, {"b": []}], "c": float("inf")},
    "a large number": 10**40,
    "a pair": (1, (2, 3)),
    "a set": {1, 2},
    "bytes": b"a",
    "other keys": {1: "a", (2, 3): "b"},
    "a number among texts": type("Text", (str,), {})("a"),
    "a long text": "a" * 1_999_000,
    "too long a text": "a" * 2_100_000,
    "too long a list": [0] * 260_000,
    "an object": object(),
}


@pytest.mark.parametrize("name", VALUES)
async def test_a_value_is_what_the_sandbox_would_make_of_it(sandbox: Sandbox, name: str) -> None:
    made: list[str] = []

    async def call(form: CallForm, use: str) -> Any:
        made.append(f"{use} {form}")
        return VALUES[name]

    assert await outcome(sandbox, call, alone=True) == await outcome(sandbox, call, alone=False)
    assert [made[0]] * 2 == made


FAILURES = {
    "denied": ToolFailure("denied", "No."),
    "a long one": ToolFailure("error", "It failed. " * 1000),
    "invalid": ToolFailure("invalid", "echo takes :text (in (echo :text 1))"),
    "pending": Pending("Somebody has to decide."),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_a_failure_is_told_as_the_sandbox_would(sandbox: Sandbox, name: str) -> None:
    made: list[str] = []

    async def call(form: CallForm, use: str) -> Any:
        made.append(use)
        raise FAILURES[name]

    assert await outcome(sandbox, call, alone=True) == await outcome(sandbox, call, alone=False)
    assert [made[0]] * 2 == made


async def test_a_literal_call_has_no_worker_and_any_other_has_one(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[None] = []
    worker = sandbox.worker
    monkeypatch.setattr(sandbox, "worker", lambda: asked.append(None) or worker())  # type: ignore[func-returns-value]

    async def call(form: CallForm, use: str) -> Any:
        return form.args["text"]

    assert await run(sandbox, '(echo :text "a")', call) == "a"
    assert not asked
    assert await run(sandbox, '(+ "a" (echo :text "a"))', call) == "aa"
    assert len(asked) == 1


async def test_a_program_that_may_make_no_call_makes_none() -> None:
    async def call(form: CallForm, use: str) -> Any:
        raise AssertionError("It was made.")

    with pytest.raises(ProgramError, match="more calls than it may"):
        await run(Sandbox(SandboxLimits(calls=0)), '(echo :text "a")', call)


async def run(sandbox: Sandbox, text: str, made: Callable[..., Any], **changed: Any) -> Any:
    program = dataclasses.replace(compile_program(text, TOOLS), **changed)
    return (await sandbox.run(program, TOOLS, made))[0]


async def outcome(sandbox: Sandbox, call: Callable[..., Any], *, alone: bool) -> Any:
    """What such a program comes to, without the sandbox if it is ``alone`` enough, or how it fails."""
    try:
        value = await run(sandbox, '(echo :text "a")', call, **({} if alone else {"call": None}))
    except (ToolError, ToolFailure) as error:
        return type(error).__name__, getattr(error, "status", ""), str(error)
    except Exception as error:
        return type(error).__name__
    return type(value), repr(value)
