"""Rules for idioms that define, bind, choose, or repeat.

A rule turns one form into another, or returns None. It must not know the table or who walks the program.
"""

from __future__ import annotations

from typing import Any

import hy.models as m

from quoth.tools.lisp.syntax import Builder, Names, begins, head_of, is_constant, mangled, symbols_in


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
    """Whether a value says a name that is bound before it."""
    before: set[str] = set()
    for name, value in pairs:
        if before & set(symbols_in(value)):
            return True
        before.add(mangled(str(name)))
    return False


def _pairs(bindings: Any) -> list[tuple[Any, Any]] | None:
    """The bindings of ((x 1) (y 2)), ([x 1]), (x 1 y 2) or [[x 1]]. None: they are Hy's own, or wrong."""
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
        if all(sure) or (any(sure) and len(clauses) % 2):  # else it may be Hy's: a test, then a value
            made: list[Any] = []
            for clause in clauses:
                final = clause is clauses[-1] and str(clause[0]) in ("t", "else", "otherwise")
                test = "True" if final or isinstance(clause[0], m.Keyword) else clause[0]
                body = clause[1] if len(clause) == 2 else w.form(clause, "do", *clause[1:])
                made += [test, body]
            return w.form(node, "cond", *made)
    if len(clauses) % 2:
        return None
    tests = clauses[::2]
    if tests and (isinstance(tests[-1], m.Keyword) or str(tests[-1]) in ("else", "otherwise", "t")):
        if not isinstance(tests[-1], m.Keyword) and mangled(str(tests[-1])) in env:
            return None
        return w.form(node, "cond", *clauses[:-2], "True", clauses[-1])
    return None


def _is_clause(form: Any) -> bool:
    """((= x 1) …) or [test …]: nothing that could be a test by itself."""
    if isinstance(form, m.List):
        return True
    first = form[0]
    if isinstance(first, m.Expression):
        return not begins(first, "fn", "lambda", ".")
    return is_constant(first) or str(first) in ("t", "else", "otherwise")


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
