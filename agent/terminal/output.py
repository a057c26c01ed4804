"""Prints for a person: results on stdout; messages, next steps and tracebacks on stderr.

Text of a model or a file may contain control and bidi characters. A page prints them as U+FFFD, even to a
pipe, which may end at a terminal. A value is data: a terminal also gets U+FFFD, a pipe or a file every
character unchanged.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from quoth.tools.errors import QuothError
from quoth.tools.text import printable

if TYPE_CHECKING:
    from quoth.tools.consent.requests import Request


class OutputError(QuothError):
    """Standard output cannot be written, as on a full disk or a closed descriptor."""


def open_streams() -> None:
    """Make stdout and stderr escape characters that they cannot encode, instead of raising an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def columns_of(stream: TextIO | None) -> int:
    """The number of columns of a terminal; 80 if the stream is not a terminal or its width is unknown."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return os.get_terminal_size(stream.fileno()).columns or 80  # type: ignore[union-attr]
    return 80


def may_draw(stream: TextIO | None) -> bool:
    """Whether to use colours and redrawn lines: on a terminal that is not dumb, unless NO_COLOR is set."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and not is_dumb()


def colored(text: str, style: str) -> str:
    """Return the text in a style of rich, such as ``green``, for a stream that ``may_draw`` allows."""
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def is_dumb() -> bool:
    """Whether the terminal can only print, such as that of ``M-x compile`` in Emacs."""
    return os.environ.get("TERM") == "dumb" or os.environ.get("INSIDE_EMACS", "").endswith(",compile")


_results: TextIO | None = None
_CLOSED = io.StringIO()  # replaces a closed stdout, so that results do not go to stderr
_CLOSED.close()


@contextlib.contextmanager
def results_only() -> Iterator[None]:
    """Within the ``with`` block, send prints of tools to stderr, so that stdout gets only results."""
    global _results
    kept, before = sys.stdout, _results
    _results, sys.stdout = before or kept or _CLOSED, sys.stderr
    try:
        yield
    finally:
        _results, sys.stdout = before, kept


def results() -> TextIO | None:
    """The stream of results: stdout, even within ``results_only``."""
    return _results or sys.stdout


def print_line(text: str) -> None:
    """Print a line of a page to stdout. Raises BrokenPipeError if the reader is gone, OutputError
    otherwise."""
    print_drawn(shown(text))


def print_data(text: str) -> None:
    """Print a value to stdout, unchanged if another program reads it."""
    print_drawn(shown(text) if is_terminal(results()) else text)


def print_drawn(text: str) -> None:
    """Print a result with its control characters; only for text with quoth's own colours."""
    out = results()
    if out is None:
        raise OutputError("Standard output cannot be written: it is closed.")
    try:
        out.write(text + "\n")
        out.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is closed"
        raise OutputError(f"Standard output cannot be written: {why}.") from None


def print_colored(lines: Callable[[bool], Iterable[str]]) -> None:
    """Print the lines of ``lines(color)``, where ``color`` says whether stdout ``may_draw``."""
    color = may_draw(results())
    for line in lines(color):
        (print_drawn if color else print_line)(line)


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print the rows as a table with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print_line("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


def print_json(data: Any) -> None:
    print_drawn(as_json(data))


def as_json(data: Any) -> str:
    """Return JSON on one line, in ASCII if stdout is not UTF-8. Unprintable characters are JSON escapes: the
    data stays the same, and no terminal acts on them."""
    encoding = getattr(results(), "encoding", None) or ""
    text = json.dumps(data, ensure_ascii=encoding.lower().replace("-", "") != "utf8")
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def can_print(text: str) -> bool:
    """Whether stdout can encode every character, so that its reader gets the same text."""
    try:
        text.encode(getattr(results(), "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


_bars: list[str] = []  # the bar in the last, still open line of stderr


def draw_bar(bar: str, *, ended: bool) -> None:
    """Draw a bar on stderr over the previous one; the line stays open until the bar ends."""
    _bars[:] = [] if ended else [bar]
    sys.stderr.write(f"\r{bar}" + "\n" * ended)
    sys.stderr.flush()


def complain(text: str, name: str = "quoth: ") -> None:
    """Print a message to stderr, after ``name`` and below an open bar. Ignores errors of writing."""
    try:
        sys.stderr.write("\n" * len(_bars) + f"{name}{shown(text)}\n")
        _bars.clear()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


# Unicode blanks, such as the Japanese one, which Python counts as unprintable. They are harmless to
# terminals.
BLANKS = "\u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def shown(text: str) -> str:
    """Return ``text`` with U+FFFD for control characters; line ends, tabs and blanks are kept."""
    return printable(text, f"\n\t{BLANKS}")


def set_in(text: str, margin: str, columns: int, first: int = 0, *, words: bool = False) -> str:
    """The text with a margin before each row but the first, which begins at column ``first``. Breaks rows
    longer than the screen's ``columns`` (0: no screen), so that no row begins without a margin; with
    ``words`` it breaks them at blanks."""
    if not columns:
        return text.replace("\n", f"\n{margin}")
    from rich.cells import chop_cells

    rows: list[str] = []
    for line in text.expandtabs().split("\n"):
        begin, *rest = chop_cells(line, max(columns - (len(margin) if rows else first) - 1, 10)) or [""]
        while words and rest:
            kept = begin.rpartition(" ")[0]
            line = line[len(kept) + 1 :] if kept else line[len(begin) :]
            rows.append(kept or begin)
            begin, *rest = chop_cells(line, max(columns - len(margin) - 1, 10)) or [""]
        rows += [begin, *(chop_cells("".join(rest), max(columns - len(margin) - 1, 10)) if rest else ())]
    return f"\n{margin}".join(rows)


def let_go_of_stdout() -> None:
    """Redirect a broken stdout to the null device, so that Python reports no error when it exits."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return


# Next steps


# A first task for the examples, which the embedded model solves (measured in tests/bench/first_task.py).
# README and the manual page start show it; a test compares them.
FIRST_TASK = "How many pears were sold on Monday? Look in monday.txt."


def tell_next(
    aim: str,
    command: str,
    *,
    requests: Iterable[Request] = (),
    typed: Callable[..., str] = lambda *words, also="": "",
    name: str = "quoth: ",
) -> None:
    """Print the commands that decide or answer each of ``requests``, as ``typed`` spells them, then ``aim``
    and the ``command`` that continues. Each line begins with ``name``."""
    for one in requests:
        if one.question is not None:
            complain(f"To answer: {typed('answer', one.id, also=' TEXT')}", name)
            continue
        refusal = typed("deny", one.id, also=" --why TEXT")
        complain(f"To decide: {typed('approve', one.id)}, or: {refusal}", name)
    complain(f"{aim}: {command}", name)


# Tracebacks, for ``--debug``


def _complain(text: str) -> None:
    from quoth.tools.call.redaction import redact  # imported here: needed only after a failure

    complain(redact(text), name="")


class StderrLog(logging.Handler):
    """Prints log records on stderr, with their tracebacks or, if ``brief``, each as a line without."""

    def __init__(self, *, brief: bool = False) -> None:
        super().__init__()
        self._brief = brief

    def emit(self, record: logging.LogRecord) -> None:
        if self._brief:
            complain(f"{record.getMessage()}.")
        else:
            _complain(self.format(record))


@contextlib.contextmanager
def tracebacks() -> Iterator[None]:
    """Within the ``with`` block, show the tracebacks that the door logs."""
    log, handler = logging.getLogger("quoth.tools"), StderrLog()
    before = log.level
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)


def show_traceback(error: BaseException) -> None:
    """Show an error with its traceback and those of its causes."""
    import traceback

    cause: BaseException | None = error
    while cause is not None:
        cause.__suppress_context__ = False  # a sentence hides them unless --debug asked for them
        cause = cause.__cause__ or cause.__context__
    _complain("".join(traceback.format_exception(error)).rstrip())
