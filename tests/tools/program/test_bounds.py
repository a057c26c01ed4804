"""How large a program may be, and what is said of one by a hair: each condition of a lesson by itself."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import A_TEXT_IS_WRITTEN_IN, IS_NOT_DEFINED, SET_IT_FIRST, THE_PROGRAM_IS_NESTED_TOO
from words import complaint

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.reader import read_all, read_one
from quoth.tools.program.compiler import PROGRAM_LIMITS, ProgramError, check, compile_program
from quoth.tools.program.explain import failed, misused, undefined
from quoth.tools.program.hint import MAX_FIXED
from quoth.tools.program.macros import MacroError, split, unseen
from quoth.tools.program.rewriter import rewrite_typed

LONG = "x" * MAX_FIXED
TOOLS = ["read-file", "echo", "count-fruit"]
UNDEFINED = f"The program uses {{}}, which {IS_NOT_DEFINED}."


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("x", 0),
        ("(f)", 1),
        ("(f 1 2)", 3),
        ("(f (g 1))", 6),  # f and (g 1) are one deep, g and 1 two
        ("[1 [2]]", 0),
        ("(f [1 [2]])", 5),
    ],
)
def test_forms_inside_forms_are_work(text: str, work: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (form,) = read_all(text, PROGRAM_LIMITS)
    monkeypatch.setattr("quoth.tools.program.compiler.MAX_WORK", work)
    check(form, text)
    monkeypatch.setattr("quoth.tools.program.compiler.MAX_WORK", work - 1)
    assert f"{THE_PROGRAM_IS_NESTED_TOO}" in complaint(ProgramError, lambda: check(form, text))


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("(defclass C [] (return 1))", False),
        ("(defn f [x] (return x))", True),
        ("(defn f [] (defn g [] 1) (return 2))", True),
        ("(defn f [x] x) (defclass C [] (return 1))", False),
        ("(defn f [] (defn g [] 1) 2) (defclass C [] (return 1))", False),
        ("((fn [] (return 1)))", True),
    ],
)
def test_a_function_returns_and_a_program_does_not(text: str, fits: bool) -> None:
    if fits:
        compile_program(text)
    else:
        said = complaint(ProgramError, lambda: compile_program(text))
        assert "return is outside a function" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("((. f) 1)", "is not an attribute of a value"),
        ("((.) 1)", "is not an attribute of a value"),
        ("(hy.x)", "the module hy cannot be reached from a program"),
        ("(f __x)", "__x is internal and cannot be used in a program"),
        ("(f x.__y)", "__y is internal and cannot be used in a program"),
        ("(f _hy_x)", "_hy_x is internal and cannot be used in a program"),
    ],
)
def test_no_name_leads_inside(text: str, said: str) -> None:
    assert said in complaint(ProgramError, lambda: compile_program(text))


@pytest.mark.parametrize(
    "text", ["((. f g) 1)", "((. f [0]) 1)", "(f _x)", "(f x._y)", "(f hyx)", "(f 'hyx)"]
)
def test_other_names_stay(text: str) -> None:
    compile_program(text)


@pytest.mark.parametrize(
    ("name", "text", "lesson"),
    [
        ("zzz", "(count-fruits 1)", ""),
        ("count-fruits", "(count-fruits 1)", " Did you mean count-fruit? Write (count-fruit 1)."),
        ("count_fruits", "(count-fruits 1)", " Did you mean count-fruit? Write (count-fruit 1)."),
        ("count-fruits", "(f (count-fruits 1))", " Did you mean count-fruit? Write (count-fruit 1)."),
        (
            "count-fruits",
            "(count-fruits count-fruits)",
            " Did you mean count-fruit? Write (count-fruit count-fruits).",
        ),
        ("count-fruits", f'(count-fruits "{LONG}")', " Did you mean count-fruit?"),
        ("count-fruits", "(count-fruits", " Did you mean count-fruit?"),
        ("+", "(f 1 + 2)", " An operator comes first in its form: (+ 1 2)."),
        ("hello", "(f hello)", f' {SET_IT_FIRST}; {A_TEXT_IS_WRITTEN_IN}: (f "hello").'),
        ("hello", "(f 1 hello)", f' {SET_IT_FIRST}; {A_TEXT_IS_WRITTEN_IN}: (f 1 "hello").'),
        ("hello", "[1 hello]", f' {SET_IT_FIRST}; {A_TEXT_IS_WRITTEN_IN}: [1 "hello"].'),
        ("hello", "(f (. hello x))", f' {SET_IT_FIRST}; {A_TEXT_IS_WRITTEN_IN}: (f "(. hello x)").'),
        ("hello", "(hello 1)", ""),
        ("hello", "(. x hello)", ""),
        ("hello", 'f"{hello}"', ""),
        ("hello", f'(f "{LONG}" hello)', ""),
        ("hel?lo", "(f hel?lo)", ""),
        ("open", '(open "a.txt")', ' To read a file: (read-file :path "a.txt").'),
        ("open", '(f (open "src/a"))', ' To read a file: (read-file :path "src/a").'),
        ("open", '(open "no path")', ""),
        ("open", '(f open "a.txt")', f' {SET_IT_FIRST}; {A_TEXT_IS_WRITTEN_IN}: (f "open" "a.txt").'),
        ("read-files", '(read-files "a.txt")', ' Did you mean read-file? Write (read-file "a.txt").'),
    ],
)
def test_an_undefined_name_is_told_with_what_was_meant(name: str, text: str, lesson: str) -> None:
    assert undefined(name, text, TOOLS) == UNDEFINED.format(name) + lesson


def test_without_a_tool_that_reads_no_file_is_named() -> None:
    assert undefined("open", '(open "a.txt")', ["echo"]) == UNDEFINED.format("open")
    assert undefined("n" * 200, "1", []) == UNDEFINED.format("n" * 79 + "…")


@pytest.mark.parametrize(
    ("kind", "message", "said"),
    [
        ("NameError", f"name 'hello' {IS_NOT_DEFINED}", UNDEFINED.format("hello")),
        ("NameError", "odd", None),
        (
            "TypeError",
            "'int' object is not callable",
            "The program calls a value (int): x is the value, (x) calls",
        ),
        ("TypeError", "odd", None),
        ("ValueError", "'int' object is not callable", None),
    ],
)
def test_a_failure_is_told_in_words_of_lisp(kind: str, message: str, said: str | None) -> None:
    found = failed(kind, message, "1", TOOLS)
    assert (found and said and found.startswith(said)) or (found is None and said is None)


@pytest.mark.parametrize(
    ("text", "at", "head"),
    [
        ("(let [x] x)", (1, 1), "let"),
        ("(f (let [x] x))", (1, 4), "let"),
        ("(let [x 1] (let [y] y))", (1, 12), "let"),
        ("(f 1)\n(let [x] x)", (2, 3), "let"),
        ("(let [x] x)\n(f 1)", (2, 3), ""),
        ("(f 1)", (1, 1), ""),
        ("(let [x", (1, 1), ""),
    ],
)
def test_a_form_that_does_not_fit_is_told_with_an_example(text: str, at: tuple[int, int], head: str) -> None:
    said = misused(text, *at)
    assert (said or "").startswith(f"{head} does not fit here" if head else "")
    assert (said is None) == (not head)


# What a person types at the prompt


def expanded(node: Any) -> Any:
    """The macro m has an expansion, n is somebody else's, and f is a function."""
    return {"m": read_one("(let ((x 1)) x)"), "n": None}.get(str(node[0]), node)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("(let ((x 1)) x)", "(let [x 1] x)"),
        ("(defun f (x) x)", "(defn f [x] x)"),
        ("[(let ((x 1)) x)]", "[(let [x 1] x)]"),
        ("(for [x (let ((y [1])) y)] x)", "(for [x (let [y [1]] y)] x)"),
        ("(f (let ((x 1)) x))", "(f (let [x 1] x))"),
        ("(m 1)", "(let [x 1] x)"),
        ("(n (let ((x 1)) x))", "(n (let ((x 1)) x))"),
        ("(quote (let ((x 1)) x))", "'(let ((x 1)) x)"),
        (":a", ":a"),
        ("(progn 1 2)", "(do 1 2)"),
        ("(cond ((= 1 2) 3) (else 4))", "(cond (= 1 2) 3 True 4)"),
        ("(cond (= 1 2) 3 True 4)", "(cond (= 1 2) 3 True 4)"),
        ("(cond (f 1) 2 (g) 3)", "(cond (f 1) 2 (g) 3)"),
        ("(cond (else 3) 4)", "(cond (else 3) 4)"),
    ],
)
def test_what_is_typed_stays_hy_but_for_what_is_none(typed: str, meant: str) -> None:
    assert show(rewrite_typed(read_one(typed), {"m", "n", "f"}, expanded)) == meant


def test_a_form_that_is_too_deep_is_left_to_hy() -> None:
    def deep(node: Any) -> Any:
        raise RecursionError

    form = read_one("(f 1)")
    assert rewrite_typed(form, {"f"}, deep) is form


# Macros


@pytest.mark.parametrize(
    ("text", "macros", "rest"),
    [
        ("(defmacro f [x] x) (f 1)", ["f"], "(f 1)"),
        ("(defmacro f [x] x)", ["f"], "None"),
        ("(do (defmacro f [x] x) (f 1))", ["f"], "(do (f 1))"),
        ("(let [y 1] (defmacro f [x] x) (f y))", ["f"], "(let [y 1] (f y))"),
        ("(do)", [], "(do)"),
        ("(f (defmacro g [x] x))", [], "(f (defmacro g [x] x))"),
        ("(defmacro f [#* x] x) (defmacro g [] 1) 2", ["f", "g"], "2"),
    ],
)
def test_macros_stand_at_the_top_of_a_program(text: str, macros: list[str], rest: str) -> None:
    found, left = split(read_all(text, PROGRAM_LIMITS), TOOLS)
    assert ([*found], " ".join(map(show, left))) == (macros, rest)
    known = unseen(text, read_all(text, PROGRAM_LIMITS), TOOLS)
    assert (known is not None and [*known.macros]) == (macros or False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(defmacro f 1)", "a macro is written (defmacro name [parameters] body …)"),
        ("(defmacro f [x])", "a macro is written (defmacro name [parameters] body …)"),
        ("(defmacro 1 [x] x)", "a macro is written (defmacro name [parameters] body …)"),
        ("(defmacro f x x)", "a macro is written (defmacro name [parameters] body …)"),
        ("(defmacro setv [x] x)", "setv is a form of Hy; give the macro another name"),
        ("(defmacro eval [x] x)", "eval is a form of Hy; give the macro another name"),
        ("(defmacro read_file [x] x)", "read_file is a tool; give the macro another name"),
        ("(defmacro f [#** x] x)", "a macro has no named parameters; write #* forms"),
    ],
)
def test_what_is_no_macro_is_told(text: str, said: str) -> None:
    assert complaint(MacroError, lambda: split(read_all(text, PROGRAM_LIMITS), TOOLS)) == said
