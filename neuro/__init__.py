"""The model side: text in, text out, forms read. Knows the table (tools) and nothing of loops (agent)."""

from importlib import import_module
from typing import Any

from tools import hycache

hycache.install()

_HOMES = {
    "neuro.think": "think ask_neuro begin_conversation",
    "neuro.reader": "read_reply",
    "neuro.stream": "ReplyStream",
    "neuro.belt": "belt",
    "neuro.backends.base": "Backend Completion Messages ModelError Usage",
    "neuro.backends.scripted": "ScriptedBackend",
    "neuro.backends.choose": "choose_backend",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value  # a submodule may bear the same name (neuro.think)
        return value
    raise AttributeError(f"module 'neuro' has no attribute {name!r}")
