"""What models get wrong: each mistake has its exact message, and the form it shows is right."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mistakes import MISTAKES, Mistake
from sentences import (
    A_TEXT_IS_WRITTEN_IN,
    DOES_NOT_FIT_HERE,
    IS_NOT_DEFINED,
    IS_NOT_KNOWN_HERE,
    THE_PROGRAM_USES,
    WHICH_IS_NOT_DEFINED,
)
from words import complaint

from quoth import Agent
from quoth.tools.advice import instead
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.reader import read_all
from quoth.tools.program.compiler import PROGRAM_LIMITS, ProgramError, compile_program
from quoth.tools.program.explain import undefined
from quoth.tools.program.from_python import from_python
from quoth.tools.program.hint import MAX_LESSON
from quoth.tools.program.idioms import IDIOMS
from quoth.tools.program.linter import spot
from quoth.tools.program.rewriter import rewrite
from quoth.tools.sandbox.runner import Sandbox

FOREIGN = instead("head")
TOOLS = ("echo", "read-file")
PLACE = re.compile(r"line \d+, column \d+: ")


@pytest.fixture(scope="module")
def run() -> Iterator[Callable[[str], Any]]:
    loop, sandbox = asyncio.new_event_loop(), Sandbox()

    async def call(form: CallForm, name: str) -> Any:
        return 1

    def go(text: str) -> Any:
        return loop.run_until_complete(sandbox.run(compile_program(text, TOOLS), TOOLS, call))

    yield go
    loop.run_until_complete(sandbox.aclose())
    loop.close()


def test_the_table_is_large_enough() -> None:
    assert len(MISTAKES) >= 40
    for column in ("name", "wrong"):
        assert len({getattr(row, column) for row in MISTAKES}) == len(MISTAKES)


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row.name)
def test_a_mistake_is_told_with_the_form_that_is_right(run: Callable[[str], Any], row: Mistake) -> None:
    first, *caret = complaint(ProgramError, lambda: run(row.wrong)).split("\n")
    assert PLACE.sub("", first, count=1) == row.message
    assert len(row.message) <= MAX_LESSON
    assert row.fixed in row.message
    if PLACE.match(first):
        assert caret[0].strip() == row.wrong.strip()
        assert caret[1].strip() == "^"
    compile_program(row.fixed, TOOLS)


@pytest.mark.parametrize("head", sorted(FOREIGN))
def test_what_a_foreign_form_should_have_been_compiles(head: str) -> None:
    for arguments in ("x", "x y", "x [y] z", ""):
        said = complaint(ProgramError, lambda text=f"({head} {arguments})": compile_program(text))  # type: ignore[misc]
        assert said.split("\n")[0] == f"line 1, column 1: {head} {IS_NOT_KNOWN_HERE}; write {FOREIGN[head]}"
    compile_program(FOREIGN[head])


def test_what_a_foreign_form_should_have_been_runs(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hi")
    known = '(setv x 1 y 2 xs [1 2] ys [3] d {"k" 1}) (defn f [#* all] (get all 0)) '
    with Agent(workspace=tmp_path) as agent:
        for head, form in FOREIGN.items():
            if form != f"(.{head} x)":
                result = agent.eval(known + form)
                assert result.ok or (head == "throw" and "ValueError: no" in result.message), (head, result)


def test_a_long_form_is_not_repeated() -> None:
    name = "x" * 300
    said = complaint(ProgramError, lambda: compile_program(f"(setf {name} 1)"))
    assert said.split("\n")[0] == f"line 1, column 1: setf {IS_NOT_KNOWN_HERE}; write (setv x 1)"
    said = complaint(ProgramError, lambda: compile_program(f"(let [x 1 {name}] x)"))
    assert said.split("\n")[0].endswith(f"let {DOES_NOT_FIT_HERE}; write (let [x 1  y 2] (+ x y))")


# What only looks like a mistake

RIGHT = [
    "(defn car [x] x) (car 1)",
    "(defn f [join] (join 1))",
    "(let [format str] (format 1))",
    "(lfor split [str] (split 1))",
    "(setv push 1) push",
    "(for [case [str]] (case 1))",
    "(except-this 1)",
    "(echo 1 2)",
    "{:a 1}",
    '{"a" {"b" [1 2]}}',
    "[1, 2]",
    "(+ 1,000 2)",
    "(try 1 (except [] 2) (except [[KeyError ValueError]] 3) (except [e [KeyError]] 4))",
    "(let [x 1, y 2] (+ x y))",
    "(- 1)",
    "(f -1)",
    "(/ 6 2)",
    "#(1 2)",
    "(defn f [x] (return x))",
    "(if 1 2 3)",
    "(match x 1 2 _ 3)",
    "(chainc 1 < 2 < 3)",
    "(reduce + [1 2])",
    '(.split "a b")',
    "(setv [a b] [1 2])",
    '(print "a:" 1)',
    '(echo "it\'s")',
    'f"{1 :03d}"',
    "((fn [x] x) 1)",
    "(try 1 (except [e Exception] 2) (else 3))",
    "(do (import math) math.pi)",
    "(setv x 1) x",
    "read-file",
    '"def f(x): return x"',
    "(cond 1 2)",
    "(echo #* [1 2])",
]


@pytest.mark.parametrize("text", [*RIGHT, *(row.written for row in IDIOMS)])
def test_a_right_program_is_not_taught(text: str) -> None:
    forms = rewrite(read_all(text, PROGRAM_LIMITS), TOOLS)
    assert spot(forms, text, TOOLS) is None


def test_a_tool_may_have_a_foreign_name() -> None:
    compile_program("(format 1)", ["format"])
    compile_program('(split "a")', ["split"])
    assert f"split {IS_NOT_KNOWN_HERE}" in complaint(
        ProgramError, lambda: compile_program('(split "a")', ["splits"])
    )


# Python

PYTHON = [
    ("x.y(1)", "(.y x 1)"),
    ("x[0]", "(get x 0)"),
    ("x[1:]", "(cut x 1 None)"),
    ("a and b or c", "(or (and a b) c)"),
    ("not a", "(not a)"),
    ("-1", "-1"),
    ("x if y else z", "(if y x z)"),
    ("from os import path", "(import os [path])"),
    ("def f():\n    x = 1\n    return x", "(defn f [] (setv x 1) x)"),
    ("while x:\n    x -= 1", "(while x (-= x 1))"),
    ("f(**x)", None),
    ("f'{x}'", None),
    ("class A: pass", None),
    ("1 < x < 3", None),
    ("(+ 1 2)x", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "lisp"), PYTHON)
def test_python_is_said_in_lisp(text: str, lisp: str | None) -> None:
    assert from_python(text) == lisp
    if lisp:
        compile_program(lisp)


@pytest.mark.parametrize(
    "text", ["(" * 900, "-" * 1_900 + "1", "a" + ".b" * 900, "[" * 150, "x" * 3_000, "\0", "9" * 1_999]
)
def test_odd_python_is_no_python(text: str) -> None:
    assert from_python(text) is None or len(text) < 2_000


@given(st.text(alphabet="()[]{}':,=+-.\" \nadefilnortx1%@#", max_size=40))
def test_any_text_is_compiled_or_told_in_a_short_sentence(text: str) -> None:
    said = ""
    try:
        compile_program(text, TOOLS)
    except ProgramError as error:
        said = str(error)
    assert len(said.split("\n")[0]) <= MAX_LESSON + 60


# Names that are not there

UNDEFINED = [
    (
        "(ehco 1)",
        "ehco",
        f"The program uses ehco, which {IS_NOT_DEFINED}. Did you mean echo? Write (echo 1).",
    ),
    ("ehco", "ehco", f"{THE_PROGRAM_USES} ehco, {WHICH_IS_NOT_DEFINED}. Did you mean echo?"),
    (
        "(len x)",
        "x",
        f'The program uses x, which {IS_NOT_DEFINED}. Set it first; {A_TEXT_IS_WRITTEN_IN}: (len "x").',
    ),
    ("x", "x", f"{THE_PROGRAM_USES} x, {WHICH_IS_NOT_DEFINED}."),
    ("(", "x", f"{THE_PROGRAM_USES} x, {WHICH_IS_NOT_DEFINED}."),
]


@pytest.mark.parametrize(("text", "name", "message"), UNDEFINED)
def test_a_name_that_is_not_there_is_told_with_what_to_write(text: str, name: str, message: str) -> None:
    assert undefined(name, text, TOOLS) == message
