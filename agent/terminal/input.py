"""The input of a person: standard input, their editor, their name, and whether they can be asked.

Reads lines or a whole input without threads, so that a wait can be cancelled without leftovers.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from pathlib import Path

from quoth.agent.terminal.output import is_dumb, is_terminal
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.text import number_of

CHUNK = 65536
LONGEST = 100_000_000  # maximum number of bytes of a text that is read


def read_stdin() -> str:
    """Read all of standard input as text. Raises UsageError if it is closed, unreadable, too long or not
    UTF-8."""
    if sys.stdin is None:
        raise UsageError("Standard input is closed.")
    try:
        return _within(sys.stdin.buffer.read(LONGEST + 1), "Standard input").decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"Standard input is not UTF-8 text (byte {error.start}: {error.reason}).") from None
    except OSError as error:
        raise UsageError(f"Standard input cannot be read: {error.strerror}.") from None


def read_file(path: str | Path) -> str:
    """Return a whole file or pipe as text. Raises UsageError if it is missing, does not end in time or is not
    UTF-8."""
    try:
        with Path(path).open("rb") as file:
            return _within(file.read(LONGEST + 1), str(path)).decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


FIRST_SECONDS = (
    3.0  # to wait for the first byte of a pipe: cron and CI may leave a pipe open without a writer
)
NEXT_SECONDS = 600.0  # to wait for the next bytes: a compiler may be silent for minutes


def piped(most: int, say: Callable[[str], None]) -> bytes:
    """Read at most ``most`` + 1 bytes of standard input if it is a file, a pipe or a socket; return no bytes
    for a terminal, a device such as /dev/null, or a closed input. ``say`` receives a message about a pipe
    that was not read to its end, or that is still being read. Raises UsageError."""
    try:
        descriptor = sys.stdin.fileno() if sys.stdin is not None else -1
        kind = os.fstat(descriptor).st_mode
    except (OSError, ValueError):
        return b""
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)):
        return b""
    data, seconds, said = b"", FIRST_SECONDS, False
    try:
        while len(data) <= most:
            if data and not said and not select.select([descriptor], [], [], FIRST_SECONDS)[0]:
                count, said = number_of(len(data), "byte"), True
                say(f"Still reading standard input, {count} so far. To ignore it: --no-stdin")
            if not select.select([descriptor], [], [], seconds)[0]:
                told = "was not read to its end: it paused" if data else "was not read: no data came"
                say(f"Standard input {told} for {seconds:g} s. To ignore it: --no-stdin")
                break
            if not (piece := os.read(descriptor, min(CHUNK, most + 1 - len(data)))):
                break
            data, seconds = data + piece, NEXT_SECONDS
    except OSError as error:
        raise UsageError(f"Standard input cannot be read: {error.strerror}.") from None
    return data


def use_terminal() -> None:
    """Make the terminal standard input again after reading it as a file or a pipe, so that a person can
    answer."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return  # without a terminal, questions stay open
    os.dup2(terminal, 0)
    os.close(terminal)
    sys.stdin = os.fdopen(0, closefd=False)


def _within(data: bytes, name: str) -> bytes:
    if len(data) > LONGEST:
        raise UsageError(f"{name} is longer than {LONGEST:,} bytes.")
    return data


def answers() -> Answers:
    """The answers of the person at this terminal."""
    return StdinLines() if is_dumb() or not is_terminal(sys.stdin) else TypedLines()


class TypedLines:
    """Answers that can be edited while they are typed. The question is on stderr. Ctrl-C is passed on as a
    signal, so that the signal's handler can withdraw the question."""

    async def ask(self, question: str, text: str = "") -> str:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.input import create_input
        from prompt_toolkit.input.typeahead import clear_typeahead
        from prompt_toolkit.output.vt100 import Vt100_Output

        output = Vt100_Output.from_pty(sys.stderr, term=os.environ.get("TERM"))
        output.enable_cpr = False  # not every terminal reports the position of its cursor
        typed = create_input(sys.stdin)
        clear_typeahead(typed)
        _forget_typed(sys.stdin.fileno())
        session: PromptSession[str] = PromptSession(input=typed, output=output, reserve_space_for_menu=0)
        try:
            return await session.prompt_async(question, default=text, handle_sigint=False)
        except KeyboardInterrupt:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()  # until the question is withdrawn
            raise


class StdinLines:
    """Reads a file descriptor line by line, and keeps further bytes for the next read."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._rest = bytearray()
        self._ended = False

    async def read(self) -> str:
        """Return the next line without its line end. Raises EOFError after the last line."""
        while b"\n" not in self._rest and not self._ended:
            piece = await self.read_some()
            self._rest += piece
            self._ended = not piece
        if not self._rest:
            raise EOFError
        line, _, rest = bytes(self._rest).partition(b"\n")
        self._rest = bytearray(rest)
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    async def read_some(self) -> bytes:
        """Return the next available bytes; empty at the end."""
        await self._readable()
        try:
            return os.read(self._descriptor, CHUNK)
        except OSError:  # the terminal or the descriptor was closed
            return b""

    async def _readable(self) -> None:
        """Wait until the descriptor is readable; a regular file always is."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not ready.done():
                ready.set_result(None)

        try:
            loop.add_reader(self._descriptor, settle)
        except OSError:
            return
        try:
            await ready
        finally:
            loop.remove_reader(self._descriptor)

    async def ask(self, question: str, text: str = "") -> str:
        self._rest.clear()
        _forget_typed(self._descriptor)
        sys.stderr.write(question)
        sys.stderr.flush()
        return await self.read()


Answers = StdinLines | TypedLines  # the source of a person's answers


def _forget_typed(descriptor: int) -> None:
    """Drop input that was typed before the question; only on a terminal."""
    with contextlib.suppress(termios.error, OSError):
        termios.tcflush(descriptor, termios.TCIFLUSH)


# The editor, opened as git opens it


USUAL = "vi"


def named_editor() -> str:
    """The editor that the person configured; empty if none."""
    return os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""


def edited(text: str, name: str, use: Callable[[str], object], suffix: str = ".txt") -> None:
    """Open an editor and pass the saved text to ``use``, without the line end that an editor adds. If ``use``
    refuses the text, the scratch file is kept and the UsageError names it."""
    editor = named_editor()
    if not editor and not (is_terminal(sys.stdin) and shutil.which(USUAL)):
        raise UsageError(
            "No editor was found: set EDITOR, or give the text with --text TEXT (- reads stdin)."
        )
    folder = Path(tempfile.mkdtemp(prefix="quoth-"))
    plain = "".join(char if char.isalnum() or char in "-_." else "_" for char in name)[:50]
    scratch = folder / f"{plain}{suffix}"
    scratch.write_bytes(f"{text}\n".encode() if text else b"")
    try:
        # A shell splits the words, as in EDITOR="emacsclient -t".
        words = ["sh", "-c", f'{editor or USUAL} "$@"', "sh", str(scratch)]
        code = subprocess.run(words, check=False).returncode  # noqa: S603
        if code:
            raise UsageError(
                f"The editor {editor or USUAL} ended with exit code {code}; nothing was changed."
            )
        use(read_file(scratch).removesuffix("\n"))
    except QuothError as error:
        if scratch.exists() and scratch.read_bytes().removesuffix(b"\n") not in (text.encode(), b""):
            raise UsageError(f"{error} Your text is kept in {scratch}.") from None
        _remove(folder)
        raise
    except BaseException:
        _remove(folder)
        raise
    _remove(folder)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


# The person


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def is_inside() -> bool:
    """Whether a tool started this process, directly or indirectly."""
    from quoth.tools.shell.running import is_started_by_program
    from quoth.tools.shell.view import INSIDE

    return bool(os.environ.get(INSIDE)) or is_started_by_program()  # a program may clear its environment


def require_person() -> None:
    """Raise UsageError if a tool started this process."""
    if is_inside():
        raise UsageError("A program that a tool runs cannot decide what tools may do.")


def can_be_asked(no_input: bool = False) -> bool:
    """Whether a person can be asked: stdin and stderr are a terminal, and no tool started this process."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr) and not no_input and not is_inside()
