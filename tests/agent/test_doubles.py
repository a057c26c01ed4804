"""The short form of the harness of second times: a seeded choice of its kills, on each route."""

from __future__ import annotations

from pathlib import Path

import doubles
import pytest


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path / "state"))
    for name, seconds in ((doubles.broker, "BLOCK_SECONDS"), (doubles.worker, "LOOK_SECONDS")):
        monkeypatch.setattr(name, seconds, 0.03)


@pytest.mark.parametrize("at", [6, 8])
@pytest.mark.parametrize("route", doubles.ROUTES)
def test_a_call_whose_redis_lost_it_is_made_once_unless_a_person_says_so(route: str, at: int) -> None:
    count, steps, status = doubles.seen(route, at)
    assert len(steps) >= at  # it was killed
    assert count >= 1
    assert status in ("ok", "done", "ended")


def test_the_harness_finds_a_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubles, "asks_fact", lambda reason: False)
    found = []
    for at in range(4, 12):
        try:
            doubles.seen("call", at)
        except doubles.Doubled as error:
            found.append(str(error))
    assert found
