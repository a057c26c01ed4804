"""Runs in each dialect: the same calls through the same door, told back as the model's kind wants it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentences import CALL_FORMS_IN_TEXT, IT_IS_ASKED_FOR, TAKES_NO_NATIVE_TOOLS, THERE_IS_NO_DIALECT
from words import Agent, MemoryAudit, Spy, agent, complaint, files, native, scripted, story, table_of, tool

from quoth import HostServices, ModelOptions
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError


def messages(request: bytes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(request)
    return found


SPELT: dict[str, Any] = {
    "call-form": '(read-file :path "a.txt")',
    "plist": '(:target :tool :action :call :tool "read-file" :args (:path "a.txt"))',
    "json": '{"tool": "read-file", "args": {"path": "a.txt"}}',
    "native": native(("read-file", {"path": "a.txt"})),
    "run": native(("run", {"program": '(read-file "a.txt")'})),
}


@pytest.mark.parametrize("dialect", SPELT)
def test_a_run_in_every_dialect_ends_in_the_same_call(tmp_path: Path, dialect: str) -> None:
    files(tmp_path, {"a.txt": "forty-two"})
    told = story(tmp_path, SPELT[dialect], "It says forty-two.", dialect=dialect)
    assert (told.reply.status, told.reply.text) == ("done", "It says forty-two.")
    made = [row for row in told.rows if row["tool"] == "read-file"]
    assert [(row["status"], row["form"]) for row in made] == [("ok", '(read-file :path "a.txt")')]
    assert "forty-two" in told.shown(2)


def test_a_result_in_the_dialect_tags_names_the_tag_and_does_not_repeat_the_line(tmp_path: Path) -> None:
    table = table_of(tool("probe", lambda text: text, params={"text": {"type": str}}, tag="PROBE"))
    told = story(tmp_path, "PROBE: some words", "Done.", tools=table, dialect="tags")
    assert told.reply.status == "done"
    assert "Result of PROBE, ok:\nsome words" in told.shown(2)
    assert "-> ok" not in told.shown(2)


def test_every_native_call_is_answered_under_its_own_id_in_the_tool_role(tmp_path: Path) -> None:
    reply = native(("echo", {"text": "a"}), ("echo", "{not json"), ("raed-file", {}), text="Let me look.")
    told = story(tmp_path, reply, "Done.", dialect="native")
    answered = {m["call_id"]: m["content"] for m in messages(told.requests[1]) if m["role"] == "tool"}
    assert list(answered) == ["c1", "c3", "c2"]
    assert answered["c1"].startswith('(echo :text "a") -> ok')
    assert "could not be read" in answered["c2"]
    assert "Did you mean read-file?" in answered["c3"]
    assert messages(told.requests[1])[-1]["role"] == "tool"


def test_a_reply_of_unreadable_native_calls_only_is_answered_too(tmp_path: Path) -> None:
    told = story(tmp_path, native(("echo", "{")), native(("echo", {"text": "a"})), "Done.", dialect="native")
    assert told.reply.status == "done"
    assert [m["call_id"] for m in messages(told.requests[1]) if m["role"] == "tool"] == ["c1"]
    assert [row["stage"] for row in told.rows] == ["reader", "body"]


def test_a_denied_native_call_is_stopped_by_the_same_guard(tmp_path: Path) -> None:
    body = Spy()
    told = story(
        tmp_path,
        native(("probe", {})),
        "Done.",
        dialect="native",
        tools=table_of(tool(body=body, guard=Spy(False))),
    )
    assert (told.statuses, body.ran) == (["denied"], False)


def test_a_native_run_that_waits_goes_on_with_the_same_ids(tmp_path: Path) -> None:
    write = native(("echo", {"text": "a"}), ("write-file", {"path": "b", "content": "x"}))
    with Agent(
        workspace=tmp_path, model=ModelOptions(scripted(write), dialect="native"), session="s1", user="ann"
    ) as first:
        assert first.run("Write b.").status == "pending"
    model = scripted("Written.")
    with Agent(
        workspace=tmp_path, model=ModelOptions(model, dialect="native"), session="s1", user="ann"
    ) as second:
        (asked,) = second.broker.requests()
        second.broker.decide(asked.id, Decision("once", "ann"))
        (reply,) = second.resume()
    assert reply.status == "done"
    told = messages(model.seen[0])
    assert [call["id"] for call in told[2]["calls"]] == ["c1", "c2"]
    assert [(m["call_id"], "ok" in m["content"]) for m in told if m["role"] == "tool"] == [
        ("c1", True),
        ("c2", True),
    ]


def test_a_model_without_native_tools_is_asked_in_text_and_the_person_is_told(tmp_path: Path) -> None:
    model, heard = scripted('(echo :text "a")', "Done."), []
    model.tool_view = ""
    with Agent(
        workspace=tmp_path,
        model=ModelOptions(model, dialect="native"),
        services=HostServices(audit=MemoryAudit()),
        on_event=lambda event: heard.append((event.kind, event.data)),
    ) as it:
        assert it.run("Do it.").status == "done"
    assert ("note", f"scripted {TAKES_NO_NATIVE_TOOLS}. {IT_IS_ASKED_FOR} {CALL_FORMS_IN_TEXT}.") in heard


def test_a_belt_to_search_shows_one_line_a_tool_and_describes_on_request(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        '(describe :name "grep-search")',
        '(search-tools :words "write a file")',
        "Done.",
        belt="search",
    )
    system = messages(told.requests[0])[0]["content"]
    assert "grep-search" in system
    assert "Regular expression" not in system
    assert told.statuses == ["ok", "ok"]
    assert ":pattern str" in told.shown(2)
    assert "write-file" in told.shown(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"dialect": "json5"},
            f"{THERE_IS_NO_DIALECT} json5; the dialects are call-form, plist, json, tags, native, run. "
            "Did you mean json?",
        ),
        ({"dialect": "tags"}, "The dialect tags needs tools with a :tag, and this table has none."),
        (
            {"dialect": "plist", "belt": "search"},
            "--belt search needs the dialect call-form or run, not plist.",
        ),
    ],
)
def test_a_dialect_that_does_not_fit_is_an_error(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with agent(tmp_path, "never", **options) as it:
        assert complaint(UsageError, lambda: it.run("Do it.")) == message
