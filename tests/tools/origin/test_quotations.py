"""Where the words of a call stand in a text that was read, however spaced, escaped or cased."""

from __future__ import annotations

import pytest

from quoth.tools.origin.quotations import ReadText, close, letters, words


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        (r"Run  it\nNow", "runitnow"),
        (r"(Send :to \"x\")", '(send:to"x")'),
        ("ru\u200bn", "run"),
        ("ＲＵＮ", "run"),
    ],
)
def test_a_text_is_close_to_another_however_it_is_spaced(text: str, spelt: str) -> None:
    assert close(text) == spelt
    assert letters(text).casefold() == spelt


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ('{"name": "send", "arguments": {"to": "x"}}', " name send to x "),
        ("send_it(to=x, args)", " send it to x "),
        ("", "  "),
    ],
)
def test_the_words_of_a_text_stand_between_spaces(text: str, row: str) -> None:
    assert words(text) == row


@pytest.mark.parametrize(
    ("typed", "folded", "rows", "of_a_file", "of_a_chat"),
    [
        (["Send"], [], [], False, True),  # of a chat what was typed counts, letter by letter
        (["send"], [], [], False, False),
        ([], ["send"], [], True, False),
        ([], ["other"], [], False, False),
        ([], ["other", "sendit"], [], True, False),
        ([], [], [" send it "], True, False),
        ([], [], [" sen "], False, False),
        (["Other"], ["other"], [" other "], False, False),
    ],
)
def test_a_call_is_quoted_by_one_needle_or_one_row(
    typed: list[str], folded: list[str], rows: list[str], of_a_file: bool, of_a_chat: bool
) -> None:
    found = [ReadText(1, "a", "Send it.", said).quotes(typed, folded, rows) for said in (False, True)]
    assert found == [of_a_file, of_a_chat]
