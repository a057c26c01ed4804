"""The first page of ``quoth view`` in a store of many sessions, beside the style sheet of the same server;
other pages; and what each takes the first time. In turns, in one process, over a socket of loopback.

python tests/bench/view.py [--sessions 10000] [--rounds 30]

The store is that of ``tests/bench/sessions.py``, with ten requests that wait. The first row is the floor: a
file of the server, sent to a browser that is let in. ``first`` is the first answer of each page: it opens the
store and imports what it needs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "vocabulary"))

import httpx
from sessions import fill, spread

SECONDS = 120
WAITING = 10


def asking(work: Path) -> str:
    """Requests that wait for a person; the id of the last."""
    from words import agent, files

    files(work, {"a.txt": "one\ntwo\n"})
    with agent(work, user="me") as one:
        for number in range(WAITING):
            result = one.call(f'(write-file :path "a.txt" :content "one\\n{number}\\n")')
            assert result.status == "pending", result.message
        return one.broker.requests()[-1].id


def measured(client: httpx.Client, path: str) -> float:
    """Milliseconds until a page has come whole."""
    began = time.perf_counter()
    answer = client.get(path)
    took = (time.perf_counter() - began) * 1000
    assert answer.status_code == 200, (path, answer.status_code)
    return took


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--sessions", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=30)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        os.environ["QUOTH_STATE"], os.environ["QUOTH_CONFIG"] = f"{root}/state", f"{root}/config"
        os.environ["LOGNAME"] = "ann"  # whose sessions they are
        (work := root / "work").mkdir()
        fill(work, given.sessions, 10 * given.sessions, [200])
        shown(work, asking(work), given.rounds)


def shown(work: Path, request: str, rounds: int) -> None:
    """Print the table of the pages of a workspace."""
    from viewing import viewed

    view = viewed(work)
    pages = {
        "the style sheet": "/view/style.css",
        "what waits, the first page": "/view/",
        "one request": f"/view/request/{request}",
        "the list of sessions": "/view/sessions",
        "a search in it": "/view/sessions?q=every",
        "a session of 200 steps": "/view/sessions/long200",
    }
    found: dict[str, list[float]] = {name: [] for name in pages}
    with view.served() as home, httpx.Client(base_url=home.removesuffix("/view/"), timeout=SECONDS) as client:
        client.get("/view/in", params={"code": view.code()})
        for _ in range(rounds + 1):
            for name, path in pages.items():  # interleaved, so that a busy moment hits all alike
                found[name].append(measured(client, path))
    print("| page | first, ms | ms, median (lowest to highest) |\n|---+---+---|")
    for name, (first, *rest) in found.items():
        print(f"| {name} | {first:.0f} | {spread(rest)} |")
    print(f"\nLoad of the last minute: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()
