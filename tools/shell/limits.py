"""The limits of a confined program: what setrlimit bounds, set by a shell just before the program starts.

A shell and no Python, because it starts in a millisecond. It knows no boundary.
"""

from __future__ import annotations

from quoth.tools.shell.view import Boundary

TIED = "tied"  # descriptor 9 can be written until the one that asked for the program wants it dead
# -u is bash's word for processes, -p dash's; a user namespace counts its processes from nought.
SCRIPT = (
    "ulimit -c 0; ulimit -n $1; ulimit -f $2; ulimit -t $3; ulimit -d $4;"
    " if [ $5 -gt 0 ]; then ulimit -u $5 2>/dev/null || ulimit -p $5; fi;"
    ' [ -z "$6" ] || { echo >&9 && exec 9>&-; } || exit 1; shift 6; exec "$@"'
)
LIMITED = ("/bin/sh", "-c", SCRIPT, "limits")


def limit_words(boundary: Boundary, processes: bool = True, tied: bool = False) -> tuple[str, ...]:
    """What SCRIPT takes: open files, blocks of 512 bytes, seconds, kilobytes, processes (0 for no limit), and
    whether it is TIED to the one that asked for it."""
    return (
        str(boundary.open_files),
        str(boundary.file_size // 512),
        str(boundary.seconds),
        str(boundary.memory // 1024),
        str(boundary.processes if processes else 0),
        TIED if tied else "",
    )
