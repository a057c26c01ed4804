"""Second conditions of consent: each row, word and time that a decision hangs on counts by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentences import IT_WRITES_FILES, THE_TOOL_HAS_CHANGED_SINCE
from words import Desk, Spy, desk, form, tool

from quoth.tools.call.call import Call, ask
from quoth.tools.call.context import ToolContext
from quoth.tools.call.question import Question
from quoth.tools.consent.broker import EDITED_SECONDS
from quoth.tools.consent.decisions import APPROVAL_SECONDS, DURATION_SECONDS
from quoth.tools.consent.requests import Decision, decision_row
from quoth.tools.consent.rows import PENDING_SECONDS
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store


def probe(body: Any = None, **options: Any) -> CognitiveTool:
    options.setdefault("params", {"x": {"type": int, "default": 0}})
    options.setdefault("effects", ["writes"])
    return tool("probe", body or Spy("done"), **options)


def asks(ctx: ToolContext, pin: str = "") -> Any:
    return ctx.permission.ask(Question(f"Is {pin or 'it'} right?"))


class Says:
    """A person who gives one answer, and keeps what they were asked."""

    def __init__(self, answer: str | None) -> None:
        self.said, self.asked = answer, list[Question]()

    async def request(self, *_: Any) -> None:
        return None

    async def answer(self, tool: CognitiveTool, call: Any, question: Question) -> Any:
        self.asked.append(question)
        return self.said


# Questions in words


def test_a_question_shows_no_declared_secret_and_the_model_sees_its_beginning(store: Store) -> None:
    person = Says(None)
    params = {"pin": {"type": str, "secret": True}}
    here = desk(store, tool("check", asks, params=params, effects=["asks"]), person=person)
    said = here.pass_through('(check :pin "hunter2")')
    (asked,) = here.waiting
    assert said.message == f"check waits for a person's answer: Is [secret] right? (request {asked.id})."
    assert person.asked == [Question("Is [secret] right?")]
    assert asked.question == person.asked[0]


def test_a_long_question_is_told_in_two_hundred_characters(store: Store) -> None:
    long = tool("check", lambda ctx: ctx.permission.ask(Question("x" * 300)), effects=["asks"])
    here = desk(store, long)
    message = here.pass_through("(check)").message
    assert message == f"check waits for a person's answer: {'x' * 199}… (request {here.waiting[0].id})."


@pytest.mark.parametrize("kind", ["answer", "deny"])
def test_an_answer_without_a_key_is_used_by_one_call(store: Store, kind: str) -> None:
    here = desk(store, tool("check", asks, effects=["asks"]))
    first = here.pass_through("(check)")
    assert first.status == "pending"
    here.decide(kind, **({"answer": "yes"} if kind == "answer" else {"why": "no"}))
    assert here.pass_through("(check)").status == ("ok" if kind == "answer" else "denied")
    assert here.pass_through("(check)").status == "pending"


def test_the_first_of_two_answers_is_used_first(store: Store) -> None:
    here = desk(store, tool("check", asks, effects=["asks"]))
    here.pass_through("(check)", key="a")
    here.decide("answer", answer="one")
    used = here.pass_through("(check)", key="a", resumed=True)
    here.pass_through("(check)", key="b")
    here.clock.wait(1)
    here.decide("answer", answer="two")
    again = here.pass_through("(check)", key="a", resumed=True)
    assert (used.value, again.value) == ("one", "one")
    assert here.pass_through("(check)", key="b", resumed=True).value == "two"


# Which request, and which call


def test_a_call_that_is_quoted_asks_a_request_of_its_own(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)")
    here.pass_through("(probe)", quoted="a mail")
    here.pass_through("(probe)", quoted="a mail")
    assert [one.reason == IT_WRITES_FILES for one in here.waiting] == [True, False]


def test_the_calls_that_a_call_has_made_needless_are_named(store: Store) -> None:
    here = desk(store, probe())
    first = here.pass_through("(probe)", session="s", user="ann")
    here.decide()
    second = here.pass_through("(probe)", session="s", user="ann")
    other = here.pass_through("(probe 1)", session="s", user="ann")

    def superseded(id: str, key: str = "") -> list[str]:
        return here.broker.superseded_calls(Call(id, form("(probe)"), user="ann", session="s", key=key))

    assert superseded(second.id) == [first.id]
    assert superseded(second.id, "k") == [first.id]
    assert [superseded(id) for id in (first.id, other.id, "none")] == [[], [], []]


def test_a_grant_whose_rule_was_taken_away_grants_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "s.sqlite")
    here = desk(store, probe())
    for kind in ("duration", "scope"):
        here.pass_through("(probe)")
        here.decide(kind)
        assert here.pass_through("(probe)").ok
        store.execute("DELETE FROM grants")
        assert here.pass_through("(probe)").status == "pending"
    store.close()


@pytest.mark.parametrize(
    ("kind", "more", "lasts"),
    [
        ("once", {}, APPROVAL_SECONDS),
        ("deny", {"why": "no"}, PENDING_SECONDS),
        ("duration", {}, DURATION_SECONDS),
        ("duration", {"seconds": 5}, 5),
        ("scope", {"seconds": 5}, 5),
        ("edit", {"form": form("(probe 7)")}, APPROVAL_SECONDS),
    ],
)
def test_a_decision_ends_at_its_last_second(store: Store, kind: str, more: Any, lasts: float) -> None:
    for left, status in ((1, "denied" if kind == "deny" else "ok"), (0, "pending")):
        here = desk(store, probe())
        session = f"{left}"
        here.pass_through("(probe)", session=session)
        here.decide(kind, here.waiting[-1].id, **more)
        here.clock.wait(lasts - left)
        assert here.pass_through("(probe)", session=session).status == status


def test_a_request_ends_at_its_last_second(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)")
    (first,) = here.waiting
    here.clock.wait(PENDING_SECONDS - 1)
    here.pass_through("(probe)")
    assert [one.id for one in here.waiting] == [first.id]
    here.clock.wait(1)
    assert here.waiting == []
    assert here.broker.proposal(first.id) is None
    here.pass_through("(probe)")
    assert [one.id == first.id for one in here.waiting] == [False]


def test_an_edited_call_is_recorded_as_its_own(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe 1)")
    request = here.decide("edit", form=form("(probe 7)"))
    here.pass_through("(probe 1)")
    made = here.broker.requests(every=True)[-1]
    assert (made.form, made.state, made.decision, made.reason) == (
        "(probe :x 7)",
        "used",
        "once",
        f"{request.id} was edited",
    )
    assert made.expires - made.asked == EDITED_SECONDS


# What a request says


@pytest.mark.parametrize(
    ("options", "rule"),
    [({}, "(allow (probe :x 1 :only))"), ({"guard": Spy(ask("it wonders"))}, "")],
)
def test_a_rule_is_offered_where_the_effects_alone_ask(store: Store, options: Any, rule: str) -> None:
    here = desk(store, probe(**options))
    here.pass_through("(probe 1)", message="m" * 3_000)
    (asked,) = here.waiting
    assert (asked.rule, len(asked.message)) == (rule, 2_000)


def test_no_rule_is_offered_for_a_permission_that_reads_as_the_effects(store: Store) -> None:
    def body(ctx: ToolContext) -> Any:
        return ctx.permission.request("https://x.example", IT_WRITES_FILES)

    here = desk(store, tool("probe", body, effects=["reads"]))
    here.pass_through("(probe)")
    writes = desk(store, probe(body, params={}))
    writes.pass_through("(probe)", session="t")
    writes.decide(request=writes.waiting[-1].id)
    writes.pass_through("(probe)", session="t")
    assert [one.rule for one in here.waiting] == ["", ""]


def history(here: Desk) -> str:
    (asked,) = here.waiting
    return asked.reason.removeprefix(IT_WRITES_FILES)


@pytest.mark.parametrize(
    ("kind", "more", "told"),
    [
        ("once", {}, f"; {THE_TOOL_HAS_CHANGED_SINCE}"),
        ("duration", {}, f"; {THE_TOOL_HAS_CHANGED_SINCE}"),
        ("deny", {}, ""),
        ("edit", {"form": form("(probe 7)")}, ""),
    ],
)
def test_a_changed_tool_is_told_where_the_other_was_approved(
    store: Store, kind: str, more: Any, told: str
) -> None:
    here = desk(store, probe(source="one"))
    here.pass_through("(probe)")
    here.decide(kind, **more)
    again = desk(store, probe(source="two"), clock=here.clock)
    again.pass_through("(probe)")
    assert history(again) == told


def test_an_approval_whose_call_has_ended_is_not_told(store: Store) -> None:
    here = desk(store, probe())
    here.pass_through("(probe)")
    here.decide()
    assert here.pass_through("(probe)").ok
    here.pass_through("(probe)")
    assert history(here) == ""


def test_the_row_of_a_decision_holds_no_more_than_is_kept() -> None:
    row = decision_row(
        Decision("scope", "ann", why="w" * 3_000, rule="r" * 3_000), "said", "t", "d", "f" * 3_000
    )
    assert [len(row[name]) for name in ("rule", "message", "form")] == [2_000] * 3
    assert [row[name] for name in ("depth", "round", "place", "duration_ms")] == [0] * 4
    assert (len(row["id"]), row["user"], row["status"], row["route"]) == (10, "ann", "ok", "decision")
    assert decision_row(Decision("deny"), "", "t", "d", "")["status"] == "denied"


def test_what_a_body_asked_before_is_known_while_it_is_open_or_not_used(store: Store) -> None:
    async def body(ctx: ToolContext) -> str:
        await ctx.permission.request("mail", "mail is private")
        return str(await ctx.permission.ask(Question("Which?")))

    made = tool("check", body, effects=["asks"])
    here = desk(store, made)
    call = Call("c", form("(check)"), user="ann", session="s", key="k")

    def asked() -> list[tuple[str, str]]:
        return [(one.permission, one.message) for one in here.broker.asked_inside(made, call)]

    marks = {"user": "ann", "session": "s", "key": "k"}
    here.pass_through("(check)", **marks)
    assert asked() == [("mail", "mail is private")]
    here.decide()
    assert asked() == [("mail", "mail is private")]
    here.pass_through("(check)", **marks, resumed=True)
    (question,) = here.waiting
    assert asked() == [("mail", "mail is private"), ("", "Which?")]
    other = Call("d", form("(check)"), user="ann", session="t", key="k2")
    assert here.broker.asked_inside(made, other) == []
    here.clock.wait(PENDING_SECONDS)
    assert asked() == []
    here.clock.wait(-PENDING_SECONDS)
    here.decide("answer", question.id, answer="this")
    assert asked() == [("mail", "mail is private")]
    assert here.pass_through("(check)", **marks, resumed=True).value == "this"
    assert asked() == []
