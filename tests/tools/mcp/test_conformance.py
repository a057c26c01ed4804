"""The client half of the conformance suite: all that two revisions of the protocol require, without a list of
known failures. Runs on loopback only."""

from __future__ import annotations

from pathlib import Path

import npm
import pytest

if npm.IS_ASKED:
    from mcp_conformance import not_required, passed, run_suite

    # The servers of these scenarios must be refused: they are somebody else, or never satisfied.
    REFUSED = {
        "2025-11-25": {"auth/scope-retry-limit"},
        "2026-07-28": {
            "auth/scope-retry-limit",
            "auth/resource-mismatch",
            "auth/iss-supported-missing",
            "auth/iss-wrong-issuer",
            "auth/iss-unexpected",
            "auth/iss-normalized",
            "auth/metadata-issuer-mismatch",
        },
    }

    @pytest.mark.parametrize(("revision", "scenarios"), [("2025-11-25", 18), ("2026-07-28", 32)])
    async def test_the_client_conforms(revision: str, scenarios: int, tmp_path: Path) -> None:
        code, output, refusals = await run_suite(revision, tmp_path)
        summary = output.partition("=== SUITE SUMMARY ===")[2]
        assert code == 0, summary
        assert refusals.keys() == REFUSED[revision], refusals
        extensions = not_required(revision)
        assert len(passed(output) - extensions) == scenarios, summary
