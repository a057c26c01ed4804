"""The main job on a real model: the small embedded one looks through the door and answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from words import files, table_of

from quoth.agent.cli import main as cli
from quoth.agent.flight.plan_file import PlanFile
from quoth.neuro.backends import local
from quoth.tools import loading
from quoth.tools.registry.table import cognitive_tools

pytestmark = pytest.mark.timeout(1_200)  # on a machine with much else to do the model is slow

PLANS = Path(__file__).parents[3] / "plans"
TASK = "What is the title of notes.org?"


def test_the_embedded_model_calls_a_tool_through_the_door_and_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path, {"notes.org": "#+TITLE: Bread\n\nFlour and water.\n"})
    monkeypatch.chdir(tmp_path)
    loading.load_tools(())
    monkeypatch.setattr(local, "_cores", lambda: 1)  # the other one has tests of its own
    # Of one tool the model is told in a few seconds, and of all that ship in half a minute.
    monkeypatch.setattr(loading, "cognitive_tools", table_of(cognitive_tools.get("read-file")))
    code = cli.main(["run", "--model", "local-small", "--max-reply-tokens", "24", "--json", TASK])
    out, err = capsys.readouterr()
    assert code == 0, err
    told = json.loads(out)
    assert told["status"] == "done"
    looked = [call for call in told["calls"] if call["status"] == "ok"]
    assert looked, told
    assert looked[0]["form"].startswith("(")
    assert looked[0]["audit"]["digest"]
    assert told["usage"]["output_tokens"] > 0
    # What a person sees: the form, its result, and the reply.
    assert "→ (" in err
    assert "← ok" in err
    assert told["reply"].strip()


def test_on_the_embedded_model_a_step_of_the_self_test_fails_by_its_expectation_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "self-test.org"
    text = (PLANS / plan.name).read_text()
    # Each step of the model costs seconds: one call and one answer are enough.
    assert text.count("steps=6") == text.count(":RETRY:    1\n") == 1
    plan.write_text(text.replace("steps=6", "steps=2").replace(":RETRY:    1\n", ":RETRY:    0\n"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(local, "_cores", lambda: 1)
    expected = {step.id: step.expect for step in PlanFile(plan).plan.steps}
    code = cli.main(
        ["fly", plan.name, "--model", "local-small", "--max-reply-tokens", "24", "--yes", "--json"]
    )
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert [step["id"] for step in report["steps"]] == list(expected)
    failed = [step for step in report["steps"] if step["status"] != "done"]
    for step in failed:  # so small a model may be wrong, and then it is told so
        assert step["status"] == "failed", (step, err)
        assert step["text"].startswith(f"{expected[step['id']]} is not true: "), (step, err)
    assert code == (1 if failed else 0)
    assert report["notes"] == []
