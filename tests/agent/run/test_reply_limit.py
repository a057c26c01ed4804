"""How long a reply may be, and what is told of one that was cut off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from loopback import loopback, status
from sentences import A_WHOLE_NUMBER_FROM_1, A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT
from words import complaint, files, quoth, story

from quoth import Agent, ModelOptions
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.observation import cut_off
from quoth.neuro.backends.base import Completion, Usage
from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.errors import UsageError


class Asked(ScriptedBackend):
    """Remembers how many tokens each reply might have."""

    def __init__(self, *replies: Any, name: str = "scripted") -> None:
        super().__init__(replies, name)
        self.limits: list[int] = []

    async def complete(self, messages: Messages, **options: Any) -> Completion:
        self.limits.append(options["max_tokens"])
        return await super().complete(messages, **options)


def asked(workspace: Path, model: Asked, limits: RunLimits | None, **options: Any) -> None:
    with Agent(
        workspace=workspace, model=ModelOptions(model, dialect="call-form"), limits=limits, **options
    ) as agent:
        assert agent.run("Do it.").status == "done"


@pytest.mark.parametrize(
    ("name", "limits", "tokens"),
    [
        ("openai:gpt-5-mini", RunLimits(), 16_384),
        ("openai:qwen3", RunLimits(), 8_192),
        ("ollama:qwen3", RunLimits(), 1_024),
        ("local", RunLimits(context=16_384), 2_048),
        ("local-small", RunLimits(context=4_096), 1_024),
        ("local:/a.gguf", RunLimits(), 2_048),
        ("localhost", RunLimits(), 8_192),
        ("ollama:qwen3", RunLimits(reply_tokens=5_000), 5_000),  # its window is a guess
        ("openai:gpt-5-mini", RunLimits(reply_tokens=7), 7),
    ],
)
def test_the_limit_is_what_is_said_or_by_what_the_model_can_read(
    tmp_path: Path, name: str, limits: RunLimits, tokens: int
) -> None:
    model = Asked("Done.", name=name)
    asked(tmp_path, model, limits)
    assert model.limits == [tokens]


def test_no_more_is_asked_for_than_there_is_room_for(tmp_path: Path) -> None:
    model = Asked("(echo)", "Done.")
    asked(tmp_path, model, RunLimits(reply_tokens=90_000, context=10_000))
    first, second = model.limits
    assert 5_000 < second < first < 10_000


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "7", True])
def test_what_is_no_number_of_tokens_is_a_sentence(tmp_path: Path, wrong: Any) -> None:
    said = complaint(UsageError, lambda: Agent(workspace=tmp_path, limits=RunLimits(reply_tokens=wrong)))
    assert said == f"reply_tokens of RunLimits must be {A_WHOLE_NUMBER_FROM_1}, not {wrong!r}."


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["run", "x", "--max-reply-tokens", "0"],
            f"{A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} 0. See: quoth run --help",
        ),
        (["--max-reply-tokens", "many"], f"{A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} many. See: quoth --help"),
        (
            ["fly", "p.org", "--max-reply-tokens", "1.5"],
            f"{A_WHOLE_NUMBER_FROM_1_IS_NEEDED_NOT} 1.5. See: quoth fly --help",
        ),
    ],
)
def test_a_wrong_option_is_a_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    told = quoth(*words, cwd=tmp_path)
    assert (told.code, told.err) == (2, f"quoth: Argument --max-reply-tokens: {sentence}\n")


def test_the_option_is_asked_of_the_server_and_taken_over_when_a_session_is_resumed(tmp_path: Path) -> None:
    reply = {"choices": [{"message": {"content": "Done."}, "finish_reason": "stop"}]}
    with loopback(status(200, reply)) as server:
        model = ["--model", "openai:m", "--base-url", server.base_url, "--dialect", "call-form"]
        for words in (
            ["--max-reply-tokens", "77", "run", "Do it.", "--session", "s", *model],
            ["resume", "s", "And that."],
            ["resume", "s", "And this.", "--max-reply-tokens", "88"],
        ):
            assert quoth(*words, cwd=tmp_path).code == 0
        assert [server.asked(place)["max_tokens"] for place in range(3)] == [77, 77, 88]


# What is told of a reply that was cut off


@pytest.mark.parametrize(
    ("limit", "used", "told"),
    [
        (600, 600, "cut off by the limit of 600 tokens"),
        (600, 4_696, "cut off by the limit of 600 tokens"),  # it has thought, too
        (600, 590, "cut off by the limit of 600 tokens"),  # not everybody counts its end
        (600, 0, "cut off by the limit of 600 tokens"),  # nobody has told
        (16_384, 4_096, "cut off after 4,096 tokens, the most its model could give"),
    ],
)
def test_a_limit_is_blamed_only_when_it_was_reached(limit: int, used: int, told: str) -> None:
    assert cut_off(limit, used) == told


def cut(text: str = "", *calls: NativeCall) -> Completion:
    return Completion(text, Usage(output_tokens=600), "length", calls)


def test_model_and_person_are_told_by_which_limit_an_answer_was_cut_off(tmp_path: Path) -> None:
    told = story(tmp_path, cut("Long"), cut("Longer"), cut("Longest"), limits=RunLimits(reply_tokens=600))
    assert "Your reply was cut off by the limit of 600 tokens. Be brief." in told.shown(2)
    assert told.reply.error == (
        "The run was stopped: 3 replies in a row could not be used. The last fault: Your reply was cut off "
        "by the limit of 600 tokens. Be brief. --max-reply-tokens N allows longer ones."
    )


def test_the_calls_before_the_cut_are_done_and_the_rest_is_said_to_be_lost(tmp_path: Path) -> None:
    notes: list[str] = []
    told = story(
        tmp_path,
        cut('(echo :text "a")\n(echo :text "b'),
        "Done.",
        limits=RunLimits(reply_tokens=600),
        on_event=lambda event: notes.append(event.data) if event.kind == "note" else None,
    )
    assert [str(call.form) for call in told.reply.calls] == ['(echo :text "a")']
    assert "Your reply was cut off by the limit of 600 tokens. The text behind" in told.shown(2)
    assert notes == [
        "The reply was cut off by the limit of 600 tokens. --max-reply-tokens N allows longer ones."
    ]


def test_a_native_call_that_was_cut_off_is_answered_with_the_limit(tmp_path: Path) -> None:
    broken = NativeCall(id="1", name="echo", arguments='{"text": "a')
    told = story(
        tmp_path,
        cut("", broken),
        "Done.",
        limits=RunLimits(reply_tokens=600),
        dialect="native",
    )
    assert "cut off by the limit of 600 tokens" in told.shown(2)
    assert told.reply.status == "done"


def test_a_person_at_the_command_line_is_told(tmp_path: Path) -> None:
    reply = {"choices": [{"message": {"content": "Much"}, "finish_reason": "length"}]}
    with loopback(status(200, reply)) as server:
        files(tmp_path, {"a": "b"})
        told = quoth(
            *("run", "Tell me all.", "--model", "openai:m", "--base-url", server.base_url),
            *("--max-reply-tokens", "50"),
            cwd=tmp_path,
        )
    assert told.code == 1
    assert told.err.count("cut off by the limit of 50 tokens") >= 3
