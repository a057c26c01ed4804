"""What a dry run costs: a sum over the program, beside the event loop, within limits that the plan names."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from dry_runs import TEXT, House
from hypothesis import given
from hypothesis import strategies as st
from words import tool

from quoth.tools.dryrun import explore, instrument
from quoth.tools.dryrun.instrument import helpers
from quoth.tools.program.compiler import TOO_DEEP, ProgramError, compile_program

NOT_ALL = "; This plan is incomplete: the program could not be followed everywhere."


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    here = House()
    yield here
    here.loop.run_until_complete(here.sandbox.aclose())
    here.loop.close()


def setvs(number: int) -> str:
    return "".join(f"(setv a{each} {each})" for each in range(number))


def handlers(number: int) -> str:
    return "(except [ValueError] 1)" * number


def returns(number: int) -> str:
    return "".join(f"(when (f {each}) (return {each}))" for each in range(number))


def nodes(python: str) -> int:
    return sum(1 for _ in ast.walk(ast.parse(python)))


def added(text: str) -> int:
    """The nodes of the instrumented program beyond twenty for each of its own; 0 where it is refused."""
    try:
        program = compile_program(text)
        made = instrument.for_dry_run(program, "@@")
    except (ProgramError, instrument.NotFollowedError):
        return 0
    own = made.removeprefix(helpers("@@"))
    assert own != made
    return nodes(own) - 20 * nodes(program.python)


# Size

HUGE = [
    f"(try {setvs(1500)} {handlers(600)})",  # 32 KB became 6.4 GB
    f"(defn f [] (try {setvs(400)} {returns(100)} {handlers(2)}))",
    f"(defn f [] (try (try {setvs(400)} {returns(60)} {handlers(20)}) {handlers(20)}))",
    f"(defn f [] (try (for [i (f)] {setvs(300)} (if i (break) (continue))) {returns(90)} {handlers(9)}))",
    "(try" * 12 + setvs(300) + handlers(9) + ")" + (handlers(9) + ")") * 11,
]


@pytest.mark.parametrize("text", HUGE, ids=range(len(HUGE)))
def test_the_instrumented_program_is_a_sum_and_not_a_product(text: str) -> None:
    assert added(text) <= 12 * instrument.MAX_ADDED


LEAF = st.sampled_from(["(setv x (f 1))", "(return 1)", "(f 2)", "(setv [p q] (f 3))", "(+= n 1)"])
WRAPPED = [
    "(try {} (except [e ValueError] (f e)))",
    "(for [i (f)] {})",
    "(while (f 4) {})",
    "(when (f 5) {})",
    "(cond (f 6) (do {}) (f 7) 8 True 9)",
    "(setv q (and (f 6) (or (do {}) q n)))",
    "(setv q (lfor i (f) :if i (g (do {}))))",
    "(defn g [n] (nonlocal x) {})",
    "(setv g (fn [n] {}))",
    "(match (f 8) 1 (do {}) _ 2)",
]


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(inner, min_size=1, max_size=3).map(" ".join)
    return st.builds(
        lambda shape, body, many, tail: shape.format(body * many) + handlers(0) + tail,
        st.sampled_from([*WRAPPED, "(try {} " + handlers(40) + ")", "(do " + setvs(40) + " {})"]),
        parts,
        st.integers(1, 8),
        st.sampled_from(["", "(return 2)"]),
    )


@given(body=st.recursive(LEAF, _wider, max_leaves=12))
def test_no_generated_program_grows_beyond_the_limit(body: str) -> None:
    assert added(f"(defn f [n] {body})") <= 12 * instrument.MAX_ADDED


def test_the_program_of_many_handlers_has_its_plan(house: House) -> None:
    assert house.tree(f"(sh 1) (try {setvs(1500)} {handlers(600)}) (sh a7)") == ["(sh :x 1)", "(sh :x 7)"]


def test_a_program_that_grows_too_large_is_not_built_and_the_plan_says_where(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(instrument, "MAX_ADDED", 10)
    assert house.tree(f"(defn long-one [] (try {setvs(20)} {handlers(2)}))") == [
        "; not followed further: its try forms and loops change too many variables (in long-one, at a try)",
        NOT_ALL,
    ]


# Depth

MANY = [
    "(and {})",
    "(or {})",
    "(+ {})",
    "(setv s (sh 1)) (and s {})",
    "(setv d (sh 1)) (get d {})",
    "(setv s (sh 1)) (or (and {0}) (and {0}))",
    "(setv s 1) (. s {names})",
    "(setv s (sh 1)) (cond {pairs})",
]


@pytest.mark.parametrize("number", [150, 300])
@pytest.mark.parametrize("text", MANY)
def test_many_operands_end_in_a_plan_or_in_a_sentence(house: House, text: str, number: int) -> None:
    words = " ".join(["1"] * number)
    many = text.format(words, names=" ".join(["real"] * number), pairs=f"s {number} " * (number // 3))
    result = house.run(many)
    said = result.value["text"] if result.ok else result.message
    assert "RecursionError" not in said
    assert "it ends here" not in said or "has no attribute" in said
    assert result.ok or said == TOO_DEEP


@pytest.mark.parametrize("text", ["(and {})", "(setv s (sh 1)) (or {})", "(setv s (sh 1)) (cond {pairs})"])
def test_five_thousand_operands_do_too(house: House, text: str) -> None:
    result = house.run(text.format("1 " * 5000, pairs="s 1 " * 2500))
    said = result.value["text"] if result.ok else result.message
    assert TOO_DEEP in said


def test_an_and_is_followed_that_runs(house: House) -> None:
    text = f"(setv x 1) (sh (and {'x ' * 150}))"
    assert house.tree(text) == ["(sh :x 1)"]


# Time


def test_it_is_instrumented_beside_the_event_loop(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def watched(*args: Any) -> str:
        seen.append(threading.current_thread())
        return instrument.for_dry_run(*args)

    monkeypatch.setattr(explore, "for_dry_run", watched)
    assert house.tree("(setv a 1) (sh a) (sh 2)") == ["(sh :x 1)", "(sh :x 2)"]
    assert seen
    assert threading.current_thread() not in seen


def test_a_dry_run_that_takes_too_long_says_where_it_stopped(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]

    def dawdle(x: Any) -> int:
        now[0] += 1000
        return 1

    monkeypatch.setattr(explore, "monotonic", lambda: now[0])
    slow = tool("slow", body=dawdle, params=TEXT, effects=["reads"])
    assert house.tree("(slow 2) (sh 3)", slow) == [
        "(slow :x 2)",
        "; not followed further: the dry run took longer than 60 s",
        NOT_ALL,
    ]
