"""Walks a program with its scopes and rewrites every idiom of other Lisps to Hy.

Only parts of a form that are values are rewritten. A name that the program binds, or the name of a tool, is
not an idiom. The idioms are in the table (idioms.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.syntax import (
    CONSTANTS,
    Builder,
    Names,
    Rule,
    begins,
    head_of,
    is_constant,
    is_core,
    mangled,
    symbols_in,
)
from quoth.tools.program.idioms import ELSE, RULES
from quoth.tools.program.macros import Definitions, MacroError, size_of


def rewrite(forms: Sequence[Any], names: Iterable[str] = (), given: Definitions | None = None) -> list[Any]:
    """``forms`` with every idiom rewritten to Hy, and every call of a ``given`` macro expanded. ``names`` are
    the names of the tools. Raises ProgramTooLarge, and MacroError for a call whose expansion is unknown.

    The result is longer by at most a constant factor, because only names are duplicated."""
    made, unknown = rewritten(forms, names, given)
    for node in unknown.values():
        raise MacroError(node, f"{head_of(node)} is a macro, and macros are not expanded here")
    return made


def rewritten(
    forms: Sequence[Any], names: Iterable[str], given: Definitions | None
) -> tuple[list[Any], dict[str, Any]]:
    """The rewritten ``forms``, and the outermost macro calls whose expansion is unknown, by their text. These
    calls are left unchanged."""
    rewriter = _Rewriter(forms, names, given)
    return rewriter.body(rewriter.with_tail(forms), rewriter.bound), rewriter.unknown


def rewrite_typed(form: Any, names: Iterable[str], expand: Callable[[Any], Any]) -> Any:
    """A ``form`` typed by a person, with idioms rewritten unless they are Hy.

    ``names`` are the names with a value, and the macros, at the prompt. ``expand`` takes a form with such a
    head: it returns the expansion of a macro defined at the prompt, None for any other macro (its arguments
    are left unchanged), and the form itself for a function. Forms of Hy's core macros that Hy accepts are
    unchanged, and so are quoted forms, keywords and the bodies of macros."""
    rewriter = _TypedRewriter([form], names, expand)
    try:
        return rewriter.form_at(form, rewriter.bound)
    except RecursionError:  # includes ProgramTooLarge; Hy reports the error of such a form
        return form


class _Rewriter(Builder):
    def __init__(self, forms: Sequence[Any], names: Iterable[str], given: Definitions | None = None) -> None:
        super().__init__([*forms, *given.expansions.values()] if given else forms, names)
        self.given = given
        self.macros = frozenset(map(mangled, given.macros)) if given else frozenset[str]()
        self.unknown: dict[str, Any] = {}

    # ---- walking: each method handles a form in one kind of position

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
        if mangled(text) in env:
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
            if self.given is not None and mangled(name) in self.macros:
                expansion = self.given.expansion(node)
                if expansion is None:
                    self.unknown[show(node)] = node
                    return node
                self.count(size_of([expansion]), node)
                node = expansion
                continue
            rule = self.rule(name, node)
            if rule is None or (mangled(name) in env and not is_core(name)):
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
        if is_core(name) or (begins(head, ".") and len(head) == 3 and str(head[2]) in TEXT_METHODS):
            return self.of(m.Expression, node, [first, *self.values(node[1:], env)])
        return self.of(m.Expression, node, [first, *self.arguments(node[1:], env)])

    def rule(self, name: str, node: Any) -> Rule | None:
        return RULES.get(name)

    def values(self, items: Iterable[Any], env: Names) -> list[Any]:
        return [self.value(item, env) for item in items]

    def arguments(self, items: Sequence[Any], env: Names) -> list[Any]:
        """The arguments of a call: a keyword names the next item, which is a value."""
        made: list[Any] = []
        place = 0
        while place < len(items):
            if isinstance(items[place], m.Keyword):
                made.append(items[place])
                place += 1
                if place == len(items):
                    break
            made.append(self.value(items[place], env))
            place += 1
        return made

    def body(self, items: Iterable[Any], env: Names) -> list[Any]:
        """Forms of a body: only the value of the last one may be used."""
        return [
            self.form_at(item, env) if not isinstance(item, m.Keyword) else self.value(item, env)
            for item in items
        ]

    def clauses(self, items: Sequence[Any], env: Names) -> tuple[list[Any], Names]:
        """The clauses of a comprehension or loop, and the names bound after them."""
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
        """``(for [x xs] (f x))`` whose value is used: in Hy that is None, so the list of values is meant."""
        if not (begins(node, "for") and len(node) == 3 and isinstance(node[1], m.List) and node[1]):
            return node
        inside = {str(name) for name in symbols_in(node)}
        if inside & {"break", "continue", "return"} or begins(node[2], *EFFECTS):
            return node
        return self.form(node, "lfor", *node[1], node[2])

    def with_tail(self, forms: Sequence[Any]) -> list[Any]:
        """``forms``, with a for over tool calls at the very end as a list: its values are the answer."""
        if not forms:
            return []
        last = forms[-1]
        if begins(last, "do", "progn", "let", "let*", "when") and len(last) > 1:
            last = self.of(m.Expression, last, self.with_tail(last))
        elif begins(last, "for") and mangled(head_of(last[-1])) in self.tools:
            last = self.collected(last)
        return [*forms[:-1], last]


class _TypedRewriter(_Rewriter):
    """Leaves Hy unchanged: keywords, quoted forms, loops, and the arguments of macros not defined at the
    prompt."""

    def __init__(self, forms: Sequence[Any], names: Iterable[str], expand: Callable[[Any], Any]) -> None:
        super().__init__(forms, names)
        self.expand = expand

    def value(self, node: Any, env: Names) -> Any:
        return self.form_at(node, env)

    def expression(self, node: Any, env: Names) -> Any:
        name = head_of(node)
        if name in TYPED_AS_THEY_ARE:
            return node
        if name and not is_core(name) and mangled(name) in self.bound:
            expanded = self.expand(node)
            if expanded is None:
                return node
            if expanded is not node:
                return self.form_at(expanded, env)
        return super().expression(node, env)

    def rule(self, name: str, node: Any) -> Rule | None:
        if name == "quote" or (name == "cond" and _is_hys_cond(node)):
            return None
        return RULES.get(name)

    def fresh(self, node: Any) -> Any:
        """A new name that the prompt does not list among the person's names."""
        self.made += 1
        return m.Symbol(f"_hy_typed_{self.made}").replace(node)


def _is_hys_cond(node: Any) -> bool:
    """Whether tests and values alternate. ``((= 1 2) 3)`` cannot be a test: it would call True or False."""
    return len(node) % 2 == 1 and not any(
        isinstance(test, m.Expression)
        and test
        and (is_constant(test[0]) or str(test[0]) in ELSE or begins(test[0], *TRUTHS))
        for test in node[1::2]
    )


# ---- the forms whose parts are not all values


def _walk_function(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """fn and defn: parameters are names, defaults are values, and the parameters are bound in the body."""
    place = next((i for i, item in enumerate(node[1:], 1) if isinstance(item, m.List)), len(node))
    if begins(node, "defn") and not any(isinstance(n, (m.Symbol, m.Expression)) for n in node[1:place]):
        # the first list contains the decorators
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
    last = 2 if begins(node, "dfor") and not begins(node[-1], "unpack-mapping") else 1
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
    if isinstance(node, m.Symbol) and str(node) in CONSTANTS and mangled(str(node)) not in w.tools:
        return m.Symbol(CONSTANTS[str(node)]).replace(node)
    if isinstance(node, (m.List, m.Tuple, m.Dict)) or begins(node, "|"):
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
    """(+= x 1), (setx x 1): the target is not a value."""
    return [node[0], *_targets(w, node[1:2], env), *w.values(node[2:], env)]


def _walk_deleted(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    return [node[0], *_targets(w, node[1:], env)]


def _walk_raise(w: _Rewriter, node: Any, env: Names) -> list[Any]:
    """raise: its :from is not an argument name."""
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
AS_THEY_ARE = frozenset(("import", "global", "nonlocal", "annotate"))
# At the prompt, also forms that are evaluated while Hy compiles, and definitions of macros.
TYPED_AS_THEY_ARE = AS_THEY_ARE | {
    *("quote", "quasiquote"),
    *("defmacro", "defreader", "deftype", "require", "export", "pragma", "py", "pys", "do-mac"),
    *("eval-when-compile", "eval-and-compile"),
}
TRUTHS = frozenset("= != < > <= >= is is-not in not-in not".split())  # noqa: SIM905  # a bool, never a function
# Methods without named arguments, so that a keyword among theirs is a value: (.get hit :path).
TEXT_METHODS = frozenset(
    "get pop setdefault append add remove discard index count startswith endswith join".split()  # noqa: SIM905
)
EFFECTS = frozenset("print println setv def += -= do when for while .append .add".split())  # noqa: SIM905
