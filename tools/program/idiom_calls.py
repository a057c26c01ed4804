"""Rules for idioms that are calls: of functions, on texts, and on collections.

A rule makes one form out of another. It must not know the table, who walks the program, or what runs it.
"""

from __future__ import annotations

from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.syntax import (
    CONSTANTS,
    Maker,
    Names,
    Rule,
    begins,
    head_of,
    is_constant,
    is_core,
    is_number,
    is_text,
    mangled,
    plain,
)

MAX_STEPS = 60  # of a threading form: each nests the program one level deeper

# Functions


def map_(w: Maker, node: Any, env: Names) -> Any:
    if len(node) < 3 or not plain(node[2:]) or (len(node) > 3 and "zip" in env):
        return None
    clauses, call = w.function(node, node[1])
    names = [w.fresh(node) for _ in node[2:]]
    if len(names) == 1:
        over = [names[0], node[2]]
    else:
        over = [w.of(m.List, node, names), w.form(node, "zip", *node[2:])]
    return w.form(node, "lfor", *_once(w, node, clauses), *over, call(*names))


def _once(w: Maker, node: Any, clauses: list[Any]) -> list[Any]:
    """A name and its one value, as a clause of a comprehension."""
    return [clauses[0], w.of(m.List, node, [clauses[1]])] if clauses else []


def filtered(keep: bool) -> Rule:
    def rule(w: Maker, node: Any, env: Names) -> Any:
        if len(node) != 3 or not plain(node[2:]):
            return None
        name = w.fresh(node)
        clauses: list[Any] = []
        if str(node[1]) in CONSTANTS:
            test = name
        else:
            clauses, call = w.function(node, node[1])
            test = call(name)
        test = test if keep else w.form(node, "not", test)
        at = m.Keyword("if").replace(node)
        return w.form(node, "lfor", *_once(w, node, clauses), name, node[2], at, test, name)

    return rule


def reduce(w: Maker, node: Any, env: Names) -> Any:
    """Lisp's order is (reduce f start xs); a number, text or None at the end can only be Python's start."""
    items = list(node[2:])
    start = None
    if len(items) == 3 and isinstance(items[1], m.Keyword) and items[1].name == "initial-value":
        items, start = items[:1], items[2]
    elif len(items) == 2:
        if is_constant(items[1]) and not is_constant(items[0]):
            items.reverse()
        start = items.pop(0)
    if len(items) != 1 or not plain([node[1], *items]) or "list" in env:
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


def apply(w: Maker, node: Any, env: Names) -> Any:
    if len(node) < 3 or not plain(node[1:]):
        return None
    if len(node) == 3 and is_core(str(node[1])):  # an operator takes no unpacked arguments
        return w.form(node, "reduce", *node[1:])
    head = node[1][1] if begins(node[1], "quote", "function") and len(node[1]) == 2 else node[1]
    return w.form(node, head, *node[2:-1], w.form(node, "unpack-iterable", node[-1]))


def funcall(w: Maker, node: Any, env: Names) -> Any:
    if len(node) < 2:
        return None
    head = node[1][1] if begins(node[1], "quote") and len(node[1]) == 2 else node[1]
    return w.form(node, head, *node[2:])


def by(w: Maker, node: Any, env: Names) -> Any:
    if len(node) != 3 or not plain(node[2:]) or "sorted" in env:
        return None
    key = node[1]
    if isinstance(key, m.Keyword):
        given = w.fresh(node)
        key = w.form(node, "fn", w.of(m.List, node, [given]), w.form(node, key, given))
    return w.form(node, "sorted", node[2], m.Keyword("key").replace(node), key)


def sort(w: Maker, node: Any, env: Names) -> Any:
    if len(node) < 2 or "sorted" in env or not (len(node) == 2 or isinstance(node[2], m.Keyword)):
        return None
    return w.form(node, "sorted", *node[1:])


def next_(w: Maker, node: Any, env: Names) -> Any:
    """Python's next wants an iterator, and map and filter give lists here."""
    if len(node) < 2 or not begins(node[1], "map", "filter") or {mangled(head_of(node[1])), "iter"} & env:
        return None
    return w.form(node, "next", w.form(node, "iter", node[1]), *node[2:])


def thread(last: bool) -> Rule:
    def rule(w: Maker, node: Any, env: Names) -> Any:
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


def nth(w: Maker, node: Any, env: Names) -> Any:
    """Clojure has the list first, Common Lisp the number: whichever is the number is the place."""
    if len(node) != 3 or not plain(node[1:]) or {"list", "isinstance", "int"} & env:
        return None
    one, two = node[1:]
    if isinstance(one, m.Integer):
        one, two = two, one
    if isinstance(two, m.Integer):
        return w.form(node, "get", w.form(node, "list", one), two)
    a, b = w.fresh(node), w.fresh(node)
    test = w.form(node, "isinstance", a, "int")
    yes, no = (w.form(node, "get", w.form(node, "list", x), y) for x, y in ((b, a), (a, b)))
    function = w.form(node, "fn", w.of(m.List, node, [a, b]), w.form(node, "if", test, yes, no))
    return w.form(node, function, one, two)


def keyword_call(w: Maker, node: Any, env: Names) -> Any:
    name = node[0].name
    if not name.replace("-", "_").isidentifier() or len(node) not in (2, 3) or not plain(node[1:]):
        return None
    if mangled(name) in w.tools or isinstance(node[1], m.Keyword):  # a call with a colon too many
        return None
    return w.form(node, _dotted(w, node, "get"), node[1], m.String(name).replace(node), *node[2:])


def _dotted(w: Maker, node: Any, name: str) -> Any:
    """``.name``, a method's name as a head."""
    return w.form(node, ".", "None", name)


def get(w: Maker, node: Any, env: Names) -> Any:
    """Hy's third argument is a key inside; what cannot be a key is the default it is in Clojure."""
    if len(node) != 4:
        return None
    default = node[3]
    if not (str(default) in CONSTANTS or (isinstance(default, (m.List, m.Dict)) and not default)):
        return None
    return w.form(node, _dotted(w, node, "get"), *node[1:])


# Texts and collections


def str_(w: Maker, node: Any, env: Names) -> Any:
    if len(node) < 3 or not plain(node[1:]) or "str" in env:
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


def concat(w: Maker, node: Any, env: Names) -> Any:
    items = list(node[1:])
    if begins(node, "concatenate") and items and begins(items[0], "quote"):
        del items[0]
    if not items or not plain(items):
        return None
    return items[0] if len(items) == 1 else w.form(node, "+", *items)


def list_(w: Maker, node: Any, env: Names) -> Any:
    """(list x) stays Python's, unless x is nothing that could be gone through."""
    items = node[1:]
    one = len(items) == 1 and (is_number(items[0]) or isinstance(items[0], m.Keyword))
    return w.of(m.List, node, items) if len(items) > 1 or one else None


def vector(w: Maker, node: Any, env: Names) -> Any:
    return w.of(m.List, node, node[1:])


def hash_map(w: Maker, node: Any, env: Names) -> Any:
    return w.of(m.Dict, node, node[1:]) if len(node) % 2 else None


def dict_(w: Maker, node: Any, env: Names) -> Any:
    """(dict "a" 1): Python's dict takes names or one thing, so several by place are keys and values."""
    return w.of(m.Dict, node, node[1:]) if len(node) % 2 and len(node) > 2 and is_text(node[1]) else None


def assoc(w: Maker, node: Any, env: Names) -> Any:
    if len(node) < 4 or len(node) % 2:
        return None
    return w.of(m.Dict, node, [w.form(node, "unpack-mapping", node[1]), *node[2:]])


def cons(last: bool) -> Rule:
    def rule(w: Maker, node: Any, env: Names) -> Any:
        if len(node) < 3 or (not last and len(node) != 3) or not plain(node[1:]):
            return None
        xs = w.form(node, "unpack-iterable", node[1] if last else node[2])
        return w.of(m.List, node, [xs, *node[2:]] if last else [node[1], xs])

    return rule


def quote(w: Maker, node: Any, env: Names) -> Any:
    return _data(w, node[1]) if len(node) == 2 else None


def _data(w: Maker, node: Any) -> Any:
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
