"""Decides which calls need no approval: the policy layers that apply, and their verdict on a call.

The rules of all layers form one set: deny overrides ask, and ask overrides allow, independent of order and
file. If no rule matches, a tool's declared effects decide: reading and computing are allowed, anything that
can change something needs approval; an allow lifts that. If a file says ``(careful)``, the origins of a
call's destinations decide instead. A workspace's own file can only tighten, so its allows are ignored; the
rules that ship apply only to the tools that ship. A policy that cannot be read, or has changed since it was
trusted, is a UsageError: nothing starts without the rules that a person chose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quoth.tools.call.call import Call, Verdict, ask, deny
from quoth.tools.call.context import Origins, ToolContext
from quoth.tools.call.ports import Policy
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.limits import by_effects, is_quiet
from quoth.tools.policy.model import KINDS, Limit, PolicyFile, Rule, obeyed_in
from quoth.tools.policy.predicates import ANY_PATH, EvaluationContext, Predicate, Truth, is_intended
from quoth.tools.registry.param_types import WorkspacePath, with_paths
from quoth.tools.registry.table import CognitiveTool

if TYPE_CHECKING:
    from quoth.tools.policy.origins import Careful

UNSURE = ", and quoth cannot decide whether it matches"
UNNEEDED = "and the task does not need {}, as the model said before it read anything"

LayerKind = Literal["user", "workspace", "given", "agent", "shipped"]
NARROWING = ("workspace", "agent")  # layers that can only tighten


class Layer(NamedTuple):
    """One policy file: whose it is, its name in messages, and its content."""

    kind: LayerKind
    name: str
    orders: PolicyFile

    def ignores(self, rule: Rule) -> bool:
        """Whether the layer's rule has no effect: a workspace's own policy may not allow anything, nor may an
        agent's."""
        return self.kind in NARROWING and rule.kind == "allow"

    def concerns(self, rule: Rule, tool: CognitiveTool) -> bool:
        """Whether the layer's rule can match a call of the tool. The rules that ship do not apply to a user's
        tool, even if it has the name of a tool that ships."""
        return rule.concerns(tool) and (self.kind != "shipped" or tool.ships)


class Match(NamedTuple):
    """A rule that matches a call, or whose match is undecided (``truth`` is None)."""

    layer: Layer
    rule: Rule
    truth: Truth

    @property
    def counts(self) -> bool:
        return self.rule.counts(self.truth) and not self.layer.ignores(self.rule)


class Explanation(NamedTuple):
    """Why a call receives its verdict: the matching rules, the deciding rule (None: the default, or a limit
    that cannot be counted), and the default verdict."""

    verdict: Verdict
    decided: Match | None
    matches: tuple[Match, ...]
    default: Verdict


class _OfTool(NamedTuple):
    """The rules about one tool."""

    tool: CognitiveTool
    rules: tuple[Rule, ...]  # the rules that count, the strongest first
    default: Verdict
    careful: Careful | None  # instead of the default

    @property
    def strict(self) -> list[Rule]:
        """The denies and asks."""
        return [rule for rule in self.rules if rule.kind != "allow"]


def applying(rules: Iterable[Rule], args: Mapping[str, Any], facts: EvaluationContext) -> Iterator[Rule]:
    """Each rule that applies to a call."""
    return (rule for rule in rules if rule.counts(rule.test(args, facts)))


class RulesPolicy:
    """The layers that apply. Rules are sorted by tool once; a call is tested against those of its tool.

    ``limits`` are for the part of the host that counts calls. Unless ``counted``, a tool with a limit is
    denied, because its limit would not be enforced.
    """

    def __init__(
        self, layers: Sequence[Layer] = (), *, counted: bool = False, notes: Sequence[str] = ()
    ) -> None:
        self.layers = tuple(layers)
        self.counted = counted
        self.notes = tuple(notes)  # sentences about the layers, to show to a person
        self.default: Callable[[CognitiveTool], Verdict] = by_effects  # if no rule decides
        careful = {layer.kind in NARROWING for layer in layers if layer.orders.careful}
        self.careful = bool(careful)  # whether destinations decide if no rule does
        self._tightens = careful == {True}  # then only if they ask
        self._intent = any(layer.orders.intent for layer in layers)
        self.wants_intent = any(layer.orders.wants_intent for layer in layers)
        self.limits: tuple[Limit, ...] = tuple(one for layer in layers for one in layer.orders.limits)
        stated = [one for layer in layers for one in layer.orders.effects]
        self.effects = {one.tool: [o for o in stated if o.tool == one.tool] for one in stated}  # by tool
        self._rules = tuple((layer, rule) for layer in layers for rule in layer.orders.rules)
        self._of_tools: dict[str, _OfTool] = {}

    @property
    def digest(self) -> str:
        """A digest of the rules, 16 hex digits: equal for equal rule texts in equal layers."""
        said = [
            [
                layer.kind,
                [[rule.kind, rule.text] for rule in layer.orders.rules],
                [limit.text for limit in layer.orders.limits],
                *(["careful"] if layer.orders.careful else []),
                *(["no intent"] if layer.orders.careful and not layer.orders.intent else []),
                *([[one.text for one in layer.orders.effects]] if layer.orders.effects else []),
            ]
            for layer in self.layers
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        """The strongest verdict of all matching rules; its reason quotes the rule and its place."""
        if uncounted := self._uncounted(tool):
            return uncounted
        known = self._of_tool(tool)
        facts = EvaluationContext(tool, call, context.workspace, context.origins)
        for rule in known.rules:
            if rule.counts(truth := rule.test(args, facts)):
                return _says(rule, truth, args, facts)
        return self._without_rules(known, args, facts)

    def _without_rules(self, known: _OfTool, args: Mapping[str, Any], facts: EvaluationContext) -> Verdict:
        """The verdict if no rule decides."""
        said = known.default
        if known.careful is not None:
            careful = known.careful(args, facts)
            if self._intent and not is_quiet(known.tool) and is_intended(args, facts) is False:
                careful = replace(
                    careful, kind="ask", reason=f"{careful.reason}, {UNNEEDED.format(known.tool.name)}"
                )
            said = said if self._tightens and careful.kind == "allow" else careful
        if obeyed := next(obeyed_in(args, facts), None):
            return replace(said, kind="ask", reason=f"{said.reason}, and {obeyed.why}")
        return said

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        why = self.explain(tool, call, args, context)
        if why.decided is not None and why.decided.truth is None:
            return ask(f"{depends}: {why.decided.rule.place} says {why.decided.rule.text}")
        return why.verdict

    def _of_tool(self, tool: CognitiveTool) -> _OfTool:
        known = self._of_tools.get(tool.name)
        if known is not None and known.tool is tool:
            return known
        careful: Careful | None = None
        if self.careful:
            from quoth.tools.policy.origins import careful_of  # here: few policies say it

            careful = careful_of(tool)
        counting = [one for layer, one in self._rules if layer.concerns(one, tool) and not layer.ignores(one)]
        rules = tuple(sorted(counting, key=lambda rule: KINDS.index(rule.kind)))
        known = self._of_tools[tool.name] = _OfTool(tool, rules, self.default(tool), careful)
        return known

    def strict(self, tool: CognitiveTool) -> list[Rule]:
        """The deny and ask rules that concern a tool, the denies first."""
        return self._of_tool(tool).strict

    def allowing(self, tool: CognitiveTool) -> list[Rule]:
        """The allow rules that concern a tool and count."""
        return [rule for rule in self._of_tool(tool).rules if rule.kind == "allow"]

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
        """The verdict of ``judge``, with its reasons."""
        matches = []
        facts = EvaluationContext(tool, call, context.workspace, context.origins)
        for layer, rule in self._rules:
            if layer.concerns(rule, tool):
                truth = rule.test(args, EvaluationContext(tool, call, context.workspace, context.origins))
                if truth is not False:
                    matches.append(Match(layer, rule, truth))
        default = self._without_rules(self._of_tool(tool), args, facts)
        if uncounted := self._uncounted(tool):
            return Explanation(uncounted, None, tuple(matches), default)
        counting = (match for match in matches if match.counts)
        first = min(counting, key=lambda match: KINDS.index(match.rule.kind), default=None)
        verdict = default if first is None else _says(first.rule, first.truth, args, facts)
        return Explanation(verdict, first, tuple(matches), default)


def _says(rule: Rule, truth: Truth, args: Mapping[str, Any], facts: EvaluationContext) -> Verdict:
    """The verdict of a rule that applies to a call."""
    said = Verdict(rule.kind, f"{rule.place} says {rule.text}{'' if truth else UNSURE}", rule.text)
    if rule.origins:
        said = _with_origin(said, rule.test, args, facts)
    return said if truth else _with_address(said, args)


def _with_origin(
    verdict: Verdict, test: Predicate, args: Mapping[str, Any], facts: EvaluationContext
) -> Verdict:
    """The verdict of a rule about origins; its reason names the deciding argument and its origin."""
    from quoth.tools.policy.origins import in_words  # here: few rules are about origins

    facts.noted.clear()  # drop findings of other rules
    test(args, facts)
    origin = "; ".join(in_words(noted, facts) for noted in facts.noted.values())
    return replace(verdict, reason=f"{verdict.reason}: {origin}", origin=origin) if origin else verdict


def _with_address(verdict: Verdict, args: Mapping[str, Any]) -> Verdict:
    """An undecided verdict; its reason also says why ``:url`` is not an address, if it is not."""
    if not isinstance(url := args.get("url"), str):
        return verdict
    from quoth.tools.call.web_url import read_url  # here: few calls name one

    try:
        read_url(url)
    except ToolError as error:
        return replace(verdict, reason=f"{verdict.reason}: {str(error).rstrip('.')}")
    return verdict


class Walk:
    """The permissions of one call for the files it finds; ``reader`` is the tool that reads a file, and
    ``lister`` the tool that names files."""

    def __init__(
        self,
        policy: Policy,
        tool: CognitiveTool,
        call: Call,
        args: Mapping[str, Any],
        workspace: Workspace,
        reader: CognitiveTool | None,
        lister: CognitiveTool | None = None,
        origins: Origins | None = None,
    ) -> None:
        self._origins = origins
        self._tool, self._call, self._args = tool, call, args
        self._workspace = workspace
        rules = policy if isinstance(policy, RulesPolicy) else RulesPolicy()
        facts = EvaluationContext(tool, call, workspace, origins)
        answered = {id(rule) for rule in applying(rules.strict(tool), args, facts)}
        self._answered = bool(answered)
        left = [rule for rule in rules.strict(tool) if id(rule) not in answered]
        self._own = [rule for rule in left if _tells_paths(rule, tool)]

        def let(other: CognitiveTool | None) -> Callable[[str], bool]:
            """Whether the rules about another tool, which no person has answered, allow a file."""
            if other is None or other is tool:
                return lambda path: True

            left = [rule for rule in rules.strict(other) if id(rule) not in answered]
            of_all = [rule for rule in left if not _tells_paths(rule, other)]
            if self._stopped(of_all, other, {"path": WorkspacePath(".")}):
                return lambda path: False
            each = [rule for rule in left if _tells_paths(rule, other)]
            return lambda path: not self._stopped(each, other, {"path": WorkspacePath(path)})

        self._let_read, self._let_list = let(reader), let(lister)

    def may_list(self, path: str) -> bool:
        """Whether the file may be named: no deny or ask about this tool matches it."""
        return not self._own or not self._stopped(self._own, self._tool, self._instead(path))

    def may_read(self, path: str) -> bool:
        """Whether the file may also be read: no deny or ask about ``reader`` matches it either."""
        return self.may_list(path) and self._let_read(path)

    def may_look(self, path: str) -> bool:
        """Whether a file that the call did not ask for may be read and named. A person who approved the call
        has allowed nothing else."""
        return not self._answered and self.may_read(path) and self._let_list(path)

    def _instead(self, path: str) -> dict[str, Any]:
        """The arguments of the call, with this file instead of its own path."""
        here = WorkspacePath(path)
        args = dict(self._args)
        for param in self._tool.path_params:
            args[param.name] = with_paths(param.type, _unmarked(args.get(param.name)), lambda _: here)
        if isinstance(args.get(ANY_PATH), str):
            args[ANY_PATH] = here
        return args

    def _stopped(self, rules: list[Rule], tool: CognitiveTool, args: dict[str, Any]) -> bool:
        if not rules:
            return False
        defaults = {param.name: param.default for param in tool.params if not param.required}
        given = {**defaults, **args}
        form = CallForm(tool.name, {name: str(v) if isinstance(v, str) else v for name, v in args.items()})
        facts = EvaluationContext(tool, replace(self._call, form=form), self._workspace, self._origins)
        return any(True for _ in applying(rules, given, facts))


def _tells_paths(rule: Rule, tool: CognitiveTool) -> bool:
    """Whether a rule's result may differ from file to file."""
    return any(name == ANY_PATH or name in {p.name for p in tool.path_params} for name in rule.arguments)


def _unmarked(value: Any) -> Any:
    """A value with its paths as plain texts, without their original spelling."""
    if isinstance(value, (list, tuple)):
        return [_unmarked(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _unmarked(item) for name, item in value.items()}
    return str(value) if isinstance(value, WorkspacePath) else value
