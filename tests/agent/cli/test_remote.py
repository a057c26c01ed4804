"""Remote tools by commands: shown, called, kept in a session, and what is wrong with their options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from far_tools import FarTools, fruit, set_password
from sentences import (
    A_PASSWORD_ON_THE_COMMAND,
    CANNOT_BE_USED,
    IS_NOT_INSTALLED,
    IT_WRITES_FILES,
    NO_SERVER_ANSWERS_THERE,
    THE_REDIS_AT,
    THERE_IS_NO_TOOL,
)
from servers import redis_server
from words import agent, complaint, files, quoth, tool

from quoth import ToolOptions
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra
from quoth.tools.registry.param_types import WorkspacePath


@pytest.fixture
def far(redis: str) -> FarTools:
    return FarTools(redis, fruit())


@pytest.fixture
def shop(tmp_path: Path, far: FarTools) -> list[str]:
    """The options of a command that has the tools of the shop."""
    files(tmp_path, {"here.hy": HERE, "talk.txt": TALK})
    return ["--remote", far.url.full, "--prefix", far.prefix]


HERE = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool count-fruit "Count the fruit that is here." :body 7)
"""
TALK = "Hello.\n---\nWelcome.\n"


def test_commands_show_remote_tools_beside_those_that_are_here(tmp_path: Path, shop: list[str]) -> None:
    assert "(count-fruit :fruit str)" in quoth("tools", *shop, cwd=tmp_path).out
    assert (
        json.loads(quoth("tools", "count-fruit", "--json", *shop, cwd=tmp_path).out)["name"] == "count-fruit"
    )
    assert "- count-fruit: A tool for a test." in quoth("belt", *shop, cwd=tmp_path).out


def test_commands_name_both_of_two_tools_with_one_name(
    tmp_path: Path, shop: list[str], far: FarTools
) -> None:
    said = quoth("tools", "--tools", "here.hy", *shop, cwd=tmp_path)
    assert (said.code, said.err) == (
        2,
        f"quoth: Both this agent and the catalog {far.prefix} have a tool count-fruit:"
        " --local count-fruit keeps the local one.\n",
    )
    said = quoth("call", "(count-fruit)", "--tools", "here.hy", "--local", "count-fruit", *shop, cwd=tmp_path)
    assert said.out == "7\n"


def test_a_session_with_remote_tools_is_opened_with_them_again(tmp_path: Path, shop: list[str]) -> None:
    words = ("--model", "scripted:talk.txt", "--session", "s1")
    assert quoth("run", "Hello.", *words, *shop, cwd=tmp_path).out == "Hello.\n"
    assert quoth("log", "s1", cwd=tmp_path).out.splitlines()[0].endswith(f", remote {shop[1]}")
    again = quoth("resume", "s1", "And now?", cwd=tmp_path)
    assert (again.code, again.out) == (0, "Welcome.\n")
    replayed = quoth("replay", "s1", cwd=tmp_path)
    assert "not here" not in replayed.err
    assert replayed.code == 0


def test_the_password_of_the_server_comes_from_the_environment_again(tmp_path: Path, state: Path) -> None:
    with redis_server() as url:
        far = FarTools(url, fruit())
        set_password(far.url, "hush-1234")
        full = url.replace("unix://", "unix://kiosk:hush-1234@")
        files(tmp_path, {"talk.txt": TALK})
        words = ("--remote", url, "--prefix", far.prefix)
        first = ("run", "Hello.", "--model", "scripted:talk.txt", "--session", "s1", *words)
        said = quoth(*first, cwd=tmp_path)
        assert said.err == (
            f"quoth: The Redis at {url} cannot be used: it needs a user or password, but the URL has none.\n"
        )
        assert quoth(*first, cwd=tmp_path, env={"QUOTH_REDIS": full}).out == "Hello.\n"
        assert quoth("resume", "s1", "And?", cwd=tmp_path, env={"QUOTH_REDIS": full}).out == "Welcome.\n"
        kept = quoth("export", "s1", cwd=tmp_path).out
    assert "hush" not in kept
    assert "kiosk" not in kept


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--local", "eval"], "--local keeps a tool here that is remote too; it goes with --remote URL."),
        (["--remote", ""], "The URL of the catalog is empty; write redis://HOST:PORT."),
        (
            ["--remote", "redis://ann:hush@127.0.0.1"],
            f"{A_PASSWORD_ON_THE_COMMAND}; set QUOTH_REDIS to the"
            " whole URL, or write @FILE, a file with the URL that only you may read.",
        ),
        (
            ["--remote", "redis://127.0.0.1:1"],
            f"{THE_REDIS_AT} redis://127.0.0.1:1 {CANNOT_BE_USED}: {NO_SERVER_ANSWERS_THERE}.",
        ),
        (
            ["--remote", "redis://127.0.0.1:1", "--key", "none"],
            "There is no key at none. Create one (quoth catalog key new), or copy it from the machine that"
            " has it.",
        ),
    ],
)
def test_what_is_wrong_with_the_options_of_remote_tools_is_a_sentence(
    tmp_path: Path, far: FarTools, words: list[str], why: str
) -> None:
    for command in (["tools"], ["call", "(eval 1)"]):
        assert quoth(*command, *words, cwd=tmp_path).err == f"quoth: {why}\n"


def test_what_is_to_be_kept_here_is_named_with_the_nearest(tmp_path: Path, shop: list[str]) -> None:
    said = quoth("tools", "--local", "red-file", *shop, cwd=tmp_path)
    assert (said.code, said.err) == (
        2,
        f"quoth: {THERE_IS_NO_TOOL} red-file here to keep. Did you mean read-file?\n",
    )


def test_without_the_extra_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.catalog.connection.find_spec", lambda name: None)
    assert complaint(UsageError, lambda: agent(tmp_path, tools=ToolOptions(remote="redis://127.0.0.1"))) == (
        f"Redis needs redis, which {IS_NOT_INSTALLED}: {install_extra('redis')}."
    )


def test_local_names_what_is_remote_too() -> None:
    assert complaint(UsageError, lambda: ToolOptions(local=["read-file"])) == (
        "local needs remote: it keeps a local tool that is remote too."
    )


def test_who_approves_a_remote_call_reads_that_a_worker_makes_it_with_its_own_files(
    tmp_path: Path, shop: list[str], far: FarTools
) -> None:
    path = {"path": {"type": WorkspacePath, "doc": "Which"}}
    far.publish(tool("weed", lambda path: path, params=path, effects=["writes"]))
    (tmp_path / "bed").symlink_to("/etc")  # a link here says nothing of the files there
    asked = quoth("call", '(weed :path "bed/./b.txt")', "--session", "s1", *shop, cwd=tmp_path)
    assert asked.code == 3
    one = quoth("pending", cwd=tmp_path).out
    assert one.splitlines()[0].endswith('  (weed :path "bed/b.txt")')
    assert f"{IT_WRITES_FILES}; a worker of {far.prefix} runs this call; :path was" in one
    assert one.splitlines()[1].endswith("; touches bed/b.txt")
    plan = quoth("eval", '(weed "a.txt")', "--dry-run", *shop, cwd=tmp_path).out
    assert f"; ask: {IT_WRITES_FILES}; a worker of {far.prefix} runs this call; :writes" in plan
    page = quoth("tools", "weed", *shop, cwd=tmp_path).out
    assert f"run by       a worker of {far.prefix}\n" in page
