"""Prints the words of a model during its reply: on a terminal, each complete block, with Markdown laid out;
elsewhere the whole reply at its end. Progress shows the calls.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TextIO

from quoth.agent.events import AgentEvent
from quoth.agent.terminal.forms import stands
from quoth.agent.terminal.output import (
    columns_of,
    is_dumb,
    is_terminal,
    may_draw,
    print_data,
    print_drawn,
    results,
    shown,
)
from quoth.agent.terminal.progress import Progress
from quoth.neuro.reading.prose import squeezed

if TYPE_CHECKING:
    from rich.markdown import Markdown


# Markdown: headings, lists, tables, and code in colours


MARGIN = "  "
WIDEST = 100  # columns; longer lines are hard to read
NARROWEST = 20
LONGEST_MARK = 20  # maximum number of characters of a language's name
COLORED, WIDEST_COLORED = (
    8000,
    200,
)  # maximum characters of a coloured program and of its lines; a lexer may take hours for more


def laid_out(text: str, columns: int, color: bool = True) -> str:
    """Return the text laid out for a screen of ``columns`` columns, without a final line end."""
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
    """Whether the layout lost a letter or digit of the text. Numbers of lists and names of languages do not
    count: lists are renumbered, and a language's name selects the colours."""
    marks = (one.info.strip() for one in tokens if one.type in ("fence", "list_item_open"))
    drawn = Counter("".join([*(piece.text for line in lines for piece in line), *filter(_is_mark, marks)]))
    return any(count > drawn[char] for char, count in Counter(text).items() if char.isalnum())


def _is_mark(info: str) -> bool:
    return len(info) <= LONGEST_MARK and not re.search(r"\s", info)


def _drawn(line: Iterable[Any], color: bool) -> Iterator[str]:
    """The pieces of a row, which contain only text and the styles of this file."""
    from rich.color import ColorSystem

    for piece in line:
        if not piece.control:
            text = shown(piece.text).replace("\n", "")
            style = piece.style.update_link(None) if piece.style and color else None
            yield style.render(text, color_system=ColorSystem.STANDARD) if style else text


@cache
def _markdown() -> type[Markdown]:
    """Rich's Markdown with our parser and plainer headings and code. Imported here, because that is slow."""
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
    """Keep line ends, and the underscores of words such as ``__init__``."""
    if token.type == "softbreak":
        token.type = "hardbreak"
    elif token.type.startswith(("em_", "strong_")) and token.markup.startswith("_"):
        token.type, token.tag, token.nesting, token.content = "text", "", 0, token.markup


# Speech


class Speech(Progress):
    """A Progress that also prints the words of a run, and with ``thoughts`` the model's thoughts before them,
    dimmed. ``finish`` prints the rest of a reply."""

    def __init__(
        self,
        out: TextIO | None = None,
        color: bool | None = None,
        *,
        aloud: bool = True,
        thoughts: bool = False,
    ) -> None:
        super().__init__(out, color)
        self.thoughts = thoughts
        self._held: list[str] = []  # blocks of words held back until the thoughts before them are printed
        self._speaks = aloud and is_terminal(results())
        self._spoken: list[str] = []  # the blocks of the model's latest reply

    def watch(self, agent: object) -> None:
        """Do nothing: the output is the same for every agent."""

    def __call__(self, event: AgentEvent) -> None:
        super().__call__(event)
        if event.path:  # the caller of a sub-agent prints its reply
            return
        if event.kind == "turn":
            self._spoken, self._held = [], []
        elif event.kind == "said" and self._speaks:
            self._held.append(str(event.data))
        elif event.kind == "thought" and self.thoughts and event.data.reading.reasoning:
            self.show_thoughts(event.data.reading.reasoning)
        if not self.thoughts or event.kind == "thought":
            while self._held:
                self._say(self._held.pop(0))

    def finish(self, text: str) -> None:
        """Print the part of a reply that is not yet on the screen."""
        if self.unsaid(text):
            self._say(text)

    def unsaid(self, text: str) -> bool:
        """Whether a reply is not yet on the screen."""
        told = squeezed(text)
        return bool(told) and not squeezed("".join(self._spoken)).endswith(told)

    def _say(self, text: str) -> None:
        self._clear()
        stands("")
        if self._speaks:
            before = "\n" if self._spoken else ""
            self._spoken.append(text)
            print_words(text, before)
        else:
            print_data(text)


def print_words(text: str, before: str = "") -> None:
    """Print words of a model to stdout: laid out on a terminal, otherwise unchanged."""
    out = results()
    if not is_terminal(out) or is_dumb():
        print_data(before + text)
        return
    print_drawn(before + laid_out(text, columns_of(out), may_draw(out)))
