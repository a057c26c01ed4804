"""Embeddings of a server: vectors of length 1, and a sentence for everything a server can do wrong."""

from __future__ import annotations

from array import array

import pytest
from loopback import KEY, Answer, Handler, cut_off, failure, hang_up, loopback, silence, status
from sentences import REFUSED_THE_KEY

from quoth.neuro.embed.endpoint import BATCH, Endpoint
from quoth.tools.errors import ToolError, UsageError


def vectors(*rows: object) -> Answer:
    return status(200, {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]})


def parts(vector: bytes) -> list[float]:
    return [round(part, 3) for part in array("f", vector)]


async def test_vectors_come_back_in_the_order_of_the_texts_and_of_length_one() -> None:
    shuffled = {"data": [{"index": 1, "embedding": [0, 5]}, {"index": 0, "embedding": [3, 4]}]}
    with loopback(status(200, shuffled)) as server:
        model = Endpoint("small", server.base_url, KEY)
        first, second = await model.embed(["one", "two \ud800"])

    assert (parts(first), parts(second)) == ([0.6, 0.8], [0.0, 1.0])
    assert model.dimensions == 2
    assert server.asked() == {"model": "small", "input": ["one", "two ?"]}
    path, headers, _ = server.requests[0]
    assert (path, headers["Authorization"]) == ("/v1/embeddings", f"Bearer {KEY}")


async def test_many_texts_are_sent_in_batches() -> None:
    def answer(handler: Handler) -> None:
        vectors(*[[1.0]] * len(handler.server.asked()["input"]))(handler)

    with loopback(answer) as server:
        found = await Endpoint("small", server.base_url).embed(["text"] * (BATCH + 1))

    assert len(found) == BATCH + 1
    assert [len(server.asked(place)["input"]) for place in (0, 1)] == [BATCH, 1]


async def test_no_text_asks_nothing() -> None:
    assert await Endpoint("small", "http://127.0.0.1:9/v1").embed([]) == []


FAILURES: dict[str, tuple[Answer, str]] = {
    "no key": (status(401), f"{{}} {REFUSED_THE_KEY} (401); check OPENAI_API_KEY."),
    "no model": (
        failure(404, f"no model small for {KEY}"),
        '{} sent no embeddings of small (404). It said: {{"error": {{"message": "no model small for ***"}}}}',
    ),
    "busy": (status(503, b"later\x1b[2J"), "{} sent no embeddings of small (503). It said: later\ufffd[2J"),
    "no JSON": (status(200, b"<html>"), "The answer of {} does not contain embeddings."),
    "another shape": (status(200, {"data": 3}), "The answer of {} does not contain embeddings."),
    "no numbers": (vectors(["a"]), "The answer of {} does not contain embeddings."),
    "no direction": (vectors([0.0, 0.0]), "The answer of {} does not contain embeddings."),
    "not a number": (vectors([float("nan")]), "The answer of {} does not contain embeddings."),
    "too few": (status(200, {"data": []}), "{} answered with 0 embeddings for 1 texts."),
    "too many": (vectors([1.0], [1.0]), "{} answered with 2 embeddings for 1 texts."),
    "silence": (silence, "{} sent no embeddings within 0.3 s."),
    "cut off": (cut_off, "Cannot reach {} for embeddings ("),
    "hung up": (hang_up, "Cannot reach {} for embeddings ("),
}


@pytest.mark.parametrize("how", FAILURES)
async def test_a_failure_is_a_sentence_without_the_key(how: str) -> None:
    answer, sentence = FAILURES[how]
    with loopback(answer) as server, pytest.raises(ToolError) as told:
        await Endpoint("small", server.base_url, KEY, deadline=0.3).embed(["one"])

    assert str(told.value).startswith(sentence.format(server.base_url))
    assert KEY not in str(told.value)


async def test_secrets_of_the_address_are_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with loopback(status(403, b"hunter2", location="/?key=query-key-56")) as server:
        url = server.base_url.replace("http://", "http://ann:hunter2@")
        model = Endpoint("small", f"{url}?key=query-key-56")
        with pytest.raises(ToolError) as told:
            await model.embed(["one"])

    assert str(told.value) == f"{server.base_url} requires a key (403); set OPENAI_API_KEY."
    assert server.requests[0][1]["Authorization"].startswith("Basic ")
    assert server.requests[0][0] == "/v1/embeddings?key=query-key-56"
    assert model.name == f"openai:small@{server.base_url}"
    assert "hunter2" not in caplog.text
    assert "query-key" not in caplog.text


@pytest.mark.parametrize(
    ("model", "url"), [("", "http://h/v1"), ("m", "h"), ("m", "ftp://h"), ("m", "http://")]
)
def test_an_address_that_is_none_names_the_form(model: str, url: str) -> None:
    with pytest.raises(UsageError, match="Name an embedding server as openai:MODEL or openai:MODEL@http"):
        Endpoint(model, url)
