"""The REPL on a screen: a session is played key by key, and each screen is what was recorded once.

``RECORD_SCREENS=1 python -m pytest -n 0 tests/agent/repl/test_screen.py`` records them again, in screens/.
Read the difference: it is what a person will see.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from screens import ALT_ENTER, CTRL_A, CTRL_R, LARGE, SMALL, UP, Act, Screen, keys, play
from words import CTRL_C, CTRL_D, files, wait_until

SCREENS = Path(__file__).with_name("screens")
SAYS = """
(import asyncio pathlib [Path])
(defn :async reply [messages]
  (setv last (get (get messages -1) "content"))
  (when (= last "take your time")
    (.touch (Path "thinking"))
    (await (asyncio.sleep 600)))
  (if (= last "write")
      "(write-file :path \\"price.txt\\" :content \\"95\\")"
      f"You wrote {(len (.splitlines last))} lines, the last is: {(get (.splitlines last) -1)}"))
"""
PRICES = "chair 120\ntable 95\nlamp 40\n"
PASTED = "(len [" + "\n".join(f'"line {number} 日本"' for number in range(1000)) + "])"


def shop(folder: Path) -> Path:
    (folder / "shop").mkdir()
    return files(folder / "shop", {"says.hy": SAYS, "notes.txt": PRICES, "no-price.txt": ""})


def person(here: Path, size: tuple[int, int], **env: str) -> Screen:
    said = ("--model", "scripted:says.hy", "--session", "monday", "--user", "ann")
    return Screen(
        *said, cwd=here, size=size, env={"HOME": str(here.parent), "EDITOR": "", "VISUAL": "", **env}
    )


def shown(text: str) -> str:
    """What is another each time: how long it took, and the id of a request."""
    text = re.sub(r"\b\d+(\.\d+)? (ms|s)\b", "0 s", text)
    return re.sub(r"(request |approve |deny )[a-z0-9]{5}\b", r"\1abcde", text)


def interrupted(here: Path) -> Act:
    def act(screen: Screen) -> None:
        screen.enter("take your time")
        wait_until((here / "thinking").exists)
        screen.type(CTRL_C)

    return act


def narrowed(screen: Screen) -> None:
    screen.type("(print " + "wide " * 11 + "window")
    screen.shows("window")
    screen.resize(60, 20)


def story(here: Path, size: tuple[int, int]) -> list[tuple[str, Act]]:
    return [
        ("the prompt", keys()),
        ("a tool is completed", keys("(grep-s\t")),
        ("its arguments are shown", keys(" \t")),
        ("one of them is taken", keys("\t\r")),
        ("a path is completed", keys(' "9" :path "not\t')),
        ("it is run", keys('")\r')),
        ("Enter goes on in an open form, indented", keys("(lfor  x [1 2 3]\r")),
        ("and runs it when it is closed", keys("(* x x))\r")),
        ("the last entry comes back and is edited", keys(UP, UP, CTRL_A, "(len ", ALT_ENTER, CTRL_C)),
        ("Ctrl-R finds it too", keys(CTRL_R, "lfor")),
        ("which Ctrl-C drops", keys(CTRL_C)),
        ("prose over lines, with wide characters", keys("Was kostet 価格表?", ALT_ENTER, "🎉 Danke, и всё.")),
        ("is answered", keys("\r")),
        ("a write is asked", keys("write\r")),
        ("and allowed", keys("y\r")),
        ("Ctrl-C ends a run", interrupted(here)),
        ("a narrower window", narrowed),
        ("and back", lambda screen: screen.resize(*size)),
        ("what was typed is dropped", keys(CTRL_C)),
        ("a thousand lines are pasted", lambda screen: screen.paste(PASTED)),
        ("and are one entry", keys("\r")),
        ("a bracket too many is told", keys("(+ 1 2))\r")),
    ]  # fmt: skip


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=str)
def test_a_session_looks_as_it_was_recorded(tmp_path: Path, size: tuple[int, int]) -> None:
    here = shop(tmp_path)
    with person(here, size) as screen:
        play(screen, story(here, size), SCREENS / f"{size[0]}x{size[1]}.txt", shown)
        screen.type(CTRL_D)
        assert screen.ended() == 0
    assert (here / "price.txt").read_text() == "95"


def test_a_form_is_coloured_and_brackets_find_each_other(tmp_path: Path) -> None:
    with person(shop(tmp_path), SMALL) as screen:
        screen.shows("quoth>")
        screen.type('(print "a ) b" :end 12 ; so')
        screen.shows("; so")
        colours = {word: screen.style(word)[0] for word in ("print", '"a', ":end", "12", "; so")}
        assert colours == {
            "print": "blue",
            '"a': "green",
            ":end": "cyan",
            "12": "magenta",
            "; so": "brightblack",
        }
        screen.type(CTRL_C)
        screen.type("(f [1])")
        screen.wait(
            lambda: "(f [1])" in screen.text and screen.style("(f [1])")[2], "the first bracket marked"
        )
        screen.type("]")
        screen.wait(lambda: "(f [1])]" in screen.text and screen.style("]")[0] == "red", "a wrong one is red")
        screen.type(CTRL_C)
        screen.enter("a (plain sentence) has no colours")
        screen.shows("the last is: a (plain")
        assert screen.style("(plain sentence)")[0] == "default"


def test_no_color_has_no_colours_and_all_else(tmp_path: Path) -> None:
    with person(shop(tmp_path), SMALL, NO_COLOR="1") as screen:
        screen.shows("quoth>")
        screen.type('(grep-search :pattern "9" :path "not\t')
        screen.shows('"notes.txt')
        screen.enter('")')
        screen.shows("table 95")
        screen.enter("(print 1)]")
        screen.shows("invalid: ", "]")
    assert not re.search(rb"\x1b\[[0-9;]*\b(3[0-79]|4[0-79]|9[0-7]|10[0-7]|38|48)(;[0-9;]*)?m", screen.raw)


def test_a_parenthesis_of_a_chat_is_prose(tmp_path: Path) -> None:
    with Screen("chat", "--model", "scripted:says.hy", cwd=shop(tmp_path)) as screen:
        screen.shows("quoth>")
        screen.enter("(by the way")
        screen.shows("the last is: (by the way")
        assert "......" not in screen.text


def test_a_dumb_terminal_only_prints(tmp_path: Path) -> None:
    here = shop(tmp_path)
    with person(here, SMALL, TERM="dumb") as screen:
        screen.shows("quoth>")
        screen.enter("(lfor x [1 2 3]")
        screen.shows("......")
        screen.enter("(* x x))")
        screen.shows("[1 4 9]")
        screen.enter("write")
        screen.shows("Allow it?")
        screen.enter("y")
        screen.shows("You wrote")
        screen.type(CTRL_D)
        assert screen.ended() == 0
    assert b"\x1b" not in screen.raw
    assert (here / "price.txt").read_text() == "95"
