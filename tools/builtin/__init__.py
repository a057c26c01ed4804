"""The tools that ship, one Hy file per family. Importing this package registers them in the global table."""

from functools import cache
from importlib import import_module

from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import CognitiveTool, ToolTable

FAMILIES = (
    *("eval", "files", "search", "results", "agents", "memory", "message", "sources", "reminders"),
    *("shell", "fetch", "person", "skills", "worktrees"),
)

for family in FAMILIES:
    import_module(f"{__name__}.{family}")


@cache
def knowledge_tools() -> tuple[CognitiveTool, ...]:
    """The tools of a knowledge base; in no table until added."""
    return _apart("knowledge")


@cache
def search_tools() -> tuple[CognitiveTool, ...]:
    """``describe`` and ``search-tools``, for a tool list with one line per tool; in no table until added."""
    return _apart("catalog")


def _apart(family: str) -> tuple[CognitiveTool, ...]:
    """The tools of a family that is not in the global table."""
    with registering_in(ToolTable()) as table:
        import_module(f"{__name__}.{family}")
    return tuple(table)
