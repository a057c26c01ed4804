"""Shows Org text of the manual on a terminal: headlines, paragraphs, lists, tables, and code in its colours.

Knows the little Org that the pages use, and rich, which is imported at the first use. It reads no page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from quoth.tools.org.edit import unescape

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

WIDEST = 100  # columns that are still read with ease
_BEGIN = re.compile(r"#\+begin_(\w+)[ \t]*(\S*)(.*)", re.IGNORECASE)
_HEADLINE = re.compile(r"(\*+) (.+)")
_ITEM = re.compile(r"[ \t]*- ")
_MARKUP = re.compile(
    r"(?<![\w=~])(?:(?P<mark>[=~])(?P<code>[^ \n](?:.*?[^ \n])??)(?P=mark)"
    r"|\*(?P<bold>[^ *\n][^*\n]*)\*|/(?P<slanted>[^ /\n][^/\n]*)/)(?!\w)"
    r"|\[\[(?:file:)?(?P<link>[^]]+)\](?:\[(?P<name>[^]]+)\])?\]"
)
_STYLES = {"code": "cyan", "bold": "bold", "slanted": "italic", "link": "underline"}
_HEAD = "bold magenta"


def shown(text: str, width: int, colour: bool) -> str:
    """The Org text as lines for a terminal of that width."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(
        file=out,
        width=min(width, WIDEST),
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
    )
    for part in _parts(text.splitlines()):
        console.print(part, soft_wrap=isinstance(part, Text) and part.no_wrap is True)
    lines = (line.rstrip() for line in out.getvalue().splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n") + "\n"


def plain(line: str) -> str:
    """A line of Org text without its markup."""
    cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else [line]
    return _prose("  ".join(filter(None, cells))).plain


def _parts(lines: Sequence[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    at = 0
    while at < len(lines):
        line = lines[at]
        if begin := _BEGIN.match(line):
            end = next(
                row
                for row in range(at, len(lines))
                if lines[row].lower().startswith(f"#+end_{begin[1].lower()}")
            )
            name = begin[3].partition(":tangle ")[2].strip()
            yield from _block(begin[2], name, unescape("\n".join(lines[at + 1 : end])))
            at = end + 1
        elif headline := _HEADLINE.match(line):
            yield Text("\n", _HEAD).append_text(_prose(headline[2]))
            at += 1
        elif line.startswith("|"):
            rows = _while(lines, at, lambda one: one.startswith("|"))
            yield _table(rows)
            at += len(rows)
        elif re.fullmatch(r"#\+.*|\s*|\[\[file:\S+\.png\]\]", line):  # no terminal shows a picture
            if title := re.match(r"#\+TITLE: (.*)", line):
                yield Text(title[1].upper(), _HEAD)
            yield ""
            at += 1
        elif _ITEM.match(line):
            rows = _while(lines, at, lambda one: one.startswith(" ") and not _ITEM.match(one))
            yield _item(" ".join(row.strip() for row in rows))
            at += len(rows)
        else:
            rows = _while(
                lines, at, lambda one: bool(one.strip()) and not one.startswith(("#+", "|", "* ", "- "))
            )
            yield _prose(" ".join(row.strip() for row in rows))
            at += len(rows)


def _while(lines: Sequence[str], at: int, holds: Callable[[str], bool]) -> list[str]:
    """The line, and the lines after it while ``holds`` is true of them."""
    stop = next((row for row in range(at + 1, len(lines)) if not holds(lines[row])), len(lines))
    return list(lines[at:stop])


def _prose(text: str) -> Text:
    from rich.text import Text

    told, place = Text(), 0
    for found in _MARKUP.finditer(text):
        told.append(text[place : found.start()])
        kind = next(kind for kind in _STYLES if found[kind])
        told.append(found["name"] or found[kind], _STYLES[kind])
        place = found.end()
    return told.append(text[place:])


def _item(text: str) -> RenderableType:
    from rich.padding import Padding
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    term, separator, rest = text[2:].partition(" :: ")
    told = _prose(rest if separator else text[2:])
    if separator:
        told = _prose(term).append("  ").append_text(told)
        told.stylize("bold", 0, len(_prose(term)))
    grid.add_row("-", told)
    return Padding(grid, (0, 0, 0, 1))


def _table(rows: Iterable[str]) -> RenderableType:
    from rich import box
    from rich.table import Table

    cells = [[_prose(cell.strip()) for cell in row.strip("|").split("|")] for row in rows if row[1:2] != "-"]
    table = Table(box=box.SIMPLE, header_style="bold", pad_edge=False)
    for number, name in enumerate(cells[0]):
        table.add_column(name, no_wrap=number == 0 and max(len(row[0]) for row in cells) < WIDEST // 3)
    for row in cells[1:]:
        table.add_row(*row)
    return table


def _block(language: str, name: str, text: str) -> Iterator[RenderableType]:
    """Code and screens, indented and never filled; typed lines of a screen are bold."""
    from rich.syntax import Syntax
    from rich.text import Text

    told = Text(text)
    if language in ("hy", "python", "toml"):
        told = Syntax("", language, theme="ansi_dark", background_color="default").highlight(text)
        told.rstrip()
    told.highlight_regex(r"(?m)^(\w+)?\$ .*$", "bold")
    if name:
        yield Text(f"  {name}", "dim")
    for line in told.split("\n", allow_blank=True):
        whole = Text("    ", no_wrap=True).append_text(line)  # a long line is for the terminal to break
        whole.no_wrap = True
        yield whole
    yield ""
