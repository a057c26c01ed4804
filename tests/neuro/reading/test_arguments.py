"""Native arguments that a model misspelt are read where only one reading is left, and refused elsewhere."""

from __future__ import annotations

import json
import random
import string
from typing import Any

import pytest

from quoth.neuro.reading.json_calls import (
    ENCODED,
    NO_ARGUMENTS,
    bare_name,
    read_arguments,
    sound_arguments,
)
from quoth.neuro.reading.literals import (
    BARE_KEYS,
    LINE_BREAKS,
    PYTHON_WORDS,
    SINGLE_QUOTES,
    SMART_QUOTES,
    SPACES,
    TRAILING_COMMA,
    tail_repair,
)
from quoth.neuro.reading.markup import EXTRA, FENCED
from quoth.tools.errors import InvalidCallError

A = {"path": "a"}

READ: list[tuple[str, dict[str, Any], list[str]]] = [
    ('{"path": "a"}', A, []),
    ("", {}, []),
    (" \n", {}, []),
    ("null", {}, [NO_ARGUMENTS.format("null")]),
    ("[]", {}, [NO_ARGUMENTS.format("[]")]),
    ("{'path': 'a'}", A, [SINGLE_QUOTES]),
    ("{“path”: “a”}", A, [SMART_QUOTES]),
    ('{"path":"a",}', A, [TRAILING_COMMA]),
    ('{path: "a"}', A, [BARE_KEYS]),
    ('\ufeff{"path":\u00a0"a"\u2003}', A, [SPACES]),
    ('{"path": "\u00a0"}', {"path": "\u00a0"}, []),
    ('{"path": "a", "all": True}', {**A, "all": True}, [PYTHON_WORDS]),
    ('```json\n{"path":"a"}\n```', A, [FENCED]),
    ("```\n{'path':'a'}```", A, [FENCED, SINGLE_QUOTES]),
    ('{"path":"a"}}', A, [EXTRA.format("}")]),
    ('{"path":"a"} ]}', A, [EXTRA.format("]}")]),
    ('{"path":"a"', A, [tail_repair("}")]),
    ('{"paths":["a","b"', {"paths": ["a", "b"]}, [tail_repair("]}")]),
    ('{"in": {"path": "a"}', {"in": A}, [tail_repair("}")]),
    ('{"path":"a\nb"}', {"path": "a\nb"}, [LINE_BREAKS]),
    (json.dumps('{"path":"a"}'), A, [ENCODED]),
    (json.dumps(json.dumps('{"path":"a"}')), A, [ENCODED]),
    (json.dumps("{'path':'a'}"), A, [ENCODED, SINGLE_QUOTES]),
    (json.dumps(""), {}, [ENCODED]),
    ('{"path": "a ``` b"}', {"path": "a ``` b"}, []),
]


@pytest.mark.parametrize(("text", "values", "repairs"), READ)
def test_arguments_with_one_reading_are_read(text: str, values: dict[str, Any], repairs: list[str]) -> None:
    read = read_arguments(text)
    assert (read.values, list(read.repairs)) == (values, repairs)
    assert json.loads(sound_arguments(text) or "{}") == values


UNREAD = [
    '{"path": notes',
    '{"path": "a',  # the text may go on
    '{"path": "a", "limit"',
    '{"in": {"path": "a", "all": 1}',  # :all may stand in either
    '{"in": [{"path": "a", "all": 1}',
    '{"path":"a"}{"path":"b"}',
    '{"path":"a"} and more',
    '{"path": read("a")}',
    "{1: 2}",
    "[1]",
    "5",
    "true",
    "hello",
    json.dumps(json.dumps(json.dumps(json.dumps("{}")))),
    "{" * 1_000,
    "[" * 100_000,
]


@pytest.mark.parametrize("text", UNREAD, ids=lambda text: text[:20])
def test_other_arguments_stay_unread_and_go_back_as_they_came(text: str) -> None:
    with pytest.raises(InvalidCallError):
        read_arguments(text)
    assert sound_arguments(text) == text


def test_the_end_of_a_reply_that_was_cut_off_is_not_guessed() -> None:
    with pytest.raises(InvalidCallError):
        read_arguments('{"path":"a"', cut=True)
    assert sound_arguments('{"path":"a"', cut=True) == '{"path":"a"'


def test_arguments_with_a_fault_anywhere_give_the_same_values_or_none() -> None:
    """A property: one character is lost, doubled or replaced; what is read has each text that is left, and
    nothing is raised but the error."""
    chance = random.Random(37)
    own = {"path": "src/a.py", "limit": 5, "names": ["x", "y"], "in": {"deep": True}}
    text = json.dumps(own)
    for _ in range(5_000):
        at = chance.randrange(len(text))
        other = chance.choice(["", text[at] * 2, chance.choice(string.printable)])
        try:
            values = read_arguments(text[:at] + other + text[at + 1 :]).values
        except InvalidCallError:
            continue
        assert len(values) == len(own)


KNOWN = ["read-file", "functions.own", "api.call"]


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("read-file", "read-file"),
        ("Read_File", "Read_File"),
        ("functions.read_file", "read_file"),
        ("functions.read_file:0", "read_file"),
        ("default_api.read_file", "read_file"),
        ("tools.read-file", "read-file"),
        ("read_file<|channel|>commentary", "read_file"),
        ("functions.own", "functions.own"),  # a tool has the whole name
        ("api.call", "api.call"),
        ("functions.other", "other"),
        ("api.other", "api.other"),  # no tool has it in either way
        ("", ""),
    ],
)
def test_a_namespace_is_cut_where_no_tool_has_the_whole_name(name: str, bare: str) -> None:
    assert bare_name(name, KNOWN) == bare
