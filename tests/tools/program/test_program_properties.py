"""Pure programs mean here what Hy says they mean: generated ones, and a table of differences.

Only programs made here are evaluated in this process, never a hostile one.
"""

from __future__ import annotations

import asyncio
import math
import re
import types
from collections.abc import Iterator
from typing import Any

import hy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import CANNOT_LEAVE_THE_PROGRAM, THE_PROGRAM_USES, WHICH_IS_NOT_DEFINED

from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string
from quoth.tools.program.compiler import ProgramError, compile_program
from quoth.tools.sandbox.pool import SandboxLimits
from quoth.tools.sandbox.runner import Sandbox
from quoth.tools.sandbox.wall import bounded

LIMITS = SandboxLimits(seconds=20, calls=10)


class Both:
    """One sandbox and one loop for the module, beside Hy itself."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.sandbox = Sandbox(LIMITS)

    def ours(self, text: str) -> Any:
        async def call(_: CallForm, name: str) -> Any:
            raise AssertionError("a pure program calls nothing")

        return self.loop.run_until_complete(self.sandbox.run(compile_program(text), [], call))[0]

    def our_end(self, text: str) -> Any:
        """The value, or the name of what the program raised."""
        try:
            return self.ours(text)
        except ProgramError as error:
            return str(error).removeprefix("The program failed: ").split(":")[0]

    @staticmethod
    def hys(text: str) -> Any:
        """What Hy makes of the same text, as it would cross the wall."""
        return bounded(hy.eval(hy.read_many(text), module=types.ModuleType("pure")))

    @classmethod
    def hys_end(cls, text: str) -> Any:
        try:
            return cls.hys(text)
        except Exception as error:
            return type(error).__name__


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    here = Both()
    yield here
    here.loop.run_until_complete(here.sandbox.aclose())
    here.loop.close()


def same(one: Any, other: Any) -> bool:
    """Equal, of one type, and not a number where that is none."""
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return bool(one == other)


# Programs, by the kind of value they have. A name of the environment may stand wherever its kind is wanted.

TEXTS = st.text(alphabet="abZ é変🙂\n\"\\{}'0", max_size=6).map(print_string)
SMALL = st.integers(-9, 9).map(str)
INTEGERS = SMALL | st.integers(-(10**20), 10**20).map(str)
FLOATS = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: repr(x).replace("e+", "e"))
Texts = st.SearchStrategy[str]


def numbers(inner: Texts, texts: Texts, lists: Texts) -> Texts:
    one, two = inner, st.tuples(inner, inner)
    return st.one_of(
        st.tuples(st.sampled_from(["+", "-", "*", "min", "max"]), two).map(
            lambda t: f"({t[0]} {t[1][0]} {t[1][1]})"
        ),
        st.tuples(st.sampled_from(["//", "%", "/"]), two).map(lambda t: f"({t[0]} {t[1][0]} {t[1][1]})"),
        st.tuples(st.sampled_from(["abs", "int", "float", "round", "-"]), one).map(
            lambda t: f"({t[0]} {t[1]})"
        ),
        st.tuples(truths(inner), two).map(lambda t: f"(if {t[0]} {t[1][0]} {t[1][1]})"),
        st.tuples(truths(inner), two).map(lambda t: f"(cond {t[0]} {t[1][0]}  True {t[1][1]})"),
        st.tuples(st.sampled_from(["and", "or"]), two).map(lambda t: f"({t[0]} {t[1][0]} {t[1][1]})"),
        two.map(lambda t: f"(let [x {t[0]} y (+ x {t[1]})] (* x y))"),
        two.map(lambda t: f"((fn [a [b {t[0]}]] (- a b)) {t[1]})"),
        two.map(lambda t: f"(do (defn f [a #* more] (+ a (len more))) (f {t[0]} {t[1]}))"),
        two.map(lambda t: f"(do (defn g [n] (if (<= n 0) {t[0]} (g (- n 1)))) (g 3))"),
        two.map(
            lambda t: (
                f"(do (setv n 0 i 0) (while (< i 4) (+= i 1) (when (= i 2) (continue)) (+= n {t[0]})) n)"
            )
        ),
        st.tuples(lists, one).map(
            lambda t: f"(do (setv n 0) (for [i {t[0]}] (+= n i) (when (> n 20) (break))) n)"
        ),
        one.map(lambda t: f"(try (/ 1 {t}) (except [ZeroDivisionError] 0))"),
        lists.map(lambda t: f"(sum {t})"),
        lists.map(lambda t: f"(len (set {t}))"),
        st.tuples(lists, SMALL).map(lambda t: f"(get {t[0]} {t[1]})"),
        texts.map(lambda t: f"(len {t})"),
        st.tuples(texts, texts).map(lambda t: f"(.count {t[0]} {t[1]})"),
        texts.map(lambda t: f"(int {t})"),
        st.tuples(lists, one).map(lambda t: f"(match {t[0]} [a] a  [a b] (+ a b)  _ {t[1]})"),
    )


def truths(inner: Texts) -> Texts:
    return st.one_of(
        st.tuples(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), inner, inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"(< {t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"(chainc {t[0]} < {t[1]} <= 5)"),
        inner.map(lambda t: f"(not {t})"),
    )


def lists(inner: Texts) -> Texts:
    several = st.lists(inner, max_size=4).map(lambda items: f"[{' '.join(items)}]")
    return st.one_of(
        several,
        st.tuples(several, inner).map(lambda t: f"(lfor x {t[0]} :if (< x 5) (+ x {t[1]}))"),
        st.tuples(several, several).map(lambda t: f"(lfor x {t[0]} y {t[1]} (* x y))"),
        several.map(lambda t: f"(list (gfor x {t} :do (setv z x) (- z)))"),
        several.map(lambda t: f"(sorted {t} :reverse True)"),
        several.map(lambda t: f"(list (map abs {t}))"),
        st.tuples(several, SMALL, SMALL).map(lambda t: f"(cut {t[0]} {t[1]} {t[2]})"),
        st.tuples(several, several).map(lambda t: f"(+ {t[0]} {t[1]})"),
        several.map(lambda t: f"(list (.values (dfor x {t} x (* x x))))"),
        several.map(lambda t: f"(list (enumerate {t}))").map(lambda t: f"(lfor [i x] {t} (+ i x))"),
    )


def texts(inner: Texts, number: Texts) -> Texts:
    return st.one_of(
        st.tuples(inner, inner).map(lambda t: f"(+ {t[0]} {t[1]})"),
        st.tuples(st.sampled_from(["upper", "lower", "strip", "title", "swapcase"]), inner).map(
            lambda t: f"(.{t[0]} {t[1]})"
        ),
        st.tuples(inner, st.lists(inner, max_size=3)).map(lambda t: f"(.join {t[0]} [{' '.join(t[1])}])"),
        st.tuples(inner, inner, inner).map(lambda t: f"(.replace {t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, SMALL, SMALL).map(lambda t: f"(cut {t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, SMALL).map(lambda t: f"(get {t[0]} {t[1]})"),
        st.tuples(inner, SMALL).map(lambda t: f"(* {t[0]} {t[1]})"),
        st.tuples(inner).map(lambda t: f"(repr {t[0]})"),
        number.map(lambda t: f"(str {t})"),
        st.tuples(number, inner).map(lambda t: f'(let [n {t[0]} s {t[1]}] f"{{n}}: {{s !r}}")'),
        st.tuples(inner, inner).map(lambda t: f"(get {{{t[0]} {t[1]}}} {t[0]})"),
        st.tuples(inner, inner).map(lambda t: f"(get (.split {t[0]} {t[1]}) 0)"),
    )


LEAVES = INTEGERS | FLOATS
LISTS_OF_LEAVES = lists(INTEGERS)
SIMPLE_TEXTS = TEXTS | texts(TEXTS, INTEGERS)
NUMBERS = st.recursive(LEAVES, lambda inner: numbers(inner, SIMPLE_TEXTS, LISTS_OF_LEAVES), max_leaves=6)
VALUES = st.one_of(
    NUMBERS,
    truths(NUMBERS),
    lists(NUMBERS),
    st.recursive(TEXTS, lambda inner: texts(inner, NUMBERS), max_leaves=5),
    st.tuples(TEXTS, NUMBERS, NUMBERS).map(lambda t: f"{{{t[0]} {t[1]}  1 #({t[2]} None True)}}"),
)


@given(VALUES)
def test_a_pure_program_ends_as_in_hy(both: Both, program: str) -> None:
    one, other = both.our_end(program), both.hys_end(program)
    assert same(one, other), f"{program}: {one!r}, and in Hy {other!r}"


def test_a_difference_would_be_seen(both: Both) -> None:
    assert not same(both.ours("1"), both.hys("1.0"))
    assert not same(both.ours("[1 2]"), both.hys("[1 3]"))
    assert both.our_end("(/ 1 0)") != both.hys_end("(get [] 1)")


# Where the sandbox is not Python: (program, its end here, its end in Hy). A new Monty may shorten the table.
NO_DATA = f"{CANNOT_LEAVE_THE_PROGRAM}; use texts, numbers, lists and dictionaries."
DIFFERENCES: list[tuple[str, Any, Any]] = [
    ("(round 2.675 2)", 2.68, 2.67),
    ("(** -8 (/ 1 3))", -2.0, "ProgramError"),
    ('(int "٣")', "ValueError", 3),
    ('(.translate "abc" (str.maketrans "a" "x"))', "AttributeError", "xbc"),
    ("(bytes [1 2])", "TypeError", b"\x01\x02"),
    ("(callable len)", f"{THE_PROGRAM_USES} callable, {WHICH_IS_NOT_DEFINED}.", True),
    ('(ascii "é")', f"{THE_PROGRAM_USES} ascii, {WHICH_IS_NOT_DEFINED}.", "'\\xe9'"),
    ('(raise (ValueError "a" "b"))', "RuntimeError", "ValueError"),
    ('(do (import json) (json.loads "{"))', "json.JSONDecodeError", "JSONDecodeError"),
    ('(do (import re) (re.compile "("))', "re.PatternError", re.error.__name__),
    ("(do (import statistics) (statistics.mean [1 2]))", "ModuleNotFoundError", 1.5),
    ("(do (import string) string.digits)", "ModuleNotFoundError", "0123456789"),
    ("(do (defclass P [Exception]) 1)", "NotImplementedError", 1),
    ("(do (setv x [1 2 3]) (del (get x 0)) x)", "line 1, column 23", [2, 3]),
    ("(do (setv x 5) (del x) 1)", "line 1, column 17", 1),
    # Ours, not Monty's: a generator is a list, and so are map, filter, zip, reversed and enumerate.
    ("(next (gfor x [1 2] x))", "TypeError", 1),
    ("(do (setv g (gfor x [1 2] x)) (list g) (list g))", [1, 2], []),
    ("(map abs [1])", [1], "ProgramError"),
    ("(zip [1] [2])", [[1, 2]], "ProgramError"),
    ("(range 3)", f"A range {NO_DATA}", "ProgramError"),
]


@pytest.mark.parametrize(("program", "here", "in_hy"), DIFFERENCES)
def test_where_the_sandbox_is_not_python(both: Both, program: str, here: Any, in_hy: Any) -> None:
    assert same(both.our_end(program), here), both.our_end(program)
    assert same(both.hys_end(program), in_hy), both.hys_end(program)
