"""Workers of these tests look more often, so that no test waits for them."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.remote.broker.BLOCK_SECONDS", 0.03)
    monkeypatch.setattr("quoth.tools.remote.worker.LOOK_SECONDS", 0.03)
