"""The embedding model in the wheel: near in meaning is near in angle, and nothing else is touched."""

from __future__ import annotations

import logging
import subprocess
import sys
from array import array

import pytest

from quoth.neuro.embed import wordllama
from quoth.neuro.embed.wordllama import DIMENSIONS, WordLlama
from quoth.tools.errors import ToolError


def nearness(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(array("f", one), array("f", other), strict=True))


async def test_texts_that_mean_the_same_are_near_each_other() -> None:
    logging_before = logging.getLogger().handlers[:]
    model = WordLlama()
    car, automobile, poem = await model.embed(["repair the car", "the automobile broke \ud800", "a poem"])

    assert nearness(car, car) == pytest.approx(1, abs=1e-3)
    assert nearness(car, automobile) > nearness(car, poem) + 0.2
    assert len(car) == 4 * DIMENSIONS == 4 * model.dimensions
    assert model.name.startswith("wordllama-0.")
    assert await model.embed([]) == []
    assert logging.getLogger().handlers == logging_before  # the package sets up its own


async def test_a_package_that_cannot_be_loaded_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)

    with pytest.raises(ToolError) as told:
        await WordLlama().embed(["text"])

    assert str(told.value) == (
        "The embedding model of the package wordllama cannot be loaded (ModuleNotFoundError); "
        "install it again with pip install 'quoth[vectors]'."
    )


def test_choosing_it_imports_neither_it_nor_numpy() -> None:
    code = (
        "import sys; from quoth.neuro.embed.select import choose_embedder; model = choose_embedder({}); "
        "print(model.name, model.dimensions, [m for m in ('numpy', 'wordllama', 'httpx')"
        " if m in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said.startswith("wordllama-")
    assert said.endswith(" 256 []\n")


def test_whether_it_is_installed_is_looked_up_without_importing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert wordllama.installed()
    monkeypatch.setattr(wordllama, "PACKAGE", "no_such_package")
    assert not wordllama.installed()
