"""What the rules deny always, and to whom: such a tool is hidden, and nothing else is."""

from __future__ import annotations

import pytest
from sentences import THERE_IS_NO_TOOL_NAMED
from words import complaint, gateway, shipped, table_of, tool

from quoth.tools.errors import UnknownToolError, UsageError
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.offer import always_denied, offered, permissions_for, permissions_of, read_allow, ways
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.parameters import WorkspacePath
from quoth.tools.registry.table import ToolTable
from quoth.tools.registry.values import UNKNOWN

EVAL = tool("eval", params={"form": {}})
BUY = tool(
    "buy", params={"fruit": {"default": "plum"}, "count": {"type": int, "default": 1}}, effects=["net"]
)
FETCH = tool("fetch", params={"path": {"type": WorkspacePath}})
MANY = tool("many", params={"paths": {"type": list[WorkspacePath]}})
MAYBE = tool("maybe", params={"path": {"type": WorkspacePath, "default": None}})
TOOLS = table_of(EVAL, BUY, FETCH, MANY, MAYBE)


def policy(rules: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("given", rules.encode(), "policy.hy")])


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ("", ""),
        ("(deny (buy))", "buy"),
        ("(ask (buy))", ""),
        ("(ask _) (allow (buy)) (deny (buy))", "buy"),
        ("(deny _)", "buy eval fetch many maybe"),
        ("(deny (effects :net))", "buy"),
        ("(deny (cost :free) (effects :net))", "buy"),
        ('(deny (tool (matches "^b")))', "buy"),
        ("(deny (remote))", ""),
        # users
        ('(deny (buy) (user "ann"))', "buy"),
        ('(deny (buy) (user "ben"))', ""),
        ('(deny (buy) (user (not "ben")))', "buy"),
        ("(deny (buy) (user _))", "buy"),
        ('(deny (buy) (user "ben")) (deny (buy) (user "ann"))', "buy"),
        # arguments: only what every call has
        ("(deny (buy :fruit _))", "buy"),
        ('(deny (buy :fruit "plum"))', ""),
        ('(deny (buy :fruit (not "plum")))', ""),
        ('(deny (buy :fruit (or "a" (not "a"))))', ""),
        ('(deny (buy :fruit "plum")) (deny (buy :fruit (not "plum")))', ""),
        ("(deny (buy :count (> 0)))", ""),
        ("(deny (buy :only))", ""),
        ("(deny (buy :fruit _ :count _ :only))", "buy"),
        ("(deny (buy :frut _))", ""),  # it cannot be decided
        ("(deny (any-tool :fruit _))", "buy"),
        ("(deny (any-tool :path _))", "fetch"),  # a list of paths may be empty, and none may be given
        ('(deny (any-tool :path (under ".")))', ""),
        # what is known of no call before it is made
        ("(deny (buy) (depth > 0))", ""),
        ("(deny (buy) (depth _))", "buy"),
        ("(deny (buy) (nested))", ""),
        ("(deny (buy) (confidence < 0.5))", ""),
        ("(deny (buy) (confidence _))", ""),
        ("(quota buy 1 :per :day) (cooldown fetch 10 :hours)", ""),
        # the ways of a run that may call a tool itself, or in a program
        ('(deny (buy) (client (not "zed")))', ""),
        ("(deny (buy) (client _))", "buy"),
        ('(deny (buy) (route "reply"))', ""),
        ('(deny (buy) (route (one-of "reply" "program")))', "buy"),
        ('(deny (buy) (route (not "call")))', "buy"),
        ('(deny (buy) (route "reply")) (deny (eval))', "buy eval"),
        ('(deny (buy) (route "reply")) (deny (buy) (nested))', "buy"),
        ('(deny (buy) (route "chat"))', ""),
    ],
)
def test_hidden_is_what_is_denied_whatever_is_not_known_yet(rules: str, hidden: str) -> None:
    made = policy(rules)
    seen = offered(TOOLS, made, "ann", ways(TOOLS, made, "ann", "reply", programs=False))
    assert " ".join(sorted(seen.hidden)) == hidden
    assert seen.shown.names() == [name for name in TOOLS.names() if name not in hidden.split()]
    assert seen.schema_hash == TOOLS.schema_hash


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ("(deny (buy) (nested))", "buy"),
        ('(deny (buy) (route "program"))', "buy"),
        ('(deny (buy) (route "reply"))', ""),
    ],
)
def test_where_every_call_is_a_program_the_rules_about_programs_count(rules: str, hidden: str) -> None:
    made = policy(rules)
    routes = ways(TOOLS, made, "ann", "reply", programs=True)
    assert " ".join(offered(TOOLS, made, "ann", routes).hidden) == hidden


@pytest.mark.parametrize(
    ("rules", "hidden"),
    [
        ("(deny (buy))", "buy"),
        ('(deny (buy) (user "ann"))', ""),
        ('(deny (buy) (user (not "ann")))', ""),
        ("(deny (buy) (user _))", "buy"),
        ('(deny (buy) (route "chat"))', ""),
    ],
)
def test_for_everybody_and_by_any_route_hidden_is_what_nobody_may_call(rules: str, hidden: str) -> None:
    assert " ".join(offered(TOOLS, policy(rules), "").hidden) == hidden


def test_a_rule_of_a_workspace_hides_and_an_allow_there_shows_nothing() -> None:
    deny, allow = (parse_layer("workspace", f"({kind} (buy))".encode(), "p.hy") for kind in ("deny", "allow"))
    assert offered(TOOLS, RulesPolicy([deny, allow]), "ann").hidden == {"buy"}


def test_where_nothing_is_hidden_the_table_is_the_same() -> None:
    assert offered(TOOLS, policy('(deny (buy) (user "ben"))'), "ann") is TOOLS
    seen = offered(TOOLS, policy("(deny (buy))"), "ann")
    assert offered(seen, policy(""), "ann") is TOOLS
    assert seen.whole is TOOLS


def test_permissions_hide_too_and_the_door_keeps_them() -> None:
    table = table_of(EVAL, BUY)
    table.permit({"buy": ["ann"], "eval": []})
    assert offered(table, policy(""), "ann").hidden == {"eval"}
    assert offered(table, policy(""), "ben").hidden == {"buy", "eval"}
    assert offered(table, policy(""), "").hidden == {"eval"}
    here = gateway(tool("buy"))
    here.door.table.permit({"buy": ["ann"]})
    assert here.pass_through("(buy)", user="ann").ok
    refused = here.pass_through("(buy)", user="ben")
    assert (refused.status, refused.message) == ("denied", "buy was denied: ben may not call it.")
    assert (here.rows[-1]["stage"], here.rows[-1]["policy"]) == ("policy", "deny: ben may not call it")
    planned = tool("plan", lambda text: text, params={"text": {}})
    looked = shipped(".", planned)
    looked.door.table.permit({"plan": ["ann"]})
    for program in ('(plan "a")', '(plan (write-file "a" "b"))'):
        call = f"(eval :form {program} :dry-run True)"
        assert "plan is denied" not in looked.pass_through(call, user="ann").value["text"]
        assert "ben may not call it" in looked.pass_through(call, user="ben").value["text"]
    here.door.table.permit({"buy": ["*"]})
    assert here.pass_through("(buy)", user="ben").ok


def test_a_hidden_tool_can_be_looked_up_and_is_named_by_no_hint() -> None:
    seen = TOOLS.hiding({"buy"})
    assert seen.get("buy") is BUY
    assert "buy" in seen
    assert complaint(UnknownToolError, lambda: seen.get("buyy")) == (
        f"{THERE_IS_NO_TOOL_NAMED} buyy. Available tools: eval, fetch, many, maybe."
    )
    assert complaint(UnknownToolError, lambda: TOOLS.get("buyy")).endswith("Did you mean buy?")


# Permissions


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("", {}),
        ("(deny (buy))", {"buy": ()}),
        ('(deny (buy) (user (not "ann")))', {"buy": ("ann",)}),
        ('(deny (buy) (user (not (one-of "ben" "ann"))))', {"buy": ("ann", "ben")}),
        ('(deny (buy) (user (and (not "ann") (not "ben"))))', {"buy": ("ann", "ben")}),
        ('(deny (buy) (user (not "ann"))) (deny (buy) (user "ann"))', {"buy": ()}),
        ('(deny (buy) (user (not (one-of "ann" "ben")))) (deny (buy) (user "ben"))', {"buy": ("ann",)}),
        ('(deny (effects :net) (user (not "ann")))', {"buy": ("ann",)}),
        ('(deny (buy) (user (not "ann")) (route "remote"))', {"buy": ("ann",)}),
        # no finite set of users, or not whatever the arguments
        ('(deny (buy) (user "ann"))', {}),
        ('(deny (buy) (user (not (matches "^a"))))', {}),
        ("(deny (buy) (user (len (> 3))))", {}),
        ('(allow (buy) (user "ann"))', {}),
        ('(ask (buy) (user (not "ann")))', {}),
        ('(deny (buy :fruit "plum") (user (not "ann")))', {}),
        ('(deny (buy) (user (not "ann")) (route "reply"))', {}),
        ('(deny (buy) (user (not "*")))', {"buy": ()}),  # a user of that name is not everybody
    ],
)
def test_permissions_are_the_users_whom_rules_leave(rules: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert permissions_of(policy(rules), TOOLS) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["buy=ann"], {"buy": ("ann",)}),
        (["buy=ann,ben", "FETCH_IT=*"], {"buy": ("ann", "ben"), "fetch-it": ("*",)}),
        (["buy = ann , ben", "buy=eve,ann"], {"buy": ("ann", "ben", "eve")}),
        (["buy=a=b"], {"buy": ("a=b",)}),
    ],
)
def test_allow_names_the_users_of_a_tool(words: list[str], expected: dict[str, tuple[str, ...]]) -> None:
    assert read_allow(words) == expected


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("buy", "--allow takes TOOL=USER,…, such as count-fruit=ann,ben; not buy."),
        ("=ann", "--allow takes TOOL=USER,…, such as count-fruit=ann,ben; not =ann."),
        ("b y=ann", "--allow takes TOOL=USER,…, such as count-fruit=ann,ben; not b y=ann."),
        ("buy=", "--allow buy= has an empty name; write buy=* for every user."),
        ("buy=ann,,ben", "--allow buy=ann,,ben has an empty name; write buy=* for every user."),
        ("buy=ann,*", "--allow buy=ann,* names users besides *, which means every user."),
    ],
)
def test_allow_that_cannot_be_read(word: str, message: str) -> None:
    assert complaint(UsageError, lambda: read_allow([word])) == message


@pytest.mark.parametrize(
    ("allow", "rules", "expected"),
    [
        ({"buy": ("ann",)}, "", {"buy": ("ann",)}),
        ({"buy": ("*",)}, "", {}),
        ({"buy": ("*",)}, '(deny (buy) (user (not "ann")))', {"buy": ("ann",)}),
        ({"buy": ("ann", "ben")}, '(deny (buy) (user (not (one-of "ann" "eve"))))', {"buy": ("ann",)}),
        ({"buy": ("ben",)}, '(deny (buy) (user (not "ann")))', {"buy": ()}),
        ({"fetch": ("ben",)}, "(deny (buy))", {"fetch": ("ben",), "buy": ()}),
    ],
)
def test_who_is_allowed_and_left_by_the_rules_may_call(
    allow: dict[str, tuple[str, ...]], rules: str, expected: dict[str, tuple[str, ...]]
) -> None:
    assert permissions_for(policy(rules), TOOLS, allow) == expected


def test_allow_of_an_unknown_tool_names_the_nearest() -> None:
    def allow(name: str, table: ToolTable = TOOLS) -> str:
        return complaint(UsageError, lambda: permissions_for(policy(""), table, {name: ("ann",)}))

    assert allow("by") == "--allow names an unknown tool, by. Did you mean buy?"
    assert allow("zzz", table_of(BUY)) == "--allow names an unknown tool, zzz. The tools are buy."


def test_one_allow_is_of_one_tool() -> None:
    allowed = read_allow([f"{BUY.name}=ann,{FETCH.name}=ben"])
    assert complaint(UsageError, lambda: permissions_for(policy(""), TOOLS, allowed)) == (
        f"--allow {BUY.name}=… also names another tool: give {FETCH.name}=ben its own --allow."
    )


def test_always_denied_is_asked_of_one_tool() -> None:
    rules = policy('(deny (buy) (user "ann") (route "chat"))')
    assert always_denied(rules, BUY, "ann", "chat")
    assert not always_denied(rules, BUY, UNKNOWN, "chat")
    assert not always_denied(rules, BUY, "ann")
    assert not always_denied(rules, FETCH, "ann", "chat")
