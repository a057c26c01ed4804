"""The fuzz harness of the reader: texts of families.py, mutated. Each must be a call, an answer or a fault;
no call may have a value that its text does not say; reading while streaming equals reading at the end; and
twice the text is at most about twice the work.

    python tests/vocabulary/mutations.py --count 20000 --seed 1     mutate, and print what was found
    python tests/vocabulary/mutations.py --time                     measure texts of two lengths

It runs nothing that it reads.
"""

from __future__ import annotations

import argparse
import html
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent)]

from families import KNOWN, SPELLINGS  # noqa: E402

from quoth.neuro.reading.literals import unescape  # noqa: E402
from quoth.neuro.reading.reply import ReplyStream, read_reply  # noqa: E402
from quoth.neuro.reading.result import Reading  # noqa: E402
from quoth.tools.lisp.forms import kebab  # noqa: E402
from quoth.tools.lisp.printer import Code  # noqa: E402

TEXTS = [spelling.text for _, spelling in SPELLINGS]
MARK = re.compile(r"<[^<>\s]{1,40}>|\[/?[A-Z_]{3,}\]|[{}()\[\]\"':,]|```\w*|\n")
MARKS = sorted({mark for text in TEXTS for mark in MARK.findall(text)})
THOUGHTS = [
    "<think>",
    "</think>",
    "<thinking>",
    "[THINK]",
    "[/THINK]",
    "<tool_response>",
    "<|im_end|>",
    "</s>",
]
NOISE = [
    "\\",
    "\\u00e9",
    "\\n",
    "é",
    "\0",
    "\ufeff",
    "\u00a0",
    "＜",
    "words ",
    "For example:\n",
    "> ",
    "- ",
    "`",
    "```\n",
    "  ",
]
ENDS_OF_THOUGHTS = re.compile(
    r"(?i)</[\w:]+>|\[/THINK\]|<\|END_THINKING\|>|<channel\|>|◁/think▷|assistantfinal"
)


def mutated(dice: random.Random) -> str:
    """A text of a family with some things done to it."""
    text = dice.choice(TEXTS)
    for _ in range(dice.choice((1, 1, 2, 3, 5))):
        a, b = sorted(dice.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + 40)
        piece = dice.choice((dice.choice(MARKS), dice.choice(THOUGHTS), dice.choice(NOISE)))
        marks = [found.span() for found in MARK.finditer(text)] or [(a, b)]
        start, end = dice.choice(marks)
        text = dice.choice(
            (
                text[:a] + text[b:],
                text[:a] + piece + text[a:],
                text[:a] + text[a:b] + text[a:],
                text[:start] + text[end:],
                text[:start] + piece + text[end:],
                text[:a],
                text[:a] + dice.choice(TEXTS) + text[a:],
                f"{piece}{text}{dice.choice(MARKS)}",
                f"{text}\n{dice.choice(TEXTS)}",
                f"<think>\n{text}\n</think>\n{dice.choice(TEXTS)}",
                text.replace("notes.txt", f"a{piece}b"),
            )
        )[:4000]
    return text


# What a text says


class Said:
    """The values that a text may say: as they stand there, escaped, or as entities."""

    def __init__(self, text: str) -> None:
        plain = html.unescape(text)
        self._forms = [text, plain, unescape(plain), unescape(unescape(plain))]
        self._name = kebab("\n".join(self._forms))

    def value(self, value: Any) -> bool:
        if isinstance(value, dict):
            return all(self.value(key) and self.value(one) for key, one in value.items())
        if isinstance(value, (list, tuple)):
            return all(map(self.value, value))
        if isinstance(value, bool) or value is None:
            return any(word in self._name for word in ("true", "false", "none", "null", "nil"))
        if isinstance(value, Code):
            return True  # another printing of what it reads
        return any(_whole(str(value), form) for form in self._forms)

    def name(self, name: str) -> bool:
        return name in self._name


def _whole(value: str, text: str) -> bool:
    """Whether the text says just this value, and not only a part of a longer word."""
    if len(value) < 3 or not value.strip():
        return value in text
    if value[0].isalnum() and value[-1].isalnum():
        return re.search(rf"(?<![^\W_]){re.escape(value)}(?![^\W_])", text) is not None
    return value in text


def faults_of(text: str) -> Iterator[str]:
    """What is wrong with the reading of a text."""
    reading = read_reply(text, KNOWN)
    said = Said(text)
    for call in reading.calls:
        form = call.form
        if not said.name(form.tool):
            yield f"the name {form.tool!r} is nowhere"
        for name, value in form.args.items():
            if not (said.name(name) or said.value(name)):
                yield f"the argument {name!r} is nowhere"
            if not said.value(value):
                yield f"nobody says {value!r}"
        if not all(map(said.value, form.positional)):
            yield f"nobody says {form.positional!r}"
        if not 0 <= call.start < call.end <= len(text):
            yield f"it stands nowhere: {call.start} to {call.end}"
    yield from _streaming(text, reading)


def _streaming(text: str, whole: Reading) -> Iterator[str]:
    stream = ReplyStream(KNOWN)
    found = [call for at in range(0, len(text), 5) for call in stream.feed(text[at : at + 5])]
    if stream.end() != whole:
        yield "the end of the stream is another reading"
    last = max((mark.start() for mark in ENDS_OF_THOUGHTS.finditer(text)), default=-1)
    if found != whole.calls[: len(found)] and not all(
        call.end <= last for call in found if call not in whole.calls
    ):
        yield f"the stream has {[str(call.form) for call in found]}"


def fuzz(count: int, seed: int, tell: Callable[[str, str], None]) -> Counter[str]:
    """Read so many mutated texts; ``tell`` hears of each fault and its text. How many were what."""
    dice, kinds = random.Random(seed), Counter[str]()
    for _ in range(count):
        text = mutated(dice)
        reading = read_reply(text, KNOWN)
        kind = (
            "call"
            if reading.calls
            else "fault"
            if reading.errors
            else "answer"
            if reading.text
            else "nothing"
        )
        kinds[kind] += 1
        for fault in faults_of(text):
            tell(fault, text)
    return kinds


def seconds(text: str) -> float:
    def once() -> float:
        began = time.process_time()
        read_reply(text, KNOWN)
        return time.process_time() - began

    return min(once(), once())


def slowest(size: int, seed: int, count: int) -> list[tuple[float, float, str]]:
    """The texts whose double takes the longest: how many times as long, the seconds, and what is repeated."""
    dice, rows = random.Random(seed), []
    pieces = [*TEXTS, *MARKS, *THOUGHTS, *NOISE, *(mutated(dice) for _ in range(count))]
    for piece in pieces:
        if piece:
            text = piece * (size // len(piece))
            once, twice = seconds(text), seconds(text + text)
            rows.append((twice / max(once, 1e-3), twice, piece))
    return sorted(rows, reverse=True)[:10]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", action="store_true")
    asked = parser.parse_args()
    if asked.time:
        for ratio, took, piece in slowest(20_000, asked.seed, 300):
            print(f"{ratio:5.2f} times, {took:.3f} s: {piece[:100]!r}")
        return 0
    wrong: list[str] = []

    def tell(fault: str, text: str) -> None:
        wrong.append(fault)
        print(f"{fault}\n    {text!r}")

    print(dict(fuzz(asked.count, asked.seed, tell)), f"{len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
