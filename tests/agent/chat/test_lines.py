"""The lines of a gateway: what each says, and one sentence for each that says nothing usable."""

from __future__ import annotations

import json
from typing import Any

import pytest
from sentences import (
    CANNOT_BE_READ,
    IS_A_TEXT_NOT,
    IS_GIVEN_TWICE,
    IS_LONGER_THAN,
    IS_NOT_UTF_8_TEXT,
    NESTED_TOO_DEEPLY,
    THE_LINE_HAS_NO_TEXT,
)
from words import complaint

from quoth.agent.chat.lines import LONGEST, ChatMessage, Choice, LineError, Outgoing, Splitter, read_line

SAID = {"id": 1, "user": "ann", "chat": "7", "text": "Hello."}


def line(**parts: Any) -> bytes:
    """A message, with these parts in place of the usual ones; None leaves one out."""
    return json.dumps({name: part for name, part in (SAID | parts).items() if part is not None}).encode()


def decision(**parts: Any) -> bytes:
    return line(**{"id": None, "text": None} | parts)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (line(), ChatMessage(1, "ann", "7", "Hello.")),
        (line(id="a-1"), ChatMessage("a-1", "ann", "7", "Hello.")),
        (line(id=-(10**60)), ChatMessage(-(10**60), "ann", "7", "Hello.")),
        (line(text="مرحبا 👋\nRESEARCH: x"), ChatMessage(1, "ann", "7", "مرحبا 👋\nRESEARCH: x")),
        (line(chat="!room:example.org"), ChatMessage(1, "ann", "!room:example.org", "Hello.")),
        (decision(approve="k3x9m"), Choice(None, "ann", "7", "k3x9m", True)),
        (decision(deny="k3x9m", why="No."), Choice(None, "ann", "7", "k3x9m", False, "No.")),
        (decision(id=4, deny="k3x9m"), Choice(4, "ann", "7", "k3x9m", False)),
        (line(id=None, answer="k3x9m"), Choice(None, "ann", "7", "k3x9m", False, answer="Hello.")),
    ],
)
def test_a_line_says_one_thing(given: bytes, said: ChatMessage | Choice) -> None:
    assert read_line(given) == said


MISTAKES = [
    (b"hello", "The line is not JSON: expecting value, at character 1."),
    (
        b'{"id": 1,',
        "The line is not JSON: expecting property name enclosed in double quotes, at character 10.",
    ),
    (b'{"id": NaN}', "The line is not JSON: NaN is not a JSON number."),
    (
        b"[1]",
        f"A line must be an object, {json.dumps(SAID | {'text': '…'}, ensure_ascii=False)}, not a list.",
    ),
    (
        b'"hello"',
        f"A line must be an object, {json.dumps(SAID | {'text': '…'}, ensure_ascii=False)}, not a text.",
    ),
    (b"[" * 100_000, f"The line {CANNOT_BE_READ}: it is {NESTED_TOO_DEEPLY}."),
    (b'{"id": "\xff"}', f"The line {IS_NOT_UTF_8_TEXT} (byte 9)."),
    (b'{"user": "ann", "user": "ben"}', f"The key user {IS_GIVEN_TWICE} in one object."),
    (line(txt="x"), "There is no key txt. Did you mean text?"),
    (line(approved=True), "There is no key approved. Did you mean approve?"),
    (line(zzz=1), "There is no key zzz. The keys are id, user, chat, text, approve, deny, why, answer."),
    (line(text=None), f"{THE_LINE_HAS_NO_TEXT}."),
    (line(user=None), "The line has no user."),
    (line(chat=None), "The line has no chat."),
    (line(id=None), "The line has no id. Give one, by which the gateway recognises a repeated message."),
    (decision(answer="k3x9m"), "An answer needs a text."),
    (line(answer="k3x9m", deny="k3x9m"), "A line must have only one of deny and answer."),
    (line(approve="k3x9m"), "A line must have only one of text and approve."),
    (decision(approve="k3x9m", deny="k3x9m"), "A line must have only one of approve and deny."),
    (line(why="x"), "why is allowed only with deny."),
    (line(text=7), f"text {IS_A_TEXT_NOT} a number."),
    (line(text=["x"]), f"text {IS_A_TEXT_NOT} a list."),
    (line(user={"name": "ann"}), f"user {IS_A_TEXT_NOT} an object."),
    (line(chat=7), 'chat must be a text, "7", not a number.'),
    (line(chat=True), f"chat {IS_A_TEXT_NOT} true or false."),
    (decision(approve=False), f"approve {IS_A_TEXT_NOT} true or false."),
    (decision(deny="k3x9m", why=1), f"why {IS_A_TEXT_NOT} a number."),
    (line(id=1.5), "id must be a whole number or a short text, not 1.5."),
    (line(id=""), "id must be a whole number or a short text, not an empty one."),
    (line(id=[1]), "id must be a whole number or a short text, not a list."),
    (line(id=True), "id must be a whole number or a short text, not true."),
    (line(id="x" * 201), "id must be a whole number or a short text, not one of 201 characters."),
    (line(text=""), "The text is empty."),
    (line(text=" \n\t"), "The text is empty."),
    (line(user=" "), "user is empty."),
    (line(user="ann\nben"), "user must be a short text, without control characters."),
    (line(chat="x" * 201), "chat must be a short text, not one of 201 characters."),
    (line(text="a\0b"), "text contains a NUL character."),
    (line(text="\ud800"), "text contains an invalid character (an unpaired surrogate)."),
    (line(user="\ud800"), "user contains an invalid character (an unpaired surrogate)."),
    (line(id="\ud800"), "id must be a whole number or a short text, without control characters."),
    (
        b'{"id": ' + b"9" * 5000 + b"}",
        f"The line {CANNOT_BE_READ}: it contains a number with too many digits.",
    ),
    (line(text="x" * LONGEST), f"The line {IS_LONGER_THAN} 1,000,000 bytes."),
]


@pytest.mark.parametrize(("given", "sentence"), MISTAKES, ids=[sentence[:50] for _, sentence in MISTAKES])
def test_a_mistake_gets_one_sentence(given: bytes, sentence: str) -> None:
    assert complaint(LineError, lambda: read_line(given)) == sentence


def test_a_mistake_is_told_to_the_message_that_has_it() -> None:
    with pytest.raises(LineError) as caught:
        read_line(line(txt="x", id="a-1"))
    assert (caught.value.id, caught.value.chat) == ("a-1", "7")
    with pytest.raises(LineError) as caught:
        read_line(line(id=[1], chat="\ud800"))
    assert (caught.value.id, caught.value.chat) == (None, None)


def test_a_line_out_is_one_line_for_every_reader() -> None:
    text = "a\nb\r\x0b\x1c\x85\u2028\u2029\ud800é"
    out = Outgoing(1, "7", "reply", text, ({"tool": "echo"},)).to_line()
    assert (len(out.decode().splitlines()), out.endswith(b"\n")) == (1, True)
    assert json.loads(out) == {
        "id": 1,
        "chat": "7",
        "kind": "reply",
        "text": text.replace("\ud800", "?"),
        "calls": [{"tool": "echo"}],
    }


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_lines_are_cut_wherever_the_pieces_end(size: int) -> None:
    data = b'{"a": 1}\r\n\n  \n{"b": "\xc3\xa9"}\nlast'
    splitter = Splitter()
    found = [line for at in range(0, len(data), size) for line in splitter.feed(data[at : at + size])]
    assert [*found, *splitter.end()] == [b'{"a": 1}\r', b'{"b": "\xc3\xa9"}', b"last"]


def test_a_line_without_an_end_takes_no_more_room_than_the_longest() -> None:
    splitter = Splitter()
    for _ in range(40):
        assert splitter.feed(b"x" * 100_000) == []
    too_long, after = splitter.feed(b"x\nafter\n")
    assert (len(too_long), after) == (LONGEST + 1, b"after")
