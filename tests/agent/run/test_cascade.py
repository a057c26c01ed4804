"""A run goes down the list of its models, says so wherever it is written down, and never comes back up."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from loopback import loopback
from sentences import DID_NOT_ANSWER, DID_YOU_MEAN_OPENAI, THERE_IS_NO_MODEL
from words import ScriptedBackend, files, native, quoth

from quoth import Agent, HostServices, choose_backend
from quoth.agent.events import AgentEvent
from quoth.agent.reply import Reply
from quoth.agent.run.models import OwnModel
from quoth.neuro.backends.base import Backend, ContextFullError, ModelError
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.providers import ServerSettings
from quoth.neuro.backends.select import Cascade
from quoth.tools.call.call import ToolResult
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.installing import install_extra

DOWN = ModelError("Cannot reach https://api.example/v1.", "down")
MOVED = f"openai:gpt-5-mini {DID_NOT_ANSWER}; local-small is asked instead. {DOWN}"
LOOK = '(read-file :path "a.txt")'


class Model(ScriptedBackend):
    """A model of any name, which fails where its script holds an error."""

    def __init__(
        self, name: str, *replies: Any, view: str = "openai", grammar: bool = False, window: int | None = None
    ) -> None:
        rest = iter(replies)

        def reply(messages: Messages) -> Any:
            answer = next(rest, ModelError(f"{name} was asked once too often."))
            if isinstance(answer, Exception):
                raise answer
            return answer

        super().__init__(reply, name)
        self.tool_view, self.takes_grammar, self.context = view, grammar, window

    def asked(self, place: int) -> list[tuple[str, str]]:
        """The messages of a request, as role and text."""
        return [(message["role"], message["content"]) for message in json.loads(self.seen[place])]


def large(*replies: Any, **more: Any) -> Model:
    return Model("openai:gpt-5-mini", *replies, **more)


def small(*replies: Any, **more: Any) -> Model:
    """An embedded one: it reads text, and less of it, and obeys a grammar."""
    return Model("local-small", *replies, **{"view": "", "grammar": True, "window": 16_384} | more)


class Told:
    """A run, and what was told of it."""

    def __init__(self, workspace: Path, *models: Backend, session: str = "one", **more: Any) -> None:
        self.notes: list[str] = []
        self.audit = MemoryAudit()
        self.agent = Agent(
            workspace=workspace,
            model=Cascade(models),
            on_event=self.hear,
            services=HostServices(audit=self.audit),
            session=session,
            **more,
        )

    def hear(self, event: AgentEvent) -> None:
        if event.kind == "note":
            self.notes.append(event.data)

    def run(self, task: str = "What is in a.txt?") -> Reply:
        with self.agent:
            return self.agent.run(task)

    def resume(self) -> Reply | ToolResult:
        with self.agent:
            (done,) = self.agent.resume()
        return done

    @property
    def written(self) -> list[tuple[str, str]]:
        """Of the audit what belongs to no call."""
        return [(row["status"], row["message"]) for row in self.audit.rows() if row["stage"] == "model"]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    return files(tmp_path, {"a.txt": "forty-two"})


def test_the_next_model_answers_in_its_own_dialect_and_this_is_told_and_written_down(here: Path) -> None:
    first, second = large(DOWN), small(LOOK, "It says forty-two.")
    told = Told(here, first, second)
    reply = told.run()
    assert (reply.status, reply.text) == ("done", "It says forty-two.")
    assert told.notes == [MOVED]
    assert told.written == [("error", MOVED)]
    assert [role for role, _ in first.asked(0)] == [role for role, _ in second.asked(0)] == ["system", "user"]
    assert "(read-file" not in first.asked(0)[0][1]  # it was given its tools as such
    assert "(read-file" in second.asked(0)[0][1]
    assert (first.tools[0] is None, second.tools) == (False, [None, None])


def test_a_model_that_takes_over_later_is_told_how_to_call_and_what_was_done_stays_done(here: Path) -> None:
    first = large(native(("read-file", {"path": "a.txt"})), DOWN)
    second = small("It says forty-two.")
    told = Told(here, first, second)
    assert told.run().text == "It says forty-two."
    roles = [role for role, _ in second.asked(0)]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    assert "forty-two" in second.asked(0)[3][1]
    assert "(read-file" in second.asked(0)[4][1]
    assert [row["tool"] for row in told.audit.rows() if row["stage"] == "body"] == ["read-file"]


def test_between_models_that_call_natively_only_the_tools_are_written_otherwise(here: Path) -> None:
    first, second = large(DOWN), Model("anthropic:claude-x", "It is so.", view="anthropic")
    assert Told(here, first, second).run().text == "It is so."
    assert second.asked(0) == first.asked(0)
    assert b"input_schema" in (second.tools[0] or b"")


def test_a_run_does_not_come_back_up_and_the_next_begins_at_the_top(here: Path) -> None:
    first, second = large(DOWN, "I am back."), small(LOOK, LOOK, "It says forty-two.")
    told = Told(here, first, second)
    with told.agent as agent:
        assert agent.run("What is in a.txt?").text == "It says forty-two."
        assert (len(first.seen), len(second.seen)) == (1, 3)
        assert agent.run("And now?").text == "I am back."


@pytest.mark.parametrize("why", ["down", "slow", "limited", "bill", "key", "failed", "garbage"])
def test_what_another_model_can_mend(here: Path, why: Any) -> None:
    assert Told(here, large(ModelError("It failed.", why)), small("So.")).run().text == "So."


def test_what_is_the_fault_of_the_request_ends_the_run(here: Path) -> None:
    second = small("So.")
    reply = Told(here, large(ModelError("No such field (400).")), second).run()
    assert (reply.status, reply.error, len(second.seen)) == ("failed", "No such field (400).", 0)


def test_the_last_one_has_nobody_to_go_on_with(here: Path) -> None:
    told = Told(here, large(DOWN), small(ModelError("The disk is full.", "failed")))
    reply = told.run()
    assert (reply.status, reply.error, told.notes) == ("failed", "The disk is full.", [MOVED])


class Breaking(Model):
    """A model that is cut off when it has shown the half."""

    async def complete(self, messages: Messages, **asked: Any) -> Any:
        asked["on_text"]("Forty-")
        raise DOWN


def test_nothing_is_asked_twice_once_text_was_shown(here: Path) -> None:
    second = small("So.")
    reply = Told(here, Breaking("openai:gpt-5-mini"), second).run()
    assert (reply.status, reply.error, len(second.seen)) == ("failed", str(DOWN), 0)


def test_one_that_is_full_is_followed_by_one_that_reads_more(here: Path) -> None:
    full = ContextFullError("It holds 20000 tokens.", 16_384)
    told = Told(here, small(full), large("It says forty-two."))
    assert told.run().text == "It says forty-two."
    assert told.notes == [f"local-small {DID_NOT_ANSWER}; openai:gpt-5-mini is asked instead. {full}"]
    second = small("So.")
    reply = Told(here, large(full, window=32_000), second, session="two").run()
    assert (reply.status, len(second.seen)) == ("failed", 0)  # what it cannot read, the other cannot either


def test_a_task_that_one_cannot_hold_is_for_one_that_can(here: Path) -> None:
    full = ContextFullError("It holds 30000 tokens.", 16_384)
    first, second = small(full), large("Long.")
    assert Told(here, first, second).run("so " * 30_000).text == "Long."
    assert len(first.seen) == 1


def test_a_model_that_takes_a_grammar_looks_before_it_answers(here: Path) -> None:
    forced: list[str | None] = []

    class Bound(Model):
        async def complete(self, messages: Messages, *, grammar: str | None = None, **asked: Any) -> Any:
            forced.append(grammar)
            return await super().complete(messages, grammar=grammar, **asked)

    bound = Bound("local-small", LOOK, "Done.", view="", grammar=True, window=16_384)
    Told(here, large(DOWN), bound).run()
    assert forced[0] is not None
    assert forced[0] != forced[1]


# Resumed, replayed


def test_a_resumed_run_goes_on_where_it_stood_and_a_replay_is_the_same(here: Path) -> None:
    first, second = large(DOWN), small(LOOK, ModelError("The disk is full."))
    assert Told(here, first, second).run().error == "The disk is full."
    again, below = large("I am back."), small("It says forty-two.")
    reply = Told(here, again, below).resume()
    assert isinstance(reply, Reply)
    assert (reply.status, reply.text, len(again.seen)) == ("done", "It says forty-two.", 0)
    assert below.asked(0)[:3] == second.asked(1)[:3]
    with Agent(workspace=here, session="one") as agent:
        found = agent.replay()
    assert found.same, found.diff


def test_the_transcript_tells_of_the_move(here: Path) -> None:
    Told(here, large(DOWN), small("So.")).run()
    said = quoth("log", "one", cwd=here)
    assert f"! {MOVED}" in said.out
    assert f"{DID_NOT_ANSWER}: " not in said.out


# Whoever else asks the model of a run


def test_a_sub_agent_begins_where_its_caller_stands(here: Path) -> None:
    first = large(DOWN)
    second = small('(cognitive-loop :task "What is in a.txt?")', LOOK, "forty-two", "It says forty-two.")
    told = Told(here, first, second)
    assert told.run().text == "It says forty-two."
    assert (len(first.seen), told.notes) == (1, [MOVED])


def test_the_question_of_a_tool_goes_down_the_list_too(here: Path) -> None:
    model = OwnModel(lambda: Cascade([large(DOWN), small("Blue.")]))
    assert asyncio.run(model.complete("What colour?")) == "Blue."


def test_a_model_may_not_choose_a_list_of_models(here: Path) -> None:
    wish = '(think :prompt "Hello?" :model "cascade:openai:gpt-5-mini,scripted:evil.hy")'
    told = Told(here, small(wish, "So."))
    assert told.run().status == "done"
    (row,) = [row for row in told.audit.rows() if row["tool"] == "think"]
    assert (row["status"], row["message"]) == (
        "denied",
        "think was denied: Only a person may choose a list of models; name one model.",
    )


# By name


def test_with_the_network_cut_the_next_one_answers_and_it_is_said(here: Path) -> None:
    files(here, {"talk.txt": f"{LOOK}\n---\nIt says forty-two."})
    replies = "scripted:talk.txt"
    said = quoth(
        *("run", "What is in a.txt?", "--session", "one", "--base-url", "http://127.0.0.1:9/v1"),
        *("--model", f"cascade:openai:gpt-5-mini,{replies}", "--json"),
        cwd=here,
    )
    assert json.loads(said.out)["reply"] == "It says forty-two."
    moved = f"openai:gpt-5-mini did not answer; {replies} is asked instead. After 3 tries: Cannot reach http"
    assert moved in said.err
    assert moved in quoth("log", "one", cwd=here).out
    assert moved in quoth("audit", cwd=here).out


def test_a_model_without_a_key_is_passed_over_and_it_is_said(here: Path) -> None:
    files(here, {"talk.txt": f"{LOOK}\n---\nIt says forty-two."})
    replies = "scripted:talk.txt"
    said = quoth("run", "What is in a.txt?", "--model", f"cascade:openai:gpt-5-mini,{replies}", cwd=here)
    assert said.out == "It says forty-two.\n"
    assert "openai:gpt-5-mini needs a key: set OPENAI_API_KEY" in said.err


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ("cascade:local", "cascade:local is not a list of models. Example: cascade:openai:gpt-5-mini,local."),
        (
            "cascade:local,",
            "cascade:local, is not a list of models. Example: cascade:openai:gpt-5-mini,local.",
        ),
        ("cascade:openai:a,lcoal", f"{THERE_IS_NO_MODEL} lcoal. Did you mean local?"),
        ("cascade:gpt-5-mini,local", f"{THERE_IS_NO_MODEL} gpt-5-mini. {DID_YOU_MEAN_OPENAI}:gpt-5-mini?"),
        ("cascade:openai:a,anthropic:b", "openai:a needs a key: set OPENAI_API_KEY"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_at_once(here: Path, spec: str, complaint: str) -> None:
    said = quoth("run", "Hello", "--model", spec, cwd=here)
    assert said.code == 2
    assert complaint in said.err


def test_a_base_url_is_for_one_server(here: Path) -> None:
    said = quoth(
        *("run", "Hello", "--model", "cascade:openai:a,ollama:b", "--base-url", "http://127.0.0.1:9/v1"),
        cwd=here,
    )
    assert said.err == (
        "quoth: A base URL or key is for one server, but cascade:openai:a,ollama:b has openai:a and ollama:b."
        " Configure each server separately.\n"
    )


def test_without_a_run_a_list_answers_by_itself(here: Path) -> None:
    messages = Messages()
    messages.append("user", "Hello")
    both = Cascade([large(DOWN), small("Hello yourself.")])
    assert asyncio.run(both.complete(messages)).text == "Hello yourself."
    assert both.name == "openai:gpt-5-mini"
    assert isinstance(both, Backend)


def test_the_ids_of_calls_are_such_as_the_next_server_takes(here: Path) -> None:
    answer = {"choices": [{"message": {"content": "It says forty-two."}, "finish_reason": "stop"}]}
    with loopback(lambda handler: handler.send(200, json.dumps(answer).encode())) as server:
        first = large(native(("read-file", {"path": "a.txt"})), DOWN)
        second = choose_backend("mistral:small", ServerSettings(server.base_url, "key"))
        assert Told(here, first, second).run().text == "It says forty-two."
        *_, asked, answered = server.asked()["messages"]
    (call,) = asked["tool_calls"]
    assert call["id"] == answered["tool_call_id"]
    assert len(call["id"]) == 9
    assert call["id"].isalnum()


def test_an_embedded_model_that_cannot_be_loaded_is_followed_too(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    told = Told(here, choose_backend("local-small"), large("It is so."))
    assert told.run().text == "It is so."
    assert told.notes == [
        f"local-small {DID_NOT_ANSWER}; openai:gpt-5-mini is asked instead. "
        f"The model local-small needs llama.cpp. Run: {install_extra('local-small')}"
    ]
