"""How many documented spellings of a call are read as the call they spell, by family of models; and random
mutations of them, of which none may become a call that its text does not say. Prints Org tables.

python tests/bench/spellings.py [--count 20000] [--seed 1]
The texts are those of tests/vocabulary/families.py, each with its source. A spelling without a call must come
back as a fault. Counts: a loaded machine does not change them.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "vocabulary")]

from families import FAMILIES, KNOWN, Spelling  # noqa: E402
from mutations import fuzz  # noqa: E402

from quoth.neuro.reading.reply import read_reply  # noqa: E402


def is_read(spelling: Spelling) -> bool:
    return tuple(str(call.form) for call in read_reply(spelling.text, KNOWN).calls) == spelling.calls


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=20_000)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    print("| family | spellings | read as meant | written or read on |\n|---+---+---+---|")
    for name, source in FAMILIES.items():
        right = sum(map(is_read, source.spellings))
        print(f"| {name} | {len(source.spellings)} | {right} | {source.date} |")
    wrong: list[str] = []
    kinds = fuzz(given.count, given.seed, lambda fault, _text: wrong.append(fault))
    became = ", ".join(f"{many:,} {kind}" for kind, many in kinds.items())
    print("\n| mutations | became | of them wrong |\n|---+---+---|")
    print(f"| {given.count:,} | {became} | {len(wrong)} |")


if __name__ == "__main__":
    main()
