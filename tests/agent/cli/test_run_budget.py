"""``quoth run`` within a budget: it stops before the request that would pass it, and says what is left."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, loopback, status
from sentences import REQUESTS_TO_MODELS_TODAY, THE_RUN_WAS_STOPPED_BEFORE
from words import files, quoth

CALL = {"id": "c1", "type": "function", "function": {"name": "echo", "arguments": '{"text": "a"}'}}


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that calls a tool again and again, each time for $0.009 at the price of gpt-5-mini."""
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    usage = {"prompt_tokens": 20_000, "completion_tokens": 2_000}
    with loopback(status(200, {"choices": [{"message": message}], "usage": usage})) as server:
        yield server


def mini(server: Server, *words: str, cwd: Path) -> Any:
    where = ("--model", "openai:gpt-5-mini", "--base-url", server.base_url)
    return quoth("run", "Look.", *where, "--session", "s", *words, cwd=cwd)


def test_a_run_stops_before_the_request_that_would_pass_its_cost(tmp_path: Path, server: Server) -> None:
    ended = mini(server, "--max-cost", "0.01", "--json", cwd=tmp_path)
    assert (ended.code, len(server.requests)) == (1, 1)
    told = json.loads(ended.out)
    assert (told["status"], told["spent"]["cost"]) == ("failed", 0.009)
    assert re.fullmatch(
        rf"{THE_RUN_WAS_STOPPED_BEFORE} \$0\.\d+: \$0\.001 of \$0\.01 are left\.",
        told["error"],
    )
    assert told["left"]["cost"] == 0.001
    shown = quoth("log", "s", cwd=tmp_path).out
    assert shown.rstrip().endswith("22,000 tokens, $0.009 spent; $0.001 left")
    again = quoth("resume", "s", "--max-cost", "0.02", cwd=tmp_path)
    assert (again.code, len(server.requests)) == (1, 2)
    assert "44,000 tokens, $0.018 spent; $0.002 left." in again.err


def test_a_cost_that_cannot_be_bounded_is_refused_at_once(tmp_path: Path, server: Server) -> None:
    where = ("--model", "openai:gpt-9", "--base-url", server.base_url)
    said = quoth("run", "Look.", *where, "--max-cost", "1", cwd=tmp_path)
    assert (said.code, said.out, server.requests) == (2, "", [])
    assert said.err == (
        "quoth: The cost of openai:gpt-9 cannot be bounded: its price is not known; bound its tokens instead."
        "\n"
    )


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "1e3", "$5", "five"])
def test_what_is_no_cost_is_a_sentence(tmp_path: Path, wrong: str) -> None:
    said = quoth("run", "Look.", f"--max-cost={wrong}", cwd=tmp_path)
    assert said.code == 2
    assert said.err == (
        "quoth: Argument --max-cost: expected a number of US dollars above 0, such as 0.25, not"
        f" {wrong}. See: quoth run --help\n"
    )


KILLED = "(import os signal)\n(defn reply [messages] (os.kill (os.getpid) signal.SIGKILL))\n"


def test_a_request_that_a_killed_run_had_reserved_stays_spent(tmp_path: Path) -> None:
    settings = Path(os.environ["QUOTH_CONFIG"])
    files(settings, {"config.hy": '(budget :per "day" :requests 2)\n'})
    files(tmp_path, {"killed.hy": KILLED, "r.txt": "Done."})
    assert quoth("run", "x", "--model", "scripted:killed.hy", cwd=tmp_path).code in (-signal.SIGKILL, 137)
    last = quoth("run", "x", "--model", "scripted:r.txt", cwd=tmp_path)
    assert (last.code, last.out) == (0, "Done.\n")
    assert "0 requests left for today." in last.err
    none = quoth("run", "x", "--model", "scripted:r.txt", cwd=tmp_path)
    assert none.code == 1
    assert f"has made 2 of 2 {REQUESTS_TO_MODELS_TODAY}; next " in none.err


def test_the_repl_says_at_each_end_what_is_left(tmp_path: Path) -> None:
    files(Path(os.environ["QUOTH_CONFIG"]), {"config.hy": "(budget :tokens 90000)\n"})
    files(tmp_path, {"r.txt": "Hi."})
    said = quoth("--model", "scripted:r.txt", cwd=tmp_path, stdin="Hello.\n")
    assert said.out == "Hi.\n"
    assert re.search(r"^[\d,]+ tokens spent; 8[\d,]+ tokens left\.$", said.err, re.MULTILINE)
