"""The code of a tool: its file and what that imports of the user's own, and nothing that is installed."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from words import files

from quoth.tools.registry.code_version import code_of


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
