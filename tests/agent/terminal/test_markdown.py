"""Markdown of a model on a terminal: laid out, and nothing in it draws, hides or lies."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from quoth.agent.terminal.speech import laid_out


def plain(text: str, columns: int = 60) -> str:
    return laid_out(text, columns, color=False)


LAID_OUT = [
    ("# Title\nWords.", "  Title\n\n  Words."),
    ("Some **bold** and *soft* words.", "  Some bold and soft words."),
    ("one line\nanother", "  one line\n  another"),
    ("- a\n- b", "   • a\n   • b"),
    ("3. c", "   3 c"),
    ("| a | b |\n|---|---|\n| 1 | 2 |", "   a  b\n   ──────\n   1  2"),
    ("```python\ndef f(x):\n    return x\n```", "  def f(x):\n      return x"),
    ("```hy\n(defn f [x] x)\n```", "  (defn f [x] x)"),
    ("```no-such-language\n*x*\n```", "  *x*"),
]


@pytest.mark.parametrize(("text", "screen"), LAID_OUT)
def test_markdown_is_laid_out(text: str, screen: str) -> None:
    assert re.sub(r"─+", "──────", plain(text)) == screen


AS_WRITTEN = [
    "<b>html</b> <!-- a comment --> <div onclick='x'>",
    "<script>\nalert(1)\n</script>",
    "&#x202e;txt.exe &lt;",
    r"C:\*stars \[x\]",
    "__init__.py and _private_",
    "[x]: http://example.org",
    "2 < 3 > 1",
    ">" * 30 + " rm -rf ~",
    "```python and words\nx = 1\n```",
    "[x](http://\u043f\u0440.example)",
]
DEEP = ["\n".join(f"{'  ' * depth}- x" for depth in range(60)), f"{'|a' * 99}|\n{'|-' * 99}|\n{'|b' * 99}|"]


@pytest.mark.parametrize("text", AS_WRITTEN)
def test_nothing_that_is_written_is_dropped_or_decoded(text: str) -> None:
    assert "".join(plain(text).split()) == "".join(text.split())


@pytest.mark.parametrize("text", DEEP)
def test_nothing_is_dropped_where_the_layout_has_no_room_for_it(text: str) -> None:
    assert Counter(filter(str.isalnum, plain(text))) == Counter(filter(str.isalnum, text))


@pytest.mark.parametrize("program", ["a" * 90_000, "x = 1\n" * 9_000])
def test_a_program_that_a_lexer_could_be_long_about_has_no_colours(program: str) -> None:
    assert "\x1b[3" not in laid_out(f"```python\n{program}\n```", 80)


def test_a_link_says_where_it_leads_and_is_none() -> None:
    for color in (True, False):
        screen = laid_out("[https://bank.example](https://evil.example) ![cat](http://x.example)", 90, color)
        assert "https://evil.example" in screen
        assert "http://x.example" in screen
        assert "\x1b]8" not in screen


HOSTILE = [
    "\x1b[2J\x1b[H",
    "\x1b]8;;http://evil\x07x",
    "\x9b2J",
    "\x07\x08",
    "\r? Allow it",
    "a\u202eb",
    "\x00",
]


@pytest.mark.parametrize(
    "around", ["{}", "`{}`", "```\n{}\n```", "# {}", "- {}", "[{}](x)", "| {} |\n|---|\n| b |"]
)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_control_character_reaches_the_terminal(text: str, around: str) -> None:
    screen = laid_out(around.format(text), 60)
    drawn = re.sub(r"\x1b\[[0-9;]*m", "", screen)  # our own colours
    assert [char for char in drawn if not char.isprintable() and char != "\n"] == []


def test_no_row_begins_where_a_sign_of_ours_stands() -> None:
    text = "→ (read-file)\n\n? Allow it? [y/N]\n\n    ← ok\n\n" + "word " * 60 + "\n\n```\n→ x\n```"
    assert [row for row in plain(text).split("\n") if row and not row.startswith("  ")] == []


@pytest.mark.parametrize(("columns", "widest"), [(30, 29), (80, 79), (200, 100), (5, 22)])
def test_rows_fit_the_screen_and_are_no_longer_than_one_reads(columns: int, widest: int) -> None:
    from rich.cells import cell_len

    rows = plain("日本語テキスト word " * 40, columns).split("\n")
    assert max(map(cell_len, rows)) <= widest


def test_without_colours_there_is_no_escape() -> None:
    assert "\x1b" not in plain("# T\n\n**b** `c`\n\n```python\nx = 1\n```")
