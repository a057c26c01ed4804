"""What a worker offers: the tools of its files alone, to whom its options and rules allow it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentences import (
    DEFINES_NO_FUNCTION_CHECK,
    IS_NOT_A_FOLDER,
    THERE_IS_ALREADY_A_TOOL,
    THERE_IS_NO_FILE,
    THERE_IS_NO_POLICY_FILE,
)
from words import complaint, files, form

from quoth.agent.run.options import PolicyOptions
from quoth.agent.worker.assembly import Files, Offer, door_of
from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.errors import QuothError, ToolError, UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.storage.database import Store

SHOP = """(require quoth [def-cognitive-tool])
(def-cognitive-tool count-fruit "Count." :parameters [fruit {:type str}] :effects [:reads]
  :guard (if (= fruit "durian") (deny "durians are not sold here") True) :body 30)
(def-cognitive-tool sell "Sell a fruit." :parameters [fruit {:type str}] :effects [:writes] :body "sold")
"""


def stall(folder: Path, **more: Any) -> Files:
    files(folder, {"shop.hy": SHOP})
    return Files([str(folder / "shop.hy")], folder, **more)


async def called(offer: Offer, store: Store, text: str, user: str = "ann") -> tuple[str, str]:
    door = door_of(offer, lambda: store)
    call = new_call(form(text), user=user, route="remote")
    result = await door.dispatch(call, ToolContext(Files([], Path(store.path).parent).workspace()))
    return result.status, result.message


def test_it_offers_none_of_the_tools_that_ship(tmp_path: Path) -> None:
    assert stall(tmp_path).offer().table.names() == ["count-fruit", "sell"]


async def test_what_no_rule_of_the_worker_forbids_was_allowed_by_the_caller(
    tmp_path: Path, store: Store
) -> None:
    offer = stall(tmp_path).offer()
    assert await called(offer, store, '(sell :fruit "pears")') == ("ok", "")
    files(tmp_path, {"p.hy": "(careful)"})  # which the caller's side says, for it sees the session
    careful = stall(tmp_path, rules=PolicyOptions(tmp_path / "p.hy")).offer()
    assert await called(careful, store, '(sell :fruit "see pears.example")') == ("ok", "")
    files(tmp_path, {"p.hy": "(ask (sell :fruit (made-up)))"})  # a rule of its own cannot be decided there
    asks = stall(tmp_path, rules=PolicyOptions(tmp_path / "p.hy")).offer()
    assert (await called(asks, store, '(sell :fruit "figs")'))[0] in ("pending", "denied")
    assert (await called(offer, store, '(count-fruit :fruit "durian")'))[0] == "denied"


async def test_a_program_that_judges_every_call_judges_those_of_a_worker(
    tmp_path: Path, store: Store
) -> None:
    offer = stall(tmp_path, rules=PolicyOptions(gate_command="sh -c 'echo closed; exit 2'")).offer()
    assert await called(offer, store, '(sell :fruit "pears")') == ("denied", "sell was denied: closed.")


async def test_each_delivery_of_a_call_has_its_row_beside_that_of_a_caller_with_the_same_store(
    tmp_path: Path, store: Store
) -> None:
    door = door_of(stall(tmp_path).offer(), lambda: store)
    call = new_call(form('(sell :fruit "pears")'), route="remote")
    context = ToolContext(stall(tmp_path).workspace())
    assert [(await door.dispatch(call, context)).status for _ in range(2)] == ["ok", "ok"]
    assert [row["id"] for row in StoreAudit(lambda: store).rows()] == [f"{call.id}.1", f"{call.id}.2"]


async def test_the_rules_and_options_of_the_worker_count(tmp_path: Path, store: Store) -> None:
    files(tmp_path, {"rules.hy": '(deny (sell :fruit "figs"))\n(quota sell 1 :per :day)'})
    offer = stall(tmp_path, rules=PolicyOptions(tmp_path / "rules.hy"), allow=["sell=ann, ben"]).offer()
    assert offer.table.permissions == {"sell": ("ann", "ben")}
    assert await called(offer, store, '(sell :fruit "pears")') == ("ok", "0 of 1 left today")
    assert (await called(offer, store, '(sell :fruit "pears")'))[0] == "limited"
    assert (await called(offer, store, '(sell :fruit "figs")', "ben"))[0] == "denied"
    assert (await called(offer, store, '(sell :fruit "pears")', "zoe"))[0] == "denied"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": []}, "Name the files with the tools that the worker offers: quoth worker --tools FILE"),
        ({"tools": ["{empty}"]}, "{empty} defines no tool, so there is nothing to offer."),
        ({"tools": ["{shop}", "{again}"]}, f"{THERE_IS_ALREADY_A_TOOL} count-fruit"),
        ({"tools": ["nowhere.hy"]}, f"{THERE_IS_NO_FILE} nowhere.hy."),
        ({"allow": ["cound-fruit=ann"]}, "Did you mean count-fruit?"),
        ({"allow": ["count-fruit"]}, "--allow takes TOOL=USER,…"),
        ({"policy": "nowhere.hy"}, f"{THERE_IS_NO_POLICY_FILE} nowhere.hy."),
        ({"gate": "{shop}"}, DEFINES_NO_FUNCTION_CHECK),
    ],
)
def test_what_cannot_be_offered_is_said(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    made = {name: str(tmp_path / f"{name}.hy") for name in ("empty", "shop", "again")}
    files(tmp_path, {"empty.hy": "(print 1)", "shop.hy": SHOP, "again.hy": SHOP})
    given = {
        name: [word.format(**made) for word in value] if isinstance(value, list) else value.format(**made)
        for name, value in {"tools": ["{shop}"], **options}.items()
    }
    rules = PolicyOptions(given.pop("policy", None), given.pop("gate", None))
    offered = Files(root=tmp_path, rules=rules, **given)
    with pytest.raises(QuothError) as refused:
        offered.offer()
    assert said.format(**made) in str(refused.value)


def test_its_key_is_read_by_no_tool(tmp_path: Path) -> None:
    key = tmp_path / "mine.key"
    key.write_text("hush")
    said = complaint(ToolError, lambda: Files([], tmp_path, secret=[key]).workspace().open_read("mine.key"))
    assert said == "mine.key is a secret of quoth's, which no tool may read."


def test_a_workspace_that_is_none_is_said(tmp_path: Path) -> None:
    said = complaint(UsageError, Files([], tmp_path / "x").workspace)
    assert said == f"The workspace {tmp_path / 'x'} {IS_NOT_A_FOLDER}."
