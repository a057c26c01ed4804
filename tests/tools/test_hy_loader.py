"""The bytecode cache of our own Hy: it works where Python's does not, and is never stale or broken."""

from __future__ import annotations

import importlib.machinery
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import IS_NOT_DEFINED
from words import files, rooms

from quoth.tools import hy_loader
from quoth.tools.errors import UsageError
from quoth.tools.hy_loader import _CachingLoader, _entry, install, located
from quoth.tools.storage.paths import cache_dir


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


PROGRAM = """
import json, sys
import quoth.tools
compiled = []
from importlib.machinery import SourceFileLoader
old = SourceFileLoader.source_to_code
def spy(self, data, path, **more):
    if str(path).endswith(".hy"):
        compiled.append(str(path).rsplit("/", 1)[1])
    return old(self, data, path, **more)
SourceFileLoader.source_to_code = spy
import quoth.tools.builtin
names = quoth.cognitive_tools.names()
print(json.dumps({"compiled": compiled, "tools": names, "file": quoth.tools.__file__}))
"""


def start(cache: Path, root: Path | None = None, **env: str) -> dict[str, Any]:
    """Load the tools that ship in a fresh Python; say which Hy files it compiled."""
    root = root or rooms()[0].parent.parent
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "QUOTH_CACHE": str(cache), "PYTHONPATH": str(root), **env},
        capture_output=True,
        text=True,
        check=True,
        cwd=root,
    )
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    assert Path(found["file"]).parent.parent.parent == root
    return found


FAMILIES = {"eval.hy", "files.hy", "search.hy"}


def copied(folder: Path) -> Path:
    """The package, installed somewhere else, with the bytecode of its Python files, if it has that."""
    shutil.copytree(rooms()[0].parent, folder / "lib/quoth")
    return folder / "lib"


def test_the_second_start_compiles_nothing_even_where_python_writes_no_bytecode(cache: Path) -> None:
    first = start(cache, PYTHONDONTWRITEBYTECODE="1")
    assert set(first["compiled"]) >= FAMILIES
    second = start(cache, PYTHONDONTWRITEBYTECODE="1")
    assert (second["compiled"], second["tools"]) == ([], first["tools"])


def test_an_installation_that_cannot_be_written_is_cached_and_left_as_it_is(
    cache: Path, tmp_path: Path
) -> None:
    root = copied(tmp_path)
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = sorted(root.rglob("*"))
    start(cache, root, PYTHONDONTWRITEBYTECODE="1")
    assert start(cache, root, PYTHONDONTWRITEBYTECODE="1")["compiled"] == []
    assert sorted(root.rglob("*")) == before
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755)


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    assert set(start(tmp_path / "cache")["compiled"]) >= FAMILIES
    assert (tmp_path / "cache").read_text() == "in the way"


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "agents": lambda good: b"",
    "eval": lambda good: good[: len(good) // 2],
    "files": lambda good: good[:-9] + bytes([good[-9] ^ 0xFF]) + good[-8:],
    "results": lambda good: os.urandom(200),
    "search": lambda good: good[32:],  # other code than its key says
}


def test_damaged_entries_are_compiled_anew_and_mended(cache: Path) -> None:
    start(cache)
    good = {}
    for family, damage in DAMAGES.items():
        (entry,) = (cache / "hy").glob(f"quoth.tools.builtin.{family}.*.bin")
        good[entry] = entry.read_bytes()
        entry.write_bytes(damage(good[entry]))
    again = start(cache)
    assert sorted(again["compiled"]) == [f"{family}.hy" for family in DAMAGES]
    assert "echo" in again["tools"]
    assert {entry: entry.read_bytes() for entry in good} == good
    assert start(cache)["compiled"] == []


def test_a_changed_file_is_compiled_anew_and_its_old_entry_dropped(cache: Path, tmp_path: Path) -> None:
    root = copied(tmp_path)
    start(cache, root)
    file = root / "quoth/tools/builtin/eval.hy"
    file.write_text(
        file.read_text()
        .replace("def-cognitive-tool echo", "def-cognitive-tool ekko")
        .replace("(echo", "(ekko")
    )
    again = start(cache, root)
    assert again["compiled"] == ["eval.hy"]
    assert "ekko" in again["tools"]
    assert len(list((cache / "hy").glob("quoth.tools.builtin.eval.*.bin"))) == 1


def test_what_decides_an_expansion_belongs_to_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = [path.name for path in hy_loader._MACROS]
    assert ours == ["macros.hy", "expand.hy"]
    files(tmp_path, {path.name: path.read_bytes() for path in hy_loader._MACROS})
    monkeypatch.setattr(hy_loader, "_MACROS", [tmp_path / name for name in ours])
    entries = {_entry("tools.a", "/x/a.hy", b"1")}
    for name in ours:
        with (tmp_path / name).open("a") as file:
            file.write("; a change\n")
        entries.add(_entry("tools.a", "/x/a.hy", b"1"))
    assert len(entries) == 3


def test_two_installations_do_not_take_each_others_entries(cache: Path, tmp_path: Path) -> None:
    places = [files(tmp_path / name, {"a.hy": "(setv x 1)\n"}) / "a.hy" for name in ("one", "other")]
    for path in places:
        _CachingLoader("tools.a", str(path)).get_code("tools.a")
    assert len(list(cache.rglob("*.bin"))) == 2


def test_the_key_knows_the_text_the_place_and_the_name() -> None:
    entries = {
        _entry("tools.a", "/x/a.hy", b"1"),
        _entry("tools.a", "/x/a.hy", b"2"),
        _entry("tools.b", "/x/a.hy", b"1"),
        _entry("tools.a", "/y/a.hy", b"1"),
    }
    assert len(entries) == 4
    assert _entry("tools.a", "/x/a.hy", b"1") in entries


def test_the_cache_lies_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("QUOTH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_dir() == tmp_path / "x" / "quoth"


def test_the_loader_gives_the_same_code_from_the_cache(cache: Path, tmp_path: Path) -> None:
    files(tmp_path, {"a.hy": '"Doc."\n(setv x (+ 1 2))\n'})
    loader = _CachingLoader("tools.a", str(tmp_path / "a.hy"))
    for _ in range(2):
        code = loader.get_code("tools.a")
        assert code is not None
        found: dict[str, Any] = {}
        exec(code, found)
        assert found["x"] == 3
    assert len(list(cache.rglob("*.bin"))) == 1
    assert [path.suffix for path in (cache / "hy").iterdir()] == [".bin"]


def finder() -> Any:
    return next(found for found in sys.meta_path if isinstance(found, hy_loader._Finder))


def test_only_our_own_packages_are_found_by_it(tmp_path: Path) -> None:
    files(tmp_path, {"x.hy": '"Doc."\n', "y.py": ""})
    path = [str(tmp_path)]
    assert finder().find_spec("quoth.x", path).loader.__class__ is _CachingLoader
    assert finder().find_spec("theirs.x", path) is None
    assert finder().find_spec("quoth.y", path) is None
    assert finder().find_spec("quoth", None) is None
    assert finder().find_spec("quothx.x", path) is None


def test_it_is_installed_once() -> None:
    before = list(sys.meta_path)
    install()
    install()
    assert sys.meta_path == before
    assert sum(isinstance(found, hy_loader._Finder) for found in sys.meta_path) == 1
    assert isinstance(finder(), hy_loader._Finder)
    assert importlib.machinery.PathFinder in sys.meta_path


@pytest.mark.parametrize(
    ("line", "column", "shown"),
    [
        (1, 1, "f.hy:1:1: no\n  (a\fb)\n  ^"),
        (2, 3, "f.hy:2:3: no\n  (c)\n    ^"),
        (3, 1, "f.hy:3:1: no"),
        (9, 1, "f.hy:9:1: no"),
        (0, 1, "f.hy:0:1: no"),
    ],
)
def test_a_place_is_shown_with_a_caret(line: int, column: int, shown: str) -> None:
    assert located(Path("f.hy"), "(a\fb)\n(c)\n\n", line, column, "no") == shown


def test_a_file_that_does_not_require_the_macro_is_told_so(tmp_path: Path) -> None:
    files(
        tmp_path,
        {"bot.hy": '(import re)\n(def-cognitive-tool x "It is." :parameters [a {}] :body (len ctx))\n'},
    )
    with pytest.raises(UsageError) as told:
        hy_loader.load_hy_file(tmp_path / "bot.hy")
    wanted = "2:1: def-cognitive-tool is a macro: begin the file with (require quoth [def-cognitive-tool])."
    assert str(told.value).splitlines()[0] == f"{tmp_path}/bot.hy:{wanted}"


def test_each_macro_of_ours_that_is_not_required_is_told(tmp_path: Path) -> None:
    text = '(require quoth [def-cognitive-tool])\n(def-shell-tool x "List." :argv ["ls"])\n'
    files(tmp_path, {"bot.hy": text})
    with pytest.raises(UsageError, match=r"2:1: def-shell-tool is a macro: begin .* \[def-shell-tool\]\)"):
        hy_loader.load_hy_file(tmp_path / "bot.hy")


def test_a_name_that_is_missing_elsewhere_is_told_as_it_is(tmp_path: Path) -> None:
    files(tmp_path, {"bot.hy": "(require quoth [def-cognitive-tool])\n(len sky)\n"})
    with pytest.raises(UsageError, match=f"2:6: NameError: name 'sky' {IS_NOT_DEFINED}"):
        hy_loader.load_hy_file(tmp_path / "bot.hy")
