"""The model side: text in, text out, forms read. Knows the table (tools) and nothing of loops (agent)."""

from importlib import import_module
from typing import Any

from quoth.tools import hy_loader as hycache

hycache.install()

_HOMES = {
    "quoth.neuro.think": "think ask_neuro begin_conversation",
    "quoth.neuro.reading.reply": "read_reply",
    "quoth.neuro.reading.stream": "ReplyStream",
    "quoth.neuro.prompt.belt": "belt",
    "quoth.neuro.backends.base": "Backend Completion Messages ModelError Usage",
    "quoth.neuro.backends.scripted": "ScriptedBackend",
    "quoth.neuro.backends.select": "choose_backend",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value  # a submodule may bear the same name (neuro.think)
        return value
    raise AttributeError(f"module 'neuro' has no attribute {name!r}")
