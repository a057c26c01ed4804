"""A crowd of agents makes Python's search for garbage seldom, once a process; what a program set stays."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from weakref import WeakSet

import pytest
from words import agent

from quoth.agent.run import crowd

Thresholds = tuple[int, int, int]
PYTHONS: Thresholds = (700, 10, 10)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.unfreeze()
    gc.set_threshold(*PYTHONS)
    monkeypatch.setattr(crowd, "CROWD", 3)
    monkeypatch.setattr(crowd, "_hosts", WeakSet())
    yield
    gc.unfreeze()
    gc.set_threshold(*before)
    if frozen:
        gc.freeze()  # as tests/conftest.py has it


@pytest.fixture
def with_agents(tmp_path: Path) -> Callable[[int], None]:
    def opened(number: int) -> None:
        with ExitStack() as open_agents:
            for _ in range(number):
                open_agents.enter_context(agent(tmp_path))

    return opened


def test_few_agents_leave_the_collector_alone(with_agents: Callable[[int], None]) -> None:
    for _ in range(3):
        with_agents(1)  # one after the other is no crowd
        gc.collect()
    with_agents(2)
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, PYTHONS)


def test_a_crowd_freezes_what_is_loaded_and_searches_seldom(with_agents: Callable[[int], None]) -> None:
    with_agents(3)
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold() == (700, 10, 100)


@pytest.mark.parametrize("thresholds", [(700, 10, 50), (700, 10, 5)])
def test_thresholds_of_the_program_stay(thresholds: Thresholds, with_agents: Callable[[int], None]) -> None:
    gc.set_threshold(*thresholds)
    with_agents(3)
    assert (gc.get_freeze_count(), gc.get_threshold()) == (0, thresholds)


def test_a_search_that_the_program_has_switched_off_stays_off(with_agents: Callable[[int], None]) -> None:
    gc.disable()
    try:
        with_agents(3)
        assert (gc.isenabled(), gc.get_freeze_count(), gc.get_threshold()) == (False, 0, PYTHONS)
    finally:
        gc.enable()


def test_a_program_that_has_frozen_objects_decides_itself(with_agents: Callable[[int], None]) -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with_agents(3)
    assert gc.get_freeze_count() <= frozen
    assert gc.get_threshold() == PYTHONS
