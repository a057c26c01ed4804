"""An Org file split at its headlines, so that an edit of one section parses only that section again.

Each edit gives the same bytes as the same edit of the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import pairwise

from quoth.tools.org.document import Entry, Org, dump
from quoth.tools.org.edit import (
    add_to_drawer,
    find_results,
    name_of,
    put_entry_results,
    put_results,
    set_planning,
    set_property,
    set_todo,
)


class OrgParts:
    """The sections of a file, one for each entry. The first is the text before all headlines."""

    def __init__(self, whole: Org) -> None:
        rows = [0, *(entry.row for entry in whole.entries[1:]), len(whole.lines)]
        self._bom, self._words, self._newline = whole.bom, whole.todo_words, whole.newline
        self._parts: list[Org] = []
        self._texts: list[str] = []
        for first, stop in pairwise(rows):
            self._parts.append(self._settled(Org(whole.lines[first:stop], whole.ends[first:stop])))
            self._texts.append(self._parts[-1].text)

    def _settled(self, part: Org) -> Org:
        """A part with the properties of the whole file that edits depend on."""
        part.todo_words, part.newline = self._words, self._newline
        return part

    @property
    def todo_words(self) -> tuple[str, ...]:
        return self._words

    def copy(self) -> OrgParts:
        """An independent copy."""
        other = copy(self)
        other._parts, other._texts = self._parts[:], self._texts[:]
        return other

    def whole(self) -> Org:
        lines = [line for part in self._parts for line in part.lines]
        return Org(lines, [end for part in self._parts for end in part.ends], self._bom, self._words)

    def dump(self) -> bytes:
        return dump(Org(["".join(self._texts)], [""], self._bom))

    def row(self, index: int) -> int:
        """The row of a headline in the whole file."""
        return sum(len(part.lines) for part in self._parts[:index])

    def lines(self, index: int) -> Sequence[str]:
        return self._parts[index].lines

    def entry(self, index: int) -> Entry:
        """A headline; its rows count from the headline."""
        return self._parts[index].entries[1]

    def set_todo(self, index: int, word: str) -> None:
        self._edit(index, partial(set_todo, word=word))

    def set_planning(self, index: int, line: str) -> None:
        """Replace the planning line of a headline that has one."""
        self._edit(index, partial(set_planning, line=line))

    def add_to_drawer(self, index: int, drawer: str, text: str) -> None:
        self._edit(index, partial(add_to_drawer, drawer=drawer, text=text))

    def set_property(self, index: int, name: str, value: str) -> None:
        self._edit(index, partial(set_property, name=name, value=value))

    def put_results(self, index: int, block: int, text: str | None) -> None:
        name = name_of(self._parts[index].code(1)[block])
        self._put(index, name, partial(put_results, block=block, text=text))

    def put_entry_results(self, index: int, name: str, text: str | None) -> None:
        self._put(index, name, partial(put_entry_results, name=name, text=text))

    def _put(self, index: int, name: str, edit: Callable[[Org, int], Org]) -> None:
        """Put results in. Named results may be below any headline."""
        own = self._parts[index]
        if name and any(find_results(part, name) for part in self._parts if part is not own):
            other = OrgParts(edit(self.whole(), index))
            self._parts, self._texts = other._parts, other._texts
        else:
            self._edit(index, edit)

    def _edit(self, index: int, edit: Callable[[Org, int], Org]) -> None:
        self._parts[index] = self._settled(edit(self._parts[index], 1))
        self._texts[index] = self._parts[index].text
