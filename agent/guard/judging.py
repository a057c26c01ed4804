"""One call of another agent through the door: from the JSON of its hook to the answer in its format.

If anything fails, the answer is a deny.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from quoth.agent.guard.calls import call_of, name_of, row_of
from quoth.agent.guard.formats import AgentFormat, fields_of
from quoth.agent.guard.places import projects_of
from quoth.agent.guard.verdicts import GuardPolicy
from quoth.tools.call.call import Call, EditedCall, ToolResult, Verdict, ask, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import Consent, Limits, NoLimits
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.errors import QuothError
from quoth.tools.history.audit import StoreAudit, row_of_host
from quoth.tools.policy.files import load_policy
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import CognitiveTool, ToolTable
from quoth.tools.registry.values import encodable
from quoth.tools.storage.paths import config_dir, is_missing
from quoth.tools.storage.shared_store import WorkspaceStore
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.consent.broker import Broker
    from quoth.tools.door.user_gates import GateProgram

MOST_BYTES = 16_000_000  # of an input
LONGEST_REASON = 2000
NO_OTHERS: Mapping[Path, str] = MappingProxyType({})
STRICTEST = ("deny", "ask", "", "allow")  # "": the rules of the agent decide


@dataclass(frozen=True)
class GuardSettings:
    """``strict``: a call that no rule names asks. ``may_allow``: an allow is said. ``policy`` is a further
    file of rules. ``user`` is the name for rules and records, if it is not the login name. ``project`` is the
    folder in which the agent was started, as its environment names it."""

    strict: bool = False
    may_allow: bool = False
    policy: str | None = None
    user: str = ""
    project: str = ""


def answer(agent: AgentFormat, data: bytes, options: GuardSettings) -> str:
    """The answer to one input, a line of JSON, or "" to let the agent's own rules decide."""
    try:
        return asyncio.run(_answer(agent, data, options))
    except Exception as error:
        return denial(agent, _sentence(error))


def denial(agent: AgentFormat, why: str) -> str:
    """The answer that denies a call because of a failure."""
    return agent.answer("deny", f"quoth denies this call: {why}")


def _sentence(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "its input is nested too deeply."
    if isinstance(error, QuothError):
        return visible(str(error).partition("\n")[0])
    return f"it failed ({type(error).__name__})."


async def _answer(agent: AgentFormat, data: bytes, options: GuardSettings) -> str:
    try:
        tool, given, cwd, session = fields_of(agent, read_input(data))
    except (ValueError, RecursionError) as error:
        return denial(agent, f"its input cannot be read: {error}.")
    roots = projects_of(agent.name, encodable(session), cwd, options.project)
    found: dict[Path, tuple[str, str]] = {}

    async def judge(root: Path, consent: Consent | None, others: Mapping[Path, str] = NO_OTHERS) -> None:
        one = _Guarded(agent, tool, encodable(session)[:200], cwd, root, options)
        found[root] = await one.answer(given, consent, others)

    for root in roots:
        await judge(root, PassedOn() if agent.asks or len(roots) > 1 else None)
        if found[root][0] == "deny":
            return agent.answer(*found[root])
    asking = {root: why for root, (kind, why) in found.items() if kind == "ask"}
    if agent.asks or not asking:
        kind = min((kind for kind, _ in found.values()), key=STRICTEST.index)
        why = "; ".join(asking.values()) or "The rules of quoth allow this call."
        return agent.answer(kind, why) if kind else ""
    first, *others = asking  # the request of the first has the reasons of all
    await judge(first, None, {root: asking[root] for root in others})
    for root in others:
        if found[first][0] != "deny":
            await judge(root, Approved(first))
    kind, why = min(found.values(), key=lambda one: STRICTEST.index(one[0]))
    return agent.answer(kind, why) if kind else ""


def read_input(data: bytes) -> Any:
    """The JSON of an input. Raises ValueError for a text that two readers may read differently."""
    if len(data) > MOST_BYTES:
        raise ValueError(f"it is longer than {MOST_BYTES:,} bytes")
    try:
        text = data.decode("utf-8")
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg}, line {error.lineno})") from None


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"{json.dumps(name)} is given twice")
        made[name] = value
    return made


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not a number of JSON")


class _Guarded:
    """One call under the rules of one project: the parts of its door, and its answer."""

    def __init__(
        self, agent: AgentFormat, tool: str, session: str, cwd: str, root: Path, options: GuardSettings
    ) -> None:
        self._agent, self._tool, self._session, self._options = agent, tool, session, options
        self._user = options.user or user_name()
        self._cwd = os.path.realpath(cwd)
        self._folder = os.path.relpath(self._cwd, root)
        self._workspace = Workspace(root)
        self._store = WorkspaceStore(root)

    async def answer(
        self, given: dict[str, Any], consent: Consent | None, others: Mapping[Path, str]
    ) -> tuple[str, str]:
        """The kind of the answer, empty if the agent's own rules decide, and the reason. Without a
        ``consent`` a request is stored; ``others`` are the other projects that ask, each with its reason."""
        try:
            result, policy = await self._judged(given, consent, others)
        except Exception as error:
            self._record(_sentence(error))
            raise
        finally:
            self._store.close()
        return self._said(result, policy)

    async def _judged(
        self, given: dict[str, Any], consent: Consent | None, others: Mapping[Path, str]
    ) -> tuple[ToolResult, GuardPolicy]:
        agent, root = self._agent, self._workspace.root
        rules = load_policy(root, self._options.policy, counted=True)
        row = row_of(agent, self._tool, given)
        policy = GuardPolicy(rules, agent, row, self._cwd, strict=self._options.strict)
        tool, form = call_of(agent, self._tool, given, self._cwd)
        effects = effects_of(rules, tool.name) if tool.served is not None else ()
        tool = replace(tool, effects=effects) if effects else tool
        table = ToolTable([tool])
        door = Door(
            table,
            policy=policy,
            limits=self._limits(rules),
            gate_programs=_gates(root),
            consent=consent or AgentConsent(agent, partial(self._broker, table), self._folder, others),
            audit=StoreAudit(self._store),
            together=self._store.together,
            on_disk=self._store.on_disk,
            client=agent.name,
        )
        call = new_call(form, route="guard", user=self._user, session=self._session)
        context = ToolContext(self._workspace, user=call.user, session=call.session)
        return await door.dispatch(call, context), policy

    def _limits(self, rules: RulesPolicy) -> Limits:
        if not rules.limits:
            return NoLimits()
        from quoth.tools.policy.limits import StoreLimits

        return StoreLimits(self._store, [limit.counts for limit in rules.limits])

    def _broker(self, table: ToolTable) -> Broker:
        from quoth.tools.consent.broker import Broker  # here: few calls need a person

        return Broker(self._store, table, self._workspace, audit=StoreAudit(self._store))

    def _said(self, result: ToolResult, policy: GuardPolicy) -> tuple[str, str]:
        why = visible(result.message)[:LONGEST_REASON]
        if result.ok:
            return "allow" if self._options.may_allow and policy.named else "", ""
        if result.status != "pending":
            return "deny", why
        if not result.request:
            return "ask", why
        how = shlex.join(["quoth", "approve", result.request, "--workspace", str(self._workspace.root)])
        return "deny", f"{why} A person can approve it with: {how}. Then make the very same call again."

    def _record(self, message: str) -> None:
        """Record a call that could not be judged; it is denied in any case."""
        row = row_of_host(
            "guard",
            message,
            route="guard",
            tool=name_of(self._agent, self._tool)[:200],
            session=self._session,
            user=self._user,
        )
        with contextlib.suppress(Exception):
            StoreAudit(self._store).write(row)


class PassedOn(Consent):
    """Passes a question on to an agent that can ask its person, or to the request of all projects."""

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        return ask(reason)


@dataclass(frozen=True)
class Approved(Consent):
    """The call was approved by a request in the project ``root`` that has the reason of this one."""

    root: Path

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict:
        return Verdict("allow", f"approved by a request in {self.root}")


class AgentConsent(Consent):
    """Stores a request for an agent that cannot ask. An approval is for this call of the agent in this
    ``folder`` of the project, in any of its sessions, once, and for the ``others``: the projects that ask,
    too."""

    def __init__(
        self, agent: AgentFormat, broker: Callable[[], Broker], folder: str, others: Mapping[Path, str]
    ) -> None:
        self._agent, self._broker, self._folder, self._others = agent, broker, folder, others

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | EditedCall | None:
        session = self._agent.name
        if self._folder != "." or self._others:  # the same command means another thing there
            from quoth.agent.session.index import session_of

            session = session_of(session, "\n".join([self._folder, *map(str, self._others)]))
            reason = f"{reason}; the agent works in {self._folder}"
            reason = "; ".join([reason, *(f"in {root}: {why}" for root, why in self._others.items())])
        said = await self._broker().request(tool, replace(call, session=session), reason)
        if isinstance(said, EditedCall):
            return deny(f"a person wants this call instead: {said.form}")
        return said


def effects_of(rules: RulesPolicy, tool: str) -> tuple[str, ...]:
    """The effects that the user's own rules give a tool of an MCP server, if they do not bind it to a digest:
    the hook's input has none."""
    said = (one for layer in rules.layers for one in layer.orders.effects)
    return next((one.effects for one in said if one.tool == tool and not one.digest), ())


def _gates(root: Path) -> Sequence[GateProgram]:
    """The user's programs that judge every call."""
    if is_missing(config_dir() / "config.hy") and is_missing(root / ".quoth" / "config.hy"):
        return ()
    from quoth.agent.config.loading import load_config  # here: few users have settings
    from quoth.tools.door.user_gates import GateProgram, gate_words

    command = load_config(root).gate_command
    return [GateProgram(gate_words(command, "(gate-command …) in config.hy"))] if command else ()


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
