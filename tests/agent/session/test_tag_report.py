"""Response tags as people look at them: what is shown of a reply, what became of each of a session."""

from __future__ import annotations

import json
from pathlib import Path

from sentences import IS_NOT_A_CALL, NO_TOOL_HAS_THE_TAG
from words import Agent, ModelOptions, files, lines, quoth, scripted, tool

from quoth.agent.session.org import as_org
from quoth.agent.session.render import as_text
from quoth.agent.session.stats import tag_lines
from quoth.tools.call.call import deny
from quoth.tools.consent.requests import Decision
from quoth.tools.history.event import Event
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

BOT = r"""(require quoth [def-cognitive-tool])
(def-cognitive-tool research "Search."
  :parameters [query {}]  :tag "RESEARCH"  :daily-limit 1  :body query)
(def-cognitive-tool learning "Record."
  :parameters [category {}  content {}]
  :tag {:prefix "LEARNING"  :pattern r"(factual|style)\s+(.+)"  :groups ["category" "content"]}
  :body content)
"""
REPLY = """I look.

RESEARCH: solar cells
LEARNING: gossip It is so
RESEARCH: wind
FOO: x

CONFIDENCE: 0.8
Bye.
"""
SHOWN = "I look.\n\nLEARNING: gossip It is so\nFOO: x\n\nBye."
FAULT = "The pattern of LEARNING does not match this line"


def test_quoth_read_shows_a_reply_as_people_see_it(tmp_path: Path) -> None:
    files(tmp_path, {"bot.hy": BOT, "reply.txt": REPLY, "tags.txt": "RESEARCH: a\n"})
    said = quoth("read", "reply.txt", "--tools", "bot.hy", "--display", cwd=tmp_path)
    assert (said.code, said.out) == (2, f"{SHOWN}\n")
    assert said.err == lines(
        "quoth: line 4, column 1: The pattern of LEARNING does not match this line; write LEARNING: "
        '{"category": [category], "content": [content]}',
        f"quoth: line 6: FOO: x {IS_NOT_A_CALL}: {NO_TOOL_HAS_THE_TAG} FOO",
    )
    data = json.loads(
        quoth("read", "reply.txt", "--tools", "bot.hy", "--display", "--json", cwd=tmp_path).out
    )
    assert (data["display"], data["confidence"]) == (SHOWN, 0.8)
    assert [passed["line"] for passed in data["passed"]] == [4, 6]
    said = quoth("read", "tags.txt", "--tools", "bot.hy", "--display", cwd=tmp_path)
    assert (said.code, said.out, said.err) == (0, "", "")


def test_quoth_log_tells_what_became_of_each_tag(tmp_path: Path) -> None:
    files(tmp_path, {"bot.hy": BOT, "script.txt": f"{REPLY}---\nSo it is."})
    bot = ("--tools", "bot.hy", "--model", "scripted:script.txt", "--dialect", "tags", "--session", "s")
    assert quoth("run", "Look.", *bot, cwd=tmp_path).code == 0
    said = quoth("log", "s", "--tags", cwd=tmp_path)
    assert said.out.splitlines()[:6] == [
        "r1, line 3: RESEARCH: solar cells",
        "  ok",
        "r1, line 4: LEARNING: gossip It is so",
        "  passed: it does not match the pattern of its tag",
        "r1, line 5: RESEARCH: wind",
        said.out.splitlines()[5],
    ]
    assert said.out.splitlines()[5].startswith("  limited: research is limited: 1 of 1 used today")
    assert said.out.splitlines()[6:] == ["r1, line 6: FOO: x", f"  passed: {NO_TOOL_HAS_THE_TAG} FOO"]
    found = json.loads(quoth("log", "s", "--tags", "--json", cwd=tmp_path).out)
    assert [(one["line"], one["status"]) for one in found] == [
        (3, "ok"),
        (4, "passed"),
        (5, "limited"),
        (6, "passed"),
    ]
    assert found[0]["id"] == found[3]["id"] == "s.4"
    assert quoth("log", "s.4", "--tags", cwd=tmp_path).out == said.out
    said = quoth("log", "s.2", "--tags", cwd=tmp_path)
    assert (said.out, said.err) == ("", "quoth: Session s has no response tags.\n")


# Written once


def events(folder: Path) -> list[Event]:
    store = Store(store_path(folder))
    found = list(Transcript(lambda: store).events("s"))
    store.close()
    return found


def statuses(folder: Path) -> list[tuple[int, str, str]]:
    return [(one.line, one.status, one.why) for one in tag_lines(events(folder))]


def tools() -> list[CognitiveTool]:
    refuse = tool("no", guard=lambda: deny("not now"), tag="NO")
    return [tool("put", lambda what: what, params={"what": {}}, effects=["writes"], tag="PUT"), refuse]


def with_tags(folder: Path, *replies: str) -> Agent:
    model = ModelOptions(scripted(*replies), dialect="tags")
    return Agent(workspace=folder, tools=tools(), model=model, session="s", user="ann")


def test_a_run_that_waited_and_is_replayed_has_its_tags_once(tmp_path: Path) -> None:
    with with_tags(tmp_path, "PUT: it\nNO:\nBAR: x") as here:
        assert here.run("Do it.").status == "pending"
        assert [(line, status) for line, status, _ in statuses(tmp_path)] == [
            (1, "pending"),
            (2, "denied"),
            (3, "passed"),
        ]
        (request,) = here.broker.requests()
        here.broker.decide(request.id, Decision("once", "ann"))
    with with_tags(tmp_path, "Done.") as here:
        here.resume()
        assert here.replay().same
    assert statuses(tmp_path) == [
        (1, "ok", ""),
        (2, "denied", "no was denied: not now."),
        (3, "passed", f"{NO_TOOL_HAS_THE_TAG} BAR"),
    ]
    (kept,) = [event for event in events(tmp_path) if event.kind == "tags"]
    assert kept.data == {
        "lines": [[1, "PUT: it", 0], [2, "NO:", 1], [3, "BAR: x", f"{NO_TOOL_HAS_THE_TAG} BAR"]]
    }
    assert any(f"¬ no call: BAR: x ({NO_TOOL_HAS_THE_TAG} BAR)" in line for line in as_text(events(tmp_path)))
    assert f"no call: BAR: x ({NO_TOOL_HAS_THE_TAG} BAR)" in as_org(events(tmp_path), "s")


def test_a_secret_of_a_tag_is_not_kept(tmp_path: Path) -> None:
    pay = tool("pay", lambda pin: "paid", params={"pin": {"secret": True}}, tag="PAY")
    model = ModelOptions(scripted("PAY: 1234-5678", "Done."), dialect="tags")
    with Agent(workspace=tmp_path, tools=[pay], model=model, session="s", user="ann") as here:
        assert here.run("Pay.").status == "done"
    assert "1234" not in " ".join(event.text for event in events(tmp_path))


def test_other_dialects_have_no_tags(tmp_path: Path) -> None:
    model = scripted("(no)\nFOO: x", "Done.")
    with Agent(workspace=tmp_path, tools=tools(), model=model, session="s", user="ann") as here:
        here.run("Do it.")
    assert "tags" not in [event.kind for event in events(tmp_path)]
