"""The prompt of the REPL at a terminal: an entry is edited over as many lines as it needs, then returned.

Enter runs what is closed and goes on in a form that is not; M-Enter is a new line everywhere, in prose too.
Knows keys, prompt_toolkit and the file of the history; what an entry means is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from quoth.agent.repl.completion import PromptCompleter
from quoth.agent.repl.highlight import STYLE, LispLexer, MatchingBracket
from quoth.agent.repl.indent import indentation
from quoth.agent.repl.typed import is_form, read_typed
from quoth.tools.call.redaction import redact_line
from quoth.tools.storage.paths import state_dir
from quoth.tools.storage.private import private_file, private_folder

if TYPE_CHECKING:
    from quoth.agent.client import AsyncAgent

MORE = "...... "  # before each further line; as wide as the prompt


class LineEditor:
    """Reads entries at a terminal that is not dumb, with a history that is kept from day to day.

    ``names`` are the names of the person's module as they are written, ``commands`` the commands with their
    words of help, both asked whenever something is completed. Without ``lisp`` a parenthesis is one of prose,
    as in a chat."""

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
        # Ctrl-C arrives as a key here; prompt_toolkit's own signal handler would take ours away.
        return await self._session.prompt_async(prompt, handle_sigint=False)

    @property
    def typed(self) -> str:
        """What stood at the prompt when it was last left."""
        return self._session.default_buffer.text


def _keys(is_form: Callable[[str], bool]) -> KeyBindings:
    """What is not prompt_toolkit's own. ``is_form`` tells which entries are Lisp."""
    keys = KeyBindings()
    typing = has_focus(DEFAULT_BUFFER)

    @keys.add("enter", filter=typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state:  # what is chosen there is taken; it does not run yet
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
    """What was typed on earlier days, where that can be kept: without declared secrets, and without what
    looks like one. ``secrets`` gives the parameters that tools have declared so."""

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
