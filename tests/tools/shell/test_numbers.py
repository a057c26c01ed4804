"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "after.MOST_OUTPUT": 200_000,
    "background.MOST": 8,
    "background.MAX_OUTPUT": 200_000,
    "guarded.MOST": 200,
    "guarded.SHOWN": 3,
    "plain_git.LINK": 0o160000,
    "plain_git.MOST_INDEX": 256 << 20,
    "private_git.MOST_FILES": 50_000,
    "private_git.MOST_BYTES": 512 << 20,
    "program.MAX_OUTPUT": 2_000_000,
    "program.TOLD": 4_000,
    "program.MAX_LINE": 20_000,
    "running.MOMENT": 2,
    "view.Boundary.memory": 2 << 30,
    "view.Boundary.processes": 256,
    "view.Boundary.open_files": 1_024,
    "view.Boundary.file_size": 1 << 30,
    "view.Boundary.seconds": 3_600,
    "view.Boundary.scratch": 1 << 30,
    "landlock_child.PR_SET_PDEATHSIG": 1,
    "landlock_child.PR_SET_SECCOMP": 22,
    "landlock_child.PR_SET_NO_NEW_PRIVS": 38,
    "landlock_child.PR_CAPBSET_DROP": 24,
    "landlock_child.PR_SET_SECUREBITS": 28,
    "landlock_child.PR_CAP_AMBIENT": 47,
    "landlock_child.CLEAR_ALL": 4,
    "landlock_child.NO_ROOT": 0x2F,
    "landlock_child.CAPABILITY_VERSION": 0x20080522,
    "keeper.PR_SET_PDEATHSIG": 1,
    "keeper.PR_SET_CHILD_SUBREAPER": 36,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.shell", PROMISED) == PROMISED
