"""``--policy``, ``quoth policy`` and ``quoth trust`` as a person or a program uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_NUMBER_FROM_0,
    HAS_CHANGED_SINCE_IT_WAS,
    IS_NEVER_CLOSED,
    IS_NOT_A_FOLDER,
    IS_NOT_TRUSTED,
    IS_NOT_TRUSTED_SO,
    IS_TRUSTED_IN_ITS,
    IT_ONLY_READS,
    IT_WRITES_FILES,
    ITS_TRUST_WAS_REMOVED,
    NO_LONGER_HAS,
    READ_IT_THEN_RUN,
    RESTORE_IT_OR_RUN,
    THERE_IS_NO_POLICY_FILE,
    THERE_IS_NO_TOOL_NAMED,
    WAS_TRUSTED_AND_IS_GONE,
)
from words import Said, agent, complaint, files, quoth, story

from quoth.agent.cli.main import main
from quoth.agent.client import Agent
from quoth.agent.run.calls import judged
from quoth.tools.errors import UsageError
from quoth.tools.policy.files import digest_of
from quoth.tools.policy.language import UNITS
from quoth.tools.policy.model import PERS
from quoth.tools.policy.spending import BYS

RULES = """; what this project allows
(deny (write-file :path (not (under "src"))) :why "only src")
(ask (read-file :path (matches "secret")))
(allow (write-file))
(quota echo 3 :per :day)
"""
WRONG = """(deny (wirte-file))
(ask (read-file :pth "x"))
(deny (edit-file))
  (allow (edit-file :path (under "src")))
(allow (edit-file))
(deny (edit-file))
(ask (any-tool :zzz 1))
(cooldown ehco 3 :seconds)
"""
WRITE = '(write-file :path "{}" :content "x")'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path / "ws", {"p.hy": RULES, "wrong.hy": WRONG, "a.txt": "one", "src/b.txt": "two"})


def data(said: Said) -> Any:
    """What a command printed for a program, and nothing beside it."""
    assert said.err == ""
    return json.loads(said.out)


# The rules that ship

EXAMPLE = {
    # how a program is called: what the example says of it
    '["git" "status"]': "allow",
    '["git" "log" "--oneline" "-5"]': "allow",
    '["git" "log" "--output=x"]': "ask",
    '["git" "diff" "--outp" "x"]': "ask",
    '["git" "-c" "core.pager=sh" "log"]': "ask",
    '["git" "-c" "alias.log=!sh" "log"]': "ask",
    '["git" "--exec-path=." "status"]': "ask",
    '["git" "-C" ".." "status"]': "ask",
    '["git" "grep" "-Osh" "x"]': "ask",
    '["git" "branch" "-D" "main"]': "ask",
    '["git" "commit" "-m" "Mend it"]': "allow",
    '["git" "commit" "--amend" "-m" "x"]': "ask",
    '["git" "push"]': "ask",
    '["./git" "status"]': "ask",
    '["pytest" "-q"]': "allow",
    '["pytest" "-q"] :network True': "ask",
    '["python3" "-m" "pytest"]': "allow",
    '["python3" "-m" "http.server"]': "ask",
    '["python3" "-c" "1"]': "ask",
    '["make" "test"]': "allow",
    '["make" "test" "SHELL=x"]': "ask",
    '["sh" "-c" "git status"]': "ask",
    '["/bin/bash" "x"]': "ask",
    '["env" "git" "status"]': "ask",
}  # fmt: skip


def test_the_rules_that_ship_allow_what_they_name_and_no_way_around(tmp_path: Path) -> None:
    said = quoth("policy", "example", cwd=tmp_path)
    (tmp_path / "p.hy").write_text(said.out)
    checked = quoth("policy", "check", "p.hy", cwd=tmp_path)
    assert (checked.code, checked.out) == (0, "p.hy: 12 rules; no findings.\n")
    with agent(tmp_path, policy=tmp_path / "p.hy") as here:
        judged_so = {argv: verdict(here, argv) for argv in EXAMPLE}
    assert judged_so == EXAMPLE
    why = quoth(
        "policy", "explain", '(shell ["make" "test"] :network True)', "--policy", "p.hy", cwd=tmp_path
    )
    assert (
        why.out
        == "ask: it runs a program.\nNo rule matches. A rule that allows this call must name :network.\n"
    )


def test_a_rule_about_one_of_several_commands_reads_naturally(tmp_path: Path) -> None:
    rule = '(allow (shell :argv ["git" (one-of "status" "log" "diff") ...]))'
    (tmp_path / "p.hy").write_text(rule)
    with agent(tmp_path, policy=tmp_path / "p.hy") as here:
        for argv, kind in (('["git" "log" "-1"]', "allow"), ('["git" "push"]', "ask"), ('["git"]', "ask")):
            assert verdict(here, argv) == kind


def verdict(here: Agent, argv: str) -> str:
    """What the rules say of a program."""
    return judged(here._agent.host, f"(shell :argv {argv})", "call")[1].verdict.kind


# A policy in use


def test_a_policy_file_rules_a_call(here: Path) -> None:
    denied = quoth("call", WRITE.format("a.txt"), "--policy", "p.hy", cwd=here)
    assert denied == Said(
        1,
        "",
        "quoth: write-file was denied: p.hy:2 says "
        '(deny (write-file :path (not (under "src"))) :why "only src").\n',
    )
    assert (here / "a.txt").read_text() == "one"
    assert quoth("--policy", "p.hy", "call", WRITE.format("src/c"), cwd=here).code == 0
    assert quoth("call", WRITE.format("src/d"), cwd=here).code == 3


def test_yes_answers_questions_and_lifts_no_deny(here: Path) -> None:
    assert quoth("call", '(read-file "secret")', "--policy", "p.hy", cwd=here).code == 3
    assert quoth("call", WRITE.format("a.txt"), "--policy", "p.hy", "--yes", cwd=here).code == 1


def test_a_policy_rules_the_inner_calls_of_a_program(here: Path) -> None:
    said = quoth("eval", WRITE.format("a.txt"), "--policy", "p.hy", "--json", cwd=here)
    assert json.loads(said.out)["status"] == "denied"


def test_a_policy_rules_what_a_model_calls(here: Path) -> None:
    told = story(here, WRITE.format("a.txt"), "I may not.", policy=here / "p.hy")
    assert told.statuses == ["denied"]
    assert ":why" in told.shown(2)


def test_a_policy_that_cannot_be_read_stops_the_command(here: Path) -> None:
    files(here, {"bad.hy": "(deny (undr))\n(dny)"})
    said = quoth("call", '(echo "x")', "--policy", "bad.hy", cwd=here)
    assert said == Said(2, "", "quoth: bad.hy:2:2: There is no rule dny. Did you mean deny?\n  (dny)\n   ^\n")
    said = quoth("call", '(echo "x")', "--policy", "none.hy", "--json", cwd=here)
    assert (said.code, json.loads(said.out)["message"]) == (2, f"{THERE_IS_NO_POLICY_FILE} none.hy.")


def test_a_persons_own_policy_holds_everywhere(here: Path, state: Path) -> None:
    files(state / "config", {"policy.hy": "(deny (echo))"})
    said = quoth("call", '(echo "x")', cwd=here)
    assert (said.code, "config/policy.hy:1 says (deny (echo))" in said.err) == (1, True)


def test_an_agent_takes_a_policy(here: Path) -> None:
    with agent(here, policy=str(here / "p.hy")) as one:
        assert one.call(WRITE.format("a.txt")).status == "denied"
        assert one.call(WRITE.format("src/e")).ok
    assert "is the path of a file" in complaint(UsageError, lambda: agent(here, policy=3))


def test_no_tool_writes_a_policy(here: Path, state: Path) -> None:
    files(here, {"all.hy": '(allow _)\n(allow (write-file :path (under ".quoth")))'})
    with agent(here, policy=here / "all.hy") as one:
        for path in ("all.hy", ".quoth/policy.hy", ".quoth/other", "src/../.quoth/policy.hy"):
            result = one.call(WRITE.format(path))
            assert result.status == "error"
            assert "belongs to quoth itself" in result.message
        assert one.call(WRITE.format("p.hy")).ok
    assert (here / "all.hy").read_text().startswith("(allow _)")


# quoth trust


def test_a_workspaces_policy_counts_once_it_is_trusted(here: Path) -> None:
    own = (
        files(here, {".quoth/policy.hy": "(deny (list-files))\n(allow (write-file))\n"}) / ".quoth/policy.hy"
    )
    note = f"quoth: {own} {IS_NOT_TRUSTED_SO} its rules do not apply; {READ_IT_THEN_RUN}: quoth trust\n"
    before = quoth("call", "(list-files)", cwd=here)
    assert (before.code, before.err) == (0, note)
    digest = digest_of(own.read_bytes())
    assert quoth("trust", "--yes", cwd=here) == Said(
        0,
        f".quoth/policy.hy {IS_TRUSTED_IN_ITS}, SHA-256 {digest}:\n"
        "  (deny (list-files))\n"
        "  (allow (write-file))  (ignored, because a workspace may only tighten the rules)\n",
        "",
    )
    after = quoth("call", "(list-files)", cwd=here)
    assert after == Said(
        1, "", "quoth: list-files was denied: .quoth/policy.hy:1 says (deny (list-files)).\n"
    )
    assert quoth("call", WRITE.format("x"), cwd=here).code == 3


def test_a_trusted_policy_that_changes_stops_every_command(here: Path) -> None:
    own = files(here, {".quoth/policy.hy": "(deny (echo))"}) / ".quoth/policy.hy"
    assert data(quoth("trust", str(here), "--json", "--yes", cwd=here.parent)) == {
        "status": "trusted",
        "workspace": str(here),
        "file": ".quoth/policy.hy",
        "sha256": digest_of(b"(deny (echo))"),
        "rules": ["(deny (echo))"],
        "ignored": [],
    }
    own.write_text("")
    changed = f"quoth: {own} {HAS_CHANGED_SINCE_IT_WAS}; {READ_IT_THEN_RUN}: quoth trust\n"
    assert quoth("call", '(echo "x")', cwd=here) == Said(2, "", changed)
    own.unlink()
    gone = f"quoth: {own} {WAS_TRUSTED_AND_IS_GONE}; {RESTORE_IT_OR_RUN}: quoth trust\n"
    assert quoth("call", '(echo "x")', cwd=here) == Said(2, "", gone)
    assert quoth("trust", "--yes", cwd=here) == Said(
        0, f"{here} {NO_LONGER_HAS} a policy; {ITS_TRUST_WAS_REMOVED}.\n", ""
    )
    assert quoth("call", '(echo "x")', cwd=here) == Said(0, "x\n", "")


def test_what_cannot_be_trusted(here: Path) -> None:
    assert quoth("trust", "--yes", cwd=here) == Said(
        2,
        "",
        f"quoth: {here} has nothing to trust: no .quoth/policy.hy, settings, startup file, .mcp.json, "
        "AGENTS.md or skill.\n",
    )
    assert quoth("trust", "nope", cwd=here) == Said(2, "", f"quoth: The workspace nope {IS_NOT_A_FOLDER}.\n")
    files(here, {".quoth/policy.hy": "(deny"})
    assert quoth("trust", "--yes", cwd=here).err.startswith(
        f"quoth: .quoth/policy.hy:1:1: this ( {IS_NEVER_CLOSED}"
    )
    assert IS_NOT_TRUSTED in quoth("call", '(echo "x")', cwd=here).err


def test_the_settings_of_a_workspace_are_trusted_with_its_policy(here: Path) -> None:
    settings = '(model "local")\n\n(budget :steps 3)\n'
    files(here, {".quoth/policy.hy": "(deny (echo))", ".quoth/config.hy": settings})
    assert quoth("trust", "--yes", cwd=here).out.split("SHA-256")[1:] == [
        f" {digest_of(b'(deny (echo))')}:\n  (deny (echo))\n.quoth/config.hy {IS_TRUSTED_IN_ITS}, ",
        f' {digest_of(settings.encode())}:\n  (model "local")\n  (budget :steps 3)\n',
    ]
    (here / ".quoth/policy.hy").unlink()
    assert data(quoth("trust", "--json", "--yes", cwd=here)) == {
        "status": "trusted",
        "workspace": str(here),
        "config": {"file": ".quoth/config.hy", "sha256": digest_of(settings.encode())},
    }
    files(here, {".quoth/policy.hy": "(deny (echo))", ".quoth/config.hy": '(modle "x")'})
    assert quoth("trust", "--yes", cwd=here).err.startswith(
        "quoth: .quoth/config.hy:1:2: There is no setting modle."
    )
    (here / ".quoth/config.hy").unlink()
    (here / ".quoth/policy.hy").unlink()
    assert quoth("trust", "--yes", cwd=here).out == (
        f"{here} {NO_LONGER_HAS} settings; {ITS_TRUST_WAS_REMOVED}.\n"
    )


def test_trust_that_cannot_be_kept_is_told(here: Path) -> None:
    files(here, {".quoth/policy.hy": "(deny (echo))", "state": "a file"})
    said = quoth("trust", "--yes", cwd=here, env={"QUOTH_STATE": str(here / "state")})
    assert said == Said(2, "", f"quoth: The trust cannot be stored in {here}/state/trust: Not a directory.\n")


# quoth policy check


def test_check_shows_each_finding_with_its_place(here: Path) -> None:
    assert quoth("policy", "check", "wrong.hy", cwd=here) == Said(
        1,
        """\
wrong.hy:1:8: There is no tool named wirte-file. Did you mean write-file?
  (deny (wirte-file))
         ^
wrong.hy:2:17: read-file has no argument :pth. Did you mean :path?
  (ask (read-file :pth "x"))
                  ^
wrong.hy:4:3: This allow has no effect: wrong.hy:3 denies these calls and more.
    (allow (edit-file :path (under "src")))
    ^
wrong.hy:5:1: This allow has no effect: wrong.hy:3 denies the same calls.
  (allow (edit-file))
  ^
wrong.hy:6:1: This rule is already given at wrong.hy:3.
  (deny (edit-file))
  ^
wrong.hy:7:16: No tool has an argument :zzz.
  (ask (any-tool :zzz 1))
                 ^
wrong.hy:8:11: There is no tool named ehco. Did you mean echo?
  (cooldown ehco 3 :seconds)
            ^
""",
        "",
    )


def test_check_for_programs(here: Path) -> None:
    said = quoth("policy", "check", "wrong.hy", "--json", cwd=here)
    found = json.loads(said.out)
    assert said.code == 1
    assert [(one["kind"], one["line"], one["column"]) for one in found] == [
        ("unknown-tool", 1, 8),
        ("unknown-argument", 2, 17),
        ("dead", 4, 3),
        ("conflict", 5, 1),
        ("duplicate", 6, 1),
        ("unknown-argument", 7, 16),
        ("unknown-tool", 8, 11),
    ]
    assert found[0] == {
        "kind": "unknown-tool",
        "message": f"{THERE_IS_NO_TOOL_NAMED} wirte-file. Did you mean write-file?",
        "file": "wrong.hy",
        "line": 1,
        "column": 8,
        "shown": f"wrong.hy:1:8: {THERE_IS_NO_TOOL_NAMED} wirte-file. Did you mean write-file?\n"
        "  (deny (wirte-file))\n         ^",
    }


def test_check_without_findings(here: Path) -> None:
    done = "p.hy: 3 rules, 1 limit; no findings.\n"
    assert quoth("policy", "check", "p.hy", cwd=here) == Said(0, done, "")
    assert quoth("policy", "check", "--policy", "p.hy", cwd=here) == Said(0, done, "")
    assert data(quoth("policy", "check", "p.hy", "--json", cwd=here)) == []
    none = "No policy file applies; the effects of a tool decide about its calls.\n"
    assert quoth("policy", "check", cwd=here) == Said(0, none, "")


def test_check_of_a_workspace_knows_that_it_may_only_tighten(here: Path, state: Path) -> None:
    own = files(here, {".quoth/policy.hy": "(allow (write-file))"}) / ".quoth/policy.hy"
    files(state / "config", {"policy.hy": "(deny (edit-file))"})
    expected = (
        ".quoth/policy.hy:1:1: A workspace's own policy may only tighten; this allow is ignored.\n"
        "  (allow (write-file))\n  ^\n"
    )
    assert quoth("policy", "check", str(own), cwd=here).out == expected.replace(".quoth", f"{here}/.quoth")
    both = quoth("policy", "check", cwd=here)
    assert both.code == 1
    assert both.out.startswith(expected)
    assert both.out.endswith("config/policy.hy: 1 rule; no findings.\n")
    assert both.err == f"quoth: {own} {IS_NOT_TRUSTED} in its present form; {READ_IT_THEN_RUN}: quoth trust\n"


def test_check_knows_the_tools_of_a_file(here: Path) -> None:
    files(
        here,
        {
            "mine.hy": '(require quoth [def-cognitive-tool])\n(def-cognitive-tool mine "M." :body 1)',
            "q.hy": "(allow (mine))",
        },
    )
    assert quoth("policy", "check", "q.hy", cwd=here).code == 1
    assert quoth("policy", "check", "q.hy", "--tools", "mine.hy", cwd=here).code == 0


# quoth policy explain


def explained(form: str, *more: str, cwd: Path) -> Said:
    return quoth("policy", "explain", form, "--policy", "p.hy", *more, cwd=cwd)


def test_explain_says_which_rule_decides(here: Path) -> None:
    deny = '(deny (write-file :path (not (under "src"))) :why "only src")'
    assert explained(WRITE.format("a.txt"), cwd=here) == Said(
        0,
        f"deny: p.hy:2 says {deny}.\n"
        f"  p.hy:2  {deny}  (decides)\n"
        "  p.hy:4  (allow (write-file))\n"
        f"Without rules: ask, because {IT_WRITES_FILES}.\n",
        "",
    )
    assert explained('(read-file "a.txt")', cwd=here).out == f"allow: {IT_ONLY_READS}.\nNo rule matches.\n"
    assert explained('(echo "x")', cwd=here).out == (
        "allow: it touches nothing.\n  p.hy:5  (quota echo 3 :per :day)  (a limit)\n"
    )


def test_explain_runs_nothing(here: Path) -> None:
    assert explained(WRITE.format("src/new"), cwd=here).out.startswith("allow: p.hy:4 says")
    assert not (here / "src/new").exists()


def test_explain_for_programs(here: Path) -> None:
    found = data(explained(WRITE.format("a.txt"), "--json", cwd=here))
    assert found["verdict"] == "deny"
    assert found["form"] == '(write-file :content "x" :path "a.txt")'
    assert found["default"] == {"verdict": "ask", "reason": IT_WRITES_FILES}
    assert found["limits"] == []
    assert [match["line"] for match in found["matches"]] == [2, 4]
    assert found["decided_by"] == {
        "layer": "given",
        "kind": "deny",
        "rule": '(deny (write-file :path (not (under "src"))) :why "only src")',
        "why": "only src",
        "file": "p.hy",
        "line": 2,
        "column": 1,
        "decidable": True,
        "counts": True,
    }


def test_explain_by_another_way(here: Path) -> None:
    files(
        here,
        {"p.hy": '(deny (nested))\n(ask (route "reply") (user "ann"))\n(deny (echo) (depth > 5))'},
    )
    assert explained('(echo "x")', cwd=here).out.startswith("allow")
    assert explained('(echo "x")', "--nested", cwd=here).out.startswith("deny: p.hy:1 says (deny (nested))")
    assert explained('(echo "x")', "--route", "reply", "--user", "ann", cwd=here).out.startswith(
        "ask: p.hy:2"
    )
    assert explained('(echo "x")', "--route", "reply", "--user", "bob", cwd=here).out.startswith("allow")
    files(here, {"p.hy": '(deny (client "zed"))'})
    assert explained('(echo "x")', "--client", "zed", cwd=here).out.startswith("deny: p.hy:1")
    assert explained('(echo "x")', cwd=here).out.startswith("allow")


def test_explain_of_a_reply_that_says_how_sure_it_is(here: Path) -> None:
    files(here, {"p.hy": '(ask (echo) (confidence (< 0.5)) :why "the model guesses")'})
    way = ["--route", "chat"]
    assert explained('(echo "x")', *way, "--confidence", "0.4", cwd=here).out.startswith("ask: p.hy:1 says")
    assert explained('(echo "x")', *way, "--confidence", "0.5", cwd=here).out.startswith("allow")
    assert "(decides; cannot be decided, so it applies)" in explained('(echo "x")', *way, cwd=here).out
    refused = explained('(echo "x")', "--confidence", "50", cwd=here).err
    assert refused.startswith(f"quoth: Argument --confidence: expected {A_NUMBER_FROM_0} to 1, not 50.")


def test_explain_shows_what_cannot_be_decided(here: Path) -> None:
    files(here, {"p.hy": "(ask (echo :text (> 1)))\n(allow (echo :text (not (> 1))))"})
    assert explained('(echo "x")', cwd=here).out == (
        "ask: p.hy:1 says (ask (echo :text (> 1))), and quoth cannot decide whether it matches.\n"
        "  p.hy:1  (ask (echo :text (> 1)))  (decides; cannot be decided, so it applies)\n"
        "  p.hy:2  (allow (echo :text (not (> 1))))  (cannot be decided, so it does not apply)\n"
        "Without rules: allow, because it touches nothing.\n"
    )


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ('(ehco "x")', f"{THERE_IS_NO_TOOL_NAMED} ehco. Did you mean echo?"),
        ("(echo)", "echo: :text is missing."),
        ('(echo "x"', f"line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end"),
        ('"x"', 'A call is a form such as (echo :text "hi"); this is "x".'),
    ],
)
def test_explain_refuses_what_is_no_call(here: Path, form: str, message: str) -> None:
    said = explained(form, cwd=here)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"quoth: {message}")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["policy"], "The following arguments are required: ACTION. See: quoth policy --help"),
        (
            ["policy", "explain"],
            "Give a call to explain, or a session with --session ID.",
        ),
        (["policy", "explain", "(echo)", "--route", "chad"], "There is no route chad. Did you mean chat?"),
        (["policy", "check", "--polcy", "x"], "quoth policy has no option --polcy. Did you mean --policy?"),
        (["policy", "check", "none.hy"], f"{THERE_IS_NO_POLICY_FILE} none.hy."),
    ],
)
def test_a_mistaken_command_is_told_in_a_sentence(here: Path, words: list[str], message: str) -> None:
    assert quoth(*words, cwd=here) == Said(2, "", f"quoth: {message}\n")


# Each spelling of a limit that is no fault is counted

LIMITS = [
    *(f"(quota echo 1 :per :{per}{by})" for per in PERS for by in ("", *(f" :by :{by}" for by in BYS))),
    *(f"(cooldown echo 1.5 :{unit}{by})" for unit in UNITS for by in ("", *(f" :by {by}" for by in BYS))),
    "(cooldown echo 876000 :hours)",
    f"(quota echo {10**299} :per :day)",
]


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_passes_the_check_is_kept(
    limit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files(tmp_path, {"p.hy": limit})
    assert main(["policy", "check", str(tmp_path / "p.hy")]) == 0, capsys.readouterr().err
    with agent(tmp_path, policy=tmp_path / "p.hy") as it:
        statuses = [it.call(f'(echo :text "{n}")').status for n in range(2)]
    assert statuses == (["ok", "ok"] if "000" in limit and "quota" in limit else ["ok", "limited"])
