"""A session as a page: turns, calls as a tree, durations, verdicts, changes of files and tokens. Nothing that
was said runs in it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from browser import BROWSER, seen_in_browser
from pages_of_html import HOSTILE, elements, foreign, without_names, words_in
from sentences import THERE_IS_A_FILE
from words import agent, files, quoth

from quoth.agent.session import window as window_module
from quoth.agent.session.changes import CallChanges
from quoth.agent.session.html import MOST_CHARS, Facts, as_html, timeline
from quoth.agent.session.window import LARGE, window
from quoth.tools.call.workspace import Workspace
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.versions import StoreVersions
from quoth.tools.storage.database import Store

EVIL = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
REPLIES = f"""It is {EVIL}.
(eval :form (len (read-file :path "a.txt")))
---
(write-file :path "b.txt" :content {json.dumps(EVIL)})
(read-file :path "none</pre>{EVIL.replace('"', "")}")
---
Done."""


def worked(folder: Path) -> Path:
    files(folder, {"a.txt": EVIL, "r.txt": REPLIES})
    task = ["run", f"Look at {EVIL}", "--model", "scripted:r.txt", "--session", "s1", "--no-input"]
    assert quoth(*task, cwd=folder).code == 3
    assert quoth("log", "s1", "--html", cwd=folder).out == "s1.html\n"
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worked(tmp_path_factory.mktemp("shop"))


def page(folder: Path) -> str:
    return (folder / "s1.html").read_text()


def test_a_page_tells_calls_verdicts_and_durations(folder: Path) -> None:
    text = page(folder)
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text))
    assert re.search(r"\(eval :form .{,60} ok \d+ ms policy: allow", words)
    assert re.search(r'\(read-file :path "a.txt"\) ok \d+ ms', words)
    assert re.search(r"\(write-file .* pending \d+ ms", words)
    assert "calls 4" in words
    assert text.index("(eval :form") < text.index('(read-file :path "a.txt') < text.index("(write-file")
    assert [re.findall(r"Turn \d", words), "2 Look at" in words] == [["Turn 1", "Turn 2"], False]


def test_no_word_of_a_session_is_markup(folder: Path) -> None:
    text = page(folder)
    assert (foreign(text), without_names(text)) == ([], [])
    assert "default-src 'none'" in text


def test_a_page_is_written_once_and_to_stdout_if_asked(tmp_path: Path) -> None:
    text, folder = page(worked(tmp_path)), tmp_path
    again = quoth("log", "s1", "--html", cwd=folder)
    assert (again.code, again.err) == (2, f"quoth: {THERE_IS_A_FILE} s1.html already.\n")
    assert quoth("log", "s1", "--html", "-", cwd=folder).out == text
    assert json.loads(quoth("log", "s1", "--html", "c.html", "--json", cwd=folder).out)["file"] == "c.html"


def drawn(store: Store, folder: Path, session: str = "s1") -> str:
    """The whole page of a session."""
    workspace = Workspace(folder)
    changes = CallChanges(StoreVersions(lambda: store, workspace.root), workspace, session)
    events = list(Transcript(lambda: store).events(session))
    return "".join(as_html(events, session, Facts(changed=changes.of)))


def test_whatever_is_said_stays_a_word(tmp_path: Path) -> None:
    said = json.dumps(HOSTILE)
    files(tmp_path, {"a.txt": f"one\n{HOSTILE}\ntwo\n"})
    replies = (
        f"<think>{HOSTILE}</think>{HOSTILE}",
        f'(eval :form (len (read-file :path "a.txt"))) (echo :text {said})'
        f' (edit-file {said} :old {said} :new "") (write-file {said} {said}) (nothing {said})',
        f'(write-file :path "a.txt" :content "{"x" * 3000}")',
        HOSTILE,
    )
    with agent(tmp_path, *replies, session="s1", user="ann <b>\u202e", consent="yes") as one:
        one.run(HOSTILE)
        one.run("Now work.")
        text = drawn(one._agent.store, tmp_path)
    assert (foreign(text), without_names(text)) == ([], [])
    words = words_in(text)
    assert "<script>document.title='ran'</script>" in words
    assert "\\u202egnp.exe" in words
    assert "Thoughts (" in words
    assert "replaces all 3 lines of a.txt" in words
    assert {"plus", "minus"} <= {attributes.get("class") for _, attributes in elements(text)}


def test_an_event_is_found_by_its_number(tmp_path: Path) -> None:
    with agent(tmp_path, '(echo :text "one")', "Done.", session="s1") as one:
        one.run("Say one.")
        page = drawn(one._agent.store, tmp_path)
        lines = {str(event.seq): event.kind for event in Transcript(lambda: one._agent.store).events("s1")}
    ids = {attributes["id"].removeprefix("e") for _, attributes in elements(page) if "id" in attributes}
    assert {kind for seq, kind in lines.items() if seq not in ids} == {"request"}
    assert all(f"#e{seq}" in page for seq, kind in lines.items() if kind == "call")


def test_a_very_long_text_is_cut_and_says_where_the_rest_is(tmp_path: Path) -> None:
    with agent(tmp_path, f"{'x' * MOST_CHARS}{'y' * 5000}", session="s1") as one:
        one.run("Say much.")
        page = drawn(one._agent.store, tmp_path)
    assert "5000 more characters" in words_in(page).replace(",", "")
    assert re.search(r"All of it: quoth log s1\.\d", words_in(page))
    assert len(page) < MOST_CHARS * 1.3


def test_a_part_of_a_session_has_whole_calls_and_leaves_large_events_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_module, "EVENTS", 10)
    with agent(tmp_path, *(f'(echo :text "{n}")' for n in range(4)), "Done.", session="s1") as one:
        one.run("Count.")
        one.call(f'(echo :text "{"x" * LARGE}")')
        store = one._agent.store
        parts = [window(store, "s1", at) for at in (1, 11, 21)]
        assert [part.first for part in parts] == [1, 11, 21]
        for part in parts:
            calls = {event.key for event in part.events if event.kind == "call"}
            assert calls == {event.key for event in part.events if event.kind == "receipt"}
        large = {event.kind for part in parts for event in part.events if event.seq in part.large}
        assert large == {"call", "receipt"}
        assert [set(part.before) for part in parts] == [set(), {"r1"}, {"r1"}]
        assert window(store, "s1", 5).first == 1
        assert window(store, "s1").last == window(store, "s1", 10**9).last == parts[-1].count
        assert f"All of it: quoth log s1.{max(parts[-1].large)}" in words_in(
            "".join(timeline(parts[-1].events, Facts(large=parts[-1].large)))
        )


def test_the_events_after_the_bytes_of_a_page_are_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    whole = Store.execute

    def counted(self: Store, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        rows = whole(self, sql, values)
        read.extend(one for row in rows for one in row if isinstance(one, str))
        return rows

    with agent(tmp_path, session="s1") as one:
        for n in range(9):
            one.call(f'(echo :text "{n}{"x" * 1_000}")')
        monkeypatch.setattr(window_module, "MOST_BYTES", 5_000)
        monkeypatch.setattr(Store, "execute", counted)
        part = window(one._agent.store, "s1")
    assert 0 < len(part.large) < len(part.events) == part.count
    assert all(event.text == "" for event in part.events if event.seq in part.large)
    assert sum(map(len, read)) < 15_000


if BROWSER:

    def test_a_browser_shows_it_and_runs_nothing(folder: Path) -> None:
        seen = seen_in_browser(folder / "s1.html")
        assert "<title>Session s1</title>" in seen
        assert seen.count("<details") >= 4
        text = re.sub("<meta http-equiv[^>]*>", "", page(folder))
        evil = folder / "evil.html"  # the browser would run what is markup
        evil.write_text(text.replace("<h1>", f"{EVIL}<h1>"))
        assert "<title>ran</title>" in seen_in_browser(evil)
        evil.write_text(page(folder).replace("<h1>", f"{EVIL}<h1>"))
        assert "<title>ran</title>" not in seen_in_browser(evil)  # and the page forbids it once more
