"""The table of idioms from other Lisps, each with the rule that rewrites it to Hy: first the rules for calls,
then the rules for definitions, bindings, conditions and loops.

A rule turns one form into another, or returns None. It does not run or permit anything: its result is checked
like any other program."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any

import hy.models as m

from quoth.tools.lisp.reader import read_one
from quoth.tools.lisp.syntax import (
    CONSTANTS,
    Builder,
    Names,
    Rule,
    begins,
    fixed_arity,
    head_of,
    is_constant,
    is_core,
    is_text,
    mangled,
    symbols_in,
)
from quoth.tools.program.quoting import quasiquote, quote

ELSE = frozenset(("t", "else", "otherwise"))  # heads of the last clause of a cond
MAX_STEPS = 60  # steps of a threading form; each nests the program one level deeper

# Functions


def map_(w: Builder, node: Any, env: Names) -> Any:
    if len(node) < 3 or not fixed_arity(node[2:]) or (len(node) > 3 and "zip" in env):
        return None
    clauses, call = w.function(node, node[1])
    names = [w.fresh(node) for _ in node[2:]]
    if len(names) == 1:
        over = [names[0], node[2]]
    else:
        over = [w.of(m.List, node, names), w.form(node, "zip", *node[2:])]
    return w.form(node, "lfor", *_once(w, node, clauses), *over, call(*names))


def _once(w: Builder, node: Any, clauses: list[Any]) -> list[Any]:
    """A name and its one value, as a clause of a comprehension."""
    return [clauses[0], w.of(m.List, node, [clauses[1]])] if clauses else []


def filter_(w: Builder, node: Any, env: Names) -> Any:
    if len(node) != 3 or not fixed_arity(node[2:]):
        return None
    name = w.fresh(node)
    clauses: list[Any] = []
    test = name
    if str(node[1]) not in CONSTANTS:
        clauses, call = w.function(node, node[1])
        test = call(name)
    at = m.Keyword("if").replace(node)
    return w.form(node, "lfor", *_once(w, node, clauses), name, node[2], at, test, name)


def reduce(w: Builder, node: Any, env: Names) -> Any:
    """Lisp's order is (reduce f start xs). It is Python's order if only the last argument is a constant."""
    items = list(node[2:])
    start = None
    if len(items) == 3 and isinstance(items[1], m.Keyword) and items[1].name == "initial-value":
        items, start = items[:1], items[2]
    elif len(items) == 2:
        if is_constant(items[1]) and not is_constant(items[0]):
            items.reverse()
        start = items.pop(0)
    if len(items) != 1 or not fixed_arity([node[1], *items]) or "list" in env:
        return None
    clauses, call = w.function(node, node[1])
    result, each, all_ = w.fresh(node), w.fresh(node), w.fresh(node)
    made = [w.form(node, "setv", *clauses)] if clauses else []
    if start is not None:
        made += [w.form(node, "setv", result, start), w.form(node, "setv", all_, items[0])]
    else:
        first = w.form(node, "if", all_, w.form(node, "get", all_, m.Integer(0).replace(node)), call())
        rest = w.form(node, "cut", all_, m.Integer(1).replace(node), "None")
        made += [w.form(node, "setv", all_, w.form(node, "list", items[0]))]
        made += [w.form(node, "setv", result, first, all_, rest)]
    step = w.form(node, "setv", result, call(result, each))
    return w.form(node, "do", *made, w.form(node, "for", w.of(m.List, node, [each, all_]), step), result)


def thread(last: bool) -> Rule:
    def rule(w: Builder, node: Any, env: Names) -> Any:
        if not 2 <= len(node) <= MAX_STEPS + 2:
            return None
        so_far = node[1]
        for step in node[2:]:
            if begins(step, "fn", "lambda", ".") or isinstance(step, (m.Symbol, m.Keyword)):
                so_far = w.form(step, step, so_far)
            elif not isinstance(step, m.Expression) or not step or begins(step, "quote"):
                return None
            elif last:
                so_far = w.form(step, *step, so_far)
            else:
                so_far = w.form(step, step[0], so_far, *step[1:])
        return so_far

    return rule


def _dotted(w: Builder, node: Any, name: str) -> Any:
    """``.name``: the name of a method as a head."""
    return w.form(node, ".", "None", name)


# Texts and collections


def str_(w: Builder, node: Any, env: Names) -> Any:
    if len(node) < 3 or not fixed_arity(node[1:]) or "str" in env:
        return None
    if any(isinstance(item, m.Keyword) and item.name in ("encoding", "errors") for item in node):
        return None
    if str(node[2]).lower() in ("utf-8", "utf8", "ascii", "latin-1"):  # Python's (str data "utf-8")
        return None
    parts = [
        item if is_text(item) or isinstance(item, m.Keyword) else w.form(node, "str", item)
        for item in node[1:]
    ]
    return w.form(node, _dotted(w, node, "join"), m.String("").replace(node), w.of(m.List, node, parts))


def function(w: Builder, node: Any, env: Names) -> Any:
    """fn, lambda, defn and defun, with parameters in ( ) or [ ], and & or &rest and &optional among them."""
    named = begins(node, "defn", "defun")
    head = "defn" if named else "fn"
    place = 1 + named
    if named and place < len(node) and not isinstance(node[1], m.Symbol):
        return None  # decorators, annotations or :async: Hy's own
    note = []
    if named and place + 1 < len(node) and isinstance(node[place], m.String):  # Clojure's docstring
        note = [node[place]]
        place += 1
    if (
        place >= len(node)
        or not isinstance(node[place], (m.List, m.Expression))
        or begins(node[place], "annotate")
    ):
        return None
    if begins(node[place], "unpack-iterable", "unpack-mapping"):
        return None
    parameters = _parameters(w, node[place])
    if parameters is None:
        return None
    if head == head_of(node) and parameters is node[place] and not note:
        return None
    return w.form(node, head, *node[1 : 1 + named], parameters, *note, *node[place + 1 :])


def _parameters(w: Builder, node: Any) -> Any:
    foreign = {"&", "&rest", "&body", "&optional"} & {
        str(item) for item in node if isinstance(item, m.Symbol)
    }
    pairs = any(
        isinstance(i, m.Expression) and not begins(i, "annotate", "unpack-iterable", "unpack-mapping")
        for i in node
    )
    if isinstance(node, m.List) and not foreign:
        return None if pairs else node
    made: list[Any] = []
    mode = ""
    for item in node:
        if isinstance(item, m.Symbol) and str(item) in foreign:
            mode = str(item)
        elif mode == "&optional" and isinstance(item, m.Symbol):
            made.append(w.of(m.List, item, [item, "None"]))
        elif mode == "&optional" and isinstance(item, m.Expression) and len(item) == 2:
            made.append(w.of(m.List, item, item))
        elif mode:
            made.append(w.form(item, "unpack-iterable", item))
        elif isinstance(item, (m.Symbol, m.List)) or begins(
            item, "annotate", "unpack-iterable", "unpack-mapping"
        ):
            made.append(item)
        else:
            return None
    return w.of(m.List, node, made)


def define(w: Builder, node: Any, env: Names) -> Any:
    if len(node) > 2 and isinstance(node[1], m.Expression) and head_of(node[1]) and begins(node, "define"):
        return w.form(node, "defn", node[1][0], w.of(m.List, node, node[1][1:]), *node[2:])
    return w.form(node, "setv", *node[1:]) if len(node) == 3 and isinstance(node[1], m.Symbol) else None


def let(w: Builder, node: Any, env: Names) -> Any:
    """Bindings become Hy's flat list. Common Lisp's ``let`` evaluates all values before it binds any."""
    if len(node) < 2:
        return None
    pairs = _pairs(node[1])
    if pairs is None:
        return None
    if not begins(node, "let*") and _sees_before(pairs):
        kept = [(w.fresh(node), value) for _, value in pairs]
        pairs = kept + [(name, k) for (name, _), (k, _) in zip(pairs, kept, strict=True)]
    return w.form(node, "let", w.of(m.List, node[1], [part for pair in pairs for part in pair]), *node[2:])


def _sees_before(pairs: list[tuple[Any, Any]]) -> bool:
    """Whether a value uses a name that is bound before it."""
    before: set[str] = set()
    for name, value in pairs:
        if before & set(symbols_in(value)):
            return True
        before.add(mangled(str(name)))
    return False


def _pairs(bindings: Any) -> list[tuple[Any, Any]] | None:
    """The bindings in ((x 1) (y 2)), ([x 1]), (x 1 y 2) or [[x 1]]. None if they are Hy's own, or wrong."""
    if not isinstance(bindings, (m.List, m.Expression)) or not bindings:
        return None
    paired = all(
        isinstance(i, (m.List, m.Expression)) and len(i) == 2 and isinstance(i[0], m.Symbol) for i in bindings
    )
    if isinstance(bindings, m.List):
        impossible = len(bindings) % 2 or not all(isinstance(i[1], m.Symbol) for i in bindings[::2] if paired)
        return [(i[0], i[1]) for i in bindings] if paired and impossible else None
    if paired:
        return [(i[0], i[1]) for i in bindings]
    flat = len(bindings) % 2 == 0 and all(isinstance(i, m.Symbol) for i in bindings[::2])
    if flat:
        return list(zip(bindings[::2], bindings[1::2], strict=True))
    return None


def let_star(w: Builder, node: Any, env: Names) -> Any:
    return let(w, node, env) or (w.form(node, "let", *node[1:]) if len(node) > 1 else None)


def cond(w: Builder, node: Any, env: Names) -> Any:
    clauses = node[1:]
    if clauses and all(isinstance(c, (m.Expression, m.List)) and len(c) > 1 for c in clauses):
        sure = [_is_clause(c) for c in clauses]
        if all(sure) or (any(sure) and len(clauses) % 2):  # otherwise it may be Hy's: a test, then a value
            made: list[Any] = []
            for clause in clauses:
                word = str(clause[0])
                final = clause is clauses[-1] and word in ELSE and mangled(word) not in env
                test = "True" if final or isinstance(clause[0], m.Keyword) else clause[0]
                body = clause[1] if len(clause) == 2 else w.form(clause, "do", *clause[1:])
                made += [test, body]
            return w.form(node, "cond", *made)
    if len(clauses) % 2:
        return None
    tests = clauses[::2]
    if tests and (isinstance(tests[-1], m.Keyword) or str(tests[-1]) in ELSE):
        if not isinstance(tests[-1], m.Keyword) and mangled(str(tests[-1])) in env:
            return None
        return w.form(node, "cond", *clauses[:-2], "True", clauses[-1])
    return None


def _is_clause(form: Any) -> bool:
    """Whether ``form`` is ((= x 1) …) or [test …], which cannot be a test by itself."""
    if isinstance(form, m.List):
        return True
    first = form[0]
    if isinstance(first, m.Expression):
        return not begins(first, "fn", "lambda", ".")
    return is_constant(first) or str(first) in ELSE


def if_(w: Builder, node: Any, env: Names) -> Any:
    return w.form(node, *node, "None") if len(node) == 3 else None


def unless(w: Builder, node: Any, env: Names) -> Any:
    return w.form(node, "when", w.form(node, "not", node[1]), *node[2:]) if len(node) > 2 else None


def dotimes(w: Builder, node: Any, env: Names) -> Any:
    if (
        len(node) < 2
        or not isinstance(node[1], (m.List, m.Expression))
        or len(node[1]) != 2
        or "range" in env
    ):
        return None
    name, times = node[1]
    over = w.of(m.List, node[1], [name, w.form(node, "range", times)])
    return w.form(node, "for", over, *node[2:])


def doseq(w: Builder, node: Any, env: Names) -> Any:
    if len(node) < 2 or not isinstance(node[1], (m.List, m.Expression)) or len(node[1]) % 2 or not node[1]:
        return None
    clauses = [
        m.Keyword("if").replace(i) if isinstance(i, m.Keyword) and i.name == "when" else i for i in node[1]
    ]
    return w.form(node, "for", w.of(m.List, node[1], clauses), *node[2:])


def gather(w: Builder, node: Any, env: Names) -> Any:
    if "pmap" in env:
        return None
    parts = [w.form(part, "fn", w.of(m.List, part, []), part) for part in node[1:]]
    one = w.fresh(node)
    call = w.form(node, "fn", w.of(m.List, node, [one]), w.form(node, one))
    return w.form(node, "pmap", call, w.of(m.List, node, parts))


@dataclass(frozen=True)
class Idiom:
    """One row: its heads, an example, and the rule that rewrites it to Hy (None for a constant)."""

    names: str
    written: str
    rule: Rule | None = None


# ---- rules by another name, and by a template


def _date(w: Builder, node: Any, text: Any) -> Any:
    """The date that an ISO text names. Its import comes with it, under an unused name."""
    name = w.fresh(node)
    load = w.form(node, "import", "datetime", m.Keyword("as").replace(node), name)
    return w.form(node, "do", load, w.form(node, w.form(node, ".", name, "date", "fromisoformat"), text))


def days_between(w: Builder, node: Any, env: Names) -> Any:
    if len(node) != 3 or not fixed_arity(node[1:]):
        return None
    since = w.form(node, "-", _date(w, node, node[1]), _date(w, node, node[2]))
    return w.form(node, "-", w.form(node, ".", since, "days"))


def weekday(w: Builder, node: Any, env: Names) -> Any:
    if len(node) != 2 or not fixed_arity(node[1:]):
        return None
    named = w.form(node, ".", _date(w, node, node[1]), "strftime")
    return w.form(node, named, m.String("%A").replace(node))


def _renamed(name: str) -> Rule:
    def rule(w: Builder, node: Any, env: Names) -> Any:
        if not is_core(name) and mangled(name) in env:
            return None
        return w.form(node, name, *node[1:])

    return rule


def _template(pattern: str, means: str) -> Rule:
    """A rule for a fixed number of positional arguments. ``means`` contains each of them once, so each runs
    once."""
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
_MEAN = "((fn [items] (/ (sum items) (len items))) (list xs))"
_LAST = "(next (iter (cut (list xs) -1 None)) None)"


IDIOMS: tuple[Idiom, ...] = (
    Idiom("nil null none", "nil"),
    Idiom("true", "true"),
    Idiom("false", "false"),
    Idiom("progn begin", "(progn 1 2)", _renamed("do")),
    Idiom("defn defun", "(defun f (a &optional (b 2)) (+ a b))", function),
    Idiom("fn lambda", "((lambda (x) (* x x)) 3)", function),
    Idiom("define", "(define (f x) x)", define),
    Idiom("def defvar defparameter", "(def x 1)", define),
    Idiom("let", "(let ((x 1) (y 2)) (+ x y))", let),
    Idiom("let*", "(let* ((x 1) (y x)) y)", let_star),
    Idiom("cond", '(cond ((= 1 2) "a") (t "b"))', cond),
    Idiom("if", "(if False 1)", if_),
    Idiom("unless when-not", "(unless False 1)", unless),
    Idiom("dotimes", "(dotimes [i 3] (print i))", dotimes),
    Idiom("doseq dolist", "(doseq [x [1 2] :when (> x 1)] (print x))", doseq),
    Idiom("->", "(-> 7 (- 2) str)", thread(False)),
    Idiom("->>", "(->> 7 (- 2) str)", thread(True)),
    Idiom("map mapv mapcar", "(map str [1 2])", map_),
    Idiom("filter filterv remove-if-not", "(filter str [1 2])", filter_),
    Idiom("reduce", "(reduce + 10 [1 2])", reduce),
    Idiom("gather", "(gather (+ 1 2) 4)", gather),
    Idiom("str", '(str "a" 1)', str_),
    Idiom("first car", "(first [4 5])", _template("(first xs)", _FIRST)),
    Idiom("last", "(last [4 5])", _template("(last xs)", _LAST)),
    Idiom("rest cdr", "(rest [4 5])", _template("(rest xs)", "(cut (list xs) 1 None)")),
    Idiom("count length", "(count [4 5])", _renamed("len")),
    Idiom("mean average", "(mean [1 2])", _template("(mean xs)", _MEAN)),
    Idiom("days-between", '(days-between "2026-02-28" "2026-03-01")', days_between),
    Idiom("weekday", '(weekday "2026-03-01")', weekday),
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
RULES |= {"quote": quote, "quasiquote": quasiquote}
