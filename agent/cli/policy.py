"""The commands about policy: ``quoth policy check``, ``quoth policy explain``, ``quoth trust``.

Knows how rules, findings and explanations are printed, and runs no call.
"""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import agent_of, open_store, text_of, tools_of
from quoth.agent.cli.options import DONE, FAILED, Commands, Options, argument, option, switch
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.storage.paths import real_path
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation, Layer, Match


KINDS = ("deny", "ask", "allow")


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
    form: str | None = argument(
        "FORM", "such as '(read-file \"x\")'; - reads it from stdin (default: those of --session)", nargs="?"
    )
    route: str = option("--route", "NAME", "by which way it comes", default="call")
    nested: bool = switch("--nested", "as a call made by a program")
    confidence: float | None = option(
        "--confidence", "X", "the model's own estimate, from 0 to 1 (default: it gave none)", type=_share
    )


@dataclass(init=False, repr=False, eq=False)
class TrustOptions(Options):
    dir: str | None = argument("DIR", "the workspace (default: here)", nargs="?")


def add(commands: Commands) -> None:
    about = "Check the rules of policy files, explain how a call is judged, or print rules to begin with."
    commands.group("policy", about, _actions)
    about = "Let the rules, settings, skills and AGENTS.md of a workspace count from now on, as they are."
    commands.add("trust", about, TrustOptions, trust)


def _actions(policy: Commands) -> None:
    policy.add("check", "Report unknown names, and rules that can never matter.", CheckOptions, check)
    about = "Show which rules match a call, and which one decides; or how they judge a session's calls."
    policy.add("explain", about, ExplainOptions, explain)
    policy.add("example", "Print rules that let git, tests and linters run unasked.", Options, example)


def check(options: CheckOptions) -> int:
    """Print the findings about policy files; the exit code is 1 if there are any."""
    from quoth.agent.terminal.policy_page import layer_contents
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.policy.lint import check as findings_of
    from quoth.tools.policy.policy import RulesPolicy
    from quoth.tools.policy.unseen_paths import unseen_paths

    layers = _layers(options)
    workspace = Workspace(_root(options.folder))
    tools = tools_of(options)
    findings = findings_of(RulesPolicy(layers), tools, workspace)
    for tool in tools:
        for sentence in unseen_paths(tool, workspace):
            complain(sentence)
    if options.json:
        print_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            print_line(str(finding))
        for layer in layers:
            if not any(finding.place.source.name == layer.name for finding in findings):
                print_line(f"{layer.name}: {layer_contents(layer)}; nothing to complain of.")
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
    own = real_path(path) == real_path(workspace_policy(root))
    return [read_layer("workspace" if own else "given", path, options.file)]


def example(options: Options) -> int:
    """Print the rules about programs that ship, with comments."""
    text = (Path(__file__).parents[2] / "plans" / "templates" / "shell.hy").read_text(encoding="utf-8")
    print_json({"rules": text}) if options.json else print_line(text.rstrip("\n"))
    return DONE


def explain(options: ExplainOptions) -> int:
    """Print every rule that matches a call, the one that decides, and the default without rules."""
    from quoth.agent.run.judgement import judged
    from quoth.agent.session.origins import is_typed
    from quoth.agent.terminal.policy_page import explanation_lines
    from quoth.tools.call.call import ROUTES
    from quoth.tools.lisp.forms import canonical

    if options.form is None:
        return _explain_session(options)
    if options.route not in ROUTES:
        hint = did_you_mean(options.route, ROUTES) or f" There are {', '.join(ROUTES)}."
        raise UsageError(f"There is no route {options.route}.{hint}")
    agent = agent_of(options)
    for note in agent.policy.notes:
        complain(note)
    marks: dict[str, Any] = {"route": options.route, "confidence": options.confidence}
    if options.nested:
        marks |= {"route": "program", "depth": 1, "parent": "a program"}
    call, why, limits = judged(agent, text_of(options.form), **marks)
    if is_typed(call) and any(
        layer.orders.careful or any(rule.origins for rule in layer.orders.rules)
        for layer in agent.policy.layers
    ):
        complain("The values of a form that you type are your own words; as a model's call: --route reply")
    if options.json:
        print_json(_as_json(why, limits) | {"form": canonical(call.form), "written": list(call.written)})
    else:
        for line in explanation_lines(call, why, limits):
            print_line(line)
    return DONE


def _explain_session(options: ExplainOptions) -> int:
    """Print how the rules judge the calls of a session that do more than read."""
    from quoth.agent.cli.taking_over import take_over
    from quoth.agent.run.judgement import judged_again
    from quoth.agent.session.index import find_session, users_of
    from quoth.agent.terminal.policy_page import past_call_lines, past_calls_line
    from quoth.tools.history.transcript import Transcript

    if options.session is None:
        raise UsageError("Give a call to explain, or --session ID for the calls of a session.")
    with open_store(options) as store:
        session = find_session(store, options.session)
        assert store is not None, "a session was found in it"
        users = users_of(Transcript(lambda: store), session)
        agent = agent_of(take_over(options, store, session, users[0] if users else ""), store=store)
        for note in agent.policy.notes:
            complain(note)
        found = list(judged_again(agent))
    counts = {kind: sum(one.verdict.kind == kind for one in found) for kind in KINDS}
    if options.json:
        print_json({"session": session, "calls": [one.to_json() for one in found], **counts})
        return DONE
    for one in found:
        for line in past_call_lines(one.id, str(one.form), one.verdict):
            print_line(line)
    print_line(past_calls_line(session, counts))
    return DONE


def _as_json(why: Explanation, limits: list[Limit]) -> dict[str, Any]:
    return {
        "verdict": why.verdict.kind,
        "reason": why.verdict.reason,
        "rule": why.verdict.rule,
        "origin": why.verdict.origin,
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
    """Trust what the workspace says for itself as it is now, and print it; of what is not there any
    more, revoke the trust."""
    from quoth.agent.config.loading import OWN_NAME, TRUST, own_config
    from quoth.agent.repl.startup import OWN_NAME as INIT_NAME
    from quoth.agent.repl.startup import TRUST as INIT_TRUST
    from quoth.agent.repl.startup import own_init
    from quoth.agent.run.project_notes import NESTED, NOTES, nested_notes, notes_for_agents
    from quoth.agent.run.project_notes import TRUST as TRUST_OF_NOTES
    from quoth.agent.terminal.person import require_person
    from quoth.tools.knowledge.skills import TRUST as TRUST_OF_SKILLS
    from quoth.tools.knowledge.skills import skills_to_trust
    from quoth.tools.policy.files import own_policy
    from quoth.tools.policy.places import OWN_NAME as POLICY
    from quoth.tools.policy.trust import Trust, digest_of

    require_person()
    root = _root(Path(options.dir) if options.dir else options.folder)
    policy, settings, init = own_policy(root), own_config(root), own_init(root)  # all are read first
    notes, nested, skills = notes_for_agents(root), nested_notes(root), skills_to_trust(root)
    gone = {
        "is no policy": policy is None and Trust().forget(root),
        "are no settings": settings is None and TRUST.forget(root),
        "is no startup file": init is None and INIT_TRUST.forget(root),
        f"is no {NOTES}": notes is None and TRUST_OF_NOTES.forget(root),
        f"is no {NOTES} of a folder": not nested and NESTED.forget(root),
        "is no skill": not skills.known and TRUST_OF_SKILLS.forget(root),
    }
    trusted = any(one is not None for one in (policy, settings, init, notes)) or bool(nested or skills.known)
    if not trusted and not any(gone.values()):
        raise UsageError(f"There is no {POLICY} in {root}.")
    told: dict[str, Any] = {"status": "trusted" if trusted else "forgotten", "workspace": str(root)}
    lines = [
        f"There {what} in {root} any more, and none {what.partition(' ')[0]} trusted."
        for what in gone
        if gone[what]
    ]
    if policy is not None:
        layer, data = policy
        digest, rules = Trust().trust(root, data), layer.orders.rules
        counted = [rule.text for rule in rules if not layer.ignores(rule)]
        counted += [limit.text for limit in layer.orders.limits]
        counted += ["(careful)"] if layer.orders.careful else []
        passed = [rule.text for rule in rules if layer.ignores(rule)]
        told |= {"file": layer.name, "sha256": digest, "rules": counted, "ignored": passed}
        lines += [f"{layer.name} is trusted as it is now, SHA-256 {digest}:"]
        lines += [f"  {visible(text)}" for text in counted]
        lines += [f"  {visible(text)}  (passed over, for a workspace may only tighten)" for text in passed]
    own = (
        ("config", OWN_NAME, settings, TRUST, ""),
        ("init", INIT_NAME, init, INIT_TRUST, ""),
        ("notes", NOTES, notes, TRUST_OF_NOTES, SHOWN),
    )
    for key, name, text, record, more in own:
        if text is not None:
            digest = record.trust(root, text)
            told[key] = {"file": name, "sha256": digest}
            lines += _trusted_lines(name, text, digest, more)
    if nested:
        digests = {file: digest_of(data) for file, data in nested.items()}
        NESTED.trust_each(root, digests)
        told["nested"] = [{"file": file, "sha256": digest} for file, digest in digests.items()]
        for file, data in nested.items():
            lines += _trusted_lines(file, data, digests[file], SHOWN)
    if skills.known:
        found = skills.known.values()
        TRUST_OF_SKILLS.trust_each(root, {skill.folder: skill.digest for skill in found})
        told["skills"] = [
            {"folder": skill.folder, "sha256": skill.digest, "files": list(skill.files)} for skill in found
        ]
        for skill in found:
            lines += [f"The skill {skill.folder} is trusted as it is now, SHA-256 {skill.digest}:"]
            lines += [f"  {visible(skill.description)}", *(f"  {visible(file)}" for file in skill.files)]
    for fault in skills.faults:
        complain(fault)
    print_json(told) if options.json else print_line("\n".join(lines))
    return DONE


SHOWN = ", and shown to models"


def _trusted_lines(name: str, data: bytes, digest: str, more: str) -> list[str]:
    lines = data.decode(errors="replace").splitlines()
    said = (f"  {visible(line)}" for line in lines if line.strip())
    return [f"{name} is trusted as it is now{more}, SHA-256 {digest}:", *said]


def _root(root: Path) -> Path:
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a folder.")
    return root.resolve()
