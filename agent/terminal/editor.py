"""Has a person edit a text in their editor, as git does.

Knows the editor's process and a scratch file; it must not know what the text is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from quoth.agent.terminal.input import read_file
from quoth.agent.terminal.output import is_terminal
from quoth.tools.errors import QuothError, UsageError

USUAL = "vi"


def named_editor() -> str:
    """The editor that the person has chosen; empty if none."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def edited(text: str, name: str, use: Callable[[str], object], suffix: str = ".txt") -> None:
    """Give the text that the person leaves to ``use``, without the line end that an editor puts at the end.
    The scratch file stays when ``use`` refuses the text, and the error says where. Raises UsageError."""
    editor = named_editor()
    if not editor and not (is_terminal(sys.stdin) and shutil.which(USUAL)):
        raise UsageError(
            "There is no editor here: set EDITOR, or give the text with --text TEXT (- is stdin)."
        )
    folder = Path(tempfile.mkdtemp(prefix="quoth-"))
    plain = "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:50]
    scratch = folder / f"{plain}{suffix}"
    scratch.write_bytes(f"{text}\n".encode() if text else b"")
    try:
        # A shell reads the editor's words, as in EDITOR="emacsclient -t".
        words = ["sh", "-c", f'{editor or USUAL} "$@"', "sh", str(scratch)]
        code = subprocess.run(words, check=False).returncode  # noqa: S603
        if code:
            raise UsageError(
                f"The editor {editor or USUAL} ended with exit code {code}; nothing was changed."
            )
        use(read_file(scratch).removesuffix("\n"))
    except QuothError as error:
        if scratch.exists() and scratch.read_bytes().removesuffix(b"\n") not in (text.encode(), b""):
            raise UsageError(f"{error} What was written is kept in {scratch}.") from None
        _remove(folder)
        raise
    except BaseException:
        _remove(folder)
        raise
    _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
