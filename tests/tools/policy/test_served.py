"""Rules about tools of MCP servers, and the effects that a person gives them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from words import complaint, table_of, tool

from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.limits import by_effects, with_maker
from quoth.tools.policy.lint import check
from quoth.tools.policy.offer import offered
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.tool import CognitiveTool, ServedTool

SHORT = "3f9a21c0" * 4
DIGEST = SHORT + "0" * 32
HINTS = ("readOnlyHint", "destructiveHint")


def served(server: str = "github", says: tuple[str, ...] = HINTS) -> CognitiveTool:
    made = tool(f"{server}--get-issue", params={"repo": {}}, effects=["net", "writes"])
    return replace(made, served=ServedTool(server, "getIssue", DIGEST, says))


def policy(rules: str, kind: Any = "user") -> RulesPolicy:
    return RulesPolicy([parse_layer(kind, rules.encode(), "policy.hy")])


def verdict(rules: str, one: CognitiveTool, repo: str = "a/b") -> str:
    call = new_call(CallForm(one.name, {"repo": repo}), route="reply")
    context = ToolContext(workspace=Workspace("."))
    return policy(rules).judge(one, call, {"repo": repo}, context).kind


@pytest.mark.parametrize(
    ("rules", "kind"),
    [
        ("", "ask"),
        ("(allow (mcp))", "allow"),
        ('(allow (mcp :server "github"))', "allow"),
        ('(allow (mcp :server "gitlab"))', "ask"),
        ('(allow (mcp :server "github" :tool "getIssue"))', "allow"),
        ('(allow (mcp :tool "get-issue"))', "ask"),
        ('(allow (mcp :tool (matches "^get")))', "allow"),
        (f'(allow (mcp :digest "{DIGEST}"))', "allow"),
        (f'(allow (mcp :digest "{"0" * 64}"))', "ask"),
        ('(deny (mcp :says "destructiveHint"))', "deny"),
        ('(deny (mcp :says "openWorldHint"))', "ask"),
        ('(deny (mcp :says (or "openWorldHint" "readOnlyHint")))', "deny"),
        ('(allow (mcp)) (deny (github--get-issue :repo "a/b"))', "deny"),
        ('(allow (mcp :server "github") (any-tool :repo "a/b"))', "allow"),
        ('(allow (mcp :server "github") (any-tool :repo "a/c"))', "ask"),
    ],
)
def test_a_rule_sees_server_name_digest_annotations_and_arguments(rules: str, kind: str) -> None:
    assert verdict(rules, served()) == kind


def test_a_rule_about_servers_never_matches_another_tool() -> None:
    own = tool("fetch", params={"repo": {}}, effects=["net"])
    assert verdict("(allow (mcp))", own) == "ask"
    assert verdict("(deny (mcp))", own) == "ask"


def test_an_annotation_allows_nothing() -> None:
    assert verdict("", served(says=("readOnlyHint",))) == "ask"
    said = complaint(UsageError, lambda: policy('(allow (mcp :says "readOnlyHint"))'))
    assert "it allows nothing" in said


def test_a_question_names_the_server_and_its_warning() -> None:
    assert with_maker(served(), by_effects(served()).reason) == (
        "it uses the network and it may change something; the MCP server github runs this call, which says"
        " that it may destroy something"
    )
    assert "destroy" not in with_maker(served(says=()), "")


def test_a_denied_server_is_not_offered() -> None:
    table = table_of(served(), served("gitlab"))
    names = offered(table, policy('(deny (mcp :server "github"))'), "ann").visible.names()
    assert names == ["gitlab--get-issue"]


def test_effects_are_for_a_digest_and_only_in_the_users_own_rules() -> None:
    (one,) = parse_layer("user", b"(effects github--get-issue :reads)", "policy.hy").orders.effects
    assert (one.tool, one.effects) == ("github--get-issue", ("reads",))
    assert one.counts(DIGEST, renewed=False)
    assert not one.counts(DIGEST, renewed=True)
    text = f'(effects github--get-issue :reads :net :digest "{SHORT}")'.encode()
    (exact,) = parse_layer("user", text, "policy.hy").orders.effects
    assert exact.counts(DIGEST, renewed=True)
    assert not exact.counts("4" + DIGEST[1:], renewed=False)
    for kind in ("workspace", "given", "shipped"):
        said = complaint(UsageError, lambda kind=kind: policy("(effects a--b :reads)", kind))  # type: ignore[misc]
        assert "your own policy.hy" in said


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("(effects read-file :reads)", "the name of an MCP server's tool"),
        ("(effects a--b)", "the name of an MCP server's tool"),
        ("(effects a--b :raeds)", "Did you mean :reads?"),
        (f'(effects a--b :digest "{SHORT}")', "at least one effect"),
        ('(effects a--b :reads :digest "3f9")', "32 to 64 hex digits"),
        (f'(effects a--b :digest "{SHORT}" :reads)', ":digest is last"),
        ("(effects a--b :reads :digest)", ":digest is last"),
        ('(deny (mcp :sever "x"))', "Did you mean :server?"),
        ("(deny (mcp :server))", "has no value"),
        ('(deny (mcp "x"))', "Expected a keyword"),
    ],
)
def test_a_mistake_says_what_is_right(rules: str, message: str) -> None:
    assert message in complaint(UsageError, lambda: policy(rules))


def test_effects_of_an_unknown_tool_are_found() -> None:
    found = check(policy("(effects github--get-isue :reads)"), table_of(served()))
    assert [one.kind for one in found] == ["unknown-tool"]
    assert "github--get-issue" in str(found[0])
