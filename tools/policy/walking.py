"""Decides which files a tool that walks through folders may list and read.

It knows policies and calls; it must not know the door. A deny and an ask count alike, since nobody can be
asked about a thousand files. A rule that already matched the call itself was decided then and is not applied
again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from quoth.tools.call.call import Call
from quoth.tools.call.context import Origins
from quoth.tools.call.ports import Policy
from quoth.tools.call.workspace import Workspace
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.model import Rule
from quoth.tools.policy.policy import Entry, RulesPolicy, applying
from quoth.tools.policy.predicates import ANY_PATH, EvaluationContext
from quoth.tools.registry.param_types import WorkspacePath, with_paths
from quoth.tools.registry.table import CognitiveTool


class Walk:
    """What one call may do with the files it finds; ``reader`` is the tool that reads a file, ``lister`` the
    one that names them."""

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
        answered = {id(rule) for rule in rules.answered(tool, args, facts)}
        self._answered = bool(answered)
        self._own = rules.chosen(tool, lambda one: id(one) not in answered and _tells_paths(one, tool))

        def let(other: CognitiveTool | None) -> Callable[[str], bool]:
            """What the rules of another tool that no person has answered say of a file."""
            if other is None or other is tool:
                return lambda path: True

            def left(of_paths: bool) -> list[Entry]:
                return rules.chosen(
                    other, lambda one: id(one) not in answered and _tells_paths(one, other) is of_paths
                )

            if self._stopped(left(False), other, {"path": WorkspacePath(".")}):
                return lambda path: False
            each = left(True)
            return lambda path: not self._stopped(each, other, {"path": WorkspacePath(path)})

        self._let_read, self._let_list = let(reader), let(lister)

    def may_list(self, path: str) -> bool:
        """Whether the file may be named: no deny or ask that concerns this tool matches it."""
        return not self._own or not self._stopped(self._own, self._tool, self._instead(path))

    def may_read(self, path: str) -> bool:
        """Whether the file may also be read: no deny or ask that concerns ``reader`` matches it either."""
        return self.may_list(path) and self._let_read(path)

    def may_look(self, path: str) -> bool:
        """Whether a file may be read and named that the call did not ask for. Where a person had to be asked
        about the call, what they allowed is that call only."""
        return not self._answered and self.may_read(path) and self._let_list(path)

    def _instead(self, path: str) -> dict[str, Any]:
        """The arguments of the call, had it named this file."""
        here = WorkspacePath(path)
        args = dict(self._args)
        for param in self._tool.path_params:
            args[param.name] = with_paths(param.type, _unmarked(args.get(param.name)), lambda _: here)
        if isinstance(args.get(ANY_PATH), str):
            args[ANY_PATH] = here
        return args

    def _stopped(self, rules: list[Entry], tool: CognitiveTool, args: dict[str, Any]) -> bool:
        if not rules:
            return False
        defaults = {param.name: param.default for param in tool.params if not param.required}
        given = {**defaults, **args}
        form = CallForm(tool.name, {name: str(v) if isinstance(v, str) else v for name, v in args.items()})
        facts = EvaluationContext(tool, replace(self._call, form=form), self._workspace, self._origins)
        return any(True for _ in applying(rules, given, facts))


def _tells_paths(rule: Rule, tool: CognitiveTool) -> bool:
    """Whether a rule may say one thing of one file and another of the next."""
    return any(name == ANY_PATH or name in {p.name for p in tool.path_params} for name in rule.arguments)


def _unmarked(value: Any) -> Any:
    """A value with its paths as they would be given anew."""
    if isinstance(value, (list, tuple)):
        return [_unmarked(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _unmarked(item) for name, item in value.items()}
    return str(value) if isinstance(value, WorkspacePath) else value
