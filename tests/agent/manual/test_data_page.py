"""The page data names every file that quoth leaves in a home, and its commands remove them all."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
from pathlib import Path

import pytest
from commands import started
from mcp_server import command
from pages import SHOP, page
from words import Terminal, quoth

PLACES = [
    place.removeprefix("~/")
    for row in re.findall(r"^\| (=~.*?) +\|", page("data"), re.MULTILINE)
    for place in re.findall(r"=(~/[^=]+)=", row)
]
MADE_ELSEWHERE = {".cache/quoth/", ".local/share/quoth/worktrees/"}  # the processes of the tests share one


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which quoth has done what it does, with the folders that it takes by itself."""
    home, shop = tmp_path / "home", tmp_path / "shop"
    home.mkdir()
    own = ("QUOTH_STATE", "QUOTH_CONFIG", "QUOTH_CACHE", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    env = {"HOME": str(home), **dict.fromkeys(own, "")}
    quoth("new", "example", cwd=tmp_path, env=env)
    rules, till = ("--policy", "day.hy"), ("--model", "scripted:till.replies")
    for words in (
        ("run", "Fix the till", *rules, *till, "--session", "till"),
        ("undo", "till", "--yes"),
        ("eval", (SHOP / "total.hy").read_text()),
        ("run", "Fix the till", "--plan", *rules, *till),
        ("models", "login", "anthropic", "-"),
        ("catalog", "key", "new"),
        ("mcp", "add", "fixture", *command()),
        ("mcp", "trust", "fixture", "--yes"),
        ("call", '(block :operation "append" :label "human" :content "likes pears")', "--yes"),
    ):
        assert quoth(*words, cwd=shop, env=env, stdin="sk-123456789\n").code in (0, 3), words
    (shop / ".quoth" / "policy.hy").write_text((SHOP / "private.hy").read_text())
    assert quoth("trust", "--yes", cwd=shop, env=env).code == 0
    with Terminal(*till, cwd=shop, env=env) as at:
        at.prompted()
        at.enter("(+ 1 2)")
        at.prompted()
    with started("view", "--print", "--port", "0", cwd=shop, env=env) as serving:
        assert serving.stdout.readline(), serving.stderr.read()
        serving.process.send_signal(signal.SIGTERM)
        serving.ended()
    return home


def files(home: Path) -> list[str]:
    return [str(one.relative_to(home)) for one in home.rglob("*") if one.is_file()]


def test_each_file_is_where_the_page_says_and_commands_of_the_page_remove_it(home: Path) -> None:
    left = files(home)
    assert [one for one in left if not one.startswith(tuple(PLACES))] == []
    assert {place for place in PLACES if not any(one.startswith(place) for one in left)} == MADE_ELSEWHERE
    open_to_others = [one for one in left if stat.S_IMODE((home / one).stat().st_mode) & 0o077]
    assert [
        one for one in open_to_others if not one.startswith((".cache", ".local/share/quoth/locks/"))
    ] == []
    (remove,) = re.findall(r"^#\+begin_src sh :name uninstall\n(.*?)^#\+end_src", page("data"), re.M | re.S)
    subprocess.run(["sh", "-ec", remove], env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=True)
    assert files(home) == []
