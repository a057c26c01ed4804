"""Which parameters are destinations, and which tools always ask: as declared, or by names and types."""

from __future__ import annotations

import json
from ipaddress import IPv4Address
from string import ascii_lowercase
from typing import Annotated, Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, BaseModel
from words import tool

from quoth.tools.lisp.printer import Code
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.function import cognitive_tool, register, tool_of
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.parameters import Content, Destination, Secret
from quoth.tools.registry.roles import CONTENTS as ROLES_CONTENTS
from quoth.tools.registry.roles import always_asks, destinations, roles_data
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.tool import entry_tool


class Person(BaseModel):
    name: str
    mailAddress: str  # as other people's data is spelt


class Machine(BaseModel):
    there: IPv4Address | None = None


class Order(BaseModel):
    which: list[UUID]


class Letter(BaseModel):
    whom: Annotated[str, Destination()]
    link: Annotated[str, Content("A text")]


class Note(BaseModel):
    text: str


NAMES = {
    "to": True,
    "reply-to": True,
    "cc": True,
    "recipients": True,
    "email": True,
    "email-addresses": True,
    "url": True,
    "hosts": True,
    "account-number": True,
    "user-name": True,
    "attendee-list": True,
    "event-id": True,
    "ids": True,
    "iban": True,
    "repositories": True,
    "people": True,
    "name": False,
    "number": True,
    "page-number": False,
    "email-subject": False,
    "subject": False,
    "body": False,
    "total": False,
    "width": False,
    "paid": False,
    "address-book-entry": False,
}


@pytest.mark.parametrize(("name", "is_one"), NAMES.items())
def test_the_last_word_of_a_name_tells_a_destination(name: str, is_one: bool) -> None:
    found = destinations(tool(params={name: {}}, effects=["writes"]))
    assert [str(one) for one in found] == ([f"{name} (by its name)"] if is_one else [])


# Names that no list of destinations has, and names of contents.
INVENTED = (
    *("audience", "sendee", "dude", "boss", "an", "destinataire", "x", "arg1", "value"),
    *("data", "key", "nick", "alias", "slug", "topic", "queue", "project", "workspace"),
    *("team", "org", "tenant", "name", "tag", "mention", "reviewer", "approver", "owner"),
    *("watcher", "follower", "party", "crew", "folks", "buddy", "location-id", "sender", "receiver-name"),
    *("body-of", "subject-line", "notify", "ping", "share-with"),
)
CONTENTS = [
    "subject",
    "body",
    "text",
    "email-subject",
    "commit-message",
    "notes",
    "event-description",
    "query",
]


@pytest.mark.parametrize("effect", ["net", "messages", "pays"])
def test_each_text_of_a_tool_that_sends_is_a_destination_but_contents(effect: str) -> None:
    names: dict[str, dict[str, Any]] = {name: {} for name in [*INVENTED, *CONTENTS]}
    made = tool(params=names, effects=[effect])
    assert {one.name for one in destinations(made)} == set(names) - set(CONTENTS)
    more = {
        "kind": {"choices": ("a", "b")},
        "told": {"role": "content"},
        "many": {"type": int},
        "price": {"type": float | None, "default": None},
    }
    assert destinations(tool(params=more, effects=[effect])) == ()
    assert destinations(tool(params={"nick": {}}, effects=["writes", "memory"])) == ()


WORDS = st.one_of(st.text(ascii_lowercase, min_size=1, max_size=12), st.sampled_from(sorted(ROLES_CONTENTS)))


@given(st.lists(WORDS, min_size=1, max_size=3), st.sampled_from(["net", "messages", "pays"]))
def test_no_invented_name_of_a_text_that_is_sent_passes_for_a_content(words: list[str], effect: str) -> None:
    """The list of contents is closed, and the last word decides."""
    name = "-".join(["x", *words])  # a word alone may be reserved
    found = destinations(tool(params={name: {}}, effects=[effect]))
    assert [one.name for one in found] == ([] if words[-1] in ROLES_CONTENTS else [name])


def test_what_is_written_into_a_field_that_is_a_text_is_a_content() -> None:
    """A tool that says of its result that anybody writes the field as they like says so of the argument."""
    names: dict[str, dict[str, Any]] = {"location": {}, "meeting-place": {}, "to": {}, "nick": {}}
    said = tool(params=names, effects=["net"], free_text=["location", "meeting_place", "to"])
    assert [one.name for one in destinations(said)] == ["to", "nick"]  # a destination by its name is one
    for free_text in (None, True, ["title"]):
        silent = tool(params=names, effects=["net"], free_text=free_text)
        assert [one.name for one in destinations(silent)] == list(names)


TYPES: list[tuple[Any, str]] = [
    # the type of a parameter, and why it is a destination; empty for none
    (str, ""),
    (dict, ""),
    (Note, ""),
    (AnyUrl, "by its type"),
    (list[AnyUrl], "by its type"),
    (Machine | None, "by its type"),
    (dict[str, Order], "by its type"),
    (Person, "by its type"),
    (list[Person], "by its type"),
    (WorkspacePath, "only where it leads out of the workspace"),
    (list[WorkspacePath], "only where it leads out of the workspace"),
]


@pytest.mark.parametrize(("kind", "why"), TYPES)
def test_a_type_tells_a_destination_by_its_format_or_a_field(kind: Any, why: str) -> None:
    found = destinations(tool(params={"what": {"type": kind}}, effects=["writes"]))
    assert [one.why for one in found] == ([why] if why else [])
    assert [one.outside for one in found] == ([kind in (WorkspacePath, list[WorkspacePath])] if why else [])


def test_what_is_declared_stands_before_what_is_inferred_here_and_elsewhere() -> None:
    made = tool(
        params={
            "to": {"role": "content"},
            "what": {"role": "destination"},
            "file": {"type": WorkspacePath, "role": "destination"},
            "id": {"role": None},
            "user": {"secret": True},
            "link": {"type": bool},
            "host": {"type": Code},
        },
        effects=["writes"],
    )
    found = destinations(made)
    assert [str(one) for one in found] == ["what (declared)", "file (declared)", "id (by its name)"]
    assert not any(one.outside for one in found)
    there = entry_tool(json.loads(json.dumps(made.entry)), lambda: "there", remote="shop")
    assert destinations(there) == found
    assert roles_data(there)["destinations"][0] == {"name": "what", "why": "declared"}


@pytest.mark.parametrize("effects", [[], ["reads"], ["reads", "asks"]])
def test_a_tool_that_only_reads_has_no_destination_and_never_always_asks(effects: list[str]) -> None:
    made = tool("delete-nothing", params={"to": {"role": "destination"}, "pin": {}}, effects=effects)
    assert roles_data(made) == {"destinations": [], "always_asks": ""}


ASKING: list[tuple[str, list[str], dict[str, Any], str]] = [
    # the tool, its effects, its parameters, why it always asks
    ("send-email", ["net"], {"to": {}}, ""),
    ("tidy", ["deletes"], {}, "it deletes"),
    ("send-money", ["net", "pays"], {}, "it pays"),
    ("tidy", ["deletes", "pays"], {}, "it deletes and it pays"),
    ("delete-file", ["writes"], {}, "it deletes"),
    ("cancel-event", ["net"], {}, "it deletes"),
    ("undeleted-files", ["net"], {}, ""),
    ("buy-ticket", ["net"], {}, "it pays"),
    ("update-password", ["net"], {"password": {}}, "it is about a password"),
    ("sign-up", ["net"], {"new-password": {}, "pin": {}}, "it takes a secret (new-password)"),
    ("sign-up", ["net"], {"key": {"secret": True}}, "it takes a secret (key)"),
    ("sign-up", ["net"], {"pinned": {}}, ""),
]


@pytest.mark.parametrize(("name", "effects", "params", "why"), ASKING)
def test_deletions_payments_and_passwords_always_ask(
    name: str, effects: list[str], params: dict[str, Any], why: str
) -> None:
    assert always_asks(tool(name, params=params, effects=effects)) == why


def test_the_decorator_and_models_declare_roles_in_annotations() -> None:
    with registering_in(ToolTable()):

        @cognitive_tool(effects=["net"])
        def send(
            whom: Annotated[str, Destination("Whom")],
            link: Annotated[str, Content("A text")],
            host: Annotated[str, Secret("Where")],
        ) -> str:
            """Send."""
            return whom

        @register("post", Letter, effects=["net"])
        def post(letter: Letter) -> str:
            """Send."""
            return letter.whom

    assert [param.doc for param in tool_of(send).params] == ["Whom", "A text", "Where"]
    for made in map(tool_of, (send, post)):
        assert [str(one) for one in destinations(made)] == ["whom (declared)"]
