"""What gets out: the attempts of tests/vocabulary/escapes.py in a program of the shell, without a boundary
and in each kind, and the hostile programs of the sandbox. Prints Org tables.

python tests/bench/contained.py
"Documented" are those that the manual's page security names. Counts: a loaded machine does not change them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(TESTS / "vocabulary"), str(TESTS / "security")]

import escapes  # noqa: E402
from test_shell_escapes import CANNOT, Victim  # noqa: E402


def unconfined(words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True)


def shell() -> None:
    print("| a program of the shell in | attempts | worked | of them documented |\n|---+---+---+---|")
    many = len(escapes.ATTEMPTS) + 1  # and to go on in the background
    for kind in ("no boundary", *CANNOT):
        with ExitStack() as ends:
            victim = Victim((), ends)
            os.environ |= {"HOME": str(victim.home), "QUOTH_STATE": str(victim.base / "state")}
            os.environ["SERVICE_TOKEN"] = escapes.SECRET
            start = unconfined if kind not in CANNOT else victim.confined(kind)  # type: ignore[arg-type]
            worked = victim.attempts(start, patience=100 if kind in CANNOT else 1, tell=False)
        known = len(worked & set(CANNOT[kind])) if kind in CANNOT else "-"
        print(f"| {kind} | {many} | {len(worked)} | {known} |", flush=True)


def sandbox() -> None:
    """The programs are tests; pytest counts those that were contained."""
    here = str(TESTS / "tools" / "sandbox" / "test_escapes.py")
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-k", "hostile_program", here]
    said = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=TESTS.parent).stdout
    passed, failed = (
        int(found[1]) if (found := re.search(rf"(\d+) {word}", said)) else 0 for word in ("passed", "failed")
    )
    print("\n| programs for the sandbox | contained | not as expected |\n|---+---+---|")
    print(f"| {passed + failed} | {passed} | {failed} |")


if __name__ == "__main__":
    shell()
    sandbox()
