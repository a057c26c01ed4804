"""Random conversations with every fault that models, servers and people make, and the five providers whose
rules each history of them has to follow; also those of all other tests, which a fixture watches.

    python tests/vocabulary/histories.py 20000      so many conversations, and a table of what was in them
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

sys.path[:0] = [str(Path(__file__).parent)]

from wire_rules import RULES, fault  # noqa: E402

from quoth.neuro.backends import wire  # noqa: E402
from quoth.neuro.backends.messages import Message, Messages, NativeCall, SentBytes, Wire  # noqa: E402
from quoth.neuro.backends.wire import SHORT_ID, Roles  # noqa: E402

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
    [
        '{"path":"a"}',
        "",
        "null",
        "{",
        '{"a":NaN}',
        '{"a":1e999}',
        "[1]",
        '"{\\"a\\":1}"',
        '{"a":"\\ud800"}',
        "{}}",
        "3",
    ]
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
        self._count = self.requests = 0
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
        self.requests += 1
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


@contextmanager
def refusals() -> Iterator[list[str]]:
    """Why a provider would refuse a conversation that a scripted model is asked with meanwhile."""
    found: list[str] = []
    add = SentBytes.add

    def watched(self: SentBytes, messages: Messages) -> None:
        add(self, messages)
        for name, way in WIRES.items():
            if why := fault(json.loads(messages.written(way)), RULES[name]):
                found.append(f"{name}: {why}")

    SentBytes.add = watched  # type: ignore[method-assign]
    try:
        yield found
    finally:
        SentBytes.add = add  # type: ignore[method-assign]


def main(count: int) -> None:
    seen: Counter[str] = Counter()

    @settings(max_examples=count, deadline=None, database=None, print_blob=True)
    @given(events=events)
    def look(events: list[dict[str, Any]]) -> None:
        story = Story(events)
        seen["conversations"] += 1
        seen["requests"] += story.requests
        seen.update(f"event: {one['do']}" for one in events)
        seen["calls"] += sum(len(one.get("calls", ())) for one in events)

    look()
    for what, number in sorted(seen.items()):
        print(f"{what:24}{number:>10,}")
    print(f"each request as {', '.join([*WIRES, *(f'{name} in text' for name in TEXTS)])}: none refused")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 2000)
