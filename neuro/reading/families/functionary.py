"""Functionary 3.2: ``>>>NAME``, then JSON on the next line; ``>>>all`` begins words."""

from __future__ import annotations

from quoth.neuro.reading.markup import NAME, Cursor, Family


def read(at: Cursor) -> None:
    while True:
        at.begin()
        found = at.take(rf">>>({NAME})[ \t]*\n")
        if found is None:
            return
        if found[1] == "all":
            at.speaks = True
            return
        at.add(found[1], at.object())


FAMILIES = (
    Family(
        "functionary",
        mark=rf"(?=>>>(?:all[ \t]*\n|{NAME}[ \t]*\n\s*\{{))",
        read=read,
        shape=">>>NAME\n{…}",
    ),
)
