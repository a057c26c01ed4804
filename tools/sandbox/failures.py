"""Turns the sandbox's exceptions into error messages.

Must not run anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quoth.tools.errors import ToolFailure
from quoth.tools.lisp.printer import HARD_KEYS
from quoth.tools.program import explain as teach
from quoth.tools.program.compiler import TOO_DEEP, ProgramError
from quoth.tools.sandbox.transfer import _NO_DATA, _TOO_LARGE, MAX_MESSAGE
from quoth.tools.sandbox.wall import host_name
from quoth.tools.text import short


def runtime_error(error: Any, failures: list[ToolFailure], tools: Iterable[str], text: str) -> Exception:
    """The ToolFailure that the program did not catch, or a ProgramError that explains ``error``."""
    display = getattr(error, "display", None)
    said = str(display("type-msg")) if callable(display) else str(error)
    for failure in reversed(failures):
        if failure.message in said:
            return failure
    said = short(said, MAX_MESSAGE)
    kind, _, message = said.strip().partition(": ")
    lesson = teach.failed(kind, message.replace(host_name(""), ""), text, tools)
    if lesson is not None:
        return ProgramError(lesson)
    if "cannot suspend in this synchronous context" in message:
        return ProgramError(
            "A tool cannot be handed to map, filter or sorted; write (lfor x xs (the-tool x))."
        )
    if kind == "TimeoutError" and "limit exceeded" in message:
        return ProgramError("The program was stopped: it ran longer than it may.")
    if kind == "MemoryError" and ("limit exceeded" in message or "memory limit" in message):
        return ProgramError("The program was stopped: it used more memory, or printed more, than it may.")
    if kind == "ValueError" and message.endswith((_TOO_LARGE, HARD_KEYS, _NO_DATA)):
        return ProgramError(message)
    if "suspension limit" in message:
        return ProgramError("The program was stopped: it made more calls than it may.")
    if kind == "SyntaxError" and "too deeply nested" in message:
        return ProgramError(TOO_DEEP)
    if type(error).__name__ == "MontyCrashedError":
        return ProgramError("The sandbox stopped the program: it used more time or memory than it may.")
    return ProgramError(f"The program failed: {said.strip()}")
