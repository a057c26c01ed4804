"""Rules, quotas and cooldowns as data; also whether a call writes a file that other programs obey, which an
allow must name.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from quoth.tools.call.canonical import obeyed_parts, paths_of, repository_made
from quoth.tools.call.workspace import ELSEWHERE, Elsewhere, Workspace
from quoth.tools.errors import ToolError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.policy.predicates import EvaluationContext, Predicate, Truth, has_default
from quoth.tools.policy.spending import Cooldown, Quota
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import file_name

if TYPE_CHECKING:
    from quoth.tools.lisp.source import Place

WRITING = frozenset(("writes", "deletes"))
UNNAMED = "unnamed"
FROM_TOP = Elsewhere("/")  # for rules that name absolute paths


class Obeyed(NamedTuple):
    """A path that a call writes, the index of the part by which other programs obey the file, and why."""

    path: WorkspacePath
    number: int
    why: str


def obeyed_in(args: Mapping[str, Any], facts: EvaluationContext) -> Iterator[Obeyed]:
    """The paths of a call that other programs obey, once for each part that is a reason."""
    if WRITING.isdisjoint(facts.tool.effects):
        return
    for path in paths_of(facts.tool, args):
        try:
            place = facts.trail(path)
        except ToolError:
            continue  # such a call is refused
        if place is None or not isinstance(path, WorkspacePath):
            continue
        for number in obeyed_parts(place.parts):
            yield Obeyed(path, number, f"other programs obey {file_name(place.parts[number])}")
        if folder := repository_made(facts.workspace.root, place.parts):
            why = f"{file_name(path)} makes {folder} a repository, and git runs commands from its settings"
            yield Obeyed(path, len(place.parts) - 1, why)


def names_all(
    test: Callable[[Mapping[str, Any], EvaluationContext], Truth],
    args: Mapping[str, Any],
    facts: EvaluationContext,
) -> bool:
    """Whether an allow that matches a call names each part by which other programs obey a file: it would not
    match another name with the same ending. Links are not followed: a model may have created one."""

    def fits(path: WorkspacePath, other: str, workspace: Workspace) -> bool:
        instead = {name: _with(value, path, WorkspacePath(other)) for name, value in args.items()}
        context = EvaluationContext(facts.tool, facts.call, workspace, facts.origins)
        return test(instead, context) is not False

    for obeyed in obeyed_in(args, facts):
        path, parts = obeyed.path, obeyed.path.removeprefix("./").split("/")
        if len(parts) <= obeyed.number:
            return False
        if not (fits(path, path, ELSEWHERE) or fits(path, f"{facts.root}/{path}", FROM_TOP)):
            return False
        parts[obeyed.number] = _another(parts[obeyed.number])
        if fits(path, "/".join(parts), facts.workspace):
            return False
    return True


def _another(part: str) -> str:
    """Another name with the same ending, unless other programs obey the file because of its ending."""
    ending = PurePath(part).suffix
    if part.startswith("."):
        return f".{UNNAMED}{ending}"
    return UNNAMED if ending.lower() == ".code-workspace" else f"{UNNAMED}{ending}"


def _with(value: Any, path: WorkspacePath, other: WorkspacePath) -> Any:
    if isinstance(value, WorkspacePath):
        return other if value == path else value
    if isinstance(value, list):
        return [_with(item, path, other) for item in value]
    if isinstance(value, Mapping):
        return {name: _with(item, path, other) for name, item in value.items()}
    return value


CAREFUL = "(careful)"  # how calls are judged if no rule decides and a file says so
INTENDED, UNINTENDED = "(in-intent)", "(not (in-intent))"  # clauses of rules
Kind = Literal["deny", "ask", "allow"]
KINDS: tuple[Kind, ...] = ("deny", "ask", "allow")  # the strongest first


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
    """A predicate in a rule about the origin of a value: its head, the tools that ``in-field`` names, and
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
    arguments have their defaults. ``open`` are the arguments that it names and accepts with any value."""

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
        """Whether the rule matches a call of a tool that it concerns; None if undecided."""
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
        """The parameters that an allow does not name, and covers only with their defaults: parameters that
        must be ``named``. For an allow of a program's arguments, also the parameters that may change its
        effect: its folder, its input, and whether it stays in the background."""
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
    """``(quota research 3 :per :day :by :user)``: the maximum calls of a tool in each window, per user, per
    session, or in total; or ``(cooldown search 10 :seconds)``: the minimum time between two calls."""

    counts: Quota | Cooldown
    text: str = field(compare=False)
    place: Place = field(compare=False)
    tool_place: Place = field(compare=False)

    @property
    def tool(self) -> str:
        return self.counts.tool


@dataclass(frozen=True)
class EffectsOf:
    """``(effects github--get-issue :reads)``: the effects of a tool of an MCP server, for its first trusted
    digest, or for the one that begins with ``digest``."""

    tool: str
    effects: tuple[str, ...]
    digest: str
    text: str = field(compare=False)
    place: Place = field(compare=False)
    tool_place: Place = field(compare=False)

    def counts(self, digest: str, *, renewed: bool) -> bool:
        """Whether it is about the tool of this digest; ``renewed``: the tool was trusted with another one
        before."""
        return digest.startswith(self.digest) if self.digest else not renewed


class PolicyFile(NamedTuple):
    """The parsed content of one policy file."""

    rules: tuple[Rule, ...] = ()
    limits: tuple[Limit, ...] = ()  # the quotas, then the cooldowns
    careful: tuple[Place, ...] = ()  # where it says ``(careful)``
    effects: tuple[EffectsOf, ...] = ()  # of tools of MCP servers; only in the user's own rules
    intent: bool = False  # whether (careful) asks about calls of tools that the task does not need

    @property
    def careful_text(self) -> str:
        return CAREFUL if self.intent else "(careful :intent False)"

    @property
    def wants_intent(self) -> bool:
        """Whether a rule, or ``(careful)``, depends on the tools that the task needs."""
        return self.intent or any(not {INTENDED, UNINTENDED}.isdisjoint(one.clauses) for one in self.rules)
