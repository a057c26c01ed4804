"""The pages of flights, the memory, the rules and the usage."""

from __future__ import annotations

import re
from html import unescape

import pytest
from field import Field, block, step
from pages_of_html import HOSTILE, WORD, elements, foreign, without_names, words_in
from sentences import IS_NOT_TRUSTED
from viewing import Viewed
from words import agent, files

from quoth.tools.history.transcript import Transcript
from quoth.tools.policy.project import workspace_policy

FLIGHTS, MEMORY, POLICY, STATS = (f"/view/{name}" for name in ("flights", "memory", "policy", "stats"))


@pytest.fixture
def field(view: Viewed) -> Field:
    return Field(view.folder)


def row_of(page: str, name: str) -> str:
    """The words of the row of a table in which a name is said."""
    rows = map(words_in, re.findall(r"<tr .*?</tr>", page, re.DOTALL))
    return next(row for row in rows if name in row)


def fly(field: Field, session: str = "s1", **more: object) -> None:
    field.fly(consent="yes", user="me", session=session, **more)


# Flights


def test_a_board_shows_what_each_step_of_a_plan_has_come_to(view: Viewed, field: Field) -> None:
    field.plan(
        "#+TITLE: Release",
        step("Build", head="*"),
        step("Compile", block("(put :x 1)"), head="**"),
        step("Link", block("(shaky)"), head="**", after="compile"),
        step("Ship", block("(look)"), after="link", expect="False"),
    )
    field.fails = 1
    browser = view.browser()
    assert "No plan was flown here" in browser.see(FLIGHTS)
    fly(field)
    listed = browser.see(FLIGHTS)
    assert f'href="{FLIGHTS}/s1/f1"' in listed
    assert "failed" in row_of(listed, "Release")
    board = browser.see(f"{FLIGHTS}/s1/f1")
    assert (foreign(board), without_names(board)) == ([], [])
    assert "data-live" in board
    assert "DONE s1." in row_of(board, "compile")
    assert re.search(r"FAILED s1.*it shook", row_of(board, "link"))
    assert "SKIPPED" in row_of(board, "ship") or "waits for link" in row_of(board, "ship")
    assert "1 of 3" in words_in(board)
    fly(field, wanted={"start": "link"})
    assert "DONE" in row_of(browser.see(f"{FLIGHTS}/s1/f1"), "link")


def test_a_board_of_a_plan_that_is_gone_shows_what_was_recorded(view: Viewed, field: Field) -> None:
    field.plan(step("Look", block("(look)")))
    fly(field)
    field.path.unlink()
    browser = view.browser()
    board = browser.see(f"{FLIGHTS}/s1/f1")
    assert "only its record." in words_in(board)
    assert "DONE" in row_of(board, "look")
    browser.see(f"{FLIGHTS}/s1/f2")
    assert browser.status == 404
    assert FLIGHTS + "/s1" not in view.browser("other").see(FLIGHTS)


def test_the_plan_of_an_imported_flight_is_not_read(view: Viewed, field: Field) -> None:
    field.plan(step("Secret title", block("(look)")))
    fly(field)
    with field.agent() as one:
        store = one._agent.store
        Transcript(lambda: store).mark_imported("s1", 1000)
    board = view.browser().see(f"{FLIGHTS}/s1/f1")
    assert "It was imported" in board
    assert "Secret title" not in board


# Memory


def test_a_block_is_shown_with_its_changes(view: Viewed) -> None:
    with agent(view.folder, user="me", consent="yes") as one:
        one.call('(block :operation "append" :label "tea/black" :content "green")')
        one.call('(block :operation "append" :label "tea/black" :content " and black")')
    browser = view.browser()
    listed = browser.see(MEMORY)
    assert f'href="{MEMORY}/agent?label=tea%2Fblack"' in listed
    page = browser.see(f"{MEMORY}/agent?label=tea/black")
    assert "<pre>green\n and black</pre>" in page
    assert re.search(r"Version 2, .*adds 1 line to tea/black", words_in(page), re.DOTALL)
    browser.see(f"{MEMORY}/agent?label=coffee")
    assert browser.status == 404


def test_a_memory_in_postgresql_is_shown(
    view: Viewed, memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_MEMORY", memory_url)
    with agent(view.folder, user="me", consent="yes", memory_url=memory_url) as one:
        one.call('(block :operation "append" :label "tea" :content "green")')
        one.call('(block :operation "append" :label "tea" :content " and black")')
    browser = view.browser()
    assert "read_write162" in row_of(browser.see(MEMORY), "tea")  # 16 characters, version 2
    page = browser.see(f"{MEMORY}/agent?label=tea")
    assert "<pre>green\n and black</pre>" in page
    assert "Version 2" in page
    monkeypatch.setenv("QUOTH_MEMORY", "postgresql://zoe:hush@127.0.0.1:1/notes")
    gone = browser.see(MEMORY)
    assert "127.0.0.1:1/notes" in gone
    assert "hush" not in gone


# Rules


def test_a_rule_is_shown_with_what_it_decided_lately(view: Viewed) -> None:
    rules = '(deny (read-file :path "a.txt") :why "secret")'
    files(view.folder, {"given.hy": f"{rules}\n(allow (echo))\n"})
    own = workspace_policy(view.folder)
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"{rules}\n(ask (list-files))\n(allow (echo))\n")
    with agent(view.folder, user="me", session="s1", policy=view.folder / "given.hy", audit=None) as one:
        assert one.call('(read-file :path "a.txt")').status == "denied"
        assert one.call('(echo :text "x")').ok
        assert one.call('(write-file :path "b.txt" :content "x")').status == "pending"
    browser = view.browser()
    page = browser.see(POLICY)
    assert browser.status == 200
    assert (foreign(page), without_names(page)) == ([], [])
    denied = row_of(page, "(deny (read-file")
    assert "1 deny" in denied
    assert "denied" in denied
    assert 'href="/view/sessions/s1?at=' in page
    assert "nothing lately" in row_of(page, "(ask (list-files))")
    assert "ignored: a workspace may only tighten" in row_of(page, "(allow (echo))")
    assert IS_NOT_TRUSTED in page


# Usage


def test_the_usage_is_a_chart_and_a_table(view: Viewed) -> None:
    browser = view.browser()
    assert "Nothing was called" in browser.see(STATS)
    with agent(view.folder, user="me", audit=None) as one:
        for n in range(3):
            one.call(f'(echo :text "{n}")')
    page = browser.see(STATS)
    assert (foreign(page), without_names(page)) == ([], [])
    names = [attributes["aria-label"] for tag, attributes in elements(page) if tag == "svg"]
    assert "Calls by day: 3 in all, at most 3 on a day" in names
    assert len(names) == 4
    bars = [tag for tag, _ in elements(page) if tag == "rect"]
    assert len(bars) == 1
    assert re.search(r"echo3", row_of(page, "echo"))


# All


def test_what_is_not_of_one_user_is_shown_to_the_owner_only(view: Viewed) -> None:
    with agent(view.folder, user="me") as one:
        one.call('(echo :text "x")')
    for path in (MEMORY, f"{MEMORY}/agent?label=x", POLICY, STATS):
        browser = view.browser("other")
        assert "sees its own sessions and requests only" in browser.see(path)
        assert browser.status == 404


def test_hostile_texts_stay_words_on_every_page(view: Viewed, field: Field) -> None:
    bad = HOSTILE.replace("\x07", "").replace("\x1b", "")
    first = step(bad, f"Do {bad}", block("(look)"), expect='(= 1 "<b>")')
    field.plan(f"#+TITLE: {bad}", first, step(WORD, bad))
    fly(field)
    own = workspace_policy(view.folder)
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('(deny (echo :text "<script>alert(1)</script>\u202e") :why "<img src=x>")\n')
    with agent(view.folder, user="me", session="s2", consent="yes", audit=None) as one:
        store = one._agent.store
        one.call('(block :operation "append" :label "tea" :content "one")')
        one.call('(echo :text "x")')
        store.execute("UPDATE blocks SET label = ?, description = ?, text = ?", ("<b onclick=x>", bad, bad))
        store.execute("UPDATE block_versions SET writer = ?, middle = ?", (WORD, bad))
        store.execute("UPDATE audit SET tool = ?, rule = ?, status = ?, id = id || ?", (bad, bad, WORD, WORD))
    browser = view.browser()
    paths = [FLIGHTS, f"{FLIGHTS}/s1/f1", MEMORY, POLICY, STATS]
    paths += [unescape(to) for to in re.findall(rf'href="({MEMORY}/agent[^"]*)"', browser.see(MEMORY))]
    for path in paths:
        page = browser.see(path)
        assert (path, browser.status, foreign(page), without_names(page)) == (path, 200, [], [])
    field.path.unlink()
    page = browser.see(f"{FLIGHTS}/s1/f1")
    assert (foreign(page), without_names(page)) == ([], [])
