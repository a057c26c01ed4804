"""Finds syntax mistakes in an Org file that Org reads as plain text or ignores: blocks without an end, unread
keywords, lines that only look like headlines.

Knows Org files and the keywords of plans; must not know tools or the plan itself. Each mistake is a row, a
column (both from 0) and a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from quoth.agent.plan.model import LANGUAGES
from quoth.agent.plan.suggestions import FENCES, is_ours, meant_block, meant_keyword, meant_line
from quoth.tools.org import babel
from quoth.tools.org.document import Element, Entry, Org

Mistake = tuple[int, int, str]

_EDGE = re.compile(r"[ \t]*#\+(begin|end)_(src|example|quote|export|comment|verse)\b", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:(PROPERTIES|LOGBOOK|RESULTS):[ \t]*$", re.IGNORECASE)
_PLANNING = re.compile(r"[ \t]*(CLOSED|DEADLINE|SCHEDULED):")


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def broken(org: Org, entry: Entry) -> Iterator[Mistake]:
    """Find lines of an entry that Org takes for text but that look like syntax."""
    top, fence, drawer = entry.body, "", False
    for row, kind in _texts(entry):
        line = org.lines[row]
        if fence:  # what stands in it is told of with it
            fence = "" if line.strip().startswith(fence) else fence
            continue
        while top < row and not org.lines[top].strip():
            top += 1
        column = indent_of(line)
        if found := _EDGE.match(line):
            yield row, column, _edge(org, entry, found)
        elif found := _DRAWER.match(line):
            if kind == "drawer" and found[1].upper() != "PROPERTIES":
                continue
            drawer = True
            yield row, column, _drawer(entry, row, kind)
        elif _PLANNING.match(line) and row == entry.body and kind == "text":
            yield row, column, "Org reads this line right below the headline only, above the properties."
        elif not drawer and (fault := meant_line(line, row == top)):
            yield row, *fault
            fence = line.strip()[:3] if line.strip()[:3] in FENCES else ""
            top += row == top


def _texts(entry: Entry) -> Iterator[tuple[int, str]]:
    for element in entry.elements:
        if element.kind == "text" and not element.depth:
            yield from ((row, "text") for row in range(element.first, element.last + 1))
        elif element.kind == "drawer" and element.name == "PROPERTIES" and not element.depth:
            yield element.first, "drawer"


def _edge(org: Org, entry: Entry, found: re.Match[str]) -> str:
    edge = found[0].strip()
    if found[1].lower() == "end":
        return f"There is no {edge.replace('end', 'begin').replace('END', 'BEGIN')} that this would end."
    what = f"This block has no {edge.replace('begin', 'end').replace('BEGIN', 'END')}"
    return (
        f"{what} before the headline in line {entry.stop + 1}." if entry.stop < len(org.lines) else f"{what}."
    )


def _drawer(entry: Entry, row: int, kind: str) -> str:
    if kind != "drawer":
        return "This drawer has no :END:."
    if row != entry.body:
        return "Properties stand right below their headline; Org does not read them here."
    return "Org reads no properties here: each line of the drawer has to be like :NAME: value."


def stray(org: Org, index: int) -> Iterator[Mistake]:
    """Find keywords and blocks of an entry in places where they have no effect."""
    entry = org.entries[index]
    named = {key.first for element in entry.elements for key in element.keys}
    for element in entry.elements:
        row, message = element.first, _like_code(org, element)
        if message:
            pass
        elif element.depth:
            inside = _inside(entry, element)
            code = element.kind == "block" and element.name == "SRC"
            if code and inside and babel.language(element.value).lower() in LANGUAGES:
                message = f"Nothing runs this: it stands inside of a {inside}."
        elif element.kind == "keyword" and element.name in ("NAME", "HEADER") and row not in named:
            message = f"#+{element.name}: says nothing here; what it is for stands in the very next line."
        elif element.kind == "keyword":
            message = meant_keyword(element.name, element.value, not index)
        if message:
            yield row, indent_of(org.lines[row]), message


def _like_code(org: Org, element: Element) -> str:
    drawer = element.kind == "drawer" and element.name not in ("PROPERTIES", "LOGBOOK", "RESULTS")
    if drawer and any(map(is_ours, org.lines[element.first : element.last])):
        return f"Org reads no properties in :{element.name}:; they stand in :PROPERTIES:."
    example = element.kind == "block" and element.name == "EXAMPLE" and not element.key("RESULTS")
    if element.depth or not (example or element.kind in ("container", "comment", "text")):
        return ""
    return meant_block(org.lines[element.first])


def _inside(entry: Entry, inner: Element) -> str:
    """Return whether an element is inside a "drawer" or a "block"; empty inside a log or results."""
    around = [one for one in entry.elements if one.first < inner.first <= one.last]
    if any(one.name in ("LOGBOOK", "RESULTS") or one.key("RESULTS") for one in around):
        return ""
    return "drawer" if around[-1].kind == "drawer" else "block"
