"""Secrets of a person: in the system's keyring if the extra is installed, otherwise in a file that only its
owner may read, one line each: ``NAME=SECRET``. No secret is ever shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import private_folder

SERVICE = "quoth"  # the service in the keyring
LONGEST = 1_000_000  # maximum bytes of the file


def store_secret(name: str, secret: str, path: Path) -> str:
    """Store a secret. Returns its place. Raises UsageError."""
    if (ring := _keyring()) is not None:
        with suppress(ring.errors.KeyringError):  # missing or locked
            ring.set_password(SERVICE, name, secret)
            _change(path, name)
            return "the keyring"
    _change(path, name, secret)
    return str(path)


def forget_secret(name: str, path: Path, otherwise: str = "") -> list[str]:
    """Remove a secret from all places. Returns these places. Raises UsageError, as ``in_keyring``."""
    places = []
    if (ring := _keyring()) is not None and in_keyring(name, otherwise):
        ring.delete_password(SERVICE, name)
        places.append("the keyring")
    if _change(path, name):
        places.append(str(path))
    return places


def in_keyring(name: str, otherwise: str = "", *, needed: bool = True) -> str:
    """A secret in the keyring; empty if there is none. A locked keyring is a UsageError, which ends with
    ``otherwise``, if the secret is ``needed``."""
    ring = _keyring()
    if ring is None:
        return ""
    try:
        return ring.get_password(SERVICE, name) or ""
    except RuntimeError:  # NoKeyringError on a machine without a desktop; or the user has no home
        return ""
    except ring.errors.KeyringError as error:
        if not needed:
            return ""
        raise UsageError(
            f"The keyring cannot be read ({type(error).__name__}); unlock it{otherwise}."
        ) from None


def in_file(path: Path) -> dict[str, str]:
    """The secrets in a file by their names. Raises UsageError."""
    try:
        text = private_text(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"The keys in {path} cannot be read: {error.strerror}.") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, secret = line.partition("=")
        if not equals and line.strip() and not line.startswith("#"):
            raise UsageError(f"{path}:{number}: a line must be VARIABLE=KEY.")
        if equals and not line.startswith("#"):
            found[name.strip()] = secret.strip()
    return found


def private_text(path: Path) -> str:
    """The text of a file that only its owner may read. Raises UsageError for any other file, and OSError."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        data = file.read(LONGEST)
    if mode & 0o077:
        raise UsageError(f"Other users may read the keys in {path}; type: chmod 600 {path}")
    return data.decode(errors="replace")


def _keyring() -> Any:
    """The package keyring, None if it is not installed; loaded only if a secret is needed."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    return keyring


def _change(path: Path, name: str, secret: str = "") -> bool:
    """Write a secret into the file, or remove it; another process that does so waits. Returns whether the
    file was changed."""
    with hold(f"secrets in {path}"):
        kept = in_file(path)
        if not secret and name not in kept:
            return False
        changed = {**kept, name: secret}
        _write(path, {known: value for known, value in changed.items() if value})
        return True


def _write(path: Path, kept: Mapping[str, str]) -> None:
    try:
        private_folder(path.parent)
        replace_file(path, [f"{name}={secret}\n".encode() for name, secret in kept.items()], 0o600)
    except OSError as error:
        raise UsageError(f"The keys cannot be written to {path}: {error.strerror}.") from None
