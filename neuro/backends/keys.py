"""The keys of providers: from the environment, else the system's keyring, else a file that only its owner
may read.

Knows where keys are kept, and shows none. Must not know who asks for one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quoth.neuro.backends.providers import Provider
from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import keys_path

SERVICE = "quoth"  # under which the keyring has them, by the name of their variable
LONGEST = 100_000  # bytes of the file
LONGEST_KEY = 5_000  # characters


@dataclass(frozen=True)
class ApiKey:
    """A key, empty if there is none; ``source`` says where it was found, for a sentence such as "check …"."""

    secret: str = field(default="", repr=False)
    source: str = ""


NO_KEY = ApiKey()


def key_of(provider: Provider, environ: Mapping[str, str] = os.environ, given: str | None = None) -> ApiKey:
    """The key of a provider, ``given`` or found. Raises UsageError for a key that cannot be used."""
    if given is not None:
        return ApiKey(given, "the key that was given")
    return _from_environment(provider, environ) if is_set(provider, environ) else stored_key(provider)


def first_with_key(providers: Iterable[Provider], environ: Mapping[str, str]) -> Provider | None:
    """The first provider that wants a key and has one; those of the environment come before those stored."""
    wanting = [one for one in providers if one.needs_key]
    found = (one for one in wanting if is_set(one, environ))
    return next(found, None) or next((one for one in wanting if stored_key(one).secret), None)


def stored_key(provider: Provider) -> ApiKey:
    """The key that ``quoth models login`` has stored. Raises UsageError for a place that cannot be read."""
    if not provider.key:
        return NO_KEY
    if secret := _in_keyring(provider):
        return ApiKey(secret, f"{provider.key} in the keyring")
    path = keys_path()
    if secret := _in_file(path).get(provider.key, ""):
        return ApiKey(secret, f"{provider.key} in {path}")
    return NO_KEY


def store_key(provider: Provider, secret: str) -> str:
    """Keep a key for the next time, in the keyring if there is one; returns where. Raises UsageError."""
    secret = secret.strip()
    if not secret:
        raise UsageError("No key was given; nothing is stored.")
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise UsageError("The key holds characters that no key can have; nothing is stored.")
    if len(secret) > LONGEST_KEY:
        raise UsageError(f"No key has more than {LONGEST_KEY:,} characters; nothing is stored.")
    path = keys_path()
    kept = _in_file(path)
    if (ring := _keyring()) is not None:
        with suppress(ring.errors.KeyringError):  # none, or one that is locked
            ring.set_password(SERVICE, provider.key, secret)
            if kept.pop(provider.key, None):
                _write(path, kept)
            return "the keyring"
    _write(path, {**kept, provider.key: secret})
    return str(path)


def forget_key(provider: Provider) -> list[str]:
    """Remove a stored key from wherever it is; returns from where. Raises UsageError."""
    places = []
    if (ring := _keyring()) is not None and _in_keyring(provider):
        ring.delete_password(SERVICE, provider.key)
        places.append("the keyring")
    path = keys_path()
    kept = _in_file(path)
    if kept.pop(provider.key, None):
        _write(path, kept)
        places.append(str(path))
    return places


def is_set(provider: Provider, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment has the key."""
    return bool(provider.key and environ.get(provider.key, "").strip())


def _from_environment(provider: Provider, environ: Mapping[str, str]) -> ApiKey:
    return ApiKey(environ[provider.key].strip(), provider.key)


def _keyring() -> Any:
    """The package keyring, None if it is not installed; it is loaded only where a key is missing."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    return keyring


def _in_keyring(provider: Provider) -> str:
    ring = _keyring()
    if ring is None:
        return ""
    try:
        return ring.get_password(SERVICE, provider.key) or ""
    except RuntimeError:  # NoKeyringError, as on a machine without a desktop; or the user has no home
        return ""
    except ring.errors.KeyringError as error:
        if not provider.needs_key:
            return ""
        raise UsageError(
            f"The keyring cannot be read ({type(error).__name__}); unlock it, or set {provider.key}."
        ) from None


def _in_file(path: Path) -> dict[str, str]:
    """The keys in the file, by the names of their variables: a line each, ``OPENAI_API_KEY=sk-…``."""
    try:
        text = _private(path)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"The keys in {path} cannot be read: {error.strerror}.") from None
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, equals, secret = line.partition("=")
        if not equals and line.strip() and not line.startswith("#"):
            raise UsageError(f"{path}:{number}: a line is the name of a variable, = and the key.")
        if equals and not line.startswith("#"):
            found[name.strip()] = secret.strip()
    return found


def key_in_file(path: Path) -> str:
    """The one key that a file holds. Raises UsageError."""
    try:
        return _private(path).strip()
    except OSError as error:
        raise UsageError(f"The key in {path} cannot be read: {error.strerror}.") from None


def _private(path: Path) -> str:
    """The text of a file that only its owner may read. Raises UsageError for another one."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        data = file.read(LONGEST)
    if mode & 0o077:
        raise UsageError(f"Others may read the keys in {path}; type: chmod 600 {path}")
    return data.decode(errors="replace")


def _write(path: Path, kept: Mapping[str, str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, [f"{name}={secret}\n".encode() for name, secret in kept.items()], 0o600)
    except OSError as error:
        raise UsageError(f"The keys cannot be written to {path}: {error.strerror}.") from None
