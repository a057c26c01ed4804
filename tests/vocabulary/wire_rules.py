"""The rules by which five providers refuse a history, as data, and a loopback server that refuses by them.

They are those of the providers' documentation and of the refusals that their users report: OpenAI's chat
completions and Responses, Anthropic's messages, Mistral, and Gemini at its OpenAI-compatible address.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from loopback import Answer, status

Item = dict[str, Any]


@dataclass(frozen=True)
class Rules:
    """What one provider takes. ``turns`` names for each role those that may follow it (``""`` begins);
    ``signed``: the first call of each turn has a signature. ``says`` is how it words a refusal."""

    name: str
    ids: str
    names: str
    turns: dict[str, set[str]]
    read: Callable[[Any], Iterator[Entry]]
    signed: bool = False
    says: str = ""


@dataclass(frozen=True)
class Entry:
    """A message, a call or a result of a history, as every provider has them."""

    role: str  # system, user, assistant, tool
    text: str = ""
    calls: tuple[Item, ...] = ()  # id, name, arguments (an object, or what is none), signed
    answers: tuple[str, ...] = ()  # the ids of calls


def chat(messages: list[Item]) -> Iterator[Entry]:
    for message in messages:
        content = message["content"]
        calls = [
            {
                "id": call["id"],
                "name": call["function"]["name"],
                "arguments": _value(call["function"]["arguments"]),
                "signed": call.get("extra_content"),
            }
            for call in message.get("tool_calls", ())
        ]
        answers = (message["tool_call_id"],) if message["role"] == "tool" else ()
        yield Entry(message["role"], _text(content), tuple(calls), answers)


def anthropic(messages: list[Item]) -> Iterator[Entry]:
    for message in messages:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        assert blocks, "content is empty"
        assert all(block["text"].strip() for block in blocks if block["type"] == "text"), "a blank block"
        assert "thinking" not in str(blocks[-1]["type"]), "a reply ends with a thought"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        kinds = [block["type"] == "tool_result" for block in blocks]
        assert kinds == sorted(kinds, reverse=True), "a result behind other blocks"
        if results:
            yield Entry("tool", "results", answers=tuple(results))
            blocks = [block for block in blocks if block["type"] != "tool_result"]
        uses = [
            {"id": block["id"], "name": block["name"], "arguments": block["input"]}
            for block in blocks
            if block["type"] == "tool_use"
        ]
        if blocks:
            yield Entry(message["role"], _text(blocks) or "…", tuple(uses))


def responses(items: list[Item]) -> Iterator[Entry]:
    said, calls = "", list[Item]()  # of the reply that is being read
    for item in [*items, {"type": "end"}]:
        kind = item.get("type", "message")
        if kind == "function_call":
            calls.append(
                {"id": item["call_id"], "name": item["name"], "arguments": _value(item["arguments"])}
            )
        elif kind == "message" and item["role"] == "assistant":
            assert not calls, "words between a call and its result"
            said += _text(item["content"])
        elif kind != "reasoning":
            if said or calls:
                yield Entry("assistant", said, tuple(calls))
            said, calls = "", []
            if kind == "function_call_output":
                yield Entry("tool", item["output"], answers=(item["call_id"],))
            elif kind == "message":
                yield Entry(item["role"], _text(item["content"]))


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or f"({part['type']})" for part in content)
    return content or ""


def _value(arguments: str) -> Any:
    return json.loads(arguments)


FREE = {
    "": {"system", "user"},
    "system": {"user"},
    "user": {"assistant"},
    "assistant": {"user", "tool"},
    "tool": {"tool", "assistant", "user"},
}
ORDERED = FREE | {"tool": {"tool", "assistant"}}
TWO = {"": {"user"}, "user": {"assistant"}, "assistant": {"user"}}
ALTERNATE = "Conversation roles must alternate user/assistant/user/assistant/..."
WORD = "[a-zA-Z0-9_-]{1,64}"

RULES = {
    rules.name: rules
    for rules in (
        Rules("openai", ".{1,40}", WORD, FREE, chat),
        Rules("anthropic", WORD, WORD, FREE, anthropic),
        Rules("responses", ".{1,64}", WORD, FREE, responses),
        Rules("mistral", "[a-zA-Z0-9]{9}", WORD, ORDERED, chat),
        # Templates of models, behind servers that take anything.
        Rules("no system", ".*", ".*", FREE | {"": {"user"}}, chat, says="System role not supported"),
        Rules("ordered", ".*", ".*", ORDERED, chat, says=ALTERNATE),
        Rules("two roles", ".*", ".*", TWO, chat, says=ALTERNATE),
        Rules("gemini", ".{1,64}", "[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", FREE, chat, signed=True),
    )
}


def fault(history: Any, rules: Rules) -> str:
    """Why a provider refuses a history; empty where it takes it."""
    try:
        entries = list(rules.read(history))
        _check(entries, rules)
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _check(entries: list[Entry], rules: Rules) -> None:
    last, open, used = "", set[str](), set[str]()
    for place, entry in enumerate(entries):
        assert entry.role in rules.turns[last], f"{place}: unexpected role {entry.role} after role {last}"
        assert entry.text.strip() or entry.calls, f"{place}: {entry.role} has no content"
        for id in entry.answers:
            assert id in open, f"{place}: no call has the id {id}"
            open.remove(id)
        assert entry.role == "tool" or not open, f"{place}: no results of {open}"
        for call in entry.calls:
            assert re.fullmatch(rules.ids, call["id"]), f"{place}: the id {call['id']}"
            assert call["id"] not in used, f"{place}: the id {call['id']} is not unique"
            assert re.fullmatch(rules.names, call["name"]), f"{place}: the name {call['name']!r}"
            assert isinstance(call["arguments"], dict), f"{place}: arguments {call['arguments']!r}"
            json.dumps(call["arguments"], allow_nan=False)
            open.add(call["id"])
            used.add(call["id"])
        if entry.calls and rules.signed:
            assert entry.calls[0]["signed"], f"{place}: a call is missing a thought_signature"
        last = entry.role
    assert not open, f"no results of {open}"
    assert last != "assistant", "expected last role user or tool"


# The loopback server


class Strict:
    """The answers of a server that takes a request only by the rules of the provider ``name``: each gets the
    next of the ``replies``. A reply has ``text``, ``calls`` (name, arguments and perhaps an id), ``thought``
    and ``cut``; an Answer is given as it is."""

    def __init__(self, name: str, replies: Sequence[Item | Answer]) -> None:
        self._name, self._rest = name, list(replies)
        self.refusals: list[str] = []

    def __call__(self, handler: Any) -> None:
        asked = json.loads(handler.server.requests[-1][2])
        if why := fault(asked.get("messages", asked.get("input")), RULES[self._name]):
            self.refusals.append(why)
            said = RULES[self._name].says or why
            status(400, {"error": {"message": said}})(handler)
            return
        reply = self._rest.pop(0)
        (reply if callable(reply) else status(200, SPOKEN[self._name](reply)))(handler)


def _calls(reply: Item) -> Iterator[tuple[str, str, str]]:
    for place, call in enumerate(reply.get("calls", ())):
        name, arguments, *id = call
        yield id[0] if id else f"call_{place}", name, arguments


def _chat_reply(reply: Item) -> Item:
    message: Item = {"role": "assistant", "content": reply.get("text", "")}
    message["tool_calls"] = [
        {
            "id": id,
            "type": "function",
            "function": {"name": name, "arguments": arguments},
            "extra_content": {"google": {"thought_signature": reply.get("thought")}},
        }
        for id, name, arguments in _calls(reply)
    ]
    if thought := reply.get("thought"):
        message["reasoning_content"] = thought
        message["reasoning_details"] = [{"type": "reasoning.encrypted", "data": thought}]
    return {"choices": [{"message": message, "finish_reason": "length" if reply.get("cut") else "stop"}]}


def _anthropic_reply(reply: Item) -> Item:
    blocks: list[Item] = []
    if thought := reply.get("thought"):
        blocks.append({"type": "thinking", "thinking": thought, "signature": "s"})
    blocks.append({"type": "text", "text": reply.get("text", "")})
    for id, name, arguments in _calls(reply):
        try:
            value = json.loads(arguments)
        except ValueError:
            value = {}
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": value})
    return {"content": blocks, "stop_reason": "max_tokens" if reply.get("cut") else "end_turn"}


def _responses_reply(reply: Item) -> Item:
    items: list[Item] = []
    if thought := reply.get("thought"):
        items.append({"type": "reasoning", "id": "r", "summary": [], "encrypted_content": thought})
    if text := reply.get("text"):
        items.append(
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        )
    for id, name, arguments in _calls(reply):
        items.append(
            {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": name, "arguments": arguments}
        )
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    return {"output": items, **(cut if reply.get("cut") else {"status": "completed"})}


SPOKEN: dict[str, Callable[[Item], Item]] = {
    "openai": _chat_reply,
    "anthropic": _anthropic_reply,
    "responses": _responses_reply,
    "mistral": _chat_reply,
    "gemini": _chat_reply,
    "no system": _chat_reply,
    "ordered": _chat_reply,
    "two roles": _chat_reply,
}
