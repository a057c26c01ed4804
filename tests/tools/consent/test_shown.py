"""What an approval of a change is bound to: the bytes of each file, or the lines that would differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from words import files, form, tool

from quoth.tools.call.call import Call, Change
from quoth.tools.call.keeping import NO_FILE
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.shown import (
    UNREADABLE,
    _lines,
    digest_of,
    fits,
    look,
    of_text,
    replaced,
    to_text,
)
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool

A, B = ("a" * 64, "lines"), ("b" * 64, "lines")


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ({}, {}, True),
        ({"x": A}, {"x": A}, True),
        ({"x": A}, {"x": B}, True),  # the same lines would differ
        ({"x": A}, {"x": (B[0], "others")}, False),
        ({"x": (A[0], "")}, {"x": (A[0], "others")}, True),
        ({"x": (A[0], "")}, {"x": (B[0], "")}, False),  # the lines are not known
        ({"x": A}, {}, False),
        ({}, {"x": A}, False),
        ({"x": A, "y": A}, {"x": A, "y": (B[0], "")}, False),
    ],
)
def test_a_change_is_the_one_that_was_shown(then: Any, now: Any, same: bool) -> None:
    assert fits(then, now) == same
    assert fits(of_text(to_text(then)), of_text(to_text(now))) == same


def lines_of_change(before: str | None, after: str | None) -> str:
    return _lines(Change("a.txt", before, after))


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("0\n1\n2\n3\n4\n", "0\n1\nx\n3\n4\n", True),
        ("9\n1\n2\n3\n9\n", "9\n1\nx\n3\n9\n", True),  # somebody has changed other lines
        ("0\n9\n2\n3\n4\n", "0\n9\nx\n3\n4\n", False),  # the line before belongs to it
        ("0\n1\n2\n9\n4\n", "0\n1\nx\n9\n4\n", False),  # and the line behind
        ("0\n1\n2\n3\n4\n", "0\n1\ny\n3\n4\n", False),
        ("1\n2\n3\n", "1\nx\n3\n", True),
        ("0\n1\n2\n3\n4\n", "0\n1\nx\n3\n4\nmore\n", False),
    ],
)
def test_the_lines_that_differ_are_bound_with_those_around_them(before: str, after: str, same: bool) -> None:
    shown = lines_of_change("0\n1\n2\n3\n4\n", "0\n1\nx\n3\n4\n")
    assert (lines_of_change(before, after) == shown) == same


def test_a_line_at_the_edge_of_a_file_has_one_neighbour() -> None:
    assert lines_of_change("1\n2\n", "x\n2\n") == lines_of_change("1\n2\n3\n", "x\n2\n3\n")
    assert lines_of_change("1\n2\n", "x\n2\n") != lines_of_change("0\n1\n2\n", "0\nx\n2\n")
    assert lines_of_change("1\n", "") != lines_of_change("1\n", None)
    assert _lines(Change("a.bin", None, "x\n", binary=1)) == ""


def bound(effects: list[str], **more: Any) -> CognitiveTool:
    params = {"path": {"type": WorkspacePath}, "text": {"type": str, "default": ""}}
    return tool("put", lambda **_: None, params=params, effects=effects, **more)


@pytest.mark.parametrize(
    ("effects", "is_bound"),
    [
        (["writes"], True),
        (["deletes"], True),
        (["reads", "writes"], True),
        (["runs"], False),
        (["net"], False),
    ],
)
def test_a_call_that_writes_is_bound_to_the_files_it_names(
    effects: list[str], is_bound: bool, tmp_path: Path
) -> None:
    home = Workspace(files(tmp_path, {"a.txt": "one\n"}))
    put = bound(effects)
    changes, found = look(put, Call("c", form('(put "a.txt")')), home)
    assert changes is None
    assert found == ({"a.txt": (digest_of("a.txt", home), "")} if is_bound else {})
    assert replaced(put, {"path": "./a.txt"}, home) == (
        {"a.txt": digest_of("a.txt", home)} if is_bound else {}
    )
    assert look(put, Call("c", form("(put)")), home) == (None, {})


def test_a_call_that_tells_its_changes_is_bound_to_their_lines(tmp_path: Path) -> None:
    home = Workspace(files(tmp_path, {"a.txt": "one\n", "b.txt": "two\n"}))

    def told() -> list[list[str | None]]:
        return [["b.txt", "two\n", "three\n"]]

    changes, found = look(bound(["runs"], changes=told), Call("c", form('(put "a.txt")')), home)
    assert changes is not None
    assert found == {"b.txt": (digest_of("b.txt", home), lines_of_change("two\n", "three\n"))}
    none = bound(["runs"], changes=list)
    assert look(none, Call("c", form('(put "a.txt")')), home)[1] == {"a.txt": (digest_of("a.txt", home), "")}


def test_a_file_that_is_not_there_or_cannot_be_read_says_so(tmp_path: Path) -> None:
    home = Workspace(files(tmp_path, {"a/b.txt": ""}))
    assert digest_of("none.txt", home) == NO_FILE
    assert digest_of("a", home) == UNREADABLE
    assert digest_of("../x", home) == UNREADABLE
    assert replaced(bound(["writes"]), {"path": "../x"}, home) == {}
    assert len(digest_of("a/b.txt", home)) == 64
