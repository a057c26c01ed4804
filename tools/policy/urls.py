"""The predicates ``host``, ``scheme`` and ``path`` of policy rules.

Knows addresses as requests see them (tools/call/web_url.py); it must not know how rules are written, or
which IP address a name leads to. Of a text that is no address nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ipaddress import ip_network
from typing import NamedTuple

from quoth.tools.call.web_url import Network, WebUrl, plain_path, read_host, read_url
from quoth.tools.errors import ToolError
from quoth.tools.policy.predicates import PagePath, Predicate, Truth
from quoth.tools.text import excerpt

HOSTS = '"example.org", "*.example.org" for all below it, "localhost:8000", or "10.0.0.0/8"'


class HostPattern(NamedTuple):
    """What a rule names: a host, all names below one, or a network; and a port, where it names one."""

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
    """The pattern that a rule's text is. Raises ToolError."""
    if "/" in text and "://" not in text:
        try:
            return HostPattern(network=ip_network(text.replace("[", "").replace("]", "")))
        except ValueError:
            raise ToolError(f"{excerpt(text)} is no network and no host; a host is {HOSTS}.") from None
    name, colon, port = text.rpartition(":")
    bare = text.count(":") > 1 and "[" not in text  # an IPv6 address
    if not colon or bare or text.endswith("]"):
        name, port = f"[{text}]" if bare else text, ""
    elif not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise ToolError(f"{excerpt(text)} is no host; a host is {HOSTS}.")
    below = name.startswith("*.")
    try:
        host = read_host(name.removeprefix("*."))
    except ToolError:
        raise ToolError(f"{excerpt(text)} is no host; a host is {HOSTS}.") from None
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
    """The predicate holds of the path of an address, its escapes decoded. One that servers read in different
    ways is undecided."""

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
    """``(under "/docs")`` inside of ``path``: that path and all below it."""
    top = folder.rstrip("/")

    def test(value: object, facts: object) -> Truth:
        if not isinstance(value, str):
            return False
        if value in (top, folder) or value.startswith(f"{top}/"):
            return True
        return None if f"{value.lower()}/".startswith(f"{top.lower()}/") else False

    return test
