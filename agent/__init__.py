"""The loop and the people around it. Knows the model side (neuro) and the tools (tools)."""

import sys
from pathlib import Path

# In a folder that has its own ``tools`` or ``agent``, ``python -m agent`` must still find ours.
_HOME = str(Path(__file__).resolve().parent.parent)
if sys.path[:1] != [_HOME]:
    sys.path.insert(0, _HOME)

from importlib import import_module  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    from agent.agent import Agent, AsyncAgent
    from agent.run import Reply

__version__ = "0.1.0"
__all__ = ["Agent", "AsyncAgent", "Reply", "__version__"]

_HOME_OF = {"Agent": "agent.agent", "AsyncAgent": "agent.agent", "Reply": "agent.run"}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    raise AttributeError(f"module 'agent' has no attribute {name!r}")
