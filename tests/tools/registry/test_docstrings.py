"""A docstring describes a tool and, in Google's or NumPy's sections, its parameters and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from sentences import DID_YOU_MEAN, IT_IS_CALLED_AS
from words import complaint, gateway

from quoth import StrictModel, belt, cognitive_tool, registering_in, tool_of
from quoth.tools.errors import DefinitionError
from quoth.tools.registry.function import read_docstring
from quoth.tools.registry.table import CognitiveTool, ToolTable

GOOGLE = """Enrol a person.

Note: this is a part of the words.

Args:
    person (str): Who it is,
        in full.
    force: Even if there is no room.
    ctx: The door's.

Returns:
    The name: as it stands.

Raises:
    ValueError: Never.
"""
NUMPY = """Enrol a person.

Note: this is a part of the words.

Parameters
----------
person : str
    Who it is,
    in full.
force : bool, optional
    Even if there is no room.

Returns
-------
str
    The name: as it stands.
"""
FIELDS = """Enrol a person.

Note: this is a part of the words.

:param person: Who it is, in full.
:param force: Even if there is no room.
:returns: The name: as it stands.
"""


def defined(function: Callable[..., Any], **options: Any) -> CognitiveTool:
    with registering_in(ToolTable()):
        return tool_of(cognitive_tool(**options)(function))


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, FIELDS], ids=["Google", "NumPy", "fields"])
def test_the_sections_of_a_docstring_are_words_of_the_parameters(text: str) -> None:
    def enrol(person: str, force: bool = False, *, ctx: Any) -> str:
        return person

    enrol.__doc__ = text
    made = defined(enrol)
    assert made.description == "Enrol a person.\n\nNote: this is a part of the words."
    assert {param.name: param.doc for param in made.params} == {
        "person": "Who it is, in full",
        "force": "Even if there is no room",
    }
    assert str(made.returns) == "str (The name: as it stands)"


def test_a_docstring_without_sections_is_the_description() -> None:
    assert (
        read_docstring("Do it.\n\nThe Parameters: of it.").description == "Do it.\n\nThe Parameters: of it."
    )


def test_words_beside_the_type_count_before_those_of_the_docstring() -> None:
    def probe(a: Annotated[str, "Here"], b: Annotated[int, Field(ge=1, description="Bounded")]) -> None:
        """Probe.

        Args:
            a: There.
        """

    made = defined(probe)
    assert [param.doc for param in made.params] == ["Here", "Bounded"]
    said = gateway(made).pass_through('(probe "x" 0)').message
    assert said.startswith("probe: :b should be greater than or equal to 1, not 0.")


def test_a_docstring_that_describes_no_parameter_is_told() -> None:
    def enrol(person: str) -> str:
        """Enrol.

        Args:
            persn: Who.
        """
        return person

    assert complaint(DefinitionError, lambda: defined(enrol)) == (
        "enrol: its docstring describes persn, which is not one of its parameters. Did you mean person?"
    )


class Address(StrictModel):
    street: str = Field(description="Street and number")
    zip: int = Field(ge=1000)


class Person(BaseModel):
    name: str = Field(description="In full")
    home: Address
    second: Address | None = None


def move(person: Person, others: list[Address] = []) -> str:  # noqa: B006  a default that is shown
    """Move a person."""
    return person.home.street


def test_a_model_shows_its_fields_in_every_view() -> None:
    made = defined(move)
    table = ToolTable((made,))
    address = '{"street" str (Street and number)  "zip" int}'
    shown = f'{{"name" str (In full)  "home" {address}  ["second" {address} or None]}}'
    assert f"Parameters: :person {shown}, :others list of {address} = []\n" in belt(table)
    for view in ("run", "json", "plist", "openai", "responses", "anthropic", "mcp"):
        said = belt(table, view)
        assert [word for word in ("street", "Street and number", "zip", "In full") if word not in said] == []


HOME = '"home" {"street" "a" "zip" 5000}'
FAULTS = {
    '(move :person {"name" 1 "home" {"street" "a" "zip" 5}})': (
        ':person["name"] should be a valid string, not 1; '
        ':person["home"]["zip"] should be greater than or equal to 1000, not 5'
    ),
    '(move :person {"name" "a" "home" {"stret" "a" "zip" 5000}})': (
        ':person["home"]["street"] is missing; :person["home"]["stret"] is unknown (did you mean "street"?)'
    ),
    f'(move :person {{"name" "a" {HOME} "second" {{"street" "b" "zip" 1000 "zap" 1}}}})': (
        f':person["second"]["zap"] is unknown ({DID_YOU_MEAN} "zip"?)'
    ),
    f'(move :person {{"name" "a" {HOME}}} :others [{{"street" "a" "zip" 5000 "q" 1}}])': (
        ':others[0]["q"] is unknown'
    ),
}


@pytest.mark.parametrize(("form", "faults"), FAULTS.items())
def test_an_error_in_a_model_names_the_field(form: str, faults: str) -> None:
    result = gateway(defined(move)).pass_through(form)
    assert result.status == "invalid"
    assert result.message.startswith(f"move: {faults}. {IT_IS_CALLED_AS} (move :person ")
