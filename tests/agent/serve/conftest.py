"""One server for the tests of a module: its MODEL gives the replies, and OPTIONS are those of the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Served, scripted
from words import files


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the server, with the model and the FILES of the module."""
    own = {"model.hy": request.module.MODEL, **getattr(request.module, "FILES", {})}
    return files(tmp_path_factory.mktemp("served") / "shop", own)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, folder: Path) -> Iterator[Served]:
    with scripted(folder, *getattr(request.module, "OPTIONS", ())) as found:
        yield found
