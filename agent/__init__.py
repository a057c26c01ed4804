"""The loop, the commands and everything else that faces a person; neuro has the models, tools the tools."""

if __name__ != "quoth.agent":  # a second import would make a second table of tools
    raise ImportError(f"{__name__} is a part of quoth: import quoth.agent, not agent.")
