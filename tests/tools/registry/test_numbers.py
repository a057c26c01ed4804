"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "arguments.MAX_FAULTS": 20,
    "code_version.MAX_FILES": 1_000,
    "tool.MAX_NAME": 200,
    "tool.MAX_VALUES": 20_000,
    "tool.MAX_DEPTH": 60,
    "json_type.LARGEST": 2_147_483_648,
    "openai_schema.LONGEST_NAME": 64,
    "tool.CognitiveTool.cooldown": 0,
    "tool.CognitiveTool.daily_limit": 0,
    "tool.CognitiveTool.patience": 0,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.registry", PROMISED) == PROMISED
