"""An answer from memory: who may give it, and whether it can be from there."""

from __future__ import annotations

from importlib import import_module

import pytest
from words import table_of

from quoth.neuro.prompt.grammar import grammar
from quoth.neuro.prompt.memory import FROM_MEMORY, is_from_memory, may_tell
from quoth.tools.registry.table import cognitive_tools

import_module("quoth.tools.builtin")

KNOWN = {
    "preferences": {"label": "preferences", "text": "User prefers dark mode\nTabs of width 4"},
    "human": {"label": "human", "text": "Name: Ann Petrov. Lives in Lisbon. Works as a nurse."},
    "project": {"label": "project", "text": "The release of Heron is due on 12 March. Its lead is Marta."},
}


@pytest.mark.parametrize(
    ("task", "answer", "is_there"),
    [
        ("What do I prefer?", "Dark mode.", True),
        ("Do I like dark or light mode?", "I like dark mode.", True),
        ("Who is she?", "Ann", True),
        ("How wide should tabs be?", "4", True),
        ("What is my job?", "You are a nurse.", True),
        ("When is Heron due?", "The release of Heron is due on 12 March.", True),
        ("Which file mentions Berlin?", 'Berlin is mentioned in the file "notes.txt".', False),
        ("Which files are here?", "README.org, setup.cfg", False),
        ("What is 1789 * 2347?", "400,003", False),
        ("When is Heron due?", "The release of Heron is due on 13 March.", False),
        ("Who leads it?", "I don't know.", False),
        ("Who leads it?", "", False),
    ],
)
def test_an_answer_can_only_be_from_memory_if_its_words_are_there(
    task: str, answer: str, is_there: bool
) -> None:
    assert is_from_memory(answer, KNOWN, task) == is_there


@pytest.mark.parametrize(
    ("task", "may"),
    [
        ("What do I prefer?", True),
        ("Is it 3.5 or 4?", True),
        ("What does notes.txt say?", False),
        ("Look into src/shop.", False),
    ],
)
def test_the_memory_does_not_tell_of_files(task: str, may: bool) -> None:
    assert may_tell(KNOWN, task) == may
    assert not may_tell({}, task)


def test_a_grammar_that_forbids_answers_may_allow_those_that_begin_so() -> None:
    table = table_of(cognitive_tools.get("read-file"))
    (root, *_) = grammar(table, may_answer=False, lead=FROM_MEMORY).splitlines()
    assert root == 'root ::= calls | "From memory: " words'
    assert grammar(table, lead=FROM_MEMORY) == grammar(table)
