"""The model side: sends conversations, reads calls in replies. Knows the tool table, not the loop."""

if __name__ != "quoth.neuro":  # else there would be two tables of tools
    raise ImportError(f"{__name__} is a part of quoth: write quoth.neuro in place of neuro.")

from typing import TYPE_CHECKING

import quoth.tools  # noqa: F401  it finds our .hy files

if TYPE_CHECKING:
    from quoth.tools.registry.table import ToolTable


def prompt_block(table: "ToolTable") -> str:
    """What a model is told of the tools that have a response tag (seed 000)."""
    from quoth.neuro.prompt.belt import belt

    return belt(table, "tags")
