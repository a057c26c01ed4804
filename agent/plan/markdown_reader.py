"""Reads flight plans in Markdown: headings, ``- KEY: value`` below them, and fenced blocks of forms.

Reads no other syntax of Markdown:

    # My plan
    ## PLAN Build: say hello
    - TOOLS: echo
    ```hy name=hello :var x=5
    (echo :text (str x))
    ```
"""

from __future__ import annotations

import re

from quoth.agent.plan.builder import build
from quoth.agent.plan.model import LANGUAGES, TODO_WORDS, Form, Plan, PlanSection, Setting, phase_of
from quoth.agent.plan.reading import PlanReading
from quoth.agent.plan.suggestions import meant_fence, meant_markdown
from quoth.tools.lisp.source import SourceText
from quoth.tools.org import babel
from quoth.tools.org.edit import dedent

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})[ \t]*(.*)$")
_PROPERTY = re.compile(r"[ \t]*[-*+][ \t]+:?([A-Z][A-Z_-]+\+?):(?:[ \t]+(.*?))?[ \t]*$")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)


def read_markdown(data: bytes, name: str) -> Plan:
    """Read the plan in a Markdown file; ``name`` is the file name to show in faults."""
    text = data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    return _MarkdownReading(SourceText(name, text)).plan()


class _MarkdownReading(PlanReading):
    def __init__(self, source: SourceText) -> None:
        super().__init__(source, [line.removesuffix("\r") for line in source.text.split("\n")])
        self.title = ""
        self.whole: list[Setting] = []
        self.sections = [PlanSection(self.place(0), 0)]
        self.prose: list[str] = []
        self.above = True  # whether only properties have followed the heading

    def plan(self) -> Plan:
        row = 0
        while row < len(self.lines):
            row = self._line(row)
        self._end()
        for section in self.sections:
            section.prose = re.sub(r"\n{3,}", "\n\n", _COMMENT.sub("", section.prose)).strip()
        return build(self.source, self.title, self.sections, self.whole, (), self.faults)

    def _line(self, row: int) -> int:
        """Read the element that begins in a row; gives the row behind it."""
        line = self.lines[row]
        if line.lstrip().startswith("<!--"):
            rows = range(row, len(self.lines))
            last = next((r for r in rows if "-->" in self.lines[r]), len(self.lines) - 1)
            self.prose += self.lines[row : last + 1]
            return last + 1
        if fence := _FENCE.match(line):
            return self._block(row, fence)
        if heading := _HEADING.match(line):
            self._heading(row, heading)
        elif self.above and (found := _PROPERTY.match(line)):
            column = found.start(2) if found[2] else len(line)
            name, more = found[1].removesuffix("+"), found[1].endswith("+")
            setting = Setting(name, found[2] or "", self.place(row, column), more)
            section = self.sections[-1]
            (self.whole if section.level == 0 else section.settings).append(setting)
        else:
            fault = meant_markdown(line, self.above)
            if fault and all(fault[1] != one.message for one in self.faults):
                self.fault(row, *fault)
            self.above = self.above and (not line.strip() or fault is not None)
            self.prose.append(line)
        return row + 1

    def _end(self) -> None:
        self.sections[-1].prose = "\n".join(line.rstrip() for line in self.prose)
        self.prose, self.above = [], True

    def _heading(self, row: int, found: re.Match[str]) -> None:
        title, column = found[2] or "", max(found.start(2), 0)
        word, _, rest = title.partition(" ")
        todo = word if word in TODO_WORDS else ""
        titled = not self.title and len(self.sections) == 1 and len(found[1]) == 1
        if titled and not todo and not phase_of(title):
            self._end()
            self.title = title
            return
        self._end()
        where = self.place(row, column)
        if todo:
            column += len(title) - len(rest.lstrip())
            title = rest.lstrip()
        skipped = bool(re.match(r"COMMENT(\s|$)", title))
        place, entry = self.place(row, column), len(self.sections)
        self.sections.append(PlanSection(where, len(found[1]), title, place, todo, skipped, entry=entry))

    def _block(self, row: int, fence: re.Match[str]) -> int:
        closing = re.compile(rf"[ \t]*{re.escape(fence[2][0])}{{{len(fence[2])},}}[ \t]*$")
        last = next((r for r in range(row + 1, len(self.lines)) if closing.match(self.lines[r])), None)
        self.above = False
        section = self.sections[-1]
        info = fence[3]
        language = babel.language(info).lower()
        if last is None:
            self.fault(row, fence.start(2), f"This block has no {fence[2]} at its end.")
            last = len(self.lines) - 1 if not self.lines[-1] else len(self.lines)
        if language not in LANGUAGES:
            text = "\n".join(self.lines[row + 1 : last])
            if (section.todo or phase_of(section.title)) and (wrong := meant_fence(language, text)):
                self.fault(row, fence.start(2), wrong)
            self.prose += self.lines[row : last + 1]
            return last + 1
        name, spot = "", None
        if named := re.search(r"(?:^|\s)name=(\S+)", info):
            name = named[1]
            spot = self.named(name, row, fence.start(3) + named.start(1))
        headers = babel.headers(info, fence.start(3))
        for header in headers:
            if message := babel.unknown(header):
                self.fault(row, header.column, message)
        given, places = self.variables((header, row) for header in headers)
        runs = not any(map(babel.forbids, headers))
        lines, cut = dedent(self.lines[row + 1 : last])
        rows = tuple((r, cut) for r in range(row + 1, last)) or ((row, 0),)
        number = len(section.forms)
        where = self.place(row, fence.start(2))
        vars = tuple(given.values())
        section.forms.append(
            Form("\n".join(lines), where, rows, language, name, "", vars, runs, number, places, False, spot)
        )
        return last + 1
