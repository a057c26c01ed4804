"""Conversations with a server that refuses as five providers do: it takes every request, also after
faults."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, failure, loopback
from wire_rules import Strict

from quoth import Agent, AgentEvent, ModelOptions, RunLimits
from quoth.tools.consent.requests import Decision

SPECS = {
    "openai": "openai:gpt-5-mini",
    "anthropic": "anthropic:claude-haiku-5-5",
    "responses": "openai-responses:gpt-5-mini",
    "mistral": "mistral:mistral-small-latest",
    "gemini": "gemini:gemini-3.5-flash",
    "no system": "openai:gemma-2",
    "ordered": "openai:devstral",
}
PROVIDERS = ("openai", "anthropic", "responses", "mistral", "gemini")
READ = ("read-file", '{"path":"notes.txt"}')
LONG = ("read-file", '{"path":"long.txt"}')
DONE = {"text": "It says 3 pears."}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "notes.txt").write_text("3 pears\n")
    (tmp_path / "long.txt").write_text("word " * 4000)
    return tmp_path


def agent_at(server: Server, name: str, place: Path, session: str = "s", **more: Any) -> Agent:
    model = ModelOptions(SPECS[name], base_url=server.base_url, api_key="sk-1", dialect="native")
    return Agent(workspace=place, model=model, session=session, user="ann", **more)


def faulty_calls(agent: Callable[..., Agent]) -> None:
    """Names, ids and arguments that no provider takes, thoughts, and a reply without a word."""
    with agent() as one:
        assert one.say("Look.").text == "It says 3 pears."
        assert one.say("Again.").text == "It says 3 pears."


FAULTY = [
    {
        "thought": "Hm.",
        "calls": [("read_file<|channel|>x", "{}", "call_0"), ("read-file", '{"path": not', "call_0")],
    },
    {"text": " ", "thought": "So."},
    {"calls": [(*READ, "call_0"), ("", "[1]", "a b"), ("list-files", "", "x" * 70)]},
    DONE,
    {"thought": "Hm.", "calls": [(*READ, "call_0")]},
    DONE,
]


def cut_replies(agent: Callable[..., Agent]) -> None:
    """The end of a reply was cut off: behind its results stands that it was."""
    with agent() as one:
        assert one.run("Look.").text == "It says 3 pears."


CUT = [{"calls": [READ], "cut": True}, {"text": "It s", "cut": True}, DONE]


def unanswered(agent: Callable[..., Agent]) -> None:
    """Requests that fail, and a person who speaks again, also in another process."""
    with agent() as one:
        assert one.say("Look.").status == "failed"
        assert one.say("Look again.").status == "failed"
    with agent() as one:
        assert one.say("And now?").text == "It says 3 pears."


REFUSED = failure(418, "I am a teapot.")
UNANSWERED = [{"calls": [READ]}, REFUSED, REFUSED, {"calls": [READ]}, DONE]


def ended_by_a_tool(agent: Callable[..., Agent]) -> None:
    """A call ends the run, and the next message comes upon its result."""
    with agent() as one:
        assert one.say("Look.").text == "All is done."
        assert one.say("Thanks.").text == "It says 3 pears."


ENDED = [{"calls": [("send-message", '{"message":"All is done."}'), READ]}, DONE]


def shortened(agent: Callable[..., Agent]) -> None:
    """The conversation is longer than the window, again and again."""
    with agent() as one:
        reply = one.run("Look at long.txt.")
    assert (reply.text, reply.error) == ("It says 3 pears.", "")


SHORTENED = [{"text": "Part.", "thought": "Hm.", "calls": [LONG]}, *[{"calls": [LONG]}] * 5, *[DONE] * 3]


def interrupted(agent: Callable[..., Agent]) -> None:
    """A person interrupts the first of two calls, and goes on, also in another process."""

    def stop(event: AgentEvent) -> None:
        if event.kind == "call":
            one.interrupt()

    with agent(on_event=stop) as one:
        assert one.say("Look.").status == "interrupted"
    with agent() as one:
        assert one.say("Look again.").text == "It says 3 pears."


INTERRUPTED = [{"calls": [READ, ("list-files", "{}")]}, {"calls": [READ]}, DONE]


def denied(agent: Callable[..., Agent]) -> None:
    """A call waits for a person, who denies it in another process."""
    with agent() as one:
        assert one.say("Write.").status == "pending"
        (request,) = one.broker.requests()
        one.broker.decide(request.id, Decision("deny", "ann", why="Not now."))
    with agent() as one:
        (reply,) = one.resume()
        assert reply.text == "It says 3 pears."
        assert one.say("Thanks.").text == "It says 3 pears."


DENIED = [{"calls": [READ, ("write-file", '{"path":"x","content":"y"}')]}, DONE, DONE]

STORIES: dict[str, tuple[Callable[..., None], list[Any], dict[str, Any]]] = {
    "faulty calls": (faulty_calls, FAULTY, {}),
    "cut replies": (cut_replies, CUT, {}),
    "unanswered": (unanswered, UNANSWERED, {}),
    "ended by a tool": (ended_by_a_tool, ENDED, {}),
    "interrupted": (interrupted, INTERRUPTED, {}),
    "denied": (denied, DENIED, {}),
    "shortened": (shortened, SHORTENED, {"limits": RunLimits(context=9_000, repeats=9)}),
}


def history(body: bytes) -> bytes:
    """The conversation in a request, without its last bracket."""
    (field,) = [name for name in (b'"messages":[', b'"input":[') if name in body]
    return body.partition(field)[2].removesuffix(b"]}")


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("name", SPECS)
def test_a_strict_server_takes_every_request(name: str, story: str, place: Path) -> None:
    tell, replies, options = STORIES[story]
    server_says = Strict(name, replies)
    opened: list[Agent] = []

    def agent(**more: Any) -> Agent:
        opened.append(agent_at(server, name, place, **options, **more))
        return opened[-1]

    with loopback(server_says) as server:
        tell(agent)
        if name == "openai":
            with agent() as one:
                replay = one.replay()
            assert replay.same, replay.diff
    if name in PROVIDERS:
        assert server_says.refusals == []
    else:  # known by its words, once in each process
        assert len(server_says.refusals) <= len(opened)
    if story != "shortened" and name in PROVIDERS:  # else another prefix begins
        sent = [history(body) for _, _, body in server.requests]
        assert all(later.startswith(one) for one, later in pairwise(sent)), "also from another process"


def test_a_template_of_two_roles_is_spoken_to_in_text(place: Path) -> None:
    """It takes neither the system role nor the results of native calls, and says no more of both."""
    heard: list[AgentEvent] = []
    replies = [{"calls": [READ]}, DONE, DONE]
    strict = Strict("two roles", replies)
    with loopback(strict) as server, agent_at(server, "no system", place, on_event=heard.append) as agent:
        reply = agent.say("Look.")
        assert ([str(call.form) for call in reply.calls], reply.text) == (
            ['(read-file :path "notes.txt")'],
            "It says 3 pears.",
        )
        refused = len(strict.refusals)
        assert agent.say("Again.").text == "It says 3 pears."
    assert len(strict.refusals) == refused == 2, "the system role, and later the results"
    assert [message["role"] for message in server.asked()["messages"]] == ["user", "assistant"] * 2 + ["user"]
    notes = [event.data for event in heard if event.kind == "note"]
    assert any(
        "must alternate" in note and note.endswith("it is sent in another format from now on.")
        for note in notes
    )


def test_alternation_is_learnt_once(place: Path) -> None:
    strict = Strict("ordered", CUT)
    with loopback(strict) as server, agent_at(server, "ordered", place) as agent:
        assert agent.run("Look.").text == "It says 3 pears."
    assert [len(strict.refusals), len(server.requests)] == [1, 4]
    told = server.asked()["messages"]
    assert [message["role"] for message in told][2:5] == ["assistant", "tool", "assistant"]
    assert told[0]["role"] == "system", "which it never refused"
