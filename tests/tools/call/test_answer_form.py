"""Which words fill in a form, and which forms may be asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from quoth.tools.call.answer_form import MAX_FIELDS, read_form
from quoth.tools.call.question import Question, marked, question_in
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm

SIZE = {"type": "string", "title": "Size", "enum": ["small", "large"], "default": "small"}
GIFT = {"type": "boolean", "default": False}
COUNT = {"type": "integer", "minimum": 1, "maximum": 9}
NOTE = {"type": "string", "minLength": 2, "maxLength": 20}
COLOURS = {"type": "array", "items": {"enum": ["red", "green", "blue"]}, "maxItems": 2}
TITLED = {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}


def _schema(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required]}


ORDER = _schema("size", "count", size=SIZE, gift=GIFT, count=COUNT, note=NOTE, colours=COLOURS)


def _answer(schema: dict[str, Any], said: str) -> Any:
    form = read_form(schema)
    found = form.answer(said)
    assert form.answer(found) == found  # it may be read twice
    return found if found == "decline" else json.loads(found)["accept"]


@pytest.mark.parametrize(
    ("schema", "said", "content"),
    [
        (_schema("size", size=SIZE), "large", {"size": "large"}),
        (_schema("size", size=SIZE), "2", {"size": "large"}),
        (_schema("size", size=SIZE), "size=large", {"size": "large"}),
        (_schema("size", size=SIZE), "defaults", {"size": "small"}),
        (_schema("size", size=SIZE), "3", "decline"),
        (_schema("size", size=TITLED), "Large", {"size": "l"}),
        (_schema("size", size=TITLED), "l", {"size": "l"}),
        (_schema("size", size={"enum": ["2", "1"], "type": "string"}), "1", {"size": "1"}),
        (_schema("gift", gift=GIFT), "Yes", {"gift": True}),
        (_schema("note", note=NOTE), "two words", {"note": "two words"}),
        (_schema("note", note=NOTE), "a=b", {"note": "a=b"}),
        (_schema("note", note=NOTE), '{"note": "decline"}', {"note": "decline"}),
        (_schema("note", note=NOTE), "decline", "decline"),
        (_schema(), "accept", {}),
        (_schema(), "1", {}),
        (_schema(), "2", "decline"),
        (ORDER, "count=3", {"size": "small", "gift": False, "count": 3}),
        (
            ORDER,
            "count=3 note=two words size=large colours=red, blue",
            {"size": "large", "gift": False, "count": 3, "note": "two words", "colours": ["red", "blue"]},
        ),
        (ORDER, '{"count": 3, "gift": true}', {"size": "small", "gift": True, "count": 3}),
        (ORDER, 'count=3 note="a=b"', {"size": "small", "gift": False, "count": 3, "note": "a=b"}),
        (_schema("rate", rate={"type": "number"}), "0.5", {"rate": 0.5}),
        (_schema("day", day={"type": "string", "format": "date"}), "2026-11-30", {"day": "2026-11-30"}),
    ],
)
def test_words_fill_in_a_form(schema: dict[str, Any], said: str, content: Any) -> None:
    assert _answer(schema, said) == content


@pytest.mark.parametrize(
    ("schema", "said", "sentence"),
    [
        (_schema("size", size=SIZE), "larg", "There is no choice larg. Did you mean large?"),
        (_schema("gift", gift=GIFT), "perhaps", "gift must be yes or no, not perhaps."),
        (_schema("note", note=NOTE), "x", "note must be at least 2 characters, not x."),
        (_schema("n", n=COUNT), "12", "n must be at most 9, not 12."),
        (_schema("n", n=COUNT), "1.5", "n must be a whole number, not 1.5."),
        (_schema("n", n={"type": "number"}), "nan", "n must be a number, not nan."),
        (_schema("mail", mail={"type": "string", "format": "email"}), "me", "in the format email, not me."),
        (ORDER, "defaults", "count is missing: count: whole number, at least 1, at most 9"),
        (ORDER, "three", "An answer must be size=… gift=… count=… note=… colours=…, or decline."),
        (ORDER, "cuont=3", "There is no field cuont. Did you mean count?"),
        (ORDER, "count=3 count=4", "count is given twice."),
        (ORDER, "count=3 colours=red,green,blue", "colours must be at most 2 choices"),
        (ORDER, '{"count": true}', "count must be a whole number, not true."),
        (ORDER, '{"count": 3', "The answer is not a JSON object"),
        (ORDER, '{"counts": 3}', "There is no field counts. Did you mean count?"),
    ],
)
def test_words_that_do_not_fit_are_refused(schema: dict[str, Any], said: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        _answer(schema, said)
    assert sentence in str(refused.value)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"type": "array"}, "the form is not an object with properties"),
        (
            _schema(a={"type": "object", "properties": {}}),
            "a is not a text, a number, yes or no, or a choice",
        ),
        (_schema(a={"type": "array", "items": {"type": "string"}}), "the field a is a list without choices"),
        (_schema(a={"type": "array", "items": {"enum": "abc"}}), "the field a is a list without choices"),
        (_schema(a=NOTE) | {"required": 5}, "the form has a required that is not a list"),
        (_schema(**{f"a{n}": NOTE for n in range(MAX_FIELDS + 1)}), "the form has 21 fields"),
        (_schema(**{"a b": NOTE}), "the field a b has no name and type"),
        (_schema(a={"enum": [str(n) for n in range(101)]}), "the field a has 101 choices"),
        (_schema(a={"type": "string", "title": "x" * 20_000}), "more than 20,000 characters"),
    ],
)
def test_a_form_that_is_not_flat_is_not_asked(schema: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_form(schema)
    assert reason in str(refused.value)


def test_a_form_is_shown_with_its_titles_bounds_and_defaults() -> None:
    assert read_form(ORDER).rows == [
        "size (Size): small or large; default small",
        "gift: yes or no; default no",
        "count: whole number, at least 1, at most 9",
        "note: text, at least 2 characters, at most 20 characters; may be left out",
        "colours: some of red, green and blue, at most 2 choices; may be left out",
        "Answer size=… gift=… count=… note=… colours=…, or decline.",
    ]
    hidden = _schema(note={"type": "string", "title": "no\u202ete\nnext"})
    assert read_form(hidden).rows[0] == "note (note next): text; may be left out"
    assert read_form(_schema("gift", gift=GIFT)).choices == ("yes", "no", "decline")


def test_a_default_that_does_not_fit_is_left_out() -> None:
    assert read_form(_schema("n", n={**COUNT, "default": 99})).fields[0].default is None


def test_a_stored_question_has_its_form() -> None:
    asked = Question("Which?", ("small", "large", "decline"), form=_schema("size", size=SIZE))
    stored = str(marked(CallForm("shop--order", {"item": "tea"}), asked))
    assert question_in(stored) == ('(shop--order :item "tea")', asked)
    assert json.loads(asked.answer("2")) == {"accept": {"size": "large"}}


@pytest.mark.parametrize("bound", [float("inf"), float("-inf"), float("nan"), "9", True])
def test_a_bound_that_is_no_number_bounds_nothing(bound: Any) -> None:
    node = {"type": "number", "minimum": bound, "maximum": bound}
    assert read_form(_schema("a", a=node)).rows[0] == "a: number"
    assert _answer(_schema("a", a=node), "7") == {"a": 7}


def test_choices_that_are_no_list_are_none() -> None:
    assert read_form(_schema("a", a={"type": "string", "enum": 5})).rows[0] == "a: text"
