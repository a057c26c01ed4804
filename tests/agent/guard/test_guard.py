"""quoth guard: the calls of other agents under the rules here, each answer in the format of its agent."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hooks import AGENTS, RUNNER, Answered, answered, guarded, ran, sent, writing
from words import files, quoth

from quoth.agent.guard.calls import call_of, known_tools, name_of
from quoth.agent.guard.formats import FORMATS
from quoth.agent.guard.places import KEPT_SECONDS
from quoth.agent.guard.verdicts import READ_FILE, SHELL, WRITE_FILE
from quoth.tools.history.audit import StoreAudit
from quoth.tools.loading import load_tools
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import state_dir, store_path

SHELLS = [(agent, RUNNER[agent]) for agent in AGENTS]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path / "till", {".git/HEAD": "", "src/a.py": "a\n"})


@pytest.fixture
def rules(state: Path) -> Any:
    """Writes the user's own rules."""
    return lambda text: files(state / "config", {"policy.hy": text})


def rows(here: Path) -> list[dict[str, Any]]:
    store = Store(store_path(here))
    try:
        return StoreAudit(lambda: store).rows()
    finally:
        store.close()


# Each verdict of the rules, the options, and what each agent is told: Claude Code, Gemini CLI, Codex.
VERDICTS: dict[str, tuple[str, dict[str, bool], tuple[str, str, str]]] = {
    "a deny": ('(deny (shell :argv ["make" ...]))', {}, ("deny", "deny", "deny")),
    "an ask": ('(ask (shell :argv ["make" ...]))', {}, ("ask", "ask", "deny")),
    "an allow": ('(allow (shell :argv ["make" ...]))', {}, ("", "", "")),
    "an allow that is said": (
        '(allow (shell :argv ["make" ...]))',
        {"may_allow": True},
        ("allow", "allow", ""),
    ),
    "an allow under a strict guard": ('(allow (shell :argv ["make" ...]))', {"strict": True}, ("", "", "")),
    "no rule": ('(deny (shell :argv ["git" ...]))', {}, ("", "", "")),
    "no rule, and an allow would be said": ("", {"may_allow": True}, ("", "", "")),
    "no rule under a strict guard": ("", {"strict": True}, ("ask", "ask", "deny")),
    "careful": ("(careful)", {}, ("ask", "ask", "deny")),
    "a deny and an allow": (
        '(deny (shell :argv ["make" ...])) (allow _)',
        {"may_allow": True},
        ("deny", "deny", "deny"),
    ),
}


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("case", VERDICTS)
def test_each_verdict_is_said_in_the_format_of_the_agent(
    case: str, agent: str, here: Path, rules: Any
) -> None:
    text, options, said = VERDICTS[case]
    rules(text)
    assert ran(agent, "make test", here, **options).kind == said[AGENTS.index(agent)]
    (row,) = rows(here)
    assert (row["route"], row["tool"]) == ("guard", name_of(FORMATS[agent], RUNNER[agent]))


@pytest.mark.parametrize("agent", AGENTS)
def test_rules_see_the_paths_of_an_agent(agent: str, here: Path, rules: Any) -> None:
    rules('(deny (any-tool :path (under "secret")) :why "keys")')
    for path in (f"{here}/secret/a", "secret/a", "src/../secret/a"):
        assert "keys" in guarded(agent, *writing(agent, path), here).reason
    assert guarded(agent, *writing(agent, "src/a.py"), here) == Answered("")
    assert guarded(agent, *writing(agent, "a"), here / "src") == Answered("")
    files(here, {"secret/b": ""})
    assert "keys" in guarded(agent, *writing(agent, "a"), here / "secret").reason


@pytest.mark.parametrize("agent", AGENTS)
def test_a_rule_names_a_tool_its_arguments_its_client_and_the_route(
    agent: str, here: Path, rules: Any
) -> None:
    tool = name_of(FORMATS[agent], RUNNER[agent])
    rules(f'(deny ({tool} :command (matches "test")) (route "guard") (client "{agent}"))')
    assert ran(agent, "make test", here).kind == "deny"
    assert ran(agent, "make", here).kind == ""


@pytest.mark.parametrize("agent", AGENTS)
def test_the_tool_of_a_server_has_the_name_that_it_has_here(agent: str, here: Path, rules: Any) -> None:
    rules("(deny (github--get-issue :max-results (> 2)))")
    assert guarded(agent, "mcp__github__get_issue", {"maxResults": 3}, here).kind == "deny"
    assert guarded(agent, "mcp__github__get_issue", {"maxResults": 1}, here).kind == ""
    rules('(deny (mcp :server "github")) (ask (effects :net))')
    assert guarded(agent, "mcp__github__get_issue", {}, here).kind == "deny"
    assert guarded(agent, "mcp__other__get", {}, here).kind == ("deny" if agent == "codex" else "ask")


def test_a_person_says_what_the_tool_of_a_server_does(here: Path, rules: Any) -> None:
    rules("(deny (effects :net)) (effects github--get-issue :reads)")
    assert guarded("claude-code", "mcp__github__get_issue", {}, here).kind == ""
    assert guarded("claude-code", "mcp__github__close_issue", {}, here).kind == "deny"


def test_gemini_names_a_server_beside_the_call(here: Path, rules: Any) -> None:
    rules("(deny (my-server--get_issue))")
    context = {"server_name": "my_server", "tool_name": "get_issue", "command": "x"}
    call = sent("gemini-cli", "mcp_my_server_get_issue", {}, here, mcp_context=context)
    assert answered("gemini-cli", call).kind == "deny"


def test_a_server_does_not_take_the_name_of_an_agents_own_tool(here: Path, rules: Any) -> None:
    rules("(allow (claude-code--bash))")
    assert guarded("claude-code", "mcp__claude-code__bash", {}, here, may_allow=True).kind == ""
    assert name_of(FORMATS["claude-code"], "mcp__claude_code__bash") == "mcp--claude-code--bash"


def test_an_unknown_tool_may_do_anything_that_rules_ask_about(here: Path, rules: Any) -> None:
    rules("(deny (effects :writes))")
    assert guarded("claude-code", "Teleport", {"to": "x"}, here).kind == "deny"
    assert guarded("claude-code", "Read", {"file_path": "a"}, here).kind == ""


def test_the_project_is_that_of_the_folder_of_the_call(tmp_path: Path, here: Path) -> None:
    files(here, {".quoth/policy.hy": '(deny (shell :argv ["make" ...]))'})
    assert ran("codex", "make", here).kind == ""  # nobody has trusted it
    quoth("trust", "--yes", cwd=here)
    assert ran("codex", "make", here / "src").kind == "deny"
    other = files(tmp_path / "other", {".git/HEAD": ""})
    theirs = sent("codex", "Bash", {"command": "make"}, other, session_id="theirs")
    assert answered("codex", theirs).kind == ""


def test_quotas_count_the_calls_of_an_agent(here: Path, rules: Any) -> None:
    rules("(quota codex--bash 1 :per :day)")
    assert ran("codex", "ls", here).kind == ""
    assert "1 of 1" in ran("codex", "ls", here).reason


def test_the_users_gate_program_judges_the_call(here: Path, state: Path) -> None:
    gate = files(here, {"gate.sh": "#!/bin/sh\ngrep -q secret && { echo no secrets; exit 2; }; exit 0\n"})
    (gate / "gate.sh").chmod(0o755)
    files(state / "config", {"config.hy": f'(gate-command ["{gate}/gate.sh"])'})
    assert "no secrets" in ran("codex", "cat secret", here).reason
    assert ran("codex", "ls", here).kind == ""


# An approval, where the agent cannot ask


def test_the_approved_call_passes_once(here: Path, rules: Any) -> None:
    rules('(ask (shell :argv ["git" "push" ...]))')
    first = ran("codex", "git push", here)
    assert first.kind == "deny"
    request = first.reason.partition("quoth approve ")[2].split()[0]
    assert ran("codex", "git push", here).reason == first.reason  # the same request
    assert quoth("approve", request, cwd=here).code == 0
    assert ran("codex", "git push --force", here).kind == "deny"  # another call
    other = sent("codex", "Bash", {"command": "git push"}, here, session_id="of another day")
    assert answered("codex", other).kind == ""
    assert ran("codex", "git push", here).kind == "deny"
    kinds = [
        (row["status"], row["consent"].partition(" ")[0]) for row in rows(here) if row["route"] == "guard"
    ]
    assert kinds.count(("ok", "allow:")) == 1


def test_an_approval_of_a_patch_is_for_its_text(here: Path, rules: Any) -> None:
    rules('(ask (codex--apply-patch :paths (any (under "src"))))')
    tool, args = writing("codex", "src/a.py")
    request = guarded("codex", tool, args, here).reason.partition("quoth approve ")[2].split()[0]
    assert "+b" in quoth("pending", request, cwd=here).out  # the person sees the text
    quoth("approve", request, cwd=here)
    other = {"command": args["command"].replace("+b", "+c")}
    assert guarded("codex", tool, other, here).kind == "deny"
    assert guarded("codex", tool, args, here).kind == ""


def test_the_command_in_the_answer_is_the_one_that_approves(here: Path, rules: Any) -> None:
    rules("(ask (codex--apply-patch))")
    said = guarded("codex", *writing("codex", "src/a.py"), here).reason
    command = said.partition("with: ")[2].partition(". Then")[0].split()
    assert quoth(*command[1:], cwd=Path("/")).code == 0
    assert guarded("codex", *writing("codex", "src/a.py"), here).kind == ""


def test_what_a_person_refuses_is_denied_with_the_reason(here: Path, rules: Any) -> None:
    rules('(ask (shell :argv ["git" "push" ...]))')
    request = ran("codex", "git push", here).reason.partition("quoth approve ")[2].split()[0]
    quoth("deny", request, "--why", "not on Fridays", cwd=here)
    assert "not on Fridays" in ran("codex", "git push", here).reason


def test_no_request_is_stored_for_an_agent_that_asks_by_itself(here: Path, rules: Any) -> None:
    rules('(ask (shell :argv ["git" "push" ...]))')
    for agent in ("claude-code", "gemini-cli"):
        assert ran(agent, "git push", here).kind == "ask"
    assert quoth("pending", "--json", cwd=here).out.strip() == "[]"


# The tables


def test_the_tools_that_rules_see_are_the_tools_that_ship() -> None:
    table = load_tools([])
    for mine in (SHELL, READ_FILE, WRITE_FILE):
        real = table.get(mine.name)
        assert mine.effects == real.effects
        assert mine.ships
        params = {one.name: (one.type, one.default, one.named) for one in real.params}
        assert {one.name: (one.type, one.default, one.named) for one in mine.params}.items() <= params.items()
    assert {one.name for one in SHELL.params} == {one.name for one in table.get("shell").params}


def test_rules_about_other_agents_are_checked(here: Path) -> None:
    files(here, {"rules.hy": '(deny (claude-code--wrte :file-path "x"))\n(deny (codex--bash :comand "x"))'})
    said = quoth("policy", "check", "rules.hy", cwd=here)
    assert "Did you mean claude-code--write?" in said.out
    assert "Did you mean :command?" in said.out
    files(here, {"rules.hy": "(deny (claud-code--edit))"})
    assert "There is no tool named claud-code--edit" in quoth("policy", "check", "rules.hy", cwd=here).out
    files(here, {"rules.hy": "(deny (github--get-issue :id 3))"})  # of a server that only the agent has
    assert "no findings" in quoth("policy", "check", "rules.hy", cwd=here).out
    files(here, {"rules.hy": '(deny (claude-code--edit :old-string (matches "x")))'})
    assert "no findings" in quoth("policy", "check", "rules.hy", cwd=here).out


def test_each_known_tool_has_a_name_of_its_own_and_a_row_that_is_used() -> None:
    names = [tool.name for tool in known_tools()]
    assert len(names) == len(set(names))
    for agent in FORMATS.values():
        assert agent.read.endswith("2026")
        for tool, row in agent.tools.items():
            args: dict[str, Any] = dict.fromkeys((*row.paths[:1], *row.also), "a")
            args |= {row.command: "ls"} if row.command else {}
            args |= {row.patch: "*** Add File: a"} if row.patch else {}
            entry, form = call_of(agent, tool, args, "/")
            known = {one.name for one in next(one for one in known_tools() if one.name == entry.name).params}
            assert form.args.keys() <= known


def test_the_page_lists_what_no_hook_sees() -> None:
    text = " ".join(Path(__file__).parents[3].joinpath("agent/manual/guard.org").read_text().split())
    for agent in FORMATS.values():
        assert f"- {agent.title} :: " in text
        for what in agent.unseen:
            assert what in text


@pytest.mark.parametrize("agent", AGENTS)
def test_a_model_does_not_leave_the_rules_by_naming_another_folder(
    agent: str, here: Path, tmp_path: Path
) -> None:
    files(here, {".quoth/policy.hy": '(deny (shell :argv ["make" ...]) :why "ask ann")'})
    quoth("trust", "--yes", cwd=here)
    other = files(tmp_path / "other", {".git/HEAD": ""})
    call = (agent, RUNNER[agent], {"command": "make"})
    assert answered(agent, sent(*call, other, session_id="theirs")).kind == ""  # begun there
    named = answered(agent, sent(*call, other, session_id="theirs"), project=str(here))
    assert (named.kind, "ask ann" in named.reason) == ("deny", True)
    assert answered(agent, sent(agent, RUNNER[agent], {"command": "ls"}, here)).kind == ""
    assert "ask ann" in answered(agent, sent(*call, other)).reason  # a later call of the same session
    files(other, {".quoth/policy.hy": '(deny (shell :argv ["ls"]) :why "ask ben")'})
    quoth("trust", "--yes", cwd=other)
    both = answered(agent, sent(agent, RUNNER[agent], {"command": "ls"}, other))
    assert "ask ben" in both.reason
    assert "was started" in answered(agent, sent(*call, other), project=str(tmp_path / "gone")).reason


def test_two_projects_that_ask_need_one_approval(here: Path, tmp_path: Path) -> None:
    other = files(tmp_path / "other", {".git/HEAD": ""})
    for place, name in ((here, "ann"), (other, "ben")):
        files(place, {".quoth/policy.hy": f'(ask (shell :argv ["make" ...]) :why "{name} minds")'})
        quoth("trust", "--yes", cwd=place)
    for agent in AGENTS:
        asked = answered(agent, sent(agent, RUNNER[agent], {"command": "make"}, other), project=str(here))
        assert ("ann minds" in asked.reason, "ben minds" in asked.reason) == (True, True)
    (request,) = json.loads(quoth("pending", "--json", cwd=here).out)
    assert quoth("pending", "--json", cwd=other).out.strip() == "[]"
    assert quoth("approve", request["id"], cwd=here).code == 0
    call = sent("codex", RUNNER["codex"], {"command": "make"}, other)
    assert answered("codex", call, project=str(here)).kind == ""
    assert [row["status"] for row in rows(other)][-2:] == ["pending", "ok"]
    assert answered("codex", call, project=str(here)).kind == "deny"  # it was approved once
    quoth("approve", json.loads(quoth("pending", "--json", cwd=here).out)[0]["id"], cwd=here)
    files(other, {".quoth/policy.hy": ""})  # that approval was for the reasons of both
    quoth("trust", "--yes", cwd=other)
    assert answered("codex", call, project=str(here)).kind == "deny"


def test_the_first_folder_of_a_session_is_kept_while_it_is_used(here: Path) -> None:
    call = sent("codex", RUNNER["codex"], {"command": "ls"}, here, session_id="long")
    answered("codex", call)
    (record,) = (state_dir() / "guard").iterdir()
    long_ago = time.time() - KEPT_SECONDS - 1
    os.utime(record, (long_ago, long_ago))
    answered("codex", call)
    answered("codex", sent("codex", RUNNER["codex"], {"command": "ls"}, here, session_id="new"))
    assert record.exists()
