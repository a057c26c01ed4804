"""Decides whether the rules let a call reach an address of this machine or of its network.

Such an address is reached only when an allow names it: the address itself, its network, or ``localhost``. A
rule that names another host is not enough, for whoever owns the name decides where it leads. It must not know
names that are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from quoth.tools.call.call import Call
from quoth.tools.call.context import Origins
from quoth.tools.call.origin import Origin
from quoth.tools.call.ports import Policy
from quoth.tools.call.web_url import WebUrl, as_address, read_url
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.policy.model import Rule
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.predicates import EvaluationContext
from quoth.tools.policy.urls import read_pattern
from quoth.tools.registry.table import CognitiveTool

URL = "url"  # the argument


def may_reach(
    policy: Policy,
    tool: CognitiveTool,
    call: Call,
    args: Mapping[str, Any],
    workspace: Workspace,
    host: str,
    origins: Origins | None = None,
) -> bool:
    """Whether a call whose ``:url`` leads to the IP address ``host`` may go there."""
    if not isinstance(policy, RulesPolicy):
        return False
    facts = EvaluationContext(tool, call, workspace, origins)
    try:
        url = read_url(str(args.get(URL, "")))
    except ToolError:
        return False
    given, led = str(args[URL]), str(url._replace(host=host))
    there = {**args, URL: led}
    if origins is not None:
        facts.origins = _Led(origins, led, given)
    if any(rule.kind == "deny" and rule.counts(rule.test(there, facts)) for rule in policy.strict(tool)):
        return False
    return any(
        (_names_network(rule, host) and rule.test(there, facts) is True)
        or (_names_this_machine(rule, url, host) and rule.test(args, facts) is True)
        for rule in policy.allowing(tool)
    )


class _Led(NamedTuple):
    """What a session has seen, for a call whose address ``given`` is looked at as where it has ``led``."""

    origins: Origins
    led: str
    given: str

    def find(self, value: Any, call: Call) -> Origin:
        return self.origins.find(self.given if value == self.led else value, call)


def _names_network(rule: Rule, host: str) -> bool:
    address = as_address(host)
    networks = [read_pattern(text).network for text in _hosts(rule)]
    return address is not None and any(network and address in network for network in networks)


def _names_this_machine(rule: Rule, url: WebUrl, host: str) -> bool:
    address = as_address(host)
    if address is None or not address.is_loopback or not url.is_local_name:
        return False
    patterns = map(read_pattern, _hosts(rule))
    return any(pattern.host == url.host and not pattern.below for pattern in patterns)


def _hosts(rule: Rule) -> list[str]:
    return [one.text for one in rule.compared if one.how == "host" and one.argument == URL]
