"""Reading a reply with fifty tags' patterns, beside the first seed's parser: one re.findall for each of them.
Prints Org tables.

python tests/bench/tags.py [--rounds N]
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

from quoth.neuro.prompt.dialects import TAGS
from quoth.neuro.reading.reply import MAX_REPLY
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool, ToolTable

TOOLS = 50
PATTERN = r"(factual|communication|structured_data)\s+(.+)"
PROSE = "The sun is warm, and this line is one of prose: it says so.\n"
# What stands in a reply of 100 KB: lines by themselves, each with prose around them.
SHAPES: dict[str, str] = {
    "prose": "",
    "50 tags that match": "LEARNING-{n}: factual The sun is warm in summer.\n",
    "50 tags that do not": "LEARNING-{n}: gossip The sun is warm in summer.\n",
    "50 unknown tags": "FINDING-{n}: The sun is warm in summer.\n",
    "50 quoted tags": "> LEARNING-{n}: factual The sun is warm in summer.\n",
}
HOSTILE: dict[str, str] = {
    "tags that match": "LEARNING-0: factual x\n",
    "tags that do not": "LEARNING-0: x\n",
    "unknown tags": "FOO: x\n",
    "quoted tags": "> LEARNING-0: factual x\n",
    "fenced tags": "```\nLEARNING-0: factual x\n```\n",
    "announced tags": "You wrote:\nLEARNING-0: factual x\n\n",
    "tags behind announced lines": "e.g. x:\nhm\nLEARNING-0: factual x\n",
    "confidence": "CONFIDENCE: 1\n\n",
    "quotation marks": ">",
}


def table() -> ToolTable:
    """Fifty tools with the pattern of the seed."""
    params = (Param("category"), Param("content"))
    names = [f"learning-{n}" for n in range(TOOLS)]
    tags = [{"prefix": name.upper(), "pattern": PATTERN, "groups": ["category", "content"]} for name in names]
    given: list[Any] = tags
    return ToolTable(
        tuple(CognitiveTool(name, "Record.", params, tag=tag) for name, tag in zip(names, given, strict=True))
    )


def reply(line: str, size: int) -> str:
    """A reply with fifty such lines, evenly among prose."""
    between = PROSE * max(1, (size - TOOLS * len(line)) // TOOLS // len(PROSE))
    return "".join(between + line.format(n=n) for n in range(TOOLS))


def milliseconds(act: Callable[[], Any]) -> float:
    started = time.process_time()
    act()
    return (time.process_time() - started) * 1000


def told(found: list[float]) -> str:
    """The median and the middle half, of CPU time: other work on the machine does not count."""
    low, middle, high = statistics.quantiles(found, n=4)
    return f"{middle:.1f} ({low:.1f}-{high:.1f})"


def compare(rounds: int) -> None:
    known = table()
    patterns = [re.compile(rf"^LEARNING-{n}:\s+{PATTERN}$", re.MULTILINE) for n in range(TOOLS)]
    print("| 100 KB with | calls | quoth, ms | re.findall, ms | ratio |\n|---+---+---+---+---|")
    for name, line in SHAPES.items():
        text = reply(line, 100_000)
        ours, theirs = [], []
        for _ in range(rounds):  # interleaved, so that a busy moment hits both alike
            ours.append(milliseconds(lambda text=text: TAGS.read_text(text, known)))  # type: ignore[misc]
            theirs.append(milliseconds(lambda text=text: [one.findall(text) for one in patterns]))  # type: ignore[misc]
        ratio = statistics.median(map(float.__truediv__, ours, theirs))
        calls = len(TAGS.read_text(text, known).calls)
        print(f"| {name} | {calls} | {told(ours)} | {told(theirs)} | {ratio:.2f} |")


def grow(rounds: int) -> None:
    known = table()
    sizes = (1_000_000, 2_000_000, 4_000_000, MAX_REPLY - 100_000)
    print(
        "\n| shape | "
        + " | ".join(f"{size / 1e6:.1f} MB, ms" for size in sizes)
        + " | last to first, a byte |"
    )
    print("|" + "---+" * (len(sizes) + 1) + "---|")
    shapes: dict[str, Callable[[int], str]] = {
        "50 tags among prose": lambda size: reply(SHAPES["50 tags that match"], size)
    }
    for name, unit in HOSTILE.items():
        shapes[f"nothing but {name}"] = lambda size, unit=unit: unit * (size // len(unit))  # type: ignore[misc]
    for name, make in shapes.items():
        times = []
        for size in sizes:
            text = make(size)
            found = [milliseconds(lambda text=text: TAGS.read_text(text, known)) for _ in range(rounds)]  # type: ignore[misc]
            times.append((min(found), len(text)))
        each = [spent / length for spent, length in times]
        row = " | ".join(f"{spent:.0f}" for spent, _ in times)
        print(f"| {name} | {row} | {each[-1] / each[0]:.1f} |")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=15)
    rounds = options.parse_args().rounds
    compare(rounds)
    grow(max(1, rounds // 5))


if __name__ == "__main__":
    main()
