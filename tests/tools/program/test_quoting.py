"""Quoted forms are compiled to constants and functions of ours; a program without them compiles as before."""

from __future__ import annotations

import hashlib
import re

import pytest

from quoth.tools.program.compiler import ProgramError, compile_program, free_names

CORPUS = tuple(
    r"""
(+ 1 2)
(setv x 5) (* x x)
(defn f [a [b 2]] (+ a b)) (f 1)
(lfor x [1 2 3] :if (> x 1) (* x x))
(pmap (fn [p] (read-file :path p)) ["a" "b"])
(match [1 2] [a #* r] r _ None)
(not (= 1 2))
(len "abc")
(for [y [7 8]] (print (+ y 1)))
(let [x 1 y 2] (+ x y))
(cond (= 1 2) "a" True "b")
(try (read-file "a.txt") (except [e Exception] (str e)))
(get {"a" 1} :a)
(-> 7 (- 2) str)
(first [1 2])
(rest [1 2])
(empty? [])
(list (reversed [1 2]))
(setv d {:a 1}) (. d ["a"])
(while False 1)
(defclass P [] (setv x 1)) (. (P) x)
(sorted [3 1] :key (fn [x] (- x)))
(import math) (math.sqrt 4)
(mapcar str [1 2])
(when True 1 2)
(dfor x [1 2] x (* x x))
(setv [a #* b] [1 2 3]) b
(reduce + [1 2 3])
(do (setx y 3) y)
:key
""".strip().splitlines()
)
# What the compiler made of them before it knew forms.
BEFORE = "82f65013aa6786eb76428c39abdceb2d9083a6bdae990083e174ca239336b90b"


def test_a_program_without_quotes_compiles_to_the_same_python() -> None:
    made = "\0".join(compile_program(text, ("eval", "read-file")).python for text in CORPUS)
    assert hashlib.sha256(made.encode()).hexdigest() == BEFORE


def test_a_quoted_form_is_a_constant_in_front_of_the_program() -> None:
    python = compile_program("(setv f '(f 1 [a]))").python
    name = re.findall(r"^f = (__quoted_\w+)$", python, re.MULTILINE)[0]
    assert f"{name} = __Form('(', (__Sym('f'), 1, __Form('[', (__Sym('a'),))))" in python.splitlines()


def test_a_form_has_the_same_name_in_every_program_and_different_forms_have_different_names() -> None:
    made = [compile_program(text).python for text in ("'(a b)", "'x '(a b) '(a b)", "`(a ~b)", "`(a ~c)")]
    names = [re.findall(r"^(?:def )?(__quoted_\w+)(?: =|\()", python, re.MULTILINE) for python in made]
    assert [len(found) for found in names] == [1, 2, 1, 1]
    assert names[0][0] == names[1][1]
    assert len({name for found in names for name in found}) == 4


def test_the_parts_of_a_quasiquote_are_evaluated_and_levels_are_counted() -> None:
    python = compile_program("`(a ~e ~@es `(b ~(c ~d)))").python
    assert "__Sym('a'), __part(_0), *__parts(_1)" in python
    assert re.search(r"__quoted_\w+\(e, es, d\)", python)
    assert [name.name for name in free_names("`(a ~e ~@es `(b ~(c ~d)))")] == ["e", "es", "d"]


@pytest.mark.parametrize(
    "text",
    [
        "`~@[1]", "(quote)", "(quote a b)", "(import 'os)", "(setv 'x 1)", "(fn ['x] 1)",
        "(defn 'f [] 1)", "(for ['x [1]] 1)", "__quoted_1", "(setv __quoted_1 2) 'a", "(__Form 1)",
        "`(~#* x)",
        "`(a ~(hy.eval 1))", "`(a ~@(do-mac 1))", "`(a ~((. do-mac) 1))", "`(a ~(hy.R.os.system \"id\"))",
        "`(a `(b ~(c ~(hy.R.os.system \"id\"))))", "`(a ~f\"{(do-mac 1)}\")", "(global 'x)", "`(a ~__part)",
    ],
)  # fmt: skip
def test_what_is_no_data_and_what_runs_code_is_refused(text: str) -> None:
    with pytest.raises(ProgramError):
        compile_program(text)


def test_quoted_host_names_are_data() -> None:
    assert "__Sym('hy')" in compile_program('\'(hy.R.os.system "id")').python
    assert "__Sym('do-mac')" in compile_program("'(do-mac (print 1))").python
