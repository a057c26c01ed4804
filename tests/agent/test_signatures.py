"""What help and completion show of the clients: parameters by name, and words for each method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quoth import Agent, AsyncAgent


def methods(client: type) -> Iterator[tuple[str, Any]]:
    for name, member in inspect.getmembers(client):
        if not name.startswith("_") or name == "__init__":
            yield name, member


def parameters(method: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())


@pytest.mark.parametrize("client", [Agent, AsyncAgent])
def test_every_method_of_a_client_has_words(client: type) -> None:
    assert [name for name, member in methods(client) if not inspect.getdoc(member)] == []
    names = [param.name for param in parameters(client)]
    assert [name for name in names if f"``{name}" not in (client.__init__.__doc__ or "")] == []


@pytest.mark.parametrize("client", [Agent, AsyncAgent])
def test_no_method_of_a_client_hides_its_parameters(client: type) -> None:
    shown = [(client.__name__, client), *((name, it) for name, it in methods(client) if callable(it))]
    hidden = [name for name, it in shown if any(one.kind is one.VAR_KEYWORD for one in parameters(it))]
    assert hidden == []


def test_the_clients_take_the_same() -> None:
    assert parameters(Agent) == parameters(AsyncAgent)
    own = {name for name, _ in methods(Agent)}
    for name in own - {"close", "table", "session", "audit", "broker", "interrupt", "call", "eval"}:
        assert parameters(getattr(Agent, name)) == parameters(getattr(AsyncAgent, name)), name
    for name in ("call", "eval"):  # these say themselves that the call comes from Python
        given = [one for one in parameters(getattr(AsyncAgent, name)) if one.name != "route"]
        assert parameters(getattr(Agent, name)) == given
