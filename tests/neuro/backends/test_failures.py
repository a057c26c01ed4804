"""What a person is told of each thing that a model server can do wrong, for every back end over HTTP: the
sentence, how many requests were sent, and what the transcript holds; and no secret anywhere.

Knows the table of failures; nothing here is decided by how long something took.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
import trustme
from commands import quoth
from loopback import Answer, Handler, Server, Sleeps, failure, loopback, said, silence, sse, status
from sentences import CANNOT_BE_READ, CANNOT_BE_USED, REFUSED_THE_KEY
from server_failures import (
    PASSWORD,
    QUERY,
    REPEATED,
    SECOND,
    SECRETS,
    STATUSES,
    STREAMS,
    WHOLE,
    Row,
    lines,
)
from server_speech import SPEECHES, Event, Speech
from words import tool

from quoth import AsyncAgent, ModelOptions
from quoth.agent.events import AgentEvent
from quoth.agent.run.models import OwnModel
from quoth.neuro.backends.answers import MULTIPLE
from quoth.neuro.backends.base import ModelError, RequestOptions, forget_failures
from quoth.neuro.backends.http import HttpBackend, models_of
from quoth.tools.errors import ToolError
from quoth.tools.registry.table import ToolTable

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
    server: Server,
    speech: Speech,
    rows: Sequence[Row],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level("DEBUG")
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path))
    backend = speech.backend(secret_url(server))
    shown: list[str] = []
    seen: list[str] = []
    told: dict[str, Any] = {}
    wanted = {row.about: as_told(row, speech, server.base_url) for row in rows}

    def listen(event: AgentEvent) -> None:
        seen.append(repr(event.to_json()))
        if event.kind == "text":
            shown.append(event.data)

    async with AsyncAgent(workspace=tmp_path, tools=[], model=backend, on_event=listen) as agent:
        for row in rows:
            server.answers, before = list(row.answers(speech)), len(server.requests)
            shown.clear()
            forget_failures()  # else the breaker opens
            reply = await agent.run("hi")
            last = agent.transcript.last(agent.session, "reply")
            assert last is not None
            kept = {name: last.data.get(name) for name in ("raised", "finish") if last.data.get(name)}
            sent = len(server.requests) - before
            told[row.about] = (reply.status, reply.said, sent, "".join(shown), kept, last.data["text"])
            seen += [repr(reply), repr(reply.to_json())]
        seen += [repr(agent), repr(backend)]
    await backend.aclose()
    assert [(told[k], wanted[k]) for k in told if told[k] != wanted[k]] == []
    assert secrets_in(caplog.text, *seen, folder=tmp_path) == []


@speeches
async def test_a_look_at_the_models_of_a_server_tells_no_secret(
    server: Server, speech: Speech, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server.answers = [status(302, location=f"/?{REPEATED.replace(' ', '+')}")]
    with pytest.raises(ModelError, match="redirects to") as told:
        await models_of(speech.backend(secret_url(server)))
    assert server.requests[0][0].startswith("/v1/models?")
    assert secrets_in(caplog.text, str(told.value), folder=tmp_path) == []


def endless(speech: Speech, begin: Sequence[Event], event: Event) -> Answer:
    """A stream that begins well and repeats one event until its client hangs up."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(lines([*speech.begin, *begin], "\n"))
        while not handler.server.released.is_set():
            handler.wfile.write(lines([event], "\n") * 10)

    return answer


@speeches
async def test_a_stream_that_does_not_heed_the_limit_is_cut_at_a_multiple_of_it(
    server: Server, speech: Speech
) -> None:
    *begin, word = speech.words("well", "on ")[:2] if speech.name == "openai" else speech.words("on ")[:2]
    server.answers = [endless(speech, begin, word)]
    shown: list[str] = []
    backend = speech.backend(server.base_url)
    completion = await backend.complete(said("hi"), max_tokens=20, on_text=shown.append)
    await backend.aclose()
    assert completion.finish == "length"
    assert 20 <= len(shown) <= 20 * MULTIPLE
    assert completion.text == "".join(shown)
    assert len(server.requests) == 1


async def test_a_stream_of_thoughts_without_end_is_cut_too(server: Server) -> None:
    thought = {"choices": [{"delta": {"reasoning_content": "hm"}}]}
    server.answers = [endless(SPEECHES[0], [], thought)]
    backend = SPEECHES[0].backend(server.base_url)
    completion = await backend.complete(said("hi"), max_tokens=20, on_text=lambda _: None)
    await backend.aclose()
    assert (completion.text, completion.finish) == ("", "length")


@speeches
async def test_a_look_at_the_models_of_a_server_that_says_nothing_is_a_model_error(
    server: Server, speech: Speech
) -> None:
    server.answers = [status(200)]
    with pytest.raises(ModelError, match="answered with nothing"):
        await models_of(speech.backend(server.base_url))


def secrets_in(*texts: str, folder: Path) -> list[str]:
    """The secrets that stand in one of the texts, or in a store in the folder."""
    found = [text.encode() for text in texts] + [file.read_bytes() for file in folder.rglob("*.sqlite*")]
    return [one for one in SECRETS if any(one.encode() in text for text in found)]


def as_told(row: Row, speech: Speech, url: str) -> tuple[Any, ...]:
    """What a row says, as it is observed: how the run ends, the requests, the words shown, the transcript."""
    own = {
        "{url}": url + speech.path,
        "{server}": url.removesuffix("/v1"),
        "{path}": speech.path,
        "{kind}": speech.kind,
        "{wants}": speech.wants,
        "{variable}": speech.variable,
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
    return "failed", said, row.requests, row.shown, {"raised": row.raised}, said


async def test_the_scan_finds_the_secrets_that_are_there(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path))
    server.answers = [SPEECHES[0].reply(f"The model made up {SECRETS[2]}.")]
    backend = SPEECHES[0].backend(server.base_url)
    async with AsyncAgent(workspace=tmp_path, tools=[], model=backend) as agent:
        await agent.run("hi")
    await backend.aclose()
    assert secrets_in(f"x{SECRETS[1]}", folder=tmp_path) == list(SECRETS[1:3])


# A refusal


@speeches
async def test_a_refusal_is_replayed_and_never_taken_for_an_answer(
    server: Server, speech: Speech, tmp_path: Path
) -> None:
    server.answers = [status(200, speech.refusal("I will not."))]
    backend = speech.backend(server.base_url)
    refused = f"{speech.name}:model-x refused to answer. It said: I will not."
    async with AsyncAgent(workspace=tmp_path, tools=[], model=backend) as agent:
        reply = await agent.run("hi")
        assert (reply.text, reply.error, reply.steps) == ("", refused, 1)
        assert (await agent.replay()).same
        with pytest.raises(ToolError) as raised:  # a tool asks it
            await OwnModel(lambda: backend).complete("hi")
        assert str(raised.value) == refused
    assert len(server.requests) == 2
    await backend.aclose()


# The command


def test_the_command_tells_and_keeps_no_secret(server: Server, tmp_path: Path) -> None:
    server.answers = [failure(401, REPEATED)]
    options = ["--model", "openai:gpt-x", "--base-url", secret_url(server), "--json"]
    options += ["--trace", "t.jsonl", "--trace-content"]
    env = {"QUOTH_STATE": str(tmp_path), "OPENAI_API_KEY": SECRETS[0]}
    ran = quoth("run", "hi", *options, cwd=tmp_path, env=env)
    assert ran.code == 1
    for told in (ran.out, ran.err):
        assert f"{REFUSED_THE_KEY} (401); check OPENAI_API_KEY. It said: you sent ***" in told
    log = quoth("log", "--json", cwd=tmp_path, env=env)
    assert REFUSED_THE_KEY in log.out
    trace = (tmp_path / "t.jsonl").read_text()
    assert REFUSED_THE_KEY in trace
    assert secrets_in(ran.out, ran.err, log.out, log.err, trace, folder=tmp_path) == []


# On the way there


async def told(backend: HttpBackend, **more: Any) -> str:
    """What a person is told of a request that fails."""
    with pytest.raises(ModelError) as raised:
        await backend.complete(said("hi"), **more)
    await backend.aclose()
    return str(raised.value)


@speeches
async def test_a_server_that_is_down_is_named_without_user_password_or_query(speech: Speech) -> None:
    with socket.socket() as taken:  # bound but not listening: nobody else can answer there
        taken.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{taken.getsockname()[1]}/v1"
        assert await told(speech.backend(f"http://ann:{PASSWORD}@{place}/?api-key={QUERY}")) == (
            f"After 3 tries: Cannot reach http://{place}{speech.path} (All connection attempts failed). "
            "Is the server running?"
        )


@speeches
async def test_a_name_that_nobody_has(speech: Speech, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert await told(speech.backend("http://there.invalid/v1")) == (
        f"After 3 tries: Cannot reach http://there.invalid/v1{speech.path} (Name or service not known). "
        "Check its name and your network connection."
    )


@speeches
async def test_a_server_to_which_no_connection_comes_about(speech: Speech) -> None:
    with socket.socket() as full, socket.socket() as first, socket.socket() as second:
        full.bind(("127.0.0.1", 0))
        full.listen(0)  # its queue is full once one has connected
        for one in (first, second):
            one.setblocking(False)
            one.connect_ex(full.getsockname())
        url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        assert await told(speech.backend(url, connect_timeout=0.05)) == (
            f"After 3 tries: Cannot reach {url}{speech.path} (no connection in 0.05 s). "
            "Is the server running?"
        )


@speeches
@pytest.mark.parametrize("begun", [False, True], ids=["no answer", "some words"])
async def test_a_server_that_falls_silent(server: Server, speech: Speech, begun: bool) -> None:
    def answer(handler: Handler) -> None:
        if begun:
            speech.stream("he", cut=True)(handler)
            handler.wfile.flush()
        silence(handler)

    server.answers = [answer]
    sentence = await told(speech.backend(server.base_url, timeout=0.2), on_text=lambda piece: None)
    assert sentence == (
        f"{server.base_url}{speech.path} gave no answer for 0.2 s; it is slow or overloaded, or needs a"
        " longer timeout."
    )
    assert len(server.requests) == 1


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
NOT_GOOD = "The certificate of {url} is not valid: "
OWN_CA = " To use your own CA, set SSL_CERT_FILE."


@speeches
@pytest.mark.parametrize(
    ("known", "name", "until", "sentence"),
    [
        (True, "127.0.0.1", None, ""),
        (False, "127.0.0.1", None, NOT_GOOD + "unable to get local issuer certificate." + OWN_CA),
        (True, "127.0.0.1", LONG_AGO, NOT_GOOD + "certificate has expired."),
        (
            True,
            "there.invalid",
            None,
            NOT_GOOD + "IP address mismatch, certificate is not valid for '127.0.0.1'.",
        ),
    ],
    ids=["own CA", "unknown CA", "expired", "wrong host"],
)
async def test_a_certificate_is_looked_at(
    speech: Speech,
    known: bool,
    name: str,
    until: datetime | None,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name, not_before=LONG_AGO - timedelta(days=1), not_after=until).configure_cert(context)
    (ca if known else trustme.CA()).cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    with loopback(speech.reply(), context) as server:
        backend = speech.backend(server.base_url)
        if sentence:
            assert await told(backend) == sentence.replace("{url}", server.base_url + speech.path)
            assert server.requests == []
        else:
            assert (await backend.complete(said("hi"))).text == "hello"
            await backend.aclose()


@speeches
async def test_a_server_that_speaks_no_tls(server: Server, speech: Speech) -> None:
    url = server.base_url.replace("http:", "https:")
    assert await told(speech.backend(url)) == (
        f"Cannot reach {url}{speech.path} (WRONG_VERSION_NUMBER). "
        "Does it support https, or should its address begin with http://?"
    )


async def test_certificates_that_cannot_be_read_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere.pem")
    assert await told(SPEECHES[0].backend("https://127.0.0.1/v1")) == (
        f"The certificates in SSL_CERT_FILE {CANNOT_BE_READ} ([Errno 2] No such file or directory)."
    )


@pytest.mark.parametrize(
    ("proxy", "sentence"),
    [
        (f"http://ann:{PASSWORD}@127.0.0.1:1", "After 3 tries: Cannot reach {url} (All connection attempts"),
        (
            f"socks5://ann:{PASSWORD}@127.0.0.1:1",
            f"The proxy in the environment variables {CANNOT_BE_USED}: Using",
        ),
        (
            f"ftp://ann:{PASSWORD}@127.0.0.1:1",
            "The proxy in the environment variables cannot be used: Unknown",
        ),
    ],
)
async def test_a_proxy_that_does_not_work(proxy: str, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", proxy)
    said = await told(SPEECHES[0].backend("http://there.invalid/v1"))
    assert said.startswith(sentence.replace("{url}", "http://there.invalid/v1/chat/completions"))
    assert PASSWORD not in said


# What is waited for


async def test_a_wait_is_counted_down(server: Server) -> None:
    server.answers = [status(429, retry_after="3"), SPEECHES[0].reply()]
    heard: list[tuple[float, str]] = []
    sleeps = Sleeps()
    backend = SPEECHES[0].backend(server.base_url, sleep=sleeps)
    options = RequestOptions(on_wait=lambda seconds, why: heard.append((seconds, why)))
    assert (await backend.complete(said("hi"), options=options)).text == "hello"
    why = f"{server.base_url}/chat/completions is limiting requests (429)."
    assert heard == [(3, why), (2, why), (1, why), (0, why)]
    assert sleeps == [1, 1, 1]
    await backend.aclose()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            RequestOptions(seconds=60),
            "{url} is limiting requests (429) and asks to wait 90 s, which is longer than this reply may"
            " take.",
        ),
        (RequestOptions(patience=2), "{url} is limiting requests (429)."),
    ],
)
async def test_what_cannot_be_waited_for_is_said_at_once(
    server: Server, options: RequestOptions, sentence: str
) -> None:
    server.answers = [status(429, retry_after="90")]
    said = await told(SPEECHES[0].backend(server.base_url), options=options)
    assert said == sentence.replace("{url}", f"{server.base_url}/chat/completions")
    assert len(server.requests) == 1


# Calls


@speeches
@pytest.mark.parametrize("pieces", [(), ('{"word": ',)], ids=["after its name", "in its arguments"])
async def test_a_call_that_was_cut_off_is_made_once(
    server: Server, speech: Speech, pieces: tuple[str, ...], tmp_path: Path
) -> None:
    made: list[str] = []

    def write(word: str) -> str:
        made.append(word)
        return "written"

    note = tool("note", write, params={"word": {"type": str}}, effects=["writes"])
    server.answers = [
        sse(*speech.begin, *speech.call("note", *pieces), cut=True),
        sse(*speech.begin, *speech.call("note", '{"word": ', '"ann"}'), *speech.end),
        speech.stream("done"),
    ]
    backend = speech.backend(server.base_url)
    async with AsyncAgent(
        workspace=tmp_path,
        tools=ToolTable([note]),
        model=ModelOptions(backend, dialect="native"),
        consent="yes",
        on_event=lambda event: None,
    ) as agent:
        assert (await agent.run("hi")).said == "done"
    await backend.aclose()
    assert (made, len(server.requests)) == (["ann"], 3)
