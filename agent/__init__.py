"""The loop and the people around it. Knows the model side (neuro) and the tools (tools).

Names are imported at first use, so that a command pays only for what it does.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # what a type checker takes for true; typing itself would be imported before entry.py
if TYPE_CHECKING:
    from typing import Any

    from quoth.agent.client import Agent, AsyncAgent
    from quoth.agent.flight.engine import FlightReport
    from quoth.agent.run.run import Reply

__version__ = "0.1.0"
__all__ = ["Agent", "AsyncAgent", "FlightReport", "Reply", "__version__"]

_HOME_OF = {
    "Agent": "quoth.agent.client",
    "AsyncAgent": "quoth.agent.client",
    "FlightReport": "quoth.agent.flight.engine",
    "Reply": "quoth.agent.run.run",
}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'agent' has no attribute {name!r}")
