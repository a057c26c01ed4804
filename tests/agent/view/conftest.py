"""What the tests of the pages share: the server of a workspace, and an agent of the user who runs it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from viewing import Viewed, viewed
from words import agent, files

from quoth import Agent


@pytest.fixture
def view(tmp_path: Path) -> Viewed:
    return viewed(files(tmp_path / "shop", {"a.txt": "one\ntwo\n"}))


@pytest.fixture
def ann(view: Viewed) -> Iterator[Agent]:
    with agent(view.folder) as found:
        yield found
