"""What is different between two catalogues, as a person reads it.

Pure: knows entries; it must not know where the catalogues come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quoth.tools.lisp.printer import print_value
from quoth.tools.registry.entry import tool_of
from quoth.tools.text import one_line

Entry = dict[str, Any]
UNTOLD = ("name", "parameters")  # the schema follows from the parameters
WIDEST = 100


@dataclass(frozen=True)
class Changes:
    """Tools that came, that went, that show themselves otherwise, as (before, after), and that only have
    other code; each sorted by name."""

    added: tuple[Entry, ...]
    removed: tuple[Entry, ...]
    changed: tuple[tuple[Entry, Entry], ...]
    code: tuple[Entry, ...]

    def __bool__(self) -> bool:
        return any(self.names().values())

    def names(self) -> dict[str, list[str]]:
        """The names of each kind, as JSON data."""
        after = [after for _, after in self.changed]
        kinds = {"added": self.added, "removed": self.removed, "changed": after, "code": self.code}
        return {what: [one["name"] for one in entries] for what, entries in kinds.items()}

    def summary(self) -> str:
        """``1 added: pears; 2 changed: apples, plums``, on one line."""
        words = {"code": "with other code"}
        told = [
            f"{len(names)} {words.get(what, what)}: {', '.join(names)}"
            for what, names in self.names().items()
            if names
        ]
        return one_line("; ".join(told), 10 * WIDEST) or "the same tools"

    def lines(self) -> Iterator[str]:
        """A line for each tool, and for one that changed a line for each thing that is another."""
        for one in self.added:
            yield f"+ {signature(one)}"
        for one in self.removed:
            yield f"- {signature(one)}"
        for before, after in self.changed:
            yield f"~ {after['name']}"
            yield from (f"    {line}" for line in _differences(before, after))
        if self.code:
            yield f"Only the code is another of {', '.join(one['name'] for one in self.code)}."


def changes(before: Sequence[Entry], after: Sequence[Entry]) -> Changes:
    old, new = ({one["name"]: one for one in entries} for entries in (before, after))
    both = [(old[name], new[name]) for name in sorted(old.keys() & new.keys()) if old[name] != new[name]]
    return Changes(
        tuple(new[name] for name in sorted(new.keys() - old.keys())),
        tuple(old[name] for name in sorted(old.keys() - new.keys())),
        tuple((one, other) for one, other in both if one != {**other, "version": one["version"]}),
        tuple(other for one, other in both if one == {**other, "version": one["version"]}),
    )


def signature(entry: Entry) -> str:
    """The signature of the tool of an entry."""
    return tool_of(entry, never).signature()


def never(*_: Any) -> None:
    """The body of a tool that is looked at and not called."""
    raise AssertionError("it is not called")


def _differences(before: Entry, after: Entry) -> Iterator[str]:
    old, new = signature(before), signature(after)
    if old != new:
        yield f"- {old}"
        yield f"+ {new}"
    for name in sorted((before.keys() | after.keys()) - {*UNTOLD, "params", "version"}):
        if before.get(name) != after.get(name):
            yield from _both(name.replace("_", "-"), before.get(name), after.get(name))
    params = [{one["name"]: one for one in entry["params"]} for entry in (before, after)]
    for name in sorted(params[0].keys() & params[1].keys()):
        one, other = params[0][name], params[1][name]
        for part in sorted(one.keys() | other.keys()):
            if one.get(part) != other.get(part) and not (part in ("type", "default") and old != new):
                yield from _both(f"{name}, {part}", one.get(part), other.get(part))


def _both(what: str, old: Any, new: Any) -> Iterator[str]:
    texts = [one if isinstance(one, str) else print_value(one) for one in (old, new)]
    texts = [one_line(text, WIDEST) or "none" for text in texts]
    if sum(map(len, texts)) <= WIDEST:
        yield f"{what}: {texts[0]} → {texts[1]}"
    else:
        yield f"- {what}: {texts[0]}"
        yield f"+ {what}: {texts[1]}"
