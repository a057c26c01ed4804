"""Idioms of other Lisps, read as the Hy they mean: the table, a row for each.

A rewrite runs nothing and decides nothing: what it makes is checked like any other program. The table must
not know who walks a program with it, tools, the sandbox, or doors.
"""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.reader import read_one
from quoth.tools.lisp.syntax import CONSTANTS, Maker, Names, Rule, is_core, mangled, plain, symbols_in
from quoth.tools.program import idiom_calls as calls
from quoth.tools.program import idiom_forms as control


@dataclass(frozen=True)
class Idiom:
    """One row: ``written`` is an example, ``means`` what it is read as, ``value`` what it comes to."""

    names: str
    written: str
    means: str
    value: Any
    doc: str
    rule: Rule | None = None  # a constant has none
    as_value: bool = False  # the bare name is a function too: (sorted xs :key first)


# ---- rules by another name, and by a template


def _renamed(name: str) -> Rule:
    def rule(w: Maker, node: Any, env: Names) -> Any:
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

    def fill(w: Maker, part: Any, node: Any, given: dict[str, Any]) -> Any:
        if isinstance(part, m.Symbol):
            return given[str(part)] if str(part) in given else m.Symbol(str(part)).replace(node)
        if isinstance(part, m.Sequence):
            return w.of(type(part), node, [fill(w, inner, node, given) for inner in part])
        return type(part)(part).replace(node)

    def rule(w: Maker, node: Any, env: Names) -> Any:
        if len(node) != len(parameters) + 1 or not plain(node[1:]) or needed & env:
            return None
        return fill(w, shape, node, dict(zip(parameters, node[1:], strict=True)))

    return rule


# ---- the table

_FIRST = "(next (iter xs) None)"
_SECOND = "(next (iter (cut (list xs) 1 None)) None)"
_LAST = "(next (iter (cut (list xs) -1 None)) None)"


def _row(pattern: str, means: str, example: str, value: Any, doc: str, **options: Any) -> Idiom:
    """A row whose rule is a template."""
    head = pattern[1:].split()[0].rstrip(")")
    rule = _template(pattern, means)
    return Idiom(head, example, _told(rule, example), value, doc, rule, **options)


def _told(rule: Rule, example: str) -> str:
    form = read_one(example)
    return show(rule(Maker([form], ()), form, frozenset()))


def _same(names: str, head: str, example: str, value: Any, doc: str) -> Idiom:
    """A row whose rule is another name."""
    rule = _renamed(head)
    return Idiom(names, example, _told(rule, example), value, doc, rule)


IDIOMS: tuple[Idiom, ...] = (
    Idiom("nil null none", "nil", "None", None, "Nothing."),
    Idiom("true", "true", "True", True, "Truth."),
    Idiom("false", "false", "False", False, "Its opposite."),
    _same("progn begin", "do", "(progn 1 2)", 2, "Several forms; the value is the last one's."),
    Idiom(
        "defn defun", "(defun f (a &optional (b 2)) (+ a b))", "(defn f [a [b 2]] (+ a b))", None,
        "A function; parameters in either brackets, &rest and & for the rest, a docstring before them.",
        control.function,
    ),
    Idiom(
        "fn lambda", "((lambda (x) (* x x)) 3)", "((fn [x] (* x x)) 3)", 9,
        "A function without a name.", control.function,
    ),
    Idiom("define", "(define (f x) x)", "(defn f [x] x)", None, "Scheme's definition.", control.define),
    Idiom("def defvar defparameter", "(def x 1)", "(setv x 1)", None, "A variable.", control.define),
    Idiom(
        "let", "(let ((x 1) (y 2)) (+ x y))", "(let [x 1  y 2] (+ x y))", 3,
        "Common Lisp's let: all values are computed before the names hold.", control.let,
    ),
    Idiom(
        "let*", "(let* ((x 1) (y x)) y)", "(let [x 1  y x] y)", 1,
        "Each value sees the names before.", control.let_star,
    ),
    Idiom(
        "cond", '(cond ((= 1 2) "a") (t "b"))', '(cond (= 1 2) "a" True "b")', "b",
        "Clauses in brackets of their own, or a test :else at the end.", control.cond,
    ),
    Idiom("if", "(if False 1)", "(if False 1 None)", None, "Without an else the value is None.", control.if_),
    Idiom(
        "unless when-not", "(unless False 1)", "(when (not False) 1)", 1,
        "When the test fails.", control.unless,
    ),
    Idiom("if-not", "(if-not False 1 2)", "(if (not False) 1 2)", 1, "If the test fails.", control.if_not),
    Idiom(
        "when-let if-let", "(when-let [x 5] (+ x 1))", "(let [x 5] (when x (+ x 1)))", 6,
        "A name for a value that is there.", control.test_let,
    ),
    Idiom(
        "dotimes", "(dotimes [i 3] (print i))", "(for [i (range 3)] (print i))", "0\n1\n2",
        "So often.", control.dotimes,
    ),
    Idiom(
        "doseq dolist", "(doseq [x [1 2] :when (> x 1)] (print x))", "(for [x [1 2] :if (> x 1)] (print x))",
        "2",
        "For each.", control.doseq,
    ),
    Idiom(
        "->", "(-> 7 (- 2) str)", "(str (- 7 2))", "5",
        "Each step takes the value before it first.", calls.thread(False),
    ),
    Idiom(
        "->>", "(->> 7 (- 2) str)", "(str (- 2 7))", "-5",
        "Each step takes the value before it last.", calls.thread(True),
    ),
    Idiom(
        "map mapv mapcar", "(map str [1 2])", "(lfor it_1 [1 2] (str it_1))", ["1", "2"],
        "A list; a tool may be the function.", calls.map_,
    ),
    Idiom(
        "filter filterv remove-if-not", "(filter odd? [1 2 3])",
        "(lfor it_1 [1 2 3] :if (odd? it_1) it_1)", [1, 3],
        "A list of what passes; a tool may be the test.", calls.filtered(True),
    ),
    Idiom(
        "remove-if", "(remove-if odd? [1 2])", "(lfor it_1 [1 2] :if (not (odd? it_1)) it_1)", [2],
        "A list of what does not pass.", calls.filtered(False),
    ),
    Idiom(
        "reduce", "(reduce + 10 [1 2])",
        "(do (setv it_1 10) (setv it_3 [1 2]) (for [it_2 it_3] (setv it_1 (+ it_1 it_2))) it_1)", 13,
        "From the left, with a start before the list or none.", calls.reduce,
    ),
    Idiom(
        "apply", "(apply max [1 3 2])", "(max #* [1 3 2])", 3,
        "The last argument holds arguments.", calls.apply,
    ),
    Idiom(
        "gather", "(gather (+ 1 2) 4)", "(pmap (fn [it_1] (it_1)) [(fn [] (+ 1 2)) (fn [] 4)])", [3, 4],
        "Side by side: a list of the values of all.", control.gather,
    ),
    Idiom("funcall", "(funcall 'max 1 2)", "(max 1 2)", 2, "A call.", calls.funcall),
    Idiom(
        "sort-by", "(sort-by len [[1 2] []])", "(sorted [[1 2] []] :key len)", [[], [1, 2]],
        "Sorted by a key.", calls.by,
    ),
    Idiom(
        "next", "(next (filter None [0 5]))", "(next (iter (filter None [0 5])))", 5,
        "The first of them.", calls.next_,
    ),
    Idiom(
        ":", '(:a {"a" 1})', '(.get {"a" 1} "a")', 1,
        "A keyword as function: what a dictionary holds there, or None.", calls.keyword_call,
    ),
    Idiom(
        "get", '(get {"a" 1} :b nil)', '(.get {"a" 1} :b nil)', None,
        "A default, if it cannot be a key.", calls.get,
    ),
    Idiom("str", '(str "a" 1)', '(.join "" ["a" (str 1)])', "a1", "Several values as one text.", calls.str_),
    Idiom(
        "concat append concatenate", "(concat [1] [2 3])", "(+ [1] [2 3])", [1, 2, 3],
        "Joined; texts too.", calls.concat,
    ),
    Idiom("list", "(list 1 2)", "[1 2]", [1, 2], "A list of several values.", calls.list_),
    Idiom("vector", "(vector 1)", "[1]", [1], "A list.", calls.vector),
    Idiom("hash-map", "(hash-map :a 1)", "{:a 1}", {"a": 1}, "A dictionary.", calls.hash_map),
    Idiom("dict", '(dict "a" 1)', '{"a" 1}', {"a": 1}, "A dictionary of keys and values.", calls.dict_),
    Idiom(
        "assoc", '(assoc {"a" 1} :b 2)', '{#** {"a" 1} :b 2}', {"a": 1, "b": 2},
        "A changed copy.", calls.assoc,
    ),
    Idiom("cons", "(cons 1 [2])", "[1 #* [2]]", [1, 2], "One more, in front.", calls.cons(False)),
    Idiom("conj", "(conj [1] 2)", "[#* [1] 2]", [1, 2], "One more, at the end.", calls.cons(True)),
    Idiom("nth", "(nth [5 6] 1)", "(get (list [5 6]) 1)", 6, "By place; in either order.", calls.nth),
    Idiom(
        "quote", "'(1 x :k)", '[1 "x" "k"]', [1, "x", "k"],
        "Data: a name is its text, a form a list.", calls.quote,
    ),
    _row("(first xs)", _FIRST, "(first [4 5])", 4, "The first, or None.", as_value=True),
    _row("(second xs)", _SECOND, "(second [4 5])", 5, "The second, or None.", as_value=True),
    _row("(last xs)", _LAST, "(last [4 5])", 5, "The last one, or None.", as_value=True),
    _row(
        "(rest xs)", "(cut (list xs) 1 None)", "(rest [4 5])", [5],
        "A list of all but the first.", as_value=True,
    ),
    _row("(count xs)", "(len xs)", "(count [4 5])", 2, "How many.", as_value=True),
    _row("(length xs)", "(len xs)", "(length [4 5])", 2, "How many.", as_value=True),
    _row("(inc x)", "(+ x 1)", "(inc 4)", 5, "One more.", as_value=True),
    _row("(dec x)", "(- x 1)", "(dec 4)", 3, "One less.", as_value=True),
    _row("(even? x)", "(= (% x 2) 0)", "(even? 4)", True, "A test.", as_value=True),
    _row("(odd? x)", "(= (% x 2) 1)", "(odd? 4)", False, "A test.", as_value=True),
    _row("(zero? x)", "(= x 0)", "(zero? 0)", True, "A test.", as_value=True),
    _row("(empty? xs)", "(not xs)", "(empty? [])", True, "A test.", as_value=True),
    _row("(nil? x)", "(is x None)", "(nil? nil)", True, "A test.", as_value=True),
    _row("(some? x)", "(is-not x None)", "(some? nil)", False, "A test.", as_value=True),
    _row("(null? x)", "(not x)", "(null? [])", True, "A test.", as_value=True),
    _row("(contains? m k)", "(in k m)", '(contains? {"a" 1} :a)', True, "Whether a key is there."),
    _row("(keys m)", "(list m)", '(keys {"a" 1})', ["a"], "A list of the keys.", as_value=True),
    _row("(vals m)", "(list (.values m))", '(vals {"a" 1})', [1], "A list of the values.", as_value=True),
    _row("(reverse xs)", "(list (reversed xs))", "(reverse [1 2])", [2, 1], "Backwards.", as_value=True),
    Idiom("sort", "(sort [2 1])", "(sorted [2 1])", [1, 2], "In order.", calls.sort, as_value=True),
    _row("(take n xs)", "(cut (list xs) n)", "(take 2 [1 2 3])", [1, 2], "The first few."),
    _row("(drop n xs)", "(cut (list xs) n None)", "(drop 2 [1 2 3])", [3], "All but the first few."),
    _same("== eq? eq eql equal equal?", "=", "(== 1 1)", True, "Equality."),
    _same("not=", "!=", "(not= 1 1)", False, "Its opposite."),
    _same("mod", "%", "(mod 7 4)", 3, "What is left."),
    _same("&&", "and", "(&& 1 2)", 2, "And."),
    _same("||", "or", "(|| 0 2)", 2, "Or."),
    _same("println", "print", '(println "a" 1)', "a 1", "A printed line."),
)  # fmt: skip

RULES: dict[str, Rule] = {name: row.rule for row in IDIOMS if row.rule for name in row.names.split()}
VALUES = frozenset(name for row in IDIOMS if row.as_value for name in row.names.split())
