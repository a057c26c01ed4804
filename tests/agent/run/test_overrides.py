"""What people expect to say of a model, for an agent or for one run: instructions, temperature, time-out, key
and the longest reply."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from loopback import Handler, loopback
from sentences import (
    A_NUMBER_FROM_0,
    A_WHOLE_NUMBER_FROM_1,
    A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT,
    CANNOT_BE_READ,
    GAVE_NO_ANSWER_FOR,
    THERE_IS_NO_FILE,
    TIMEOUT_IS_A_NUMBER_OF,
)
from words import ScriptedBackend, agent, async_agent, complaint, files, quoth, scripted

from quoth import Agent, ModelOptions
from quoth.agent.reply import Reply
from quoth.agent.run import models
from quoth.neuro.backends.base import Completion, RequestOptions
from quoth.neuro.backends.messages import Messages
from quoth.tools.errors import UsageError

GERMAN = "Answer in German."
SO = {"choices": [{"message": {"content": "So."}, "finish_reason": "stop"}]}


def answer(handler: Handler) -> None:
    handler.send(200, json.dumps(SO).encode())


class Asked(ScriptedBackend):
    """A model that keeps what each request wanted."""

    def __init__(self, *replies: str) -> None:
        super().__init__(list(replies))
        self.wishes: list[tuple[float | None, int]] = []

    async def complete(self, messages: Messages, **asked: Any) -> Completion:
        options = asked.get("options", RequestOptions())
        self.wishes.append((options.temperature, asked["max_tokens"]))
        return await super().complete(messages, **asked)


class Closable(ScriptedBackend):
    """A model that counts how often it is closed."""

    def __init__(self, *replies: str) -> None:
        super().__init__(list(replies))
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def system(model: ScriptedBackend, place: int = 0) -> str:
    (said,) = [one["content"] for one in json.loads(model.seen[place]) if one["role"] == "system"]
    return str(said)


def last(model: ScriptedBackend, place: int = -1) -> str:
    return str(json.loads(model.seen[place])[-1]["content"])


# Instructions


def test_instructions_stand_behind_the_belt_before_any_task(tmp_path: Path) -> None:
    model = scripted("So.")
    with Agent(workspace=tmp_path, model=model, instructions=GERMAN) as running:
        running.run("Hello")
    assert system(model).endswith(f"\n\n{GERMAN}")
    assert "read-file" in system(model)


def test_a_run_has_its_own_and_the_next_those_of_the_agent(tmp_path: Path) -> None:
    model = scripted("So.", "So.", "So.")
    with Agent(workspace=tmp_path, model=ModelOptions(model, instructions=GERMAN)) as running:
        running.run("Hello", instructions="Answer in verse.")
        running.run("Hello")
        running.run("Hello", instructions="")
    assert [system(model, place).splitlines()[-1] for place in range(2)] == ["Answer in verse.", GERMAN]
    assert GERMAN not in system(model, 2)


def test_those_of_the_user_count_where_nobody_says_others(tmp_path: Path, state: Path) -> None:
    files(
        state / "config", {"config.hy": '(instructions "Be brief.") (temperature 0.3) (max-reply-tokens 77)'}
    )
    model = Asked("So.", "So.")
    with Agent(workspace=tmp_path, model=model) as running:
        running.run("Hello")
        running.run("Hello", instructions=GERMAN, temperature=0.9, reply_tokens=5)
    assert [system(model, place).splitlines()[-1] for place in range(2)] == ["Be brief.", GERMAN]
    assert model.wishes == [(0.3, 77), (0.9, 5)]


def test_a_conversation_is_told_once_when_they_change(tmp_path: Path) -> None:
    def say(text: str, instructions: str) -> ScriptedBackend:
        model = scripted("So.")
        with Agent(workspace=tmp_path, model=model, session="one", instructions=instructions) as running:
            running.say(text)
        return model

    say("Hello", GERMAN)
    assert last(say("And?", "Answer in verse.")) == (
        "And?\n\nFrom here on you have these instructions:\nAnswer in verse."
    )
    assert last(say("And now?", "Answer in verse.")) == "And now?"
    assert last(say("And now?", "")) == "And now?\n\nThe instructions are lifted."


def test_a_resumed_run_and_a_replay_have_the_same_prompt(tmp_path: Path) -> None:
    first = scripted('(read-file :path "a.txt")')
    files(tmp_path, {"a.txt": "42"})
    with Agent(workspace=tmp_path, model=first, session="one") as running:
        assert running.run("Hello", instructions=GERMAN).status == "failed"  # the script is at its end
    again = scripted("So.")
    with Agent(workspace=tmp_path, model=again, session="one") as running:
        (reply,) = running.resume()
    assert isinstance(reply, Reply)
    assert reply.text == "So."
    assert again.seen[0] == first.seen[1]
    with Agent(workspace=tmp_path, session="one") as running:
        assert running.replay().same


# Temperature and the longest reply


def test_a_model_that_a_run_opened_with_its_own_temperature_is_closed_with_its_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Closable("So.", "So.")
    opened: list[str] = []
    monkeypatch.setattr(models, "choose_backend", lambda spec, *_, **__: opened.append(spec) or model)
    with Agent(workspace=tmp_path, model="openai:gpt-5") as running:
        running.run("Hello", temperature=0.9)
        running.run("Hello")
    assert opened == ["openai:gpt-5"]
    assert model.closed == 1


def test_the_temperature_is_that_of_each_request_also_when_the_run_is_resumed(tmp_path: Path) -> None:
    files(tmp_path, {"a.txt": "42"})
    model = Asked('(read-file :path "a.txt")')
    with Agent(workspace=tmp_path, model=model, session="one", temperature=0.4, reply_tokens=50) as running:
        running.run("Hello", temperature=1.2)
    again = Asked("So.")
    with Agent(workspace=tmp_path, model=again, session="one") as running:
        running.resume()
    assert {warm for warm, _ in (*model.wishes, *again.wishes)} == {1.2}
    assert model.wishes[0][1] == 50


# Time-out and key


def test_a_key_and_a_time_out_are_those_of_the_agent_or_of_one_run(tmp_path: Path) -> None:
    with loopback(answer) as server:
        options = ModelOptions("openai:one", base_url=server.base_url)
        with Agent(workspace=tmp_path, model=options, api_key="sk-agent", timeout=30) as running:
            for key in (None, "sk-run", None):
                assert running.run("Hello", api_key=key).text == "So."
        keys = [headers["authorization"].removeprefix("Bearer ") for _, headers, _ in server.requests]
    assert keys == ["sk-agent", "sk-run", "sk-agent"]
    assert "sk-" not in repr(options) + repr(running)


def test_a_slow_server_is_one_option(tmp_path: Path) -> None:
    def slow(handler: Handler) -> None:
        handler.server.released.wait(60)

    with loopback(slow) as server:
        options = ModelOptions("openai:one", base_url=server.base_url)
        with Agent(workspace=tmp_path, model=options) as running:
            reply = running.run("Hello", timeout=0.1)
    assert f"{GAVE_NO_ANSWER_FOR} 0.1 s" in reply.error


@pytest.mark.parametrize("later", [False, True])
def test_a_key_is_kept_in_no_record(tmp_path: Path, later: bool) -> None:
    key = tmp_path / "key"
    key.write_text("sk-in-a-file\n")
    key.chmod(0o600)
    with loopback(answer) as server:
        options = ModelOptions("openai:one", base_url=server.base_url, api_key=None if later else f"@{key}")
        with Agent(workspace=tmp_path, model=options, session="one") as running:
            running.run("Hello", api_key=f"@{key}" if later else None)
            result = running.call('(read-file :path "key")')
            events = [event.text for event in running._agent.transcript.events("one")]
        assert server.requests[0][1]["authorization"] == "Bearer sk-in-a-file"
    assert not result.ok
    assert not [text for text in events if "sk-in-a-file" in text]


def test_an_interrupt_reaches_a_run_with_options_of_its_own(tmp_path: Path) -> None:
    async def go() -> Reply:
        async with async_agent(tmp_path) as running:

            async def wait(messages: Messages) -> str:
                running.interrupt()
                await asyncio.sleep(60)
                return "So."

            running.models._own = ScriptedBackend(wait)
            return await running.run("Hello", instructions=GERMAN)

    assert asyncio.run(go()).status == "interrupted"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"instructions": 3}, "instructions is a text or None, not int."),
        ({"api_key": b"sk"}, "api_key is a text or None, not bytes."),
        ({"temperature": 3}, f"temperature is {A_NUMBER_FROM_0} to 2 or None, not 3."),
        ({"temperature": True}, f"temperature is {A_NUMBER_FROM_0} to 2 or None, not True."),
        ({"timeout": 0}, f"{TIMEOUT_IS_A_NUMBER_OF} or None, not 0."),
        ({"reply_tokens": 0}, f"reply_tokens must be None or {A_WHOLE_NUMBER_FROM_1}, not 0."),
        ({"api_key": "@none"}, f"The key in none {CANNOT_BE_READ}: No such file or directory."),
    ],
)
def test_what_an_option_cannot_be_is_refused(tmp_path: Path, said: dict[str, Any], message: str) -> None:
    def go() -> None:
        with Agent(workspace=tmp_path, model="ollama:one", **said) as running:
            running.run("Hello")

    assert complaint(UsageError, go) == message
    with Agent(workspace=tmp_path, model="ollama:one") as running:
        assert complaint(UsageError, lambda: running.run("Hello", **said)) == message


def test_a_backend_that_is_given_has_its_own_key_and_time_out(tmp_path: Path) -> None:
    told = "works only with a model spec; set it in your Backend instead."
    assert complaint(UsageError, lambda: ModelOptions(scripted(), timeout=3)) == f"timeout {told}"
    with agent(tmp_path) as running:
        assert complaint(UsageError, lambda: running.run("Hello", api_key="sk")) == f"api_key {told}"


# From the command line


def test_they_are_options_of_a_command_and_a_session_goes_on_with_them(tmp_path: Path) -> None:
    files(tmp_path, {"style.txt": f"{GERMAN}\n"})
    key = tmp_path / "key"
    key.write_text("sk-typed-nowhere")
    key.chmod(0o600)
    with loopback(answer) as server:
        model = ("--model", "openai:one", "--base-url", server.base_url, "--api-key", f"@{key}")
        wishes = ("--instructions", "@style.txt", "--temperature", "0.25", "--timeout", "30")
        said = quoth("run", "Hello", *model, *wishes, "--session", "one", cwd=tmp_path)
        assert said.out == "So.\n"
        quoth("resume", "one", "And?", "--api-key", f"@{key}", cwd=tmp_path)
        asked = [server.asked(place) for place in range(2)]
        assert server.requests[0][1]["authorization"] == "Bearer sk-typed-nowhere"
    assert [one["temperature"] for one in asked] == [0.25, 0.25]
    assert all(one["messages"][0]["content"].endswith(GERMAN) for one in asked)
    assert GERMAN in quoth("log", "one", cwd=tmp_path).out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--temperature", "warm"), f"expected {A_NUMBER_FROM_0} to 2, not warm"),
        (("--timeout", "soon"), f"{A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} soon"),
        (("--instructions", "@none.txt"), f"{THERE_IS_NO_FILE} none.txt."),
        (
            ("--api-key", "sk-typed"),
            "a key on the command line can be seen by others",
        ),
    ],
)
def test_a_mistaken_option_is_explained_and_no_key_is_repeated(
    tmp_path: Path, words: tuple[str, str], message: str
) -> None:
    said = quoth("run", "Hello", "--model", "ollama:one", *words, cwd=tmp_path)
    assert said.code == 2
    assert message in said.err
    assert "sk-typed" not in said.err
