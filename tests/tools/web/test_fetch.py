"""Fetching a page: what comes of each kind, where it leads on, and every way it fails."""

from __future__ import annotations

import gzip
import ssl
import struct
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import trustme
from fetching import PAGE, fetched, fetcher, refusal
from loopback import Answer, Server, cut_off, hang_up, loopback, silence, status
from sentences import (
    ANSWERED_WITH_MORE_THAN,
    CANNOT_BE_REACHED,
    CANNOT_BE_READ,
    DID_NOT_ANSWER_WITHIN,
    HAS_MORE_THAN,
)

from quoth.tools.call.web_url import read_url
from quoth.tools.errors import ToolError
from quoth.tools.installing import install_command
from quoth.tools.web import request
from quoth.tools.web.page import page_of
from quoth.tools.web.request import Response

REFUSED = "error: {a} redirects to an address that is refused: "
HERE = '(allow (fetch :url (host "localhost")))'


def at(server: Server, path: str = "/", host: str = "localhost") -> str:
    return f"{server.scheme}://{host}:{server.server_address[1]}{path}"


def moved(where: str, code: int = 302) -> Answer:
    return status(code, b"", location=where)


# What comes


def test_a_page_comes_as_data_with_its_address(server: Server) -> None:
    result = fetched(at(server), HERE)
    assert result.value == {
        "url": at(server),
        "type": "text/html",
        "title": "A page",
        "text": f"# Hello\n\nTo [b]({at(server, '/b')}).",
    }
    assert result.side_effects == (f"requested:GET {at(server)}",)
    ((path, headers, _),) = server.requests
    assert (path, headers["host"]) == ("/", f"localhost:{server.server_address[1]}")
    assert not {"cookie", "authorization", "referer"} & {name.lower() for name in headers}


@pytest.mark.parametrize(
    ("kind", "body", "wanted", "part"),
    [
        ("text/html", PAGE, "text", {"title": "A page", "text": "Hello\n\nTo b."}),
        ("text/html", PAGE, "raw", {"text": PAGE.decode()}),
        ("application/json", b'{"a": [1]}', "markdown", {"text": '{"a": [1]}'}),
        ("application/json", b'{"a": [1]}', "json", {"data": {"a": [1]}}),
        ("text/plain; charset=latin-1", b"\xfc", "markdown", {"text": "ü"}),
        ("text/plain; charset=none-such", "ü".encode(), "markdown", {"text": "ü"}),
        ("text/html", b'<meta charset="iso-8859-1"><p>\xfc', "markdown", {"text": "ü"}),
        ("text/plain", "\ufeffü".encode("utf-16"), "markdown", {"text": "\ufeffü"}),
        ("text/html", b"<hr><p>a</p><hr><p>b</p>", "markdown", {"text": "---\n\na\n\n---\n\nb"}),
        (
            "text/html",
            b"<p>a</p><script>s()</script><p style='display:none'>h</p>",
            "markdown",
            {"text": "a"},
        ),
        (
            "text/html",
            b"<p>a<svg><text>s</text></svg><img src='data:image/png;base64,AA'>",
            "text",
            {"text": "a"},
        ),
        ("text/html", b"<div>" * 20_000 + b"x", "markdown", {"text": ""}),
        ("", b"plain", "markdown", {"type": "unknown", "text": "plain"}),
    ],
)
def test_each_kind_of_page(kind: str, body: bytes, wanted: str, part: dict[str, Any]) -> None:
    mime, _, charset = kind.partition("; charset=")
    page = page_of(Response(read_url("http://a.example/x"), mime, charset, body), wanted)
    assert page["url"] == "http://a.example/x"
    assert {name: page[name] for name in part} == part


@pytest.mark.parametrize(
    ("body", "wanted", "sentence"),
    [
        (b"%PDF\0", "markdown", "http://a.example/x is not text: it is application/x, 5 bytes."),
        (b"{", "json", "http://a.example/x is not valid JSON, line 1: it is application/x."),
        (b"[" * 100_000, "json", "http://a.example/x is not valid JSON: it is application/x."),
    ],
)
def test_what_is_not_what_was_asked_for(body: bytes, wanted: str, sentence: str) -> None:
    with pytest.raises(ToolError) as told:
        page_of(Response(read_url("http://a.example/x?key=1"), "application/x", "", body), wanted)
    assert str(told.value) == sentence


def test_without_the_converter_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Response(read_url("http://a.example/x"), "text/html", "", b"<p>x")
    monkeypatch.setitem(sys.modules, "html_to_markdown", None)
    with pytest.raises(ToolError) as told:
        page_of(page, "markdown")
    assert str(told.value) == (
        f"HTML cannot be converted. Install the converter: {install_command('html-to-markdown')}. "
        'Or fetch the page with :as "raw".'
    )
    assert page_of(page, "raw")["text"] == "<p>x"


def test_a_page_does_not_grow_beyond_bounds() -> None:
    def text_of(body: str, path: str) -> str:
        url = read_url(f"http://a.example/{path}/x")
        return str(page_of(Response(url, "text/html", "", body.encode()), "markdown")["text"])

    wide = "<table>" + "<tr><td colspan=999><td COLSPAN = '1000'>x" * 9
    assert len(text_of(wide, "")) < 200
    assert len(text_of("<a href=y>x</a>" * 9, "a" * 900)) < 200
    assert text_of(f"<td colspan={' ' * 300_000}", "") == ""  # in no time
    with pytest.raises(ToolError, match=f'{HAS_MORE_THAN} 5,000,000 characters. Fetch it with :as "raw"'):
        text_of("<a href=y>x</a>" * 30_000, "a" * 170)


def test_an_image_comes_as_a_value(server: Server) -> None:
    png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">2I", 640, 480) + b"\x08\x02\0\0\0"
    server.answers = [moved("/cat.png"), status(200, png, kind="image/png")]
    result = fetched(at(server), HERE)
    image = {"image": "", "name": "cat.png", "type": "image/png", "width": 640, "height": 480}
    assert result.value == {"url": at(server, "/cat.png"), "image": image}
    assert result.follow_up == "An image, 640x480."


# Where it leads on


def test_each_redirect_is_a_call_of_its_own(server: Server) -> None:
    server.answers = [moved("/b?x=1#part"), moved("c", 308), status(200, b"end", kind="text/plain")]
    gate = fetcher(HERE)
    result = gate.pass_through(f'(fetch :url "{at(server, "/a")}" :as "raw")')
    assert result.value == {"url": at(server, "/c"), "type": "text/plain", "text": "end"}
    assert [path for path, *_ in server.requests] == ["/a", "/b?x=1", "/c"]
    assert [row["form"] for row in gate.rows] == [
        f'(fetch :as "raw" :url "{at(server, path)}")' for path in ("/c", "/b?x=1", "/a")
    ]
    assert list(result.side_effects) == [f"requested:GET {at(server, path)}" for path in ("/a", "/b", "/c")]


def test_a_redirect_waits_for_a_person_where_rules_ask(server: Server) -> None:
    server.answers = [moved("/b")]
    rules = f'{HERE} (ask (fetch :url (path "/b")))'
    said = refusal(at(server, "/a"), rules)
    assert said.startswith("pending: fetch waits for a person's approval: policy.hy:1")
    assert said.endswith(f"; {at(server, '/a')} redirects to it.")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        (
            "/b",
            "denied: {a} redirects to {b}: fetch was denied: policy.hy:1 says"
            ' (deny (fetch :url (path "/b"))).',
        ),
        ("/a", "error: {a} redirects to {a}, which redirected here: a loop."),
        ("", "error: {a} answered 302 without the address of the page."),
        (
            "file:///etc/passwd",
            REFUSED + "Only http and https addresses are fetched, not file.",
        ),
        (
            "http://ann:secret@localhost/",
            REFUSED + "An address with a user name or password is not fetched; leave out the part"
            " before the @.",
        ),
        (
            "http://[",
            REFUSED + f"This address {CANNOT_BE_READ}: its server or port is invalid.",
        ),
    ],
)
def test_a_redirect_that_is_not_followed(server: Server, where: str, sentence: str) -> None:
    server.answers = [moved(where)]
    said = refusal(at(server, "/a"), f'{HERE} (deny (fetch :url (path "/b")))')
    assert said == sentence.replace("{a}", at(server, "/a")).replace("{b}", at(server, "/b"))
    assert len(server.requests) == 1


def test_it_does_not_lead_on_for_ever(server: Server) -> None:
    server.answers = [moved(f"/{number}") for number in range(1, 20)]
    assert refusal(at(server), HERE).endswith(
        f"{at(server)} redirects more than 5 times, which is the maximum."
    )
    assert len(server.requests) == 6


# What fails


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (status(404, b"not \x1b[31mhere", kind="text/plain"), "answered 404 Not Found: not [31mhere"),
        (status(500, b"<html>", kind="text/html"), "answered 500 Internal Server Error."),
        (cut_off, f"{CANNOT_BE_REACHED}: peer closed connection without sending complete message body"),
        (hang_up, f"{CANNOT_BE_REACHED}: Server disconnected without sending a response."),
        (
            status(200, b"x", content_encoding="br"),
            "answered with the compression br, which was not requested.",
        ),
        (status(200, b"x" * 20, content_encoding="gzip"), "answered with data that cannot be decompressed."),
        (
            status(200, gzip.compress(b"0" * 6_000_000), content_encoding="gzip"),
            f"{ANSWERED_WITH_MORE_THAN} 5,000,000 bytes.",
        ),
    ],
)
def test_an_answer_that_is_no_page(server: Server, answer: Answer, sentence: str) -> None:
    server.answers = [answer]
    assert refusal(at(server, "/x?key=1"), HERE).startswith(f"error: {at(server, '/x')} {sentence}")


def test_a_server_that_says_nothing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "SECONDS", 0.1)
    server.answers = [silence]
    assert refusal(at(server), HERE) == f"timeout: {at(server)} {DID_NOT_ANSWER_WITHIN} 0.1 s."


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("example.org/x", "example.org/x has no scheme; write https://example.org/x."),
        ("localhost:80/x", "localhost:80/x has no scheme; write https://localhost:80/x."),
        ("", "The address is empty; an example is https://example.org/page."),
        ("/etc/passwd", "/etc/passwd is a path, not an address; read-file reads files."),
        ("//example.org", "//example.org has no scheme; write https://example.org."),
        ("ftp://example.org", "Only http and https addresses are fetched, not ftp."),
        ("https:example.org", "This address names no server; an example is https://example.org/page."),
        ("https://", "This address names no server; an example is https://example.org/page."),
        ("https://example.org:0/", "A port must be a number from 1 to 65535."),
        ("https://example.org:99999/", f"This address {CANNOT_BE_READ}: its server or port is invalid."),
        (
            "https://exa mple.org",
            "An address contains no spaces, backslashes or control characters; write %20 for a space.",
        ),
        (
            "https://аpple.example",  # the first letter is Cyrillic
            "Write the server's name in ASCII: xn--pple-43d.example instead of аpple.example.",
        ),
        ("https://ex_-.org", "ex_-.org is not the name of a server."),
        ("https://a..example.org", "a..example.org is not the name of a server."),
        ("https://" + "a" * 5000, "This address has 5,008 characters; the limit is 4,000."),
        (
            "ann:secret@example.org",
            "An address begins with https:// or http:// and contains no user name or password.",
        ),
    ],
)
def test_what_is_no_address_is_said_in_a_sentence(url: str, sentence: str) -> None:
    assert refusal(url) == f"invalid: {sentence}"
    assert refusal(url, "") == f"invalid: {sentence}"  # and nobody is asked


def test_a_rule_that_cannot_judge_what_is_no_address_says_why() -> None:
    said = refusal("example.org", '(deny (fetch :url (path (under "/drafts"))))')
    assert said.endswith(
        "quoth cannot decide whether it matches: example.org has no scheme; write https://example.org."
    )


def test_a_name_that_nobody_knows(names: dict[str, list[str]]) -> None:
    said = "error: The host name no.example is unknown, or it cannot be looked up."
    assert refusal("https://no.example/") == said


@pytest.mark.parametrize(
    ("known", "name", "sentence"),
    [
        (True, "site.example", ""),
        (True, "other.example", "Hostname mismatch, certificate is not valid for 'site.example'"),
        (False, "site.example", "unable to get local issuer certificate"),
    ],
    ids=["own CA", "wrong host", "unknown CA"],
)
def test_a_certificate_is_of_the_name_that_was_asked_for(
    known: bool,
    name: str,
    sentence: str,
    names: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ca, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(name).configure_cert(context)
    (ca if known else trustme.CA()).cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    names["site.example"] = ["127.0.0.1"]
    with loopback(status(200, b"ok", kind="text/plain"), context) as server:
        url, rules = at(server, host="site.example"), '(allow (fetch :url (host "site.example" "127.0.0.1")))'
        if sentence:
            said = f"error: {url} has a certificate that cannot be trusted: {sentence}."
            assert refusal(url, rules) == said
            assert server.requests == []
        else:
            assert fetched(url, rules).value["text"] == "ok"
            assert server.requests[0][1]["host"] == f"site.example:{server.server_address[1]}"


def test_the_next_address_of_a_server_is_tried(server: Server, names: dict[str, list[str]]) -> None:
    names["site.example"] = ["127.0.0.2", "127.0.0.1"]  # the server hears at the second only
    rules = '(allow (fetch :url (host "site.example" "127.0.0.0/8")))'
    assert fetched(at(server, host="site.example"), rules).ok


def test_a_proxy_of_the_environment_is_not_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with pytest.raises(httpx.HTTPError):  # of whom it is asked otherwise
        httpx.get(at(server, host="127.0.0.3"))
    assert fetched(at(server), HERE).ok
