"""Finds the call in a program that is nothing but one call with literal arguments, and writes it as Python.

Such a call means the same without a sandbox. It must not know how a program is compiled or run, or doors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from keyword import iskeyword
from typing import Any

import hy
import hy.models as m

from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.syntax import head_of, is_core

_NAME = re.compile(r"[a-z][a-z0-9-]*\Z").match  # in Python another name for each
_CONSTANTS = {"True": True, "False": False, "None": None}


def single_call(forms: Sequence[Any], names: Collection[str]) -> CallForm | None:
    """The call that the ``forms`` of a checked program are, or None. ``names`` are the tools'."""
    name = head_of(forms[0]) if len(forms) == 1 else ""
    if name not in names or not _NAME(name) or is_core(name) or iskeyword(hy.mangle(name)):
        return None
    positional: list[Any] = []
    named: dict[str, Any] = {}
    items = iter(forms[0][1:])
    try:
        for item in items:
            if not isinstance(item, m.Keyword):
                if named:
                    return None
                positional.append(_literal(item))
            elif not _NAME(item.name) or item.name in named:
                return None
            else:
                named[item.name] = _literal(next(items))
    except ValueError:
        return None
    return CallForm(name, named, tuple(positional))


def _literal(node: Any) -> Any:
    """The value of a literal that is the same on both sides of the sandbox's wall. Raises ValueError."""
    if isinstance(node, m.Symbol) and str(node) in _CONSTANTS:
        return _CONSTANTS[str(node)]
    if isinstance(node, m.String):
        str(node).encode()  # UnicodeEncodeError is a ValueError
        return str(node)
    if isinstance(node, m.Integer) and node.bit_length() < 64:
        return int(node)
    if isinstance(node, m.Float) and math.isfinite(node):
        return float(node)
    if type(node) is m.List:
        return [_literal(item) for item in node]
    raise ValueError("It has to be computed.")


def as_python(form: CallForm, function: str) -> str:
    """A call with literal arguments as Python writes it, of this ``function``."""
    given = [*map(repr, form.positional)]
    for name, value in form.args.items():
        name = hy.mangle(name)
        given.append(f"**{{{name!r}: {value!r}}}" if iskeyword(name) else f"{name}={value!r}")
    return f"{function}({', '.join(given)})"
