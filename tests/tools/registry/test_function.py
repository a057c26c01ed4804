"""A function is a tool: functions, methods, partials, closures, async functions and generators, as they are
written, with mistakes told as Python writes them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from words import agent, complaint, files, gateway, load

from quoth import (
    DefinitionError,
    Registry,
    StrictModel,
    ToolContext,
    cognitive_tool,
    define_tool,
    deny,
    tool_of,
)
from quoth.tools.errors import UsageError
from quoth.tools.registry.define import OPTIONS
from quoth.tools.registry.function import FunctionSettings, in_python
from quoth.tools.registry.table import ToolTable

pytestmark = pytest.mark.usefixtures("table")


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def price(fruit: str, amount: int = 1, *, unit: str = "EUR") -> str:
    """Say what a fruit costs.

    Args:
        fruit: Which
        amount: How many
        unit: In which money
    """
    return f"{amount} {fruit}: {amount} {unit}"


async def later(text: str) -> str:
    """Give it back."""
    return text


class Shop:
    """A shop, whose methods are tools."""

    def __init__(self, stock: dict[str, int]) -> None:
        self.stock = stock

    def count(self, fruit: str) -> int:
        """Count a fruit."""
        return self.stock[fruit]

    @cognitive_tool(effects="reads", guard=lambda fruit: deny("none today") if fruit == "durian" else True)
    def look(self, fruit: str, ctx: ToolContext) -> str:
        """Look at a fruit."""
        return f"{ctx.user}: {self.stock[fruit]}"

    @classmethod
    def name(cls) -> str:
        """Say its name."""
        return cls.__name__

    @staticmethod
    def greet(who: str) -> str:
        """Greet."""
        return f"Hello, {who}"


def scaled(factor: int) -> Callable[..., Any]:
    def scale(number: int) -> int:
        """Scale a number."""
        return factor * number

    return scale


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def log(*args: Any, **named: Any) -> Any:
        return ["logged", function(*args, **named)]

    return log


SHOP = Shop({"pear": 3})
CALLED: list[tuple[Any, str, Any]] = [
    (double, "(double 21)", 42),
    (SHOP.count, '(count "pear")', 3),
    (Shop.name, "(name)", "Shop"),
    (Shop.greet, '(greet "ann")', "Hello, ann"),
    (functools.partial(price, unit="CHF"), '(price "pear" 2)', "2 pear: 2 CHF"),
    (functools.partial(price, "fig"), "(price :amount 2)", "2 fig: 2 EUR"),
    (functools.partial(functools.partial(price, amount=4), unit="USD"), '(price "fig")', "4 fig: 4 USD"),
    (functools.partial(SHOP.count, "pear"), "(count)", 3),
    (scaled(5), "(scale 2)", 10),
    (later, '(later "a")', "a"),
    (functools.partial(later, text="b"), "(later)", "b"),
]


@pytest.mark.parametrize(("function", "call", "value"), CALLED, ids=[call for _, call, _ in CALLED])
def test_a_function_is_a_tool_as_it_is(tmp_path: Path, function: Any, call: str, value: Any) -> None:
    with agent(tmp_path, tools=[function]) as it:
        assert it.call(call).value == value
    with agent(tmp_path, tools=function) as it:
        assert it.call(call).value == value


def test_what_a_partial_fills_is_neither_shown_nor_taken() -> None:
    made = tool_of(functools.partial(price, unit="CHF"))
    assert made.signature() == "(price :fruit str [:amount int = 1])"
    assert [param.doc for param in made.params] == ["Which", "How many"]
    assert gateway(made).pass_through('(price "fig" :unit "EUR")').status == "invalid"


def test_a_decorated_function_stays_what_it_is(table: ToolTable) -> None:
    made = cognitive_tool(double)
    assert made is double
    assert made(21) == 42
    assert tool_of(double) is table.get("double")
    with agent(Path("."), tools=[double]) as it:
        assert it.table.get("double") is tool_of(double)


def test_a_decorated_method_is_a_tool_once_it_is_bound(tmp_path: Path, table: ToolTable) -> None:
    assert len(table) == 0
    made = tool_of(SHOP.look)
    assert (made.signature(), made.effects, made.guarded) == ("(look :fruit str)", ("reads",), True)
    with agent(tmp_path, tools=[SHOP.look], user="ann") as it:
        assert it.call('(look "pear")').value == "ann: 3"
        assert it.call('(look "durian")').message == "look was denied: none today."
    with pytest.raises(DefinitionError, match="look, parameter fruit: "):

        class Bad:
            @cognitive_tool
            def look(self, fruit) -> None:  # type: ignore[no-untyped-def]
                """Look."""


def test_a_decorated_method_keeps_its_options_where_it_is_decorated_bound(table: ToolTable) -> None:
    cognitive_tool(name="look-there")(SHOP.look)
    made = table.get("look-there")
    assert (made.effects, made.guarded) == (("reads",), True)


def test_a_table_takes_entries_and_says_how_to_get_one(table: ToolTable) -> None:
    said = complaint(DefinitionError, lambda: ToolTable([double]))  # type: ignore[list-item]
    assert said.endswith("is not the entry of a tool; write tool_of(double).")


def test_a_method_that_is_bound_can_be_decorated(table: ToolTable) -> None:
    count = cognitive_tool(name="count-it", effects="reads")(SHOP.count)
    assert count("pear") == 3
    assert tool_of(count) is table.get("count-it")


class Clerk:
    """What a partial may fill and JSON cannot write."""


def test_the_version_of_a_partial_is_of_what_it_fills() -> None:
    def version(*args: Any, **named: Any) -> str:
        return tool_of(functools.partial(price, *args, **named)).version

    fills = [
        version(unit="CHF"), version(unit="USD"), version("fig"), version("pear"), version(unit=None),
        version(unit=Clerk()), tool_of(functools.partial(price)).version,
    ]  # fmt: skip
    assert len({*fills}) == len(fills)
    wrapped = functools.update_wrapper(functools.partial(price, unit="USD"), price)
    assert tool_of(wrapped).version == version(unit="USD")
    assert version(unit=Clerk()) == version(unit=Clerk())
    assert version("fig") == version(fruit="fig")
    assert tool_of(functools.partial(price)).version == tool_of(price).version
    assert (
        tool_of(functools.partial(price, unit="CHF")).outline
        == tool_of(functools.partial(price, unit="USD")).outline
    )

    class Asked(StrictModel):
        text: str

    def asked(given: Asked, mark: str) -> str:
        """Ask."""
        return given.text + mark

    made = []
    for mark in "?!":
        registry = Registry()
        registry.register("ask-it", Asked)(functools.partial(asked, mark=mark))
        made.append(registry.table.get("ask-it").version)
    assert made[0] != made[1]


def test_a_partial_keeps_the_options_and_fills_the_guard_too() -> None:
    def judge(fruit: str, unit: str) -> Any:
        return deny("no francs") if unit == "CHF" else True

    cognitive_tool(effects=["pays"], guard=judge)(priced := functools.partial(price))
    made = tool_of(functools.partial(priced, unit="CHF"))
    assert made.effects == ("pays",)
    assert gateway(made).pass_through('(price "fig")').message == "price was denied: no francs."


def test_a_wrapper_around_a_decorated_function_is_what_runs() -> None:
    @logged
    @cognitive_tool(effects="reads")
    def probe(number: int) -> Any:
        """Probe."""
        return number

    made = tool_of(probe)
    assert made.effects == ("reads",)
    assert gateway(made).pass_through("(probe 1)").value == ["logged", 1]


def test_local_names_and_names_for_checkers_alone_are_found() -> None:
    class Point(StrictModel):
        x: int

    def move(to: Point, ctx: "Unimported") -> int:  # type: ignore[name-defined]  # noqa: F821, UP037
        """Move."""
        return to.x

    move.__annotations__["ctx"] = "ToolContext"
    assert gateway(tool_of(move)).pass_through('(move {"x" 3})').value == 3


REFUSED: list[tuple[Any, str]] = [
    (lambda number: number, "A lambda has no name, types or docstring; write the tool with def."),
    (functools.partial(lambda x: x, 1), "A lambda has no name, types or docstring; write the tool with def."),
    (Shop, "Shop is a class; a tool is a function, or a method: tools=[Shop().method]."),
    (math.hypot, "hypot: its parameters "),
]


@pytest.mark.parametrize(("function", "sentence"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_cannot_be_a_tool_is_refused_with_a_sentence(
    tmp_path: Path, function: Any, sentence: str
) -> None:
    assert complaint(DefinitionError, lambda: agent(tmp_path, tools=[function])).startswith(sentence)
    assert complaint(DefinitionError, lambda: cognitive_tool(function)).startswith(sentence)


def test_a_method_without_its_instance_is_refused(tmp_path: Path) -> None:
    for method in (Shop.count, functools.partial(Shop.count)):
        assert complaint(DefinitionError, lambda method=method: agent(tmp_path, tools=[method])) == (
            "count is a method of Shop and needs an instance: tools=[Shop().count]."
        )
    assert tool_of(functools.partial(Shop.count, SHOP, "pear")).name == "count"


def test_anything_else_is_no_source_of_tools(tmp_path: Path) -> None:
    said = complaint(UsageError, lambda: agent(tmp_path, tools=[3]))
    assert said == "3 is not a tool; tools are .hy and .py files, functions and methods."
    assert complaint(UsageError, lambda: agent(tmp_path, tools=3)).startswith("tools are files of tools,")


def typed(kind: Any) -> Callable[..., Any]:
    def probe(number: Any) -> None:
        """Probe."""

    probe.__annotations__["number"] = kind
    return probe


def decorated(**options: Any) -> None:
    cognitive_tool(**options)(double)


def needs_context(context: ToolContext) -> None:
    """Probe."""


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: tool_of(needs_context),
            "needs-context, parameter context: the ToolContext is given to the parameter named ctx.",
        ),
        (lambda: decorated(gate_failure="open!"), 'double: gate_failure is "closed" or "open".'),
        (lambda: decorated(effects="red"), 'double: unknown effect "red"; '),
        (lambda: decorated(effects=3), 'double: effects must be a list, such as ["reads"].'),
        (lambda: decorated(cost="dear"), 'double: cost is "free", "cheap" or "expensive", not "dear".'),
        (lambda: decorated(free_text=3), "double: free_text is True for all of the result, or"),
        (lambda: decorated(efects="reads"), "double: unknown option efects. Did you mean effects?"),
    ],
)
def test_a_mistake_is_told_in_the_words_of_python(make: Callable[[], Any], sentence: str) -> None:
    said = complaint(DefinitionError, make)
    assert said.startswith(sentence)
    assert "(get " not in said


def test_no_sentence_about_a_type_is_written_in_lisp() -> None:
    said = complaint(DefinitionError, lambda: tool_of(typed(type[int])))
    assert said.startswith("probe, parameter number: ")
    assert "list[str]" in said
    assert "(get" not in said


def test_words_of_python_leave_all_else_alone() -> None:
    said = in_python("a:b ::gate :nosuch :gate-failure of (f :x 1)")
    assert said == "a:b ::gate :nosuch gate_failure of (f :x 1)"


def test_a_mistake_tells_where_the_function_is() -> None:
    with pytest.raises(DefinitionError) as caught:
        tool_of(needs_context)
    assert caught.value.place is not None
    file, line, column = caught.value.place
    assert Path(file).read_text().splitlines()[line - 1][column - 1 :].startswith("context: ToolContext")
    place = f"tests/tools/registry/test_function.py:{line}"
    assert caught.value.__notes__ == [f"The function is defined at {place}."]


def test_examples_are_calls_or_dictionaries_of_arguments() -> None:
    examples = ["(double :number 1)", "double(2)", "double(number=3)", {"number": 4}]
    cognitive_tool(examples=examples)(double)
    assert [str(one) for one in tool_of(double).examples] == [
        "(double :number 1)",
        "(double 2)",
        "(double :number 3)",
        "(double :number 4)",
    ]
    cognitive_tool(examples="double(5)", replace=True)(double)
    assert [str(one) for one in tool_of(double).examples] == ["(double 5)"]
    for wrong, said in {
        "double(number=x)": "double: an example is a call with its values, such as double(number=…), or a ",
        "triple(1)": "double: an example ",
    }.items():
        assert complaint(DefinitionError, lambda: cognitive_tool(examples=[wrong])(double)).startswith(said)  # noqa: B023


def test_names_that_are_given_as_texts_are_normalised(tmp_path: Path, table: ToolTable) -> None:
    made = define_tool("Grep_It", "Look.", parameters={"raw_arg": {}}, body=lambda raw_arg: raw_arg)
    assert made.signature() == "(grep-it :raw-arg str)"
    assert gateway(made).pass_through('(grep-it :raw_arg "x")').value == "x"
    cognitive_tool(name="my_tool", tag={"prefix": "MY", "pattern": "(.+)", "groups": ["raw_arg"]})(raw)
    mine = tool_of(raw)
    assert (mine.name, mine.tag and mine.tag.groups) == ("my-tool", ("raw-arg",))
    hy = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool Grep-It "D." :body 1)\n'
    files(tmp_path, {"t.hy": hy})
    assert "grep-it" in load(tmp_path / "t.hy")
    registry = Registry()
    registry.register("my_model", Asked)(functools.partial(asked, mark="!"))
    assert registry.names() == ["my-model"]
    assert registry.dispatch("my_model", {"text": "a"}) == "a!"


class Asked(StrictModel):
    text: str


def asked(given: Asked, mark: str) -> str:
    """Ask."""
    return given.text + mark


def raw(raw_arg: str) -> str:
    """Give it back."""
    return raw_arg


def test_a_function_of_one_model_may_be_a_partial_and_stays_callable() -> None:
    registry = Registry()
    doubted = registry.register("doubt", Asked)(functools.partial(asked, mark="?"))
    assert registry.dispatch("doubt", {"text": "a"}) == "a?"
    assert doubted(Asked(text="b")) == "b?"
    assert tool_of(doubted) is registry.table.get("doubt")


def test_the_options_are_those_of_the_macro() -> None:
    options = get_type_hints(FunctionSettings).keys() - {"name", "description", "guard", "changes"}
    assert {name.replace("_", "-") for name in options} == {*OPTIONS}


def test_a_guard_judges_what_a_partial_fills_by_place_and_what_it_takes_by_any_name() -> None:
    def order(fruit: str, pieces: int = 1) -> str:
        "Order fruit."
        return f"{pieces} {fruit}"

    def by_name(fruit: str = "apple") -> Any:
        return deny("no durians") if fruit == "durian" else True

    def by_any(**args: Any) -> Any:
        return deny("no durians") if args["fruit"] == "durian" else True

    for guard in (by_name, by_any):
        cognitive_tool(effects="reads", guard=guard, replace=True)(ordered := functools.partial(order))
        assert gateway(tool_of(ordered)).pass_through('(order "durian")').status == "denied"
        assert gateway(tool_of(ordered)).pass_through('(order "fig")').status == "ok"
    cognitive_tool(effects="reads", guard=by_name, replace=True)(ordered := functools.partial(order))
    made = tool_of(functools.partial(ordered, "durian"))
    assert gateway(made).pass_through("(order)").status == "denied"
