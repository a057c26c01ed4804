"""A keyring that waits for a person stops only what needs its key, not the event loop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from quoth.agent.acp.server import AcpServer
from quoth.agent.client import AsyncAgent
from quoth.agent.doubles import FakeModel
from quoth.agent.run.answers import model_answer
from quoth.agent.terminal.model_list import specs_of
from quoth.tools.storage.database import existing_store

SPEC = "openai:gpt-5-mini"
WORK: dict[str, Callable[[AsyncAgent], Coroutine[Any, Any, Any]]] = {
    "run": lambda agent: agent.run("Hello."),
    "say": lambda agent: agent.say("Hello."),
    "follow": lambda agent: agent.follow("Hello."),
    "model": lambda agent: model_answer(agent.runs, ""),
    "another model": lambda agent: model_answer(agent.runs, "groq:openai/gpt-oss-20b"),
    "editor": lambda agent: AcpServer(lambda *_: agent, existing_store)._require_model(agent),
    "resume": lambda agent: agent.resume(),
    "list": lambda agent: specs_of(agent.config),
}


class Asked(Exception):
    """The keyring was asked in another thread."""


@pytest.mark.parametrize("name", WORK)
async def test_a_keyring_is_asked_beside_the_event_loop(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop_thread, threads = threading.get_ident(), set[int]()

    def in_keyring(*_: Any, **__: Any) -> str:
        threads.add(threading.get_ident())
        raise Asked

    waits = FakeModel('(write-file :path "a.txt" :content "x")')
    async with AsyncAgent(workspace=tmp_path, session="s", model=waits) as agent:
        assert (await agent.run("Write it.")).status == "pending"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr("quoth.neuro.backends.providers.in_keyring", in_keyring)
    async with AsyncAgent(workspace=tmp_path, session="s", model=SPEC) as agent:
        with pytest.raises(Asked):
            await WORK[name](agent)
    assert len(threads - {loop_thread}) == len(threads) == 1
