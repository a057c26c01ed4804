"""The main job on a real model: the small embedded one calls a tool through the door and answers. That it
can call one rightly is tried in tests/agent/cli/test_model_tests.py."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from quoth.agent.cli import main as cli
from quoth.agent.flight.plan_file import PlanFile
from quoth.neuro.backends import local

pytestmark = pytest.mark.timeout(1_200)  # on a machine with much else to do the model is slow

PLANS = Path(__file__).parents[3] / "plans"


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
    # What a person sees: the form, how its call ended, and the reply.
    assert re.search(r"→ \(eval .*\n.*← \w+, .*\n(?s:.*)‹ \S", err), err
