"""Tries to escape from a boundary, as a program inside it would, and tells in what it succeeded.

Knows how to start inside a boundary only as a function that is given to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from quoth.tools.shell.view import Boundary, Command

SPACES = ("user", "mnt", "pid", "net", "ipc", "uts")
HIDDEN = "quoth-hidden"
# Each line that it prints is a success; the last says that it came to its end. None of it does harm, should
# the boundary be none: it looks whether it could.
SCRIPT = f"""
grep -q {HIDDEN} "$1" && echo "reads a hidden file"
[ -w /etc ] && echo "can write /etc"
[ -w /proc/sys/kernel ] && [ "$(id -u)" = 0 ] && echo "can set the kernel"
unshare -U true && echo "makes a namespace"
grep -q '^CapEff:.*[1-9a-f]' /proc/self/status && echo "has capabilities"
grep -q '^NoNewPrivs:.*0' /proc/self/status && echo "can gain rights"
folder="$2"; shift
[ -w "$folder/protected" ] && echo "can write a protected file"
for space in {" ".join(SPACES)}; do
  shift; [ -n "$1" ] && [ "$(readlink "/proc/self/ns/$space")" = "$1" ] && echo "shares the $space namespace"
done
echo written > "$folder/written" && echo ended
"""


def escapes(start: Callable[[Sequence[str], Boundary], Command]) -> str:
    """What a program got out of the boundary, or why none could be started in it; "" for nothing."""
    with tempfile.TemporaryDirectory(prefix="quoth-") as name:
        folder = Path(name).resolve()
        outside, inside = folder / "outside", folder / "inside"
        inside.mkdir()
        outside.write_text(HIDDEN)
        (inside / "protected").touch()
        linux = sys.platform == "linux"
        spaces = [os.readlink(f"/proc/self/ns/{space}") if linux else "" for space in SPACES]  # noqa: PTH115
        words = ("/bin/sh", "-c", SCRIPT, "escape", str(outside), str(inside), *spaces)
        bounds = Boundary(inside, inside, hidden=(outside,), protected=(inside / "protected",))
        command = start(words, bounds)
        try:
            done = subprocess.run(  # noqa: S603
                command.argv,
                env=dict(command.env),
                pass_fds=command.pass_fds,
                capture_output=True,
                text=True,
                timeout=10,
                stdin=subprocess.DEVNULL,
            )
        finally:
            command.close()
        *successes, last = done.stdout.splitlines() or [""]
        if last != "ended" or not (inside / "written").exists():
            return done.stderr.strip().partition("\n")[0] or f"it ended with {done.returncode}"
        return f"a program {successes[0]} in it" if successes else ""
