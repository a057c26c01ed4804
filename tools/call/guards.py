"""Guards for tools that touch files.

Knows the workspace of the running call and nothing of rules.
"""

from __future__ import annotations

from quoth.tools.call.call import ALLOW, Verdict, deny
from quoth.tools.call.current import current_context
from quoth.tools.errors import ToolError


def inside_workspace(path: str) -> Verdict:
    """A guard that allows a ``path`` inside the workspace and denies any other with the reason."""
    try:
        current_context().workspace.resolve(path)
    except ToolError as error:
        return deny(str(error))
    return ALLOW
