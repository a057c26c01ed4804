"""The families of models and their markup for calls; each file of this folder adds some."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from quoth.neuro.reading.markup import Family
from quoth.tools import lazy_regex


def _families() -> Iterator[Family]:
    for file in iter_modules(__path__):
        yield from import_module(f"{__name__}.{file.name}").FAMILIES


# Families with their own parser come first, because their marks are more specific.
FAMILIES: Final = sorted(_families(), key=lambda family: (not family.has_sections, family.name))
_MARKED: Final = [(family, lazy_regex.compile(family.mark)) for family in FAMILIES if family.mark]


def _any(marks: Iterator[str]) -> str:
    return "|".join(sorted(dict.fromkeys(marks), key=len, reverse=True))


MARKS: Final = "|".join(f"(?:{family.mark})" for family in FAMILIES if family.mark)
ENDS: Final = _any(end for family in FAMILIES for end in family.ends)
RESULTS: Final = _any(result for family in FAMILIES for result in family.results)


def family_at(text: str, position: int) -> tuple[Family, int] | None:
    """The family whose mark is at ``position``, and the offset after the mark."""
    for family, mark in _MARKED:
        if found := mark.match(text, position):
            return family, found.end()
    return None
