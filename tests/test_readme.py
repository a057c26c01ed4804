"""What the README shows is executed here: a line after ``$`` is run, and what follows must be what it prints.

``python tests/test_readme.py --write`` puts the real output in; read it before it is committed.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

README = Path(__file__).parent.parent / "README.org"
_BLOCK = re.compile(r"^#\+begin_(src|example)[ \t]*([^\n]*)\n(.*?)^#\+end_\1\n", re.MULTILINE | re.DOTALL)


def _environment(state: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "QUOTH_STATE": str(state), "PATH": path, "COLUMNS": "100"}


def _run(line: str, folder: Path, state: Path) -> str:
    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, env=_environment(state), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout.replace(str(folder.resolve()), "/home/ann/shop")


def _executed(text: str, folder: Path, state: Path) -> str:
    """The README with the real output under every command, its files made and its Python run on the way."""
    parts, position = [], 0
    for block in _BLOCK.finditer(text):
        kind, options, body = block.groups()
        parts.append(text[position : block.start(3)])
        if kind == "example" and body.startswith("$ "):
            commands = [line for line in body.splitlines() if line.startswith("$ ")]
            body = "".join(f"{line}\n{_run(line[2:], folder, state)}" for line in commands)
        elif ":tangle" in options:
            (folder / options.split(":tangle")[1].split()[0]).write_text(body)
        elif options.startswith("sh :name reply"):
            assert _run(body, folder, state) == ""
        elif options.startswith("python"):
            (folder / "example.py").write_text(body)
            assert _run(f"{sys.executable} -P example.py", folder, state) == ""
        parts.append(body)
        position = block.end(3)
    return "".join([*parts, text[position:]])


def test_what_the_readme_shows_is_what_happens(tmp_path: Path) -> None:
    text = README.read_text()
    folder = tmp_path / "shop"
    folder.mkdir()
    assert _executed(text, folder, tmp_path / "state") == text


def test_the_check_notices_a_wrong_output(tmp_path: Path) -> None:
    wrong = "#+begin_example\n$ quoth call '(echo :text \"right\")'\nwrong\n#+end_example\n"
    assert "right\n" in _executed(wrong, tmp_path, tmp_path / "state")
    assert _executed(wrong, tmp_path, tmp_path / "state") != wrong


if __name__ == "__main__" and "--write" in sys.argv:
    with tempfile.TemporaryDirectory() as place:
        shop = Path(place, "shop")
        shop.mkdir()
        README.write_text(_executed(README.read_text(), shop, Path(place, "state")))
