"""The table of idioms from other Lisps, each with the rule that rewrites it to Hy.

A rule runs nothing and permits nothing: its result is checked like any other program. The table must not know
who walks a program with it, tools, the sandbox, or doors.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import hy.models as m

from quoth.tools.lisp.reader import read_one
from quoth.tools.lisp.syntax import CONSTANTS, Builder, Names, Rule, fixed_arity, is_core, mangled, symbols_in
from quoth.tools.program import idiom_calls as calls
from quoth.tools.program import idiom_forms as control


@dataclass(frozen=True)
class Idiom:
    """One row: its heads, an example, and the rule that rewrites it to Hy (None for a constant)."""

    names: str
    written: str
    rule: Rule | None = None


# ---- rules by another name, and by a template


def _renamed(name: str) -> Rule:
    def rule(w: Builder, node: Any, env: Names) -> Any:
        if not is_core(name) and mangled(name) in env:
            return None
        return w.form(node, name, *node[1:])

    return rule


def _template(pattern: str, means: str) -> Rule:
    """A rule for a fixed number of arguments by place. Each stands in ``means`` once, so it runs once."""
    _, *parameters = map(str, read_one(pattern))
    shape = read_one(means)
    needed = {
        n for n in symbols_in(shape) if n not in parameters and hasattr(builtins, n) and n not in CONSTANTS
    }

    def fill(w: Builder, part: Any, node: Any, given: dict[str, Any]) -> Any:
        if isinstance(part, m.Symbol):
            return given[str(part)] if str(part) in given else m.Symbol(str(part)).replace(node)
        if isinstance(part, m.Sequence):
            return w.of(type(part), node, [fill(w, inner, node, given) for inner in part])
        return type(part)(part).replace(node)

    def rule(w: Builder, node: Any, env: Names) -> Any:
        if len(node) != len(parameters) + 1 or not fixed_arity(node[1:]) or needed & env:
            return None
        return fill(w, shape, node, dict(zip(parameters, node[1:], strict=True)))

    return rule


# ---- the table

_FIRST = "(next (iter xs) None)"
_LAST = "(next (iter (cut (list xs) -1 None)) None)"


IDIOMS: tuple[Idiom, ...] = (
    Idiom("nil null none", "nil"),
    Idiom("true", "true"),
    Idiom("false", "false"),
    Idiom("progn begin", "(progn 1 2)", _renamed("do")),
    Idiom("defn defun", "(defun f (a &optional (b 2)) (+ a b))", control.function),
    Idiom("fn lambda", "((lambda (x) (* x x)) 3)", control.function),
    Idiom("define", "(define (f x) x)", control.define),
    Idiom("def defvar defparameter", "(def x 1)", control.define),
    Idiom("let", "(let ((x 1) (y 2)) (+ x y))", control.let),
    Idiom("let*", "(let* ((x 1) (y x)) y)", control.let_star),
    Idiom("cond", '(cond ((= 1 2) "a") (t "b"))', control.cond),
    Idiom("if", "(if False 1)", control.if_),
    Idiom("unless when-not", "(unless False 1)", control.unless),
    Idiom("dotimes", "(dotimes [i 3] (print i))", control.dotimes),
    Idiom("doseq dolist", "(doseq [x [1 2] :when (> x 1)] (print x))", control.doseq),
    Idiom("->", "(-> 7 (- 2) str)", calls.thread(False)),
    Idiom("->>", "(->> 7 (- 2) str)", calls.thread(True)),
    Idiom("map mapv mapcar", "(map str [1 2])", calls.map_),
    Idiom("filter filterv remove-if-not", "(filter str [1 2])", calls.filter_),
    Idiom("reduce", "(reduce + 10 [1 2])", calls.reduce),
    Idiom("gather", "(gather (+ 1 2) 4)", control.gather),
    Idiom("str", '(str "a" 1)', calls.str_),
    Idiom("quote", "'(1 x :k)", calls.quote),
    Idiom("first", "(first [4 5])", _template("(first xs)", _FIRST)),
    Idiom("last", "(last [4 5])", _template("(last xs)", _LAST)),
    Idiom("rest", "(rest [4 5])", _template("(rest xs)", "(cut (list xs) 1 None)")),
    Idiom("count length", "(count [4 5])", _renamed("len")),
    Idiom("inc", "(inc 4)", _template("(inc x)", "(+ x 1)")),
    Idiom("dec", "(dec 4)", _template("(dec x)", "(- x 1)")),
    Idiom("empty?", "(empty? [])", _renamed("not")),
    Idiom("nil?", "(nil? nil)", _template("(nil? x)", "(is x None)")),
    Idiom("== eq? eq eql equal equal?", "(== 1 1)", _renamed("=")),
    Idiom("not=", "(not= 1 1)", _renamed("!=")),
    Idiom("mod", "(mod 7 4)", _renamed("%")),
    Idiom("println", '(println "a" 1)', _renamed("print")),
)

RULES: dict[str, Rule] = {name: row.rule for row in IDIOMS if row.rule for name in row.names.split()}
