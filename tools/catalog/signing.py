"""The key that callers and workers share, and the signatures made with it.

Whoever can write to Redis but has no key can neither offer a tool, nor make a call, nor answer one. Knows
bytes and one file; it must not know what is signed.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import new_file
from quoth.tools.storage.paths import state_dir

KEY_BYTES = 32
VARIABLE = "QUOTH_CATALOG_KEY"  # the path of the key file


@dataclass(frozen=True)
class Key:
    """A secret of KEY_BYTES bytes, which is never shown."""

    secret: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """8 hex digits that tell one key from another, and nothing of it."""
        return hmac.new(self.secret, b"name", sha256).hexdigest()[:8]

    def sign(self, kind: str, data: bytes) -> bytes:
        """The HMAC-SHA256 (RFC 2104) of data, as data of this kind: it does not fit the same bytes as
        another kind."""
        return hmac.new(self.secret, kind.encode() + b"\0" + data, sha256).digest()

    def fits(self, kind: str, data: bytes, signature: bytes) -> bool:
        """Whether a signature was made with this key, for this data and kind. Takes the same time in any
        case."""
        return hmac.compare_digest(self.sign(kind, data), signature)


def key_path(given: str | Path | None = None) -> Path:
    """The file of the key: the one given, or that of QUOTH_CATALOG_KEY, or ``catalog.key`` beside the
    stores."""
    return Path(given or os.environ.get(VARIABLE) or state_dir() / "catalog.key").expanduser()


def kept_key(given: str | Path | None) -> dict[str, str]:
    """The file of the key, if one was given, for the opening of a session."""
    return {"key-file": str(key_path(given).resolve())} if given else {}


def read_key(path: Path) -> Key:
    """Read a key. Raises UsageError where there is none, or where others may read it."""
    given = path.parent in (Path("/dev/fd"), Path("/proc/self/fd"))  # by a shell, which writes to it
    try:
        if not given and not stat.S_ISREG(path.stat().st_mode):  # a fifo would be waited for
            raise UsageError(f"The key {path} is not a regular file.")
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(4096).strip()
    except FileNotFoundError:
        raise UsageError(
            f"There is no key at {path}; make one with quoth catalog key new, or copy it from the machine"
            " that has it."
        ) from None
    except OSError as error:
        raise UsageError(f"The key {path} cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise UsageError(f"Others may read or write the key {path}; type chmod 600 {path}.")
    try:
        secret = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        secret = b""
    if len(secret) != KEY_BYTES:
        raise UsageError(f"{path} is no key: it holds {KEY_BYTES * 2} hex digits.")
    return Key(secret)


def new_key(path: Path) -> Key:
    """Make a key and write it to a new file, which only its owner may read. Raises UsageError for a file that
    is there."""
    key = Key(secrets.token_bytes(KEY_BYTES))
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        new_file(path, [f"{key.secret.hex()}\n".encode()], 0o600)
    except FileExistsError:
        raise UsageError(f"There is a key at {path} already; it is not overwritten.") from None
    except OSError as error:
        raise UsageError(f"The key {path} cannot be written: {error.strerror}.") from None
    return key
