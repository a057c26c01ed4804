"""A process that runs one program under Landlock: ``landlock_child.py LIBRARY FILTER SETTINGS PROGRAM …``.

This script is started by tools/shell/landlock.py; it imports sandlock from LIBRARY and nothing of ours.
It has no output of its own; its exit code is the program's.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 22, 38
PR_CAPBSET_DROP, PR_SET_SECUREBITS, PR_CAP_AMBIENT, CLEAR_ALL = 24, 28, 47, 4
NO_ROOT = 0x2F  # root has no special rights, permanently
CAPABILITY_VERSION = 0x20080522
EXTRA = ("ptrace", "chroot", "clock_settime", "settimeofday", "adjtimex", "clock_adjtime")


def drop_capabilities() -> None:
    """Reduce root to the rights of the owner of its files."""
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0)
    libc.prctl(PR_SET_SECUREBITS, NO_ROOT, 0, 0, 0)
    for number in range(64):
        libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    libc.capset(header, (ctypes.c_uint32 * 6)())


class KernelFilter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def refuse(instructions: bytes) -> None:
    """Make the kernel refuse the system calls in a filter, besides the calls that sandlock refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    program = KernelFilter(len(instructions) // 8, instructions)
    if instructions and libc.prctl(PR_SET_SECCOMP, 2, ctypes.byref(program), 0, 0):
        sys.exit(f"the filter of system calls was refused: {os.strerror(ctypes.get_errno())}")


def main(library: str, instructions: str, settings: str, words: list[str]) -> int:
    sys.path.append(library)
    import sandlock

    drop_capabilities()
    refuse(bytes.fromhex(instructions))
    rules: dict[str, Any] = json.loads(settings)
    box = sandlock.Sandbox(**rules, extra_deny_syscalls=EXTRA)
    result = box.popen(words).wait()
    if result.reason == sandlock.ExitReason.EXITED:
        return int(result.exit_code)
    return 128 + (result.signal if result.signal > 0 else signal.SIGKILL)


if __name__ == "__main__":
    sys.stdout.flush()
    os._exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
