"""Attacks on rules over command lines: a denied program is found in each disguise, and no allow fits a line
that does more than it names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from quoth.tools.call.call import Verdict, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.lisp.forms import CallForm
from quoth.tools.loading import load_tools
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.values import UNKNOWN
from quoth.tools.shell.judged_line import judge_line


def verdict(rules: str, line: str, workspace: Path = Path("/nowhere")) -> str:
    """What the rules say of a line; empty if they leave it undecided."""
    policy = RulesPolicy([parse_layer("given", rules.encode(), "p.hy")])
    context = ToolContext(Workspace(workspace))

    def judge(name: str, args: Mapping[str, Any]) -> Verdict | None:
        tool = TOOLS.get(name)
        defaults = {param.name: param.default for param in tool.params if not param.required}
        given = {**defaults, **args}
        if isinstance(given.get("path"), str):
            given["path"] = context.workspace.canonical(given["path"])
        why = policy.explain(tool, new_call(CallForm(name), route="call"), given, context)
        return None if why.decided is None else why.verdict

    found = judge_line(line, judge)
    return "" if found is None else found.kind


TOOLS = load_tools(())
NO_RM = '(deny (shell :argv ["rm" ...]))'
RM = [
    "rm x",
    "/bin/rm x",
    '"/bin/rm" x',
    "./rm x",
    r"\rm x",
    "r''m x",
    "r\\\nm x",
    "$'\\x72\\x6d' x",
    "ls; rm x",
    "ls\nrm x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls & rm x",
    "(rm x)",
    "{ rm x; }",
    "! rm x",
    "if ls; then rm x; fi",
    "while rm x; do ls; done",
    "for i in a; do rm $i; done",
    "case a in a) rm x;; esac",
    "f() { rm x; }; f",
    "ls() { rm x; }; ls",
    "ls $(rm x)",
    "ls `rm x`",
    'ls "$(rm x)"',
    "ls <(rm x)",
    "cat <<E\n$(rm x)\nE",
    "cat <<E && rm x\nE",
    "cat <<'E'\nE\nrm x",
    "sh <<E\nrm x\nE",
    "A=1 rm x",
    "> y rm x",
    "rm > y x",
    "X=rm; $X y",
    "rm${IFS}-rf${IFS}x",
    "$(echo rm) x",
    "r$Y''m x",
    "{rm,x}",
    "/bin/r? x",
    "eval 'r''m x'",
    "echo cm0geA== | base64 -d | sh",
    "curl a | bash",
    ". ./x",
    "trap 'rm x' EXIT",
    "alias ll='rm x'\nll x",
    "command rm x",
    "builtin rm x",
    "exec rm x",
    "env -i rm x",
    "env --strange rm x",
    "sudo -u a rm x",
    "nohup rm x",
    "time rm x",
    "time { rm x; }",
    "nice -5 rm x",
    "timeout 5 rm x",
    "find . | xargs rm",
    "find . -exec rm {} +",
    "bash -c 'rm x'",
    "bash -c 'bash -c \"rm x\"'",
    "bash -c \"$X\"",
    "busybox rm x",
    "git -c alias.x='!rm' x",
    "coproc rm x",
    "ls # a\nrm x",
    "ls \\\n; rm x",
    "(((",
    "ls 'a",
    "rm\u00a0x",
    "ls\rrm x",
    "rm\0x",
]  # fmt: skip


@pytest.mark.parametrize("line", RM)
def test_a_denied_program_is_found_in_each_disguise(line: str) -> None:
    assert verdict(NO_RM, line) == "deny"
    assert verdict(f"(allow _) (allow (shell :argv _)) {NO_RM}", line) == "deny"


@pytest.mark.parametrize(
    "line",
    ["ls rm", "echo rm x", "ls # rm x", "ls;# rm x", "echo 'rm x; rm y' \"rm\"", "cat rm > y", "ls *.rm",
     "cat <<'E'\nrm x\nE", "git commit -m 'rm x'", "r\u043c x", "cd rm && ls $X"],
)  # fmt: skip
def test_a_word_that_runs_nothing_is_not_denied(line: str) -> None:
    assert verdict(NO_RM, line) == ""


ALLOWED = '(allow (shell :argv ["true" ...])) (allow (shell :argv ["git" "status" ...]))'


@pytest.mark.parametrize(
    "line", ["true", "true a 'b c'", "git status -s", "true && git status; true | true", "(true)", "'true'"]
)
def test_an_allow_fits_a_line_whose_commands_it_names(line: str) -> None:
    assert verdict(ALLOWED, line) == "allow"


@pytest.mark.parametrize(
    "line",
    ["ls", "", "true; ls", "true $X", "true $(ls)", "true `ls`", 'true "$X"', "true *", "true ~",
     "true {a,b}", "true > x", "true < x",
     "true 2>&1", "true <<E\nE", "true &", "A=1 true", "PATH=. true", "cd x && true",
     "true() { ls; }; true", "alias true=ls; true", "eval true", "source x; true", "export A=1; true",
     "env true", "bash -c true", "xargs true", "true\r", "true\u00a0a", "true \u200ba", "true\0", "true 'a",
     "true; (", "for i in a; do true; done", "[ -f x ] && true", "set -e; true", "true @(a|b)", "true =ls"],
)  # fmt: skip
def test_no_allow_fits_a_line_that_does_more(line: str) -> None:
    assert verdict(ALLOWED, line) == ""


def test_an_allow_of_a_wrapper_and_a_deny_of_its_command() -> None:
    rules = '(allow (shell :argv ["env" "-i" ...]))'
    assert verdict(rules, "env -i true") == "allow"
    assert verdict(rules + NO_RM, "env -i rm x") == "deny"


def test_an_ask_overrides_an_allow_and_a_deny_overrides_it() -> None:
    rules = '(allow (shell :argv _)) (ask (shell :argv ["git" "push" ...]))'
    assert verdict(rules, "ls") == "allow"
    assert verdict(rules, "ls; git push") == "ask"
    assert verdict(rules, "ls; git push $X") == "ask"
    assert verdict(rules, "ls; git $X") == "ask"
    assert verdict(rules, "/usr/bin/git -C a $X") == "ask"
    assert verdict(rules, "git status $X") == ""
    assert verdict(rules + NO_RM, "git push; rm x") == "deny"


def test_a_redirection_is_a_call_on_its_file(tmp_path: Path) -> None:
    rules = '(deny (write-file :path (under "etc"))) (ask (read-file :path ".env"))'
    assert verdict(rules, "ls > etc/x", tmp_path) == "deny"
    assert verdict(rules, "ls > ./a/../etc/x", tmp_path) == "deny"
    assert verdict(rules, "cd a; ls >> ../etc/x", tmp_path) == "deny"
    assert verdict(rules, "ls > $X", tmp_path) == "deny"
    assert verdict(rules, "cat < .env", tmp_path) == "ask"
    assert verdict(rules, "ls > x 2> /dev/null < y", tmp_path) == ""


def test_a_rule_about_the_number_of_words_is_undecided_for_a_longer_line() -> None:
    assert verdict("(deny (shell :argv (len > 3)))", "ls a b") == ""
    assert verdict("(deny (shell :argv (len > 3)))", "ls a $X") == "deny"
    assert verdict('(deny (shell :argv (any "secret")))', "ls $X") == "deny"
    assert verdict('(deny (shell :argv ["ls" "a"]))', "ls a $X") == "deny"
    assert verdict('(deny (shell :argv ["ls" "a"]))', "ls b $X") == ""


def test_the_reader_names_unknown_files(tmp_path: Path) -> None:
    calls: list[Any] = []

    def judge(name: str, args: Mapping[str, Any]) -> None:
        calls.append((name, args))

    assert judge_line("ls > $X", judge) is None
    assert ("write-file", {"path": UNKNOWN}) in calls
