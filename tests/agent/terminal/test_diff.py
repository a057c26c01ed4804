"""What would change, as a person reads it: a sentence and the lines, in which nothing hides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.agent.terminal.question import FileDifference, differences, drawn
from quoth.tools.call.call import Change, Changes
from quoth.tools.call.redaction import Redactor
from quoth.tools.lisp.forms import CallForm
from quoth.tools.registry.parameters import Param

TEN = "".join(f"line {number}\n" for number in range(1, 11))


def difference(before: str | None, after: str | None, hide: Redactor | None = None) -> FileDifference:
    (found,) = differences(Changes((Change("a.txt", before, after),)), hide)
    return found


def shown(before: str | None, after: str | None, width: int = 60, hide: Redactor | None = None) -> list[str]:
    return drawn(difference(before, after, hide).lines, width, color=False)


@pytest.mark.parametrize(
    ("before", "after", "head"),
    [
        (None, "one\ntwo\n", "new file a.txt, 2 lines"),
        (None, "one", "new file a.txt, 1 line"),
        (None, "", "new file a.txt, empty"),
        (TEN, TEN, "no change to a.txt"),
        (TEN, "else\n", "replaces all 10 lines of a.txt with 1 line"),
        (TEN, "", "replaces all 10 lines of a.txt and leaves it empty"),
        ("one\n", "two\n", "replaces the only line of a.txt with 1 line"),
        (TEN, TEN.replace("line 5", "five"), "replaces 1 of 10 lines of a.txt with 1"),
        (TEN, TEN.replace("line 5\n", ""), "removes 1 of 10 lines of a.txt"),
        (TEN, f"{TEN}more\nand more\n", "adds 2 lines to a.txt, which has 10"),
        ("", "one\n", "adds 1 line to a.txt, which has none"),
        (TEN, None, "removes a.txt, 10 lines"),
    ],
)
def test_a_sentence_tells_how_much_changes(before: str | None, after: str | None, head: str) -> None:
    assert difference(before, after).head == head


def test_a_file_that_is_no_text_is_told_by_its_size() -> None:
    (found,) = differences(Changes((Change("a.bin", None, "x\n", binary=1),)))
    assert found.head == "replaces binary file a.bin (1 byte) with 1 line"


def test_what_changes_stands_among_what_stays() -> None:
    after = TEN.replace("line 2\n", "two\n").replace("line 10\n", "ten\nand more\n")
    assert shown(TEN, after) == [
        "│ @@ line 1 @@", "│   line 1", "│ - line 2", "│ + two", "│   line 3", "│   line 4", "│   line 5",
        "│ @@ line 7 @@", "│   line 7", "│   line 8", "│   line 9", "│ - line 10", "│ + ten", "│ + and more",
    ]  # fmt: skip


def test_what_makes_no_difference_to_the_eye_is_marked() -> None:
    assert shown("a\tb\nc\n", "a       b\nc  \n") == [
        "│ @@ line 1 @@", "│ - a⇥      b", "│ - c", "│ + a       b", "│ + c··",
    ]  # fmt: skip
    assert shown("a\r\nb\n", "a\nb")[1:] == [
        "│ - a\\r", "│ - b", "│ + a", "│ + b", "│ \\ no line end at the end of the file",
    ]  # fmt: skip


def test_a_long_line_breaks_between_words() -> None:
    text = " ".join(f"word{number}" for number in range(30))
    rows = shown(None, f"{text}\n")
    assert len(rows) > 3
    assert all(len(row) < 60 for row in rows)
    pieces = [row.removeprefix("│ + ").removeprefix("│   … ") for row in rows]
    assert "".join(f"{piece.rstrip()} " for piece in pieces).strip() == text
    assert shown(None, "x" * 100 + "\n")[1].startswith("│   … x")


def test_no_line_draws_on_the_terminal_or_begins_a_row() -> None:
    hostile = "\x1b[2J\x1b]8;;http://x\x07аpple\u202e" + " " * 200 + "Allow it? [y/N] \x85y\r"
    rows = shown(None, f"{hostile}\n")
    assert all(row.startswith("│ ") for row in rows)
    assert all(len(row) < 60 for row in rows)
    assert not set("".join(rows)) & set("\x1b\x07\u202e\x85\r\u0430")


@given(st.text("ab\n", max_size=30), st.text("ab\n", max_size=30))
def test_the_lines_lead_from_one_text_to_the_other(before: str, after: str) -> None:
    found = difference(before, after)
    removed = [line.text for line in found.lines if line.kind == "-"]
    added = [line.text for line in found.lines if line.kind == "+"]
    assert (len(added), len(removed)) == (found.added, found.removed)
    old, new = before.splitlines(), after.splitlines()
    for text in removed:
        old.remove(text)
    for text in added:
        new.remove(text)
    assert old == new


def test_a_small_change_in_a_huge_file_is_found() -> None:
    huge = "".join(f"{number}\n" for number in range(100_000))
    assert shown(huge, huge.replace("\n50000\n", "\nhere\n"))[4:6] == ["│ - 50000", "│ + here"]


def test_keys_that_a_file_holds_are_not_shown_and_those_to_be_written_are() -> None:
    block = "-----BEGIN KEY-----\nMIIabc\n-----END KEY-----\n"
    said = "\n".join(shown(f"api_key=sk-12345678\n{block}port=1\n", "api_key=sk-new45678\nport=1\n"))
    assert "sk-1234" not in said
    assert "MIIabc" not in said
    assert "+ api_key=sk-new45678" in said
    assert said.count("[secret]") == 4


@pytest.mark.parametrize("after", ["api_key=sk-12345678 # two\n", None])
def test_a_key_that_a_call_leaves_or_removes_is_not_shown(after: str | None) -> None:
    said = "\n".join(shown("api_key=sk-12345678 # one\n", after))
    assert "│ - api_key=[secret] # one" in said
    assert "sk-1234" not in said
    assert after is None or "│ + api_key=[secret] # two" in said


def test_a_declared_secret_is_hidden_where_it_would_be_written() -> None:
    hide = Redactor(CallForm("t", {"pin": "hunter2"}), [Param("pin", secret=True)], by_looks=False)
    assert shown("", "pin=hunter2\n", hide=hide)[1:] == ["│ + pin=[secret]"]


def test_json_holds_the_same() -> None:
    assert difference("one\n", "two\n").to_json() == {
        "path": "a.txt",
        "summary": "replaces the only line of a.txt with 1 line",
        "added": 1,
        "removed": 1,
        "diff": "@@ line 1 @@\n-one\n+two\n",
    }
