"""Where arguments come from, as it stands on a screen: what a person should look at has a sign, and no text
of somebody else's imitates a line."""

from __future__ import annotations

import pytest

from quoth.agent.terminal.output import set_in
from quoth.agent.terminal.question import origin_lines
from quoth.tools.call.call import ArgumentOrigin, of_text, to_text

MAIL = "in the text of read-file mail.txt"
TO = ArgumentOrigin("to", "text", MAIL, ("x@evil.example",))
CC = ArgumentOrigin("to", "field", "field of search-contacts", ("ann@shop.example",), 2)
SUBJECT, BODY = (ArgumentOrigin(name, "model", "the model's own") for name in ("subject", "body"))
DAY = ArgumentOrigin("day", "task", "in your task")


def test_each_origin_is_a_line_and_what_is_not_known_has_a_sign() -> None:
    assert origin_lines([TO, CC, SUBJECT, BODY, DAY], "reply") == [
        f'! to "x@evil.example": {MAIL}',
        '  to "ann@shop.example" and 2 more: field of search-contacts',
        "! subject, body: the model's own",
        "  day: in your task",
    ]


def test_the_sign_has_a_colour_where_there_are_colours() -> None:
    marked, plain = origin_lines([TO, CC], "reply", margin="  ", color=True)
    assert marked == f'\x1b[33m  ! to "x@evil.example": {MAIL}\x1b[0m'
    assert plain.startswith("    to ")


def test_a_person_is_not_told_of_their_own_words() -> None:
    for route in ("call", "eval", "repl", "python"):
        assert origin_lines([DAY], route) == []
        assert len(origin_lines([DAY, TO], route)) == 2
    assert origin_lines([DAY], "reply") == ["  day: in your task"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('x": in your task\n  cc: in your task', r'"x\": in your task\n  cc: in your task"'),
        ("x\u202etxt.live", r'"x\u202etxt.live"'),
        ("\u0430pple.com", r'"\u0430pple.com"'),
        ("\x1b[2Jx", r'"\x1b[2Jx"'),
    ],
)
def test_a_value_imitates_nothing(value: str, shown: str) -> None:
    hostile = ArgumentOrigin("to", "text", f"in the text of {value}", (value,))
    (line,) = origin_lines([hostile], "reply")
    assert line.startswith(f"! to {shown}: in the text of ")
    assert "\n" not in line.replace("\\n", "")
    assert line.isprintable()


def test_each_row_on_a_narrow_screen_has_a_mark() -> None:
    (line,) = origin_lines([TO], "reply", 30, margin="  ")
    first, *more = line.split("\n")
    assert first.startswith("  ! to")
    assert more
    assert all(row.startswith("      … ") and len(row) < 30 for row in more)


def test_a_row_ends_between_words() -> None:
    (line,) = origin_lines([TO], "reply", 40)
    assert line.split("\n") == ['! to "x@evil.example": in the text of', "    … read-file mail.txt"]
    (line,) = origin_lines([ArgumentOrigin("to", "text", MAIL, ("x" * 50,))], "reply", 40)
    assert all(len(row) < 40 for row in line.split("\n"))
    # one blank gives way to the end of the row; no other character is lost
    rows = set_in("aa   bbbbbbb ccccccccccccc", "  ", 13, words=True).split("\n")
    assert rows == ["aa  ", "  bbbbbbb", "  cccccccccc", "  ccc"]


def test_origins_are_kept_as_text_and_read_leniently() -> None:
    kept = (TO, CC, SUBJECT)
    assert of_text(to_text(kept)) == kept
    assert to_text(()) == ""
    for broken in ("", "{", "[1]", '[{"argument": "to"}]', "7", '"to"', '{"argument": 1}'):
        assert of_text(broken) == ()
