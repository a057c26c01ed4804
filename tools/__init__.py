"""The tools, and the one door to them. It imports nothing of models (neuro) or loops (agent)."""

if __name__ != "quoth.tools":  # else there would be two tables of tools
    raise ImportError(f"{__name__} is a part of quoth: import quoth.tools, not tools.")

from quoth.tools import hy_loader
from quoth.tools.errors import ToolNotFound as ToolNotFound
from quoth.tools.errors import ToolRateLimited as ToolRateLimited

hy_loader.install()
