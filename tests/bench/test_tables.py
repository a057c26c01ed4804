"""The tables of RESULTS.org can be made again: each command names a script that is there, and what it prints
finds its place."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_tables", HERE / "__main__.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["bench_tables"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SECTION = """* A row
  2026-01-01, words with 3.5 in them.
#+begin_src sh
pip install other && python tests/bench/row.py --rounds 3   # where it is
#+end_src
  | what | ms |
  |---+---|
  | ours | 9 |

  | before | ms |
  |---+---|
  | ours | 8 |
"""


def test_every_section_names_scripts_that_are_there(tables: ModuleType) -> None:
    sections = tables.sections(tables.RESULTS.read_text())
    named = [word for one in sections for run in one.commands for word in run.split() if word.endswith(".py")]
    assert len(named) > 30
    assert [word for word in named if not (tables.ROOT / word).is_file()] == []


def test_every_script_that_measures_has_a_section(tables: ModuleType) -> None:
    named = tables.RESULTS.read_text()
    parts = [path for path in HERE.glob("*.py") if "argparse.ArgumentParser" in path.read_text()]
    assert [
        path.name
        for path in parts
        if path.name not in ("__main__.py", "test_tables.py") and path.name not in named
    ] == []


def test_a_table_printed_again_takes_the_place_of_the_one_with_its_head(tables: ModuleType) -> None:
    (section,) = tables.sections(SECTION)
    assert section.commands == ["python tests/bench/row.py --rounds 3"]
    text, count = tables.replaced(section.text, ["| what | ms |\n|---+---|\n| ours | 7 |\n"], "2026-02-02")
    assert count == 1
    assert text == SECTION.replace("ours | 9", "ours | 7").replace("2026-01-01", "2026-02-02")


def test_a_date_in_a_table_stays(tables: ModuleType) -> None:
    section = "* A row\n  | what | read |\n  |---+---|\n"
    table = "| what | read |\n|---+---|\n| ours | 2026-01-01 |\n"
    assert "2026-01-01" in tables.replaced(section, [table], "2026-02-02")[0]


def test_a_table_with_another_head_changes_nothing(tables: ModuleType) -> None:
    (section,) = tables.sections(SECTION)
    assert tables.replaced(section.text, ["| who | ms |\n|---+---|\n| we | 7 |\n"], "2026-02-02") == (
        SECTION,
        0,
    )


def test_a_section_says_how_it_was_measured_once(tables: ModuleType) -> None:
    once = tables.with_measure(SECTION, tables.measure("2026-02-02", 61.4, 0.5))
    assert once.startswith("* A row\n  Measured on 2026-02-02 in 61 s, quoth at ")
    assert "load 0.5 before; CPython 3." in once
    assert tables.with_measure(once, "Measured on 2026-03-03.") == SECTION.replace(
        "* A row\n", "* A row\n  Measured on 2026-03-03.\n"
    )


def test_an_environment_of_a_section_is_made_first(tables: ModuleType, tmp_path: Path) -> None:
    made = "python -m venv other --without-pip && test -e other\nother/bin/python a.py\n"
    (section,) = tables.sections(f"* A row\n#+begin_src sh\n{made}#+end_src\n")
    assert section.commands == ["other/bin/python a.py"]
    assert tables.runnable(*section.commands, tmp_path)[2] == "it wants an environment of its own"
    tables.make_environments(section, tmp_path)
    assert tables.runnable(*section.commands, tmp_path) == ([f"{tmp_path}/other/bin/python", "a.py"], {}, "")


def test_what_must_be_fetched_first_is_said(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("QUOTH_BFCL", raising=False)
    assert tables.runnable("QUOTH_BFCL=… python a.py", tmp_path)[2] == "set QUOTH_BFCL first"
    assert tables.runnable("python a.py --at-once 12 [--cuts]", tmp_path)[0] == [
        sys.executable,
        "a.py",
        "--at-once",
        "12",
    ]


def test_a_reader_who_has_enough_ends_the_list_without_a_word() -> None:
    command = [sys.executable, "-m", "tests.bench", "--list"]
    with subprocess.Popen(
        command, cwd=HERE.parents[1], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None
        assert run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""
