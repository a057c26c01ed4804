"""The crash harness: a run that is ended at every labelled point of its steps, and gone on with in new
processes until it is done; then it must be as if nothing had happened.

    python tests/vocabulary/crash.py --all        kill at each point of the run, and print a table
    python tests/vocabulary/crash.py --every 9    at each ninth point
        --how kill|talk|power|full|int|int2       kill -9, of a conversation too, power cut, full disk, Ctrl-C
        --sessions 3                              so many sessions at once in the process, on one store
        --processes 2                             and so many processes, of which the first is ended

One process imports everything and forks a child for each life of a session. The points are found by hooks
around the real functions, here and nowhere in the product: a counter is raised at each, and the child ends
itself at the wanted one. What a child has announced is in a file, so that it outlives the child.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]
os.environ["QUOTH_INSIDE"] = ""

import disks  # noqa: E402
from forkserver import import_all  # noqa: E402
from sentences import COULD_NOT_BE_WRITTEN, IT_WRITES_FILES, NOTHING_WAITS_IN_SESSION  # noqa: E402
from words import grouped  # noqa: E402

from quoth.agent.cli import common  # noqa: E402
from quoth.agent.cli import main as cli  # noqa: E402
from quoth.agent.client import AsyncAgent  # noqa: E402
from quoth.agent.events import AgentEvent  # noqa: E402
from quoth.agent.reply import Reply  # noqa: E402
from quoth.agent.run.observation import BEGUN, NOT_MADE  # noqa: E402
from quoth.agent.run.recorder import RecordedDoor  # noqa: E402
from quoth.agent.run.runs import Runs  # noqa: E402
from quoth.agent.session.session import Session  # noqa: E402
from quoth.neuro.backends.base import Completion, Usage  # noqa: E402
from quoth.neuro.backends.messages import Messages  # noqa: E402
from quoth.neuro.backends.select import ScriptedBackend  # noqa: E402
from quoth.tools.consent.requests import Decision  # noqa: E402
from quoth.tools.errors import QuothError, ToolError, UsageError  # noqa: E402
from quoth.tools.history import receipts as receipts_module  # noqa: E402
from quoth.tools.history.audit import StoreAudit  # noqa: E402
from quoth.tools.history.transcript import Transcript  # noqa: E402
from quoth.tools.loading import load_tools  # noqa: E402
from quoth.tools.registry.define import define_tool, registering_in  # noqa: E402
from quoth.tools.registry.table import CognitiveTool, ToolTable  # noqa: E402
from quoth.tools.storage import database as store_module  # noqa: E402
from quoth.tools.storage import log_sync  # noqa: E402
from quoth.tools.storage.database import Store  # noqa: E402
from quoth.tools.storage.log_sync import LogSync  # noqa: E402
from quoth.tools.storage.paths import store_path  # noqa: E402

SESSION, USER = "s", "ann"
LIFE_SECONDS = 60
MAX_LIVES = 14
NEEDED = "begun"  # a question with this word in its reason is about a call that may have been done


# * The points


class Points:
    """Counts the points of this process and does ``act`` at those wanted."""

    def __init__(self) -> None:
        self.count = 0
        self.wanted: frozenset[int] = frozenset()
        self.act: Callable[[], None] = lambda: None
        self.labels: list[str] | None = None
        self.only = ""  # the points of this kind alone
        self._turns = threading.Lock()  # the log is synced in a thread

    def reached(self, label: str) -> None:
        if self.only and not label.startswith(self.only):
            return
        with self._turns:
            self.count += 1
            here = self.count in self.wanted
            if self.labels is not None:
                self.labels.append(label)
        if here:
            announce(at=label)
            self.act()


POINTS = Points()
HERE: ContextVar[Place | None] = ContextVar("HERE", default=None)  # the session whose turn it is
FIRST: list[Place] = []  # that of this process, for threads which serve all


def announce(**what: Any) -> None:
    """Say something that outlives this process."""
    if place := HERE.get() or (FIRST[0] if FIRST else None):
        _append(place.told, json.dumps(what))


def _append(path: Path, line: str, sync: bool = False) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
        if sync:
            os.fsync(file)
    finally:
        os.close(file)


VFS: list[str] = []  # the file layer that stores are opened with, if not the usual one
_WRITES = re.compile(r"(INSERT|UPDATE|DELETE)\b(?: OR REPLACE)?(?: INTO| FROM)? (\w+)")


class WatchedConnection(apsw.Connection):
    """A connection with a point after each statement that changes something, and around each commit."""

    def __init__(self, path: str) -> None:
        super().__init__(path, **({"vfs": VFS[0]} if VFS else {}))
        self.changed: list[str] = []

    def execute(self, sql: str, values: Any = None, *more: Any, **named: Any) -> Any:
        sql = sql.strip()
        if sql.startswith("COMMIT"):
            what = " + ".join(dict.fromkeys(self.changed))
            if what:
                POINTS.reached(f"before the commit of {what}")
            made = super().execute(sql, values, *more, **named)
            self.changed = []
            if what:
                POINTS.reached(f"after the commit of {what}")
            return made
        if sql.startswith(("BEGIN", "ROLLBACK")):
            self.changed = []
        found = _WRITES.match(sql)
        if found is None:
            return super().execute(sql, values, *more, **named)
        what = f"{found[1].lower()} {found[2]}" if found[1] != "INSERT" else found[2]
        if what == "events":
            what = f"the {values[4]} event"
        elif what == "receipts":
            what = f"receipt row {values[9] or 'without an answer'}"
        if not self.in_transaction:
            POINTS.reached(f"before {what}")
        made = super().execute(sql, values, *more, **named)
        if self.in_transaction:
            self.changed.append(what)
        POINTS.reached(f"{'within a transaction, after' if self.in_transaction else 'after'} {what}")
        return made

    def close(self, force: bool = False) -> None:
        """SQLite itself minds no error of the tidying up at the end; a file layer in Python is heard."""
        with contextlib.suppress(apsw.FullError):
            super().close(force)


def hook() -> None:
    """Put points around the real functions of this process."""
    store_module.apsw.Connection = WatchedConnection  # type: ignore[misc]

    def around(owner: Any, name: str, label: str) -> None:
        real = getattr(owner, name)

        async def hooked(self: Any, *args: Any, **named: Any) -> Any:
            POINTS.reached(f"before {label}")
            made = await real(self, *args, **named)
            POINTS.reached(f"after {label}")
            return made

        setattr(owner, name, hooked)

    def between(owner: Any, name: str, label: str) -> None:
        real = getattr(owner, name)

        def hooked(self: Any, *args: Any) -> Any:
            POINTS.reached(f"before {label}")
            made = real(self, *args)
            POINTS.reached(f"after {label}")
            return made

        setattr(owner, name, hooked)

    around(RecordedDoor, "dispatch", "the passage of a call")
    around(Runs, "_again", "a run is gone on with")
    around(LogSync, "wait", "the disk is waited for")
    between(LogSync, "_sync", "a sync for all who wait")
    between(LogSync, "_tell", "one who waits is told")
    real = Session.driven

    @contextlib.contextmanager
    def driven(self: Session) -> Iterator[None]:
        with real(self):
            POINTS.reached("after the lock is taken")
            yield
            POINTS.reached("before the lock is let go")

    Session.driven = driven  # type: ignore[method-assign]


# * The story


@cache
def actors() -> list[CognitiveTool]:
    """Tools that count their runs: a line for each, with its own text, on disk before they return."""

    def acting(answer: Callable[[str], str]) -> Callable[..., Any]:
        async def body(text: str) -> str:
            POINTS.reached("in the body, before the effect")
            place = HERE.get()
            assert place is not None
            _append(place.effects, text.replace(" ", "-"), sync=True)
            POINTS.reached("in the body, after the effect")
            return answer(text)

        return body

    def fails(text: str) -> str:
        raise ToolError(f"No {text}.")

    text = {"text": {"type": str}}
    with registering_in(ToolTable()):
        return [
            define_tool(
                name,
                "A tool of the story.",
                parameters=text,
                body=acting(answer),
                effects=[effect],
                **more,
            )
            for name, effect, answer, more in (
                ("mark", "writes", lambda text: f"marked {text}", {}),
                ("sign", "writes", lambda text: f"signed {text}", {}),
                ("scarce", "writes", lambda text: f"used {text}", {"daily_limit": 1}),
                ("fail", "writes", fails, {}),
            )
        ] + [define_tool("peek", "A tool that reads.", parameters=text, body=_peek, effects=["reads"])]


async def _peek(text: str) -> str:
    POINTS.reached("in the body of a read")
    return f"seen {text}"


POLICY = "(allow (mark)) (allow (scarce)) (allow (fail))\n"
LINES = {
    "Lead.": [
        '(peek :text "a")\n(mark :text "one")',
        '(eval (do (setv n 1) (mark :text "p1") (peek :text "b") (mark :text "p2")))',
        '(eval (do (setv n (+ n 1)) (mark :text "p3") n))',
        '(cognitive-loop :task "Help.")',
        '(sign :text "deed")\n(scarce :text "last")',
        "(mark :text",
        '(fail :text "luck")',
        '(eval (do (sign :text "in a program") (mark :text "p4") n))',
        "All is done.",
    ],
    "Help.": ['(mark :text "h1")', '(peek :text "c")\n(mark :text "h2")', "Helped."],
}
# What each of several sessions at once has to say.
SHORT: dict[str, list[Any]] = {
    "Lead.": [
        '(peek :text "a")\n(mark :text "one")',
        '(mark :text "two")\n(fail :text "luck")',
        '(mark :text "three")',
        "All is done.",
    ]
}
COST = Usage(input_tokens=10, output_tokens=1)


def _native(*calls: tuple[str, str]) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": {"text": text}} for name, text in calls]}


# A conversation with native calls, which may be broken off, and then goes on with other words.
TALK: dict[str, list[Any]] = {
    "Lead.": [
        _native(("peek", "a"), ("mark", "one")),
        _native(("mark", "two"), ("fail", "luck"), ("peek", "b")),
        _native(("sign", "deed"), ("mark", "three")),
        "It waits.",
    ]
}


def model(lines: dict[str, list[Any]] = LINES) -> ScriptedBackend:
    """A model that says its lines to whoever has the task, and tells what it was shown."""

    def reply(messages: Messages) -> Completion | dict[str, Any]:
        asked = [message["content"] for message in messages if message["role"] == "user"]
        task = asked[0]
        announce(
            shown=[{**m, "content": m["content"].replace("\n(0 of 1 left today)", "")} for m in messages]
        )
        said = sum(message["role"] == "assistant" for message in messages)
        POINTS.reached("before the model answers")
        line = "It goes on." if asked[-1] == "Go on." else lines[task][said]
        if not isinstance(line, str):
            POINTS.reached("after the model has answered, before that is written")
            return line
        completion = Completion(line, COST)
        POINTS.reached("after the model has answered, before that is written")
        return completion

    return ScriptedBackend(reply)


def listener(event: AgentEvent) -> None:
    """Announces what a person was told."""
    if event.kind == "result":
        POINTS.reached("before a result is told")
        result = event.data.result
        announce(result=result.id, status=result.status, value=result.value)
        POINTS.reached("after a result was told")
    elif event.kind == "thought":
        announce(thought=event.data.text)
        POINTS.reached("after a reply was told")
    elif event.kind == "end" and isinstance(event.data, Reply):
        POINTS.reached("before an end is told")
        announce(end=event.data.text, status=event.data.status)


# * A life: one process that drives the session


@dataclass
class Place:
    """Where a session lives, and what has been announced of it so far."""

    folder: Path
    session: str = SESSION
    lines: dict[str, list[Any]] = field(default_factory=lambda: LINES)
    effects: Path = field(init=False)
    told: Path = field(init=False)

    def __post_init__(self) -> None:
        self.effects, self.told = (self.folder / f"{name}-{self.session}" for name in ("effects", "told"))
        self.work = self.folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        (self.folder / "p.hy").write_text(POLICY)

    def enter(self) -> None:
        """Make this process one of this place."""
        os.environ["QUOTH_STATE"] = str(self.folder / "state")
        os.environ["QUOTH_CONFIG"] = str(self.folder / "config")
        HERE.set(self)

    def agent(self, **more: Any) -> AsyncAgent:
        given = {"workspace": self.work, "session": self.session, "user": USER, "tools": actors()}
        given |= {"model": model(self.lines), "policy": self.folder / "p.hy", "on_event": listener}
        return AsyncAgent(**grouped(**(given | more)))

    def heard(self, what: str) -> list[dict[str, Any]]:
        lines = self.told.read_text().splitlines() if self.told.exists() else []
        return [line for line in map(json.loads, lines) if what in line]

    @property
    def done(self) -> list[str]:
        return self.effects.read_text().split() if self.effects.exists() else []

    @contextlib.contextmanager
    def store(self) -> Iterator[Store]:
        self.enter()
        opened = Store(store_path(self.work))
        try:
            yield opened
        finally:
            opened.close()


async def _run(place: Place) -> None:
    async with place.agent() as agent:
        reply = await agent.run("Lead.")
        announce(reply=reply.text, status=reply.status)


async def _say(place: Place, words: str) -> None:
    async with place.agent(model=model(TALK), dialect="native", consent="yes") as agent:
        reply = await agent.say(words)
        announce(reply=reply.text, status=reply.status)


def _begun(events: list[Any], key: str) -> bool:
    """Whether a body of the call with that key has begun, and how it ended is not known."""
    ends = {event.parent: event for event in events if event.kind == "receipt"}
    calls = [event.seq for event in events if event.kind == "call" and event.key == key]
    return any(
        seq not in ends or (ends[seq].status == "cancelled" and "stage" not in ends[seq].data)
        for seq in calls
    )


async def _go_on(place: Place, kind: str) -> None:
    """Decide what is asked, and resume; where the session never began, begin it."""
    async with place.agent() as agent:
        events = list(agent.transcript.events(place.session))
        if not any(event.kind == "stimulus" for event in events):
            announce(anew=True)
            reply = await agent.run("Lead.")
            announce(reply=reply.text, status=reply.status)
            return
        for request in agent.broker.requests():
            if request.session != place.session:
                continue
            text = effect_of(request.form)
            key = next((e.key for e in events if e.kind == "call" and effect_of(e.data["form"]) == text), "")
            begun = _begun(events, key)
            announce(asked=request.id, of=text, reason=request.reason, begun=begun, said=kind)
            POINTS.reached("before a person decides")
            agent.broker.decide(request.id, Decision(kind, USER))  # type: ignore[arg-type]
            POINTS.reached("after a person has decided")
        try:
            for done in await agent.resume():
                assert isinstance(done, Reply)
                announce(reply=done.text, status=done.status)
        except UsageError as error:
            announce(refused=str(error))


def effect_of(form: Any) -> str:
    """The text of a call of the story, as it is in the file of effects; programs have none."""
    found = re.fullmatch(r'\(\w+ :text "([^"]*)"\)', str(form))
    return found[1].replace(" ", "-") if found else ""


def _by_command(place: Place) -> int:
    """The same run by the command, which Ctrl-C reaches as in a terminal."""
    common.agent_of = lambda options, **more: place.agent()
    return cli.main(["run", "Lead.", "--session", SESSION, "--no-input", "--no-stdin"])


@dataclass
class Life:
    """How one process is to end."""

    at: frozenset[int] = frozenset()
    how: str = "kill"
    seed: int = 0
    labels: bool = False
    kind: str = "once"


def live(places: list[Place], life: Life, first: bool) -> int:
    """One life of these sessions, in a process of its own; its exit code."""
    return _ended(_born(places, life, first))


def _ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _born(places: list[Place], life: Life, first: bool) -> int:
    if pid := os.fork():
        return pid
    code = 99
    try:
        signal.alarm(LIFE_SECONDS)
        FIRST[:] = places[:1]
        places[0].enter()
        out = os.open(places[0].folder / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(out, 1)
        os.dup2(out, 2)
        code = _lived(places, life, first)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _lived(places: list[Place], life: Life, first: bool) -> int:
    POINTS.wanted = life.at
    POINTS.act = lambda: os.kill(os.getpid(), signal.SIGKILL)
    full = None
    if life.how == "power":
        POINTS.only = "on the disk"
        disk = disks.ForgetfulDisk("forgetful", POINTS.reached)
        POINTS.act = lambda: disk.cut(random.Random(life.seed))
        VFS[:] = ["forgetful"]
        if not BROKEN:
            log_sync.sync_file = disk.sync
    elif life.how == "full":
        POINTS.only = "none"
        full = disks.FullDisk("full")
        full.room = min(life.at) - 1 if life.at else None
        VFS[:] = ["full"]
    elif life.how.startswith("int"):
        POINTS.act = lambda: os.kill(os.getpid(), signal.SIGINT)
    POINTS.labels = [] if life.labels else None
    if life.how.startswith("int"):
        code = _by_command(places[0]) if first else asyncio.run(_go_on(places[0], life.kind)) or 0
    else:
        asyncio.run(_all_at_once(places, life, first))
        code = 0
    if full is not None:
        announce(writes=full.written, refused=full.refused)
    if life.labels:
        announce(labels=POINTS.labels)
    return code


async def _all_at_once(places: list[Place], life: Life, first: bool) -> None:
    async def one(place: Place) -> None:
        HERE.set(place)
        try:
            if life.how == "talk":
                await _say(place, "Lead." if first else "Go on.")
            else:
                await (_run(place) if first else _go_on(place, life.kind))
        except QuothError as error:
            announce(sentence=str(error))

    await asyncio.gather(*map(one, places))


# * What must be so in the end


@dataclass
class Ending:
    """What a session has come to."""

    status: str
    text: str
    steps: int
    talks: dict[str, list[Any]]  # what was said, by run
    results: dict[str, tuple[str, Any]]  # of the calls that did something, by key
    effects: Counter[str]


def ending(place: Place) -> tuple[Ending, list[str]]:
    """What has become of the session, and what is wrong with its records."""
    wrong: list[str] = []
    with place.store() as store:
        transcript = Transcript(lambda: store)
        session = Session(transcript, place.session, USER, Path())
        try:
            transcript.verify(place.session)
        except UsageError as error:
            wrong.append(str(error))
        wrong += [str(fault) for fault in StoreAudit(lambda: store).verify().faults]
        events = list(transcript.events(place.session))
        ends = [event for event in events if event.kind == "end" and event.run == "r1"]
        tools, ids = {}, set()
        results: dict[str, tuple[str, Any]] = {}
        finished: Counter[str] = Counter()
        for event in events:
            if event.kind == "call":
                tools[event.key] = str(event.data["form"]).split()[0].strip("(){}:\"'")
            elif event.kind in ("receipt", "fault"):
                ids.add(event.data["id"])
            if event.kind == "receipt" and event.status not in ("pending", "cancelled"):
                if event.data.get("stage") == "receipt":
                    continue  # answered by the one before it
                results[event.key] = (event.status, event.data.get("value"))
                finished[event.key] += 1
        reads = {key for key, name in tools.items() if name == "peek"}
        wrong += [f"{key} has {n} receipts" for key, n in finished.items() if n > 1 and key not in reads]
        rows = Counter(
            key
            for key, status in store.execute("SELECT key, status FROM receipts")
            if status not in ("", "begun")
            and key.startswith(f"{place.session}/")
            and key.removeprefix(f"{place.session}/") not in reads
        )
        wrong += [f"{key} has {n} receipt rows" for key, n in rows.items() if n > 1]
        noted = {row["id"]: row for row in StoreAudit(lambda: store).select(session=place.session)}
        apart = {name for name in noted.keys() ^ ids if name not in noted or not _is_apart(noted[name])}
        if apart:
            wrong.append(f"audit and transcript differ: {sorted(apart)}")
        runs = {event.run for event in events if event.kind == "stimulus"}
        talks = {run: session.conversation(run) for run in runs}
        for message in (message for talk in talks.values() for message in talk):
            message["content"] = message["content"].replace("\n(0 of 1 left today)", "")  # said once
        if unfinished := session.unfinished():
            wrong.append(f"unfinished: {[(one.name, one.status) for one in unfinished]}")
        wrong += _forgotten(place, events, talks)
    end = ends[-1].data if ends else {"status": "none", "text": "", "steps": 0}
    results = {key: value for key, value in results.items() if key not in reads}
    return Ending(end["status"], end["text"], end["steps"], talks, results, Counter(place.done)), wrong


def _forgotten(place: Place, events: list[Any], talks: dict[str, list[Any]]) -> list[str]:
    """What was acknowledged in any life and is not there."""
    receipts = {e.data["id"]: e.data for e in events if e.kind == "receipt"}
    said = {e.data.get("text") for e in events if e.kind == "reply"}
    lost = []
    for told in place.heard("result"):
        kept = receipts.get(told["result"])
        # A full disk: what could not be written down is told as an error, and is no receipt.
        if kept is None and COULD_NOT_BE_WRITTEN not in json.dumps(told) and not _unwritten(told):
            lost.append(f"the result {told['result']} was told and is not there")
        elif kept is not None and (kept["status"], kept.get("value")) != (told["status"], told["value"]):
            lost.append(f"the result {told['result']} was told otherwise")
    lost += [
        f"the reply {t['thought']!r} was told" for t in place.heard("thought") if t["thought"] not in said
    ]
    lost += [
        f"the end {told['reply']!r} was told"
        for told in place.heard("reply")
        if told["status"] == "done" and told["reply"] not in said
    ]
    whole = list(talks.values())
    for told in place.heard("shown"):
        if not any(talk[: len(told["shown"])] == told["shown"] for talk in whole):
            lost.append(f"the model was shown what the conversation has not: {told['shown'][-1]}")
    return lost


def _is_apart(row: dict[str, Any]) -> bool:
    """Whether the audit alone tells of it: a decision."""
    return bool(row["stage"] == "consent")


def _unwritten(told: dict[str, Any]) -> bool:
    return bool(told["status"] == "error" and told["value"] is None)


def differences(place: Place, model_ending: Ending, how: str) -> list[str]:
    """How the session has come out otherwise than the unbroken one, and what was asked in vain."""
    found, wrong = ending(place)
    asked = {told["asked"]: told for told in place.heard("asked")}
    denied = {told["of"] for told in asked.values() if told["said"] == "deny"}
    again = Counter[str]()
    for told in asked.values():
        needed = told["reason"].startswith(IT_WRITES_FILES)
        if not needed and not told["begun"]:
            wrong.append(f"asked about {told['of']}, which was not begun: {told['reason']}")
        again[told["of"]] += told["said"] == "once" and NEEDED in told["reason"]
    for text in model_ending.effects | found.effects:
        count = found.effects[text]
        if count > 1 + again[text]:
            wrong.append(f"{text} was done {count} times, and allowed again {again[text]} times")
        if count < 1 and not denied:
            wrong.append(f"{text} was never done")
    if denied:
        return wrong
    for name in ("status", "text", "steps", "talks", "results"):
        if (ours := getattr(found, name)) != (theirs := getattr(model_ending, name)):
            wrong.append(f"{name} is {_brief(ours, theirs)}")
    return wrong


def unpaired(place: Place) -> list[str]:
    """What is wrong with a conversation that was broken off and went on with other words."""
    wrong = []
    with place.store() as store:
        transcript = Transcript(lambda: store)
        transcript.verify(place.session)
        events = list(transcript.events(place.session))
        begun = {e.key for e in events if e.kind == "call"}
    shown = [told["shown"] for told in place.heard("shown")]
    last, done = shown[-1], Counter(place.done)
    for before, after in pairwise(shown):
        if after[: len(before)] != before:
            wrong.append(f"what was shown is not what went before: {before[-1]}")
    told = {told["result"]: told for told in place.heard("result")}
    kept = {e.data["id"]: e for e in events if e.kind == "receipt"}
    wrong += [f"the result {name} was told and is not there" for name in told.keys() - kept.keys()]
    wanted: list[tuple[str, str, str]] = []
    step = 0
    for message in last:
        if message["role"] == "tool":
            if not wanted or wanted[0][0] != message["call_id"]:
                wrong.append(f"there is no call for {message}")
                continue
            _, key, form = wanted.pop(0)
            result = next((e for e in reversed(events) if e.kind == "receipt" and e.key == key), None)
            text, content = effect_of(form), message["content"]
            if result is None or result.status == "cancelled":
                said = BEGUN if key in begun else NOT_MADE
                if content != f"{form} -> cancelled: {said}":
                    wrong.append(f"{key} has no result, and it was said: {content}")
                if said == NOT_MADE and done[text]:
                    wrong.append(f"{text} was done, and it was said that it was not")
            elif not content.startswith(f"{form} -> {result.status}"):
                wrong.append(f"{key} has the result {result.status}, and it was said: {content}")
        elif wanted:
            wrong.append(f"{wanted} have no result before {message}")
            wanted = []
        if message["role"] == "assistant":
            step += 1
            wanted = [
                (
                    call["id"],
                    f"r1/{step}.{place}",
                    f'({call["name"]} :text "{json.loads(call["arguments"])["text"]}")',
                )
                for place, call in enumerate(message.get("calls", ()))
            ]
    if wanted:
        wrong.append(f"{wanted} have no result")
    wrong += [f"{text} was done {count} times" for text, count in done.items() if count > 1]
    if last[0]["role"] != "system":
        wrong.append(f"the first words were {last[0]}")
    if last[-1]["content"] != "Go on.":
        wrong.append(f"the last words were {last[-1]}")
    return wrong


def _brief(ours: Any, theirs: Any) -> str:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        parts = {
            k: (ours.get(k), theirs.get(k))
            for k in ours.keys() | theirs.keys()
            if ours.get(k) != theirs.get(k)
        }
        for key, (one, other) in parts.items():
            if isinstance(one, list) and isinstance(other, list):
                at = next(
                    (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
                    min(len(one), len(other)),
                )
                return (
                    f"{key}[{at}] {one[at : at + 1]} and not {other[at : at + 1]} ({len(one)}, {len(other)})"
                )
        return str(parts)[:600]
    return f"{ours!r} and not {theirs!r}"


# * The whole


@dataclass
class Case:
    """One session that was ended at ``point`` of its first life, and more often after that."""

    point: int
    label: str = ""
    deaths: int = 0
    lives: int = 0
    questions: int = 0
    said: str = ""  # to the person, by the first life
    wrong: list[str] = field(default_factory=list)


class Harness:
    """All sessions of one way to end: a process has so many of them at once, and so many processes write to
    one store, of which the first is ended. ``root`` is a folder that is emptied again."""

    def __init__(
        self, root: Path, how: str = "kill", seed: int = 1, sessions: int = 1, processes: int = 1
    ) -> None:
        self.root, self.how, self.seed = root, how, seed
        self.sessions, self.processes = sessions, processes
        groups = self._groups("unbroken")
        places = [place for group in groups for place in group]
        codes = self._lives(groups, Life(how=how, labels=True))
        if how == "talk":
            self.labels = places[0].heard("labels")[0]["labels"]
            return
        while not all(map(self._done, places)):
            codes.append(live([place for place in places if not self._done(place)], Life(), False))
            if len(codes) > processes + 4 or any(codes[1:]):
                raise SystemExit(f"The unbroken run does not end: {codes}\n{self._out(places)}")
        self.unbroken = {}
        for place in places:
            self.unbroken[place.session], wrong = ending(place)
            if wrong:
                raise SystemExit(f"The unbroken run is wrong: {wrong}")
        if how == "full":
            self.labels = ["a write"] * places[0].heard("writes")[0]["writes"]
        else:
            self.labels = places[0].heard("labels")[0]["labels"]

    def _groups(self, name: str) -> list[list[Place]]:
        """The sessions of each process."""
        if self.sessions == self.processes == 1:
            return [[Place(self.root / name)]]
        return [
            [Place(self.root / name, f"{SESSION}{process}{n}", SHORT) for n in range(self.sessions)]
            for process in range(self.processes)
        ]

    def _lives(self, groups: list[list[Place]], life: Life) -> list[int]:
        """The first lives of all processes; only the first ends as it is told."""
        others = [_born(group, Life(how=self.how), True) for group in groups[1:]]
        return [live(groups[0], life, True), *map(_ended, others)]

    def case(self, point: int) -> Case:
        """End a first life at ``point``, and later ones at points of a seeded choice; then see it through."""
        chance = random.Random(f"{self.seed} {self.how} {point}")
        case = Case(point, self.labels[point - 1])
        groups = self._groups(f"{self.how}-{point}")
        places = [place for group in groups for place in group]
        kind = "deny" if chance.random() < 0.15 else "once"
        at = {point} | ({point + chance.choice((1, 2, 5, 9))} if self.how == "int2" else set())
        code, *others = self._lives(groups, Life(frozenset(at), self.how, chance.random().__hash__()))
        case.deaths += code < 0
        allowed = {"kill": {-9}, "talk": {-9}, "power": {-9}, "full": {0}}.get(
            self.how, {130, 3}
        )  # 3: it came as the run ended
        if self.sessions > 1 or self.processes > 1:
            allowed |= {0}  # they take turns, and not always the same: it may have been over before
            case.label = next((told["at"] for told in places[0].heard("at")), case.label)
        if code not in allowed:
            case.wrong.append(f"the first life ended with {code}: {self._out(places)}")
        undone = [place.session for group in groups[1:] for place in group if not self._done(place)]
        if any(others) or undone:
            case.wrong.append(f"the other processes ended with {others} before {undone}: {self._out(places)}")
        said = [t.get("sentence") or t["reply"] for t in places[0].heard("status") if "reply" in t]
        said += [told["sentence"] for place in places for told in place.heard("sentence")]
        case.said = said[-1] if said else ""
        again = 0 if self.how == "full" else chance.choice((0, 0, 1, 2, 3))
        while case.lives < MAX_LIVES and self.how != "talk":
            left = [place for place in places if not self._over(place)]
            if not left:
                break
            case.lives += 1
            life = Life(kind=kind)
            if again:
                again -= 1
                how = "kill" if self.how.startswith("int") else self.how
                life = Life(frozenset({chance.randrange(1, 90)}), how, chance.random().__hash__(), kind=kind)
            code = live(left, life, False)
            case.deaths += code < 0
            if code not in (0, -9):
                case.wrong.append(f"a later life ended with {code}: {self._out(places)}")
                break
        if self.how == "talk":
            case.deaths += live(places, Life(frozenset({chance.randrange(1, 30)}), "talk"), False) < 0
            case.lives += 2
            if (code := live(places, Life(how="talk"), False)) != 0:
                case.wrong.append(f"the last life ended with {code}")
        case.questions = len({told["asked"] for place in places for told in place.heard("asked")})
        try:
            for place in places:
                case.wrong += (
                    unpaired(place)
                    if self.how == "talk"
                    else differences(place, self.unbroken[place.session], self.how)
                )
            if "Traceback" in self._out(places):
                case.wrong.append(self._out(places))
        except Exception:
            case.wrong.append(traceback.format_exc())
        if not case.wrong:
            shutil.rmtree(places[0].folder)
        return case

    def _out(self, places: list[Place]) -> str:
        out = places[0].folder / "out"
        return out.read_text()[-1500:] if out.exists() else ""

    def _done(self, place: Place) -> bool:
        return any(told["status"] == "done" for told in place.heard("reply"))

    def _over(self, place: Place) -> bool:
        if self.how != "full" and self._done(place):
            return True
        refused = place.heard("refused")  # it had ended, and only its word was lost
        return bool(refused) and refused[-1]["refused"] == f"{NOTHING_WAITS_IN_SESSION} {place.session}."


def warm_up() -> None:
    """Do once what every life would begin with. No sandbox is started: it does not outlive a fork."""
    import_all()
    import_module("quoth.tools.builtin")
    for tool in load_tools(actors(), None):
        tool.describe()
        tool.check  # noqa: B018  what it makes is kept
    store = Store(":memory:")
    store.close()
    gc.collect()
    gc.freeze()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--every", type=int, default=0)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--how", default="kill", choices=("kill", "talk", "power", "full", "int", "int2"))
    parser.add_argument("--sessions", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--point", type=int, default=0)
    parser.add_argument("--label", default="", help="only the points with this in their label")
    parser.add_argument("--broken", default="", choices=("", *BREAKS, *BREAKS_LATER))
    parser.add_argument("--until", default="", help="stop once this pattern fits something wrong")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--serve", action="store_true", help="answer lines of such options, each in a fork")
    options = parser.parse_args()
    warm_up()
    if not options.serve:
        return explore(options)
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            explore(parser.parse_args([*line.split("\t")[:-1], "--json"]))
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            print("null", flush=True)
    return 0


def explore(options: argparse.Namespace) -> int:
    """End sessions in one way at some of the points, and say what came of it."""
    hook()
    if options.broken in BREAKS:
        BREAKS[options.broken]()
    root = Path(
        tempfile.mkdtemp(prefix="quoth-crash-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    )
    started = time.monotonic()
    try:
        harness = Harness(root, options.how, options.seed, options.sessions, options.processes)
        if options.broken in BREAKS_LATER:
            BREAKS_LATER[options.broken]()
        points = [n for n, label in enumerate(harness.labels, 1) if options.label in label]
        points = points[options.first - 1 :: options.every or 1]
        if options.point:
            points = [options.point]
        cases = []
        for point in points:
            cases.append(harness.case(point))
            if cases[-1].wrong and not options.json:
                print(f"{point} {cases[-1].label}:", *cases[-1].wrong, sep="\n    ", flush=True)
            if options.until and any(re.search(options.until, what) for what in cases[-1].wrong):
                break
    finally:
        if not options.keep:
            shutil.rmtree(root, ignore_errors=True)
    if options.json:
        print(json.dumps({"points": len(harness.labels), "cases": [vars(case) for case in cases]}))
    else:
        report(cases, len(harness.labels), time.monotonic() - started)
    return 1 if any(case.wrong for case in cases) else 0


def report(cases: list[Case], points: int, seconds: float) -> None:
    """What was done and what came of it, by label."""
    table: dict[str, list[Case]] = {}
    for case in cases:
        table.setdefault(case.label, []).append(case)
    width = max(map(len, table))
    print(f"{'label':<{width}}  cases  ends  lives  asked  wrong")
    for label, found in sorted(table.items()):
        print(
            f"{label:<{width}}  {len(found):5}  {sum(c.deaths for c in found):4}"
            f"  {sum(c.lives for c in found):5}  {sum(c.questions for c in found):5}"
            f"  {sum(bool(c.wrong) for c in found):5}"
        )
    said = Counter(re.sub(r"/\S+sqlite|request \w{5}", "…", case.said) for case in cases if case.said)
    for sentence, count in said.most_common():
        print(f"{count:5} × {sentence}")
    ends, lives, asked = (sum(getattr(c, name) for c in cases) for name in ("deaths", "lives", "questions"))
    wrong = sum(bool(case.wrong) for case in cases)
    print(f"{len(cases)} sessions at {points} points of {len(table)} labels, {seconds:.0f} s:")
    print("\n| points | sessions | times ended | continued | questions | wrong |\n|---+---+---+---+---+---|")
    print(f"| {points} | {len(cases)} | {ends} | {lives} | {asked} | {wrong} |")


def _break_receipts() -> None:
    """Receipts are written in a transaction of their own, after the result was given."""
    receipts_module.StoreReceipts.begins = lambda self, *given, **more: None  # type: ignore[method-assign]
    receipts_module.StoreReceipts.begun = lambda self, tool, call: False  # type: ignore[method-assign]


def _break_sync() -> None:
    """The store does not wait for the disk."""
    real = WatchedConnection.execute

    def execute(self: Any, sql: str, *more: Any, **named: Any) -> Any:
        return real(self, re.sub("synchronous = (FULL|NORMAL)", "synchronous = OFF", sql), *more, **named)

    WatchedConnection.execute = execute  # type: ignore[method-assign]
    BROKEN.append("sync")


def _break_commit() -> None:
    """What was written is committed with what comes next, and told before."""
    real, closed = WatchedConnection.execute, WatchedConnection.close

    def execute(self: Any, sql: str, *more: Any, **named: Any) -> Any:
        if sql == "COMMIT" and self.changed:
            return iter(())
        if sql.startswith("BEGIN") and self.in_transaction:
            real(self, "COMMIT")
        return real(self, sql, *more, **named)

    def close(self: Any, force: bool = False) -> None:
        if self.in_transaction:
            real(self, "COMMIT")
        closed(self, force)

    WatchedConnection.execute = execute  # type: ignore[method-assign]
    WatchedConnection.close = close  # type: ignore[method-assign]


def _break_full() -> None:
    """That the disk is full is not minded at a commit."""
    real = WatchedConnection.execute

    def execute(self: Any, sql: str, *more: Any, **named: Any) -> Any:
        try:
            return real(self, sql, *more, **named)
        except apsw.FullError:
            if sql != "COMMIT":
                raise
            self.changed = []
            return iter(())

    WatchedConnection.execute = execute  # type: ignore[method-assign]


def _break_known() -> None:
    """That another process has written is not noticed."""
    real = WatchedConnection.execute

    def execute(self: Any, sql: str, *more: Any, **named: Any) -> Any:
        return iter([(0,)]) if sql == "PRAGMA data_version" else real(self, sql, *more, **named)

    WatchedConnection.execute = execute  # type: ignore[method-assign]


BROKEN: list[str] = []
BREAKS: dict[str, Callable[[], None]] = {
    "begun": _break_receipts,
    "sync": _break_sync,
}
# The unbroken run is made before these.
BREAKS_LATER: dict[str, Callable[[], None]] = {
    "commit": _break_commit,
    "full": _break_full,
    "known": _break_known,
}

if __name__ == "__main__":
    sys.exit(main())
