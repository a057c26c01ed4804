"""Words for tests that fetch pages: a gateway to ``fetch`` alone, under rules."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from words import Gateway, gateway

from quoth.tools.call.call import ToolResult
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import cognitive_tools

PAGE = (
    b"<html><head><title>A page</title></head><body><h1>Hello</h1><p>To <a href='/b'>b</a>.</p></body></html>"
)


def fetcher(rules: str = "", **parts: Any) -> Gateway:
    import_module("quoth.tools.builtin")
    layers = [parse_layer("given", rules.encode(), "policy.hy")]
    return gateway(cognitive_tools.get("fetch"), policy=RulesPolicy(layers), **parts)


def fetched(url: str, rules: str = "(allow (fetch))", **args: str) -> ToolResult:
    """The result of fetching an address, which the rules allow unless others are given."""
    more = "".join(f' :{name} "{value}"' for name, value in args.items())
    return fetcher(rules).pass_through(f'(fetch :url "{url}"{more})')


def refusal(url: str, rules: str = "(allow (fetch))", **args: str) -> str:
    """How such a call ends that fetches nothing: its status and message."""
    result = fetched(url, rules, **args)
    assert not result.ok
    return f"{result.status}: {result.message}"
