"""An Org file taken apart: what an edit of one headline makes is what it makes in the file as a whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from org_lines import LINES

from quoth.agent.plan.model import TODO_WORDS
from quoth.tools.org import edit as org_edit
from quoth.tools.org.document import Org, dump, load
from quoth.tools.org.edit import EditError
from quoth.tools.org.sections import OrgParts

HEADLINES = ["* PLAN a", "** DONE b", "* TODO"]
texts = st.none() | st.text(alphabet="ab*# \n:|", max_size=40)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    rows = draw(st.lists(st.sampled_from([*LINES, *HEADLINES]), max_size=16))
    newlines = draw(st.sampled_from([("\n",), ("\r\n",), ("\n", "\r\n")]))
    ended = [row + draw(st.sampled_from(newlines)) for row in [*rows, draw(st.sampled_from(HEADLINES))]]
    last = "".join(draw(st.lists(st.sampled_from(LINES), max_size=1)))
    return (draw(st.sampled_from(["", "\ufeff"])) + "".join(ended) + last).encode()


def outcome(act: object) -> object:
    try:
        return act()  # type: ignore[operator]
    except EditError as error:
        return str(error)


def both(parts: OrgParts, org: Org, name: str, index: int, *given: object) -> Org:
    """The same edit of both; they come to the same, or are refused with the same words. How most lines end
    was asked of the file as it was read."""
    newline = org.newline
    one = outcome(lambda: getattr(parts, name)(index, *given))
    other = outcome(lambda: getattr(org_edit, name)(org, index, *given))
    if isinstance(other, Org):
        assert one is None
        org, other.newline = other, newline
    else:
        assert one == other
    assert parts.dump() == dump(org)
    return org


@given(documents(), st.data())
def test_edits_of_parts_are_those_of_the_whole(data: bytes, draw: st.DataObject) -> None:
    org = load(data, TODO_WORDS)
    parts = OrgParts(org)
    assert parts.dump() == data
    for _ in range(3):
        index = draw.draw(st.integers(1, len(org.entries) - 1))
        org = both(parts, org, "set_todo", index, draw.draw(st.sampled_from(["PLAN", "DONE", "", "NO"])))
        if blocks := org.code(index):
            block = draw.draw(st.integers(0, len(blocks) - 1))
            org = both(parts, org, "put_results", index, block, draw.draw(texts))
        org = both(parts, org, "put_entry_results", index, draw.draw(st.sampled_from(["n", "m", ""])),
                   draw.draw(texts))  # fmt: skip
        org = both(parts, org, "add_to_drawer", index, "LOGBOOK", draw.draw(st.sampled_from(["x", "a\nb"])))
        org = both(parts, org, "set_property", index, draw.draw(st.sampled_from(["ID", "new"])), "a b")
        assert [parts.row(at) for at in range(1, len(org.entries))] == [one.row for one in org.entries[1:]]
        assert [parts.entry(at).todo for at in range(1, len(org.entries))] == [
            one.todo for one in org.entries[1:]
        ]


def test_results_below_another_headline_are_put_there() -> None:
    text = "* PLAN a\n#+NAME: n\n#+begin_src hy\n1\n#+end_src\n* PLAN b\n#+RESULTS: n\n: 0\n"
    parts = OrgParts(load(text.encode()))
    parts.put_results(1, 0, "1")
    assert parts.dump().decode() == text.replace(": 0", ": 1")


def test_a_copy_is_edited_by_itself() -> None:
    parts = OrgParts(load(b"* TODO a\n* TODO b\n"))
    other = parts.copy()
    other.set_todo(2, "DONE")
    assert (parts.dump(), other.dump()) == (b"* TODO a\n* TODO b\n", b"* TODO a\n* DONE b\n")


def test_an_edit_reads_its_own_headline_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = OrgParts(load(b"* TODO a\n" * 50))
    read: list[int] = []
    real = Org._entry
    monkeypatch.setattr(Org, "_entry", lambda self, *given: read.append(0) or real(self, *given))  # type: ignore[func-returns-value]
    parts.set_todo(25, "DONE")
    assert parts.entry(25).todo == "DONE"
    assert len(read) <= 4
