"""Reads flight plans in Org."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from quoth.agent.plan.builder import build
from quoth.agent.plan.model import (
    LANGUAGES,
    TODO_LINE,
    TODO_WORDS,
    Data,
    Form,
    Plan,
    PlanFault,
    PlanSection,
    Setting,
    phase_of,
)
from quoth.agent.plan.reading import PlanReading
from quoth.agent.plan.suggestions import FENCES, is_ours, meant_block, meant_keyword, meant_line
from quoth.tools.advice import instead
from quoth.tools.lisp.source import Place, SourceText
from quoth.tools.org import babel
from quoth.tools.org.babel import Header, HeaderError
from quoth.tools.org.document import Element, Entry, Org, load
from quoth.tools.org.edit import dedent, name_of, unescape

_ITEM = re.compile(r"([ \t]*)(?:[-+*]|\d+[.)])[ \t]+(.*)")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?\Z")


def read_plan(data: bytes, name: str) -> tuple[Org, Plan]:
    """Read an Org file and the plan in it; ``name`` is the file name to show in faults."""
    org = load(data, TODO_WORDS)
    return org, plan_of(org, name)


def plan_of(org: Org, name: str) -> Plan:
    """Return the plan in an Org file. TODO words default to those of plans."""
    if org.words != TODO_WORDS:
        org = Org(org.lines, org.ends, org.bom, TODO_WORDS)
    return _OrgReading(org, name).plan()


class _OrgReading(PlanReading):
    def __init__(self, org: Org, name: str) -> None:
        super().__init__(SourceText(name, org.text), org.lines)
        self.org = org
        self.data: list[Data] = []
        self.whole = list(org.keywords("PROPERTY"))

    def plan(self) -> Plan:
        self._words()
        sections = [self._section(index) for index in range(1, len(self.org.entries))]
        title = " ".join(one.value for one in self.org.keywords("TITLE")).strip()
        top = self._section(0)
        top.settings, whole = [], self._file_settings()
        return build(self.source, title, [top, *sections], whole, self.data, self.faults)

    def _words(self) -> None:
        # A file without WAITING is older than that word; it uses RUNNING instead.
        missing = [word for word in TODO_WORDS if word not in (*self.org.todo_words, "WAITING")]
        for one in self.org.keywords("TODO", "SEQ_TODO", "TYP_TODO"):
            if missing:
                here = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
                what = f"A plan needs all TODO words of {TODO_LINE}; here {here}."
                self.fault(one.first, one.column, what)
            return

    def _file_settings(self) -> list[Setting]:
        """``#+PROPERTY:`` lines, and the drawer on top of the file."""
        found = []
        for one in self.whole:
            name, _, value = one.value.partition(" ")
            column = one.column + len(one.value) - len(value.lstrip()) if value.strip() else one.column
            place = self.place(one.first, column)
            found.append(Setting(name.removesuffix("+"), value.strip(), place, name.endswith("+")))
        return [*found, *self._settings(self.org.entries[0])]

    def _settings(self, entry: Entry) -> list[Setting]:
        return [
            Setting(
                one.name, one.value, self.place(one.row, min(one.column, len(self.lines[one.row]))), one.more
            )
            for one in entry.properties
        ]

    def _section(self, index: int) -> PlanSection:
        entry = self.org.entries[index]
        skipped = entry.commented or "ARCHIVE" in entry.tags
        dead = self.org.is_dead(index)
        lost: list[PlanFault] = []
        if dead:
            lost, self.faults = self.faults, []
        place = self.place(max(entry.row, 0), entry.heading)
        section = PlanSection(
            place,
            entry.level,
            entry.title,
            self.place(max(entry.row, 0), entry.title_column),
            entry.todo,
            skipped,
            self._settings(entry),
            entry=index,
        )
        for number, element in enumerate(self.org.code(index)):
            form = self._form(index, number, element)
            if form is not None:
                section.forms.append(form)
        if not dead:
            self._named_data(entry)
            for fault in (*broken(self.org, entry), *stray(self.org, index)):
                self.fault(*fault)
        # A block of lisp that does not run may be any Lisp, so it is a text, like a block of Python.
        texts = {form.place.line - 1 for form in section.forms if form.language == "lisp" and not form.runs}
        section.prose = self._prose(entry, texts)
        if dead:
            self.faults = lost
        return section

    # Code

    def _form(self, index: int, number: int, element: Element) -> Form | None:
        name = name_of(element)
        place = self.place(element.first, indent_of(self.lines[element.first]))
        spot = self._name(name, element) if name else None
        headers = self._headers(index, element)
        given, places = self.variables(headers)
        runs = not any(babel.forbids(h) for h, _ in headers)
        silent = any(babel.is_silent(h) for h, _ in headers)
        if element.kind == "keyword":
            try:
                called, more = babel.call(element.value, element.column)
            except HeaderError as error:
                self.fault(element.first, error.column, str(error))
                return None
            for var in more:
                places[var] = self.place(element.first, var.column)
            row = ((element.first, 0),)
            vars = tuple((given | {var.name: var for var in more}).values())
            return Form("", place, row, "hy", name, called, vars, runs, number, places, silent, spot)
        language = babel.language(element.value).lower()
        if language not in LANGUAGES:
            if runs and self._counts(index):
                word = language or "Nothing"
                what = f"{word} is not a language of plans: write forms in {', '.join(LANGUAGES)}."
                if language in instead("language"):
                    what += f" {instead('language')[language]}; with :eval no it is text for the model."
                if not language:
                    what = (
                        f"The block has no language: write one of {', '.join(LANGUAGES)} after #+begin_src."
                    )
                self.fault(element.first, element.column, what)
            return None
        rows = range(element.first + 1, element.last)
        lines, cut = dedent([self.lines[row] for row in rows])
        plain = unescape("\n".join(lines)).split("\n") if lines else []
        spots = tuple(
            (row, cut + (len(line) - len(text))) for row, line, text in zip(rows, lines, plain, strict=True)
        )
        spots = spots or ((element.first, 0),)
        text, vars = "\n".join(plain), tuple(given.values())
        return Form(text, place, spots, language, name, "", vars, runs, number, places, silent, spot)

    def _counts(self, index: int) -> bool:
        """Whether a headline is part of the plan, judged by its own line and the headlines above it."""
        return any(
            self.org.entries[one].todo in TODO_WORDS or phase_of(self.org.entries[one].title)
            for one in self.org.inside(index)
        )

    def _headers(self, index: int, element: Element) -> list[tuple[Header, int]]:
        """The header arguments of a block with their rows, weakest first: file, headlines, its own."""
        found: list[tuple[Header, int]] = []
        language = babel.language(element.value).lower()
        wanted = ("HEADER-ARGS", f"HEADER-ARGS:{language.upper()}")
        for one in self.whole:
            name, _, value = one.value.partition(" ")
            if name.removesuffix("+").upper() in wanted:
                found += [(h, one.first) for h in babel.headers(value, one.column + len(name) + 1)]
        around = [0, *reversed(list(self.org.inside(index)))]
        for outer in dict.fromkeys(around):
            for setting in self.org.entries[outer].properties:
                if setting.name.upper() in wanted:
                    found += [(h, setting.row) for h in babel.headers(setting.value, setting.column)]
        mine: list[tuple[Header, int]] = []
        for key in element.keys:
            if key.name == "HEADER":
                mine += [(h, key.first) for h in babel.headers(key.value, key.column)]
        if element.kind == "block":
            mine += [(h, element.first) for h in babel.headers(element.value, element.column)]
        for header, row in mine + [one for one in found if one[0].name == "noweb"]:
            if message := babel.unknown(header):
                self.fault(row, header.column, message)
        return found + mine

    def _name(self, name: str, element: Element) -> Place:
        """The place of the name."""
        key = element.key("NAME")
        assert key is not None
        return self.named(name, key.first, key.column)

    # Data

    def _named_data(self, entry: Entry) -> None:
        for element in entry.elements:
            name = name_of(element)
            code = element.kind == "block" and element.name == "SRC"
            if not name or element.depth or element.kind == "keyword" or code:
                continue
            if element.key("RESULTS"):
                continue
            spot = self._name(name, element)
            self.data.append(Data(name, self._value(element), self.place(element.first), spot))

    def _value(self, element: Element) -> Any:
        lines = self.lines[element.first : element.last + 1]
        if element.kind == "table":
            return list(_table(lines))
        if element.kind == "fixed":
            return "\n".join(line.lstrip(" \t")[2:] for line in lines)
        if element.kind in ("block", "container", "drawer"):
            return unescape("\n".join(dedent(lines[1:-1])[0]))
        items = [_ITEM.match(line) for line in lines]
        if items[0]:
            return [_cell(item[2]) for item in items if item and item[1] == items[0][1]]
        return "\n".join(dedent(lines)[0])

    # Prose

    def _prose(self, entry: Entry, texts: Collection[int]) -> str:
        """The prose for people and models, without properties, code, results, drawers and keywords. Blocks
        that begin in the rows ``texts`` are texts, not code."""
        rows: list[int] = []
        inner = -1  # the last row of an element taken or skipped as a whole
        for element in entry.elements:
            if element.first <= inner or element.depth:
                continue
            inner = element.last
            if element.kind in ("drawer", "comment", "clock", "keyword", "inline") or element.key("RESULTS"):
                continue
            if element.kind == "block" and element.name in ("SRC", "COMMENT"):
                language = babel.language(element.value).lower()
                if element.name == "COMMENT" or (language in LANGUAGES and element.first not in texts):
                    continue
            rows += range(element.first, element.last + 1)
        if not rows:
            return ""
        taken = set(rows)
        lines = [
            self.lines[row]
            for row in range(rows[0], rows[-1] + 1)
            if row in taken or not self.lines[row].strip()
        ]
        text = "\n".join(line.rstrip(" \t") for line in dedent(lines)[0])
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n")


def _table(lines: Sequence[str]) -> Iterator[list[Any]]:
    """The rows of a table without rules; numbers become numbers."""
    for line in lines:
        row = line.strip(" \t")
        if not row.startswith("|-"):
            yield [_cell(cell) for cell in row.strip("|").split("|")]


def _cell(text: str) -> Any:
    text = text.strip(" \t")
    if not _NUMBER.match(text):
        return text
    return float(text) if "." in text else int(text)


# Finds syntax mistakes in an Org file that Org reads as plain text or ignores: blocks without an end, ignored
# keywords, lines that only look like headlines. Each mistake is a row, a column (both from 0) and a sentence.


Mistake = tuple[int, int, str]

_EDGE = re.compile(r"[ \t]*#\+(begin|end)_(src|example|quote|export|comment|verse)\b", re.IGNORECASE)
_DRAWER = re.compile(r"[ \t]*:(PROPERTIES|LOGBOOK|RESULTS):[ \t]*$", re.IGNORECASE)
_PLANNING = re.compile(r"[ \t]*(CLOSED|DEADLINE|SCHEDULED):")


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip(" \t"))


def broken(org: Org, entry: Entry) -> Iterator[Mistake]:
    """Find lines of an entry that Org reads as text but that look like syntax."""
    top, fence, drawer = entry.body, "", False
    for row, kind in _texts(entry):
        line = org.lines[row]
        if fence:  # its contents belong to the same mistake
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
            yield row, column, "Org reads this line only directly below the headline, above the properties."
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
        return f"This has no {edge.replace('end', 'begin').replace('END', 'BEGIN')} above it."
    what = f"This block has no {edge.replace('begin', 'end').replace('BEGIN', 'END')}"
    return (
        f"{what} before the headline in line {entry.stop + 1}." if entry.stop < len(org.lines) else f"{what}."
    )


def _drawer(entry: Entry, row: int, kind: str) -> str:
    if kind != "drawer":
        return "This drawer has no :END:."
    if row != entry.body:
        return "Put properties directly below their headline; Org does not read them here."
    return "Org does not read these properties: each line of the drawer must be like :NAME: value."


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
                message = f"This does not run, because it is inside a {inside}."
        elif element.kind == "keyword" and element.name in ("NAME", "HEADER") and row not in named:
            message = f"#+{element.name}: has no effect here: put its block or table in the very next line."
        elif element.kind == "keyword":
            message = meant_keyword(element.name, element.value, not index)
        if message:
            yield row, indent_of(org.lines[row]), message


def _like_code(org: Org, element: Element) -> str:
    drawer = element.kind == "drawer" and element.name not in ("PROPERTIES", "LOGBOOK", "RESULTS")
    if drawer and any(map(is_ours, org.lines[element.first : element.last])):
        return f"Org does not read properties in :{element.name}:. Put them into :PROPERTIES:."
    example = element.kind == "block" and element.name == "EXAMPLE" and not element.key("RESULTS")
    if element.depth or not (example or element.kind in ("container", "comment", "text")):
        return ""
    return meant_block(org.lines[element.first])


def _inside(entry: Entry, inner: Element) -> str:
    """Return "drawer" or "block" if an element is inside one; empty inside a log or results."""
    around = [one for one in entry.elements if one.first < inner.first <= one.last]
    if any(one.name in ("LOGBOOK", "RESULTS") or one.key("RESULTS") for one in around):
        return ""
    return "drawer" if around[-1].kind == "drawer" else "block"
