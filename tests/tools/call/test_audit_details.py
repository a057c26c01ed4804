"""What a body adds to the audit of its call (seed 000): plain data, bounded, under names of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sentences import WAS_CHANGED_AFTER_IT_WAS
from words import Desk, complaint, desk, gateway, tool

from quoth import GateDecision
from quoth.tools.call.context import MOST_DETAILS, AuditDetails, ToolContext
from quoth.tools.errors import ToolError
from quoth.tools.storage.database import Store


def rate(ctx: ToolContext) -> str:
    ctx.audit["score"] = 0.7
    ctx.audit.setdefault("hits", []).append("a")
    return "rated"


def test_a_body_adds_to_the_audit_and_to_the_result() -> None:
    here = gateway(tool(body=rate))
    result = here.pass_through("(probe)")
    assert (result.value, result.audit["score"], result.audit["hits"]) == ("rated", 0.7, ["a"])
    assert (result.audit["tool"], result.audit["status"]) == ("probe", "ok")
    assert here.rows[0]["details"] == {"score": 0.7, "hits": ["a"]}


def test_so_do_a_guard_and_a_gate_and_a_call_that_fails() -> None:
    def guard(ctx: ToolContext) -> bool:
        ctx.audit["guard"] = True
        return True

    class Gate:
        async def check(self, tool: Any, call: Any, ctx: ToolContext) -> GateDecision:
            ctx.audit["risk"] = {"of": "text", "is": 0.1}
            return GateDecision(False, "no")

    here = gateway(tool(guard=guard, gate=True), gate=Gate())
    assert here.pass_through("(probe)").status == "denied"
    assert here.rows[0]["details"] == {"guard": True, "risk": {"of": "text", "is": 0.1}}


def test_each_call_has_its_own() -> None:
    async def outer(ctx: ToolContext) -> None:
        from words import form

        ctx.audit["outer"] = 1
        assert ctx.dispatch is not None
        await ctx.dispatch(form("(inner)"))

    inner = tool("inner", lambda ctx: ctx.audit.update(inner=2))
    here = gateway(tool("outer", outer), inner)
    here.pass_through("(outer)")
    here.pass_through("(probe)")
    assert [(row["tool"], row["details"]) for row in here.rows] == [
        ("inner", {"inner": 2}),
        ("outer", {"outer": 1}),
        ("probe", {}),
    ]


def put(name: Any, value: Any) -> Callable[[ToolContext], None]:
    def body(ctx: ToolContext) -> None:
        ctx.audit[name] = value

    return body


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("tool", "x", "ctx.audit['tool'] is set by the door; choose another name."),
        (7, "x", "ctx.audit[7] is set by the door; choose another name."),
        ("socket", object(), "ctx.audit['socket'] is an object, which is not data;"),
        ("text", "x" * MOST_DETAILS, "ctx.audit takes 4,000 characters of JSON, not 4,012."),
    ],
)
def test_anything_else_is_an_error_where_it_is_put(name: Any, value: Any, sentence: str) -> None:
    here = gateway(tool(body=put(name, value)))
    result = here.pass_through("(probe)")
    assert result.status == "error"
    assert result.message.startswith(sentence)
    assert here.rows[0]["details"] == {}


def test_a_list_that_grew_too_long_is_left_out_and_the_call_is_done() -> None:
    def body(ctx: ToolContext) -> None:
        ctx.audit["hits"] = []
        ctx.audit["hits"].extend(range(MOST_DETAILS))

    here = gateway(tool(body=body))
    assert here.pass_through("(probe)").status == "ok"
    assert here.rows[0]["details"]["lost"].startswith("ctx.audit takes 4,000 characters of JSON, not ")


def test_no_secret_of_the_call_is_in_it() -> None:
    params = {"pin": {"type": str, "secret": True}}
    here = gateway(tool(body=lambda pin, ctx: ctx.audit.update(got=f"pin {pin}"), params=params))
    here.pass_through('(probe :pin "4711-0815")')
    assert here.rows[0]["details"] == {"got": "pin [secret]"}


def test_the_store_has_it_and_its_chain_covers_it(tmp_path: Any) -> None:
    from quoth.tools.history.audit import StoreAudit

    store = Store(tmp_path / "store.sqlite")
    here: Desk = desk(store, tool(body=rate))
    here.pass_through("(probe)")
    trail = StoreAudit(lambda: store)
    assert trail.rows()[0]["details"] == {"score": 0.7, "hits": ["a"]}
    assert trail.verify().ok
    store.execute("UPDATE audit SET details = '{\"score\": 0.9}'")
    assert [fault.what for fault in trail.verify().faults] == [WAS_CHANGED_AFTER_IT_WAS]
    store.close()


def test_details_may_be_just_so_long() -> None:
    details = AuditDetails()
    details["x"] = "y" * (MOST_DETAILS - len('{"x": ""}'))
    assert "takes 4,000 characters of JSON, not 4,001." in complaint(
        ToolError, lambda: details.__setitem__("x", f"{details['x']}y")
    )
