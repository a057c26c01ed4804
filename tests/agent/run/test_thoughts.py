"""A model that thinks aloud: its thoughts are no part of a run, and go back to nobody."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sentences import IS_NEVER_CLOSED
from words import TalkingFunction, scripted, story, table_of, tool

from quoth import Agent
from quoth.agent.client import AsyncAgent
from quoth.agent.session.render import as_text, thoughts_of
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.neuro.prompt.dialects import DIALECTS

DRAFT = '(write-file :path "x" :content "y")'
THOUGHT = f"<think>\nI could\n{DRAFT}\nbut no.\n</think>\n"


def test_a_drafted_call_is_not_made_and_the_answer_is_what_follows_it(tmp_path: Path) -> None:
    told = story(tmp_path, f"{THOUGHT}It stays as it is.")
    assert (told.reply.status, told.reply.text, told.reply.calls) == ("done", "It stays as it is.", ())
    assert told.reply.reasoning == f"I could\n{DRAFT}\nbut no."
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_not_shown_its_thoughts_again(tmp_path: Path) -> None:
    told = story(tmp_path, f'{THOUGHT}(echo :text "hello")<|im_end|>', "It said hello.")
    assert told.reply.text == "It said hello."
    (mine,) = [one["content"] for one in json.loads(told.requests[1]) if one["role"] == "assistant"]
    assert mine == '(echo :text "hello")'


def test_a_reply_of_an_unfinished_thought_is_told_as_that(tmp_path: Path) -> None:
    told = story(tmp_path, f"<think>\nPerhaps\n{DRAFT}", "Nothing to do.")
    assert told.reply.text == "Nothing to do."
    assert "The reply ends inside a thought" in told.shown(2)
    assert "Your reply was empty" not in told.shown(2)


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"tags", "run"}))
def test_a_family_calls_in_every_dialect(dialect: str, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("3 pears\n")
    value = "<parameter=path>\nnotes.txt\n</parameter>"
    call = f"<tool_call>\n<function=read_file>\n{value}\n</function>\n</tool_call>"
    told = story(tmp_path, call, "3 pears.", dialect=dialect)
    assert [str(record.form) for record in told.reply.calls] == ['(read-file :path "notes.txt")']
    assert told.reply.text == "3 pears."


def test_what_cannot_be_read_goes_back_and_is_no_answer(tmp_path: Path) -> None:
    told = story(tmp_path, "<tool_call>\n<function=read_file>\n<parameter=path>\na", "I cannot.")
    assert (told.reply.text, told.reply.steps) == ("I cannot.", 2)
    assert f"a value {IS_NEVER_CLOSED}" in told.shown(2)


def test_markup_beside_native_calls_is_neither_text_nor_a_second_call() -> None:
    table = table_of(tool("probe", params={"a": {"type": str}}))
    markup = '<tool_call>{"name": "probe", "arguments": {"a": "b"}}</tool_call>'
    call = NativeCall(id="c1", name="probe", arguments='{"a": "b"}')
    reading = DIALECTS["native"].read(Completion(f"<think>so</think>I look.\n{markup}", calls=(call,)), table)
    assert [str(one.form) for one in reading.calls] == ['(probe :a "b")']
    assert (reading.text, reading.reasoning) == ("I look.", "so")


async def test_a_conversation_goes_on_without_thoughts_after_it_was_resumed(tmp_path: Path) -> None:
    shown: list[list[str]] = []

    def say(messages: Messages) -> str:
        shown.append([one["content"] for one in messages if one["role"] == "assistant"])
        return f"{THOUGHT}It stays."

    for task in ("Change nothing.", "Sure?"):
        async with AsyncAgent(workspace=tmp_path, model=TalkingFunction(say), session="s") as agent:
            reply = await agent.say(task)
            assert reply.text == "It stays."
    assert shown == [[], ["It stays."]]


def test_a_summary_and_a_tool_that_asks_the_model_have_no_thoughts(tmp_path: Path) -> None:
    asks = tool("asks", lambda ctx: ctx.model.complete("What?"), params={})
    told = story(tmp_path, "(asks)", f"{THOUGHT}Forty-two.", "Done.", tools=[asks])
    assert [record.result.value for record in told.reply.calls] == ["Forty-two."]


async def test_the_log_shows_thoughts_to_who_asks_for_them(tmp_path: Path) -> None:
    async with AsyncAgent(workspace=tmp_path, model=scripted(f"{THOUGHT}It stays."), session="s") as agent:
        await agent.run("Change nothing.")
        events = list(agent.transcript.events("s"))
    assert "4 ‹ It stays." in "\n".join(as_text(events))
    assert "but no." not in "\n".join(as_text(events))
    shown = "\n".join(as_text(events, thoughts=True))
    assert "∴ I could" in shown
    assert "but no." in shown
    assert "\x1b[2mbut no." in "\n".join(as_text(events, thoughts=True, color=True))


def test_a_listener_hears_the_reasoning_of_a_reply(tmp_path: Path) -> None:
    heard: list[dict[str, object]] = []
    with Agent(
        workspace=tmp_path,
        model=scripted(f"{THOUGHT}It stays."),
        on_event=lambda event: heard.append(event.to_json()),
    ) as agent:
        agent.run("Change nothing.")
    (thought,) = [event["data"] for event in heard if event["event"] == "thought"]
    assert thought == {"text": "It stays.", "finish": "stop", "reasoning": f"I could\n{DRAFT}\nbut no."}


@pytest.mark.parametrize(
    "kept",
    [
        {"deepseek": {"reasoning_content": "I look."}},
        {"openrouter:x": {"reasoning_details": [{"type": "reasoning.text", "text": "I look.", "index": 0}]}},
        {
            "anthropic": [
                {"type": "thinking", "thinking": "I look.", "signature": "s"},
                {"type": "text", "text": "x"},
            ]
        },
    ],
)
def test_thoughts_that_came_beside_a_reply_are_its_reasoning(kept: dict[str, object]) -> None:
    completion = Completion("<think>So.</think>It stays.", kept=kept)
    reading = DIALECTS["native"].read(completion, table_of())
    assert (reading.text, reading.reasoning) == ("It stays.", "I look.\n\nSo.")
    assert thoughts_of({"text": completion.text, "kept": kept}) == "I look.\n\nSo."
    sealed = Completion("x", kept={"o": [{"type": "reasoning", "data": 1}]})
    assert DIALECTS["native"].read(sealed, table_of()).reasoning == ""
