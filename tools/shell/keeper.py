"""Runs one program and ends it with its descendants: ``keeper.py REPORT PARENT ALONE PROGRAM ARGUMENT…``.

This script is started by tools/shell/running.py; it imports nothing of ours. On Linux it is a subreaper:
every process that its program starts, in any session, remains its descendant and is killed with it. Elsewhere
only the program's process group is killed.

SIGTERM, or the end of PARENT, kills all at once; SIGUSR1, or ALONE other than ``0``, kills all once the
program has ended. SIGUSR2 sends SIGTERM to the program and its group. How the program ended is written to the
file descriptor REPORT: ``exit CODE``, or ``errno NUMBER`` if it could not be started.
"""

import _signal as signals  # type: ignore[import-not-found]  # signal imports half of the library
import contextlib
import os
import sys
import time
from collections.abc import Iterator

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
HEARD = {signals.SIGCHLD, signals.SIGTERM, signals.SIGUSR1, signals.SIGUSR2}


def adopt(parent: int) -> None:
    """Become the subreaper of all descendants, and request SIGTERM when our parent ends."""
    if sys.platform == "linux":
        import ctypes

        prctl = ctypes.CDLL(None).prctl
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        prctl(PR_SET_PDEATHSIG, signals.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit()


def main(report: int, parent: int, alone: bool, words: list[str]) -> None:
    signals.pthread_sigmask(signals.SIG_BLOCK, HEARD)
    os.set_inheritable(report, False)
    adopt(parent)
    try:
        program = os.posix_spawnp(words[0], words, os.environ, setsid=True, setsigmask=[])
    except OSError as error:
        os.write(report, b"errno %d" % (error.errno or 0))
        return
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (1, 2):  # each ends with its last writer
        os.dup2(nowhere, stream)
    ended, enough = False, alone
    while not (ended and enough):
        heard = signals.sigwait(HEARD)
        if heard == signals.SIGTERM:
            break
        enough = enough or heard == signals.SIGUSR1
        if heard == signals.SIGUSR2 and not ended:
            with contextlib.suppress(OSError):  # it runs as another user
                os.killpg(program, signals.SIGTERM)
        for pid, status in reaped():
            if pid == program:
                os.write(report, b"exit %d" % os.waitstatus_to_exitcode(status))
                ended = True
    if sys.platform != "linux":
        with contextlib.suppress(OSError):
            os.killpg(program, signals.SIGKILL)
    end_all()


def reaped() -> Iterator[tuple[int, int]]:
    """Wait for the children that have ended, and yield the id and status of each."""
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            yield found


def end_all() -> None:
    """Kill until no child is left. The children of a killed process become ours, and are killed next. A
    killed child keeps its process id until it is reaped, so that no unrelated process can be hit."""
    while sum(map(kill, children())):
        time.sleep(0.002)
        list(reaped())


def kill(pid: int) -> bool:
    try:
        os.kill(pid, signals.SIGKILL)
    except OSError:  # it runs as another user
        return False
    return True


def children() -> Iterator[int]:
    with contextlib.suppress(OSError):  # no /proc
        for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208  pathlib is slow to import
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                if int(file.read().rpartition(b")")[2].split()[1]) == os.getpid():
                    yield int(name)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] != "0", sys.argv[4:])
