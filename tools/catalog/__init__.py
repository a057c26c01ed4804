"""The signed catalog of tools in Redis, and the tool table built from it.

Names are imported on first use, because every agent imports this package for the path of the key
(payload.py)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quoth.tools.catalog.payload import build_catalog_payload as build_catalog_payload
    from quoth.tools.catalog.remote_table import RemoteToolRegistry as RemoteToolRegistry
    from quoth.tools.catalog.store import load_catalog as load_catalog
    from quoth.tools.catalog.store import publish_catalog as publish_catalog
    from quoth.tools.registry.openai_schema import openai_tool_dict as openai_tool_dict
    from quoth.tools.registry.tool import schema_hash as schema_hash

_PLACES = {
    "RemoteToolRegistry": "catalog.remote_table",
    "build_catalog_payload": "catalog.payload",
    "load_catalog": "catalog.store",
    "publish_catalog": "catalog.store",
    "schema_hash": "registry.tool",
    "openai_tool_dict": "registry.openai_schema",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"quoth.tools.{_PLACES[name]}"), name)
