"""Who is let in to the pages: codes, cookies, and what a form must carry."""

from __future__ import annotations

import re
import stat
from dataclasses import replace

import pytest
from viewing import Viewed, forms

from quoth.agent.serve.keys import Keys
from quoth.agent.view.door import CODE_SECONDS, COOKIE_SECONDS
from quoth.tools.storage.paths import state_dir


def test_a_code_lets_a_browser_in_and_is_gone_from_the_address(view: Viewed) -> None:
    browser = view.outside()
    answer = browser.get("/view/in", params={"code": view.code()})
    assert (answer.status_code, answer.headers["location"]) == (303, "/view/")
    cookie = answer.headers["set-cookie"].lower()
    assert all(part in cookie for part in ("httponly", "samesite=lax", "path=/view", "max-age=43200"))
    assert "Nothing waits" in browser.see("/view/")
    assert "me may decide" in browser.see("/view/")


def test_a_code_is_used_once_by_a_browser_and_not_by_a_program_that_looks(view: Viewed) -> None:
    code = view.code()
    assert view.outside().head("/view/in", params={"code": code}).status_code == 405
    assert view.outside().get("/view/in", params={"code": code}).status_code == 303
    again = view.outside().get("/view/in", params={"code": code})
    assert again.status_code == 401
    assert "set-cookie" not in again.headers
    assert "quoth view" in again.text


def test_a_code_is_refused_late_elsewhere_and_made_up(view: Viewed) -> None:
    late = view.code()
    view.clock.now += CODE_SECONDS + 1
    made_up = ["", "x" * 32, "../" * 8, "a" * 10_000, "\0" * 24]
    for code in (late, view.code(server="other"), view.code("stranger"), *made_up):
        assert view.outside().get("/view/in", params={"code": code}).status_code == 401


def test_only_the_owner_reads_a_code_and_no_file_has_it(view: Viewed) -> None:
    code = view.code()
    (found,) = (state_dir() / "view" / "codes").iterdir()
    assert stat.S_IMODE(found.stat().st_mode) == 0o600
    assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
    assert code not in found.name + found.read_text()


def test_a_cookie_ends_with_its_time_and_with_signing_out(view: Viewed) -> None:
    first, second = view.browser(), view.browser()
    page = first.see("/view/")
    stolen = dict(first.cookies)
    assert "signed out" in first.press(page, "Sign out")
    other = view.outside()
    other.cookies.update(stolen)
    assert other.get("/view/").status_code == 401
    assert second.get("/view/").status_code == 200
    view.clock.now += COOKIE_SECONDS + 1
    assert second.get("/view/").status_code == 401


def test_a_cookie_ends_with_the_token_of_its_key(view: Viewed) -> None:
    first, other = view.browser(), view.browser("chat")
    me, *others = view.door.keys.keys
    view.door.keys = Keys((replace(me, token=f"new-{me.token}"), *others))
    assert first.get("/view/").status_code == 401
    assert other.get("/view/").status_code == 200
    assert view.browser().get("/view/").status_code == 200


def test_the_oldest_of_too_many_visitors_is_out(view: Viewed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.agent.view.door.MOST", 2)
    first, *others = [view.browser() for _ in range(4)]
    assert first.get("/view/").status_code == 401
    assert [one.get("/view/").status_code for one in others] == [401, 200, 200]


def test_without_a_cookie_every_page_and_stream_is_closed(view: Viewed) -> None:
    browser = view.outside()
    for path in ("/view/", "/view/request/x", "/view/events", "/view/nothing"):
        assert browser.get(path).status_code == 401
    assert browser.post("/view/request/x/decide", data={"kind": "once"}).status_code == 401
    for name in ("style.css", "view.js", "icon.svg"):
        assert browser.get(f"/view/{name}").status_code == 200
    assert browser.get("/view", follow_redirects=False).headers["location"] == "/view/"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8420", "evil.localhost"])
def test_another_host_reaches_nothing(view: Viewed, host: str) -> None:
    browser = view.browser()
    assert browser.get("/view/", headers={"Host": host}).status_code == 421
    assert (
        view.outside().get("/view/in", params={"code": view.code()}, headers={"Host": host}).status_code
        == 421
    )


def test_a_form_of_another_page_is_refused(view: Viewed) -> None:
    browser, other = view.browser(), view.browser()
    own = forms(browser.see("/view/"))["Sign out"]
    foreign = forms(other.see("/view/"))["Sign out"]
    for fields in ({}, {"csrf": ""}, {"csrf": "é" * 32}, foreign.fields):
        assert browser.post(own.action, data=fields).status_code == 403
    for origin in ("http://127.0.0.1:3000", "http://localhost:8420", "null", "https://evil.example"):
        assert browser.post(own.action, data=own.fields, headers={"Origin": origin}).status_code == 403
    assert browser.post(own.action, content="csrf=1&csrf=1").status_code == 400
    assert browser.post(own.action, content=b"csrf=\xff").status_code == 400
    assert browser.post(own.action, content=b"x" * 300_000).status_code == 413
    assert browser.get("/view/").status_code == 200
    same = {"Origin": "http://127.0.0.1:8420"}
    assert browser.post(own.action, data=own.fields, headers=same).status_code == 200


def test_every_answer_forbids_scripts_frames_and_copies(view: Viewed) -> None:
    browser = view.browser()
    answers = [
        browser.get("/view/"),
        browser.get("/view/nothing"),
        view.outside().get("/view/"),
        browser.get("/view"),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not re.search(r"<script(?! src=\"/view/view.js\")|\son\w+=|\sstyle=", answer.text)
