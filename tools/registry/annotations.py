"""The parts of an annotation: aliases of types, notes, unions, and the type of a path."""

from __future__ import annotations

import types
import typing
from typing import Any

UNIONS = (typing.Union, types.UnionType)


class WorkspacePath(str):
    """The type of a parameter that names a file or folder: ``path`` in Hy, ``list[WorkspacePath]`` for many.
    The door replaces it with the canonical real path, relative to the workspace if it is inside; ``written``
    keeps the original text."""

    written: str
    __module__ = "quoth.tools.registry.parameters"  # its former module: outlines contain the name (tool.py)

    def __new__(cls, text: str, written: str | None = None) -> WorkspacePath:
        made = super().__new__(cls, text)
        made.written = text if written is None else written
        return made

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return {
            "type": "function-after",
            "function": {"type": "no-info", "function": cls},
            "schema": handler(str),
        }

    @classmethod
    def __get_pydantic_json_schema__(cls, core: Any, handler: Any) -> Any:
        return {"type": "string", "format": "workspace-path"}


class Mark(str):
    """A note in an annotation that declares more about a parameter than its type (parameters.py)."""


def unnamed(hint: Any) -> Any:
    """The type without names and texts: for a NewType its base type, for a type Annotated only with texts
    that type; ``object`` is any value."""
    while (inner := unwrapped(hint)) is not hint:
        if any(
            isinstance(note, Mark) or not isinstance(note, str) for note in getattr(hint, "__metadata__", ())
        ):
            return hint
        hint = inner
    return Any if hint is object else hint


def unwrapped(hint: Any) -> Any:
    """The type behind an alias or annotation; any other type itself."""
    if isinstance(hint, typing.NewType):
        return hint.__supertype__
    if type(hint).__name__ == "TypeAliasType":
        return hint.__value__
    return hint.__origin__ if typing.get_origin(hint) is typing.Annotated else hint
