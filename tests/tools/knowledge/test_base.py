"""The knowledge base: anything can be filed and comes back, all in one folder; nobody's work is lost."""

from __future__ import annotations

import os
import random
import re
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from emacs import EMACS, emacs
from examples import examples, many
from hypothesis import given
from hypothesis import strategies as st
from org_lines import LINES
from processes import ended_well, in_a_process
from sentences import IS_OUTSIDE_THE_WORKSPACE, NOTHING_IS_CHANGED_IN_THIS, THE_MAXIMUM_IS, THIS_IS_NOT_UTF_8
from shelf import ANN, BEN, Shelf
from words import complaint, wait_until

from quoth.tools.call import workspace as workspace_module
from quoth.tools.errors import ToolError
from quoth.tools.knowledge import base as base_module
from quoth.tools.knowledge import entries
from quoth.tools.knowledge.entries import Draft, KnowledgeFile, Stored, add_origin, without

KINDS = st.sampled_from(["source", "claim", "learning", "note"])
ORG = st.lists(st.sampled_from([*LINES, "[[elisp:(x)][a]]", "\r", ":END:"]), max_size=12).map("\n".join)
TEXTS = st.text(max_size=200) | ORG


# Anything may be filed


def test_an_entry_says_who_when_and_where(shelf: Shelf) -> None:
    filed = shelf.source("Solar cells: a review", "They reach 26 %.\n", addresses=["https://a.example/b"])
    assert (filed.title, filed.created) == ("Solar cells: a review", True)
    digest = shelf.only.digest
    assert shelf.read(filed.path).replace(digest, "DIGEST").replace(digest[:8], "8") == (
        "#+TITLE: Solar cells: a review\n\n* Solar cells: a review\n:PROPERTIES:\n"
        ":ID: solar-cells-a-review-8\n:KIND: source\n:BY: ann\n:AT: 2026-11-23T09:00:00+00:00\n"
        ":CHAT: 7\n:IN_SESSION: s1\n:CALL: c1\n:ADDRESS: https://a.example/b\n"
        ":DIGEST: DIGEST\n:END:\n"
        "#+begin_example\nThey reach 26 %.\n\n#+end_example\n"
    )
    shelf.claim("It is so.")
    shelf.learning("It was so.")
    shelf.note("Summary", "It will be so.")
    assert shelf.files() == [
        "knowledge/claims.org",
        "knowledge/inbox.org",
        "knowledge/learnings.org",
        "knowledge/queue/solar-cells-a-review-eb37b55c.org",
    ]


def clean(text: str) -> str:
    """The text without what no file of text holds."""
    return re.sub("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", "\ufffd", text)


@given(
    KINDS, st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=1, max_size=3), st.sampled_from(["\n", "\r\n"])
)
@examples(3)
def test_any_title_text_and_name_come_back(
    kind: str, given: list[tuple[str, str, str]], newline: str
) -> None:
    data, filed = f"* a person's own{newline}".encode(), []
    for title, text, user in given:
        try:
            draft = Draft(kind, title, text, replace(ANN, user=user), addresses=(title,) if title else ())
        except ToolError:
            assert not clean(text).strip()
            continue
        data = draft.appended(data)
        filed.append((clean(title).strip() or None, clean(text), clean(user), draft.name))
    file = KnowledgeFile(data, "knowledge/inbox.org")
    assert not file.faults
    own, *entries = [entry for entry, _ in file.entries]
    assert own.title == "a person's own"
    assert [(one.text, one.origin.user, one.name) for one in entries] == [one[1:] for one in filed]
    assert all(title in (None, one.title) for (title, *_), one in zip(filed, entries, strict=True))


@given(TEXTS, TEXTS)
@examples(1)
def test_another_origin_changes_nothing_but_the_properties(text: str, user: str) -> None:
    if not clean(text).strip():
        return
    data = Draft("claim", "", text, ANN).appended(b"* before\n")
    data = Draft("claim", "", "another", ANN).appended(data)
    of = KnowledgeFile(data, "x").entries[1][0]
    more = add_origin(data, of, replace(BEN, user=user))
    again = KnowledgeFile(more, "x").entries
    assert (len(again), again[1][0].text) == (3, clean(text))
    assert again[1][0].origins == (ANN, replace(BEN, user=clean(user)))
    assert [line for line in more.decode().split("\n") if "_2:" not in line] == data.decode().split("\n")


TITLES = [
    "../../x", "/etc/passwd", "a\0b", "x" * 10_000, "🎉🎉", "مرحبا بالعالم", "", "...", "CON",
    "nul.org", "~root", ".hidden", "-rf",
    "a/b\\c", "*", "TODO x", "[[elisp:(x)][y]]", "<2026-01-01 Thu>", ":a:b:",
    "\ud800", "a\nb",
]  # fmt: skip


@pytest.mark.parametrize("title", TITLES)
def test_a_title_never_leads_out_of_the_folder(shelf: Shelf, title: str) -> None:
    filed = shelf.source(title, "the text")
    assert shelf.files() == [filed.path]
    assert re.fullmatch(r"knowledge/queue/[^\W_][^\W_-]*(-[^\W_]+)*-[0-9a-f]{8}\.org", filed.path)
    assert len(Path(filed.path).stem) <= 60
    assert shelf.only.text == "the text"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (" \n", "The text of the claim is empty. Give the text to keep."),
        ("x" * 20_001, f"The claim has 20,001 characters; {THE_MAXIMUM_IS} 20,000."),
    ],
)
def test_what_cannot_be_filed(shelf: Shelf, text: str, said: str) -> None:
    assert complaint(ToolError, lambda: shelf.claim(text)) == said
    assert shelf.files() == []


def test_a_file_never_grows_so_large_that_it_cannot_be_read(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_module, "MAX_BYTES", 1000)
    shelf.claim("It is so.")
    full = "knowledge/claims.org would be larger than 1000 bytes; move finished entries to another file."
    assert complaint(ToolError, lambda: shelf.claim("x" * 900)) == full
    assert shelf.only.text == "It is so."
    assert shelf.claim("It is not.").created


# The same content is one entry


def test_the_same_content_has_two_origins(shelf: Shelf) -> None:
    first = shelf.source("One title", "the text")
    again = shelf.source("Another", "the text\n", BEN)
    assert (again.path, again.title, again.created) == (first.path, "One title", False)
    assert shelf.only.origins == (ANN, BEN)
    assert shelf.learning("It is so.").created
    assert shelf.learning("It is so.", category="communication").created
    assert not shelf.learning("It is so.", BEN).created


def test_one_who_says_the_same_for_ever_adds_nothing(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MOST_ORIGINS", 2)
    for call in ("c1", "c2", "c3"):
        shelf.claim("It is so.", replace(BEN, call=call))
    assert [one.call for one in shelf.only.origins] == ["c1", "c2"]


def test_a_call_that_was_broken_off_files_once(shelf: Shelf) -> None:
    assert shelf.claim("It is so.") == shelf.claim("It is so.")
    assert shelf.only.origins == (ANN,)


def test_what_a_person_has_moved_or_edited_is_known_still(shelf: Shelf) -> None:
    filed = shelf.source("Title", "the text")
    moved = (
        shelf.read(filed.path)
        .replace("* Title", "* Mine\n** DONE A better title")
        .replace("the text", "better")
    )
    (shelf.root / filed.path).unlink()
    shelf.write("knowledge/read/all.org", moved)
    assert shelf.source("Title", "the text", BEN) == replace(
        filed, path="knowledge/read/all.org", title="A better title", created=False
    )
    assert [(one.title, one.text, len(one.origins)) for one in shelf.entries] == [
        ("Mine", "", 0),
        ("A better title", "better", 2),
    ]


# People write too


def test_what_is_written_by_hand_is_found(shelf: Shelf) -> None:
    shelf.write(
        "knowledge/notes.org",
        "#+TITLE: Energy\nWind is cheap.\n* Sun\n# own\nPanels fade.\n* COMMENT Old\nx\n** y\n",
    )
    shelf.write("knowledge/claims.org", "* Water flows\n")
    assert [(one.kind, one.title, one.text) for one in shelf.entries] == [
        ("claim", "Water flows", ""),
        ("note", "Energy", "Wind is cheap."),
        ("note", "Sun", "# own\nPanels fade."),
    ]
    (hit,) = shelf.found("do panels fade?")
    assert (hit.title, hit.path, hit.line, hit.user) == ("Sun", "knowledge/notes.org", 3, "")


@pytest.mark.parametrize("there", [True, False])
def test_an_editor_that_writes_in_between_loses_nothing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    if there:
        shelf.claim("old")
    came = []

    def appended(draft: Draft, data: bytes) -> bytes:
        if not came:
            came.append(1)
            shelf.write("knowledge/claims.org", data + b"* from the editor\n")
        return real(draft, data)

    real = Draft.appended
    monkeypatch.setattr(Draft, "appended", appended)
    shelf.claim("ours")
    assert [one.title for one in shelf.entries] == [*(["old"] if there else []), "from the editor", "ours"]


BROKEN = [
    (b"* a\n* \xff\n", f"2: {THIS_IS_NOT_UTF_8}"),
    (b"* a\n\n\0\n", "3: this line contains a NUL character"),
    (b"* a\n:PROPERTIES:\n:ID: x\n", "2: these properties are not lines of :NAME: value that end with :END:"),
    (b"x\n* a\n#+BEGIN_QUOTE\nb\n", "3: #+BEGIN_QUOTE has no #+end_QUOTE below it"),
    (b"* a\nb\n#+end_example\n", "3: #+end_example has no #+begin_example above it"),
]


@pytest.mark.parametrize(("data", "said"), BROKEN)
def test_a_broken_file_is_told_and_left_alone(shelf: Shelf, data: bytes, said: str) -> None:
    shelf.write("knowledge/claims.org", data)
    shelf.learning("The sun is warm.")
    said = f"knowledge/claims.org:{said}. {NOTHING_IS_CHANGED_IN_THIS}."
    assert complaint(ToolError, lambda: shelf.claim("ours")) == said
    assert (shelf.root / "knowledge/claims.org").read_bytes() == data
    assert [one.kind for one in shelf.found("warm sun")] == ["learning"]
    assert shelf.heard == [said]
    shelf.write("knowledge/claims.org", "* mended\n")
    shelf.claim("ours")
    assert [one.title for one in shelf.entries] == ["mended", "ours", "The sun is warm."]


@pytest.mark.parametrize("link", ["knowledge", "knowledge/queue", "knowledge/claims.org"])
def test_a_link_that_leads_out_is_refused(tmp_path: Path, link: str) -> None:
    (tmp_path / "home").mkdir()
    shelf, outside = Shelf(tmp_path / "home"), tmp_path / ("out.org" if link.endswith("org") else "out")
    outside.write_text("* secret sun\n") if outside.suffix else outside.mkdir()
    place = shelf.root / link
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(outside)
    said = complaint(ToolError, lambda: [shelf.claim("sun"), shelf.source("sun", "sun")])
    assert said == f"{link} {IS_OUTSIDE_THE_WORKSPACE} {shelf.root}."
    assert shelf.found("secret sun") == []
    assert not outside.is_dir() or not [*outside.iterdir()]


def test_a_link_within_the_workspace_is_followed(shelf: Shelf) -> None:
    (shelf.root / "docs").mkdir()
    (shelf.root / "knowledge").symlink_to("docs")
    assert not [shelf.source("a", "b"), shelf.source("c", "b", BEN)][1].created
    assert len(shelf.only.origins) == 2


# Many write at once


def test_two_processes_file_the_same_sources_once(shelf: Shelf) -> None:
    number = min(many(1), 500)

    def filing(who: str) -> None:
        for nth in range(number):  # every second one is of both
            text = f"text {nth}" if nth % 2 else f"text {nth} of {who}"
            shelf.source(f"{who} {nth}", text, replace(ANN, user=who, call=f"{who}{nth}"))

    assert ended_well([in_a_process(lambda who=who: filing(who)) for who in ("ann", "ben")])  # type: ignore[misc]
    assert not shelf.base.faults
    assert len(shelf.files()) == len(shelf.entries) == number + number - number // 2
    assert sum(len(one.origins) for one in shelf.entries) == 2 * number
    shared = [one for one in shelf.entries if " of " not in one.text]
    assert all({one.user for one in each.origins} == {"ann", "ben"} for each in shared)


def test_without_a_lock_the_same_would_be_filed_twice(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guard of the test above can fail."""
    ben = Shelf(shelf.root)
    meanwhile = iter([1])
    real = base_module.FileKnowledge._change

    def change(base: base_module.FileKnowledge, path: str, new: Draft, *, appends: bool) -> object:
        if next(meanwhile, 0):
            ben.base._filed(replace(new, title="Ben's", origin=BEN))
        return real(base, path, new, appends=appends)

    monkeypatch.setattr(base_module, "hold", lambda *_: __import__("contextlib").nullcontext())
    monkeypatch.setattr(base_module.FileKnowledge, "_change", change)
    shelf.source("Ann's", "the text")
    assert len(shelf.files()) == 2


def test_who_is_killed_leaves_the_old_or_the_new_file(shelf: Shelf) -> None:
    chance = random.Random(15)

    def filing() -> None:
        for nth in range(10_000):
            shelf.claim(f"claim {nth} " + "x" * 5000, replace(ANN, call=f"c{nth}"))

    for nth in range(many(1) // 3):
        child = in_a_process(filing)
        if not nth:  # one of them writes, however busy the machine is
            wait_until(lambda: shelf.entries)
        time.sleep(chance.uniform(0.01, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        claims = shelf.entries
        assert not shelf.base.faults
        assert [one.text for one in claims] == [f"claim {n} " + "x" * 5000 for n in range(len(claims))]
    assert claims
    assert [path for path, _ in shelf.base.entries()] == ["knowledge/claims.org"] * len(claims)


# Forgetting


@given(st.lists(st.sampled_from([one for one in LINES if "\0" not in one]), max_size=12), st.booleans())
@examples(2)
def test_the_rest_of_a_file_stays_byte_for_byte(lines: list[str], ended: bool) -> None:
    before = "".join(f"{line}\n" for line in lines).encode()
    data = Draft("claim", "", "the text", ANN).appended(before + b"* x\n")
    data += b"* after\n" if ended else b""
    row = next(nth for nth, line in enumerate(data.decode().split("\n")) if line.startswith("* the text"))
    left = without(data, Stored("", "", "", "", row=row))
    assert left.startswith(before)
    assert left[len(before) :].replace(b"\n", b"") == b"* x" + (b"* after" if ended else b"")


def test_what_is_forgotten_is_gone_and_may_come_again(shelf: Shelf) -> None:
    shelf.claim("one")
    shelf.claim("two", BEN)
    filed = shelf.source("Title", "three")
    one, _, three = shelf.entries
    assert shelf.base.forget("knowledge/claims.org", one)
    assert not shelf.base.forget("knowledge/claims.org", one)
    assert shelf.base.forget(filed.path, three)
    assert shelf.files() == ["knowledge/claims.org"]
    assert shelf.only.text == "two"
    assert shelf.claim("one").created


def test_what_was_changed_meanwhile_is_not_forgotten(shelf: Shelf) -> None:
    filed = shelf.source("Title", "three")
    one = shelf.only
    shelf.source("Title", "three", BEN)
    assert not shelf.base.forget(filed.path, one)
    shelf.write(filed.path, shelf.read(filed.path) + "* mine\n")
    assert shelf.base.forget(filed.path, shelf.entries[0])
    assert shelf.read(filed.path) == "#+TITLE: Title\n\n* mine\n"


def test_an_entry_with_headlines_below_it_is_not_forgotten(shelf: Shelf) -> None:
    shelf.write("knowledge/notes.org", "* a\n** b\n* c\n")
    said = complaint(ToolError, lambda: shelf.base.forget("knowledge/notes.org", shelf.entries[0]))
    assert said == (
        "knowledge/notes.org:1: there are headlines below a. Move them elsewhere first, or remove "
        "the entry in an editor."
    )
    assert shelf.base.forget("knowledge/notes.org", shelf.entries[1])
    assert shelf.read("knowledge/notes.org") == "* a\n* c\n"


MARKUP = [
    "[[", "]]", "elisp:(x)", "<2026-01-01 Thu>", "[2026-01-01]", "*", " ", ":", "#+", "call_", "src_a{", "}",
    "{{{x}}}", "<<<r>>>", "[fn:1]", "[cite:@a]", "TODO", "a", "\\", "$", "|", "http://a.b", "file:x",
    "%%(x)", "[1/2]", "\t", "\n", "\r", "\x1b$B", "\u2028", "~", "_", "/", "COMMENT", "DEADLINE:", ":x:",
]  # fmt: skip


if EMACS:

    def test_org_lint_has_nothing_to_say_of_any_file(shelf: Shelf, tmp_path: Path) -> None:
        chance = random.Random(15)
        text = "* a\n:END:\n#+end_example\n[[elisp:(x)][y]]\n#+begin_src\n:PROPERTIES:\n<2026-13-45 x>\n"
        made = ["".join(chance.choices(MARKUP, k=chance.randint(1, 8))) for _ in range(many(1))]
        data = b""
        for title in (*TITLES, *made):
            user = replace(ANN, user=title, call=title)
            data = Draft("note", title, f"{text}{title}", user, addresses=("elisp:x",)).appended(data)
        shelf.write("knowledge/inbox.org", data)
        shelf.source(TITLES[-5], text, addresses=["elisp:(x)", "https://a.example"])
        shelf.claim("[[elisp:(x)][y]] :a:")
        shelf.claim("[[elisp:(x)][y]] :a:", BEN)
        shelf.learning("TODO it is so")
        script = """
          (require 'org) (require 'org-lint)
          (dolist (path command-line-args-left)
            (with-current-buffer (find-file-noselect path)
              (dolist (one (org-lint)) (princ (format "%s: %s\n" path (cadr one))))
              (org-element-map (org-element-parse-buffer) '(link timestamp target radio-target
                                      inline-babel-call inline-src-block macro footnote-reference citation)
                (lambda (one) (princ (format "%s: %s\n" path (org-element-property :raw-value one)))))
              (org-map-entries (lambda () (when (or (org-get-tags) (org-get-todo-state)) (princ path))))))
          (setq command-line-args-left nil)
        """
        paths = [shelf.root / path for path in shelf.files()]
        assert emacs(tmp_path, *paths, script=script) == ""

    @pytest.mark.parametrize(
        "text",
        [
            "x\n# Local Variables:\n# fill-column: 33\n# End:",
            "x\n\f\nlocal\u200b variables:\nLOCAL VARIABLES:\nfill-column: 33\nend:",
            "-*- fill-column: 33 -*-",
            "Local\nVariables: Local Variables: x",
        ],
    )
    def test_a_text_that_is_filed_sets_nothing_in_emacs(shelf: Shelf, tmp_path: Path, text: str) -> None:
        shelf.source(text, "x")
        shelf.source("x", text)
        shelf.claim(text)
        shelf.learning("It is so. " * 20 + text)
        assert [entry.text for _, entry in shelf.base.entries()].count(text.replace("\f", "\ufffd")) == 2
        script = """
          (setq enable-local-variables :all)
          (dolist (path command-line-args-left)
            (with-current-buffer (find-file-noselect path)
              (goto-char (point-min))
              (when (or (/= fill-column 70) (search-forward "local variables:" nil t)) (princ path))))
          (setq command-line-args-left nil)
        """
        assert emacs(tmp_path, *(shelf.root / path for path in shelf.files()), script=script) == ""

    def test_an_edit_saved_by_emacs_between_our_reading_and_writing_is_kept(
        shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shelf.claim("old")
        script = """
          (setq auto-mode-alist nil) (find-file (pop command-line-args-left))
          (search-forward "\nold\n") (replace-match "\nolder\n" t t)
          (goto-char (point-max)) (insert "* mine\n") (save-buffer)
        """
        came = []

        def appended(draft: Draft, data: bytes) -> bytes:
            if not came:
                came.append(emacs(tmp_path, shelf.root / "knowledge/claims.org", script=script))
            return real(draft, data)

        real = Draft.appended
        monkeypatch.setattr(Draft, "appended", appended)
        shelf.claim("ours")
        assert [one.title for one in shelf.entries] == ["old", "mine", "ours"]
        assert shelf.entries[0].text == "older"


@pytest.mark.parametrize(
    ("title", "headline"),
    [
        ("Solar cells: a review", "Solar cells: a review"),
        ("At 12:30: the minutes", "At 12:30: the minutes"),
        ("C++: a tour", "C++: a tour"),
        ("https://a.example/b: its page", "https //a.example/b: its page"),
        ("Minutes:", "Minutes:"),
        ("Cells :new:", "Cells new:"),
        ("[a]:new:", "a new:"),
        ("elisp:(shell-command)", "elisp (shell-command)"),
    ],
)
def test_a_headline_keeps_each_colon_that_is_no_tag_and_no_link(title: str, headline: str) -> None:
    data = Draft("source", title, "text", ANN).appended(b"")
    (entry,) = (one for one, _ in KnowledgeFile(data, "x").entries)
    assert re.findall(r"^\*+ (.*)$", data.decode(), re.MULTILINE) == [headline]
    assert entry.title == title
