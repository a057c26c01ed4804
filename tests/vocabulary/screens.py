"""A terminal with a screen: what a person sees there, line by line, with its colours and its cursor.

pyte draws the screen, as a terminal would: it also answers what is asked of a terminal. A screen is compared
once it has come to look as expected, so that no test waits for a time. Knows no test.
"""

from __future__ import annotations

import os
import re
import select
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import takewhile
from pathlib import Path
from textwrap import dedent

import pyte
from commands import Terminal

SMALL, LARGE = (80, 24), (200, 50)
TAB, ESCAPE, UP, DOWN, LEFT, RIGHT = "\t", "\x1b", "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C"
ALT_ENTER = ESCAPE + "\r"
BACKSPACE, CTRL_R, CTRL_L, CTRL_A, CTRL_E = "\x7f", "\x12", "\x0c", "\x01", "\x05"


class _Paper(pyte.Screen):
    """A screen that loses the lines below the cursor first, which stays at its text, as in a window."""

    def resize(self, lines: int | None = None, columns: int | None = None) -> None:
        at, gone = self.cursor.y, self.lines - (lines or self.lines)
        above = max(0, at + 1 - (lines or self.lines))
        if gone > above:
            self.cursor.y = 0
            self.insert_lines(gone - above)  # pyte takes them all from the top
        super().resize(lines, columns)
        self.cursor.y = at - above


class Screen(Terminal):
    """``quoth`` on a screen of ``size``, in columns and lines. Ended with the block."""

    def __init__(
        self, *words: str, cwd: Path, env: dict[str, str] | None = None, size: tuple[int, int] = SMALL
    ) -> None:
        self._screen = _Paper(*size)
        self._screen.write_process_input = self.type  # where is your cursor?
        self._stream = pyte.ByteStream(self._screen)
        told = {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "", **(env or {})}
        super().__init__(*words, cwd=cwd, env=told, size=size)

    def _draw(self, data: bytes) -> None:
        self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """Its lines without the blanks at their ends, and without the empty ones at the bottom."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().splitlines()

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    @property
    def cursor(self) -> tuple[int, int]:
        """Its column and its line, from 0."""
        return self._screen.cursor.x, self._screen.cursor.y

    def shows(self, *texts: str, seconds: float = 60) -> None:
        """Wait until all of these are on the screen at once."""
        self.wait(lambda: all(text in self.text for text in texts), " and ".join(map(repr, texts)), seconds)

    def hides(self, *texts: str, seconds: float = 60) -> None:
        """Wait until none of these is on the screen."""
        absent = " nor ".join(map(repr, texts))
        self.wait(lambda: not any(text in self.text for text in texts), f"neither {absent}", seconds)

    def looks(self, expected: str, seconds: float = 60) -> None:
        """Wait until the whole screen is this, but for its indentation here and empty lines around it."""
        wanted = dedent(expected).strip("\n").rstrip()
        self.wait(lambda: self.text.strip("\n") == wanted, wanted, seconds)

    def ends(self, expected: str, seconds: float = 60) -> None:
        """Wait until these are the last lines of the screen."""
        wanted = dedent(expected).strip("\n").rstrip()
        self.wait(lambda: ("\n" + self.text).endswith("\n" + wanted), wanted, seconds)

    def wait(self, true: Callable[[], bool], wanted: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            left = deadline - time.monotonic()
            alive = left > 0 and self._read(left)
            assert alive, f"The screen never came to look as wanted.\n{wanted}\n--- it is:\n{self.text}"

    def quiet(self, seconds: float = 0.7) -> None:
        """Wait until nothing has come for so long; to record a screen, not to test one."""
        while select.select([self._ours], [], [], seconds)[0] and self._read(0):
            pass

    def style(self, text: str) -> tuple[str, str, bool]:
        """The colour of ``text`` where it stands last, its background, and whether it is bold or reversed."""
        for y in reversed(range(self._screen.lines)):
            row = self._screen.buffer[y]
            cells = [row[x] for x in range(self._screen.columns) if row[x].data]  # a wide one is two
            at = "".join(cell.data[0] for cell in cells).rfind(text)
            if at >= 0:
                return cells[at].fg, cells[at].bg, cells[at].bold or cells[at].reverse
        raise AssertionError(f"{text!r} is not on the screen:\n{self.text}")

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size."""
        self._screen.resize(lines, columns)
        self._measure((columns, lines))

    def paste(self, text: str) -> None:
        """Paste it as a terminal does that marks a paste; line ends arrive as Enter."""
        data = f"\x1b[200~{text.replace(chr(10), chr(13))}\x1b[201~".encode()
        os.set_blocking(self._ours, False)  # it reads, and draws, while more is pasted
        while data:
            try:
                data = data[os.write(self._ours, data) :]
            except BlockingIOError:
                self._read(0.05)
        os.set_blocking(self._ours, True)


# What was recorded

Act = Callable[[Screen], object]


def keys(*typed: str) -> Act:
    return lambda screen: [screen.type(key) for key in typed]


def play(
    screen: Screen, story: Iterable[tuple[str, Act]], recorded: Path, shown: Callable[[str], str]
) -> None:
    """Play a story, a step after the other; each has come to its end when the screen and the cursor are as
    recorded. ``shown`` puts the same words for what is another each time. With RECORD_SCREENS in the
    environment the screens are written down instead, each when nothing has come for a while."""
    recording = "RECORD_SCREENS" in os.environ
    wanted = {} if recording else _read(recorded)
    for name, act in story:
        act(screen)
        if recording:
            screen.quiet()
            wanted[name] = _shot(screen, shown)
        else:
            screen.wait(partial(_is_so, screen, shown, wanted[name]), f"== {name}\n{wanted[name]}")
    if recording:
        recorded.parent.mkdir(exist_ok=True)
        _write(recorded, wanted)


def _is_so(screen: Screen, shown: Callable[[str], str], wanted: str) -> bool:
    return _shot(screen, shown) == wanted


def _shot(screen: Screen, shown: Callable[[str], str]) -> str:
    return f"cursor {screen.cursor}\n{shown(screen.text)}"


# On file a screen tells the lines that it has from the one before by their number alone.
_KEPT = "[{} lines as before]\n"


def _write(path: Path, shots: dict[str, str]) -> None:
    parts, before = [], [""]
    for name, shot in shots.items():
        cursor, *lines = shot.splitlines(keepends=True)
        kept = len([*takewhile(lambda pair: pair[0] == pair[1], zip(lines, before, strict=False))])
        parts.append("".join([f"== {name}\n", cursor, _KEPT.format(kept) * (kept > 0), *lines[kept:], "\n"]))
        before = lines
    path.write_text("".join(parts))


def _read(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    lines: list[str] = []
    for step in path.read_text().removeprefix("== ").removesuffix("\n").split("\n== "):
        name, cursor, *told = step.splitlines(keepends=True)
        if told and (kept := re.fullmatch(r"\[(\d+) lines as before\]\n?", told[0])):
            told[:1] = lines[: int(kept[1])]
        lines = told
        found[name.rstrip("\n")] = "".join([cursor, *told])
    return found
