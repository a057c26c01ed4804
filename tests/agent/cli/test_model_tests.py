"""``quoth models test``: eleven tasks, asked of a model in each dialect it may speak."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from words import Said, files, quoth

from quoth.agent.cli import main as cli
from quoth.agent.cli import model_tests
from quoth.agent.cli.model_tests import NOTE, TASKS, AskedPerson, Call, Examiner, Result, TaskOutcome
from quoth.agent.cli.options import Options
from quoth.agent.reply import CallRecord, Reply
from quoth.neuro.backends import local
from quoth.neuro.backends.select import ScriptedBackend
from quoth.neuro.prompt.dialects import DIALECTS
from quoth.tools.call.call import ToolResult
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string

HELLO = "Hello Ann!"
OLD = '{"name": "Ann", "age": 30}'
MONTHS = '<think>I might call (unlock :code "1"), and do not.</think>\nA year has 12 months.'
SUM = '(eval (do (setv all 0) (for [city ["Oslo" "Lima" "Bern"]] (setv text (weather :city city)) ' \
      '(setv all (+ all (int (get (.split text " ") 0))))) all))'  # fmt: skip
RIGHT = [
    '(weather :city "Oslo")', "3 degrees.",
    '(distance :start "Oslo" :end "Rome")', "1,604 km.",
    '(weather :city "Lima") (weather :city "Bern")', "Yes.",
    "(set-volume :percent 40)", "Done.",
    '(save-contact :name "Ann Lee" :address {"street" "5 Hill Road" "city" "Leeds"})', "Saved.",
    HELLO,
    f"(save-note :text {print_string(NOTE)})", "Saved.",
    '(unlock :code "42")', '(unlock :code "0042")', "Open.",
    SUM, "30",
    OLD,
    MONTHS,
]  # fmt: skip


def asked(folder: Path, *replies: str, words: tuple[str, ...] = ()) -> Said:
    """The command, with a model that gives these replies."""
    files(folder, {"replies.txt": "\n---\n".join(replies)})
    return quoth("models", "test", "scripted:replies.txt", "--dialect", "call-form", *words, cwd=folder)


def test_a_model_that_solves_all_tasks(tmp_path: Path) -> None:
    said = asked(tmp_path, *RIGHT)
    assert said.code == 0, said.err
    rows = [line for line in said.out.splitlines() if " in " in line and " out " in line]
    assert [row.split("  ")[1].strip() for row in rows] == [task.name for task in TASKS]
    assert all(" ok " in row for row in rows), said.out


def test_machines_read_each_task(tmp_path: Path) -> None:
    wrong = ["I do not know." if reply == HELLO else reply for reply in RIGHT]
    told = json.loads(asked(tmp_path, *wrong, words=("--json",)).out)
    (only,) = told["dialects"]
    assert (told["best"], told["usual"], only["right"]) == ("call-form", "call-form", 10)
    assert {one["task"]: one["fault"] for one in only["tasks"] if one["fault"]} == {
        "no call": "answered 'I do not know.', without Ann"
    }


def test_a_note_to_the_user_comes_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    examiner = Examiner(Options(), ScriptedBackend([]), tmp_path)
    for note in ("In text.", "In text.", "No system role."):
        examiner._show_note(note)
    assert capsys.readouterr().err == "quoth: In text.\nquoth: No system role.\n"


def test_a_model_that_solves_none_is_told(tmp_path: Path) -> None:
    said = asked(tmp_path, *["?"] * 100)
    assert said.code == 1
    assert "The model solved no task" in said.out


def test_a_model_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    said = quoth("models", "test", "openai:x", "--base-url", "http://127.0.0.1:9/v1", cwd=tmp_path)
    assert said.code == 1
    assert "127.0.0.1:9" in said.err
    assert "Traceback" not in said.err
    assert " ok " not in said.out
    assert " failed " not in said.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--dialect", "call-from"), "call-form"),
        (("nobody:x",), "nobody"),
    ],
)
def test_what_cannot_be_asked_is_a_usage_error(tmp_path: Path, words: tuple[str, ...], told: str) -> None:
    files(tmp_path, {"replies.txt": "Hi."})
    spec = () if words[0] == "nobody:x" else ("scripted:replies.txt",)
    said = quoth("models", "test", *spec, *words, cwd=tmp_path)
    assert said.code == 2
    assert told in said.err


ANN = {"street": "5 Hill Road", "city": "Leeds"}
CITIES: list[Call] = [("weather", {"city": city}) for city in ("Oslo", "Lima", "Bern")]
PROGRAM = CallRecord(CallForm("eval", {}), ToolResult("x", "eval", "ok", 30))

# A task, calls and an answer; whether it is solved by them.
JUDGED: list[tuple[str, list[Call], dict[str, Any], bool]] = [
    ("one argument", [("weather", {"city": "Oslo"})], {"text": "3 degrees"}, True),
    ("one argument", [("weather", {"city": "Oslo"})] * 2, {"text": "3 degrees"}, True),
    ("one argument", [("weather", {"city": "Oslo"})], {"text": "warm"}, False),
    ("one argument", [], {"text": "3 degrees"}, False),
    ("two arguments", [("distance", {"start": "Rome", "end": "Oslo"})], {"text": "1,604 km"}, False),
    ("two arguments", [("distance", {"start": "Oslo", "end": "Rome"})], {"text": "1,604 km"}, True),
    ("two calls", CITIES[1:], {}, True),
    ("two calls", CITIES[1:2], {}, False),
    ("two calls", CITIES, {}, False),
    ("number", [("set-volume", {"percent": 40})], {}, True),
    ("number", [("set-volume", {"percent": 4})], {}, False),
    ("nested value", [("save-contact", {"name": "Ann Lee", "address": ANN})], {}, True),
    ("nested value", [("save-contact", {"name": "Ann Lee", "address": {"city": "Leeds"}})], {}, False),
    ("no call", [], {"text": HELLO}, True),
    ("no call", CITIES[:1], {"text": HELLO}, False),
    ("long text", [("save-note", {"text": NOTE})], {}, True),
    ("long text", [("save-note", {"text": NOTE.replace("\\", "")})], {}, False),
    ("correction", [("unlock", {"code": "42"}), ("unlock", {"code": "0042"})], {}, True),
    ("correction", [("unlock", {"code": "42"})], {}, False),
    ("correction", [], {}, False),
    ("program", CITIES, {"text": "30", "calls": (PROGRAM,)}, True),
    ("program", CITIES, {"text": "30"}, False),
    ("program", CITIES[:2], {"text": "30", "calls": (PROGRAM,)}, False),
    ("program", CITIES, {"text": "31", "calls": (PROGRAM,)}, False),
    ("JSON output", [], {"output": AskedPerson("Ann", 30)}, True),
    ("JSON output", [], {"output": AskedPerson("Ann", 31)}, False),
    ("thought", [], {"text": "12"}, True),
    ("thought", [], {"text": "<think>no</think> 12"}, False),
    ("thought", [("unlock", {"code": "1"})], {"text": "12"}, False),
]


@pytest.mark.parametrize(("name", "calls", "reply", "solved"), JUDGED)
def test_a_task_is_solved_or_it_is_said_why_not(
    name: str, calls: list[Call], reply: dict[str, Any], solved: bool
) -> None:
    (task,) = [one for one in TASKS if one.name == name]
    fault = task.fault(calls, Reply("s", "done", **{"text": "", **reply}))
    assert (not fault) == solved, fault


def test_each_task_can_be_solved_and_missed() -> None:
    solved = {(name, good) for name, _, _, good in JUDGED}
    assert solved == {(task.name, good) for task in TASKS for good in (True, False)}


def test_the_best_dialect_has_most_right_then_writes_least() -> None:
    def result(name: str, right: int, tokens: int) -> Result:
        ends = [TaskOutcome("t", "" if number < right else "wrong", 9, tokens, 1.0) for number in range(3)]
        return Result(name, ends)

    found = [result("json", 2, 40), result("call-form", 2, 20), result("plist", 1, 5)]
    assert min(found, key=lambda one: one.rank).dialect == "call-form"


# The deadline is for a machine with much else to do. One thread, as threads of llama.cpp that wait for each
# other burn the cores that others need.
@pytest.mark.timeout(1_200)
def test_the_small_embedded_model_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried = [task for task in TASKS if task.name == "one argument"]
    monkeypatch.setattr(model_tests, "TASKS", tried)
    monkeypatch.setattr(local, "_cores", lambda: 1)
    monkeypatch.chdir(tmp_path)
    words = ["models", "test", "local-small", "--dialect", "call-form", "--max-reply-tokens", "40", "--json"]
    code = cli.main(words)
    out, err = capsys.readouterr()
    assert code == 0, err
    (only,) = json.loads(out)["dialects"]
    assert [one["task"] for one in only["tasks"]] == [task.name for task in tried]
    assert all(one["input_tokens"] and one["output_tokens"] for one in only["tasks"])
    assert [one["fault"] for one in only["tasks"]] == [""]


def test_tags_are_left_out_and_native_needs_tools() -> None:
    from quoth.agent.cli.model_tests import _dialects

    class Plain:
        tool_view = ""

    class Native:
        tool_view = "openai"

    assert {*DIALECTS} - {*_dialects(Plain(), None)} == {"tags", "native"}  # type: ignore[arg-type]
    assert {*DIALECTS} - {*_dialects(Native(), None)} == {"tags"}  # type: ignore[arg-type]
