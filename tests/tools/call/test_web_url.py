"""How an address of the web is read: in one spelling, or refused where programs differ."""

from __future__ import annotations

from ipaddress import ip_address

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import CANNOT_BE_READ
from words import complaint

from quoth.tools.call.web_url import (
    PORTS,
    loosest_form,
    loosest_path,
    normal_form,
    not_public,
    plain_path,
    read_host,
    read_url,
)
from quoth.tools.errors import ToolError


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("100.63.255.255", True),
        ("172.32.0.1", True),
        ("2606:2800:220:1::1", True),
        ("64:ff9b::5db8:d822", True),
        ("::ffff:93.184.216.34", True),
        ("4000::1", False),
        ("100::1", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert (not not_public(ip_address(address))) is public


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("HTTP://Example.ORG.:80/a/../b", "http://example.org/b"),
        ("https://example.org:443", "https://example.org/"),
        (
            "https://example.org/%7ea/%2e%2e/./b%2fc?q=ü d".replace(" ", "+"),
            "https://example.org/b%2Fc?q=%C3%BC+d",
        ),
        ("https://xn--mnchen-3ya.example/ü", "https://xn--mnchen-3ya.example/%C3%BC"),
        ("https://example.org/100%", "https://example.org/100%25"),
        ("https://[2606:2800:220:0001::1]:8443/..", "https://[2606:2800:220:1::1]:8443/"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://example.org?x", "https://example.org/?x"),
    ],
)
def test_an_address_has_one_spelling(text: str, read: str) -> None:
    assert str(read_url(text)) == read
    assert str(read_url(read)) == read


BITS = "http https :// : / @ ? # % %2f %2E .. . [ ] ::1 a example.org 127.0.0.1 localhost 0x7f 1 80 ü 。 １ ;"
bits = st.sampled_from([*BITS.split(), " ", "\\", "\t", "\0", "\ud800"])


@given(st.sampled_from(["", "http://", "https://a.example"]), st.lists(bits, max_size=8))
def test_whatever_is_given_one_spelling_is_read_or_nothing(begin: str, parts: list[str]) -> None:
    """And a client reads the same host, port and path in it."""
    try:
        url = read_url(begin + "".join(parts))
    except ToolError:
        return
    assert read_url(str(url)) == url
    other = httpx.URL(str(url))
    assert (other.host, other.port or PORTS[url.scheme]) == (url.host, url.port)
    assert other.raw_path.decode() == url.path + url.query


SERVER = "This address names no server; an example is {}://example.org/page."
REFUSED = [
    ("", "The address is empty; an example is https://example.org/page."),
    ("http:example.org", SERVER.format("http")),
    ("HTTPS:/example.org", SERVER.format("https")),
    ("http://", SERVER.format("http")),
    ("http:///a", SERVER.format("http")),
    ("http://example.org:0/", "A port must be a number from 1 to 65535."),
    ("http://example.org:65536/", f"This address {CANNOT_BE_READ}: its server or port is invalid."),
    ("http://[::1/", f"This address {CANNOT_BE_READ}: its server or port is invalid."),
    (
        "http://a b/",
        "An address contains no spaces, backslashes or control characters; write %20 for a space.",
    ),
    (
        "http://a\\b/",
        "An address contains no spaces, backslashes or control characters; write %20 for a space.",
    ),
    (
        "http://a\tb/",
        "An address contains no spaces, backslashes or control characters; write %20 for a space.",
    ),
    (
        "http://ann@example.org/",
        "An address with a user name or password is not fetched; leave out the part before the @.",
    ),
    ("ann@example.org", "An address begins with https:// or http:// and contains no user name or password."),
    ("ftp://example.org", "Only http and https addresses are fetched, not ftp."),
    ("example.org", "example.org has no scheme; write https://example.org."),
    ("example.org:80/", "example.org:80/ has no scheme; write https://example.org:80/."),
    ("host:80/", "host:80/ has no scheme; write https://host:80/."),
    ("//example.org", "//example.org has no scheme; write https://example.org."),
    ("/etc/passwd", "/etc/passwd is a path, not an address; read-file reads files."),
    ("./a", "./a is a path, not an address; read-file reads files."),
    ("~/a", "~/a is a path, not an address; read-file reads files."),
    ("https://münchen.example/", "Write the server's name in ASCII: xn--mnchen-3ya.example instead of "),
    ("http://1.2.3/", "1.2.3 is not an IP address: write four numbers from 0 to 255, such as 192.0.2.1."),
    ("http://a.0x1/", "a.0x1 is not an IP address: write four numbers from 0 to 255, such as 192.0.2.1."),
    ("http://[fe80::1%25eth0]/", "is not an IPv6 address."),
    ("http://-a.example/", "-a.example is not the name of a server."),
    ("http://a..example/", "a..example is not the name of a server."),
    ("http://./", ". is not the name of a server."),
    ("http://a//../b", "Servers disagree on an address with // before ..; leave out one slash."),
]


@pytest.mark.parametrize(("text", "sentence"), REFUSED)
def test_what_is_no_address_is_told(text: str, sentence: str) -> None:
    assert sentence in complaint(ToolError, lambda: read_url(text))
    assert (normal_form(text), loosest_form(text)) == ("", "")


@pytest.mark.parametrize(
    ("begin", "most"), [("http://example.org/", 4000), ("http://", 260), ("http://a.", 72)]
)
def test_an_address_has_at_most_so_many_characters(begin: str, most: int) -> None:
    labels = {260: ".".join(["a" * 63] * 3) + "." + "b" * 61, 72: "a" * 63}
    text = begin + labels.get(most, "a" * (most - len(begin)))
    assert len(text) == most
    assert str(read_url(text)).startswith(begin)
    complaint(ToolError, lambda: read_url(f"{text}a"))


@pytest.mark.parametrize(
    ("text", "netloc", "local"),
    [
        ("http://example.org:80/", "example.org", False),
        ("http://example.org:443/", "example.org:443", False),
        ("http://example.org:1/", "example.org:1", False),
        ("https://example.org:65535/", "example.org:65535", False),
        ("http://[::1]:81/", "[::1]:81", False),
        ("http://localhost/", "localhost", True),
        ("http://a.localhost./", "a.localhost", True),
        ("http://alocalhost/", "alocalhost", False),
        ("http://_a_.example/", "_a_.example", False),
    ],
)
def test_an_address_names_its_server(text: str, netloc: str, local: bool) -> None:
    url = read_url(text)
    assert (url.netloc, url.is_local_name, url.address is not None) == (netloc, local, "[" in netloc)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/a/./b/../c", "/a/c"),
        ("/a/..", "/"),
        ("/..", "/"),
        ("/a/.", "/a/"),
        ("/a/b/..", "/a/"),
        ("/a/../../b", "/b"),
        ("/%41%2a%zz", "/A%2A%25zz"),
        ("/a%2Fb", "/a%2Fb"),
        ("//a", "//a"),
        ("", "/"),
    ],
)
def test_the_dots_of_a_path_are_resolved(text: str, path: str) -> None:
    assert read_url(f"http://example.org{text}").path == path


@pytest.mark.parametrize(
    ("path", "plain", "loosest"),
    [
        ("/a%20b", "/a b", "/a b"),
        ("/a%2Fb", None, "/a/b"),
        ("/a%0Ab", None, "/a\nb"),
        ("/a%2541", None, "/aA"),
        ("/a//b", None, "/a/b"),
        ("/a;x=1/b", None, "/a/b"),
        ("/a.", None, "/a"),
        ("/a/%2E%2E/b", None, "/b"),
        ("/a/..;/b", None, "/b"),
        ("/..;/b", None, "/b"),
        ("/a\\b", None, "/a/b"),
        ("/a/", "/a/", "/a/"),
        ("/", "/", "/"),
        ("/ａ", None, "/a"),
        ("/a%00b", None, "/a"),
    ],
)
def test_a_path_that_servers_read_in_different_ways_is_not_plain(
    path: str, plain: str | None, loosest: str
) -> None:
    assert (plain_path(path), loosest_path(path)) == (plain, loosest)


def test_escapes_in_escapes_are_decoded_so_often() -> None:
    assert loosest_path(f"/%{'25' * 4}41") == "/A"
    assert loosest_path(f"/%{'25' * 5}41") == "/%41"


def test_two_spellings_of_an_address_are_compared_by_one() -> None:
    assert normal_form("HTTP://Example.ORG/a/../B") == "http://example.org/B"
    assert loosest_form("HTTP://Example.ORG/a%2FB/") == "http://example.org/a/b/"
    assert loosest_form("http://example.org/A?B=1") == "http://example.org/a?b=1"
    assert [form("ftp://example.org/") for form in (normal_form, loosest_form)] == ["", ""]


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("Example.ORG.", "example.org"),
        ("[0::1]", "::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    assert read_host(text) == host


@pytest.mark.parametrize("text", ["[::x]", "[::1", "[fe80::1%eth0]", "[]"])
def test_brackets_are_around_an_address_of_ipv6(text: str) -> None:
    assert complaint(ToolError, lambda: read_host(text)) == f"{text} is not an IPv6 address."
