"""Which of a call's arguments, ``call`` and ``ctx`` its guard or body has parameters for.

It knows the state of a call; it must not run anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from quoth.tools.door.state import CallState


def bindings(function: Callable[..., Any], state: CallState, **more: Any) -> dict[str, Any]:
    """The keyword arguments that a guard or body accepts: the call's arguments, ``call`` and ``ctx``."""
    return offered_to(function, {"call": state.call, "ctx": state.context, **more}, state.args)


def offered_to(
    function: Callable[..., Any], marks: Mapping[str, Any], args: Mapping[str, Any]
) -> dict[str, Any]:
    """What a function has parameters for, of the host's ``marks`` and a call's arguments."""
    offered = {**marks, **{name.replace("-", "_"): value for name, value in args.items()}}
    wanted = _parameters(function)
    return {name: value for name, value in offered.items() if name in wanted}


@lru_cache(maxsize=1024)
def _parameters(function: Callable[..., Any]) -> frozenset[str]:
    """The parameter names of a function, cached."""
    try:
        return frozenset(inspect.signature(function).parameters)
    except ValueError:  # one is a word of Python, ``as``, which a function of Hy may have
        code = function.__code__
        return frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
