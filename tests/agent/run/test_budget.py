"""What a run may spend: no request is sent that cannot be paid, whoever asks the model."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from examples import many
from loopback import KEY, Sleeps, cut_off, loopback, said, status
from sentences import (
    A_NUMBER_FROM_0,
    A_WHOLE_NUMBER_FROM_1,
    COULD_NOT_BE_WRITTEN,
    REQUESTS_TO_MODELS_TODAY,
    THE_RUN_WAS_STOPPED,
    THE_RUN_WAS_STOPPED_BEFORE,
)
from words import TalkingFunction, complaint, tool

from quoth import Agent, DailyBudget, ModelOptions, PolicyOptions, RunLimits, UsageError
from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.run.budget import LEAST_REPLY, Budget, BudgetError, Funds, Purse, cost_of
from quoth.neuro.backends.anthropic import AnthropicBackend
from quoth.neuro.backends.base import Completion, ModelError, MovedError, Usage
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import Cascade, CascadeRun, ScriptedBackend
from quoth.tools.errors import StoreError
from quoth.tools.policy.spending import Spending
from quoth.tools.registry.table import ToolTable, cognitive_tools
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

A_STEP = Usage(input_tokens=900, output_tokens=100)
MODEL = "openai:gpt-9"


class Asked(ScriptedBackend):
    """A model that remembers how long each reply might be, and how much was open to each request."""

    def __init__(self, *replies: Any, name: str = MODEL) -> None:
        super().__init__(replies, name)
        self.most: list[int] = []

    async def complete(self, messages: Messages, **asked: Any) -> Completion:
        self.most.append(asked["max_tokens"])
        return await super().complete(messages, **asked)


class Down(Asked):
    async def complete(self, messages: Messages, **asked: Any) -> Completion:
        raise ModelError("It is down.", "down")


def looks(number: int) -> list[Completion]:
    """Replies that call the tool ``probe``, each for a thousand tokens; the last one answers."""
    calls = [Completion(f'(probe :text "{n}")', A_STEP) for n in range(number)]
    return [*calls, Completion("Done.", A_STEP)]


def table(body: Callable[..., Any] = lambda text: f"seen {text}", **options: Any) -> ToolTable:
    made = ToolTable()
    tool("probe", body, params={"text": {"type": str}}, table=made, **options)
    return made


def run(workspace: Path, model: Any, limits: RunLimits | None = None, **options: Any) -> Reply:
    options.setdefault("tools", table())
    chosen = ModelOptions(model, dialect="call-form")
    with Agent(workspace=workspace, model=chosen, limits=limits, session="s", user="ann", **options) as agent:
        return agent.run("Look.")


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prices that are easily counted: a token of input is a thousandth of a dollar, one of output a
    hundredth; only of one model."""

    def price(tokens: Any, *, model_ref: str, provider_id: str) -> Any:
        if (provider_id, model_ref) != ("openai", "gpt-9"):
            raise LookupError
        return SimpleNamespace(total_price=tokens.input_tokens / 1000 + tokens.output_tokens / 100)

    known = SimpleNamespace(Usage=lambda **tokens: SimpleNamespace(**tokens), calc_price=price)
    monkeypatch.setitem(sys.modules, "genai_prices", known)


# Tokens


def test_a_run_stops_before_the_request_that_would_pass_its_tokens(tmp_path: Path) -> None:
    model = Asked(*looks(9))
    reply = run(tmp_path, model, RunLimits(tokens=3_500))
    assert reply.error.startswith(f"{THE_RUN_WAS_STOPPED_BEFORE} ")
    assert reply.error.endswith(" tokens: 500 of 3,500 are left.")
    assert (reply.status, len(model.most)) == ("failed", 3)
    assert (reply.spent["tokens"], reply.left["tokens"]) == (3_000, 500)


def test_a_run_within_its_tokens_ends_as_any(tmp_path: Path) -> None:
    reply = run(tmp_path, Asked(*looks(2)), RunLimits(tokens=50_000))
    assert (reply.text, reply.left) == ("Done.", {"steps": 22, "calls": 98, "tokens": 47_000})


def test_the_last_replies_may_be_as_long_as_can_be_paid(tmp_path: Path) -> None:
    model = Asked(*looks(2))
    run(tmp_path, model, RunLimits(tokens=3_300, reply_tokens=1_500))
    first, second, third = model.most
    assert first == 1_500
    assert LEAST_REPLY <= third < second < 1_500


def test_a_reply_that_was_cut_off_by_what_can_be_paid_says_so_also_when_it_is_replayed(
    tmp_path: Path,
) -> None:
    cut = Completion("Long", Usage(500, 0), finish="length")
    model = Asked(cut, "Done.")
    run(tmp_path, model, RunLimits(tokens=5_000, reply_tokens=6_000))
    assert f"cut off by the limit of {model.most[0]:,} tokens" in model.seen[1].decode()
    assert differences(tmp_path) == []


def test_a_server_that_does_not_tell_its_usage_is_counted_by_estimate(tmp_path: Path) -> None:
    model = Asked('(probe :text "1")', '(probe :text "2")', "Done.")
    reply = run(tmp_path, model, RunLimits(tokens=1_000, reply_tokens=200))
    assert reply.usage == Usage()
    assert (reply.status, len(model.most) < 3) == ("failed", True)
    limits = RunLimits(tokens=5_000, reply_tokens=200)
    with Agent(
        workspace=tmp_path, model=Asked("Done."), tools=table(), limits=limits, session="s", user="ann"
    ) as agent:
        (again,) = agent.resume()
    assert isinstance(again, Reply)
    assert 200 < reply.spent["tokens"] < again.spent["tokens"]


def test_what_failed_before_anything_came_of_it_is_not_paid(tmp_path: Path) -> None:
    def fails(messages: Messages) -> str:
        raise ModelError("The server is down.", "down")

    reply = run(tmp_path, TalkingFunction(fails), RunLimits(tokens=5_000))
    assert (reply.error, reply.left["tokens"]) == ("The server is down.", 5_000)


def test_what_was_broken_off_in_the_middle_is_paid_as_it_was_reserved(tmp_path: Path) -> None:
    class Breaks(Asked):
        async def complete(self, messages: Messages, **asked: Any) -> Completion:
            asked["on_text"]("Well,")
            raise ModelError("It broke off.", "down")

    reply = run(
        tmp_path, Breaks("x"), RunLimits(tokens=5_000, reply_tokens=1_000), on_event=lambda event: None
    )
    assert reply.error == "It broke off."
    assert 1_000 < reply.spent["tokens"] < 2_000


# Costs


@pytest.mark.usefixtures("priced")
def test_a_run_stops_before_the_request_that_would_pass_its_cost(tmp_path: Path) -> None:
    model = Asked(*looks(9))  # each step costs $1.90
    reply = run(tmp_path, model, RunLimits(cost=5, reply_tokens=LEAST_REPLY))
    assert reply.error.startswith(f"{THE_RUN_WAS_STOPPED_BEFORE} $")
    assert reply.error.endswith(": $1.20 of $5 are left.")
    assert (len(model.most), reply.spent["cost"]) == (2, pytest.approx(3.8))


@pytest.mark.usefixtures("priced")
@pytest.mark.parametrize("model", ["openai:gpt-10", "elsewhere:gpt-9", "gpt-9"])
def test_a_price_that_is_unknown_is_refused_before_the_run_begins(tmp_path: Path, model: str) -> None:
    asked = Asked("Done.", name=model)
    said = complaint(UsageError, lambda: run(tmp_path, asked, RunLimits(cost=5)))
    assert said == f"The cost of {model} cannot be bounded: its price is not known; bound its tokens instead."
    assert not asked.most
    assert run(tmp_path, asked, RunLimits(tokens=50_000)).ok


def test_a_script_costs_nothing(tmp_path: Path) -> None:
    reply = run(tmp_path, Asked("Done.", name="scripted"), RunLimits(cost=0))
    assert (reply.text, reply.left["cost"]) == ("Done.", 0)


@pytest.mark.usefixtures("priced")
def test_a_resumed_run_has_spent_what_it_had(tmp_path: Path) -> None:
    run(tmp_path, Asked(*looks(9)), RunLimits(cost=5, reply_tokens=LEAST_REPLY))
    model = Asked(*looks(0))
    with Agent(
        workspace=tmp_path,
        model=ModelOptions(model, dialect="call-form"),
        tools=table(),
        limits=RunLimits(cost=7, reply_tokens=LEAST_REPLY),
        session="s",
        user="ann",
    ) as agent:
        (reply,) = agent.resume()
    assert isinstance(reply, Reply)
    assert (reply.text, len(model.most)) == ("Done.", 1)
    assert reply.spent["cost"] == pytest.approx(5.7)
    assert differences(tmp_path) == []


def differences(workspace: Path) -> list[Any]:
    """What a replay of the session finds to be otherwise."""
    model = ModelOptions(Asked(), dialect="call-form")
    with Agent(workspace=workspace, model=model, tools=table(), session="s", user="ann") as agent:
        return list(agent.replay("s").differences)


# Seconds


def test_a_run_that_takes_too_long_is_stopped_while_the_model_thinks(tmp_path: Path) -> None:
    async def slow(messages: Messages) -> str:
        await asyncio.sleep(60)
        return "Done."

    reply = run(tmp_path, TalkingFunction(slow), RunLimits(seconds=0.05))
    assert reply.error == f"{THE_RUN_WAS_STOPPED}: its time of 0.05 s is over."


def test_a_run_that_takes_too_long_is_stopped_while_a_tool_works(tmp_path: Path) -> None:
    async def slow(text: str) -> None:
        await asyncio.sleep(60)

    reply = run(tmp_path, Asked(*looks(1)), RunLimits(seconds=0.3), tools=table(slow))
    assert reply.error == f"{THE_RUN_WAS_STOPPED}: its time of 0.3 s is over."
    assert reply.calls[0].result.message == "probe did not finish in the time left to the run."


def test_the_time_stands_still_while_a_person_is_asked() -> None:
    budget = Budget(1, 1, seconds=10)
    budget.clock.pause()
    before = budget.seconds_left
    budget._begun -= 5
    budget.clock._since -= 5
    assert budget.seconds_left == pytest.approx(before, abs=0.01)
    budget.clock.go_on()


# Who else asks the model


@pytest.mark.usefixtures("priced")
def test_what_a_tool_asks_the_model_is_paid_by_the_run(tmp_path: Path) -> None:
    model = Asked(
        Completion('(think :prompt "So?")', A_STEP),
        Completion("Yes.", Usage(50, 50)),
        Completion('(think :prompt "And?")', A_STEP),
        Completion("Done.", A_STEP),
    )
    reply = run(tmp_path, model, RunLimits(cost=5.5, reply_tokens=LEAST_REPLY), tools=())
    assert [call.result.status for call in reply.calls] == ["ok", "limited"]
    assert f"{THE_RUN_WAS_STOPPED} before a request" in reply.calls[1].result.message
    assert len(model.most) == 3


async def test_a_share_of_all_that_is_bounded_is_lent_and_returned() -> None:
    budget, share = Budget(10, 20, 1, tokens=1_000, cost=1, seconds=60), Budget(0, 0)
    async with budget.lend(share):
        assert (share.tokens_left, share.cost_left, share.seconds) == (500, 0.5, 60)
        assert (budget.tokens_left, budget.cost_left) == (500, 0.5)
        share.take(300, 0.2)
    assert (budget.tokens_left, budget.cost_left) == (700, 0.8)
    assert share.clock is budget.clock


async def test_who_lends_without_a_bound_still_counts_what_was_taken() -> None:
    budget, share = Budget(10, 20), Budget(0, 0)
    async with budget.lend(share):
        share.take(300, 0.2)
    assert (budget.tokens_taken, budget.cost_taken) == (300, 0.2)


async def test_who_finds_too_little_waits_for_a_request_on_its_way() -> None:
    purse = Purse(Budget(9, 9, tokens=1_000))
    model, order = Asked("Done."), list[str]()

    async def ask(name: str) -> None:
        async with purse.paying(model, lambda: 100, 800) as payment:
            order.append(f"{name} {payment.reply_tokens}")
            await asyncio.sleep(0)
            purse.settle(payment, Completion("x", Usage(20, 80)))

    await asyncio.gather(ask("one"), ask("two"))
    assert order == ["one 800", "two 800"]
    assert purse.budget.tokens_left == 800


@pytest.mark.usefixtures("priced")
def test_a_sub_agent_spends_its_share_and_its_caller_answers(tmp_path: Path) -> None:
    def reply(messages: Messages) -> Completion:
        told = [one["content"] for one in messages if one["role"] == "tool"]
        if any(one["content"] == "Help." for one in messages):
            return Completion(f'(probe :text "{len(told)}")', A_STEP)
        return Completion("Done." if told else '(cognitive-loop :task "Help.")', A_STEP)

    tools = table()
    tools.register(cognitive_tools.get("cognitive-loop"))
    limits = RunLimits(cost=9, reply_tokens=LEAST_REPLY)
    ended = run(tmp_path, ScriptedBackend(reply, MODEL), limits, tools=tools)
    assert ended.text == "Done."
    assert f"{THE_RUN_WAS_STOPPED} before a request" in ended.calls[0].result.message
    assert ended.spent["cost"] == pytest.approx(1.9 * 3)


# Days


def a_day(**bounds: Any) -> PolicyOptions:
    return PolicyOptions(budgets=[DailyBudget(**bounds)])


def test_a_user_may_make_so_many_requests_a_day(tmp_path: Path) -> None:
    model = Asked(*looks(9))
    reply = run(tmp_path, model, policy=a_day(requests=3))
    assert reply.error.startswith(f"ann has made 3 of 3 {REQUESTS_TO_MODELS_TODAY}; next ")
    assert (len(model.most), reply.left["today"]) == (3, {"requests": 0})


@pytest.mark.usefixtures("priced")
def test_a_day_is_settled_with_what_was_used(tmp_path: Path) -> None:
    reply = run(tmp_path, Asked(*looks(1)), policy=a_day(cost=100, tokens=50_000))
    assert reply.left["today"] == {"tokens": 48_000, "cost": pytest.approx(96.2)}
    store = Store(store_path(tmp_path))
    assert store.execute("SELECT user, sum(requests), sum(tokens) FROM spending") == [("ann", 2, 2_000)]
    store.close()


def test_a_request_that_failed_is_none_of_the_day(tmp_path: Path) -> None:
    assert run(tmp_path, Down(), policy=a_day(requests=1)).error == "It is down."
    assert run(tmp_path, Asked("Done."), policy=a_day(requests=1)).left["today"] == {"requests": 0}


async def test_a_request_waits_for_the_disk_with_what_was_reserved(tmp_path: Path) -> None:
    store, order = Store(tmp_path / "store.db"), []

    class Slow(Spending):
        async def on_disk(self) -> None:
            await super().on_disk()
            order.append("on disk")

    purse = Purse(Budget(9, 9), Funds(Slow(lambda: store, [DailyBudget(requests=2)])), "ann")
    async with purse.paying(Asked("x"), lambda: 100, 1_000):
        order.append("sent")
    assert order == ["on disk", "sent"]
    store.close()


async def test_a_request_whose_reservation_cannot_be_written_is_not_sent(tmp_path: Path) -> None:
    store = Store(tmp_path / "store.db")

    class Broken(Spending):
        async def on_disk(self) -> None:
            raise StoreError(f"It {COULD_NOT_BE_WRITTEN}")

    daily = Broken(lambda: store, [DailyBudget(requests=2)])
    with pytest.raises(StoreError):
        async with Purse(Budget(9, 9), Funds(daily), "ann").paying(Asked("x"), lambda: 100, 1_000):
            pytest.fail("it was sent")
    assert daily.left("ann") == {"requests": 2}
    store.close()


def test_a_question_of_a_persons_call_counts_too(tmp_path: Path) -> None:
    model = Asked("Yes.", "No.")
    with Agent(workspace=tmp_path, model=model, policy=a_day(requests=1), user="ann") as agent:
        results = [agent.call('(think "So?")') for _ in range(2)]
    assert [result.status for result in results] == ["ok", "limited"]
    assert results[1].message.startswith(f"ann has made 1 of 1 {REQUESTS_TO_MODELS_TODAY}; next ")


async def test_of_many_runs_at_once_no_more_ask_the_model_than_may(tmp_path: Path) -> None:
    runs = many(2)
    model = TalkingFunction(lambda messages: "Done.")

    async def one(number: int) -> Reply:
        async with AsyncAgent(
            workspace=tmp_path, model=model, tools=table(), policy=a_day(requests=runs // 4), user="ann"
        ) as agent:
            return await agent.run("Look.")

    replies = await asyncio.gather(*map(one, range(runs)))
    assert [reply.status for reply in replies].count("done") == runs // 4
    assert all(REQUESTS_TO_MODELS_TODAY in reply.error for reply in replies if not reply.ok)


# What a provider is told


@contextmanager
def claude(answer: Any) -> Iterator[tuple[Any, AnthropicBackend]]:
    made = answer if callable(answer) else status(200, answer)
    with loopback(made) as server:
        yield server, AnthropicBackend("claude-9", server.base_url, KEY, sleep=Sleeps())


@pytest.mark.parametrize(("told", "counted"), [(-(10**9), 0), (10**400, 10**9), (True, 0), ("9", 0)])
async def test_a_server_that_tells_nonsense_of_its_usage_gives_nothing_back(told: Any, counted: int) -> None:
    answer = {
        "content": [],
        "usage": {"input_tokens": told, "output_tokens": 7, "cache_read_input_tokens": told},
    }
    with claude(answer) as (_, model):
        usage = (await model.complete(said("Hello"))).usage
        await model.aclose()
    assert (usage.tokens, usage.cached_tokens) == (2 * counted + 7, counted)


def test_no_more_is_read_from_a_cache_than_was_sent() -> None:
    usage = Usage(input_tokens=10, output_tokens=1, cached_tokens=10**9, written_tokens=10**9)
    assert 0 < cost_of("openai:gpt-5-mini", usage) < 0.001


async def test_a_reply_that_was_cut_off_on_its_way_is_paid_as_it_was_reserved() -> None:
    purse = Purse(Budget(9, 9, tokens=50_000))
    with claude(cut_off) as (_, model):
        way = CascadeRun([model, Asked("x")])
        with pytest.raises(MovedError):
            async with purse.paying(way, lambda: 100, 1_000):
                await way.complete(said("Hello"), max_tokens=1_000)
        await model.aclose()
    assert purse.budget.tokens_left == 50_000 - 100 - 1_000 - model.thinking_tokens


async def test_a_model_that_thinks_unasked_thinks_no_more_than_can_be_paid() -> None:
    said = {"content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 5, "output_tokens": 2}}
    messages = Messages()
    messages.append("user", "Hello")
    with claude(said) as (server, model):
        for tokens, told in ((90_000, 1_000 + 8_192), (5_000, 4_900)):
            purse = Purse(Budget(9, 9, tokens=tokens))
            async with purse.paying(model, lambda: 100, 1_000) as payment:
                await model.complete(
                    messages, max_tokens=payment.reply_tokens, options=purse.options(payment)
                )
            assert server.asked()["max_tokens"] == told
        await model.aclose()


async def test_a_request_that_cannot_be_paid_is_not_sent() -> None:
    purse = Purse(Budget(9, 9, tokens=100))
    with pytest.raises(BudgetError):
        async with purse.paying(Asked("x"), lambda: 100, 1_000):
            pytest.fail("it was sent")


# Limits


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"tokens": 0}, f"tokens of RunLimits must be {A_WHOLE_NUMBER_FROM_1}, not 0."),
        ({"cost": -1}, f"cost of RunLimits must be {A_NUMBER_FROM_0}, not -1."),
        ({"cost": True}, f"cost of RunLimits must be {A_NUMBER_FROM_0}, not True."),
        ({"seconds": "9"}, f"seconds of RunLimits must be {A_NUMBER_FROM_0}, not '9'."),
        ({"parallel": 0}, f"parallel of RunLimits must be {A_WHOLE_NUMBER_FROM_1}, not 0."),
    ],
)
def test_what_is_no_bound_is_a_sentence(tmp_path: Path, wrong: dict[str, Any], sentence: str) -> None:
    assert complaint(UsageError, lambda: Agent(workspace=tmp_path, limits=RunLimits(**wrong))) == sentence


def test_the_budgets_of_a_day_are_a_list() -> None:
    said = complaint(UsageError, lambda: PolicyOptions(budgets=5))  # type: ignore[arg-type]
    assert said == "budgets is a list such as [DailyBudget(cost=5)], not 5."


def test_json_holds_what_was_spent_and_what_is_left_only_where_that_is_bounded(tmp_path: Path) -> None:
    told = json.loads(json.dumps(run(tmp_path, Asked(*looks(1)), RunLimits(tokens=50_000)).to_json()))
    assert told["spent"]["tokens"] == 2_000
    assert told["left"] == {"steps": 23, "calls": 99, "tokens": 48_000}
    assert "left" not in run(tmp_path, Asked(*looks(1))).to_json()


# Cascades


@pytest.mark.usefixtures("priced")
def test_of_a_cascade_the_model_that_answers_is_paid(tmp_path: Path) -> None:
    answer = Completion("Done.", A_STEP)
    reply = run(tmp_path, Cascade([Down(), Asked(answer, name="local")]), RunLimits(cost=50))
    assert (reply.text, reply.spent["cost"]) == ("Done.", 0)
    reply = run(tmp_path, Cascade([Down(name="local"), Asked(answer)]), RunLimits(cost=50))
    assert (reply.text, reply.spent["cost"]) == ("Done.", pytest.approx(1.9))


@pytest.mark.usefixtures("priced")
def test_a_cascade_with_an_unknown_price_is_refused_as_a_whole(tmp_path: Path) -> None:
    models = Cascade([Asked("Done."), Asked("Done.", name="openai:gpt-10")])
    said = complaint(UsageError, lambda: run(tmp_path, models, RunLimits(cost=50)))
    assert (
        said
        == "The cost of openai:gpt-10 cannot be bounded: its price is not known; bound its tokens instead."
    )
