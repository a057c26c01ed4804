"""What a person is told of each argument of a call: one origin, or one for each item, and links inside."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel
from words import form, tool

from quoth.tools.call.call import MODEL, ArgumentOrigin, Call, ValueOrigin
from quoth.tools.call.canonical import checked
from quoth.tools.call.workspace import Workspace
from quoth.tools.origin.arguments import LOOKED_UP, origins_of_arguments, origins_of_plan
from quoth.tools.origin.leaves import leaves
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import ToolTable

TASK, MAIL, OWN = ValueOrigin(in_task=True), ValueOrigin(text="read-file mail.txt"), "the model's own"
CONTACT = ValueOrigin(fields=("search-contacts",))
SEND = tool(
    "send",
    effects=["messages"],
    params={
        "to": {"type": Any, "default": None},
        "body": {"type": str, "default": ""},
        "path": {"type": WorkspacePath, "default": ""},
        "pin": {"type": Any, "secret": True, "default": ""},
        "url": {"type": str, "default": ""},
    },
)


class Seen:
    def __init__(self, origins: dict[str, ValueOrigin]) -> None:
        self.origins = origins

    def intended(self, call: Call) -> bool | None:
        return None

    def find(self, value: Any, call: Call) -> ValueOrigin:
        return self.origins.get(str(value), MODEL)


def told(text: str, seen: dict[str, ValueOrigin], folder: Path | str = ".") -> list[ArgumentOrigin]:
    canonical, args = checked(SEND, form(text), Workspace(folder))
    return [*origins_of_arguments(SEND, Call("c", canonical), args, Seen(seen))]


def test_an_argument_has_one_origin_or_one_for_each_item() -> None:
    seen = {"x@evil.example": MAIL, "ann@shop.example": CONTACT, "50": TASK}
    assert told('(send :to "x@evil.example" :body "Hello.")', seen) == [
        ArgumentOrigin("to", "text", "in the text of read-file mail.txt"),
        ArgumentOrigin("body", "model", OWN, aims=False),
    ]
    assert told('(send :to ["ann@shop.example" "ann@shop.example"])', seen) == [
        ArgumentOrigin("to", "field", "field of search-contacts")
    ]
    both = '(send :to {"cc" ["ann@shop.example" {"n" 50}] "to" "x@evil.example" "urgent" True "bcc" ""})'
    assert told(both, seen) == [
        ArgumentOrigin("to", "field", "field of search-contacts", ("ann@shop.example",)),
        ArgumentOrigin("to", "task", "in your task", ("50",)),
        ArgumentOrigin("to", "text", "in the text of read-file mail.txt", ("x@evil.example",)),
    ]


def test_what_is_nothing_has_no_origin() -> None:
    assert told('(send :to [True None "" [] {}] :body "")', {}) == []
    assert told("(send)", {}) == []


def test_an_object_of_a_class_is_told_as_it_was_given() -> None:
    class Guest(BaseModel):
        name: str
        mail: str

    invite = tool("invite", effects=["messages"], params={"guest": {"type": Guest}})
    canonical, args = checked(
        invite, form('(invite {"name" "Bo" "mail" "ann@shop.example"})'), Workspace(".")
    )
    assert [*origins_of_arguments(invite, Call("c", canonical), args, Seen({"ann@shop.example": TASK}))] == [
        ArgumentOrigin("guest", "model", OWN, ("Bo",)),
        ArgumentOrigin("guest", "task", "in your task", ("ann@shop.example",)),
    ]
    assert [*leaves(args["guest"])] == ["Bo", "ann@shop.example"]
    assert [*leaves([UUID(int=1), Decimal("50.00"), b"\xff"])] == [str(UUID(int=1)), "50.00", "_w=="]


def test_a_text_tells_of_the_links_in_it() -> None:
    seen = {"https://x.example/a": MAIL, "ann@shop.example": CONTACT}
    body = "Dear ann@shop.example,\\nsee https://x.example/a, or https://x.example/a and https://y.example!"
    assert told(f'(send :body "{body}")', seen) == [
        ArgumentOrigin("body", "model", OWN, aims=False),
        ArgumentOrigin("body", "field", "field of search-contacts", ("ann@shop.example",)),
        ArgumentOrigin("body", "text", "in the text of read-file mail.txt", ("https://x.example/a",)),
        ArgumentOrigin("body", "model", OWN, ("https://y.example",)),
    ]
    known = body.replace("\\n", "\n")
    assert told(f'(send :body "{body}")', {known: TASK}) == [
        ArgumentOrigin("body", "task", "in your task", aims=False)
    ]
    assert told('(send :to "https://x.example/a")', seen) == [
        ArgumentOrigin("to", "text", "in the text of read-file mail.txt")
    ]


@pytest.mark.parametrize(
    ("call", "marked"),
    [
        ('(send :body "Hello.")', False),
        ('(send :body "https://x.example/a")', True),
        ('(send :body "See https://x.example/a")', True),
        ('(send :body "made/notes.txt")', False),
        ('(send :to "ann")', True),
        ('(send :path "notes.txt")', False),
    ],
)
def test_destinations_and_links_are_marked(call: str, marked: bool) -> None:
    assert any(one.marked for one in told(call, {})) is marked


def test_a_path_out_of_the_workspace_is_marked(tmp_path: Path) -> None:
    call = Call("c", form('(send :path "x")'))
    for path, marked in (("made/x.txt", False), (str(tmp_path / "x"), True), ("../x", True), ("~/x", True)):
        (one,) = origins_of_arguments(SEND, call, {"path": path}, Seen({}))
        assert one.marked is marked


def test_no_secret_is_told() -> None:
    seen = {"hunter2": ValueOrigin(text="read-file hunter2.txt"), "other": TASK}
    call = '(send :pin ["hunter2" "other"] :to ["hunter2" "b"] :url "https://ann:pass@x.example/ b")'
    found = told(call, seen)
    assert [(one.argument, one.values) for one in found] == [
        ("pin", ()),
        ("pin", ()),
        ("to", ("[secret]",)),
        ("to", ("b",)),
        ("url", ()),
        ("url", ("https://ann:[secret]@x.example/",)),
    ]
    assert "hunter2" not in str(found)
    assert found[0].words == "in the text of read-file [secret].txt"


def test_of_a_long_list_only_a_part_is_looked_up() -> None:
    items = " ".join(f'"n{number}"' for number in range(LOOKED_UP + 40))
    assert told(f"(send :to [{items}])", {}) == [
        ArgumentOrigin("to", "model", OWN, ("n0", "n1", "n2"), LOOKED_UP - 3),
        ArgumentOrigin("to", "model", "not looked up", ("n100", "n101", "n102"), 37),
    ]
    (value, *_) = told(f'(send :to ["{"a" * 500}" "b"] :body "x")', {"b": TASK})
    assert len(value.values[0]) == 60


def test_a_plan_tells_the_origins_of_what_is_known_of_its_calls() -> None:
    seen = Seen({"x@evil.example": MAIL, "https://x.example/": TASK})
    shape = {"tool": "send", "args": {"to": {"is": "x@evil.example"}, "body": {"any": True}}}
    call = Call("c", form('(eval :form "(send)")'))
    assert [*origins_of_plan(ToolTable([SEND]), call, [shape, {**shape, "args": {}}], seen)] == [
        ArgumentOrigin("send to", "text", "in the text of read-file mail.txt")
    ]


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ('(send :to ["a" "b" "c" "x"])', [(("a", "b", "c"), 0), (("x",), 0)]),
        ('(send :to ["a" "b" "c" "d" "x"])', [(("a", "b", "c"), 1), (("x",), 0)]),
        ('(send :pin ["a" "b" "c" "d" "x"])', [((), 0), ((), 0)]),
        ('(send :path "")', []),
        ('(send :path "./x")', [((), 0)]),
        ('(send :to " https://x.example/a ")', [((), 0)]),  # the link is all there is
    ],
)
def test_of_several_values_the_first_are_named_and_the_others_counted(
    call: str, found: list[tuple[tuple[str, ...], int]], tmp_path: Path
) -> None:
    assert [(one.values, one.more) for one in told(call, {"x": TASK}, tmp_path)] == found


def test_a_long_value_is_cut() -> None:
    call = f'(send :to ["{"a" * 500}" "x"])'
    (value, _) = told(call, {"x": TASK, "a" * 500: ValueOrigin(text="n" * 500)})
    assert (len(value.values[0]), len(value.words)) == (60, 120)
