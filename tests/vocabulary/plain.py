"""The patterns of sentences that a stranger has to read twice, and where the product's texts have them.

``python tests/vocabulary/plain.py [FOLDER …]`` prints each place. It reads docstrings, comments and texts of
Python, comments and texts of Hy, and Org files without their blocks. Names in code are not texts.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
FOLDERS = ("agent", "neuro", "tools", "plans", "README.org", "CONTRIBUTING.org", "SECURITY.org")

# What is refused, and what to write instead.
PATTERNS = {
    (
        r"(?<!there )\b(?:is|are|was|were|be) no (?!longer\b|more\b|less\b|fewer\b)\w"
    ): "is not a …, or what it must be",
    r"\bthere (?:is|are|was|were) no such\b": "unknown …, or: no … named …",
    r"\b(?:stands?|stood)\b(?! (?:for|by|in for)\b)(?!-)": "is in, is given, appears",
    (
        r"\bwhat (?:is|are|was|were|has|have|had) (?:not |been |not been )?(?:\w+(?:ed|wn|"
        r"ne|ept|ld|nt|ut|ritten)|made|given|taken|run|read|met|left|shown|lost)\b"
    ): "name the thing: the approved call",
    r"\bwhat (?:came|comes|stands|follows|happens to be)\b": "its result, the text",
    r"\b(?:whoever|whatever|whichever)\b": "name the person or the thing",
    (
        r"(?:^|[,;:(] |\b(?:and|or|of|to|by|for|from|if|when|that) )who (?:has|have|had|is|"
        r"was|may|asks?|wants?|calls?)\b"
    ): "name the person",
    r"\bthose (?:who|that|which)\b": "name them",
    r"\bso (?:many|long|much)\b(?! that)": "N …, for N seconds, while …",
    r"\bas far as\b": "the condition",
    r"\b(?:tells|told|telling)\b": "prints, reports, is notified of",
    r"\b(?:goes|went|going|go) on\b": "continues, resumes",
    (
        r"\bcalls? (?:is|are|was|were|be|been|being) made\b|\b(?:makes?|made|making) (?:a|"
        r"an|the|no|each|every|its|that|another) (?:\w+ )?calls?\b|"
        r"\bcalls? (?:that )?\w+ (?:makes|made)\b"
    ): "run a call, call",
    (
        r"\b(?:cures?|cured|dear|dearer|mend|mends|mended|heeds?|purses?|funds)\b"
    ): "fix, expensive, follow, budget",
    (
        r"""\b(?:by now|anew|somebody|catalogues?)\b|(?<![=\"'`])\bnobody\b(?![=\"'`])"""
    ): "leave out, again, the actor, catalog",
    (r"\b(?:holds)\b(?! (?:a|the|its|this|no|one|\w+'s) (?:\w+ )?lock)"): "contains, matches, keeps",
    r"\b(?:by|in|on) (?:a|this|that|which|each|another) way\b|\bgoes by\b": "route, through",
    r"\blets? go of\b": "drop, release",
}
# Lines that may have one, by file and words, with the reason; at most MOST_ALLOWED.
ALLOWED: dict[tuple[str, str], str] = {
    ("agent/chat/inbox.py", "told"): "a column of the store, whose schema is released",
    ("tools/storage/schema.py", "told"): "the same column",
    ("CONTRIBUTING.org", "is no k"): "an example of what not to write",
    ("CONTRIBUTING.org", "There is no such"): "an example of what not to write",
    ("CONTRIBUTING.org", "so many"): "an example of what not to write",
}
MOST_ALLOWED = 40
_FOUND = re.compile("|".join(f"(?P<p{at}>{one})" for at, one in enumerate(PATTERNS)), re.IGNORECASE)
# Words between marks or in braces are code: =so-many=, ``goes on``, {told}.
_CODE = re.compile(r"\{[^{}\n]*\}|(?<![\w=])=[^=\n]+=(?!\w)|``[^`\n]+``|`[^`\n]+`|~[^~\n]+~")


class Place(NamedTuple):
    file: str
    line: int
    words: str  # as found
    text: str  # the line
    instead: str


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file with the lines where they begin; a text that runs over lines is one."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _of_python(content)
    elif path.suffix == ".hy":
        yield from _of_hy(content)
    else:
        inside = False
        for number, line in enumerate(content.splitlines(), 1):
            if re.match(r"\s*,?#\+(begin|end)_(src|example)", line, re.IGNORECASE):
                inside = "begin" in line.lower()
            elif not inside:
                yield number, line


def _of_python(content: str) -> Iterator[tuple[int, str]]:
    comment: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            if comment and token.start[0] != last + 1:
                yield start, "\n".join(comment)
                comment = []
            if not comment:
                start = token.start[0]
            comment.append(token.string.lstrip("# "))
            last = token.start[0]
        elif token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1)) and " " in token.string:
            yield token.start[0], token.string
    if comment:
        yield start, "\n".join(comment)


def _of_hy(content: str) -> Iterator[tuple[int, str]]:
    for found in re.finditer(r';[^\n]*(?:\n\s*;[^\n]*)*|"(?:[^"\\]|\\.)*"', content):
        if " " in found[0]:
            yield content.count("\n", 0, found.start()) + 1, re.sub(r"(?m)^\s*;+", "", found[0])


def places_in(path: Path, name: str) -> Iterator[Place]:
    """Where the texts of a file have one of PATTERNS."""
    for start, text in texts(path):
        plain = _CODE.sub(lambda found: "=" * len(found[0]), text)
        joined = re.sub(r"\s", " ", re.sub(r"(?m)^[ #;]+", lambda found: " " * len(found[0]), plain))
        squeezed = re.sub(r" +", " ", joined)
        for found in _FOUND.finditer(squeezed):
            at = _unsqueezed(joined, found.start())
            number = start + plain.count("\n", 0, at)
            pattern = int((found.lastgroup or "p0")[1:])
            line = text.splitlines()[plain.count("\n", 0, at)].strip()
            yield Place(name, number, found[0].strip(), line, [*PATTERNS.values()][pattern])


def _unsqueezed(joined: str, at: int) -> int:
    """The index in ``joined`` of the ``at``-th letter of its text with runs of spaces made one."""
    kept = -1
    for index, letter in enumerate(joined):
        if letter != " " or index == 0 or joined[index - 1] != " ":
            kept += 1
        if kept == at:
            return index
    return len(joined) - 1


def files(folders: tuple[str, ...] = FOLDERS) -> Iterator[Path]:
    for folder in folders:
        top = ROOT / folder
        found = sorted(top.rglob("*")) if top.is_dir() else [top]
        yield from (
            one
            for one in found
            if one.suffix in (".py", ".hy", ".org") and one.is_file() and not one.is_symlink()
        )


def all_places(folders: tuple[str, ...] = FOLDERS) -> Iterator[Place]:
    for path in files(folders):
        if "public" not in path.relative_to(ROOT).parts:
            yield from places_in(path, str(path.relative_to(ROOT)))


if __name__ == "__main__":
    found = [*all_places(tuple(sys.argv[1:]) or FOLDERS)]
    for one in found:
        print(f"{one.file}:{one.line}: {one.words!r} ({one.instead}): {one.text}")
    print(f"{len(found)} places.")
