"""What a short text costs this process: counted and refused before it is dear, or made cheap.

Each row took from three seconds to minutes, out of reach of Ctrl-C. Time is that of the processor.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator

import pytest
from sentences import HAS_NO_VALUE, NESTED_TOO_DEEPLY, THE_PROGRAM_IS_NESTED_TOO
from words import agent, complaint

from quoth import Agent
from quoth.neuro.reading.reply import read_reply
from quoth.tools.errors import InvalidCallError
from quoth.tools.lisp.forms import from_model
from quoth.tools.lisp.printer import HARD_KEYS, MAX_EASY_KEY, MAX_HARD_KEYS
from quoth.tools.lisp.reader import read_one
from quoth.tools.program.compiler import ProgramError, compile_program, free_names

SECONDS = 3.0
ONE_HASH = 2**61 - 1  # numbers that are multiples of it are the same to a dictionary
LONG = "the program is too long; split it in two"


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    with agent(tmp_path_factory.mktemp("work")) as opened:
        opened.eval("1")
        yield opened


# Compiling: (program, what is said of it or nothing)

DEEP = f"The program is {NESTED_TOO_DEEPLY}, or one operator has too many operands."
NESTED = [(f"({head} ", ")") for head in ("unless 0", "if 1", "when 1", "let [x 1]")]
NESTED += [("(.m ", ")"), ("(cond True ", ")"), ("(cond 1 1 2 2 3 3 True ", ")"), ("(doto ", " f)")]


@pytest.mark.parametrize(("before", "after"), NESTED)
@pytest.mark.parametrize("inner", ["1", f"[{'1 ' * 300}]"])
def test_forms_inside_of_forms_are_not_copied_for_each(before: str, after: str, inner: str) -> None:
    said = outcome(before * 55 + inner + after * 55)
    assert not said or DEEP in said or f"{THE_PROGRAM_IS_NESTED_TOO}" in said or "doto" in said


def outcome(text: str) -> str:
    """What is said of a program, and nothing if it is compiled."""
    try:
        compile_program(text)
    except ProgramError as error:
        return str(error)
    return ""


MULTIPLIED = ["(reduce f y)", "(last x)", "(gather x)", "(str x y)"]


@pytest.mark.parametrize("unit", [*MULTIPLIED, "(-> x first last rest first last)"])
def test_what_idioms_make_of_a_program_is_counted(unit: str) -> None:
    text = f"{unit}\n" * (9_900 // (len(unit.split()) + 1))
    said = complaint(ProgramError, lambda: compile_program(text)).splitlines()
    assert said[0].endswith(LONG)
    assert said[1] == unit
    assert said[2].strip() == "^"


@pytest.mark.parametrize("compiled", [compile_program, free_names])
@pytest.mark.parametrize(
    "shape", ["{%s}", "#{%s}", "[%s]", "(in 1 #{%s})", "(match x %s)", "%s", "(f #(%s))"]
)
def test_numbers_of_one_hash_are_few_in_a_program(compiled: object, shape: str) -> None:
    text = shape % " ".join(str(n * ONE_HASH) for n in range(1, 4001))
    said = complaint(ProgramError, lambda: compiled(text)).splitlines()[0]  # type: ignore[operator]
    assert said.endswith(f"a program can have at most {MAX_HARD_KEYS} numbers as large as this one")


@pytest.mark.parametrize("operator", ["get x", ". x", "+", "concat", "and", "<", "cond", "f (. x"])
def test_one_operator_with_very_many_operands_ends_in_a_sentence(operator: str) -> None:
    text = f"({operator} {'y ' * 4000}{')' if '(' in operator else ''})"
    with contextlib.suppress(ProgramError):
        assert free_names(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('f"{(defn f [] 1)}"', f"line 1, column 3: this form {HAS_NO_VALUE} that a text can contain"),
        ('f"{1 :{(setv x 1)}}"', f"line 1, column 7: this form {HAS_NO_VALUE} that a text can contain"),
        ("(math.hypot #* [3 4])", ""),
        ("(map (.) [1])", "line 1, column 7: got unexpected end of macro call, expected: form"),
    ],
)
def test_what_the_search_for_such_texts_found_beside(text: str, sentence: str) -> None:
    assert outcome(text).partition("\n")[0] == sentence
    assert sentence or "it_1" not in compile_program(text).python


def test_a_text_with_what_python_cannot_write_is_told() -> None:
    """Before 3.12 an f-string holds no backslash; then it does."""
    said = outcome(r'(do 1 f"{(.join "\\d" xs)}")')
    assert not said or said.startswith('line 1, column 7: this f"…" contains a text with')


# What crosses the wall

MANY = f"(dfor i (range 20000) (* i {ONE_HASH}) i)"
DEAR = [
    MANY,
    f"(echo :text {MANY})",
    f"(echo :text [1 [{MANY}]])",
    f"(sfor i (range 20000) (* i {ONE_HASH}))",
    f"(dfor i (range 20000) (- (* i {ONE_HASH})) i)",
    f"(dfor i (range 20000) #(1 (* i {ONE_HASH})) i)",
    "(dfor i (range 20000) (* i 1.5) i)",
    f"(pmap (fn [x] {MANY}) [1 2])",
    f"(lfor j (range 20) (dfor i (range 900) (* i {ONE_HASH}) i))",
    f"(do (setv f echo) (f {MANY}))",
    f"(try (echo {MANY}) (except [e ValueError] (raise (ValueError (str e)))))",
]


@pytest.mark.parametrize("text", DEAR)
def test_keys_of_one_hash_do_not_leave_the_sandbox(here: Agent, text: str) -> None:
    result = here.eval(text)
    assert (result.status, result.message.removeprefix("echo was not called. ")) == ("error", HARD_KEYS)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("(dfor i (range 20000) i i)", 20_000),
        ("(dfor i (range 20000) (str i) i)", 20_000),
        (f"(dfor i (range {MAX_HARD_KEYS}) (* i {ONE_HASH}) i)", MAX_HARD_KEYS),
        ("(lfor i (range 2000) {(* i 0.5) i})", 2000),
        (f"(len {MANY})", 0),
    ],
)
def test_keys_that_are_cheap_do(here: Agent, text: str, number: int) -> None:
    result = here.eval(text)
    assert result.ok, result.message
    assert number in (0, len(result.value) if number else 0)


@pytest.mark.parametrize("odd", [MAX_EASY_KEY, -(2**61), 1.5])
def test_a_form_has_as_many_keys_as_the_sandbox_lets_out(odd: float) -> None:
    """What an inner call was kept as can be read back; small keys are not counted."""
    easy = [*range(3000), 1 - MAX_EASY_KEY, MAX_EASY_KEY - 1]
    hard = [odd, *(n * ONE_HASH for n in range(7, 6 + MAX_HARD_KEYS))]
    text = "(echo :text {%s})"
    assert from_model(read_one(text % " ".join(f"{key} 1" for key in (*easy, *hard))))
    one_more = text % " ".join(f"{key} 1" for key in (*hard, 5 * ONE_HASH))
    assert complaint(InvalidCallError, lambda: from_model(read_one(one_more))) == HARD_KEYS


def test_a_reply_with_such_keys_is_told() -> None:
    text = "(echo :text {" + " ".join(f"{n * ONE_HASH} 1" for n in range(20_000)) + "})"
    found = read_reply(text)
    assert not found.calls
    assert [f"{fault.message}." for fault in found.errors] == [HARD_KEYS]
