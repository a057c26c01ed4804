"""The verdict of the rules on a call of another agent: the strictest of those on the call itself and, for a
command line, on its commands as calls of ``shell`` and on the files that it redirects to or from.

A call that no rule names has no verdict: then the agent's own rules decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from quoth.agent.guard.calls import PATCH, absolute_path, argument_name, call_of, entries_with
from quoth.agent.guard.formats import AgentFormat, AgentTool
from quoth.tools.call.call import Call, Verdict, ask, deny
from quoth.tools.call.canonical import checked, paths_of
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import InvalidCallError, ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.model import CAREFUL, KINDS, WRITING
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.project import policy_files
from quoth.tools.registry.annotations import WorkspacePath
from quoth.tools.registry.parameters import REQUIRED, Param
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import REST, UNKNOWN
from quoth.tools.shell.command_line import read_line
from quoth.tools.shell.judged_line import judge_line
from quoth.tools.storage.paths import config_dir, keys_path, real_path, state_dir

# Tools that ship, as rules about a command line see them, without loading Hy; a test compares them with the
# tools. Arguments that a line does not tell are unknown.
SHELL = CognitiveTool(
    "shell",
    "Run a program in the workspace.",
    (
        Param("argv", list[str]),
        Param("cwd", WorkspacePath, default="."),
        Param("stdin", str | None, default=None),
        Param("timeout", float, default=120),
        Param("background", bool, default=False),
        Param("network", bool, default=False, named=True),
    ),
    ("runs",),
    module="quoth.tools.builtin.shell",
    code="guard",
)
READ_FILE, WRITE_FILE = (
    CognitiveTool(
        name,
        "A redirection of a command line.",
        (Param("path", WorkspacePath, outside=True), *more),
        effects,
        module="quoth.tools.builtin.files",
        code="guard",
    )
    for name, effects, more in (
        ("read-file", ("reads",), ()),
        ("write-file", ("writes",), (Param("content"),)),
    )
)
SHIPPED = {tool.name: tool for tool in (SHELL, READ_FILE, WRITE_FILE)}
DECIDING = re.compile(r"\bquoth\b.*\b(approve|answer|trust)\b", re.DOTALL)
DECIDES = "only a person decides requests and trusts rules, not a command of an agent"
OWN = "{} belongs to quoth, which guards this agent"
HOOKS = "{} configures the hooks of {}, and quoth is one of them"
UNREAD = "quoth cannot read all of this command line"


class GuardPolicy:
    """The door's Policy for one call of another agent. ``named``, after the verdict, says whether a rule
    decided. With ``strict`` a call that no rule names asks."""

    def __init__(
        self, rules: RulesPolicy, agent: AgentFormat, row: AgentTool, cwd: str, *, strict: bool = False
    ) -> None:
        self._rules, self._agent, self._row, self._cwd, self._strict = rules, agent, row, cwd, strict
        self._opaque: list[str] = []
        self.named = False

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        """The strictest verdict; an allow where no rule names the call."""
        found = min(
            self._verdicts(tool, call, args, context), key=lambda one: KINDS.index(one.kind), default=None
        )
        self.named = found is not None
        if found is not None:
            return found
        if self._strict:
            return ask("no rule names this call, and the guard is strict")
        return Verdict("allow", "no rule names this call")

    def judge_unknown(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext, depends: str
    ) -> Verdict:
        return ask(depends)  # a call of another agent is in no plan

    def _verdicts(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Iterator[Verdict]:
        """Each verdict that counts."""
        yield from self._of_files(tool, args, context)
        said = self._of_rules(tool, call, args, context)
        line = args.get(argument_name(self._row.command)) if self._row.command else None
        if isinstance(line, str):
            yield from self._of_line(line, call, context)
            if said is not None and said.kind == "allow" and not (self._row.bash and read_line(line).exact):
                return  # the rule says nothing about what quoth cannot read
        if said is not None:
            yield said

    def _of_line(self, line: str, call: Call, context: ToolContext) -> Iterator[Verdict]:
        """The verdicts on what a command line does."""

        def judge(name: str, args: Mapping[str, Any]) -> Verdict | None:
            """The strictest verdict on one of its calls."""
            found = [one for one in self._of_part(name, args, call, context) if one is not None]
            return min(found, key=lambda one: KINDS.index(one.kind), default=None)

        self._opaque = ["sh" if self._row.bash else "pwsh", "-c", line]
        if DECIDING.search(line):
            yield deny(DECIDES)
        if PATCH.search(line):  # the agent applies a patch in a command line by itself
            for name, row in self._agent.tools.items():
                if row.patch:
                    tool, form = call_of(self._agent, name, {row.patch: line}, self._cwd)
                    patched = self._of_entry(tool, form.args, call, context)
                    yield from (one for one in patched if one is not None and one.kind != "allow")
        said = judge_line(line, judge) if self._row.bash else judge("shell", {"argv": self._opaque})
        if said is not None and (self._row.bash or said.kind != "allow"):
            yield said

    def _of_part(
        self, name: str, args: Mapping[str, Any], call: Call, context: ToolContext
    ) -> Iterator[Verdict | None]:
        """The verdicts on one command or redirection of a line: as a call of the tool that ships, and of the
        agent's own tool for it. A program may have the network, so a rule that forbids it counts."""
        if name == "shell":
            if DECIDING.search(" ".join(word for word in args["argv"] if word is not REST)):
                yield deny(DECIDES)  # its words, without quotes
            args = {**args, "cwd": self._cwd}
            yield from self._of_entry(SHELL, args, call, context)
            online = self._of_entry(SHELL, {**args, "network": True}, call, context)
            yield from (one for one in online if one is not None and one.kind != "allow")
            return
        try:
            path = args["path"] if args["path"] is UNKNOWN else absolute_path(name, args["path"], self._cwd)
        except InvalidCallError as error:
            yield deny(str(error))
            return
        yield from self._of_entry(SHIPPED[name], {**args, "path": path}, call, context)
        for entry in entries_with(self._agent, SHIPPED[name].effects[0], path, self._cwd):
            yield from self._of_entry(entry.tool, entry.args, call, context)

    def _of_entry(
        self, tool: CognitiveTool, args: Mapping[str, Any], call: Call, context: ToolContext
    ) -> Iterator[Verdict | None]:
        """The verdicts of the rules, and about quoth's own files, on a call with some unknown arguments."""
        known = {name: value for name, value in args.items() if value is not UNKNOWN}
        argv = args.get("argv", [])
        if argv[-1:] == [REST]:
            known["argv"] = argv[:-1]
        given = {one.name: UNKNOWN if one.default is REQUIRED else one.default for one in tool.params}
        try:
            form = CallForm(tool.name, known)
            if all(one.name in known for one in tool.params if one.required):
                form, found = checked(tool, form, context.workspace)
                given |= found
            else:
                given |= {name: context.workspace.canonical(one) for name, one in known.items()}
        except (InvalidCallError, ToolError) as error:
            yield deny(str(error))
            return
        if argv[-1:] == [REST]:
            given["argv"] = argv
        yield from self._of_files(tool, given, context)
        yield self._of_rules(tool, call.changed(form=form), given, context)

    def _of_rules(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict | None:
        """The verdict of the rules; None if none of them decides, so that only effects would."""
        why = self._rules.explain(tool, call, args, context)
        if why.decided is None:
            return why.verdict if why.verdict.rule == CAREFUL else None
        unknown = any(one is UNKNOWN or (isinstance(one, list) and REST in one) for one in args.values())
        whole = args.get("argv") == self._opaque  # a line that may run what is not in it
        if (unknown or whole) and why.decided.truth is None:
            return ask(f"{UNREAD}, and {why.decided.rule.place} says {why.decided.rule.text}")
        return why.verdict

    def _of_files(
        self, tool: CognitiveTool, args: Mapping[str, Any], context: ToolContext
    ) -> Iterator[Verdict]:
        """The verdicts on quoth's own files, and on the files that configure the agent's hooks."""
        workspace = context.workspace
        writes = not WRITING.isdisjoint(tool.effects)
        for path in paths_of(tool, {name: one for name, one in args.items() if one is not UNKNOWN}):
            try:
                real = workspace.locate(path)
            except ToolError:
                continue  # such a call is refused
            own = [*map(real_path, (*policy_files(workspace.root), state_dir(), config_dir()))]
            if real == real_path(keys_path()) or (writes and not {real, *real.parents}.isdisjoint(own)):
                yield deny(OWN.format(path))
            elif writes and (shown := self._hooks_in(real, context)):
                yield ask(HOOKS.format(shown, self._agent.title))

    def _hooks_in(self, real: Any, context: ToolContext) -> str:
        """The file of the agent's settings that this is; empty for another file."""
        for one in self._agent.settings:  # of the project, or of the folder that the agent works in
            for place in (one, one if one.startswith("~") else f"{self._cwd}/{one}"):
                if context.workspace.locate(place) == real:
                    return one
        return ""
