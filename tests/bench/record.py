"""What it costs that the events of a call tell all of its audit row: bytes and time a call, and verification.
Prints an Org table.

python tests/bench/record.py [--calls 2000] [--rounds 5]
The first store holds a run of ``echo``, the second a person's calls of ``read-file`` with three arguments, so
that their forms must be read to be verified. The floor of the verification is the same without a comparison
of rows and events; "each event read" is what it takes where an event is not as it would be written.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch


def a_run(work: Path, calls: int) -> None:
    from quoth import Agent
    from quoth.agent.run.limits import RunLimits
    from quoth.neuro.backends.select import ScriptedBackend

    replies = [f'(echo :text "This is line {n}.")' for n in range(calls)]
    limits = RunLimits(steps=calls + 1, calls=calls + 1, context=1_000_000_000)
    model = ScriptedBackend([*replies, "All lines are said."])
    with Agent(workspace=work, session="s", user="ann", model=model, limits=limits) as agent:
        assert agent.run("Say every line.").text == "All lines are said."


def by_a_person(work: Path, calls: int) -> None:
    from quoth import Agent

    (work / "a.txt").write_text("one\n")
    with Agent(workspace=work, session="s", user="ann") as agent:
        for n in range(calls):
            assert agent.call(f'(read-file :path "a.txt" :start 1 :limit {n % 500 + 1})').ok


def sizes(store: Any) -> tuple[int, int]:
    """The bytes of the events of the store's calls, and those of the words that tell the row."""
    from quoth.tools.history.event import WORDS, content_of
    from quoth.tools.lisp.printer import print_value

    names = {"ms", "began", *WORDS.values()} - {"effects", "stage"}
    all_bytes = told = 0
    for kind, text in store.execute("SELECT kind, form FROM events WHERE kind IN ('call', 'receipt')"):
        all_bytes += len(text)
        if kind == "receipt":
            said = content_of(text).items()
            told += sum(len(f" :{name} {print_value(value)}") for name, value in said if name in names)
    return all_bytes, told


def verified(store: Any) -> float:
    """Seconds of CPU."""
    from quoth.tools.history.audit import StoreAudit

    begun = time.process_time()
    assert StoreAudit(lambda: store).verify().ok
    return time.process_time() - begun


def words(calls: int) -> float:
    """Microseconds of CPU to say what a row tells in an event."""
    from quoth.tools.history.audit import row_of_host
    from quoth.tools.history.event import usual_row, words_of
    from quoth.tools.lisp.forms import CallForm

    form = CallForm("echo", {"text": "This is line 1."})
    row = row_of_host("body", "", side_effects=[], user="ann", round=3, schema_hash="6" * 64)
    begun = time.process_time()
    for _ in range(calls):
        words_of(row, row["ts"], usual_row(form, "", "body"))
    return (time.process_time() - begun) / calls * 1e6


def spread(figures: list[float]) -> str:
    return f"{statistics.median(figures):.0f} ({min(figures):.0f} to {max(figures):.0f})"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--calls", type=int, default=2000)
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    print("| calls | bytes of two events | of it for the row | verify, us a row | floor | each event read |")
    print("|---+---+---+---+---+---|")
    work: dict[str, Callable[[Path, int], None]] = {"a run": a_run, "a person's": by_a_person}
    for name, make in work.items():
        with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ, QUOTH_STATE=f"{folder}/state"):
            place = Path(folder, "work")
            place.mkdir()
            make(place, given.calls)
            store = Store(store_path(place))
            ((rows,),) = store.execute("SELECT count(*) FROM audit")
            took: list[list[float]] = [[], [], []]
            for _ in range(given.rounds):
                took[0].append(verified(store) / rows * 1e6)
                with patch("quoth.tools.history.audit.differences", lambda *_: []):
                    took[1].append(verified(store) / rows * 1e6)
                with patch("quoth.tools.history.event._says", lambda *_: False):
                    took[2].append(verified(store) / rows * 1e6)
            all_bytes, told = sizes(store)
            store.close()
            figures = " | ".join(map(spread, took))
            print(f"| {name} | {all_bytes / rows:.0f} | {told / rows:.0f} | {figures} |")
    made = [words(given.calls) for _ in range(given.rounds)]
    print(
        f"\nThe words of a row: {statistics.median(made):.1f} us ({min(made):.1f} to {max(made):.1f}) of CPU."
    )


if __name__ == "__main__":
    main()
