"""Loads the settings: the user's ``config.hy``, and that of the workspace if it is trusted.

The parser is imported only if there is such a file.
"""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from quoth.agent.config.config import NO_CONFIG, Config
from quoth.tools.errors import UsageError
from quoth.tools.policy.files import Trust, at_home, read_bytes, trusted_bytes
from quoth.tools.policy.project import WORKSPACE_FOLDER
from quoth.tools.storage.paths import config_dir, is_missing

FILE_NAME = "config.hy"
OWN_NAME = f"{WORKSPACE_FOLDER}/{FILE_NAME}"
TRUST = Trust(kind=".config")


def user_config() -> Path:
    """The path of the user's settings."""
    return config_dir() / FILE_NAME


def load_config(root: Path) -> Config:
    """The settings for a workspace: its own override the user's, but its budgets can only be tighter. Raises
    UsageError for a file that cannot be read or that changed since it was trusted."""
    mine, config = user_config(), NO_CONFIG
    if not is_missing(mine):
        config = _parsed(read_bytes(mine, f"There is no file {mine}."), at_home(mine))
    own, notes = trusted_bytes(root, root / OWN_NAME, TRUST, "its settings do not apply")
    if own is not None:
        config = over(config, _parsed(own, OWN_NAME, own=False))
    return replace(config, notes=tuple(notes)) if notes else config


def own_config(root: Path) -> bytes | None:
    """The text of a workspace's own settings; None if it has none. Raises UsageError if they are not
    valid."""
    path = root / OWN_NAME
    if is_missing(path):
        return None
    data = read_bytes(path, f"There is no {OWN_NAME} in {root}.")
    _parsed(data, OWN_NAME, own=False)
    return data


def _parsed(data: bytes, name: str, *, own: bool = True) -> Config:
    from quoth.agent.config.reading import read_config  # imported here: few users have such a file

    try:
        return read_config(data.decode("utf-8-sig"), name, own=own)
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text.") from None


def over(user: Config, own: Config) -> Config:
    """The user's settings, overridden by those of the workspace or of one agent; budgets only get tighter."""
    said = {one.name: getattr(own, one.name) for one in fields(Config) if getattr(own, one.name) is not None}
    both = {**user.budget, **own.budget}
    budget = {
        name: min(one.get(name, value) for one in (user.budget, own.budget)) for name, value in both.items()
    }
    return replace(
        user,
        **said
        | {
            "budget": budget,
            "daily": user.daily + own.daily,
            "providers": user.providers,
            "after": user.after,
            "shell": user.shell,
        },
    )
