"""Functionary 3.2: ``>>>NAME``, then JSON on the next line; ``>>>all`` begins words."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Family

FAMILIES = (
    Family(
        "functionary",
        mark=rf"(?=>>>(?:all[ \t]*\n|{NAME}[ \t]*\n\s*\{{))",
        call=rf">>>(?!all[ \t]*\n)(?P<tool>{NAME})[ \t]*\n",
        words=r">>>all[ \t]*\n",
        shape=">>>NAME\n{…}",
    ),
)
