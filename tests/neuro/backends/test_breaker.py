"""A server that keeps failing is left alone for half a minute, then one request tries it again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from loopback import failure, loopback, said, silence, status
from words import PausableClock, complaint

from quoth.neuro.backends.base import (
    FAILURES,
    REST,
    WITHIN,
    Breaker,
    ModelError,
    RequestOptions,
    breaker_of,
    resting,
)
from quoth.neuro.backends.openai import OpenAIBackend

RESTS = "No request is sent to http://a.example: it failed 5 times in a row. It is tried again in 30 s."


def fails(breaker: Breaker, why: Any = "down") -> None:
    with pytest.raises(ModelError), breaker.asking():
        raise ModelError("It is down.", why)


def answers(breaker: Breaker) -> None:
    with breaker.asking():
        pass


def refusal(breaker: Breaker) -> str:
    return complaint(ModelError, lambda: answers(breaker))


@pytest.fixture
def clock() -> PausableClock:
    return PausableClock()


@pytest.fixture
def breaker(clock: PausableClock) -> Breaker:
    return Breaker("http://a.example", clock)


@pytest.fixture
def resting_one(breaker: Breaker) -> Breaker:
    for _ in range(FAILURES):
        fails(breaker)
    return breaker


def test_after_five_failures_nothing_is_asked(resting_one: Breaker) -> None:
    assert (refusal(resting_one), resting_one.left, resting_one.why) == (RESTS, REST, "It is down.")


def test_a_cascade_goes_on_where_a_breaker_is_open(resting_one: Breaker) -> None:
    with pytest.raises(ModelError) as refused, resting_one.asking():
        pass
    assert refused.value.why == "down"


def test_an_answer_between_them_begins_the_count_anew(breaker: Breaker) -> None:
    for _ in range(FAILURES - 1):
        fails(breaker)
    answers(breaker)
    fails(breaker)
    assert breaker.left is None


@pytest.mark.parametrize("why", ["limited", "key", "bill", ""])
def test_a_server_that_says_no_is_at_work(breaker: Breaker, why: Any) -> None:
    for _ in range(FAILURES):
        fails(breaker, why)
    assert breaker.left is None


def test_failures_over_a_longer_time_open_nothing(breaker: Breaker, clock: PausableClock) -> None:
    for _ in range(FAILURES):
        clock.wait(WITHIN / 3)
        fails(breaker)
    assert breaker.left is None


def test_after_its_rest_one_request_tries_it_and_an_answer_closes_it(
    resting_one: Breaker, clock: PausableClock
) -> None:
    clock.wait(REST)
    with resting_one.asking():
        assert refusal(resting_one).endswith("is tried again just now, by another request.")
    answers(resting_one)
    assert resting_one.left is None


def test_a_failure_then_lets_it_rest_again(resting_one: Breaker, clock: PausableClock) -> None:
    clock.wait(REST)
    fails(resting_one)
    assert refusal(resting_one) == RESTS


def test_a_try_that_was_given_up_leaves_room_for_the_next(resting_one: Breaker, clock: PausableClock) -> None:
    clock.wait(REST)
    with pytest.raises(asyncio.CancelledError), resting_one.asking():
        raise asyncio.CancelledError
    answers(resting_one)


def test_all_models_of_one_server_share_a_breaker_and_no_request_passes_it() -> None:
    with loopback(status(500)) as server:
        models = [OpenAIBackend(name, server.base_url, retries=0) for name in ("one", "two")]

        def ask(place: int) -> str:
            return complaint(ModelError, lambda: asyncio.run(models[place].complete(said("Hello"))))

        for place in range(FAILURES):
            ask(place % 2)
        assert "it failed 5 times in a row" in ask(0)
        assert len(server.requests) == FAILURES
        (found,) = [one for one in resting() if one.server in server.base_url]
        assert "(500)" in found.why


async def test_who_had_no_time_to_wait_for_an_answer_tells_nothing_of_the_server() -> None:
    with loopback(status(500)) as server:
        server.answers = [*[status(500)] * (FAILURES - 1), silence, status(500)]
        backend = OpenAIBackend("one", server.base_url, retries=0)
        for seconds in (*[None] * (FAILURES - 1), 0.1, None):
            with pytest.raises(ModelError):
                await backend.complete(said("Hello"), options=RequestOptions(seconds=seconds))
        assert [one.server in server.base_url for one in resting()] == [True]
        await backend.aclose()


def test_the_breaker_of_a_server_knows_no_secret_of_its_address() -> None:
    with loopback(failure(500, "no")) as server:
        url = server.base_url.replace("http://", "http://ann:secret@") + "?key=hidden"
        backend = OpenAIBackend("one", url, retries=0)
        complaint(ModelError, lambda: asyncio.run(backend.complete(said("Hello"))))
        known = breaker_of(server.base_url.removesuffix("/v1"))
        assert known.why
        assert "secret" not in repr(known)
        assert "hidden" not in repr(known)
