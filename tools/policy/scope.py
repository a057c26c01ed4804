"""Scopes: allow rules about one tool, granted by a person for a limited time, and how to suggest one."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from quoth.tools.call.call import Call
from quoth.tools.call.canonical import arguments, is_path, path_arguments, touched, workspace_of
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import InvalidCallError, ToolError, UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import print_string, print_value
from quoth.tools.policy.language import read_orders
from quoth.tools.policy.model import Rule
from quoth.tools.policy.predicate_reader import RUNNERS, program
from quoth.tools.policy.predicates import EvaluationContext
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import listed

_ORDER = re.compile(r"\s*\(\s*(allow|ask|deny|quota|cooldown)[\s(]")
URL = "url"  # the argument of a tool that uses the network
NETWORK = "network"  # the argument that gives a program the network: then each further word may name a server
KEPT_WORDS = 2  # of an argument vector: ["git" "push" ...]


def read_scope(text: str, tool: CognitiveTool) -> Rule:
    """Parse ``text`` as one allow rule about this tool; the word ``allow`` is optional. Raises UsageError."""
    begins = _ORDER.match(text)
    written = text if begins and begins[1] != tool.name else f"(allow {text})"
    orders = read_orders(written, "scope")
    if len(orders.rules) != 1 or orders.limits:
        raise UsageError('A scope must be one rule, such as (allow (write-file :path (under "src"))).')
    (rule,) = orders.rules
    if rule.kind != "allow" or rule.tool != tool.name:
        raise UsageError(f"A scope allows only calls of {tool.name}, the requested tool; not {rule.text}.")
    if rule.origins:
        raise UsageError(
            rule.origins[0].place.complaint(
                "A scope cannot test the origin of a value; name the values, or write this rule in a policy"
                " file."
            )
        )
    if orders.wants_intent:
        raise UsageError(
            rule.place.complaint(
                "A scope cannot test the intent of a task; write this rule in a policy file."
            )
        )
    secret = {param.name: param.secret for param in tool.params}
    for name, place in rule.arguments.items():
        if name not in secret:
            raise UsageError(place.complaint(f"{tool.name} has no argument :{name}."))
        if secret[name] and name not in rule.open:
            raise UsageError(place.complaint(f":{name} is secret, and rules are readable; write :{name} _."))
    return rule


def covers(
    rule: Rule,
    tool: CognitiveTool,
    call: Call,
    workspace: Workspace,
    granted: Sequence[str] | None = None,
) -> bool:
    """Whether the rule allows this call; an undecided rule does not. ``granted`` are the places touched by
    the call for which a person granted the rule; the default is the places of this call."""
    try:
        args = arguments(tool, call.form, workspace)
    except InvalidCallError:
        return False
    known = touched(tool, args, workspace) if granted is None else granted
    if any(place not in known for place in _link_targets(rule, tool, args, workspace)):
        return False
    return rule.concerns(tool) and rule.test(args, EvaluationContext(tool, call, workspace)) is True


def denying(scope: str) -> str:
    """The rule that denies what a scope would allow, as it is shown."""
    return scope.replace("(allow ", "(deny ", 1)


def _link_targets(
    rule: Rule, tool: CognitiveTool, args: Mapping[str, Any], workspace: Workspace
) -> Iterator[str]:
    """The targets of links that are named in a rule, or in a call as written. A person has granted places,
    and a link may now lead to another place."""
    workspace = workspace_of(tool, workspace)
    paths = path_arguments(tool, args)
    named = [one.text for one in rule.compared if one.argument in paths and one.how != "matches"]
    given = [v for v in paths.values() if isinstance(v, str) and not isinstance(v, WorkspacePath)]
    for path in (*named, *given):
        with contextlib.suppress(ToolError):  # not a possible path
            if workspace.goes_through_link(path):
                yield workspace.spelling(workspace.locate(path))


def suggested(tool: CognitiveTool, form: CallForm) -> str:
    """A narrow rule that allows this call and similar ones: the same folder with any text, the same program
    and first argument, or the same server; otherwise exactly these arguments. Destinations are never left
    open. A secret is never part of a rule: it matches any value."""
    from quoth.tools.registry.roles import destinations  # here: most calls need no approval

    secret = {param.name for param in tool.params if param.secret}
    closed = {param.name for param in tool.params if param.choices}
    closed |= {destination.name for destination in destinations(tool)}
    in_folder = any(is_path(name, value) and name not in secret for name, value in form.args.items())
    clauses = []
    for name, value in sorted(form.args.items()):
        if name in secret:
            clause = "_"
        elif is_path(name, value):
            clause = _under(value)
        elif in_folder and isinstance(value, str) and name not in closed:
            clause = "_"
        elif "runs" in tool.effects and _is_vector(value) and not form.args.get(NETWORK):
            clause = _vector(value)
        elif name == URL and "net" in tool.effects:
            clause = _site(value)
        else:
            clause = _literal(value)
        clauses.append(f" :{name} {clause}")
    return f"(allow ({tool.name}{''.join(clauses)} :only))"


def left_open(text: str) -> str:
    """A sentence that names the arguments a scope leaves open; empty if there are none."""
    (rule,) = read_orders(text, "scope").rules
    parts = [f":{name}" for name in rule.open]
    parts += [
        f"the rest of {clause.split()[0]}" for clause in sorted(rule.clauses) if clause.endswith("...]")
    ]
    parts += [f"every page of {one.text}" for one in rule.compared if one.how == "host"]
    parts += [] if rule.only else ["every argument that it does not name"]
    return f"It leaves {listed(parts)} open." if parts else ""


def _under(path: str) -> str:
    """The folder of a path; the path itself if its folder is the whole workspace or may be outside it, where
    ``under`` matches nothing."""
    inside = PurePath(path)
    leads_out = inside.is_absolute() or ".." in inside.parts or inside.as_posix().startswith("~")
    if leads_out or inside.parent == PurePath():
        return print_string(path)
    return f"(under {print_string(inside.parent.as_posix())})"


def _site(value: Any) -> str:
    """The server of an address; any other text unchanged."""
    from quoth.tools.call.web_url import read_url  # here: few calls name one

    try:
        url = read_url(value)
    except (ToolError, TypeError, AttributeError):
        return _literal(value)
    return f"(and (scheme {print_string(url.scheme)}) (host {print_string(url.netloc)}))"


def _literal(value: Any) -> str:
    """A value as rules spell it: a program that is an argument is spelt as a text."""
    if isinstance(value, str):
        return print_string(value)
    if isinstance(value, (list, tuple)):
        return f"[{' '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        pairs = (f"{print_string(str(key))} {_literal(item)}" for key, item in value.items())
        return "{" + " ".join(pairs) + "}"
    return print_value(value)


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) for word in value)


def _vector(words: Any) -> str:
    """The program and its first argument, with any further words; all words if these two do not determine the
    program: a shell, or an option before a git command."""
    name, first = program(words[0]), words[1] if words[1:] else ""
    many = KEPT_WORDS
    if first == "-m":  # a module of Python
        many += 1
    elif first.startswith("-") or first in ("run", "exec") or name in RUNNERS:
        many = len(words)
    kept = " ".join(print_string(word) for word in words[:many])
    return f"[{kept} ...]" if len(words) > many else f"[{kept}]"
