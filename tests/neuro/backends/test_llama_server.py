"""The back ends against a real server, that of llama.cpp with the small model: calls, results, usage,
refusals, embeddings. Knows nothing of how good the answers are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_server import llama_server
from loopback import KEY, said
from sentences import REFUSED_THE_KEY
from words import form, table_of, tool

from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import ContextFullError, ModelError, RequestOptions, ToolsRefusedError
from quoth.neuro.backends.openai import OpenAIBackend, ResponsesBackend
from quoth.neuro.embed.endpoint import Endpoint
from quoth.neuro.prompt.dialects import NATIVE

pytestmark = pytest.mark.timeout(1_200)  # on a machine with much else to do the model is slow

BACKENDS = [OpenAIBackend, ResponsesBackend, AnthropicBackend]
each_backend = pytest.mark.parametrize("make", BACKENDS, ids=lambda make: make.__name__)
TABLE = table_of(tool("read-note", params={"name": {"type": str}}))


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llama_server(KEY) as address:
        yield address


@each_backend
async def test_a_call_is_made_and_its_result_is_answered(make: Callable[..., Any], address: str) -> None:
    """The first reply is streamed, the second comes whole."""
    backend = make("small", base_url=address, api_key=KEY, extra={"temperature": 0})
    tools = NATIVE.tools(TABLE, backend.tool_view)
    messages = said("What is in the note birds? Use the tool.")
    called = await backend.complete(
        messages, tools=tools, tool_choice="required", max_tokens=60, on_text=lambda _: None
    )
    reading = NATIVE.read(called, TABLE)
    assert [found.form for found in reading.calls] == [form('(read-note :name "birds")')]
    messages.append("assistant", called.text, calls=called.calls, kept=called.kept)
    messages.append("tool", "The code word is falcon.", called.calls[0]["id"])
    answered = await backend.complete(messages, tools=tools, max_tokens=60)
    assert "falcon" in answered.text
    assert (answered.calls, answered.finish) == ((), "stop")
    for usage in (called.usage, answered.usage):
        assert usage.input_tokens > 40
        assert 0 < usage.output_tokens < 60
        assert usage.reasoning_tokens == 0
    assert answered.usage.input_tokens > answered.usage.cached_tokens > 40
    await backend.aclose()


async def test_a_server_without_its_parser_is_asked_in_text() -> None:
    with llama_server(KEY, reads_calls=False) as address:
        backend = OpenAIBackend("small", address, KEY, extra={"temperature": 0})
        with pytest.raises(ToolsRefusedError, match="requires --jinja flag"):
            await backend.complete(said("hi"), tools=NATIVE.tools(TABLE, backend.tool_view))
        assert not backend.tool_view, "quoth goes on in text"
        assert (await backend.complete(said("hi"), max_tokens=9)).text
        await backend.aclose()


@each_backend
async def test_a_wrong_key_is_refused_in_a_sentence(make: Callable[..., Any], address: str) -> None:
    backend = make("small", base_url=address, api_key="wrong")
    with pytest.raises(
        ModelError, match=rf"{REFUSED_THE_KEY} \(401\); check \w+_API_KEY\. It said: Invalid API Key$"
    ):
        await backend.complete(said("hi"))
    await backend.aclose()


@each_backend
async def test_a_conversation_that_is_too_long_is_told_with_the_size_of_the_window(
    make: Callable[..., Any], address: str
) -> None:
    backend = make("small", base_url=address, api_key=KEY)
    with pytest.raises(ContextFullError) as raised:
        await backend.complete(said("no " * 3000))
    assert raised.value.window == 2048
    await backend.aclose()


async def test_an_answer_follows_a_schema(address: str) -> None:
    backend = OpenAIBackend("small", address, KEY)
    schema = {"enum": ["blue"]}
    answered = await backend.complete(said("hi"), max_tokens=9, options=RequestOptions(schema=schema))
    assert answered.text == '"blue"'
    await backend.aclose()


async def test_texts_become_vectors(address: str) -> None:
    first, second, again = await Endpoint("small", address, KEY).embed(["a cat", "a theorem", "a cat"])
    assert len(first) == len(second) > 0
    assert first == again != second
