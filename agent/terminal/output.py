"""What is said to a person: results on stdout, everything else on stderr.

Knows streams and terminals only. What a model or a file says may hold bytes that steer a terminal; those are
shown as U+FFFD there, and only there: a pipe gets every character as it is.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

from quoth.tools.errors import QuothError
from quoth.tools.text import printable


class OutputError(QuothError):
    """Standard output cannot be written: a full disk, a closed descriptor."""


def open_streams() -> None:
    """Let no character be too strange to print; in JSON the escape of a lone surrogate is right as it is."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def may_draw(stream: TextIO | None) -> bool:
    """Whether there may be colours on this stream, and lines that are drawn anew: on a terminal that knows
    how, unless its person does not want them."""
    return is_terminal(stream) and not os.environ.get("NO_COLOR") and not is_dumb()


def colored(text: str, style: str) -> str:
    """The text in a colour, for a stream that there may be colours on."""
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def is_dumb() -> bool:
    """Whether the terminal can do no more than print, as the one of ``M-x compile`` in Emacs."""
    return os.environ.get("TERM") == "dumb"


_results: TextIO | None = None


@contextlib.contextmanager
def results_only() -> Iterator[None]:
    """Within it stdout takes results alone: what a tool prints by itself goes to stderr."""
    global _results
    kept, before = sys.stdout, _results
    _results, sys.stdout = before or kept, sys.stderr
    try:
        yield
    finally:
        _results, sys.stdout = before, kept


def print_line(text: str) -> None:
    """A result. Raises BrokenPipeError when nobody reads any more, OutputError when it cannot be written."""
    print_drawn(shown(text) if is_terminal(_results or sys.stdout) else text)


def print_drawn(text: str) -> None:
    """The same, of a line that may steer the terminal: only our own colours are left in it."""
    out = _results or sys.stdout
    try:
        out.write(text + "\n")
        out.flush()
    except BrokenPipeError:
        raise
    except (OSError, ValueError, AttributeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is closed"
        raise OutputError(f"Standard output cannot be written: {why}.") from None


def print_json(data: Any) -> None:
    print_line(as_json(data))


def as_json(data: Any) -> str:
    """JSON on one line, in characters that stdout can show."""
    encoding = getattr(_results or sys.stdout, "encoding", None) or ""
    return json.dumps(data, ensure_ascii=encoding.lower().replace("-", "") != "utf8")


def complain(text: str, name: str = "quoth: ") -> None:
    """A sentence for the person. Nobody is there to hear that stderr cannot be written."""
    try:
        sys.stderr.write(f"{name}{shown(text)}\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return


def shown(text: str) -> str:
    """``text`` without what would steer a terminal; lines and tabs stay."""
    return printable(text, "\n\t")


def let_go_of_stdout() -> None:
    """Nothing more can be written: keep Python from trying once more, and complaining, when it ends."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return
