"""Secrets in a file that only its owner may read."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from quoth.tools.storage import secrets


@pytest.fixture(autouse=True)
def without_a_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_keyring", lambda: None)


def test_secrets_that_are_stored_at_once_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "own/logins"
    names = [f"server-{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert [*pool.map(lambda name: secrets.store_secret(name, f"of {name}", path), names)] == [
            str(path)
        ] * 40
        assert secrets.in_file(path) == {name: f"of {name}" for name in names}
        assert [*pool.map(lambda name: secrets.forget_secret(name, path), names[1:])] == [[str(path)]] * 39
    assert secrets.in_file(path) == {"server-0": "of server-0"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secrets.forget_secret("server-1", path) == []
