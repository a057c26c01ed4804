"""The embedding model in the wheel: near in meaning is near in angle, and nothing of the package is run."""

from __future__ import annotations

import subprocess
import sys
from array import array

import pytest

from quoth.neuro.embed import wordllama
from quoth.neuro.embed.wordllama import DIMENSIONS, WEIGHTS, DataFile, WordLlama
from quoth.tools.errors import ToolError
from quoth.tools.installing import install_extra


def nearness(one: bytes, other: bytes) -> float:
    return sum(a * b for a, b in zip(array("f", one), array("f", other), strict=True))


async def test_texts_that_mean_the_same_are_near_each_other() -> None:
    model = WordLlama()
    car, automobile, poem = await model.embed(["repair the car", "the automobile broke \ud800", "a poem"])

    assert nearness(car, car) == pytest.approx(1, abs=1e-3)
    assert nearness(car, automobile) > nearness(car, poem) + 0.2
    assert len(car) == 4 * DIMENSIONS == 4 * model.dimensions
    assert await model.embed([]) == []
    assert await model.embed([""]) == [bytes(4 * DIMENSIONS)]


# The first six numbers that wordllama 0.4.0.post1 gives for these texts.
REFERENCE = {
    "repair the car": [-0.02816, 0.04097, -0.02287, -0.01922, -0.01588, -0.02366],
    "Größe 7 %: naïve": [-0.11561, 0.07968, 0.01023, -0.10807, 0.01355, 0.04329],
    "(defn f [x] (+ x 1))": [0.05961, -0.07298, -0.18556, -0.05457, 0.03449, -0.00597],
}


@pytest.mark.parametrize("text", REFERENCE)
async def test_a_vector_is_that_of_the_package_itself(text: str) -> None:
    (vector,) = await WordLlama().embed([text])

    assert list(array("f", vector)[:6]) == pytest.approx(REFERENCE[text], abs=1e-4)


def test_nothing_of_the_package_is_imported() -> None:
    code = (
        "import asyncio, sys; from quoth.neuro.embed.wordllama import WordLlama; "
        "asyncio.run(WordLlama().embed(['a car'])); "
        "print([m for m in sys.modules if m.partition('.')[0] in ('wordllama', 'safetensors', 'requests')])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert said == "[]\n"


@pytest.mark.parametrize(
    ("spoilt", "why"),
    [
        (DataFile("weights/none", WEIGHTS.sha256), "FileNotFoundError"),
        (DataFile(WEIGHTS.path, "0" * 64), "ValueError"),
    ],
)
async def test_files_that_are_not_the_known_ones_are_not_used(
    spoilt: DataFile, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wordllama, "WEIGHTS", spoilt)

    with pytest.raises(ToolError) as told:
        await WordLlama().embed(["text"])

    assert str(told.value) == (
        f"The embedding model of the package wordllama cannot be loaded ({why}); "
        f"install it again with {install_extra('vectors')}."
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
