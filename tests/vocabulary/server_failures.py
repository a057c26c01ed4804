"""The table of what a model server can do wrong, and what a person is told of it.

Data alone: tests/neuro/backends/test_failures.py plays it for every back end over HTTP.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from loopback import KEY, Answer, Handler, cut_off, failure, hang_up, sse, status
from sentences import ANSWERED_WITH_MORE_THAN, REFUSED_THE_KEY, WHICH_IT_WAS_NOT_ASKED
from server_speech import Event, Speech

PASSWORD, QUERY, SECOND = "pa55word", "query-key-5678", "second-key-9012"
SECRETS = (KEY, PASSWORD, QUERY, SECOND)
REPEATED = f"you sent {KEY}, {PASSWORD}, {QUERY} and {SECOND}"  # what a careless server says


@dataclass(frozen=True)
class Row:
    """What a server does, in the order of the requests, and what comes of it: the sentence or the answer
    (``{url}``, ``{kind}``, ``{wants}`` and ``{variable}`` are the server's own), how many requests it takes,
    and what a person is shown of the reply before. With ``ends`` "failed" the sentence is why there is no
    answer, with "refused" the model's own words."""

    about: str
    answers: Callable[[Speech], Sequence[Answer]]
    said: str
    requests: int = 1
    shown: str = ""
    ends: Literal["failed", "refused", "done"] = "failed"
    raised: str = "model"  # what the transcript says of a failure


def always(answer: Answer) -> Callable[[Speech], Sequence[Answer]]:
    return lambda speech: [answer]


def raw(data: bytes, cut: bool = False) -> Answer:
    """A stream, byte for byte."""

    def answer(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("content-length", str(len(data) + (1 if cut else 0)))
        handler.end_headers()
        handler.wfile.write(data)
        handler.close_connection = cut

    return answer


def lines(events: Sequence[Event], end: str, before: str = "") -> bytes:
    """Events as a server writes them whose lines end with ``end``; ``before`` stands before each."""
    text = [one if isinstance(one, str) else json.dumps(one) for one in events]
    return "".join(f"{before}data: {one}{end}{end}" for one in text).encode()


def whole(speech: Speech) -> list[Event]:
    return [*speech.begin, *speech.words("hel", "lo"), *speech.end]


def got_over(about: str, first: Callable[[Speech], Answer]) -> Row:
    """A server fails once and then answers in a stream."""
    return Row(
        about, lambda speech: [first(speech), speech.stream("hel", "lo")], "hello", 2, "hello", ends="done"
    )


def heard(about: str, answers: Callable[[Speech], Sequence[Answer]]) -> Row:
    return Row(about, answers, "hello", 1, "hello", ends="done")


def error(kind: str, words: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": words}}


NOT_DONE = (
    " The redirect was not followed, because it would send the key there. If it is the right server:"
    " --base-url "
)
UNPAID = "the account has no credit, or has reached its limit."
CUT = "The answer from {url} was cut off in the middle."
LIMITED = "{url} is limiting requests (429)"
TRIED = "After 3 tries: "
WANTING = TRIED + "{url} answered with JSON without {wants}. Is it {kind}?"

STATUSES = [
    Row("400", always(failure(400, "no such field")), "{url} refused the request (400): no such field"),
    Row("400 without words", always(status(400)), "{url} refused the request (400): it did not say why"),
    Row(
        "400 in many words",
        always(failure(400, "so " + "x" * 400)),
        "{url} refused the request (400): so " + "x" * 297 + "…",
    ),
    Row(
        "400, a bare string",
        always(status(400, {"error": "bad\n field"})),
        "{url} refused the request (400): bad field",
    ),
    Row(
        "400, a list",
        always(status(400, [{"error": {"code": 400, "message": "bad field"}}])),
        "{url} refused the request (400): bad field",
    ),
    Row(
        "400, the error itself",
        always(status(400, {"object": "error", "message": "bad field"})),
        "{url} refused the request (400): bad field",
    ),
    Row(
        "400 that repeats what is secret",
        always(failure(400, REPEATED)),
        "{url} refused the request (400): you sent ***, ***, *** and ***",
    ),
    Row(
        "401",
        always(failure(401, REPEATED)),
        f"{{url}} {REFUSED_THE_KEY} (401); check {{variable}}. It said: you sent ***, ***, *** and ***",
    ),
    Row(
        "402",
        always(failure(402, "Insufficient Balance")),
        "{url} requires payment (402): " + UNPAID + " It said: Insufficient Balance",
    ),
    Row("403", always(status(403, b"<html>")), f"{{url}} {REFUSED_THE_KEY} (403); check {{variable}}."),
    Row(
        "404",
        always(failure(404, "no model-x")),
        "{url} has no model model-x, or no such address (404). It said: no model-x",
    ),
    Row(
        "405, a page",
        always(status(405, b"<html><title>405 Not Allowed</title>")),
        "{url} has no model model-x, or no such address (405). It said: 405 Not Allowed",
    ),
    Row("407", always(status(407)), "The proxy for {url} requires a user name and a password (407)."),
    Row("408", always(status(408)), TRIED + "{url} failed (408).", 3),
    Row(
        "413",
        always(failure(413, "request too large")),
        "{url} refused the request (413): request too large",
        raised="full",
    ),
    Row(
        "400, limited",
        always(failure(400, "Too many tokens, please wait before trying again.")),
        TRIED
        + "{url} is limiting requests (400). It said: Too many tokens, please wait before trying again.",
        3,
    ),
    Row(
        "403, limited for long",
        always(failure(403, "Rate limit reached. Please try again in 59m1.5s.")),
        "{url} is limiting requests (403) and asks to wait 3542 s. It said: Rate limit reached. Please try "
        "again in 59m1.5s.",
    ),
    Row(
        "400, filtered",
        always(failure(400, "Content Exists Risk")),
        "The content filter of {url} stopped this request (400). It said: Content Exists Risk",
    ),
    Row(
        "418",
        always(failure(418, "a teapot")),
        "{url} answered with status 418 instead of a reply. It said: a teapot",
    ),
    Row(
        "422, a list of faults",
        always(status(422, {"detail": [{"loc": ["body"], "msg": "Field required"}]})),
        "{url} refused the request (422): Field required",
    ),
    Row("429", always(failure(429, "slow down")), TRIED + LIMITED + ". It said: slow down", 3),
    got_over("429 for a while", lambda speech: status(429, retry_after="120")),
    Row("429 for long", always(status(429, retry_after="3600")), LIMITED + " and asks to wait 3600 s."),
    Row(
        "429, no quota",
        always(failure(429, "You exceeded your current quota", code="insufficient_quota")),
        "{url} requires payment (429): " + UNPAID + " It said: You exceeded your current quota",
    ),
    Row(
        "400, no credit",
        always(failure(400, "Your credit balance is too low")),
        "{url} requires payment (400): " + UNPAID + " It said: Your credit balance is too low",
    ),
    Row(
        "500", always(failure(500, "out of memory")), TRIED + "{url} failed (500). It said: out of memory", 3
    ),
    Row("500, empty", always(status(500)), TRIED + "{url} failed (500).", 3),
    Row(
        "500, half of its JSON",
        always(status(500, b'{"error": {"mess')),
        TRIED + '{url} failed (500). It said: {"error": {"mess',
        3,
    ),
    Row("500, a number", always(status(500, {"error": 5})), TRIED + "{url} failed (500). It said: 5", 3),
    Row("500, null", always(status(500, b"null")), TRIED + "{url} failed (500). It said: null", 3),
    got_over("500 once", lambda speech: status(500)),
    Row("501", always(status(501)), "{url} answered with status 501 instead of a reply."),
    Row(
        "502, a page",
        always(status(502, b"<html><title>502 Bad Gateway</title>")),
        TRIED + "{url} failed (502). It said: 502 Bad Gateway",
        3,
    ),
    Row(
        "503, a plain text",
        always(status(503, b"no healthy upstream\n")),
        TRIED + "{url} failed (503). It said: no healthy upstream",
        3,
    ),
    Row("504", always(status(504)), TRIED + "{url} failed (504).", 3),
    Row(
        "529",
        always(status(529, error("overloaded_error", "Overloaded"))),
        TRIED + "{url} is overloaded (529). It said: Overloaded",
        3,
    ),
    Row(
        "301",
        lambda speech: [
            status(301, location=f"https://ann:{PASSWORD}@there.invalid/v1{speech.path}?key={QUERY}")
        ],
        "{url} redirects to https://there.invalid/v1{path} (301)."
        + NOT_DONE
        + "https://there.invalid/v1{path}",
    ),
    Row(
        "308 within the server",
        lambda speech: [status(308, location=f"/v2{speech.path}")],
        "{url} redirects to {server}/v2{path} (308)." + NOT_DONE + "{server}/v2{path}",
    ),
    Row("302 without a place", always(status(302)), "{url} answered with status 302 instead of a reply."),
    Row("204", always(status(204)), "{url} answered with status 204 instead of a reply."),
]

WHOLE = [
    Row(
        "a page",
        always(status(200, b"<html><title>Welcome</title>")),
        "{url} answered with text that is not JSON (Welcome). Is it {kind}?",
    ),
    Row(
        "bytes that would steer a terminal",
        always(status(200, b"\xff\x00\x1b[31m")),
        "{url} answered with text that is not JSON (\ufffd [31m). Is it {kind}?",
    ),
    Row("nothing", always(status(200)), TRIED + "{url} answered with nothing. Is it {kind}?", 3),
    got_over("nothing, once", lambda speech: status(200)),
    Row(
        "half of its JSON",
        always(status(200, b'{"choices": [{')),
        '{url} answered with text that is not JSON ({"choices": [{). Is it {kind}?',
    ),
    Row(
        "JSON of no use",
        always(status(200, {"ok": True})),
        WANTING,
        3,
    ),
    Row("a JSON list", always(status(200, [1])), WANTING, 3),
    Row("null for an answer", lambda speech: [status(200, {speech.wants: None})], WANTING, 3),
    got_over("null for an answer, once", lambda speech: status(200, {speech.wants: None})),
    Row(
        "an error",
        always(status(200, {"error": {"message": REPEATED}})),
        "{url} failed: you sent ***, ***, *** and ***",
    ),
    Row(
        "an error that passes",
        always(status(200, error("overloaded_error", "Overloaded"))),
        TRIED + "{url} failed: Overloaded",
        3,
    ),
    Row(
        "no way to read it",
        always(status(200, b"x", content_encoding="br")),
        f"{{url}} answered with a reply compressed as br, {WHICH_IT_WAS_NOT_ASKED}. Is it {{kind}}?",
    ),
    Row(
        "a broken gzip",
        always(status(200, b"xxxx", content_encoding="gzip")),
        "{url} answered with a reply that cannot be decompressed. Is it {kind}?",
    ),
    Row(
        "10 MB",
        lambda speech: [speech.reply("x" * 10_000_000)],
        f"{{url}} {ANSWERED_WITH_MORE_THAN} 8,000,000 bytes; it was stopped there. Is it {{kind}}?",
    ),
    Row("the middle of it", always(cut_off), TRIED + CUT, 3),
    Row("no reply at all", always(hang_up), TRIED + "{url} closed the connection without an answer.", 3),
    heard("usage left out", lambda speech: [speech.reply()]),
    Row(
        "a refusal",
        lambda speech: [status(200, speech.refusal("I will not."))],
        "I will not.",
        1,
        "",
        "refused",
    ),
    Row("a refusal without words", lambda speech: [status(200, speech.refusal(""))], "", 1, "", "refused"),
]

STREAMS = [
    heard("lines that end with CR", lambda speech: [raw(lines(whole(speech), "\r"))]),
    heard("lines that end with CR LF", lambda speech: [raw(lines(whole(speech), "\r\n"))]),
    heard(
        "comments and fields that are not known",
        lambda speech: [raw(lines(whole(speech), "\n", ": ping\nid: 7\nevent: x\nretry: 1\n"))],
    ),
    heard("the end twice", lambda speech: [sse(*whole(speech), *speech.end)]),
    heard("the last event left out", lambda speech: [sse(*whole(speech)[:-1])]),
    Row("the end left out", lambda speech: [sse(*speech.begin, *speech.words("he"))], CUT, 1, "he"),
    Row("no event at all", always(sse()), TRIED + CUT, 3),
    got_over("no event, once", lambda speech: sse(cut=True)),
    Row("a break after one event", lambda speech: [sse(*speech.begin, cut=True)], TRIED + CUT, 3),
    got_over("a break after one event, once", lambda speech: sse(*speech.begin, cut=True)),
    Row("a break after some words", lambda speech: [speech.stream("he", "l", cut=True)], CUT, 1, "hel"),
    Row(
        "a break, then one after some words",
        lambda speech: [sse(cut=True), speech.stream("he", cut=True)],
        "After 2 tries: " + CUT,
        2,
        "he",
    ),
    got_over(
        "a break after a call's name", lambda speech: sse(*speech.begin, *speech.call("look"), cut=True)
    ),
    got_over(
        "a break in a call's arguments",
        lambda speech: sse(*speech.begin, *speech.call("look", '{"a'), cut=True),
    ),
    got_over("a break in an event", lambda speech: raw(b'data: {"ty', cut=True)),
    got_over(
        "an error that passes", lambda speech: sse(*speech.begin, error("overloaded_error", "Overloaded"))
    ),
    Row(
        "an error that passes, after some words",
        lambda speech: [sse(*speech.begin, *speech.words("he"), error("overloaded_error", "Overloaded"))],
        "{url} failed: Overloaded",
        1,
        "he",
    ),
    Row(
        "an error that stays",
        lambda speech: [sse(*speech.begin, error("invalid_request_error", REPEATED))],
        "{url} failed: you sent ***, ***, *** and ***",
    ),
    Row("garbage", always(sse("what?")), "{url} answered with text that is not JSON (what?). Is it {kind}?"),
    Row(
        "other things in the right places",
        lambda speech: [sse(*speech.begin, *speech.strange)],
        "{url} answered with a reply of another shape. Is it {kind}?",
    ),
    Row("other things", always(sse("[1]")), WANTING, 3),
    Row("no answer", lambda speech: [sse(*speech.answerless)], WANTING, 3),
    got_over("no answer, once", lambda speech: sse(*speech.answerless)),
    Row(
        "a refusal",
        lambda speech: [sse(*speech.begin, *speech.refused("I will not."))],
        "I will not.",
        1,
        "",
        "refused",
    ),
]
