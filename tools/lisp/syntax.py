"""Inspects Lisp forms (head, names, bindings) and builds new forms at the same position."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import hy
import hy.models as m

Names = frozenset[str]
Rule = Callable[["Builder", Any, Names], Any]  # returns the new form, or None if this is not the idiom
CONSTANTS = {
    "nil": "None", "null": "None", "none": "None", "None": "None",
    "true": "True", "True": "True", "false": "False", "False": "False",
}  # fmt: skip


@lru_cache(4096)
def mangle(name: str) -> str:
    """The Python name of a Lisp name. Raises Hy's error if it is not a name."""
    return str(hy.mangle(name))


@lru_cache(4096)
def mangled(name: str) -> str:
    try:
        return mangle(name)
    except Exception:  # not a name; the check reports it
        return name


def is_core(name: str) -> bool:
    """Whether this head is one of Hy's core macros. Bindings of a program do not shadow them."""
    return mangled(name) in getattr(builtins, "_hy_macros", {})


# ---- looking at forms


def head_of(node: Any) -> str:
    """The symbol at the beginning of a form, as text; empty if there is none."""
    return str(node[0]) if isinstance(node, m.Expression) and node and isinstance(node[0], m.Symbol) else ""


def begins(node: Any, *heads: str) -> bool:
    return head_of(node) in heads


def is_text(node: Any) -> bool:
    return isinstance(node, (m.String, m.FString))


def is_number(node: Any) -> bool:
    return isinstance(node, (m.Integer, m.Float))


def is_constant(node: Any) -> bool:
    return is_number(node) or str(node) in CONSTANTS or isinstance(node, (m.String, m.Keyword))


def fixed_arity(items: Iterable[Any]) -> bool:
    """Whether no item is an unpacking (``#*`` or ``#**``): then the number of items is known before
    running."""
    return not any(begins(i, "unpack-iterable", "unpack-mapping") for i in items)


def symbols_in(node: Any) -> Iterator[str]:
    """All symbols inside ``node``, mangled. It does not recurse, so deep forms are safe."""
    pending = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, m.Symbol):
            yield mangled(str(item))
        elif isinstance(item, m.Sequence):
            pending.extend(item)


def bound_in(forms: Iterable[Any]) -> Iterator[str]:
    """The names, mangled, that forms bind in the program or function: by setv, defn, import, for …"""
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
                if not begins(target, "get", "."):
                    yield from symbols_in(targets if isinstance(targets, m.Object) else m.List(targets))
        elif head in ("defn", "defun", "defclass"):
            yield from (mangled(str(item)) for item in rest[:2] if isinstance(item, m.Symbol))
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
    """The clauses of a comprehension as (target or keyword, form); a ``:setv`` clause gives its target."""
    place = 0
    while place + 1 < len(items):
        if isinstance(items[place], m.Keyword) and items[place].name == "setv" and place + 2 < len(items):
            place += 1
        yield items[place], items[place + 1]
        place += 2


# ---- building forms

MAX_PARTS = 30_000  # maximum number of parts of a program; compiling time grows with them


class ProgramTooLarge(RecursionError):
    """The rewritten program would have more than MAX_PARTS parts; ``node`` is the form being rewritten."""

    def __init__(self, node: Any) -> None:
        super().__init__()
        self.node = node


class Builder:
    """Builds new forms for one program, and unused symbols. ``names`` are the names of the tools."""

    def __init__(self, forms: Sequence[Any], names: Iterable[str]) -> None:
        self.tools = frozenset(map(mangled, names))
        self.bound: Names = self.tools | frozenset(bound_in(forms))
        self.taken = set(symbols_in(m.List(forms))) | self.bound
        self.made = 0
        self.parts = 0

    def fresh(self, node: Any) -> Any:
        """A new symbol at the position of ``node`` that the program does not use."""
        while True:
            self.made += 1
            name = f"it_{self.made}"
            if name not in self.taken:
                return m.Symbol(name).replace(node)

    def count(self, parts: int, node: Any) -> None:
        """Count the ``parts`` added at ``node``. Raises ProgramTooLarge."""
        self.parts += parts
        if self.parts > MAX_PARTS:
            raise ProgramTooLarge(node)

    def form(self, node: Any, *items: Any) -> Any:
        """An expression of ``items`` at the position of ``node``. Each str becomes a symbol. Raises
        ProgramTooLarge."""
        return self.of(m.Expression, node, items)

    def of(self, kind: Any, node: Any, items: Iterable[Any]) -> Any:
        parts = [m.Symbol(i).replace(node) if type(i) is str else i for i in items]
        self.count(len(parts), node)
        return kind(parts).replace(node, recursive=False)

    def function(self, node: Any, seen: Any) -> tuple[list[Any], Callable[..., Any]]:
        """Returns how to call the function form ``seen`` repeatedly: a binding to put first, so that ``seen``
        is evaluated only once (empty if it is a name), and a function that builds a call form from
        arguments."""
        if begins(seen, "quote", "function") and len(seen) == 2:
            seen = seen[1]
        named = isinstance(seen, (m.Symbol, m.Keyword)) or (
            begins(seen, ".") and seen[1:2] == m.Expression([m.Symbol("None")])
        )
        if named:
            return [], lambda *args: self.form(node, seen, *args)
        name = self.fresh(node)
        return [name, seen], lambda *args: self.form(node, name, *args)
