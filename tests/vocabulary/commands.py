"""The command, started: to its end, while it runs, and at a terminal.

Each start is a process of its own, forked off one in which all is imported (forkserver.py). ``real=True``
starts Python itself: for what Python reads when it starts, for streams that are closed, and to see once that
each command comes up by itself.
"""

from __future__ import annotations

import atexit
import codecs
import contextlib
import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import termios
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from forkserver import SIZE

ONE = threading.Lock()  # one request at a time
CTRL_A, CTRL_C, CTRL_D, CTRL_K = "\x01", "\x03", "\x04", "\x0b"


@dataclass(frozen=True)
class Said:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str


def command() -> list[str]:
    """The installed ``quoth`` of this environment."""
    script = Path(sysconfig.get_path("scripts"), "quoth")
    if script.exists():
        return [str(script)]
    found = shutil.which("quoth")
    return [found] if found else [sys.executable, "-m", "quoth"]


@cache
def _server(bare: bool) -> socket.socket:
    """The way to a server that lives as long as this process."""
    ours, theirs = socket.socketpair()
    with theirs:
        script = [sys.executable, Path(__file__).with_name("forkserver.py"), *(["--bare"] if bare else [])]
        server = subprocess.Popen(script, stdin=theirs)

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


class Forked:
    """A command in a process of its own, with the words that Popen has. ``streams`` are its descriptors; of a
    terminal it is the session's first process, if it ``leads``."""

    def __init__(
        self,
        words: list[str],
        cwd: Path,
        env: dict[str, str],
        streams: list[int],
        bare: bool = False,
        leads: bool = True,
        user: int = 0,
    ) -> None:
        self.returncode: int | None = None
        self.end, told = os.pipe()  # it is read when the process has ended
        asked = {"words": words, "cwd": str(cwd), "env": env, "terminal": leads and os.isatty(streams[0])}
        asked["user"] = user
        text = json.dumps(asked).encode()
        with ONE:
            server = _server(bare)
            socket.send_fds(server, [SIZE.pack(len(text))], [*streams, told])
            os.close(told)
            server.sendall(text)
            (self.pid,) = SIZE.unpack(server.recv(SIZE.size, socket.MSG_WAITALL))

    def poll(self) -> int | None:
        return self._ended(0)

    def _ended(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self.end], [], [], seconds)[0]:
            self.returncode = int(os.read(self.end, 100))
            os.close(self.end)
        return self.returncode

    def wait(self, seconds: float | None = None) -> int:
        code = self._ended(seconds)
        if code is None:
            self.kill()
        assert code is not None, f"it did not end within {seconds} s"
        return code

    def send_signal(self, what: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended, and that is not told yet
                os.kill(self.pid, what)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def callable_command(folder: Path) -> Iterator[list[str]]:
    """The words by which another program starts the command, or a script, while the ``with`` block lasts: a
    fork as well (calling.py). It is killed with who asked for it."""
    path = folder / "quoth.socket"

    def answer(client: socket.socket) -> None:
        with client:
            size, streams, _, _ = socket.recv_fds(client, SIZE.size, 3)
            if not size:  # who asked has ended
                return
            asked = json.loads(client.recv(SIZE.unpack(size)[0], socket.MSG_WAITALL))
            process = Forked(**asked, streams=streams, leads=False)
            for stream in streams:
                os.close(stream)
            with contextlib.suppress(OSError):  # who asked has ended
                client.sendall(f"{process.pid}\n".encode())
            if client in select.select([client, process.end], [], [])[0]:
                process.kill()
            code = process.wait()
            with contextlib.suppress(OSError):  # who asked has ended
                client.sendall(str(code).encode())

    def listen() -> None:
        with contextlib.suppress(OSError):  # the block has ended
            while True:
                threading.Thread(target=answer, args=[server.accept()[0]], daemon=True).start()

    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        threading.Thread(target=listen, daemon=True).start()
        try:
            yield [sys.executable, "-I", "-S", str(Path(__file__).with_name("calling.py")), str(path)]
        finally:
            server.shutdown(socket.SHUT_RDWR)


@cache
def calls() -> list[str]:
    """The words of callable_command, as long as this process lives."""
    held = contextlib.ExitStack()
    atexit.register(held.close)
    folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="quoth-calls-")))
    return held.enter_context(callable_command(folder))


def quoth(
    *words: str,
    cwd: Path,
    stdin: str | bytes | Path | None = None,
    env: dict[str, str] | None = None,
    seconds: float = 120,
    real: bool = False,
    bare: bool = False,
    together: bool = False,
    user: int = 0,
) -> Said:
    """Run the command in ``cwd`` as a person would, without a terminal. A path is the file it reads. A
    ``bare`` one has to import all of ours by itself. ``together`` has its stderr among its stdout. Root may
    run it as another ``user``."""
    environment = {**os.environ, **(env or {})}
    with _typed(stdin) as typed, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        streams = typed, out, out if together else err
        if real:
            started = subprocess.Popen(
                [*command(), *words],
                cwd=cwd,
                env=environment,
                **dict(zip(("stdin", "stdout", "stderr"), streams, strict=True)),
            )
            code = started.wait(seconds)
        else:
            numbers = [file.fileno() for file in streams]
            code = Forked([*words], cwd, environment, numbers, bare, user=user).wait(seconds)
        return Said(code, _text(out), _text(err))


def _typed(given: str | bytes | Path | None) -> IO[bytes]:
    if isinstance(given, Path):
        return given.open("rb")
    file = tempfile.TemporaryFile()  # noqa: SIM115
    file.write(given.encode() if isinstance(given, str) else given or b"")
    file.seek(0)
    return file


def script(text: str, *words: str | Path, cwd: Path) -> Said:
    """Run Python code that uses the product in a process of its own, with these words behind its name."""
    path = cwd / "script.py"
    path.write_text(text)
    return quoth(str(path), *map(str, words), cwd=cwd)


def _text(file: Any) -> str:
    file.seek(0)
    text: str = file.read().decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")


@contextlib.contextmanager
def started(*words: str, cwd: Path, env: dict[str, str] | None = None) -> Iterator[Running]:
    """The command while it runs, with a stdin that stays open, which a run is not to wait for; ended with the
    block."""
    words = (*words, "--no-stdin") if words[:1] == ("run",) else words
    pipes = [os.pipe() for _ in range(3)]
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    process = Forked([*words], cwd, {**os.environ, **(env or {})}, theirs)
    for descriptor in theirs:
        os.close(descriptor)
    with (
        open(pipes[0][1], "w") as stdin,
        open(pipes[1][0]) as stdout,
        open(pipes[2][0]) as stderr,
    ):
        try:
            yield Running(process, stdin, stdout, stderr)
        finally:
            process.kill()
            process.wait()


@dataclass
class Running:
    """A command that has not ended yet."""

    process: Forked
    stdin: IO[str]
    stdout: IO[str]
    stderr: IO[str]
    heard: str = ""

    def says(self, text: str) -> None:
        """Wait until it has said ``text`` on stderr."""
        while text not in self.heard:
            line = self.stderr.readline()
            assert line, f"it ended without saying {text!r}: {self.heard!r}"
            self.heard += line

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def ended(self, seconds: float = 60) -> Said:
        """Wait for its end, with its stdin still open."""
        code = self.process.wait(seconds)
        return Said(code, self.stdout.read(), self.heard + self.stderr.read())


def wait_until(true: Callable[[], Any], seconds: float = 60) -> None:
    """Wait for something another process does."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


# A person at a terminal


class Terminal:
    """``quoth`` in a real terminal: keys are typed, and what it shows is read as text without its colours."""

    def __init__(
        self, *words: str, cwd: Path, env: dict[str, str] | None = None, size: tuple[int, int] = (160, 50)
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._measure(size)
        told = {**os.environ, "TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})}
        self._process = Forked([*words], cwd, told, [theirs] * 3)
        os.close(theirs)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""  # an escape whose end has not come yet: one read may end anywhere
        self._new = ""
        self.shown = ""
        self.raw = b""

    def see(self, text: str, seconds: float = 60) -> str:
        """Wait until ``text`` is shown, after what was seen before; return all that led up to it."""
        deadline = time.monotonic() + seconds
        while text not in self._new:
            left = deadline - time.monotonic()
            assert left > 0, f"{text!r} was never shown; last: {self._new[-2000:]!r}"
            assert self._read(left), f"it ended without showing {text!r}; last: {self._new[-2000:]!r}"
        before, _, self._new = self._new.partition(text)
        return before

    def _read(self, seconds: float) -> bool:
        if select.select([self._ours], [], [], seconds)[0]:
            try:
                data = os.read(self._ours, 65536)
            except OSError:  # nobody holds the other end any more
                return False
            self.raw += data
            self._draw(data)
            text = self._begun + self._decoder.decode(data)
            text = re.sub(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[()].|[=>78])|\r|\a", "", text)
            begun = re.search(r"\x1b(?:\[[0-9;?]*[ -/]*|[()])?\Z", text)
            text, self._begun = (text[: begun.start()], begun[0]) if begun else (text, "")
            self._new += text
            self.shown += text
        return True

    def _measure(self, size: tuple[int, int]) -> None:
        """Tell the terminal its columns and lines."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))

    def _draw(self, data: bytes) -> None:
        """What came just now; for a terminal that has a screen (screens.py)."""

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def enter(self, line: str) -> None:
        """Type a line and press Enter."""
        self.type(line + "\r")

    def prompted(self) -> None:
        """Wait for the prompt."""
        self.see("quoth>")

    def ended(self, seconds: float = 60) -> int:
        """Wait for its end, reading what it still has to say; return the exit code."""
        deadline = time.monotonic() + seconds
        while (code := self._process.poll()) is None:
            assert time.monotonic() < deadline, f"it did not end; last: {self._new[-2000:]!r}"
            self._read(0.05)
        while select.select([self._ours], [], [], 0)[0] and self._read(0):
            pass
        return code

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)
