"""mypy --strict and pyright pass the Python of README and the manual, and see what users may rely on
(typed_uses.py)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pages import PAGES, README

import quoth
from quoth.tools.org.edit import unescape

PYTHON = re.compile(r"^#\+begin_src python[ \t]*([^\n]*)\n(.*?)^#\+end_src\n", re.MULTILINE | re.DOTALL)
USES = Path(__file__).with_name("typed_uses.py")
CONFIG = Path(__file__).parents[2] / "pyproject.toml"
PYRIGHT = {
    "typeCheckingMode": "standard",
    "enableTypeIgnoreComments": False,
    "reportUnnecessaryTypeIgnoreComment": True,
}


def examples(path: Path) -> dict[str, str]:
    """The Python of a page by the names of files: those that it makes, and its other blocks by number."""
    found = {}
    for number, (options, body) in enumerate(PYTHON.findall(path.read_text(encoding="utf-8"))):
        name = options.partition(":tangle ")[2].split()
        found[name[0] if name else f"{path.stem.lower()}_{number}.py"] = unescape(body)
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """All examples, beside quoth as it is installed, which an editable installation hides from checkers."""
    made = tmp_path / "examples"
    made.mkdir()
    for page in (README, *PAGES):
        for name, text in examples(page).items():
            assert not (made / name).exists(), f"two pages make {name}"
            (made / name).write_text(text, encoding="utf-8")
    (made / USES.name).write_text(USES.read_text(encoding="utf-8"), encoding="utf-8")
    package = tmp_path / "site" / "quoth"
    package.mkdir(parents=True)
    for inner in Path(next(iter(quoth.__path__))).iterdir():
        (package / inner.name).symlink_to(inner)
    for room in ("agent", "neuro", "tools"):
        if not (package / room).exists():
            (package / room).symlink_to(Path(sys.modules[f"quoth.{room}"].__path__[0]))
    return made


def checked(*words: str, folder: Path) -> str:
    """What a checker says of the examples."""
    env = {**os.environ, "MYPYPATH": str(folder.parent / "site"), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    run = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    return run.stdout + run.stderr


def test_mypy_passes_the_examples(folder: Path) -> None:
    """What it has found out about quoth it takes over from the run on quoth before, if there was one."""
    names = sorted(path.name for path in folder.glob("*.py"))
    known = os.environ.get("QUOTH_MYPY", "../mypy")
    said = checked("mypy", f"--config-file={CONFIG}", f"--cache-dir={known}", *names, folder=folder)
    assert said == f"Success: no issues found in {len(names)} source files\n"


def test_pyright_passes_the_examples(folder: Path) -> None:
    settings = {**PYRIGHT, "extraPaths": [str(folder.parent / "site")]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    said = checked("pyright", "--pythonpath", sys.executable, ".", folder=folder)
    assert said == "0 errors, 0 warnings, 0 informations\n"


def test_the_examples_are_found(folder: Path) -> None:
    assert {path.name for path in folder.glob("*.py")} >= {"readme_0.py", "library.py", "python_0.py"}
