"""The fuzz harness of the reader, in short: mutated markup is a call, an answer or a fault, and no call says
what its text does not."""

from __future__ import annotations

from typing import Any

import pytest
from families import KNOWN
from mutations import faults_of, fuzz

from quoth.neuro.reading.markup import Cursor
from quoth.neuro.reading.reply import read_reply


def test_mutated_markup_is_a_call_an_answer_or_a_fault_and_never_another_value() -> None:
    wrong: list[tuple[str, str]] = []
    kinds = fuzz(1500, 7, lambda fault, text: wrong.append((fault, text)))
    assert wrong == []
    assert set(kinds) == {"call", "answer", "fault", "nothing"}
    assert kinds["nothing"] < 60  # thoughts and marks alone
    assert kinds["call"] > 300


def test_the_harness_finds_a_value_that_was_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "<function=read-file>\n<parameter=path>\nnotes.txt\n</parameter>\n</function>"
    assert list(faults_of(text)) == []
    until: Any = Cursor.until
    monkeypatch.setattr(Cursor, "until", lambda self, *marks: until(self, *marks)[:-2])
    assert len(read_reply(text, KNOWN).calls) == 1
    assert list(faults_of(text)) == ["nobody says 'notes.tx'"]
