"""The commands about policy: ``quoth policy check``, ``quoth policy explain``, ``quoth trust``.

Knows how rules, findings and explanations are printed, and runs no call.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation, Layer, Match

DONE, FAILED = 0, 1


def add_commands(commands: Any, common: Callable[[str], argparse.ArgumentParser]) -> None:
    """``policy`` with its two actions, and ``trust``; each takes the ``common`` options."""

    def command(where: Any, name: str, help: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = where.add_parser(
            name, parents=[common("tools_after")], help=help, description=help
        )
        return made

    about = "Check the rules of policy files, or explain how a call is judged."
    actions = commands.add_parser("policy", help=about, description=about).add_subparsers(
        dest="action", metavar="ACTION", required=True
    )
    check = command(actions, "check", "Report unknown names, and rules that can never matter.")
    check.add_argument("file", metavar="FILE", nargs="?", help="a policy file (default: all that apply)")
    explain = command(actions, "explain", "Show which rules match a call, and which one decides.")
    explain.add_argument("form", metavar="FORM", help="such as '(read-file \"x\")'; - reads it from stdin")
    explain.add_argument("--route", default="call", metavar="NAME", help="by which way it comes")
    explain.add_argument("--nested", action="store_true", help="as a call made by a program")
    trust = command(commands, "trust", "Let the policy of a workspace, .quoth/policy.hy, count from now on.")
    trust.add_argument("dir", metavar="DIR", nargs="?", help="the workspace (default: here)")


def policy(options: argparse.Namespace) -> int:
    return check(options) if options.action == "check" else explain(options)


def check(options: argparse.Namespace) -> int:
    """Findings on stdout; exit code 1 when there are any."""
    from quoth.agent.cli.common import _table
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.policy.lint import check as findings_of
    from quoth.tools.policy.policy import RulesPolicy

    layers = _layers(options)
    workspace = Workspace(_root(getattr(options, "workspace", ".")))
    findings = findings_of(RulesPolicy(layers), _table(options), workspace)
    if getattr(options, "json", False):
        print_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            print_line(str(finding))
        for layer in layers:
            if not any(finding.place.source.name == layer.name for finding in findings):
                print_line(f"{layer.name}: {_contents(layer)}; nothing to complain of.")
        if not layers:
            print_line("There is no policy file; calls are judged by their tools' effects.")
    return FAILED if findings else DONE


def _layers(options: argparse.Namespace) -> list[Layer]:
    """The file that is named; else all that may apply here, the workspace's own trusted or not."""
    from quoth.tools.policy.files import layers_to_check, read_layer, workspace_policy

    root = _root(getattr(options, "workspace", "."))
    if options.file is None:
        layers, notes = layers_to_check(root, getattr(options, "policy", None))
        for note in notes:
            complain(note)
        return layers
    path = Path(options.file)
    own = path.resolve() == workspace_policy(root).resolve()
    return [read_layer("workspace" if own else "given", path, options.file)]


def explain(options: argparse.Namespace) -> int:
    """Every rule that matches a call, the one that decides, and what holds without rules."""
    from quoth.agent.cli.common import _agent, _text
    from quoth.tools.call.call import new_call
    from quoth.tools.lisp.forms import canonical, from_model
    from quoth.tools.lisp.reader import ReadError, read_one
    from quoth.tools.policy.scope import as_written, checked

    agent = _agent(options)
    for note in agent.policy.notes:
        complain(note)
    try:
        form = from_model(read_one(_text(options.form)))
    except ReadError as error:
        raise UsageError(f"{error}\n{error.caret()}") from None
    tool = agent.table.get(form.tool)
    form, args = checked(tool, form, agent.workspace)
    marks: dict[str, Any] = {"route": options.route}
    if options.nested:
        marks = {"route": "program", "depth": 1, "parent": "a program"}
    written = as_written(tool, args)
    call = new_call(form, user=agent.user, session=agent.session, written=written, **marks)
    why = agent.policy.explain(tool, call, args, agent.context())
    limits = agent.policy.limits_of(tool)
    if getattr(options, "json", False):
        print_json(_as_json(why, limits) | {"form": canonical(call.form), "written": list(written)})
    else:
        if written:
            print_line(f"It is judged as {canonical(call.form)}, for {'; '.join(written)}.")
        _show(why, limits)
    return DONE


def _show(why: Explanation, limits: list[Limit]) -> None:
    print_line(f"{why.verdict.kind}: {visible(why.verdict.reason)}.")
    for match in why.matches:
        print_line(f"  {match.rule.place}  {visible(match.rule.text)}{_standing(match, why)}")
    for limit in limits:
        print_line(f"  {limit.place}  {limit.text}  (a limit)")
    if why.decided is not None:
        print_line(f"Without rules: {why.default.kind}, for {why.default.reason}.")
    elif not why.matches and not limits:
        print_line("No rule matches.")


def _standing(match: Match, why: Explanation) -> str:
    notes = []
    if match == why.decided:
        notes.append("decides")
    if match.layer.ignores(match.rule):
        notes.append("passed over, for a workspace may only tighten")
    elif match.truth is None:
        counts = "counts" if match.counts else "does not count"
        notes.append(f"cannot be decided, so it {counts}")
    return f"  ({'; '.join(notes)})" if notes else ""


def _as_json(why: Explanation, limits: list[Limit]) -> dict[str, Any]:
    return {
        "verdict": why.verdict.kind,
        "reason": why.verdict.reason,
        "decided_by": None if why.decided is None else _rule_json(why.decided),
        "matches": [_rule_json(match) for match in why.matches],
        "limits": [limit.text for limit in limits],
        "default": {"verdict": why.default.kind, "reason": why.default.reason},
    }


def _rule_json(match: Match) -> dict[str, Any]:
    rule = match.rule
    return {
        "layer": match.layer.kind,
        "kind": rule.kind,
        "rule": rule.text,
        "why": rule.why,
        "file": rule.place.source.name,
        "line": rule.place.line,
        "column": rule.place.column,
        "decidable": match.truth is not None,
        "counts": match.counts,
    }


def trust(options: argparse.Namespace) -> int:
    """Trust what the workspace's policy says now, showing it; with none there, trust nothing there."""
    from quoth.agent.terminal.person import require_person
    from quoth.tools.policy.files import trust_workspace

    require_person()
    root = _root(options.dir or getattr(options, "workspace", "."))
    trusted = trust_workspace(root)
    as_json = getattr(options, "json", False)
    if trusted is None:
        message = f"There is no policy in {root} any more, and none is trusted."
        print_json({"status": "forgotten", "workspace": str(root)}) if as_json else print_line(message)
        return DONE
    layer, digest = trusted
    counted = [rule.text for rule in layer.orders.rules if not layer.ignores(rule)]
    counted += [limit.text for limit in layer.orders.limits]
    passed = [rule.text for rule in layer.orders.rules if layer.ignores(rule)]
    if as_json:
        print_json(
            {
                "status": "trusted",
                "workspace": str(root),
                "file": layer.name,
                "sha256": digest,
                "rules": counted,
                "ignored": passed,
            }
        )
        return DONE
    print_line(f"{layer.name} is trusted as it is now, SHA-256 {digest}:")
    for text in counted:
        print_line(f"  {visible(text)}")
    for text in passed:
        print_line(f"  {visible(text)}  (passed over, for a workspace may only tighten)")
    return DONE


def _contents(layer: Layer) -> str:
    from quoth.tools.text import count

    orders = layer.orders
    return count(len(orders.rules), "rule") + (
        f", {count(len(orders.limits), 'limit')}" if orders.limits else ""
    )


def _root(folder: str) -> Path:
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a folder.")
    return root.resolve()
