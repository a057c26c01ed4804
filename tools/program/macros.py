"""The macros of a program: their definitions, taken out of it, and their known expansions.

A macro runs only in the sandbox (tools/sandbox/macros.py). Here are its definition as a form, and the calls
that still wait for their expansion."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import hy.models as m

from quoth.tools.lisp.printer import show
from quoth.tools.lisp.syntax import begins, fixed_arity, is_core, mangle

DEFMACRO = "defmacro"
GENERATED = re.compile(r"_hy_gensym_\w+\Z")  # names that no program can write


class GeneratedSymbol(m.Symbol):  # type: ignore[misc]
    """A symbol made by ``gensym``. Only an expansion can contain one."""

    _extra_kwargs: tuple[str, ...] = ()  # as of the models that the compiler opens


class MacroError(Exception):
    """A macro is defined or used wrongly. ``node`` is the wrong form."""

    def __init__(self, node: Any, why: str) -> None:
        super().__init__(why)
        self.node = node


@dataclass(frozen=True)
class Definitions:
    """The macros for compiling a program: ``macros``, the definitions by name as text, from the session and
    from the program itself (``defined``); the names ``used``; the ``expansions`` of their calls, by the text
    of the call; the Python of the macros that ``macroexpand`` may call; and whether the session keeps
    ``forms`` as values."""

    macros: Mapping[str, str] = field(default_factory=dict)
    defined: Mapping[str, str] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    expansions: Mapping[str, Any] = field(default_factory=dict)
    functions: str = ""
    forms: bool = False
    unseen: bool = False

    def expansion(self, node: Any) -> Any:
        """The expansion of a macro call, at the call's position; None while it is unknown."""
        if self.unseen:
            return m.Symbol("None").replace(node)
        found = self.expansions.get(show(node))
        return None if found is None else _placed(found, node)


def _placed(form: Any, node: Any) -> Any:
    """A copy of a form with all parts at the position of ``node``."""
    if isinstance(form, m.Symbol) and GENERATED.match(form):
        return GeneratedSymbol(form, from_parser=True).replace(node)
    if isinstance(form, m.Sequence):
        more = {name: getattr(form, name) for name in form._extra_kwargs}
        return type(form)([_placed(item, node) for item in form], **more).replace(node, recursive=False)
    if isinstance(form, m.Symbol | m.Keyword):
        return type(form)(getattr(form, "name", form), from_parser=True).replace(node)
    return type(form)(form).replace(node)


def split(forms: Sequence[Any], tools: Collection[str] = ()) -> tuple[dict[str, Any], list[Any]]:
    """The macro definitions, by name, at the top of a program or of the do or let that is the whole program,
    and the program without them. Raises MacroError."""
    if len(forms) == 1 and begins(forms[0], "do", "let"):
        (whole,) = forms
        body = 2 if begins(whole, "let") else 1
        macros, rest = split(whole[body:], tools) if whole[body:] else ({}, [])
        return macros, [type(whole)([*whole[:body], *rest]).replace(whole, recursive=False)]
    macros = {_name(form, tools): form for form in forms if begins(form, DEFMACRO)}
    rest = [form for form in forms if not begins(form, DEFMACRO)]
    return macros, rest or [m.Symbol("None").replace(forms[-1])]


def _name(form: Any, tools: Collection[str]) -> str:
    if len(form) < 4 or not isinstance(form[1], m.Symbol) or not isinstance(form[2], m.List):
        raise MacroError(form, "a macro is written (defmacro name [parameters] body …)")
    name = str(form[1])
    if is_core(name) or "." in name or mangle(name) == "eval":
        raise MacroError(form[1], f"{name} is a form of Hy; give the macro another name")
    if mangle(name) in map(mangle, tools):
        raise MacroError(form[1], f"{name} is a tool; give the macro another name")
    if not fixed_arity(form[2]) and any(begins(item, "unpack-mapping") for item in form[2]):
        raise MacroError(form[2], "a macro has no named parameters; write #* forms")
    return name


def unseen(text: str, forms: Sequence[Any], tools: Collection[str] = ()) -> Definitions | None:
    """The Definitions for checking a program without expanding its macros; None if it defines none. Raises
    MacroError."""
    macros = split(forms, tools)[0] if DEFMACRO in text else {}
    return Definitions({name: show(form) for name, form in macros.items()}, unseen=True) if macros else None


def function_of(definition: Any) -> Any:
    """The function of forms given by a macro's definition."""
    return m.Expression([m.Symbol("fn").replace(definition), *definition[2:]]).replace(
        definition, recursive=False
    )


def size_of(forms: Iterable[Any]) -> int:
    """The number of nodes in forms."""
    nodes, pending = 0, list(forms)
    while pending:
        nodes += 1
        if isinstance(node := pending.pop(), m.Sequence):
            pending.extend(node)
    return nodes
