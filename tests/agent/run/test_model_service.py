"""What an agent gives its tools: its own model, whatever its host has, and who they work for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    A_NUMBER_FROM_0,
    AND_ONE_MORE_WAS_ASKED,
    DID_NOT_FINISH_WITHIN,
    THE_SCRIPT_IS_EXHAUSTED,
    THERE_IS_NO_MODEL,
)
from words import TalkingFunction, agent, async_agent, complaint, files, story, tool

from quoth import Agent, HostServices, Services, ToolContext
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.call.services import NO_MEMORY, NO_MODEL
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.registry.table import CognitiveTool


def asking(**options: Any) -> CognitiveTool:
    """A tool that asks the model."""

    def body(ctx: ToolContext) -> Any:
        return ctx.model.complete("Which colour?", system="Be brief.", max_tokens=7)

    return tool(body=body, **options)


class Parrot:
    """A host's own model."""

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        return f"You asked: {prompt}"


class Attentive(TalkingFunction):
    """A model that remembers how it was asked."""

    def __init__(self, reply: Callable[[Messages], Any]) -> None:
        super().__init__(reply)
        self.asked: list[tuple[list[Any], dict[str, Any]]] = []

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        self.asked.append((list(messages), options))
        return await super().complete(messages, **options)


# The agent's own model


def test_a_tool_asks_the_agents_own_model(tmp_path: Path) -> None:
    model = Attentive(lambda messages: "blue")
    with Agent(
        workspace=tmp_path, model=model, tools=[asking()], services=HostServices(audit=MemoryAudit())
    ) as it:
        assert it.call("(probe)").value == "blue"
    assert model.asked == [
        (
            [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which colour?"}],
            {"max_tokens": 7},
        )
    ]


def test_without_a_system_text_there_is_none(tmp_path: Path) -> None:
    model = Attentive(lambda messages: "blue")
    probe = tool(body=lambda ctx: ctx.model.complete("Which?"))
    with Agent(
        workspace=tmp_path, model=model, tools=[probe], services=HostServices(audit=MemoryAudit())
    ) as it:
        it.call("(probe)")
    assert model.asked == [([{"role": "user", "content": "Which?"}], {"max_tokens": 1024})]


def test_what_a_tool_asks_is_no_part_of_the_run(tmp_path: Path) -> None:
    told = story(tmp_path, "(probe)", "blue", "It is blue.", tools=[asking()])
    assert told.reply.text == "It is blue."
    first, asked, second = told.requests
    assert second.startswith(first.rstrip(b"]"))  # the prompt is a prefix, as if nothing had been asked
    assert [message["content"] for message in json.loads(asked)] == ["Be brief.", "Which colour?"]
    assert b"Which colour?" not in second
    assert "blue" in told.shown(3)


def test_the_model_is_chosen_at_the_first_question_and_is_that_of_the_runs(tmp_path: Path) -> None:
    home = files(tmp_path, {"replies.txt": "blue\n---\nDone.\n"})
    spec = f"scripted:{home / 'replies.txt'}"
    with Agent(
        workspace=home, model=spec, tools=[asking()], services=HostServices(audit=MemoryAudit())
    ) as it:
        assert it.call("(probe)").value == "blue"
        assert it.run("Do it.").text == "Done."


def test_without_a_model_a_tool_is_told_so_when_it_asks(tmp_path: Path) -> None:
    with Agent(
        workspace=tmp_path, model="nonsense:x", tools=[asking()], services=HostServices(audit=MemoryAudit())
    ) as it:
        assert it.call('(echo "hi")').ok
        result = it.call("(probe)")
    assert (result.status, result.message.partition(" Choose ")[0]) == (
        "error",
        f"{THERE_IS_NO_MODEL} to ask. {THERE_IS_NO_MODEL} nonsense:x.",
    )


def test_a_model_that_cannot_answer_is_the_error_of_the_call(tmp_path: Path) -> None:
    with agent(tmp_path, tools=[asking()]) as it:
        result = it.call("(probe)")
    assert (result.status, result.message) == (
        "error",
        f"{THE_SCRIPT_IS_EXHAUSTED}: it has 0 replies {AND_ONE_MORE_WAS_ASKED}.",
    )


def test_past_the_deadline_of_the_tool_the_model_is_stopped(tmp_path: Path) -> None:
    stopped: list[bool] = []

    async def silent(_: Messages) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append(True)
            raise
        return ""

    probe = asking(timeout=0.05)
    with Agent(
        workspace=tmp_path,
        model=TalkingFunction(silent),
        tools=[probe],
        services=HostServices(audit=MemoryAudit()),
    ) as it:
        result = it.call("(probe)")
    assert (result.status, result.message) == ("timeout", f"probe {DID_NOT_FINISH_WITHIN} 0.05 s.")
    assert stopped == [True]


async def test_after_the_agent_is_closed_its_model_answers_nobody(tmp_path: Path) -> None:
    it = async_agent(tmp_path, "blue")
    model = it.context().model
    assert await model.complete("Which?") == "blue"
    await it.aclose()
    with pytest.raises(ToolError) as raised:
        await model.complete("Which?")
    assert str(raised.value) == f"{THERE_IS_NO_MODEL} to ask. This agent is closed."


def test_a_model_the_host_gave_comes_first(tmp_path: Path) -> None:
    with agent(tmp_path, "blue", tools=[asking()], services=Services(model=Parrot())) as it:
        assert it.call("(probe)").value == "You asked: Which colour?"


def test_what_the_host_gave_is_left_as_it_is(tmp_path: Path) -> None:
    given = Services()
    it = async_agent(tmp_path, services=given)
    assert (given.model, given.memory) == (NO_MODEL, NO_MEMORY)
    assert it.host.services.model is not NO_MODEL
    assert it.host.services.memory is not NO_MEMORY


# Whom the tools work for


def test_a_tool_knows_what_the_host_knows(tmp_path: Path) -> None:
    def body(ctx: ToolContext) -> Any:
        return [ctx.agent_id, ctx.knowledge, ctx.confidence, ctx.user, ctx.chat_id, ctx.user_message]

    told = story(
        tmp_path,
        "(probe)",
        "Done.",
        tools=[tool(body=body)],
        agent_id="librarian",
        knowledge="It is blue.",
        confidence=0.5,
        user="ann",
        session="s1",
    )
    assert told.reply.calls[0].result.value == ["librarian", "It is blue.", 0.5, "ann", "s1", "Do it."]


def test_a_host_that_says_nothing_leaves_them_open(tmp_path: Path) -> None:
    context = async_agent(tmp_path).context()
    assert (context.agent_id, context.knowledge, context.confidence) == ("agent", None, None)


async def test_what_the_host_knows_can_change_between_messages(tmp_path: Path) -> None:
    async with async_agent(tmp_path, tools=[tool(body=lambda ctx: ctx.knowledge)]) as it:
        it.knowledge = "It is blue."
        assert (await it.call("(probe)")).value == "It is blue."


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"services": {}}, "services is a Services(memory=…, …), not {}."),
        ({"knowledge": 1}, "knowledge is a text or None, not 1."),
        ({"confidence": "high"}, f"confidence is {A_NUMBER_FROM_0} to 1 or None, not 'high'."),
        ({"confidence": True}, f"confidence is {A_NUMBER_FROM_0} to 1 or None, not True."),
        ({"confidence": 1.5}, f"confidence is {A_NUMBER_FROM_0} to 1 or None, not 1.5."),
        ({"confidence": float("nan")}, f"confidence is {A_NUMBER_FROM_0} to 1 or None, not nan."),
        ({"agent_id": ""}, "agent_id is a text that is not empty, not ''."),
        ({"agent_id": 7}, "agent_id is a text that is not empty, not 7."),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, options: dict[str, Any], sentence: str) -> None:
    assert complaint(UsageError, lambda: async_agent(tmp_path, **options)) == sentence
