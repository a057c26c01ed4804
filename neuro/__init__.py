"""The model side: sends conversations, reads calls in replies. Knows the tool table, not the loop."""

if __name__ != "quoth.neuro":  # else there would be two tables of tools
    raise ImportError(f"{__name__} is a part of quoth: write quoth.neuro in place of neuro.")

import quoth.tools  # noqa: F401  it finds our .hy files
