"""A server is named by an address of the web, and certificates are verified wherever there is a connection
that has any."""

from __future__ import annotations

import pytest

from quoth.tools.storage.addresses import verified, web_address


@pytest.mark.parametrize(
    "text",
    ["http://a.example", "https://ann:secret@a.example:8080/path?q=a,b#c", "http://[::1]:0/", "HTTP://A"],
)
def test_an_address_of_the_web_has_parts(text: str) -> None:
    parts = web_address(text)
    assert parts is not None
    assert parts.geturl().lower() == text.lower()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.example",
        "ftp://a.example",
        "http://",
        "http://:80",
        "http://a.example:x",
        "http://a.example:65536",
        "http://[::1",
        "http://a.example/a b",
        "http://a.example/\u202eb",
        "http://a.example/\n",
    ],
)
def test_what_no_server_can_be_named_by_is_none(text: str) -> None:
    assert web_address(text) is None


@pytest.mark.parametrize(
    ("scheme", "proxy", "wanted"),
    [
        ("https", "", True),
        ("http", "", False),
        ("http", "https_proxy", True),
        ("http", "all_proxy", True),
        ("http", "no_proxy", False),
        ("", "", True),
    ],
)
def test_only_plain_http_without_a_proxy_has_none(
    monkeypatch: pytest.MonkeyPatch, scheme: str, proxy: str, wanted: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    if proxy:
        monkeypatch.setenv(proxy, "https://proxy.example:1")
    assert verified(scheme) is wanted
