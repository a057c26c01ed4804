"""A gate in a file, on the command line: it judges, it is kept with the session, and no tool writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentences import (
    A_GATE_MUST_ANSWER,
    DEFINES_NO_FUNCTION_CHECK,
    IT_DID_NOT_ANSWER_WITHIN,
    THERE_IS_NO_FILE,
)
from words import files, quoth

from quoth.agent.cli.main import main
from quoth.tools.door import gate

TOOLS = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool sum-up "Sum up a text."
  :tag        "SUM-UP"
  :parameters [text {:type str}]
  :gate       True  :gate-failure FAILURE
  :body       (.upper text))
"""
# Approves calm texts, asks about loud ones, and takes its time for long ones.
GATE = """
(import asyncio  quoth [GateDecision ask])
(defn :async check [tool call ctx]
  (setv text (get call.form.args "text"))
  (cond (in "!" text)     (ask "it is loud")
        (= text "long")   (await (asyncio.sleep 60))
        (= text "broken") (/ 1 0)
        (= text "odd")    42
        True              (GateDecision (not-in "?" text) "it is a question")))
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(
        tmp_path,
        {
            "closed.hy": TOOLS.replace("FAILURE", ":closed"),
            "open.hy": TOOLS.replace("FAILURE", ":open"),
            "gate.hy": GATE,
            "talk.txt": "SUM-UP: what?\nCONFIDENCE: 0.3\n---\nSUM-UP: ok\n---\nIt is OK.",
        },
    )


def sum_up(text: str) -> str:
    return f'(sum-up "{text}")'


GATED = ("--tools", "closed.hy", "--gate", "gate.hy")


def test_a_gate_judges_what_a_person_calls_and_the_audit_tells_it(here: Path) -> None:
    assert quoth("call", sum_up("calm"), *GATED, cwd=here).out == "CALM\n"
    denied = quoth("call", sum_up("what?"), *GATED, cwd=here)
    assert (denied.code, denied.err) == (1, "quoth: sum-up was denied: it is a question.\n")
    assert quoth("call", sum_up("calm"), "--tools", "closed.hy", cwd=here).out == "CALM\n"
    told = quoth("audit", "--tool", "sum-up", cwd=here).out
    assert [line.strip() for line in told.splitlines() if "gate" in line] == [
        "gate: deny: it is a question",
        "gate: no gate",
    ]


def test_a_gate_judges_what_a_model_calls(here: Path) -> None:
    said = quoth("run", "Sum up.", "--model", "scripted:talk.txt", "--dialect", "tags", *GATED, cwd=here)
    assert (said.code, said.out) == (0, "It is OK.\n")
    rows = [json.loads(line) for line in quoth("audit", "--json", cwd=here).out.splitlines()]
    assert [(row["status"], row["gate"], row["confidence"]) for row in rows] == [
        ("denied", "deny: it is a question", 0.3),
        ("ok", "allow", None),
    ]
    told = quoth("audit", "--tool", "sum-up", "--status", "denied", "--last", "3", cwd=here).out
    assert [line.strip() for line in told.splitlines()[1:]] == [
        "gate: deny: it is a question",
        "confidence: 0.3",
        "sum-up was denied: it is a question.",
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("long", f"{IT_DID_NOT_ANSWER_WITHIN} 0.1 s"),
        ("broken", "ZeroDivisionError: division by zero"),
        ("odd", f"it answered 42; {A_GATE_MUST_ANSWER} {gate.ANSWERS}"),
    ],
)
def test_a_gate_that_fails_is_told_to_the_person_and_in_the_audit(
    here: Path, text: str, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gate, "GATE_SECONDS", 0.1)
    monkeypatch.chdir(here)
    said = "ZeroDivisionError" if text == "broken" else reason
    assert main(["call", sum_up(text), *GATED]) == 1
    assert capsys.readouterr().err == f"quoth: sum-up was denied: the gate failed ({said}).\n"
    assert main(["call", sum_up(text), "--tools", "open.hy", "--gate", "gate.hy"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith(text.upper())
    assert f"The gate failed ({said}); sum-up continues, as it is :gate-failure :open." in told.out + told.err
    main(["audit", "--last", "2"])
    told = capsys.readouterr()
    assert f"gate: deny: the gate failed ({reason})" in told.out
    assert f"gate: failed open: {reason}" in told.out


def test_a_session_goes_on_with_the_gate_it_had(here: Path) -> None:
    waits = quoth("call", sum_up("hey!"), *GATED, "--session", "s", "--no-input", cwd=here)
    assert (waits.code, "it is loud" in waits.err) == (3, True)
    request = json.loads(quoth("pending", "--json", cwd=here).out)[0]["id"]
    assert quoth("approve", request, cwd=here).code == 0
    text = (here / "gate.hy").read_text()
    (here / "gate.hy").unlink()
    gone = quoth("resume", "s", cwd=here)
    assert (gone.code, gone.err) == (2, f"quoth: {THERE_IS_NO_FILE} {here / 'gate.hy'}.\n")
    files(here, {"gate.hy": text.replace("(ask", '(GateDecision False "not now") #_ (ask')})
    assert "sum-up was denied: not now." in quoth("resume", "s", cwd=here).err


def test_no_tool_writes_the_gate(here: Path) -> None:
    write = '(write-file :path "gate.hy" :content "x")'
    files(here, {"all.hy": "(allow _)"})
    said = quoth("call", write, "--gate", "gate.hy", "--policy", "all.hy", cwd=here)
    assert (said.code, "belongs to quoth itself" in said.err) == (1, True)
    assert (here / "gate.hy").read_text() == GATE


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(setv a 1)", f"gate.hy {DEFINES_NO_FUNCTION_CHECK}: (defn :async check [tool call ctx] …)."),
        (
            "(defn check [a])",
            "gate.hy:1: check takes [a]; it must take (defn :async check [tool call ctx] …).",
        ),
    ],
)
def test_a_file_that_holds_no_gate_stops_the_command(here: Path, text: str, message: str) -> None:
    files(here, {"gate.hy": text})
    said = quoth("call", sum_up("calm"), *GATED, cwd=here)
    assert (said.code, said.err) == (2, f"quoth: {message}\n")
