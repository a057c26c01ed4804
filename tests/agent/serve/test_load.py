"""``quoth serve`` under load: tests/vocabulary/serve_load.py in short forms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import serve_load
from serving import Served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_load.load_server(tmp_path_factory.mktemp("load")) as found:
        yield found


async def test_chats_of_two_clients_at_once_keep_apart(server: Served) -> None:
    assert await serve_load.chats(server, 4, 3) == ""


async def test_readers_that_do_not_read_hold_up_nobody(server: Served) -> None:
    assert await serve_load.slow_readers(server, 2, 2) == ""


async def test_no_more_calls_than_the_quota_pass_at_once(server: Served) -> None:
    assert await serve_load.limited_calls(server, 20) == ""


async def test_a_body_over_the_bound_is_not_kept(server: Served) -> None:
    assert await serve_load.large_bodies(server, 30, 1) == ""
