"""What goes into a history is what any server takes, whatever a model, a server or a person did before."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_rules import RULES, fault

from quoth.neuro.backends import wire
from quoth.neuro.backends.history import SHORT_ID, sound_name
from quoth.neuro.backends.messages import Message, Messages, NativeCall, Wire
from quoth.neuro.backends.roles import Roles, refuses_results, roles_to_try

WIRES: dict[str, Wire] = {
    "openai": wire.openai,
    "anthropic": wire.Anthropic("anthropic"),
    "responses": wire.Responses("responses"),
    "mistral": wire.Chat(ids=SHORT_ID, roles=Roles(strict=True)),
    "gemini": wire.Chat("gemini", signs=True),
    "no system": wire.Chat(roles=Roles(system=False)),
}
TEXTS: dict[str, tuple[Wire, str]] = {
    "openai": (wire.text_as_user, "openai"),
    "no system": (wire.Text(as_user=True, roles=Roles(system=False)), "no system"),
    "anthropic": (wire.anthropic_text, "anthropic"),
    "responses": (wire.responses_text, "responses"),
}

ids = st.sampled_from(["c1", "c1", "c2", "", "call 0", "functions.look:0", "x" * 90, "abcdefghi", "é"])
names = st.sampled_from(["look", "", "read_file<|channel|>commentary", 'a" b="c', "9lives", "x" * 80, "é.b"])
arguments = st.sampled_from(
    ['{"path":"a"}', "", "null", "{", '{"a":NaN}', "[1]", '"{\\"a\\":1}"', '{"a":"\\ud800"}', "{}}", "3"]
)
words = st.sampled_from(["", " ", "I look", "é\n"])
calls = st.lists(st.builds(NativeCall, id=ids, name=names, arguments=arguments), max_size=3)


def event(do: str, **fields: Any) -> Any:
    return st.fixed_dictionaries({"do": st.just(do), **fields})


events = st.lists(
    st.one_of(
        # A request with the reply to it, and with results of some of its calls, in any order, and of others.
        event("turn", text=words, calls=calls, thinks=st.booleans(), ids=st.lists(ids, max_size=3)),
        event("turn", text=words, calls=calls, thinks=st.booleans(), ids=st.none()),
        event("say", text=words, role=st.sampled_from(["user", "tool"])),
        event("answer", ids=st.lists(ids, min_size=1, max_size=2)),
        event("send"),  # no reply comes
        event("shorten", to=st.integers(0, 5)),
    ),
    max_size=12,
)


def thoughts(event: dict[str, Any], text: str) -> dict[str, Any]:
    """What each provider would have kept of a reply, with calls as raw as the model wrote them."""
    said = [{"type": "text", "text": text}] if text.strip() else []
    spoken = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
    uses = [{"type": "tool_use", "id": one["id"], "name": one["name"], "input": {}} for one in event["calls"]]
    items = [
        {"type": "function_call", "call_id": one["id"], "name": "x", "arguments": "{"}
        for one in event["calls"]
    ]
    return {
        "anthropic": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, *said, *uses],
        "responses": [{"type": "reasoning", "id": "r"}, *(spoken if said else []), *items]
        if event["calls"]
        else [],
        "gemini": [{"google": {"thought_signature": "s"}} for _ in event["calls"]],
    }


class Story:
    """A conversation with every fault, and what each server was sent of it at each request."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.messages = Messages.of(
            [Message(role="system", content="Be kind."), Message(role="user", content="hi")]
        )
        self._sent: dict[str, bytes] = {}
        self._count = 0
        for event in events:
            getattr(self, f"_{event['do']}")(event)
        self._send()

    def _words(self, text: str) -> str:
        """Words that are nowhere else."""
        self._count += 1
        return f"{text} {self._count}." if text.strip() else text

    def _say(self, event: dict[str, Any]) -> None:
        self.messages.append(event["role"], self._words(event["text"]))

    def _turn(self, event: dict[str, Any]) -> None:
        if self.messages[-1]["role"] == "assistant":
            self.messages.append("user", self._words("Go on"))
        self._send()
        text = self._words(event["text"])
        kept = thoughts(event, text) if event["thinks"] else None
        self.messages.append("assistant", text, calls=event["calls"], kept=kept)
        self._answer(event)

    def _answer(self, event: dict[str, Any]) -> None:
        last = [one["id"] for one in self.messages[-1].get("calls", ())]
        for id in last if event["ids"] is None else event["ids"]:
            self.messages.append("tool", self._words("eins"), id or "gone")

    def _send(self, event: dict[str, Any] | None = None) -> None:
        if self.messages[-1]["role"] == "assistant" and "calls" not in self.messages[-1]:
            return
        for name, way in WIRES.items():
            now = self.messages.written(way)
            self._is_taken(now, name, with_system=name != "anthropic")
            before = self._sent.get(name, b"[]")
            assert now == before or now.startswith(before.removesuffix(b"]")), "a prefix"
            self._sent[name] = now
        for name, (way, rules) in TEXTS.items():
            self._is_taken(self.messages.written(way), rules, with_system=name != "anthropic")
        again = Messages.of(self.messages)  # brought back in another process
        assert {name: again.written(way) for name, way in WIRES.items()} == self._sent

    def _is_taken(self, written: bytes, name: str, *, with_system: bool) -> None:
        assert fault(json.loads(written), RULES[name]) == "", name
        told = json.dumps(json.loads(written), ensure_ascii=False)
        for message in self.messages:
            if with_system or message["role"] != "system":
                assert json.dumps(message["content"].strip(), ensure_ascii=False)[1:-1] in told, (
                    "words are lost"
                )

    def _shorten(self, event: dict[str, Any]) -> None:
        """As compaction does: the opening, and all from a reply on."""
        turns = [place for place, one in enumerate(self.messages) if one["role"] == "assistant"]
        if event["to"] < len(turns):
            self.messages = Messages.of([*self.messages][:2] + [*self.messages][turns[event["to"]] :])
            self._sent = {}


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
        ('read_file" path="notes.txt', "read_file_path_notes_txt"),
        ("9lives", "_9lives"),
        ("x" * 80, "x" * 64),
    ],
)
def test_the_name_of_a_tool_goes_back_as_every_provider_allows(name: str, sent: str) -> None:
    assert sound_name(name) == sent


# What servers and templates say, in words of our own, and what is tried then.
REFUSALS = [
    ("System role not supported", [Roles(system=False)]),
    ("The system message is not allowed for this model.", [Roles(system=False)]),
    ("This model does not support system prompts.", [Roles(system=False)]),
    ("Developer instruction is not enabled for models/x", [Roles(system=False)]),
    ("Only user and assistant roles are supported!", [Roles(system=False)]),
    ("messages.0.role: 'system' is not one of ['user', 'assistant']", [Roles(system=False)]),
    (
        "Conversation roles must alternate user/assistant/user/assistant/...",
        BOTH := [Roles(strict=True), Roles(False, True)],
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
def test_a_refusal_of_roles_is_known_by_its_words(words: str, tried: list[Roles]) -> None:
    assert roles_to_try(words, Roles()) == tried
    assert not (refuses_results(words) and not tried)
