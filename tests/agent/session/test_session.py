"""Sessions: what is written down of them, in which order, and how they go on from it."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from sentences import NOTHING_WAITS_IN_SESSION
from words import Spy, TalkingFunction, complaint, scripted, tool

from quoth import Agent
from quoth.agent.session.session import Session
from quoth.neuro.backends.base import Completion, ModelError, Usage
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import ArgumentOrigin, ToolResult, to_text
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.history.event import Event
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path


class Diary:
    """A workspace whose session ``s`` is opened again and again, and what is written down of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.looks = Spy("seen")
        self.put = Spy("put")

    def agent(self, *replies: Any, **options: Any) -> Agent:
        tools = [
            tool("look", self.looks, effects=["reads"]),
            tool("put", self.put, effects=["writes"]),
            tool("login", Spy("in"), params={"pin": {"secret": True}}, effects=["net"]),
        ]
        given = {"session": "s", "user": "ann", "tools": tools, "model": scripted(*replies), "consent": "yes"}
        return Agent(workspace=self.folder, **{**given, **options})

    def events(self, session: str = "s") -> list[Event]:
        store = Store(store_path(self.folder))
        try:
            return list(Transcript(lambda: store).events(session))
        finally:
            store.close()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events()]

    def verify(self) -> None:
        store = Store(store_path(self.folder))
        try:
            Transcript(lambda: store).verify("s")
        finally:
            store.close()


@pytest.fixture
def diary(tmp_path: Path) -> Diary:
    return Diary(tmp_path)


# What is written down


def test_a_run_is_a_sequence_of_readable_forms(diary: Diary) -> None:
    with diary.agent("(look) (put)", "Done.") as it:
        it.run("Do it.")
    assert diary.kinds() == [
        "session",
        "stimulus",
        "request",
        "reply",
        *["call", "receipt"],
        *["call", "approval", "receipt"],
        *["request", "reply", "end"],
    ]
    reply, look, seen = diary.events()[3:6]
    assert reply.data["text"] == "(look) (put)"
    assert look.text.endswith(f':version "{look.data["version"]}")')
    assert (look.key, str(look.data["form"])) == ("r1/1.0", "(look)")
    assert (look.parent, seen.parent, seen.data["value"]) == (reply.seq, look.seq, "seen")
    diary.verify()


def test_what_a_model_sees_and_what_a_body_does_is_on_disk_before(diary: Diary) -> None:
    at_model: list[list[str]] = []
    at_body: list[list[str]] = []

    def reply(messages: Messages) -> str:
        at_model.append(diary.kinds())
        return "(put)" if len(at_model) == 1 else "Done."

    def body() -> str:
        at_body.append(diary.kinds())
        return "put"

    put = tool("put", body, effects=["writes"])
    with diary.agent(model=TalkingFunction(reply), tools=[put]) as it:
        it.run("Do it.")
    assert at_model[0] == ["session", "stimulus", "request"]
    assert at_body == [["session", "stimulus", "request", "reply", "call", "approval"]]
    assert at_model[1][-2:] == ["receipt", "request"]


def test_a_request_tells_only_what_is_new(diary: Diary) -> None:
    with diary.agent("(look)", "(put)", "Done.") as it:
        it.run("Do it.")
    requests = [event.data for event in diary.events() if event.kind == "request"]
    assert [(one["from"], len(one["messages"])) for one in requests] == [(0, 2), (3, 2), (6, 2)]
    told = [message["content"] for one in requests for message in one["messages"]]
    assert sum("AVAILABLE TOOLS" in text for text in told) == 1


def test_inner_calls_and_sub_agents_are_children_of_their_call(diary: Diary) -> None:
    with diary.agent('(cognitive-loop :task "Look." :tools ["look"])', "(look)", "Seen.", "Done.") as it:
        assert it.run("Do it.").status == "done"
        it.eval("(do (look) (look))")
    events = {event.seq: event for event in diary.events()}
    team = next(e for e in events.values() if e.kind == "call" and "cognitive-loop" in e.text)
    inner = [e for e in events.values() if e.run == f"{team.key}/agent"]
    assert [e.kind for e in inner] == [
        *["stimulus", "request", "reply", "call", "receipt", "request", "reply", "end"]
    ]
    assert inner[0].parent == team.seq
    program = next(e for e in events.values() if e.kind == "call" and "(eval" in e.text)
    looks = [e for e in events.values() if e.kind == "call" and e.parent == program.seq]
    assert len(looks) == 2
    assert len({e.key for e in looks}) == 2


def test_a_declared_secret_is_shown_nowhere_and_forgotten_at_the_end(diary: Diary) -> None:
    said = '(login "hunter2")'
    with diary.agent(said, consent=None) as it:
        assert it.run("Log in.").status == "pending"
    shown = "\n".join(event.shown for event in diary.events())
    assert "hunter2" not in shown
    assert '(login \\"[secret]\\")' in shown
    assert any("hunter2" in event.text for event in diary.events())  # the run goes on with it
    diary.verify()
    told = ArgumentOrigin("to", "text", "in the text of read-file hunter2.txt", ("hunter2",))
    with diary.agent("Done.") as it:
        it.broker.decide(it.broker.requests()[0].id, Decision())
        with contextlib.closing(Store(store_path(diary.folder))) as store:
            store.execute("UPDATE requests SET origins = ?", (to_text([told]),))
        it.resume()
        (kept,) = it.broker.requests(every=True)[0].origins
    assert (kept.words, kept.values) == ("in the text of read-file [secret].txt", ("[secret]",))
    assert not any("hunter2" in event.text for event in diary.events())
    diary.verify()


@pytest.mark.parametrize("pin", ["receipt", "status", "login", "2026", "session", "tool"])
def test_a_secret_may_be_a_word_of_the_form(diary: Diary, pin: str) -> None:
    with diary.agent(f'(login "{pin}")', "In.") as it:
        assert it.run("Log in.").status == "done"
    assert diary.events()[4].said["form"] == '(login :pin "[secret]")'
    assert diary.kinds()[4:7] == ["call", "approval", "receipt"]
    diary.verify()


def test_each_secret_is_hidden_however_many_there_are(tmp_path: Path) -> None:
    store = Store(store_path(tmp_path))
    transcript = Transcript(lambda: store)
    for place in range(1_100):
        transcript.hide("s", [f"secret-{place:05}"])
    transcript.add("s", "reply", {"text": "It is secret-01099.", "usage": {}})
    (event,) = transcript.events("s")
    store.close()
    assert event.said["text"] == "It is [secret]."


def test_what_waits_keeps_what_it_goes_on_with_when_another_call_ends(diary: Diary) -> None:
    wanted = "password=hunter2xyz\n"
    with diary.agent(consent=None) as it:
        assert it.call(f'(write-file :path "conf.txt" :content {json.dumps(wanted)})').status == "pending"
        assert it.call("(look)").ok
        program = f'(do (look) (write-file :path "more.txt" :content {json.dumps(wanted)}))'
        assert it.eval(program).status == "pending"
        for request in it.broker.requests():
            it.broker.decide(request.id, Decision(by="ann"))
        assert [one.status for one in it.resume()] == ["ok", "ok"]
    assert (diary.folder / "conf.txt").read_text() == wanted
    assert (diary.folder / "more.txt").read_text() == wanted
    assert not any("hunter2xyz" in event.text for event in diary.events())


# How it goes on


def test_a_conversation_goes_on_in_another_process(diary: Diary) -> None:
    with diary.agent("(look)", "One.") as it:
        it.say("First.")
    second = scripted("Two.")
    with diary.agent(model=second) as it:
        assert it.say("Second.").text == "Two."
    told = json.loads(second.seen[0])
    assert next(message["content"] for message in told if message["role"] == "user") == "First."
    assert told[-1] == {"role": "user", "content": "Second."}
    assert [m["content"] for m in told if m["role"] == "assistant"] == ["(look)", "One."]
    assert diary.looks.calls == 1


def test_a_new_conversation_is_begun_when_the_old_one_is_forgotten(diary: Diary) -> None:
    with diary.agent("One.", "Two.") as it:
        it.say("First.")
        it.forget()
        it.say("Second.")
    third = scripted("Three.")
    with diary.agent(model=third) as it:
        it.say("Third.")
    said = [m["content"] for m in json.loads(third.seen[0]) if m["role"] == "user"]
    assert said == ["Second.", "Third."]


def test_a_long_conversation_is_brought_back_whole(diary: Diary) -> None:
    turns = 1_100  # more than Python would recurse
    store = Store(store_path(diary.folder))
    transcript = Transcript(lambda: store)
    session = Session(transcript, "s", "ann", store_path(diary.folder))
    with store.transaction():
        for place in range(turns):
            told = {"text": "x", "user": "ann", "turn": "t"}
            name = session.begin(told, f"r{place}" if place else "")
            start = 2 * place
            request = {"talk": 1, "from": start, "messages": [{"role": "user", "content": f"q{place}"}]}
            seq = transcript.add("s", "request", request, run=name)
            transcript.add("s", "reply", {"text": f"a{place}", "usage": {}}, run=name, parent=seq)
            transcript.add("s", "end", {"status": "done", "text": "", "steps": 1}, run=name, status="done")
    messages = session.conversation(f"r{turns}")
    store.close()
    assert len(messages) == 2 * turns
    assert [m["content"] for m in messages[-2:]] == [f"q{turns - 1}", f"a{turns - 1}"]


def test_a_run_whose_model_failed_is_gone_on_with(diary: Diary) -> None:
    class Fails:
        name, takes_grammar = "fails", False

        async def complete(self, messages: Messages, **_: Any) -> Completion:
            if len(messages) > 3:
                raise ModelError("The server is down.")
            return Completion("(put)", Usage(3, 4))

        async def aclose(self) -> None:
            """Nothing to free."""

    with diary.agent(model=Fails()) as it:
        reply = it.run("Do it.")
    assert (reply.status, reply.error, diary.put.calls) == ("failed", "The server is down.", 1)
    with diary.agent("Done.") as it:
        (again,) = it.resume()
        assert not isinstance(again, ToolResult)
        assert (again.status, again.text, again.steps, diary.put.calls) == ("done", "Done.", 2, 1)
        assert again.usage.input_tokens == 3
        assert complaint(UsageError, it.resume) == f"{NOTHING_WAITS_IN_SESSION} s."


def test_the_next_message_may_follow_any_run(diary: Diary) -> None:
    with diary.agent("(look)", "One.") as it:
        it.run("First.")
    model = scripted("Two.")
    with diary.agent(model=model) as it:
        assert it.follow("And now?").text == "Two."
    said = [m["content"] for m in json.loads(model.seen[0]) if m["role"] == "user"]
    assert (said[0], said[-1]) == ("First.", "And now?")


def test_who_follows_hears_what_the_last_run_heard(diary: Diary) -> None:
    model = scripted("One.", "Two.", "Three.")
    with diary.agent(model=model) as it:
        it.say("First.")
        it.run("Second.")
        it.follow("Third.")
    said = [m["content"] for m in json.loads(model.seen[2]) if m["role"] != "system"]
    assert [text for text in said if text[-1] == "."][:4] == ["Second.", "Two.", "Third."]
