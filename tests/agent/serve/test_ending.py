"""How ``quoth serve`` ends while it answers, keeps a connection open, and asks a plain model: on a real
socket, here."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import key_file, token

from quoth import AsyncAgent
from quoth.agent.cli.serve import listening
from quoth.agent.serve import ending, openai
from quoth.agent.serve.app import build_app
from quoth.agent.serve.ending import EndingServer
from quoth.agent.serve.keys import KeyFile
from quoth.agent.serve.openai import openai_part
from quoth.neuro.backends.base import NO_OPTIONS, Completion
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend

MINUTE = 60.0


class Slow(ScriptedBackend):
    """A model that answers once it is let."""

    def __init__(self) -> None:
        super().__init__(["I waited."])
        self.asked, self.free, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.options = NO_OPTIONS

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        self.options = options["options"]
        self.asked.set()
        try:
            await self.free.wait()
        except asyncio.CancelledError:
            self.stopped.set()
            raise
        return await super().complete(messages, **options)


@contextlib.asynccontextmanager
async def serving(folder: Path, model: Slow) -> AsyncIterator[tuple[EndingServer, httpx.AsyncClient]]:
    """Within it the server runs; at the end it has ended."""
    part = openai_part(lambda key, name: AsyncAgent(workspace=folder, user=key.name, model=model))
    server = EndingServer(build_app([part], KeyFile(key_file(folder), print)), [part])
    with listening(0) as sock:
        work = asyncio.create_task(server.serve(sockets=[sock]))
        address = f"http://127.0.0.1:{sock.getsockname()[1]}"
        headers = {"Authorization": f"Bearer {token('me')}"}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=MINUTE) as client:
            try:
                yield server, client
            finally:
                model.free.set()
                if not server.should_exit:
                    end(server)
                await asyncio.wait_for(work, MINUTE)


def end(server: EndingServer) -> None:
    server.handle_exit(signal.SIGTERM, None)


async def test_an_answer_does_not_wait_for_a_full_packet() -> None:
    """Each answer is a head and a body: without this the second waits until the first is acknowledged."""
    asked: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ours = writer.get_extra_info("socket")
        asked.set_result(bool(ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
        writer.close()

    async with await asyncio.start_server(connected, sock=listening(0)) as server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await asyncio.wait_for(asked, MINUTE)
        writer.close()


async def lines(client: httpx.AsyncClient) -> AsyncIterator[str]:
    """The lines of a streamed answer."""
    body = {"model": "quoth", "stream": True, "messages": [{"role": "user", "content": "Wait."}]}
    async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            yield line


async def words(stream: AsyncIterator[str]) -> str:
    """The words of a streamed answer, which has an end."""
    found = [line.removeprefix("data: ") async for line in stream if line.startswith("data: ")]
    assert found[-1] == "[DONE]"
    chunks = [json.loads(one)["choices"][0] for one in found[:-1]]
    assert chunks[-1]["finish_reason"] == "stop"
    return "".join(one["delta"].get("content", "") for one in chunks)


async def test_an_answer_in_progress_is_finished_after_a_signal(tmp_path: Path) -> None:
    model = Slow()
    async with serving(tmp_path, model) as (server, client):
        answer = asyncio.create_task(words(lines(client)))
        await asyncio.wait_for(model.asked.wait(), MINUTE)
        end(server)
        model.free.set()
        assert await answer == "I waited."
    assert server.finished


@pytest.mark.parametrize("again", [True, False])
async def test_after_the_deadline_or_a_second_signal_a_stream_ends_and_its_turn_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr(ending, "STOP_SECONDS", MINUTE if again else 0.01)
    model = Slow()
    async with serving(tmp_path, model) as (server, client):
        answer = asyncio.create_task(words(lines(client)))
        await asyncio.wait_for(model.asked.wait(), MINUTE)
        end(server)
        if again:
            end(server)
        assert (await answer).startswith("The server ended before this answer was complete.")
    assert not server.finished
    model = Slow()
    model.free.set()
    async with serving(tmp_path, model) as (server, client):
        assert await words(lines(client)) == "I waited."
    (seen,) = model.seen
    assert str(seen).count("Wait.") == 1  # in its session


async def test_a_waiting_stream_has_comments_that_keep_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert openai.ALIVE_SECONDS == 15
    monkeypatch.setattr(openai, "ALIVE_SECONDS", 0.01)
    monkeypatch.setattr(openai, "FIRST_SECONDS", 0.01)
    model = Slow()
    async with serving(tmp_path, model) as (_, client):
        stream = lines(client)
        async for line in stream:
            if line.startswith(":"):
                break
        assert line == ": keep-alive"
        model.free.set()
        assert await words(stream) == "I waited."


PLAIN = {"model": "quoth:plain", "messages": [{"role": "user", "content": "Title?"}]}


async def test_a_client_that_leaves_stops_a_plain_model(tmp_path: Path) -> None:
    model = Slow()
    async with serving(tmp_path, model) as (_, client):
        asked = asyncio.create_task(client.post("/v1/chat/completions", json=PLAIN))
        await asyncio.wait_for(model.asked.wait(), MINUTE)
        asked.cancel()
        await asyncio.wait_for(model.stopped.wait(), MINUTE)


async def test_a_plain_model_gets_the_conversation_its_image_and_the_temperature(tmp_path: Path) -> None:
    model = Slow()
    model.free.set()
    image = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    parts = [
        {"type": "text", "text": "And now?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}},
    ]
    talk = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Title?"},
        {"role": "assistant", "content": "None."},
        {"role": "user", "content": parts},
    ]
    asked = {"model": "quoth:plain", "messages": talk, "temperature": 0.25}
    async with serving(tmp_path, model) as (_, client):
        answer = await client.post("/v1/chat/completions", json=asked)
    assert answer.json()["choices"][0]["message"]["content"] == "I waited."
    seen = json.loads(model.seen[0])
    assert [one["role"] for one in seen] == ["system", "user", "assistant", "user"]
    assert seen[-1]["images"][0]["media"] == "image/png"
    assert model.options.temperature == 0.25


@pytest.mark.parametrize(
    ("wanted", "schema"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, {"type": "object"}),
        ({"type": "json_schema", "json_schema": {"name": "n", "schema": {"const": 1}}}, {"const": 1}),
    ],
)
async def test_a_plain_model_gets_the_shape_that_its_answer_is_to_have(
    wanted: dict[str, Any], schema: Any, tmp_path: Path
) -> None:
    model = Slow()
    model.free.set()
    async with serving(tmp_path, model) as (_, client):
        answer = await client.post("/v1/chat/completions", json={**PLAIN, "response_format": wanted})
        wrong = await client.post("/v1/chat/completions", json={**PLAIN, "response_format": {"type": "xml"}})
    assert answer.json()["choices"][0]["message"]["content"] == "I waited."
    assert model.options.schema == schema
    assert (wrong.status_code, "response_format" in wrong.json()["error"]["message"]) == (400, True)
