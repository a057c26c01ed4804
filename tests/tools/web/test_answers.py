"""What is made of one answer of a server: its kind, its charset, and the sentence where it is no page."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from words import complaint

from quoth.tools.call.web_url import read_url
from quoth.tools.errors import ToolError
from quoth.tools.web.page import page_of
from quoth.tools.web.request import Response, _ask_at

URL = read_url("http://a.example/x?key=1")
ANSWERED = "http://a.example/x answered "


def asked(code: int, body: bytes = b"", reason: bytes = b"", **headers: str) -> Response:
    """The answer of a server that is asked once."""

    def answer(_: httpx.Request) -> httpx.Response:
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        extensions = {"reason_phrase": reason} if reason else {}
        return httpx.Response(code, stream=httpx.ByteStream(body), headers=named, extensions=extensions)

    async def ask() -> Response:
        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            return await _ask_at(client, URL, "127.0.0.1", "*/*")

    return asyncio.run(ask())


def test_a_page_has_its_kind_and_its_charset() -> None:
    page = asked(200, b"x", content_type=" Text/HTML ; charset=latin-1")
    assert (page.kind, page.charset, page.body) == (
        "text/html",
        "iso8859-1",
        b"x",
    ) or page.charset == "latin-1"
    plain = asked(299, b"x", content_type="text/plain")
    assert (plain.kind, plain.charset, plain.body) == ("text/plain", "", b"x")
    assert asked(200, b"x", content_type="a" * 101).kind == "a" * 100


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_an_answer_may_lead_on(code: int) -> None:
    assert asked(code, location="/y").moved == "http://a.example/y"


@pytest.mark.parametrize(
    ("code", "reason", "headers", "body", "said"),
    [
        (300, b"Many", {"content_type": "text/html"}, b"x", "300 Many."),
        (304, b"", {}, b"", "304 Not Modified."),
        (
            404,
            b"a",
            {"content_type": "text/plain"},
            b"no  such\nx",
            "404 a: no such x",
        ),
        (404, b"a", {"content_type": "text/html"}, b"no", "404 a."),
    ],
)
def test_an_answer_that_is_no_page_is_told_with_its_words(
    code: int, reason: bytes, headers: dict[str, str], body: bytes, said: str
) -> None:
    assert complaint(ToolError, lambda: asked(code, body, reason, **headers)) == f"{ANSWERED}{said}"


def test_long_words_of_a_server_are_cut() -> None:
    given: dict[str, Any] = {"content_type": "text/plain"}
    whole = complaint(ToolError, lambda: asked(404, b"b" * 200, b"r" * 60, **given))
    assert whole == f"{ANSWERED}404 {'r' * 60}: {'b' * 200}"
    for body, reason in ((b"b" * 201, b"r" * 60), (b"b" * 200, b"r" * 61)):
        cut = complaint(ToolError, lambda body=body, reason=reason: asked(404, body, reason, **given))
        assert len(cut) <= len(whole)
        assert cut != whole


def test_a_converted_page_is_taken_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def text_of(body: str) -> Any:
        return page_of(Response(URL, "text/html", "", body.encode()), "text")["text"]

    whole = text_of("<p>" + "x" * 20)
    monkeypatch.setattr("quoth.tools.web.page.MAX_TEXT", 21)  # and the end of its line
    assert text_of("<p>" + "x" * 20) == whole == "x" * 20
    with pytest.raises(ToolError, match="more than 21 characters"):
        text_of("<p>" + "x" * 21)
