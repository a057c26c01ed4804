"""A question in words, from the model to the person and back: at once, days later, in programs, in plans."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_PROGRAM_THAT_A_TOOL,
    IS_A_QUESTION_AND_IS,
    IS_NONE_OF_THE_ANSWERS,
    THE_ANSWER_IS_EMPTY,
    THEN_CONTINUE_WITH,
    WANTS_A_YES_OR_A,
)
from words import Terminal, files, lines, quoth

ASKS = '(ask-person :question "Which colour?" :choices ["red" "blue"])'
HEARS = """
(defn reply [messages]
  (setv heard (lfor  m messages  :if (= (get m "role") "tool")  (get m "content")))
  (if heard  f"So be it: {(get (.splitlines (get heard -1)) -1)}"  #[[CALL]]))
"""
PROGRAM = (
    '(eval (do (setv n (ask-person :question "How many?"))'
    ' (.join "," [n (ask-person :question "Of what?")])))'
)
PLAN = lines(
    ["* PLAN choose", "#+begin_src hy"],
    '(len (ask-person :question "How long?" :choices ["red" "blue"] :only True))',
    ["#+end_src", "* PLAN paint", "Paint it."],
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(
        tmp_path,
        {"ask.hy": HEARS.replace("CALL", ASKS), "two.hy": HEARS.replace("CALL", PROGRAM), "plan.org": PLAN},
    )


def run(model: str, *words: str) -> list[str]:
    return ["run", "Paint it.", "--model", f"scripted:{model}", "--session", "s1", *words]


def waiting(here: Path) -> dict[str, Any]:
    said = quoth("pending", "--json", cwd=here)
    (only,) = json.loads(said.out)
    found: dict[str, Any] = only
    return found


def refused(here: Path, *words: str) -> str:
    said = quoth(*words, cwd=here)
    assert (said.code, said.out) == (2, ""), said
    return said.err.removeprefix("quoth: ").rstrip("\n")


def test_a_run_waits_for_an_answer_and_goes_on_with_it(here: Path) -> None:
    began = quoth(*run("ask.hy", "--yes"), cwd=here)  # a yes to everything is no answer
    asked = waiting(here)
    id = asked["id"]
    assert (began.code, began.out) == (3, "")
    assert began.err.endswith(
        f"quoth: To answer: quoth answer {id} TEXT\nquoth: {THEN_CONTINUE_WITH}: quoth resume s1\n"
    )
    assert [asked[name] for name in ("kind", "question", "choices")] == [
        *("question", "Which colour?"),
        ["red", "blue"],
    ]
    listed = quoth("pending", cwd=here).out
    assert listed.startswith(
        f"{id}  ask-person asks a question:\n       │ Which colour?\n       │ 1  red\n       │ 2  blue\n"
    )
    assert refused(here, "approve", id) == (f"Request {id} {IS_A_QUESTION_AND_IS}: quoth answer {id} TEXT")
    assert refused(here, "answer", id) == f"An answer is needed: quoth answer {id} TEXT"
    assert refused(here, "answer", id, " ") == f"{THE_ANSWER_IS_EMPTY}."
    assert quoth("resume", "s1", cwd=here).code == 3
    said = quoth("answer", id, "dark", "green", "--resume", "--user", "ann", cwd=here)
    assert said.code == 0
    assert said.out == "So be it: dark green\n"
    assert said.err.startswith("quoth: Answered: Which colour? dark green\n")
    again = refused(here, "answer", id, "red")
    assert re.fullmatch(f"Request {id} was answered before, by ann at .* UTC.", again)
    assert "answered by ann at" in quoth("pending", id, cwd=here).out
    assert quoth("replay", "s1", cwd=here).out == "s1: 1 run, 2 requests, 1 call: as recorded.\n"
    assert quoth("replay", "s1", "--live-tools", cwd=here).out.endswith(": as recorded.\n")
    (decided,) = [row for row in audit(here) if row["route"] == "decision"]
    assert (decided["consent"], decided["status"]) == (f"answered by ann (request {id})", "ok")
    assert "dark green" not in json.dumps(decided)


def audit(here: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in quoth("audit", "--json", cwd=here).out.splitlines()]


def test_a_program_stands_still_at_each_question(here: Path) -> None:
    assert quoth(*run("two.hy"), cwd=here).code == 3
    assert waiting(here)["question"] == "How many?"
    then = quoth("answer", waiting(here)["id"], "-", "--resume", cwd=here, stdin="5\n")
    assert then.code == 3
    assert waiting(here)["question"] == "Of what?"
    said = quoth("answer", waiting(here)["id"], "apples", "--json", cwd=here)
    assert json.loads(said.out)["decision"] == "answer"
    assert quoth("resume", "s1", cwd=here).out == "So be it: 5,apples\n"


def test_a_plan_waits_for_an_answer_that_is_one_of_its_choices(here: Path) -> None:
    flown = quoth("fly", "plan.org", "--model", "scripted:ask.hy", cwd=here)
    id = waiting(here)["id"]
    assert flown.code == 3
    assert f"quoth: To answer: quoth answer {id} TEXT\n" in flown.err
    assert refused(here, "answer", id, "green") == f"green {IS_NONE_OF_THE_ANSWERS}: 1 red, 2 blue."
    by_model = quoth("answer", id, "blue", "--resume", "--model", "scripted:ask.hy", cwd=here)
    assert by_model.code == 3
    assert "DONE    choose: 4\n" in by_model.out
    assert waiting(here)["question"] == "Which colour?"
    said = quoth("answer", waiting(here)["id"], "1", cwd=here)
    assert said.err.startswith("quoth: To continue: quoth fly ")
    ended = quoth("fly", "plan.org", "--model", "scripted:ask.hy", cwd=here)
    assert (ended.code, "DONE    paint: So be it: red\n" in ended.out) == (0, True)


def test_an_approval_is_not_answered(here: Path) -> None:
    assert quoth("call", '(write-file :path "a.txt" :content "x")', cwd=here).code == 3
    id = waiting(here)["id"]
    wants = f"Request {id} {WANTS_A_YES_OR_A}: quoth approve {id}, or: quoth deny {id}"
    assert refused(here, "answer", id, "yes") == f"{wants} --why TEXT"
    assert refused(here, "answer", id) == f"{wants} --why TEXT"
    assert not (here / "a.txt").exists()
    inside = quoth("answer", id, "yes", cwd=here, env={"QUOTH_INSIDE": "1"})
    assert inside.err == f"quoth: {A_PROGRAM_THAT_A_TOOL}.\n"


def test_at_a_terminal_it_is_asked_at_once_and_after_kill_9_it_still_waits(here: Path) -> None:
    with Terminal(*run("ask.hy", "--yes"), cwd=here) as terminal:
        terminal.see("Your answer, 1 to 2 or your own words:")  # it is killed now
    id = waiting(here)["id"]
    with Terminal("answer", id, cwd=here) as terminal:
        terminal.see("Your answer, 1 to 2 or your own words:")
        terminal.enter("2")
        terminal.see("Answered: Which colour?")
        assert terminal.ended() == 0
    assert quoth("resume", "s1", cwd=here).out == "So be it: blue\n"
