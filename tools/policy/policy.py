"""What may be done without asking: the layers of policy that apply, and the verdict they give on a call.

Knows where policy files lie and that a workspace's own must be trusted; must not know doors or consent.

All rules of all layers are one set: deny is stronger than ask, ask than allow, and neither their order nor
their file matters. Where no rule matches, a tool's declared effects decide: reading and computing are
allowed, whatever can change something is asked; an allow lifts that. The rules of a workspace's own file can
only tighten, so its allows are passed over. A policy that cannot be read, or is not the one that was trusted,
is a UsageError: nothing starts without the rules a person gave it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from quoth.tools.call.call import Call, Verdict, ask, deny
from quoth.tools.call.context import ToolContext
from quoth.tools.policy.effects import by_effects
from quoth.tools.policy.model import KINDS, Limit, PolicyFile, Rule
from quoth.tools.policy.predicates import EvaluationContext, Truth
from quoth.tools.registry.table import CognitiveTool

LayerKind = Literal["user", "workspace", "given"]


@dataclass(frozen=True)
class Layer:
    """One policy file: whose it is, under which name people know it, and what it says."""

    kind: LayerKind
    name: str
    orders: PolicyFile

    def ignores(self, rule: Rule) -> bool:
        """A workspace may only tighten."""
        return self.kind == "workspace" and rule.kind == "allow"


class Match(NamedTuple):
    """A rule that matches a call, or whose match cannot be decided (``truth`` is None)."""

    layer: Layer
    rule: Rule
    truth: Truth

    @property
    def counts(self) -> bool:
        return self.rule.counts(self.truth) and not self.layer.ignores(self.rule)


@dataclass(frozen=True)
class Explanation:
    """Why a call would be judged as it would: every rule that matches, the one that decides (None: the
    default, or a limit that cannot be counted), and the default."""

    verdict: Verdict
    decided: Match | None
    matches: tuple[Match, ...]
    default: Verdict


class RulesPolicy:
    """The layers that apply. Judging a call looks only at the rules that concern its tool.

    ``limits`` are data for whoever counts calls. Until somebody says that they are ``counted``, a tool that
    has one is denied: an unkept limit fails closed.
    """

    def __init__(
        self, layers: Sequence[Layer] = (), *, counted: bool = False, notes: Sequence[str] = ()
    ) -> None:
        self.layers = tuple(layers)
        self.counted = counted
        self.notes = tuple(notes)  # what a person should be told about the layers
        self.limits: tuple[Limit, ...] = tuple(one for layer in layers for one in layer.orders.limits)
        self._rules = tuple((layer, rule) for layer in layers for rule in layer.orders.rules)
        self._concerning: dict[str, tuple[CognitiveTool, list[Rule]]] = {}

    @property
    def digest(self) -> str:
        """Which rules these are, in 16 hex digits: the same for the same words in the same layers."""
        said = [
            [
                layer.kind,
                [[rule.kind, rule.text] for rule in layer.orders.rules],
                [limit.text for limit in layer.orders.limits],
            ]
            for layer in self.layers
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        """The strongest verdict of all rules that match, with the rule as written and its place."""
        if uncounted := self._uncounted(tool):
            return uncounted
        facts = EvaluationContext(tool, call, context.workspace)
        for rule in self._rules_about(tool):
            truth = rule.test(args, facts)
            if rule.counts(truth):
                return _says(rule, truth)
        return by_effects(tool)

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        why = self.explain(tool, call, args, context)
        if why.decided is not None and why.decided.truth is None:
            return ask(f"{depends}: {why.decided.rule.place} says {why.decided.rule.text}")
        return why.verdict

    def _rules_about(self, tool: CognitiveTool) -> list[Rule]:
        """The rules that concern a tool and may count, the stronger first, then in the order of the files."""
        known = self._concerning.get(tool.name)
        if known is None or known[0] is not tool:
            rules = [rule for layer, rule in self._rules if rule.concerns(tool) and not layer.ignores(rule)]
            rules.sort(key=lambda rule: KINDS.index(rule.kind))
            known = self._concerning[tool.name] = (tool, rules)
        return known[1]

    def strict(self, tool: CognitiveTool) -> list[Rule]:
        """The denies and asks that concern a tool."""
        return [rule for _, rule in self._rules if rule.kind != "allow" and rule.concerns(tool)]

    def _uncounted(self, tool: CognitiveTool) -> Verdict | None:
        limits = self.limits_of(tool)
        if self.counted or not limits:
            return None
        return deny(f"{limits[0].place} limits it, and its calls cannot be counted here")

    def limits_of(self, tool: CognitiveTool) -> list[Limit]:
        """The quotas and cooldowns of a tool."""
        return [limit for limit in self.limits if limit.tool == tool.name]

    def explain(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Explanation:
        """The same verdict as ``judge``, with all that led to it."""
        matches = []
        for layer, rule in self._rules:
            if rule.concerns(tool):
                truth = rule.test(args, EvaluationContext(tool, call, context.workspace))
                if truth is not False:
                    matches.append(Match(layer, rule, truth))
        default = by_effects(tool)
        if uncounted := self._uncounted(tool):
            return Explanation(uncounted, None, tuple(matches), default)
        for kind in KINDS:
            for match in matches:
                if match.rule.kind == kind and match.counts:
                    verdict = _says(match.rule, match.truth)
                    return Explanation(verdict, match, tuple(matches), default)
        return Explanation(default, None, tuple(matches), default)


def _says(rule: Rule, truth: Truth) -> Verdict:
    unsure = "" if truth else ", and whether that fits cannot be decided"
    return Verdict(rule.kind, f"{rule.place} says {rule.text}{unsure}", rule.text)
