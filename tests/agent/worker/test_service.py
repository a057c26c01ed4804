"""The service around a worker: in which order it does things."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest
from words import files

from quoth.agent.worker.assembly import Files, Reloader
from quoth.agent.worker.service import Service
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.catalog.connection import redis_url
from quoth.tools.catalog.payload import new_key
from quoth.tools.door.door import Door

SHOP = """(require quoth [def-cognitive-tool])
(def-cognitive-tool count-fruit "Count." :parameters [fruit {:type str}] :effects [:reads] :body 30)
"""


async def test_what_is_new_is_published_before_the_worker_calls_with_it(
    tmp_path: Path, redis: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else callers who are told of new tools would read the old catalogue again."""
    files(tmp_path, {"shop.hy": SHOP})
    offers = Reloader(Files([str(tmp_path / "shop.hy")], tmp_path).offer, [tmp_path / "shop.hy"])
    context, url, key = (
        ToolContext(Workspace(tmp_path)),
        redis_url(redis, typed=False),
        new_key(state / "key"),
    )
    service = Service(
        offers, lambda offer: Door(offer.table), context, (url, key, "order"), Mock(), takeover=1
    )
    files(tmp_path, {"shop.hy": SHOP.replace("fruit", "kind")})
    worker, called_with = service._worker, []

    async def publish() -> None:
        called_with.append(worker.door.table.schema_hash)

    monkeypatch.setattr(service, "_publish", publish)
    before = worker.door.table.schema_hash
    await service._reload(asked=True)
    assert called_with == [before] != [worker.door.table.schema_hash]
