"""The commands about policy: ``quoth policy check``, ``quoth policy explain``, ``quoth trust``.

Knows how rules, findings and explanations are printed, and runs no call.
"""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import agent_of, text_of, tools_of
from quoth.agent.cli.options import DONE, FAILED, Commands, Options, argument, option, switch
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation, Layer, Match


def _share(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"a number from 0 to 1 is needed, not {text}")


@dataclass(init=False, repr=False, eq=False)
class CheckOptions(Options):
    file: str | None = argument("FILE", "a policy file (default: all that apply)", nargs="?")


@dataclass(init=False, repr=False, eq=False)
class ExplainOptions(Options):
    form: str = argument("FORM", "such as '(read-file \"x\")'; - reads it from stdin")
    route: str = option("--route", "NAME", "by which way it comes", default="call")
    nested: bool = switch("--nested", "as a call made by a program")
    confidence: float | None = option(
        "--confidence", "X", "the model's own estimate, from 0 to 1 (default: it gave none)", type=_share
    )


@dataclass(init=False, repr=False, eq=False)
class TrustOptions(Options):
    dir: str | None = argument("DIR", "the workspace (default: here)", nargs="?")


def add(commands: Commands) -> None:
    commands.group("policy", "Check the rules of policy files, or explain how a call is judged.", _actions)
    about = "Let a workspace's own rules and settings, .quoth/policy.hy and config.hy, count from now on."
    commands.add("trust", about, TrustOptions, trust)


def _actions(policy: Commands) -> None:
    policy.add("check", "Report unknown names, and rules that can never matter.", CheckOptions, check)
    policy.add("explain", "Show which rules match a call, and which one decides.", ExplainOptions, explain)


def check(options: CheckOptions) -> int:
    """Print the findings about policy files; the exit code is 1 if there are any."""
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.policy.lint import check as findings_of
    from quoth.tools.policy.policy import RulesPolicy

    layers = _layers(options)
    workspace = Workspace(_root(options.folder))
    findings = findings_of(RulesPolicy(layers), tools_of(options), workspace)
    if options.json:
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


def _layers(options: CheckOptions) -> list[Layer]:
    """The file that is named; else all that may apply here, the workspace's own trusted or not."""
    from quoth.tools.policy.files import layers_to_check, read_layer
    from quoth.tools.policy.places import workspace_policy

    root = _root(options.folder)
    if options.file is None:
        layers, notes = layers_to_check(root, options.policy)
        for note in notes:
            complain(note)
        return layers
    path = Path(options.file)
    own = path.resolve() == workspace_policy(root).resolve()
    return [read_layer("workspace" if own else "given", path, options.file)]


def explain(options: ExplainOptions) -> int:
    """Print every rule that matches a call, the one that decides, and the default without rules."""
    from quoth.tools.call.call import ROUTES, new_call
    from quoth.tools.lisp.forms import canonical, from_model
    from quoth.tools.lisp.reader import ReadError, read_one
    from quoth.tools.policy.scope import as_written, checked

    if options.route not in ROUTES:
        hint = did_you_mean(options.route, ROUTES) or f" There are {', '.join(ROUTES)}."
        raise UsageError(f"There is no route {options.route}.{hint}")
    agent = agent_of(options)
    for note in agent.policy.notes:
        complain(note)
    try:
        form = from_model(read_one(text_of(options.form)))
    except ReadError as error:
        raise UsageError(f"{error}\n{error.caret()}") from None
    tool = agent.table.get(form.tool)
    form, args = checked(tool, form, agent.workspace)
    marks: dict[str, Any] = {"route": options.route, "confidence": options.confidence}
    if options.nested:
        marks |= {"route": "program", "depth": 1, "parent": "a program"}
    written = as_written(tool, args)
    call = new_call(form, user=agent.user, session=agent.session, written=written, **marks)
    why = agent.policy.explain(tool, call, args, agent.context())
    limits = agent.policy.limits_of(tool)
    if options.json:
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


def trust(options: TrustOptions) -> int:
    """Trust the workspace's own policy and settings as they are now, and print them; of what is not there any
    more, revoke the trust."""
    from quoth.agent.config.loading import OWN_NAME, TRUST, own_config
    from quoth.agent.run.surroundings import NOTES, notes_for_agents
    from quoth.agent.run.surroundings import TRUST as TRUST_OF_NOTES
    from quoth.agent.terminal.person import require_person
    from quoth.tools.policy.files import own_policy
    from quoth.tools.policy.places import OWN_NAME as POLICY
    from quoth.tools.policy.trust import Trust

    require_person()
    root = _root(Path(options.dir) if options.dir else options.folder)
    policy, settings = own_policy(root), own_config(root)  # all are read before one is trusted
    notes = notes_for_agents(root)
    gone = (
        policy is None and Trust().forget(root),
        settings is None and TRUST.forget(root),
        notes is None and TRUST_OF_NOTES.forget(root),
    )
    if policy is None and settings is None and notes is None and not any(gone):
        raise UsageError(f"There is no {POLICY} in {root}.")
    told: dict[str, Any] = {
        "status": "trusted" if policy or settings or notes is not None else "forgotten",
        "workspace": str(root),
    }
    lines = [f"There is no policy in {root} any more, and none is trusted."] if gone[0] else []
    lines += [f"There are no settings in {root} any more, and none are trusted."] if gone[1] else []
    lines += [f"There is no {NOTES} in {root} any more, and none is trusted."] if gone[2] else []
    if policy is not None:
        layer, data = policy
        digest, rules = Trust().trust(root, data), layer.orders.rules
        counted = [rule.text for rule in rules if not layer.ignores(rule)]
        counted += [limit.text for limit in layer.orders.limits]
        passed = [rule.text for rule in rules if layer.ignores(rule)]
        told |= {"file": layer.name, "sha256": digest, "rules": counted, "ignored": passed}
        lines += [f"{layer.name} is trusted as it is now, SHA-256 {digest}:"]
        lines += [f"  {visible(text)}" for text in counted]
        lines += [f"  {visible(text)}  (passed over, for a workspace may only tighten)" for text in passed]
    if settings is not None:
        digest = TRUST.trust(root, settings)
        told["config"] = {"file": OWN_NAME, "sha256": digest}
        lines += [f"{OWN_NAME} is trusted as it is now, SHA-256 {digest}:"]
        lines += [f"  {visible(line)}" for line in settings.decode().splitlines() if line.strip()]
    if notes is not None:
        digest = TRUST_OF_NOTES.trust(root, notes)
        told["notes"] = {"file": NOTES, "sha256": digest}
        lines += [f"{NOTES} is trusted as it is now, and shown to models, SHA-256 {digest}:"]
        lines += [f"  {visible(line)}" for line in notes.decode("utf-8", "replace").splitlines()]
    print_json(told) if options.json else print_line("\n".join(lines))
    return DONE


def _contents(layer: Layer) -> str:
    from quoth.tools.text import count

    orders = layer.orders
    return count(len(orders.rules), "rule") + (
        f", {count(len(orders.limits), 'limit')}" if orders.limits else ""
    )


def _root(root: Path) -> Path:
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a folder.")
    return root.resolve()
