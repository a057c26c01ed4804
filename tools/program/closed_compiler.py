"""Hy's compiler for untrusted programs: it finds only the macros given to it, and takes linear time.

Hy looks up a macro in the module being compiled, then in ``builtins``; ``hy.R.a.b`` imports a. Here Hy's own
functions run with globals in which ``builtins`` has no macros and nothing can be imported. So a form that the
check missed finds no macro to expand.

Compiling in a separate process was measured and rejected. A warm process costs 0.3 ms, but has all the rights
of this one, and one program could corrupt it for the next. A fork for each program costs 11 ms, five times as
much as compiling; a fresh process costs 0.3 s."""

from __future__ import annotations

import types
from collections.abc import Mapping
from typing import Any

import hy.macros
import hy.models as m
from hy.compiler import HyASTCompiler, Result, _model_compilers

from quoth.tools.program.macros import GeneratedSymbol
from quoth.tools.program.quoting import Quoted


def _seeing(function: Any, **names: Any) -> Any:
    """The same function, with other values for these global names."""
    return types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )


_expand = _seeing(hy.macros.macroexpand, builtins=types.SimpleNamespace(), importlib=None)
_expression = _seeing(HyASTCompiler.compile_expression, macroexpand=_expand)


class ClosedCompiler(HyASTCompiler):  # type: ignore[misc]
    """Compiles forms made by ``sealed``. It finds only ``macros``, given by mangled name."""

    compile_expression = _expression

    def __init__(self, macros: Mapping[str, Any], source: str) -> None:
        module = types.ModuleType("program")
        module.__dict__["_hy_macros"] = dict(macros)
        super().__init__(module, source=source)

    def compile_atom(self, atom: Any) -> Any:
        kind = _OPENED.get(type(atom), type(atom))
        opened = _like(atom, kind, atom) if kind is not type(atom) else atom
        if kind is m.Expression:
            return Result() + _expression(self, opened)
        made = Result() + _model_compilers[kind](self, opened)
        if kind is m.FComponent and made.expr.value is None:
            self._syntax_error(opened, "this form has no value that a text can contain")
        return made


# When Hy makes a form around others, it copies all inner forms, level by level, to give each a position: 60
# nested forms took six seconds. Hy leaves unknown classes unchanged. So the forms of a program, which have
# positions already, are instances of our own classes, opened one by one when they are compiled.


def _like(form: Any, kind: type, items: Any) -> Any:
    made = kind(items, **{name: getattr(form, name) for name in form._extra_kwargs})
    return m.Object.replace(made, form)


_KINDS = (m.Expression, m.List, m.Dict, m.Set, m.Tuple, m.FString, m.FComponent)
_SEALED = {kind: type(kind.__name__, (kind,), {"replace": m.Object.replace}) for kind in _KINDS}
_OPENED = {sealed: kind for kind, sealed in _SEALED.items()} | {Quoted: m.Symbol, GeneratedSymbol: m.Symbol}


def sealed(form: Any) -> Any:
    """A copy of ``form`` for ClosedCompiler, made of model classes that Hy does not copy at every level."""
    kind = _SEALED.get(type(form))
    return form if kind is None else _like(form, kind, map(sealed, form))
