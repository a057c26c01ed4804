"""A terminal that can only print, or whose person wants no colours: no escape, no line that is drawn anew."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from words import CTRL_C, CTRL_D, Terminal, files, quoth

from quoth.agent.terminal import progress
from quoth.agent.terminal.output import print_colored, results_only
from quoth.agent.terminal.progress import weights_progress

DUMB, PLAIN, COLOURS = {"TERM": "dumb"}, {"NO_COLOR": "1"}, {"NO_COLOR": "", "TERM": "xterm"}
PLAN = """* PLAN Look
  #+begin_src hy
  (read-file :path "r.txt")
  #+end_src
"""


def told(words: list[str], folder: Path, env: dict[str, str]) -> bytes:
    with Terminal(*words, cwd=folder, env=env) as terminal:
        assert terminal.ended() == 0, terminal.shown
        return terminal.raw


@pytest.mark.parametrize(
    "words",
    [
        ["run", "Go.", "--model", "scripted:r.txt", "--session", "s"],
        ["fly", "p.org"],
        ["log", "s"],
    ],
    ids=lambda words: words[0],
)
def test_a_plain_terminal_is_told_all_without_an_escape(tmp_path: Path, words: list[str]) -> None:
    files(tmp_path, {"r.txt": '(echo :text "hi")\n---\nDone.', "p.org": PLAN})
    if words[0] == "log":
        assert quoth("run", "Go.", "--model", "scripted:r.txt", "--session", "s", cwd=tmp_path).code == 0
    for place, env in enumerate((DUMB, PLAIN, COLOURS)):
        again = ["--again"] if words[0] == "fly" and place else []
        if words[0] == "run":
            words = [*words[:-1], f"s{place}"]
        raw = told([*words, *again], tmp_path, env)
        assert (b"\x1b" in raw) == (env is COLOURS), raw
        if env is not COLOURS:
            assert b"\r" not in raw.replace(b"\r\n", b"")
        if words[0] == "fly" and env is not COLOURS:
            assert b"p.org:1: DONE" in raw  # a place that M-x compile jumps to


class Screen(io.StringIO):
    def __init__(self, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.parametrize(("out", "told"), [(Screen(True), "in colours\n"), (Screen(False), "plain\n")])
def test_only_a_screen_that_shows_the_results_has_colours(
    monkeypatch: pytest.MonkeyPatch, out: Screen, told: str
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", Screen(True))
    with results_only():
        print_colored(lambda color: ["in colours" if color else "plain"])
    assert out.getvalue() == told


def test_in_a_dumb_terminal_the_repl_reads_plain_lines(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path, env=DUMB) as terminal:
        terminal.prompted()
        terminal.type("(+ 40\n")
        terminal.see("......")
        terminal.type("2)\n")
        terminal.see("42")
        terminal.prompted()
        terminal.type("(+ 1 " + CTRL_C)
        terminal.prompted()
        terminal.type(",tools\n")
        terminal.see("echo")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
        assert b"\x1b" not in terminal.raw


def test_the_repl_of_a_person_who_wants_no_colours_edits_lines_and_has_none(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path, env=PLAIN) as terminal:
        terminal.prompted()
        terminal.enter("(+ 40 2)")
        terminal.see("42")
        terminal.prompted()
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
        assert not [code for code in range(30, 50) if b"\x1b[%dm" % code in terminal.raw]


# The bar of the weights


@pytest.mark.parametrize(
    ("env", "is_terminal"), [(DUMB, True), (PLAIN, True), (COLOURS, False)], ids=["dumb", "plain", "pipe"]
)
def test_the_joining_of_the_weights_is_told_in_one_line(
    env: dict[str, str], is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert joined(env, is_terminal, monkeypatch) == "quoth: Preparing the model (once), 1,117 MB\n"


def test_on_a_terminal_the_bar_is_drawn_once_for_each_hundredth(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = joined(COLOURS, True, monkeypatch).split("\r")[1:]
    assert len(drawn) == 101
    assert drawn[-1] == f"Preparing the model (once)  {'█' * 30} 100%\n"
    assert drawn[50].startswith(f"Preparing the model (once)  {'█' * 15} ")


def test_above_the_tree_of_a_flight_no_bar_is_drawn_but_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[str] = []
    monkeypatch.setattr(progress, "screens", [rows.append])
    assert joined(COLOURS, True, monkeypatch) == ""
    assert rows[50] == f"Preparing the model (once)  {'█' * 15:<30}  50%"
    assert rows[-1] == ""


def test_a_download_says_how_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(True)
    monkeypatch.setattr("sys.stderr", screen)
    for name, value in COLOURS.items():
        monkeypatch.setenv(name, value)
    show = weights_progress()
    for done in (0, 500_000_000, 1_000_000_000):
        show("fetching", done, 1_000_000_000)
    rows = [row.rstrip() for row in screen.getvalue().split("\r")[1:]]
    assert rows == [
        f"Fetching the model  {'':30}   0%, 1,000 MB left",
        f"Fetching the model  {'█' * 15:<30}  50%, 500 MB left",
        f"Fetching the model  {'█' * 30} 100%",
    ]
    assert screen.getvalue().endswith("\n")


def joined(env: dict[str, str], is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> str:
    """What stderr shows of the joining of 1,066 pieces."""
    screen = Screen(is_terminal)
    monkeypatch.setattr("sys.stderr", screen)
    for name, value in {"TERM": "xterm", **env}.items():
        monkeypatch.setenv(name, value)
    show = weights_progress()
    for done in range(1, 1_067):
        show("preparing", done * 1_117_320_768 // 1_066, 1_117_320_768)
    return screen.getvalue()
