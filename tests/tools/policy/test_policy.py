"""Policy as data: what each rule matches, which verdict wins, what a mistake is told, whose file counts."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    A_NUMBER_FROM_0,
    A_PATH_CANNOT_CONTAIN_A,
    A_WHOLE_NUMBER_FROM_1,
    CANNOT_BE_READ,
    HAS_CHANGED_SINCE_IT_WAS,
    HAS_NO_VALUE,
    IS_EMPTY_WRITE_AT_LEAST,
    IS_GIVEN_TWICE,
    IS_NEVER_CLOSED,
    IS_NOT_A_CALL,
    IS_NOT_A_REGULAR_EXPRESSION,
    IS_NOT_A_REGULAR_FILE,
    IS_NOT_UTF_8_TEXT,
    IT_CHANGES_MEMORY_WITHIN,
    IT_ONLY_READS,
    IT_RUNS_A_PROGRAM,
    IT_SENDS_A_MESSAGE,
    IT_WRITES_FILES,
    ITS_CALLS_CANNOT_BE_COUNTED,
    READ_IT_THEN_RUN,
    RESTORE_IT_OR_RUN,
    THERE_IS_NO_POLICY_FILE,
    THERE_IS_NO_PREDICATE,
    WAS_TRUSTED_AND_IS_GONE,
)
from words import Spy, complaint, files, form, gateway, shipped, table_of, tool

from quoth.tools.call.call import Call, Verdict, new_call
from quoth.tools.call.canonical import checked
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.errors import UsageError
from quoth.tools.lisp.printer import Code
from quoth.tools.policy import predicates
from quoth.tools.policy.files import Trust, load_policy, parse_layer
from quoth.tools.policy.language import read_orders
from quoth.tools.policy.limits import EffectsPolicy
from quoth.tools.policy.model import PolicyFile, Rule
from quoth.tools.policy.offer import always_denied, permissions_of
from quoth.tools.policy.policy import Layer, LayerKind, RulesPolicy
from quoth.tools.policy.project import workspace_policy
from quoth.tools.policy.spending import Cooldown, Quota
from quoth.tools.registry.arguments import bind, validate
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import UNKNOWN

FREE = tool(
    "free",
    params={
        "text": {"default": "x"},
        "path": {"default": "a.txt"},
        "size": {"type": float, "default": 1.0},
        "many": {"type": int, "default": None},
        "flag": {"type": bool, "default": False},
        "list": {"type": list, "default": []},
        "dict": {"type": dict, "default": {}},
        "form": {"type": Code, "default": "(+ 1 2)"},
    },
)
READS = tool("reads", params={"path": {}}, effects=["reads"])
WRITES = tool("writes", params={"path": {}}, effects=["writes"], cost="expensive")
EDITS = tool("edits", params={"path": {}}, effects=["reads", "writes"])
KEEPS = tool("keeps", params={"path": {}}, effects=["reads", "memory"])
SENDS = tool("sends", params={"path": {}}, effects=["messages"])
KEEPS_ALL = tool("keeps-all", params={"path": {}}, effects=["memory", "runs"])
FAR = replace(tool("far", params={"path": {}}, effects=["reads"]), remote="sg")
SENT = replace(tool("sent", params={"path": {}}, effects=["writes"]), remote="sg")
CLEARS = tool("clears", effects=["net", "deletes", "pays"])
TOOLS = {made.name: made for made in (CLEARS, FREE, READS, WRITES, EDITS, KEEPS, SENDS, KEEPS_ALL, FAR, SENT)}


def policy(*texts: str, kind: LayerKind = "given") -> RulesPolicy:
    """The policy these files make, each a layer of this kind."""
    return RulesPolicy([parse_layer(kind, text.encode(), "policy.hy") for text in texts])


def judged(rules: RulesPolicy | EffectsPolicy, text: str, root: Path | str = ".", **marks: Any) -> Verdict:
    """The verdict on a call as the door would ask for it."""
    call = new_call(form(text), **marks)
    made = TOOLS[call.tool]
    args = validate(
        made.name, made.params, made.check, bind(made.name, made.params, call.form.args, call.form.positional)
    )
    return rules.judge(made, call, args, ToolContext(Workspace(root)))


def verdict(rules: str, text: str, root: Path | str = ".", **marks: Any) -> str:
    return judged(policy(rules), text, root, **marks).kind


def deny_ask_allow(predicate: str, argument: str, value: str, root: Path | str = ".") -> tuple[str, str]:
    """The verdict on a call with this argument by a denying rule, and by an allowing one; the tool is one
    that would be denied and asked otherwise."""
    call = f"(free :{argument} {value})"
    denied = verdict(f"(deny (free :{argument} {predicate}))", call, root)
    allowed = verdict(f"(ask _) (allow (free :{argument} {predicate}))", call, root)
    assert allowed == "ask"  # an allow never wins against an ask, whatever it says
    explained = policy(f"(allow (free :{argument} {predicate}))")
    return denied, judged(explained, call, root).reason.split(" ")[0]


HOLDS, FAILS, UNDECIDED = ("deny", "policy.hy:1"), ("allow", "it"), ("deny", "it")


# What a predicate says: (holds, fails, or cannot be decided), told by a deny and an allow


@pytest.mark.parametrize(
    ("argument", "predicate", "value", "expected"),
    [
        # equality
        ("text", '"a"', '"a"', HOLDS),
        ("text", '"a"', '"A"', FAILS),
        ("text", '"a"', '"ab"', FAILS),
        ("text", "_", '"a"', HOLDS),
        ("text", '""', '""', HOLDS),
        ("size", "1", "1.0", HOLDS),
        ("size", "1.5", "1.5", HOLDS),
        ("size", "1.5", "1", FAILS),
        ("size", '"1"', "1.0", FAILS),
        ("size", "True", "1.0", FAILS),
        ("flag", "True", "True", HOLDS),
        ("flag", "true", "True", HOLDS),
        ("flag", "True", "False", FAILS),
        ("flag", "1", "True", FAILS),
        ("flag", "nil", "False", FAILS),
        ("many", "nil", "nil", HOLDS),
        ("many", "None", "nil", HOLDS),
        ("many", "0", "nil", FAILS),
        ("many", '"a"', "nil", FAILS),
        ("many", "(= 3)", "3", HOLDS),
        ("many", "(!= 3)", "3", FAILS),
        ("many", "(!= 3)", "nil", HOLDS),
        ("form", '"(+ 1 2)"', "(+ 1 2)", HOLDS),
        # lists
        ("list", '["git" "push"]', '["git" "push"]', HOLDS),
        ("list", '["git" "push"]', '["git" "push" "-f"]', FAILS),
        ("list", '["git" "push" ...]', '["git" "push" "-f"]', HOLDS),
        ("list", '["git" "push" ...]', '["git" "push"]', HOLDS),
        ("list", '["git" "push" ...]', '["git"]', FAILS),
        ("list", '["git" "push" ...]', '["git" "pull" "push"]', FAILS),
        ("list", "[...]", "[]", HOLDS),
        ("list", "[]", "[]", HOLDS),
        ("list", "[]", '["a"]', FAILS),
        ("list", '["git" (one-of "push" "fetch") ...]', '["git" "fetch"]', HOLDS),
        ("list", '["git" _ "x"]', '["git" 1 "x"]', HOLDS),
        ("list", '[["a"] ...]', '[["a"] "b"]', HOLDS),
        ("list", '[(> 1) "a"]', '["b" "b"]', FAILS),  # the second item settles it
        ("list", '[(> 1) "a"]', '["b" "a"]', UNDECIDED),
        ("text", '["git" ...]', '"git"', FAILS),
        # dictionaries
        ("dict", '{"a" 1}', '{"a" 1}', HOLDS),
        ("dict", '{"a" 1}', '{"a" 1  "b" 2}', FAILS),
        ("dict", '{"a" (> 0)}', '{"a" 1}', HOLDS),
        ("dict", '(key "a" 1)', '{"a" 1  "b" 2}', HOLDS),
        ("dict", '(key "a" 1)', '{"b" 2}', FAILS),
        ("dict", '(not (key "a" 1))', '{"b" 2}', HOLDS),
        ("dict", '(key "a" (key "b" (> 2)))', '{"a" {"b" 3}}', HOLDS),
        ("dict", '(key "a" (any (matches "x")))', '{"a" ["y" "xx"]}', HOLDS),
        ("dict", '(key "a" (key "b" 1))', '{"a" 1}', UNDECIDED),
        ("list", '(key "a" 1)', "[]", UNDECIDED),
        # comparisons
        ("size", "(> 5)", "6.0", HOLDS),
        ("size", "(> 5)", "5.0", FAILS),
        ("size", "(>= 5)", "5.0", HOLDS),
        ("size", "(< 5)", "4.0", HOLDS),
        ("size", "(<= 5)", "5.0", HOLDS),
        ("size", "(<= 4.5)", "5.0", FAILS),
        ("size", "(> 5)", "Inf", HOLDS),
        ("size", "(> 5)", "NaN", UNDECIDED),
        ("many", "(> 5)", "nil", UNDECIDED),
        ("many", "(not (> 5))", "nil", UNDECIDED),
        ("many", "(and (not nil) (> 5))", "nil", FAILS),
        ("many", "(or nil (< 5))", "nil", HOLDS),
        ("text", "(> 5)", '"6"', UNDECIDED),
        ("flag", "(> 0)", "True", UNDECIDED),
        # texts
        ("text", '(matches "push")', '"git push -f"', HOLDS),
        ("text", r'(matches r"\Agit push")', '"x git push"', FAILS),
        ("form", '(matches "write-file")', '(write-file "a" "b")', HOLDS),
        ("many", '(matches "a")', "1", UNDECIDED),
        ("text", '(one-of "a" "b")', '"b"', HOLDS),
        ("text", '(one-of "a" 1 nil)', '"c"', FAILS),
        # lengths
        ("text", "(len (> 3))", '"abcd"', HOLDS),
        ("text", "(len > 3)", '"abc"', FAILS),
        ("list", "(len 0)", "[]", HOLDS),
        ("dict", "(len (one-of 1 2))", '{"a" 1}', HOLDS),
        ("size", "(len (> 3))", "4.0", UNDECIDED),
        # items
        ("list", '(any "a")', '["b" "a"]', HOLDS),
        ("list", '(any "a")', "[]", FAILS),
        ("list", '(every "a")', '["a" "a"]', HOLDS),
        ("list", '(every "a")', '["a" "b"]', FAILS),
        ("list", '(every "a")', "[]", HOLDS),
        ("list", "(any (> 1))", '["a" 2]', HOLDS),
        ("list", "(any (> 1))", '["a" 1]', UNDECIDED),
        ("list", "(every (> 1))", '["a" 1]', FAILS),
        ("list", "(every (> 1))", '["a" 2]', UNDECIDED),
        ("text", '(any "a")', '"a"', UNDECIDED),
        # and, or, not
        ("text", '(not "a")', '"b"', HOLDS),
        ("text", '(and (matches "a") (matches "b"))', '"ba"', HOLDS),
        ("text", '(and (matches "a") (> 1))', '"b"', FAILS),
        ("text", '(and (matches "a") (> 1))', '"a"', UNDECIDED),
        ("text", '(or "a" "b")', '"b"', HOLDS),
        ("text", '(or (> 1) "b")', '"b"', HOLDS),
        ("text", '(or (> 1) "b")', '"a"', UNDECIDED),
        ("text", '(not (or (> 1) "b"))', '"a"', UNDECIDED),
    ],
)
def test_a_predicate_holds_fails_or_cannot_be_decided(
    argument: str, predicate: str, value: str, expected: tuple[str, str]
) -> None:
    assert deny_ask_allow(predicate, argument, value) == expected


def test_a_value_that_is_no_plain_data_cannot_be_compared() -> None:
    rules = policy('(deny (free :text "a"))').layers[0].orders.rules
    args = {"text": timedelta(1)}
    facts = predicates.EvaluationContext(FREE, new_call(form("(free)")), Workspace("."))
    assert rules[0].test(args, facts) is None


def test_a_pattern_that_takes_too_long_cannot_be_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicates, "MATCH_SECONDS", 0.01)
    slow = '(matches "(a|aa)+$")'
    value = f'"{"a" * 60}b"'
    assert deny_ask_allow(slow, "text", value) == UNDECIDED
    assert deny_ask_allow(f"(not {slow})", "text", value) == UNDECIDED
    # The time is for all patterns of a call: when it is up, no more is spent.
    many = " ".join([slow] * 200)
    assert deny_ask_allow(f"(or {many})", "text", value) == UNDECIDED


# Paths


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    root = files(tmp_path / "ws", {"src/a.py": "", "secret/key": "", "src2/b": "", "public/open": ""})
    files(tmp_path / "out", {"x": ""})
    (root / "src/hole").symlink_to(root / "secret")
    (root / "src/key").symlink_to("../secret/key")
    (root / "src/out").symlink_to(tmp_path / "out")
    (root / "src/self").symlink_to("self")
    (root / "door").symlink_to("src")
    (root / "src/new").symlink_to("../secret/new")
    return root


@pytest.mark.parametrize(
    ("folder", "path", "expected"),
    [
        ("src", "src/a.py", HOLDS),
        ("src", "src", HOLDS),
        ("src/", "./src//a.py", HOLDS),
        ("./src", "src/none/at/all", HOLDS),
        ("src", "src2/b", FAILS),
        ("src", "secret/key", FAILS),
        (".", "secret/key", HOLDS),
        (".", ".", HOLDS),
        ("src", ".", FAILS),
        ("src/a.py", "src/a.py", HOLDS),
        ("none", "none/x", HOLDS),
        ("none", "src/a.py", FAILS),
        # dots
        ("src", "src/../secret/key", FAILS),
        ("src", "secret/../src/a.py", HOLDS),
        ("src/../secret", "secret/key", HOLDS),
        # links
        ("src", "src/hole/key", FAILS),
        ("secret", "src/hole/key", HOLDS),
        ("secret", "src/hole", HOLDS),
        ("src", "src/key", FAILS),
        ("secret", "src/key", HOLDS),
        ("src", "src/new", FAILS),  # a link to what is not there yet
        ("secret", "src/new", HOLDS),
        ("src", "door/a.py", HOLDS),
        ("door", "src/a.py", HOLDS),
        ("src", "src/hole/../a.py", FAILS),  # .. of where the link leads
        # out
        ("src", "../out/x", FAILS),
        (".", "../out/x", FAILS),
        (".", "/etc/passwd", FAILS),
        (".", "src/out/x", FAILS),
        ("src", "src/out", FAILS),
        ("/etc", "/etc/passwd", FAILS),
        ("../out", "src/out/x", FAILS),
        (".", "~/x", FAILS),
        # no path at all
        ("src", "src/\\x00", UNDECIDED),
        ("src", "src/self", UNDECIDED),
        ("src", "src/self/x", UNDECIDED),
    ],
)
def test_under_is_judged_after_links_are_resolved(
    ws: Path, folder: str, path: str, expected: tuple[str, str]
) -> None:
    assert deny_ask_allow(f'(under "{folder}")', "path", f'"{path}"', ws) == expected


def test_an_absolute_path_into_the_workspace_is_the_same_path(ws: Path) -> None:
    assert deny_ask_allow('(under "src")', "path", f'"{ws}/src/a.py"', ws) == HOLDS
    assert deny_ask_allow(f'(under "{ws}/src")', "path", '"src/a.py"', ws) == HOLDS
    assert deny_ask_allow('(under "src")', "path", f'"{ws}/src/hole/key"', ws) == FAILS


def test_a_link_made_after_the_rule_was_read_counts(ws: Path) -> None:
    rules = policy('(deny (free :path (under "secret")))')
    assert judged(rules, '(free :path "public/open")', ws).kind == "allow"
    (ws / "public").rename(ws / "old")
    (ws / "public").symlink_to("secret")
    assert judged(rules, '(free :path "public/key")', ws).kind == "deny"
    (ws / "secret").rename(ws / "vault")
    (ws / "secret").symlink_to("vault")
    assert judged(rules, '(free :path "vault/key")', ws).kind == "deny"


def test_another_name_of_a_guarded_file_is_that_file(ws: Path) -> None:
    os.link(ws / "secret/key", ws / "public/copy")
    assert deny_ask_allow('(under "secret/key")', "path", '"public/copy"', ws) == HOLDS


def test_under_goes_through_every_item_of_a_list(ws: Path) -> None:
    rule = '(every (under "src"))'
    assert deny_ask_allow(rule, "list", '["src/a.py" "src"]', ws) == HOLDS
    assert deny_ask_allow(rule, "list", '["src/a.py" "src/hole/key"]', ws) == FAILS
    assert deny_ask_allow(rule, "list", '["src/a.py" 1]', ws) == UNDECIDED


# Clauses


@pytest.mark.parametrize(
    ("rule", "call", "marks", "expected"),
    [
        ("(deny _)", '(reads "a")', {}, "deny"),
        ("(deny (any-tool))", '(reads "a")', {}, "deny"),
        ("(deny (_))", '(reads "a")', {}, "deny"),
        ("(deny (READS))", '(reads "a")', {}, "deny"),
        ("(deny (writes))", '(reads "a")', {}, "allow"),
        ('(deny (reads :path "a"))', '(reads "a")', {}, "deny"),
        ('(deny (reads :PATH "a"))', '(reads "a")', {}, "deny"),
        ('(deny (any-tool :path "a"))', '(reads "a")', {}, "deny"),
        ('(deny (any-tool :path "a") (effects :writes))', '(reads "a")', {}, "allow"),
        ('(deny (any-tool :path (not "a")))', '(free :path "b")', {}, "deny"),
        # effects: a deny or ask is about any of them, an allow about these only
        ("(deny (effects :writes))", '(writes "a")', {}, "deny"),
        ("(deny (effects :writes))", '(edits "a")', {}, "deny"),
        ("(deny (effects writes net))", '(edits "a")', {}, "deny"),
        ("(deny (effects :net))", '(reads "a")', {}, "allow"),
        ("(ask (effects :reads))", '(reads "a")', {}, "ask"),
        ("(allow (effects :writes))", '(writes "a")', {}, "allow"),
        ("(allow (effects :writes))", '(edits "a")', {}, "ask"),
        ("(allow (effects :reads))", '(edits "a")', {}, "ask"),
        ("(allow (effects :reads :writes))", '(edits "a")', {}, "allow"),
        # cost, tool
        # where a tool is from
        ("(deny (remote))", '(far "a")', {}, "deny"),
        ("(deny (remote))", '(reads "a")', {}, "allow"),
        ('(deny (remote "sg"))', '(far "a")', {}, "deny"),
        ('(deny (remote "s"))', '(far "a")', {}, "allow"),
        ('(deny (remote (not "sg")))', '(reads "a")', {}, "allow"),
        ('(ask (far) (remote (matches "^s")))', '(far "a")', {}, "ask"),
        ("(allow (remote) (effects :reads))", '(sent "a")', {}, "ask"),
        ('(allow (remote "sg"))', '(sent "a")', {}, "allow"),
        ("(deny (cost :expensive))", '(writes "a")', {}, "deny"),
        ("(deny (cost :cheap :expensive))", '(reads "a")', {}, "allow"),
        ('(deny (tool "reads"))', '(reads "a")', {}, "deny"),
        ('(deny (tool (matches "^w")))', '(writes "a")', {}, "deny"),
        ('(deny (tool (not "writes")))', '(writes "a")', {}, "ask"),
        # route, user
        ('(deny (route "repl"))', "(free)", {"route": "repl"}, "deny"),
        ('(deny (route "repl"))', "(free)", {"route": "reply"}, "allow"),
        ('(deny (route "repl" "reply"))', "(free)", {"route": "reply"}, "deny"),
        ('(deny (route (not "repl")))', "(free)", {"route": "reply"}, "deny"),
        ('(deny (client "zed"))', "(free)", {"client": "zed"}, "deny"),
        ('(deny (client "zed"))', "(free)", {}, "allow"),
        ('(deny (client (not "zed")))', "(free)", {"client": "emacs"}, "deny"),
        ('(allow (writes) (user "ann"))', '(writes "a")', {"user": "ann"}, "allow"),
        ('(allow (writes) (user "ann"))', '(writes "a")', {"user": "bob"}, "ask"),
        ('(allow (writes) (user "ann"))', '(writes "a")', {}, "ask"),
        # depth, nested
        ("(deny (depth > 2))", "(free)", {"depth": 3}, "deny"),
        ("(deny (depth > 2))", "(free)", {"depth": 2}, "allow"),
        ("(deny (depth (> 2)))", "(free)", {"depth": 3}, "deny"),
        ("(deny (depth 0))", "(free)", {}, "deny"),
        # confidence: what a reply does not say counts against the call, never for it
        ("(deny (confidence < 0.5))", "(free)", {"confidence": 0.4}, "deny"),
        ("(deny (confidence (< 0.5)))", "(free)", {"confidence": 0.5}, "allow"),
        ("(deny (free) (confidence (< 0.5)))", "(free)", {}, "deny"),
        ("(ask (confidence (not (>= 0.5))))", "(free)", {}, "ask"),
        ("(deny (confidence 1))", "(free)", {"confidence": 1.0}, "deny"),
        ("(allow (writes) (confidence > 0.5))", '(writes "a")', {"confidence": 0.9}, "allow"),
        ("(allow (writes) (confidence > 0.5))", '(writes "a")', {"confidence": 0.5}, "ask"),
        ("(allow (writes) (confidence > 0.5))", '(writes "a")', {}, "ask"),
        ("(allow (writes) (confidence (not (< 0.5))))", '(writes "a")', {}, "ask"),
        ("(deny (nested))", "(free)", {"parent": "c1", "depth": 1}, "deny"),
        ("(deny (nested))", "(free)", {}, "allow"),
        # several clauses are all required
        (
            '(deny (writes :path (not (under "src"))) (route "reply"))',
            '(writes "a")',
            {"route": "reply"},
            "deny",
        ),
        (
            '(deny (writes :path (not (under "src"))) (route "reply"))',
            '(writes "a")',
            {"route": "repl"},
            "ask",
        ),
        ('(deny (route "reply") (writes))', '(writes "a")', {"route": "reply"}, "deny"),
        # defaults count, since the body sees them
        ('(deny (free :path "a.txt"))', "(free)", {}, "deny"),
        ("(deny (free :many nil))", "(free)", {}, "deny"),
        # what the call has not got
        ('(deny (reads :pth "a"))', '(reads "a")', {}, "deny"),
        ('(ask (reads :pth "a"))', '(reads "a")', {}, "ask"),
        ('(allow (writes :pth (not "b")))', '(writes "a")', {}, "ask"),
        ('(deny (any-tool :text "x"))', '(reads "a")', {}, "allow"),
        ('(allow (any-tool :text (not "x")))', '(writes "a")', {}, "ask"),
        ('(deny (any-tool :text (not "x")))', '(writes "a")', {}, "ask"),
    ],
)
def test_a_rule_matches_when_all_its_clauses_do(
    rule: str, call: str, marks: dict[str, Any], expected: str
) -> None:
    assert verdict(rule, call, **marks) == expected


# Verdicts


def test_without_rules_the_effects_decide() -> None:
    for rules in (policy(), EffectsPolicy()):
        assert judged(rules, "(free)") == Verdict("allow", "it touches nothing")
        assert judged(rules, '(reads "a")') == Verdict("allow", IT_ONLY_READS)
        assert judged(rules, '(writes "a")') == Verdict("ask", IT_WRITES_FILES)
        assert judged(rules, '(edits "a")') == Verdict("ask", IT_WRITES_FILES)
        assert judged(rules, '(keeps "a")') == Verdict("allow", f"{IT_CHANGES_MEMORY_WITHIN}")
        assert judged(rules, '(sends "a")') == Verdict("allow", IT_SENDS_A_MESSAGE)
        assert judged(rules, '(keeps-all "a")') == Verdict("ask", IT_RUNS_A_PROGRAM)
        assert judged(rules, "(clears)") == Verdict("ask", "it uses the network and it deletes and it pays")


def test_a_verdict_names_the_rule_as_written_and_its_place() -> None:
    rules = '; mine\n\n(deny   (writes\n  :path "a")  :why "no a")\n(ask (reads))\n(allow (edits))'
    assert judged(policy(rules), '(writes "a")') == Verdict(
        "deny", 'policy.hy:3 says (deny (writes :path "a") :why "no a")'
    )
    assert judged(policy(rules), '(reads "a")') == Verdict("ask", "policy.hy:5 says (ask (reads))")
    assert judged(policy(rules), '(edits "a")') == Verdict("allow", "policy.hy:6 says (allow (edits))")
    assert judged(policy("(deny (free :many (> 1)))"), "(free)").reason == (
        "policy.hy:1 says (deny (free :many (> 1))), and quoth cannot decide whether it matches"
    )


def test_the_strongest_verdict_wins_in_any_order() -> None:
    rules = ["(allow (writes))", "(ask (writes))", '(deny (writes :path "a"))']
    for order in itertools.permutations(rules):
        assert verdict("\n".join(order), '(writes "a")') == "deny"
        assert verdict("\n".join(order), '(writes "b")') == "ask"


def test_a_tool_put_in_anothers_place_is_judged_by_what_it_is() -> None:
    rules = policy("(deny (effects :net))")
    assert judged(rules, "(free)").kind == "allow"
    TOOLS["free"] = tool("free", effects=["net"])
    try:
        assert judged(rules, "(free)").kind == "deny"
    finally:
        TOOLS["free"] = FREE


# Properties

CLAUSES = st.sampled_from(
    [
        "_",
        "(writes)",
        "(reads)",
        "(free)",
        '(writes :path (under "src"))',
        '(writes :path (not (under "src")))',
        '(any-tool :path (matches "a"))',
        '(any-tool :text (not "x"))',
        '(free :text "x")',
        "(free :many (> 3))",
        "(free :many (not (> 3)))",
        '(free :list ["git" ...])',
        "(reads :nothing (not 1))",
        "(effects :writes)",
        "(effects :reads)",
        '(user "ann")',
        "(depth > 1)",
        "(confidence < 0.5)",
        "(nested)",
        '(route (not "repl"))',
        '(client "zed")',
        '(user (not (one-of "ann" "ben")))',
        "(remote)",
        '(remote "sg")',
        "(free :text _)",
        "(any-tool :path _)",
        "(free :only)",
    ]
)
CALLS = st.sampled_from(
    [
        ("(free)", {}),
        ('(free :text "y" :many 5)', {"user": "ann"}),
        ('(free :list ["git" "push"])', {"depth": 2, "parent": "p"}),
        ('(reads "src/a")', {"route": "repl"}),
        ('(writes "src/a")', {}),
        ('(writes "b")', {"user": "ann", "route": "repl", "client": "zed"}),
        ('(edits "a")', {"parent": "p", "depth": 1, "confidence": 0.4}),
        ('(edits "a")', {"parent": "p", "depth": 1, "route": "program", "user": "eve"}),
        ('(far "a")', {"route": "reply", "user": "ben"}),
    ]
)
RULES = st.builds(
    lambda kind, clause: f"({kind} {clause})", st.sampled_from(["deny", "ask", "allow"]), CLAUSES
)
STRENGTH = {"allow": 0, "ask": 1, "deny": 2}


@given(st.lists(RULES, max_size=8), CALLS, st.randoms())
def test_no_order_of_rules_changes_a_verdict(rules: list[str], call: tuple[str, Any], random: Any) -> None:
    other = list(rules)
    random.shuffle(other)
    cut = random.randint(0, len(other))
    before = verdict("\n".join(rules), call[0], **call[1])
    assert verdict("\n".join(other), call[0], **call[1]) == before
    layers = policy("\n".join(other[:cut]), "\n".join(other[cut:]))
    assert judged(layers, call[0], **call[1]).kind == before


@given(st.lists(RULES, max_size=6), CLAUSES, CALLS)
def test_adding_a_deny_never_allows_more(rules: list[str], clause: str, call: tuple[str, Any]) -> None:
    before = verdict("\n".join(rules), call[0], **call[1])
    after = verdict("\n".join([*rules, f"(deny {clause})"]), call[0], **call[1])
    assert after in (before, "deny")


@given(st.lists(RULES, max_size=6), CALLS)
def test_what_is_always_denied_is_denied(rules: list[str], call: tuple[str, Any]) -> None:
    made = policy("\n".join(rules))
    done = new_call(form(call[0]), **call[1])
    known: list[tuple[Any, Any]] = [(done.user, done.route), (done.user, UNKNOWN), (UNKNOWN, done.route)]
    if any(always_denied(made, TOOLS[done.tool], *who) for who in [*known, (UNKNOWN, UNKNOWN)]):
        assert judged(made, call[0], **call[1]).kind == "deny"


@given(st.lists(RULES, max_size=6), CALLS)
def test_whom_no_permission_names_is_denied(rules: list[str], call: tuple[str, Any]) -> None:
    made = policy("\n".join(rules))
    done = new_call(form(call[0]), **call[1])
    users = permissions_of(made, table_of(*TOOLS.values()), done.route).get(done.tool)
    if users is not None and done.user not in users:
        assert judged(made, call[0], **call[1]).kind == "deny"


@given(st.lists(RULES, max_size=6), CLAUSES, CALLS)
def test_adding_an_ask_never_turns_a_deny_into_something_else(
    rules: list[str], clause: str, call: tuple[str, Any]
) -> None:
    before = verdict("\n".join(rules), call[0], **call[1])
    after = verdict("\n".join([*rules, f"(ask {clause})"]), call[0], **call[1])
    assert STRENGTH[after] >= STRENGTH[before]
    assert after in (before, "ask")


@given(st.lists(RULES, max_size=6), st.lists(RULES, max_size=6), CALLS)
def test_a_workspace_never_allows_more(mine: list[str], theirs: list[str], call: tuple[str, Any]) -> None:
    user = parse_layer("user", "\n".join(mine).encode(), "mine")
    workspace = parse_layer("workspace", "\n".join(theirs).encode(), "theirs")
    before = judged(RulesPolicy([user]), call[0], **call[1]).kind
    after = judged(RulesPolicy([user, workspace]), call[0], **call[1]).kind
    assert STRENGTH[after] >= STRENGTH[before]


_LITERALS = st.sampled_from(
    ['"x"', "1", "nil", "_", '(matches "")', "(> 0)", '(under ".")', "[...]", '(key "a" _)']
)
PREDICATES = st.recursive(
    _LITERALS,
    lambda inner: st.one_of(
        st.builds("(not {})".format, inner),
        st.builds("(and {} {})".format, inner, inner),
        st.builds("(or {} {})".format, inner, inner),
        st.builds("(any {})".format, inner),
        st.builds("(every {})".format, inner),
        st.builds("(len {})".format, inner),
        st.builds('(key "a" {})'.format, inner),
        st.builds('["x" {} ...]'.format, inner),
    ),
    max_leaves=8,
)


@given(PREDICATES, st.sampled_from(["writes", "any-tool"]))
def test_a_missing_argument_never_satisfies_an_allow(predicate: str, name: str) -> None:
    assert verdict(f"(allow ({name} :missing {predicate}))", '(writes "a")') == "ask"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(PREDICATES, VALUES)
@examples(3)
def test_a_predicate_and_its_opposite_never_both_hold(predicate: str, value: Any) -> None:
    def truth(text: str) -> Any:
        (rule,) = read_orders(f"(deny (free :text {text}))", "p").rules
        facts = predicates.EvaluationContext(FREE, new_call(form("(free)")), Workspace("."))
        return rule.test({"text": value}, facts)

    said, opposite = truth(predicate), truth(f"(not {predicate})")
    assert opposite is (None if said is None else not said)
    assert said in (True, False, None)


@given(st.lists(RULES, max_size=8), CALLS)
def test_an_explanation_ends_in_the_verdict(rules: list[str], call: tuple[str, Any]) -> None:
    made = policy("\n".join(rules))
    done = new_call(form(call[0]), **call[1])
    chosen = TOOLS[done.tool]
    bound = bind(chosen.name, chosen.params, done.form.args, done.form.positional)
    args = validate(chosen.name, chosen.params, chosen.check, bound)
    why = made.explain(chosen, done, args, ToolContext(Workspace(".")))
    assert why.verdict == made.judge(chosen, done, args, ToolContext(Workspace(".")))
    assert (why.decided is None) == (not any(match.counts for match in why.matches))


# Through a real door


def test_a_denying_rule_stops_the_body_before_the_guard_is_asked() -> None:
    body, guard = Spy(), Spy()
    here = gateway(tool(body=body, guard=guard), policy=policy('(deny (probe) :why "not today")'))
    result = here.pass_through("(probe)")
    assert result.status == "denied"
    assert result.message == 'probe was denied: policy.hy:1 says (deny (probe) :why "not today").'
    assert not body.ran
    assert not guard.ran
    assert (here.rows[0]["status"], here.rows[0]["stage"]) == ("denied", "policy")


def test_an_asking_rule_leaves_the_call_pending_and_an_allow_lifts_the_question(tmp_path: Path) -> None:
    write = '(write-file :path "a" :content "x")'
    asked = shipped(tmp_path, policy=policy("(ask (read-file))")).pass_through('(read-file "a")')
    assert asked.status == "pending"
    assert "policy.hy:1 says (ask (read-file))" in asked.message
    assert shipped(tmp_path, policy=policy()).pass_through(write).status == "pending"
    assert shipped(tmp_path, policy=policy("(allow (write-file))")).pass_through(write).ok


def test_an_allow_does_not_lift_the_guard(tmp_path: Path) -> None:
    here = shipped(tmp_path, policy=policy("(allow _)"))
    assert here.pass_through('(read-file "/etc/passwd")').status == "denied"


def test_rules_hold_for_the_inner_calls_of_a_program(tmp_path: Path) -> None:
    files(tmp_path, {"a": "one", "secret/b": "two"})
    rules = '(deny (nested) (read-file :path (under "secret")))'
    here = shipped(tmp_path, policy=policy(rules))
    assert here.pass_through('(eval (read-file "a"))').value == "one"
    refused = here.pass_through('(eval (read-file "secret/b"))')
    assert refused.status == "denied"
    assert f"policy.hy:1 says {rules}" in refused.message
    assert here.pass_through('(read-file "secret/b")').value == "two"  # not nested
    assert [(row["tool"], row["status"]) for row in here.rows[2:4]] == [
        ("read-file", "denied"),
        ("eval", "denied"),
    ]


def test_a_rule_about_depth_holds_in_programs_of_programs(tmp_path: Path) -> None:
    here = shipped(tmp_path, policy=policy("(deny (depth > 1))"))
    assert here.pass_through('(eval (echo "x"))').ok
    assert here.pass_through('(eval (eval "(read-file \\"a\\")"))').status == "denied"


def test_a_rule_about_the_text_of_a_program_sees_it() -> None:
    here = shipped(".", policy=policy('(deny (eval :form (matches "while")))'))
    assert here.pass_through("(eval (+ 1 2))").value == 3
    assert here.pass_through("(eval (while True 1))").status == "denied"


def test_words_in_the_call_are_no_marks() -> None:
    here = gateway(
        tool(params={"user": {}, "route": {"default": ""}}, effects=["writes"]),
        policy=policy('(allow (probe) (user "root"))'),
    )
    assert here.pass_through('(probe :user "root" :route "repl")', user="ann").status == "pending"


def test_a_policy_that_fails_denies() -> None:
    class Broken(RulesPolicy):
        def judge(self, *_: Any) -> Verdict:
            raise OSError("gone")

    assert gateway(tool(), policy=Broken()).pass_through("(probe)").status == "denied"


# Quotas and cooldowns are data


def test_quotas_and_cooldowns_are_kept_as_data() -> None:
    made = policy(
        "(quota research 3 :per day :by user)\n(quota search 100 :by :session :per :hour)\n"
        "(quota x 1 :per week)",
        "(cooldown search 10 :seconds)\n(cooldown x 1.5 minutes :by :all)",
    )
    assert [limit.counts for limit in made.limits] == [
        Quota("research", 3, "day", "user"),
        Quota("search", 100, "hour", "session"),
        Quota("x", 1, "week", "user"),
        Cooldown("search", 10.0, "user"),
        Cooldown("x", 90.0, "all"),
    ]
    assert str(made.limits[1].place) == "policy.hy:2"


def test_a_limit_that_nobody_counts_denies_the_tool() -> None:
    layer = parse_layer("given", b"(quota free 3 :per :day)\n(allow (free))", "policy.hy")
    assert judged(RulesPolicy([layer]), "(free)") == Verdict(
        "deny", f"policy.hy:1 limits it, and {ITS_CALLS_CANNOT_BE_COUNTED} here"
    )
    assert judged(RulesPolicy([layer]), '(reads "a")').kind == "allow"
    assert judged(RulesPolicy([layer], counted=True), "(free)").kind == "allow"


# Mistakes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(deny (f)", f"1:1: this ( {IS_NEVER_CLOSED}; add ) at the end"),
        (
            "deny",
            'deny is not a rule. Example: (deny (write-file :path (under "secret")))',
        ),
        (
            "()",
            '() is not a rule. Example: (deny (write-file :path (under "secret")))',
        ),
        ("(dney (f))", "1:2: There is no rule dney. Did you mean deny?"),
        (
            "(zzz (f))",
            "1:2: There is no rule zzz. The choices are deny, ask, allow, quota, cooldown, careful, effects.",
        ),
        ("(deny)", "1:1: This rule matches nothing; write (deny _) to match every call."),
        ('(ask :why "x")', "1:1: This rule matches nothing; write (ask _) to match every call."),
        ("(deny write-file)", f"1:7: write-file {IS_NOT_A_CALL}; write (write-file)."),
        ('(deny "x")', f'1:7: "x" {IS_NOT_A_CALL}.'),
        ("(deny ((f)))", "1:8: A call begins with the name of a tool, not with (f)."),
        ("(deny (f!))", "1:8: f! is not a valid tool name."),
        ("(deny (f) (g))", "1:11: A rule has one call; write one rule for each call."),
        (
            '(deny (f) (rout "chat"))',
            "1:11: A rule has one call; write one rule for each call. Did you mean route?",
        ),
        ("(deny (f) _)", "1:11: A rule has one call; write one rule for each call."),
        ('(deny (f "x"))', '1:10: An argument needs its name: (f :name "x").'),
        ('(deny (rout "x"))', '1:13: An argument needs its name: (rout :name "x"). Did you mean route?'),
        (
            "(deny (efects :writes))",
            "1:15: :writes has no predicate; _ is any value. Did you mean effects?",
        ),
        ("(deny (f :a))", "1:10: :a has no predicate; _ is any value."),
        ("(deny (f :a :b 1))", "1:10: :a has no predicate; _ is any value."),
        ("(deny (f :a 1 :A 2))", f"1:15: :a {IS_GIVEN_TWICE}; write (and … …)."),
        (
            "(deny (not (nested)))",
            '1:8: not is a predicate; write it inside a clause, as in (user (not "ann")).',
        ),
        ('(deny (f :a (undr "x")))', f"1:14: {THERE_IS_NO_PREDICATE} undr. Did you mean under?"),
        (
            "(deny (f :a (zzz 1)))",
            "1:14: There is no predicate zzz. The choices are under, matches,",
        ),
        ("(deny (f :a ()))", f"1:13: {THERE_IS_NO_PREDICATE} ()."),
        ("(deny (f :a abc))", '1:13: abc is not a value; write a text as "abc".'),
        ("(deny (f :a [:abc]))", '1:14: :abc is not a value; write a text as "abc".'),
        ("(deny (f :a ...))", '1:13: ... must be at the end of a list: ["git" ...].'),
        ('(deny (f :a [... "x"]))', '1:14: ... must be at the end of a list: ["git" ...].'),
        (
            '(deny (f :a b"x"))',
            '1:13: b"x" is not a value; use a text, a number, True, False, nil, […] or {…}.',
        ),
        ("(deny (f :a #{1}))", "1:13: #{1} is not a value; use a text, a number"),
        ("(deny (f :a NaN))", "1:13: NaN is not a value; use a text, a number"),
        ('(deny (f :a {"b"}))', "1:13: This dictionary has a key without a value."),
        ("(deny (f :a {1 2}))", '1:14: a key must be a text, written "x", not 1.'),
        ("(deny (f :a (not 1 2)))", '1:13: (not …) takes one predicate, as in (not "x").'),
        ("(deny (f :a (len)))", "1:13: (len …) takes one predicate, as in (len (> 2))."),
        ("(deny (f :a (and)))", f"1:13: (and{IS_EMPTY_WRITE_AT_LEAST}."),
        ("(deny (f :a (one-of)))", f"1:13: (one-of{IS_EMPTY_WRITE_AT_LEAST}."),
        ("(deny (f :a (> 1 2)))", "1:13: (> …) takes one value."),
        ('(deny (f :a (> "x")))', '1:16: (> …) takes a number, not "x".'),
        ('(deny (f :a (key "x")))', '1:13: (key …) takes a name and a predicate: (key "name" "x").'),
        ("(deny (f :a (under 1)))", '1:20: (under …) must be a text, written "x", not 1.'),
        ('(deny (f :a (under "a" "b")))', '1:13: (under …) takes one text: (under "x").'),
        ('(deny (f :a (under "a\\x00")))', f"1:20: {A_PATH_CANNOT_CONTAIN_A}."),
        ('(deny (f :a (matches "(")))', f"1:22: ( {IS_NOT_A_REGULAR_EXPRESSION}: missing ) at position 1."),
        (
            '(deny (f :a (matches "(a{9999}){9999}")))',
            "1:22: (a{9999}){9999} repeats too much; use smaller counts.",
        ),
        ("(deny (effects :wirtes))", "1:16: (effects …) does not accept :wirtes. Did you mean :writes?"),
        (
            "(deny (cost :high))",
            "1:13: (cost …) does not accept :high. The choices are :free, :cheap, :expensive.",
        ),
        ("(deny (effects))", "1:7: (effects) needs a value, as in (effects :writes)."),
        ("(deny (remote sg))", '1:15: sg is not a value; write a text as "sg".'),
        ("(deny (depth))", "1:7: (depth) needs a value, as in (depth > 2)."),
        ("(deny (confidence))", "1:7: (confidence) needs a value, as in (confidence < 0.5)."),
        ("(deny (confidence < 50))", f"1:21: Confidence must be {A_NUMBER_FROM_0} to 1, not 50."),
        ('(ask (confidence (not "low")))', f'1:23: Confidence must be {A_NUMBER_FROM_0} to 1, not "low".'),
        ('(deny (route "rply"))', "1:14: There is no route rply. Did you mean reply?"),
        ("(deny (client))", '1:7: (client) needs a value, as in (client "zed").'),
        (
            '(deny (clint "zed"))',
            '1:14: An argument needs its name: (clint :name "zed"). Did you mean client?',
        ),
        ("(deny (nested 1))", "1:15: (nested) takes no arguments."),
        (
            '(deny (f) :why "x" (nested))',
            '1:11: Unexpected :why: the only keyword of a rule is :why "reason", at its end.',
        ),
        (
            '(deny (f) :because "x")',
            '1:11: Unexpected :because: the only keyword of a rule is :why "reason", at its end.',
        ),
        ("(deny (f) :why 3)", '1:16: :why must be a text, written "x", not 3.'),
        ("(quota f 0 :per :day)", f"1:10: A quota must be {A_WHOLE_NUMBER_FROM_1}, not 0."),
        ("(quota f 3)", "1:1: A quota needs its window: :per :day, or :minute, :hour, :week."),
        (
            "(quota f)",
            "1:1: This limit needs the name of a tool and a number, as in (quota search 3 :per :day).",
        ),
        ("(quota f 3 :per :dya)", "1:17: :per does not accept :dya. Did you mean :day?"),
        ("(quota f 3 :pre :day)", "1:12: (quota …) does not accept :pre. Did you mean :per?"),
        ("(quota f 3 :per)", f"1:12: :per {HAS_NO_VALUE}."),
        ("(cooldown f 10)", "1:1: A cooldown needs its unit: :seconds, :minutes or :hours."),
        ("(cooldown f -1 :seconds)", "1:13: A cooldown must be a number above 0, not -1."),
        ("(cooldown f 1 :days)", "1:15: (cooldown …) does not accept :days."),
    ],
)
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(text: str, message: str) -> None:
    said = complaint(UsageError, lambda: read_orders(text, "p.hy"))
    first, line, caret = said.split("\n")
    assert first.startswith("p.hy:")
    assert message in first
    assert line == f"  {text}"
    column = int(first.split(":")[2])
    assert caret == " " * (column + 1) + "^"


def test_a_mistake_in_a_later_line_has_its_line() -> None:
    said = complaint(
        UsageError, lambda: read_orders('; a\r\n(ask (f))\r\n  (deny (g :x (undr "y")))\r\n', "p.hy")
    )
    assert said == (
        f"p.hy:3:16: {THERE_IS_NO_PREDICATE} undr. Did you mean under?\n"
        '    (deny (g :x (undr "y")))\n'
        "                 ^"
    )


def test_nothing_in_a_policy_is_evaluated(tmp_path: Path) -> None:
    for text in ("(do-mac (print 1))", "(deny (f :a (hy.eval 1)))", "(deny (f :a `(1 ~x)))", "#.(print 1)"):
        complaint(UsageError, lambda text=text: read_orders(text, "p.hy"))


# Layers, files and trust


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "config"
    folder.mkdir()
    monkeypatch.setenv("QUOTH_CONFIG", str(folder))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def kinds(made: RulesPolicy) -> list[str]:
    return [layer.kind for layer in made.layers]


def test_without_files_the_effects_decide(root: Path) -> None:
    made = load_policy(root)
    assert (kinds(made), made.notes) == ([], ())
    assert judged(made, '(writes "a")').kind == "ask"


def test_the_users_and_the_given_file_tighten_and_widen(root: Path, config: Path) -> None:
    files(config, {"policy.hy": "(allow (writes))\n(deny (reads))"})
    more = files(root, {"mine.hy": '(deny (writes :path "a"))\n(allow (edits))'}) / "mine.hy"
    made = load_policy(root, more)
    assert kinds(made) == ["user", "given"]
    verdicts = [
        judged(made, text).kind for text in ('(writes "a")', '(writes "b")', '(reads "a")', '(edits "a")')
    ]
    assert verdicts == ["deny", "allow", "deny", "allow"]


def test_a_workspace_counts_only_when_trusted_and_only_tightens(root: Path, config: Path) -> None:
    files(root, {".quoth/policy.hy": "(deny (reads))\n(allow (writes))"})
    before = load_policy(root)
    assert kinds(before) == []
    assert before.notes == (
        f"{root}/.quoth/policy.hy is not trusted, so its rules do not apply; read it, then run: quoth trust",
    )
    Trust().trust(root, workspace_policy(root).read_bytes())
    after = load_policy(root)
    assert (kinds(after), after.notes) == (["workspace"], ())
    assert judged(after, '(reads "a")') == Verdict("deny", ".quoth/policy.hy:1 says (deny (reads))")
    assert judged(after, '(writes "a")').kind == "ask"


def test_a_trusted_policy_that_changes_or_goes_stops_everything(root: Path, config: Path) -> None:
    own = files(root, {".quoth/policy.hy": "(deny (reads))"}) / ".quoth/policy.hy"
    Trust().trust(root, own.read_bytes())
    own.write_text("(deny (reads)) ")
    assert complaint(UsageError, lambda: load_policy(root)) == (
        f"{own} {HAS_CHANGED_SINCE_IT_WAS}; {READ_IT_THEN_RUN}: quoth trust"
    )
    own.unlink()
    assert complaint(UsageError, lambda: load_policy(root)) == (
        f"{own} {WAS_TRUSTED_AND_IS_GONE}; {RESTORE_IT_OR_RUN}: quoth trust"
    )
    assert Trust().forget(root)
    assert not Trust().forget(root)
    assert kinds(load_policy(root)) == []


def test_trust_is_for_one_text_in_one_folder(root: Path, tmp_path: Path, state: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    digest = Trust().trust(root, b"(deny _)")
    assert Trust().trusted(root) == digest
    assert Trust().trusted(other) is None
    link = tmp_path / "link"
    link.symlink_to(root)
    assert Trust().trusted(link) == digest
    assert list((state / "trust").iterdir())
    assert not any(tmp_path.rglob("*.json")), "it is kept outside of the workspace"


def test_a_broken_record_of_trust_stops_everything(root: Path, state: Path) -> None:
    Trust().trust(root, b"x")
    (record,) = (state / "trust").iterdir()
    for text in ("", "[]", "{}", '{"sha256": 1}'):
        record.write_text(text)
        assert f"{CANNOT_BE_READ}; remove it" in complaint(UsageError, lambda: load_policy(root))


def test_a_policy_may_begin_with_a_byte_order_mark(root: Path, config: Path) -> None:
    files(root, {"mark.hy": b"\xef\xbb\xbf(deny (write-file))"})
    (layer,) = [one for one in load_policy(root, root / "mark.hy").layers if one.name.endswith("mark.hy")]
    assert [rule.kind for rule in layer.orders.rules] == ["deny"]


def test_a_policy_that_cannot_be_read_stops_everything(root: Path, config: Path) -> None:
    def refused(path: str | Path) -> str:
        return complaint(UsageError, lambda: load_policy(root, path))

    assert refused(root / "none.hy") == f"{THERE_IS_NO_POLICY_FILE} {root}/none.hy."
    assert refused(root) == f"{root} {IS_NOT_A_REGULAR_FILE}."
    files(root, {"b.hy": b"\xff", "big.hy": ";" * 1_000_001, "bad.hy": "(deny", "x": ""})
    assert refused(root / "b.hy") == f"{root}/b.hy {IS_NOT_UTF_8_TEXT}."
    assert refused(root / "big.hy") == f"{root}/big.hy is larger than 1000000 bytes."
    assert refused(root / "bad.hy").startswith(f"{root}/bad.hy:1:1: this ( {IS_NEVER_CLOSED}")
    assert refused(root / "x/y.hy") == f"{THERE_IS_NO_POLICY_FILE} {root}/x/y.hy."
    os.mkfifo(root / "fifo")
    assert refused(root / "fifo") == f"{root}/fifo {IS_NOT_A_REGULAR_FILE}."
    (config / "policy.hy").symlink_to(config / "nowhere")
    assert THERE_IS_NO_POLICY_FILE in complaint(UsageError, lambda: load_policy(root))


def test_an_empty_policy_says_nothing(root: Path) -> None:
    given_file = files(root, {"p.hy": "; nothing yet\n"}) / "p.hy"
    assert judged(load_policy(root, given_file), '(writes "a")').kind == "ask"


def test_the_policys_own_parts_are_typed() -> None:
    orders = read_orders("(deny (f :a 1))", "p.hy")
    assert isinstance(orders, PolicyFile)
    assert isinstance(orders.rules[0], Rule)
    assert Layer("user", "p.hy", orders).ignores(orders.rules[0]) is False
    assert isinstance(Door(table_of(FREE), policy=RulesPolicy()).policy, RulesPolicy)
    assert isinstance(FREE, CognitiveTool)
    assert isinstance(new_call(form("(free)")), Call)


@pytest.mark.parametrize(
    ("path", "spelt", "expected"),
    [
        ("secret/a.txt", "secret/a.txt", "deny"),
        ("./b/../secret/a.txt", "secret/a.txt", "deny"),
        ("link/a.txt", "link/a.txt", "allow"),  # to secret here; where it leads there is not known here
        ("key.txt", "key.txt", "deny"),
        ("", ".", "allow"),
        ("/key.txt", "/key.txt", "ask"),
        ("../key.txt", "../key.txt", "ask"),
        ("~/key.txt", "~/key.txt", "ask"),  # in the home of the worker
        ("./~/key.txt", "./~/key.txt", "allow"),
    ],
)
def test_the_paths_of_a_remote_tool_are_judged_as_they_are_spelt(
    tmp_path: Path, path: str, spelt: str, expected: str
) -> None:
    (tmp_path / "link").symlink_to("secret")
    (tmp_path / "key.txt").symlink_to("other.txt")
    far = replace(tool("far", params={"path": {"type": WorkspacePath}}, effects=["writes"]), remote="sg")
    rules = policy(
        '(deny (far :path (under "secret"))) (deny (far :path "./key.txt")) (allow (far :path (under ".")))'
    )
    call = new_call(form(f'(far :path "{path}")'))
    seen, args = checked(far, call.form, Workspace(tmp_path))
    assert seen.args == {"path": spelt}
    assert rules.judge(far, call, args, ToolContext(Workspace(tmp_path))).kind == expected


@pytest.mark.parametrize(
    ("pattern", "text", "denied", "allowed"),
    [
        ("^[a-z]+$", "abc", True, True),
        ("^[a-z]+$", "abc\n", True, False),
        ("^(?!.*[.]env$)", "a.env\n", True, False),
        ("[.]env$", "a.env\n", True, False),
        ("(?m)^abc$", "abc\nx\n", True, True),
        ("^abc", "abc\n", True, True),
    ],
)
def test_the_end_of_a_text_is_its_end(pattern: str, text: str, denied: bool, allowed: bool) -> None:
    """A last newline behind the end of a pattern is undecided."""
    for kind, expected in {"deny": denied, "allow": allowed}.items():
        (rule,) = read_orders(f'({kind} (free :text (matches "{pattern}")))', "p.hy").rules
        facts = predicates.EvaluationContext(FREE, new_call(form("(free)")), Workspace("/nowhere"))
        assert rule.counts(rule.test({"text": text}, facts)) is expected


@pytest.mark.parametrize("user", ["ben", "Ben", "ben ", "\u200bben", "BE\uff2e"])
def test_a_deny_of_a_user_counts_for_each_spelling_of_the_name(user: str) -> None:
    for rule, kind in {
        '(allow (free)) (deny (free) (user "ben"))': "deny",
        '(allow (free) (user (not "ben")))': "ask",
        '(allow (free) (user "ben"))': "allow" if user == "ben" else "ask",
    }.items():
        call = new_call(form("(free)"), user=user)
        said = RulesPolicy([parse_layer("given", rule.encode(), "p.hy")]).judge(
            replace(FREE, effects=("writes",)), call, {}, ToolContext(Workspace("/nowhere"))
        )
        assert said.kind == kind
