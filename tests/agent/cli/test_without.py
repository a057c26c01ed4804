"""``--without NAME``: a tool that ships is left out, wherever the table is used, and stays so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentences import THERE_IS_ALREADY_A_TOOL, THERE_IS_NO_TOOL_NAMED, WHICH_IS_NOT_DEFINED
from words import agent, complaint, files, quoth, story, tool

from quoth import Agent, ToolOptions
from quoth.tools.errors import UsageError

OWN = """(require quoth [def-cognitive-tool])
(def-cognitive-tool grep-search "Search a heap."
  :parameters [word {:type str}] :body f"{word} is in the heap")
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path / "ws", {"own.hy": OWN, "a.txt": "one", "talk.txt": "Done.\n---\nDone again."})


@pytest.mark.parametrize(
    "words", [["--without", "list-files", "tools"], ["tools", "--without", "LIST_FILES"], ["belt"]]
)
def test_a_tool_that_is_left_out_is_in_no_list(here: Path, words: list[str]) -> None:
    assert "list-files" in quoth("tools", cwd=here).out
    told = quoth(*words, "--without", "list-files", "--without", "edit-file", cwd=here).out
    assert "read-file" in told
    assert "list-files" not in told
    assert "edit-file" not in told


def test_it_cannot_be_called_by_any_command(here: Path) -> None:
    said = quoth("call", "(list-files)", "--without", "list-files", cwd=here)
    assert (said.code, said.err.split(".")[0]) == (2, f"quoth: unknown: {THERE_IS_NO_TOOL_NAMED} list-files")
    said = quoth("eval", "(list-files)", "--without", "list-files", cwd=here)
    assert (said.code, f"list-files, {WHICH_IS_NOT_DEFINED}" in said.err) == (1, True)
    plan = files(here, {"p.org": "* PLAN one\n#+begin_src hy\n(list-files)\n#+end_src\n"}) / "p.org"
    assert quoth("fly", str(plan), "--check", "--without", "list-files", cwd=here).code == 2


def test_a_tool_of_ones_own_may_have_its_name(here: Path) -> None:
    own = ["call", '(grep-search "gold")', "--tools", "own.hy"]
    assert f"{THERE_IS_ALREADY_A_TOOL} grep-search" in quoth(*own, cwd=here).err
    assert quoth(*own, "--without", "grep-search", cwd=here).out == "gold is in the heap\n"


def test_a_name_that_does_not_ship_is_told_with_the_nearest(here: Path) -> None:
    said = quoth("tools", "--without", "list-fils", cwd=here)
    assert (said.code, said.err) == (
        2,
        "quoth: There is no built-in tool list-fils to leave out. Did you mean list-files?\n",
    )
    far = complaint(UsageError, lambda: Agent(workspace=here, tools=ToolOptions(without=["zzz"])))
    assert far.startswith("There is no built-in tool zzz to leave out. The built-in tools are ")


def test_a_session_that_goes_on_has_the_table_it_began_with(here: Path) -> None:
    options = ["--model", "scripted:talk.txt", "--session", "s"]
    assert quoth("run", "Look.", *options, "--without", "list-files", cwd=here).code == 0
    assert "without list-files" in quoth("log", "s", cwd=here).out
    assert quoth("resume", "s", "Look again.", cwd=here).code == 0
    events = json.loads(quoth("log", "s", "--json", cwd=here).out)
    assert [event["without"] for event in events if event["kind"] == "session"] == [["list-files"]]
    told = str([event for event in events if event["kind"] == "request"])
    assert "edit-file" in told
    assert "list-files" not in told
    assert quoth("replay", "s", cwd=here).code == 0


def test_an_agent_in_python_leaves_tools_out_too(here: Path) -> None:
    with agent(here, tools=ToolOptions([tool("hi", lambda: "hi")], without="list-files")) as own:
        assert own.call("(hi)").value == "hi"
        assert own.call("(list-files)").status == "unknown"


def test_a_run_without_it_tells_the_model_nothing_of_it(here: Path) -> None:
    told = story(here, "Done.", tools=ToolOptions(without=["list-files"]))
    assert "list-files" not in told.requests[0].decode()
