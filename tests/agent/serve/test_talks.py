"""The conversations that ``quoth serve`` keeps open."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from words import files

from quoth.agent.client import AsyncAgent
from quoth.agent.run.host import SessionHost
from quoth.agent.serve import talks
from quoth.agent.serve.app import build_app
from quoth.agent.serve.keys import AccessKey, Keys
from quoth.agent.serve.openai import openai_part
from quoth.agent.serve.openai_shape import ChatRequest, read_request
from quoth.tools.storage import log_sync
from quoth.tools.storage.database import Store

KEY = AccessKey("me", "m" * 32, frozenset({"ask", "decide"}))


def message(text: str) -> ChatRequest:
    said = {"model": "quoth", "messages": [{"role": "user", "content": text}]}
    return read_request(json.dumps(said).encode())


async def test_each_conversation_beyond_the_kept_ones_is_closed_once_and_idle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files(tmp_path, {"model.hy": '(defn reply [messages] "Hello.")'}))
    monkeypatch.setattr(talks, "IDLE", 1)
    closed: list[tuple[str, bool]] = []
    close = talks._close

    async def slowly(host: SessionHost) -> None:
        closed.append((host.session, host.session in made._turns))
        await asyncio.sleep(0.05)  # other turns end meanwhile
        await close(host)

    monkeypatch.setattr(talks, "_close", slowly)
    made = talks.Talks(lambda key, model: AsyncAgent(model="scripted:model.hy"))
    try:
        turns = [await made.begin(KEY, message("the first"))]
        await asyncio.gather(*(turn.task for turn in turns if turn.task))
        turns = [await made.begin(KEY, message(f"number {number}")) for number in range(4)]
        await asyncio.gather(*(turn.task for turn in turns if turn.task))
        assert [turn.text for turn in turns] == ["Hello."] * 4
        assert len({*closed}) == len(closed) == 4
        assert not any(in_turn for _, in_turn in closed)
    finally:
        await made.aclose()


async def test_a_turn_waits_for_the_disk_as_often_as_the_same_turn_of_an_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files(tmp_path, {"model.hy": '(defn reply [messages] "Hello.")'}))
    waits: list[str] = []
    monkeypatch.setattr(log_sync, "sync_file", lambda file: waits.append("log"))
    switch = Store._sync_with_commits

    def switched(store: Store, wanted: bool) -> None:
        waits.extend(["commit"] * wanted)
        switch(store, wanted)

    monkeypatch.setattr(Store, "_sync_with_commits", switched)

    def of_last() -> list[str]:
        found = [*waits]
        waits.clear()
        return found

    made = talks.Talks(lambda key, model: AsyncAgent(model="scripted:model.hy"))
    async with AsyncAgent(model="scripted:model.hy") as agent:
        for text in ("first", "second"):
            of_last()
            await agent.say(text)
            own = of_last()
            turn = await made.begin(KEY, message(text))
            assert turn.task is not None
            await turn.task
            served = of_last()
    await made.aclose()
    assert served == own
    assert "log" in own


async def test_a_client_that_leaves_a_whole_answer_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files(tmp_path, {"model.hy": '(defn reply [messages] "Hello.")'}))
    part = openai_part(lambda key, model: AsyncAgent(model="scripted:model.hy"))
    body = {"model": "quoth", "messages": [{"role": "user", "content": "hi"}]}
    heard = iter([{"type": "http.request", "body": json.dumps(body).encode()}, {"type": "http.disconnect"}])

    async def receive() -> dict[str, object]:
        return next(heard)

    async def send(message: object) -> None:
        """It has left."""

    path = "/v1/chat/completions"
    headers = [(b"host", b"localhost"), (b"authorization", b"Bearer " + KEY.token.encode())]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    async with part.serving():
        await build_app([part], Keys((KEY,)))(scope, receive, send)


async def empty() -> dict[str, object]:
    return {"type": "http.request"}


@pytest.mark.parametrize("host", ["Docker.Internal", "docker.internal:8420"])
async def test_hosts_and_origins_are_allowed_as_people_write_them(host: str) -> None:
    answers: list[object] = []

    async def send(message: dict[str, object]) -> None:
        answers.append(message.get("status"))

    headers = [(b"host", b"docker.internal:8420"), (b"origin", b"http://docker.internal:3000")]
    scope = {"type": "http", "method": "GET", "path": "/health", "query_string": b"", "headers": headers}
    app = build_app([], Keys((KEY,)), hosts=[host], origins=["http://Docker.Internal:3000/"])
    await app(scope, empty, send)
    assert answers[0] == 200
