"""Limits the memory of this process, so that one call cannot take that of the whole machine.

Knows the system's limit (RLIMIT_AS) and nothing of workers. It counts address space, of which a process
reserves more than it uses: about 8 MB a thread, beside what is in its memory.
"""

from __future__ import annotations

import resource
from pathlib import Path

from quoth.tools.errors import UsageError

THREAD = 8  # MB that a thread reserves
SPARE = 64  # MB for the calls themselves


def limit_memory(megabytes: str, threads: int) -> None:
    """Let this process have no more memory, with so many threads at once; what it starts has the same limit.
    Raises UsageError for a limit that leaves nothing for calls."""
    if not megabytes.isdecimal():
        raise UsageError(f"--memory of a worker is a number of megabytes, such as 2000, not {megabytes}.")
    needed = _reserved() + THREAD * threads + SPARE
    if int(megabytes) < needed:
        raise UsageError(
            f"--memory {megabytes} is too little: with these tools and {threads} calls at once the worker"
            f" needs {needed} MB, counted as the system reserves it."
        )
    most = int(megabytes) << 20
    try:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ValueError, OSError, OverflowError) as error:
        raise UsageError(f"The memory cannot be limited to {megabytes} MB here: {error}.") from None


def _reserved() -> int:
    """MB of address space that this process has; where the system does not tell, of memory."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return pages * resource.getpagesize() >> 20
