"""What waits, as a browser with scripts off sees it and decides it."""

from __future__ import annotations

import os
import re

import pytest
from viewing import Browser, Viewed, forms
from words import agent, files

from quoth import Agent
from quoth.agent.cli import desk
from quoth.agent.cli.options import Options
from quoth.tools.consent.requests import Decision, Request
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

WRITE = '(write-file :path "a.txt" :content "one\\nzwei\\n")'
ONCE, SCOPE, DENY, ANSWER = "Approve once", "Approve this scope", "Deny", "Answer"
TIME, EDIT = "Approve for a time", "Approve this call instead"
HOSTILE = "<script>alert(1)</script></pre><img src=x onerror=alert(1)>\u202egnp.exe \x1b[2J [x](javascript:y)"
SEEN = "&lt;script&gt;alert(1)&lt;/script&gt;&lt;/pre&gt;&lt;img src=x onerror=alert(1)&gt;\\u202egnp.exe"


def asked(one: Agent, form: str = WRITE) -> Request:
    """The request that a call waits for."""
    assert one.call(form).status == "pending"
    return one.broker.requests()[-1]


def now(one: Agent, request: Request) -> Request:
    return one.broker.find(request.id)


def page_of(browser: Browser, request: Request) -> str:
    return browser.see(f"/view/request/{request.id}")


def test_what_waits_is_shown_with_all_that_a_decision_needs(view: Viewed, ann: Agent) -> None:
    browser = view.browser()
    assert "Nothing waits" in browser.see("/view/")
    request = asked(ann)
    listed = browser.see("/view/")
    assert "1 request waits" in listed
    assert f'href="/view/request/{request.id}"' in listed
    page = page_of(browser, request)
    for part in (
        "write-file",
        "replaces 1 of 2 lines of a.txt",
        ann.session,
        request.reason,
        "asked at",
        request.rule,
    ):
        assert part in page.replace("&quot;", '"')
    assert '<span class="minus">- two</span><span class="plus">+ zwei</span>' in page
    assert browser.get(f"/view/request/{request.id}").headers["cache-control"] == "no-store"


def test_each_record_makes_a_page_be_fetched_again(view: Viewed, ann: Agent) -> None:
    def version() -> str:
        for end in ("", "-wal"):
            os.utime(f"{store_path(view.folder)}{end}", (1, 1))
        return view.desk.version()

    request = asked(ann)
    ann._agent.store.execute("PRAGMA wal_checkpoint(RESTART)")
    seen = [version()]
    ann.call('(echo :text "x")')
    seen.append(version())
    view.desk.decide(request, Decision("once", by="me"), None)
    seen.append(version())
    assert len({*seen}) == 3
    assert version() == seen[-1]


def test_a_page_that_is_fetched_again_loads_no_tools_and_a_decision_does(
    view: Viewed, ann: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = desk.tools_of_session

    def counted(options: Options, store: Store | None, request: Request) -> ToolTable:
        loaded.append(request.session)
        return load(options, store, request)

    monkeypatch.setattr(desk, "tools_of_session", counted)
    browser, request = view.browser(), asked(ann)
    page = page_of(browser, request)
    ann.call('(echo :text "recorded")')
    assert page_of(browser, request) == page
    assert loaded == [ann.session]
    browser.press(page, ONCE)
    assert len(loaded) > 1
    monkeypatch.setattr(desk, "TOOLS_SECONDS", -1.0)
    browser.press(page, ONCE)
    loaded.clear()
    page_of(browser, request)
    assert loaded == [ann.session]


def test_one_call_is_approved_once_after_it_was_asked_again(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    sure = browser.press(page_of(browser, request), ONCE)
    assert "+ zwei" in sure
    assert now(ann, request).state == "pending"
    done = browser.press(sure, "Yes, approve once")
    assert "approved once by me" in done
    assert ann.call(WRITE).status == "ok"
    assert (view.folder / "a.txt").read_text() == "one\nzwei\n"
    assert ann.call('(write-file :path "a.txt" :content "three")').status == "pending"


def test_a_scope_is_approved_as_the_text_of_its_rule(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    rule = '(allow (write-file :path "a.txt"))'
    sure = browser.press(page_of(browser, request), SCOPE, rule=rule)
    assert rule in sure
    assert "8 h" in sure
    assert "leaves" in sure  # which arguments it does not name
    browser.press(sure, "Yes, approve this scope")
    assert now(ann, request).decision == "scope"
    assert ann.call('(write-file :path "a.txt" :content "x")').status == "ok"
    assert ann.call('(write-file :path "b.txt" :content "x")').status == "pending"


def test_the_same_call_is_approved_for_a_time(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    assert "not soon" in browser.press(page_of(browser, request), TIME, time="soon")
    sure = browser.press(page_of(browser, request), TIME, time="90m")
    assert "for 90 minutes?" in sure
    browser.press(sure, "Yes, approve for this time")
    assert now(ann, request).decision == "duration"
    assert [ann.call(WRITE).status for _ in range(2)] == ["ok", "ok"]


def test_an_edited_call_is_approved_as_it_was_shown(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    page = page_of(browser, request)
    for wrong in ("(echo :text 1)", "(write-file", ""):
        assert 'role="alert"' in browser.press(page, EDIT, call=wrong)
    assert "zwei" in forms(page)[EDIT].fields["call"]
    other = '(write-file :path "b.txt" :content "drei\\n")'
    sure = browser.press(page, EDIT, call=other)
    assert "+ drei" in sure
    files(view.folder, {"b.txt": "of another\n"})
    again = browser.press(sure, "Yes, approve this call instead")
    assert (browser.status, now(ann, request).state) == (409, "pending")
    assert "- of another" in again
    browser.press(again, "Yes, approve this call instead")
    assert now(ann, request).decision == "edit"
    assert ann.call(WRITE).ok
    assert (view.folder / "b.txt").read_text() == "drei\n"
    assert (view.folder / "a.txt").read_text() == "one\ntwo\n"


def test_a_rule_that_does_not_fit_is_a_sentence(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    for rule in ('(allow (write-file :path "z.txt"))', "(allow", "(deny (write-file))"):
        assert 'role="alert"' in browser.press(page_of(browser, request), SCOPE, rule=rule)
        assert browser.status == 409
    assert now(ann, request).state == "pending"


def test_a_denial_has_its_reason(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    sure = browser.press(page_of(browser, request), DENY, why="not <b>that</b> file")
    assert "not &lt;b&gt;that&lt;/b&gt; file" in sure
    browser.press(sure, "Yes, deny")
    assert (now(ann, request).decision, now(ann, request).why) == ("deny", "not <b>that</b> file")


@pytest.mark.parametrize(
    ("choices", "said", "means"), [("", "blue\r\nish", "blue\nish"), (':choices ["a" "b"]', "2", "b")]
)
def test_a_question_is_answered_in_words(
    view: Viewed, ann: Agent, choices: str, said: str, means: str
) -> None:
    browser, request = view.browser(), asked(ann, f'(ask-person :question "Which <i>colour</i>?" {choices})')
    page = page_of(browser, request)
    assert "Which &lt;i&gt;colour&lt;/i&gt;?" in page
    assert ONCE not in forms(page)
    sure = browser.press(page, ANSWER, answer=said)
    assert means in sure
    assert "answered by me" in browser.press(sure, "Yes, answer")
    assert means in str(ann.call(request.form).value)


def test_a_choice_is_sent_as_its_words(view: Viewed, ann: Agent) -> None:
    question = '(ask-person :question "How many?" :choices ["10" "5" "1"] :only True)'
    browser, request = view.browser(), asked(ann, question)
    page = page_of(browser, request)
    first, *_ = re.findall(r'type="radio" name="answer" value="([^"]*)"', page)
    browser.press(browser.press(page, ANSWER, answer=first), "Yes, answer")
    assert ann.call(request.form).value == "10"


def test_two_tabs_are_one_decision(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    first = browser.press(page_of(browser, request), ONCE)
    second = browser.press(page_of(browser, request), DENY, why="no")
    browser.press(first, "Yes, approve once")
    assert "decided before" in browser.press(second, "Yes, deny")
    assert browser.status == 409
    assert now(ann, request).decision == "once"


@pytest.mark.parametrize("step", ["page", "sure"])
def test_a_difference_that_is_not_as_shown_is_shown_again(view: Viewed, ann: Agent, step: str) -> None:
    browser, request = view.browser(), asked(ann)
    page = page_of(browser, request)
    sure = browser.press(page, ONCE)
    files(view.folder, {"a.txt": "one\nother\n"})
    page_of(view.browser(), request)  # another tab sees the new one: this one has not
    again = browser.press(page, ONCE) if step == "page" else browser.press(sure, "Yes, approve once")
    assert browser.status == 409
    assert "nothing was decided" in again
    assert "- other" in again
    assert "data-live" in page
    assert "data-live" not in again  # a script would get nothing at the address of a form
    assert now(ann, request).state == "pending"
    done = browser.press(browser.press(again, ONCE), "Yes, approve once")
    assert "approved once" in done
    assert ann.call(WRITE).status == "ok"


def test_an_approval_is_for_the_files_that_were_shown(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    browser.press(browser.press(page_of(browser, request), ONCE), "Yes, approve once")
    files(view.folder, {"a.txt": "one\nother\n"})
    assert ann.call(WRITE).status == "pending"


def test_a_key_that_may_only_ask_sees_its_own_and_decides_nothing(view: Viewed) -> None:
    browser, other = view.browser("chat"), view.browser("other")
    with agent(view.folder, user="chat") as one:
        request = asked(one)
        page = page_of(browser, request)
        assert "+ zwei" in page
        assert "may look, not decide" in page
        assert [*forms(page)] == ["Sign out"]
        own = forms(page)["Sign out"].fields
        for path in ("sure", "decide"):
            sent = browser.post(f"/view/request/{request.id}/{path}", data=own | {"kind": "once"})
            assert sent.status_code == 403
            assert "may look, not decide" in sent.text
        for foreign in (other, view.browser()):
            assert request.id not in foreign.see("/view/")
            page_of(foreign, request)
            assert foreign.status == 404
            mine = forms(foreign.see("/view/"))["Sign out"].fields
            sent = foreign.post(f"/view/request/{request.id}/decide", data=mine | {"kind": "deny"})
            assert sent.status_code == 409
        assert now(one, request).state == "pending"


def test_every_form_needs_its_token(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    page = page_of(browser, request)
    sure = browser.press(page, ONCE)
    found = [*forms(page).values(), *forms(sure).values()]
    assert len(found) >= 6
    for form in found:
        for token in ({}, {"csrf": ""}, {"csrf": "x" * 32}):
            fields = {name: value for name, value in form.fields.items() if name != "csrf"}
            assert browser.post(form.action, data=fields | token).status_code == 403
    assert now(ann, request).state == "pending"


def test_a_form_without_sense_decides_nothing(view: Viewed, ann: Agent) -> None:
    browser, request = view.browser(), asked(ann)
    own = forms(page_of(browser, request))[ONCE]
    for fields in ({"kind": "edit"}, {"kind": ""}, {"kind": "answer", "answer": "x"}, {"shown": "0"}):
        assert browser.post(own.action, data=own.fields | fields).status_code == 409
    scope = own.fields | {"kind": "scope", "rule": request.rule}
    for seconds in ("x", "nan", "inf", "-1", "1e99"):
        assert browser.post(own.action, data=scope | {"seconds": seconds}).status_code == 409
    for path in ("/view/request/nothing", "/view/request/%00", "/view/request/a/b"):
        assert browser.get(path).status_code == 404
    assert now(ann, request).state == "pending"


def test_hostile_texts_are_only_words(view: Viewed) -> None:
    browser = view.browser()
    names = {f"{HOSTILE[:25]}.txt".replace("/", "-"): f"{HOSTILE}\n"}
    files(view.folder, names)
    (name,) = names
    text = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
    with agent(view.folder, f'(ask-person :question "{text}" :choices ["{text}" "b"])', "ok") as one:
        write = asked(one, f'(write-file :path "{name}" :content "{text}!")')
        ask = one.run(HOSTILE)
        assert ask.status == "pending"
        pages = [browser.see("/view/")]
        for request in one.broker.requests():
            page = page_of(browser, request)
            deny = browser.press(page, DENY, why=HOSTILE)
            assert SEEN in deny
            pages += [page, deny]
        assert any(f"- {SEEN}" in page for page in pages)
        pages.append(browser.press(page_of(browser, write), SCOPE, rule=HOSTILE))
    for page in pages:
        assert "<img" not in page
        assert page.count("<script") == 1
        assert not {"\u202e", "\x1b", "\0"} & {*re.sub(r' value="[^"]*"', "", page)}
