"""Tools that the rules deny for all arguments: a model is not shown them, and a worker lets only the users
call them whom the rules, or its option ``--allow``, name.

Hiding a tool changes only the tool list; a call of a hidden tool meets the door like any other call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from quoth.tools.call.call import PROGRAMS, Call
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.lisp.forms import CallForm, kebab
from quoth.tools.policy.model import Rule
from quoth.tools.policy.policy import Layer, RulesPolicy
from quoth.tools.policy.predicates import ANOTHER, EvaluationContext
from quoth.tools.registry.parameters import NAME
from quoth.tools.registry.table import EVERYBODY, CognitiveTool, ToolTable
from quoth.tools.registry.values import UNKNOWN

ALL_SPEAKERS = ""  # a conversation of several users: only tools denied to all of them are hidden
NOWHERE = Workspace("/")  # a placeholder: no path is known, so no file is read
INNER = ("program", "tool", "agent")  # the routes of nested calls


def offered(table: ToolTable, policy: RulesPolicy, user: str, routes: Sequence[str] = ()) -> ToolTable:
    """The table without the tools that this user cannot call by any of the routes (none given: by any route).
    Returns the same table if no tool is hidden."""
    table = table.whole
    if user:
        denied = {name for name in table.permissions if not table.is_allowed(name, user)}
    else:
        denied = {name for name, users in table.permissions.items() if not users}
    who = user or UNKNOWN
    for tool, rules in _denying(policy, table):
        if all(_denies(rules, tool, who, route) for route in routes or (UNKNOWN,)):
            denied.add(tool.name)
    return table.hiding(denied)


def ways(table: ToolTable, policy: RulesPolicy, user: str, route: str, *, programs: bool) -> tuple[str, ...]:
    """The routes of a model's calls in a run of this route; with ``programs``, its dialect calls tools only
    in programs."""
    if programs:
        return ("program",)
    runs = PROGRAMS in table and not always_denied(policy, table.get(PROGRAMS), user or UNKNOWN, route)
    return (route, "program") if runs else (route,)


def always_denied(
    policy: RulesPolicy, tool: CognitiveTool, user: Any = UNKNOWN, route: Any = UNKNOWN
) -> bool:
    """Whether the rules deny every call of the tool by this user and route, for all arguments, paths, depths
    and confidences. An undecided rule does not count."""
    return any(_denies(rules, tool, user, route) for _, rules in _denying(policy, ToolTable((tool,))))


def permissions_of(
    policy: RulesPolicy, table: ToolTable, route: str = "remote"
) -> dict[str, tuple[str, ...]]:
    """For each tool that the rules allow only to named users by this route, these users."""
    found = {}
    for tool, rules in _denying(policy, table):
        if _denies(rules, tool, ANOTHER, route):
            texts = [one for rule in rules for one in rule.compared if one.argument == "(user)"]
            named = {one.text for one in texts if one.how == "="} - {"*"}
            found[tool.name] = tuple(u for u in sorted(named) if not _denies(rules, tool, u, route))
    return found


def _denying(policy: RulesPolicy, table: ToolTable) -> Iterator[tuple[CognitiveTool, list[Rule]]]:
    """The tools that may be denied to a user for all calls, each with the rules that may deny it: never rules
    about values of arguments."""
    of_one: dict[str, list[tuple[Layer, Rule]]] = {}
    of_any: list[tuple[Layer, Rule]] = []
    for layer in policy.layers:
        for rule in layer.orders.rules:
            if rule.kind == "deny" and len(rule.open) == len(rule.arguments):
                (of_any if rule.tool is None else of_one.setdefault(rule.tool, [])).append((layer, rule))
    for tool in table if of_any else [table.get(name) for name in of_one if name in table]:
        rules = [rule for layer, rule in (*of_any, *of_one.get(tool.name, ())) if layer.concerns(rule, tool)]
        if rules:
            yield tool, rules


def _denies(rules: Sequence[Rule], tool: CognitiveTool, user: Any, route: Any) -> bool:
    """Whether one of the rules matches every call of the tool by this user and route."""
    parent = "a call" if route in INNER else None
    call = Call("", CallForm(tool.name), route, user, depth=UNKNOWN, parent=parent, client=UNKNOWN)
    args = {param.name: UNKNOWN for param in tool.params}
    facts = EvaluationContext(tool, call, NOWHERE)
    return any(rule.test(args, facts) is True for rule in rules)


def read_allow(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The users by tool, from options such as ``count-fruit=ann,ben``; options for the same tool add up.
    Raises UsageError."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        tool, users = kebab(name.strip()), [user.strip() for user in rest.split(",")]
        if not equals or not NAME.match(tool):
            raise UsageError(f"--allow takes TOOL=USER,…, such as count-fruit=ann,ben; not {word}.")
        if not all(users):
            raise UsageError(f"--allow {word} has an empty name; write {tool}=* for every user.")
        if EVERYBODY in users and len(users) > 1:
            raise UsageError(f"--allow {word} names users besides *, which means every user.")
        found[tool] = tuple(dict.fromkeys((*found.get(tool, ()), *users)))
    return found


def permissions_for(
    policy: RulesPolicy, table: ToolTable, allow: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """For each restricted tool, the users whom ``allow`` and the rules let call it. Raises UsageError for a
    tool that is not in the table."""
    for name, users in allow.items():
        if name not in table:
            hint = did_you_mean(name, table.names(), "The tools are")
            raise UsageError(f"--allow names an unknown tool, {name}.{hint}")
        for user in users:
            if "=" in user and user.split("=")[0].strip() in table:
                raise UsageError(f"--allow {name}=… also names another tool: give {user} its own --allow.")
    found = {table.get(name).name: users for name, users in allow.items() if EVERYBODY not in users}
    for name, users in permissions_of(policy, table).items():
        found[name] = tuple(user for user in found.get(name, users) if user in users)
    return found
