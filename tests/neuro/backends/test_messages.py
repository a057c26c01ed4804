"""The conversation: neutral records, and what each kind of server is sent of them. The past is a prefix."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.neuro.backends import messages as messages_module
from quoth.neuro.backends import wire
from quoth.neuro.backends.messages import Messages, NativeCall, Wire, as_kept
from quoth.neuro.backends.wire import SHORT_ID, UNREADABLE, Roles, as_object

WIRES: dict[str, Wire] = {
    "as kept": as_kept,
    "text": wire.text,
    "text as user": wire.text_as_user,
    "openai": wire.openai,
    "mistral": wire.Chat(ids=SHORT_ID, roles=Roles(strict=True)),
    "without system": wire.Chat(roles=Roles(system=False)),
    "responses": wire.responses,
    "responses text": wire.responses_text,
    "anthropic": wire.anthropic,
    "anthropic text": wire.anthropic_text,
}


def call(id: str = "c1", name: str = "look", arguments: str = '{"path":"a"}') -> NativeCall:
    return NativeCall(id=id, name=name, arguments=arguments)


def test_a_message_is_kept_with_what_belongs_to_it() -> None:
    messages = Messages()
    messages.append("user", "hi")
    messages.append("assistant", "I look.", calls=[call()], kept={"anthropic": [1]})
    messages.append("tool", "eins", "c1")
    assert list(messages) == [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I look.", "calls": [call()], "kept": {"anthropic": [1]}},
        {"role": "tool", "content": "eins", "call_id": "c1"},
    ]
    assert json.loads(messages.as_json()) == list(messages)


def test_half_a_character_is_not_sent_back() -> None:
    messages = Messages()
    messages.append("assistant", "a\ud800", calls=[call(arguments='{"path":"\ud800"}')])
    assert messages[0]["content"] == "a?"
    assert messages[0]["calls"][0]["arguments"] == '{"path":"?"}'


turns = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.sampled_from(["", " ", "I look.", "é\n"]),
            "calls": st.integers(0, 3),
            "cue": st.sampled_from(["", "Go on."]),
        }
    ),
    max_size=6,
)


@pytest.mark.parametrize("name", WIRES)
@given(turns=turns)
def test_each_request_is_a_prefix_of_the_next_byte_for_byte(name: str, turns: list[dict[str, Any]]) -> None:
    messages = Messages()
    messages.append("system", "Be kind.")
    messages.append("user", "hi")
    written = messages.written(WIRES[name])
    assert messages.written(WIRES[name]) == written
    for place, turn in enumerate(turns):
        calls = [call(f"c{place}-{index}") for index in range(turn["calls"])]
        messages.append("assistant", turn["text"], calls=calls)
        for made in calls:
            messages.append("tool", "eins", made["id"])
        if turn["cue"] or not calls:
            messages.append("user", turn["cue"] or "Well?")
        before, written = written, messages.written(WIRES[name])
        assert json.loads(written)[: len(json.loads(before))] == json.loads(before)
        assert written.startswith(before.removesuffix(b"]") + b",")


def test_the_past_is_written_once_for_each_kind_of_server() -> None:
    seen: list[int] = []

    def count(new: Any) -> Any:
        seen.append(len(new))
        return new

    def counting() -> Any:
        return count

    messages = Messages()
    for _ in range(3):
        messages.append("user", "hi")
        messages.written(counting)
        messages.written(counting)
    assert seen == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 40, 10_000])
def test_the_pieces_are_the_whole_and_old_ones_are_never_copied(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_module, "PIECE", size)
    messages = Messages()
    assert messages.written(as_kept) == b"[]"
    before: list[bytes] = []
    for number in range(30):
        messages.add({"role": "user", "content": f"é {number} " * (number % 4)})
        now = messages.pieces(as_kept)
        assert json.loads(b"".join(now)) == list(messages)
        assert len(now[-1]) < size + 100
        assert all(old is new for old, new in zip(before[:-1], now, strict=False))
        before = now
    assert len(before) == {1: 31, 40: 21, 10_000: 1}[size]


@pytest.mark.parametrize("size", [1, 40, 10_000])
def test_what_was_sent_is_remembered_as_it_was(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_module, "PIECE", size)
    sent, expected = messages_module.SentBytes(), []
    for conversation in (Messages(), Messages()):
        for number in range(10):
            expected.append(conversation.as_json())
            sent.add(conversation)
            conversation.append("user", f"é {number} " * (number % 4))
    assert list(sent) == expected
    assert sent[2:-1:3] == expected[2:-1:3]
    assert (sent[-1], len(sent)) == (expected[-1], 20)


def test_the_system_message_is_what_all_of_them_say() -> None:
    messages = Messages()
    assert messages.system == ""
    messages.append("system", "Be kind.")
    messages.append("user", "hi")
    messages.append("system", "Be brief.")
    assert messages.system == "Be kind.\n\nBe brief."


def test_a_model_without_native_calls_reads_them_as_forms_and_their_results_as_one_message() -> None:
    messages = Messages()
    messages.append("assistant", "", calls=[call(), call("c2", "rest", '{"n": 2, "deep": {"a": [null]}}')])
    messages.append("tool", "eins", "c1")
    messages.append("tool", "zwei", "c2")
    messages.append("user", "Go on.")
    assert json.loads(messages.written(wire.text)) == [
        {"role": "assistant", "content": '(look :path "a")\n(rest :n 2 :deep {"a" [None]})'},
        {"role": "tool", "content": "eins\n\nzwei"},
        {"role": "user", "content": "Go on."},
    ]


@pytest.mark.parametrize("arguments", ["{", "[1]", "3", '{"a": NaN}', "[" * 100_000])
def test_arguments_nobody_can_read_say_so(arguments: str) -> None:
    assert as_object(arguments) == {UNREADABLE: arguments}


@pytest.mark.parametrize(
    ("arguments", "read"),
    [("", {}), (" ", {}), ("null", {}), ('"{\\"a\\": 1}"', {"a": 1}), ('{"a": "\\ud800"}', {"a": "?"})],
)
def test_arguments_that_can_be_read_are_an_object(arguments: str, read: dict[str, Any]) -> None:
    assert as_object(arguments) == read
