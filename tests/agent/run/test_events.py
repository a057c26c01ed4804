"""What happens in a run is told as one type of event: to listeners, and to whoever iterates over a stream."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pages import page
from sentences import THE_TASK_IS_EMPTY
from words import TalkingFunction, async_agent, scripted, tool

from quoth import Agent, AgentEvent, AsyncAgent, UsageError
from quoth.agent.events import EventKind, SubAgent, Waiting
from quoth.agent.reply import CallRecord
from quoth.agent.terminal.progress import Progress
from quoth.neuro.backends.base import NO_OPTIONS, Completion, RequestOptions, Usage
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.call import ToolResult
from quoth.tools.consent.requests import Request
from quoth.tools.lisp.forms import CallForm

COST = Usage(input_tokens=10, output_tokens=1)
LOOK, DONE = '(echo :text "a")', "It said a."


def two_parts() -> ScriptedBackend:
    """A model whose run has a sub-agent, which writes a file; each reply costs COST."""

    def reply(messages: Messages) -> Completion:
        (task, *_) = [message["content"] for message in messages if message["role"] == "user"]
        said = sum(message["role"] == "assistant" for message in messages)
        own = task.startswith("Go.")
        lines = (
            ['(cognitive-loop :task "Help.")', "Done."]
            if own
            else ['(write-file :path "a" :content "b")', "So."]
        )
        return Completion(lines[said], COST)

    return ScriptedBackend(reply)


class Hesitating(TalkingFunction):
    """A model whose server wants to be left alone twice before it answers."""

    async def complete(
        self, messages: Messages, *, options: RequestOptions = NO_OPTIONS, **more: Any
    ) -> Completion:
        assert options.on_wait is not None
        for left in (2.0, 1.0, 0.0):
            options.on_wait(left, "The server limits requests (status 429).")
        return await super().complete(messages)


def echoing(messages: Messages) -> str:
    return f"I heard {messages[-1]['content']}"


# A stream


async def test_a_stream_gives_the_events_in_order_and_ends_with_the_reply(tmp_path: Path) -> None:
    async with async_agent(tmp_path, LOOK, DONE) as agent:
        events = [event async for event in agent.stream("Do it.")]
    kinds = [event.kind for event in events if event.kind != "text"]
    first = ["turn", "written", "usage", "thought", "call", "result"]
    assert kinds == [*first, "turn", "usage", "said", "thought", "end"]
    assert (events[-1].data.status, events[-1].data.text) == ("done", DONE)
    assert "".join(event.data for event in events if event.kind == "text") == LOOK + DONE


async def test_the_words_of_each_reply_come_in_blocks_and_without_its_calls(tmp_path: Path) -> None:
    long = "One.\n\n- two\n- three\n\nFour."
    async with async_agent(tmp_path, f"I look.\n\n{LOOK}\n\nAnd then?", long) as agent:
        events = [event async for event in agent.stream("Do it.")]
    said = [event.data for event in events if event.kind == "said"]
    assert said == ["I look.", "And then?", "One.", "- two\n- three", "Four."]


async def test_a_stream_hears_of_a_listener_that_fails(tmp_path: Path) -> None:
    def listen(event: AgentEvent) -> None:
        raise ValueError("oh")

    async with async_agent(tmp_path, DONE, on_event=listen) as agent:
        notes = [event.data async for event in agent.stream("Do it.") if event.kind == "note"]
    assert notes == ["The listener failed at the event turn: ValueError: oh"]


def test_the_synchronous_agent_streams_too(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, model=scripted(LOOK, DONE)) as agent:
        *_, last = agent.stream("Do it.")
    assert (last.kind, last.data.text) == ("end", DONE)


@pytest.mark.parametrize("kind", ["turn", "text", "call", "result"])
async def test_leaving_a_stream_early_stops_the_run(tmp_path: Path, kind: str) -> None:
    before = asyncio.all_tasks()
    async with async_agent(tmp_path, LOOK, DONE, DONE) as agent:
        async with contextlib.aclosing(agent.stream("Do it.")) as events:
            await _until(kind, events)
        assert not agent.host.running
        assert asyncio.all_tasks() == before
        assert (await agent.run("Again.")).status == "done"


async def test_leaving_without_closing_stops_the_run_with_the_agent_at_last(tmp_path: Path) -> None:
    async with async_agent(tmp_path, LOOK, DONE) as agent:
        events = agent.stream("Do it.")
        await _until("call", events)
    assert not agent.host.running


def test_leaving_a_synchronous_stream_stops_the_run(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, model=scripted(LOOK, DONE, DONE)) as agent:
        for event in agent.stream("Do it."):
            if event.kind == "call":
                break
        assert agent.run("Again.").status == "done"


async def test_a_stream_raises_what_a_run_raises(tmp_path: Path) -> None:
    async with async_agent(tmp_path, DONE) as agent:
        with pytest.raises(UsageError, match=THE_TASK_IS_EMPTY):
            await anext(agent.stream(" "))


async def test_the_listener_hears_a_streamed_run_too_and_a_stream_only_its_own(tmp_path: Path) -> None:
    heard: list[str] = []
    async with async_agent(tmp_path, DONE, on_event=lambda event: heard.append(event.kind)) as agent:
        streamed = [event.kind async for event in agent.stream("Do it.")]
        assert heard == streamed
        told = len(heard)
        await agent.eval("(+ 1 2)")
        assert len(heard) == told


async def test_streams_at_once_have_each_their_own_events(tmp_path: Path) -> None:
    async with AsyncAgent(workspace=tmp_path, model=ScriptedBackend(echoing)) as agent:

        async def streamed(word: str) -> list[str]:
            return [event.data for event in [one async for one in agent.stream(word)] if event.kind == "text"]

        assert await asyncio.gather(streamed("One."), streamed("Two.")) == [
            ["I heard One."],
            ["I heard Two."],
        ]


async def test_a_stream_is_silent_of_an_agent_inside_of_its_run(tmp_path: Path) -> None:
    async def inside() -> str:
        async with AsyncAgent(workspace=tmp_path, model=scripted("Deep.")) as other:
            return (await other.run("Go.")).text

    async with async_agent(tmp_path, "(inside)", DONE, tools=[tool("inside", inside)]) as agent:
        texts = [event.data async for event in agent.stream("Do it.") if event.kind in ("text", "end")]
    assert texts[:-1] == ["(inside)", DONE]
    assert [call.result.value for call in texts[-1].calls] == ["Deep."]


async def _until(kind: str, events: AsyncIterator[AgentEvent]) -> None:
    async for event in events:
        if event.kind == kind:
            return


# The kinds


async def test_usage_counts_what_sub_agents_used_and_a_question_says_whose_it_is(tmp_path: Path) -> None:
    heard: list[AgentEvent] = []
    async with AsyncAgent(workspace=tmp_path, model=two_parts(), on_event=heard.append) as agent:
        reply = await agent.run("Go.")
    used = [(len(event.path), event.data.input_tokens) for event in heard if event.kind == "usage"]
    assert used[:3] == [(0, 10), (1, 10), (0, 20)]
    (asked,) = [event for event in heard if event.kind == "question"]
    assert isinstance(asked.data, Request)
    assert ([who.task for who in asked.path], asked.data.tool) == (["Help."], "write-file")
    assert reply.status == "pending"


async def test_a_pause_before_the_next_try_is_told_and_shown_once(tmp_path: Path) -> None:
    heard: list[AgentEvent] = []
    shown = io.StringIO()
    show = Progress(shown, color=False)
    async with AsyncAgent(
        workspace=tmp_path, model=Hesitating(lambda messages: DONE), on_event=heard.append
    ) as agent:
        await agent.run("Do it.")
    waited = [event for event in heard if event.kind == "waiting"]
    assert [event.data.seconds for event in waited] == [2, 1, 0]
    for event in waited:
        show(event)
    assert shown.getvalue() == "! Retrying in 2 s: The server limits requests (status 429).\n"


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        (["It is ", "forty", "-two.\n", "\nI am sure"], "… It is forty-two. I am sure"),
        (["word " * 50, "end"], f"… {('word ' * 50 + 'end')[-77:]}"),
        (["I look. (pro"], "… I look."),
        (["(pro"], "… writing"),
        (["I look. (probe ", ':text "hu', 'sh"'], "… writing"),
        (['{"tool": ', '"hush'], "… writing"),
        (["<tool_call>", "hush"], "… writing"),
        (["\x1b[2J is red"], "… \\x1b[2J is red"),
    ],
)
def test_the_words_of_a_reply_are_shown_as_they_come_and_no_argument_of_a_call(
    pieces: list[str], line: str
) -> None:
    shown = io.StringIO()
    show = Progress(shown, color=True)
    for piece in pieces:
        show(AgentEvent("text", piece))
    assert shown.getvalue().rpartition("\x1b[0K")[2] == f"\x1b[2m{line}\x1b[0m"
    assert "hush" not in shown.getvalue()


def test_a_result_is_shown_with_what_is_told_beside_it_and_no_single_line_is_folded() -> None:
    shown = io.StringIO()
    show = Progress(shown, color=False)
    form = CallForm("edit-file", {"path": "a.py"})
    value, note = "\n".join("1234567"), "a.py was changed after the write by: ruff format a.py"
    show(AgentEvent("result", CallRecord(form, ToolResult("1", "edit-file", "ok", value, note))))
    assert shown.getvalue().splitlines()[-2:] == ["    7", f"    {note}"]


def test_what_a_program_writes_is_shown_by_its_last_line_and_its_result_by_its_end() -> None:
    shown = io.StringIO()
    show = Progress(shown, color=True)
    show(AgentEvent("output", "one\n\x1b[2Jtwo\n\n"))
    assert shown.getvalue().rpartition("\x1b[0K")[2] == "\x1b[2m… \\x1b[2Jtwo\x1b[0m"
    show(AgentEvent("output", ""))
    assert shown.getvalue().endswith("\r\x1b[0K"), "it has ended"
    shown = io.StringIO()
    show = Progress(shown, color=False)
    for kind, output in (("output", "1\n2\n"), ("question", "")):
        show(AgentEvent(kind, output))  # type: ignore[arg-type]
    assert shown.getvalue() == "", "what is no terminal has the result alone"
    form = CallForm("shell", {"argv": ["seq", "9"]})
    value = {"exit": 1, "output": "".join(f"{number}\n" for number in range(1, 10))}
    for ran in (True, False):
        if not ran:
            show(AgentEvent("call", form))
        show(AgentEvent("result", CallRecord(form, ToolResult("1", "shell", "ok", value))))
    assert shown.getvalue() == (
        '← ok, 0 ms: {"exit" 1}\n    output:\n    … 5 more lines\n    6\n    7\n    8\n    9\n'
        '→ (shell :argv ["seq" "9"])\n'
        '← ok, 0 ms: {"exit" 1}\n    output:\n    1\n    2\n    3\n    4\n    … 5 more lines\n'
    )


def test_results_of_calls_side_by_side_bear_names() -> None:
    shown = io.StringIO()
    show = Progress(shown, color=False)
    read, write = (CallForm(f"{name}-file", {"path": f"{name}.txt"}) for name in ("read", "write"))

    def tell(kind: str, form: CallForm) -> None:
        data: Any = form if kind == "call" else CallRecord(form, ToolResult("1", form.tool, "ok", "x"))
        show(AgentEvent(kind, data))  # type: ignore[arg-type]

    for kind, form in (("call", read), ("call", write), ("result", read), ("result", write)):
        tell(kind, form)
    tell("call", read)
    tell("result", read)
    assert [line for line in shown.getvalue().splitlines() if line.startswith("←")] == [
        "← read-file read.txt: ok, 0 ms: x",
        "← write-file write.txt: ok, 0 ms: x",
        "← ok, 0 ms: x",
    ]


async def test_each_event_is_an_object_for_a_line(tmp_path: Path) -> None:
    heard: list[AgentEvent] = []
    async with AsyncAgent(workspace=tmp_path, model=two_parts(), on_event=heard.append) as agent:
        await agent.run("Go.")
    lines = [json.loads(json.dumps(event.to_json())) for event in heard]
    assert [line["event"] for line in lines] == [event.kind for event in heard]
    assert {tuple(line) for line in lines} == {
        ("event", "data"),
        ("event", "call", "data"),
        ("event", "path", "data"),
        ("event", "path", "call", "parent", "data"),
    }
    called = next(line for line in lines if line["event"] == "call" and "path" in line)
    assert called["data"] == '(write-file :path "a" :content "b")'
    assert called["path"][0]["task"] == "Help."


OTHERS = [
    (Waiting(2, "Busy."), {"seconds": 2, "reason": "Busy."}),
    ("words", "words"),
    (3, 3),
]


@pytest.mark.parametrize(("data", "plain"), OTHERS)
def test_data_in_an_object_for_a_line(data: Any, plain: Any) -> None:
    path = (SubAgent("1", "Help."),)
    assert AgentEvent("note", data, path).to_json() == {
        "event": "note",
        "path": [{"call": "1", "task": "Help."}],
        "data": plain,
    }


def test_the_kinds_are_closed_and_explained_in_the_manual() -> None:
    assert [kind for kind in get_args(EventKind) if f"| {kind} " not in page("python")] == []


# A listener that fails


def test_a_listener_that_fails_is_told_once_and_the_run_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[AgentEvent] = []

    def listen(event: AgentEvent) -> None:
        heard.append(event)
        if event.kind in ("call", "result"):
            raise ValueError("oh")

    with (
        caplog.at_level(logging.WARNING, "quoth"),
        Agent(workspace=tmp_path, model=scripted(LOOK, DONE), on_event=listen) as agent,
    ):
        assert agent.run("Do it.").text == DONE
    said = "The listener failed at the event call: ValueError: oh"
    assert [event.data for event in heard if event.kind == "note"] == [said]
    assert [record.getMessage() for record in caplog.records] == [said]
    assert heard[-1].kind == "end"
