"""The code of a tool: its file and what that imports of the user's own, and nothing that is installed."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path

import pytest
from words import files

from quoth.tools.registry.code_version import (
    code_of,
    local_files,
    own_code,
    place_of_error,
    place_of_function,
    users_traceback,
)


@pytest.mark.parametrize(("folder", "counts"), [("own", True), ("lib/site-packages", False)])
def test_a_package_of_another_environment_is_no_part_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, counts: bool
) -> None:
    name = f"bot_{folder[:3]}"
    files(tmp_path, {f"{name}.py": "import helps\n", f"{folder}/helps.py": "a = 1\n"})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / folder)
    importlib.import_module(name)
    before = code_of(name)
    files(tmp_path, {f"{folder}/helps.py": "a = 2\n"})
    assert (code_of(name) != before) is counts


FOUND = [  # a file, the others, those that are found beside it
    ("import one", {"one.py": ""}, "one.py"),
    ("import one.two", {"one/__init__.py": "", "one/two.py": ""}, "one/__init__.py one/two.py"),
    ("import one, two", {"one.hy": "", "two.py": ""}, "one.hy two.py"),
    ("from one import two", {"one/two.py": ""}, "one/two.py"),
    ("from one import two", {"one.py": "import three", "three.py": ""}, "one.py three.py"),
    ("from . import one", {"one.py": ""}, "one.py"),
    ("from .one import two", {"one/two.hy": "", "one/__init__.hy": ""}, "one/__init__.hy one/two.hy"),
    ("from .. import one", {"one.py": ""}, ""),  # outside of the folder
    ("def f():\n  import one", {"one.py": ""}, "one.py"),
    ('import_module("one")', {"one.py": ""}, "one.py"),
    ('importlib.import_module("one")', {"one.py": ""}, "one.py"),
    ('__import__("one")', {"one.py": ""}, "one.py"),
    ('print("one")', {"one.py": ""}, ""),
    ("import_module(1)", {"one.py": ""}, ""),
    ("import_module(name)", {"one.py": "", "name.py": ""}, ""),
    ("no Python in one word", {"one.py": "", "two.py": ""}, "one.py"),
    ("import none", {"one.py": ""}, ""),
    (";\n(import one)", {"one.py": ""}, "one.py"),
    (";\n(import one [two] three)", {"one/two.py": "", "three.hy": ""}, "one/two.py three.hy"),
    (";\n(require one [two])", {"one.hy": ""}, "one.hy"),
    (";\n(import .one [two])", {"one/two.py": ""}, "one/two.py"),
    (";\n(import . [one])", {"one.py": ""}, "one.py"),
    (";\n(import my-one)", {"my_one.py": ""}, "my_one.py"),
    (";\n(do (import one.two))", {"one/two.py": ""}, "one/two.py"),
    (";\n(hy.I.one.f)", {"one.py": ""}, "one.py"),
    (";\n(hy.R.one/two.f)", {"one/two.hy": ""}, "one/two.hy"),
    (';\n(import-module "one")', {"one.py": ""}, "one.py"),
    (';\n(importlib.import-module "one")', {"one.py": ""}, "one.py"),
    (';\n(print "one")', {"one.py": ""}, ""),
    (";\n(print one)", {"one.py": ""}, ""),
    (';\n([import] "one")', {"one.py": ""}, ""),
    (";\n(import one", {"one.py": ""}, "one.py"),
]


@pytest.mark.parametrize(("text", "others", "found"), FOUND)
def test_what_a_file_imports_of_the_users_own_is_found(
    text: str, others: dict[str, str], found: str, tmp_path: Path
) -> None:
    name = "tool.hy" if text.startswith(";") else "tool.py"
    files(tmp_path / "here", {name: text, **others})
    start = (tmp_path / "here" / name).resolve()
    beside = sorted(str(path.relative_to(start.parent)) for path in local_files(start) - {start})
    assert " ".join(beside) == found


def test_a_module_above_is_found_by_its_dots(tmp_path: Path) -> None:
    text = "from ... import one\nfrom .. import two"
    files(
        tmp_path, {"a/b/c/tool.py": text, "a/one.py": "", "a/b/two.py": "", "two.py": "", "a/b/c/one.py": ""}
    )
    found = local_files(tmp_path / "a/b/c/tool.py")
    shown = {path.relative_to(tmp_path.resolve()).as_posix() for path in found}
    assert shown == {"a/b/c/tool.py", "a/one.py", "a/b/two.py"}


def test_as_many_files_as_may_be_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, {f"m{number}.py": f"import m{number + 1}" for number in range(5)})
    monkeypatch.setattr("quoth.tools.registry.code_version.MAX_FILES", 3)
    assert len(local_files(tmp_path / "m0.py")) == 3


def test_an_error_is_placed_in_the_users_own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(tmp_path, {"own_code.py": "import json\ndef f(x):\n    return json.loads(x)\n"})
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module("own_code")
    assert place_of_function(module.f) == "own_code.py:2"
    assert place_of_function(partial(module.f, 1)) == "own_code.py:2"
    assert [place_of_function(one) for one in (None, len, partial(len), importlib.import_module)] == [""] * 4
    with pytest.raises(ValueError, match="Expecting") as caught:
        module.f("{")
    assert place_of_error(caught.value) == "own_code.py:3"
    said = users_traceback(caught.value)
    assert said.startswith("Traceback (most recent call last):")
    assert "json/decoder.py" in said
    with pytest.raises(ZeroDivisionError) as other:
        eval(compile("1 / 0", "<none>", "exec"), {})
    assert place_of_error(ValueError()) == ""
    assert "ZeroDivisionError" in users_traceback(other.value)


def test_a_module_without_a_file_and_our_own_have_no_code() -> None:
    assert [code_of(name) for name in ("none.such", "builtins", "json", "quoth.tools.text")] == [""] * 4
    assert [bool(own_code(name)) for name in ("none.such", "builtins", "quoth.tools.text")] == [
        False,
        False,
        True,
    ]
