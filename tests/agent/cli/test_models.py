"""``quoth models``: what there is, what is missing, and the keys of providers."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Server, loopback, silence, status
from sentences import (
    DID_YOU_MEAN_OPENAI,
    IS_STORED_IN,
    OR_NAME_A_SERVER_WITH,
    REFUSED_THE_KEY,
    THERE_IS_NO_MODEL,
    THERE_IS_NO_PROVIDER,
)
from words import Said, Terminal, files, quoth, started, wait_until

from quoth.agent.terminal.model_list import list_models
from quoth.neuro.backends.base import FAILURES, ModelError, breaker_of
from quoth.neuro.backends.providers import NO_DEFAULTS, ROWS
from quoth.tools.storage.paths import keys_path

SECRET = "sk-very-secret-1234"
MODELS = {"data": [{"id": "qwen3:8b"}, {"id": "gpt-oss\x1b[31m"}]}


@pytest.fixture
def server() -> Iterator[Server]:
    with loopback(status(200, MODELS)) as one:
        yield one


@pytest.fixture
def mine(state: Path) -> Any:
    """Writes the user's own settings."""
    return lambda text: files(state / "config", {"config.hy": text})


def rows(here: Path, *words: str, env: dict[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """What ``quoth models --json`` says, by provider."""
    said = quoth("models", "--json", *words, cwd=here, env=env)
    assert said.code == 0, said.err
    return {row["name"]: row for row in json.loads(said.out)}


def test_each_provider_says_what_it_has_and_what_it_lacks(tmp_path: Path) -> None:
    found = rows(tmp_path, env={"GROQ_API_KEY": SECRET})
    assert [*found] == [row.name for row in ROWS]
    groq, anthropic = found["groq"], found["anthropic"]
    assert (groq["state"], groq["key_from"], groq["default"]) == ("ready", "GROQ_API_KEY", True)
    assert groq["answers"] is None, "nobody on the net is asked unless --check says so"
    assert (anthropic["state"], anthropic["detail"]) == (
        "missing",
        "set ANTHROPIC_API_KEY, or type: quoth models login anthropic",
    )
    assert found["scripted"]["state"] == "ready"
    assert SECRET not in str(found)


def test_a_server_on_this_machine_is_asked_what_it_has(tmp_path: Path, server: Server, mine: Any) -> None:
    mine(f'(model "mine:qwen3:8b")\n(provider "mine" :like "ollama" :url "{server.base_url}")')
    out = quoth("models", cwd=tmp_path).out
    assert f"mine:NAME              ready    {server.base_url} has qwen3:8b, gpt-oss\\x1b[31m\n" in out
    assert out.endswith("\nWithout --model: mine:qwen3:8b, from config.hy.\n")
    told = quoth("models", cwd=tmp_path, env={"QUOTH_MODEL": "claude-haiku-5-5"}).out
    assert (
        "\nQUOTH_MODEL: There is no model claude-haiku-5-5. Did you mean anthropic:claude-haiku-5-5?" in told
    )
    assert {path for path, _, _ in server.requests} == {"/v1/models"}
    server.shutdown()
    server.server_close()
    gone = rows(tmp_path)["mine"]
    assert (gone["state"], gone["answers"]) == ("down", False)
    assert gone["detail"] == (
        f"no server answers at {server.base_url}; start it, or give its address with --base-url"
    )


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (status(401, {}), f"{REFUSED_THE_KEY} (401); check MINE_KEY."),
        (status(500, {}), "failed (500)."),
        (status(200, b"<html>"), "text that is not JSON"),
        (status(200, {}), "answers but lists no models"),
    ],
)
def test_what_a_server_answers_is_told(tmp_path: Path, mine: Any, answer: Any, sentence: str) -> None:
    with loopback(answer) as server:
        mine(f'(provider "mine" :like "openai" :url "{server.base_url}" :key "MINE_KEY")')
        said = quoth("models", cwd=tmp_path, env={"MINE_KEY": SECRET})
    assert sentence in said.out
    assert SECRET not in said.out + said.err


def test_a_wrong_setting_is_told_and_nothing_is_listed(tmp_path: Path, mine: Any) -> None:
    mine('(modle "x")')
    said = quoth("models", cwd=tmp_path)
    assert (said.code, said.out) == (2, "")
    assert "config.hy:1:2: There is no setting modle. Did you mean model?" in said.err


# Keys


def test_without_a_key_a_run_says_how_to_give_one(tmp_path: Path) -> None:
    assert quoth("run", "hi", "--model", "anthropic:x", cwd=tmp_path) == Said(
        2,
        "",
        "quoth: anthropic:x needs a key: set ANTHROPIC_API_KEY, type quoth models login anthropic, "
        f"{OR_NAME_A_SERVER_WITH}.\n",
    )


def test_a_key_is_typed_and_not_shown(tmp_path: Path) -> None:
    with Terminal("models", "login", "anthropic", cwd=tmp_path) as terminal:
        terminal.see("Key of anthropic (not shown as you type): ")
        terminal.type(f"{SECRET}\n")
        terminal.see(f"The key of anthropic {IS_STORED_IN} {keys_path()}.")
        assert terminal.ended() == 0
        assert SECRET.encode() not in terminal.raw
    assert keys_path().read_text() == f"ANTHROPIC_API_KEY={SECRET}\n"
    assert rows(tmp_path)["anthropic"]["key_from"] == f"ANTHROPIC_API_KEY in {keys_path()}"
    said = quoth("models", "logout", "anthropic", cwd=tmp_path)
    assert said == Said(0, f"The key of anthropic was removed from {keys_path()}.\n", "")
    assert quoth("models", "logout", "anthropic", cwd=tmp_path).out == "No key of anthropic is stored.\n"


def test_a_key_may_come_by_a_pipe(tmp_path: Path) -> None:
    env = {"OPENAI_API_KEY": "sk-other"}
    said = quoth("models", "login", "openai", "-", "--json", cwd=tmp_path, stdin=f"{SECRET}\n", env=env)
    stored = {"status": "stored", "provider": "openai", "where": str(keys_path())}
    assert (said.code, json.loads(said.out)) == (0, stored)
    assert said.err == "quoth: The environment variable OPENAI_API_KEY is set; quoth uses it instead.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["list"], "Unknown action of quoth models: list. The actions are get, test, login and logout."),
        (["logn", "openai"], "Unknown action of quoth models: logn. Did you mean login?"),
        (["get"], "Give the model to fetch: local, local-small, qwen3-0.6b, qwen3-1.7b or lfm2.5-1.2b."),
        (["get", "locla"], "There is no local model named locla. Did you mean local?"),
        (["login"], "Give a provider: openai, openai-responses, anthropic,"),
        (["login", "opnai"], f"{THERE_IS_NO_PROVIDER} opnai. {DID_YOU_MEAN_OPENAI}?"),
        (["login", "local"], "local needs no key."),
        (["login", SECRET * 2], "This is not a provider. The providers with keys are openai,"),
        (
            ["login", "openai", SECRET],
            "Do not type a key as an argument: other processes can read it. Leave it out;",
        ),
        (["login", "openai"], "There is no terminal to type the key at. To pipe it in: quoth models login"),
        (["login", "openai", "-"], "The key is empty; nothing was stored."),
    ],
)
def test_what_cannot_be_done_is_a_sentence(tmp_path: Path, words: list[str], sentence: str) -> None:
    said = quoth("models", *words, cwd=tmp_path)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"quoth: {sentence}")
    assert SECRET not in said.err
    assert not keys_path().exists()


def test_a_tool_cannot_change_keys(tmp_path: Path) -> None:
    from quoth.tools.shell.view import INSIDE

    said = quoth("models", "login", "openai", "-", cwd=tmp_path, stdin=SECRET, env={INSIDE: "1"})
    assert (said.code, keys_path().exists()) == (2, False)


def test_the_repl_lists_models_too(tmp_path: Path) -> None:
    said = quoth("--model", "scripted:r.txt", cwd=tmp_path, stdin=",models\n")
    assert "anthropic:NAME         missing  set ANTHROPIC_API_KEY" in said.out


async def test_servers_that_are_left_alone_are_told() -> None:
    breaker = breaker_of("http://127.0.0.1:9")
    breaker.clock = lambda: 0.0
    for _ in range(FAILURES):
        with pytest.raises(ModelError), breaker.asking():
            raise ModelError("Cannot reach it.", "down")
    found = await list_models(NO_DEFAULTS)
    assert [re.sub(r"in \d+ s", "in 30 s", trouble) for trouble in found.troubles] == [
        "http://127.0.0.1:9 failed too often; quoth tries it again in 30 s. Cannot reach it."
    ]


def test_the_list_loads_no_model_and_leaves_no_store(tmp_path: Path, state: Path) -> None:
    rows(tmp_path)
    assert [*tmp_path.iterdir()] == []
    assert not (state / "workspaces").exists()
    assert os.environ.get("PYTHON_KEYRING_BACKEND")


MEANT = {
    "gpt-4o": "openai:gpt-4o",
    "o3-mini": "openai:o3-mini",
    "claude-opus": "anthropic:claude-opus",
    "deepseek-chat": "deepseek:deepseek-chat",
    "codestral-latest": "mistral:codestral-latest",
    "qwen3": "ollama:qwen3",
    "opnai:gpt-4o": "openai:gpt-4o",
    "lcoal": "local",
}


@pytest.mark.parametrize(("said", "meant"), MEANT.items())
def test_a_model_without_its_provider_is_told_which(said: str, meant: str, tmp_path: Path) -> None:
    told = quoth("run", "Hi.", "--model", said, cwd=tmp_path).err
    assert told == f"quoth: {THERE_IS_NO_MODEL} {said}. Did you mean {meant}? To list all: quoth models\n"


def test_a_model_at_an_address_is_one_of_a_server(tmp_path: Path) -> None:
    told = quoth("run", "Hi.", "--model", "slow", "--base-url", "http://127.0.0.1:9/v1", cwd=tmp_path).err
    assert told == f"quoth: {THERE_IS_NO_MODEL} slow. {DID_YOU_MEAN_OPENAI}:slow?\n"


def test_ctrl_c_stops_the_fetching_and_leaves_nothing_running(tmp_path: Path) -> None:
    with loopback(silence) as index:  # pip waits for its answer
        env = {
            "QUOTH_CACHE": str(tmp_path / "cache"),
            "PIP_CONFIG_FILE": "/dev/null",
            "PIP_INDEX_URL": f"{index.base_url}/simple",
        }
        with started("models", "get", "local", cwd=tmp_path, env=env) as running:
            wait_until(lambda: index.requests)
            running.interrupt()
            assert (said := running.ended()).code == 130
            assert re.fullmatch(
                "quoth: Fetching the model, 1,117 MB\nquoth: Interrupted.\n"
                "quoth: To continue: (\\S+/)?quoth models get local\n",
                said.err,
            )
    assert [one.name for one in (tmp_path / "cache" / "models").iterdir() if one.is_dir()] == []
    assert not [one for one in commands_running() if str(tmp_path) in one]


def commands_running() -> list[str]:
    """The command lines of all processes."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(place.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found
