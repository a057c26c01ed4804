"""A search passes over files that cannot hold a match: never over one that does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from words import files

from quoth.tools.builtin.prefilter import Needles, Wide, sieve
from quoth.tools.errors import ToolError
from quoth.tools.safe_regex import compiled


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("needle", [b"needle"]),
        (r"^def (main|run)\b.*self\.value", [b"self.value"]),
        ("colou?r", [b"colo"]),
        ("a+bc{2}", [b"a"]),
        ("foo|ba(r|z)|qux$", [b"foo", b"ba", b"qux"]),
        ("(?i)Needle", [b"needle"]),
        ("(?i)Kiss me", [b" me"]),
        ("é", ["é".encode()]),
    ],
)
def test_a_plain_pattern_tells_what_a_file_must_hold(pattern: str, texts: list[bytes]) -> None:
    found = sieve(pattern)
    assert isinstance(found, Needles)
    assert list(found.texts) == texts


@pytest.mark.parametrize("pattern", [r"\d+", "^(foo|bar)$", "a|b*", r"[a-z]++\b", "x{2}", "(?i)k"])
def test_another_is_tried_on_the_whole_text(pattern: str) -> None:
    assert isinstance(sieve(pattern), Wide)


@pytest.mark.parametrize(
    "pattern", ["(?=x)a", "a(?i)b", r"(a)\1", "(?x) a", "foo{e<=1}", "\ufffd", r"\p{L}a"]
)
def test_one_that_is_not_plain_tells_nothing(pattern: str) -> None:
    assert sieve(pattern) is None


def test_what_cannot_be_read_is_left_to_the_search(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for found in (sieve("needle"), sieve(r"\d")):
        assert found is not None
        assert found.may_be_in(tmp_path / "gone")
        assert found.may_be_in(tmp_path / "link")
        assert not found.may_be_in(tmp_path / "pipe")
    files(tmp_path, {"long": "x" * 200_000 + "needle"})
    assert Needles((b"needle",), any_case=False).may_be_in(tmp_path / "long")


PIECES = st.sampled_from(
    [
        *"abkisKS.^$|()[]*+?{}-é ",
        "(?:",
        "(?i)",
        r"\b",
        r"\d",
        r"\.",
        "{1,2}",
        "[^a]",
        "++",
        "*+",
        "??",
        r"\Z",
        "|",
    ]
)
LINES = st.text(alphabet="abkisKS.-é \u212a\u017f\u0131\u0130\ufffd1{}", max_size=8)


@given(st.lists(PIECES, min_size=1, max_size=7).map("".join), st.lists(LINES, min_size=1, max_size=3))
@example("a++a|b", ["aab"])
@example("(?i)k", ["\u212a"])
def test_no_file_with_a_match_is_passed_over(
    tmp_path_factory: pytest.TempPathFactory, pattern: str, lines: list[str]
) -> None:
    try:
        expression = compiled(pattern)
    except ToolError:
        return
    found = sieve(pattern)
    if found is None or not any(expression.search(line) for line in lines):
        return
    file = tmp_path_factory.getbasetemp() / "searched"
    file.write_text("\n".join(lines))
    assert found.may_be_in(file)
