"""Secrets of a person: in the system's keyring if the extra is installed, otherwise in a file that only its
owner may read, one line each: ``NAME=SECRET``. No secret is ever shown.

A keyring may wait for a person who unlocks it: it is asked in a thread, with a deadline.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import private_folder

if TYPE_CHECKING:
    from concurrent.futures import Future

SERVICE = "quoth"  # the service in the keyring
LONGEST = 1_000_000  # maximum bytes of the file
KEYRING_SECONDS = 30.0  # for a person who unlocks it
T = TypeVar("T")


async def beside_loop(work: Callable[[], T]) -> T:
    """The result of work that may ask the keyring, while the event loop does other work."""
    import asyncio  # here: most commands need no key

    return await asyncio.wrap_future(_in_thread(work))


def store_secret(name: str, secret: str, path: Path) -> str:
    """Store a secret. Returns its place. Raises UsageError."""
    if (ring := _keyring()) is not None:
        with suppress(ring.errors.KeyringError):  # missing or locked
            _answer(lambda: ring.set_password(SERVICE, name, secret))
            _change(path, name)
            return "the keyring"
    _change(path, name, secret)
    return str(path)


def forget_secret(name: str, path: Path, otherwise: str = "") -> list[str]:
    """Remove a secret from all places. Returns these places. Raises UsageError, as ``in_keyring``."""
    places = []
    if (ring := _keyring()) is not None and in_keyring(name, otherwise):
        _answer(lambda: ring.delete_password(SERVICE, name))
        places.append("the keyring")
    if _change(path, name):
        places.append(str(path))
    return places


def in_keyring(name: str, otherwise: str = "", *, needed: bool = True) -> str:
    """A secret in the keyring; empty if there is none. A locked keyring is a UsageError, which ends with
    ``otherwise``, if the secret is ``needed``; a keyring that does not answer is one in any case."""
    ring = _keyring()
    if ring is None:
        return ""
    try:
        return _answer(lambda: ring.get_password(SERVICE, name)) or ""
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


def _in_thread(work: Callable[[], T]) -> Future[T]:
    """The result of work in a thread for which the end of the process does not wait."""
    from concurrent.futures import Future  # here: most commands need no key

    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # setting an unwanted result is then allowed

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, name="quoth-secrets", daemon=True).start()
    return done


class _Silence:
    """The question that the keyring has not answered in time; until it does, it is asked nothing else."""

    question: Future[Any] | None = None


def _answer(ask: Callable[[], T]) -> T:
    """The keyring's answer. Raises its errors, and UsageError if there is none in KEYRING_SECONDS."""
    if _Silence.question is None or _Silence.question.done():
        asked = _in_thread(ask)
        try:
            return asked.result(KEYRING_SECONDS)
        except TimeoutError:
            _Silence.question = asked
    raise UsageError(f"The keyring did not answer within {KEYRING_SECONDS:g} s; unlock it, and try again.")


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
