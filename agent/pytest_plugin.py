"""Fixtures for pytest, which finds them by the entry point ``quoth_agent``: agents and contexts for a test.

pytest loads this file wherever quoth is installed, so it imports quoth only when a fixture is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from quoth.agent.client import Agent
    from quoth.tools.call.context import ToolContext


@pytest.fixture
def quoth_agent(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Agent]]:
    """A factory of agents whose model gives the replies of the test::

        def test_the_agent(quoth_agent):
            agent = quoth_agent("(double :number 21)", "It is 42.", tools=[double])
            assert agent.run("What is 21 doubled?").text == "It is 42."

    Other arguments are those of ``quoth.Agent``. The workspace is ``tmp_path``; your own rules, settings and
    sessions are not read. Every request is allowed, unless the test says ``consent=None``."""
    from quoth.agent.client import Agent
    from quoth.agent.doubles import FakeModel

    own = tmp_path_factory.mktemp("quoth")
    for name in ("STATE", "CONFIG"):
        monkeypatch.setenv(f"QUOTH_{name}", str(own / name.lower()))
    with ExitStack() as opened:

        def make(*replies: Any, **options: Any) -> Agent:
            given = {"workspace": tmp_path, "model": FakeModel(*replies), "consent": "yes", **options}
            return opened.enter_context(Agent(**given))

        yield make


@pytest.fixture
def quoth_context(tmp_path: Path) -> ToolContext:
    """A ``tool_context()`` whose workspace is ``tmp_path``."""
    from quoth.agent.doubles import tool_context

    return tool_context(tmp_path)
