"""A server on this machine that pages are fetched from, by names that the test says where they lead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fetching import PAGE
from loopback import Server, loopback, status

from quoth.tools.web import request


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(status(200, PAGE, kind="text/html")) as server:
        yield server


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The addresses of names; each may be a list of lists, one for each time that somebody asks."""
    known: dict[str, list[str]] = {}

    async def look_up(host: str, port: int) -> list[str]:
        if host not in known:
            raise OSError(f"{host} is not known")
        return known[host]

    monkeypatch.setattr(request, "look_up", look_up)
    return known
