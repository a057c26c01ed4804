"""The model side: text in, text out, forms read. Knows the table (tools) and nothing of loops (agent)."""

if __name__ != "quoth.neuro":  # else there would be two tables of tools
    raise ImportError(f"{__name__} is a part of quoth: write quoth.neuro in place of neuro.")

import quoth.tools  # noqa: F401  it finds our .hy files
