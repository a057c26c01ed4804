"""A reply that broke off is not an answer: it is asked for again, told to the model, or ends as failed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, loopback, sse, status
from server_speech import ANTHROPIC, OPENAI, RESPONSES, SPEECHES, Event, Speech

from quoth import AsyncAgent, ModelOptions
from quoth.agent.reply import Reply
from quoth.neuro.backends.base import forget_failures
from quoth.neuro.backends.wordings import ending_of

speeches = pytest.mark.parametrize("speech", SPEECHES, ids=lambda speech: speech.name)


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        ("tool_calls", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "refused"),
        ("content-filter", "refused"),
        ("sensitive", "refused"),
        ("MALFORMED_FUNCTION_CALL", "malformed"),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", "malformed"),
        ("error", "error"),
        ("insufficient_system_resource", "insufficient_system_resource"),
        ("what nobody knows", "what nobody knows"),
        ("eosFound", "stop"),  # LM Studio's
        ("toolCalls", "stop"),
        ("contextLengthReached", "length"),
        ("maxPredictedTokensReached", "length"),
        ("userStopped", "userStopped"),
        ("load", "load"),  # Ollama's, of a model that has said nothing yet
        ("pause_turn", "length"),  # Anthropic's, of a turn that goes on
        ("LANGUAGE", "refused"),  # Gemini's
        ("IMAGE_PROHIBITED_CONTENT", "refused"),
        ("MODEL_ARMOR", "refused"),
        ("TOO_MANY_TOOL_CALLS", "malformed"),
        ("FINISH_REASON_UNSPECIFIED", "FINISH_REASON_UNSPECIFIED"),
        ("OTHER", "OTHER"),
    ],
)
def test_a_reason_is_known_or_is_no_end(reason: str, ending: str) -> None:
    assert ending_of(reason) == ending


def ended(speech: Speech, reason: str) -> list[Event]:
    """The last events of a stream that ends for this reason."""
    if speech is OPENAI:
        return [{"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}, "[DONE]"]
    if speech is ANTHROPIC:
        delta = {"type": "message_delta", "delta": {"stop_reason": reason}}
        return [delta, {"type": "message_stop"}]
    details = {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": None}
    return [{"type": "response.incomplete", "response": details}]


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(status(500)) as server:
        yield server


async def run(server: Server, speech: Speech, folder: Path, *answers: Any) -> tuple[Reply, list[str]]:
    """The reply of a run whose server answers so, and the calls that were told on the way."""
    server.answers = list(answers)
    backend = speech.backend(server.base_url)
    forget_failures()
    calls: list[str] = []

    def listen(event: Any) -> None:
        if event.kind == "call":
            calls.append(event.data)

    async with AsyncAgent(
        workspace=folder, model=ModelOptions(backend, dialect="native"), on_event=listen
    ) as agent:
        reply = await agent.run("hi")
    await backend.aclose()
    return reply, calls


@speeches
@pytest.mark.parametrize("reason", ["error", "insufficient_system_resource", "unheard of"])
async def test_a_reply_that_its_server_broke_off_is_asked_for_again(
    server: Server, speech: Speech, tmp_path: Path, reason: str
) -> None:
    write = speech.call("write-file", '{"path":"a.txt","content":"half"}')
    broken = sse(*speech.begin, *write, *ended(speech, reason))
    reply, calls = await run(server, speech, tmp_path, broken, speech.stream("hello"))
    assert (reply.status, reply.text, calls, len(server.requests)) == ("done", "hello", [], 2)
    assert not (tmp_path / "a.txt").exists()


@speeches
async def test_half_an_answer_is_not_an_answer(server: Server, speech: Speech, tmp_path: Path) -> None:
    broken = sse(*speech.begin, *speech.words("It says th"), *ended(speech, "error"))
    reply, _ = await run(server, speech, tmp_path, broken)
    assert (reply.status, reply.text, len(server.requests)) == ("failed", "", 1)
    assert reply.error == (
        f"The answer from {server.base_url}{speech.path} was cut off: its server ended it with error."
    )


async def test_an_error_in_a_choice_is_told(server: Server, tmp_path: Path) -> None:
    error = {"code": 400, "message": "Upstream said no"}
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": error}
    reply, _ = await run(server, OPENAI, tmp_path, sse({"choices": [choice]}, "[DONE]"))
    assert reply.error == f"{server.base_url}/chat/completions failed: Upstream said no"


@pytest.mark.parametrize("words", [(), ("I look.",)])
async def test_a_model_is_told_that_its_call_could_not_be_read(
    server: Server, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Gemini and Bedrock drop such calls; asked the same again they mostly drop them again."""
    malformed = ended(OPENAI, "function_call_filter: MALFORMED_FUNCTION_CALL")
    broken = sse(*OPENAI.begin, *OPENAI.words(*words), *malformed)
    reply, _ = await run(server, OPENAI, tmp_path, broken, OPENAI.stream("hello"))
    assert (reply.status, reply.text) == ("done", "hello")
    assert server.asked()["messages"][-1]["content"].startswith(
        "A form of your reply could not be read. Your server could not read your call and left it out; write "
        "it again"
    )


async def test_a_response_that_failed_without_an_error_is_no_answer(server: Server, tmp_path: Path) -> None:
    failed = {"type": "response.failed", "response": {"status": "failed", "output": []}}
    broken = sse(*RESPONSES.begin, failed)
    reply, _ = await run(server, RESPONSES, tmp_path, broken, RESPONSES.stream("hello"))
    assert (reply.text, len(server.requests)) == ("hello", 2)


async def test_a_reply_in_one_piece_may_be_broken_off_too(server: Server, tmp_path: Path) -> None:
    message = {"role": "assistant", "content": "It says th"}
    whole = status(200, {"choices": [{"message": message, "finish_reason": "network_error"}]})
    reply, _ = await run(server, OPENAI, tmp_path, whole, OPENAI.reply())
    assert reply.text == "hello"
