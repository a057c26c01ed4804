"""Runs one program under a keeper (tools/shell/keeper.py), so that all its descendants end with it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from quoth.tools.errors import BusyError, UsageError
from quoth.tools.storage.file_lock import hold, is_held, lock_path

# The processes that now run a program of a tool: each has a lock with its process id meanwhile. With it quoth
# notices that such a program has started it, directly or indirectly, even without the environment variable.


class AtWork:
    """The lock of this process, kept while at least one program runs."""

    def __init__(self) -> None:
        self._programs = 0
        self._lock = contextlib.ExitStack()
        self._turn = threading.Lock()

    @contextlib.contextmanager
    def program(self) -> Iterator[None]:
        """Keep the lock while a program starts and runs. Raises UsageError if it cannot be taken."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
        with self._turn:
            if not self._programs:
                with contextlib.suppress(BusyError):  # then it is locked, which is enough
                    self._lock.enter_context(hold(_name(os.getpid())))
            self._programs += 1

    def _end(self) -> None:
        with self._turn:
            self._programs -= 1
            if not self._programs:
                with contextlib.suppress(OSError):  # a file that is left behind locks nothing
                    lock_path(_name(os.getpid())).unlink()
                self._lock.close()


AT_WORK = AtWork()


def is_started_by_program() -> bool:
    """Whether an ancestor of this process runs a program of a tool. Raises UsageError if the locks cannot be
    read, because then this is not known."""
    try:
        return any(is_held(_name(pid)) for pid in _ancestors())
    except OSError as error:
        why = f"so quoth cannot tell whether a tool started it: {error.strerror}"
        raise UsageError(f"{error.filename} cannot be read, {why}.") from None


def _name(pid: int) -> str:
    """The lock of a process. Process ids are those of a namespace; others may share the state folder."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115  a link to no file
    except OSError:
        space = ""
    return f"programs of {space} {pid}"


def _ancestors() -> Iterator[int]:
    """The process ids of the parent, its parent and so on, as many as can be known."""
    parents = _parents() if sys.platform != "linux" else None
    pid, seen = os.getppid(), set[int]()
    while pid > 0 and pid not in seen:  # in a container, quoth may be process 1
        yield pid
        seen.add(pid)
        pid = _parent(pid) if parents is None else parents.get(pid, 0)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            return int(file.read().rpartition(b")")[2].split()[1])  # its name may hold blanks and brackets
    except (OSError, ValueError, IndexError):
        return 0


def _parents() -> dict[int, int]:
    """The parent of each process, without /proc (untested on macOS)."""
    import subprocess

    try:
        listed = subprocess.run(
            ["/bin/ps", "-axo", "pid=,ppid="], capture_output=True, text=True, timeout=10, check=True
        )
        return {int(pid): int(parent) for pid, parent in map(str.split, listed.stdout.splitlines())}
    except (OSError, subprocess.SubprocessError, ValueError):
        return {}


KEEPER = str(Path(__file__).with_name("keeper.py"))
PIPE, DEVNULL, STDOUT = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL, asyncio.subprocess.STDOUT
CHUNK = 65536
MOMENT = 2  # seconds for a killed program to release its pipes
Take = Callable[[bytes], object]


class Running:
    """A started program. Its owner must call ``put_away``, even if the program failed."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        report: int | None,
        let_go: Callable[[], object],
        at_work: contextlib.ExitStack,
    ) -> None:
        self.process = process
        self._let_go = let_go
        self._at_work = at_work  # until it is put away
        self._report = report  # the keeper's report; None without a keeper
        self._code: int | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        stdin: int = DEVNULL,
        stderr: int = PIPE,
        alone: bool = False,
        kept: bool = True,
        let_go: Callable[[], object] = lambda: None,
    ) -> Self:
        """Start ``argv``. Its remaining descendants end with it if it runs ``alone``, otherwise once
        ``ended`` is called. A program that ends its descendants itself, such as bwrap, need not be ``kept``:
        starting the keeper takes longer than everything else. ``let_go`` is called before it is killed. While
        it runs, quoth accepts no decision from its descendants. Raises OSError, ValueError and UsageError."""
        with contextlib.ExitStack() as at_work:
            at_work.enter_context(AT_WORK.program())
            report, told = (None, None) if not kept else os.pipe()
            if told is not None:
                keeper = (sys.executable, "-I", "-S", KEEPER, str(told), str(os.getpid()), str(int(alone)))
                argv, pass_fds = (*keeper, *argv), (told, *pass_fds)
            starting = asyncio.ensure_future(
                asyncio.create_subprocess_exec(
                    *argv,
                    pass_fds=pass_fds,
                    cwd=cwd,
                    env=env,
                    stdin=stdin,
                    stdout=PIPE,
                    stderr=stderr,
                    start_new_session=True,
                )
            )
            try:
                cancelled = await _settled(starting)
                running = cls(starting.result(), report, let_go, at_work.pop_all())
            except BaseException:
                if report is not None:
                    os.close(report)
                raise
            finally:
                if told is not None:
                    os.close(told)
            if cancelled:  # asyncio leaks its open files if it is cancelled while it starts a process
                await running.put_away()
                raise asyncio.CancelledError
            return running

    async def communicate(self, out: Take, err: Take | None = None, stdin: str | None = None) -> int:
        """Write ``stdin`` to it, give its output to ``out`` and ``err``, piece by piece, and return its exit
        code like ``ended``."""
        streams = [(self.process.stdout, out), (self.process.stderr, err)]
        feeding = None if stdin is None else asyncio.create_task(self._feed(stdin))
        try:
            await asyncio.gather(*(_read(stream, take) for stream, take in streams if stream and take))
            return await self.ended()
        finally:
            if feeding is not None:
                feeding.cancel()  # it may have closed its outputs, and read nothing

    async def ended(self) -> int:
        """Its exit code, negative for a signal, once it has ended. Raises OSError if it was never started."""
        if self._report is None:
            return await self.process.wait()
        if self._code is None:
            self._tell(signal.SIGUSR1)
            await self.process.wait()
            how, _, number = os.read(self._report, 100).decode().partition(" ")
            if how == "errno":
                raise OSError(int(number), os.strerror(int(number)))
            self._code = int(number or -signal.SIGKILL)  # without a number, the keeper was killed
        return self._code

    def request_end(self) -> None:
        """Send SIGTERM to the program and its group, for a program under a keeper."""
        if self._report is not None:
            self._tell(signal.SIGUSR2)

    def stop(self) -> None:
        """Kill everything; ``ended`` then returns soon."""
        self._let_go()
        if self._report is not None:
            self._tell(signal.SIGTERM)
        elif self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # And bwrap's child, which would wait for bwrap for ever: it is in its group until it mounts.
                os.killpg(self.process.pid, signal.SIGKILL)

    async def put_away(self) -> None:
        """Kill everything that is left, and wait for the keeper, even if this task is cancelled."""
        with self._at_work:
            await self._put_away()

    async def _put_away(self) -> None:
        self.stop()
        transport = self.process._transport  # type: ignore[attr-defined]  # asyncio has no public word for this
        ending = asyncio.gather(self.process.communicate(), return_exceptions=True)  # and all with its pipes
        cancelled = await _settled(ending, MOMENT)
        if self.process.returncode is None or not ending.done():
            for number in range(3):  # now only the process is awaited
                if (pipe := transport.get_pipe_transport(number)) is not None:
                    pipe.close()
            cancelled |= await _settled(asyncio.ensure_future(self.process.wait()))
        transport.close()
        if self._report is not None and self._report >= 0:
            os.close(self._report)
            self._report = -1
        if cancelled:
            raise asyncio.CancelledError
        await asyncio.sleep(0)  # its pipes are closed in the next turn of the loop

    def _tell(self, what: signal.Signals) -> None:
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended
                os.kill(self.process.pid, what)  # Popen's own method would take the exit code from asyncio

    async def _feed(self, text: str) -> None:
        """Write its standard input, as much as it reads, and close that."""
        pipe = self.process.stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            pipe.write(text.encode("utf-8", "replace"))
            await pipe.drain()
        pipe.close()


async def _settled(task: asyncio.Future[Any], seconds: float = math.inf) -> bool:
    """Wait until ``task`` is done, successful or not, at most ``seconds``; returns whether this task was
    cancelled meanwhile, which is possible at every turn of the loop."""
    cancelled, deadline = False, time.monotonic() + seconds
    while not task.done() and (left := deadline - time.monotonic()) > 0:
        try:
            await asyncio.wait({task}, timeout=left if left < math.inf else None)
        except asyncio.CancelledError:
            cancelled = True
    return cancelled


class CapturedOutput:
    """The output of a program: at most ``most`` bytes, half from its beginning and half from its end, because
    the middle of a long output matters least."""

    def __init__(self, most: int) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.dropped = 0

    def add(self, chunk: bytes) -> None:
        room = self._half - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room < len(chunk) else b""
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        over = max(0, len(self._tail) - self._half)
        self.dropped += over
        del self._tail[:over]

    @property
    def text(self) -> str:
        self._trim()
        parts = [part.decode("utf-8", "backslashreplace") for part in (self._head, self._tail)]
        return f"\n[{self.dropped} bytes not kept]\n".join(parts) if self.dropped else self._whole()

    def _whole(self) -> str:
        return (self._head + self._tail).decode("utf-8", "backslashreplace")


async def _read(stream: asyncio.StreamReader, take: Take) -> None:
    while chunk := await stream.read(CHUNK):
        take(chunk)
