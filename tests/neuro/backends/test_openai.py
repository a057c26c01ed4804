"""The OpenAI-compatible backend against a real server on loopback that fails in every way a server can.

Knows no provider and no key that is worth anything; nothing here is decided by how long something took.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from loopback import (
    KEY,
    Answer,
    Handler,
    Server,
    Sleeps,
    failure,
    hang_up,
    loopback,
    said,
    silence,
    sse,
    status,
)
from sentences import GAVE_NO_ANSWER_FOR, TYPE_QUOTH_MODELS_LOGIN

from quoth.neuro.backends.base import Backend, ModelError, ToolsRefusedError
from quoth.neuro.backends.messages import Image, Messages, NativeCall
from quoth.neuro.backends.openai import OpenAIBackend
from quoth.tools.errors import UsageError


def reply(content: object, finish: str = "stop", **more: object) -> Answer:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": finish}
    return lambda handler: handler.send(200, json.dumps({"choices": [choice], **more}).encode())


def piece(content: str | None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": finish}]}


def silence_after_a_piece(handler: Handler) -> None:
    sse(piece("he"), cut=True)(handler)
    handler.wfile.flush()
    silence(handler)


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(reply("hello")) as server:
        yield server


def backend_for(server: Server, **options: Any) -> OpenAIBackend:
    return OpenAIBackend(
        "gpt-x", **{"base_url": server.base_url, "api_key": KEY, "sleep": Sleeps(), **options}
    )


async def failing(backend: OpenAIBackend, **options: Any) -> str:
    with pytest.raises(ModelError) as raised:
        await backend.complete(said("hi"), **options)
    await backend.aclose()
    return str(raised.value)


async def test_a_reply_comes_with_its_usage(server: Server) -> None:
    details = {"cached_tokens": 3}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": details}
    server.answers = [reply("hello", usage=usage)]
    backend = backend_for(server)
    assert isinstance(backend, Backend)
    completion = await backend.complete(said("hi"), max_tokens=5)
    assert (completion.text, completion.finish) == ("hello", "stop")
    counted = completion.usage
    assert (counted.input_tokens, counted.output_tokens, counted.cached_tokens) == (7, 2, 3)
    assert counted.seconds > 0
    path, headers, _ = server.requests[0]
    assert path == "/v1/chat/completions"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == f"Bearer {KEY}"
    assert server.asked() == {
        "model": "gpt-x",
        "temperature": 0,
        "max_tokens": 5,
        "messages": [{"role": "user", "content": "hi"}],
    }
    await backend.aclose()
    await backend.aclose()


NO_EYES = "this model does not support image input"


def with_image(**more: str) -> Messages:
    image = Image(name="a.png", media="image/png", id="abc", **more)
    image.data = "AAAA"
    messages = Messages()
    messages.append("user", "Shown as a result", images=[image])
    return messages


async def test_a_model_that_cannot_see_is_asked_without_the_images_of_results(server: Server) -> None:
    server.answers = [failure(400, NO_EYES), reply("one"), reply("two")]
    backend = backend_for(server)
    messages = with_image(size="8x6")
    assert (await backend.complete(messages)).text == "one"
    assert (await backend.complete(messages)).text == "two"
    assert len(server.requests) == 3  # what it said is remembered
    (said,) = server.asked()["messages"]
    assert said["content"] == "Shown as a result\n(an image, 8x6, which you cannot see)"
    await backend.aclose()


async def test_an_image_of_the_task_is_not_left_out(server: Server) -> None:
    server.answers = [failure(400, NO_EYES)]
    backend = backend_for(server)
    with pytest.raises(ModelError, match=NO_EYES):
        await backend.complete(with_image())
    await backend.aclose()


# As Mistral's thinking models reply: what was thought is no part of the text.
PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "A dozen."}]},
    {"type": "text", "text": "Twelve"},
    {"type": "text", "text": "."},
]


@pytest.mark.parametrize(
    ("content", "finish", "expected"),
    [
        ("cut", "length", ("cut", "length")),
        ("", "stop", ("", "stop")),
        (None, "stop", ("", "stop")),
        (PARTS, "stop", ("Twelve.", "stop")),
    ],
)
async def test_a_cut_or_empty_reply_is_handed_on(
    server: Server, content: object, finish: str, expected: tuple[str, str]
) -> None:
    server.answers = [reply(content, finish, usage=None)]
    backend = backend_for(server)
    completion = await backend.complete(said("hi"))
    assert (completion.text, completion.finish) == expected
    await backend.aclose()


@pytest.mark.parametrize("told", [-1, "7", 1.5, True, [7]])
async def test_a_usage_that_cannot_be_is_not_believed(server: Server, told: object) -> None:
    server.answers = [reply("hello", usage={"prompt_tokens": told, "completion_tokens": 2})]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"))).usage.tokens == 2
    await backend.aclose()


async def test_the_name_of_a_call_can_be_written_down(server: Server) -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "lo\ud800ok", "arguments": "{}"}}]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    server.answers = [status(200, {"choices": [{"message": message, "finish_reason": "stop"}]})]
    backend = backend_for(server)
    completion = await backend.complete(said("hi"))
    assert [call["name"] for call in completion.calls] == ["lo?ok"]
    await backend.aclose()


async def test_a_streamed_reply_is_told_piece_by_piece(server: Server) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    server.answers = [sse(piece(None), piece("hé"), piece("llo"), piece(None, "length"), usage, "[DONE]")]
    backend = backend_for(server)
    pieces: list[str] = []
    for _ in range(2):  # the second request uses the same connection
        completion = await backend.complete(said("hi"), on_text=pieces.append)
    assert pieces == ["hé", "llo"] * 2
    assert (completion.text, completion.finish) == ("héllo", "length")
    assert (completion.usage.input_tokens, completion.usage.output_tokens) == (7, 2)
    assert server.asked()["stream"] is True
    assert server.asked()["stream_options"] == {"include_usage": True}
    await backend.aclose()


async def test_a_stream_may_begin_with_a_byte_order_mark(server: Server) -> None:
    events = (
        "".join(f"data: {json.dumps(piece(text))}\r\n\r\n" for text in ("he", "llo")) + "data: [DONE]\n\n"
    )
    server.answers = [lambda handler: handler.send(200, f"\ufeff{events}".encode(), "text/event-stream")]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"), on_text=lambda _: None)).text == "hello"
    await backend.aclose()


async def test_a_server_that_cannot_stream_is_heard_all_the_same(server: Server) -> None:
    backend = backend_for(server)
    pieces: list[str] = []
    assert (await backend.complete(said("hi"), on_text=pieces.append)).text == "hello"
    assert pieces == ["hello"]
    await backend.aclose()


async def test_the_history_is_sent_as_a_prefix_and_tool_results_as_user(server: Server) -> None:
    backend = backend_for(server)
    messages = said("é")
    await backend.complete(messages)
    messages.append("assistant", "Look.")
    messages.append("tool", "42")
    messages.append("user", "Well?")
    await backend.complete(messages)

    def history(index: int) -> bytes:
        return server.requests[index][2].partition(b'"messages":')[2].removesuffix(b"]}")

    assert history(0) == '[{"role":"user","content":"é"}'.encode()
    reply, told = b'{"role":"assistant","content":"Look."}', rb'{"role":"user","content":"42\n\nWell?"}'
    assert history(1) == b",".join([history(0), reply, told])
    await backend.aclose()


@pytest.mark.parametrize("takes_grammar", [True, False])
async def test_a_grammar_is_sent_only_to_servers_that_take_one(server: Server, takes_grammar: bool) -> None:
    backend = backend_for(server, takes_grammar=takes_grammar)
    await backend.complete(said("hi"), grammar='root ::= "a"')
    assert server.asked().get("grammar") == ('root ::= "a"' if takes_grammar else None)
    await backend.aclose()


async def test_extra_options_are_sent_and_none_removes_a_default(server: Server) -> None:
    backend = backend_for(server, extra={"temperature": None, "top_p": 0.5})
    await backend.complete(said("hi"))
    assert "temperature" not in server.asked()
    assert server.asked()["top_p"] == 0.5
    await backend.aclose()


async def test_options_a_model_refuses_are_given_up_once_and_for_all(server: Server) -> None:
    server.answers = [
        failure(400, "use max_completion_tokens", param="max_tokens", code="unsupported_parameter"),
        failure(400, "only the default (1)", param="temperature", code="unsupported_value"),
        reply("hello"),
    ]
    backend = backend_for(server, retries=0)
    for _ in range(2):
        assert (await backend.complete(said("hi"), max_tokens=9)).text == "hello"
    assert len(server.requests) == 4
    assert server.asked() == {
        "model": "gpt-x",
        "max_completion_tokens": 9 + 4096,  # room to think
        "messages": [{"role": "user", "content": "hi"}],
    }
    await backend.aclose()


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504])
async def test_a_passing_failure_is_tried_again(server: Server, code: int) -> None:
    server.answers = [failure(code, "busy"), hang_up, reply("hello")]
    sleeps = Sleeps()
    backend = backend_for(server, sleep=sleeps)
    assert (await backend.complete(said("hi"))).text == "hello"
    first, second = sleeps
    assert 0.25 <= first <= 0.5 <= second <= 1.0
    await backend.aclose()


async def test_the_wait_a_server_asks_for_is_kept(server: Server) -> None:
    server.answers = [status(429, retry_after="7"), reply("hello")]
    sleeps = Sleeps()
    backend = backend_for(server, sleep=sleeps)
    assert (await backend.complete(said("hi"))).text == "hello"
    assert sleeps == [7.0]
    await backend.aclose()


async def test_a_missing_key_is_told_apart_from_a_refused_one(server: Server) -> None:
    server.answers = [status(401)]
    message = await failing(backend_for(server, api_key=None, key_variable="LLAMA_API_KEY"))
    assert message == (
        f"{server.base_url}/chat/completions requires a key (401); set LLAMA_API_KEY, "
        f"or {TYPE_QUOTH_MODELS_LOGIN} openai."
    )


@pytest.mark.parametrize("answer", [silence, silence_after_a_piece])
async def test_a_silent_server_is_not_waited_for_beyond_the_deadline(server: Server, answer: Answer) -> None:
    server.answers = [answer]
    message = await failing(backend_for(server, timeout=0.3), on_text=lambda _: None)
    silent = f"{server.base_url}/chat/completions {GAVE_NO_ANSWER_FOR} 0.3 s"
    assert message == f"{silent}; it is slow or overloaded, or needs a longer timeout."
    assert len(server.requests) == 1


async def test_a_request_says_what_it_must_and_no_more(server: Server) -> None:
    backend = backend_for(server)
    await backend.complete(said("hi"))
    await backend.aclose()
    _, headers, body = server.requests[0]
    assert {name.lower(): value for name, value in headers.items()} == {
        "host": server.base_url.removeprefix("http://").removesuffix("/v1"),
        "accept": "*/*",
        "accept-encoding": "gzip",
        "connection": "keep-alive",
        "user-agent": f"python-{httpx.__name__}/{httpx.__version__}",
        "content-type": "application/json",
        "authorization": f"Bearer {KEY}",
        "content-length": str(len(body)),
    }


async def test_a_long_conversation_is_sent_whole_and_again_when_a_try_fails(server: Server) -> None:
    server.answers = [status(503), reply("hello")]
    words = [f"é {number} " * 2000 for number in range(20)]
    backend = backend_for(server)
    assert (await backend.complete(said(*words))).text == "hello"
    await backend.aclose()
    assert [message["content"] for message in server.asked()["messages"]] == words
    assert server.requests[0][2] == server.requests[1][2]


async def test_a_proxy_of_the_environment_is_gone_through(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
    backend = backend_for(server, base_url="http://far.invalid/v1")
    assert (await backend.complete(said("hi"))).text == "hello"
    await backend.aclose()
    path, headers, _ = server.requests[0]
    assert path == "http://far.invalid/v1/chat/completions"
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == f"Bearer {KEY}"


async def test_the_log_of_a_proxy_has_no_headers_of_a_response(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    caplog.set_level("DEBUG")
    monkeypatch.setenv("http_proxy", server.base_url.removesuffix("/v1"))
    server.answers = [status(302, location="/?key=pa55word")]
    await failing(backend_for(server, base_url="http://far.invalid/v1"))
    assert "send_request_headers" in caplog.text  # of the library below httpx
    assert "pa55word" not in caplog.text


async def test_a_reply_that_is_compressed_is_read(server: Server) -> None:
    body = json.dumps({"choices": [{"message": {"content": "hello"}}]}).encode()
    server.answers = [lambda handler: handler.send(200, gzip.compress(body), content_encoding="gzip")]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"))).text == "hello"
    await backend.aclose()


async def test_a_password_in_the_base_url_is_sent_and_not_told(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server.answers = [failure(403, "ann:pa55word may not")]
    url = server.base_url.replace("//", "//ann:pa55word@")
    message = await failing(backend_for(server, base_url=url, api_key=None))
    assert message.endswith(f"or {TYPE_QUOTH_MODELS_LOGIN} openai. It said: ann:*** may not")
    sent = {name.lower(): value for name, value in server.requests[0][1].items()}
    assert sent["authorization"] == "Basic " + base64.b64encode(b"ann:pa55word").decode()
    assert "pa55word" not in caplog.text


async def test_a_password_in_the_base_url_is_stronger_than_a_key(server: Server) -> None:
    backend = backend_for(server, base_url=server.base_url.replace("//", "//ann:pa55@"))
    await backend.complete(said("hi"))
    await backend.aclose()
    sent = {name.lower(): value for name, value in server.requests[0][1].items()}
    assert sent["authorization"] == "Basic " + base64.b64encode(b"ann:pa55").decode()


@pytest.mark.parametrize(
    ("before", "behind", "words"),
    [
        ("tok123@", "", "tok123 may not"),
        ("", "/?key=SECRETQ&v=1", "SECRETQ may not"),
        ("", "/?k=a%2Fb+c", "a/b c may not"),
    ],
)
async def test_a_secret_anywhere_in_the_base_url_is_not_told(
    server: Server, before: str, behind: str, words: str
) -> None:
    server.answers = [failure(418, f"v1: {words}")]
    url = server.base_url.replace("//", f"//{before}") + behind
    message = await failing(backend_for(server, base_url=url, api_key=None))
    assert message.endswith("instead of a reply. It said: v1: *** may not")


async def test_a_connection_that_fails_with_a_secret_does_not_tell_it() -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError(f"no way to {request.url}")

    url = "http://h/v1?key=SECRETQ"
    backend = OpenAIBackend("gpt-x", url, transport=httpx.MockTransport(fail), sleep=Sleeps())
    assert "(no way to http://h/v1/chat/completions?key=***)" in await failing(backend)


async def test_a_key_at_the_cut_of_a_long_complaint_is_not_told_in_part(server: Server) -> None:
    server.answers = [failure(400, "x" * 290 + KEY)]
    assert KEY[:4] not in await failing(backend_for(server))


async def test_a_query_in_the_base_url_is_kept_in_the_request(server: Server) -> None:
    backend = backend_for(server, base_url=f"{server.base_url}/?api-version=1")
    await backend.complete(said("hi"))
    assert server.requests[0][0] == "/v1/chat/completions?api-version=1"
    await backend.aclose()


async def test_cancelling_ends_the_request(server: Server) -> None:
    server.answers = [silence]
    backend = backend_for(server)
    task = asyncio.create_task(backend.complete(said("hi")))
    while not server.requests:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    server.answers = [reply("again")]
    assert (await backend.complete(said("hi"))).text == "again"
    await backend.aclose()


def test_one_backend_serves_several_event_loops(server: Server) -> None:
    backend = backend_for(server)

    async def ask() -> str:
        try:
            return (await backend.complete(said("hi"))).text
        finally:
            await backend.aclose()

    assert [asyncio.run(ask()) for _ in range(2)] == ["hello", "hello"]


@pytest.mark.parametrize("base_url", ["", "127.0.0.1:8080/v1", "ftp://x/v1", "http://", "http://[::1/v1"])
def test_a_base_url_of_no_use_is_a_sentence(base_url: str) -> None:
    with pytest.raises(UsageError, match=r"^The base URL must look like http://127\.0\.0\.1:8080/v1\.$"):
        OpenAIBackend("gpt-x", base_url)


@pytest.mark.parametrize("key", ["sk-a\nb", "sk-é"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(UsageError) as raised:
        OpenAIBackend("gpt-x", api_key=key)
    assert str(raised.value) == "OPENAI_API_KEY contains characters that are not allowed in a key."


# Native tools


TOOLS = b'[{"type":"function","function":{"name":"look","parameters":{}}}]'


def tool_call(id: str | None, name: str, arguments: object, **more: Any) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def calling(*calls: object, content: str | None = None, finish: str = "tool_calls") -> Answer:
    message = {"role": "assistant", "content": content, "tool_calls": list(calls)}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return lambda handler: handler.send(200, json.dumps({"choices": [choice]}).encode())


def call_piece(*calls: object, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}, "finish_reason": finish}]}


def made(*calls: tuple[str, str, str]) -> tuple[NativeCall, ...]:
    return tuple(NativeCall(id=id, name=name, arguments=arguments) for id, name, arguments in calls)


async def test_native_calls_come_with_their_ids_in_order(server: Server) -> None:
    server.answers = [
        calling(tool_call("c1", "look", '{"path":"é"}'), tool_call("c2", "rest", ""), content="I look.")
    ]
    backend = backend_for(server)
    assert isinstance(backend, Backend)
    completion = await backend.complete(said("hi"), tools=TOOLS, tool_choice="required")
    assert (completion.text, completion.finish) == ("I look.", "stop")
    assert completion.calls == made(("c1", "look", '{"path":"é"}'), ("c2", "rest", ""))
    assert server.asked()["tools"] == json.loads(TOOLS)
    assert server.asked()["tool_choice"] == "required"
    await backend.aclose()


# What servers were seen to stream: pieces by index, whole calls one by one, one index or none for all.
STREAMED = {
    "pieces": [
        call_piece({"index": 0, **tool_call("c1", "look", "")}),
        call_piece({"index": 0, "function": {"arguments": '{"path":'}}),
        call_piece({"index": 1, **tool_call("c2", "look", "{}")}),
        call_piece({"index": 0, "function": {"arguments": '"a"}'}}, finish="tool_calls"),
    ],
    "whole, one index": [
        call_piece({"index": 0, **tool_call("c1", "look", '{"path":"a"}')}),
        call_piece({"index": 0, **tool_call("c2", "look", "{}")}, finish="tool_calls"),
    ],
    "whole, no index": [
        call_piece(tool_call("c1", "look", '{"path":"a"}'), tool_call("c2", "look", "{}"), finish="stop"),
    ],
    "arguments as an object": [
        call_piece({"index": 0, **tool_call("c1", "look", {"path": "a"})}),
        call_piece({"index": 1, **tool_call("c2", "look", {})}, finish="tool_calls"),
    ],
}


@pytest.mark.parametrize("events", STREAMED.values(), ids=STREAMED.keys())
async def test_streamed_calls_are_put_together(server: Server, events: list[dict[str, Any]]) -> None:
    server.answers = [sse(piece("I "), piece("look."), *events, "[DONE]")]
    backend = backend_for(server)
    pieces: list[str] = []
    completion = await backend.complete(said("hi"), tools=TOOLS, on_text=pieces.append)
    assert pieces == ["I ", "look."]
    assert completion.calls == made(("c1", "look", '{"path":"a"}'), ("c2", "look", "{}"))
    await backend.aclose()


@pytest.mark.parametrize("ids", [("", ""), (None, None), ("c", "c")])
async def test_a_call_without_an_id_of_its_own_is_given_one(
    server: Server, ids: tuple[str | None, str | None]
) -> None:
    server.answers = [calling(*(tool_call(id, "look", "{}") for id in ids))]
    backend = backend_for(server)
    completion = await backend.complete(said("a", "b"), tools=TOOLS)
    assert [call["id"] for call in completion.calls] == [ids[0] or "call_2_0", "call_2_1"]
    await backend.aclose()


@pytest.mark.parametrize("calls", [None, "x", [1], [{"function": 1}]])
async def test_calls_that_are_none_are_passed_over(server: Server, calls: object) -> None:
    message = {"content": "hello", "tool_calls": calls}
    server.answers = [status(200, {"choices": [{"message": message}]})]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"), tools=TOOLS)).calls == ()
    await backend.aclose()


async def test_calls_and_results_go_back_by_id_and_as_forms_where_no_tools_are(server: Server) -> None:
    backend = backend_for(server)
    messages = said("hi")
    await backend.complete(messages, tools=TOOLS)
    messages.append("assistant", "", calls=made(("c1", "look", '{"path":"a"}'), ("c2", "rest", "{")))
    messages.append("tool", "eins", "c1")
    messages.append("tool", "unreadable", "c2")
    await backend.complete(messages, tools=TOOLS)
    unread = '{"unreadable_arguments":"{"}'  # what is not JSON would be refused, for ever
    assert server.asked()["messages"][1:] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [tool_call("c1", "look", '{"path":"a"}'), tool_call("c2", "rest", unread)],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "eins"},
        {"role": "tool", "tool_call_id": "c2", "content": "unreadable"},
    ]
    await backend.complete(messages)
    assert server.asked()["messages"][1:] == [
        {"role": "assistant", "content": '(look :path "a")\n(rest {)'},
        {"role": "user", "content": "eins\n\nunreadable"},
    ]
    await backend.aclose()


REFUSALS: list[tuple[int, str]] = [
    (400, "gpt-x does not support tools"),
    (400, "Unknown field: functions"),
    (400, "Unrecognized request argument supplied: functions"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice'),
    (400, "tool_choice is not supported by this model"),
    (422, "tools: Extra inputs are not permitted"),
    (404, "No endpoints found that support tool use"),
    (500, "tools param requires --jinja flag"),
    (500, "Unsupported param: tools"),
]


@pytest.mark.parametrize(("code", "words"), REFUSALS)
async def test_a_server_that_takes_no_tools_is_told_apart(server: Server, code: int, words: str) -> None:
    kind = {"type": "server_error"} if code == 500 else {}  # as llama.cpp says
    server.answers = [failure(code, words, **kind)]
    backend = backend_for(server)
    with pytest.raises(ToolsRefusedError) as raised:
        await backend.complete(said("hi"), tools=TOOLS)
    assert str(raised.value) == (
        f"{server.base_url}/chat/completions takes no tools for gpt-x ({code}). It said: {words}"
    )
    assert len(server.requests) == 1
    await backend.aclose()


@pytest.mark.parametrize(
    ("code", "words", "more", "tools"),
    [
        (400, "context too long", {}, TOOLS),
        (500, "the tool shed is on fire", {}, TOOLS),
        (400, "no tools", {}, None),
        (400, "9000 tokens (8000 in the messages, 1000 in the functions)", {}, TOOLS),
        (400, "unsupported length of functions", {"code": "context_length_exceeded"}, TOOLS),
        (400, "Invalid 'messages[3].tool_calls[0].function.name': too long", {}, TOOLS),
        (400, "unknown function", {"param": "messages[3].tool_calls[0]"}, TOOLS),
        (400, "Missing required parameter: 'tools[0].type'", {}, TOOLS),
        (400, "Unsupported type in tools[0].function.parameters", {}, TOOLS),
    ],
)
async def test_other_refusals_say_nothing_of_tools(
    server: Server, code: int, words: str, more: dict[str, str], tools: bytes | None
) -> None:
    server.answers = [failure(code, words, **more)]
    backend = backend_for(server)
    with pytest.raises(ModelError) as raised:
        await backend.complete(said("hi"), tools=tools)
    assert not isinstance(raised.value, ToolsRefusedError)
    await backend.aclose()


async def test_a_forced_call_is_given_up_where_it_is_not_known(server: Server) -> None:
    server.answers = [
        failure(400, "tool_choice", param="tool_choice", code="unsupported_parameter"),
        reply("hello"),
    ]
    backend = backend_for(server)
    await backend.complete(said("hi"), tools=TOOLS, tool_choice="none")
    assert "tool_choice" not in server.asked()
    await backend.aclose()


@pytest.mark.parametrize("choices", [[], [None], [{}], [{"message": None}], {}, "none"])
async def test_a_reply_whose_choices_hold_no_message_is_asked_for_again(server: Server, choices: Any) -> None:
    server.answers = [status(200, {"choices": choices}), reply("hello")]
    backend = backend_for(server)
    assert (await backend.complete(said("hi"))).text == "hello"
    await backend.aclose()
    assert len(server.requests) == 2
