"""Where policy files are.

It imports little, so that whoever only lists tools finds out quickly that there are no rules.
"""

from __future__ import annotations

from pathlib import Path

from quoth.tools.storage.paths import config_dir, is_missing

FILE_NAME = "policy.hy"
STARTUP_NAME = "init.hy"  # what the REPL evaluates when it begins
WORKSPACE_FOLDER = ".quoth"
OWN_NAME = f"{WORKSPACE_FOLDER}/{FILE_NAME}"


def user_policy() -> Path:
    """The user's policy: ``$QUOTH_CONFIG/policy.hy``, or in the platform's configuration folder."""
    return config_dir() / FILE_NAME


def workspace_policy(root: Path) -> Path:
    """The path of the workspace's own policy, which applies once it is trusted."""
    return root / WORKSPACE_FOLDER / FILE_NAME


def policy_files(root: Path, *given: str | Path | None) -> tuple[Path, ...]:
    """The files and folders of all policies, of what is evaluated beside them, and those ``given``, which a
    tool must not write."""
    startup = config_dir() / STARTUP_NAME
    return (user_policy(), startup, root / WORKSPACE_FOLDER, *(Path(file) for file in given if file))


def has_rules(root: Path, given: str | Path | None = None) -> bool:
    """Whether there is a policy file for this workspace; it need not be trusted."""
    return given is not None or not (is_missing(user_policy()) and is_missing(workspace_policy(root)))
