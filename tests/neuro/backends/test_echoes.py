"""A server that sends back the key it was shown: it reaches nobody, in words, in pieces, or in a call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from loopback import KEY, Server, loopback, said, sse, status
from server_speech import SPEECHES, Speech

from quoth.neuro.backends.http import models_of

speeches = pytest.mark.parametrize("speech", SPEECHES, ids=lambda speech: speech.name)
TOLD = f"You said: Bearer {KEY}."
HIDDEN = "You said: Bearer [secret]."


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(status(500)) as server:
        yield server


@speeches
async def test_a_key_in_a_reply_is_hidden_whole_or_in_pieces(server: Server, speech: Speech) -> None:
    server.answers = [speech.reply(TOLD), speech.stream(*TOLD), speech.stream("ends in ", KEY[:-1])]
    backend = speech.backend(server.base_url)
    assert (await backend.complete(said("hi"))).text == HIDDEN
    shown: list[str] = []
    assert (await backend.complete(said("hi"), on_text=shown.append)).text == HIDDEN
    assert "".join(shown) == HIDDEN
    shown.clear()
    await backend.complete(said("hi"), on_text=shown.append)
    assert "".join(shown) == f"ends in {KEY[:-1]}"  # what only begins like a key is not held for ever
    await backend.aclose()


@speeches
@pytest.mark.parametrize(
    "written", [KEY, "".join(f"\\u{ord(char):04x}" for char in KEY)], ids=["plain", "escaped"]
)
async def test_a_key_in_a_call_is_hidden(server: Server, speech: Speech, written: str) -> None:
    parts = ('{"text": "', written[:5], written[5:], '"}')
    server.answers = [sse(*speech.begin, *speech.call(f"echo_{KEY}", *parts), *speech.end)]
    backend = speech.backend(server.base_url)
    done = await backend.complete(said("hi"), on_text=lambda text: None)
    await backend.aclose()
    (call,) = done.calls
    assert json.loads(call["arguments"]) == {"text": "[secret]"}
    assert call["name"] == "echo_[secret]"
    kept: Any = done.kept
    assert KEY not in json.dumps(kept, default=str)


@speeches
async def test_a_key_in_the_names_of_models_is_hidden(server: Server, speech: Speech) -> None:
    server.answers = [status(200, {"data": [{"id": f"model-of-{KEY}"}]})]
    assert await models_of(speech.backend(server.base_url)) == ["model-of-[secret]"]
