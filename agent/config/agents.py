"""The user's own agents: ``agents/NAME.hy`` beside ``config.hy``, read as data and never evaluated.

A file has forms of ``config.hy`` about the model, ``(budget …)``, and two of its own: ``(tools "read-*"
"grep-search")``, the only tools that the agent may call, and ``(policy (deny …) (ask …) …)``, rules that only
tighten those of the user and the workspace."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.config.config import NO_CONFIG, Config
from quoth.agent.config.loading import over
from quoth.agent.settings import ROWS
from quoth.tools.errors import UsageError, did_you_mean, no_such
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.policy.files import at_home, read_bytes
from quoth.tools.storage.paths import agents_dir

if TYPE_CHECKING:
    from quoth.tools.lisp.fields import Fields
    from quoth.tools.lisp.source import Place
    from quoth.tools.policy.policy import Layer

SUFFIX = ".hy"
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
PATTERN = re.compile(r"[a-z0-9*?-]+")
OF_MODEL = tuple(row.form for row in ROWS.values() if row.group == "model" and row.form)
HEADS = (*OF_MODEL, "budget", "tools", "policy")


@dataclass(frozen=True)
class NamedAgent:
    """An agent of the user's configuration: its ``own`` settings, the settings with them over the others, its
    rules, and the patterns of its tools, each with its place."""

    name: str
    own: Config
    config: Config
    layer: Layer
    patterns: tuple[tuple[str, Place], ...] = ()

    def unmatched(self, tools: Collection[str]) -> Iterator[str]:
        """A sentence for each pattern that none of these tools matches."""
        for pattern, place in self.patterns:
            if not any(fnmatchcase(tool, pattern) for tool in tools):
                yield f"{place}: no tool matches {pattern}.{did_you_mean(pattern, tools)}"


def agent_names() -> list[str]:
    """The names of the user's agents, sorted."""
    try:
        files = [file for file in agents_dir().iterdir() if file.suffix == SUFFIX]
    except OSError:
        return []
    return sorted(file.stem for file in files if NAME.fullmatch(file.stem))


def agent_path(name: str) -> Path:
    return agents_dir() / f"{name}{SUFFIX}"


def load_agent(name: str, config: Config = NO_CONFIG) -> NamedAgent:
    """The agent of this name, with ``config`` as the settings that its own override. Raises UsageError: with
    the nearest name for an unknown one, and with the place of a mistake in its file."""
    known = agent_names()
    if name not in known:
        there = "The agents are" if known else ""
        how = "" if known else f" Write {at_home(agents_dir())}/NAME{SUFFIX}; see: quoth help models agents"
        raise UsageError(f"{no_such('agent', name, known, there)}{how}")
    path = agent_path(name)
    data = read_bytes(path, f"There is no file {path}.")
    try:
        return _read(name, data.decode("utf-8-sig"), at_home(path), config)
    except UnicodeDecodeError:
        raise UsageError(f"{at_home(path)} is not UTF-8 text.") from None


def faults_of_agents(config: Config = NO_CONFIG) -> Iterator[str]:
    """A sentence for each agent whose file cannot be used."""
    for name in agent_names():
        try:
            load_agent(name, config)
        except UsageError as error:
            yield str(error)


def _read(name: str, text: str, shown: str, config: Config) -> NamedAgent:
    from quoth.agent.config.reading import read_settings, shown_source  # here: few users have agents
    from quoth.tools.lisp.fields import Fields, read_forms
    from quoth.tools.policy.language import only_tools, orders_in
    from quoth.tools.policy.policy import Layer

    source = shown_source(shown, text)
    fields, by_head = Fields(source), dict[str, list[Any]]()
    for form in read_forms(text, source):
        head = fields.head(form, HEADS, "setting of an agent", '(tools "read-*")')
        by_head.setdefault(head, []).append(form)
    tools, policy = by_head.pop("tools", []), by_head.pop("policy", [])
    for form in (*tools[1:], *policy[1:]):
        raise fields.fault(form, f"({form[0]} …) is given twice.")
    own = read_settings(
        [form for forms in by_head.values() for form in forms], source, providers=config.providers
    )
    orders = orders_in([one for form in policy for one in form[1:]], source)
    for rule in orders.rules:
        if rule.kind == "allow":
            raise UsageError(rule.place.complaint(f"The rules of an agent only deny and ask. {ELSEWHERE}"))
    for effects in orders.effects:
        raise UsageError(effects.place.complaint(f"An agent does not set effects. {ELSEWHERE}"))
    patterns = [(_pattern(fields, node), fields.place(node)) for form in tools for node in form[1:]]
    if tools:
        if not patterns:
            raise fields.fault(tools[0], 'This agent has no tools. Name some, such as (tools "read-*").')
        names = [pattern for pattern, _ in patterns]
        rule = only_tools(tools[0], source, lambda tool: any(fnmatchcase(tool.name, one) for one in names))
        orders = orders._replace(rules=(rule, *orders.rules))
    settings = replace(over(config, own), notes=config.notes)
    return NamedAgent(name, own, settings, Layer("agent", shown, orders), tuple(patterns))


ELSEWHERE = "Write this into your own policy.hy."


def _pattern(fields: Fields, node: Any) -> str:
    text = fields.text(node)
    if not PATTERN.fullmatch(text):
        raise fields.fault(node, 'Expected the name of a tool, or a pattern such as "read-*".')
    return text
