"""A crowd of agents makes Python's search for garbage seldom, once a process; what a program set stays."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from weakref import WeakSet

import pytest
from words import agent

from quoth.agent.run import crowd

Thresholds = tuple[int, int, int]
Frozen = Callable[[], int]
Opens = Callable[[int], None]
PYTHONS: Thresholds = (700, 10, 10)


@pytest.fixture(autouse=True)
def frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How many objects were frozen in a test. All others are frozen before: a search over them takes
    seconds."""
    gc.freeze()
    before, at_first = gc.get_threshold(), gc.get_freeze_count()

    def since() -> int:
        return max(gc.get_freeze_count() - at_first, 0)

    monkeypatch.setattr(crowd, "gc", SimpleNamespace(**{**vars(gc), "get_freeze_count": since}))
    monkeypatch.setattr(crowd, "CROWD", 3)
    monkeypatch.setattr(crowd, "_hosts", WeakSet())
    crowd._decide.cache_clear()
    gc.set_threshold(*PYTHONS)
    yield since
    gc.set_threshold(*before)
    crowd._decide.cache_clear()


@pytest.fixture
def with_agents(tmp_path: Path) -> Opens:
    def opened(number: int) -> None:
        with ExitStack() as open_agents:
            for _ in range(number):
                open_agents.enter_context(agent(tmp_path))

    return opened


def test_few_agents_leave_the_collector_alone(with_agents: Opens, frozen: Frozen) -> None:
    for _ in range(3):
        with_agents(1)  # one after the other is no crowd
        gc.collect()
    with_agents(2)
    assert (frozen(), gc.get_threshold()) == (0, PYTHONS)


def test_a_crowd_freezes_what_is_loaded_and_searches_seldom(with_agents: Opens, frozen: Frozen) -> None:
    kept = [[number] for number in range(1000)]
    with_agents(3)
    assert frozen() > len(kept)
    assert gc.get_threshold() == (700, 10, 100)


def test_it_is_decided_once(with_agents: Opens, frozen: Frozen) -> None:
    with_agents(3)
    gc.unfreeze()
    gc.set_threshold(*PYTHONS)
    with_agents(4)
    assert gc.get_threshold() == PYTHONS


@pytest.mark.parametrize("thresholds", [(700, 10, 50), (700, 10, 5)])
def test_thresholds_of_the_program_stay(thresholds: Thresholds, with_agents: Opens, frozen: Frozen) -> None:
    gc.set_threshold(*thresholds)
    with_agents(3)
    assert (frozen(), gc.get_threshold()) == (0, thresholds)


def test_a_search_that_the_program_has_switched_off_stays_off(with_agents: Opens, frozen: Frozen) -> None:
    gc.disable()
    try:
        with_agents(3)
        assert (gc.isenabled(), frozen(), gc.get_threshold()) == (False, 0, PYTHONS)
    finally:
        gc.enable()


def test_a_program_that_has_frozen_objects_decides_itself(with_agents: Opens, frozen: Frozen) -> None:
    kept = [[number] for number in range(1000)]
    gc.freeze()
    first = frozen()
    with_agents(3)
    assert 0 < frozen() <= first
    assert gc.get_threshold() == PYTHONS
    assert len(kept) == 1000
