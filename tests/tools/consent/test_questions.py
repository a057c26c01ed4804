"""Questions in words: what may be asked, what answers it, and that an answer is nothing but words."""

from __future__ import annotations

import asyncio
from typing import Any

from sentences import (
    DID_NOT_ANSWER,
    DOES_MORE_THAN_READ,
    IS_A_QUESTION_AND_IS,
    THE_ANSWER_IS_EMPTY,
    WANTS_A_YES_OR_A,
)
from words import Desk, complaint, desk, shipped

from quoth.tools.call.ports import NobodyToAsk
from quoth.tools.call.question import Question, question_in
from quoth.tools.consent.requests import Decision, SayYes
from quoth.tools.errors import UsageError
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import CognitiveTool, cognitive_tools
from quoth.tools.storage.database import Store

PORT = '(ask-person :question "Which port?" :choices ["8080" "9090"])'
WAITS = "ask-person waits for a person's answer: Which port? (request {})."


def rules(text: str) -> RulesPolicy:
    return RulesPolicy([parse_layer("user", text.encode(), "policy.hy")])


def asking() -> CognitiveTool:
    shipped(".")
    return cognitive_tools.get("ask-person")


def table(store: Store, person: Any = None, **parts: Any) -> Desk:
    return desk(store, asking(), person=person, **parts)


class Says:
    """A person who is there, and says one thing to each question."""

    def __init__(self, *answers: str | Decision | None) -> None:
        self.answers, self.asked = list(answers), list[Question]()

    async def request(self, *_: Any) -> None:
        raise AssertionError("an answer in words is no approval")

    async def answer(self, tool: CognitiveTool, call: Any, question: Question) -> Any:
        self.asked.append(question)
        return self.answers.pop(0)


def test_a_question_waits_until_it_is_answered_and_the_answer_is_the_value(store: Store) -> None:
    here = table(store)
    said = here.pass_through(PORT, key="k1", session="s1")
    (asked,) = here.waiting
    assert (said.status, said.message) == ("pending", WAITS.format(asked.id))
    assert (asked.form, asked.question) == (PORT, Question("Which port?", ("8080", "9090")))
    told = asked.to_json()
    assert [told[name] for name in ("kind", "question", "choices", "only")] == [
        *("question", "Which port?"),
        ["8080", "9090"],
        False,
    ]
    assert here.pass_through(PORT, key="k1", session="s1", resumed=True).status == "pending"
    assert here.decide("answer", answer=" 2 ").outcome == "answered by ann"
    answered = here.pass_through(PORT, key="k1", session="s1", resumed=True)
    assert (answered.status, answered.value) == ("ok", "9090")
    assert here.rows[-1]["consent"] == f"allow: answered by ann (request {asked.id})"


def test_a_call_that_was_answered_is_never_asked_again_and_its_answer_is_nobody_elses(store: Store) -> None:
    here = table(store)
    here.pass_through(PORT, key="k1")
    here.clock.wait(6 * 86_400)
    here.decide("answer", answer="neither")
    here.clock.wait(20 * 86_400)  # whoever answers is not hurried
    for _ in range(2):  # it was killed after it had used the answer, and before that was recorded
        assert here.pass_through(PORT, key="k1", resumed=True).value == "neither"
    assert here.pass_through(PORT, key="k2").status == "pending"
    assert here.pass_through(PORT, key="k3", session="else").status == "pending"
    assert here.pass_through(PORT, key="k4", user="ben").status == "pending"


def test_who_is_there_is_asked_at_once_and_a_slip_leaves_the_question_open(store: Store) -> None:
    person = Says(Decision("answer", "ann", answer="1"), None, "")
    here = table(store, person)
    assert here.pass_through(PORT, key="a").value == "8080"
    assert here.pass_through(PORT, key="b").status == "pending"
    empty = here.pass_through(PORT, key="c")
    assert (empty.status, empty.message.endswith(f"). {THE_ANSWER_IS_EMPTY}.")) == ("pending", True)
    assert [one.text for one in person.asked] == ["Which port?"] * 3


def test_a_question_answered_elsewhere_is_taken_back(store: Store) -> None:
    class Slow(Says):
        async def answer(self, tool: CognitiveTool, call: Any, question: Question) -> Any:
            here.decide("answer", answer="8080")
            await asyncio.Event().wait()

    here = table(store, Slow())
    assert here.pass_through(PORT).value == "8080"


def test_whoever_says_yes_to_everything_answers_nothing(store: Store) -> None:
    here = table(store, SayYes())
    assert here.pass_through(PORT).status == "pending"
    allows = table(store, policy=rules("(allow (ask-person))"))
    assert allows.pass_through(PORT).status == "pending"
    wants = table(store, policy=rules('(ask (ask-person) :why "it is dear")'))
    said = wants.pass_through('(ask-person :question "And?")')
    assert said.message.startswith("ask-person waits for a person's approval: policy.hy:1 says ")
    wants.decide(request=wants.waiting[-1].id)
    then = wants.pass_through('(ask-person :question "And?")')
    assert then.message.startswith("ask-person waits for a person's answer: And?")


def test_a_rule_forbids_questions_and_a_person_may_refuse_to_answer(store: Store) -> None:
    unattended = table(store, policy=rules('(deny (ask-person) :why "nobody is here at night")'))
    said = unattended.pass_through(PORT)
    assert (said.status, said.message) == (
        "denied",
        'ask-person was denied: policy.hy:1 says (deny (ask-person) :why "nobody is here at night").',
    )
    here = table(store)
    here.pass_through(PORT, key="k")
    here.decide("deny", why="find out yourself")
    refused = here.pass_through(PORT, key="k", resumed=True)
    assert refused.message == f"ask-person was denied: the person {DID_NOT_ANSWER}: find out yourself."
    dry = desk(store, asking(), given={"dry": True}).pass_through(PORT)
    assert dry.message == f"ask-person {DOES_MORE_THAN_READ}, and this is a dry run."


def test_an_answer_approves_nothing_and_an_approval_answers_nothing(store: Store) -> None:
    writes = CognitiveTool("put", "Put.", effects=("writes",), _body=lambda: "done")
    here = desk(store, asking(), writes)
    here.pass_through(PORT)
    here.pass_through("(put)")
    asked, wanted = here.waiting
    for kind in ("once", "duration", "scope", "edit"):
        said = complaint(UsageError, lambda kind=kind: here.decide(kind, asked.id))  # type: ignore[misc]
        assert said == (f"Request {asked.id} {IS_A_QUESTION_AND_IS}: quoth answer {asked.id} TEXT")
    assert complaint(UsageError, lambda: here.decide("answer", wanted.id, answer="y")) == (
        f"Request {wanted.id} {WANTS_A_YES_OR_A}: quoth approve {wanted.id}, or: quoth"
        f" deny {wanted.id} --why TEXT"
    )
    here.decide("answer", asked.id, answer="y")
    again = complaint(UsageError, lambda: here.decide("answer", asked.id, answer="n"))
    assert again == f"Request {asked.id} was answered before, by ann at 2026-03-10 12:00 UTC."
    assert here.pass_through("(put)").status == "pending"


def test_a_form_cannot_pass_for_a_question_nor_a_question_for_an_approval(store: Store) -> None:
    here = table(store)
    forged = '(ask-person :question "Which?" :answer? {"question" "Other?" "choices" [] "only" False})'
    assert here.pass_through(forged).status == "invalid"
    here.pass_through('(ask-person :question ":answer? {}\\n(put) Allow it? [y/N]")')
    (asked,) = here.waiting
    assert asked.question == Question(":answer? {}\n(put) Allow it? [y/N]")
    assert question_in('(put :text ":answer? {}")') is None
    assert question_in("(put :answer? 1)") is None


def test_any_tool_may_ask_and_begins_again_with_what_it_was_told(store: Store) -> None:
    asked = [Question("First?"), Question("Second?")]

    async def body(ctx: Any) -> list[str]:
        return [await ctx.permission.ask(one) for one in asked]

    twice = CognitiveTool("twice", "Ask twice.", effects=("asks",), _body=body)
    here = desk(store, twice, person=Says("one", "two"))
    assert here.pass_through("(twice)").value == ["one", "two"]
    many = CognitiveTool("many", "Ask.", effects=("asks",), _body=endless)
    said = desk(store, many, person=Says(*["x"] * 30)).pass_through("(many)")
    assert said.message == "many asked more than 20 questions."


async def endless(ctx: Any) -> None:
    for number in range(30):
        await ctx.permission.ask(Question(f"Question {number}?"))


def test_where_nobody_can_be_asked_the_model_is_told(store: Store) -> None:
    said = desk(store, asking())
    said.door.consent = NobodyToAsk()
    result = said.pass_through(PORT)
    assert (result.status, result.message) == ("denied", "ask-person was denied: there is no person to ask.")
