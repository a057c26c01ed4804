"""A page never leads a request to this machine or its network, however the address is spelt and whatever a
name leads to, unless a rule names that address."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator

import httpx
import pytest
from fetching import fetched, fetcher, refusal
from loopback import Server, status

from quoth.tools.call.web_url import read_url
from quoth.tools.lisp.forms import CallForm
from quoth.tools.web import request
from quoth.tools.web.request import ask

LEADS_HERE = [  # hosts that a connection takes for this machine, however they are spelt
    "localhost",
    "LOCALHOST",
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "0.0.0.0",
    "0",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
]
NOT_PUBLIC = [
    "a.localhost",
    "localhost.",
    "127.0.0.2",
    "[::1]",
    "[0000::0001]",
    "[::]",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "[fe80::1]",
    "[fe80::1%25eth0]",
    "[fd00:ec2::254]",
    "[fec0::1]",
    "[ff02::1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[2001:db8::1]",
    "[::ffff:169.254.169.254]",
    "１２７.0.0.1",
    "127。0。0。1",
    "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
    "%6c%6f%63alhost",
    "127.0.0.1%00.example.org",
    "0x7f.0.0.0x1",
    "1.2.3",
    "127.0.0.1.",
]
OTHER_WAYS = [  # what leads there by another part of the address than its host
    "http://example.org@127.0.0.1:{port}/",
    "http://example.org:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}@example.org/",
    "http://example.org#@127.0.0.1:{port}/",
    "http://example.org\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@example.org/",
    "http:/\\127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "///127.0.0.1:{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1\n:{port}/",
    " http://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:{port}/_GET",
    "dict://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "data:text/html,x",
    "javascript:alert(1)",
    "view-source:http://127.0.0.1:{port}/",
    "jar:http://127.0.0.1:{port}/!/",
    "ws://127.0.0.1:{port}/",
]
ADDRESSES = [f"http://{host}:{{port}}/" for host in (*LEADS_HERE, *NOT_PUBLIC)] + OTHER_WAYS


def test_a_wildcard_rule_leads_nowhere_near(server: Server, names: dict[str, list[str]]) -> None:
    names["example.org"] = ["127.0.0.1"]
    gate = fetcher("(allow (fetch :url _)) (allow (effects :net))")
    for address in ADDRESSES:
        url = address.replace("{port}", str(server.server_address[1]))
        result = gate.pass_through(CallForm("fetch", {"url": url}))
        assert result.status in ("denied", "invalid"), address
    assert server.requests == []


def test_nor_does_a_page(server: Server, names: dict[str, list[str]]) -> None:
    names["example.org"] = ["127.0.0.1"]
    port, asked = str(server.server_address[1]), []
    gate = fetcher(
        '(allow (fetch :url _)) (allow (fetch :url (and (host "localhost") (path (under "/from")))))'
    )
    for number, address in enumerate(ADDRESSES):
        url = address.replace("{port}", port).replace("\n", " ").encode().decode("latin-1").strip()
        server.answers = [status(302, b"", location=url), status(200, b"got there")]
        result = gate.pass_through(CallForm("fetch", {"url": f"http://localhost:{port}/from/{number}"}))
        assert result.status in ("denied", "error"), address
        asked.append(f"/from/{number}")
    assert [path for path, *_ in server.requests] == asked


def test_each_of_these_hosts_would_lead_there() -> None:
    """The table can fail: the system takes each for this machine."""
    for host in LEADS_HERE:
        found = {str(at[0]) for *_, at in socket.getaddrinfo(host.strip("[]"), 80)}
        assert found <= {"127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"}, host


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["0.0.0.0"],
        ["169.254.169.254"],
        ["10.1.2.3"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::a00:1"],
        ["93.184.216.34", "127.0.0.1"],
        ["2606:2800:220:1::1", "fd00::1"],
        ["no address"],
    ],
)
def test_a_name_that_leads_there_is_refused(
    server: Server, names: dict[str, list[str]], addresses: list[str], scheme: str
) -> None:
    names["site.example"] = addresses
    url = f"{scheme}://site.example:{server.server_address[1]}/"
    said = refusal(url, '(allow (fetch :url (host "site.example" "*.example")))')
    assert said.startswith(f"denied: site.example resolves to {addresses[-1]}, ")
    assert server.requests == []


class Pieces(httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"ok"


async def test_a_name_is_looked_up_once_and_the_checked_address_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rebinding: the name leads elsewhere as soon as it has been looked up."""
    answers = [["93.184.216.34"], ["127.0.0.1"]]

    async def look_up(host: str, port: int) -> list[str]:
        return answers.pop(0)

    asked: list[httpx.Request] = []

    async def answer(transport: object, asked_for: httpx.Request) -> httpx.Response:
        asked.append(asked_for)
        return httpx.Response(200, stream=Pieces())

    monkeypatch.setattr(request, "look_up", look_up)
    monkeypatch.setattr(httpx.AsyncHTTPTransport, "handle_async_request", answer)
    response = await ask(read_url("https://site.example:8443/x?y=1"), "*/*", lambda address: False)
    assert response.body == b"ok"
    assert answers == [["127.0.0.1"]]
    (sent,) = asked
    assert str(sent.url) == "https://93.184.216.34:8443/x?y=1"
    assert sent.headers["host"] == "site.example:8443"
    assert sent.extensions["sni_hostname"] == "site.example"


# What a rule names


@pytest.mark.parametrize(
    ("host", "rule", "reached"),
    [
        ("localhost", '(host "localhost")', True),
        ("localhost", '(host "localhost:{port}")', True),
        ("localhost", '(and (scheme "http") (host "localhost"))', True),
        ("localhost", '(host "127.0.0.0/8" "::1" "localhost")', True),
        ("localhost", '(and (host "localhost") (scheme "https"))', False),
        ("localhost", '(host "localhost:1")', False),
        ("localhost", '(host "*.localhost")', False),
        ("localhost", '(matches "localhost")', False),
        ("localhost", "_", False),
        ("127.0.0.1", '(host "127.0.0.1")', True),
        ("127.0.0.1", '(host "127.0.0.0/8")', True),
        ("127.0.0.1", '(host "localhost")', False),
        ("127.0.0.1", '(host "10.0.0.0/8")', False),
        ("127.0.0.1", '(not (host "10.0.0.0/8"))', False),
        ("127.0.0.1", '(not (host "127.0.0.1"))', False),
        ("site.example", '(host "site.example" "127.0.0.1")', True),
        ("site.example", '(host "*.example" "127.0.0.0/8")', True),
        ("site.example", '(and (host "site.example" "127.0.0.1") (path "/"))', True),
        ("site.example", '(and (host "site.example" "127.0.0.1") (path "/other"))', False),
        ("site.example", '(host "site.example")', False),
        ("site.example", '(host "site.example" "localhost")', False),
    ],
)
def test_only_a_rule_that_names_the_address_leads_there(
    server: Server, names: dict[str, list[str]], host: str, rule: str, reached: bool
) -> None:
    names["site.example"] = ["127.0.0.1"]
    port = str(server.server_address[1])
    rules = f"(allow (fetch)) (allow (fetch :url {rule.replace('{port}', port)}))"
    assert fetched(f"http://{host}:{port}/", rules).ok is reached
    assert len(server.requests) == reached


def test_a_denied_network_is_denied_by_every_name(server: Server, names: dict[str, list[str]]) -> None:
    names["site.example"] = ["127.0.0.1"]
    rules = '(allow (fetch :url (host "site.example" "127.0.0.1"))) (deny (fetch :url (host "127.0.0.0/8")))'
    assert refusal(f"http://site.example:{server.server_address[1]}/", rules).startswith(
        "denied: site.example resolves"
    )
    assert server.requests == []


def test_a_password_in_an_address_is_never_said() -> None:
    for url in (
        "https://ann:s3cr3tw0rd@example.org/",
        "ann:s3cr3tw0rd@example.org",
        "ftp://ann:s3cr3tw0rd@[/",
    ):
        assert "s3cr3tw0rd" not in refusal(url)
