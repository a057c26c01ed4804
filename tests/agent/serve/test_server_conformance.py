"""The server half of the conformance suite: all that two revisions of the protocol require, without a list of
known failures and without a warning. Runs on loopback only."""

from __future__ import annotations

from pathlib import Path

import npm
import pytest

if npm.IS_ASKED:
    from mcp_conformance import examine, not_required, passed
    from mcp_suite_server import suite_server

    @pytest.mark.parametrize(("revision", "scenarios"), [("2025-11-25", 30), ("2026-07-28", 37)])
    async def test_the_server_conforms(revision: str, scenarios: int, tmp_path: Path) -> None:
        async with suite_server(tmp_path) as url:
            code, output, others = await examine(url, revision, tmp_path)
        assert code == 0, output
        assert not others, output
        assert len(passed(output) - not_required(revision)) == scenarios, output
