"""Small words about texts, numbers and times."""

from __future__ import annotations

import pytest

from quoth.tools.text import count, exact_time, excerpt, listed, number_of, printable, rounded_time, short


def test_numbers_are_said_with_their_noun() -> None:
    assert [count(n, "row") for n in (0, 1, 2)] == ["no rows", "1 row", "2 rows"]
    assert [number_of(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
    assert [number_of(n, "reply", "replies") for n in (0, 1, 2)] == ["0 replies", "1 reply", "2 replies"]


def test_words_are_listed() -> None:
    assert [listed("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed(("a", "b", "c"), "or") == "a, b or c"


@pytest.mark.parametrize(("text", "said"), [("", ""), ("abc", "abc"), ("abcd", "abcd"), ("abcde", "abc…")])
def test_a_text_is_cut_to_what_fits(text: str, said: str) -> None:
    assert short(text, 4) == said


def test_nothing_unprintable_is_left_but_what_is_kept() -> None:
    assert printable("a\x1b\n\tb\u202e") == "a\ufffd\ufffd\ufffdb\ufffd"
    assert printable("a\x1b\n\tb", "\n\t") == "a\ufffd\n\tb"
    assert printable("a\x1b\nb", instead=" ") == "a  b"
    assert printable("blåbær ☂") == "blåbær ☂"


def test_an_excerpt_is_short_and_printable() -> None:
    assert excerpt("\x1b" + "x" * 1000) == "\ufffd" + "x" * 38 + "…"
    assert excerpt("x" * 40) == "x" * 40


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(30, "30 seconds"), (90, "90 seconds"), (120, "2 minutes"), (5400, "90 minutes"), (86400, "24 hours")],
)
def test_a_time_is_said_exactly(seconds: float, said: str) -> None:
    assert exact_time(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "0.5 s"), (119, "119 s"), (121, "3 minutes"), (7199, "120 minutes"), (7201, "3 hours")],
)
def test_a_time_to_wait_is_rounded_up(seconds: float, said: str) -> None:
    assert rounded_time(seconds) == said
