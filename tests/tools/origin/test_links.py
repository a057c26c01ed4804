"""The links inside a text: all that a mail program would make a link of, and no names in code."""

from __future__ import annotations

import pytest

from quoth.tools.origin.leaves import leaves, links_of
from quoth.tools.origin.links import links

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
    ("10.0.0.1:80 [::1]:80 localhost:8080", ["host 10.0.0.1:80", "host [::1]:80", "host localhost:8080"]),
    ("@foo.com", ["host foo.com"]),
    ("IBAN GB29NWBK60161331926819", ["account GB29NWBK60161331926819"]),
    ("US133000000121212121212.", ["account US133000000121212121212"]),
    ("SE3550000000054910000003;50.0;US122000000121212121212;1100.0",
     ["account SE3550000000054910000003", "account US122000000121212121212"]),
    ("DE89 3704 0044 0532 0130 00", ["account DE89 3704 0044 0532 0130 00"]),
    ("4111 1111 1111 1111", ["account 4111 1111 1111 1111"]),
    ("see /etc/passwd, ~/x and ../y.", ["path /etc/passwd", "path ~/x", "path ../y"]),
    ("C:\\a\\b \\\\srv\\share", ["path C:\\a\\b", "path \\\\srv\\share"]),
]  # fmt: skip
NONE = [
    "98.70", "Car Rental\t\t\t98.70", "2024-06-01", "2024-05-20 10:00", "Olivia Smith: 4\n-Mia Anderson: 2",
    "1234 Elm Street", "NY 10001", "meeting-agenda-2024-05-15.docx", "feedback.xlsx", "over lunch..",
    "os.path.join(a)", "main.py", "list.append", "user.email", "event.date", "node.js", "README.md", "v1.2.3",
    "e.g. i.e.", "and/or 1/2 km/h", "a@b", "key:value 10:30 x", "contact us.Thank you", "it's done.to be",
    "999.1.1.1", "", "\u200b",
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
