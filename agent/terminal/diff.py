"""Shows what a call would change: a sentence for each file, and the lines that differ.

Knows texts before and after, not whose call it is. Texts of files and models are hostile: each line stands
behind a margin and is broken here, so that none of it imitates a question, and every invisible character is
an escape. What a file holds already loses what looks like a key; what a call would write is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from quoth.agent.terminal.output import colored
from quoth.tools.call.preview import Change, Changes, differing, lines_of
from quoth.tools.call.redaction import SECRET, Redactor, redact
from quoth.tools.text import number_of
from quoth.tools.visible import visible

CONTEXT = 3  # lines that stay, shown around those that change
MARGIN, MORE = "│ ", "│   … "
STYLES = {"-": "red", "+": "green", "@": "cyan", " ": "", "!": "yellow"}
Kind = Literal["-", "+", "@", " ", "!"]
_KEY_BLOCK = re.compile(r"-----BEGIN [A-Z0-9 ]{1,60}-----(?s:.*?)(?:-----END [A-Z0-9 ]{1,60}-----|\Z)")
_WORD = re.compile(r"""[^\s"'`=:@/,;()\[\]{}]{4,}""")


@dataclass(frozen=True)
class Line:
    """A line of a difference: taken away (-), put there (+), where it is (@), unchanged, or a note (!)."""

    kind: Kind
    text: str


@dataclass(frozen=True)
class Difference:
    """What becomes of one file: a sentence, and the lines."""

    path: str
    head: str
    lines: tuple[Line, ...]
    added: int = 0
    removed: int = 0

    def to_json(self) -> dict[str, Any]:
        diff = "".join(f"{'' if line.kind in '@!' else line.kind}{line.text}\n" for line in self.lines)
        counts = {"added": self.added, "removed": self.removed}
        return {"path": self.path, "summary": self.head, **counts, "diff": diff}


def differences(changes: Changes | None, hide: Redactor | None = None) -> list[Difference]:
    """What a call would change, without the secrets that ``hide`` has found in it."""
    return [_difference(change, hide) for change in (changes.files if changes else ())]


def _difference(change: Change, hide: Redactor | None) -> Difference:
    path = visible(change.path)
    old, new = lines_of(change.before), lines_of(change.after)
    if change.binary is not None:
        head = f"replaces {path}, which is no text ({number_of(change.binary, 'byte')}), by {_count(new)}"
        return Difference(path, head, tuple(_told("+", new, hide)), len(new))
    if change.before is None:
        head = f"new file {path}, {_count(new)}" if new else f"new file {path}, empty"
        return Difference(path, head, tuple(_told("+", new, hide)), len(new))
    known = _known(old)
    if change.after is None:
        return Difference(path, f"removes {path}, {_count(old)}", tuple(_told("-", known, hide)), 0, len(old))
    if change.before == change.after:
        return Difference(path, f"no change to {path}", ())
    blocks = list(differing(old, new))
    removed, added = sum(b - a for a, b, _, _ in blocks), sum(d - c for _, _, c, d in blocks)
    lines = tuple(_hunks(known, _without(_words(old) - _words(known), new), blocks, hide))
    return Difference(path, _head(path, len(old), len(new), removed, added), lines, added, removed)


def _count(lines: list[str]) -> str:
    return number_of(len(lines), "line")


def _head(path: str, old: int, new: int, removed: int, added: int) -> str:
    if removed == old and old:
        by = f" by {number_of(added, 'line')}" if added else " and leaves it empty" if not new else ""
        return f"replaces {'the only line' if old == 1 else f'all {old} lines'} of {path}{by}"
    if not removed:
        return f"adds {number_of(added, 'line')} to {path}, which has {old or 'none'}"
    if not added:
        return f"removes {removed} of {number_of(old, 'line')} of {path}"
    return f"replaces {removed} of {number_of(old, 'line')} of {path} by {added}"


# Comparing


def _hunks(
    old: list[str], new: list[str], blocks: list[tuple[int, int, int, int]], hide: Redactor | None
) -> Iterator[Line]:
    """The lines of a unified difference; neighbouring places share the lines between them."""
    shown = 0  # lines of the old text that are behind us
    for at, (a, b, c, d) in enumerate(blocks):
        first = max(shown, a - CONTEXT)
        if at == 0 or first > shown:
            yield Line("@", f"@@ line {first + 1} @@")
        yield from _told(" ", old[first:a], hide)
        yield from _told("-", old[a:b], hide)
        yield from _told("+", new[c:d], hide)
        following = blocks[at + 1][0] if at + 1 < len(blocks) else len(old)
        shown = min(b + CONTEXT, following)
        yield from _told(" ", old[b:shown], hide)


def _known(lines: list[str]) -> list[str]:
    """The lines that a file holds already, without what looks like a key, as many as before."""
    text = _KEY_BLOCK.sub(lambda found: "\n".join([SECRET] * (found[0].count("\n") + 1)), "".join(lines))
    return [redact(line) for line in lines_of(text)]


def _words(lines: list[str]) -> set[str]:
    return {word for line in lines for word in _WORD.findall(line)}


def _without(held: set[str], lines: list[str]) -> list[str]:
    """New lines without the keys that the file holds, where a call leaves them as they are."""
    return [
        _WORD.sub(lambda word: SECRET if word[0] in held else word[0], line) for line in lines if held
    ] or lines


def _told(kind: Kind, lines: Iterable[str], hide: Redactor | None) -> Iterator[Line]:
    for line in lines:
        text = line.removesuffix("\n")
        yield Line(kind, _seen(hide.text(text) if hide else text, kind))
        if not line.endswith("\n"):
            yield Line("!", "\\ no line end at the end of the file")


def _seen(text: str, kind: Kind) -> str:
    """A line as it can be seen; in one that changes, tabs and blanks at the end are marked."""
    if kind != " ":
        text = re.sub(r" +(?=\r?\Z)", lambda blanks: "·" * len(blanks[0]), text.replace("\t", "⇥\t"))
    return visible(text.expandtabs())


# Drawing


def drawn(lines: Iterable[Line], width: int, *, color: bool) -> list[str]:
    """The lines behind a margin, broken so that the terminal breaks none by itself."""
    from rich.cells import chop_cells

    rows = []
    for line in lines:
        text = line.text if line.kind in "@!" else f"{line.kind} {line.text}"
        begin, *rest = chop_cells(text, max(width - len(MARGIN) - 1, 10)) or [""]
        pieces = [begin, *(chop_cells("".join(rest), max(width - len(MORE) - 1, 10)) if rest else ())]
        for at, piece in enumerate(pieces):
            style = STYLES[line.kind] if color else ""
            rows.append((MORE if at else MARGIN) + (colored(piece, style) if style else piece.rstrip()))
    return rows
