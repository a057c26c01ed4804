"""The table that is rebuilt from a catalogue: it stands beside the tools that are here, and keeps itself up
to date."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from far_tools import FarTools, fruit
from sentences import (
    AND_THE_KEY_HERE_IS,
    CANNOT_BE_USED,
    DID_YOU_MEAN,
    IT_IS_SIGNED_WITH_THE,
    NO_SERVER_ANSWERS_THERE,
    THE_REDIS_AT,
    THERE_IS_NO_TOOL,
)
from servers import redis_server
from words import complaint, gateway, table_of, tool

from quoth.tools.catalog.connection import redis_url
from quoth.tools.catalog.payload import new_key
from quoth.tools.catalog.remote_table import LiveCatalog, RemoteToolTable, merged
from quoth.tools.errors import DuplicateToolError, ServerError, UsageError
from quoth.tools.registry.table import ToolTable


def watching(catalog: LiveCatalog, until: Callable[[], bool], do: Callable[[], Any]) -> None:
    """Listen to a catalogue, do something elsewhere, and listen on until it has come of it."""

    async def go() -> None:
        await catalog.newest()
        await asyncio.to_thread(do)
        async with asyncio.timeout(10):
            while not until():
                await asyncio.sleep(0.005)
        await catalog.aclose()

    asyncio.run(go())


# One table


def test_a_call_of_a_remote_tool_is_delivered_and_its_value_comes_back(redis: str, tmp_path: Path) -> None:
    far = FarTools(redis, fruit())
    result = gateway(*far.catalog.table, workspace=tmp_path).pass_through(
        '(count-fruit :fruit "pears")', user="ann"
    )
    assert (result.status, result.value) == ("ok", 30)
    assert [(str(call.form), call.user) for call in far.calls] == [('(count-fruit :fruit "pears")', "ann")]


def test_what_is_wrong_with_a_call_is_said_before_it_is_delivered(redis: str, tmp_path: Path) -> None:
    far = FarTools(redis, fruit())
    result = gateway(*far.catalog.table, workspace=tmp_path).pass_through("(count-fruit :fruits 1)")
    assert result.status == "invalid"
    assert f"{DID_YOU_MEAN} :fruit?" in result.message
    assert far.calls == []


def test_a_rebuilt_table_has_what_the_live_one_has(redis: str) -> None:
    far = FarTools(
        redis, fruit(allow_repeat=True), tool("pin", params={"code": {"type": str, "secret": True}})
    )
    far.table.permit({"pin": ["ann"]})
    far.publish_again()
    rebuilt = far.catalog.table
    assert (rebuilt.names(), rebuilt.secrets) == (["count-fruit", "pin"], {"code"})
    assert rebuilt.repeat_allowed_tools == {"count-fruit"}
    assert (rebuilt.is_allowed("pin", "ann"), rebuilt.is_allowed("pin", "ben")) == (True, False)
    assert rebuilt.schema_hash == rebuilt.catalog_hash == far.table.schema_hash


# Beside the tools that are here


def test_tools_that_are_here_and_remote_ones_make_one_table(redis: str) -> None:
    far = FarTools(redis, fruit())
    table = merged(table_of(tool("probe")), far.catalog.table)
    assert [(one.name, one.remote) for one in table] == [("count-fruit", far.prefix), ("probe", "")]


def test_a_name_that_both_have_is_refused_unless_one_is_kept_here(redis: str) -> None:
    far = FarTools(redis, fruit(), tool("probe"))
    here = table_of(tool("count-fruit"))
    assert complaint(DuplicateToolError, lambda: merged(here, far.catalog.table)) == (
        f"Both this agent and the catalog {far.prefix} have a tool count-fruit:"
        " --local count-fruit keeps the local one."
    )
    table = merged(here, far.catalog.table, ["Count_Fruit"])
    assert [(one.name, one.remote) for one in table] == [("count-fruit", ""), ("probe", far.prefix)]


def test_what_is_to_be_kept_here_must_be_here() -> None:
    why = complaint(UsageError, lambda: merged(table_of(tool("read-file")), ToolTable(), ["red-file"]))
    assert why == f"{THERE_IS_NO_TOOL} red-file here to keep. Did you mean read-file?"
    why = complaint(UsageError, lambda: merged(table_of(tool("probe")), ToolTable(), ["count-fruit"]))
    assert why == f"{THERE_IS_NO_TOOL} count-fruit here to keep. The tools here are probe."


# Kept up to date


def test_a_newer_catalogue_takes_the_place_of_the_last(redis: str) -> None:
    far = FarTools(redis, fruit())
    catalog = far.catalog
    watching(catalog, lambda: "kind" in str(catalog.table.get("count-fruit").signature()),
             lambda: far.publish(fruit(word="kind")))  # fmt: skip
    assert catalog.table.get("count-fruit").signature() == "(count-fruit :kind str)"


def test_after_a_call_that_was_refused_as_old_the_catalogue_is_read_anew(redis: str) -> None:
    far = FarTools(redis, fruit())
    catalog = far.catalog
    far.publish(fruit(word="kind"))

    async def go() -> list[str]:
        catalog.watch = lambda: None  # type: ignore[method-assign]  # nobody listens: the call alone tells
        before = await catalog.newest()
        result = await gateway(*before).enter('(count-fruit :fruit "pears")')
        assert (result.status, result.message) == ("error", "The tools have changed.")
        return [
            before.get("count-fruit").signature(),
            (await catalog.newest()).get("count-fruit").signature(),
        ]

    assert asyncio.run(go()) == ["(count-fruit :fruit str)", "(count-fruit :kind str)"]


def test_where_the_server_is_gone_the_last_table_stays_and_it_is_said_why() -> None:
    with redis_server() as url:
        far = FarTools(url, fruit())
        catalog = far.catalog
    watching(catalog, lambda: bool(catalog.trouble), lambda: None)
    assert catalog.table.names() == ["count-fruit"]
    assert catalog.trouble == f"{THE_REDIS_AT} {url} {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}."


def test_a_catalogue_that_is_not_signed_with_the_key_changes_nothing(redis: str, tmp_path: Path) -> None:
    far = FarTools(redis, fruit())
    catalog = far.catalog
    forger = new_key(tmp_path / "other.key")
    watching(catalog, lambda: bool(catalog.trouble), lambda: far.publish(tool("steal"), key=forger))
    assert catalog.table.names() == ["count-fruit"]
    assert catalog.trouble.endswith(
        f"{IT_IS_SIGNED_WITH_THE} {forger.name}, {AND_THE_KEY_HERE_IS} {far.key.name}."
    )


# At the start


def test_without_a_catalogue_or_a_server_it_is_said_what_is_missing(redis: str, tmp_path: Path) -> None:
    key = new_key(tmp_path / "k")

    def opened(url: str) -> Callable[[], Awaitable[RemoteToolTable]]:
        load = RemoteToolTable.load(redis_url(url, typed=False), key, "nobody", None)  # type: ignore[arg-type]
        return lambda: asyncio.run(load)

    assert complaint(UsageError, opened(redis)) == (
        f"No worker has published tools at {redis} under the prefix nobody. Start one: quoth worker"
        " --tools FILE --redis URL"
    )
    nowhere = f"unix://{tmp_path}/none"
    assert complaint(ServerError, opened(nowhere)) == (
        f"{THE_REDIS_AT} {nowhere} {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}."
    )
