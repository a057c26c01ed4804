"""A terminal with a screen: what a person sees there, line by line, with its colours and its cursor.

pyte draws the screen, as a terminal would: it also answers what is asked of a terminal. A screen is compared
once it has come to look as expected, so that no test waits for a time. Knows no test.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyte
from commands import Terminal

SMALL, LARGE = (80, 24), (200, 50)
TAB, ESCAPE, UP, DOWN, LEFT, RIGHT = "\t", "\x1b", "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[C"
ALT_ENTER = ESCAPE + "\r"
BACKSPACE, CTRL_R, CTRL_L, CTRL_A, CTRL_E = "\x7f", "\x12", "\x0c", "\x01", "\x05"


class Screen(Terminal):
    """``quoth`` on a screen of ``size``, in columns and lines. Ended with the block."""

    def __init__(
        self, *words: str, cwd: Path, env: dict[str, str] | None = None, size: tuple[int, int] = SMALL
    ) -> None:
        self._screen = pyte.Screen(*size)
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
        self._wait(lambda: all(text in self.text for text in texts), " and ".join(map(repr, texts)), seconds)

    def hides(self, *texts: str, seconds: float = 60) -> None:
        """Wait until none of these is on the screen."""
        absent = " nor ".join(map(repr, texts))
        self._wait(lambda: not any(text in self.text for text in texts), f"neither {absent}", seconds)

    def looks(self, expected: str, seconds: float = 60) -> None:
        """Wait until the whole screen is this, but for its indentation here and empty lines around it."""
        wanted = dedent(expected).strip("\n").rstrip()
        self._wait(lambda: self.text.strip("\n") == wanted, wanted, seconds)

    def ends(self, expected: str, seconds: float = 60) -> None:
        """Wait until these are the last lines of the screen."""
        wanted = dedent(expected).strip("\n").rstrip()
        self._wait(lambda: ("\n" + self.text).endswith("\n" + wanted), wanted, seconds)

    def _wait(self, true: Any, wanted: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not true():
            left = deadline - time.monotonic()
            alive = left > 0 and self._read(left)
            assert alive, f"The screen never came to look as wanted.\n{wanted}\n--- it is:\n{self.text}"

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
