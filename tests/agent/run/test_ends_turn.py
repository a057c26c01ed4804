"""A tool that ends the turn: its calls and their siblings get their results, and the run ends with its text,
also when it waits, is killed, resumed, replayed or forked. What it sent is sent once."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from sentences import IT_SENDS_A_MESSAGE
from words import (
    Story,
    TalkingFunction,
    agent,
    async_agent,
    files,
    form,
    native,
    script,
    scripted,
    story,
    tool,
)

from quoth import Agent, HostServices, ModelOptions
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import ToolError
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

SAY = '(send-message :message "All is done.")'


def finish(value: Any = "finished", **options: Any) -> CognitiveTool:
    """A user's own tool that ends the turn."""

    def body() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return tool("finish", body, ends_turn=True, **options)


def ended(told: Story) -> tuple[str, str, int]:
    return told.reply.status, told.reply.text, len(told.requests)


# How a run ends

ENDS: list[tuple[str, str, Any, str]] = [
    # the reply, what the tool returns, and what the run says
    ("its message", SAY, None, "All is done."),
    ("not the words around it", f"I tell them.\n{SAY}", None, "All is done."),
    ("two messages", f'{SAY}\n(send-message "And well.")', None, "All is done.\n\nAnd well."),
    ("one said twice", f"{SAY}\n{SAY}", None, "All is done."),
    ("the value of an own tool", "(finish)", "finished", "finished"),
    ("that as Lisp", "(finish)", {"a": 1}, '{"a" 1}'),
    ("the words around it", "Here you are.\n(finish)", "finished", "Here you are."),
    ("a tool that says nothing", "(finish)", None, "Done."),
    ("both", f"{SAY}\n(finish)", "finished", "All is done.\n\nfinished"),
    ("with others before and after", f'(echo "a")\n{SAY}\n(echo "b")', None, "All is done."),
]


@pytest.mark.parametrize(("reply", "value", "text"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_a_run_ends_with_the_text_of_the_tool(tmp_path: Path, reply: str, value: Any, text: str) -> None:
    assert ended(story(tmp_path, reply, "Never said.", tools=[finish(value)])) == ("done", text, 1)


def test_a_tool_that_fails_does_not_end_the_run(tmp_path: Path) -> None:
    told = story(tmp_path, "(finish)", "I could not.", tools=[finish(ToolError("Not yet."))])
    assert ended(told) == ("done", "I could not.", 2)
    assert ended(story(tmp_path, '(send-message "  ")', "So be it.")) == ("done", "So be it.", 2)


def test_a_tool_without_the_option_does_not_end_the_run(tmp_path: Path) -> None:
    assert ended(story(tmp_path, "(probe)", "Well.", tools=[tool()])) == ("done", "Well.", 2)


def test_a_call_inside_a_program_does_not_end_the_run(tmp_path: Path) -> None:
    told = story(tmp_path, f"(eval (do {SAY} 1))", "That was that.")
    assert ended(told) == ("done", "That was that.", 2)
    assert (told.reply.messages, told.reply.unsent) == (("All is done.",), None)


def test_a_model_that_must_look_first_may_end_the_run_nevertheless(tmp_path: Path) -> None:
    assert ended(story(tmp_path, SAY, must_act=True)) == ("done", "All is done.", 1)


@pytest.mark.parametrize("name", ["send-message", "block", "recall"])
def test_a_grammar_offers_nothing_that_shows_nothing_before_anything_was_looked_at(
    tmp_path: Path, name: str
) -> None:
    model = scripted("(eval (+ 1 2))", SAY)
    model.takes_grammar = True
    grammars: list[str] = []
    complete = model.complete

    async def seen(messages: Any, *, grammar: str | None = None, **more: Any) -> Any:
        grammars.append(grammar or "")
        return await complete(messages, **more)

    model.complete = seen  # type: ignore[method-assign]
    with Agent(workspace=tmp_path, model=ModelOptions(model, must_act=True)) as here:
        assert here.run("Look.").text == "All is done."
    assert [f'"({name}' in grammar for grammar in grammars] == [False, True]


def test_every_native_call_of_the_reply_has_its_result_and_the_talk_goes_on(tmp_path: Path) -> None:
    reply = native(("echo", {"text": "a"}), ("send-message", {"message": "All is done."}), ("echo", {}))
    model = scripted(reply, "And again.")
    with Agent(workspace=tmp_path, model=ModelOptions(model, dialect="native")) as here:
        assert here.say("One.").text == "All is done."
        assert here.say("Two.").text == "And again."
    *_, one, two, three, user = json.loads(model.seen[1])
    assert [message["call_id"] for message in (one, two, three)] == ["c1", "c2", "c3"]
    assert "Message sent successfully" in two["content"]
    assert (user["role"], user["content"]) == ("user", "Two.")


# Waiting, killed, resumed


def test_a_sibling_that_waits_keeps_the_run_waiting_and_the_message_is_sent_once(tmp_path: Path) -> None:
    sent: list[str] = []
    write = '(write-file :path "a.txt" :content "x")'

    def heard(event: AgentEvent) -> None:
        if event.kind == "message":
            sent.append(event.data)

    given = {"session": "s", "user": "ann", "on_event": heard, "audit": None}
    with agent(tmp_path, f"{SAY}\n{write}", **given) as here:
        first = here.run("Do it.")
        (request,) = here.broker.requests()
        here.broker.decide(request.id, Decision("once", "ann"))
    assert (first.status, first.messages, sent) == ("pending", ("All is done.",), ["All is done."])
    with agent(tmp_path, **given) as here:
        (last,) = here.resume()
    assert isinstance(last, Reply)
    assert (last.status, last.text, last.unsent, last.messages) == ("done", "All is done.", "", ())
    assert sent == ["All is done."]
    assert (tmp_path / "a.txt").read_text() == "x"


KILLED = """
import os, signal, sys
from quoth import Agent, cognitive_tool
from quoth.neuro.backends.select import ScriptedBackend
@cognitive_tool(effects=["writes"])
def die() -> str:
    "Die."
    os.kill(os.getpid(), signal.SIGKILL)
def tell(event):
    if event.kind == "message":
        print(event.data, flush=True)
said = '(send-message :message "All is done.")\\n(die)'
Agent(workspace=".", tools=[die], model=ScriptedBackend([said]), session="s", user="ann",
      consent="yes", on_event=tell).run("Do it.")
"""


def test_a_run_that_is_killed_ends_with_the_message_and_does_not_send_it_again(tmp_path: Path) -> None:
    killed = script(KILLED, cwd=tmp_path)
    assert (killed.code, killed.out) == (-signal.SIGKILL, "All is done.\n"), killed.err
    sent: list[str] = []
    calm = tool("die", lambda: "not now", effects=["writes"])
    with agent(
        tmp_path,
        tools=[calm],
        session="s",
        user="ann",
        consent="yes",
        on_event=lambda event: sent.append(event.data) if event.kind == "message" else None,
    ) as here:
        (last,) = here.resume()  # "yes" does not know how the killed call ended
        assert isinstance(last, Reply)
        assert (last.status, sent) == ("pending", [])
        assert last.messages == ("All is done.",)  # no Reply had told of it
        (request,) = here.broker.requests()
        here.broker.decide(request.id, Decision())
        (last,) = here.resume()
    assert isinstance(last, Reply)
    assert (last.status, last.text, sent) == ("done", "All is done.", [])


async def test_a_replay_and_a_fork_agree(tmp_path: Path) -> None:
    async with async_agent(tmp_path, f'(echo "a")\n{SAY}', "More.", session="s", audit=None) as here:
        first = await here.say("Do it.")
        assert (await here.replay()).same, str(await here.replay())
        last = await here.follow("Go on.")
    assert (first.text, last.text) == ("All is done.", "More.")
    store = Store(store_path(tmp_path))
    kinds = [event.kind for event in Transcript(lambda: store).events("s", run="r1")]
    assert kinds[-4:] == ["call", "sent", "receipt", "end"]
    store.close()


# Sub-agents


def cast(**parts: list[str]) -> Any:
    """A model that says the lines of the part its task begins with."""

    def reply(messages: Any) -> str:
        (task, *_) = [m["content"] for m in messages if m["role"] == "user"]
        said = sum(m["role"] == "assistant" for m in messages)
        return parts[task.split()[0].strip(".").lower()][said]

    return TalkingFunction(reply)


CALLER = '(cognitive-loop :task "Help me.")'
ANSWERS = [
    ("its message is its answer", [SAY], "All is done."),
    (
        "what it sent before is in it",
        [f"(eval (do {SAY} 1))", "And that is all."],
        "All is done.\n\nAnd that is all.",
    ),
    ("in its order", ['(eval (send-message "One."))', '(send-message "Two.")'], "One.\n\nTwo."),
]


@pytest.mark.parametrize(("lines", "answer"), [row[1:] for row in ANSWERS], ids=[row[0] for row in ANSWERS])
def test_a_sub_agent_sends_to_its_caller(tmp_path: Path, lines: list[str], answer: str) -> None:
    sent: list[str] = []
    with Agent(
        workspace=tmp_path,
        model=cast(go=[CALLER, "Thank you."], help=lines),
        on_event=lambda event: sent.append(event.data) if event.kind == "message" else None,
    ) as here:
        reply = here.run("Go.")
    assert [call.result.value for call in reply.calls] == [answer]
    assert (reply.text, reply.messages, sent) == ("Thank you.", (), [])


def test_what_a_sub_agent_sent_before_it_failed_is_not_lost(tmp_path: Path) -> None:
    lines = [f"(eval (do {SAY} 1))", "", "", ""]
    with Agent(workspace=tmp_path, model=cast(go=[CALLER, "I see."], help=lines)) as here:
        (call,) = here.run("Go.").calls
    assert (call.result.status, call.result.message[:40]) == (
        "error",
        "All is done.\n\nThe run was stopped: 3 rep",
    )


def test_a_sub_agent_asks_for_other_channels_as_its_caller_must(tmp_path: Path) -> None:
    lines = ['(send-message "To all." :to "ops")']
    services = HostServices(channels={"ops": tmp_path / "ops.jsonl"})
    model = cast(go=[CALLER, "Thank you."], help=lines)
    with Agent(workspace=tmp_path, model=model, services=services, session="s", user="ann") as here:
        assert here.run("Go.").status == "pending"
        (request,) = here.broker.requests()
        assert request.reason == f"{IT_SENDS_A_MESSAGE} to the channel ops"
        here.broker.decide(request.id, Decision("once", "ann"))
        (reply,) = here.resume()
    assert isinstance(reply, Reply)
    assert (reply.status, [call.result.value for call in reply.calls]) == ("done", ["To all."])
    (line,) = (tmp_path / "ops.jsonl").read_text().splitlines()
    assert json.loads(line)["text"] == "To all."


def test_an_edited_message_is_the_reply(tmp_path: Path) -> None:
    rules = files(tmp_path, {"rules.hy": "(ask (send-message))"}) / "rules.hy"
    with agent(tmp_path, SAY, policy=rules, session="s", user="ann", audit=None) as here:
        here.run("Go.")
        (request,) = here.broker.requests()
        other = form('(send-message "Nearly done.")')
        here.broker.decide(request.id, Decision("edit", "ann", form=other))
        (reply,) = here.resume()
    assert isinstance(reply, Reply)
    assert (reply.status, reply.text, reply.messages) == ("done", "Nearly done.", ("Nearly done.",))
