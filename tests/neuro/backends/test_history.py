"""What goes into a history is what any server takes, whatever a model, a server or a person did before."""

from __future__ import annotations

from typing import Any

import pytest
from histories import Story, events
from hypothesis import given, settings
from wire_rules import RULES, fault

from quoth.neuro.backends.openai import _changes
from quoth.neuro.backends.wire import accepted_name
from quoth.neuro.backends.wordings import says


@settings(max_examples=300)
@given(events=events)
def test_every_provider_takes_every_conversation_and_what_was_sent_never_changes(
    events: list[dict[str, Any]],
) -> None:
    Story(events)


def test_no_provider_takes_what_is_against_its_rules() -> None:
    """The rules of the property, which else would prove nothing."""
    system, user, reply = ({"role": role, "content": "hi"} for role in ("system", "user", "assistant"))
    call = {"id": "abcdefghi", "function": {"name": "look", "arguments": "{}"}, "extra_content": {"a": 1}}
    result = {"role": "tool", "tool_call_id": "abcdefghi", "content": "eins"}

    def calling(**changes: Any) -> dict[str, Any]:
        function = {**call["function"], **changes.pop("function", {})}  # type: ignore[dict-item]
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{**call, "function": function, **changes}],
        }

    assert all(
        fault([system, user, calling(), result], RULES[name]) == ""
        for name in ("openai", "mistral", "gemini")
    )
    for history, words in [
        ([user, user], "unexpected role"),
        ([user, reply], "expected last role"),
        ([user, calling()], "no results"),
        ([user, calling(), user], "no results"),
        ([user, calling(), result, result], "no call has the id"),
        ([user, calling(), result, calling(), result], "not unique"),
        ([user, calling(function={"name": "a b"}), result], "the name"),
        ([user, calling(function={"arguments": "{"}), result], "JSONDecodeError"),
        ([user, calling(function={"arguments": "[]"}), result], "arguments"),
        ([user, calling(function={"arguments": '{"a":NaN}'}), result], "not JSON compliant"),
        ([user, {"role": "assistant", "content": " "}, user], "no content"),
    ]:
        assert words in fault(history, RULES["openai"])
    assert "unexpected role user after role tool" in fault([user, calling(), result, user], RULES["mistral"])
    assert "the id" in fault([user, calling(id="c1"), {**result, "tool_call_id": "c1"}], RULES["mistral"])
    assert "thought_signature" in fault([user, calling(extra_content=None), result], RULES["gemini"])
    assert "unexpected role system" in fault([system, user], RULES["no system"])


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("read-file", "read-file"),
        ("", "unnamed"),
        ("<|>", "unnamed"),
        ("read_file<|channel|>commentary", "read_file"),
        ('read_file" path="notes.txt', "read_file_path_notes_txt"),
        ("9lives", "_9lives"),
        ("x" * 80, "x" * 64),
    ],
)
def test_the_name_of_a_tool_goes_back_as_every_provider_allows(name: str, sent: str) -> None:
    assert accepted_name(name) == sent


# What servers and templates say, in words of our own, and what is tried then.
REFUSALS = [
    ("System role not supported", [{"system": False}]),
    ("The system message is not allowed for this model.", [{"system": False}]),
    ("This model does not support system prompts.", [{"system": False}]),
    ("Developer instruction is not enabled for models/x", [{"system": False}]),
    ("Only user and assistant roles are supported!", [{"system": False}]),
    ("messages.0.role: 'system' is not one of ['user', 'assistant']", [{"system": False}]),
    (
        "Conversation roles must alternate user/assistant/user/assistant/...",
        BOTH := [{"strict": True}, {"strict": True, "system": False}],
    ),
    ("After the optional system message, conversation roles must alternate.", BOTH),
    ("Unexpected role 'user' after role 'tool'", BOTH),
    ("two consecutive user messages are not supported", BOTH),
    ("The tool look is not supported.", []),
    ("temperature is not supported by the system", []),
    ("The server had an error in its system.", []),
    ("This model's maximum context length is 8192 tokens; messages of the user are 9000.", []),
]


@pytest.mark.parametrize(("words", "tried"), REFUSALS, ids=[words[:24] for words, _ in REFUSALS])
def test_a_refusal_of_roles_is_known_by_its_words(words: str, tried: list[dict[str, bool]]) -> None:
    assert _changes({"message": words}, "") == tried
    assert not (says({"message": words}, "alternate", "only-users") and not tried)
