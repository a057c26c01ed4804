"""Turns values and exceptions of the prompt into text, and makes prints of forms harmless for the terminal.

A value is printed as Hy for a person, and plainly for a program. A form may print texts of files and models,
as in ``(print (read-file "a.txt"))``.
"""

from __future__ import annotations

import builtins
import contextlib
import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from quoth.agent.terminal.forms import in_quotes, shortened, show_value
from quoth.tools.advice import instead
from quoth.tools.errors import QuothError, did_you_mean
from quoth.tools.hy_loader import plist_read
from quoth.tools.lisp.reader import ReadError, read_all
from quoth.tools.registry.code_version import is_local
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import number_of, printable, short

# Values


LONGEST = 20_000  # maximum characters of a value on a terminal
MOST = 1_000  # maximum items shown of a value


def as_hy(value: Any) -> str:
    """The value as a form that can be copied and read again; a text keeps its lines. Limited in size."""
    if type(value) is str:
        return in_quotes(shortened(value, LONGEST))
    return shortened(_repr(value), LONGEST)


def as_plain(value: Any) -> str:
    """The whole value for a program: texts unchanged, other data as Lisp."""
    return show_value(value).rstrip("\n") if _is_data(value) else _repr(value)


def _repr(value: Any) -> str:
    import hy

    if isinstance(value, CognitiveTool):
        return f"<tool {value.signature()}>"
    if type(value) in (list, tuple) and len(value) > MOST:
        return f"{hy.repr(value[:MOST])}\n… and {number_of(len(value) - MOST, 'more item')}"
    return str(hy.repr(value))


def _is_data(value: Any, depth: int = 0) -> bool:
    if type(value) in (str, int, float, bool, type(None)):
        return True
    if depth > 20 or type(value) not in (list, dict):
        return False
    inner = [*value, *value.values()] if type(value) is dict else value
    return all(_is_data(item, depth + 1) for item in inner)


# Prints of forms: colours pass until the end of each write; other control characters become U+FFFD


_COLORS = re.compile(r"(\x1b\[[0-9;]{0,30}m)")
_RESET = "\x1b[0m"


class SafeOutput:
    """Standard output whose control characters are made harmless."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        parts = _COLORS.split(text.replace("\r\n", "\n"))  # every second part is a colour
        safe = "".join(part if at % 2 else printable(part, "\n\t") for at, part in enumerate(parts))
        # A question that follows must not be drawn in a colour that hides it.
        self._stream.write(safe + (_RESET if len(parts) > 1 else ""))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def safely_printed() -> Iterator[None]:
    """Within the ``with`` block, send prints through SafeOutput."""
    kept: Any = sys.stdout
    sys.stdout = SafeOutput(kept)
    try:
        yield
    finally:
        if isinstance(sys.stdout, SafeOutput):
            kept.flush()
            sys.stdout = kept


# Errors: the lines that a person needs; ``,trace`` shows the rest


LONGEST_WORDS = 2000  # maximum characters of an exception's own message
ENTRY = "<entry "


def fault_text(error: BaseException, text: str, known: Iterable[str]) -> str:
    """The message about an exception raised by the entry ``text``. ``known`` are the existing names, to
    suggest one for a misspelt name."""
    from hy.errors import HyLanguageError

    if isinstance(error, KeyboardInterrupt):
        return "Interrupted."
    if isinstance(error, QuothError):
        return str(error)
    if isinstance(error, HyLanguageError | SyntaxError):
        return f"invalid: {_language_fault(error, text)}"
    said = _own_words(error)
    if isinstance(error, NameError) and (name := _missing(error)):
        said = _no_name(name, frozenset(known))
    told = f"{type(error).__name__}: {said}" if said else f"{type(error).__name__}."
    return "\n".join((told, *_place(error)))


def _no_name(name: str, known: frozenset[str]) -> str:
    """The message about a name without a value, which may be a macro or a word of programs or other Lisps."""
    import hy

    from quoth.tools.program.idioms import IDIOMS

    if name in known or hy.mangle(name) in getattr(builtins, "_hy_macros", {}):
        return f"{name} is a macro and has no value. To read about it: (describe '{name})"
    if set(name) & set("“”„«»"):
        return f'there is no name {name}; a text is in straight quotes: "…".'
    if row := next((row for row in IDIOMS if name in row.names.split()), None):
        return f"there is no name {name}; write {row.written.replace(row.names.split()[0], name, 1)}."
    if ours := instead("head").get(name):
        return f"there is no name {name}; Hy says {ours}."
    macros = {str(hy.unmangle(macro)) for macro in getattr(builtins, "_hy_macros", {})}
    return f"there is no name {name}.{did_you_mean(name, known | macros | set(dir(builtins)))}"


def _own_words(error: BaseException) -> str:
    try:
        return short(str(error), LONGEST_WORDS)
    except Exception as odd:  # the class may raise anything
        return f"(its message cannot be shown: {type(odd).__name__})"


def _missing(error: NameError) -> str:
    import hy

    name = str(getattr(error, "name", None) or "")
    return str(hy.unmangle(name)).replace("_", "-") if name else ""


def _language_fault(error: Any, text: str) -> str:
    """Hy's complaint about the entry, with the line and a caret."""
    try:  # our reader names the parenthesis that is never closed; Hy's names only the end
        read_all(text)
    except ReadError as ours:
        return f"{ours}\n{ours.caret()}"
    from quoth.tools.program.explain import HYS_WORDS, misused

    message = str(getattr(error, "msg", None) or error).strip()
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("expanding macro"):
        lines = lines[-1:]
    said = " ".join(lines) or type(error).__name__
    line, column = getattr(error, "lineno", None), getattr(error, "offset", None) or 1
    of = text.split("\n")
    if said.startswith("Keyword argument") and line and (hint := plist_read(text, line, column)):
        said = hint
    if line and any(words in said for words in HYS_WORDS):
        said = misused(text, line, column) or said
    if not line or line > len(of) or not str(getattr(error, "filename", None) or ENTRY).startswith(ENTRY):
        return said
    return f"line {line}, column {column}: {said}\n{of[line - 1]}\n{' ' * (column - 1)}^"


def _place(error: BaseException) -> list[str]:
    """The place of the error in the person's own text; empty for an entry of one line."""
    own = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(ENTRY) or is_local(Path(frame.filename))
    ]
    if not own:
        return []
    last = own[-1]
    if last.filename.startswith(ENTRY) and last.filename == own[0].filename and last.lineno == 1:
        return []
    where = f"{last.filename.strip('<>')}, line {last.lineno}"
    return [f"  {where}: {last.line}" if last.line else f"  {where}"]


def trace_text(error: BaseException) -> str:
    """The whole traceback, starting at the person's own text."""
    trace: TracebackType | None = error.__traceback__
    first = trace
    while first is not None and not first.tb_frame.f_code.co_filename.startswith(ENTRY):
        first = first.tb_next
    told = traceback.TracebackException(type(error), error, first or trace)
    own = list(told.stack)
    while own and own[-1].filename.endswith("/repl/functions.py"):  # the frames that run a call
        own.pop()
    called = len(own) < len(told.stack)
    told.stack = traceback.StackSummary.from_list(own)
    text = "".join(told.format()).rstrip()
    return f"{text}\nTo see the traceback inside a tool: quoth --debug" if called else text
