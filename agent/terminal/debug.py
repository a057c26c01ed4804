"""Shows tracebacks to whoever asks for them with ``--debug``: of the errors that end a command, and of those
that guards and bodies raise.

Knows exceptions and the log of quoth; it must not know commands or tools.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from quoth.agent.terminal.output import complain


def _complain(text: str) -> None:
    from quoth.tools.call.redaction import redact  # here: it is needed only when something failed

    complain(redact(text), name="")


class _Stderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _complain(self.format(record))


@contextlib.contextmanager
def tracebacks() -> Iterator[None]:
    """Show the tracebacks that the door logs, inside the ``with`` block."""
    log, handler = logging.getLogger("quoth.tools"), _Stderr()
    before = log.level
    log.setLevel(logging.DEBUG)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.setLevel(before)
        log.removeHandler(handler)


def show_traceback(error: BaseException) -> None:
    """Show an error with its traceback, and those of the errors that it was made of."""
    import traceback

    cause: BaseException | None = error
    while cause is not None:
        cause.__suppress_context__ = False  # a sentence hides them from those who did not ask
        cause = cause.__cause__ or cause.__context__
    _complain("".join(traceback.format_exception(error)).rstrip())
