"""Fidelity: a call written in any dialect of text comes back with just the arguments that were written.

With QUOTH_BFCL set to a folder of the Berkeley leaderboard's files, over all its ground truth too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from functions import DIALECTS, Function, function, kebab_names, tag_line, truths
from hypothesis import given
from hypothesis import strategies as st

from quoth.neuro.reading.repair import KEYS
from quoth.neuro.reading.reply import read_reply
from quoth.tools.lisp.forms import CallForm

SAMPLE = Path(__file__).parents[1] / "data"
BFCL = os.environ.get("QUOTH_BFCL", "")
FOLDERS = [pytest.param(SAMPLE, id="sample"), *([pytest.param(Path(BFCL), id="bfcl")] if BFCL else [])]


def heard(text: str, known: str, tags: dict[str, str] | None = None) -> CallForm:
    """The one call of a reply, which was read without a fault and mended in its keys at most."""
    reading = read_reply(f"I look it up.\n\n{text}\n", [known], tags)
    assert reading.errors == []
    (call,) = reading.calls
    assert set(call.repairs) <= {KEYS}
    assert reading.text == "I look it up."
    return call.form


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_true_call_comes_back_from_each_dialect(dialect: str, folder: Path) -> None:
    count = 0
    for _, called, args in truths(folder):
        form = heard(DIALECTS[dialect](called.form(args)), called.tool.name)
        assert called.arguments(form) == args
        count += 1
    assert count > 15


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_true_call_of_one_text_comes_back_from_its_tag(folder: Path) -> None:
    count = 0
    for _, called, args in truths(folder):
        form = called.form(args)
        if called.tool.params and next(iter(form.args), "") == called.tool.params[0].name:
            line = tag_line(form)
            if line is not None:
                assert called.arguments(heard(line, "", {"PROBE": called.tool.name})) == args
                count += 1
    assert count > 2


def test_every_entry_of_the_sample_is_there_and_what_contradicts_its_doc_is_not() -> None:
    assert len({identity for identity, _, _ in truths(SAMPLE)}) == 16
    called = function({"name": "f", "description": "A function.", "parameters": NUMBERED})
    assert not called.contradicts({"n": 1})
    assert called.contradicts({"n": "1"})
    assert called.contradicts({})


NUMBERED = {
    "type": "dict",
    "properties": {"n": {"type": "integer", "description": "A number."}},
    "required": ["n"],
}


def test_odd_names_have_kebab_names_that_lead_back() -> None:
    table = kebab_names(["a.b", "a_b", "aB", "AB", "größe", "2nd", "_class", "class", "look up", "変"])
    assert list(table.values()) == [
        *("a-b", "a-b-2", "a-b-3", "ab", "gr-e", "the-2nd", "the-class", "the-class-2", "look-up", "the")
    ]


def anything() -> dict[str, Any]:
    names = ("text", "items", "table", "Any thing")
    properties = {name: {"type": "any", "description": "Anything."} for name in names}
    parameters = {"type": "dict", "properties": properties, "required": []}
    return {"name": "probe.it", "description": "Probe.", "parameters": parameters}


ANYTHING: Function = function(anything())
ODD = [
    "",
    " ",
    "007",
    "1.0",
    "-0",
    "true",
    "None",
    "nil",
    "NIL",
    "t",
    '"',
    "'",
    "\\",
    "\n",
    "a\r\nb",
    "(a)",
    "[",
    "{",
]
ODD += [
    "a, b",
    "x=1",
    ":key",
    "#'f",
    "”",
    "“a”",
    "```",
    "; a",
    "<tool_call>",
    "é🙂",
    "\u202e",
    "\x00",
    "\x85",
    "ſ",
]
TEXTS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@examples(2)
@given(st.dictionaries(st.sampled_from(list(ANYTHING.names)), DATA), st.sampled_from(list(DIALECTS)))
def test_any_arguments_come_back_from_each_dialect(args: dict[str, Any], dialect: str) -> None:
    form = heard(DIALECTS[dialect](ANYTHING.form(args)), ANYTHING.tool.name)
    found = ANYTHING.arguments(form)
    assert found == args
    assert repr(found) == repr({name: args[name] for name in found})  # 1 is not True, nor 1.0


def test_the_dialects_differ() -> None:
    form = ANYTHING.form({"text": "a"})
    assert len({write(form) for write in DIALECTS.values()}) == len(DIALECTS)
