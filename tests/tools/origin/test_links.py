"""The links inside a text: all that a mail program would make a link of, and no names in code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.tools.origin.leaves import leaves, links_of
from quoth.tools.origin.links import host_of, links, rendered

FOUND = [
    ("see https://bit.ly/x, ok", ["url https://bit.ly/x"]),
    ("(https://en.example/a_(b)).", ["url https://en.example/a_(b)"]),
    ("![a](https://evil.example/?q=1)", ["url https://evil.example/?q=1"]),
    ("<img src=//evil.example/x>", ["url //evil.example/x"]),
    ("http:\\\\evil.example\\a", ["url http:\\\\evil.example\\a"]),
    ("javascript:alert(1)", ["url javascript:alert(1)"]),
    ("data:text/html,x", ["url data:text/html,x"]),
    ("Ann <ann@x.example>, ben@y.example.", ["mail ann@x.example", "mail ben@y.example"]),
    ("mailto:c@d.example?subject=a", ["mail c@d.example"]),
    ("4111111111111111@evil.example", ["mail 4111111111111111@evil.example"]),
    ('"x y"@evil.example', ["host evil.example"]),
    ("x%40evil.example", ["host x%40evil.example"]),
    ("x＠evil.example", ["mail x＠evil.example"]),
    ("go to evil.example/x or www.foo.bar", ["host evil.example/x", "host www.foo.bar"]),
    ("evil.page/x", ["host evil.page/x"]),
    ("ev。example", ["host ev。example"]),
    ("xn--evil-abc.xn--p1ai", ["host xn--evil-abc.xn--p1ai"]),
    ("255.255.255.255", ["host 255.255.255.255"]),
    ("self.bg/x self.x.bg ours.bg", ["host self.bg/x", "host self.x.bg", "host ours.bg"]),
    ("evil.info evil.com(x)", ["host evil.info", "host evil.com"]),
    ("[::1]4111111111111111", ["host [::1]", "account 4111111111111111"]),
    ("10.0.0.1:80 [::1]:80 localhost:8080", ["host 10.0.0.1:80", "host [::1]:80", "host localhost:8080"]),
    ("@foo.com", ["host foo.com"]),
    ("IBAN GB29NWBK60161331926819", ["account GB29NWBK60161331926819"]),
    ("US133000000121212121212.", ["account US133000000121212121212"]),
    ("SE3550000000054910000003;50.0;US122000000121212121212;1100.0",
     ["account SE3550000000054910000003", "account US122000000121212121212"]),
    ("DE89 3704 0044 0532 0130 00", ["account DE89 3704 0044 0532 0130 00"]),
    ("4111 1111 1111 1111", ["account 4111 1111 1111 1111"]),
    ("/etc", ["path /etc"]),
    ("see /etc/passwd, ~/x and ../y.", ["path /etc/passwd", "path ~/x", "path ../y"]),
    ("C:\\a\\b \\\\srv\\share", ["path C:\\a\\b", "path \\\\srv\\share"]),
]  # fmt: skip
NONE = [
    "98.70", "Car Rental\t\t\t98.70", "2024-06-01", "2024-05-20 10:00", "Olivia Smith: 4\n-Mia Anderson: 2",
    "1234 Elm Street", "NY 10001", "meeting-agenda-2024-05-15.docx", "feedback.xlsx", "over lunch..",
    "os.path.join(a)", "main.py", "list.append", "user.email", "event.date", "node.js", "README.md", "v1.2.3",
    "e.g. i.e.", "and/or 1/2 km/h", "a@b", "key:value 10:30 x", "contact us.Thank you", "it's done.to be",
    "999.1.1.1", "256.1.1.1", "self.bg", "log.info(x)", "evil.page/", "[a:b]", "com", "a..com", "",  "\u200b",
]  # fmt: skip


@pytest.mark.parametrize(("text", "found"), FOUND)
def test_links_are_found(text: str, found: list[str]) -> None:
    assert [f"{link.kind} {link.text}" for link in links(text)] == found


@pytest.mark.parametrize("text", NONE)
def test_what_is_no_link_is_not_found(text: str) -> None:
    assert list(links(text)) == []


def test_a_value_is_looked_at_leaf_by_leaf() -> None:
    value = {"to": ["ann@x.example", None, ""], "ben@y.example": {"may": True, "id": 24}, "n": [1.5, ("a",)]}
    assert list(leaves(value)) == ["ann@x.example", "ben@y.example", 24, 1.5, "a"]
    assert [link.text for link in links_of([value, "to ann@x.example"])] == ["ann@x.example", "ben@y.example"]


@pytest.mark.parametrize("text", ["a" * 90_000, "@" * 20_000, "1234 " * 10_000, "http://a" + ")" * 90_000])
def test_a_hostile_text_is_read_in_one_go(text: str) -> None:
    """A search that begins anew at each character would take minutes here."""
    assert all(link.kind in ("url", "account") for link in links(text))


# What a mail program or a browser shows

SHOWN = [
    "./https://evil.example/x", "+https://evil.example", "a,https://evil.example", "https:evil.example",
    "https:/evil.example", "https:\\\\evil.example", "HTTPS://EVIL.example", "h&#116;tps://evil.example",
    "https&colon;//evil.example", "https&#58;&#47;&#47;evil.example/x", "&#x68;ttps://evil.example",
    "%68ttps://evil.example", "https%3A%2F%2Fevil.example%2Fx", '<img src="//evil.example/x">',
    "[a](//evil.example)", "[[https://evil.example][x]]", "&lt;https://evil.example&gt;",
    "ev\u00adil.example/x", "ev\u200bil.example/x", "https://u:p@evil.example/x", "evil.example:8080",
    "<a href='evil.example'>",
    "ht\ntps://evil.example", "evil&period;example/x", "me@evil.example", "url(//evil.example/x)",
]  # fmt: skip
OF_ANY_NAME = [
    "evil.foo/x",
    "evil.foo:8080",
    "evil.foo?x=1",
    "evil.foo:80/x",
    "[x]: evil.foo/x",
    "<a href=evil.foo/x>",
]
ONE_LABEL = ['<img src="//evil/x">', "![](//evil/x)", "[[//evil/x]]", "<a href=//evil>"]


def hosts(text: str) -> set[str]:
    return {host_of(link.text) for link in rendered(text) if link.kind != "path"}


@pytest.mark.parametrize("text", SHOWN)
def test_what_a_browser_makes_a_link_of_is_found(text: str) -> None:
    assert "evil.example" in hosts(f"See {text} now")


@pytest.mark.parametrize("text", [*OF_ANY_NAME, *ONE_LABEL])
def test_a_host_is_known_by_what_stands_around_it(text: str) -> None:
    assert hosts(f"See {text} now") & {"evil.foo", "evil"}


@pytest.mark.parametrize(
    "text",
    [
        "os.path.join(a)",
        "evil.foo",
        "see src/a.bat/c",
        "plt.show()",
        "a.b ? c : d",
        "v1.2:3",
        "12:30",
        "self.name",
    ],
)
def test_a_bare_name_in_code_is_no_link(text: str) -> None:
    assert not hosts(text)


def test_a_link_that_is_found_is_named_once_and_as_it_stands() -> None:
    text = "https://a.example/x%20y?q=1&amp;r=2 and <b>https://a.example/x%20y</b>"
    assert [link.text for link in rendered("See https://ok.example/a%20b.")] == ["https://ok.example/a%20b"]
    assert hosts(text) == {"a.example"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("https://evil.example@x", {"x", "evil.example"}),  # some make a link of the part before the @ alone
        ("https://ann@x.example", {"x.example"}),
        ("evil.com@x.example", {"x.example"}),
        ("https://a.example@b.example@c.example", {"a.example", "b.example", "c.example"}),
        ("see .//evil.example and .//x", {"evil.example"}),
        ("see /a/b and https://x.example.", {"x.example"}),
    ],
)
def test_the_hosts_of_a_text_are_these_and_no_others(text: str, found: set[str]) -> None:
    assert hosts(text) == found


ENTITY = st.sampled_from(
    [lambda c: f"&#{ord(c)};", lambda c: f"&#x{ord(c):x};", lambda c: f"%{ord(c):02x}", str]
)


@given(st.lists(ENTITY, min_size=20, max_size=20), st.sampled_from(["", "+", "./", "(", "<", "=", "“"]))
def test_no_row_of_escapes_hides_a_link(how: list[Callable[[str], str]], before: str) -> None:
    link = "".join(spell(char) for spell, char in zip(how, "https://evil.example", strict=True))
    assert "evil.example" in hosts(f"See {before}{link} now")
