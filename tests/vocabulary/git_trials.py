"""Tries the attacks of git_layouts.py, each in its own repository, and says which got through.

    python tests/vocabulary/git_trials.py FOLDER --all            each row, kind and moment; as nobody too
    python tests/vocabulary/git_trials.py FOLDER --plain          each row once, or --some of them
    python tests/vocabulary/git_trials.py FOLDER --some 9         nine of all, chosen by --seed
    python tests/vocabulary/git_trials.py FOLDER --day            a day's work inside and outside

Run it with the Python of another version to see what gets through there. FOLDER is emptied at the end. It
fails if an attack gets through, or if a day inside leaves another repository than one outside.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product, zip_longest
from pathlib import Path
from typing import NamedTuple

from git_layouts import ATTACKS, TOOLS, Place, a_day, repository

# What a prompt of a shell asks for, and what an editor asks for again and again.
PROMPT = "bash -c '. /usr/lib/git-core/git-sh-prompt && GIT_PS1_SHOWDIRTYSTATE=1 __git_ps1'"
POLL = "git status --porcelain -uall; git -C src status"
KINDS = {
    "plain": "true",
    "split index": "git config core.splitIndex true; git update-index --split-index",
    "many files": "git config feature.manyFiles true; git update-index --index-version 4",
    "packed": "git gc -q",
}
# When git looks: once the program has ended; all the time beside it; after quoth was killed meanwhile.
MOMENTS = ("ended", "beside", "killed")
NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")


class Trial(NamedTuple):
    row: str
    kind: str = "plain"
    moment: str = "ended"


def got_through(trial: Trial, base: Path) -> bool:
    """Whether git outside ran what the program wanted."""
    place, attack = repository(base), ATTACKS[trial.row]
    said = place.sh(f"set -e; {KINDS[trial.kind]}; {attack.made.format(beside=base)}; echo MADE")
    assert "MADE\n" in said, f"{trial}: {said}"
    place.sh("git status")
    assert not place.pwned.exists(), said
    forger = place.shop / attack.where / "forger.py"
    forger.write_text(Path(__file__).with_name("git_layouts.py").read_text())
    variables = f"export PWNED={place.pwned} FORGER=forger.py PYTHON={sys.executable}"
    script = f"{variables}; {TOOLS}\n{attack.does}"
    inside = place._replace(shop=place.shop / attack.where)
    if trial.moment == "ended":
        asyncio.run(_attacked(inside, script))
    else:
        with _polled(place):
            _beside(inside, script, killed=trial.moment == "killed", look=lambda: place.sh(attack.looks))
    place.sh(f"{attack.looks}; {PROMPT}; {POLL}")
    return place.pwned.exists()


async def _attacked(place: Place, script: str, meanwhile: Callable[[], object] | None = None) -> None:
    """Run a script as a rule of the person's allows it, in the background where something is to be done
    ``meanwhile``."""
    from quoth.agent.client import AsyncAgent
    from quoth.tools.lisp.printer import print_value

    rules = place.pwned.with_name("rules.hy")
    rules.write_text("(allow (shell :argv _ :background _))")
    more = " :background True" if meanwhile else ""
    async with AsyncAgent(workspace=place.shop, policy=str(rules)) as agent:
        result = await agent.call(f"(shell :argv {print_value(['sh', '-c', script])}{more})")
        assert result.status in ("ok", "pending"), result.message
        if os.environ.get("SHOW"):
            print(result.status, result.message, result.value, file=sys.stderr)
        if meanwhile and result.ok:
            await asyncio.to_thread(meanwhile)


def _beside(place: Place, script: str, *, killed: bool, look: Callable[[], object]) -> None:
    """The same in a process of its own, while the program runs; quoth is killed then, or ends it."""
    ready, over = place.shop / "ready", place.pwned.with_name("over")
    child = os.fork()
    if not child:
        try:
            waiting = f"{script}\ntouch {ready}; sleep 60"
            asyncio.run(_attacked(place, waiting, lambda: _until(over.exists)))
            over.touch()
        finally:
            os._exit(0)
    _until(lambda: ready.exists() or bool(os.waitpid(child, os.WNOHANG)[0]))
    look()
    if killed and ready.exists():
        os.kill(child, signal.SIGKILL)
        _until(lambda: not _runs(str(ready)))
    over.touch()
    try:
        os.waitpid(child, 0)
    except ChildProcessError:
        return  # a person would have been asked


@contextmanager
def _polled(place: Place) -> Iterator[None]:
    """An editor asks for the status all the time."""
    over = threading.Event()

    def poll() -> None:
        while not over.wait(0.02):
            place.sh(POLL)

    editor = threading.Thread(target=poll)
    editor.start()
    try:
        yield
    finally:
        over.set()
        editor.join()


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def _runs(word: str) -> bool:
    """Whether a process has this word in its command line."""
    found = subprocess.run(["pgrep", "-f", word], capture_output=True, text=True, check=False).stdout
    return any(int(pid) != os.getpid() for pid in found.split())


def chosen(options: argparse.Namespace) -> list[Trial]:
    every = [Trial(*words) for words in product(ATTACKS, KINDS, MOMENTS)]
    if options.plain:
        every = [Trial(row) for row in ATTACKS]
    some = options.some or (0 if options.plain or options.all else 9)
    return random.Random(options.seed).sample(every, min(some or len(every), len(every)))


def tried(folder: Path, trials: list[Trial]) -> int:
    """Try them, print those that got through and how many; how many rows did."""
    who, rows, through = os.getuid(), {trial.row for trial in trials}, []
    for number, trial in enumerate(trials):
        (base := folder / str(number)).mkdir()
        if got_through(trial, base):
            through.append(trial)
            print(f"through, as user {who}: {', '.join(trial)}")
        shutil.rmtree(base)
    got = {trial.row for trial in through}
    print(f"as user {who}: {len(through)} of {len(trials)} got through; {len(got)} of {len(rows)} rows")
    return len(got)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    for word in ("--all", "--plain", "--day"):
        parser.add_argument(word, action="store_true")
    parser.add_argument("--some", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = options.folder.resolve()
    (own := folder / "own").mkdir(parents=True)
    names = {f"QUOTH_{name}": str(own / name.lower()) for name in ("STATE", "CONFIG", "CACHE")}
    os.environ.update(names, HOME=str(own), QUOTH_INSIDE="")
    try:
        if options.day:
            inside, outside = a_day(folder)
            differ = [
                f"{one}\n-- outside: {other}" for one, other in zip_longest(inside, outside) if one != other
            ]
            print("\n".join(differ) or "a day inside leaves what a day outside leaves")
            return len(differ)
        through = tried(folder, chosen(options))
    finally:
        shutil.rmtree(folder, ignore_errors=True)  # nobody cannot remove it, only what it holds
    if options.all and os.getuid() == 0:
        folder.mkdir()
        os.chown(folder, 65534, 65534)
        failed = subprocess.call([*NOBODY, sys.executable, __file__, str(folder), "--all"])
        shutil.rmtree(folder, ignore_errors=True)
        return failed or through
    return through


if __name__ == "__main__":
    sys.exit(bool(main()))
