"""What a server asks, asked of a person through the door; the answer may come in another process."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from sentences import IT_WAS_BEGUN_BEFORE_AND
from words import Desk, desk, tool

from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import SayYes
from quoth.tools.mcp import asking
from quoth.tools.mcp.asking import MAX_ROUNDS, Questions
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.tool import ServedTool
from quoth.tools.sandbox.snapshots import StoreSnapshots
from quoth.tools.storage.database import Store

FORM = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"]}
ORDER = '(shop--order :item "tea")'
ALLOW = RulesPolicy([parse_layer("user", b"(allow (shop--order)) (allow (think))", "policy.hy")])


def _size(text: str = "Which size?", schema: dict[str, Any] = FORM) -> types.ElicitRequest:
    params = types.ElicitRequestFormParams(message=text, requested_schema=schema)
    return types.ElicitRequest(params=params)


def _needs(state: str, **requests: Any) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=requests or None, request_state=state)


def _done(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)])


class Shop:
    """A server: it answers with the next of its answers, and remembers what it was sent."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.sent = list(answers), list[tuple[Any, Any]]()

    async def send(self, state: str | None, answers: Any) -> Any:
        said = {key: one.model_dump(exclude_none=True) for key, one in (answers or {}).items()}
        self.sent.append((state, said))
        answer = self.answers.pop(0)
        return await answer() if callable(answer) else answer


def _entry(shop: Shop, questions: Questions, digest: str = "d1") -> CognitiveTool:
    async def body(item: str, call: Call, ctx: ToolContext) -> Any:
        result = await questions.answered(shop.send, ctx=ctx, call=call, version=digest)
        return result.content[0].text

    made = tool("shop--order", body, params={"item": {"type": str}}, effects=["net", "writes"])
    return dataclasses.replace(made, served=ServedTool("shop", "order", digest))


def _process(
    store: Store, shop: Shop, *more: CognitiveTool, digest: str = "d1", sampling: bool = False, **parts: Any
) -> Desk:
    """A process that calls the shop; another one knows only what is in the store."""
    given = {"snapshots": StoreSnapshots(lambda: store)}
    here = desk(store, policy=parts.pop("policy", ALLOW), given=given, **parts)
    questions = Questions("shop", here.workspace.resolve(), sampling=sampling)
    for one in (_entry(shop, questions, digest), *more):
        here.door.table.register(one)
    return here


def test_an_answer_in_another_process_continues_with_the_servers_state(store: Store) -> None:
    first = Shop(_needs("s1", size=_size()))
    said = _process(store, first).pass_through(ORDER, key="k", session="s")
    assert said.status == "pending"
    assert "The MCP server shop asks: > Which size?" in said.message
    here = _process(store, Shop())
    assert here.decide("answer", answer="large").outcome == "answered by ann"
    then = Shop(_done("ordered"))
    said = _process(store, then).pass_through(ORDER, key="k", session="s", resumed=True)
    assert (said.status, said.value) == ("ok", "ordered")
    assert then.sent == [("s1", {"size": {"action": "accept", "content": {"size": "large"}}})]
    assert store.execute("SELECT count(*) FROM snapshots") == [(0,)]
    again = Shop()
    said = _process(store, again).pass_through(ORDER, key="k", session="s", resumed=True)
    assert (said.value, again.sent) == ("ordered", [])


def test_the_same_call_continues_too_and_the_next_one_begins_anew(store: Store) -> None:
    _process(store, Shop(_needs("s1", size=_size()))).pass_through(ORDER, session="s")
    shop = Shop(_done("ordered"), _needs("s2", size=_size()))
    here = _process(store, shop)
    here.decide("answer", answer="2")
    assert here.pass_through(ORDER, session="s").value == "ordered"
    assert here.pass_through(ORDER, session="s").status == "pending"
    assert [state for state, _ in shop.sent] == ["s1", None]


def test_another_digest_session_or_user_begins_at_the_start(store: Store) -> None:
    _process(store, Shop(_needs("s1", size=_size()))).pass_through(ORDER, session="s")
    _process(store, Shop()).decide("answer", answer="large")
    for digest, session, user in (("d2", "s", ""), ("d1", "t", ""), ("d1", "s", "bob")):
        shop = Shop(_needs("other", size=_size()))
        said = _process(store, shop, digest=digest).pass_through(ORDER, session=session, user=user)
        assert (said.status, shop.sent) == ("pending", [(None, {})])


def test_a_person_who_declines_is_the_servers_answer_and_one_who_denies_ends_the_call(store: Store) -> None:
    _process(store, Shop(_needs("s1", size=_size()))).pass_through(ORDER, session="s")
    shop = Shop(_done("not ordered"), _needs("s2", size=_size()))
    here = _process(store, shop)
    here.decide("answer", answer="decline")
    assert here.pass_through(ORDER, session="s").value == "not ordered"
    assert shop.sent == [("s1", {"size": {"action": "decline"}})]
    here.pass_through(ORDER, session="s")
    here.decide("deny", why="not today")
    said = here.pass_through(ORDER, session="s")
    assert (said.status, said.message) == (
        "denied",
        "shop--order was denied: the person did not answer: not today.",
    )
    assert store.execute("SELECT count(*) FROM snapshots") == [(0,)]
    assert len(shop.sent) == 2


def test_several_questions_and_rounds_are_each_asked_once(store: Store) -> None:
    shop = Shop(_needs("s1", a=_size("A?"), b=_size("B?")), _needs("s2", a=_size("A?")), _done("ordered"))
    asked = []
    for _ in range(3):
        said = _process(store, shop).pass_through(ORDER, key="k", session="s", resumed=bool(asked))
        assert said.status == "pending"
        here = _process(store, shop)
        asked.append(str(here.waiting[0].question and here.waiting[0].question.text.splitlines()[:2]))
        here.decide("answer", answer="large")
    said = _process(store, shop).pass_through(ORDER, key="k", session="s", resumed=True)
    assert said.value == "ordered"
    assert asked == [
        "['The MCP server shop asks:', '> A?']",
        "['The MCP server shop asks:', '> B?']",
        "['The MCP server shop asks (2):', '> A?']",
    ]
    assert [state for state, _ in shop.sent] == [None, "s1", "s2"]


class Present:
    """A person at the terminal."""

    def __init__(self) -> None:
        self.asked = 0

    async def request(self, *_: Any) -> None:
        raise AssertionError("an answer in words is no approval")

    async def answer(self, *_: Any) -> str:
        self.asked += 1
        return "large"


def test_rounds_have_an_end(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "PAUSES", (0.001,))
    shop, person = Shop(*[_needs(f"s{n}", size=_size()) for n in range(50)]), Present()
    said = _process(store, shop, person=person).pass_through(ORDER, session="s")
    assert said.message == f"The MCP server shop asked {MAX_ROUNDS} times without an end; it was stopped."
    assert (said.status, person.asked) == ("error", MAX_ROUNDS)
    only = Shop(*[_needs(f"s{n}") for n in range(50)])
    assert _process(store, only).pass_through(ORDER, session="s").status == "error"
    assert store.execute("SELECT count(*) FROM snapshots") == [(0,)]


@pytest.mark.parametrize(
    ("needs", "sentence"),
    [
        (_needs("s", **{f"q{n}": _size() for n in range(11)}), "sent 11 questions at once; the limit is 10."),
        (_needs("x" * 300_000, size=_size()), "characters to keep; the limit is 262,144."),
        (
            _needs(
                "s", size=_size("Hm?", {"type": "object", "properties": {"password": {"type": "string"}}})
            ),
            "asked for a secret in a form.",
        ),
        (
            _needs("s", q=types.CreateMessageRequest(params={"messages": [], "maxTokens": 1})),  # type: ignore[arg-type]
            "Sampling is off; (mcp-sampling True) in config.hy turns it on.",
        ),
    ],
)
def test_what_a_server_may_not_ask_ends_its_call_and_asks_nobody(
    store: Store, needs: Any, sentence: str
) -> None:
    here = _process(store, Shop(needs))
    said = here.pass_through(ORDER, session="s")
    assert said.status in ("denied", "error")
    assert sentence in said.message
    assert here.waiting == []
    assert store.execute("SELECT count(*) FROM snapshots") == [(0,)]


def test_nobody_but_a_person_answers(store: Store) -> None:
    here = _process(store, Shop(_needs("s1", size=_size())), person=SayYes())
    assert here.pass_through(ORDER, session="s").status == "pending"


def test_a_state_that_was_changed_in_the_store_is_not_used(store: Store) -> None:
    _process(store, Shop(_needs("s1", size=_size()))).pass_through(ORDER, session="s")
    ((state,),) = store.execute("SELECT state FROM snapshots")
    store.execute("UPDATE snapshots SET state = ?", (bytes(state)[:-1] + b"x",))
    shop = Shop(_done("ordered"))
    here = _process(store, shop)
    here.decide("answer", answer="large")
    said = here.pass_through(ORDER, session="s")
    assert (said.status, shop.sent) == ("error", [])
    assert "changed in the store" in said.message


def test_the_roots_are_the_workspace(store: Store) -> None:
    shop = Shop(_needs("s1", roots=types.ListRootsRequest()), _done("ordered"))
    here = _process(store, shop)
    assert here.pass_through(ORDER, session="s").value == "ordered"
    (root,) = shop.sent[1][1]["roots"]["roots"]
    assert str(root["uri"]) == here.workspace.resolve().as_uri()


# Sampling


def _sample(text: str = "Name a tea.") -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=9, system_prompt="Be brief.")
    )


def _think() -> CognitiveTool:
    params = {"prompt": {"type": str}, "system": {"type": str, "default": ""}}
    return tool("think", lambda prompt, system: f"{prompt} {system} Oolong.", params=params, cost="expensive")


def test_a_servers_question_to_a_model_is_a_call_of_think_through_the_door(store: Store) -> None:
    shop = Shop(_needs("s1", q=_sample()), _done("ordered"))
    here = _process(store, shop, _think(), sampling=True)
    assert here.pass_through(ORDER, session="s").value == "ordered"
    answer = shop.sent[1][1]["q"]
    assert (answer["content"]["text"], answer["role"]) == ("Name a tea. Be brief. Oolong.", "assistant")
    rows = [(row["tool"], row["route"], row["depth"]) for row in here.rows]
    assert rows == [("think", "mcp-server", 1), ("shop--order", "python", 0)]


def test_a_rule_stops_what_a_server_asks_a_model(store: Store) -> None:
    rules = parse_layer("user", b'(allow (shop--order)) (deny (think) (route "mcp-server"))', "policy.hy")
    shop = Shop(_needs("s1", q=_sample()))
    here = _process(store, shop, _think(), sampling=True, policy=RulesPolicy([rules]))
    said = here.pass_through(ORDER, session="s")
    assert said.status == "denied"
    assert "think was denied" in said.message
    assert len(shop.sent) == 1


# Revisions before 2026-07-28: the server asks while its call is open


def _asking_shop(questions: Callable[[], Questions]) -> Shop:
    async def ask() -> Any:
        params = types.ElicitRequestFormParams(message="Which size?", requested_schema=FORM)
        said = await questions().elicit(None, params)
        size = (said.content or {}).get("size", "")
        return _done(f"{said.action} {size}".strip())

    return Shop(*[ask] * 5)


def _handshake(store: Store, **parts: Any) -> tuple[Desk, Shop]:
    found: list[Questions] = []
    shop = _asking_shop(lambda: found[0])
    given = {"snapshots": StoreSnapshots(lambda: store)}
    here = desk(store, policy=ALLOW, given=given, **parts)
    found.append(Questions("shop", here.workspace.resolve()))
    here.door.table.register(_entry(shop, found[0]))
    return here, shop


def test_a_person_who_is_there_answers_a_call_that_is_open(store: Store) -> None:
    here, _ = _handshake(store, person=Present())
    assert here.pass_through(ORDER, session="s").value == "accept large"


def test_without_a_person_the_call_ends_and_is_begun_again_only_with_a_decision(store: Store) -> None:
    here, shop = _handshake(store)
    assert here.pass_through(ORDER, key="k", session="s").status == "pending"
    here.decide("answer", answer="large")
    said = here.pass_through(ORDER, key="k", session="s", resumed=True)
    assert said.status == "pending"
    assert IT_WAS_BEGUN_BEFORE_AND in said.message
    assert len(shop.sent) == 1
    here.decide("once")
    assert here.pass_through(ORDER, key="k", session="s", resumed=True).value == "accept large"
    assert len(shop.sent) == 2


def test_two_calls_that_are_open_cannot_be_asked_about(store: Store) -> None:
    questions = Questions("shop", Path("/"))
    both = asyncio.Barrier(2)
    said: list[str] = []

    async def ask() -> Any:
        await both.wait()
        params = types.ElicitRequestFormParams(message="Which size?", requested_schema=FORM)
        said.append((await questions.elicit(None, params)).message)
        await both.wait()
        return _done("done")

    shop = Shop(ask, ask)
    here = desk(store, _entry(shop, questions), policy=ALLOW)

    async def twice() -> None:
        await asyncio.gather(*(here.enter(ORDER, session="s") for _ in range(2)))

    asyncio.run(twice())
    assert said == ["quoth cannot tell which call asks: 2 calls are open. It answers when one is."] * 2
