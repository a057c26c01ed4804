"""What is found in rules before any call: those that fit nothing, never matter, or protect too little."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import THERE_IS_NO_TOOL_NAMED
from words import files, form, table_of, tool

from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError
from quoth.tools.lisp.printer import Code
from quoth.tools.loading import load_tools
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.language import read_orders
from quoth.tools.policy.lint import check, unconfined, unseen_paths
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("(deny (echo))\n(ask (echo))", ["conflict"]),
        ("(allow (echo))\n(deny (echo))", ["conflict"]),
        ('(deny (echo) (nested) (user "a"))\n(allow (user "a") (echo) (nested))', ["conflict"]),
        ("(ask (depth > 2))\n(ask (depth (> 2)))", ["duplicate"]),
        ("(deny _)\n(ask (echo))", ["dead"]),
        ('(ask (echo))\n(ask (echo :text "a"))', ["dead"]),
        ('(ask (echo))\n(deny (echo :text "a"))', []),
        ('(allow (echo :text "a"))\n(deny (echo :text "b"))', []),
        ('(allow (echo))\n(deny (any-tool :text "a"))', []),
        ('(deny (any-tool :text "a"))\n(allow (echo :text "a"))', ["dead"]),
        ("(deny (echo) (nested))\n(deny (eval) (nested))", []),
        ("(deny (effects :writes))\n(deny (write-file))", []),
    ],
)
def test_rules_that_never_matter(tmp_path: Path, text: str, kinds: list[str]) -> None:
    policy = RulesPolicy([parse_layer("given", text.encode(), "p.hy")])
    assert [finding.kind for finding in check(policy, load_tools([]))] == kinds


@pytest.mark.parametrize(
    ("rule", "messages"),
    [
        ("(deny (user 3))", ['(user 3) never matches: it is compared with a text, as in (user "3").']),
        (
            "(deny (client 1 2))",
            ['(client 1 2) never matches: it is compared with a text, as in (client "1").'],
        ),
        ("(deny (depth 1))", ["(depth 1) matches no deeper calls; to match those too: (depth >= 1)."]),
        (
            '(deny (depth "1"))',
            ['(depth "1") never matches: it is compared with a number, as in (depth (> 2)).'],
        ),
        (
            '(deny (echo :text (not (len "x"))))',
            ['(len "x") never matches: it is compared with a number, as in (len (> 2)).'],
        ),
        ('(deny (echo :text (len 3)) (user "ann") (depth > 1))', []),
    ],
)
def test_values_of_another_kind_never_match(rule: str, messages: list[str]) -> None:
    policy = RulesPolicy([parse_layer("given", rule.encode(), "p.hy")])
    assert [finding.message for finding in check(policy, load_tools([]))] == messages


@pytest.mark.parametrize(
    ("rule", "messages"),
    [
        ('(deny (probe :argv "git push"))', [":argv of probe is of type list of str; it is never a text."]),
        ('(deny (probe :text ["git" ...]))', [":text of probe is of type str; it is never a list."]),
        (
            '(deny (probe :size (one-of "1" "2")) (user "ann"))',
            [":size of probe is of type int; it is never a text."],
        ),
        ('(deny (probe :mode "rx"))', [':mode of probe is one of "r", "w".']),
        ('(deny (probe :mode (one-of "r" "rx")))', []),
        ('(deny (probe :argv ["git" ...] :text "a"))', []),
        ('(deny (probe :argv (any "a") :size (> 1)))', []),
    ],
)
def test_an_argument_compared_with_what_it_never_is(rule: str, messages: list[str]) -> None:

    params = {
        "argv": {"type": list[str]},
        "text": {},
        "size": {"type": int},
        "mode": {"choices": ["r", "w"]},
    }
    policy = RulesPolicy([parse_layer("given", rule.encode(), "p.hy")])
    assert [finding.message for finding in check(policy, table_of(tool(params=params)))] == messages


@pytest.mark.parametrize(
    ("rule", "findings"),
    [
        ("(deny (remote))", []),
        ('(deny (probe) (remote "sg"))', []),
        ('(deny (remote "sh"))', ["No tool comes from a catalog named sh. Did you mean shop?"]),
        (
            '(deny (remote (one-of "sg" "other")))',
            ["No tool comes from a catalog named other. There is sg, shop."],
        ),
        ('(deny (remote (matches "other")))', []),
        (
            "(deny (here) (remote))",
            ["here is not a tool of a worker, so (remote) never matches its calls."],
        ),
        ('(deny (gone) (remote "sg"))', [f"{THERE_IS_NO_TOOL_NAMED} gone."]),
    ],
)
def test_rules_about_remote_tools_that_fit_none(rule: str, findings: list[str]) -> None:
    """Without any remote tool at hand, nothing is known of catalogues."""

    remote = [replace(tool(name), remote=of) for name, of in (("probe", "sg"), ("buy", "shop"))]
    policy = RulesPolicy([parse_layer("given", rule.encode(), "p.hy")])
    assert [one.message for one in check(policy, table_of(*remote, tool("here")))] == findings
    if rule.startswith("(deny (remote"):
        assert check(policy, table_of(tool("here"))) == []


@pytest.mark.parametrize("hours", ["1e6", "1e308", str(10**299)])
def test_a_cooldown_that_never_ends_is_a_fault(hours: str) -> None:
    with pytest.raises(UsageError, match=r"p\.hy:1:.*A cooldown can be at most 878,400 hours\."):
        read_orders(f"(cooldown echo {hours} :hours)", "p.hy")


def findings(rules: str, *tools: CognitiveTool, folder: Path | None = None) -> list[tuple[str, int, str]]:
    """Kind, line and message of each finding."""
    policy = RulesPolicy([parse_layer("given", rules.encode(), "p.hy")])
    found = check(policy, table_of(*tools), Workspace(folder)) if folder else check(policy, table_of(*tools))
    return [(one.kind, one.place.line, one.message) for one in found]


SAVE = tool(
    "save",
    params={
        "path": {"type": WorkspacePath},
        "content": {"type": str},
        "mode": {"choices": ["r", "w"], "default": "r"},
        "file": {"type": str, "default": ""},
        "size": {"type": int, "default": 0},
        "both": {"type": str | int, "default": 0},
        "form": {"type": Code, "default": ""},
    },
    effects=["writes"],
)


@pytest.mark.parametrize(
    ("rules", "kinds"),
    [
        ("(deny (sav))", [("unknown-tool", "There is no tool named sav. Did you mean save?")]),
        ('(deny (sav :zzz "x"))', [("unknown-tool", "There is no tool named sav. Did you mean save?")]),
        ('(deny (save :pat "x"))', [("unknown-argument", "save has no argument :pat. Did you mean :path?")]),
        ('(deny (_ :zzz "x"))', [("unknown-argument", "No tool has an argument :zzz.")]),
        ('(deny (_ :content "x"))', []),
        (
            '(deny (save :path "x" :only))',
            [("dead", "Every call of save has :content; name it before :only,")],
        ),
        ('(deny (save :path "x" :content _ :only))', []),
        ('(deny (_ :path "x" :only))', []),
        ('(deny (save :form ["a"]))', [("mismatch", ":form of save is of type form; it is never a list.")]),
        ('(deny (save :both "a"))', []),
        ('(deny (save :content "r"))', []),
        ('(deny (save :mode "r"))', []),
    ],
)
def test_what_fits_no_call_is_found(rules: str, kinds: list[tuple[str, str]]) -> None:
    found = findings(rules, SAVE)
    assert [
        (kind, message[: len(said)]) for (kind, _, message), (_, said) in zip(found, kinds, strict=True)
    ] == kinds


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ('(deny (save :size (under "src")))', ":size of save is of type int; it is never a path."),
        ('(deny (save :file (under "src")))', ""),
        ('(deny (save :both (under "src")))', ""),
        ('(deny (save :file "src/a"))', ":file of save is a text, so another spelling of the same path"),
        ('(deny (save :content "src/a"))', ""),
        ('(deny (save :path "src/a"))', ""),
    ],
)
def test_a_path_that_is_compared_as_a_text_is_found(rules: str, said: str, tmp_path: Path) -> None:
    found = [message for _, _, message in findings(rules, SAVE, folder=tmp_path)]
    assert [message[: len(said)] for message in found] == ([said] if said else [])


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        ("(deny (save))\n(deny (save))\n(deny (save))", [("duplicate", 2, 1), ("duplicate", 3, 1)]),
        ("(ask (save))\n(deny (save))\n(ask (save))", [("conflict", 1, 2), ("duplicate", 3, 1)]),
        ("(deny (save))\n(deny _)", [("dead", 1, 2)]),
        ('(deny _)\n(deny (save))\n(deny (save :path "x"))', [("dead", 2, 1), ("dead", 3, 1)]),
        ("(allow (save))\n(ask _)", [("dead", 1, 2)]),
        ("(deny (save))\n(allow _)", []),
    ],
)
def test_of_rules_that_never_matter_the_one_that_outdoes_them_is_named(
    rules: str, lines: list[tuple[str, int, int]]
) -> None:
    found = findings(rules, SAVE)
    assert [(kind, line) for kind, line, _ in found] == [(kind, line) for kind, line, _ in lines]
    assert all(f"p.hy:{by}" in message for (_, _, message), (_, _, by) in zip(found, lines, strict=True))


@pytest.mark.parametrize(
    ("params", "examples", "seen"),
    [
        ({"out-file": {"type": str}}, [], ["out-file"]),
        ({"file": {"type": list[str], "default": []}}, [], ["file"]),
        ({"paths-of": {"type": str}}, [], []),
        ({"file": {"type": int}}, [], []),
        ({"file": {"choices": ["a", "b"]}}, [], []),
        ({"file": {"type": WorkspacePath}}, [], []),
        ({"which": {"type": str}}, ['(probe :which "a.txt")'], ["which"]),
        ({"which": {"type": str}}, ['(probe :which "a.txt/b")'], []),
        ({"which": {"type": str}}, ['(probe :which "sub/none.txt")'], []),
        ({"which": {"type": str}}, ['(probe :which "none")', '(probe :which "sub/b.txt")'], ["which"]),
        ({"which": {"type": str}}, ['(probe :which "")'], []),
    ],
)
def test_a_text_that_names_a_file_is_seen_by_its_name_or_an_example(
    params: Any, examples: list[str], seen: list[str], tmp_path: Path
) -> None:
    home = Workspace(files(tmp_path, {"a.txt": "", "sub/b.txt": ""}))
    made = tool(params=params, examples=[form(example) for example in examples])
    said = [sentence.partition(" ")[0] for sentence in unseen_paths(made, home)]
    assert said == [f":{name}" for name in seen]
    assert list(unseen_paths(replace(made, remote="sg"), home)) == []
    assert list(unseen_paths(replace(made, module="quoth.tools.builtin"), home)) == []


@pytest.mark.parametrize(
    ("rules", "confined"),
    [
        ('(deny (_ :path (under "x")))', False),
        ('(ask (read-file :path "x"))', False),
        ('(deny (write-file :path "x"))', True),
        ('(allow (_ :path "x"))', True),
        ('(deny (_ :content "x"))', True),
        ('(deny (_ :path "x"))\n(deny (_ :path "y"))', False),
    ],
)
def test_a_tool_that_runs_programs_sees_what_rules_forbid_to_read(rules: str, confined: bool) -> None:
    layers = [parse_layer("user", rules.encode(), "p.hy")]
    made = tool(effects=["runs"])
    assert len([*unconfined(made, layers)]) == (0 if confined else 1)
    for other in (tool(effects=["reads"]), replace(made, remote="sg"), replace(made, module="quoth.tools")):
        assert [*unconfined(other, layers)] == []
