"""The loop and the people around it. Knows the model side (neuro) and the tools (tools)."""

if __name__ != "quoth.agent":  # else there would be two tables of tools
    raise ImportError(f"{__name__} is a part of quoth: write quoth.agent in place of agent.")
