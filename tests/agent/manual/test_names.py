"""The page of terms says which name of another registry is which of quoth's; each of ours is there."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
from pages import page

import quoth

ROWS = re.findall(
    r"^\| ([=~].*?) +\| (.*?) *\|$", page("terms").partition("* Names of other")[2], re.MULTILINE
)
ELSEWHERE = {"quoth.neuro": ["prompt_block"], "quoth.testing": ["tool_context"]}
OF_A_CONTEXT = {"knowledge", "say", "effect", "audit", "permission_broker"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.split("[=~]", row[0])[1])
def test_each_name_leads_to_one_of_ours(row: tuple[str, str]) -> None:
    there, here = row
    same = re.findall(r"=([\w*-]+)=", there) if here.startswith("the same names") else []
    for name in same:
        home = quoth if "quoth.tools.catalog" not in here else import_module("quoth.tools.catalog")
        assert getattr(home, name) is not None
    for name in re.findall(r"ctx\.(\w+)", here):
        assert name in OF_A_CONTEXT
        assert hasattr(quoth.ToolContext, name) or name in quoth.ToolContext.__dataclass_fields__
    for name in re.findall(r"=@?([A-Z]\w+|\w+_\w+)(?:=|\(|\.|: )", here):
        known = [quoth, quoth.ToolTable, import_module("quoth.neuro"), import_module("quoth.testing")]
        options = {
            "True",
            "daily_limit",
            "follow_up",
            "user_message",
            "chat_id",
            "side_effects",
            "tool_names",
        }
        assert name in options or any(hasattr(one, name) for one in known), name


def test_every_row_was_read() -> None:
    assert len(ROWS) == 14
