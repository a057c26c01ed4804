"""Each type of Python as a parameter, a field, a default and a result: a call holds its JSON, in whatever
notation it comes, and the body gets its value."""

from __future__ import annotations

import enum
import json
import re
import sys
import typing
from collections.abc import Iterable
from dataclasses import dataclass, field, make_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType
from uuid import UUID

import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    FilePath,
    SecretStr,
    StringConstraints,
    Tag,
    create_model,
)
from sentences import CANNOT_BE_WRITTEN, IS_NOT_DEFINED
from typing_extensions import TypedDict
from words import complaint, files, form, gateway, load, tool

from quoth import StrictModel, cognitive_tool, inside_workspace, registering_in, tool_of
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import NativeCall
from quoth.neuro.prompt.dialects import CALL_FORM, NATIVE
from quoth.neuro.reading.tag_lines import tag_form
from quoth.tools.call.call import ToolResult
from quoth.tools.errors import DefinitionError, InvalidCallError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_value
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.tool import entry_tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(str, enum.Enum):  # noqa: UP042  as it is often written
    BIG = "big"


@dataclass
class Point:
    x: int
    y: int = 0


class Stop(TypedDict):
    where: str
    at: date


class Leg(StrictModel):
    begins: datetime
    stops: list[Stop] = Field(default_factory=list)


class Trip(BaseModel):
    legs: list[Leg]
    home: Point | None = None


Age = NewType("Age", int)
Score = Annotated[int, Field(ge=1, le=5)]


@dataclass(frozen=True)
class Kind:
    """A type: how it is shown, and JSON data with the values that they are; what it refuses, and why."""

    hint: Any
    shown: str
    values: list[tuple[Any, Any]]
    refused: list[tuple[Any, str]] = field(default_factory=list)
    hy: str = ""


DAY = 'a date such as "2026-11-29"'
MOMENT = 'a date with a time, such as "2026-11-29T18:30:00"'
AMOUNT = 'a number, or one as a text such as "12.50"'
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
TRIP = {
    "legs": [{"begins": "2026-01-02T12:00:00+00:00", "stops": [{"where": "Ulm", "at": "2026-01-02"}]}],
    "home": {"x": 1, "y": 2},
}
LEG = Leg(begins=NOON, stops=[Stop(where="Ulm", at=date(2026, 1, 2))])
KINDS: dict[str, Kind] = {
    "date": Kind(
        date,
        "date",
        [("2026-01-02", date(2026, 1, 2))],
        [("tomorrow", f"be {DAY}"), (5, f"be {DAY}"), ("2026-02-30", f"be {DAY}"), (None, f"be {DAY}")],
        "date",
    ),
    "datetime": Kind(
        datetime,
        "datetime",
        [("2026-01-02T12:00:00+00:00", NOON), ("2026-01-02T12:00:00", datetime(2026, 1, 2, 12))],
        [("2026-01-02", f"be {MOMENT}"), (5, f"be {MOMENT}")],
        "datetime",
    ),
    "time": Kind(
        time,
        "time",
        [("18:30:00", time(18, 30))],
        [("later", 'be a time such as "18:30"'), (18, 'be a time such as "18:30"')],
        "time",
    ),
    "timedelta": Kind(
        timedelta,
        "timedelta",
        [("PT1H30M", timedelta(hours=1.5))],
        [("long", 'be a duration such as "PT1H30M"'), (90, 'be a duration such as "PT1H30M"')],
        "timedelta",
    ),
    "Decimal": Kind(
        Decimal,
        "Decimal",
        [("12.50", Decimal("12.50"))],
        [("much", f"be {AMOUNT}"), (True, f"be {AMOUNT}"), ([], f"be {AMOUNT}")],
        "Decimal",
    ),
    "UUID": Kind(
        UUID,
        "UUID",
        [("12345678-1234-5678-1234-567812345678", UUID("12345678123456781234567812345678"))],
        [("x", 'be a UUID such as "12345678-1234-5678-1234-567812345678"')],
        "UUID",
    ),
    "bytes": Kind(
        bytes,
        "base64",
        [("aGVsbG8=", b"hello"), ("+/8=", b"\xfb\xff")],
        [("é", 'be bytes in base64, such as "aGVsbG8="'), (5, 'be bytes in base64, such as "aGVsbG8="')],
        "bytes",
    ),
    "an Enum": Kind(
        Colour,
        '"red" | "blue"',
        [("red", Colour.RED)],
        [("RED", 'be "red" | "blue"'), (1, 'be "red" | "blue"')],
    ),
    "an Enum of texts": Kind(Size, '"big"', [("big", Size.BIG)], [("small", 'be "big"')]),
    "a tuple": Kind(
        tuple[int, str],
        "[int str]",
        [([1, "a"], (1, "a"))],
        [("a", "be [int str]"), ([1], "have at least 2 items, not [1]")],
        "(get tuple #(int str))",
    ),
    "any tuple": Kind(tuple[date, ...], "list of date", [(["2026-01-02"], (date(2026, 1, 2),))]),
    "a set": Kind(set[int], "list of int", [([1, 2], {1, 2})], [("a", "be list of int")], "(get set int)"),
    "a frozenset": Kind(frozenset[str], "list of str", [(["a"], frozenset("a"))], [], "(get frozenset str)"),
    "a dataclass": Kind(
        Point,
        '{"x" int  ["y" int = 0]}',
        [({"x": 1, "y": 2}, Point(1, 2))],
        [({"y": 2}, '["x"] is missing'), ({"x": 1, "z": 2}, '["z"] is unknown'), (1, "be {")],
    ),
    "a TypedDict": Kind(
        Stop,
        '{"where" str  "at" date}',
        [({"where": "Ulm", "at": "2026-01-02"}, {"where": "Ulm", "at": date(2026, 1, 2)})],
        [({"where": "Ulm", "at": "x"}, f'["at"] should be {DAY}, not "x"')],
    ),
    "models in models": Kind(
        Trip,
        '{"legs" list of {"begins" datetime  ["stops" list of {"where" str  "at" date}]}  '
        '["home" {"x" int  ["y" int = 0]} or None]}',
        [(TRIP, Trip(legs=[LEG], home=Point(1, 2)))],
        [({"legs": [{"begins": "now"}]}, f'["legs"][0]["begins"] should be {MOMENT}, not "now"')],
    ),
    "any object": Kind(dict[str, object], "dict of any", [({"a": [1]}, {"a": [1]})]),
    "a NewType": Kind(Age, "int", [(5, 5)], [("x", "be int")]),
    "bounds": Kind(Score, "int", [(5, 5)], [(6, "be less than or equal to 5"), ("x", "be int")]),
    "bounds of a date": Kind(
        Annotated[date, Field(ge=date(2026, 1, 1))],
        "date",
        [("2026-01-02", date(2026, 1, 2))],
        [("2025-01-02", "be greater than or equal to 2026-01-01")],
    ),
    "bounds of a Decimal": Kind(
        Annotated[Decimal, Field(gt=0, max_digits=4)],
        "Decimal",
        [("1.5", Decimal("1.5"))],
        [("-1", "be greater than 0"), ("1.23456", "have no more than 4 digits in total")],
    ),
    "bounds of bytes": Kind(
        Annotated[bytes, Field(max_length=3)],
        "base64",
        [("aGVs", b"hel")],
        [("aGVsbG8=", "have at most 3 bytes")],
    ),
    "or None": Kind(
        date | None,
        "date or None",
        [("2026-01-02", date(2026, 1, 2)), (None, None)],
        [("x", f"be {DAY}")],
        "(| date None)",
    ),
    "a union": Kind(
        int | date,
        "int or date",
        [("2026-01-02", date(2026, 1, 2)), (5, 5)],
        [("x", f"be {DAY}")],
    ),
    "a Literal": Kind(Literal["a", "b"], '"a" | "b"', [("a", "a")], [("c", 'be "a" | "b"')]),
    "a list": Kind(
        list[date],
        "list of date",
        [(["2026-01-02"], [date(2026, 1, 2)])],
        [(["x"], f'[0] should be {DAY}, not "x"'), ([5], f"[0] should be {DAY}, not 5")],
        "(get list date)",
    ),
    "a dict": Kind(
        dict[str, Decimal],
        "dict of Decimal",
        [({"a": "1.50"}, {"a": Decimal("1.50")})],
        [({"a": "x"}, f'["a"] should be {AMOUNT}, not "x"')],
    ),
    "a dict by date": Kind(dict[date, int], "dict of int", [({"2026-01-02": 1}, {date(2026, 1, 2): 1})]),
}
VALUES = [(name, data, value) for name, kind in KINDS.items() for data, value in kind.values]
REFUSED = [(name, data, why) for name, kind in KINDS.items() for data, why in kind.refused]


def taking(hint: Any, **spec: Any) -> tuple[CognitiveTool, list[Any]]:
    """A tool with a parameter of the type, and what its body, and its guard, were given."""
    seen: list[Any] = []

    def look(it: Any) -> bool:
        seen.append(it)
        return True

    return tool(body=look, guard=look, params={"it": {"type": hint, **spec}}), seen


def replies(data: Any) -> dict[str, tuple[Any, Completion]]:
    """A model's call in each notation."""
    native = NativeCall(id="c1", name="probe", arguments=json.dumps({"it": data}))
    shown = print_value(data)
    return {
        "form": (CALL_FORM, Completion(f"(probe :it {shown})")),
        "plist": (CALL_FORM, Completion(f"(:tool probe :args (:it {shown}))")),
        "native": (NATIVE, Completion("", calls=(native,))),
    }


def same(found: Any, value: Any) -> bool:
    return type(found) is type(value) and found == value


@pytest.mark.parametrize(("name", "data", "value"), VALUES)
def test_the_call_holds_json_and_the_body_gets_the_value(name: str, data: Any, value: Any) -> None:
    made, seen = taking(KINDS[name].hint)
    for dialect, completion in replies(data).values():
        (found,) = dialect.read(completion, ToolTable((made,))).calls
        gate = gateway(made)
        result = gate.pass_through(found.form)
        assert (result.status, result.message) == ("ok", "")
        guarded, given = seen
        assert same(guarded, value)
        assert same(given, value)
        assert gate.rows[0]["form"] == str(CallForm("probe", {"it": data}))
        seen.clear()


@pytest.mark.parametrize("name", KINDS)
def test_the_type_is_shown_in_words_here_and_elsewhere(name: str) -> None:
    made, _ = taking(KINDS[name].hint)
    assert made.signature() == f"(probe :it {KINDS[name].shown})"
    away = entry_tool(json.loads(json.dumps(made.entry)), lambda it: None, remote="shop")
    assert away.signature() == made.signature()
    assert away.schema == made.schema


@pytest.mark.parametrize(("name", "data", "why"), REFUSED)
def test_what_does_not_fit_is_refused_with_what_would(name: str, data: Any, why: str) -> None:
    made, seen = taking(KINDS[name].hint)
    result = gateway(made).pass_through(CallForm("probe", {"it": data}))
    place = "" if why.startswith("[") else " should "
    assert (result.status, seen) == ("invalid", [])
    assert result.message.startswith(f"probe: :it{place}{why}"), result.message


class Chosen(BaseModel):
    seat: Colour
    size: Literal["big", "small"] = "big"


@pytest.mark.parametrize("hint", [Chosen, list[Chosen], Chosen | None])
def test_a_field_of_few_values_is_told_as_it_is_written(hint: Any) -> None:
    made, _ = taking(hint)
    for one, why in (
        ({"seat": "rde"}, '["seat"] should be "red" | "blue", not "rde"'),
        ({"seat": "red", "size": 1}, '["size"] should be "big" | "small", not 1'),
    ):
        result = gateway(made).pass_through(CallForm("probe", {"it": [one] if hint == list[Chosen] else one}))
        assert why in result.message


def test_an_enum_of_what_json_cannot_write_is_refused() -> None:
    odd = enum.Enum("Odd", {"ONE": object()})
    said = complaint(DefinitionError, lambda: taking(list[odd]))  # type: ignore[valid-type]
    assert said.startswith(f"probe, parameter it: values of type Odd {CANNOT_BE_WRITTEN} as JSON"), said


def test_every_fault_of_a_call_is_told_at_once() -> None:
    made = tool(params={"day": {"type": date}, "seat": {"type": Colour}}, body=lambda day, seat: None)
    said = complaint(InvalidCallError, lambda: made.checked(form('(probe "x" "y")')))
    assert said == f'probe: :seat should be "red" | "blue", not "y"; :day should be {DAY}, not "x".'


def holders(hint: Any) -> list[Any]:
    """Classes with a field of the type."""
    return [
        create_model("Held", __base__=StrictModel, it=(hint, ...)),
        create_model("Loose", it=(hint, ...)),
        make_dataclass("Data", [("it", hint)]),
        TypedDict("Dict", {"it": hint}),
    ]


@pytest.mark.parametrize(("name", "data", "value"), VALUES)
def test_a_field_of_a_class_is_as_a_parameter(name: str, data: Any, value: Any) -> None:
    for holder in holders(KINDS[name].hint):
        made, seen = taking(list[holder])
        call = CallForm("probe", {"it": [{"it": data}]})
        result = gateway(made).pass_through(call)
        assert (result.status, result.message) == ("ok", "")
        ((held,), _) = seen
        assert same(held["it"] if isinstance(held, dict) else held.it, value)


@pytest.mark.parametrize(("name", "data", "why"), REFUSED)
def test_a_field_that_does_not_fit_is_named(name: str, data: Any, why: str) -> None:
    for holder in holders(KINDS[name].hint):
        made, _ = taking(holder)
        result = gateway(made).pass_through(CallForm("probe", {"it": {"it": data}}))
        assert result.status == "invalid"
        assert result.message.startswith('probe: :it["it"]'), result.message


@pytest.mark.parametrize(("name", "data", "value"), VALUES)
def test_a_default_is_shown_as_json_and_given_as_a_value(name: str, data: Any, value: Any) -> None:
    for default in (value, data):  # Hy may write it as JSON
        made, seen = taking(KINDS[name].hint, default=default)
        shown = made.schema["properties"]["it"]["default"]
        assert json.dumps(shown) == json.dumps(data)
        result = gateway(made).pass_through("(probe)")
        assert (result.status, result.message) == ("ok", "")
        assert all(same(one, value) for one in seen)


def returning(hint: Any, value: Any) -> CognitiveTool:
    def probe() -> Any:
        """Probe."""
        return value

    probe.__annotations__["return"] = hint
    with registering_in(ToolTable()):
        return tool_of(cognitive_tool(probe))


@pytest.mark.parametrize(("name", "data", "value"), VALUES)
def test_a_result_is_json_declared_or_not(name: str, data: Any, value: Any) -> None:
    for hint in (KINDS[name].hint, Any):
        result = gateway(returning(hint, value)).pass_through("(probe)")
        assert (result.status, result.message) == ("ok", "")
        assert json.dumps(result.value) == json.dumps(data)


def test_a_result_of_another_type_is_refused() -> None:
    result = gateway(returning(date, "2026-01-02")).pass_through("(probe)")
    assert (result.status, result.message[-5:]) == ("error", "date.")


def in_hy(*definitions: str, folder: Path) -> ToolTable:
    text = "(require quoth [def-cognitive-tool])\n" + "\n".join(definitions)
    return load(files(folder, {"my.hy": text}) / "my.hy")


def test_hy_has_the_types_by_name(tmp_path: Path) -> None:
    named = {name: kind for name, kind in KINDS.items() if kind.hy}
    definitions = [
        f'(def-cognitive-tool take-{place} "Take it." :parameters [it {{:type {kind.hy}}}] '
        ":returns object :body (repr it))"
        for place, kind in enumerate(named.values())
    ]
    table = in_hy(*definitions, folder=tmp_path)
    for place, kind in enumerate(named.values()):
        for data, value in kind.values:
            made = table.get(f"take-{place}")
            assert made.signature() == f"({made.name} :it {kind.shown})"
            result = gateway(made).pass_through(CallForm(made.name, {"it": data}))
            assert (result.status, result.message) == ("ok", "")
            assert eval_of(result) == value


def eval_of(result: ToolResult) -> Any:
    """The value that a repr of one of our types is of."""
    import datetime as module

    known = {"datetime": module, "Decimal": Decimal, "UUID": UUID, "TzInfo": lambda _: UTC}
    return eval(result.value, known)


def test_hy_has_any_type_of_python_and_a_name_of_its_own_wins(tmp_path: Path) -> None:
    table = in_hy(
        "(import datetime time enum [Enum] dataclasses [dataclass])",
        '(defclass Fruit [Enum] (setv APPLE "apple"))',
        "(defclass [dataclass] Basket [] #^ (get list Fruit) fruits  #^ datetime.date day)",
        "(defclass [dataclass] Decimal [] #^ int digits)",
        '(def-cognitive-tool count-it "Count." :parameters [it {:type Basket}] '
        ":body [(len it.fruits) it.day.year (= (get it.fruits 0) Fruit.APPLE)])",
        '(def-cognitive-tool at "Say when." :parameters [at {:type time :default "10:00"}] '
        ":returns time :body at)",
        '(def-cognitive-tool own "Own." :parameters [it {:type (| Decimal None)}] :body it.digits)',
        folder=tmp_path,
    )
    gate = gateway(*table)
    said = gate.pass_through('(count-it {"fruits" ["apple"] "day" "2026-01-02"})')
    assert (said.value, said.message) == ([1, 2026, True], "")
    assert gate.pass_through("(at)").value == "10:00:00"
    assert gate.pass_through('(own {"digits" 3})').value == 3


class Odd:
    pass


@dataclass
class Box:
    things: list[Odd]


ODD: list[tuple[Any, str]] = [
    (Odd, "Odd"),
    (list[Odd], "Odd"),
    (Box, "Odd (the field things of Box)"),
    (Box | None, "Odd (the field things of Box)"),
    (Iterable[int], "Iterable"),
    (type[int], "type"),
    (typing.TypeVar("T"), "T"),
    (typing.Callable[[], int], "Callable"),
]


@pytest.mark.parametrize(("hint", "name"), ODD)
def test_any_other_type_is_refused_with_its_name_and_place(hint: Any, name: str) -> None:
    said = complaint(DefinitionError, lambda: taking(hint))
    assert said.startswith(f"probe, parameter it: values of type {name} {CANNOT_BE_WRITTEN} as JSON; ")
    said = complaint(DefinitionError, lambda: returning(hint, None))
    assert said.startswith(f"probe, what it returns: values of type {name} {CANNOT_BE_WRITTEN} as JSON; ")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="from 3.12 on it tells all")
def test_a_typed_dict_of_typing_is_told_where_to_come_from() -> None:
    class Stop(typing.TypedDict):
        where: str

    said = complaint(DefinitionError, lambda: taking(list[Stop]))
    assert said == (
        "probe, parameter it: Stop is a TypedDict of typing; this Python needs the one of typing_extensions: "
        "from typing_extensions import TypedDict."
    )


def test_a_type_that_names_another_which_is_not_there_is_refused() -> None:
    class Unready(BaseModel):
        other: Missing  # type: ignore[name-defined]  # noqa: F821

    said = complaint(DefinitionError, lambda: taking(Unready))
    assert said.startswith(f"probe, parameter it: Unready names a type that {IS_NOT_DEFINED} ("), said


# Paths


@dataclass
class Copy:
    source: Path
    title: str
    to: WorkspacePath | None = None


BOUNDED = Annotated[list[Path], Field(min_length=1)]
PLACES: list[tuple[Any, Any, Any, Any]] = [  # the type, what a call says, what it holds then, and the value
    (Path, "./a.txt", "a.txt", "ROOT/a.txt"),
    (Path, "link/b", "deep/b", "ROOT/deep/b"),
    (list[Path], ["a/../b"], ["b"], ["ROOT/b"]),
    (Path | None, "a/../b", "b", "ROOT/b"),
    (dict[str, Path], {"x": "a/../b"}, {"x": "b"}, {"x": "ROOT/b"}),
    (tuple[Path, str], ["link/b", "link/b"], ["deep/b", "link/b"], ("ROOT/deep/b", "link/b")),
    (set[Path], ["link/b"], ["deep/b"], {"ROOT/deep/b"}),
    (BOUNDED, ["link/b"], ["deep/b"], ["ROOT/deep/b"]),
    (Annotated[list[WorkspacePath], Field(max_length=2)], ["link/b"], ["deep/b"], ["deep/b"]),
    (Annotated[dict[str, Path], Field(max_length=2)], {"x": "link/b"}, {"x": "deep/b"}, {"x": "ROOT/deep/b"}),
    (Annotated[Path | None, Field(description="Where")], "link/b", "deep/b", "ROOT/deep/b"),
    (frozenset[WorkspacePath], ["link/b"], ["deep/b"], frozenset({"deep/b"})),
    (
        Copy,
        {"source": "link/b", "title": "link/b", "to": "link/c"},
        {"source": "deep/b", "title": "link/b", "to": "deep/c"},
        Copy(Path("ROOT/deep/b"), "link/b", WorkspacePath("deep/c")),
    ),
    (
        list[Copy | int],
        [{"source": "link/b", "title": "x"}, 5],
        [{"source": "deep/b", "title": "x"}, 5],
        [Copy(Path("ROOT/deep/b"), "x"), 5],
    ),
]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to("deep")
    return tmp_path


def shown_at(value: Any, root: Path) -> str:
    """A value as it prints, with ROOT for the workspace, and paths as texts."""
    return re.sub(r"PosixPath\(('.*?')\)", r"\1", repr(value).replace(f"{root}", "ROOT"))


@pytest.mark.parametrize(("hint", "said", "held", "value"), PLACES)
def test_a_path_is_one_of_the_workspace_wherever_it_is(
    hint: Any, said: Any, held: Any, value: Any, here: Path
) -> None:
    made, seen = taking(hint)
    gate = gateway(made, workspace=here)
    result = gate.pass_through(CallForm("probe", {"it": said}))
    assert (result.status, result.message) == ("ok", "")
    assert gate.rows[0]["form"] == str(CallForm("probe", {"it": held}))
    for one in seen:
        assert shown_at(one, here) == shown_at(value, here)


@pytest.mark.parametrize("hint", [Path, list[Path], BOUNDED, tuple[Path, ...], Copy, list[Copy], Copy | None])
def test_a_path_outside_is_denied_in_a_class_and_a_set_as_elsewhere(hint: Any, here: Path) -> None:
    copy = {"source": "../x", "title": "t"}
    said = {Path: "../x", Copy: copy, Copy | None: copy, list[Copy]: [copy]}.get(hint, ["../x"])
    made, seen = taking(hint)
    result = gateway(made, workspace=here).pass_through(CallForm("probe", {"it": said}))
    assert (result.status, seen) == ("denied", [])
    open_one = tool(body=lambda it: True, params={"it": {"type": hint, "outside": True}})
    assert gateway(open_one, workspace=here).pass_through(CallForm("probe", {"it": said})).status == "pending"


def test_a_text_beside_a_path_in_a_class_is_no_path(here: Path) -> None:
    made, _ = taking(Copy)
    said = {"source": "a", "title": "../x" * 2000}
    assert gateway(made, workspace=here).pass_through(CallForm("probe", {"it": said})).ok


def test_a_rule_sees_the_paths_in_a_class(here: Path) -> None:
    rules = b'(deny (_ :path (under "deep")))\n(allow (probe))'
    policy = RulesPolicy([parse_layer("given", rules, "policy.hy")])
    made, _ = taking(Copy, default=None)
    gate = gateway(made, workspace=here, policy=policy)
    assert gate.pass_through('(probe {"source" "link/b" "title" "t"})').status == "denied"
    assert gate.pass_through('(probe {"source" "a" "title" "deep/b"})').ok


def test_a_path_that_is_returned_is_relative_to_the_workspace(here: Path) -> None:
    made = tool(
        body=lambda it: [it, it.parent, Path("/etc"), {"at": it / "b"}], params={"it": {"type": Path}}
    )
    result = gateway(made, workspace=here).pass_through('(probe "a")')
    assert result.value == ["a", ".", "/etc", {"at": "a/b"}]


def test_a_list_of_paths_keeps_its_bounds(here: Path) -> None:
    made, seen = taking(BOUNDED)
    assert made.schema["properties"]["it"]["minItems"] == 1
    result = gateway(made, workspace=here).pass_through("(probe [])")
    assert (result.status, seen) == ("invalid", [])
    assert "have at least 1 item" in result.message


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[Path, Field(max_length=9)],
        Annotated[Path | None, Field(max_length=9)],
        list[Annotated[Path, Field(max_length=9)]],
        Annotated[list[Annotated[WorkspacePath, Field(pattern="a")]], Field(min_length=1)],
        dict[Path, str],
        FilePath,
        list[FilePath],
    ],
)
def test_what_no_path_can_be_is_refused(hint: Any) -> None:
    said = complaint(DefinitionError, lambda: taking(hint))
    assert "a path is a key of a dictionary" in said or "a path has no bounds of its own" in said


def test_a_path_is_opened_by_itself_and_through_the_workspace(here: Path) -> None:
    def body(it: Path, ctx: Any) -> list[str]:
        ctx.workspace.write(it, b"x")
        with ctx.workspace.open_read(it) as file:
            return [it.read_text(), file.read().decode()]

    made = tool(body=body, guard=lambda it: inside_workspace(it), params={"it": {"type": Path}})
    result = gateway(made, workspace=here).pass_through('(probe "link/a")')
    assert (result.value, result.message) == (["x", "x"], "")
    assert (here / "deep/a").read_text() == "x"


def test_hy_has_a_path_of_python_by_name(here: Path) -> None:
    table = in_hy(
        '(def-cognitive-tool size "Size." :parameters [it {:type (get list Path)}]'
        "  :body (. (get it 0) name))",
        folder=here,
    )
    assert table.get("size").signature() == "(size :it list of path)"
    assert gateway(*table, workspace=here).pass_through('(size ["link/a"])').value == "a"


def test_a_text_of_a_tag_stays_the_text_it_is() -> None:
    made = tool(params={"it": {"type": Decimal}}, body=lambda it: str(it), tag="COST")
    call = tag_form(made, "1.50")
    assert call is not None
    assert gateway(made).pass_through(call).value == "1.50"


@pytest.mark.parametrize(("name", "data", "value"), VALUES)
def test_a_program_of_python_may_give_the_value_itself(name: str, data: Any, value: Any) -> None:
    made, seen = taking(KINDS[name].hint)
    gate = gateway(made)
    assert gate.pass_through(CallForm("probe", {"it": value})).ok
    assert gate.rows[0]["form"] == str(CallForm("probe", {"it": data}))
    assert all(same(one, value) for one in seen)


class AtPath(BaseModel):
    kind: Literal["path"]
    at: Path


class AtName(BaseModel):
    kind: Literal["name"]
    at: str
    more: dict[str, list[str]] = Field(default_factory=dict)


class ByPath(BaseModel):
    kind: Literal["path"] = "path"
    at: Path


class ByName(BaseModel):
    kind: Literal["name"] = "name"
    at: str


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")
    kind: str


TOLD_APART: list[Any] = [
    AtPath | AtName,
    list[AtName | AtPath],
    AtName | AtPath | None,
    dict[str, Annotated[ByPath | ByName, Field(discriminator="kind")]],
    Annotated[AtPath | AtName, Field(discriminator="kind")],
]
UNTOLD: list[Any] = [
    ByPath | ByName,
    AtPath | Anything,
    AtPath | dict[str, str],
    list[Path] | list[str],
    list[WorkspacePath] | tuple[int, str],
    Path | str,
    WorkspacePath | Any,
    list[Path | str],
    Path | Literal["auto"],
    list[AtPath] | list[ByName],
]


@pytest.mark.parametrize("hint", TOLD_APART)
def test_a_text_of_another_class_of_a_union_is_no_path(hint: Any, here: Path) -> None:
    for kind, held in (("name", "link/../b"), ("path", "b")):
        one = {"kind": kind, "at": "link/../b"}
        wrap = {TOLD_APART[1]: lambda it: [it], TOLD_APART[3]: lambda it: {"x": it}}.get(hint, lambda it: it)
        made, seen = taking(hint)
        gate = gateway(made, workspace=here)
        result = gate.pass_through(CallForm("probe", {"it": wrap(one)}))
        assert (result.status, result.message) == ("ok", "")
        assert gate.rows[0]["form"] == str(CallForm("probe", {"it": wrap({"kind": kind, "at": held})}))
        (given,) = re.findall("at='(.*?)'|at=Posix", str(seen[-1]))
        assert given == ("" if kind == "path" else held)


class TwoNames(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    file: Path = Field(Path("x"), alias="f")


class Choices(BaseModel):
    file: Path = Field(Path("x"), validation_alias=AliasChoices("f", "g"))


class Stripped(BaseModel):
    model_config = ConfigDict(str_strip_whitespace=True)
    file: WorkspacePath = WorkspacePath("x")


class HiddenKey(BaseModel):
    model_config = ConfigDict(str_to_lower=True)
    key: SecretStr = SecretStr("")


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (TwoNames, "a field may be given by two names"),
        (list[TwoNames], "a field may be given by two names"),
        (list[Annotated[str, StringConstraints(to_lower=True), Tag("t")] | list[Path]], "the case of texts"),
        (Choices, "a field may be given by several names"),
        (Stripped, "blanks are cut from texts"),
        (HiddenKey, "the case of texts is changed"),
        *((hint, "a text there may be a path or not") for hint in UNTOLD),
        (dict[Annotated[str, Field(pattern="^a")], Path], "of a pattern or within a text"),
        (dict[Annotated[str, Field(pattern="^a")], SecretStr], "of a pattern or within a text"),
    ],
)
def test_a_type_whose_paths_would_be_judged_otherwise_than_the_body_gets_them_is_refused(
    hint: Any, why: str
) -> None:
    assert why in complaint(DefinitionError, lambda: tool("probe", params={"it": {"type": hint}}))
