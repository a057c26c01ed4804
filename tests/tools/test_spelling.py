"""The nearest name: the same as difflib's, of ten thousand names too, without comparing all of them."""

from __future__ import annotations

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.tools import spelling
from quoth.tools.spelling import Spelling

LETTERS = st.sampled_from(["ab", "abA-", "abcdefgh-"]).flatmap(lambda letters: st.text(letters, max_size=9))


@given(LETTERS, st.lists(LETTERS, max_size=12))
def test_the_nearest_is_that_of_difflib(word: str, names: list[str]) -> None:
    spelt = {name.lower(): name for name in names}
    close = difflib.get_close_matches(word.lower(), list(spelt), n=1)
    assert Spelling(names).nearest(word) == (spelt[close[0]] if close else None)


def test_of_thousands_few_are_compared_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    class Matcher(difflib.SequenceMatcher[str]):
        def ratio(self) -> float:
            compared.append(1)
            return super().ratio()

    names = [
        f"{verb}-{thing}-{part}" for verb in ("read", "make") for thing in "abcde" for part in range(300)
    ]
    known = Spelling(names)
    monkeypatch.setattr(spelling, "SequenceMatcher", Matcher)
    assert known.nearest("mak-b-217") == "make-b-217"
    assert known.nearest("zebra") is None
    assert len(compared) < len(names) / 100


def test_a_word_much_longer_than_all_names_is_near_to_none() -> None:
    assert Spelling(["read-file"]).nearest("read-file" * 10_000) is None
    assert Spelling([]).nearest("read-file") is None
