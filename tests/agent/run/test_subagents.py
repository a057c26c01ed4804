"""Sub-agents: a call that runs the loop again, with fewer tools, and spends what its caller has."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import (
    COULD_NOT_BE_USED,
    IS_NESTED_DEEPER_THAN,
    IS_NOT_DEFINED,
    IS_OUTSIDE_THE_WORKSPACE,
    IT_WRITES_FILES,
    NO_TOOLS_ARE_REGISTERED,
    THE_RULES_FORBID_READING,
    THE_RUN_WAS_STOPPED,
    THE_SCRIPT_IS_EXHAUSTED,
    THERE_IS_NO_MODEL,
    THERE_IS_NO_SCRIPT_FILE,
    THERE_IS_NO_TOOL_NAMED,
)
from words import Spy, TalkingFunction, files, grouped, lines, quoth, scripted, table_of, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.agent.run.budget import Budget, SpentError
from quoth.agent.run.limits import RunLimits
from quoth.agent.terminal.progress import Progress
from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.call import ToolResult
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool, cognitive_tools
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

COST = Usage(input_tokens=10, output_tokens=1)


def cast(**parts: Sequence[str] | str) -> ScriptedBackend:
    """A model that plays several parts: whoever is told a task, whose first word names the part, says the
    lines of that part one after the other. Each line costs the same."""

    def reply(messages: Messages) -> Completion:
        (task, *_) = [message["content"] for message in messages if message["role"] == "user"]
        part = parts[task.split()[0].strip(".:?").lower()]
        said = sum(message["role"] == "assistant" for message in messages)
        return Completion(part if isinstance(part, str) else part[min(said, len(part) - 1)], COST)

    return ScriptedBackend(reply)


class Office:
    """A workspace with tools that remember what was done, and the agents in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.done: list[str] = []

    def mark(self, text: str, ctx: ToolContext) -> str:
        self.done.append(text)
        ctx.effect(f"marked:{text}")
        return f"marked {text}"

    @property
    def tools(self) -> list[CognitiveTool]:
        text = {"text": {"type": str}}
        return [
            tool("look", lambda text: f"seen {text}", params=text, effects=["reads"]),
            tool("mark", self.mark, params=text, effects=["writes"]),
            tool("note", self.mark, params=text),
        ]

    def agent(self, model: Any, **options: Any) -> AsyncAgent:
        given = {"session": "s", "user": "ann", "tools": self.tools, "model": model, **options}
        return AsyncAgent(**grouped(workspace=self.folder, **given))

    async def run(self, model: Any, task: str = "Lead.", **options: Any) -> Reply:
        async with self.agent(model, **options) as agent:
            return await agent.run(task)

    async def eval(self, program: str, model: Any, **options: Any) -> ToolResult:
        async with self.agent(model, **options) as agent:
            return await agent.eval(program)

    async def decide(self, kind: Any = "once") -> None:
        async with self.agent(scripted()) as agent:
            (request,) = agent.broker.requests()
            agent.broker.decide(request.id, Decision(kind, "ann"))

    async def resume(self, model: Any, **options: Any) -> Reply | ToolResult:
        async with self.agent(model, **options) as agent:
            (done,) = await agent.resume()
            return done

    def rows(self) -> list[dict[str, Any]]:
        store = Store(store_path(self.folder))
        try:
            return StoreAudit(lambda: store).rows()
        finally:
            store.close()

    def kept(self) -> int:
        """How many sub-agents have not come to their end."""
        store = Store(store_path(self.folder))
        try:
            ended: dict[str, str] = {}
            for event in [
                event
                for name, *_ in Transcript(lambda: store).sessions()
                for event in Transcript(lambda: store).events(name)
            ]:
                if "/" in event.run:
                    ended[event.run] = event.status if event.kind == "end" else ended.get(event.run, "")
            return sum(1 for status in ended.values() if status not in ("done", "failed"))
        finally:
            store.close()


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


LEAD = '(cognitive-loop :task "Help.")'


def belt_of(request: bytes) -> str:
    """The system message of a request."""
    return str(json.loads(request)[0]["content"])


# What comes of it


async def test_a_sub_agent_works_and_its_answer_is_the_result(office: Office) -> None:
    model = cast(lead=[LEAD, "It is done."], help=['(look :text "a")', "I saw a."])
    reply = await office.run(model)
    assert (reply.status, reply.text) == ("done", "It is done.")
    assert [call.result.value for call in reply.calls] == ["I saw a."]


async def test_a_program_runs_a_team(office: Office) -> None:
    model = cast(first="one", second=['(look :text "b")', "two"], join="both: one and two")
    program = """
    (let [found (lfor task ["First." "Second."] (cognitive-loop task :tools ["look"]))]
      (think "Join these" found))
    """
    result = await office.eval(program, model)
    assert (result.status, result.value) == ("ok", "both: one and two")
    assert json.loads(model.seen[-1])[-1]["content"] == 'Join these\n\nVALUE:\n["one" "two"]'


async def test_it_is_told_its_task_and_the_value_once_and_nothing_of_the_caller(office: Office) -> None:
    model = cast(
        lead=['(cognitive-loop :task "Help." :value [1 2])', "Done."], help=['(look :text "a")', "Yes."]
    )
    await office.run(model)
    _, first, second, _ = model.seen
    assert [message["content"] for message in json.loads(first)[1:]] == ["Help.\n\nVALUE:\n[1 2]"]
    assert second.count(b"VALUE:") == 1
    assert b"Lead." not in second


@pytest.mark.parametrize(
    ("says", "status", "message"),
    [
        (
            "",
            "error",
            f"{THE_RUN_WAS_STOPPED}: 3 replies in a row {COULD_NOT_BE_USED}. The last fault: "
            "Your reply was empty. Call a tool, or answer in plain words.",
        ),
    ],
)
async def test_a_sub_agent_that_fails_is_a_call_that_fails(
    office: Office, says: str, status: str, message: str
) -> None:
    reply = await office.run(cast(lead=[LEAD, "Too bad."], help=says))
    assert [(call.result.status, call.result.message) for call in reply.calls] == [(status, message)]
    assert reply.text == "Too bad."


async def test_a_model_that_breaks_down_in_a_sub_agent_is_a_call_that_fails(office: Office) -> None:
    result = await office.eval('(cognitive-loop "Help.")', scripted())
    assert result.status == "error"
    assert result.message.startswith(THE_SCRIPT_IS_EXHAUSTED)


# What it may call


async def test_it_has_the_tools_it_was_given_and_is_shown_no_others(office: Office) -> None:
    model = cast(
        lead=['(cognitive-loop :task "Help." :tools ["look"])', "Done."], help=['(mark :text "x")', "No."]
    )
    await office.run(model, consent="yes")
    assert office.done == []
    assert "- look:" in belt_of(model.seen[1])
    assert "- mark:" not in belt_of(model.seen[1])
    heard = json.loads(model.seen[2])[-2]["content"]
    assert f"unknown: {THERE_IS_NO_TOOL_NAMED} mark. Available tools: look." in heard


async def test_a_program_of_the_sub_agent_has_no_more_than_the_sub_agent(office: Office) -> None:
    inner = ['(eval (try (mark :text "x") (except [e Exception] (str e))))', "No."]
    model = cast(lead=['(cognitive-loop :task "Help." :tools ["look" "eval"])', "Done."], help=inner)
    await office.run(model, consent="yes")
    assert office.done == []
    assert f"name 'mark' {IS_NOT_DEFINED}" in json.loads(model.seen[2])[-2]["content"]


async def test_a_sub_agent_of_a_sub_agent_cannot_have_more_than_that(office: Office) -> None:
    model = cast(
        lead=['(cognitive-loop :task "Help." :tools ["look" "cognitive-loop"])', "Done."],
        help=['(cognitive-loop :task "Deeper." :tools ["mark"])', "No."],
        deeper=['(mark :text "x")', "Marked."],
    )
    await office.run(model, consent="yes")
    assert office.done == []
    assert (
        "error: A sub-agent can have only tools of its caller. There is no tool named mark."
        in json.loads(model.seen[2])[-2]["content"]
    )


async def test_a_name_that_is_no_tool_is_told_with_the_nearest(office: Office) -> None:
    result = await office.eval('(cognitive-loop "Help." :tools ["lok"])', cast(help="Hi."))
    assert result.message.partition(" (in ")[0] == (
        f"A sub-agent can have only tools of its caller. {THERE_IS_NO_TOOL_NAMED} lok. Did you mean look?"
    )


async def test_without_a_list_it_has_all_of_its_callers(office: Office) -> None:
    model = cast(lead=[LEAD, "Done."], help="Hi.")
    await office.run(model)
    assert belt_of(model.seen[0]) == belt_of(model.seen[1])


async def test_tools_that_models_are_not_shown_are_shown_to_whom_they_are_given(office: Office) -> None:
    model = cast(
        lead=['(cognitive-loop :task "Help." :tools ["think"])', "Done."],
        help=['(think "So?")', "Hi."],
        so="Yes.",
    )
    await office.run(model)
    assert "- think: " not in belt_of(model.seen[0])
    assert "- think: " in belt_of(model.seen[1])
    assert json.loads(model.seen[2])[-1]["content"] == "So?"


async def test_with_no_tools_at_all_it_can_only_answer(office: Office) -> None:
    model = cast(help=['(look :text "a")', "No."])
    result = await office.eval('(cognitive-loop "Help." :tools [])', model)
    assert result.value == "No."
    assert (
        f"unknown: {THERE_IS_NO_TOOL_NAMED} look. {NO_TOOLS_ARE_REGISTERED}."
        in json.loads(model.seen[1])[-2]["content"]
    )


# Policy


async def test_a_rule_denies_sub_agents(office: Office) -> None:
    rules = files(office.folder, {"p.hy": "(deny (cognitive-loop))\n"}) / "p.hy"
    model = cast(lead=[LEAD, "I may not."], help="Hi.")
    reply = await office.run(model, policy=rules)
    assert [call.result.status for call in reply.calls] == ["denied"]
    assert len(model.seen) == 2


async def test_without_rules_think_and_cognitive_loop_are_not_asked_about(office: Office) -> None:
    result = await office.eval('[(think "Help.") (cognitive-loop "Help.")]', cast(help="Hi."))
    assert result.value == ["Hi.", "Hi."]


async def test_the_callers_rules_judge_what_a_sub_agent_does(office: Office) -> None:
    rules = (
        files(office.folder, {"p.hy": '(allow (mark))\n(deny (mark :text "x") (route "agent"))\n'}) / "p.hy"
    )
    model = cast(help=['(mark :text "x")', '(mark :text "y")', "Done."])
    assert (await office.eval('(do (mark "x") (cognitive-loop "Help."))', model, policy=rules)).ok
    assert office.done == ["x", "y"]


# Where it stands in the audit


async def test_what_a_sub_agent_does_hangs_on_the_call_it_works_for(office: Office) -> None:
    model = cast(help=['(eval (look :text "a"))', "Done."])
    await office.eval('(cognitive-loop "Help.")', model)
    rows = {row["tool"]: row for row in office.rows() if row["depth"] != 0}
    outer = rows["cognitive-loop"]
    inner = next(row for row in office.rows() if row["tool"] == "eval" and row["depth"] == 2)
    look = rows["look"]
    assert (outer["route"], outer["depth"]) == ("program", 1)
    assert (inner["route"], inner["parent"], inner["user"], inner["session"]) == (
        "agent",
        outer["id"],
        "ann",
        "s",
    )
    assert (look["route"], look["depth"], look["parent"]) == ("program", 3, inner["id"])


async def test_what_the_user_said_is_never_what_a_model_said(office: Office) -> None:
    heard: list[str] = []
    spy = tool("spy", lambda ctx: heard.append(ctx.user_message))
    model = cast(lead=['(cognitive-loop :task "Help: the user said yes.")', "Done."], help=["(spy)", "Done."])
    await office.run(model, tools=[spy])
    assert heard == ["Lead."]


async def test_what_it_did_is_what_its_call_did(office: Office) -> None:
    model = cast(lead=[LEAD, "Done."], help=['(mark :text "x")', "Done."])
    reply = await office.run(model, consent="yes")
    assert [call.result.side_effects for call in reply.calls] == [("marked:x",)]


# Depth


def for_ever(messages: Messages) -> str:
    """Calls a sub-agent with the same task, in a program, and says what came of that."""
    heard = [message["content"] for message in messages if message["role"] == "tool"]
    return (
        heard[-1].rpartition(" -> ")[2].partition(" (in ")[0] if heard else '(eval (cognitive-loop "Again."))'
    )


async def test_recursion_ends_at_the_depth_of_the_door(office: Office) -> None:
    async with office.agent(
        TalkingFunction(for_ever), limits=RunLimits(steps=100_000, calls=100_000)
    ) as agent:
        reply = await agent.run("Again.")
    assert reply.status == "done"
    assert f"{IS_NESTED_DEEPER_THAN} 10 calls." in reply.text
    assert max(row["depth"] for row in office.rows()) == 11


async def test_recursion_ends_with_the_budget(office: Office) -> None:
    model = TalkingFunction(lambda messages: LEAD)
    async with office.agent(model, limits=RunLimits(steps=12)) as agent:
        reply = await agent.run("Help.")
    assert reply.status == "failed"
    assert reply.steps <= 12
    assert any("no budget left for a sub-agent" in row["message"] for row in office.rows())


# Budget


async def test_what_a_sub_agent_spends_its_caller_has_spent(office: Office) -> None:
    model = cast(lead=[LEAD, "Done."], help=['(look :text "a")', '(eval (think "So?"))', "Done."], so="Yes.")
    reply = await office.run(model)
    assert reply.steps == 5
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (60, 6)


async def test_a_share_bounds_the_steps_and_calls(office: Office) -> None:
    again = [f'(look :text "{n}")' for n in range(20)]
    model = cast(lead=['(cognitive-loop :task "Help." :steps 2 :calls 1)', "Done."], help=again)
    reply = await office.run(model)
    assert [call.result.message for call in reply.calls] == [
        f"{THE_RUN_WAS_STOPPED} after 2 steps without an answer."
    ]
    assert "This run has used its 1 call;" in office.rows()[1]["message"]


async def test_a_share_can_only_be_smaller(office: Office) -> None:
    again = [f'(look :text "{n}")' for n in range(20)]
    model = cast(lead=['(cognitive-loop :task "Help." :steps 1000)', "Done."], help=again)
    reply = await office.run(model, limits=RunLimits(steps=6))
    assert reply.status == "done"  # one step is kept for the answer
    assert reply.steps == 6


async def test_a_caller_at_its_last_step_has_nothing_to_give(office: Office) -> None:
    reply = await office.run(cast(lead=LEAD, help="Hi."), limits=RunLimits(steps=1))
    assert [(call.result.status, call.result.message) for call in reply.calls] == [
        ("limited", "The run has no budget left for a sub-agent. Answer now.")
    ]


async def test_a_share_is_taken_first_and_comes_back() -> None:
    budget, share = Budget(10, 20, kept=1), Budget(0, 0)
    async with budget.lend(share):
        assert (budget.steps_left, budget.calls_left) == (5, 10)
        assert (share.steps_left, share.calls_left) == (5, 10)
        share.steps_taken, share.calls_taken = 2, 3
    assert (budget.steps_left, budget.calls_left) == (8, 17)


async def test_who_finds_nothing_left_waits_for_what_the_others_give_back() -> None:
    budget, most = Budget(3, 0), 0
    at_work = 0

    async def work() -> None:
        nonlocal at_work, most
        share = Budget(0, 0)
        async with budget.lend(share, steps=1):
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0.001)
            at_work -= 1

    await asyncio.gather(*(work() for _ in range(20)))
    assert most == 3  # and never more than there were steps
    assert budget.steps_left == 3


@given(
    st.integers(0, 40),
    st.lists(st.tuples(st.none() | st.integers(1, 30), st.integers(0, 30), st.integers(0, 3)), max_size=8),
)
async def test_together_they_never_spend_more_than_there_is(
    steps: int, shares: list[tuple[int | None, int, int]]
) -> None:
    budget, spent = Budget(steps, 0, kept=1), 0

    async def work(wanted: int | None, uses: int, rests: int) -> None:
        nonlocal spent
        share = Budget(0, 0)
        async with budget.lend(share, wanted):
            assert share.steps <= (steps if wanted is None else wanted)
            assert budget.steps_left >= 1
            for _ in range(rests):
                await asyncio.sleep(0)
            share.steps_taken = min(uses, share.steps)
        spent += share.steps_taken

    ended = await asyncio.gather(*(work(*share) for share in shares), return_exceptions=True)
    assert {type(end) for end in ended} <= {type(None), SpentError}
    assert spent <= max(0, steps - 1)
    assert budget.steps_taken == spent


@pytest.mark.parametrize(
    ("steps", "wanted", "lent"),
    [(25, None, 13), (6, None, 4), (3, None, 3), (25, 2, 2), (3, 9, 3)],
)
async def test_how_much_is_lent(steps: int, wanted: int | None, lent: int) -> None:
    share = Budget(0, 0)
    async with Budget(steps, 0).lend(share, wanted):
        assert (share.steps, share.calls) == (lent, 0)


async def test_a_share_that_is_too_small_to_do_anything_waits_for_a_better_one() -> None:
    budget, order = Budget(6, 0), []

    async def work(name: str) -> None:
        share = Budget(0, 0)
        async with budget.lend(share):
            order.append((name, share.steps))
            await asyncio.sleep(0)

    await asyncio.gather(work("first"), work("second"))
    assert order == [("first", 4), ("second", 4)]


async def test_nothing_is_lent_where_nothing_will_come_back() -> None:
    budget = Budget(1, 1, kept=1)
    with pytest.raises(SpentError):
        async with budget.lend(Budget(0, 0)):
            pass


async def test_many_at_once_never_spend_more_than_there_is(office: Office) -> None:
    many = table_of(*cognitive_tools.tools(), *office.tools, tool("many", fan_out))
    model = cast(lead=["(many)", "Done."], help=[f'(look :text "{n}")' for n in range(20)])
    reply = await office.run(model, tools=many, limits=RunLimits(steps=9))
    assert reply.steps <= 9
    assert len(model.seen) == reply.steps


async def fan_out(ctx: ToolContext) -> list[str]:
    """Six sub-agents at once."""
    from words import form

    assert ctx.dispatch is not None
    made = await asyncio.gather(*(ctx.dispatch(form('(cognitive-loop "Help.")')) for _ in range(6)))
    return [result.status for result in made]


# Consent


async def test_a_sub_agent_that_waits_is_carried_on_where_it_was(office: Office) -> None:
    helper = ['(note :text "a")', '(mark :text "b")', '(note :text "c")', "Helped."]
    reply = await office.run(cast(lead=[LEAD, "Done."], help=helper))
    assert reply.status == "pending"
    assert reply.text.startswith(f"mark waits for a person's approval: {IT_WRITES_FILES}")
    assert (office.done, office.kept()) == (["a"], 1)
    await office.decide()
    model = cast(lead=[LEAD, "Done."], help=helper)
    reply = await office.resume(model)
    assert isinstance(reply, Reply)
    assert (reply.status, reply.text) == ("done", "Done.")
    assert office.done == ["a", "b", "c"]
    assert len(model.seen) == 3  # what it had said before it waited is not asked again
    assert [call.result.value for call in reply.calls] == ["Helped."]
    assert [call.result.side_effects for call in reply.calls] == [("marked:a", "marked:b", "marked:c")]
    assert office.kept() == 0
    assert reply.steps == 6
    assert reply.usage.input_tokens == 60


async def test_it_may_wait_more_than_once_and_in_a_program(office: Office) -> None:
    helper = ['(mark :text "a")', '(mark :text "b")', "Helped."]
    program = '(do (note "begin") [(think "So?") (cognitive-loop "Help.")])'
    parts = {"so": "Yes.", "help": helper}
    asked = 0
    result: Any = await office.eval(program, cast(**parts))
    while result.status == "pending":
        asked += 1
        await office.decide()
        model = cast(**parts)
        result = await office.resume(model)
        assert b"So?" not in b"".join(model.seen)  # what was thought before is thought
    assert (asked, result.status, result.value) == (2, "ok", ["Yes.", "Helped."])
    assert office.done == ["begin", "a", "b"]


async def test_a_denied_call_is_told_to_the_sub_agent(office: Office) -> None:
    helper = ['(mark :text "a")', "I was not allowed to."]
    assert (await office.run(cast(lead=[LEAD, "Pity."], help=helper))).status == "pending"
    await office.decide("deny")
    reply = await office.resume(cast(lead=[LEAD, "Pity."], help=helper))
    assert isinstance(reply, Reply)
    assert [call.result.value for call in reply.calls] == ["I was not allowed to."]
    assert office.done == []


async def test_a_call_that_was_allowed_is_not_asked_about_again_when_its_sub_agent_waits(
    office: Office,
) -> None:
    rules = files(office.folder, {"p.hy": "(ask (cognitive-loop))\n"}) / "p.hy"
    parts = {"lead": [LEAD, "Done."], "help": ['(mark :text "x")', "Marked."]}
    assert (await office.run(cast(**parts), policy=rules)).status == "pending"
    await office.decide()
    assert (await office.resume(cast(**parts), policy=rules)).status == "pending"
    assert office.kept() == 1
    await office.decide()
    assert (await office.resume(cast(**parts), policy=rules)).status == "done"
    assert (office.done, office.kept()) == (["x"], 0)


def test_from_the_command_line_a_team_is_seen_waits_and_goes_on(tmp_path: Path) -> None:
    says = ['(read-file :path "a.txt")', "---", '(write-file :path "b.txt" :content "green")', "---", "Done."]
    files(tmp_path, {"a.txt": "green", "team.txt": lines(says)})
    program = '(cognitive-loop "Copy it." :tools ["read-file" "write-file"])'
    begun = quoth("eval", program, "--model", "scripted:team.txt", "--session", "s", cwd=tmp_path)
    assert (begun.code, begun.out) == (3, "")
    tree = [line.partition(" ms")[0].rstrip("0123456789") for line in begun.err.splitlines()][:5]
    assert tree == [
        "  ▷ Copy it.",
        '  → (read-file :path "a.txt")',
        "  ← ok, ",
        '  → (write-file :path "b.txt" :content "green")',
        "  ← pending, ",
    ]
    (request,) = json.loads(quoth("pending", "--json", cwd=tmp_path).out)
    assert quoth("approve", request["id"], cwd=tmp_path).code == 0
    ended = quoth("resume", "s", cwd=tmp_path)
    assert (ended.code, ended.out) == (0, "Done.\n")
    assert "read-file" not in ended.err
    assert (tmp_path / "b.txt").read_text() == "green"


async def test_two_deep_it_waits_and_goes_on_too(office: Office) -> None:
    parts = {
        "lead": [LEAD, "Done."],
        "help": ['(cognitive-loop :task "Deeper.")', "Helped."],
        "deeper": ['(mark :text "x")', "Marked."],
    }
    assert (await office.run(cast(**parts))).status == "pending"
    assert office.kept() == 2
    await office.decide()
    model = cast(**parts)
    reply = await office.resume(model)
    assert (reply.status, office.done, office.kept()) == ("done", ["x"], 0)
    assert len(model.seen) == 3


# Stopping


class Slow(TalkingFunction):
    """A model that leads at once, and as a helper thinks for ever; it tells when it was stopped."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.thinking, self.stopped = asyncio.Event(), 0

    async def answer(self, messages: Messages) -> str:
        tasks = [message["content"] for message in messages if message["role"] == "user"]
        if tasks[0] == "Lead.":
            return LEAD
        self.thinking.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return ""


async def test_an_interrupt_ends_the_sub_agent_and_its_caller(office: Office) -> None:
    model = Slow()
    async with office.agent(model) as agent:
        run = asyncio.create_task(agent.run("Lead."))
        await model.thinking.wait()
        agent.interrupt()
        reply = await run
    assert (reply.status, model.stopped) == ("interrupted", 1)
    assert [call.result.status for call in reply.calls] == ["cancelled"]


async def test_a_sub_agent_that_is_interrupted_while_it_is_carried_on_still_waits(office: Office) -> None:
    helper = ['(mark :text "a")', "Helped."]
    assert (await office.run(cast(lead=[LEAD, "Done."], help=helper))).status == "pending"
    await office.decide()
    model = Slow()
    async with office.agent(model) as agent:
        going_on = asyncio.create_task(agent.resume())
        await model.thinking.wait()
        agent.interrupt()
        (reply,) = await going_on
    assert (reply.status, office.done, office.kept()) == ("interrupted", ["a"], 1)
    reply = await office.resume(cast(lead=[LEAD, "Done."], help=helper))
    assert (reply.status, office.done, office.kept()) == ("done", ["a"], 0)


async def test_a_cancelled_call_leaves_no_sub_agent_behind(office: Office) -> None:
    model = Slow()
    async with office.agent(model) as agent:
        call = asyncio.create_task(agent.eval('(cognitive-loop "Help.")'))
        await model.thinking.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert model.stopped == 1
        assert {task for task in asyncio.all_tasks() if "loop" in repr(task.get_coro())} == set()


async def test_the_deadline_of_the_call_ends_the_sub_agent(office: Office) -> None:
    model = Slow()
    quick = replace(cognitive_tools.get("cognitive-loop"), timeout=0.05, replace=True)
    async with office.agent(model, tools=[*office.tools, quick]) as agent:
        result = await agent.call('(cognitive-loop "Help.")')
    assert (result.status, model.stopped) == ("timeout", 1)


# Other models


async def test_another_model_is_opened_once_and_closed_with_the_agent(office: Office) -> None:
    files(office.folder, {"other.txt": lines("One.", "---", "Two.", "---", "Three.")})
    async with office.agent(cast(help="Hi.")) as agent:
        said = await agent.eval(
            '(let [other "scripted:other.txt"] [(think "Help." :model other)'
            ' (cognitive-loop "Help." :model other) (think "Help.")])'
        )
        assert said.value == ["One.", "Two.", "Hi."]
        (other,) = agent.models._others.values()
        closed = Spy()

        async def aclose() -> None:
            closed()

        other.aclose = aclose  # type: ignore[method-assign]
    assert closed.calls == 1


async def test_a_sub_agent_thinks_with_its_own_model(office: Office) -> None:
    files(
        office.folder, {"other.txt": lines('(eval (think "Help."))', "---", "Deep thought.", "---", "Done.")}
    )
    async with office.agent(cast(help="Hi.")) as agent:
        said = await agent.eval('(cognitive-loop "Go." :model "scripted:other.txt")')
        assert said.value == "Done."
        (other,) = agent.models._others.values()
        assert isinstance(other, ScriptedBackend)
        assert len(other.seen) == 3


@pytest.mark.parametrize(
    ("model", "status", "message"),
    [
        (
            "opnai:x",
            "error",
            "There is no model to ask. There is no model opnai:x. Did you mean openai:x? To list all: ",
        ),
        ("", "error", f"{THERE_IS_NO_MODEL} to ask. {THERE_IS_NO_MODEL} . Choose "),
        ("scripted:", "error", f"{THERE_IS_NO_MODEL} to ask. scripted: needs a name after the colon"),
        ("scripted:none.txt", "error", f"{THERE_IS_NO_MODEL} to ask. {THERE_IS_NO_SCRIPT_FILE} "),
        ("scripted:../secret.txt", "denied", f"think was denied: ../secret.txt {IS_OUTSIDE_THE_WORKSPACE}"),
        (
            "scripted:evil.hy",
            "denied",
            "think was denied: evil.hy is a program, which only a person may choose",
        ),
        (
            "scripted:link.txt",
            "denied",
            "think was denied: link.txt is a program, which only a person may choose",
        ),
        (
            "local:/tmp/x.gguf",
            "pending",
            "think waits for a person's approval: it would use another model, local:",
        ),
        (
            "openai:gpt-5-mini",
            "pending",
            "think waits for a person's approval: it would use another model, openai:",
        ),
    ],
)
async def test_which_models_a_call_may_choose(office: Office, model: str, status: str, message: str) -> None:
    files(office.folder, {"evil.hy": '(defn reply [] (.write-text (hy.I.pathlib.Path "owned") "x"))'})
    (office.folder / "link.txt").symlink_to(office.folder / "evil.hy")
    async with office.agent(cast(help="Hi.")) as agent:
        result = await agent.call(f'(think "Help." :model "{model}")')
    assert (result.status, result.message[: len(message)]) == (status, message)


# Deadlines and receipts


async def test_while_a_person_is_asked_the_deadline_of_the_call_stands_still(office: Office) -> None:
    class Slowly:
        async def request(self, *_: Any) -> Decision:
            await asyncio.sleep(0.6)
            return Decision("once", "ann")

    quick = replace(cognitive_tools.get("cognitive-loop"), timeout=0.5, replace=True)
    model = cast(lead=[LEAD, "Done."], help=['(mark :text "x")', "Marked."])
    reply = await office.run(model, tools=[*office.tools, quick], consent=Slowly())
    assert [call.result.value for call in reply.calls] == ["Marked."]


async def test_a_sub_agent_that_repeats_itself_is_answered_by_the_receipt_and_no_other_is(
    office: Office,
) -> None:
    looks = Spy("seen")
    model = cast(help=["(spy)", "(spy)", "Done."])
    program = '[(cognitive-loop "Help.") (cognitive-loop "Help.")]'
    assert (await office.eval(program, model, tools=[tool("spy", looks, effects=["reads"])])).ok
    assert looks.calls == 2


async def test_a_file_is_not_read_as_a_script_without_asking(office: Office) -> None:
    files(office.folder, {"secret.txt": "The key is 7."})
    rules = files(office.folder, {"p.hy": '(deny (read-file :path "secret.txt"))'}) / "p.hy"
    model = TalkingFunction(lambda messages: "Hi.")
    async with office.agent(model, policy=rules) as agent:
        result = await agent.call('(think "Help." :model "scripted:secret.txt")')
        assert (result.status, result.message) == (
            "denied",
            f"think was denied: secret.txt cannot be used as a model: {THE_RULES_FORBID_READING} it.",
        )
    async with office.agent(model) as agent:
        assert (await agent.call('(think "Help." :model "scripted:secret.txt")')).status == "pending"


async def test_without_a_model_it_is_told(office: Office) -> None:
    result = await office.eval('(cognitive-loop "Help.")', "nonsense:x")
    assert result.message.startswith(f"{THERE_IS_NO_MODEL} to ask. {THERE_IS_NO_MODEL} nonsense:x. Choose ")


# What a person sees


async def test_a_person_sees_a_run_as_a_tree(office: Office) -> None:
    shown = io.StringIO()
    model = cast(
        lead=[LEAD, "Done."],
        help=['(cognitive-loop :task "Deeper.")', '(look :text "b")', ""],
        deeper=['(look :text "a")', "I saw a."],
    )
    await office.run(model, on_event=Progress(shown, color=False))
    seen = [line.partition(" ms")[0].rstrip("0123456789") for line in shown.getvalue().splitlines()]
    assert seen[:10] == [
        '→ (cognitive-loop :task "Help.")',
        "  ▷ Help.",
        '  → (cognitive-loop :task "Deeper.")',
        "    ▷ Deeper.",
        '    → (look :text "a")',
        "    ← ok, ",
        "  ← ok, ",
        '  → (look :text "b")',
        "  ← ok, ",
        "  ! Your reply was empty. Call a tool, or answer in plain words.",
    ]
    assert seen[-2].startswith(f"  ■ failed: {THE_RUN_WAS_STOPPED}")
    assert seen[-1] == "← error, "


def test_sub_agents_at_work_at_once_are_named_when_they_speak() -> None:
    from quoth.agent.events import SubAgent

    shown = io.StringIO()
    see = Progress(shown, color=False)
    one, two = SubAgent("1", "One.\nMore."), SubAgent("2", "Two.")
    for who in (one, one, two, one):
        see(AgentEvent("fault", "Oh.", (who,)))
    see(AgentEvent("turn", 1, (one,)))
    see(AgentEvent("fault", "Ah."))
    see(AgentEvent("fault", "Two\nlines.", (one,)))
    assert shown.getvalue().splitlines() == [
        "  ▷ One. More.",
        "  ! Oh.",
        "  ! Oh.",
        "  ▷ Two.",
        "  ! Oh.",
        "  ▷ One. More.",
        "  ! Oh.",
        "! Ah.",
        "  ▷ One. More.",
        "  ! Two",
        "      lines.",  # set in: no row of its own
    ]


async def test_the_listener_of_a_person_who_runs_a_program_hears_of_it_too(office: Office) -> None:
    heard: list[tuple[int, str]] = []

    def listener(event: AgentEvent) -> None:
        heard.append((len(event.path), event.kind))

    await office.eval('(cognitive-loop "Help.")', cast(help="Hi."), on_event=listener)
    told = ["turn", "text", "usage", "said", "thought", "end"]
    assert heard == [(0, "call"), *((1, kind) for kind in told), (0, "result")]


def test_a_text_larger_than_a_context_is_asked_about_in_slices(tmp_path: Path) -> None:
    book = "".join(f"Page {n}. {'A whale! ' if n % 7 == 0 else ''}{'The sea. ' * 20}\n" for n in range(500))
    files(tmp_path, {"book.txt": book})
    asked: list[int] = []

    def reply(messages: Messages) -> str:
        said = str(list(messages)[-1]["content"])
        asked.append(len(said))
        return str(said.count("A whale!"))

    async def go() -> tuple[ToolResult, ToolResult]:
        async with AsyncAgent(workspace=tmp_path, model=TalkingFunction(reply), session="s") as it:
            kept = await it.eval('(setv book (read-file "book.txt")) (len book)')
            found = await it.eval("""
                (defn whales [at] (int (think "How many whales?" (cut book at (+ at 10000)))))
                (sum (pmap whales (range 0 (len book) 10000)))""")
            return kept, found

    kept, found = asyncio.run(go())
    assert (kept.value, found.value) == (len(book), book.count("A whale!"))
    assert len(asked) == -(-len(book) // 10000)
    assert max(asked) < 12_000
