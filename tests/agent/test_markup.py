"""HTML whose texts are escaped by construction."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.agent.markup import Html, el, html
from quoth.tools.visible import visible


class Read(HTMLParser):
    """A page as a parser has it: its elements, and its words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.words = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.words += data


HOSTILE = st.one_of(
    st.text(),
    st.sampled_from(
        [
            "<script>alert(1)</script>",
            "</p><svg onload=alert(1)>",
            "<!--",
            "]]>",
            '" onclick="x',
            "'><img src=x>",
            "&lt;b&gt;",
            "\u202egnp.exe",
            "\x00\x1b[2J",
            "[x](javascript:alert(1))",
        ]
    ),
)


@given(HOSTILE)
def test_a_text_is_words_and_nothing_else(text: str) -> None:
    read = Read(el("p", text, title=text))
    assert [(tag, [name for name, _ in found]) for tag, found in read.tags] == [("p", ["title"])]
    assert read.words == visible(text, lines=True)
    assert read.tags[0][1][0][1] == visible(text, lines=True)


@given(HOSTILE)
def test_a_value_is_sent_back_as_it_is(text: str) -> None:
    ((_, found),) = Read(el("input", value=text)).tags
    assert found == [("value", text)]


def test_html_stays_and_is_a_text_again_once_it_is_joined() -> None:
    bold = el("b", "a & b")
    assert el("p", bold) == "<p><b>a &amp; b</b></p>"
    assert el("p", bold + "") == "<p>&lt;b&gt;a &amp;amp; b&lt;/b&gt;</p>"
    assert html(None, [1, (2.5, "<")], Html("<br>")) == "12.5&lt;<br>"


def test_attributes_that_are_off_are_left_out() -> None:
    assert el("input", disabled=False, required=True, name=None, class_="a") == '<input required class="a">'


def test_a_line_feed_at_the_beginning_stays() -> None:
    assert el("pre", "\na") == "<pre>\n\na</pre>"


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("p", {"onclick": "x"}),
        ("p", {"style": "color: red"}),
        ("a", {"href": "javascript:alert(1)"}),
        ("a", {"href": "https://evil.example"}),
        ("a", {"href": "//evil.example"}),
        ("a", {"href": "/\\evil.example"}),
        ("a", {"href": "/\t/evil.example"}),
        ("form", {"action": "https://evil.example"}),
        ("img", {"src": "data:image/svg+xml,x"}),
        ("iframe", {}),
        ("style", {}),
    ],
)
def test_what_could_run_or_load_is_refused(name: str, attributes: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        el(name, **attributes)
    with pytest.raises(ValueError):
        el("script", "alert(1)")
