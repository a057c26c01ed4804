"""What a model had said when a person stopped it is kept in the log and on the screen; the run goes on as if
it had not begun that reply, and is replayed so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import WAS_NOT_READ
from words import TalkingFunction, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.session.render import as_text
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages
from quoth.tools.registry.table import CognitiveTool

BEGUN = 'First, this.\n\nThen I wri(te) and call:\n\n(note :text "a" :key "hush'
KEPT = "First, this.\n\nThen I wri(te) and call:"


class Stuck(TalkingFunction):
    """A model that says ``begun`` and then nothing more; the second time it answers."""

    def __init__(self, begun: str) -> None:
        super().__init__(lambda messages: "Done.")
        self.begun = begun
        self.asked: list[int] = []
        self.silent = asyncio.Event()

    async def complete(
        self, messages: Messages, *, on_text: Callable[[str], None] | None = None, **options: Any
    ) -> Completion:
        self.asked.append(len(messages))
        if len(self.asked) == 1:
            assert on_text is not None
            for char in self.begun:
                on_text(char)
            self.silent.set()
            await asyncio.Event().wait()
        return await super().complete(messages)


def note(*, secret: bool) -> CognitiveTool:
    params = {"text": {"type": str}, "key": {"type": str, "secret": secret}}
    return tool("note", lambda text, key: "noted", params=params)


async def stopped(folder: Path, model: Stuck, *, secret: bool = False) -> tuple[AsyncAgent, list[AgentEvent]]:
    """An agent whose run was stopped when the model fell silent; what its listener heard."""
    heard: list[AgentEvent] = []
    agent = AsyncAgent(workspace=folder, model=model, tools=[note(secret=secret)], on_event=heard.append)
    run = asyncio.ensure_future(agent.run("Do it."))
    await model.silent.wait()
    agent.interrupt()
    assert (await run).status == "interrupted"
    return agent, heard


def log(agent: AsyncAgent) -> str:
    return "\n".join(as_text(list(agent.transcript.events(agent.session)), full=True))


@pytest.mark.parametrize(
    ("begun", "secret", "kept"),
    [
        ("Once upon a ti", True, "Once upon a ti"),
        (BEGUN, False, BEGUN),
        (BEGUN, True, f"{KEPT}\n\n[… a call that {WAS_NOT_READ} …]"),
    ],
    ids=["words", "a call", "a call with a secret"],
)
async def test_what_was_said_so_far_is_in_the_log(
    tmp_path: Path, begun: str, secret: bool, kept: str
) -> None:
    agent, _ = await stopped(tmp_path, Stuck(begun), secret=secret)
    async with agent:
        (event,) = agent.transcript.events(agent.session, kind="interrupt")
        assert event.said == {"text": kept}
        assert "A person interrupted the run. The model's reply so far:" in log(agent)
        assert ("hush" in log(agent)) == (begun == BEGUN and not secret)


async def test_the_person_sees_the_words_that_were_not_complete(tmp_path: Path) -> None:
    agent, heard = await stopped(tmp_path, Stuck("One.\n\nAnd tw"))
    async with agent:
        assert [event.data for event in heard if event.kind == "said"] == ["One.", "And tw"]


async def test_the_model_is_asked_again_and_the_session_replays(tmp_path: Path) -> None:
    model = Stuck("Once upon a ti")
    agent, _ = await stopped(tmp_path, model)
    async with agent:
        (reply,) = await agent.resume()
        assert reply.text == "Done."  # type: ignore[union-attr]
        assert model.asked == [model.asked[0]] * 2
        assert not (await agent.replay()).differences


async def test_where_nothing_was_said_the_event_is_as_it_was(tmp_path: Path) -> None:
    agent, _ = await stopped(tmp_path, Stuck(""))
    async with agent:
        (event,) = agent.transcript.events(agent.session, kind="interrupt")
        assert event.said == {}
