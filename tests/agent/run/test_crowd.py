"""A crowd of agents makes Python's search for garbage seldom, once a process; what a program set stays."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from weakref import WeakSet, ref

import pytest
from words import agent

from quoth.agent.client import AsyncAgent
from quoth.agent.run import crowd
from quoth.neuro.backends.select import ScriptedBackend

Opens = Callable[[int], None]
PYTHONS = (700, 10, 10)
SELDOM = (700, 10, 100)


@pytest.fixture(autouse=True)
def pythons_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = gc.get_threshold()
    gc.freeze()  # a search over all that the tests have made takes seconds
    monkeypatch.setattr(crowd, "CROWD", 3)
    monkeypatch.setattr(crowd, "_hosts", WeakSet())
    crowd._decide.cache_clear()
    gc.set_threshold(*PYTHONS)
    yield
    gc.set_threshold(*before)
    crowd._decide.cache_clear()


@pytest.fixture
def with_agents(tmp_path: Path) -> Opens:
    def opened(number: int) -> None:
        with ExitStack() as open_agents:
            for _ in range(number):
                open_agents.enter_context(agent(tmp_path))

    return opened


def test_few_agents_leave_the_collector_alone(with_agents: Opens) -> None:
    for _ in range(3):
        with_agents(1)  # one after the other is no crowd
        gc.collect()
    with_agents(2)
    assert gc.get_threshold() == PYTHONS


def test_a_crowd_makes_full_searches_seldom(with_agents: Opens) -> None:
    with_agents(3)
    assert gc.get_threshold() == SELDOM


def test_closed_agents_are_no_crowd(with_agents: Opens) -> None:
    gc.disable()
    try:
        for _ in range(5):
            with_agents(1)
        assert len(crowd._hosts) == 0
    finally:
        gc.enable()


async def test_a_closed_agent_frees_its_model_without_a_search(tmp_path: Path) -> None:
    """In a crowd a search is seldom: the models of thousands of agents were kept until then."""
    model = ScriptedBackend(["Done."])
    kept = ref(model)
    gc.disable()
    try:
        async with AsyncAgent(workspace=tmp_path, model=model) as one:
            await one.run("Look.")
        del one, model
        assert kept() is None
    finally:
        gc.enable()


def test_it_is_decided_once(with_agents: Opens) -> None:
    with_agents(3)
    gc.set_threshold(*PYTHONS)
    with_agents(4)
    assert gc.get_threshold() == PYTHONS


@pytest.mark.parametrize("thresholds", [(700, 10, 50), (700, 10, 5), (50_000, 10, 10), (0, 10, 10)])
def test_thresholds_of_the_program_stay(thresholds: tuple[int, int, int], with_agents: Opens) -> None:
    gc.set_threshold(*thresholds)
    with_agents(3)
    assert gc.get_threshold() == thresholds


def test_a_search_that_the_program_has_switched_off_stays_off(with_agents: Opens) -> None:
    gc.disable()
    try:
        with_agents(3)
        assert (gc.isenabled(), gc.get_threshold()) == (False, PYTHONS)
    finally:
        gc.enable()
