"""Keys: from the environment, else the keyring, else a file that only its owner may read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked
from sentences import CANNOT_BE_READ
from words import complaint

from quoth.neuro.backends.providers import (
    PROVIDERS,
    ROWS,
    first_with_key,
    forget_key,
    key_of,
    store_key,
    stored_key,
)
from quoth.tools.errors import UsageError
from quoth.tools.storage.paths import keys_path

OPENAI, OLLAMA = PROVIDERS["openai"], PROVIDERS["ollama"]
SECRET = "sk-very-secret-1234"


class Ring(KeyringBackend):
    """A keyring in memory, which may be locked."""

    priority = 1  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked(f"it is locked, and {SECRET} is in it")
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def ring() -> Any:
    before, ring = keyring.get_keyring(), Ring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture
def file() -> Path:
    path = keys_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"# mine\n\nOPENAI_API_KEY = {SECRET}-file\n")
    path.chmod(0o600)
    return path


def test_the_environment_comes_before_the_keyring_and_that_before_the_file(ring: Ring, file: Path) -> None:
    ring.kept["quoth", "OPENAI_API_KEY"] = f"{SECRET}-ring"
    found = key_of(OPENAI, {"OPENAI_API_KEY": f"{SECRET}-env "})
    assert (found.secret, found.source) == (f"{SECRET}-env", "OPENAI_API_KEY")
    found = key_of(OPENAI, {"OPENAI_API_KEY": " "})
    assert (found.secret, found.source) == (f"{SECRET}-ring", "OPENAI_API_KEY in the keyring")
    ring.kept.clear()
    found = key_of(OPENAI, {})
    assert (found.secret, found.source) == (f"{SECRET}-file", f"OPENAI_API_KEY in {file}")
    file.unlink()
    assert key_of(OPENAI, {}).secret == ""
    assert key_of(OPENAI, {"OPENAI_API_KEY": "k"}, "given").secret == "given"
    assert SECRET not in repr(found)


@pytest.mark.parametrize("missing", ["keyring", "desktop"])
def test_without_a_keyring_the_file_is_used_and_nothing_is_said(
    missing: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    if missing == "keyring":
        monkeypatch.setitem(sys.modules, "keyring", None)
    assert stored_key(OPENAI).secret == ""
    assert store_key(OPENAI, f" {SECRET}\n") == str(keys_path())
    assert keys_path().read_text() == f"OPENAI_API_KEY={SECRET}\n"
    assert keys_path().stat().st_mode & 0o777 == 0o600
    store_key(OLLAMA, "another")
    store_key(OPENAI, "newer")
    assert keys_path().read_text() == "OPENAI_API_KEY=newer\nOLLAMA_API_KEY=another\n"
    assert forget_key(OPENAI) == [str(keys_path())]
    assert forget_key(OPENAI) == []
    assert stored_key(OLLAMA).secret == "another"
    assert capfd.readouterr() == ("", "")


def test_a_key_goes_into_the_keyring_and_out_of_the_file(ring: Ring, file: Path) -> None:
    assert store_key(OPENAI, SECRET) == "the keyring"
    assert ring.kept == {("quoth", "OPENAI_API_KEY"): SECRET}
    assert file.read_text() == ""
    assert forget_key(OPENAI) == ["the keyring"]
    assert ring.kept == {}


def test_providers_of_one_variable_share_a_key(ring: Ring) -> None:
    store_key(PROVIDERS["openai-responses"], SECRET)
    assert stored_key(OPENAI).secret == SECRET


def test_a_locked_keyring_is_told_where_a_key_is_needed(ring: Ring) -> None:
    ring.locked = True
    assert complaint(UsageError, lambda: key_of(OPENAI, {})) == (
        f"The keyring {CANNOT_BE_READ} (KeyringLocked); unlock it, or set OPENAI_API_KEY."
    )
    assert key_of(OLLAMA, {}).secret == ""
    assert store_key(OPENAI, SECRET) == str(keys_path())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_is_refused_with_the_command_to_type(file: Path, mode: int) -> None:
    file.chmod(mode)
    told = complaint(UsageError, lambda: key_of(OPENAI, {}))
    assert told == f"Other users may read the keys in {file}; type: chmod 600 {file}"
    assert complaint(UsageError, lambda: store_key(OPENAI, SECRET)) == told


def test_a_wrong_line_is_named_and_not_shown(file: Path) -> None:
    file.write_text(f"OPENAI_API_KEY=x\n{SECRET}\n")
    told = complaint(UsageError, lambda: key_of(PROVIDERS["groq"], {}))
    assert told == f"{file}:2: a line must be VARIABLE=KEY."


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ("  \n", "The key is empty; nothing was stored."),
        (
            f"{SECRET} {SECRET}",
            "A key has only printable ASCII characters without spaces; nothing was stored.",
        ),
        ("k" * 5001, "A key has at most 5,000 characters; nothing was stored."),
        (f"{SECRET}\x1b[A", "A key has only printable ASCII characters without spaces; nothing was stored."),
    ],
)
def test_what_is_no_key_is_not_stored(typed: str, sentence: str) -> None:
    assert complaint(UsageError, lambda: store_key(OPENAI, typed)) == sentence
    assert not keys_path().exists()


def test_a_key_of_the_environment_chooses_before_one_that_is_stored() -> None:
    store_key(OPENAI, SECRET)
    assert first_with_key(ROWS, {}) is OPENAI
    assert first_with_key(ROWS, {"GROQ_API_KEY": "k"}) is PROVIDERS["groq"]
    forget_key(OPENAI)
    assert first_with_key(ROWS, {"OLLAMA_API_KEY": "k"}) is None
