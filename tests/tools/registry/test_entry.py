"""A tool is plain data and a tool again, and data that is none of ours is refused with its reason."""

from __future__ import annotations

import contextlib
import copy
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from random import Random
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from examples import examples
from generated_tools import a_call, a_tool, a_value
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel, ConfigDict, Field, Json, SecretStr, field_validator
from sentences import (
    AN_EXAMPLE_HAS_THE_UNKNOWN,
    EXAMPLES_CALL_THE_TOOL_ITSELF,
    HAS_MORE_THAN,
    IS_A_TEXT_NOT,
    IS_LONGER_THAN,
    IS_NESTED_DEEPER_THAN,
    IS_NOT_A_REGULAR_EXPRESSION,
    IS_NOT_OF_ITS_TYPE,
    IS_TRUE_OR_FALSE_NOT,
    IT_IS_CALLED_AS,
    THE_MODEL_CHOOSES_BY_IT,
    TIMEOUT_IS_A_NUMBER_OF,
)
from words import complaint, form, gateway, tool

from quoth.neuro.prompt.belt import VIEWS
from quoth.tools.errors import DefinitionError, InvalidCallError, QuothError
from quoth.tools.lisp.forms import CallForm, to_json
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.json_type import json_type, words
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool, schema_hash


class Item(BaseModel):
    """One thing."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=2)
    count: Annotated[int, Field(ge=1)] = 1
    sort: Literal["fruit", "nut"] = "fruit"
    note: str | None = None


class Basket(BaseModel):
    items: list[Item]

    @field_validator("items")
    @classmethod
    def few(cls, items: list[Item]) -> list[Item]:
        if len(items) > 2:
            raise ValueError("a basket holds two things")
        return items


def elsewhere(made: CognitiveTool) -> CognitiveTool:
    return entry_tool(json.loads(json.dumps(made.entry)), lambda: "there", remote="shop")


# A parameter that is a class

BASKET: dict[str, Any] = {"data": {"type": Basket}}
ITEM = '{"name" str  ["count" int = 1]  ["sort" "fruit" | "nut" = "fruit"]  ["note" str or None]}'
SHOWN = f'{{"items" list of {ITEM}}}'


def test_the_fields_of_a_class_are_shown_wherever_its_type_is() -> None:
    assert tool(params=BASKET).signature() == f"(probe :data {SHOWN})"


FAULTS: list[tuple[str, str]] = [
    ("(probe :data 2)", f":data should be {SHOWN}, not 2"),
    ("(probe :data {})", ':data["items"] is missing'),
    ('(probe :data {"items" [1]})', ':data["items"][0] should be a valid dictionary, not 1'),
    (
        '(probe :data {"items" [{"name" "a"  "count" 0  "sort" "x"  "z" 1}]})',
        ':data["items"][0]["name"] should have at least 2 characters, not "a"; '
        ':data["items"][0]["count"] should be greater than or equal to 1, not 0; '
        ':data["items"][0]["sort"] should be "fruit" | "nut", not "x"; '
        ':data["items"][0]["z"] is unknown',
    ),
    ('(probe :data {"items" [{"name" 5}]})', ':data["items"][0]["name"] should be a valid string, not 5'),
]


@pytest.mark.parametrize(("text", "sentence"), FAULTS)
def test_each_fault_inside_of_a_class_is_told_with_its_place(text: str, sentence: str) -> None:
    made = tool(params=BASKET)
    for one in (made, elsewhere(made)):
        assert complaint(InvalidCallError, lambda one=one: one.checked(form(text))) == f"probe: {sentence}."


def test_what_only_the_class_knows_is_told_where_the_class_is() -> None:
    three = form('(probe :data {"items" [{"name" "aa"} {"name" "bb"} {"name" "cc"}]})')
    made = tool(params=BASKET)
    said = complaint(InvalidCallError, lambda: made.checked(three))
    assert said == 'probe: :data["items"] is refused (a basket holds two things).'
    assert elsewhere(made).checked(three)[0].args["data"]["items"][2] == {"name": "cc"}
    secret = tool(params={"data": {"type": Basket, "secret": True}})
    said = complaint(InvalidCallError, lambda: secret.checked(three))
    assert said == 'probe: :data["items"] is refused.'


def test_the_body_gets_the_class_and_the_form_keeps_plain_data() -> None:
    text = '(probe :data {"items" [{"count" 2  "name" "aa"}]})'
    made = tool(params=BASKET)
    found, args = made.checked(form(text))
    assert args["data"] == {"items": [{"count": 2, "name": "aa"}]}
    assert made.python_values(args)["data"] == Basket(items=[Item(name="aa", count=2)])
    assert json.loads(json.dumps(to_json(found))) == {
        "tool": "probe",
        "args": {"data": {"items": [{"count": 2, "name": "aa"}]}},
    }


def test_the_default_of_a_class_is_shown_as_data_and_made_anew_for_each_call() -> None:
    made = tool(params={"data": {"type": Item, "default": Item(name="aa")}})
    default = '{"name" "aa"  "count" 1  "sort" "fruit"  "note" None}'
    assert made.signature().endswith(f" = {default}])")
    assert elsewhere(made).signature() == made.signature()
    first, second = (made.python_values(made.checked(form("(probe)"))[1])["data"] for _ in range(2))
    assert first == second == Item(name="aa")
    assert first is not second
    said = complaint(DefinitionError, lambda: tool(params={"data": {"type": Item, "default": {}}}))
    assert said.startswith(f"probe, parameter data: the default {{}} {IS_NOT_OF_ITS_TYPE}, {{")


def test_a_union_in_a_class_is_told_in_words() -> None:
    class Mixed(BaseModel):
        value: int | list[Item] | None = None

    made = tool(params={"data": {"type": Mixed}})
    said = complaint(InvalidCallError, lambda: made.checked(form('(probe :data {"value" "x"})')))
    inner = (
        'list of {"name" str  ["count" int = 1]  ["sort" "fruit" | "nut" = "fruit"]  ["note" str or None]}'
    )
    assert said == f'probe: :data["value"] should be int or {inner} or None, not "x".'


class Shelf(BaseModel):
    """A field of each kind that pydantic writes down otherwise than it keeps it."""

    since: datetime | None = None
    price: Decimal | None = None
    id: UUID | None = None
    tags: set[str] = set()
    pair: tuple[int, ...] = ()
    secret: SecretStr | None = None
    raw: Json[Any] | None = None
    stock: dict[Literal["a", "b"], int] = {}
    thing: Item | Basket | None = None
    amount: int = Field(1, alias="howMany")


def test_fields_of_any_kind_are_checked_as_they_are_written_and_made_by_the_class() -> None:
    data = {
        "since": "2026-03-01T00:00:00Z", "price": "1.50", "id": "12345678-1234-5678-1234-567812345678",
        "tags": ["a", "a"], "pair": [1, 2], "secret": "x", "raw": "[1]", "stock": {"a": 1},
        "thing": {"name": "aa"}, "howMany": 2,
    }  # fmt: skip
    made = tool(params={"data": {"type": Shelf}})
    call = CallForm("probe", {"data": data})
    assert made.checked(call)[0] == elsewhere(made).checked(call)[0] == call
    assert made.python_values(made.checked(call)[1])["data"] == Shelf.model_validate(data)
    odd = CallForm("probe", {"data": {"tags": "a", "pair": ["1"]}})
    said = complaint(InvalidCallError, lambda: made.checked(odd))
    assert said == complaint(InvalidCallError, lambda: elsewhere(made).checked(odd))
    assert said == (
        'probe: :data["tags"] should be a valid list, not [secret]; '  # one of its fields is a SecretStr
        ':data["pair"][0] should be a valid integer, not [secret].'
    )


# The schemas that are checked

WORDED: list[tuple[dict[str, Any], str]] = [
    ({}, "any"),
    ({"type": "array"}, "list"),
    ({"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]}, "[int str]"),
    ({"type": "object"}, "dict"),
    ({"type": "object", "additionalProperties": {"type": "number"}}, "dict of float"),
    ({"type": "object", "properties": {}, "additionalProperties": False}, "{}"),
    ({"enum": ["a", 1, None]}, '"a" | 1 | None'),
    ({"oneOf": [{"type": "boolean"}, {"const": "x"}]}, 'bool or "x"'),
]


@pytest.mark.parametrize(("schema", "text"), WORDED)
def test_a_schema_is_told_in_words(schema: dict[str, Any], text: str) -> None:
    assert words(json_type(schema).schema) == text


BEYOND: list[tuple[Any, str]] = [
    ({"$ref": "#/x"}, 'the JSON Schema {"$ref" "#/x"} has the keyword "$ref", which is not supported.'),
    (
        {"type": "string", "if": {}},
        'the JSON Schema {"type" "string"  "if" {}} has the keyword "if", which is',
    ),
    ({"type": "text"}, 'the JSON Schema {"type" "text"} has an unknown type.'),
    ({"type": ["string"]}, 'the JSON Schema {"type" ["string"]} has an unknown type.'),
    ({"type": "array", "items": 5}, "the JSON Schema 5 is not valid."),
    (
        {"type": "array", "minItems": -1},
        'the JSON Schema {"type" "array"  "minItems" -1} has no size in minItems.',
    ),
    ({"type": "array", "minItems": True}, "has no number in minItems."),
    ({"type": "array", "prefixItems": []}, "has no list in prefixItems."),
    ({"type": "integer", "minimum": 0.5}, "cannot be checked ("),
    ({"type": "integer", "multipleOf": 0}, "has no multipleOf above 0."),
    ({"type": "number", "maximum": float("nan")}, "has no number in maximum."),
    ({"type": "object", "properties": []}, "has properties that are not a dictionary."),
    ({"type": "object", "required": ["a"]}, "requires an undeclared property."),
    ({"type": "object", "required": [[]]}, "requires an undeclared property."),
    ({"enum": []}, "has values other than texts and numbers."),
    ({"enum": [{}]}, "has values other than texts and numbers."),
    ({"anyOf": []}, "has no list in anyOf."),
    ({"type": "string", "pattern": 5}, "has a pattern that is not a text."),
    ({"type": "string", "pattern": "("}, f"( {IS_NOT_A_REGULAR_EXPRESSION}: missing ) at position 1."),
    ({"type": "string", "pattern": "(?R)"}, "(?R) calls itself; write it without recursion."),
    (
        {"type": "string", "pattern": "((a{999}){999}){9}"},
        "((a{999}){999}){9} repeats too much; use smaller counts.",
    ),
    ({"type": "string", "pattern": "a" * 3000}, f"The pattern {IS_LONGER_THAN} 2000 characters."),
]


@pytest.mark.parametrize(("schema", "sentence"), BEYOND)
def test_a_schema_beyond_that_is_refused(schema: Any, sentence: str) -> None:
    assert sentence in complaint(DefinitionError, lambda: json_type(schema))


@pytest.mark.parametrize("pattern", ["^[a-z]+$", "^(?=[a-z]+$)"])
def test_a_pattern_is_looked_for_whether_or_not_it_looks_around(pattern: str) -> None:
    class Named(BaseModel):
        name: str = Field(json_schema_extra={"pattern": pattern})

    made = tool(params={"data": {"type": Named}})
    assert made.checked(form('(probe :data {"name" "abc"})'))
    said = complaint(InvalidCallError, lambda: made.checked(form('(probe :data {"name" "A"})')))
    assert said == f'probe: :data["name"] should match pattern \'{pattern}\', not "A".'


def test_a_pattern_that_takes_too_long_ends_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.registry.json_type.MATCH_SECONDS", 0.01)

    class Named(BaseModel):
        names: list[Annotated[str, Field(json_schema_extra={"pattern": "(?!x)(a|a)+$"})]]

    made = tool(params={"data": {"type": Named}})
    slow = CallForm("probe", {"data": {"names": ["a" * 40 + "b"] * 1000}})
    said = complaint(InvalidCallError, lambda: made.checked(slow))
    assert said == "probe: it takes too long to look for (?!x)(a|a)+$ in it."


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        (list[Code], "a form cannot be inside another type."),
        (
            list[Annotated[WorkspacePath, Field(min_length=2)]],
            "a path has no bounds of its own; check it in the guard.",
        ),
    ],
)
def test_what_cannot_stand_in_a_type_is_refused(kind: Any, sentence: str) -> None:
    said = complaint(DefinitionError, lambda: tool(params={"x": {"type": kind}}))
    assert said == f"probe, parameter x: {sentence}"


def test_a_class_without_a_json_schema_is_refused() -> None:
    class Odd(BaseModel):
        model_config = ConfigDict(arbitrary_types_allowed=True)
        call: Callable[[], int]

    said = complaint(DefinitionError, lambda: tool(params={"x": {"type": Odd}}))
    assert "Callable (the field call of Odd)" in said


class Login(BaseModel):
    name: str
    passwords: list[SecretStr] = []


@pytest.mark.parametrize("kind", [SecretStr, SecretStr | None, Login, dict[str, list[Login]]])
def test_a_type_that_hides_its_values_makes_a_secret(kind: Any) -> None:
    assert tool(params={"x": {"type": kind}}).entry["params"][0]["secret"] is True
    assert "secret" not in tool(params={"x": {"type": Basket}}).entry["params"][0]


def test_a_type_that_hides_its_values_is_not_written_down() -> None:
    gate = gateway(tool(body=lambda x: x.get_secret_value() == "xyzzy", params={"x": {"type": SecretStr}}))
    assert gate.pass_through('(probe :x "xyzzy")').value is True
    assert gate.rows[0]["form"] == '(probe :x "[secret]")'


def test_a_type_that_hides_its_values_has_no_default_to_show() -> None:
    said = complaint(DefinitionError, lambda: tool(params={"x": {"type": Login, "default": Login(name="a")}}))
    assert said == "probe, parameter x: a secret of its own type can have no :default but None."
    assert tool(params={"x": {"type": SecretStr | None, "default": None}}).params[0].default is None


def test_what_the_class_itself_refuses_is_told_in_its_words() -> None:
    made = tool(params={"x": {"type": AnyUrl}})
    said = complaint(InvalidCallError, lambda: made.checked(form('(probe :x "y")')))
    assert said == 'probe: :x should be a valid URL, relative URL without a base, not "y".'


# Entries that are wrong


def entry(**changes: Any) -> dict[str, Any]:
    made = tool(params={"a": {"type": int, "min": 1}}, effects=["reads"], tag="TAG")
    return copy.deepcopy(made.entry) | changes


def without(key: str) -> dict[str, Any]:
    found = entry()
    del found[key]
    return found


def param(**changes: Any) -> dict[str, Any]:
    return entry(params=[{"name": "a", "type": "int"} | changes])


def nested(depth: int) -> Any:
    return {"list": nested(depth - 1)} if depth else "int"


def some_places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all that a value holds."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        yield (*way, key)
        yield from some_places(inner, (*way, key))


ODD = [
    -1, 10**400, float("nan"), float("inf"), True, b"x", "str", "form", "path", "((", "$ref", {}, [],
    {"list": "form"}, {"schema": {"type": "string", "pattern": "(a+)+$"}}, {"schema": {"minimum": 1e308}},
]  # fmt: skip


@examples(1)
@given(st.randoms(use_true_random=True))
def test_an_entry_with_anything_changed_is_a_tool_or_is_refused(chance: Random) -> None:
    right = a_tool(chance).entry
    for _ in range(5):
        wrong = copy.deepcopy(right)
        *way, last = chance.choice(list(some_places(wrong)))
        node = wrong
        for key in way:
            node = node[key]
        node[last] = chance.choice([*ODD, a_value(chance)])
        try:
            made = entry_tool(wrong, lambda: None)
        except QuothError:
            continue
        for show in VIEWS.values():
            show(ToolTable((made,)))
        with contextlib.suppress(InvalidCallError):
            made.checked(a_call(chance, made))


NAMELESS = "An entry of a catalog needs a tool's name, and this has none: "
HOSTILE: list[tuple[Any, str]] = [
    (None, NAMELESS + "None."),
    ([1], NAMELESS + "[1]."),
    ({}, NAMELESS + "{}."),
    ({"name": "Bad\x1b[2J"}, NAMELESS + '{"name" "Bad\\x1b[2J"}.'),
    ({"name": "x" * 300}, NAMELESS + '{"name" "xxx'),
    (entry(colour="red"), 'there is no field "colour".'),
    (entry(examlpes=[]), 'there is no field "examlpes". Did you mean examples?'),
    (without("cost"), "the field cost is missing."),
    (without("version"), "the field version is missing."),
    (entry(description=5), f"description {IS_A_TEXT_NOT} 5."),
    (entry(description=" "), f"needs a description: {THE_MODEL_CHOOSES_BY_IT}."),
    (entry(effects="reads"), 'effects is a list, each item a text, not "reads".'),
    (entry(effects=["nothing"]), "unknown effect :nothing; the effects are :reads,"),
    (entry(guarded=1), f"guarded {IS_TRUE_OR_FALSE_NOT} 1."),
    (entry(timeout=True), "timeout is a number, not True."),
    (entry(timeout=-1), f":{TIMEOUT_IS_A_NUMBER_OF}."),
    (entry(timeout=float("nan")), f":{TIMEOUT_IS_A_NUMBER_OF}."),
    (entry(daily_limit=1.5), "daily_limit is a whole number, not 1.5."),
    (entry(gate_failure="ajar"), ":gate-failure is :closed or :open."),
    (entry(tag={"prefix": "TAG", "pattern": "("}), f":tag: ( {IS_NOT_A_REGULAR_EXPRESSION}:"),
    (entry(tag={"prefix": "TAG", "colour": 1}), ":tag: there is no option :colour;"),
    (entry(users="ann"), 'users is a list, each item a text, not "ann".'),
    (entry(params=[5]), "params is a list, each item a dictionary, not [5]."),
    (
        entry(parameters={"type": "object", "properties": {"b": {}}}),
        "parameters has other properties than its params.",
    ),
    (entry(examples=["(other :a 1)"]), f"an example calls other; {EXAMPLES_CALL_THE_TOOL_ITSELF}."),
    (entry(examples=["(probe :b 1)"]), f"{AN_EXAMPLE_HAS_THE_UNKNOWN} :b."),
    (entry(examples=["(probe"]), "line 1"),
    (param(name="A"), '"A" is not a parameter name.'),
    (param(name=None), "None is not a parameter name."),
    (param(name="ctx"), "parameter ctx: ctx is reserved; choose another name."),
    (param(own="os.system"), 'parameter a: there is no field "own".'),
    (param(type="os.system"), 'parameter a: "os.system" is not a type for a parameter.'),
    (param(type=5), "parameter a: type is a text or a dictionary, not 5."),
    (
        param(type={"list": "int", "x": 1}),
        'parameter a: {"list" "int"  "x" 1} is not a type for a parameter.',
    ),
    (param(type={"list": ["int"]}), 'parameter a: ["int"] is not a type for a parameter.'),
    (param(type={"union": []}), 'parameter a: {"union" []} is not a type for a parameter.'),
    (param(type={"literal": [[]]}), 'parameter a: {"literal" [[]]} is not a type for a parameter.'),
    (param(type={"dict": ["path", "int"]}), "parameter a: a path is a key of a dictionary here,"),
    (
        param(type={"schema": {"$ref": "x"}}),
        'parameter a: the JSON Schema {"$ref" "x"} has the keyword "$ref",',
    ),
    (param(type={"list": "form"}), "parameter a: a form cannot be inside another type."),
    (param(min="1"), 'parameter a: min is a number, not "1".'),
    (param(min=float("nan")), "parameter a: :min is a number, not NaN."),
    (param(choices=[[]]), f"parameter a: the choice [] {IS_NOT_OF_ITS_TYPE}, int."),
    (param(hidden=True), "parameter a: a :hidden parameter needs a :default,"),
    (entry(description=b"x"), "it contains a value that is not JSON data."),
    (entry(tag={5: "x"}), "it contains a value that is not JSON data."),
    (entry(parameters={"properties": {"a": {"description": 5}}}), 'the JSON Schema {"properties" '),
    (entry(parameters={"type": "object", "properties": {"a": {"description": 5}}}), 'the JSON Schema {"desc'),
    (param(type=nested(70)), f"it {IS_NESTED_DEEPER_THAN} 60."),
    (
        entry(description="x", tag={"prefix": "TAG", "groups": ["a"] * 30_000}),
        f"it {HAS_MORE_THAN} 20,000 values.",
    ),
]


@pytest.mark.parametrize(("data", "sentence"), HOSTILE)
def test_an_entry_that_is_wrong_is_refused_with_its_tool_and_field(data: Any, sentence: str) -> None:
    said = complaint(QuothError, lambda: entry_tool(data, lambda: None))
    assert said.startswith(
        sentence if sentence.startswith(NAMELESS) else f"The entry of the tool probe: {sentence}"
    )


def test_the_entry_those_are_made_of_is_right() -> None:
    assert entry_tool(entry(), lambda: None).entry == entry()
    assert entry_tool(param(), lambda: None).signature() == "(probe :a int)"


# What becomes of it


def test_a_rebuilt_tool_passes_a_door_with_its_own_body_and_without_the_guard() -> None:
    there = elsewhere(tool(guard=lambda: False, params={"a": {"type": int}}))
    assert (there.remote, there.guarded, there.ships) == ("shop", True, False)
    assert gateway(there).pass_through("(probe :a 1)").value == "there"
    assert gateway(there).pass_through('(probe :a "1")').message == (
        f'probe: :a should be int, not "1". {IT_IS_CALLED_AS} (probe :a int).'
    )


def test_the_version_of_the_code_is_kept_and_is_no_part_of_the_hash() -> None:
    one, other = tool(source="(a)"), tool(source="(b)")
    assert elsewhere(one).version == one.version != other.version
    in_another_order = dict(reversed(other.entry.items()))
    there = ToolTable((elsewhere(other),))
    assert schema_hash([one.entry]) == schema_hash([in_another_order]) == there.schema_hash


def test_a_tool_of_another_machine_is_the_same_version_where_it_is_shown() -> None:
    """A sub-agent is shown tools that its caller is not."""
    there = tool("get-weather", lambda city: city, params={"city": {"type": str}}, shown=False)
    here = entry_tool(there.entry, body=lambda city: city, remote="far")
    shown = replace(here, shown=True)
    assert (shown.version, shown.outline, shown.schema) == (here.version, here.outline, here.schema)
    assert shown.entry == {**here.entry, "shown": True}


def test_who_may_use_a_tool_is_part_of_its_entry_and_of_the_hash() -> None:
    table = ToolTable((tool("a"), tool("b")))
    before = table.schema_hash
    table.permit({"a": ["ben", "ann", "ann"], "b": ["*", "ann"]})
    assert [one.get("users") for one in table.entries] == [["ann", "ben"], None]
    assert table.schema_hash == schema_hash(table.entries) != before
    assert (table.is_allowed("a", "ann"), table.is_allowed("a", "zoe"), table.is_allowed("B", "zoe")) == (
        True,
        False,
        True,
    )
    assert table.copy().permissions == table.permissions == {"a": ("ann", "ben")}
    assert table.where(lambda one: one.name == "b").permissions == {}
    table.permit({"a": ["*"]})
    assert table.schema_hash == before


def test_a_caller_waits_a_little_longer_than_the_body_may_run() -> None:
    there = entry_tool(entry(timeout=0.01), lambda: threading.Event().wait(0.05) or "late", patience=5)
    assert gateway(there).pass_through("(probe :a 1)").value == "late"
