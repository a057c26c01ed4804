"""The values that a call is made of: origins, verdicts, inner calls, results, paths and data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentences import MADE_AS_CALL
from words import complaint, files, form, tool

from quoth.tools.call.call import (
    ALLOW,
    NO_GATE,
    ArgumentOrigin,
    Call,
    EditedCall,
    FailedOpen,
    ToolResult,
    ValueOrigin,
    Verdict,
    _inner,
    ask,
    deny,
    new_call,
    of_text,
    owner,
    to_text,
    verdict_columns,
    verdict_text,
)
from quoth.tools.call.canonical import (
    as_written,
    checked,
    guessed_targets,
    is_path,
    path_arguments,
    touched,
)
from quoth.tools.call.ports import BEGUN_BEFORE, LOST_REQUEST, asks_fact
from quoth.tools.call.service_types import utc_time
from quoth.tools.call.workspace import ELSEWHERE, Workspace
from quoth.tools.errors import ToolError
from quoth.tools.registry.param_types import WorkspacePath


@pytest.mark.parametrize(
    ("origin", "kind", "known"),
    [
        (ValueOrigin(in_task=True, fields=("a",), text="b"), "task", True),
        (ValueOrigin(in_task=True), "task", True),
        (ValueOrigin(fields=("a",), text="b"), "field", True),
        (ValueOrigin(text="b"), "text", False),
        (ValueOrigin(), "model", False),
    ],
)
def test_a_value_is_known_from_the_task_or_a_field(origin: ValueOrigin, kind: str, known: bool) -> None:
    assert (origin.kind, origin.known) == (kind, known)
    assert ArgumentOrigin("a", kind, str(origin)).known == known


def test_origins_come_back_from_their_text() -> None:
    told = (ArgumentOrigin("a", "task", "in your task"), ArgumentOrigin("b", "model", "own", ("x",), 3))
    assert of_text(to_text(told)) == told
    assert of_text('[{"argument": "a", "origin": "task", "words": "w"}]')[0].more == 0
    assert [of_text(text) for text in ("", "{", "[1]", "[{}]", '[{"argument": "a"}]')] == [()] * 5


@pytest.mark.parametrize(
    ("voice", "said", "text"),
    [
        ("policy", None, ""),
        ("policy", Verdict("allow", "a rule says so"), "allow"),
        ("policy", Verdict("allow", "a rule says so", origin="the task"), "allow: the task"),
        ("policy", deny("no"), "deny: no"),
        ("policy", ask("perhaps"), "ask: perhaps"),
        ("gate", NO_GATE, NO_GATE.reason),
        ("gate", FailedOpen("allow", "it is down"), "failed open: it is down"),
        ("guard", Verdict("deny"), "deny"),
        ("consent", Verdict("allow", "ann"), "allow: ann"),
        ("consent", ALLOW, "allow"),
        ("consent", ask("ann"), "pending"),
        ("consent", deny("ann"), "deny: ann"),
        ("consent", EditedCall(form("(a)"), "edited by ann", "c2"), f"edited by ann: {MADE_AS_CALL} c2"),
        ("consent", EditedCall(form("(a)"), "", "c2"), f"edited: {MADE_AS_CALL} c2"),
    ],
)
def test_a_verdict_is_recorded_with_what_counts(voice: Any, said: Any, text: str) -> None:
    assert verdict_text(voice, said) == text


def test_the_columns_of_verdicts_name_the_rule_of_the_policy_alone() -> None:
    said = {"policy": Verdict("deny", "r", "(deny (a))"), "gate": Verdict("deny", "r", "(deny (b))")}
    assert verdict_columns(said) == {
        "policy": "deny: r",
        "guard": "",
        "gate": "deny: r",
        "consent": "",
        "rule": "(deny (a))",
    }
    assert verdict_columns({"policy": FailedOpen("allow", "x")})["rule"] == ""


def test_a_new_call_is_resumed_by_its_key() -> None:
    call = new_call(form("(a)"))
    assert (len(call.id), call.resumed, call.key) == (10, False, "")
    assert new_call(form("(a)"), key="k").resumed
    assert not new_call(form("(a)"), key="k", resumed=False).resumed


EVAL = form('(eval :form "(a)")')


@pytest.mark.parametrize(
    ("call", "marks"),
    [
        (Call("c", form("(a)")), {"route": "tool", "depth": 1, "program_run": "", "key": "c/x"}),
        (Call("c", EVAL), {"route": "program", "depth": 1, "program_run": "c", "key": "c/x"}),
        (Call("c", EVAL, key="k"), {"route": "program", "program_run": "k", "key": "k/x"}),
        (Call("c", EVAL, key="k", parent="p", program_run="r", depth=3), {"program_run": "r", "depth": 4}),
        (Call("c", form("(a)"), parent="p", program_run="r"), {"program_run": ""}),
    ],
)
def test_an_inner_call_belongs_to_the_call_that_makes_it(call: Call, marks: dict[str, Any]) -> None:
    call = call.changed(user="ann", event=7, quoted="a mail", edited=True, repairs=("one",))
    inner = _inner(call, form("(b)"), "x")
    assert {name: getattr(inner, name) for name in marks} == marks
    assert (inner.parent, inner.user, len(inner.id), inner.tool) == ("c", "ann", 10, "b")
    assert (inner.event, inner.quoted, inner.edited, inner.repairs) == (0, "", False, ())


@pytest.mark.parametrize(
    ("marks", "owned"),
    [
        ({}, True),
        ({"depth": 1}, False),
        ({"session": ""}, False),
        ({"route": "flight"}, False),
        ({"user": ""}, True),
    ],
)
def test_the_values_of_a_session_are_those_of_its_outermost_calls(marks: dict[str, Any], owned: bool) -> None:
    call = Call("c", EVAL, session="s", user="ann").changed(**marks)
    assert owner(call) == ((call.session, call.user) if owned else None)


def test_what_a_person_is_told_besides_is_no_part_of_a_result() -> None:
    said = ToolResult("c", "a", "ok", 1, side_effects=("x",), follow_up="told").to_json()
    assert said == {
        "id": "c",
        "tool": "a",
        "status": "ok",
        "value": 1,
        "message": "",
        "side_effects": ["x"],
        "audit": {},
    }


@pytest.mark.parametrize(
    ("reason", "fact"),
    [
        (f"it writes; {BEGUN_BEFORE}", True),
        (LOST_REQUEST, True),
        (f"{LOST_REQUEST}; {BEGUN_BEFORE}", True),
        ("it writes", False),
        ("", False),
    ],
)
def test_a_question_about_a_fact_is_known_by_its_words(reason: str, fact: bool) -> None:
    assert asks_fact(reason) == fact


# Paths


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("path", "a", True),
        ("source-path", "a", True),
        ("file", "a", True),
        ("path", "", False),
        ("path", 1, False),
        ("paths-of", "a", False),
        ("text", "a", False),
    ],
)
def test_a_path_is_guessed_from_the_name_of_its_argument(name: str, value: Any, is_one: bool) -> None:
    assert is_path(name, value) == is_one


COPY = tool(
    "copy",
    params={
        "source": {"type": WorkspacePath},
        "to": {"type": list[WorkspacePath], "default": []},
        "near": {"type": WorkspacePath, "default": "link"},
        "key": {"type": WorkspacePath, "default": "a", "secret": True},
        "other-path": {"type": str, "default": ""},
    },
    effects=["writes"],
)


@pytest.fixture
def home(tmp_path: Path) -> Workspace:
    files(tmp_path, {"a": "", "b/c": ""})
    (tmp_path / "link").symlink_to(tmp_path / "b")
    return Workspace(tmp_path)


@pytest.mark.parametrize(
    ("call", "canonical", "written"),
    [
        (
            '(copy "./a")',
            '(copy :source "a" :near "b")',
            (':source was written "./a"', ':near was written "link"'),
        ),
        ('(copy "a" :near "a")', '(copy :near "a" :source "a")', ()),
        ('(copy "a" :near "b")', '(copy :near "b" :source "a")', ()),
        (
            '(copy "a" :near "b" :to ["a" "b/../a"])',
            '(copy :near "b" :to ["a" "a"] :source "a")',
            (':to was written "b/../a"',),
        ),
        ('(copy "a" :near "b" :key "./a")', '(copy :near "b" :key "a" :source "a")', ()),
    ],
)
def test_a_call_has_its_paths_in_one_spelling_and_says_how_they_were_written(
    home: Workspace, call: str, canonical: str, written: tuple[str, ...]
) -> None:
    found, args = checked(COPY, form(call), home)
    assert str(found) == canonical
    assert as_written(COPY, args) == written


def test_a_call_touches_its_paths_by_type_or_by_name(home: Workspace) -> None:
    args = checked(COPY, form('(copy "a" :near "b" :other-path "link/c")'), home)[1]
    assert sorted(path_arguments(COPY, args)) == ["key", "near", "other-path", "source", "to"]
    assert sorted(touched(COPY, args, home)) == ["a", "a", "b", "b/c"]
    assert guessed_targets(COPY, args, home) == {"other-path": "b/c"}
    assert guessed_targets(COPY, args | {"other-path": "b/c"}, home) == {}
    assert guessed_targets(COPY, args | {"other-path": "~"}, home) == {"other-path": str(Path.home())}


@pytest.mark.parametrize(
    ("path", "canonical"),
    [("a/../b", "b"), ("~/a", "~/a"), ("./~/a", "./~/a"), ("x/../~", "./~"), ("../a", "../a")],
)
def test_on_another_machine_a_path_is_only_spelt(path: str, canonical: str) -> None:
    assert ELSEWHERE.canonical(path) == canonical
    assert ELSEWHERE.holds(ELSEWHERE.locate("a"))
    assert not ELSEWHERE.holds(ELSEWHERE.locate("~/a"))
    complaint(ToolError, lambda: ELSEWHERE.canonical("a\0"))


# Times


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("", ""),
        ("2026-01-31", "2026-01-31T00:00:00+00:00"),
        (" 2026-01-31T09:30 ", "2026-01-31T09:30:00+00:00"),
        ("2026-01-31T09:30+02:00", "2026-01-31T07:30:00+00:00"),
    ],
)
def test_a_time_is_told_in_utc(text: str, time: str) -> None:
    assert utc_time(":since", text) == time


def test_no_time_is_told_with_its_beginning() -> None:
    said = complaint(ToolError, lambda: utc_time(":since", "soon" * 20))
    assert said == (
        f":since is a date or a time such as 2026-01-31 or 2026-01-31T09:30, not {('soon' * 10)!r}."
    )
