"""cognitive-loop: every reply gets an answer, every call its result, and every run an end."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from examples import many
from sentences import (
    AND_ONE_MORE_WAS_ASKED,
    CHARACTERS_LEFT_OUT,
    COULD_NOT_BE_USED,
    DOES_NOT_CLOSE_THE,
    IT_WRITES_FILES,
    THE_RUN_WAS_STOPPED,
    THE_SCRIPT_IS_EXHAUSTED,
)
from words import Spy, TalkingFunction, async_agent, files, scripted, story, table_of, tool

from quoth import Agent, HostServices
from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.run.limits import RunLimits
from quoth.agent.terminal.progress import Progress
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.errors import ToolError
from quoth.tools.lisp.printer import Code
from quoth.tools.registry.table import CognitiveTool, cognitive_tools

TEXT = {"text": {"type": str, "default": ""}}


def probe(body: Any = None, **options: Any) -> CognitiveTool:
    """A tool named probe that gives its text back, or what ``body`` gives."""
    return tool("probe", body or (lambda text: f"<{text}>"), params=TEXT, **options)


def evaluator() -> CognitiveTool:
    import_module("quoth.tools.builtin")
    return cognitive_tools.get("eval")


# A run that goes well


def test_an_answer_without_a_call_ends_the_run(tmp_path: Path) -> None:
    told = story(tmp_path, "Forty-two.")
    assert (told.reply.status, told.reply.text, told.reply.calls, told.reply.steps) == (
        "done",
        "Forty-two.",
        (),
        1,
    )
    assert told.rows == []


def test_a_call_its_result_and_the_answer(tmp_path: Path) -> None:
    told = story(tmp_path, '(echo :text "hello")', "It said hello.")
    assert (told.reply.status, told.reply.text, told.reply.steps) == ("done", "It said hello.", 2)
    (call,) = told.reply.calls
    assert (str(call.form), call.result.status, call.result.value) == ('(echo :text "hello")', "ok", "hello")
    assert '(echo :text "hello") -> ok' in told.shown(2)
    (row,) = told.rows
    assert (row["tool"], row["status"], row["route"], row["round"], row["place"], row["depth"]) == (
        ("echo", "ok", "reply", 1, 0, 0)
    )


def test_each_of_several_calls_in_a_reply_has_its_own_result_in_order(tmp_path: Path) -> None:
    told = story(tmp_path, '(echo :text "a")\n(echo :text "b") (eval (+ 1 2))', "Done.")
    assert [call.result.value for call in told.reply.calls] == ["a", "b", 3]
    places = [told.shown(2).index(said) for said in ('"a") -> ok', '"b") -> ok', "(+ 1 2)) -> ok")]
    assert places == sorted(places)
    assert [(row["round"], row["place"]) for row in told.rows] == [(1, 0), (1, 1), (1, 2)]


def test_a_failing_call_does_not_cancel_its_siblings(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        '(echo :text "a")\n(read-file :path "none.txt")\n(ecko :text "b")\n(echo :txt "c")\n'
        '(read-file :path "../x")\n(echo :text "d")',
        "Done.",
    )
    assert told.statuses == ["ok", "error", "unknown", "invalid", "denied", "ok"]
    assert [row["status"] for row in told.rows] == told.statuses
    for status in ("ok", "error", "unknown", "invalid", "denied"):
        assert f"-> {status}" in told.shown(2)
    assert "Did you mean echo?" in told.shown(2)


def test_the_result_of_one_turn_can_be_the_call_of_the_next(tmp_path: Path) -> None:
    told = story(tmp_path, "(eval (+ 5 5))", "(eval (* 2 10))", "It is 20.")
    assert [call.result.value for call in told.reply.calls] == [10, 20]
    assert "10" in told.shown(2)
    assert "20" in told.shown(3)


def test_the_task_is_in_view_at_every_turn(tmp_path: Path) -> None:
    task = "Find the number of the beast."
    told = story(tmp_path, '(echo :text "a")', "(echo :text", "", "(eval 666)", "666.", task=task)
    assert told.reply.status == "done"
    for turn in range(1, 6):
        assert task in told.shown(turn)


def test_long_results_are_shortened_for_the_model_and_say_so(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        "(probe)",
        "Much.",
        tools=table_of(probe(lambda: "x" * 50_000)),
        limits=RunLimits(result_chars=900),
    )
    assert told.reply.calls[0].result.value == "x" * 50_000
    assert len(told.shown(2)) < 1500
    assert f"[… 49,100 {CHARACTERS_LEFT_OUT} …]" in told.shown(2)


# Replies that cannot be used are answered


def test_an_unreadable_reply_is_answered_with_the_caret_and_the_run_recovers(tmp_path: Path) -> None:
    told = story(tmp_path, "(echo :text [1)", '(echo :text "a")', "Done.")
    assert (told.reply.status, told.reply.text) == ("done", "Done.")
    assert f"line 1, column 15: this ) {DOES_NOT_CLOSE_THE} [" in told.shown(2)
    assert "\n(echo :text [1)\n              ^" in told.shown(2)
    assert [(row["status"], row["stage"], row["form"]) for row in told.rows] == [
        ("invalid", "reader", "(echo :text [1)"),
        ("ok", "body", '(echo :text "a")'),
    ]


def test_what_was_mended_in_a_reply_is_in_the_audit(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "one"})
    told = story(tmp_path, '(read-file :path "a.txt"', "Done.")
    assert told.statuses == ["ok"]
    assert [row["repairs"] for row in told.rows] == [") was added where the reply broke off."]


def test_the_readable_calls_beside_an_unreadable_one_are_done_and_both_are_told(tmp_path: Path) -> None:
    told = story(tmp_path, '(echo :text "a")\n(echo :text [1)\n(echo :text "b")', "Done.")
    assert [call.result.value for call in told.reply.calls] == ["a", "b"]
    assert '"a") -> ok' in told.shown(2)
    assert f"line 2, column 15: this ) {DOES_NOT_CLOSE_THE} [" in told.shown(2)


@pytest.mark.parametrize("reply", ["", "   \n\t ", "(+ 1 2)", "(defn f [])", '\'(echo :text "a")', "(:tool)"])
def test_a_reply_that_says_nothing_is_answered(tmp_path: Path, reply: str) -> None:
    told = story(tmp_path, reply, "Done.")
    assert (told.reply.status, told.reply.steps) == ("done", 2)
    assert [row["stage"] for row in told.rows] == (["reader"] if reply.strip() else [])


@pytest.mark.parametrize("reply", ["", "(+ 1 2)", "(echo :text", "(echo :text #.(f))", "(" * 99 + '"'])
def test_three_bad_replies_in_a_row_stop_the_run_with_a_sentence(tmp_path: Path, reply: str) -> None:
    if reply.startswith("(((("):
        reply = "(echo " + reply
    told = story(tmp_path, reply, reply, reply, "never asked")
    assert (told.reply.status, told.reply.steps) == ("failed", 3)
    assert told.reply.error.startswith(f"{THE_RUN_WAS_STOPPED}: 3 replies in a row {COULD_NOT_BE_USED}.")


def test_bad_replies_that_are_not_in_a_row_do_not_stop_it(tmp_path: Path) -> None:
    told = story(tmp_path, "", "", '(echo :text "a")', "", "", "Done.")
    assert (told.reply.status, told.reply.steps) == ("done", 6)


# The same call again


def test_a_repeated_call_is_not_done_again_but_told_and_then_the_run_is_stopped(tmp_path: Path) -> None:
    body = Spy("the same")
    told = story(tmp_path, *["(probe)"] * 10, tools=table_of(tool(body=body)))
    assert told.reply.status == "failed"
    assert "(probe)" in told.reply.error
    assert told.reply.error.startswith(f"{THE_RUN_WAS_STOPPED}: ")
    assert body.calls == 1
    assert told.reply.steps < 10
    assert told.shown(3) != told.shown(2)


def test_a_repeat_is_known_however_it_is_spelt(tmp_path: Path) -> None:
    body = Spy("the same")
    spellings = [
        "(probe)",
        '(:tool "probe")',
        "(PROBE)",
        "```lisp\n(:target :tool :action :call :tool probe)\n```",
    ]
    told = story(tmp_path, *spellings, "Enough.", tools=table_of(tool(body=body)))
    assert body.calls == 1
    assert told.reply.status == "failed"


def test_one_repeat_is_forgiven(tmp_path: Path) -> None:
    told = story(tmp_path, '(echo :text "a")', '(echo :text "a")', "Done.")
    assert told.reply.status == "done"
    assert [row["stage"] for row in told.rows] == ["body", "receipt"]
    assert told.rows[1]["message"] == f"answered by the receipt of call {told.rows[0]['id']}"


def repeated(tmp_path: Path, *results: Any, **options: Any) -> Any:
    """A run that makes one call of a tool that may be repeated for each result, and then answers."""
    left = list(results)
    again = probe(lambda: left.pop(0), allow_repeat=True)
    return story(tmp_path, *["(probe)"] * len(results), "Enough.", tools=table_of(again), **options)


def test_a_call_that_may_be_repeated_ends_the_run_when_it_had_the_same_result_four_times(
    tmp_path: Path,
) -> None:
    told = repeated(tmp_path, *["same"] * 8)
    assert told.reply.error == f"{THE_RUN_WAS_STOPPED}: the model kept repeating the call (probe)."
    assert told.statuses == ["ok"] * 4
    said_so = ["its result was the same" in told.shown(turn) for turn in range(1, 5)]
    assert said_so == [False, False, True, True]


@pytest.mark.parametrize(
    "results",
    [["same"] * 3, ["a", "b", "a", "b", "a", "b"], [{"running": True, "output": ""}] * 6, list(range(6))],
)
def test_a_call_that_may_be_repeated_goes_on_while_its_result_is_news(tmp_path: Path, results: Any) -> None:
    assert repeated(tmp_path, *results).reply.status == "done"


@pytest.mark.parametrize(("most", "calls"), [(1, 2), (5, 6)])
@pytest.mark.parametrize("allow_repeat", [True, False])
def test_the_limit_of_repeats_holds_for_every_tool(
    tmp_path: Path, most: int, calls: int, allow_repeat: bool
) -> None:
    same = probe(lambda: "same", allow_repeat=allow_repeat)
    told = story(tmp_path, *["(probe)"] * 9, tools=table_of(same), limits=RunLimits(repeats=most))
    assert (told.reply.status, len(told.reply.calls)) == ("failed", calls)


def test_two_failing_calls_in_turn_are_repetitions_too(tmp_path: Path) -> None:
    def fail(ctx: Any) -> None:
        ctx.effect("ran:it")
        raise ToolError("It failed.")

    tools = table_of(*(tool(name, fail, allow_repeat=True) for name in ("one", "two")))
    told = story(tmp_path, *["(one)", "(two)"] * 9, tools=tools)
    assert (told.reply.status, len(told.reply.calls)) == ("failed", 8)


def test_a_change_between_them_makes_the_same_call_no_repetition(tmp_path: Path) -> None:
    def change(text: str, ctx: Any) -> str:
        ctx.effect(f"changed:{text}")
        return text

    tools = table_of(tool("change", change, params=TEXT), probe(lambda: "red", allow_repeat=True))
    turns = [turn for text in "abcde" for turn in (f'(change :text "{text}")', "(probe)")]
    assert story(tmp_path, *turns, "Enough.", tools=tools).reply.status == "done"


def test_the_same_call_five_times_in_one_reply_is_one_turn(tmp_path: Path) -> None:
    told = story(
        tmp_path, *["(probe)" * 5] * 3, "Enough.", tools=table_of(probe(lambda: "x", allow_repeat=True))
    )
    assert told.reply.status == "done"


def test_a_repeat_after_a_write_is_done_anew(tmp_path: Path) -> None:
    told = story(
        tmp_path,
        '(write-file :path "a" :content "1")',
        '(read-file :path "a")',
        '(write-file :path "a" :content "2")',
        '(read-file :path "a")',
        "Done.",
        consent="yes",
    )
    assert [call.result.value for call in told.reply.calls][1::2] == ["1", "2"]


def test_a_repeat_after_a_write_inside_a_program_is_done_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    told = story(
        tmp_path,
        '(read-file :path "a")',
        '(eval (write-file :path "a" :content "2"))',
        '(read-file :path "a")',
        "Done.",
        consent="yes",
    )
    assert (tmp_path / "a").read_text() == "2"
    assert [call.result.value for call in told.reply.calls][::2] == ["1", "2"]


def test_a_call_that_failed_may_be_tried_again(tmp_path: Path) -> None:
    body = Spy(ToolError("the line was busy"))
    again = "(probe)"
    told = story(tmp_path, again, again, "It was busy.", tools=table_of(tool(body=body)))
    assert body.calls == 2
    assert told.reply.text == "It was busy."


def test_half_a_character_in_a_reply_does_no_harm(tmp_path: Path) -> None:
    told = story(tmp_path, 'x \ud83d\n(echo :text "a")', "Done.")
    assert (told.reply.status, told.reply.text) == ("done", "Done.")


def test_a_conversation_that_waits_for_a_person_holds_what_was_said_of_the_call(tmp_path: Path) -> None:
    model = scripted('(write-file :path "a" :content "b")', "Then not.")
    with Agent(workspace=tmp_path, model=model, services=HostServices(audit=MemoryAudit())) as agent:
        assert agent.say("Write.").status == "pending"
        assert agent.say("Never mind.").status == "done"
    assert b"waits for a person" in model.seen[1]


def test_a_tool_may_allow_its_repetition(tmp_path: Path) -> None:
    body = Spy("again")
    told = story(tmp_path, *["(probe)"] * 3, "Done.", tools=table_of(tool(body=body, allow_repeat=True)))
    assert (told.reply.status, body.calls) == ("done", 3)


# Limits


def test_the_step_limit_ends_a_run_and_the_last_turn_is_told_to_answer(tmp_path: Path) -> None:
    replies = [f'(echo :text "{n}")' for n in range(9)]
    told = story(tmp_path, *replies, limits=RunLimits(steps=4))
    assert (told.reply.status, told.reply.steps) == ("failed", 4)
    assert told.reply.error == f"{THE_RUN_WAS_STOPPED} after 4 steps without an answer."
    assert len(told.rows) == 4
    assert told.shown(4).splitlines()[-1] != told.shown(3).splitlines()[-1]
    assert "nswer" in told.shown(4).splitlines()[-1]


def test_an_answer_in_the_last_step_is_in_time(tmp_path: Path) -> None:
    assert story(tmp_path, '(echo :text "a")', "Done.", limits=RunLimits(steps=2)).reply.status == "done"


def test_calls_beyond_the_limit_are_limited_and_recorded(tmp_path: Path) -> None:
    many = "\n".join(f'(probe :text "{n}")' for n in range(5))
    told = story(tmp_path, many, "Done.", tools=table_of(probe()), limits=RunLimits(calls=3))
    assert told.statuses == ["ok", "ok", "ok", "limited", "limited"]
    assert [(row["status"], row["stage"]) for row in told.rows][3:] == [("limited", "host")] * 2
    assert "This run has used its 3 calls; answer in plain words." in told.shown(2)


def test_a_call_that_waits_for_a_person_ends_the_run_as_pending(tmp_path: Path) -> None:
    told = story(tmp_path, '(write-file :path "a" :content "x")\n(echo :text "after")', "never asked")
    assert told.reply.status == "pending"
    assert re.fullmatch(
        rf"write-file waits for a person's approval: {IT_WRITES_FILES} \(request \w{{5}}\)\.", told.reply.text
    )
    assert told.statuses == ["pending", "ok"]
    assert not (tmp_path / "a").exists()


def test_a_model_that_fails_ends_the_run_with_its_own_sentence(tmp_path: Path) -> None:
    told = story(tmp_path, '(echo :text "a")')
    assert told.reply.status == "failed"
    assert told.reply.error == f"{THE_SCRIPT_IS_EXHAUSTED}: it has 1 reply {AND_ONE_MORE_WAS_ASKED}."
    assert told.statuses == ["ok"]


def test_many_turns_use_no_more_stack_than_ten(tmp_path: Path) -> None:
    depths: list[int] = []
    turns = many(8)

    def frames() -> Iterator[Any]:
        frame = sys._getframe()
        while frame is not None:
            yield frame
            frame = frame.f_back

    def reply(messages: Messages) -> str:
        depths.append(sum(1 for _ in frames()))
        return f'(probe :text "{len(depths)}")' if len(depths) < turns else "Done."

    async def body(text: str) -> str:
        return text

    limits = RunLimits(steps=turns, calls=turns, context=10_000_000)
    table = table_of(probe(body))
    with Agent(
        workspace=tmp_path,
        model=TalkingFunction(reply),
        tools=table,
        limits=limits,
        services=HostServices(audit=MemoryAudit()),
    ) as agent:
        ended = agent.run("Count.")
    assert (ended.status, ended.steps, len(ended.calls)) == ("done", turns, turns - 1)
    assert depths[-1] == depths[9]


# Interrupts


async def test_an_interrupt_while_the_model_thinks_ends_the_run_at_once(tmp_path: Path) -> None:
    thinking = asyncio.Event()

    async def reply(messages: Messages) -> str:
        if len(messages) < 3:
            return '(echo :text "a")'
        thinking.set()
        await asyncio.Event().wait()
        return "never"

    audit = MemoryAudit()
    async with AsyncAgent(
        workspace=tmp_path, model=TalkingFunction(reply), services=HostServices(audit=audit)
    ) as agent:
        run = asyncio.create_task(agent.run("Do it."))
        await thinking.wait()
        assert agent.interrupt()
        assert not agent.interrupt()
        ended = await run
        assert (ended.status, ended.error) == ("interrupted", "The run was interrupted.")
        assert [row["status"] for row in audit.rows()] == ["ok"]
        assert not agent.host.running
        assert not agent.interrupt()


async def test_an_interrupt_while_a_tool_runs_waits_for_it_and_the_audit_is_whole(tmp_path: Path) -> None:
    running, go_on = threading.Event(), threading.Event()

    def slow(text: str) -> str:
        running.set()
        go_on.wait(60)
        return "finished"

    reply = '(probe)\n(probe :text "second")'
    async with async_agent(tmp_path, reply, "never asked", tools=table_of(probe(slow))) as agent:
        run = asyncio.create_task(agent.run("Do it."))
        await asyncio.to_thread(running.wait, 60)
        agent.interrupt()
        go_on.set()
        ended = await run
        assert ended.status == "interrupted"
        assert [call.result.status for call in ended.calls] == ["ok", "cancelled"]
        assert [(row["status"], row["stage"]) for row in agent.audit.rows()] == [
            ("ok", "body"),
            ("cancelled", "host"),
        ]


async def test_an_interrupted_agent_can_run_again(tmp_path: Path) -> None:
    async with async_agent(tmp_path, "One.", "Two.") as agent:
        agent.on_event = lambda event: event.kind == "thought" and agent.interrupt()
        assert (await agent.run("Do it.")).status == "interrupted"
        agent.on_event = None
        assert (await agent.run("Do it.")).text == "Two."


async def test_a_cancelled_run_passes_the_cancellation_on_and_leaves_a_row(tmp_path: Path) -> None:
    running = asyncio.Event()

    async def slow(text: str) -> str:
        running.set()
        await asyncio.Event().wait()
        return "never"

    async with async_agent(tmp_path, "(probe)", tools=table_of(probe(slow))) as agent:
        run = asyncio.create_task(agent.run("Do it."))
        await running.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert [row["status"] for row in agent.audit.rows()] == ["cancelled"]
        assert not agent.host.running


# The listener


def test_a_listener_hears_the_run_in_order(tmp_path: Path) -> None:
    heard: list[str] = []
    story(tmp_path, '(echo :text "a")', "", "Done.", on_event=lambda event: heard.append(event.kind))
    assert [event for event in heard if event not in ("text", "said", "turn", "usage")] == (
        ["written", "thought", "call", "result", "thought", "fault", "thought", "end"]
    )


class Typing(TalkingFunction):
    """A model whose reply comes character by character; ``heard`` is told where a call or its end was due."""

    async def complete(self, messages: Messages, *, on_text: Any = None, **options: Any) -> Completion:
        completion = await super().complete(messages)
        for char in completion.text:
            on_text(char)
        return completion


TWO_CALLS = 'First. \n(probe :text "a") (probe :text "b")\nAnd then?'


def test_each_call_is_told_when_it_is_whole_and_none_is_made_before_the_reply_has_ended(
    tmp_path: Path,
) -> None:
    heard: list[Any] = []
    model = Typing(lambda messages: "Done." if len(messages) > 3 else TWO_CALLS)
    made = probe(lambda text: heard.append(f"made {text}") or text)
    with Agent(
        workspace=tmp_path,
        model=model,
        tools=[made],
        on_event=lambda event: (
            heard.append(event.data if event.kind in ("text", "written") else event.kind)
            if event.kind != "said"
            else None
        ),
    ) as agent:
        agent.run("Do it.")
    first = [data for data in heard[: heard.index("thought")] if data not in ("turn", "usage")]
    assert "".join(data for data in first if len(data) == 1) == TWO_CALLS
    assert [(first[place - 1], data) for place, data in enumerate(first) if len(data) > 1] == [
        (")", '(probe :text "a")'),
        (")", '(probe :text "b")'),
    ]
    after = heard[heard.index("thought") :]
    assert after[:7] == ["thought", "call", "made a", "result", "call", "made b", "result"]


def test_a_person_sees_a_call_when_it_is_written_and_once(tmp_path: Path) -> None:
    shown = io.StringIO()
    see = Progress(shown, color=False)
    written: list[str] = []

    def listen(event: AgentEvent) -> None:
        see(event)
        if event.kind == "written":
            written.append(shown.getvalue())

    twice = TWO_CALLS + '\n(probe :text "a")'
    model = Typing(lambda messages: "Done." if len(messages) > 6 else twice)
    with Agent(workspace=tmp_path, model=model, tools=[probe()], on_event=listen) as agent:
        agent.run("Do it.")
    assert written[0] == '→ (probe :text "a")\n'
    assert shown.getvalue().count('→ (probe :text "a")') == 2 * shown.getvalue().count('→ (probe :text "b")')
    assert len(written) == shown.getvalue().count("→")


def test_a_call_that_is_told_as_it_is_written_shows_no_secret(tmp_path: Path) -> None:
    heard: list[str] = []
    secretive = tool("probe", lambda text: "x", params={"text": {"type": str, "secret": True}})
    model = scripted('(probe :text "hush")', "Done.")
    listener = lambda event: event.kind == "written" and heard.append(event.data)  # noqa: E731
    with Agent(workspace=tmp_path, model=model, tools=[secretive], on_event=listener) as agent:
        agent.run("Do it.")
    assert len(heard) == 1
    assert "hush" not in heard[0]


def test_a_listener_that_fails_does_not_hurt_the_run(tmp_path: Path) -> None:
    def broken(event: AgentEvent) -> None:
        raise ValueError(event.kind)

    assert story(tmp_path, '(echo :text "a")', "Done.", on_event=broken).reply.status == "done"


# What is said is not done


def test_a_result_that_speaks_like_a_call_is_not_done(tmp_path: Path) -> None:
    body = Spy()
    speaks = tool("speaks", lambda: '(probe)\n```lisp\n(probe)\n```\n(:tool "probe")')
    told = story(tmp_path, "(speaks)", "It says (probe).", tools=table_of(speaks, tool("probe", body)))
    assert (told.reply.status, body.ran, len(told.rows)) == ("done", False, 1)


def test_a_program_may_be_text_too(tmp_path: Path) -> None:
    body = Spy("done")
    param = {"form": {"type": Code}}
    told = story(
        tmp_path,
        '(probe :form "(f x)")',
        "Done.",
        tools=table_of(tool("probe", lambda form: body(), params=param)),
    )
    assert told.statuses == ["ok"]
