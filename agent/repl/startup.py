"""The files that a REPL begins with: ``init.hy`` of the user, and that of a workspace once it is trusted.

Knows where they are and which text of them a person has trusted; it evaluates nothing.
"""

from __future__ import annotations

from pathlib import Path

from quoth.tools.errors import UsageError
from quoth.tools.policy.files import at_home, read_bytes, trusted_bytes
from quoth.tools.policy.places import STARTUP_NAME, WORKSPACE_FOLDER
from quoth.tools.policy.trust import Trust
from quoth.tools.storage.missing import is_missing
from quoth.tools.storage.paths import config_dir

OWN_NAME = f"{WORKSPACE_FOLDER}/{STARTUP_NAME}"
TRUST = Trust(kind=".init")


def user_init() -> Path:
    """The path of the user's own file."""
    return config_dir() / STARTUP_NAME


def own_init(root: Path) -> bytes | None:
    """The text of a workspace's own file, None if there is none. Raises UsageError for one that cannot be
    read."""
    path = root / OWN_NAME
    return None if is_missing(path) else read_bytes(path, f"There is no {OWN_NAME} in {root}.")


def startup_files(root: Path) -> tuple[list[tuple[str, str]], list[str]]:
    """The names and texts of the files to evaluate, the user's first, and sentences about those that are not.
    What was read here is what counts, whatever becomes of the file meanwhile."""
    found: list[tuple[str, str]] = []
    notes: list[str] = []
    mine = user_init()
    if not is_missing(mine):
        try:
            found.append((at_home(mine), _text(read_bytes(mine, f"There is no file {mine}."), str(mine))))
        except UsageError as error:
            notes.append(str(error))
    try:
        data, told = trusted_bytes(root, root / OWN_NAME, TRUST, "it is not evaluated")
        notes += told
        if data is not None:
            found.append((OWN_NAME, _text(data, OWN_NAME)))
    except UsageError as error:
        notes.append(str(error))
    return found, notes


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text.") from None
