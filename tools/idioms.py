"""Idioms of other Lisps, read as the Hy they mean: a table of rewrites on forms, which are data here.

A rewrite runs nothing and decides nothing: what it makes is checked like any other program. It must not know
tools (only their names), the sandbox, or doors. A name the program binds itself, or a tool's, is left alone.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import hy
import hy.models as m

from tools.form import show
from tools.sexp import read_one

MAX_STEPS = 60  # of a threading form: each nests the program one level deeper

Names = frozenset[str]
Rule = Callable[["_Rewriter", Any, Names], Any]  # the new form, or None: this is not the idiom


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


def rewrite(forms: Sequence[Any], names: Iterable[str] = ()) -> list[Any]:
    """``forms`` with every idiom replaced by what it means. ``names`` are the tools'.

    The result is at most a constant times longer than what was read: no part is written twice, but names.
    """
    rewriter = _Rewriter(forms, names)
    return rewriter.body(rewriter.with_tail(forms), rewriter.bound)


@lru_cache(4096)
def _mangled(name: str) -> str:
    try:
        return str(hy.mangle(name))
    except Exception:  # no name at all: the check says so
        return name


def is_core(name: str) -> bool:
    """Whether Hy itself takes this head for a macro, whatever the program binds."""
    return _mangled(name) in getattr(builtins, "_hy_macros", {})


# ---- looking at forms


def head_of(node: Any) -> str:
    """The name a form begins with, or nothing."""
    return str(node[0]) if isinstance(node, m.Expression) and node and isinstance(node[0], m.Symbol) else ""


def _is(node: Any, *heads: str) -> bool:
    return head_of(node) in heads


def _is_text(node: Any) -> bool:
    return isinstance(node, (m.String, m.FString))


def _is_number(node: Any) -> bool:
    return isinstance(node, (m.Integer, m.Float))


def _is_constant(node: Any) -> bool:
    return _is_number(node) or str(node) in CONSTANTS or isinstance(node, (m.String, m.Keyword))


def _plain(items: Iterable[Any]) -> bool:
    """Whether it is seen how many there are: nothing is unpacked."""
    return not any(_is(i, "unpack-iterable", "unpack-mapping") for i in items)


def symbols_in(node: Any) -> Iterator[str]:
    """Every name inside ``node``, mangled. It keeps its own stack."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, m.Symbol):
            yield _mangled(str(item))
        elif isinstance(item, m.Sequence):
            pending.extend(item)


def bound_in(forms: Iterable[Any]) -> Iterator[str]:
    """The names that forms bind for the whole program or function: by setv, defn, import, for and others."""
    pending = list(forms)
    while pending:
        node = pending.pop()
        if not isinstance(node, m.Sequence):
            continue
        head = head_of(node)
        if head == "quote":
            continue
        pending.extend(node)
        rest = node[1:]
        if head in ("setv", "setx", "def", "define", "defvar", "defparameter"):
            for target in rest[::2]:
                targets = target[:1] if isinstance(target, m.Expression) and head == "define" else target
                if not _is(target, "get", "."):
                    yield from symbols_in(targets if isinstance(targets, m.Object) else m.List(targets))
        elif head in ("defn", "defun", "defclass"):
            yield from (_mangled(str(item)) for item in rest[:2] if isinstance(item, m.Symbol))
        elif head in ("import", "global", "nonlocal"):
            yield from symbols_in(node)
        elif head in ("for", "except", "doseq", "dotimes", "dolist") and rest:
            first = rest[0]
            targets = first[:1] if isinstance(first, m.Sequence) else ()
            if head == "for" and isinstance(first, m.List):
                targets = tuple(target for target, _ in _clauses(first))
            yield from symbols_in(m.List(targets))
        elif head == "match":
            for pattern in rest[1::2] + rest[2::2]:
                if isinstance(pattern, (m.Symbol, m.List, m.Tuple, m.Dict)):
                    yield from symbols_in(pattern)


def _clauses(items: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """(target or keyword, form) of a comprehension's clauses; ``:setv`` has its target as target."""
    place = 0
    while place + 1 < len(items):
        if isinstance(items[place], m.Keyword) and items[place].name == "setv" and place + 2 < len(items):
            place += 1
        yield items[place], items[place + 1]
        place += 2


# ---- making forms


class _Rewriter:
    def __init__(self, forms: Sequence[Any], names: Iterable[str]) -> None:
        self.tools = frozenset(map(_mangled, names))
        self.bound: Names = self.tools | frozenset(bound_in(forms))
        self.taken = set(symbols_in(m.List(forms))) | self.bound
        self.made = 0

    def fresh(self, node: Any) -> Any:
        """A name this program does not use."""
        while True:
            self.made += 1
            name = f"it_{self.made}"
            if name not in self.taken:
                return m.Symbol(name).replace(node)

    def form(self, node: Any, *items: Any) -> Any:
        """An expression in the place of ``node``; a str among the items is a symbol."""
        return self.of(m.Expression, node, items)

    def of(self, kind: Any, node: Any, items: Iterable[Any]) -> Any:
        parts = [m.Symbol(i).replace(node) if type(i) is str else i for i in items]
        return kind(parts).replace(node, recursive=False)

    def function(self, node: Any, seen: Any) -> tuple[list[Any], Callable[..., Any]]:
        """Clauses that bind the function ``seen`` once, and how it is called."""
        if _is(seen, "quote", "function") and len(seen) == 2:
            seen = seen[1]
        named = isinstance(seen, (m.Symbol, m.Keyword)) or (_is(seen, ".") and seen[1] == m.Symbol("None"))
        if named:
            return [], lambda *args: self.form(node, seen, *args)
        name = self.fresh(node)
        return [name, seen], lambda *args: self.form(node, name, *args)

    # ---- walking: each method takes a form in one kind of place

    def value(self, node: Any, env: Names) -> Any:
        """A form whose value is used."""
        if isinstance(node, m.Keyword):
            return m.String(node.name).replace(node) if node.name else node
        return self.form_at(self.collected(node), env)

    def form_at(self, node: Any, env: Names) -> Any:
        if isinstance(node, m.Symbol):
            return self.name(node, env)
        if isinstance(node, m.Expression):
            return self.expression(node, env)
        if isinstance(node, m.FComponent):
            parts = [self.value(part, env) for part in node]
            return m.FComponent(parts, conversion=node.conversion, expression=node.expression).replace(
                node, recursive=False
            )
        if isinstance(node, m.FString):
            parts = [self.form_at(part, env) for part in node]
            return m.FString(parts, brackets=node.brackets).replace(node, recursive=False)
        if isinstance(node, m.Sequence):
            return self.of(type(node), node, [self.value(item, env) for item in node])
        return node

    def name(self, node: Any, env: Names) -> Any:
        text = str(node)
        if _mangled(text) in env:
            return node
        if text in CONSTANTS:
            return m.Symbol(CONSTANTS[text]).replace(node)
        return node

    def expression(self, node: Any, env: Names) -> Any:
        while True:
            if not isinstance(node, m.Expression):
                return self.value(node, env)
            if not node:
                return node
            head = node[0]
            name = ":" if isinstance(head, m.Keyword) else head_of(node)
            rule = RULES.get(name)
            if rule is None or (_mangled(name) in env and not is_core(name)):
                break
            made = rule(self, node, env)
            if made is None:
                break
            node = made
        walk = WALKS.get(name)
        if walk is not None:
            return self.of(m.Expression, node, walk(self, node, env))
        if name in AS_THEY_ARE:
            return node
        first = head if isinstance(head, (m.Symbol, m.Keyword)) else self.form_at(head, env)
        if is_core(name) or (_is(head, ".") and len(head) == 3 and str(head[2]) in TEXT_METHODS):
            return self.of(m.Expression, node, [first, *self.values(node[1:], env)])
        return self.of(m.Expression, node, [first, *self.arguments(node[1:], env)])

    def values(self, items: Iterable[Any], env: Names) -> list[Any]:
        return [self.value(item, env) for item in items]

    def arguments(self, items: Sequence[Any], env: Names) -> list[Any]:
        """Of a call: a keyword is the name of what follows it, and what follows it is a value."""
        made: list[Any] = []
        place = 0
        while place < len(items):
            if isinstance(items[place], m.Keyword):
                made.append(items[place])
                place += 1
                if place == len(items):
                    break
            made.append(self.argument(items[place], env))
            place += 1
        return made

    def argument(self, node: Any, env: Names) -> Any:
        """A value, or an idiom's name that stands for its function: (sorted xs :key first)."""
        if isinstance(node, m.Symbol) and str(node) in VALUES and _mangled(str(node)) not in env:
            given = self.fresh(node)
            call = self.form(node, node, given)
            return self.expression(self.form(node, "fn", self.of(m.List, node, [given]), call), env)
        return self.value(node, env)

    def body(self, items: Iterable[Any], env: Names) -> list[Any]:
        """Forms of which only the last has a value that is used, and that not always."""
        return [
            self.form_at(item, env) if not isinstance(item, m.Keyword) else self.value(item, env)
            for item in items
        ]

    def clauses(self, items: Sequence[Any], env: Names) -> tuple[list[Any], Names]:
        """The clauses of a comprehension or loop, and the names that hold after them."""
        made: list[Any] = []
        place = 0
        while place < len(items):
            if isinstance(items[place], m.Keyword):
                made.append(items[place])
                if items[place].name != "setv":
                    made += self.values(items[place + 1 : place + 2], env)
                    place += 2
                    continue
                place += 1
            target = items[place : place + 1]
            made += target
            made += self.values(items[place + 1 : place + 2], env)
            env |= frozenset(symbols_in(m.List(target)))
            place += 2
        return made, env

    # ---- a Clojure for, where its value is used

    def collected(self, node: Any) -> Any:
        """``(for [x xs] (f x))`` whose value is used: Hy's own is None, so the list of values is meant."""
        if not (_is(node, "for") and len(node) == 3 and isinstance(node[1], m.List) and node[1]):
            return node
        inside = {str(name) for name in symbols_in(node)}
        if inside & {"break", "continue", "return"} or _is(node[2], *EFFECTS):
            return node
        return self.form(node, "lfor", *node[1], node[2])

    def with_tail(self, forms: Sequence[Any]) -> list[Any]:
        """``forms`` with a for over calls of a tool at the very end as a list: its values are the answer."""
        if not forms:
            return []
        last = forms[-1]
        if _is(last, "do", "progn", "let", "let*", "when") and len(last) > 1:
            last = self.of(m.Expression, last, self.with_tail(last))
        elif _is(last, "for") and _mangled(head_of(last[-1])) in self.tools:
            last = self.collected(last)
        return [*forms[:-1], last]


# ---- the forms whose parts are not all values


def _walk_function(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """fn and defn: parameters are names, defaults are values, and the body knows the parameters."""
    place = next((i for i, item in enumerate(node[1:], 1) if isinstance(item, m.List)), len(node))
    if _is(node, "defn") and not any(isinstance(n, (m.Symbol, m.Expression)) for n in node[1:place]):
        # the first list is that of the decorators
        place = next((i for i, n in enumerate(node) if i > place and isinstance(n, m.List)), len(node))
    made = list(node[:place])
    if place < len(node):
        inner = env
        parameters = []
        for parameter in node[place]:
            if isinstance(parameter, m.List) and len(parameter) == 2:
                inner |= frozenset(symbols_in(parameter[0]))
                parameter = w.of(m.List, parameter, [parameter[0], w.value(parameter[1], env)])
            else:
                inner |= frozenset(symbols_in(parameter))
            parameters.append(parameter)
        made.append(w.of(m.List, node[place], parameters))
        made += w.body(node[place + 1 :], inner)
    return made


def _walk_let(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    if len(node) < 2 or not isinstance(node[1], m.List):
        return [node[0], *w.body(node[1:], env)]
    bindings: list[Any] = []
    for place, item in enumerate(node[1]):
        if place % 2 == 0:
            bindings.append(item)
        else:
            bindings.append(w.value(item, env))
            env |= frozenset(symbols_in(node[1][place - 1]))
    return [node[0], w.of(m.List, node[1], bindings), *w.body(node[2:], env)]


def _walk_comprehension(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    last = 2 if _is(node, "dfor") and not _is(node[-1], "unpack-mapping") else 1
    stop = max(1, len(node) - last)
    made, inner = w.clauses(node[1:stop], env)
    return [node[0], *made, *w.values(node[stop:], inner)]


def _walk_for(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    if len(node) < 2 or not isinstance(node[1], m.List):
        return [node[0], *w.body(node[1:], env)]
    made, env = w.clauses(node[1], env)
    return [node[0], w.of(m.List, node[1], made), *w.body(node[2:], env)]


def _walk_setv(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    made = [node[0]]
    for place, item in enumerate(node[1:]):
        target = place % 2 == 0 and isinstance(item, (m.Symbol, m.List, m.Tuple))
        made.append(item if target else w.value(item, env))
    return made


def _walk_match(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    made = [node[0], *w.values(node[1:2], env)]
    place = 2
    while place < len(node):
        made.append(_pattern(w, node[place], env))
        place += 1
        while (
            place + 1 < len(node) and isinstance(node[place], m.Keyword) and node[place].name in ("as", "if")
        ):
            made += [node[place], w.form_at(node[place + 1], env)]
            place += 2
        made += w.values(node[place : place + 1], env)
        place += 1
    return made


def _pattern(w: _Rewriter, node: Any, env: Names) -> Any:
    if isinstance(node, m.Keyword):
        return w.value(node, env)
    if isinstance(node, m.Symbol) and str(node) in CONSTANTS and _mangled(str(node)) not in w.tools:
        return m.Symbol(CONSTANTS[str(node)]).replace(node)
    if isinstance(node, (m.List, m.Tuple, m.Dict)) or _is(node, "|"):
        return w.of(type(node), node, [_pattern(w, item, env) for item in node])
    return node


def _walk_after_names(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """except and defclass: names, then a list of names, then a body."""
    stop = next((i for i, item in enumerate(node) if isinstance(item, m.List)), 0) + 1
    return [*node[:stop], *w.body(node[stop:], env)]


def _walk_dot(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """(. x name [key] (method argument))"""
    made = [node[0]]
    for place, item in enumerate(node[1:]):
        if isinstance(item, m.Symbol):
            made.append(item)
        elif place and isinstance(item, m.Expression) and item:
            made.append(w.of(m.Expression, item, [item[0], *w.arguments(item[1:], env)]))
        else:
            made.append(w.value(item, env))
    return made


def _walk_body(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    return [node[0], *w.body(node[1:], env)]


def _walk_test_and_body(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    return [node[0], *w.values(node[1:2], env), *w.body(node[2:], env)]


def _walk_changed(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """(+= x 1), (setx x 1): what is changed is no value."""
    return [node[0], *_targets(w, node[1:2], env), *w.values(node[2:], env)]


def _walk_deleted(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    return [node[0], *_targets(w, node[1:], env)]


def _walk_raise(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """Its :from is a name of its own."""
    return [node[0], *w.arguments(node[1:], env)]


def _targets(w: _Rewriter, items: Iterable[Any], env: Names) -> list[Any]:
    return [item if isinstance(item, m.Symbol) else w.value(item, env) for item in items]


WALKS: dict[str, Callable[[_Rewriter, Any, Names], list[Any]]] = {
    "fn": _walk_function,
    "defn": _walk_function,
    "let": _walk_let,
    "for": _walk_for,
    "setv": _walk_setv,
    "match": _walk_match,
    "except": _walk_after_names,
    "defclass": _walk_after_names,
    ".": _walk_dot,
    "when": _walk_test_and_body,
    "while": _walk_test_and_body,
    "del": _walk_deleted,
    "raise": _walk_raise,
    **dict.fromkeys(("lfor", "sfor", "dfor", "gfor"), _walk_comprehension),
    **dict.fromkeys(("do", "try", "else", "finally", "if"), _walk_body),
    **dict.fromkeys(("setx", *(f"{op}=" for op in "+ - * / // % ** @ & | ^ << >>".split())), _walk_changed),  # noqa: SIM905
}
AS_THEY_ARE = frozenset(("quote", "quasiquote", "import", "global", "nonlocal", "annotate"))
# Methods without named arguments, so that a keyword among theirs is a value: (.get hit :path).
TEXT_METHODS = frozenset(
    "get pop setdefault append add remove discard index count startswith endswith join".split()  # noqa: SIM905
)
EFFECTS = frozenset("print println setv def += -= do when for while .append .add".split())  # noqa: SIM905
CONSTANTS = {
    "nil": "None", "null": "None", "none": "None", "None": "None",
    "true": "True", "True": "True", "false": "False", "False": "False",
}  # fmt: skip


# ---- the rules


def _renamed(name: str) -> Rule:
    def rule(w: _Rewriter, node: Any, env: Names) -> Any:
        if not is_core(name) and _mangled(name) in env:
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

    def fill(w: _Rewriter, part: Any, node: Any, given: dict[str, Any]) -> Any:
        if isinstance(part, m.Symbol):
            return given[str(part)] if str(part) in given else m.Symbol(str(part)).replace(node)
        if isinstance(part, m.Sequence):
            return w.of(type(part), node, [fill(w, inner, node, given) for inner in part])
        return type(part)(part).replace(node)

    def rule(w: _Rewriter, node: Any, env: Names) -> Any:
        if len(node) != len(parameters) + 1 or not _plain(node[1:]) or needed & env:
            return None
        return fill(w, shape, node, dict(zip(parameters, node[1:], strict=True)))

    return rule


# Functions


def _map(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 3 or not _plain(node[2:]) or (len(node) > 3 and "zip" in env):
        return None
    clauses, call = w.function(node, node[1])
    names = [w.fresh(node) for _ in node[2:]]
    if len(names) == 1:
        over = [names[0], node[2]]
    else:
        over = [w.of(m.List, node, names), w.form(node, "zip", *node[2:])]
    return w.form(node, "lfor", *_once(w, node, clauses), *over, call(*names))


def _once(w: _Rewriter, node: Any, clauses: list[Any]) -> list[Any]:
    """A name and its one value, as a clause of a comprehension."""
    return [clauses[0], w.of(m.List, node, [clauses[1]])] if clauses else []


def _filtered(keep: bool) -> Rule:
    def rule(w: _Rewriter, node: Any, env: Names) -> Any:
        if len(node) != 3 or not _plain(node[2:]):
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


def _reduce(w: _Rewriter, node: Any, env: Names) -> Any:
    """Lisp's order is (reduce f start xs); a number, text or None at the end can only be Python's start."""
    items = list(node[2:])
    start = None
    if len(items) == 3 and isinstance(items[1], m.Keyword) and items[1].name == "initial-value":
        items, start = items[:1], items[2]
    elif len(items) == 2:
        if _is_constant(items[1]) and not _is_constant(items[0]):
            items.reverse()
        start = items.pop(0)
    if len(items) != 1 or not _plain([node[1], *items]) or "list" in env:
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


def _apply(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 3 or not _plain(node[1:]):
        return None
    if len(node) == 3 and is_core(str(node[1])):  # an operator takes no unpacked arguments
        return w.form(node, "reduce", *node[1:])
    _, call = w.function(node, node[1])
    head = call()[0] if isinstance(node[1], m.Symbol) or _is(node[1], "quote", ".") else node[1]
    return w.form(node, head, *node[2:-1], w.form(node, "unpack-iterable", node[-1]))


def _funcall(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 2:
        return None
    head = node[1][1] if _is(node[1], "quote") and len(node[1]) == 2 else node[1]
    return w.form(node, head, *node[2:])


def _by(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) != 3 or not _plain(node[2:]) or "sorted" in env:
        return None
    key = node[1]
    if isinstance(key, m.Keyword):
        given = w.fresh(node)
        key = w.form(node, "fn", w.of(m.List, node, [given]), w.form(node, key, given))
    return w.form(node, "sorted", node[2], m.Keyword("key").replace(node), key)


def _sort(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 2 or "sorted" in env or not (len(node) == 2 or isinstance(node[2], m.Keyword)):
        return None
    return w.form(node, "sorted", *node[1:])


def _next(w: _Rewriter, node: Any, env: Names) -> Any:
    """Python's next wants an iterator, and map and filter give lists here."""
    if len(node) < 2 or not _is(node[1], "map", "filter") or {_mangled(head_of(node[1])), "iter"} & env:
        return None
    return w.form(node, "next", w.form(node, "iter", node[1]), *node[2:])


def _thread(last: bool) -> Rule:
    def rule(w: _Rewriter, node: Any, env: Names) -> Any:
        if not 2 <= len(node) <= MAX_STEPS + 2:
            return None
        so_far = node[1]
        for step in node[2:]:
            if _is(step, "fn", "lambda", ".") or isinstance(step, (m.Symbol, m.Keyword)):
                so_far = w.form(step, step, so_far)
            elif not isinstance(step, m.Expression) or not step or _is(step, "quote"):
                return None
            elif last:
                so_far = w.form(step, *step, so_far)
            else:
                so_far = w.form(step, step[0], so_far, *step[1:])
        return so_far

    return rule


def _nth(w: _Rewriter, node: Any, env: Names) -> Any:
    """Clojure has the list first, Common Lisp the number: whichever is the number is the place."""
    if len(node) != 3 or not _plain(node[1:]) or {"list", "isinstance", "int"} & env:
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


def _keyword_call(w: _Rewriter, node: Any, env: Names) -> Any:
    name = node[0].name
    if not name.replace("-", "_").isidentifier() or len(node) not in (2, 3) or not _plain(node[1:]):
        return None
    if _mangled(name) in w.tools or isinstance(node[1], m.Keyword):  # a call with a colon too many
        return None
    return w.form(node, _dotted(w, node, "get"), node[1], m.String(name).replace(node), *node[2:])


def _dotted(w: _Rewriter, node: Any, name: str) -> Any:
    """``.name``, a method's name as a head."""
    return w.form(node, ".", "None", name)


def _get(w: _Rewriter, node: Any, env: Names) -> Any:
    """Hy's third argument is a key inside; what cannot be a key is the default it is in Clojure."""
    if len(node) != 4:
        return None
    default = node[3]
    if not (str(default) in CONSTANTS or (isinstance(default, (m.List, m.Dict)) and not default)):
        return None
    return w.form(node, _dotted(w, node, "get"), *node[1:])


# Texts and collections


def _str(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 3 or not _plain(node[1:]) or "str" in env:
        return None
    if any(isinstance(item, m.Keyword) and item.name in ("encoding", "errors") for item in node):
        return None
    if str(node[2]).lower() in ("utf-8", "utf8", "ascii", "latin-1"):  # Python's (str data "utf-8")
        return None
    parts = [
        item if _is_text(item) or isinstance(item, m.Keyword) else w.form(node, "str", item)
        for item in node[1:]
    ]
    return w.form(node, _dotted(w, node, "join"), m.String("").replace(node), w.of(m.List, node, parts))


def _concat(w: _Rewriter, node: Any, env: Names) -> Any:
    items = list(node[1:])
    if _is(node, "concatenate") and items and _is(items[0], "quote"):
        del items[0]
    if not items or not _plain(items):
        return None
    return items[0] if len(items) == 1 else w.form(node, "+", *items)


def _list(w: _Rewriter, node: Any, env: Names) -> Any:
    """(list x) stays Python's, unless x is nothing that could be gone through."""
    items = node[1:]
    one = len(items) == 1 and (_is_number(items[0]) or isinstance(items[0], m.Keyword))
    return w.of(m.List, node, items) if len(items) > 1 or one else None


def _vector(w: _Rewriter, node: Any, env: Names) -> Any:
    return w.of(m.List, node, node[1:])


def _hash_map(w: _Rewriter, node: Any, env: Names) -> Any:
    return w.of(m.Dict, node, node[1:]) if len(node) % 2 else None


def _dict(w: _Rewriter, node: Any, env: Names) -> Any:
    """(dict "a" 1): Python's dict takes names or one thing, so several by place are keys and values."""
    return w.of(m.Dict, node, node[1:]) if len(node) % 2 and len(node) > 2 and _is_text(node[1]) else None


def _assoc(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 4 or len(node) % 2:
        return None
    return w.of(m.Dict, node, [w.form(node, "unpack-mapping", node[1]), *node[2:]])


def _cons(last: bool) -> Rule:
    def rule(w: _Rewriter, node: Any, env: Names) -> Any:
        if len(node) < 3 or (not last and len(node) != 3) or not _plain(node[1:]):
            return None
        xs = w.form(node, "unpack-iterable", node[1] if last else node[2])
        return w.of(m.List, node, [xs, *node[2:]] if last else [node[1], xs])

    return rule


def _quote(w: _Rewriter, node: Any, env: Names) -> Any:
    return _data(w, node[1]) if len(node) == 2 else None


def _data(w: _Rewriter, node: Any) -> Any:
    """Quoted forms as plain data: a name or keyword is its text, a form a list. None: an f-string."""
    if isinstance(node, m.Symbol):
        name = CONSTANTS.get(str(node))
        return (m.Symbol(name) if name else m.String(str(node))).replace(node)
    if isinstance(node, m.Keyword):
        return m.String(node.name).replace(node)
    if isinstance(node, (m.FString, m.FComponent)):
        return None
    if _is(node, ".") and all(isinstance(part, m.Symbol) for part in node):  # a dotted name
        return m.String(show(node)).replace(node)
    if isinstance(node, m.Sequence):
        parts = [_data(w, part) for part in node]
        kind = m.List if isinstance(node, m.Expression) else type(node)
        return None if any(part is None for part in parts) else w.of(kind, node, parts)
    return node


# Definitions and control


def _function(w: _Rewriter, node: Any, env: Names) -> Any:
    """fn, lambda, defn and defun, with parameters in either brackets and in the manner of any Lisp."""
    named = _is(node, "defn", "defun")
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
        or _is(node[place], "annotate")
    ):
        return None
    if _is(node[place], "unpack-iterable", "unpack-mapping"):
        return None
    parameters = _parameters(w, node[place])
    if parameters is None:
        return None
    if head == head_of(node) and parameters is node[place] and not note:
        return None
    return w.form(node, head, *node[1 : 1 + named], parameters, *note, *node[place + 1 :])


def _parameters(w: _Rewriter, node: Any) -> Any:
    foreign = {"&", "&rest", "&body", "&optional"} & {
        str(item) for item in node if isinstance(item, m.Symbol)
    }
    pairs = any(
        isinstance(i, m.Expression) and not _is(i, "annotate", "unpack-iterable", "unpack-mapping")
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
        elif isinstance(item, (m.Symbol, m.List)) or _is(
            item, "annotate", "unpack-iterable", "unpack-mapping"
        ):
            made.append(item)
        else:
            return None
    return w.of(m.List, node, made)


def _define(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) > 2 and isinstance(node[1], m.Expression) and head_of(node[1]) and _is(node, "define"):
        return w.form(node, "defn", node[1][0], w.of(m.List, node, node[1][1:]), *node[2:])
    return w.form(node, "setv", *node[1:]) if len(node) == 3 and isinstance(node[1], m.Symbol) else None


def _let(w: _Rewriter, node: Any, env: Names) -> Any:
    """Hy has names and values in one list. Common Lisp's let sees no name before all values are computed."""
    if len(node) < 2:
        return None
    pairs = _pairs(node[1])
    if pairs is None:
        return None
    if not _is(node, "let*") and _sees_before(pairs):
        kept = [(w.fresh(node), value) for _, value in pairs]
        pairs = kept + [(name, k) for (name, _), (k, _) in zip(pairs, kept, strict=True)]
    return w.form(node, "let", w.of(m.List, node[1], [part for pair in pairs for part in pair]), *node[2:])


def _sees_before(pairs: list[tuple[Any, Any]]) -> bool:
    """Whether a value says a name that is bound before it."""
    before: set[str] = set()
    for name, value in pairs:
        if before & set(symbols_in(value)):
            return True
        before.add(_mangled(str(name)))
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


def _let_star(w: _Rewriter, node: Any, env: Names) -> Any:
    return _let(w, node, env) or (w.form(node, "let", *node[1:]) if len(node) > 1 else None)


def _cond(w: _Rewriter, node: Any, env: Names) -> Any:
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
        if not isinstance(tests[-1], m.Keyword) and _mangled(str(tests[-1])) in env:
            return None
        return w.form(node, "cond", *clauses[:-2], "True", clauses[-1])
    return None


def _is_clause(form: Any) -> bool:
    """((= x 1) …) or [test …]: nothing that could be a test by itself."""
    if isinstance(form, m.List):
        return True
    first = form[0]
    if isinstance(first, m.Expression):
        return not _is(first, "fn", "lambda", ".")
    return _is_constant(first) or str(first) in ("t", "else", "otherwise")


def _if(w: _Rewriter, node: Any, env: Names) -> Any:
    return w.form(node, *node, "None") if len(node) == 3 else None


def _unless(w: _Rewriter, node: Any, env: Names) -> Any:
    return w.form(node, "when", w.form(node, "not", node[1]), *node[2:]) if len(node) > 2 else None


def _if_not(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) not in (3, 4):
        return None
    return w.form(node, "if", w.form(node, "not", node[1]), *node[2:])


def _test_let(w: _Rewriter, node: Any, env: Names) -> Any:
    test = "when" if _is(node, "when-let") else "if"
    if len(node) < 3 or not isinstance(node[1], m.List) or len(node[1]) != 2:
        return None
    if not isinstance(node[1][0], m.Symbol):
        return None
    return w.form(node, "let", node[1], w.form(node, test, node[1][0], *node[2:]))


def _dotimes(w: _Rewriter, node: Any, env: Names) -> Any:
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


def _doseq(w: _Rewriter, node: Any, env: Names) -> Any:
    if len(node) < 2 or not isinstance(node[1], (m.List, m.Expression)) or len(node[1]) % 2 or not node[1]:
        return None
    clauses = [
        m.Keyword("if").replace(i) if isinstance(i, m.Keyword) and i.name == "when" else i for i in node[1]
    ]
    return w.form(node, "for", w.of(m.List, node[1], clauses), *node[2:])


def _gather(w: _Rewriter, node: Any, env: Names) -> Any:
    if "pmap" in env:
        return None
    parts = [w.form(part, "fn", w.of(m.List, part, []), part) for part in node[1:]]
    one = w.fresh(node)
    call = w.form(node, "fn", w.of(m.List, node, [one]), w.form(node, one))
    return w.form(node, "pmap", call, w.of(m.List, node, parts))


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
    return show(rule(_Rewriter([form], ()), form, frozenset()))


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
        _function,
    ),
    Idiom(
        "fn lambda", "((lambda (x) (* x x)) 3)", "((fn [x] (* x x)) 3)", 9,
        "A function without a name.", _function,
    ),
    Idiom("define", "(define (f x) x)", "(defn f [x] x)", None, "Scheme's definition.", _define),
    Idiom("def defvar defparameter", "(def x 1)", "(setv x 1)", None, "A variable.", _define),
    Idiom(
        "let", "(let ((x 1) (y 2)) (+ x y))", "(let [x 1  y 2] (+ x y))", 3,
        "Common Lisp's let: all values are computed before the names hold.", _let,
    ),
    Idiom(
        "let*", "(let* ((x 1) (y x)) y)", "(let [x 1  y x] y)", 1,
        "Each value sees the names before.", _let_star,
    ),
    Idiom(
        "cond", '(cond ((= 1 2) "a") (t "b"))', '(cond (= 1 2) "a" True "b")', "b",
        "Clauses in brackets of their own, or a test :else at the end.", _cond,
    ),
    Idiom("if", "(if False 1)", "(if False 1 None)", None, "Without an else the value is None.", _if),
    Idiom("unless when-not", "(unless False 1)", "(when (not False) 1)", 1, "When the test fails.", _unless),
    Idiom("if-not", "(if-not False 1 2)", "(if (not False) 1 2)", 1, "If the test fails.", _if_not),
    Idiom(
        "when-let if-let", "(when-let [x 5] (+ x 1))", "(let [x 5] (when x (+ x 1)))", 6,
        "A name for a value that is there.", _test_let,
    ),
    Idiom(
        "dotimes", "(dotimes [i 3] (print i))", "(for [i (range 3)] (print i))", "0\n1\n2",
        "So often.", _dotimes,
    ),
    Idiom(
        "doseq dolist", "(doseq [x [1 2] :when (> x 1)] (print x))", "(for [x [1 2] :if (> x 1)] (print x))",
        "2",
        "For each.", _doseq,
    ),
    Idiom(
        "->", "(-> 7 (- 2) str)", "(str (- 7 2))", "5",
        "Each step takes the value before it first.", _thread(False),
    ),
    Idiom(
        "->>", "(->> 7 (- 2) str)", "(str (- 2 7))", "-5",
        "Each step takes the value before it last.", _thread(True),
    ),
    Idiom(
        "map mapv mapcar", "(map str [1 2])", "(lfor it_1 [1 2] (str it_1))", ["1", "2"],
        "A list; a tool may be the function.", _map,
    ),
    Idiom(
        "filter filterv remove-if-not", "(filter odd? [1 2 3])",
        "(lfor it_1 [1 2 3] :if (odd? it_1) it_1)", [1, 3],
        "A list of what passes; a tool may be the test.", _filtered(True),
    ),
    Idiom(
        "remove-if", "(remove-if odd? [1 2])", "(lfor it_1 [1 2] :if (not (odd? it_1)) it_1)", [2],
        "A list of what does not pass.", _filtered(False),
    ),
    Idiom(
        "reduce", "(reduce + 10 [1 2])",
        "(do (setv it_1 10) (setv it_3 [1 2]) (for [it_2 it_3] (setv it_1 (+ it_1 it_2))) it_1)", 13,
        "From the left, with a start before the list or none.", _reduce,
    ),
    Idiom(
        "apply", "(apply max [1 3 2])", "(max #* [1 3 2])", 3,
        "The last argument holds arguments.", _apply,
    ),
    Idiom(
        "gather", "(gather (+ 1 2) 4)", "(pmap (fn [it_1] (it_1)) [(fn [] (+ 1 2)) (fn [] 4)])", [3, 4],
        "Side by side: a list of the values of all.", _gather,
    ),
    Idiom("funcall", "(funcall 'max 1 2)", "(max 1 2)", 2, "A call.", _funcall),
    Idiom(
        "sort-by", "(sort-by len [[1 2] []])", "(sorted [[1 2] []] :key len)", [[], [1, 2]],
        "Sorted by a key.", _by,
    ),
    Idiom(
        "next", "(next (filter None [0 5]))", "(next (iter (filter None [0 5])))", 5,
        "The first of them.", _next,
    ),
    Idiom(
        ":", '(:a {"a" 1})', '(.get {"a" 1} "a")', 1,
        "A keyword as function: what a dictionary holds there, or None.", _keyword_call,
    ),
    Idiom(
        "get", '(get {"a" 1} :b nil)', '(.get {"a" 1} :b nil)', None,
        "A default, if it cannot be a key.", _get,
    ),
    Idiom("str", '(str "a" 1)', '(.join "" ["a" (str 1)])', "a1", "Several values as one text.", _str),
    Idiom(
        "concat append concatenate", "(concat [1] [2 3])", "(+ [1] [2 3])", [1, 2, 3],
        "Joined; texts too.", _concat,
    ),
    Idiom("list", "(list 1 2)", "[1 2]", [1, 2], "A list of several values.", _list),
    Idiom("vector", "(vector 1)", "[1]", [1], "A list.", _vector),
    Idiom("hash-map", "(hash-map :a 1)", "{:a 1}", {"a": 1}, "A dictionary.", _hash_map),
    Idiom("dict", '(dict "a" 1)', '{"a" 1}', {"a": 1}, "A dictionary of keys and values.", _dict),
    Idiom("assoc", '(assoc {"a" 1} :b 2)', '{#** {"a" 1} :b 2}', {"a": 1, "b": 2}, "A changed copy.", _assoc),
    Idiom("cons", "(cons 1 [2])", "[1 #* [2]]", [1, 2], "One more, in front.", _cons(False)),
    Idiom("conj", "(conj [1] 2)", "[#* [1] 2]", [1, 2], "One more, at the end.", _cons(True)),
    Idiom("nth", "(nth [5 6] 1)", "(get (list [5 6]) 1)", 6, "By place; in either order.", _nth),
    Idiom(
        "quote", "'(1 x :k)", '[1 "x" "k"]', [1, "x", "k"],
        "Data: a name is its text, a form a list.", _quote,
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
    Idiom("sort", "(sort [2 1])", "(sorted [2 1])", [1, 2], "In order.", _sort, as_value=True),
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
