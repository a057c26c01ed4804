"""Lessons on special forms whose parts do not fit: if, let, for, try and others, and how they are written.

It sees one form and its text. It must not know how a program is walked, other words, or tools.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import hy.models as m

from quoth.tools.lisp.syntax import head_of
from quoth.tools.program.from_python import BUILTINS, INFIX, from_python
from quoth.tools.program.hint import Source, told

SPECIAL = frozenset("if let setv fn defn defun for lfor cond get when while try".split())  # noqa: SIM905


class SpecialForms:
    def __init__(self, source: Source) -> None:
        self.source = source

    def said(self, node: Any, name: str) -> str | None:
        """What to say of a form with this head, one of SPECIAL."""
        special: Callable[[Any], str | None] = getattr(self, "_" + name.replace("defun", "defn"))
        return special(node)

    def inside_out(self, node: Any) -> str | None:
        """(if x > 3 1 2): the test lacks its brackets."""
        if len(node) < 5 or not isinstance(node[2], m.Symbol) or str(node[2]) not in INFIX:
            return None
        of, sign = self.source.of, {"==": "="}.get(str(node[2]), str(node[2]))
        test = f"({sign} {of(node[1])} {of(node[3])})"
        return told("a test is a form", f"({node[0]} {test} {self.source.all(node[4:])})")

    def _if(self, node: Any) -> str | None:
        if said := self.inside_out(node):
            return said
        parts = [
            item
            for item in node[1:]
            if str(item) not in ("then", "else") and not (isinstance(item, m.Keyword) and item.name == "else")
        ]
        if 3 <= len(node) <= 4 and len(parts) == len(node) - 1:
            return None
        texts = [self.source.of(item) for item in parts]
        if len(parts) == len(node) - 1 and len(parts) > 3:
            texts = [*texts[:2], f"(do {' '.join(texts[2:])})"]
        fixed = f"(if {' '.join(texts)})" if 2 <= len(texts) <= 3 else None
        return told("if takes a test, a value and another value", fixed, "(if (> x 1) x 1)")

    def _try(self, node: Any) -> str | None:
        texts = [self.handler(item) or self.source.of(item) for item in node[1:]]
        if not any(self.handler(item) for item in node[1:]):
            return None
        fixed = f"(try {' '.join(texts)})"
        return told("try takes (except [e Exception] …)", fixed, "(try (/ 1 0) (except [e Exception] 0))")

    def handler(self, node: Any) -> str | None:
        """(catch Exception e 0), (except Exception 0) and the like, as an except; None: it is right."""
        head = head_of(node)
        if len(node) < 3 if head in ("catch", "except") else True:
            return None
        names = [node[1]] if isinstance(node[1], m.Symbol) else list(node[1])
        body = node[2:]
        if isinstance(node[1], m.Symbol) and isinstance(node[2], m.Symbol) and len(node) > 3:
            names, body = [node[1], node[2]], node[3:]
        if not all(isinstance(name, m.Symbol) for name in names) or not 1 <= len(names) <= 2:
            return None
        swapped = len(names) == 2 and str(names[0]) in BUILTINS and str(names[1]) not in BUILTINS
        if head == "except" and isinstance(node[1], m.List) and not swapped:
            return None
        kind = [str(name) if str(name) in BUILTINS else "Exception" for name in names][0 if swapped else -1]
        bound = [str(names[1 if swapped else 0])] if len(names) == 2 else []
        return f"(except [{' '.join([*bound, kind])}] {self.source.all(body)})"

    def _let(self, node: Any) -> str | None:
        of, all_ = self.source.of, self.source.all
        what = "let takes a list of names and values"
        if len(node) > 1 and isinstance(node[1], m.List):
            if len(node[1]) % 2 == 0:
                return None
            marks = [item for item in node[1] if str(item) not in ("=", ":=")]
            inner = all_(marks) if len(marks) % 2 == 0 else f"{all_(marks)} None"
            return told(what, f"(let [{inner}] {all_(node[2:])})".replace(" )", ")"))
        if len(node) > 3 and isinstance(node[1], m.Symbol):
            marks = [item for item in node[1:] if str(item) not in ("=", ":=")]
            return told(what, f"(let [{of(marks[0])} {of(marks[1])}] {all_(marks[2:])})".replace(" )", ")"))
        return told(what, None, "(let [x 1  y 2] (+ x y))")

    def _setv(self, node: Any) -> str | None:
        marks = [item for item in node[1:] if str(item) not in ("=", ":=")]
        if len(marks) == len(node) - 1 and len(marks) % 2 == 0:
            return None
        texts = self.source.all(marks)
        python = from_python(texts)
        if len(marks) == 1 and python and python.startswith("(setv "):
            return told("setv takes names and values", python)
        return told(
            "setv takes names and values",
            f"(setv {texts})" if len(marks) % 2 == 0 else f"(setv {texts} None)",
        )

    def _fn(self, node: Any) -> str | None:
        if any(isinstance(item, m.List) for item in node[1:]) or head_of(node) != "fn":
            return None
        names = [item for item in node[1:-1] if isinstance(item, m.Symbol)]
        fixed = None
        if names and len(names) == len(node) - 2:
            fixed = f"(fn [{self.source.all(names)}] {self.source.of(node[-1])})"
            python = from_python("lambda " + self.source.of(node)[1:-1].partition(" ")[2])
            fixed = python if python and ":" in self.source.of(node) else fixed
        return told("parameters stand in a list", fixed, "(fn [x] (* x 2))")

    def _defn(self, node: Any) -> str | None:
        if any(isinstance(item, m.List) for item in node[1:]) or any(
            isinstance(i, m.Keyword) for i in node[1:]
        ):
            return None
        what = "a function has a list of parameters"
        if len(node) < 2 or not isinstance(node[1], m.Symbol):
            return told(what, None, "(defn double [x] (* x 2))")
        names = [item for item in node[2:-1] if isinstance(item, m.Symbol)]
        if len(names) != len(node[2:-1]):
            names = []
        body = self.source.all(node[2 + len(names) :]) or "None"
        return told(what, f"(defn {node[1]} [{self.source.all(names)}] {body})")

    def _for(self, node: Any) -> str | None:
        what = "for takes a list of a name and what it goes through"
        of, all_ = self.source.of, self.source.all
        if len(node) > 1 and isinstance(node[1], m.List):
            parts = [item for item in node[1] if str(item) != "in"]
            if len(parts) == len(node[1]) and (len(parts) % 2 == 0 or not parts):
                return None
            fixed = f"(for [{all_(parts)}] {all_(node[2:])})".replace(" )", ")")
            return told(what, fixed if len(parts) % 2 == 0 else None, "(for [x [1 2]] (print x))")
        parts = [item for item in node[1:] if str(item) != "in"]
        if len(parts) > 2 and isinstance(parts[0], m.Symbol):
            return told(what, f"(for [{of(parts[0])} {of(parts[1])}] {all_(parts[2:])})")
        return told(what, None, "(for [x [1 2]] (print x))")

    def _lfor(self, node: Any) -> str | None:
        if len(node) == 3 and isinstance(node[1], m.List) and len(node[1]) > 1:
            parts = [item for item in node[1] if str(item) != "in"]
            fixed = f"(lfor {self.source.all(parts)} {self.source.of(node[2])})"
            return told("lfor takes its names without a list", fixed)
        if len(node) > 4 and str(node[2]) == "in":
            parts = [item for item in node[1:] if str(item) != "in"]
            return told("lfor takes no in", f"(lfor {self.source.all(parts)})")
        if len(node) == 6 and isinstance(node[4], m.Symbol) and str(node[4]) in INFIX:
            last = f"({node[4]} {self.source.of(node[3])} {self.source.of(node[5])})"
            return told("the operator comes first", f"(lfor {self.source.all(node[1:3])} {last})")
        if len(node) < 4:
            return told("lfor takes a name, what it goes through, and a form", None, "(lfor x [1 2] (* x x))")
        return None

    def _cond(self, node: Any) -> str | None:
        if len(node) % 2 or any(head_of(item) == "unpack-iterable" for item in node):
            return None
        before = self.source.all(node[1:-1])
        fixed = (
            f"(cond {before} True {self.source.of(node[-1])})"
            if before
            else f"(cond True {self.source.of(node[-1])})"
        )
        return told("cond takes tests and values in turn", fixed)

    def _get(self, node: Any) -> str | None:
        if len(node) > 2:
            return None
        fixed = f"(get {self.source.of(node[1])} 0)" if len(node) == 2 else None
        return told("get takes a collection and a key", fixed, '(get hit "path")')

    def _when(self, node: Any) -> str | None:
        if len(node) > 2:
            return self.inside_out(node)
        fixed = f"(when {self.source.of(node[1])} None)" if len(node) == 2 else None
        return told("when takes a test and what follows from it", fixed, "(when (> x 1) x)")

    def _while(self, node: Any) -> str | None:
        if len(node) > 2:
            return self.inside_out(node)
        fixed = f"(while {self.source.of(node[1])} (break))" if len(node) == 2 else None
        return told("while takes a test and what is done", fixed, "(while (< n 3) (+= n 1))")
