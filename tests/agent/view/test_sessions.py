"""The pages of sessions: the list, its search, the timeline of one, and the undo of its writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pages_of_html import HOSTILE, foreign, without_names, words_in
from sentences import THERE_IS_NO_SESSION
from viewing import Browser, Viewed, forms, viewed
from words import agent

from quoth.agent.session.session import alone
from quoth.agent.view import sessions as page_module
from quoth.agent.view.sessions import ROWS
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path
from tests.bench.sessions import fill

LIST = "/view/sessions"
READ = '(read-file :path "a.txt")'


def worked(view: Viewed, session: str, *replies: str, task: str = "Work.", **more: Any) -> None:
    """A run in a session, with every call allowed."""
    with agent(view.folder, *replies, session=session, **{"consent": "yes", "user": "me", **more}) as one:
        one.run(task)


def write(path: str, content: str) -> str:
    return f'(write-file :path "{path}" :content "{content}")'


def test_sessions_are_listed_the_latest_first_in_pages(view: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = view.browser()
    assert "Nothing was recorded" in browser.see(LIST)
    monkeypatch.setattr(page_module, "ROWS", 2)
    for name in ("s1", "s2", "s3"):
        worked(view, name, "Done.", task=f"Task of {name}")
    with agent(view.folder, session="single", user="me") as one:
        one.call('(echo :text "one")')
    page = browser.see(LIST)
    assert ">single<" not in page
    assert page.index("Task of s3") < page.index("Task of s2")
    assert "Task of s1" not in page
    (older,) = [part.split('"')[0] for part in page.split('href="') if "before=" in part.split('"')[0]]
    assert "Task of s1" in browser.see(older.replace("&amp;", "&"))
    assert ">single<" in browser.see(f"{LIST}?all=1")


def test_a_session_of_another_user_is_as_unknown_as_none(view: Viewed) -> None:
    worked(view, "s1", "Done.", task="Secret of bob", user="bob")
    with agent(view.folder, "Done.", session="shared", user="me") as one:
        one.run("Both")
    with agent(view.folder, "Done.", session="shared", user='bob :user "me"') as one:
        one.run("Both")
    browser = view.browser()
    assert f"{THERE_IS_NO_SESSION} of yours here" in browser.see(LIST)
    assert "bob" not in browser.see(f"{LIST}?q=secret") + browser.see(f"{LIST}?q=s1")
    for name in ("s1", "shared"):
        there, nowhere = browser.see(f"{LIST}/{name}"), browser.see(f"{LIST}/s9")
        assert browser.status == 404
        assert words_in(there).replace(name, "s9") == words_in(nowhere)
        browser.see(f"{LIST}/{name}/undo")
        assert browser.status == 404


def test_a_search_finds_what_was_said_and_leads_to_it(view: Viewed) -> None:
    worked(view, "s1", "The heron flew over the lake.", task="What did it do?")
    worked(view, "s2", "Nothing.")
    browser = view.browser()
    found = browser.see(f"{LIST}?q=herons")
    assert f'href="{LIST}/s1?at=4#e4"' in found
    assert f"{LIST}/s2" not in found
    assert f'href="{LIST}/s2"' in browser.see(f"{LIST}?q=s2")
    assert "Nothing was found" in browser.see(f"{LIST}?q=zebra")
    for query in ('"', "NEAR(", "%00", "a" * 3000):
        browser.see(f"{LIST}?q={query}")
        assert browser.status == 200


def test_the_hits_of_a_search_are_counted_after_those_of_others(
    view: Viewed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "HITS", 2)
    worked(view, "s-own", "A heron, a heron.", task="Look.")
    for n in range(3):
        for user in ("me", "bob"):
            with agent(view.folder, "A heron heron heron.", session=f"s-of-both{n}", user=user) as one:
                one.run("Heron.")
    browser = view.browser()
    for query in ("heron", "s-"):
        page = browser.see(f"{LIST}?q={query}")
        assert f'href="{LIST}/s-own' in page
        assert "s-of-both" not in page


def test_a_timeline_shows_what_a_call_changed_and_offers_its_undo(view: Viewed) -> None:
    worked(view, "s1", READ, write("a.txt", "one\\n"), "Done.")
    browser, looker = view.browser(), view.browser("chat")
    page = browser.see(f"{LIST}/s1")
    assert (foreign(page), without_names(page)) == ([], [])
    assert "removes 1 of 2 lines of a.txt" in words_in(page)
    (to,) = re.findall(rf'href="{LIST}/s1/undo\?to=(\d+)"', page)
    assert f'id="e{to}" class="call"' in page
    assert "data-live" in page
    worked(view, "s2", write("b.txt", "x"), "Done.", user="chat")
    assert "undo" not in looker.see(f"{LIST}/s2")
    assert looker.status == 200


def undo_of(browser: Browser, session: str = "s1", query: str = "") -> str:
    return browser.see(f"{LIST}/{session}/undo{query}")


def test_an_undo_is_shown_confirmed_and_done_as_by_the_command(view: Viewed) -> None:
    worked(view, "s1", READ, write("a.txt", "one\\n"), write("b.txt", "b"), "Done.")
    browser = view.browser()
    preview = undo_of(browser)
    assert (foreign(preview), without_names(preview)) == ([], [])
    assert "+ two" in words_in(preview)
    assert "removes b.txt" in words_in(preview)
    assert (view.folder / "b.txt").exists()
    done = browser.press(preview, "Put back 2 files")
    assert f"To redo: quoth undo s1 --redo --workspace {view.folder}" in words_in(done)
    with agent(view.folder, user="ann") as one:
        assert one._agent.store.execute("SELECT DISTINCT user FROM writes WHERE act = 'u1'") == [("me",)]
    assert (view.folder / "a.txt").read_text() == "one\ntwo\n"
    assert not (view.folder / "b.txt").exists()
    again = undo_of(browser)
    assert (browser.status, "already undone" in words_in(again)) == (404, True)
    redo = undo_of(browser, query="?redo=1")
    assert "Redid the changes of 2 files." in words_in(browser.press(redo, "Redo the changes of 2 files"))
    assert (view.folder / "b.txt").read_text() == "b"
    page = browser.see(f"{LIST}/s1")
    assert "Undid changes (u1)" in words_in(page)


def test_only_what_was_shown_is_undone(view: Viewed) -> None:
    worked(view, "s1", READ, write("a.txt", "one\\n"), write("b.txt", "b"), "Done.")
    browser = view.browser()
    preview = undo_of(browser)
    (view.folder / "b.txt").write_text("of another")
    anew = browser.press(preview, "Put back 2 files")
    assert "The files have changed since this was shown." in words_in(anew)
    assert (view.folder / "a.txt").read_text() == "one\n"
    assert "Put back 1 file" in forms(anew)
    (view.folder / "a.txt").write_text("of another")
    gone = browser.press(anew, "Put back 1 file")
    assert (browser.status, "Nothing can be undone" in words_in(gone)) == (409, True)
    assert "changed since by another program" in words_in(gone)


def test_an_undo_needs_the_right_the_token_and_the_session_to_itself(view: Viewed) -> None:
    worked(view, "s1", READ, write("a.txt", "one\\n"), "Done.")
    browser = view.browser()
    preview = undo_of(browser)
    browser.press(preview, "Put back 1 file", csrf="guessed")
    assert browser.status == 403
    with alone(store_path(view.folder), "s1"):
        busy = browser.press(preview, "Put back 1 file")
    assert (browser.status, "driven by another process" in words_in(busy)) == (409, True)
    assert (view.folder / "a.txt").read_text() == "one\n"
    worked(view, "s2", "Done.", user="chat")
    looker = view.browser("chat")
    assert "may look, not decide" in undo_of(looker, "s2")
    assert looker.status == 403
    token = forms(looker.see("/view/"))["Sign out"].fields
    plan = forms(undo_of(browser))["Put back 1 file"]
    assert looker.post(plan.action, data=plan.fields | token).status_code == 403
    assert (view.folder / "a.txt").read_text() == "one\n"


def test_hostile_texts_stay_words_on_every_page_of_a_session(view: Viewed) -> None:
    (view.folder / "a.txt").write_text(HOSTILE)
    worked(view, "s1", f"<think>{HOSTILE}</think>{HOSTILE} heron", task=HOSTILE)
    worked(view, "s2", READ, write("a.txt", "x"), write("<b>.txt", "x"), "Done.")
    browser = view.browser()
    for path in (LIST, f"{LIST}?q=heron", f"{LIST}/s1", f"{LIST}/s2", f"{LIST}/s2/undo", f"{LIST}/<b>"):
        page = browser.see(path)
        assert (path, foreign(page), without_names(page)) == (path, [], [])
    assert "\\u202egnp.exe" in words_in(browser.see(f"{LIST}/s1"))


def test_the_first_page_of_many_sessions_asks_no_more_than_of_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    whole = Store.execute

    def counted(self: Store, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        rows = whole(self, sql, values)
        asked.append(len(rows))
        return rows

    monkeypatch.setattr(Store, "execute", counted)
    monkeypatch.setenv("LOGNAME", "ann")  # whose sessions those are
    costs = []
    for sessions in (60, 240):
        (work := tmp_path / str(sessions) / "shop").mkdir(parents=True)
        view = viewed(work)
        fill(work, sessions=sessions, rows=0, steps=[])
        (browser := view.browser()).see(LIST)
        asked.clear()
        assert browser.see(LIST).count("<tr ") == 1 + ROWS
        costs.append((len(asked), sum(asked) - max(asked)))
    assert costs[0] == costs[1]
