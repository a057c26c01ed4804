"""The prompt of the REPL at a terminal, an editor of entries with one or more lines.

Enter runs a complete entry and begins a new line in an unclosed form; M-Enter always begins a new line, in
prose too. Typed text is coloured and indented.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.styles import Style

from quoth.agent.repl.completion import PromptCompleter
from quoth.agent.repl.entries import Frame, is_form, read_typed
from quoth.tools.call.redaction import redact_line
from quoth.tools.storage.paths import private_file, private_folder, state_dir

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent


MORE = "...... "  # before each further line; as wide as the prompt


class LineEditor:
    """Reads entries at a terminal that is not dumb, with a stored history.

    ``names`` returns the names of the person's module, in Hy's spelling, and ``commands`` the commands with
    their help; each completion calls them. Without ``lisp``, as in a chat, parentheses are prose."""

    def __init__(
        self,
        agent: AsyncAgent,
        names: Callable[[], Mapping[str, object]],
        commands: Callable[[], Mapping[str, str]],
        lisp: bool = True,
    ) -> None:
        self._session: PromptSession[str] = PromptSession(
            history=_history(lambda: agent.table.secrets),
            completer=PromptCompleter(agent, names, commands, lisp),
            complete_while_typing=False,
            lexer=LispLexer() if lisp else None,
            style=STYLE,
            input_processors=[MatchingBracket()] if lisp else [],
            key_bindings=_keys(is_form if lisp else lambda text: False),
            multiline=True,
            prompt_continuation=lambda width, line, wrapped: " " * width if wrapped else MORE.rjust(width),
        )

    async def read(self, prompt: str) -> str:
        """The next entry. Raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
        # Ctrl-C arrives as a key here; prompt_toolkit's own signal handler would replace ours.
        return await self._session.prompt_async(prompt, handle_sigint=False)

    @property
    def typed(self) -> str:
        """The last text at the prompt."""
        return self._session.default_buffer.text


def _keys(is_form: Callable[[str], bool]) -> KeyBindings:
    """The key bindings that prompt_toolkit lacks. ``is_form`` says whether an entry is Lisp."""
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:  # take the chosen proposal, but do not run the entry yet
            buffer.complete_state = None
        elif is_form(buffer.text) and read_typed(buffer.text).unfinished:
            _new_line(buffer, indented=True)
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        _new_line(event.current_buffer, indented=is_form(event.current_buffer.text))

    @Condition
    def in_indentation() -> bool:
        document = get_app().current_buffer.document
        further = document.cursor_position_row > 0
        return further and not document.current_line_before_cursor.strip() and is_form(document.text)

    @keys.add("tab", filter=typing & in_indentation)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        blanks = len(buffer.document.current_line_before_cursor)
        buffer.delete_before_cursor(blanks)
        buffer.insert_text(indentation(buffer.document.text_before_cursor[:-1]))

    return keys


def _new_line(buffer: Buffer, *, indented: bool) -> None:
    before = buffer.document.text_before_cursor
    buffer.insert_text("\n" + (indentation(before) if indented else ""))


def _history(secrets: Callable[[], Collection[str]]) -> History:
    """The stored history of entries, or one in memory where no file can be kept. Leaves out declared secrets
    and texts that look like secrets. ``secrets`` returns the parameters that tools declare as secret."""

    class Redacted(FileHistory):
        def store_string(self, string: str) -> None:
            super().store_string(redact_line(string, secrets()))

    file = state_dir() / "history"
    try:
        private_folder(file.parent)
        private_file(file)
    except OSError:
        return InMemoryHistory()
    return Redacted(str(file))


# Colours, and the partner of the bracket at the cursor


STYLE = Style.from_dict(
    {
        "lisp.comment": "italic ansibrightblack",
        "lisp.string": "ansigreen",
        "lisp.keyword": "ansicyan",
        "lisp.number": "ansimagenta",
        "lisp.head": "bold ansiblue",
        "lisp.prefix": "ansimagenta",
        "lisp.wrong": "bold ansired",
        "command": "bold ansicyan",
        "matching-bracket.cursor": "bold underline",
        "matching-bracket.other": "bold reverse",
    }
)
_SHOWN = ("comment", "string", "keyword", "number", "prefix")


class LispLexer(Lexer):
    """Colours forms and commands; prose has none."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = _coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


@lru_cache(maxsize=4)
def _coloured(text: str) -> list[StyleAndTextTuples]:
    """The lines of the text in pieces, each with its style."""
    lines: list[StyleAndTextTuples] = [[]]
    for style, piece in _pieces(text):
        first, *more = piece.split("\n")
        lines[-1].append((style, first))
        lines.extend([(style, line)] for line in more)
    return lines


def _pieces(text: str) -> list[tuple[str, str]]:
    if text.lstrip().startswith(","):
        word, blank, rest = text.partition(" ")
        return [("class:command", word), ("", blank + rest)]
    if not is_form(text):
        return [("", text)]
    typed = read_typed(text)
    return [
        (
            "class:lisp.wrong"
            if start in typed.wrong
            else "class:lisp.head"
            if start in typed.heads
            else f"class:lisp.{kind}"
            if kind in _SHOWN
            else "",
            piece,
        )
        for kind, piece, start in typed.tokens
    ]


class MatchingBracket(Processor):
    """Marks the bracket under or before the cursor and its partner; ignores brackets in strings."""

    def apply_transformation(self, given: TransformationInput) -> Transformation:
        document = given.document
        if get_app().is_done or not is_form(document.text):
            return Transformation(given.fragments)
        fragments = given.fragments
        partners, at = read_typed(document.text).partners, document.cursor_position
        here = at if at in partners else at - 1
        if here in partners:
            for place, style in ((here, "cursor"), (partners[here], "other")):
                row, column = document.translate_index_to_position(place)
                if row == given.lineno:
                    fragments = explode_text_fragments(fragments)
                    shown = given.source_to_display(column)
                    old, text, *_ = fragments[shown]
                    fragments[shown] = (f"{old} class:matching-bracket.{style} ", text)
        return Transformation(fragments)


# Indentation: in a list under its first item, in a call under its first argument, in a body two columns in


# Forms whose further lines are a body, for any contents of their first line; also all def… and with….
BODIES = {"fn", "lambda", "let", "when", "unless", "for", "while", "match", "except", "eval-and-compile"}
# The same, unless the first item of the body is on the line of the name: then align with that item.
UNDER_FIRST = {"do", "cond", "try", "else", "finally", "lfor", "dfor", "sfor", "gfor"}


def indentation(before: str) -> str:
    """The indentation of a new line after ``before``; empty outside a form and in a string."""
    typed = read_typed(before)
    if not typed.open or typed.in_string:
        return ""
    return " " * _column(before, typed.open[-1])


def _column(text: str, frame: Frame) -> int:
    opener = frame.opener
    inside = _width(text, opener.end)
    if opener.text != "(" or not frame.items:
        return inside
    name, first = frame.head, frame.items[1] if len(frame.items) > 1 else None
    if name in BODIES or name.startswith(("def", "with")):
        return inside + 1
    if name and first is not None and "\n" not in text[opener.start : first.start]:
        return _width(text, first.start)
    return inside + (name in UNDER_FIRST)


def _width(text: str, offset: int) -> int:
    """The screen column of a place in the text; some characters take two columns."""
    from prompt_toolkit.utils import get_cwidth

    return get_cwidth(text[text.rfind("\n", 0, offset) + 1 : offset])
