"""The limits of a confined program: what setrlimit bounds, set by a shell just before the program starts.

A shell and no Python, because it starts in a millisecond. It knows no boundary.
"""

from __future__ import annotations

from quoth.tools.shell.view import Boundary

# -u is bash's word for processes, -p dash's; a user namespace counts its processes from nought.
SCRIPT = (
    "ulimit -c 0; ulimit -n $1; ulimit -f $2; ulimit -t $3; ulimit -d $4;"
    ' if [ $5 -gt 0 ]; then ulimit -u $5 2>/dev/null || ulimit -p $5; fi; shift 5; exec "$@"'
)
LIMITED = ("/bin/sh", "-c", SCRIPT, "limits")


def limit_words(boundary: Boundary, processes: bool = True) -> tuple[str, ...]:
    """What SCRIPT takes: open files, blocks of 512 bytes, seconds, kilobytes, processes (0 for no limit)."""
    return (
        str(boundary.open_files),
        str(boundary.file_size // 512),
        str(boundary.seconds),
        str(boundary.memory // 1024),
        str(boundary.processes if processes else 0),
    )
