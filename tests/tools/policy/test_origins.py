"""Rules about where a value comes from: what each predicate says, and how a verdict tells what decided."""

from __future__ import annotations

from typing import Any

import pytest
from sentences import IS_ALREADY_GIVEN_AT, THERE_IS_NO_PREDICATE, THERE_IS_NO_TOOL_NAMED
from words import complaint, form, table_of, tool

from quoth.tools.call.call import MODEL, Call, ValueOrigin, Verdict, new_call, verdict_columns
from quoth.tools.call.canonical import arguments
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.language import read_orders
from quoth.tools.policy.lint import check
from quoth.tools.policy.offer import always_denied
from quoth.tools.policy.policy import RulesPolicy, Walk
from quoth.tools.policy.predicates import EvaluationContext
from quoth.tools.policy.scope import covers, read_scope
from quoth.tools.policy.urls import may_reach
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.values import UNKNOWN

SEND = tool(
    "send-email",
    params={
        "recipients": {"type": list, "default": []},
        "body": {"default": ""},
        "about": {"type": dict, "default": {}},
        "amount": {"type": float, "default": 0.0},
        "file": {"type": WorkspacePath, "default": None},
        "urgent": {"type": bool, "default": False},
        "pin": {"secret": True, "default": ""},
    },
    effects=["net"],
)
CONTACTS = tool("search-contacts", effects=["reads"])
READ = tool("read-mail", effects=["reads"], free_text=True)
TABLE = table_of(SEND, CONTACTS, READ)

MAIL = ValueOrigin(text="read-file mail.txt")


class Seen:
    """What a session has seen: the origins of some values; anything else is the model's own."""

    def __init__(self, **more: ValueOrigin) -> None:
        self.found = {
            "ann@home.example": ValueOrigin(in_task=True),
            "ben@home.example": ValueOrigin(fields=("search-contacts",)),
            "both@home.example": ValueOrigin(in_task=True, fields=("read-inbox",)),
            "x@evil.example": MAIL,
            "https://evil.example/a": MAIL,
            "50.0": ValueOrigin(in_task=True),
            "./notes.txt": ValueOrigin(in_task=True),
        } | more

    def intended(self, call: Call) -> bool | None:
        return None

    def find(self, value: Any, call: Call) -> ValueOrigin:
        return self.found.get(str(value), MODEL)


def policy(text: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("given", text.encode(), "policy.hy")])


def judged(rules: str, call: str, seen: Seen | None) -> Verdict:
    """The verdict on a call of send-email in a session that has seen this."""
    made = new_call(form(call), route="reply")
    workspace = Workspace(".")
    args = arguments(SEND, made.form, workspace)
    return policy(rules).judge(SEND, made, args, ToolContext(workspace, origins=seen))


# What a predicate says: (holds, fails, or cannot be decided), told by a deny and an allow

HOLDS, FAILS, UNDECIDED = ("deny", "allow"), ("ask", "ask"), ("deny", "ask")


@pytest.mark.parametrize(
    ("predicate", "argument", "expected"),
    [
        # one text
        ("(in-task)", ':body "ann@home.example"', HOLDS),
        ("(in-task)", ':body "ben@home.example"', FAILS),
        ("(in-task)", ':body "nowhere"', FAILS),
        ("(in-field)", ':body "ben@home.example"', HOLDS),
        ("(in-field)", ':body "ann@home.example"', FAILS),
        ("(in-field)", ':body "both@home.example"', HOLDS),  # a field, whatever else it is
        ("(in-task)", ':body "both@home.example"', HOLDS),
        ("(in-field search-contacts)", ':body "ben@home.example"', HOLDS),
        ('(in-field "search-contacts")', ':body "ben@home.example"', HOLDS),
        ("(in-field search_contacts)", ':body "ben@home.example"', HOLDS),
        ("(in-field read-inbox)", ':body "ben@home.example"', FAILS),
        ("(in-field read-inbox search-contacts)", ':body "ben@home.example"', HOLDS),
        ("(in-text)", ':body "x@evil.example"', HOLDS),
        ("(in-text)", ':body "both@home.example"', FAILS),  # only the strongest counts
        ("(in-text)", ':body "nowhere"', FAILS),
        ("(made-up)", ':body "nowhere"', HOLDS),
        ("(made-up)", ':body "x@evil.example"', FAILS),
        ("(not (or (in-task) (in-field)))", ':body "x@evil.example"', HOLDS),
        ('(and (in-task) (matches "ann"))', ':body "ann@home.example"', HOLDS),
        # a number, and what comes from nowhere
        ("(in-task)", ":amount 50", HOLDS),
        ("(made-up)", ":amount 51", HOLDS),
        ("(in-task)", ":urgent True", HOLDS),
        ("(in-field)", ':body ""', HOLDS),
        ("(in-text)", ':body ""', FAILS),
        ("(made-up)", ":recipients []", FAILS),
        # lists and dictionaries, leaf by leaf
        ("(in-task)", ':recipients ["ann@home.example" "both@home.example"]', HOLDS),
        ("(in-task)", ':recipients ["ann@home.example" "x@evil.example"]', FAILS),
        ("(in-text)", ':recipients ["ann@home.example" "x@evil.example"]', HOLDS),
        ("(made-up)", ':recipients ["ann@home.example" "nowhere"]', HOLDS),
        ("(every (or (in-task) (in-field)))", ':recipients ["ann@home.example" "ben@home.example"]', HOLDS),
        ("(every (or (in-task) (in-field)))", ':recipients ["ben@home.example" "x@evil.example"]', FAILS),
        ("(any (made-up))", ':recipients ["ben@home.example" "nowhere"]', HOLDS),
        ("(in-task)", ':about {"to" ["ann@home.example"]}', HOLDS),
        ("(in-task)", ':about {"mallory" "ann@home.example"}', FAILS),
        ("(in-text)", ':about {"x@evil.example" "ann@home.example"}', HOLDS),  # the key is a link
        ('(key "to" (in-text))', ':about {"to" "x@evil.example"}', HOLDS),
        # the links in a text
        ("(links (or (in-task) (in-field)))", ':body "Ask ann@home.example or ben@home.example."', HOLDS),
        ("(links (or (in-task) (in-field)))", ':body "ann@home.example, https://evil.example/a"', FAILS),
        ("(links (in-task))", ':body "No link at all"', HOLDS),
        ("(not (links (in-task)))", ':body "See https://evil.example/a"', HOLDS),
        ('(links (host "evil.example"))', ':body "See https://evil.example/a"', HOLDS),
    ],
)  # fmt: skip
def test_what_a_predicate_says_of_an_argument(
    predicate: str, argument: str, expected: tuple[str, str]
) -> None:
    name, call = argument[1:].split(" ")[0], f"(send-email {argument})"
    clause = f"(send-email :{name} {predicate})"
    kinds = [judged(f"({kind} {clause})", call, Seen()).kind for kind in ("deny", "allow")]
    assert tuple(kinds) == expected


def test_where_no_session_is_seen_nothing_is_decided_but_what_comes_from_nowhere() -> None:
    for predicate in ("(in-task)", "(not (in-task))", "(in-text)", "(made-up)", "(links (in-task))"):
        rule, call = f"(send-email :body {predicate})", '(send-email :body "https://evil.example/a")'
        assert judged(f"(deny {rule})", call, None).kind == "deny"
        assert judged(f"(allow {rule})", call, None).kind == "ask"
    assert judged("(allow (send-email :body (in-task)))", "(send-email)", None).kind == "allow"
    unknown = {"body": UNKNOWN}
    (rule,) = read_orders("(deny (send-email :body (in-task)))", "policy.hy").rules
    facts = EvaluationContext(SEND, new_call(form("(send-email)")), Workspace("."), Seen())
    assert rule.test(unknown, facts) is None


# What a verdict tells

TEACHER = "(ask (send-email :recipients (not (every (or (in-task) (in-field))))))"


@pytest.mark.parametrize(
    ("rule", "call", "told"),
    [
        (
            TEACHER,
            '(send-email :recipients ["ann@home.example" "x@evil.example"])',
            ":recipients x@evil.example is in the text of read-file mail.txt",
        ),
        (TEACHER, '(send-email :recipients ["nowhere"])', ":recipients nowhere is the model's own"),
        (
            "(deny (send-email :recipients (any (in-field search-contacts))))",
            '(send-email :recipients ["ben@home.example"])',
            ":recipients ben@home.example is a field of search-contacts",
        ),
        (
            "(allow (send-email :body (not (in-text)) :recipients (in-task)))",
            '(send-email :recipients ["ann@home.example"])',
            ":recipients ann@home.example is in your task",
        ),
        (
            "(ask (send-email :body (not (links (in-task)))))",
            '(send-email :body "See https://evil.example/a")',
            "https://evil.example/a, in :body, is in the text of read-file mail.txt",
        ),
        # a secret is named and never shown; what would move a terminal is made visible; a long text is cut
        ("(ask (send-email :pin (made-up)))", '(send-email :pin "1234")', ":pin, a secret, is the"),
        ("(ask (send-email :body (made-up)))", '(send-email :body "a\\x1b[2Jb")', ":body a\\x1b[2Jb is"),
        ("(ask (send-email :body (made-up)))", '(send-email :body "key=ab12")', ":body key=[secret]"),
        ("(ask (send-email :body (made-up)))", f'(send-email :body "{"x" * 200}")', f":body {'x' * 79}… is"),
    ],
)  # fmt: skip
def test_a_verdict_says_which_argument_decided_and_where_that_is_from(
    rule: str, call: str, told: str
) -> None:
    said = judged(rule, call, Seen())
    assert said.reason.startswith(f"policy.hy:1 says {rule}: {told}")
    assert said.origin.startswith(told)
    audited = verdict_columns({"policy": said})["policy"]
    assert told in audited  # also of an allow, which the audit records without its reason


def test_another_rule_that_was_tried_before_is_not_in_the_reason() -> None:
    rules = "(deny (send-email :body (in-text)))\n(ask (send-email :recipients (made-up)))"
    said = judged(rules, '(send-email :body "ann@home.example" :recipients ["nowhere"])', Seen())
    assert said.origin == ":recipients nowhere is the model's own"


def test_an_explanation_gives_the_same_reason_as_the_verdict() -> None:
    made = new_call(form('(send-email :recipients ["x@evil.example"])'), route="reply")
    workspace = Workspace(".")
    asked = (SEND, made, arguments(SEND, made.form, workspace), ToolContext(workspace, origins=Seen()))
    rules = policy(f"{TEACHER}\n(deny (send-email :body (in-text)))")
    assert rules.explain(*asked).verdict == rules.judge(*asked)
    assert [match.rule.text for match in rules.explain(*asked).matches] == [TEACHER]


# Scopes: a grant is judged where no session is seen


def test_a_scope_cannot_ask_where_a_value_comes_from() -> None:
    text = "(allow (send-email :recipients (every (in-task))))"
    assert complaint(UsageError, lambda: read_scope(text, SEND)).splitlines()[0] == (
        "scope:1:39: A scope cannot test the origin of a value; name the values, or write"
        " this rule in a policy file."
    )
    (rule,) = read_orders(text, "scope").rules
    assert not covers(rule, SEND, new_call(form('(send-email :recipients ["a"])')), Workspace("."))


# Mistakes


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("(ask (f :x (in-taks)))", f"{THERE_IS_NO_PREDICATE} in-taks. Did you mean in-task?"),
        ("(ask (f :x (in-task 1)))", "(in-task) takes nothing."),
        ("(ask (f :x (in-field 1)))", "(in-field …) takes names of tools, not 1."),
        ("(ask (f :x (in-field :a)))", "(in-field …) takes names of tools, not :a."),
        ("(ask (f :x (links)))", "(links …) takes one predicate, as in (links (or (in-task) (in-field)))."),
        ("(ask (user (in-task)))", "(in-task) must be in an argument of a call."),
        ("(ask (f :x (len (made-up))))", "(made-up) must be in an argument of a call."),
        ("(ask (f :x (path (in-text))))", "(in-text) is about a whole address, and this is only its path."),
        (
            "(ask (f :x (and (in-task) (made-up))))",
            "This never matches: a (made-up) value is in no task and no field.",
        ),
        ("(ask (in-task))", "a predicate; write it inside a clause, as in (any-tool :to (in-task))."),
        ("(ask (send :to in-task))", "in-task is not a value; write the predicate as (in-task)."),
        ("(careful 1)", "takes only :intent False. To exempt calls from it, add an (allow …) rule."),
        ("(careful :intent True)", "(careful) takes only :intent False."),
        ("(ask (in-intent True))", "(in-intent) takes no arguments."),
        ("(ask (send :to (in-intent)))", "(in-intent) is a clause, as in (ask (send-file) (not"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_at_its_place(rule: str, message: str) -> None:
    assert message in complaint(UsageError, lambda: read_orders(rule, "policy.hy"))


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (
            "(ask (send-email :body (in-field serch-contacts)))",
            f"{THERE_IS_NO_TOOL_NAMED} serch-contacts. Did you mean search-contacts?",
        ),
        (
            "(ask (send-email :body (not (in-field read-mail))))",
            "read-mail returns free text, so no value is a field of its result.",
        ),
        ("(ask (send-email :urgent (made-up)))", ":urgent of send-email is bool, and a bool has no origin."),
        (
            "(ask (send-email :body (links (in-text))))",
            "A text without a link matches, too; write (not (links (or (in-task) (in-field)))).",
        ),
        ("(careful)\n(careful)", f"(careful) {IS_ALREADY_GIVEN_AT} policy.hy:1."),
    ],
)
def test_a_rule_that_cannot_hold_what_it_seems_to_is_found(rule: str, found: str) -> None:
    assert [one.message for one in check(policy(rule), TABLE)] == [found]


def test_rules_as_they_are_meant_have_no_fault() -> None:
    rules = f"""{TEACHER}
    (allow (send-email :body (not (links (in-text))) :recipients (every (in-field search-contacts))))
    (careful)"""
    assert check(policy(rules), TABLE) == []


# Where rules are tested beside the door


def test_a_file_that_a_walk_comes_upon_is_judged_as_if_the_call_had_named_it() -> None:
    named = tool("read-it", params={"path": {"type": WorkspacePath}}, effects=["reads"])
    rules = policy("(deny (read-it :path (in-text)))\n(ask (walk-it :path (not (in-task))))")
    walks = tool("walk-it", params={"path": {"type": WorkspacePath}}, effects=["reads"])
    call, seen = new_call(form('(walk-it :path "a")')), Seen(a=ValueOrigin(in_task=True), **{"b.txt": MAIL})
    args = {"path": WorkspacePath("a")}
    walk = Walk(rules, walks, call, args, Workspace("."), named, origins=seen)
    assert [walk.may_list(path) for path in ("a", "c")] == [True, False]
    walk = Walk(rules, named, call, args, Workspace("."), named, origins=seen)
    assert [walk.may_read(path) for path in ("a", "c", "b.txt")] == [True, True, False]


def test_an_address_that_leads_to_this_machine_comes_from_where_it_was_written() -> None:
    fetch = tool("fetch-it", params={"url": {}}, effects=["net"])
    url = "http://localhost:8000/a"
    args, call = {"url": url}, new_call(form("(fetch-it)"), route="reply")
    here = (fetch, call, args, Workspace("."), "127.0.0.1")
    allowed = policy('(allow (fetch-it :url (host "localhost")))\n(deny (fetch-it :url (not (in-task))))')
    assert may_reach(allowed, *here, Seen(**{url: ValueOrigin(in_task=True)}))
    assert not may_reach(allowed, *here, Seen(**{url: MAIL}))
    assert not may_reach(allowed, *here)  # where no session is seen


def test_a_rule_of_origins_hides_no_tool() -> None:
    assert not always_denied(policy("(deny (send-email :body (made-up)))"), SEND)
