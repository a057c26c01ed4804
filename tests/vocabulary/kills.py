"""What the stories with kills share: a tool whose effects a file counts, one that kills its process, the kill
itself, and what a store may contain after it. Used by acp_kills.py, serve_kills.py and tests of flights.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from quoth.tools.consent.rows import RequestRow, StoreRequests
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

EFFECTS = "effects.txt"
# Its body takes SECONDS, and says in a file when it has begun.
TOOL = """
(require quoth [def-cognitive-tool])
(import time)
(def-cognitive-tool note "Append a line."
  :parameters [text {:type str}]
  :effects [:writes]
  :body (do
    (with [file (open "HERE/begun.txt" "a")] (.write file (+ text "\\n")))
    (time.sleep SECONDS)
    (with [file (open "HERE/effects.txt" "a")] (.write file (+ text "\\n")))))
"""
MORTAL = """
(import os signal)
(def-cognitive-tool mortal "Die, the first time."
  :effects    [:reads]
  :body       (do
                (setv mark (/ ctx.workspace.root "died"))
                (when (not (.exists mark))
                  (.touch mark)
                  (os.kill (os.getpid) signal.SIGKILL))
                "alive"))
"""
LINES = ("one", "two")
SAID = '(note "one")\n---\n(note "two")\n---\nBoth are noted.\n'
DONE = "Both are noted."


def note_tool(folder: Path, seconds: float = 0) -> str:
    """The text of the tool ``note``, whose files are in a folder."""
    return TOOL.replace("HERE", str(folder)).replace("SECONDS", str(seconds))


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits for its parent does not."""
    try:
        return bool(pid) and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def written_lines(folder: Path, name: str = EFFECTS) -> list[str]:
    file = folder / name
    return file.read_text().split() if file.exists() else []


def was_written(folder: Path, title: str) -> bool:
    """Whether the line of a call, as it is shown, is among the effects."""
    return any(f'"{line}"' in title for line in written_lines(folder))


def requests_of(folder: Path) -> list[RequestRow]:
    """Every request in the store of a folder, open and decided."""
    store = Store(store_path(folder))
    try:
        return [*StoreRequests(lambda: store, lambda: 0.0).every(waiting=False)]
    finally:
        store.close()


def wrong_requests(folder: Path, lines: list[str]) -> str:
    """What is wrong with the requests of a session; empty for nothing. Each written line has one that was
    approved, and at most one is open."""
    rows = requests_of(folder)
    waiting = [row for row in rows if row.state == "pending"]
    approved = [row.shown for row in rows if row.decision == "once"]
    yes = {line for line in LINES if any(f'"{line}"' in shown for shown in approved)}
    if len(waiting) > 1:
        return f"{len(waiting)} open requests"
    return "" if yes.issuperset(lines) else f"{lines} written, {sorted(yes)} approved"
