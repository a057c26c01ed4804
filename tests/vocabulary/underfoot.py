"""The harness of what happens to a session or a store at work: while a process stands at one of its points,
another removes, undoes or collects its session, or its store is moved, replaced or removed.

    python tests/vocabulary/underfoot.py             every act and route at 20 moments, of a store at 10
    python tests/vocabulary/underfoot.py --moments 2 --seed 7 --acts rm,moved --routes call,run

Nothing may be lost without a word, the audit must be whole, and what a message says to do must work.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]
os.environ.setdefault("QUOTH_EMBEDDER", "none")

from forkserver import import_all  # noqa: E402
from sentences import IS_BEING_DRIVEN_BY_ANOTHER, THERE_IS_NO_SESSION  # noqa: E402
from servers import redis_server  # noqa: E402

from quoth import Agent  # noqa: E402
from quoth.agent.cli import main as cli  # noqa: E402
from quoth.tools.history.audit import StoreAudit  # noqa: E402
from quoth.tools.history.transcript import Transcript  # noqa: E402
from quoth.tools.storage import file_lock  # noqa: E402
from quoth.tools.storage.database import Store  # noqa: E402
from quoth.tools.storage.paths import SameFile, store_path  # noqa: E402

MARK = """(require quoth [def-cognitive-tool])
(def-cognitive-tool mark "Add a line to a file." :parameters [text {:type str}] :effects [:writes] :timeout 10
  :body (with [file (open "effects" "a")] (.write file (+ text "\\n")) "marked"))
"""
FILES = {
    "mark.hy": MARK,
    "p.hy": "(allow (mark)) (allow (write-file))\n",
    "replies.txt": '(mark :text "1")\n---\n(mark :text "2")\n---\nDone.\n',
    "p.org": "".join(f'* PLAN Mark {n}\n#+begin_src hy\n(mark :text "{n}")\n#+end_src\n' for n in (1, 2)),
}
OURS = ("--policy", "p.hy", "--user", "ann")
TOOLS = ("--tools", "mark.hy", *OURS)
FORMS = '(mark :text "1")\n(mark :text "2")\n'
LINES = json.dumps({"id": 1, "user": "ann", "chat": "7", "text": "Go."}) + "\n"
ROUTES: dict[str, tuple[tuple[str, ...], str, int]] = {  # words, stdin, effects
    "call": (("call", '(mark :text "1")', "--session", "s", *TOOLS), "", 1),
    "eval": (("eval", '(do (mark :text "1") (mark :text "2"))', "--session", "s", *TOOLS), "", 2),
    "run": (("run", "Go.", "--model", "scripted:replies.txt", "--session", "s", *TOOLS), "", 2),
    "fly": (("fly", "p.org", "--session", "s", *TOOLS), "", 2),
    "chat": (("chat", "--gateway", "stdio", "--model", "scripted:replies.txt", *TOOLS), LINES, 1),
    "REPL": (("--session", "s", *TOOLS), FORMS, 2),
    "Agent.call": ((), "", 2),
    "worker": (("call", '(mark :text "1")', "--session", "s", *OURS), "", 1),
}
SESSION_ACTS = ("rm", "undo", "gc")
SAID = ("was moved or removed while it was open", "took the place of")
SECONDS = 60
BROKEN = ""  # "lock" or "file": the product without the one or the other, which the harness must find


class Points:
    """Counts the points of this process, and waits at the wanted one until it may go on."""

    def __init__(self, home: Path, wanted: int) -> None:
        self.home, self.wanted, self.count = home, wanted, 0

    def reached(self, label: str) -> None:
        self.count += 1
        (self.home / "count").write_text(str(self.count))
        if self.count == self.wanted:
            (self.home / "at").write_text(label)
            wait_for(lambda: (self.home / "go").exists())

    def hook(self) -> None:
        """Points before and after each transaction, and each taking and releasing of a lock in use."""
        for owner, names in ((Store, ("_begin", "_end")), (file_lock, ("_taken", "_release"))):
            for name in names:
                setattr(owner, name, self._around(getattr(owner, name), name.strip("_"), owner is Store))

    def _around(self, real: Callable[..., Any], name: str, outermost: bool) -> Callable[..., Any]:
        def hooked(*args: Any, **named: Any) -> Any:
            if not outermost or (name == "begin" and not args[0]._depth):
                self.reached(f"before {name}")
            done = real(*args, **named)
            if not outermost or (name == "end" and not args[0]._depth):
                self.reached(f"after {name}")
            return done

        return hooked


def wait_for(true: Callable[[], Any]) -> None:
    end = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.003)


@dataclass
class Home:
    """A workspace with its state, and what was done and said in it."""

    folder: Path
    redis: str = ""
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.work = self.folder / "work"
        self.work.mkdir(parents=True)
        for name, text in FILES.items():
            (self.work / name).write_text(text)
        self.enter()
        self.store = store_path(self.work)

    def enter(self) -> None:
        for name in ("state", "config"):
            os.environ[f"QUOTH_{name.upper()}"] = str(self.folder / name)

    @property
    def prefix(self) -> str:
        return f"{self.folder.parent.name}-{self.folder.name}"

    @property
    def done(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return len((self.work / "effects").read_text().split())
        return 0

    def recorded(self) -> int:
        """The number of effects that the store at its place now knows: it was opened after the act."""
        self.enter()
        store = Store(self.store)
        try:
            rows = StoreAudit(lambda: store).select(tool="mark", status="ok")
            return len({row["id"].split(".")[0] for row in rows})
        finally:
            store.close()

    def born(
        self, words: tuple[str, ...], stdin: str = "", wanted: int = 0, later: float = 0.0, name: str = ""
    ) -> int:
        """A command, or without words an agent that makes two calls, in a process of its own: its id."""
        name = name or "act"
        if pid := os.fork():
            return pid
        code = 99
        try:
            signal.alarm(SECONDS)
            self.enter()
            os.chdir(self.work)
            (self.folder / f"{name}.in").write_text(stdin)
            for number, path in enumerate((f"{name}.in", f"{name}.out", f"{name}.err")):
                os.dup2(os.open(self.folder / path, os.O_RDWR | os.O_CREAT | (number and os.O_TRUNC)), number)
            sys.stdin = open(0)  # noqa: SIM115
            sys.stdout, sys.stderr = open(1, "w", 1), open(2, "w", 1)  # noqa: SIM115
            if BROKEN == "file":
                SameFile.lost = lambda self: ""  # type: ignore[method-assign]
            if BROKEN == "lock":
                file_lock._LockFile._locked = lambda *_: True  # type: ignore[method-assign]
            if later:
                real = time.time
                time.time = lambda: real() + later
            if name == "route":
                Points(self.folder, wanted).hook()
            else:
                real_taken = file_lock._taken
                file_lock._taken = lambda s, n, p, seconds, **m: real_taken(s, n, p, min(seconds, 0.05), **m)
            code = cli.main(words) if words else _agent()
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def wait_for_point(self, pid: int) -> None:
        """Wait until the route stands at its point, or the process has ended."""
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        wait_for(lambda: (self.folder / "at").exists() or os.waitid(os.P_PID, pid, how))

    def heard(self, name: str = "act") -> str:
        files = [self.folder / f"{name}.{end}" for end in ("out", "err")]
        return "".join(file.read_text() for file in files if file.exists())

    def run(self, *words: str, later: float = 0.0) -> tuple[int, str]:
        code = ended(self.born(words, later=later))
        return code, self.heard()


def _agent() -> int:
    with Agent(workspace=".", session="s", user="ann", tools=["mark.hy"], policy="p.hy") as agent:
        found = [agent.call(form) for form in FORMS.splitlines()]
    for one in found:
        print(one.message)
    return int(not all(one.ok for one in found))


def ended(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextlib.contextmanager
def worker(home: Home, wanted: int = -1) -> Iterator[int]:
    """A worker with the tools, its own state beside that of its callers."""
    words = (
        "worker",
        "--tools",
        "mark.hy",
        "--redis",
        home.redis,
        "--prefix",
        home.prefix,
        "--policy",
        "p.hy",
    )
    pid = home.born(words, name="route" if wanted >= 0 else "worker", wanted=wanted)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGTERM)
        ended(pid)


# Sessions


def session_case(home: Home, act: str, route: str, wanted: int) -> int:
    """Let a route work to its point, remove its session or the like, and let it go on; the points it has."""
    words, stdin, effects = ROUTES[route]
    session = "chat-7" if route == "chat" else "s"
    write = ("call", '(write-file :path "a.txt" :content "x")', "--session", session, *OURS)
    assert home.run(*write)[0] == 0
    with contextlib.ExitStack() as beside:
        if route == "worker":
            beside.enter_context(worker(home))
            wait_for(lambda: "Started" in home.heard("worker"))
            words = (*words, "--remote", home.redis, "--prefix", home.prefix)
        pid = home.born(words, stdin, wanted, name="route")
        home.wait_for_point(pid)
        code, said = act_on(home, act, session) if wanted else (0, "")
        (home.folder / "go").touch()
        route_code = ended(pid)
        heard = home.heard("route")
    check = home.wrong.append
    if "Traceback" in heard + said:
        check(f"a traceback: {(heard + said)[-300:]}")
    if route_code != 0:
        again_said = "Try again" in heard or "Fly the plan again" in heard
        if not again_said or home.done:
            check(f"{route} ended with {route_code}: {heard[-300:]}")
        again = ended(home.born(words, stdin, -1, name="again")) if route != "worker" else 0
        if again != 0:
            check(f"{route} was told to try again, and ends with {again}: {home.heard('again')[-200:]}")
    elif home.done != effects:
        check(f"{home.done} effects and not {effects}: {heard[-200:]}")
    if wanted and code not in (0, 1, 2):
        check(f"{act} ended with {code}: {said[-200:]}")
    if wanted and code == 2:
        driven = IS_BEING_DRIVEN_BY_ANOTHER in said
        if f"in use by process {pid} (" not in said and not driven and THERE_IS_NO_SESSION not in said:
            check(f"{act} was refused: {said[-200:]}")
        elif act_on(home, act, session)[0] not in (0, 2 if "no session" in said else 0):
            check(f"{act} is told to try again, and is refused: {home.heard()[-200:]}")
    home.enter()
    store = Store(home.store)
    audit = StoreAudit(lambda: store)
    faults = [str(one) for one in audit.verify().faults]
    events = list(Transcript(lambda: store).events(session))
    store.close()
    if faults:
        check(f"the audit: {faults[:2]}")
    if (known := home.recorded()) != home.done:
        check(f"{home.done} effects, and {known} rows of the audit")
    if events and events[0].kind != "session":
        check(f"session {session} is back in half: it begins with {events[0].kind}")
    return int((home.folder / "count").read_text())


def act_on(home: Home, act: str, session: str) -> tuple[int, str]:
    if act == "gc":
        return home.run("gc", "--days", "1", "--yes", later=3 * 86_400.0)
    return home.run(act, session, "--yes", "--user", "ann")


# Stores


def moved(home: Home) -> None:
    (home.folder / "moved").mkdir()
    for file in home.store.parent.glob(f"{home.store.name}*"):
        file.rename(home.folder / "moved" / file.name)


def replaced(home: Home) -> None:
    copy = home.folder / "copy"
    shutil.copyfile(home.store, copy)
    copy.replace(home.store)


def unlinked(home: Home) -> None:
    home.store.unlink()


def folder_removed(home: Home) -> None:
    shutil.rmtree(home.store.parent)


STORE_ACTS: dict[str, Callable[[Home], None]] = {
    one.__name__.replace("_", "-"): one for one in (moved, replaced, unlinked, folder_removed)
}


def store_case(home: Home, act: str, route: str, wanted: int) -> int:
    """The same, and what happens to its store."""
    words, stdin, effects = ROUTES[route]
    assert home.run("call", "(list-files)", "--session", "x", *OURS)[0] == 0
    if route == "worker":
        far = Home(home.folder / "far")
        with worker(home, wanted) as pid:
            wait_for(lambda: "Started" in home.heard("route"))
            place = (
                "--remote",
                home.redis,
                "--prefix",
                home.prefix,
                "--key",
                str(home.folder / "state/catalog.key"),
            )
            asked = far.born((*words, *place), name="again")
            home.wait_for_point(asked)
            before = home.done
            STORE_ACTS[act](home) if wanted else None
            (home.folder / "go").touch()
            code, heard = ended(asked), far.heard("again")
            time.sleep(0.2 if not wanted else 0)
        heard += home.heard("route")
    else:
        pid = home.born(words, stdin, wanted, name="route")
        home.wait_for_point(pid)
        before = home.done
        STORE_ACTS[act](home) if wanted else None
        (home.folder / "go").touch()
        code, heard = ended(pid), home.heard("route")
    check, told = home.wrong.append, any(said in heard for said in SAID)
    if "Traceback" in heard:
        check(f"a traceback: {heard[-400:]}")
    if wanted and home.done > before and not told and home.recorded() < home.done:
        check(f"{home.done - before} effects after it without a word, exit code {code}: {heard[-200:]}")
    if told and home.done > before + 1:
        check(f"it went on for {home.done - before} effects: {heard[-200:]}")
    if told and code == 0 and route not in ("chat", "worker"):
        check(f"exit code 0: {heard[-300:]}")
    if not told and (code or home.done != effects):
        check(f"exit code {code}, {home.done} effects: {heard[-300:]}")
    if (kept := home.folder / "moved" / home.store.name).exists():
        home.enter()
        store = Store(kept)
        audit = StoreAudit(lambda: store)
        rows = {row["id"] for row in audit.select() if row["tool"] == "mark"}
        if len(rows) < before - 1 or audit.verify().faults:
            check(f"the moved store has {len(rows)} of {before} effects; {audit.verify().faults[:2]}")
        store.close()
    next_code, said = home.run("call", "(list-files)", "--session", "y", *OURS)
    if next_code != 0 and "damaged" not in said:
        check(f"the next call ends with {next_code}: {said[-200:]}")
    return int((home.folder / "count").read_text())


def cases(
    acts: list[str], routes: list[str], moments: int, seed: int, redis: str
) -> Iterator[tuple[str, list[str]]]:
    """Each case and what was wrong in it."""
    place, chance = (
        Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None)),
        random.Random(seed),
    )
    number = 0
    try:
        for act in acts:
            try_one = session_case if act in SESSION_ACTS else store_case
            for route in routes:
                if try_one is store_case and route in ("call", "REPL", "Agent.call"):
                    continue
                points, chosen = 0, [0]
                while chosen:
                    number += 1
                    home, wanted = Home(place / f"u{number}", redis), chosen.pop(0)
                    try:
                        found = try_one(home, act, route, wanted)
                    except Exception as error:
                        home.wrong.append(f"{type(error).__name__}: {error}")
                        found = points
                    if not wanted:
                        points = found
                        every = range(1, points + 1)
                        chosen = sorted(chance.sample(every, min(len(every), moments)))
                    at = (home.folder / "at").read_text() if (home.folder / "at").exists() else "the whole"
                    yield f"{act} {route} {wanted}/{points} {at}", home.wrong
                    shutil.rmtree(home.folder, ignore_errors=True)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--moments", type=int, default=0, help="of each act and route (default: 20, of stores 10)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broken", default="", choices=["", "lock", "file"])
    parser.add_argument("--acts", default=",".join((*SESSION_ACTS, *STORE_ACTS)))
    parser.add_argument("--routes", default=",".join(ROUTES))
    asked = parser.parse_args()
    globals()["BROKEN"] = asked.broken
    import_all()
    count = bad = 0
    with redis_server() as redis:
        for act in asked.acts.split(","):
            moments = asked.moments or (20 if act in SESSION_ACTS else 10)
            for name, wrong in cases([act], asked.routes.split(","), moments, asked.seed, redis):
                count += 1
                bad += bool(wrong)
                for what in wrong:
                    print(f"{name}: {what}", flush=True)
    print(f"{count} cases, {bad} wrong")
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
