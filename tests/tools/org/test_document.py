"""Org files: every byte is kept, edits touch their own lines only, and orgparse, asked too, sees the same."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import orgparse
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from org_lines import LINES
from sentences import CANNOT_BE_WRITTEN
from words import complaint

from quoth.tools.org.document import Org, dump, load
from quoth.tools.org.edit import (
    EditError,
    add_lines,
    add_to_drawer,
    dedent,
    escape,
    find_results,
    put_entry_results,
    put_results,
    set_property,
    set_todo,
    unescape,
)

DATA = Path(__file__).parents[2] / "agent" / "data"
PLANS = Path(__file__).parents[3] / "plans"
ORG_NEWS = Path("/usr/share/emacs")  # Debian's Emacs brings some real Org files along
REAL = [DATA / "morning.org", *sorted(PLANS.glob("*.org")), *sorted(Path(__file__).parents[3].glob("*.org"))]
REAL += sorted(ORG_NEWS.glob("*/etc/ORG-NEWS"))

ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r\r\n"])


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Org files, most of them broken somewhere."""
    lines = draw(st.lists(st.sampled_from(LINES), max_size=30))
    text = "".join(line + draw(ENDS) for line in lines)
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    bom = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"]))
    return bom + text.encode() + draw(st.sampled_from([b"", b"", b"\xe4\xff"]))


@given(st.binary(max_size=2000))
def test_any_bytes_come_back_as_they_were(data: bytes) -> None:
    org = load(data)
    assert dump(org) == data
    assert org.entries[0].stop <= len(org.lines)


@examples(2)
@given(documents())
def test_any_document_comes_back_as_it_was(data: bytes) -> None:
    org = load(data)
    assert dump(org) == data
    covered = [(entry.row, entry.stop) for entry in org.entries]
    assert [stop for _, stop in covered[:-1]] == [row for row, _ in covered[1:]]
    for entry in org.entries:
        last = -1
        for element in entry.elements:
            assert entry.body <= element.first <= element.last < entry.stop
            assert element.first > last
            last = element.first


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_come_back_as_they_were(path: Path) -> None:
    data = path.read_bytes()
    assert dump(load(data)) == data
    windows = data.replace(b"\n", b"\r\n")
    assert dump(load(windows)) == windows
    same = [(one.level, one.todo, one.title, one.tags) for one in load(data).entries]
    assert [(one.level, one.todo, one.title, one.tags) for one in load(windows).entries] == same


def test_a_large_file_of_broken_blocks_is_read_in_a_time_that_grows_with_it() -> None:
    lines = ["#+begin_src hy", "#+begin_quote", ":LOGBOOK:", "| row", "#+NAME: a", "* PLAN x", ":PROPERTIES:"]
    data = ("\n".join(lines * 6000)).encode()
    assert len(load(data).entries) == 6001  # quadratic, this would not end within the test's own limit


def parts(text: str) -> list[tuple[object, ...]]:
    return [
        (one.level, one.todo, one.priority, one.title, one.tags, one.commented)
        for one in load(text.encode()).entries[1:]
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("* a", (1, "", "", "a", (), False)),
        ("** TODO a", (2, "TODO", "", "a", (), False)),
        ("* TODO", (1, "TODO", "", "", (), False)),
        ("* TODOs", (1, "", "", "TODOs", (), False)),
        ("* DONE [#A] b c :x:y#%@:  ", (1, "DONE", "A", "b c", ("x", "y#%@"), False)),
        ("* :x:", (1, "", "", "", ("x",), False)),
        ("* a:x:", (1, "", "", "a:x:", (), False)),
        ("*   TODO   a", (1, "TODO", "", "a", (), False)),
        ("* TODO COMMENT a", (1, "TODO", "", "a", (), True)),
        ("* COMMENTS", (1, "", "", "COMMENTS", (), False)),
        ("* PLAN a", (1, "", "", "PLAN a", (), False)),
    ],
)
def test_the_parts_of_a_headline(line: str, expected: tuple[object, ...]) -> None:
    assert parts(line) == [expected]


@pytest.mark.parametrize("line", ["*a", " * a", "*", "\t* a", ",* a", "*\ta"])
def test_what_is_no_headline(line: str) -> None:
    assert parts(line) == []


def test_the_todo_words_are_those_the_file_names() -> None:
    assert parts("#+TODO: WAIT(w@/!) | OVER\n* WAIT a\n* TODO b") == [
        (1, "WAIT", "", "a", (), False),
        (1, "", "", "TODO b", (), False),
    ]
    # … but not inside of a block.
    assert parts("#+begin_src org\n#+TODO: WAIT\n#+end_src\n* WAIT a")[0][1] == ""


def test_a_headline_inside_of_a_block_ends_it_as_in_org() -> None:
    org = load(b"#+begin_src hy\n* a\n#+end_src\n")
    assert [one.title for one in org.entries] == ["", "a"]
    assert [one.kind for one in org.entries[0].elements] == ["text"]


def test_an_inline_task_is_no_headline_and_nothing_in_it_is_code() -> None:
    stars = "*" * 15
    task = (
        f"{stars} TODO remember the milk\n  :PROPERTIES:\n  #+begin_src hy\n  1\n  #+end_src\n{stars} END\n"
    )
    block = "#+begin_src hy\n2\n#+end_src\n"
    text = f"* a\nwords\n{task}{block}{stars}* DONE alone\n{block}{stars} END\n* b\n"
    org = load(text.encode())
    assert [entry.title for entry in org.entries[1:]] == ["a", "b"]
    kinds = [(one.kind, one.first, one.last) for one in org.entries[1].elements]
    assert kinds == [("text", 1, 1), ("inline", 2, 7), ("block", 8, 10), ("inline", 11, 15)]
    assert len(org.code(1)) == 1
    alone = load(f"* a\n{stars} TODO alone\n{block}{stars} TODO again\n{block}".encode())
    assert len(alone.code(1)) == 2  # without an END each is one line


def test_nothing_inside_of_a_block_or_drawer_is_anything_else() -> None:
    text = "#+begin_example\n:PROPERTIES:\n#+TITLE: no\n| a |\n#+begin_src hy\n#+end_example\n"
    text += ":X:\n#+TITLE: in\n:END:"
    org = load(text.encode())
    assert [(one.kind, one.first, one.last, one.depth) for one in org.entries[0].elements] == [
        ("block", 0, 5, 0),
        ("drawer", 6, 8, 0),
        ("keyword", 7, 7, 1),
    ]
    assert org.code(0) == []


def test_properties_stand_right_below_their_headline_or_nowhere() -> None:
    def of(text: str) -> dict[str, str]:
        return {one.name: one.value for one in load(text.encode()).entries[-1].properties}

    assert of("* a\n:PROPERTIES:\n:A: b  \n:B+:\n:END:") == {"A": "b", "B": ""}
    assert of("* a\nDEADLINE: <2026-01-01>\n  :properties:\n  :A: b\n  :end:") == {"A": "b"}
    assert of("* a\n\n:PROPERTIES:\n:A: b\n:END:") == {}
    assert of("* a\n:PROPERTIES:\nno property\n:END:") == {}
    assert of("* a\n:PROPERTIES:\n:A: b\n") == {}
    assert of("# remark\n:PROPERTIES:\n:A: b\n:END:\n") == {"A": "b"}


# Edits


PLAN = b"""#+TODO: PLAN | DONE
* PLAN one :t:
text
** two
   :PROPERTIES:
   :ID:       x
   :END:
   #+begin_src hy
   (f)
   #+end_src
   after
"""


def lines_changed(before: bytes, after: bytes) -> tuple[list[bytes], list[bytes]]:
    """The lines that went and those that came, between what is the same at the beginning and at the end."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    stop = 0
    while stop < min(len(old), len(new)) - start and old[-1 - stop] == new[-1 - stop]:
        stop += 1
    return old[start : len(old) - stop], new[start : len(new) - stop]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_each_edit_changes_its_own_lines_only(newline: bytes) -> None:
    data = PLAN.replace(b"\n", newline)

    def changed(edited: Org) -> tuple[list[bytes], list[bytes]]:
        gone, came = lines_changed(data, dump(edited))
        assert all(line.endswith(newline) for line in came)
        return [line.rstrip() for line in gone], [line.removesuffix(newline) for line in came]

    org = load(data)
    assert changed(set_todo(org, 1, "DONE")) == ([b"* PLAN one :t:"], [b"* DONE one :t:"])
    assert changed(set_todo(org, 1, "")) == ([b"* PLAN one :t:"], [b"* one :t:"])
    assert changed(set_todo(org, 2, "PLAN")) == ([b"** two"], [b"** PLAN two"])
    assert changed(add_to_drawer(org, 2, "LOGBOOK", "- done")) == (
        [],
        [b"   :LOGBOOK:", b"   - done", b"   :END:"],
    )
    assert changed(set_property(org, 2, "AT", "x")) == ([], [b"   :AT: x"])
    assert changed(put_results(org, 2, 0, "5")) == ([], [b"", b"   #+RESULTS:", b"   : 5", b""])
    assert changed(put_entry_results(org, 1, "one", "said\n")) == ([], [b"", b"#+RESULTS: one", b": said"])


def test_a_property_is_set_where_it_stands_or_in_its_drawer() -> None:
    org = load(b"* a\nSCHEDULED: <2026-12-01 Tue>\n:PROPERTIES:\n:id:   old\n:ID+: more\n:END:\nx")
    assert lines_changed(dump(org), dump(set_property(org, 1, "ID", "new"))) == (
        [b":id:   old\n"],
        [b":id: new\n"],
    )
    added = set_property(org, 1, "AT", "x")
    assert lines_changed(dump(org), dump(added)) == ([], [b":AT: x\n"])
    assert added.entries[1].properties[-1].value == "x"
    assert dump(set_property(load(b"* a"), 1, "ID", "x")) == b"* a\n:PROPERTIES:\n:ID: x\n:END:"
    assert dump(add_lines(load(b"x\r\ny"), ["* a", "b\ud800"])) == b"x\r\ny\r\n* a\r\nb\xef\xbf\xbd"


def test_results_take_the_place_of_older_ones() -> None:
    once = put_results(load(PLAN), 2, 0, "5")
    assert dump(put_results(once, 2, 0, "5")) == dump(once)
    many = put_results(once, 2, 0, "\n".join(f"* {n}" for n in range(12)))
    gone, came = lines_changed(dump(once), dump(many))
    assert gone == [b"   : 5\n"]
    assert came[0] == b"   #+begin_example\n"
    assert came[1] == b"   ,* 0\n"
    assert came[-1] == b"   #+end_example\n"
    assert [one.title for one in many.entries] == ["", "one", "two"]
    assert dump(put_results(many, 2, 0, "5")) == dump(once)


@pytest.mark.parametrize(
    "body",
    [
        "| a | b |\n| c |",
        "- a\n  b\n- c",
        "[[file:x.png]]",
        ":RESULTS:\n- x\n\ny\n:END:",
        "#+begin_src py\nx\n#+end_src",
    ],
)
def test_results_of_every_kind_are_replaced_whole(body: str) -> None:
    text = f"#+begin_src hy\n1\n#+end_src\n\n#+RESULTS:\n{body}\n\ntext\n"
    org = put_results(load(text.encode()), 0, 0, "7")
    assert dump(org).decode() == "#+begin_src hy\n1\n#+end_src\n\n#+RESULTS:\n: 7\n\ntext\n"


def test_named_results_are_found_wherever_they_stand() -> None:
    text = b"#+NAME: n\n#+begin_src hy\n1\n#+end_src\ntext\n* later\n#+RESULTS: n\n: old\nmore\n"
    assert lines_changed(text, dump(put_results(load(text), 0, 0, "new"))) == ([b": old\n"], [b": new\n"])


def test_text_below_a_block_is_no_result() -> None:
    text = b"#+begin_src hy\n1\n#+end_src\n#+RESULTS:\n\nprose\n: 5\n"
    assert dump(put_results(load(text), 0, 0, "7")) == text.replace(b"RESULTS:\n", b"RESULTS:\n: 7\n")


def test_text_right_below_a_list_is_no_part_of_the_result() -> None:
    text = b"#+begin_src hy\n1\n#+end_src\n#+RESULTS:\n- a\n  b\nprose\n"
    assert dump(put_results(load(text), 0, 0, "7")) == text.replace(b"- a\n  b\n", b": 7\n")


def test_a_missing_final_newline_stays_missing() -> None:
    org = put_results(load(b"* a\n#+begin_src hy\n1\n#+end_src"), 1, 0, "7")
    assert dump(org) == b"* a\n#+begin_src hy\n1\n#+end_src\n\n#+RESULTS:\n: 7"
    assert dump(set_todo(load(b"* a"), 1, "DONE")) == b"* DONE a"


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda org: set_todo(org, 1, "NO"), "NO is not a TODO word of this file. These are: PLAN DONE."),
        (lambda org: set_todo(org, 0, "PLAN"), "There is no headline number 0 in this file."),
        (
            lambda org: add_to_drawer(org, 1, "END", "x"),
            "'END' cannot be the name of a drawer.",
        ),
        (
            lambda org: set_property(org, 1, "a b", "x"),
            f"'a b' {CANNOT_BE_WRITTEN} as a property on one line.",
        ),
        (
            lambda org: set_property(org, 1, "ID", "x\ny"),
            f"'ID' {CANNOT_BE_WRITTEN} as a property on one line.",
        ),
        (
            lambda org: set_property(load(b"* a\n:PROPERTIES:\n"), 1, "ID", "x"),
            "A property cannot be added: the properties have no :END:, or contain another line.",
        ),
        (lambda org: add_to_drawer(org, 1, "LOGBOOK", "a\nb"), "The text for a drawer must be one line."),
        (
            lambda org: put_entry_results(org, 1, "", "x"),
            "The name of results at the end of an entry must be one line.",
        ),
    ],
)
def test_an_edit_that_would_break_the_file_is_refused(act: object, said: str) -> None:
    assert complaint(EditError, lambda: act(load(PLAN))) == said  # type: ignore[operator]


@given(st.text(max_size=300))
def test_escaped_text_holds_no_headline_and_comes_back(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not any(line.startswith(("*", "#+")) for line in escape(text).split("\n"))


def results_text(org: Org, rows: tuple[int, int]) -> str:
    """What such results say, as they were given."""
    first, last = rows
    body = [line for line in org.lines[first + 1 : last + 1] if not re.match(r"[ \t]*#\+\w+:", line)]
    if body and re.match(r"[ \t]*#\+begin_", body[0], re.IGNORECASE):
        indent = body[0][: len(body[0]) - len(body[0].lstrip(" \t"))]
        return unescape("\n".join(line.removeprefix(indent) for line in body[1:-1]))
    if body and all(re.match(r"[ \t]*:(?: |$)", line) for line in body):
        return "\n".join(line.lstrip(" \t")[2:] for line in body)
    return "\n".join(dedent(body)[0])


def kept(before: Org, after: Org, rows: tuple[int, int]) -> bool:
    """Whether all bytes outside of these rows are the same; a last line may have got an end."""
    pairs = [line + end for line, end in zip(before.lines, before.ends, strict=True)]
    above, below = "".join(pairs[: rows[0]]), "".join(pairs[rows[1] :])
    if below:
        return after.text.startswith(above) and after.text.endswith(below)
    return after.text.startswith(above.removesuffix("\n").removesuffix("\r"))


@given(documents(), st.text(max_size=200), st.randoms(use_true_random=False))
def test_edits_of_any_document_touch_nothing_else(data: bytes, text: str, chance: random.Random) -> None:
    org = load(data)
    index = chance.randrange(len(org.entries))
    entry = org.entries[index]
    line = " ".join(text.split()) or "x"
    titles = [(one.level, one.title) for one in org.entries]
    edited: list[tuple[Org, tuple[int, int]]] = []
    if index:
        row = (entry.row, entry.row + 1)
        edited.append((set_todo(org, index, org.todo_words[0]), row))
        edited.append((add_to_drawer(org, index, "LOGBOOK", line), (entry.body, entry.stop)))
        logged = edited[-1][0]
        assert len(logged.lines) - len(org.lines) in (1, 3)
        said = put_entry_results(org, index, "new-name", text)
        last = max(row for row in range(entry.row, entry.stop) if row == entry.row or org.lines[row].strip())
        edited.append((said, (last + 1, last + 1)))
        rows = find_results(said, "new-name")
        assert rows is not None
        if text.isprintable() or text.isalnum():
            assert results_text(said, rows) == text
    for number, element in enumerate(org.code(index)):
        done = put_results(org, index, number, text)
        assert dump(put_results(done, index, number, text)) == dump(done)
        named = element.key("NAME")
        old = find_results(org, named.value) if named else None
        if old is None and not named:
            after = [one for one in entry.elements if one.first > element.last][:1]
            old = (
                find_results(org, "") if after and after[0].name == "RESULTS" and not after[0].value else None
            )
            old = (after[0].first, entry.stop - 1) if old else None
        edited.append((done, (old[0], old[1] + 1) if old else (element.last + 1, element.last + 1)))
    for after, rows in edited:
        assert kept(org, after, rows)
        assert [(one.level, one.title) for one in load(dump(after)).entries] == titles


def test_results_that_are_taken_out_leave_what_was_there_before() -> None:
    org = load(PLAN)
    once = put_results(org, 2, 0, "5")
    assert dump(put_results(once, 2, 0, None)) == PLAN.replace(b"end_src\n", b"end_src\n\n")
    assert dump(put_results(org, 2, 0, None)) == PLAN
    assert dump(put_entry_results(put_entry_results(org, 1, "one", "said"), 1, "one", None)) == PLAN
    ended = load(b"* a\n#+begin_src hy\n1\n#+end_src")
    assert dump(put_results(put_results(ended, 1, 0, "7"), 1, 0, None)) == dump(ended)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\n#+RESULTS: n\n| a |\n| b |\n\ntext", "\ntext"),
        ("#+RESULTS: n\n- a\n  b\n- c\n\ntext", "\ntext"),
        ("\n#+RESULTS: n\n#+begin_example\nx\n#+end_example\n* b", "* b"),
        ("\n\n#+RESULTS: n\n: 5", ""),
        ("text\n\n#+RESULTS: n\n: 5\nmore", "text\n\nmore"),
        ("#+CAPTION: c\n#+RESULTS: n\n: old\ntext", "#+CAPTION: c\n#+RESULTS: n\n:\ntext"),
    ],
)
def test_results_are_taken_out_whole_with_one_blank_line(before: str, after: str) -> None:
    block = b"#+NAME: n\n#+begin_src hy\n1\n#+end_src\n"
    without = dump(put_results(load(block + before.encode()), 0, 0, None))
    assert without.removeprefix(block).decode().removesuffix("\n") == after
    unnamed = block.split(b"\n", 1)[1] + before.replace("RESULTS: n", "RESULTS:").encode()
    if "CAPTION" not in before and not before.startswith("text"):
        assert dump(put_results(load(unnamed), 0, 0, None)).endswith(without.removeprefix(block))


@pytest.mark.parametrize(
    "text",
    [
        "#+RESULTS:\n\nprose",
        "#+RESULTS:\nprose",
        "#+RESULTS:\n[[file:x]]\nprose",
        "#+RESULTS:\n- item\n  more\nprose",
        "text\n\n#+RESULTS:\n: of nobody",
        "#+RESULTS: other\n: of another",
    ],
)
def test_what_is_not_all_a_result_is_not_taken_out(text: str) -> None:
    data = f"#+begin_src hy\n1\n#+end_src\n{text}".encode()
    assert dump(put_results(load(data), 0, 0, None)) == data


@examples(2)
@given(documents(), st.text(max_size=200), st.randoms(use_true_random=False))
def test_of_any_document_results_alone_are_taken_out(data: bytes, text: str, chance: random.Random) -> None:
    org = load(data)
    index = chance.randrange(len(org.entries))
    titles = [(one.level, one.title) for one in org.entries]
    edits: list[Callable[[Org, str | None], Org]] = [
        lambda org, said, n=n: put_results(org, index, n, said)  # type: ignore[misc]
        for n in range(len(org.code(index)))
    ]
    if index:
        edits.append(lambda org, said: put_entry_results(org, index, "n", said))
    for edit in edits:
        there, without = edit(org, text), edit(org, None)
        gone = edit(there, None)
        assert is_cut_out(org, without)
        assert is_cut_out(there, gone)
        assert dump(edit(without, None)) == dump(without)
        if "#+RESULTS" not in org.text:
            assert without == org
            assert [line for line in gone.lines if line.strip()] == [
                line for line in org.lines if line.strip()
            ]
        for after in (without, gone):
            assert [(one.level, one.title) for one in load(dump(after)).entries] == titles


def is_cut_out(before: Org, after: Org) -> bool:
    """Whether the file is the same but for results that went, with a blank line above at most, or were
    emptied; at its end the line before may have lost its end."""
    old = [line + end for line, end in zip(before.lines, before.ends, strict=True)]
    new = [line + end for line, end in zip(after.lines, after.ends, strict=True)]
    if old == new:
        return True
    gone = len(old) - len(new)
    for start in range(len(new) + 1):
        cut, rest = old[start : start + gone], old[start + gone :]
        head = cut[1:] if cut and not cut[0].strip() else cut
        if len(head) > 1 and head[0].lstrip().startswith("#+RESULTS"):
            kept = old[:start] if rest else [line.rstrip("\r\n") for line in old[:start]]
            if (new if rest else [line.rstrip("\r\n") for line in new]) == kept + rest:
                return True
        emptied = start and old[start - 1].lstrip().startswith("#+RESULTS") and new[start:][:1] != []
        if (
            emptied
            and [*old[:start], new[start], *old[start + gone + 1 :]] == new
            and new[start].strip() == ":"
        ):
            return True
    return False


def test_the_comparison_of_what_is_cut_out_can_fail() -> None:
    org = load(b"a\n\n\n#+RESULTS:\n: 5\nb\n")
    for data in (b"a\n\n\nc\n", b"a\n\nB\n", b"a\nb\n", b"a\n\n\n#+RESULTS:\nb\n", b"a\n\n\n: 5\nb\n"):
        assert not is_cut_out(org, load(data))
    for data in (b"a\n\n\nb\n", b"a\n\nb\n", b"a\n\n\n#+RESULTS:\n:\nb\n"):
        assert is_cut_out(org, load(data))


# A second opinion


@st.composite
def plain_documents(draw: st.DrawFn) -> str:
    """Documents without what orgparse is known to read otherwise than Org does."""
    words = st.sampled_from(["Demand", "the table", "x y", "a [[file:b][c]]", "ü"])
    lines = ["#+TODO: PLAN RUNNING | DONE"]
    for _ in range(draw(st.integers(1, 8))):
        stars = "*" * draw(st.integers(1, 4))
        todo = draw(st.sampled_from(["", "PLAN ", "DONE "]))
        priority = draw(st.sampled_from(["", "[#A] "]))
        tags = draw(st.sampled_from(["", "  :a:", " :a:b_c:"]))
        lines.append(f"{stars} {todo}{priority}{draw(words)}{tags}")
        if draw(st.booleans()):
            lines += ["  :PROPERTIES:", "  :ID: " + draw(words), "  :AFTER:    a b", "  :END:"]
        lines += draw(st.lists(st.sampled_from(["text", "", "- item", ": 5", "#+begin_src hy", "#+end_src"])))
    return "\n".join(lines)


def by_us(text: str) -> list[tuple[object, ...]]:
    return [
        (
            e.level,
            e.todo,
            e.priority,
            " ".join(e.title.split()),
            set(e.tags),
            {p.name: p.value for p in e.properties},
        )
        for e in load(text.encode()).entries[1:]
    ]


def by_orgparse(text: str) -> list[tuple[object, ...]]:
    return [
        (n.level, n.todo or "", n.priority or "", n.get_heading("raw"), n.shallow_tags, n.properties)
        for n in orgparse.loads(text)[1:]
    ]


@given(plain_documents())
def test_orgparse_sees_the_same(text: str) -> None:
    assert by_us(text) == by_orgparse(text)


def test_orgparse_sees_the_same_in_our_own_plans() -> None:
    for path in [DATA / "morning.org", *PLANS.glob("*.org")]:
        text = path.read_text().replace("* COMMENT PLAN", "* PLAN")
        assert by_us(text) == by_orgparse(text)


@pytest.mark.parametrize("text", ["* a\n", "* PLAN b :c:\n", "* a\n:PROPERTIES:\n:X: 1\n:END:\n"])
def test_the_comparison_can_fail(text: str) -> None:
    assert by_us(text + "* more") != by_orgparse(text)
