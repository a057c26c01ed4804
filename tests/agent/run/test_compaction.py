"""A conversation stays within what its model can read, and nothing of it is lost on the way."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loopback import KEY, failure, loopback, status
from sentences import CHARACTERS_LEFT_OUT
from words import TalkingFunction, quoth, scripted, story, table_of, tool

from quoth import Agent, HostServices, ModelOptions
from quoth.agent.events import AgentEvent
from quoth.agent.run.compaction import FULL, SUMMARY, Compaction, gauge_of, make_room
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.recorder import build_run
from quoth.agent.run.run import Run, RunParts
from quoth.agent.run.spec import RunSpec
from quoth.agent.session.past import Past
from quoth.agent.session.session import RunLog, Session
from quoth.agent.terminal.progress import Progress
from quoth.neuro.backends import wire
from quoth.neuro.backends.base import (
    Completion,
    ContextFullError,
    ModelError,
    RequestRefusedError,
    Usage,
    tokens_in,
)
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.openai import OpenAIBackend
from quoth.neuro.prompt.dialects import CALL_FORM, NATIVE
from quoth.neuro.think import begin_conversation
from quoth.tools.call.context import ToolContext
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.services import NO_SERVICES
from quoth.tools.call.workspace import Workspace
from quoth.tools.door.door import Door
from quoth.tools.history.long_results import StorePages
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool, ToolTable, cognitive_tools
from quoth.tools.storage.database import Store

import_module("quoth.tools.builtin")
TEXT = {"text": {"type": str, "default": ""}}


def speaker(chars: int) -> CognitiveTool:
    """A tool whose every result is long, and begins with what it was given."""
    return tool("probe", lambda text: (f"<{text}> " * chars)[:chars], params=TEXT)


def talking(chars: int = 900) -> ToolTable:
    return table_of(speaker(chars), cognitive_tools.get("more"))


class Heard(list[tuple[str, Any]]):
    """A listener that remembers how the conversation was shortened."""

    def __call__(self, event: AgentEvent) -> None:
        if event.kind == "compaction":
            self.append((event.data.kind, event.data))

    @property
    def kinds(self) -> list[str]:
        return [event for event, _ in self]


class Patient(TalkingFunction):
    """A model that makes call after call, and keeps every request it was sent, in each server's writing."""

    tool_view = "openai"

    def __init__(
        self, turns: int, summary: Any = "It went well so far: 7 apples in a.txt.", native: bool = False
    ):
        super().__init__(self.answer)
        self.turns, self.summary, self.native = turns, summary, native
        self.requests: list[Messages] = []
        self.written: list[list[bytes]] = []
        self.asked: list[str] = []  # the conversations that were to be summarised
        self.said = 0
        if not native:
            self.tool_view = ""

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        if messages[len(messages) - 1]["content"].startswith("The conversation has become too long"):
            self.asked.append(messages.as_json().decode())
            if isinstance(self.summary, Exception):
                raise self.summary
            return self.summary if isinstance(self.summary, Completion) else Completion(self.summary)
        self.requests.append(messages)
        self.written.append([messages.written(way) for way in (wire.text, wire.openai, wire.anthropic)])
        self.said += 1
        if self.said > self.turns:
            return Completion("Done.")
        if self.native:
            calls = [
                {"id": f"c{self.said}-{at}", "name": "probe", "arguments": f'{{"text":"{self.said}-{at}"}}'}
                for at in range(2)
            ]
            return Completion("", calls=tuple(calls))  # type: ignore[arg-type]
        return Completion(f'(probe :text "{self.said}")')

    def answer(self, messages: Messages) -> str:
        raise NotImplementedError


def told(
    workspace: Path,
    model: Any,
    context: int | None,
    table: ToolTable | None = None,
    task: str = "Count.",
    **more: Any,
) -> tuple[Any, Heard]:
    heard = Heard()
    limits = RunLimits(steps=500, calls=1000, context=context, reply_tokens=100, **more)
    with Agent(
        workspace=workspace,
        model=model,
        tools=table or talking(),
        limits=limits,
        on_event=heard,
        services=HostServices(audit=MemoryAudit()),
    ) as agent:
        return agent.run(task), heard


# What is shown of a long result


def test_a_long_result_is_shown_head_and_tail_with_the_call_for_the_rest(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(1000))
    table = table_of(tool("probe", lambda: text), cognitive_tools.get("more"))
    seen = story(tmp_path, "(probe)", "Much.", tools=table, limits=RunLimits(result_chars=900))
    shown = seen.shown(2)
    named = re.search(
        rf"\[… 7,990 {CHARACTERS_LEFT_OUT}; (\(more :id \"[a-z2-7]{{8}}\" :start 601\)) shows the next", shown
    )
    assert named, shown
    assert text[:600] in shown
    assert text[-300:] in shown


def test_the_model_pages_through_all_of_it(tmp_path: Path) -> None:
    text = "".join(f"line {number} ünïcödé 漢字\n" for number in range(300))
    table = table_of(tool("probe", lambda: text), cognitive_tools.get("more"))
    parts: list[str] = []

    def reply(messages: Messages) -> str:
        last = (
            next(m["content"] for m in reversed(list(messages)) if m["role"] == "tool")
            if len(messages) > 2
            else ""
        )
        if last.startswith("(more"):
            parts.append(re.sub(r"\A.*? -> ok:\n|\n\(Characters .*\)\Z", "", last, flags=re.DOTALL))
        else:
            parts.append(last.partition("-> ok:\n")[2].partition("\n[… ")[0])
        call = re.search(r"\(more :id \S+ :start \d+\)(?= shows)", last)
        return "(probe)" if not last else call.group() if call else "Read."

    model, limits = TalkingFunction(reply), RunLimits(result_chars=900)
    with Agent(
        workspace=tmp_path,
        model=model,
        tools=table,
        limits=limits,
        services=HostServices(audit=MemoryAudit()),
    ) as agent:
        assert agent.run("Read it.").text == "Read."
    assert "".join(parts) == text


def test_nothing_is_promised_where_there_is_no_tool_for_it(tmp_path: Path) -> None:
    table = table_of(tool("probe", lambda: "x" * 5000))
    seen = story(tmp_path, "(probe)", "Much.", tools=table, limits=RunLimits(result_chars=900))
    assert f"\n[… 4,100 {CHARACTERS_LEFT_OUT} …]\n" in seen.shown(2)


def test_a_text_is_read_on_in_the_same_session_after_a_restart(tmp_path: Path) -> None:
    table = table_of(tool("probe", lambda: "x" * 5000 + "y" * 5000), cognitive_tools.get("more"))
    options: dict[str, Any] = {"workspace": tmp_path, "tools": table, "limits": RunLimits(result_chars=900)}
    model = scripted("(probe)", "Much.")
    with Agent(model=model, session="s1", user="ann", **options) as agent:
        agent.run("Read it.")
    (id,) = re.findall(r'more :id \\"(\w+)', model.seen[-1].decode())
    for session, user, ends in (("s1", "ann", "ok"), ("s2", "ann", "error"), ("s1", "bob", "error")):
        with Agent(model=scripted(), session=session, user=user, **options) as agent:
            result = agent.call(f'(more :id "{id}" :start 5001)')
            assert result.status == ends
            assert (result.value == "y" * 900) is (ends == "ok")


# Clearing


def test_old_results_are_cleared_before_the_window_is_full(tmp_path: Path) -> None:
    model = Patient(12)
    reply, heard = told(tmp_path, model, 8000, talking(3000))
    assert (reply.status, reply.text) == ("done", "Done.")
    assert set(heard.kinds) == {"cleared"}
    assert model.asked == []
    contents = [message["content"] for message in model.requests[-1]]
    line = r'\(probe :text "1"\) -> ok: cleared, 3,0\d\d characters; \(more :id "\w{8}"\) shows it'
    assert any(re.fullmatch(line, content) for content in contents)
    newest = [content for content in contents if content.startswith("(probe") and "-> ok:\n" in content]
    assert newest[-1].startswith('(probe :text "12")')
    assert len(newest) >= 2


def test_what_was_cleared_can_be_seen_again(tmp_path: Path) -> None:
    def reply(messages: Messages) -> str:
        replies = sum(message["role"] == "assistant" for message in messages)
        cleared = next((m["content"] for m in messages if "-> ok: cleared" in m["content"]), "")
        if "(more" in messages[len(messages) - 3]["content"] and replies > 3:
            return "Seen."
        call = re.search(r"\(more :id \"\w+\"\)", cleared)
        return call.group() if call else f'(probe :text "{replies}")'

    reply_, heard = told(tmp_path, TalkingFunction(reply), 3000)
    assert heard.kinds == ["cleared"]
    seen = next(call for call in reply_.calls if call.form.tool == "more")
    assert seen.result.ok
    assert seen.result.value.startswith('(probe :text "0") -> ok:\n<0> <0>')


def test_a_listener_hears_what_was_done_and_the_old_messages_stay_as_they_were(tmp_path: Path) -> None:
    model = Patient(12)
    _, heard = told(tmp_path, model, 3000)
    _, first = heard[0]
    assert isinstance(first, Compaction)
    assert first.replaced >= 2
    assert first.after <= 1500 < 3000 * FULL // 100 < first.before
    assert re.fullmatch(
        rf"{first.replaced} old results cleared; the request takes about [\d,]+ tokens instead of [\d,]+\.",
        str(first),
    )
    old = next(request for request in model.requests if request is not model.requests[-1])
    assert first.messages is not old
    assert "cleared" not in old.as_json().decode()


# The prefix law


def breaks(written: list[list[bytes]]) -> list[int]:
    """The requests that do not go on where the one before them ended, in any server's writing."""
    return [
        at
        for at in range(1, len(written))
        if not all(new.startswith(old[:-1]) for old, new in zip(written[at - 1], written[at], strict=True))
    ]


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(
    ("context", "chars", "kinds"),
    [(20_000, 4000, {"cleared"}), (2500, 60, {"summary"}), (90_000, 400, set())],
)
def test_between_two_compactions_each_request_begins_with_the_one_before(
    tmp_path: Path, native: bool, context: int, chars: int, kinds: set[str]
) -> None:
    model = Patient(40, native=native)
    reply, heard = told(tmp_path, model, context, talking(chars))
    assert reply.status == "done"
    assert kinds <= set(heard.kinds)
    assert bool(heard) is bool(kinds)
    changed = [at for at in range(1, len(model.requests)) if model.requests[at] is not model.requests[at - 1]]
    assert breaks(model.written) == changed
    assert len(changed) == len(heard)
    assert len(changed) < len(model.requests) / 3  # and seldom


def test_that_check_can_fail() -> None:
    one, other = Messages(), Messages()
    one.append("user", "a")
    other.append("user", "b")
    assert breaks([[one.as_json()], [other.as_json()]]) == [1]


# Summaries


def test_when_clearing_is_not_enough_the_model_is_asked_for_a_summary(tmp_path: Path) -> None:
    model = Patient(30, summary="7 apples in a.txt.")
    reply, heard = told(tmp_path, model, 2000, talking(60), task="Count the apples.")
    assert reply.status == "done"
    assert "summary" in heard.kinds
    opening, task, *rest = model.requests[-1]
    assert opening["role"] == "system"
    assert task["content"] == f"Count the apples.\n\n{SUMMARY}\n7 apples in a.txt."
    assert rest[0]["role"] == "assistant"
    asked = json.loads(model.asked[0])
    assert [message["role"] for message in asked[:3]] == ["system", "user", "assistant"]
    assert asked[-1]["content"].endswith("The task: Count the apples.")
    assert "<1> <1>" in model.asked[0]
    (event, done) = next(one for one in heard if one[0] == "summary")
    assert (event, done.text) == ("summary", "7 apples in a.txt.")
    assert re.match(r"\d+ old messages summarised; the request takes about", str(done))


def test_a_summary_of_a_summary_replaces_it(tmp_path: Path) -> None:
    model = Patient(60, summary="7 apples.")
    _, heard = told(tmp_path, model, 2000, talking(60))
    assert heard.kinds.count("summary") > 1
    assert "7 apples." in model.asked[-1]
    assert model.requests[-1].as_json().count(b"SUMMARY") == 1


def test_what_a_summary_costs_is_counted(tmp_path: Path) -> None:
    class Counted(Patient):
        async def complete(self, messages: Messages, **options: Any) -> Completion:
            said = await super().complete(messages, **options)
            return Completion(said.text, Usage(0, 1))

    model = Counted(30)
    reply, _ = told(tmp_path, model, 2000, talking(60))
    assert reply.usage.output_tokens == len(model.requests) + len(model.asked)


@pytest.mark.parametrize(
    "summary",
    [
        *(ModelError("No."), ContextFullError("Too long."), Completion("I will not.", finish="refused")),
        *("", "  \n", "much " * 5000),
    ],
)
def test_without_a_summary_the_oldest_turns_are_left_out_and_that_is_said(
    tmp_path: Path, summary: Any
) -> None:
    model = Patient(60, summary=summary)
    reply, heard = told(tmp_path, model, 2000, talking(60))
    assert reply.status == "done"
    assert heard.kinds.count("summary") > 1
    head = model.requests[-1][1]["content"]
    left = re.fullmatch(r"Count\.\n\n\[… (\d+) messages were left out: there was no room …\]", head)
    assert left, head
    # Each turn is a reply, its result and the reminder; the last is a reply only.
    assert int(left.group(1)) + len(model.requests[-1]) - 2 == 60 * 3 + 1
    assert "left out, without a summary; the request takes" in str(heard[-1][1])


def test_the_model_still_knows_how_to_call_after_a_summary_if_it_was_told_later(tmp_path: Path) -> None:
    """A server that took no tools: the model was told how a call is written behind the task."""
    model = Patient(1)

    async def go() -> Run:
        with_store = Store(":memory:")
        run = a_run(tmp_path, with_store, model, 1500)
        opening = CALL_FORM.opening(run.door.table)
        run.messages = begin_conversation(run.door.table, dialect=NATIVE)
        run.messages.append("user", "Count.")
        run.messages.append("user", opening)
        for number in range(40):
            run.messages.append("assistant", f'(probe :text "{number}")')
            run.messages.append("tool", f'(probe :text "{number}") -> ok:\n{"x" * 60}')
        await make_room(run)
        assert [m["content"] for m in run.messages].count(opening) == 1
        with_store.close()
        return run

    asyncio.run(go())


def test_an_interrupt_while_a_summary_is_written_ends_the_run(tmp_path: Path) -> None:
    agents: list[Agent] = []

    class Slow(Patient):
        async def complete(self, messages: Messages, **options: Any) -> Completion:
            said = await super().complete(messages, **options)
            if self.asked:
                agents[0].interrupt()
                await asyncio.sleep(60)
            return said

    limits = RunLimits(steps=500, context=2000, reply_tokens=100)
    with Agent(
        workspace=tmp_path,
        model=Slow(60),
        tools=talking(60),
        limits=limits,
        services=HostServices(audit=MemoryAudit()),
    ) as agent:
        agents.append(agent)
        reply = agent.run("Count.")
    assert (reply.status, reply.error) == ("interrupted", "The run was interrupted.")


# A call that comes back


def test_a_call_for_what_was_cleared_is_no_repetition(tmp_path: Path) -> None:
    def reply(messages: Messages) -> str:
        replies.append("")
        return f'(probe :text "{len(replies) % 12}")' if len(replies) < 60 else "Done."

    replies: list[str] = []
    ended, heard = told(tmp_path, TalkingFunction(reply), 3000)
    assert ended.status == "done"
    assert len(heard) > 3


# A server that says the request is too long


class Strict(Patient):
    """A server whose window is smaller than anybody knew."""

    def __init__(self, turns: int, limit: int, tells: bool = True) -> None:
        super().__init__(turns)
        self.limit, self.tells, self.refused = limit, tells, 0

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        if sum(tokens_in(message["content"]) for message in messages) > self.limit:
            self.refused += 1
            raise ContextFullError("That is too long.", self.limit if self.tells else 0)
        return await super().complete(messages, **options)


@pytest.mark.parametrize("tells", [True, False])
def test_a_request_that_is_refused_as_too_long_is_shortened_and_sent_again(
    tmp_path: Path, tells: bool
) -> None:
    model = Strict(30, 4000, tells)
    reply, heard = told(tmp_path, model, None)
    assert reply.status == "done"
    assert model.refused == 1
    assert heard.kinds


def test_one_that_is_refused_again_ends_the_run(tmp_path: Path) -> None:
    class Stubborn(Patient):
        async def complete(self, messages: Messages, **options: Any) -> Completion:
            if len(self.requests) > 12:
                raise ContextFullError("That is too long.", 900_000)
            return await super().complete(messages, **options)

    model = Stubborn(30)
    reply, heard = told(tmp_path, model, None)
    assert (reply.status, reply.error) == ("failed", "That is too long.")
    assert len(heard) == 1


class Wordless(Patient):
    """A server that refuses a request of more than ``limit`` tokens, and does not say why."""

    def __init__(self, turns: int, limit: int) -> None:
        super().__init__(turns)
        self.limit, self.refused = limit, 0

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        if sum(tokens_in(message["content"]) for message in messages) > self.limit:
            self.refused += 1
            raise RequestRefusedError("It refused the request (400): no.")
        return await super().complete(messages, **options)


def test_a_long_request_that_is_refused_in_unknown_words_is_shortened_once(tmp_path: Path) -> None:
    model = Wordless(40, 22_000)
    reply, heard = told(tmp_path, model, None, talking(3_000))
    assert (reply.status, model.refused, bool(heard.kinds)) == ("done", 1, True)


def test_a_short_request_that_is_refused_ends_the_run_unchanged(tmp_path: Path) -> None:
    model = Wordless(30, 2_000)
    reply, heard = told(tmp_path, model, None)
    assert (reply.status, reply.error) == ("failed", "It refused the request (400): no.")
    assert (model.refused, heard.kinds) == (1, [])


# No room at all

BELT = 1000  # tokens, more or less, that two tools take


@pytest.mark.parametrize(
    ("task", "chars", "said"),
    [
        (
            "Count." * 2000,
            10,
            r"function can read 3,000 tokens, and the task, which cannot be left out, takes about 3,4\d\d of "
            r"\d,\d\d\d\. Shorten the task, or put a part of it into a file; "
            r"if the model can read more, say so with --max-context N\.",
        ),
        (
            "Count.",
            20_000,
            r"function can read 3,000 tokens, and the newest turn, which cannot be left out, takes about "
            r"\d,\d\d\d of \d,\d\d\d\. Ask for less in one task; "
            r"if the model can read more, say so with --max-context N\.",
        ),
    ],
)
def test_what_cannot_be_spared_and_is_too_long_ends_the_run_with_a_sentence(
    tmp_path: Path, task: str, chars: int, said: str
) -> None:
    model = TalkingFunction(lambda messages: '(probe :text "a")' if len(messages) < 4 else "Done.")
    reply, _ = told(tmp_path, model, 3000, talking(chars), task, result_chars=20_000)
    assert reply.status == "failed"
    assert re.fullmatch(said, reply.error), reply.error


def test_tools_that_take_all_the_room_are_told_too(tmp_path: Path) -> None:
    reply, _ = told(tmp_path, TalkingFunction(lambda messages: "Done."), 200)
    assert reply.status == "failed"
    assert re.match(
        r"function can read 200 tokens, and the tools, which cannot be left out, take about \d+ of \d+\. "
        r"List them with one line each \(--belt search\), or load fewer; ",
        reply.error,
    )


def test_a_window_that_is_only_guessed_ends_no_run(tmp_path: Path) -> None:
    model = TalkingFunction(lambda messages: "Done.", name="ollama:some")
    reply, _ = told(tmp_path, model, None, task="Count." * 4000)
    assert (reply.status, reply.text) == ("done", "Done.")


# A conversation of a REPL


def test_a_conversation_goes_on_with_what_was_kept(tmp_path: Path) -> None:
    model = Patient(10_000)
    heard = Heard()
    limits = RunLimits(context=3000, reply_tokens=100)
    with Agent(
        workspace=tmp_path,
        model=model,
        tools=talking(),
        limits=limits,
        on_event=heard,
        services=HostServices(audit=MemoryAudit()),
    ) as agent:
        for number in range(8):
            model.turns = model.said + 3
            assert agent.say(f"Question {number}?").text == "Done."
    assert heard.kinds
    changed = [at for at in range(1, len(model.requests)) if model.requests[at] is not model.requests[at - 1]]
    assert len(changed) == len(heard)
    assert breaks(model.written) == changed
    assert "Question 7?" in model.requests[-1].as_json().decode()


# Whatever the conversation: a property


def a_run(workspace: Path, store: Store, model: Any, context: int, native: bool = False) -> Run:
    table, dialect = talking(), NATIVE if native else CALL_FORM
    session = Session(Transcript(lambda: store), "s1", "ann", workspace)
    parts = RunParts(
        door=Door(table, audit=MemoryAudit()),
        backend=None,
        context=ToolContext(Workspace(workspace)),
        services=lambda run: NO_SERVICES,
        limits=RunLimits(context=context, reply_tokens=100),
        pages=StorePages(lambda: store, "s1", "ann", 500),
    )
    spec, talk = RunSpec("Count the apples.", dialect=dialect), begin_conversation(table, dialect=dialect)
    run = build_run(spec, RunLog(session, "r1"), Past(), talk, parts)
    run.backend = model
    return run


turns = st.lists(
    st.tuples(st.lists(st.integers(0, 3000), min_size=1, max_size=4), st.booleans()), min_size=0, max_size=14
)
words = st.sampled_from(["x", "word ", "漢", "a\nb\n", "🦉 "])


def unpaired(messages: Messages) -> Iterator[str]:
    """The ids of native calls without their one result behind them, and of results without their call."""
    open_calls: list[str] = []
    for message in messages:
        if "call_id" in message:
            if message["call_id"] in open_calls:
                open_calls.remove(message["call_id"])
            else:
                yield message["call_id"]
        elif message["role"] == "assistant":
            yield from open_calls
            open_calls = [call["id"] for call in message.get("calls", ())]
    yield from open_calls


@pytest.mark.parametrize("native", [False, True])
@given(
    said=turns,
    word=words,
    context=st.integers(300, 20_000),
    summary=st.sampled_from(["All is well.", "", "long " * 400]),
    usage=st.integers(0, 30_000),
)
async def test_whatever_was_said_the_calls_stay_whole_and_the_task_and_the_newest_result_are_there(
    native: bool,
    said: list[tuple[list[int], bool]],
    word: str,
    context: int,
    summary: str,
    usage: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = Store(":memory:")
    run = a_run(tmp_path_factory.getbasetemp(), store, Patient(0, summary=summary), context, native)
    run.messages.append("user", run.spec.shown)
    newest = ""
    for turn, (sizes, reminded) in enumerate(said):
        calls = [(f"c{turn}-{place}", f'(probe :text "{turn}-{place}")') for place in range(len(sizes))]
        results = [
            f"{form} -> ok:\n{word * (size // len(word))}"
            for (_, form), size in zip(calls, sizes, strict=True)
        ]
        if native:
            run.messages.append(
                "assistant", "", calls=[{"id": id, "name": "probe", "arguments": "{}"} for id, _ in calls]
            )
            for (id, _), result in zip(calls, results, strict=True):
                run.messages.append("tool", result, id)
            newest = results[-1]
        else:
            run.messages.append("assistant", "\n".join(form for _, form in calls))
            newest = "\n\n".join(results)
            run.messages.append("tool", newest)
        if reminded:
            run.messages.append("user", f"{run.spec.task}\nGo on.")
    gauge = gauge_of(run)
    gauge.told(run.messages, len(run.messages), usage)
    old, written, turn_number = run.messages, run.messages.as_json(), run.messages.turn
    full = gauge.tokens(old) > context * FULL // 100
    ended = ""
    try:
        changed = await make_room(run)
    except ModelError as error:
        ended, changed = str(error), run.messages is not old

    assert old.as_json() == written
    assert changed is (run.messages is not old)
    assert full or not changed
    assert list(unpaired(run.messages)) == []
    assert any(message["content"].startswith(run.spec.task) for message in run.messages)
    assert not newest or run.messages[len(run.messages) - 1 - said[-1][1]]["content"] == newest
    assert run.messages[0] == old[0]
    assert run.messages.turn == turn_number
    size = gauge.tokens(run.messages)
    most = context - min(100, context // 4)
    assert size <= most or ended.endswith("say so with --max-context N.")
    assert (size > most) is bool(ended)
    assert size <= gauge.tokens(old)
    store.close()


# From one end to the other


def native(id: str, text: str) -> dict[str, Any]:
    call = {
        "id": id,
        "type": "function",
        "function": {"name": "probe", "arguments": json.dumps({"text": text})},
    }
    return {"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}


def plain(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


def test_a_server_that_refuses_a_long_request_is_sent_a_shorter_one(tmp_path: Path) -> None:
    with loopback(status(200, native("c1", "one"))) as server:
        server.answers += [
            status(200, native("c2", "two")),
            failure(400, "maximum context length is 1800 tokens", code="context_length_exceeded"),
            status(200, plain("One was long.")),
            status(200, plain("Done.")),
        ]
        model = OpenAIBackend("gpt-5", server.base_url, KEY)
        with Agent(
            workspace=tmp_path,
            model=ModelOptions(model, dialect="native"),
            tools=talking(3000),
            services=HostServices(audit=MemoryAudit()),
        ) as agent:
            assert agent.run("Count.").text == "Done."
        refused, summary, shorter = (server.asked(at)["messages"] for at in (2, 3, 4))
        tools = [server.asked(at).get("tools") for at in range(5)]
    assert summary[:4] == refused[:4]  # what is summarised is still in the provider's cache
    assert [message["role"] for message in shorter] == ["system", "user", "assistant", "tool"]
    assert shorter[1]["content"] == f"Count.\n\n{SUMMARY}\nOne was long."
    assert shorter[2:] == refused[4:]
    assert all(tools)
    assert tools.count(tools[0]) == 5


def test_a_run_that_is_told_again_sends_the_same_bytes(tmp_path: Path) -> None:
    first, again = Patient(40), Patient(40)
    told(tmp_path, first, 4000)
    told(tmp_path / "..", again, 4000)
    assert first.written == again.written
    assert first.asked == again.asked


def test_a_person_sees_that_the_conversation_was_shortened() -> None:
    out = io.StringIO()
    see = Progress(out)
    see(AgentEvent("compaction", Compaction("cleared", Messages(), 1, 3000, 1400)))
    see(AgentEvent("compaction", Compaction("summary", Messages(), 12, 3000, 900, "All is well.")))
    see(AgentEvent("compaction", Compaction("summary", Messages(), 1, 3000, 900)))
    room = "the request takes about {} tokens instead of 3,000."
    assert out.getvalue().splitlines() == [
        "! 1 old result cleared; " + room.format("1,400"),
        "! 12 old messages summarised; " + room.format("900"),
        "! 1 old message left out, without a summary; " + room.format("900"),
    ]


def test_the_window_can_be_named_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("Done.")
    words = ["run", "Do it.", "--model", "scripted:r.txt"]
    said = quoth(*words, "--max-context", "300", cwd=tmp_path)
    assert said.code == 1
    assert (
        "scripted:r.txt can read 300 tokens, and the tools, which cannot be left out, take about" in said.err
    )
    assert quoth(*words, "--max-context", "30000", cwd=tmp_path).out == "Done.\n"
    assert quoth(*words, "--max-context", "0", cwd=tmp_path).code == 2
