"""Lays out Markdown for a terminal: headings, lists, tables, and code in colours.

Knows Markdown and rich only. The text is a model's: nothing in it is dropped, decoded or followed, so that it
can neither draw nor hide anything. HTML stays text, the address of a link stands behind it, an escape stays
as it is written, and each line is set in, where no sign of quoth stands. Where the layout would drop
letters, as it does in deep lists and wide tables, the text is shown as it is written.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from quoth.agent.terminal.output import shown

if TYPE_CHECKING:
    from rich.markdown import Markdown

MARGIN = "  "
WIDEST = 100  # columns; longer lines are hard to read
NARROWEST = 20
LONGEST_MARK = 20  # characters of the name of a language
COLORED, WIDEST_COLORED = 8000, 200  # characters of a program and of a line; else a lexer may take hours


def laid_out(text: str, columns: int, color: bool = True) -> str:
    """Return the text as it is shown on a screen of so many columns, without a line end."""
    from rich.console import Console
    from rich.theme import Theme

    width = max(min(columns - 1, WIDEST) - len(MARGIN), NARROWEST)
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
        theme=Theme({"markdown.code": "cyan", "markdown.h1": "bold"}),
    )
    parsed = _markdown()(shown(text))
    lines = console.render_lines(parsed, pad=False)
    if _dropped(text, parsed.parsed, lines):
        from rich.text import Text

        lines = console.render_lines(Text(shown(text), overflow="fold"), pad=False)
    rows = ["".join(_drawn(line, color)).rstrip() for line in lines]
    return "\n".join(f"{MARGIN}{row}" if row else "" for row in rows).strip("\n")


def _dropped(text: str, tokens: Iterable[Any], lines: Iterable[Iterable[Any]]) -> bool:
    """Whether a letter or digit of the text is not on the screen; numbers of lists are counted anew, and the
    name of a language says how a program is coloured."""
    marks = (one.info.strip() for one in tokens if one.type in ("fence", "list_item_open"))
    drawn = Counter("".join([*(piece.text for line in lines for piece in line), *filter(_is_mark, marks)]))
    return any(count > drawn[char] for char, count in Counter(text).items() if char.isalnum())


def _is_mark(info: str) -> bool:
    return len(info) <= LONGEST_MARK and not re.search(r"\s", info)


def _drawn(line: Iterable[Any], color: bool) -> Iterator[str]:
    """The pieces of a row, which may hold nothing but text and the styles of this file."""
    from rich.color import ColorSystem

    for piece in line:
        if not piece.control:
            text = shown(piece.text).replace("\n", "")
            style = piece.style.update_link(None) if piece.style and color else None
            yield style.render(text, color_system=ColorSystem.STANDARD) if style else text


@cache
def _markdown() -> type[Markdown]:
    """Rich's Markdown with our parser and plainer headings and code; here, for the import takes long."""
    from markdown_it import MarkdownIt
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.syntax import Syntax

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["entity", "escape", "reference", "image", "html_block", "html_inline"])

    class Left(Heading):
        LEVEL_ALIGN: ClassVar[dict[str, Any]] = {}

    class Code(CodeBlock):
        def __rich_console__(self, console: Any, options: Any) -> Any:
            code = str(self.text).rstrip("\n")
            small = len(code) <= COLORED and max(map(len, code.split("\n"))) <= WIDEST_COLORED
            lexer, theme = self.lexer_name if small else "text", "ansi_dark"
            yield Syntax(code, lexer, theme=theme, word_wrap=True, background_color="default")

    class Words(Markdown):
        elements: ClassVar[dict[str, Any]] = {
            **Markdown.elements,
            "heading_open": Left,
            "fence": Code,
            "code_block": Code,
        }

        def __init__(self, text: str) -> None:
            super().__init__("", hyperlinks=False)
            self.parsed = parser.parse(text)
            for token in self.parsed:
                for child in token.children or ():
                    _as_written(child)

    return Words


def _as_written(token: Any) -> None:
    """Let a line end be one, and ``__init__`` keep what it begins with."""
    if token.type == "softbreak":
        token.type = "hardbreak"
    elif token.type.startswith(("em_", "strong_")) and token.markup.startswith("_"):
        token.type, token.tag, token.nesting, token.content = "text", "", 0, token.markup
