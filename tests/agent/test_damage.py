"""One damaged byte of a store: no command shows a traceback (the harness is tests/vocabulary/damage.py)."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from damage import Damage, Shelf, damages
from sentences import WAS_CHANGED_AFTER_IT_WAS

CASES = 3


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    folder = tmp_path_factory.mktemp("shelf")
    with pytest.MonkeyPatch.context() as patch:
        for variable in ("QUOTH_STATE", "QUOTH_CONFIG"):  # the harness sets them
            patch.setenv(variable, str(folder))
        yield Shelf(folder)


def test_a_damaged_byte_is_a_sentence_for_every_command(shelf: Shelf) -> None:
    every = damages(shelf, seed=1, cases=0)
    assert len(every) > 150  # the story fills the tables
    chosen = random.Random(35).sample(every, CASES)
    assert [what for damage in chosen for what in shelf.wrong(damage)] == []


def test_verify_names_the_row_and_goes_on(shelf: Shelf) -> None:
    shelf.damaged(Damage("events", "form", "not UTF-8", 4))
    said = shelf.run("audit", "verify")
    assert said.code == 1
    (row,) = said.out.splitlines()
    assert row.startswith("Event s.")
    assert row.endswith(f" {WAS_CHANGED_AFTER_IT_WAS}.")
    place = row.split()[1]
    told = f"quoth: The store has a damaged text, which is not UTF-8: events.form of {place}."
    assert said.err.splitlines()[0] == told
