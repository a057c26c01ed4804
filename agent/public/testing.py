"""``quoth.testing``: for users' tests of their tools, stores and sessions.

Names are imported at first use, as those of ``quoth`` are. pytest finds the fixtures of quoth by itself.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from quoth.agent.doubles import FakeModel as FakeModel
    from quoth.agent.doubles import FakePerson as FakePerson
    from quoth.agent.doubles import FakeRouter as FakeRouter
    from quoth.agent.doubles import InMemoryStore as InMemoryStore
    from quoth.agent.doubles import dispatch as dispatch
    from quoth.agent.doubles import tool_context as tool_context
    from quoth.agent.testing import memory_conforms as memory_conforms
    from quoth.agent.testing import replays as replays

_HOMES = {
    "agent.doubles": "FakeModel FakePerson FakeRouter InMemoryStore dispatch tool_context",
    "agent.testing": "memory_conforms replays",
}
_HOME_OF = {name: f"quoth.{module}" for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOME_OF:
        value = globals()[name] = getattr(import_module(_HOME_OF[name]), name)
        return value
    raise AttributeError(f"module 'quoth.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
