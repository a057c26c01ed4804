"""Idioms of other Lisps: each means what the table says, and none brings anything past the check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import hy.models as m
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import CANNOT_BE_USED_IN_A, DOES_NOT_FIT_HERE, NESTED_TOO_DEEPLY
from words import complaint

from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code, print_string, show
from quoth.tools.lisp.reader import read_all
from quoth.tools.lisp.syntax import CONSTANTS, is_core
from quoth.tools.program import compiler as program
from quoth.tools.program.compiler import PROGRAM_LIMITS, ProgramError, compile_program
from quoth.tools.program.idioms import IDIOMS, MAX_STEPS, RULES, Idiom
from quoth.tools.program.rewriter import rewrite
from quoth.tools.sandbox.runner import Sandbox

TOOLS = ("echo", "even")
Run = Callable[[str], Any]


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """A program's value, or what it printed when it has none."""
    loop, sandbox = asyncio.new_event_loop(), Sandbox()

    async def call(form: CallForm, name: str) -> Any:
        value = next(iter([*form.args.values(), *form.positional]))
        value = value.data if isinstance(value, Code) else value  # as a tool gets it that takes lists
        return value % 2 == 0 if form.tool == "even" else value

    def go(text: str) -> Any:
        value, printed = loop.run_until_complete(sandbox.run(compile_program(text, TOOLS), TOOLS, call))
        return printed.rstrip("\n") if value is None and printed else value

    yield go
    loop.run_until_complete(sandbox.aclose())
    loop.close()


def read(text: str) -> list[Any]:
    return read_all(text, PROGRAM_LIMITS)


def rewritten(text: str, *names: str) -> str:
    return " ".join(map(show, rewrite(read(text), names)))


def nodes(forms: Any) -> Iterator[Any]:
    pending = list(forms)
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, m.Sequence):
            pending.extend(node)


# The table


# The example of each row, what it is read as, and its value.
EXAMPLES: list[tuple[str, str, Any]] = [
    ("nil", "None", None),
    ("true", "True", True),
    ("false", "False", False),
    ("(progn 1 2)", "(do 1 2)", 2),
    ("(defun f (a &optional (b 2)) (+ a b))", "(defn f [a [b 2]] (+ a b))", None),
    ("((lambda (x) (* x x)) 3)", "((fn [x] (* x x)) 3)", 9),
    ("(define (f x) x)", "(defn f [x] x)", None),
    ("(def x 1)", "(setv x 1)", None),
    ("(let ((x 1) (y 2)) (+ x y))", "(let [x 1  y 2] (+ x y))", 3),
    ("(let* ((x 1) (y x)) y)", "(let [x 1  y x] y)", 1),
    ('(cond ((= 1 2) "a") (t "b"))', '(cond (= 1 2) "a" True "b")', "b"),
    ("(if False 1)", "(if False 1 None)", None),
    ("(unless False 1)", "(when (not False) 1)", 1),
    ("(dotimes [i 3] (print i))", "(for [i (range 3)] (print i))", "0\n1\n2"),
    ("(doseq [x [1 2] :when (> x 1)] (print x))", "(for [x [1 2] :if (> x 1)] (print x))", "2"),
    ("(-> 7 (- 2) str)", "(str (- 7 2))", "5"),
    ("(->> 7 (- 2) str)", "(str (- 2 7))", "-5"),
    ("(map str [1 2])", "(lfor it_1 [1 2] (str it_1))", ["1", "2"]),
    ("(filter str [1 2])", "(lfor it_1 [1 2] :if (str it_1) it_1)", [1, 2]),
    (
        "(reduce + 10 [1 2])",
        "(do (setv it_1 10) (setv it_3 [1 2]) (for [it_2 it_3] (setv it_1 (+ it_1 it_2))) it_1)",
        13,
    ),
    ("(gather (+ 1 2) 4)", "(pmap (fn [it_1] (it_1)) [(fn [] (+ 1 2)) (fn [] 4)])", [3, 4]),
    ('(str "a" 1)', '(.join "" ["a" (str 1)])', "a1"),
    ("(first [4 5])", "(next (iter [4 5]) None)", 4),
    ("(last [4 5])", "(next (iter (cut (list [4 5]) -1 None)) None)", 5),
    ("(rest [4 5])", "(cut (list [4 5]) 1 None)", [5]),
    ("(count [4 5])", "(len [4 5])", 2),
    ("(mean [1 2])", "((fn [items] (/ (sum items) (len items))) (list [1 2]))", 1.5),
    (
        '(days-between "2026-02-28" "2026-03-01")',
        '(- (. (- (do (import datetime :as it_1) ((. it_1 date fromisoformat) "2026-02-28"))'
        ' (do (import datetime :as it_2) ((. it_2 date fromisoformat) "2026-03-01"))) days))',
        1,
    ),
    (
        '(weekday "2026-03-01")',
        '((. (do (import datetime :as it_1) ((. it_1 date fromisoformat) "2026-03-01")) strftime) "%A")',
        "Sunday",
    ),
    ("(inc 4)", "(+ 4 1)", 5),
    ("(dec 4)", "(- 4 1)", 3),
    ("(empty? [])", "(not [])", True),
    ("(nil? nil)", "(is nil None)", True),
    ("(== 1 1)", "(= 1 1)", True),
    ("(not= 1 1)", "(!= 1 1)", False),
    ("(mod 7 4)", "(% 7 4)", 3),
    ('(println "a" 1)', '(print "a" 1)', "a 1"),
]


@pytest.mark.parametrize(("text", "means", "value"), EXAMPLES)
def test_an_example_means_what_its_row_says_and_has_its_value(
    run: Run, text: str, means: str, value: Any
) -> None:
    assert rewritten(text) == rewritten(means)
    assert rewritten(text) != " ".join(map(show, read(text)))
    assert run(text) == value


def test_every_row_has_an_example_here() -> None:
    assert [row.written for row in IDIOMS] == [text for text, _, _ in EXAMPLES]


@pytest.mark.parametrize("row", IDIOMS, ids=lambda row: row.names)
def test_every_name_of_a_row_is_an_idiom(row: Idiom) -> None:
    first = row.names.split()[0]
    for name in row.names.split():
        text = row.written.replace(first, name, 1)
        assert rewritten(text) != " ".join(map(show, read(text))), name
        compile_program(text)


def test_no_name_is_in_two_rows() -> None:
    names = [name for row in IDIOMS for name in row.names.split()]
    assert len(names) == len(set(names))
    assert set(names) == (set(RULES) | set(CONSTANTS)) - {"None", "True", "False", "quote", "quasiquote"}


MEANINGS: list[tuple[str, Any]] = [
    ('(setv datetime 1) [(days-between "2024-03-01" "2024-02-28") datetime]', [-2, 1]),
    ("(average (map inc [1 2 3]))", 3.0),
    ("(defn mean [x] x) (mean [1 2])", [1, 2]),
    ("#t", True),
    ("(if #f 1 2)", 2),
    ("[nil null none true false]", [None, None, None, True, False]),
    ("{:a nil}", {"a": None}),
    ('f"{(inc 1)} {(str 1 2)} {nil}"', "2 12 None"),
    ("(defn f (x) (* 2 x)) (f 2)", 4),
    ('(defn f "It doubles." [x] (* 2 x)) (f 2)', 4),
    ("(defun f (a &rest xs) [a xs]) (f 1 2 3)", [1, [2, 3]]),
    ("(defun f (a &optional b) [a b]) (f 1)", [1, None]),
    ("(defn f [a & xs] [a xs]) (f 1 2 3)", [1, [2, 3]]),
    ("(defun fact (n) (if (<= n 1) 1 (* n (fact (dec n))))) (fact 5)", 120),
    ("(define (twice f x) (f (f x))) (twice abs -1)", 1),
    ("(let ((x 1)) (let ((x 2) (y x)) [x y]))", [2, 1]),
    ("(let ((x 1)) (let* ((x 2) (y x)) [x y]))", [2, 2]),
    ("(let ([x 1] [y 2]) (+ x y))", 3),
    ("(let [[x 1]] x)", 1),
    ("(let [[x y] [1 2]] [y x])", [2, 1]),
    ("(let (x 1 y 2) (+ x y))", 3),
    ('(cond ((> 1 2) 1) ((> 2 1) (setv y 2) y) (else "no"))', 2),
    ("(cond [(> 1 2) 1] [True 2])", 2),
    ("(cond (> 1 2) 1 :else 2)", 2),
    ("(cond (> 1 2) ((fn [] 1)) (> 2 1) ((fn [] 2)))", 2),
    ("(setv n 0) (unless (> n 0) (+= n 1) n)", 1),
    ("(setv n 0) (dotimes (i 3) (+= n i)) n", 3),
    ("(setv n 0) (dolist (x '(1 2)) (+= n x)) n", 3),
    ('(-> " x " .strip .upper (str "!"))', "X!"),
    ("(-> 3 (fn [x] (* x x)))", 9),
    ("(map + [1 2] [3 4])", [4, 6]),
    ('(map .upper ["a"])', ["A"]),
    ("(mapcar 'abs [-1])", [1]),
    ("(map (lambda (x y) (* x y)) [1 2] [3 4])", [3, 8]),
    ("(map echo [1 2])", [1, 2]),
    ("(list (map (fn [x] (echo x)) [1 2]))", [1, 2]),
    ("(filter even [1 2 3 4])", [2, 4]),
    ("(filter nil [0 1 2])", [1, 2]),
    ("(reduce (fn [a b] (+ (echo a) b)) [1 2 3])", 6),
    ("(reduce + [])", 0),
    ("(reduce + [1 2 3] 10)", 16),
    ("(reduce + [1 2 3] :initial-value 10)", 16),
    ('(reduce + ["a" "b"])', "ab"),
    ("(lfor xs [[1 2] [3]] (reduce + xs))", [3, 3]),
    ("[(first []) (last []) (rest [])]", [None, None, []]),
    ('[(first "abc") (rest "abc")]', ["a", ["b", "c"]]),
    ("(->> [3 1 2] (filter even) (map inc) first)", 3),
    ('(list "ab")', ["a", "b"]),
    ("(dict :a 1)", {"a": 1}),
    ("(str)", ""),
    ("(str 5)", "5"),
    ("(str :a 1)", "a1"),
    ('(get {"a" 1} :a)', 1),
    ('(.get {"a" 1} :b 0)', 0),
    ('(get {"a" {"b" 2}} :a :b)', 2),
    ("(str 'sym)", "sym"),
    ("(str 'a.b)", "a.b"),
    ('(str \'(a (b nil) :k "t" {x 1} true))', '(a (b None) :k "t" {x 1} True)'),
    ("(str ''x)", "'x"),
    (":alone", "alone"),
    ("(echo :text :hello)", "hello"),
    ("((fn [x] :a) 1)", "a"),
    ("(lfor x [1] :a)", ["a"]),
    ("(match :a :a 1 _ 2)", 1),
    ("(match nil None 1 _ 2)", 1),
    ("(import math [sqrt :as root]) (root 4)", 2.0),
    ("(lfor x [1 2 3] :if (nil? x) x)", []),
    ("(setv n 0) (for [x [1 2 3] :if (> x 1)] (+= n x)) n", 5),
    ("(setv xs (for [x [1 2]] (* x x))) xs", [1, 4]),
    ('(let [xs ["a" "b"]] (for [x xs] (echo x)))', ["a", "b"]),
    ("(for [x [1 2]] (print x))", "1\n2"),
    ("(for [x [1 2]] (setv y x))", None),
]


@pytest.mark.parametrize(("text", "value"), MEANINGS)
def test_an_idiom_means_what_it_says(run: Run, text: str, value: Any) -> None:
    found = run(text)
    assert found == value
    assert type(found) is type(value)


# Names that are the program's own, or a tool's

OWN: list[tuple[str, Any]] = [
    ("(defn first [x] 9) (first [1])", 9),
    ("(setv inc (fn [x] 9)) (inc 1)", 9),
    ("(defn f [count] (count 1)) (f str)", "1"),
    ("(let [rest (fn [x] 9)] (rest 1))", 9),
    ("((fn [nil] nil) 5)", 5),
    ("(lfor last [1 2] (+ last 1))", [2, 3]),
    ("(for [last [str]] (setv y (last 1))) y", "1"),
    ("(import functools [reduce]) (reduce (fn [a b] (- a b)) [1 2 3] 10)", 4),
    ("(defn map [f xs] 9) (map 1 2)", 9),
    ("(setv none 5) none", 5),
    ("(defn len [x] 9) (defn count [x] 8) (count [])", 8),
    ("(let [count (count [1 2])] count)", 2),
    ("(defn f [x [y (inc 1)]] (+ x y)) (f 1)", 3),
]


@pytest.mark.parametrize(("text", "value"), OWN)
def test_a_name_the_program_binds_is_its_own(run: Run, text: str, value: Any) -> None:
    assert run(text) == value


def test_what_a_rewrite_needs_must_still_be_pythons() -> None:
    assert rewritten("(setv len 1) (count [])") == "(setv len 1) (count [])"
    assert rewritten("(count [])") == "(len [])"


@pytest.mark.parametrize("name", sorted(name for name in RULES if name != ":" and not is_core(name)))
def test_the_name_of_a_tool_is_never_rewritten(name: str) -> None:
    row = next(row for row in IDIOMS if name in row.names.split())
    text = row.written.replace(row.names.split()[0], name, 1)
    assert rewritten(text, name).startswith(f"({name}" if name != "lambda" else "((lambda")
    assert rewritten(text) != rewritten(text, name)


def test_a_keyword_in_a_place_that_is_deleted_is_a_text() -> None:
    assert rewritten("(del d (get d :k))") == '(del d (get d "k"))'


def test_made_names_are_none_of_the_programs() -> None:
    assert rewritten("(setv it_1 2) (map f it_1)") == "(setv it_1 2) (lfor it_2 it_1 (f it_2))"


# Properties

STEPS = st.lists(st.sampled_from(["(- 3)", "(* 2)", "inc", "(max 1 2)", "abs"]), max_size=6)


def nested(start: str, steps: list[str], last: bool) -> str:
    for step in steps:
        if step[0] != "(":
            start = f"({step} {start})"
        elif last:
            start = f"{step[:-1]} {start})"
        else:
            head, rest = step[1:-1].split(" ", 1)
            start = f"({head} {start} {rest})"
    return start


@given(STEPS, st.booleans())
def test_threading_is_nesting(steps: list[str], last: bool) -> None:
    arrow = "->>" if last else "->"
    assert rewritten(f"({arrow} 7 {' '.join(steps)})") == rewritten(nested("7", steps, last))


DATA = st.recursive(
    st.integers(-9, 9) | st.sampled_from([None, True, False]) | st.text("ab c", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xy", max_size=2), inner, max_size=2),
    max_leaves=10,
)


def spelt(value: Any) -> str:
    if isinstance(value, str):
        return value if value.isalpha() else print_string(value)
    if isinstance(value, list):
        return f"({' '.join(map(spelt, value))})"
    if isinstance(value, dict):
        return "{" + " ".join(f"{spelt(k)} {spelt(v)}" for k, v in value.items()) + "}"
    return "nil" if value is None else str(value)


@given(DATA)
def test_quoted_data_is_that_data(run: Run, value: Any) -> None:
    assert run(f"(echo '{spelt(value)})") == value


HY = st.recursive(
    st.sampled_from(["x", "1", '"a"', "None"]),
    lambda inner: (
        st.tuples(st.sampled_from(["+", "f", "do", "not", "print", "[]"]), inner, inner).map(
            lambda t: f"[{t[1]} {t[2]}]" if t[0] == "[]" else f"({t[0]} {t[1]} {t[2]})"
        )
        | st.tuples(inner, inner).map(lambda t: f"(let [x {t[0]}] {t[1]})")
        | st.tuples(inner, inner).map(lambda t: f"(lfor y {t[0]} {t[1]})")
        | st.tuples(inner, inner, inner).map(lambda t: f"(if {t[0]} {t[1]} {t[2]})")
        | st.tuples(inner, inner).map(lambda t: f"(cond {t[0]} {t[1]} True {t[0]})")
    ),
    max_leaves=12,
)


@given(HY)
def test_plain_hy_is_left_alone(text: str) -> None:
    assert rewrite(read(text)) == read(text)


FRIENDLY = st.recursive(
    st.sampled_from(["x", "nil", "first", ":k", "'a"]),
    lambda inner: (
        st.tuples(
            st.sampled_from(["map", "filter", "reduce", "str", "->", "->>", "gather", "if", "cond"]),
            inner,
            inner,
        ).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
        | st.tuples(inner, inner).map(lambda t: f"(let ((x {t[0]}) (y x)) {t[1]})")
        | inner.map(lambda t: f"(last {t})")
    ),
    max_leaves=25,
)


@given(FRIENDLY)
def test_a_rewritten_program_is_a_constant_times_longer_and_every_node_has_its_place(text: str) -> None:
    before, after = list(nodes(read(text))), list(nodes(rewrite(read(text))))
    assert len(after) <= 40 * len(before)
    assert all(node.start_line == 1 and 1 <= node.start_column <= len(text) for node in after)


def test_nesting_to_the_readers_bound_is_rewritten() -> None:
    text = "(inc " * 58 + "1" + ")" * 58
    assert rewritten(text).count("+") == 58
    for head in ("map f", "str 1", "reduce f", "->> 1 first", "cond :else"):
        with_head = f"({head} " * 58 + "1" + ")" * 58
        assert len(list(nodes(rewrite(read(with_head))))) < 60 * 40


def test_a_thread_without_end_is_refused_in_a_sentence() -> None:
    compile_program(f"(-> 1 {'(+ 1) ' * MAX_STEPS})")
    long = f"(-> 1 {'(+ 1) ' * (MAX_STEPS + 1)})"
    said = complaint(ProgramError, lambda: compile_program(long))
    assert said.startswith(f"line 1, column 1: -> {DOES_NOT_FIT_HERE}; write (-> 7 (- 2) str)")
    deep = "1"
    for _ in range(50):
        deep = f"(-> {deep} {'(+ 1) ' * MAX_STEPS})"
    said = complaint(ProgramError, lambda: compile_program(deep))
    assert said.startswith((f"The program is {NESTED_TOO_DEEPLY}", "line 1, column 1: the program is nested"))


# The check stands behind the rewriting

SMUGGLED = r"""
(-> 1 (do-mac))
(-> 1 do-mac)
(->> 1 (-> 2 do-mac))
(->> (open "SENTINEL" "w") (do-mac 1))
(map do-mac [1])
(map 'do-mac [1])
(filter do-mac [1])
(reduce do-mac [1 2])
(reduce hy.eval [1 2])
(apply do-mac [1])
(apply 'eval-and-compile [1])
(funcall 'do-mac 1)
(funcall 'hy.eval 1)
(sort-by hy.eval [1])
(lambda (x) (do-mac x))
(lambda (&optional (x (do-mac 1))) x)
(defun f (x &rest (do-mac 1)) x)
(defun hy () 1)
(define (hy x) 1)
(def __class__ 1)
(let ((hy 1)) 1)
(let ((x (do-mac 1))) x)
(let* ((x 1) (y (do-mac 1))) y)
(dotimes [hy 3] 1)
(doseq [x (do-mac 1)] x)
(cond ((do-mac 1) 2) (t 3))
(unless (do-mac 1) 2)
(when-let [hy 1] 2)
(-> "" .__class__)
(map .__class__ [1])
(str 1 (do-mac 1))
(first (do-mac 1))
(sorted [1] :key hy.eval)
(assoc {} 1 (do-mac 1))
(get {} 1 (do-mac 1))
(if (do-mac 1) 2)
f"{(-> 1 (do-mac))}"
f"{1 :{(map do-mac [1])}}"
(next (map do-mac [1]))
(for [x [1]] (do-mac x))
(setv x (for [y [1]] (do-mac y)))
(import hy)
"""


@pytest.mark.parametrize("text", SMUGGLED.strip().splitlines())
def test_nothing_is_smuggled_in_by_an_idiom(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    seen = []
    monkeypatch.setattr(program, "hy_compile", lambda *_, **__: seen.append(text))
    said = complaint(ProgramError, lambda: compile_program(text))
    assert not seen
    assert said.startswith("line 1, column ")


def test_the_check_sees_what_the_rewriting_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [m.Expression([m.Symbol("do-mac"), m.Integer(1)])]
    monkeypatch.setattr(program, "rewrite", lambda forms, *_: made)
    said = complaint(ProgramError, lambda: compile_program("(inc 1)"))
    assert f"do-mac {CANNOT_BE_USED_IN_A}" in said


def test_what_was_quoted_is_text_and_no_code(run: Run) -> None:
    assert run("(echo '(do-mac (open :x hy.eval __class__)))") == [
        "do-mac",
        ["open", "x", "hy.eval", "__class__"],
    ]


def test_an_error_points_at_the_form_that_was_written() -> None:
    said = complaint(ProgramError, lambda: compile_program("(->> [1]\n     (map (fn [x] (do-mac x))))"))
    assert said.splitlines()[1:] == ["     (map (fn [x] (do-mac x))))", "                   ^"]
