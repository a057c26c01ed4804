"""Whether a file is missing, which is another thing than a file that this user cannot reach.

It knows files only. ``os.path.lexists`` and, from Python 3.14 on, ``Path.exists`` answer "no" for both: then
rules in a folder that cannot be searched would be left out in silence.
"""

from __future__ import annotations

import os


def is_missing(path: str | os.PathLike[str]) -> bool:
    """Whether nothing has this name: ENOENT or ENOTDIR, and no other error. A link is something, wherever it
    leads. Where the answer is no, reading the file says why it cannot be read."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return False
