"""The predicates ``host``, ``scheme`` and ``path`` of policy rules, and whether the rules let a call reach an
address of this machine or of its network.

Addresses are parsed by tools/call/web_url.py; for any other text a predicate is undecided. A local address is
reachable only if an allow names it: the address itself, its network, or ``localhost``. A rule that names
another host is not enough, because the owner of that name decides which IP address it resolves to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_network
from typing import Any, NamedTuple

from quoth.tools.call.call import Call, ValueOrigin
from quoth.tools.call.context import Origins
from quoth.tools.call.ports import Policy
from quoth.tools.call.web_url import Network, WebUrl, as_address, plain_path, read_host, read_url
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.policy.model import Rule
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.policy.predicates import EvaluationContext, PagePath, Predicate, Truth
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.text import excerpt

HOSTS = '"example.org", "*.example.org" for its subdomains, "localhost:8000", or "10.0.0.0/8"'


class HostPattern(NamedTuple):
    """The pattern in a rule: a host, all names below a host, or a network; and a port, if it names one."""

    host: str = ""
    below: bool = False
    network: Network | None = None
    port: int = 0

    def fits(self, url: WebUrl) -> bool:
        if self.port and self.port != url.port:
            return False
        if self.network is not None:
            address = url.address
            return address is not None and address in self.network
        return url.host.endswith(f".{self.host}") if self.below else url.host == self.host


def read_pattern(text: str) -> HostPattern:
    """Parse the pattern in a rule. Raises ToolError."""
    if "/" in text and "://" not in text:
        try:
            return HostPattern(network=ip_network(text.replace("[", "").replace("]", "")))
        except ValueError:
            raise ToolError(f"{excerpt(text)} is neither a network nor a host; a host is {HOSTS}.") from None
    name, colon, port = text.rpartition(":")
    bare = text.count(":") > 1 and "[" not in text  # an IPv6 address
    if not colon or bare or text.endswith("]"):
        name, port = f"[{text}]" if bare else text, ""
    elif not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise ToolError(f"{excerpt(text)} is not a host; a host is {HOSTS}.")
    below = name.startswith("*.")
    try:
        host = read_host(name.removeprefix("*."))
    except ToolError:
        raise ToolError(f"{excerpt(text)} is not a host; a host is {HOSTS}.") from None
    pattern = HostPattern(host, below, port=int(port or 0))
    address = WebUrl("http", host, 80, "/").address
    return pattern if address is None or below else pattern._replace(network=ip_network(address))


def _of_url(test: Callable[[WebUrl], Truth]) -> Predicate:
    def judge(value: object, facts: object) -> Truth:
        if not isinstance(value, str):
            return None
        try:
            return test(read_url(value))
        except ToolError:
            return None

    return judge


def has_host(patterns: Sequence[HostPattern]) -> Predicate:
    return _of_url(lambda url: any(pattern.fits(url) for pattern in patterns))


def has_scheme(schemes: frozenset[str]) -> Predicate:
    return _of_url(lambda url: url.scheme in schemes)


def has_path(predicate: Predicate) -> Predicate:
    """The predicate matches the path of an address, with its escapes decoded. Undecided for a path that
    servers read differently."""

    def test(value: object, facts: object) -> Truth:
        if not isinstance(value, str):
            return None
        try:
            path = plain_path(read_url(value).path)
        except ToolError:
            return None
        return None if path is None else predicate(PagePath(path), facts)  # type: ignore[arg-type]  # passed on as it came

    return test


def below(folder: str) -> Predicate:
    """``(under "/docs")`` inside ``path``: that path and all paths below it."""
    top = folder.rstrip("/")

    def test(value: object, facts: object) -> Truth:
        if not isinstance(value, str):
            return False
        if value in (top, folder) or value.startswith(f"{top}/"):
            return True
        return None if f"{value.lower()}/".startswith(f"{top.lower()}/") else False

    return test


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
    """Whether a call whose ``:url`` resolves to the IP address ``host`` may connect to it."""
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
    """A session's origins, for a call whose address ``given`` was redirected to ``led``."""

    origins: Origins
    led: str
    given: str

    def find(self, value: Any, call: Call) -> ValueOrigin:
        return self.origins.find(self.given if value == self.led else value, call)

    def intended(self, call: Call) -> bool | None:
        return self.origins.intended(call)


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
