"""The model side: sends conversations to models, and reads the calls in their replies."""

if __name__ != "quoth.neuro":  # a second import would make a second table of tools
    raise ImportError(f"{__name__} is a part of quoth: import quoth.neuro, not neuro.")

from typing import TYPE_CHECKING

import quoth.tools  # noqa: F401  it finds our .hy files

if TYPE_CHECKING:
    from quoth.tools.registry.table import ToolTable


def prompt_block(table: "ToolTable") -> str:
    """The prompt about the tools that have a response tag (seed 000)."""
    from quoth.neuro.prompt.belt import belt

    return belt(table, "tags")
