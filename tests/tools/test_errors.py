"""The sentences of errors, and the tree of their classes."""

from __future__ import annotations

import pytest

from quoth.tools.errors import UnknownToolError, did_you_mean, nearest


@pytest.mark.parametrize(
    ("word", "close"),
    [
        ("raed-file", "read-file"),
        ("READ-FILE", "read-file"),
        ("GREP-serch", "grep-Search"),
        ("zebra", None),
        ("", None),
    ],
)
def test_the_nearest_name_is_found_in_any_case(word: str, close: str | None) -> None:
    known = ["read-file", "write-file", "grep-Search"]
    assert nearest(word, known) == close
    assert did_you_mean(word, iter(known)) == (f" Did you mean {close}?" if close else "")


def test_a_word_much_longer_than_all_names_is_near_to_none() -> None:
    assert nearest("read-file" * 10_000, ["read-file"]) is None
    assert nearest("read-file", []) is None


def test_an_unknown_tool_names_the_nearest_or_all() -> None:
    assert UnknownToolError("raed", iter(["read"])).nearest == "read"
    assert "Available tools: copy, read." in str(UnknownToolError("zebra", iter(["read", "copy"])))
    assert "No tools are registered." in str(UnknownToolError("zebra", []))
