"""What would change in a text: the places, with what both begin and end with left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.tools.call.call import COMPARED, differing, lines_of


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (None, []),
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("a\n\nb", ["a\n", "\n", "b"]),
        ("a\r\nb\x0bc\n", ["a\r\n", "b\x0bc\n"]),
    ],
)
def test_a_text_has_the_lines_that_editors_count(text: str | None, lines: list[str]) -> None:
    assert lines_of(text) == lines


@pytest.mark.parametrize(
    ("old", "new", "places"),
    [
        ("abc", "abc", []),
        ("", "a", [(0, 0, 0, 1)]),
        ("a", "", [(0, 1, 0, 0)]),
        ("abc", "axc", [(1, 2, 1, 2)]),
        ("abc", "abxc", [(2, 2, 2, 3)]),
        ("aa", "aaa", [(2, 2, 2, 3)]),
        ("aaa", "aa", [(2, 3, 2, 2)]),
        ("abcde", "xbcdy", [(0, 1, 0, 1), (4, 5, 4, 5)]),
    ],
)
def test_two_texts_differ_in_these_places(
    old: str, new: str, places: list[tuple[int, int, int, int]]
) -> None:
    assert [*differing([*old], [*new])] == places


@pytest.mark.parametrize(("more", "places"), [(0, 2), (1, 1)])
def test_a_long_difference_is_one_place(more: int, places: int) -> None:
    middle = [str(number) for number in range(COMPARED - 2 + more)]
    found = [*differing(["a", *middle, "b"], ["x", *middle, "y"])]
    assert len(found) == places
    assert (found[0][0], found[-1][1]) == (0, len(middle) + 2)


@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_the_places_lead_from_one_text_to_the_other(old: str, new: str) -> None:
    made, at = "", 0
    for begin, end, first, last in differing([*old], [*new]):
        made += old[at:begin] + new[first:last]
        at = end
    assert made + old[at:] == new
