"""Rules, quotas and cooldowns as data.

It knows neither how they are written nor what they lead to.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from quoth.tools.lisp.source import Place
from quoth.tools.policy.obeyed_paths import names_all
from quoth.tools.policy.predicates import EvaluationContext, Predicate, Truth, has_default
from quoth.tools.policy.quotas import Cooldown, Quota
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool

CAREFUL = "(careful)"  # what is done where no rule decides, if a file says so
Kind = Literal["deny", "ask", "allow"]
KINDS: tuple[Kind, ...] = ("deny", "ask", "allow")  # the stronger first


class Equality(NamedTuple):
    """A necessary condition of a rule: an argument, or with ``first`` its first item, is one of ``texts``."""

    argument: str
    first: bool
    texts: frozenset[str]


class Compared(NamedTuple):
    """A text that a rule compares an argument with: literally (``=``), by ``under``, ``matches`` or
    ``host``; or a circumstance, then ``argument`` is ``(user)`` or the like."""

    argument: str
    how: Literal["=", "under", "matches", "host"]
    text: str
    place: Place


class OriginTest(NamedTuple):
    """A predicate in a rule about where a value comes from: its head, the tools that ``in-field`` names, and
    the heads of the predicates around it."""

    argument: str
    head: str
    tools: tuple[tuple[str, Place], ...]
    around: tuple[str, ...]
    place: Place


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule. ``text`` is the rule as written, on one line; ``clauses`` are the canonical texts of its
    clauses. ``tool`` is None for a rule about any tool. With ``only`` it matches calls whose other
    arguments have their defaults. ``open`` are the arguments that it names but accepts with any value."""

    kind: Kind
    text: str
    why: str
    place: Place
    tool: str | None
    arguments: Mapping[str, Place]
    clauses: frozenset[str]
    tool_place: Place
    equalities: tuple[Equality, ...]
    only: bool
    open: tuple[str, ...]
    compared: tuple[Compared, ...]
    origins: tuple[OriginTest, ...]
    _of_tool: tuple[Callable[[CognitiveTool], bool], ...] = field(repr=False)
    _test: Predicate = field(repr=False)

    def concerns(self, tool: CognitiveTool) -> bool:
        """Whether the rule can match any call of this tool, judged by its name, effects and cost."""
        return (self.tool is None or self.tool == tool.name) and all(fits(tool) for fits in self._of_tool)

    def test(self, args: Mapping[str, Any], facts: EvaluationContext) -> Truth:
        """Whether the rule matches a call of a tool that it concerns; None when that is undecided."""
        truth = self._test(args, facts)
        if truth is False or self.kind != "allow":
            return truth
        for param in self._bound(facts.tool):
            said = has_default(param, args, facts)
            if said is False:
                return False
            truth = truth and said
        return truth if names_all(self._test, args, facts) else False

    def _bound(self, tool: CognitiveTool) -> Iterator[Param]:
        """The parameters that an allow does not name and covers with their defaults only: those that are
        ``named``; of an allow of the arguments of a program also all that may change what is run: its folder,
        its input, and whether it stays."""
        of_program = "runs" in tool.effects and any(
            typing.get_origin(param.type) is list and param.name in self.arguments for param in tool.params
        )
        for param in tool.params:
            changes = param.named or (of_program and param.type not in (int, float))
            if changes and param.name not in self.arguments:
                yield param

    def counts(self, truth: Truth) -> bool:
        """Whether a result of ``test`` makes the rule apply; None does for deny and ask only."""
        return truth is True if self.kind == "allow" else truth is not False


PERS = ("minute", "hour", "day", "week")


@dataclass(frozen=True)
class Limit:
    """``(quota research 3 :per :day :by :user)``: the most calls of a tool in each window, per user, per
    session, or in total; or ``(cooldown search 10 :seconds)``: the least time between two calls."""

    counts: Quota | Cooldown
    text: str = field(compare=False)
    place: Place = field(compare=False)
    tool_place: Place = field(compare=False)

    @property
    def tool(self) -> str:
        return self.counts.tool


class PolicyFile(NamedTuple):
    """The parsed content of one policy file."""

    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()  # the quotas, then the cooldowns
    careful: tuple[Place, ...] = ()  # where it says ``(careful)``
