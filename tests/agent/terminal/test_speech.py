"""What a model says is printed as it is said: on a terminal by blocks, each once; in a pipe at the end."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import pytest
from words import async_agent

from quoth.agent.events import AgentEvent, SubAgent
from quoth.agent.terminal.output import complain
from quoth.agent.terminal.progress import Progress, weights_progress
from quoth.agent.terminal.speech import Speech

LOOK = 'I look.\n\nAt **this**:\n\n(echo :text "a")'


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Tty:
    """Stdout as a terminal without colours; stderr goes there, too."""
    screen = Tty()
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("quoth.agent.terminal.output._results", screen)
    return screen


async def told(speech: Speech, folder: Path, *replies: str) -> None:
    async with async_agent(folder, *replies, on_event=speech) as agent:
        reply = await agent.run("Do it.")
    speech.finish(reply.text)


async def test_on_a_terminal_words_stand_between_the_calls_and_none_comes_twice(
    screen: Tty, tmp_path: Path
) -> None:
    await told(Speech(screen), tmp_path, LOOK, "It said *a*.\n\nDone.")
    lines = [line for line in screen.getvalue().splitlines() if not line.startswith("←")]
    assert lines == ["  I look.", "", "  At this:", '→ (echo :text "a")', "  It said a.", "", "  Done."]


async def test_on_a_dumb_terminal_they_stand_as_they_were_said(
    screen: Tty, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    await told(Speech(io.StringIO()), tmp_path, "It is *a*.\n\n- b")
    assert screen.getvalue() == "It is *a*.\n\n- b\n"


async def test_in_a_pipe_the_reply_comes_once_and_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "word " * 60 + "\n\n**end**"
    await told(Speech(io.StringIO()), tmp_path, LOOK, long)
    assert capsys.readouterr().out == long + "\n"


async def test_where_stdout_is_for_a_program_no_word_goes_there(screen: Tty) -> None:
    speech = Speech(io.StringIO(), aloud=False)
    speech(AgentEvent("said", "Words."))
    assert screen.getvalue() == ""


def test_what_a_sub_agent_says_is_told_by_who_called_it(screen: Tty) -> None:
    speech = Speech(io.StringIO())
    speech(AgentEvent("said", "Deep.", (SubAgent("c", "Help."),)))
    assert screen.getvalue() == ""


def test_a_reply_that_is_no_words_of_the_model_is_printed(screen: Tty) -> None:
    speech = Speech(io.StringIO())
    speech(AgentEvent("turn", 1))
    speech(AgentEvent("said", "I send it."))
    speech.finish("Sent: 42")
    assert screen.getvalue() == "  I send it.\n\n  Sent: 42\n"


# How long it thinks


def last_line(shown: io.StringIO) -> str:
    return shown.getvalue().rpartition("\x1b[0K")[2].removeprefix("\x1b[2m").removesuffix("\x1b[0m")


def test_the_last_line_tells_seconds_and_tokens_while_the_model_thinks() -> None:
    shown, seconds = io.StringIO(), itertools.chain([0.0, 0.4, 3.2], itertools.repeat(7.9))
    show = Progress(shown, color=True, clock=lambda: next(seconds))
    show(AgentEvent("turn", 1))
    assert last_line(shown) == "… reading"
    show(AgentEvent("text", "It is"))
    assert last_line(shown) == "… 3 s, ~1 tokens  It is"
    show(AgentEvent("text", " " + "word " * 40))
    assert last_line(shown).startswith("… 7 s, ~41 tokens  ")
    assert len(last_line(shown)) <= 79
    show(AgentEvent("call", "x"))
    assert shown.getvalue().endswith("\x1b[0K")


def test_what_an_embedded_model_does_before_its_first_word_is_in_the_last_line() -> None:
    shown, seconds = io.StringIO(), itertools.count(0.0, 2.0)
    show = Progress(shown, color=True, clock=lambda: next(seconds))
    show(AgentEvent("turn", 1))
    tell = weights_progress()
    tell("loading", 0, 1)
    assert last_line(shown) == "… 4 s  Loading the model"
    tell("loading", 1, 1)
    assert last_line(shown) == "… 6 s  reading"
    tell("reading", 45, 100)
    assert last_line(shown) == f"… 8 s  reading  {'█' * 13:<30}  45%"
    show(AgentEvent("text", "It"))
    assert last_line(shown) == "… 10 s, ~1 tokens  It"
    show(AgentEvent("call", "x"))
    before = shown.getvalue()
    tell("reading", 60, 100)
    assert shown.getvalue() == before


def test_a_message_is_below_an_unfinished_bar(monkeypatch: pytest.MonkeyPatch, screen: Tty) -> None:
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.delenv("NO_COLOR")
    tell = weights_progress()
    tell("preparing", 40, 100)
    complain("Interrupted.")
    tell("preparing", 100, 100)
    complain("It is done.")
    shown = [line.strip(" \r█") for line in screen.getvalue().split("\n")]
    half, whole = "Preparing the model (once)  ████████████                    40%", shown[2]
    assert shown == [half, "quoth: Interrupted.", whole, "quoth: It is done.", ""]
    assert whole.endswith("100%")


def test_nothing_is_drawn_over_a_question() -> None:
    shown = io.StringIO()
    show = Progress(shown, color=True)
    show(AgentEvent("turn", 1))
    show(AgentEvent("question", None))
    before = shown.getvalue()
    show(AgentEvent("text", "Another one speaks.", (SubAgent("c", "Help."),)))
    assert shown.getvalue() == before


THOUGHTS = [f"<think>Perhaps\nit is a.</think>{LOOK}", "<think>So it is.</think>It said *a*."]


async def test_thoughts_are_shown_on_request_before_what_they_led_to(screen: Tty, tmp_path: Path) -> None:
    await told(Speech(screen, thoughts=True), tmp_path, *THOUGHTS)
    assert [line for line in screen.getvalue().splitlines() if line and not line.startswith("←")] == [
        "∴ Perhaps",
        "    it is a.",
        "  I look.",
        "  At this:",
        '→ (echo :text "a")',
        "∴ So it is.",
        "  It said a.",
    ]


async def test_thoughts_are_dimmed_and_not_shown_unasked(screen: Tty, tmp_path: Path) -> None:
    out = io.StringIO()
    await told(Speech(out, color=True, thoughts=True), tmp_path, *THOUGHTS)
    assert "\x1b[2mPerhaps" in out.getvalue()
    assert "So it is." not in screen.getvalue()
    quiet = io.StringIO()
    await told(Speech(quiet, color=True), tmp_path, *THOUGHTS)
    assert "∴" not in quiet.getvalue()
