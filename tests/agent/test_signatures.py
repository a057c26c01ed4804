"""What help and completion show of the clients: parameters by name, and words for each method."""

from __future__ import annotations

import inspect
import pydoc
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from quoth import (
    Agent,
    AsyncAgent,
    HostServices,
    ModelOptions,
    PolicyOptions,
    Services,
    ToolOptions,
)
from quoth.agent.run import option_fields
from quoth.agent.run.host import open_host
from quoth.agent.run.options import PARTS
from quoth.agent.run.runs import RunSettings

FIELDS = (
    option_fields.ToolFields,
    option_fields.ModelFields,
    option_fields.PolicyFields,
    option_fields.ServiceFields,
    option_fields.LimitFields,
)
WORDS = [
    "workspace",
    "tools",
    "model",
    "policy",
    "consent",
    "limits",
    "services",
    "session",
    "user",
    "on_event",
    "instructions",
    "temperature",
    "timeout",
    "api_key",
    "reply_tokens",
    "plan",
    "worktree",
]


def methods(client: type) -> Iterator[tuple[str, Any]]:
    for name, member in inspect.getmembers(client):
        if not name.startswith("_") or name == "__init__":
            yield name, member


def parameters(method: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(method).parameters.values())


@pytest.mark.parametrize("client", [Agent, AsyncAgent])
def test_every_method_of_a_client_has_words(client: type) -> None:
    assert [name for name, member in methods(client) if not inspect.getdoc(member)] == []


@pytest.mark.parametrize("client", [Agent, AsyncAgent])
def test_a_client_takes_these_keywords_each_with_an_example_in_its_help(client: type) -> None:
    names, shown = (
        [param.name for param in parameters(client)],
        pydoc.render_doc(client, renderer=pydoc.plaintext),
    )
    assert names == WORDS
    assert [name for name in names if f"``{name}=" not in shown] == []
    assert f"__init__(self, *, {', '.join(f'{name}: ' for name in names[:1])}" in shown


@pytest.mark.parametrize("group", [HostServices, ModelOptions, PolicyOptions, ToolOptions])
def test_every_field_of_a_group_is_explained_with_an_example(group: type) -> None:
    own = [one.name for one in fields(group) if one.name not in {known.name for known in fields(Services)}]
    said = inspect.getdoc(group) or ""
    assert f"``{group.__name__}(" in said
    assert [name for name in own if f"``{name}``" not in said and f"``{name}=" not in said] == []


@pytest.mark.parametrize("client", [Agent, AsyncAgent])
def test_a_keyword_that_there_is_not_is_refused(client: type) -> None:
    with pytest.raises(TypeError, match=r"Agent has no keyword 'on_events'. Did you mean on_event\?"):
        client(on_events=print)
    with pytest.raises(TypeError, match=r"Agent has no keyword 'listener'\."):
        client(listener=print)
    with pytest.raises(
        TypeError, match=r"'prefix': give ToolOptions\(prefix=…\) or PolicyOptions\(prefix=…\)"
    ):
        client(prefix="shop")


def test_type_checkers_know_the_fields_that_are_keywords() -> None:
    own = inspect.signature(open_host).parameters
    counted = Counter(one.name for group, _ in PARTS.values() for one in fields(group))
    for (group, _), typed in zip(PARTS.values(), FIELDS, strict=True):
        wanted = {one.name: one.type for one in fields(group) if counted[one.name] == 1}
        known = {name: hint.__forward_arg__ for name, hint in typed.__annotations__.items()}
        assert known == {name: hint for name, hint in wanted.items() if name not in own}, group


def test_type_checkers_know_the_keywords_of_a_run() -> None:
    own = {one.name for one in parameters(AsyncAgent.run)} - {"self", "task", "output"}
    assert {*RunSettings.__annotations__} == own


def test_a_field_of_one_group_is_a_keyword_of_an_agent(tmp_path: Path) -> None:
    with Agent(
        workspace=tmp_path, base_url="http://127.0.0.1:9", belt="search", steps=3, channel="x"
    ) as agent:
        here = agent._agent
        assert here.models.options.base_url == "http://127.0.0.1:9"
        assert (here.models.search, here.limits.steps, here.broker.channel) == (True, 3, "x")


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
