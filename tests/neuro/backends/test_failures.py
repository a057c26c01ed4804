"""What a person is told of each thing that a model server can do wrong, for every back end over HTTP: the
sentence, how many requests were sent, and what the transcript holds; and no secret anywhere.

Knows the table of failures; nothing here is decided by how long something took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, loopback, status
from server_failures import PASSWORD, QUERY, SECOND, STATUSES, STREAMS, WHOLE, Row
from server_speech import SPEECHES, Speech

from quoth import AsyncAgent

speeches = pytest.mark.parametrize("speech", SPEECHES, ids=lambda speech: speech.name)


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(status(500)) as server:
        yield server


def secret_url(server: Server) -> str:
    """An address with a password and two keys in it."""
    return server.base_url.replace("//", f"//ann:{PASSWORD}@") + f"?api-key={QUERY}&token={SECOND}"


@pytest.mark.parametrize("rows", [STATUSES, WHOLE, STREAMS], ids=["statuses", "whole", "streamed"])
@speeches
async def test_every_failure_is_one_sentence_without_a_secret(
    server: Server, speech: Speech, rows: Sequence[Row], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    backend = speech.backend(secret_url(server))
    shown: list[str] = []
    told: dict[str, Any] = {}
    wanted = {row.about: as_told(row, speech, server.base_url) for row in rows}

    def listen(event: str, data: Any) -> None:
        if event == "text":
            shown.append(data)

    async with AsyncAgent(workspace=tmp_path, tools=[], model=backend, on_event=listen) as agent:
        for row in rows:
            server.answers, before = list(row.answers(speech)), len(server.requests)
            shown.clear()
            reply = await agent.run("hi")
            *_, last = agent.transcript.events(agent.session, kind="reply")
            kept = {name: last.data.get(name) for name in ("raised", "finish") if last.data.get(name)}
            sent, seen = len(server.requests) - before, "".join(shown)
            told[row.about] = (reply.status, reply.text, sent, seen, kept, last.data["text"])
    await backend.aclose()
    assert [(told[k], wanted[k]) for k in told if told[k] != wanted[k]] == []


def as_told(row: Row, speech: Speech, url: str) -> tuple[Any, ...]:
    """What a row says, as it is observed: how the run ends, the requests, the words shown, the transcript."""
    own = {
        "{url}": url + speech.path,
        "{server}": url.removesuffix("/v1"),
        "{path}": speech.path,
        "{kind}": speech.kind,
        "{wants}": speech.wants,
        "{variable}": f"{speech.name.upper()}_API_KEY",
    }
    said = row.said
    for name, words in own.items():
        said = said.replace(name, words)
    if row.ends == "done":
        return "done", said, row.requests, row.shown, {}, said
    if row.ends == "refused":
        why = f"It said: {said}" if said else "It did not say why."
        told = f"{speech.name}:model-x refused to answer. {why}"
        return "failed", told, row.requests, "", {"finish": "refused"}, said
    return "failed", said, row.requests, row.shown, {"raised": "model"}, said
