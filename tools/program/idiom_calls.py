"""Rules for idioms that are calls: of functions, on texts, and on collections.

A rule turns one form into another, or returns None. It must not know the table or who walks the program.
"""

from __future__ import annotations

from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.syntax import (
    CONSTANTS,
    Builder,
    Names,
    Rule,
    begins,
    fixed_arity,
    is_constant,
    is_text,
)

MAX_STEPS = 60  # of a threading form: each nests the program one level deeper

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
    """Lisp's order is (reduce f start xs); it is Python's if only the last argument is a constant."""
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
    """``.name``, a method's name as a head."""
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


def quote(w: Builder, node: Any, env: Names) -> Any:
    return _data(w, node[1]) if len(node) == 2 else None


def _data(w: Builder, node: Any) -> Any:
    """Quoted forms as plain data: a name or keyword is its text, a form a list. None: an f-string."""
    if isinstance(node, m.Symbol):
        name = CONSTANTS.get(str(node))
        return (m.Symbol(name) if name else m.String(str(node))).replace(node)
    if isinstance(node, m.Keyword):
        return m.String(node.name).replace(node)
    if isinstance(node, (m.FString, m.FComponent)):
        return None
    if begins(node, ".") and all(isinstance(part, m.Symbol) for part in node):  # a dotted name
        return m.String(show(node)).replace(node)
    if isinstance(node, m.Sequence):
        parts = [_data(w, part) for part in node]
        kind = m.List if isinstance(node, m.Expression) else type(node)
        return None if any(part is None for part in parts) else w.of(kind, node, parts)
    return node
