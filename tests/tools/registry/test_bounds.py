"""Second conditions of tools and their arguments, each by itself."""

from __future__ import annotations

import functools
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from sentences import IS_GIVEN_TWICE, IS_ONE_TOO_MANY, RETURNED_A_VALUE_IN_WHICH
from typing_extensions import TypedDict
from words import complaint, form, gateway, tool

from quoth.tools.errors import DefinitionError, InvalidCallError, ToolError
from quoth.tools.lisp.printer import MAX_DEPTH
from quoth.tools.registry.arguments import bind, own_names
from quoth.tools.registry.function import tool_of
from quoth.tools.registry.json_type import json_type
from quoth.tools.registry.param_types import (
    WorkspacePath,
    hides_paths,
    portable,
    type_data,
    type_name,
    type_of,
    with_paths,
)
from quoth.tools.registry.parameters import Param, is_plain
from quoth.tools.registry.returns import Returns, declared_returns, free_text_words, returns_of_data
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import _is_name

PARAMS = [Param("a"), Param("b"), Param("of", wire="OF"), Param("c", hidden=True)]


@pytest.mark.parametrize(
    ("args", "positional", "bound"),
    [
        ({}, (1, 2), {"a": 1, "b": 2}),
        ({"a": 1}, (2, 3), {"a": 1, "b": 2, "of": 3}),
        ({"OF": 1}, (), {"of": 1}),
        ({"c": 1}, (2, 3, 4), {"c": 1, "a": 2, "b": 3, "of": 4}),
    ],
)
def test_positional_arguments_fill_what_is_offered(args: Any, positional: Any, bound: Any) -> None:
    assert bind("t", PARAMS, args, positional) == bound


@pytest.mark.parametrize(
    ("args", "positional", "said"),
    [
        ({}, (1, 2, 3, 4), f"t takes 3 arguments; 4 {IS_ONE_TOO_MANY}."),
        ({"a": 0}, (1, 2, 3), f"t takes 3 arguments; 3 {IS_ONE_TOO_MANY}."),
        ({"OF": 1, "of": 2}, (), f"t: :of {IS_GIVEN_TWICE}."),
        ({"a_b": 1, "a-b": 2}, (), f"t: :a-b {IS_GIVEN_TWICE}."),
    ],
)
def test_an_argument_too_many_is_told(args: Any, positional: Any, said: str) -> None:
    assert complaint(InvalidCallError, lambda: bind("t", PARAMS, args, positional)) == said


def test_without_wire_names_a_name_is_given_once_too() -> None:
    assert own_names("t", [Param("a-b")], {"a_b": 1}) == {"a-b": 1}
    said = complaint(InvalidCallError, lambda: own_names("t", [Param("a-b")], {"a_b": 1, "a-b": 2}))
    assert said == f"t: :a-b {IS_GIVEN_TWICE}."


@dataclass
class Place:
    where: WorkspacePath


@dataclass
class Loop:
    again: Loop | None
    where: list[WorkspacePath] | None = None


@dataclass
class Plain:
    text: str


@pytest.mark.parametrize(
    ("hint", "hides"),
    [
        (str, False),
        (WorkspacePath, False),
        (list[WorkspacePath], False),
        (dict[str, WorkspacePath], False),
        (dict[WorkspacePath, str], True),
        (list[dict[WorkspacePath, str]], True),
        (Place, False),
        (dict[str, dict[WorkspacePath, Place]], True),
        (Plain, False),
    ],
)
def test_a_path_is_hidden_where_it_is_not_resolved(hint: Any, hides: bool) -> None:
    assert hides_paths(portable(hint)) == hides


# Tools of functions


class Shop:
    """A shop."""

    def price(self, what: str) -> int:
        """The price."""
        return len(what)

    @staticmethod
    def opens(day: str) -> int:
        """The hour."""
        return len(day)


def pieces() -> Iterator[int]:
    """Pieces."""
    yield 1


def whole() -> Generator[int, None, str]:
    """The whole."""
    yield 1
    return "done"


def nothing() -> Generator[int, None, None]:
    """Nothing."""
    yield 1


def untyped(x):  # type: ignore[no-untyped-def]
    """Untyped."""
    yield x


@pytest.mark.parametrize(
    ("function", "returns"),
    [(pieces, "list of int"), (whole, "str"), (nothing, "list of int"), (Shop().price, "int")],
)
def test_a_tool_of_a_function_returns_what_it_says(function: Any, returns: str) -> None:
    declared = tool_of(function).returns
    assert declared is not None
    assert type_name(declared.type) == returns


def test_a_method_is_a_tool_where_it_is_bound() -> None:
    assert [param.name for param in tool_of(Shop().price).params] == ["what"]
    assert [param.name for param in tool_of(Shop.opens).params] == ["day"]
    partial = functools.partial(Shop().price, "apple")
    assert tool_of(partial).params == ()
    for wrong, said in (
        (Shop.price, "price is a method of Shop"),
        (Shop, "Shop is a class"),
        (1, "1 is not a function"),
        (lambda: 1, "A lambda has no name"),
    ):
        assert complaint(DefinitionError, lambda wrong=wrong: tool_of(wrong)).startswith(said)  # type: ignore[misc]


# What is told of a fault

FAULTS = [
    ({"type": list[int]}, '["a"]', ':x[0] should be a valid integer, not "a".'),
    ({"type": dict[str, int]}, '{"a" "b"}', ':x["a"] should be a valid integer, not "b".'),
    ({"type": list[int] | None}, '["a"]', ':x[0] should be a valid integer, not "a".'),
    ({"type": list[dict[str, int]]}, '[{"a" "b"}]', ':x[0]["a"] should be a valid integer, not "b".'),
    (
        {"type": dict[str, int]},
        f'{{"{"k" * 60}" "b"}}',
        f':x["{"k" * 38}…] should be a valid integer, not "b".',
    ),
]


@pytest.mark.parametrize(("spec", "value", "said"), FAULTS)
def test_the_place_of_a_fault_is_told(spec: dict[str, Any], value: str, said: str) -> None:
    here = gateway(tool(params={"x": spec}))
    assert said in here.pass_through(form(f"(probe :x {value})")).message


# Types as words and data

KINDS = [
    (str, "str", "str"),
    (WorkspacePath, "path", "path"),
    (list[int], "list of int", {"list": "int"}),
    (dict[str, int], "dict of int", {"dict": ["str", "int"]}),
    (str | None, "str or None", {"union": ["str", "None"]}),
    (Literal["a", 1], '"a" | 1', {"literal": ["a", 1]}),
    (json_type({"type": "array", "items": {"type": "string"}}), "list of str", None),
]


@pytest.mark.parametrize(("hint", "words", "data"), KINDS)
def test_a_type_is_told_in_words_and_as_data(hint: Any, words: str, data: Any) -> None:
    assert type_name(hint) == words
    told = type_data(hint)
    assert told == (data or {"schema": hint.schema})
    assert type_name(type_of(told)) == words


@pytest.mark.parametrize(
    "data",
    [
        "strs",
        {},
        {"list": "int", "dict": ["str", "int"]},
        {"list": "ints"},
        {"dict": ["str"]},
        {"dict": ["str", "int", "int"]},
        {"dict": "str"},
        {"union": []},
        {"literal": [1.5]},
        {"literal": []},
        {"schema": "str"},
        {"odd": ["str"]},
        ["str"],
    ],
)
def test_what_is_no_type_is_refused(data: Any) -> None:
    assert "is not a type for a parameter." in complaint(DefinitionError, lambda: type_of(data))


@pytest.mark.parametrize(
    ("hint", "value", "changed"),
    [
        (WorkspacePath, "a", "A"),
        (WorkspacePath, 1, 1),
        (WorkspacePath, WorkspacePath("a"), "a"),
        (str, "a", "a"),
        (list[WorkspacePath], ["a", "b"], ["A", "B"]),
        (list[WorkspacePath], "a", "a"),
        (dict[str, WorkspacePath], {"x": "a"}, {"x": "A"}),
        (dict[str, WorkspacePath], ["a"], ["a"]),
        (WorkspacePath | None, "a", "A"),
        (WorkspacePath | None, None, None),
        (list[str] | list[WorkspacePath], ["a"], ["A"]),
    ],
)
def test_each_path_of_a_value_is_changed(hint: Any, value: Any, changed: Any) -> None:
    assert with_paths(hint, value, str.upper) == changed


# What a tool returns


@dataclass
class Price:
    amount: int
    per: list[str]


@pytest.mark.parametrize(
    ("declared", "value", "wrong"),
    [
        (int, 1, ""),
        (int, True, "returned a bool, and it declares int."),
        (int, "1", "returned a str, and it declares int."),
        (bool, 1, "returned an int, and it declares bool."),
        (list[int], ["a"], f"{RETURNED_A_VALUE_IN_WHICH} [0] is a str, and it declares list of int."),
        (dict[str, list[int]], {"a": [1, "b"]}, '["a"][1] is a str'),
        (Price, Price(1, ["kg"]), ""),
        (list[int] | None, None, ""),
    ],
)
def test_a_value_is_of_the_type_that_its_tool_declares(declared: Any, value: Any, wrong: str) -> None:
    returns = declared_returns("probe", declared)
    assert returns is not None
    if wrong:
        assert wrong in complaint(ToolError, lambda: returns.check("probe", value))
    else:
        returns.check("probe", value)


def test_a_field_that_is_missing_is_named() -> None:
    class Item(TypedDict):
        name: str

    returns = declared_returns("probe", list[Item])
    assert returns is not None
    assert '[0]["name"] is missing' in complaint(ToolError, lambda: returns.check("probe", [{}]))


@pytest.mark.parametrize("data", [[], {}, {"doc": "d"}, {"type": "str", "doc": 1}])
def test_a_declaration_that_is_none_is_refused(data: Any) -> None:
    assert complaint(DefinitionError, lambda: returns_of_data(data)) == "returns is a dictionary with a type."
    assert returns_of_data({"type": "str", "doc": "d"}) == Returns(str, "d")


@pytest.mark.parametrize(
    ("declared", "said"),
    [(None, ""), (True, "all of its result"), (False, ""), ((), "nothing"), (("a", "b"), "a, b")],
)
def test_free_text_is_told_in_words(declared: Any, said: str) -> None:
    assert free_text_words(declared) == said


@pytest.mark.parametrize(("depth", "plain"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False)])
def test_data_is_plain_to_a_depth(depth: int, plain: bool) -> None:
    for wrap in (lambda value: [value], lambda value: {"a": value}, lambda value: (value,)):
        value: Any = 1
        for _ in range(depth):
            value = wrap(value)
        assert is_plain(value) == plain
    assert [is_plain(value) for value in ({1: 2}, {"a": {2}}, object(), None, True)] == [
        False,
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(("length", "taken"), [(200, True), (201, False)])
def test_a_name_of_another_machine_has_at_most_200_letters(length: int, taken: bool) -> None:
    assert _is_name("x" * length) == taken
    assert not _is_name("x y")
    assert not _is_name(1)


@pytest.mark.parametrize(
    ("params", "groups"),
    [
        ({"a": {}}, ("a",)),
        ({"a": {"default": ""}, "b": {}}, ("b",)),
        ({"a": {"default": ""}, "b": {"default": ""}}, ("a",)),
    ],
)
def test_a_tag_fills_the_first_parameter_that_is_needed(params: Any, groups: tuple[str, ...]) -> None:
    made = tool(params=params, tag={"prefix": "LOOK", "pattern": "(.+)"})
    assert made.tag is not None
    assert made.tag.groups == groups


def test_a_table_without_hidden_tools_is_the_whole_one() -> None:
    one, other = tool("one"), tool("other")
    table = ToolTable([one, other])
    assert table.hiding(["one"]).shown.names() == ["other"]
    assert table.hiding([]) is table.whole
    assert table.hiding(["one"]).hiding([]) is table.whole
    assert len(one.outline) == 16
