"""Streams in the format that the providers document: what is heard in them, and that nothing in them is lost.

Each file in data/streams names the documentation it was written from, and when that was read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from loopback import KEY, Sleeps, loopback, said, status

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import NativeCall
from quoth.neuro.backends.openai import OpenAIBackend, ResponsesBackend

STREAMS = Path(__file__).parents[1] / "data" / "streams"
BACKENDS: dict[str, Callable[..., Any]] = {
    "openai": OpenAIBackend,
    "responses": ResponsesBackend,
    "anthropic": AnthropicBackend,
}
WORDS = "Good morning, Zoë."
TOOLS = b'[{"name":"read-file"}]'


def usage(told: int, said: int, cached: int = 0, thought: int = 0, written: int = 0) -> Usage:
    return Usage(told, said, cached_tokens=cached, reasoning_tokens=thought, written_tokens=written)


def calls(first: str, second: str, between: str = "") -> tuple[NativeCall, ...]:
    return tuple(
        NativeCall(id=id, name="read-file", arguments=f'{{"path":{between}"{path}.txt"}}')
        for id, path in ((first, "a"), (second, "é"))
    )


THOUGHT = {
    "id": "rs_6876cf02e0bc",
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "gAAAAABo9jZx4uVq==",
}
SIGNED = {
    "type": "thinking",
    "thinking": "Two files, so two calls.",
    "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h",
}

# The name of the file, what is shown of it as it comes, the reply, and the first of what is kept with it.
HEARD: list[tuple[str, str, Completion, Any]] = [
    ("openai-words", WORDS, Completion(WORDS, usage(1117, 46, 1024, 32)), None),
    ("openai-calls", "", Completion("", usage(180, 60), calls=calls("call_a", "call_b")), None),
    ("openai-refusal", "", Completion("I cannot help with that.", usage(81, 12), "refused"), None),
    ("responses-words", WORDS, Completion(WORDS, usage(1117, 46, 1024)), None),
    (
        "responses-calls",
        "I look.",
        Completion("I look.", usage(180, 92, 128, 32), calls=calls("call_a", "call_b")),
        THOUGHT,
    ),
    ("responses-refusal", "", Completion("I cannot help with that.", usage(81, 12), "refused"), None),
    ("responses-cut", "Good mor", Completion("Good mor", usage(81, 64, 0, 60), "length"), None),
    ("anthropic-words", WORDS, Completion(WORDS, usage(25 + 68 + 1024, 46, 1024, written=68)), None),
    (
        "anthropic-calls",
        "I look.",
        Completion("I look.", usage(52 + 128, 92, 128, 32), calls=calls("toolu_a", "toolu_b", " ")),
        SIGNED,
    ),
    ("anthropic-cut", "Good mor", Completion("Good mor", usage(25, 64), "length"), None),
    ("anthropic-refusal", "", Completion("I cannot help with that.", usage(25, 12), "refused"), None),
]


@pytest.mark.parametrize(("name", "shown", "expected", "kept"), HEARD, ids=[row[0] for row in HEARD])
async def test_what_is_heard_in_a_documented_stream(
    name: str, shown: str, expected: Completion, kept: Any
) -> None:
    raw = (STREAMS / f"{name}.sse").read_bytes()
    pieces: list[str] = []
    with loopback(status(200, raw, kind="text/event-stream")) as server:
        make = BACKENDS[name.partition("-")[0]]
        backend = make("m", base_url=server.base_url, api_key=KEY, sleep=Sleeps())
        heard = await backend.complete(said("hi"), tools=TOOLS, on_text=pieces.append)
        await backend.aclose()
    assert "".join(pieces) == shown
    assert (heard.text, heard.finish, heard.calls) == (expected.text, expected.finish, expected.calls)
    assert vars(heard.usage) | {"seconds": 0.0} == vars(expected.usage)
    items = next(iter(heard.kept.values())) if heard.kept else [None]
    assert items[0] == kept  # what was thought comes first


def test_every_stream_is_played_and_says_where_its_format_is_documented() -> None:
    files = sorted(STREAMS.glob("*.sse"))
    assert [file.stem for file in files] == sorted(row[0] for row in HEARD)
    for file in files:
        source = file.read_text().partition("\n")[0]
        assert source.startswith(": The format of https://platform."), file.name
        assert ", read 20" in source, file.name
