"""The store in Redis that the manual shows how to write: it runs on a real Redis and is what tools expect."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from memory import done
from pages import tangled
from redis import Redis

from quoth import Agent, Services
from quoth.agent.testing import memory_conforms

CODE = tangled("memory", "redis_memory.py")


def make_on(url: str) -> Any:
    """Makes the store of the manual for an agent."""
    found: dict[str, Any] = {}
    exec(compile(CODE, "redis_memory.py", "exec"), found)
    return lambda agent_id, **options: found["RedisMemoryStore"](
        Redis.from_url(url, decode_responses=True), agent_id, **options
    )


def test_the_store_of_the_manual_conforms(redis: str) -> None:
    memory_conforms(make_on(redis))


def test_two_processes_that_append_to_it_lose_no_line(redis: str) -> None:
    store = make_on(redis)("two")
    done(store.create_block("log"))
    children = []
    for who in ("one", "two"):
        if not (child := os.fork()):
            try:
                mine = make_on(redis)("two")
                for number in range(50):
                    done(mine.append_to_block("log", f"{who} {number}"))
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    lines = done(store.get_block("log")).text.split("\n")
    for who in ("one", "two"):
        assert [line for line in lines if line.startswith(who)] == [f"{who} {n}" for n in range(50)]


def test_an_agent_remembers_in_it(redis: str, tmp_path: Path) -> None:
    store = make_on(redis)("agent")
    with Agent(workspace=tmp_path, model="scripted:none", services=Services(memory=store)) as agent:
        result = agent.call('(block :operation "append" :label "preferences" :content "Dark mode.")')
    assert result.status == "ok", result.message
    assert done(store.get_block("preferences")).text == "Dark mode."
