"""``--json --stream``: each event of a run as a line of JSON, the last with what ``--json`` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from words import files, quoth

LOOK = 'I look.\n\n(echo :text "a")'
HIDE = """(require quoth [def-cognitive-tool])
(def-cognitive-tool log-in "Log in." :parameters [key {:type str :secret True}] :body f"in with {key}")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(
        tmp_path,
        {
            "r.txt": f"{LOOK}\n---\nDone.",
            "w.txt": '(write-file :path "a" :content "b")\n---\nWritten.',
            "s.txt": 'I log in.\n\n(log-in :key "hush")\n---\nIn.',
            "hide.hy": HIDE,
        },
    )


def streamed(here: Path, *words: str, code: int = 0) -> list[dict[str, Any]]:
    said = quoth(*words, "--json", "--stream", cwd=here)
    assert said.code == code, said
    return [json.loads(line) for line in said.out.splitlines()]


def test_each_event_is_a_line_and_the_last_is_the_object_of_json(here: Path) -> None:
    lines = streamed(here, "run", "Go.", "--model", "scripted:r.txt", "--session", "s")
    kinds = [line["event"] for line in lines if line["event"] not in ("usage", "text")]
    assert kinds == ["turn", "said", "written", "thought", "call", "result", "turn", "said", "thought", "end"]
    once = json.loads(quoth("run", "Go.", "--model", "scripted:r.txt", "--json", cwd=here).out)
    assert lines[-1]["data"].keys() == once.keys()
    assert (lines[-1]["data"]["reply"], lines[-1]["data"]["session"]) == ("Done.", "s")


def test_a_session_is_resumed_as_lines_too(here: Path) -> None:
    given = ("--model", "scripted:w.txt", "--user", "ann")
    lines = streamed(here, "run", "Go.", *given, "--session", "s", "--no-input", code=3)
    assert lines[-1]["data"]["status"] == "pending"
    assert quoth("deny", json.loads(quoth("pending", "--json", cwd=here).out)[0]["id"], cwd=here).code == 0
    lines = streamed(here, "resume", "s", "--user", "ann")
    assert [line["data"]["reply"] for line in lines if line["event"] == "end"] == ["Written."]
    assert lines[-1]["event"] == "end"


def test_no_line_holds_a_declared_secret(here: Path) -> None:
    said = quoth(
        "run", "Go.", "--model", "scripted:s.txt", "--tools", "hide.hy", "--json", "--stream", cwd=here
    )
    assert "I log in." in said.out
    assert "hush" not in said.out + said.err
    assert '"text"' not in [json.loads(line)["event"] for line in said.out.splitlines()]


def test_stream_wants_json(here: Path) -> None:
    said = quoth("run", "Go.", "--model", "scripted:r.txt", "--stream", cwd=here)
    assert (said.code, said.out) == (2, "")
    assert said.err == "quoth: --stream prints each event as a line of JSON; it goes with --json.\n"


@pytest.mark.parametrize("words", [("run", "Go."), ()], ids=["run", "the REPL"])
def test_thoughts_are_told_beside_the_reply_on_request(here: Path, words: tuple[str, ...]) -> None:
    (here / "t.txt").write_text("<think>It is late.</think>Done.\n---\n<think>It is late.</think>Done.")
    for asked in (True, False):
        flag = ["--thoughts"] if asked else []
        said = quoth(*words, *flag, "--model", "scripted:t.txt", cwd=here, stdin=None if words else "Go.\n")
        assert ("∴ It is late." in said.err) == asked
        assert "Done." in said.out
        assert "It is late." not in said.out
