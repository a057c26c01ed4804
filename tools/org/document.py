"""A parser of Org files that keeps every byte: dump(load(data)) == data for any data.

It reads Org's syntax as org-element does. orgparse is used only for comparison in tests: it drops line ends
and columns, raises on a date like 2026-13-45, reads drawers inside blocks as properties, and needs a minute
for a table row without an end."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

BOM = "\ufeff"
WORDS = ("TODO", "DONE")  # Org's defaults, for a file that declares none

_STARS = re.compile(r"(\*+) ")
INLINE = "*" * 15  # beginning of an inline task (org-inlinetask), which is not a headline
_INLINE_END = re.compile(r"\*{15,}[ \t]+END[ \t]*$")
_PRIORITY = re.compile(r"\[#(.)\][ \t]*")
_COMMENT = re.compile(r"COMMENT(?:[ \t]+|$)")
_TAGS = re.compile(r"[ \t]+:([\w@#%:]+):[ \t]*$")
_BEGIN = re.compile(r"[ \t]*#\+begin_(\S+)[ \t]*", re.IGNORECASE)
_END = re.compile(r"[ \t]*#\+end_(\S+)[ \t]*$", re.IGNORECASE)
_DYNAMIC = re.compile(r"[ \t]*#\+begin:? ", re.IGNORECASE)
_DYNAMIC_END = re.compile(r"[ \t]*#\+end:?[ \t]*$", re.IGNORECASE)
_KEYWORD = re.compile(r"[ \t]*#\+(\S+):[ \t]*")
_DRAWER = re.compile(r"[ \t]*:([\w-]+):[ \t]*$")
_PROPERTY = re.compile(r"[ \t]*:(\S+):(?:[ \t]+|$)")
_PROPERTY_LINE = re.compile(r"[ \t]*:\S+:(?: .*)?[ \t]*$")
_PLANNING = re.compile(r"[ \t]*(?:CLOSED|DEADLINE|SCHEDULED):")
_CLOCK = re.compile(r"[ \t]*CLOCK: ")
_LATEX = re.compile(r"[ \t]*\\begin\{([A-Za-z0-9*]+)\}")
_LATEX_END = re.compile(r"\\end\{([A-Za-z0-9*]+)\}[ \t]*$")
_FIXED = re.compile(r"[ \t]*:(?: |$)")
_ROW = re.compile(r"[ \t]*\|")
_REMARK = re.compile(r"[ \t]*#(?: |$)")
_SPECIAL = ("", "#", ":", "|", "\\", "C")  # first characters of lines that may be more than text
_VERBATIM = frozenset({"SRC", "EXAMPLE", "EXPORT", "COMMENT", "VERSE"})
# Keywords that belong to the element below them, by Org's newer names.
_NEWER = dict.fromkeys(("DATA", "LABEL", "RESNAME", "SOURCE", "SRCNAME", "TBLNAME"), "NAME")
_NEWER |= {"HEADERS": "HEADER", "RESULT": "RESULTS"}
_AFFILIATED = re.compile(r"(?:NAME|HEADER|RESULTS|CAPTION|PLOT|ATTR_[-\w]+)(?:\[.*\])?$")


@dataclass(frozen=True, slots=True)
class Property:
    """A property and the position of its value. ``more`` means that it was written ``:NAME+:``, which
    appends."""

    name: str
    value: str
    row: int
    column: int
    more: bool = False


@dataclass(frozen=True, slots=True)
class Element:
    """A block, drawer, keyword, table, inline task or text in the rows ``first`` to ``last``. ``name`` is a
    keyword's key or a block's type; ``value`` is the rest of the first line, from ``column``; ``keys`` are
    the keywords attached above it (``#+NAME:`` …); ``depth`` is the number of enclosing drawers and
    blocks."""

    kind: str
    first: int
    last: int
    name: str = ""
    value: str = ""
    column: int = 0
    keys: tuple[Element, ...] = ()
    depth: int = 0

    def key(self, name: str) -> Element | None:
        """The last attached keyword of that name, or None."""
        return next((key for key in reversed(self.keys) if key.name.partition("[")[0] == name), None)


@dataclass(frozen=True, slots=True)
class Entry:
    """A headline and the text below it. ``stop`` is the row of the next headline, ``end`` the row after its
    subtree, ``heading`` the column after the stars. The first entry (level 0, row -1) is the text before all
    headlines."""

    row: int
    level: int
    stop: int
    end: int
    parent: int
    heading: int = 0
    todo: str = ""
    priority: str = ""
    title: str = ""
    title_column: int = 0
    tags: tuple[str, ...] = ()
    commented: bool = False
    planning: bool = False
    drawer: tuple[int, int] | None = None
    properties: tuple[Property, ...] = ()
    elements: tuple[Element, ...] = ()

    @property
    def body(self) -> int:
        """The first row below the headline, its planning line and its properties."""
        if self.drawer:
            return self.drawer[1] + 1
        return self.row + 1 + self.planning


@dataclass(eq=False)
class Org:
    """A file as lines and line ends. It is immutable; an edit returns a new one."""

    lines: Sequence[str]
    ends: Sequence[str]
    bom: bool = False
    words: tuple[str, ...] = WORDS

    @property
    def text(self) -> str:
        """The text without the byte order mark. Bytes that are not UTF-8 become unpaired surrogates."""
        return "".join(part for pair in zip(self.lines, self.ends, strict=True) for part in pair)

    @cached_property
    def newline(self) -> str:
        """The most frequent line end of the file."""
        seen = Counter(end for end in self.ends if end)
        return seen.most_common(1)[0][0] if seen else "\n"

    @cached_property
    def todo_words(self) -> tuple[str, ...]:
        """The TODO words that the file declares, otherwise the words given to ``load``."""
        found: list[str] = []
        for element in self.keywords("TODO", "SEQ_TODO", "TYP_TODO"):
            found += [word.partition("(")[0] for word in element.value.replace("|", " ").split()]
        return tuple(word for word in found if word) or self.words

    def keywords(self, *names: str) -> Iterator[Element]:
        """All keywords of these names, in file order."""
        for elements in self._elements:
            yield from (one for one in elements if one.kind == "keyword" and one.name in names)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """The entry for the text before all headlines, then all headlines in file order."""
        rows, levels = self._headlines
        stops = [*rows[1:], len(self.lines)]
        ends, parents, open_ones = [len(self.lines)] * len(rows), [-1] * len(rows), [0]
        for index in range(1, len(rows)):
            while levels[open_ones[-1]] >= levels[index]:
                ends[open_ones.pop()] = rows[index]
            parents[index] = open_ones[-1]
            open_ones.append(index)
        return tuple(
            self._entry(index, rows[index], levels[index], stops[index], ends[index], parents[index])
            for index in range(len(rows))
        )

    def inside(self, index: int) -> Iterator[int]:
        """The indexes of an entry and its parents, from the inside out, without the first entry."""
        while index > 0:
            yield index
            index = self.entries[index].parent

    def is_dead(self, index: int) -> bool:
        """Whether an entry, or a headline above it, is commented out or archived."""
        around = (self.entries[one] for one in self.inside(index))
        return any(one.commented or "ARCHIVE" in one.tags for one in around)

    def code(self, index: int) -> list[Element]:
        """The source blocks and ``#+CALL:`` lines of an entry, except results and lines inside blocks or
        drawers."""
        return [
            one
            for one in self.entries[index].elements
            if one.depth == 0
            and one.key("RESULTS") is None
            and (one.name == "SRC" if one.kind == "block" else one.kind == "keyword" and one.name == "CALL")
        ]

    # Reading

    @cached_property
    def _headlines(self) -> tuple[list[int], list[int]]:
        rows, levels = [-1], [0]
        for row, line in enumerate(self.lines):
            if line.startswith("*") and not line.startswith(INLINE) and (found := _STARS.match(line)):
                rows.append(row)
                levels.append(len(found[1]))
        return rows, levels

    @cached_property
    def _drawers(self) -> list[tuple[bool, tuple[int, int] | None]]:
        """For each entry, whether a planning line follows, and the rows of its properties."""
        found: list[tuple[bool, tuple[int, int] | None]] = []
        rows, _ = self._headlines
        for row, stop in zip(rows, [*rows[1:], len(self.lines)], strict=True):
            place = row + 1
            planning = row >= 0 and place < stop and bool(_PLANNING.match(self.lines[place]))
            place += planning
            while row < 0 and place < stop and re.match(r"#(?: |$)", self.lines[place]):
                place += 1
            found.append((planning, self._properties_at(place, stop)))
        return found

    def _properties_at(self, first: int, stop: int) -> tuple[int, int] | None:
        if first >= stop or self.lines[first].strip(" \t").upper() != ":PROPERTIES:":
            return None
        for row in range(first + 1, stop):
            if self.lines[row].strip(" \t").upper() == ":END:":
                return first, row
            if not _PROPERTY_LINE.match(self.lines[row]):
                return None
        return None

    @cached_property
    def _closers(self) -> dict[str, list[int]]:
        """The rows where blocks, drawers and environments may end, by the name of the element that ends
        there."""
        found: dict[str, list[int]] = {}
        for row, line in enumerate(self.lines):
            bare = line.lstrip(" \t")
            if bare.startswith("#+") and bare[2:5].upper() == "END":
                if ended := _END.match(line):
                    found.setdefault(ended[1].upper(), []).append(row)
                elif _DYNAMIC_END.match(line):
                    found.setdefault("#", []).append(row)
            elif bare.startswith(":") and bare.rstrip(" \t").upper() == ":END:":
                found.setdefault(":", []).append(row)
            elif "\\end{" in line and (ended := _LATEX_END.search(line)):
                found.setdefault("\\" + ended[1].upper(), []).append(row)
        return found

    def _closer(self, what: str, row: int, limit: int) -> int | None:
        rows = self._closers.get(what, [])
        place = bisect_left(rows, row)
        return rows[place] if place < len(rows) and rows[place] < limit else None

    @cached_property
    def _elements(self) -> list[tuple[Element, ...]]:
        rows, _ = self._headlines
        stops = [*rows[1:], len(self.lines)]
        return [
            tuple(self._scan(drawer[1] + 1 if drawer else row + 1 + planning, stop))
            for row, stop, (planning, drawer) in zip(rows, stops, self._drawers, strict=True)
        ]

    def _scan(self, row: int, stop: int) -> Iterator[Element]:
        """The elements of one section. A beginning is a block or drawer only if its end comes before the end
        of the element around it; otherwise it is text."""
        limits: list[int] = []  # end rows of the enclosing blocks and drawers
        keys: list[Element] = []
        while row < stop:
            if limits and row == limits[-1]:
                limits.pop()
                keys, row = [], row + 1
                continue
            limit = limits[-1] if limits else stop
            found = self._element(row, limit, tuple(keys), len(limits))
            if found is None:  # a blank line
                keys, row = [], row + 1
                continue
            yield found
            if found.kind in ("drawer", "container"):
                limits.append(found.last)
                keys, row = [], row + 1
                continue
            row = found.last + 1
            affiliated = found.kind == "keyword" and _AFFILIATED.match(found.name)
            keys = [*keys, found] if affiliated else []

    def _element(self, row: int, limit: int, keys: tuple[Element, ...], depth: int) -> Element | None:
        line = self.lines[row]
        first = line.lstrip(" \t")[:1]
        if not first:
            return None
        if self._is_inline(row):
            return Element("inline", row, self._end_of_inline(row, limit), depth=depth)
        if first == "#":
            if _REMARK.match(line):
                return Element("comment", row, self._run(_REMARK, row, limit), depth=depth)
            if found := self._block(row, limit, keys, depth):
                return found
            if not _BEGIN.match(line) and (key := _KEYWORD.match(line)):
                name = key[1].upper()
                value = line[key.end() :].rstrip(" \t")
                return Element("keyword", row, row, _NEWER.get(name, name), value, key.end(), keys, depth)
        elif first == ":":
            if drawer := _DRAWER.match(line):
                last = self._closer(":", row + 1, limit)
                if last is not None:
                    return Element("drawer", row, last, drawer[1].upper(), keys=keys, depth=depth)
            elif _FIXED.match(line):
                return Element("fixed", row, self._run(_FIXED, row, limit), keys=keys, depth=depth)
        elif first == "|":
            return Element("table", row, self._run(_ROW, row, limit), keys=keys, depth=depth)
        elif first == "\\" and (opened := _LATEX.match(line)):
            last = self._closer("\\" + opened[1].upper(), row, limit)
            if last is not None:
                return Element("latex", row, last, opened[1], keys=keys, depth=depth)
        elif first == "C" and _CLOCK.match(line):
            return Element("clock", row, row, depth=depth)
        last = row
        while (
            last + 1 < limit
            and self.lines[last + 1].lstrip(" \t")[:1] not in _SPECIAL
            and not self._is_inline(last + 1)
        ):
            last += 1
        return Element("text", row, last, keys=keys, depth=depth)

    def _is_inline(self, row: int) -> bool:
        line = self.lines[row]
        return line.startswith(INLINE) and _STARS.match(line) is not None

    def _end_of_inline(self, row: int, limit: int) -> int:
        """The row of the END of an inline task; its own row if there is none before the next task."""
        following = next((one for one in range(row + 1, limit) if self._is_inline(one)), row)
        return following if _INLINE_END.match(self.lines[following]) else row

    def _block(self, row: int, limit: int, keys: tuple[Element, ...], depth: int) -> Element | None:
        line = self.lines[row]
        if begun := _BEGIN.match(line):
            name = begun[1].upper()
            last = self._closer(name, row + 1, limit)
            if last is None:
                return None
            kind = "block" if name in _VERBATIM else "container"
            value = line[begun.end() :].rstrip(" \t")
            return Element(kind, row, last, name, value, begun.end(), keys, depth)
        if _DYNAMIC.match(line):
            last = self._closer("#", row + 1, limit)
            if last is not None:
                return Element("container", row, last, "", keys=keys, depth=depth)
        return None

    def _run(self, alike: re.Pattern[str], row: int, limit: int) -> int:
        """The last of the consecutive rows from ``row`` that match ``alike``."""
        while row + 1 < limit and alike.match(self.lines[row + 1]):
            row += 1
        return row

    def _entry(self, index: int, row: int, level: int, stop: int, end: int, parent: int) -> Entry:
        planning, drawer = self._drawers[index]
        properties = tuple(self._property(line) for line in range(drawer[0] + 1, drawer[1])) if drawer else ()
        elements = self._elements[index]
        if row < 0:
            return Entry(row, 0, stop, end, -1, drawer=drawer, properties=properties, elements=elements)
        line = self.lines[row]
        place = heading = _skip(line, level)
        todo = ""
        first = re.match(r"\S+", line[place:])
        if first and first[0] in self.todo_words:
            todo = first[0]
            place = _skip(line, place + len(todo))
        priority = _PRIORITY.match(line, place)
        place = priority.end() if priority else place
        commented = _COMMENT.match(line, place)
        place = commented.end() if commented else place
        # Tags may directly follow the stars; then the title is empty.
        tags = _TAGS.search(line, place if todo or priority or commented else level)
        title = line[place : max(place, tags.start()) if tags else len(line)].strip(" \t")
        words = (todo, priority[1] if priority else "", title, place)
        named = tuple(filter(None, tags[1].split(":"))) if tags else ()
        dead = bool(commented)
        place_of = (row, level, stop, end, parent, heading)
        return Entry(*place_of, *words, named, dead, planning, drawer, properties, elements)

    def _property(self, row: int) -> Property:
        line = self.lines[row]
        found = _PROPERTY.match(line)
        assert found, "the drawer was looked at before"
        name, value = found[1], line[found.end() :].rstrip(" \t")
        return Property(name.removesuffix("+"), value, row, found.end(), name.endswith("+"))


def _skip(line: str, place: int) -> int:
    while place < len(line) and line[place] in " \t":
        place += 1
    return place


def load(data: bytes, words: Sequence[str] = WORDS) -> Org:
    """Parse a file. ``words`` are the TODO words of a file that declares none."""
    text = data.decode("utf-8", "surrogateescape")
    bom = text.startswith(BOM)
    parts = re.split(r"(\r?\n)", text[1:] if bom else text)
    lines, ends = parts[0::2], [*parts[1::2], ""]
    if not lines[-1]:
        del lines[-1], ends[-1]
    return Org(lines, ends, bom, tuple(words))


def dump(org: Org) -> bytes:
    """The file as bytes."""
    return ((BOM if org.bom else "") + org.text).encode("utf-8", "surrogateescape")
