"""The numbers that a room promises, looked up by their names."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from operator import attrgetter


def numbers(room: str, names: Iterable[str]) -> dict[str, object]:
    """The value of each name, such as ``after.MOST_FILES`` in the room ``tools.door``."""
    found = {}
    for name in names:
        module, _, attribute = name.partition(".")
        found[name] = attrgetter(attribute)(import_module(f"quoth.{room}.{module}"))
    return found
