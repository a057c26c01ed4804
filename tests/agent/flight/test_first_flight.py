"""The main job on a real model: the small embedded one looks through the door and answers."""

from __future__ import annotations

import json
from pathlib import Path

from words import files, quoth

TASK = "What is the title of plans/self-test.org?"
PLAN = Path(__file__).parents[3] / "plans" / "self-test.org"


def test_the_embedded_model_calls_a_tool_through_the_door_and_answers(tmp_path: Path) -> None:
    head = "\n".join(PLAN.read_text().split("\n")[:8])  # reading all of it takes the model a minute
    files(tmp_path, {"plans/self-test.org": head})
    said = quoth("run", "--model", "local-small", "--json", TASK, cwd=tmp_path, seconds=280)
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["status"] == "done"
    looked = [call for call in told["calls"] if call["status"] == "ok"]
    assert looked, told
    assert looked[0]["form"].startswith("(")
    assert looked[0]["audit"]["digest"]
    assert told["usage"]["output_tokens"] > 0
    # What a person sees: the form, its result, and the reply.
    assert "→ (" in said.err
    assert "← ok" in said.err
    assert told["reply"].strip()
