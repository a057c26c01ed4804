"""Seed 003 to the letter: what a reader of the catalogue calls and names."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from far_tools import FarTools, fruit
from words import gateway

from quoth import RemoteToolRegistry
from quoth.tools.catalog import load_catalog, openai_tool_dict
from quoth.tools.catalog.connection import connected
from quoth.tools.errors import UsageError


def loaded(far: FarTools) -> Any:
    async def load() -> Any:
        async with connected(far.url) as redis:
            return await load_catalog(redis, key=far.key, prefix=far.prefix)

    return asyncio.run(load())


def test_the_reader_of_a_catalogue_has_the_read_surface_of_the_registry(redis: str) -> None:
    far = FarTools(redis, fruit(allow_repeat=True))
    far.table.permit({"count-fruit": ["ann"]})
    far.publish_again()
    payload = loaded(far)
    registry = RemoteToolRegistry(payload)
    assert registry.tool_names == far.table.tool_names == ("count-fruit",)
    assert registry.repeat_allowed_tools == {"count-fruit"}
    assert [registry.is_allowed("count-fruit", user) for user in ("ann", "ben")] == [True, False]
    assert registry.schema_hash == payload["schema_hash"]
    shown = [openai_tool_dict(entry) for entry in registry.entries]
    assert shown == [openai_tool_dict(entry) for entry in payload["tools"]]


def test_the_names_follow_a_tool_that_is_added(redis: str) -> None:
    registry = RemoteToolRegistry(loaded(FarTools(redis, fruit())))
    assert registry.tool_names == ("count-fruit",)
    registry.register(fruit().__class__("probe", "A probe."))
    assert registry.tool_names == ("count-fruit", "probe")


def test_a_tool_that_can_only_be_read_says_how_to_call_it(redis: str) -> None:
    result = gateway(*RemoteToolRegistry(loaded(FarTools(redis, fruit())))).pass_through(
        '(count-fruit :fruit "pears")'
    )
    assert result.status == "error"
    assert "be called from here. " in result.message
    assert "ToolOptions(remote=" in result.message


def test_a_client_that_decodes_answers_is_told_so(redis: str) -> None:
    from redis.asyncio import Redis

    far = FarTools(redis, fruit())

    async def load() -> None:
        async with Redis.from_url(redis, decode_responses=True) as client:
            await load_catalog(client, key=far.key, prefix=far.prefix)

    with pytest.raises(UsageError, match="decode_responses=False"):
        asyncio.run(load())
