"""Replay: what a session was is what the loop makes of it now, or the difference is shown; and nothing is done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from words import Agent, Spy, complaint, files, lines, quoth, sandboxes, scripted, threads, tool, wait_until

from agent.agent import AsyncAgent
from agent.replay import Difference, Replay, session_in_file
from agent.run import RunLimits
from agent.testing import replays
from neuro.backends.base import ModelError
from neuro.backends.scripted import ScriptedBackend
from tools.audit import StoreAudit
from tools.consent import Decision
from tools.context import ToolContext
from tools.errors import UsageError
from tools.store import Store, store_path
from tools.table import CognitiveTool
from tools.transcript import Transcript


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """Every test here leaves as many threads and sandboxes as it found."""
    before = threads(), sandboxes()
    yield
    wait_until(lambda: (threads(), sandboxes()) == before, 10)


class Shop:
    """A workspace with tools whose bodies count, and a session s of ann's in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stock: Any = "3 apples"
        self.did: list[str] = []

    def look(self) -> Any:
        self.did.append("look")
        return self.stock

    def sell(self, fruit: str, ctx: ToolContext) -> str:
        self.did.append(f"sell {fruit}")
        ctx.effect(f"sold:{fruit}")
        return f"sold {fruit}"

    def tools(self, about: str = "Look at the stock.", **sell: Any) -> list[CognitiveTool]:
        params = sell or {"fruit": {"type": str, "default": "plum"}}
        pin = {"pin": {"type": str, "secret": True}}
        made = [
            tool("look", self.look, effects=["reads"]),
            tool("sell", self.sell, params=params, effects=["memory"]),
            tool("unlock", lambda pin: "open", params=pin),
        ]
        return [described(made[0], about), *made[1:]]

    def agent(self, *replies: Any, **options: Any) -> Agent:
        model = replies[0] if replies and callable(replies[0]) else None
        given = {
            "session": "s",
            "user": "ann",
            "tools": self.tools(),
            "model": ScriptedBackend(model) if model else scripted(*replies),
            "consent": "yes",
            **options,
        }
        return Agent(workspace=self.folder, **given)

    def runs(self, *replies: Any, task: str = "Do it.", **options: Any) -> None:
        with self.agent(*replies, **options) as it:
            it.run(task)

    def replayed(self, live_tools: bool = False, **options: Any) -> Replay:
        """A replay by an agent whose model cannot be opened, and that no body ran for without leave."""
        before = list(self.did)
        with self.agent(**{"model": "ollama:nobody", "base_url": "http://127.0.0.1:9", **options}) as it:
            found = it.replay("s", live_tools=live_tools)
        assert live_tools or self.did == before
        return found

    def exported(self) -> str:
        """The session as a file holds it."""
        store = Store(store_path(self.folder))
        events = [event.shown for event in Transcript(lambda: store).events("s")]
        store.close()
        return lines('(transcript :format 1 :session "s")', *events)

    def kept(self) -> tuple[list[str], int]:
        """All that the store has of the session, and how many audit rows there are."""
        store = Store(store_path(self.folder))
        found = [event.digest for event in Transcript(lambda: store).events("s")]
        rows = len(StoreAudit(lambda: store).rows())
        store.close()
        return found, rows


def described(made: CognitiveTool, about: str) -> CognitiveTool:
    import dataclasses

    return dataclasses.replace(made, description=about)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


# What is as recorded


def simple(shop: Shop) -> None:
    shop.runs("(look)", '(sell "plum") (eval (+ 1 2))', "Sold.")


def talk(shop: Shop) -> None:
    with shop.agent("(look)", "Three.", "(sell)", "Sold.") as it:
        it.say("What is there?")
        it.say("Sell one.")
    with shop.agent("(look)", "None.") as it:
        it._wait(it._agent.follow("And now?"))


def unreadable(shop: Shop) -> None:
    shop.runs("(look", "(look) (nothing-such)", "", "Three.")


def stuck(shop: Shop) -> None:
    shop.runs(*["(look)"] * 9)


def too_long(shop: Shop) -> None:
    shop.runs("(look)", "(sell)", limits=RunLimits(steps=2))


def model_down(shop: Shop) -> None:
    def reply(messages: Any) -> str:
        if len(messages) > 3:
            raise ModelError("The model is down.")
        return "(look)"

    shop.runs(reply)


def model_up_again(shop: Shop) -> None:
    model_down(shop)
    with shop.agent("(sell)", "Sold.") as it:
        it.resume()


def asked(shop: Shop) -> None:
    shop.runs("(look) (sell) (look)", consent=None)


def approved(shop: Shop) -> None:
    asked(shop)
    with shop.agent("(look)", "Sold.", consent=None) as it:
        it.broker.decide(it.broker.requests()[0].id, Decision("once", "ann"))
        it._agent._changed = "The tool look has changed."
        it.resume()


def native(shop: Shop) -> None:
    call = {"name": "look", "arguments": {}}
    shop.runs({"tool_calls": [call, {"name": "sell", "arguments": '{"fruit":'}]}, "Three.", dialect="native")


def program(shop: Shop) -> None:
    said = {"tool_calls": [{"name": "run", "arguments": {"program": "(look) ; see\n(sell)"}}]}
    shop.runs(said, "Three.", dialect="run")


def searched(shop: Shop) -> None:
    shop.runs("(look)", "Three.", belt="search")


def secret(shop: Shop) -> None:
    shop.runs('(unlock "hunter22")', '(unlock :pin "hunter22")', "Open.", task="Unlock with hunter22.")


def interrupted(shop: Shop) -> None:
    def stop(event: str, data: Any) -> None:
        if event == "result":
            it.interrupt()

    with shop.agent("(look) (sell)", "Three.", listener=stop) as it:
        it.run("Do it.")


def by_hand(shop: Shop) -> None:
    with shop.agent() as it:
        it.call("(look)")
        it.eval("(sell)")


def sub_agent(shop: Shop) -> None:
    shop.runs('(cognitive-loop "Look.")', "(look)", "Three.", "It says three.")


def two_tables(shop: Shop) -> None:
    shop.runs("(look)", "Three.", dialect="plist")
    shop.runs("(look)", "Three.", dialect="json")


# Each session with the numbers of its runs, requests and calls.
SESSIONS: dict[Callable[[Shop], None], tuple[int, int, int]] = {
    simple: (1, 3, 3),
    talk: (3, 6, 3),
    unreadable: (1, 4, 1),
    stuck: (1, 4, 5),
    too_long: (1, 2, 2),
    model_down: (1, 2, 1),
    model_up_again: (1, 3, 2),
    asked: (1, 1, 3),
    approved: (1, 3, 4),
    native: (1, 2, 1),
    program: (1, 2, 1),
    searched: (1, 2, 1),
    secret: (1, 3, 2),
    interrupted: (1, 1, 2),
    by_hand: (0, 0, 0),
    sub_agent: (1, 2, 1),
}
OPTIONS: dict[Callable[[Shop], None], dict[str, Any]] = {
    native: {"dialect": "native"},
    program: {"dialect": "run"},
    searched: {"belt": "search"},
}


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_a_session_is_as_recorded(shop: Shop, session: Callable[[Shop], None]) -> None:
    session(shop)
    before = shop.kept()
    found = shop.replayed(**OPTIONS.get(session, {}))
    assert found.diff == ""
    assert found.same
    assert (found.runs, found.requests, found.calls) == SESSIONS[session]
    assert shop.kept() == before
    file = shop.folder / "s.hy"
    file.write_text(shop.exported())
    kept = replays(file, tools=shop.tools(), workspace=shop.folder, **OPTIONS.get(session, {}))
    assert str(kept) == str(found)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_a_session_that_was_broken_off_anywhere_is_as_far_as_it_goes(
    shop: Shop, session: Callable[[Shop], None]
) -> None:
    session(shop)
    header, *events = shop.exported().splitlines()
    begun = next((n for n, line in enumerate(events) if line.startswith("(stimulus")), len(events))
    for end in range(begun + 1, len(events)):
        (shop.folder / "s.hy").write_text(lines(header, *events[:end]))
        replays(shop.folder / "s.hy", tools=shop.tools(), **OPTIONS.get(session, {}))
