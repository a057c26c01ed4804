"""The commands about policy: ``quoth policy check``, ``quoth policy explain``, ``quoth trust``. They run no
call."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import agent_of, open_store, text_of, tools_of
from quoth.agent.cli.options import (
    DONE,
    FAILED,
    REMOTE,
    SHARED,
    WORK,
    Actions,
    Options,
    argument,
    option,
    switch,
    take_over,
)
from quoth.agent.repl.loaded import OWN_NAME as INIT_NAME
from quoth.agent.repl.loaded import TRUST as INIT_TRUST
from quoth.agent.repl.loaded import own_init
from quoth.agent.run.calls import judged, judged_again
from quoth.agent.run.surroundings import NESTED, NOTES, nested_notes, notes_for_agents
from quoth.agent.run.surroundings import TRUST as TRUST_OF_NOTES
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.agent.terminal.pages import explanation_lines, layer_contents, past_call_lines, past_calls_line
from quoth.tools.errors import UsageError, no_such
from quoth.tools.knowledge.skills import TRUST as TRUST_OF_SKILLS
from quoth.tools.knowledge.skills import skills_to_trust
from quoth.tools.mcp.config import OWN_NAME as SERVERS
from quoth.tools.mcp.config import TRUST as TRUST_OF_SERVERS
from quoth.tools.mcp.config import own_servers
from quoth.tools.policy.files import Trust, digest_of, layers_to_check, own_policy, read_layer
from quoth.tools.policy.lint import check as findings_of
from quoth.tools.policy.lint import unconfined, unseen_paths
from quoth.tools.policy.project import OWN_NAME as POLICY
from quoth.tools.policy.project import workspace_policy
from quoth.tools.storage.paths import real_path
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.policy.model import Limit
    from quoth.tools.policy.policy import Explanation, Layer, Match
    from quoth.tools.registry.table import ToolTable


KINDS = ("deny", "ask", "allow")


def _share(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= float(text) <= 1:
            return float(text)
    raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, not {text}")


class CheckOptions(Options):
    groups = f"tools --policy --boundary {REMOTE}"
    file: str | None = argument("FILE", "file of rules (default: all files that apply here)", nargs="?")


class ExplainOptions(Options):
    groups = WORK
    form: str | None = argument(
        "FORM",
        "the call, such as '(read-file \"x\")'; - reads it from stdin (default: the calls of --session)",
        nargs="?",
    )
    route: str = option(
        "--route", "NAME", "route of the call: call, reply, program, … (default: call)", default="call"
    )
    client: str = option("--client", "NAME", "name of the client, such as zed (default: none)", default="")
    nested: bool = switch("--nested", "judge it as a call inside a program")
    confidence: float | None = option(
        "--confidence", "X", "the model's own estimate of its confidence, 0 to 1 (default: none)", type=_share
    )

    @property
    def channel(self) -> str:
        return f"acp {self.client}" if self.client else ""


class RevokeOptions(Options):
    groups = f"--session {SHARED}"
    id: str | None = argument(
        "ID", "id of the request whose approval or denial lasts (default: list all)", nargs="?"
    )


class TrustOptions(Options):
    groups = "asking"
    dir: str | None = argument("DIR", "the workspace to trust (default: the current one)", nargs="?")


def check(options: CheckOptions) -> int:
    """Print the findings about policy files; the exit code is 1 if there are any."""
    from quoth.tools.call.workspace import Workspace
    from quoth.tools.policy.policy import RulesPolicy

    layers = _layers(options)
    workspace = Workspace(_root(options.folder))
    tools = _with_other_agents(tools_of(options), layers)
    findings = findings_of(RulesPolicy(layers), tools, workspace)
    for tool in tools:
        for sentence in (*unseen_paths(tool, workspace), *unconfined(tool, layers)):
            complain(sentence)
    if options.json:
        print_json([finding.to_json() for finding in findings])
    else:
        for finding in findings:
            print_line(str(finding))
        for layer in layers:
            if not any(finding.place.source.name == layer.name for finding in findings):
                print_line(f"{layer.name}: {layer_contents(layer)}; no findings.")
        if not layers:
            print_line("No policy file applies; the effects of a tool decide about its calls.")
    return FAILED if findings else DONE


def _with_other_agents(tools: ToolTable, layers: Sequence[Layer]) -> ToolTable:
    """The table; with the tools of other agents if a rule may name one."""
    named = {rule.tool for layer in layers for rule in layer.orders.rules}
    named |= {limit.tool for layer in layers for limit in layer.orders.limits}
    if not any("--" in name for name in named if name):
        return tools
    from quoth.agent.guard.calls import known_tools  # here: few rules are about other agents

    more = tools.copy()
    for tool in known_tools():
        if tool.name not in more:
            more.register(tool)
    return more


def _layers(options: CheckOptions) -> list[Layer]:
    """The given file, or all files that may apply here; that of the workspace even if it is not trusted."""
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
    """Print quoth's example rules for programs, with comments."""
    text = (Path(__file__).parents[2] / "plans" / "templates" / "shell.hy").read_text(encoding="utf-8")
    print_json({"rules": text}) if options.json else print_line(text.rstrip("\n"))
    return DONE


def explain(options: ExplainOptions) -> int:
    """Print every rule that matches a call, the one that decides, and the default without rules."""
    from quoth.agent.session.origins import is_typed
    from quoth.tools.call.call import ROUTES
    from quoth.tools.lisp.forms import canonical

    if options.form is None:
        return _explain_session(options)
    if options.route not in ROUTES:
        raise UsageError(no_such("route", options.route, ROUTES))
    agent = agent_of(options, channel=options.channel)
    for note in agent.policy.notes:
        complain(note)
    marks: dict[str, Any] = {"route": options.route, "confidence": options.confidence}
    if options.nested:
        marks |= {"route": "program", "depth": 1, "parent": "a program"}
    call, why, limits = judged(agent.host, text_of(options.form), **marks)
    if is_typed(call) and any(
        layer.orders.careful or any(rule.origins for rule in layer.orders.rules)
        for layer in agent.policy.layers
    ):
        complain(
            "Values in a form that you type have you as their origin. To judge it as a model's call: "
            "--route reply"
        )
    if options.json:
        print_json(_as_json(why, limits) | {"form": canonical(call.form), "written": list(call.written)})
    else:
        for line in explanation_lines(call, why, limits):
            print_line(line)
    return DONE


def _explain_session(options: ExplainOptions) -> int:
    """Print how the rules now judge the calls of a session that did more than read."""
    from quoth.agent.session.index import find_session, users_of
    from quoth.tools.history.transcript import Transcript

    if options.session is None:
        raise UsageError("Give a call to explain, or a session with --session ID.")
    with open_store(options) as store:
        session = find_session(store, options.session)
        assert store is not None, "a session was found in it"
        users = users_of(Transcript(lambda: store), session)
        options = take_over(options, store, session, users[0] if users else "")
        agent = agent_of(options, channel=options.channel, store=store)
        for note in agent.policy.notes:
            complain(note)
        found = list(judged_again(agent.host))
    counts = {kind: sum(one.verdict.kind == kind for one in found) for kind in KINDS}
    if options.json:
        print_json({"session": session, "calls": [one.to_json() for one in found], **counts})
        return DONE
    for one in found:
        for line in past_call_lines(one.id, str(one.form), one.verdict):
            print_line(line)
    print_line(past_calls_line(session, counts))
    return DONE


def revoke(options: RevokeOptions) -> int:
    """End what a person granted, or denied from now on, while deciding a request; without an ID list all
    that."""
    from quoth.agent.cli.consent import find, opened, require_no_agent
    from quoth.agent.terminal.input import require_person

    if options.id is not None:
        require_person()
    with opened(options, lists=options.id is None) as (_, broker):
        if options.id is None:
            found = broker.granted(options.session) if broker else []
            if options.json:
                print_json([one.request.to_json() | {"granted": one.granted} for one in found])
            for one in () if options.json else found:
                print_line(visible(one.rule_line))
            if not found and not options.json:
                complain("Nothing is granted or denied in a session.")
            return DONE
        asked = find(options, options.id, broker)
        assert broker is not None, "it has found one"
        if asked.route == "guard":
            require_no_agent()
        ended = broker.revoke(asked.id, options.asker)
    if options.json:
        print_json(ended.to_json())
    else:
        print_line(f"Revoked in session {ended.session}: {visible(ended.form)} is asked about again.")
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
    """Show the workspace's own rules, settings, MCP servers, notes and skills, ask, and trust their present
    contents. Remove the trust of files that are gone."""
    from quoth.agent.terminal.ask import confirmed
    from quoth.agent.terminal.input import require_person

    require_person()
    root = _root(Path(options.dir) if options.dir else options.folder)
    found, gone, faults = _to_trust(root)
    if not found and not gone:
        raise UsageError(
            f"{root} has nothing to trust: no {POLICY}, settings, startup file, {SERVERS}, {NOTES} or skill."
        )
    ends = [f"{root} no longer has {what}; its trust was removed." for what in gone]
    for fault in faults:
        complain(fault)
    if not options.yes:
        shown = [line for one in found for line in one.lines("would be trusted")]
        shown += [f"{root} no longer has {what}; its trust would be removed." for what in gone]
        complain("\n".join(shown), name="")
        if not confirmed(f"Trust this in {root}?", no_input=options.no_input):
            complain("Nothing was trusted.")
            return FAILED
    for forget in gone.values():
        forget(root)
    for keep in dict.fromkeys(one.keep for one in found):  # several items may share one record
        keep()
    told: dict[str, Any] = {"status": "trusted" if found else "forgotten", "workspace": str(root)}
    for one in found:
        told |= {key: told[key] + value if key in told else value for key, value in one.told.items()}
    if options.json:
        print_json(told)
    elif options.yes:
        print_line("\n".join([*ends, *(line for one in found for line in one.lines("is trusted"))]))
    else:
        print_line("\n".join([*ends, *(f"{one.name} is trusted in its present form." for one in found)]))
    return DONE


@dataclass(frozen=True)
class _Trustable:
    """One item that a person may trust. ``told`` is its part of the --json output; ``keep`` records the
    trust."""

    name: str
    digest: str
    contents: Sequence[str]
    told: dict[str, Any]
    keep: Callable[[], object]
    more: str = ""

    def lines(self, state: str) -> list[str]:
        head = f"{self.name} {state} in its present form{self.more}, SHA-256 {self.digest}:"
        return [head, *(f"  {line}" for line in self.contents)]


Gone = dict[
    str, "Callable[[Path], bool]"
]  # trusted but missing items, in words, each with the function that removes its trust


def _to_trust(root: Path) -> tuple[list[_Trustable], Gone, Sequence[str]]:
    """The items of a workspace that can be trusted, the missing ones, and the faults of the others. Reads all
    of them before the question."""
    from quoth.agent.config.loading import OWN_NAME, TRUST, own_config

    policy, settings, init = own_policy(root), own_config(root), own_init(root)
    servers = own_servers(root)
    notes, nested, skills = notes_for_agents(root), nested_notes(root), skills_to_trust(root)
    found = [] if policy is None else [_rules(root, *policy)]
    told: dict[str, Any]
    for key, name, data, record, more in (
        ("config", OWN_NAME, settings, TRUST, ""),
        ("init", INIT_NAME, init, INIT_TRUST, ""),
        ("servers", SERVERS, servers, TRUST_OF_SERVERS, ""),
        ("notes", NOTES, notes, TRUST_OF_NOTES, SHOWN),
    ):
        if data is not None:
            digest = digest_of(data)
            told = {key: {"file": name, "sha256": digest}}
            found += [_Trustable(name, digest, _written(data), told, partial(record.trust, root, data), more)]
    digests = {file: digest_of(data) for file, data in nested.items()}
    keep = partial(NESTED.trust_each, root, digests)
    for file, data in nested.items():
        told = {"nested": [{"file": file, "sha256": digests[file]}]}
        found += [_Trustable(visible(file), digests[file], _written(data), told, keep, SHOWN)]
    known = skills.known.values()
    keep = partial(TRUST_OF_SKILLS.trust_each, root, {skill.folder: skill.digest for skill in known})
    for skill in known:
        told = {"skills": [{"folder": skill.folder, "sha256": skill.digest, "files": list(skill.files)}]}
        contents = [visible(skill.description), *map(visible, skill.files)]
        found += [_Trustable(f"The skill {skill.folder}", skill.digest, contents, told, keep)]
    records = (
        ("a policy", policy is None, Trust()),
        ("settings", settings is None, TRUST),
        ("a startup file", init is None, INIT_TRUST),
        (SERVERS, servers is None, TRUST_OF_SERVERS),
        (NOTES, notes is None, TRUST_OF_NOTES),
        (f"a folder with {NOTES}", not nested, NESTED),
        ("a skill", not skills.known, TRUST_OF_SKILLS),
    )
    gone: Gone = {
        what: record.forget for what, absent, record in records if absent and record.remembers(root)
    }
    return found, gone, skills.faults


SHOWN = ", and shown to models"


def _rules(root: Path, layer: Layer, data: bytes) -> _Trustable:
    """The rules of a workspace. Rules that a workspace may not give are shown as ignored."""
    digest, rules = digest_of(data), layer.orders.rules
    counted = [rule.text for rule in rules if not layer.ignores(rule)]
    counted += [limit.text for limit in layer.orders.limits]
    counted += [layer.orders.careful_text] if layer.orders.careful else []
    passed = [rule.text for rule in rules if layer.ignores(rule)]
    contents = [visible(text) for text in counted]
    contents += [
        f"{visible(text)}  (ignored, because a workspace may only tighten the rules)" for text in passed
    ]
    told = {"file": layer.name, "sha256": digest, "rules": counted, "ignored": passed}
    return _Trustable(layer.name, digest, contents, told, partial(Trust().trust, root, data))


def _written(data: bytes) -> list[str]:
    return [visible(line) for line in data.decode(errors="replace").splitlines() if line.strip()]


def _root(root: Path) -> Path:
    if not root.is_dir():
        raise UsageError(f"The workspace {root} is not a folder.")
    return root.resolve()


ACTIONS: Actions = {
    "check": (check, "Report unknown names and rules that never take effect."),
    "explain": (
        explain,
        "Show which rules match a call and which one decides, or how the rules judge a session's calls.",
    ),
    "revoke": (revoke, "End a permission or a denial that you gave in a session, or list them."),
    "example": (example, "Print rules that allow git, tests and linters without a question."),
}
