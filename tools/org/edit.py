"""Edits of Org files: a TODO word, a line in a drawer, results. No other byte changes.

An entry is given by its index in ``Org.entries``, which edits do not change; a block by its index in
``Org.code``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from quoth.tools.errors import QuothError
from quoth.tools.org.document import Element, Entry, Org

FEW = 10  # a result with at least this many lines is written as an example block, as in Org
_ESCAPED = re.compile(r"^([ \t]*)(,*(?:\*|#\+))", re.MULTILINE)
_UNESCAPED = re.compile(r"^([ \t]*,*),((?:\*|#\+))", re.MULTILINE)
# Emacs reads settings, and code to run, from a list at the end of a file that begins with these words.
_SETTINGS = re.compile(r"(local\u200b*)(?= variables:)", re.IGNORECASE)
_NO_SETTINGS = re.compile(r"(local\u200b*)\u200b(?= variables:)", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LIST = re.compile(r"[ \t]*(?:[-+]|\d+[.)]|[A-Za-z][.)])(?:[ \t]|$)|[ \t]+\*(?:[ \t]|$)")
_LINK = re.compile(r"[ \t]*\[\[[^\]]+\](?:\[[^\]]+\])?\][ \t]*$")


class EditError(QuothError):
    """The requested text cannot be written at this place in an Org file."""


def escape(text: str) -> str:
    """Text for the inside of a block: a comma is put before lines that Org would read as a headline or
    keyword, and an invisible character into words that Emacs would read as settings."""
    return _ESCAPED.sub(r"\1,\2", _SETTINGS.sub("\\1\u200b", text))


def unescape(text: str) -> str:
    """The text of a block, without the characters added by ``escape``."""
    return _NO_SETTINGS.sub(r"\1", _UNESCAPED.sub(r"\1\2", text))


def example(text: str) -> list[str]:
    """An example block for any text. ``text_of_example`` reads the text back."""
    # With -i, Org keeps the indentation of lines as part of the text.
    keep = " -i" if re.search(r"^[ \t]", text, re.MULTILINE) else ""
    return [f"#+begin_example{keep}", *(escape(text).split("\n") if text else []), "#+end_example"]


def text_of_example(org: Org, block: Element) -> str:
    """The text in an example block. If the whole file was converted to CR LF, the text is the same."""
    rows, end = range(block.first + 1, block.last), org.ends[block.first]
    text = "".join(org.lines[row] + ("\n" if org.ends[row] == end else org.ends[row]) for row in rows)
    return unescape(text.removesuffix("\n"))


def property_value(value: str | int) -> str:
    """A property value that is read back unchanged. A value with line ends, or with blanks at its ends, is
    written as JSON."""
    text = str(value)
    plain = text.isprintable() and text == text.strip() and not text.startswith('"')
    if plain and not _SETTINGS.search(text):
        return text
    return _SETTINGS.sub(lambda found: f"\\u{ord(found[0][0]):04x}{found[0][1:]}", json.dumps(text))


def set_todo(org: Org, index: int, word: str) -> Org:
    """Replace the TODO word of a headline; an empty ``word`` removes it. Raises EditError."""
    entry = _headline(org, index)
    if word and word not in org.todo_words:
        raise EditError(f"{word} is not a TODO word of this file. These are: {' '.join(org.todo_words)}.")
    line = org.lines[entry.row]
    stop = entry.heading + len(entry.todo)
    if entry.todo and not word:
        while stop < len(line) and line[stop] in " \t":
            stop += 1
    elif word and not entry.todo:
        word += " "
    return _rows(org, entry.row, entry.row + 1, [line[: entry.heading] + word + line[stop:]])


def add_to_drawer(org: Org, index: int, drawer: str, text: str) -> Org:
    """Add a list item at the top of an entry's drawer, which is created if missing. Raises EditError."""
    if not re.fullmatch(r"[\w-]+", drawer) or drawer.upper() in ("PROPERTIES", "END"):
        raise EditError(f"{drawer!r} cannot be the name of a drawer.")
    if not text.strip() or "\n" in text or "\r" in text:
        raise EditError("The text for a drawer must be one line.")
    _headline(org, index)
    entry = org.entries[index]
    text = "- " + _clean(text).strip(" \t").removeprefix("- ")  # always a list item
    for one in entry.elements:
        if one.kind == "drawer" and one.depth == 0 and one.name == drawer.upper():
            return _rows(org, one.first + 1, one.first + 1, [_indent_of(org, one.first) + text])
    indent = _indent(org, entry)
    lines = [f"{indent}:{drawer}:", indent + text, f"{indent}:END:"]
    return _rows(org, entry.body, entry.body, lines)


def set_planning(org: Org, index: int, line: str) -> Org:
    """The file with another planning line below a headline that has one."""
    row = _headline(org, index).row + 1
    return _rows(org, row, row + 1, [line])


def set_property(org: Org, index: int, name: str, value: str) -> Org:
    """Set a property of an entry; the drawer is created if missing. Raises EditError."""
    if not re.fullmatch(r"[\w-]+", name) or not value.strip() or "\n" in value or "\r" in value:
        raise EditError(f"{name!r} cannot be written as a property on one line.")
    entry = _headline(org, index)
    value = _clean(value).strip()
    for one in entry.properties:
        if one.name.upper() == name.upper() and not one.more:
            return _rows(org, one.row, one.row + 1, [org.lines[one.row][: one.column].rstrip() + " " + value])
    if entry.drawer:
        indent = _indent_of(org, entry.drawer[0])
        return _rows(org, entry.drawer[1], entry.drawer[1], [f"{indent}:{name}: {value}"])
    indent, row = _indent(org, entry), entry.body
    if row < entry.stop and org.lines[row].strip(" \t").upper() == ":PROPERTIES:":
        raise EditError("A property cannot be added: the properties have no :END:, or contain another line.")
    lines = [f"{indent}:PROPERTIES:", f"{indent}:{name}: {value}", f"{indent}:END:"]
    return _rows(org, row, row, lines)


def add_lines(org: Org, lines: Sequence[str]) -> Org:
    """Add lines at the end of the file, such as a headline and its text."""
    return _rows(org, len(org.lines), len(org.lines), [_clean(line) for line in lines])


def put_results(org: Org, index: int, block: int, text: str | None) -> Org:
    """Write the results of the ``block``-th element of ``org.code(index)`` below it, or remove them (None).
    They replace its old results; the results of a named block may be anywhere in the file."""
    element = org.code(index)[block]
    name = name_of(element)
    found = find_results(org, name) if name else _unnamed(org, org.entries[index], element)
    if text is None:
        return _without(org, found, name)
    lines = _results(_indent_of(org, element.first), name, text)
    if found is not None:
        return _rows(org, found[0], found[1] + 1, lines)
    return _below(org, org.entries[index], element.last, lines)


def put_entry_results(org: Org, index: int, name: str, text: str | None) -> Org:
    """Write named results at the end of an entry, or replace existing ones where they are. None removes them.
    Raises EditError."""
    if not name.strip() or "\n" in name or "\r" in name:
        raise EditError("The name of results at the end of an entry must be one line.")
    entry, found = _headline(org, index), find_results(org, name)
    if text is None:
        return _without(org, found, name)
    if found is not None:
        return _rows(org, found[0], found[1] + 1, _results(_indent_of(org, found[0]), name, text))
    last = entry.stop - 1
    while last > entry.row and not org.lines[last].strip():
        last -= 1
    return _below(org, entry, last, _results(_indent(org, entry), name, text))


def name_of(element: Element) -> str:
    """The ``#+NAME:`` of an element, or an empty text."""
    key = element.key("NAME")
    return key.value if key else ""


def find_results(org: Org, name: str) -> tuple[int, int] | None:
    """The first and last row of the named results, including their keyword, or None."""
    for entry in org.entries:
        for place, one in enumerate(entry.elements):
            if one.kind == "keyword" and one.name.partition("[")[0] == "RESULTS" and one.value == name:
                return _extent(org, entry, place)
    return None


def dedent(lines: Sequence[str]) -> tuple[list[str], int]:
    """The lines without their common indentation, and its width."""
    full = [line for line in lines if line.strip(" \t")]
    if not full:
        return [line.lstrip(" \t") for line in lines], 0
    low, high = min(full), max(full)
    common = 0
    while common < min(len(low), len(high)) and low[common] == high[common] and low[common] in " \t":
        common += 1
    return [line[common:] if line.strip(" \t") else line.lstrip(" \t") for line in lines], common


# Positions and text


def _headline(org: Org, index: int) -> Entry:
    if not 0 < index < len(org.entries):
        raise EditError(f"There is no headline number {index} in this file.")
    return org.entries[index]


def _clean(text: str) -> str:
    """The text with each unpaired surrogate replaced, so that it can be written as UTF-8."""
    return _SURROGATE.sub("\ufffd", text)


def _indent_of(org: Org, row: int) -> str:
    line = org.lines[row]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent(org: Org, entry: Entry) -> str:
    """The indentation below this headline: the one of its planning line, its properties, or its text."""
    if entry.drawer:
        return _indent_of(org, entry.drawer[0])
    if entry.planning:
        return _indent_of(org, entry.row + 1)
    first = next((row for row in range(entry.body, entry.stop) if org.lines[row].strip(" \t")), None)
    indent = _indent_of(org, first) if first is not None and entry.row >= 0 else ""
    return indent if indent == " " * (entry.level + 1) else ""


def _results(indent: str, name: str, text: str) -> list[str]:
    """The keyword and the text, as Org writes results."""
    text = re.sub(r"\r\n?", "\n", _clean(text))
    lines = text.removesuffix("\n").split("\n")
    head = f"{indent}#+RESULTS: {_clean(name)}" if name else f"{indent}#+RESULTS:"
    if len(lines) < FEW:
        return [head, *(f"{indent}: {line}" if line else f"{indent}:" for line in lines)]
    body = [indent + line if line else "" for line in escape("\n".join(lines)).split("\n")]
    return [head, f"{indent}#+begin_example", *body, f"{indent}#+end_example"]


def _unnamed(org: Org, entry: Entry, element: Element) -> tuple[int, int] | None:
    """The results right below a block: the next element, if it is a keyword without a name."""
    for place, one in enumerate(entry.elements):
        if one.first > element.last:
            results = one.kind == "keyword" and one.name.partition("[")[0] == "RESULTS"
            return _extent(org, entry, place) if results and not one.value else None
    return None


def _extent(org: Org, entry: Entry, place: int) -> tuple[int, int]:
    """The rows from the keyword to the end of the element right below it, if that can be a result."""
    keyword = entry.elements[place]
    body = next((one for one in entry.elements[place + 1 :] if keyword in one.keys), None)
    if body is None or body.first != keyword.last + 1:
        return keyword.first, keyword.last
    if body.kind in ("fixed", "table", "block", "container", "drawer", "latex"):
        return keyword.first, body.last
    if body.kind == "text" and _LIST.match(org.lines[body.first]):
        rows = range(body.first, body.last + 1)
        outside = (row for row in rows if not _LIST.match(org.lines[row]) and org.lines[row][:1] not in " \t")
        return keyword.first, next(outside, body.last + 1) - 1
    if body.kind == "text" and _LINK.match(org.lines[body.first]):
        return keyword.first, body.first
    return keyword.first, keyword.last


def _without(org: Org, found: tuple[int, int] | None, name: str) -> Org:
    """The file without these results, and without one of the two blank lines that would remain. If only a
    part of an element is a result, it is kept, because the rest could be read as something else."""
    if found is None:
        return org
    first, last = found
    every = (one for entry in org.entries for one in entry.elements)
    body = next((one for one in every if any(key.first == first for key in one.keys)), None)
    if body is None or body.last != last:
        return org
    if len(body.keys) > 1:  # a name or caption would then belong to the next element
        return _rows(org, first, last + 1, _results(_indent_of(org, first), name, ""))
    edges = {entry.stop for entry in org.entries}
    ends = last + 1 in edges or not org.lines[last + 1].strip(" \t")
    blank = first and first not in edges and not org.lines[first - 1].strip(" \t")
    return _rows(org, first - (1 if blank and ends else 0), last + 1, [])


def _below(org: Org, entry: Entry, row: int, lines: Iterable[str]) -> Org:
    """The file with these lines below a row, separated by blank lines from other text."""
    follows = row + 1 < entry.stop and org.lines[row + 1].strip(" \t")
    return _rows(org, row + 1, row + 1, ["", *lines, *([""] if follows else [])])


def _rows(org: Org, start: int, stop: int, lines: Sequence[str]) -> Org:
    """The file with some rows replaced by other lines. Each new line ends like the row it replaces, or like
    its neighbours. A file without a line end at its end stays so."""
    old = list(org.ends[start:stop])
    near = org.ends[start - 1] if start else ""
    usual = near or (old[0] if old else "") or org.newline
    ends = [old[place] if place < len(old) and old[place] else usual for place in range(len(lines))]
    before = list(org.ends[:start])
    at_end = stop == len(org.ends)
    last = (old[-1] if old else near) if at_end else ""
    if at_end and not last and org.ends:
        if lines:
            ends[-1] = ""
            if start and not before[-1]:
                before[-1] = usual
        elif before and old:
            before[-1] = ""
    return Org(
        [*org.lines[:start], *lines, *org.lines[stop:]],
        [*before, *ends, *org.ends[stop:]],
        org.bom,
        org.words,
    )
