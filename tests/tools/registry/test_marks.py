"""``Secret``, ``Destination`` and the other marks of an annotation count wherever they are in a type, or the
definition is refused with their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, NewType

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict
from words import complaint, gateway

from quoth import (
    Content,
    DefinitionError,
    Destination,
    Outside,
    Secret,
    StrictModel,
    Wire,
    WorkspacePath,
    register,
    tool_of,
)
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.parameters import Param

pytestmark = pytest.mark.usefixtures("table")


class Login(BaseModel):
    name: str
    key: Annotated[str, Secret("The key")] = ""


class Sent(BaseModel):
    to: Annotated[str, Destination("To whom")]


@dataclass
class Put:
    at: Annotated[WorkspacePath, Outside("Where")]


class Said(TypedDict):
    words: list[Annotated[str, Content("What")]]


class Loose(BaseModel):
    inner: dict[str, Said]


Key = TypeAliasType("Key", Annotated[str, Secret("The key")])
Whom = NewType("Whom", Annotated[str, Destination("To whom")])  # type: ignore[valid-newtype]


def param(hint: Any) -> Param:
    def probe(it: Any) -> None:
        """Probe."""

    probe.__annotations__["it"] = hint
    return tool_of(probe).params[0]


@pytest.mark.parametrize(
    "hint",
    [Login, list[Login], Login | None, Key, Key | None, list[Key], dict[str, Key], Annotated[Key, "K"]],
)
def test_a_secret_in_a_type_makes_its_parameter_a_secret(hint: Any) -> None:
    assert param(hint).secret


def test_a_secret_in_a_field_is_in_no_record_and_arrives() -> None:
    def log_in(who: Login) -> bool:
        """Log in."""
        return who.key == "xyzzy"

    gate = gateway(tool_of(log_in))
    result = gate.pass_through(CallForm("log-in", {"who": {"name": "ann", "key": "xyzzy"}}))
    assert result.value is True
    assert "xyzzy" not in str(gate.rows)


@pytest.mark.parametrize("hint", [Whom, Annotated[str, Destination("To whom")] | None, Whom | None])
def test_the_notes_of_aliases_and_of_members_of_a_union_are_those_of_the_parameter(hint: Any) -> None:
    found = param(hint)
    assert (found.role, found.doc) == ("destination", "To whom")


def test_bounds_in_a_union_stay_where_they_are() -> None:
    found = param(Annotated[int, Field(ge=1), "How many"] | None)
    assert (found.kind, found.doc) == ("int or None", "How many")
    assert "minimum" in str(tool_of(limited).schema)


def limited(it: Annotated[int, Field(ge=1), "How many"] | None = None) -> None:
    """Probe."""


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (Sent, "Destination (the field to of Sent)"),
        (list[Sent], "Destination (the field to of Sent)"),
        (Put, "Outside (the field at of Put)"),
        (Loose, "Content (the field words of Said)"),
        (list[Annotated[str, Content("What")]], "Content"),
        (dict[str, Whom], "Destination"),
        (tuple[Annotated[int, Wire("maxResults")], ...], "Wire"),
    ],
)
def test_any_other_mark_within_a_type_is_refused(hint: Any, said: str) -> None:
    kind = said.partition(" ")[0]
    assert complaint(DefinitionError, lambda: param(hint)) == (
        f"probe, parameter it: {said} is a part of the type; only a whole parameter has such a mark, as in "
        f'Annotated[str, {kind}("…")].'
    )


class Mail(StrictModel):
    whom: Annotated[str, Destination("To whom")]
    key: Annotated[str, Secret("The key")]
    file: Annotated[WorkspacePath, Outside("What")]
    size: Annotated[int, Field(ge=1), Wire("maxSize")] = 1
    code: Annotated[str, Secret()] | None = Field(None, description="The code")


def test_the_fields_of_an_input_model_are_parameters_with_all_their_marks() -> None:
    @register("mail", Mail)
    def mail(given: Mail) -> str:
        """Mail it."""
        return given.whom

    found = {one.name: one for one in tool_of(mail).params}
    assert [(one.name, one.doc) for one in found.values() if one.secret] == [
        ("key", "The key"),
        ("code", "The code"),
    ]
    assert (found["whom"].role, found["whom"].doc) == ("destination", "To whom")
    assert (found["file"].outside, found["size"].wire) == (True, "maxSize")
    assert "minimum" in str(tool_of(mail).schema)


def test_a_field_on_a_parameter_gives_its_default() -> None:
    def find(
        words: Annotated[list[str], Field(default_factory=list)],
        depth: Annotated[int, Field(default=2, ge=1)],
        limit: Annotated[int, Field(default=3)] = 5,
    ) -> str:
        """Find."""
        return f"{words} {depth} {limit}"

    assert gateway(tool_of(find)).pass_through("(find)").value == "[] 2 5"
