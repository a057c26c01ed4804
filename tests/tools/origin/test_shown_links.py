"""What programs make a link of is found: Markdown and bare links by markdown-it and linkify-it, attributes as
browsers read them. What is written in ordinary Python is none."""

from __future__ import annotations

import ast
import os
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from quoth.tools.origin.links import host_of, rendered

MARKDOWN = MarkdownIt("gfm-like")
BLANKS = "".join(map(chr, range(33)))
ADDRESSES = frozenset(
    ("href", "src", "action", "formaction", "poster", "background", "cite", "data", "xlink:href", "ping")
)


def browser_host(url: str) -> str:
    """The host that a browser asks for an address in a page of another server; empty for none."""
    url = re.sub(r"[\t\r\n]", "", url.strip(BLANKS)).replace("%5C", "/").replace("\\", "/")
    if found := re.match(r"(?i)(?:https?|wss?|ftp):/*|//+|mailto:", url):
        host = re.split(r"[/?#]", url[found.end() :])[0].rpartition("@")[2]
        host = unicodedata.normalize("NFKC", unquote(host)).lower()
        host = re.sub("[\u00ad\u200b\x00-\x20]", "", host).replace("。", ".")
        host = re.sub(r":\d*$", "", host).rstrip(".~*")  # linkify-it takes marks of Markdown with it
        return host.encode().decode("idna") if host.startswith("xn--") else host
    return ""


class Page(HTMLParser):
    """Collects the addresses in the attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.urls: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if not value:
                continue
            if name in ("srcset", "imagesrcset"):
                self.urls += [part.split()[0] for part in value.split(",") if part.split()]
            elif name == "style":
                self.urls += re.findall(r"url\(\s*['\"]?([^'\")]*)", value)
            elif name == "content":
                self.urls += re.findall(r"(?i)url=\s*['\"]?([^'\"]*)", value)
            elif name in ADDRESSES:
                self.urls.append(value)


def shown(text: str) -> set[str]:
    """The hosts, of more than one label, that a browser or a mail program shows a link to."""
    pages = Page(text), Page(MARKDOWN.render(text))
    found = {browser_host(url) for page in pages for url in page.urls}
    return {host for host in found if "." in host}


def hosts(text: str) -> set[str]:
    return {host_of(link.text) for link in rendered(text) if link.kind != "path"}


def is_seen(host: str, text: str) -> bool:
    """Whether a link is found with the host in it, or with all of the host but what stands before it."""
    return any(host in found or host.endswith(found) for found in hosts(text))


HOSTS = [
    "evil.example",
    "evil.foo",
    "evil.com",
    "ev.co.uk",
    "münchen.example",
    "10.0.0.1",
    "evil.page",
    "a-b.de",
]
SCHEMES = [
    *("https://", "http://", "HTTPS://", "https:/", "https:", "//", "\\\\", "/\\", "ftp://", "wss://"),
    *("https:\\\\", "https:///", "ht\ntps://", "https&colon;//", "&#104;ttps://", "&sol;&sol;", "www."),
    *(
        " https://",
        "\x01https://",
        "https://a:b@",
        "https://ok.example@",
        "https:\t//",
        "mailto:a@",
        "a@",
        "",
    ),
]
TAILS = ["", "/", "/x", "/x?q=SECRET", "?q=1", "#a", ":8080/x", ".", "/x).", "/a%20b", "!"]
AROUND = [
    *(
        '<img src="{}">',
        "<img src={}>",
        "<img src='{}'>",
        '<a href="{}">x</a>',
        "<a ping='{}'>",
        "<base href={}>",
    ),
    *(
        "[x]({})",
        "![x]({})",
        "[x](<{}>)",
        "<{}>",
        "[x]: {}\n\n[x]",
        '[x]({} "t")',
        "[x](\n{})",
        "| {} |\n|---|",
    ),
    *(
        "{}",
        "see {}.",
        "({})",
        "“{}”",
        "**{}**",
        "_{}_",
        "`{}`",
        "a={}",
        "a,{}",
        "|{}|",
        "./{}",
        "+{}",
        "~~{}~~",
    ),
    *('<img srcset="a.png 1x, {} 2x">', '<div style="background:url({})">', '<form action="{}">', "- {}"),
    *('<meta http-equiv=refresh content="0;url={}">', '<object data="{}">', '<img/src="{}">', "# {}", "> {}"),
    *('<svg><image xlink:href="{}"/></svg>', '<IMG SRC = "{}" >', "<button formaction='{}'>", "\\{}"),
]


@pytest.mark.parametrize("around", AROUND)
def test_what_is_shown_as_a_link_is_found(around: str) -> None:
    for scheme in SCHEMES:
        for host, tail in zip(HOSTS, TAILS, strict=False):
            text = around.format(f"{scheme}{host}{tail}")
            assert all(is_seen(one, text) for one in shown(text)), text


def test_the_table_has_links_for_each_scheme_and_place() -> None:
    linked = {
        (scheme, around)
        for scheme in SCHEMES
        for around in AROUND
        if shown(around.format(f"{scheme}evil.com/x"))
    }
    assert len(linked) > len(SCHEMES) * len(AROUND) // 2
    assert {scheme for scheme, _ in linked} == set(SCHEMES)


@example("see ", "https:", "evil.com", "/x", " now")
@given(
    st.text(st.sampled_from("a.:/\\<>()[]\"'`*_=&@|~ \n“é"), max_size=6),
    st.sampled_from(SCHEMES),
    st.sampled_from(HOSTS),
    st.sampled_from(TAILS),
    st.text(st.sampled_from("a.:/\\<>()[]\"'`*_=&@|~ \n”é"), max_size=6),
)
def test_what_is_shown_as_a_link_is_found_whatever_stands_around_it(
    before: str, scheme: str, host: str, tail: str, after: str
) -> None:
    text = f"{before}{scheme}{host}{tail}{after}"
    if host in shown(text):
        assert is_seen(host, text)


def dotted(source: str) -> set[str]:
    """The names with a dot in a program, with what stands behind them."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        name = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
        if re.fullmatch(r"[\w.]+", name):
            found |= {f"x = {name}", f"{name}(y)", f"{name}[0] // 2"}
    return found


def test_names_in_python_are_no_links() -> None:
    """Of those of Python's own library at most one in 200 is the name of a host, such as operator.lt."""
    folder = Path(os.__file__).parent
    names = set()
    for file in (
        "argparse",
        "ast",
        "calendar",
        "decimal",
        "_pydecimal",
        "difflib",
        "inspect",
        "shutil",
        "turtle",
    ):
        names |= dotted((folder / f"{file}.py").read_text(encoding="utf-8"))
    found = {name for name in names if hosts(name)}
    assert len(names) > 3_000
    assert len(found) <= len(names) // 200, sorted(found)
