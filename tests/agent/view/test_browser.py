"""The pages in a real browser: scripts on and off, a phone's width, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import npm
import pytest
from browser import BROWSER, Chromium, Tab
from viewing import Viewed
from words import agent, files

from quoth import Agent
from quoth.agent.cli.desk import WorkspaceDesk
from quoth.agent.view.places import PLACES

pytestmark = pytest.mark.skipif(not BROWSER, reason="needs a Chromium")
PHONE = 360
WRITE = '(write-file :path "a.txt" :content "one\\nzwei\\n")'
READ = '(read-file :path "a.txt")'
PLAN = "* PLAN build\n#+begin_src hy\n(+ 1 2)\n#+end_src\n"
ASK = '(ask-person :question "Which colour?" :choices ["red" "blue"])'
WIDE = f'(write-file :path "{"long-name-" * 12}.txt" :content "{"word" * 400}")'
# What axe finds grave in a page.
AXE = """axe.run(document).then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => one.id + " " + one.nodes.map(node => node.html + node.failureSummary).join(" ")))"""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


def let_in(view: Viewed, tab: Tab, home: str) -> None:
    tab.go(f"{home}in?code={view.code()}")
    assert tab.run("location.href") == home


def template_of(path: str) -> str:
    """The path of the place that serves a page; empty if none does."""
    shapes = {
        place.path: re.sub(r"\\{\w+(:path)?\\}", "[^/]+", re.escape(place.path))
        for place in PLACES
        if not place.posts
    }
    return next((name for name, shape in shapes.items() if re.fullmatch(shape, urlsplit(path).path)), "")


def test_every_page_fits_a_phone_and_has_no_grave_fault(view: Viewed, ann: Agent, chromium: Chromium) -> None:
    """From link to link, until a page of each place was seen, and each request."""
    files(view.folder, {"plan.org": PLAN})
    with agent(view.folder, READ, WRITE, "Done.", consent="yes", user="me") as worker:
        worker.run(f"A {'very-' * 30}long task")
        worker.fly(view.folder / "plan.org")
        worker.call('(block :operation "append" :label "human" :content "likes pears")')
        undo = f"/view/sessions/{worker.session}/undo"
    for form in (WRITE, ASK, WIDE):
        ann.call(form)
    axe = Path(npm.program("axe-core", "axe.min.js")).read_text() if npm.IS_ASKED else ""
    left = [*(place.path for place in PLACES if place.name), undo]
    paths, seen = set[str](), set[str]()
    with view.served() as home:
        tab = chromium.tab()
        let_in(view, tab, home)
        while left:
            path = left.pop(0)
            template = template_of(path)
            assert template, path
            if path in paths or (template in seen and "{id}" not in template):
                continue
            paths.add(path)
            seen.add(template)
            for dark, scripts in ((False, False), (True, True)):
                tab.looks(width=PHONE, dark=dark, scripts=scripts)
                tab.go(home.removesuffix("/view/") + path)
                assert tab.run("document.documentElement.scrollWidth") <= PHONE, path
                assert tab.complaints() == [], path
                ground = tab.run("getComputedStyle(document.body).backgroundColor")
                assert (ground == "rgb(255, 255, 255)") is not dark
            links = tab.run("[...document.querySelectorAll('main a')].map(one => one.getAttribute('href'))")
            left += [link for link in links if link.startswith("/view/") and link not in left]
            tab.run(axe)
            for dark in (True, False) if axe else ():
                tab.looks(width=PHONE, dark=dark)
                assert tab.run(AXE) == [], path
    assert seen == {place.path for place in PLACES if not place.posts}


@pytest.mark.parametrize("scripts", [True, False])
def test_a_request_is_approved_on_a_phone(
    view: Viewed, ann: Agent, chromium: Chromium, scripts: bool
) -> None:
    with view.served() as home:
        tab = chromium.tab()
        tab.looks(width=PHONE, scripts=scripts)
        let_in(view, tab, home)
        assert "Nothing waits" in tab.text
        ann.call(WRITE)
        (request,) = ann.broker.requests()
        if scripts:
            tab.until("document.body.innerText.includes('1 request waits')")  # by itself
            assert "Updated" in tab.text
        else:
            tab.go(home)
        tab.press(f"Request {request.id}")
        assert "+ zwei" in tab.text
        tab.press("Approve once")
        tab.press("Yes, approve once")
        assert "approved once by me" in tab.text
        assert ann.call(WRITE).status == "ok"


def test_what_is_recorded_while_a_page_opens_is_shown(
    view: Viewed, chromium: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = WorkspaceDesk.version

    def recorded_first(desk: WorkspaceDesk) -> str:
        monkeypatch.setattr(WorkspaceDesk, "version", look)
        with agent(view.folder) as other:
            other.call(WRITE)
        return look(desk)

    monkeypatch.setattr(WorkspaceDesk, "version", recorded_first)
    with view.served() as home:
        tab = chromium.tab()
        tab.looks()
        let_in(view, tab, home)
        tab.until("document.body.innerText.includes('1 request waits')")


def test_the_keyboard_skips_to_the_content_and_sees_where_it_is(
    view: Viewed, ann: Agent, chromium: Chromium
) -> None:
    ann.call(WRITE)
    with view.served() as home:
        tab = chromium.tab()
        tab.looks()
        let_in(view, tab, home)
        key = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
        tab.ask("Input.dispatchKeyEvent", type="keyDown", **key)
        assert tab.run("document.activeElement.innerText") == "Skip to the content"
        assert tab.run("document.activeElement.getBoundingClientRect().left") >= 0
        tab.ask("Input.dispatchKeyEvent", type="keyDown", **key)
        assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_focus_stays_where_it_was_when_a_page_is_fetched_again(
    view: Viewed, ann: Agent, chromium: Chromium
) -> None:
    ann.call(ASK)
    ann.call(WRITE)
    _, request = ann.broker.requests()
    with view.served() as home:
        tab = chromium.tab()
        let_in(view, tab, home)
        tab.run("[...document.querySelectorAll('main a')].at(-1).focus()")
        ann.call(WIDE)
        tab.until("document.body.innerText.includes('3 requests wait')")
        assert tab.run("document.activeElement.innerText") == f"Request {request.id}"
        tab.go(f"{home}request/{request.id}")
        tab.run("[...document.querySelectorAll('main button')].at(-1).focus()")
        files(view.folder, {"a.txt": "one\nother\n"})
        ann.call('(echo :text "recorded")')
        tab.until("document.body.innerText.includes('- other')")
        assert tab.run("document.activeElement.innerText") == "Deny …"


def test_a_text_that_someone_types_is_not_taken_away(view: Viewed, ann: Agent, chromium: Chromium) -> None:
    ann.call(WRITE)
    (request,) = ann.broker.requests()
    with view.served() as home:
        tab = chromium.tab()
        let_in(view, tab, home)
        tab.go(f"{home}request/{request.id}")
        tab.run("document.getElementById('why').focus()")
        tab.ask("Input.insertText", text="because")
        files(view.folder, {"a.txt": "one\nother\n"})
        ann.call('(echo :text "recorded")')
        tab.until("document.getElementById('news').innerText.includes('Reload')")
        assert tab.run("document.getElementById('why').value") == "because"
