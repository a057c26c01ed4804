"""What waits for a person's decision: calls and runs put away in the store, so that another process goes on.

Knows the store and how a run is written down and read back; it must not know doors, models or terminals.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agent.run import CallRecord, Run, Turn
from neuro.backends.base import Messages, Usage
from neuro.dialects import DIALECTS
from tools.context import ToolResult
from tools.errors import UsageError
from tools.form import CallForm, Code, from_model
from tools.sexp import read_one
from tools.store import Store, state_dir

VERSION = 1
KEPT_SECONDS = 30 * 86400.0  # longer than any request stays open


class Suspended:
    """The calls and runs of a user that wait in one session, each a JSON object with an ``id``, the oldest
    first."""

    def __init__(self, store: Callable[[], Store], session: str, user: str) -> None:
        self._store = store
        self._session = session
        self._user = user

    def entries(self) -> list[dict[str, Any]]:
        """Everything that waits in this session."""
        return entries_of(self._store(), self._session, self._user)

    def put(self, entry: Mapping[str, Any]) -> None:
        """Keep ``entry``, in place of the one with its id."""
        self._change(str(entry["id"]), entry)

    def drop(self, name: str) -> None:
        """Forget the entry of that id: it has ended."""
        self._change(name, None)

    def _change(self, name: str, entry: Mapping[str, Any] | None) -> None:
        with self._store().transaction() as run:
            run("DELETE FROM suspended WHERE at < ?", (time.time() - KEPT_SECONDS,))
            whose = (self._session, self._user)
            found = run("SELECT state FROM suspended WHERE session = ? AND user = ?", whose)
            kept: list[Any] = json.loads(found[0][0]) if found else []
            at = next((place for place, old in enumerate(kept) if old["id"] == name), len(kept))
            kept[at : at + 1] = [] if entry is None else [{**entry, "version": VERSION}]
            if kept:
                run(
                    "INSERT OR REPLACE INTO suspended (session, user, at, state) VALUES (?, ?, ?, ?)",
                    (*whose, time.time(), json.dumps(kept)),
                )
            elif found:
                run("DELETE FROM suspended WHERE session = ? AND user = ?", whose)


def entries_of(store: Store, session: str, user: str) -> list[dict[str, Any]]:
    """Everything of a user that waits in a session. Raises UsageError for what another quoth has put away."""
    sql = "SELECT state FROM suspended WHERE session = ? AND user = ?"
    found = store.execute(sql, (session, user))
    kept: list[dict[str, Any]] = json.loads(found[0][0]) if found else []
    if any(entry["version"] != VERSION for entry in kept):
        raise UsageError(f"Session {session} was put away by another version of quoth, which must resume it.")
    return kept


def sessions(store: Store) -> list[tuple[str, str]]:
    """The sessions in which something waits and their users, the one that waited last at the end."""
    return [
        (str(name), str(user))
        for name, user in store.execute("SELECT session, user FROM suspended ORDER BY at")
    ]


class SubAgents:
    """The sub-agents that wait, each by the key of the call it works for and the digest of that call."""

    def __init__(self, store: Callable[[], Store]) -> None:
        self._store = store

    def find(self, key: str, digest: str) -> dict[str, Any] | None:
        sql = "SELECT state FROM sub_agents WHERE key = ? AND digest = ?"
        found = self._store().execute(sql, (key, digest))
        entry: dict[str, Any] = json.loads(found[0][0]) if found else {}
        return entry if entry.get("version") == VERSION else None  # of another version: it begins again

    def put(self, key: str, digest: str, entry: Mapping[str, Any]) -> None:
        with self._store().transaction() as run:
            now = time.time()
            run("DELETE FROM sub_agents WHERE at < ?", (now - KEPT_SECONDS,))
            state = json.dumps({**entry, "version": VERSION})
            run("INSERT OR REPLACE INTO sub_agents VALUES (?, ?, ?, ?)", (key, digest, now, state))

    def drop(self, key: str) -> None:
        self._store().execute("DELETE FROM sub_agents WHERE key = ?", (key,))


@contextlib.contextmanager
def alone(store: Path, session: str) -> Iterator[None]:
    """Within it no other process resumes the session; the lock ends with its process, however that ends.
    Raises UsageError when another has it."""
    folder = state_dir() / "locks"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = hashlib.sha256(f"{store} {session}".encode()).hexdigest()[:32]
    lock = os.open(folder / f"{name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(f"Session {session} is being resumed by another process.") from None
        yield
    finally:
        os.close(lock)


# Writing down and reading back


def written_run(run: Run, turn: Turn) -> dict[str, Any]:
    """A run that waits in the middle of a turn, as JSON data. The forms in it are the true ones."""
    return {
        "task": run.task,
        "turn_id": run.turn,
        "messages": list(run.messages),
        "before": run.messages.before,
        "dialect": run.dialect.name,
        "step": run.step,
        "budget": [run.budget.steps_taken, run.budget.calls_taken],
        "faults": run.faults,
        "usage": vars(run.usage),
        "calls": [_written(record) for record in run.calls],
        "seen": {digest: _written(record) for digest, record in run.seen.items()},
        "repeated": run.repeated,
        "must_answer": run.must_answer,
        "avoided": sorted(run.avoided),
        "turn": {
            "records": [_written(record) for record in turn.records],
            "old": sorted(turn.old),
            "errors": turn.errors,
            "text": turn.text,
            "finish": turn.finish,
        },
    }


def read_messages(entry: Mapping[str, Any]) -> Messages:
    """The conversation of a run that waits."""
    messages = Messages(entry.get("before", 0))
    for one in entry["messages"]:
        known = {"calls": one.get("calls", ()), "kept": one.get("kept")}
        messages.append(one["role"], one["content"], one.get("call_id", ""), **known)
    return messages


def read_into(run: Run, entry: Mapping[str, Any]) -> Turn:
    """Set a new Run to where a written one was, and return the turn it waits in."""
    run.turn = entry["turn_id"]
    run.step, run.faults = entry["step"], entry["faults"]
    run.budget.steps_taken, run.budget.calls_taken = entry.get("budget", (run.step, len(entry["calls"])))
    run.usage = Usage(**entry["usage"])
    run.calls = [_read(record) for record in entry["calls"]]
    run.seen = {digest: _read(record) for digest, record in entry["seen"].items()}
    run.repeated = dict(entry["repeated"])
    run.dialect = DIALECTS[entry["dialect"]]
    run.must_answer, run.avoided = entry["must_answer"], set(entry["avoided"])
    turn = entry["turn"]
    records = [_read(record) for record in turn["records"]]
    errors = [(id, fault) for id, fault in turn["errors"]]
    return Turn(records, set(turn["old"]), errors, turn["text"], turn["finish"])


def _written(record: CallRecord) -> dict[str, Any]:
    shown = None if record.shown is None else str(record.shown)
    names = {"key": record.key, "call_id": record.call_id}
    return {"form": str(record.form), "shown": shown, **names, "result": record.result.to_json()}


def _read(data: Mapping[str, Any]) -> CallRecord:
    result = ToolResult(**{**data["result"], "side_effects": tuple(data["result"]["side_effects"])})
    shown = None if data["shown"] is None else read_form(data["shown"])
    return CallRecord(read_form(data["form"]), result, shown, data["key"], data["call_id"])


def written_form(form: CallForm) -> str | dict[str, Any]:
    """A form as JSON data. A program is kept as it was written: it may be several forms, with comments."""
    if not form.positional and all(isinstance(value, Code) for value in form.args.values()):
        return {"tool": form.tool, "code": {name: str(value) for name, value in form.args.items()}}
    return str(form)


def read_form(data: str | Mapping[str, Any]) -> CallForm:
    """The form that was written down."""
    if isinstance(data, str):
        return from_model(read_one(data))
    return CallForm(data["tool"], {name: Code(text) for name, text in data["code"].items()})
