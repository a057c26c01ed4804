"""Rules, quotas and cooldowns as data.

Knows neither how they are written nor what they lead to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from quoth.tools.lisp.source import Place
from quoth.tools.policy.predicates import EvaluationContext, Predicate, Truth
from quoth.tools.policy.quotas import Cooldown, Quota
from quoth.tools.registry.table import CognitiveTool

Kind = Literal["deny", "ask", "allow"]
KINDS: tuple[Kind, ...] = ("deny", "ask", "allow")  # the stronger first


class Key(NamedTuple):
    """What a rule needs at least, for an index: where this text of a call is a text, it is one of ``texts``.

    ``of`` is ``user``, ``route``, ``argument`` (``name`` says which) or ``first``, the first item of one."""

    of: Literal["user", "route", "argument", "first"]
    name: str
    texts: frozenset[str]

    def value(self, args: Mapping[str, Any], facts: EvaluationContext) -> Any:
        """That text of a call, or something that is no text."""
        if self.of == "argument":
            return args.get(self.name)
        if self.of == "first":
            value = args.get(self.name)
            return value[0] if isinstance(value, (list, tuple)) and value else None
        return facts.call.user if self.of == "user" else facts.call.route


class Compared(NamedTuple):
    """A text that a rule compares an argument with: literally (``=``), by ``under`` or by ``matches``."""

    argument: str
    how: Literal["=", "under", "matches"]
    text: str
    place: Place


@dataclass(frozen=True, eq=False)
class Rule:
    """One rule. ``text`` is the rule as written, on one line; ``clauses`` are the canonical texts of what it
    requires. ``tool`` is None for a rule about any tool. With ``only`` it is about calls that have no other
    argument than those it names; of those it takes the ``open`` ones as they are."""

    kind: Kind
    text: str
    why: str
    place: Place
    tool: str | None
    arguments: Mapping[str, Place]
    clauses: frozenset[str]
    tool_place: Place
    keys: tuple[Key, ...]
    only: bool
    open: tuple[str, ...]
    compared: tuple[Compared, ...]
    _of_tool: tuple[Callable[[CognitiveTool], bool], ...] = field(repr=False)
    _test: Predicate = field(repr=False)

    def concerns(self, tool: CognitiveTool) -> bool:
        """Whether the rule can match any call of this tool: its name, effects and cost."""
        return (self.tool is None or self.tool == tool.name) and all(fits(tool) for fits in self._of_tool)

    def test(self, args: Mapping[str, Any], facts: EvaluationContext) -> Truth:
        """Whether the rule matches a call that it concerns; None when that cannot be decided."""
        return self._test(args, facts)

    def counts(self, truth: Truth) -> bool:
        """Whether an answer of ``test`` makes the rule count."""
        return truth is True if self.kind == "allow" else truth is not False


PERS = ("minute", "hour", "day", "week")


@dataclass(frozen=True)
class Limit:
    """``(quota research 3 :per :day :by :user)``: at most so many calls of a tool in each window, counted for
    each user, each session, or all together; or ``(cooldown search 10 :seconds)``: so long from one call to
    the next."""

    counts: Quota | Cooldown
    text: str = field(compare=False)
    place: Place = field(compare=False)
    tool_place: Place = field(compare=False)

    @property
    def tool(self) -> str:
        return self.counts.tool


@dataclass(frozen=True)
class PolicyFile:
    """All that one policy file says."""

    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()  # the quotas, then the cooldowns
