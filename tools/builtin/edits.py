"""Edits of a text: several pieces replaced, all or none, and the changed lines as a model is shown them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quoth.tools.call.call import differing, lines_of
from quoth.tools.errors import ToolError, nearest
from quoth.tools.lisp.printer import print_string
from quoth.tools.text import number_of, short

MAX_LINES, MAX_LINE = 5_000, 200  # lines that are compared with a missing text, and characters of each
MOST_PLACES = 4  # of a text, each of which is named
CONTEXT = 2  # unchanged lines shown around changed lines
MAX_SHOWN, MAX_WIDTH = 60, 200  # lines of a difference, and characters of each
SHAPE = ':edits [["old" "new"] …]'

Piece = tuple[str | None, str]  # without an old text the new one is added at the end


def pieces(old: str | None, new: str | None, edits: Sequence[Sequence[str]] | None) -> list[Piece]:
    """The pairs of old and new text, in order, from one pair or several. Raises ToolError."""
    if edits is None:
        if old is None and new is None:
            raise ToolError(f"Nothing to replace: give :old and :new, or several at once, {SHAPE}.")
        if new is None:
            raise ToolError('The edit is incomplete: add :new, the text to put there, or "".')
        return [(old, new)]
    if old is not None or new is not None:
        raise ToolError(f"Give either :old and :new, or {SHAPE}; not both.")
    if not edits:
        raise ToolError(f":edits is empty; give {SHAPE}.")
    for number, edit in enumerate(edits, 1):
        if len(edit) != 2:
            raise ToolError(
                f"Edit {number} of {len(edits)} has {number_of(len(edit), 'text')}; give {SHAPE}."
            )
    return [(edit[0], edit[1]) for edit in edits]


def replaced(path: str, text: str, todo: Sequence[Piece], everywhere: bool, limit: int) -> tuple[str, int]:
    """The text with each piece replaced, one after the other, and the number of replacements. A piece must
    occur, and only once unless ``everywhere``. Where all lines end with CRLF, a line feed means that, unless
    the piece has a carriage return. Raises ToolError, which names the edit among several."""
    count = 0
    for number, (old, new) in enumerate(todo, 1):
        windows = "\r\n" in text and text.count("\r\n") == text.count("\n")
        if windows and "\r" not in (old or "") + new:  # models write \n for every file
            old, new = old and old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
        if old is None:
            if not new or len(text) + len(new) >= limit:
                raise ToolError(f"{path} would grow beyond {limit} characters." if new else ":new is empty.")
            text, count = _extended(text, new), count + 1
            continue
        found = text.count(old)
        if trouble := _trouble(path, text, old, found, everywhere, len(new), limit):
            which = f"Nothing was changed. Edit {number} of {len(todo)}: " if len(todo) > 1 else ""
            raise ToolError(f"{which}{trouble}")
        text = text.replace(old, new)
        count += found
    return text, count


def _extended(text: str, new: str) -> str:
    """The text with new lines at its end."""
    end = "\r\n" if "\r\n" in text else "\n"
    if text and not text.endswith("\n"):
        return f"{text}{end}{new}"
    return text + new + ("" if new.endswith("\n") or not text else end)


def _trouble(path: str, text: str, old: str, found: int, everywhere: bool, new: int, limit: int) -> str:
    if old == "":
        return "The text to replace is empty."
    if not found:
        return f"{path} does not contain that text; read the file and copy it exactly.{_alike(text, old)}"
    if found > 1 and not everywhere:
        such = _longer(text, old) if found <= MOST_PLACES else ""
        return f"{path} contains that text {found} times; give more of it{such}, or :all True."
    if len(text) + found * (new - len(old)) > limit:
        return f"{path} would grow beyond {limit} characters."
    return ""


def _alike(text: str, old: str) -> str:
    """The line that is nearest to a missing text, as ``:old`` must spell it."""
    if "\n" in old or len(old) > MAX_LINE:
        return ""
    lines = dict.fromkeys(line.strip() for line in text.splitlines()[:MAX_LINES] if len(line) <= MAX_LINE)
    near = nearest(old.strip(), lines)
    return f" The nearest line there is :old {print_string(near)}" if near else ""


def _longer(text: str, old: str) -> str:
    """Each place of a text that is there a few times, as ``:old`` must spell it: its lines, or these with the
    line before them."""
    starts = [place.start() for place in re.finditer(re.escape(old), text)]
    for lines in (1, 2):
        ways = [_with_lines(text, start, start + len(old), lines) for start in starts]
        alone = len(set(ways)) == len(ways) and all(text.count(way) == 1 for way in ways)
        if alone and all(len(way) <= MAX_LINE and way.count(old) == 1 for way in ways):
            return f", such as :old {' or '.join(map(print_string, ways))}"
    return ""


def _with_lines(text: str, start: int, end: int, lines: int) -> str:
    """What is between two places and the rest of its lines, of which the first is begun ``lines`` back."""
    start = text.rfind("\n", 0, start) + 1
    for _ in range(lines - 1):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
    return text[start : end + len(text[end:].partition("\n")[0].rstrip("\r"))]


def changed_lines(before: str, after: str) -> str:
    """The lines that differ, with the lines around them; empty if the texts are equal."""
    shown = list(_hunks(lines_of(before), lines_of(after)))
    if (more := len(shown) - MAX_SHOWN) > 0:
        shown[MAX_SHOWN:] = [f"… {number_of(more, 'more line')}"]
    return "\n".join(shown)


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """A unified difference whose heads are the new line numbers; neighbours share the lines between them."""
    blocks = list(differing(old, new))
    told = 0  # lines of the new text that are done
    for at, (a, b, c, d) in enumerate(blocks):
        first = max(told, c - CONTEXT)
        if at == 0 or first > told:
            yield f"@@ line {first + 1} @@"
        following = blocks[at + 1][2] if at + 1 < len(blocks) else len(new)
        told = min(d + CONTEXT, following)
        for sign, lines in ((" ", new[first:c]), ("-", old[a:b]), ("+", new[c:d]), (" ", new[d:told])):
            yield from (sign + short(line.rstrip("\r\n"), MAX_WIDTH) for line in lines)
