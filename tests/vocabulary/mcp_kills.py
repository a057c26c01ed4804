"""Kills quoth, or the MCP server that it has started, with -9 at chance moments, with a question of the
server open or not, and looks: each effect once, and no process left.

``python tests/vocabulary/mcp_kills.py [N]`` plays stories with N kills in all (default: 100).

The task orders tea, for which the server asks a person for its size, and then makes a note. A person approves
what is asked, answers the question, and where quoth asks whether a call may be begun again looks at the
effects before the answer.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import mcp_server
from commands import Forked, Said, quoth, started, wait_until

from quoth.tools.call.ports import asks_fact

REPLIES = '(shop--order :item "tea")\n---\n(shop--note :text "one")\n---\nAll is done.\n'
EFFECTS = {"shop--order": "order tea large", "shop--note": "note one"}
KILLS = 4  # of one story, at most
LIVES = 30  # of one story, at most


@dataclass
class Story:
    """One task, from its first process to its last."""

    folder: Path
    chance: random.Random
    most: int = KILLS
    session: str = ""
    kills: list[str] = field(default_factory=list)  # what was killed: "quoth" or "server"

    @property
    def effects(self) -> list[str]:
        file = self.folder / "effects"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def env(self) -> dict[str, str]:
        return {"QUOTH_STATE": str(self.folder / "state"), "QUOTH_CONFIG": str(self.folder / "config")}

    def words(self, *words: str) -> list[str]:
        return [*words, "--no-input", "--mcp", str(self.folder / "servers.json")]

    def said(self, *words: str) -> Said:
        return quoth(*words, cwd=self.folder / "work", env=self.env)

    def begin(self) -> None:
        (self.folder / "work").mkdir()
        (self.folder / "replies.txt").write_text(REPLIES)
        servers = mcp_server.config("--effects", str(self.folder / "effects"), name="shop", real=True)
        (self.folder / "servers.json").write_text(json.dumps(servers))
        trusted = self.said("mcp", "trust", "shop", "--yes", "--mcp", str(self.folder / "servers.json"))
        assert trusted.code == 0, trusted.err

    def live(self, kills: bool) -> Said:
        """One process of the task, which may be killed."""
        model = ["--model", f"scripted:{self.folder}/replies.txt"]
        words = ["resume", self.session] if self.session else ["run", "Order tea.", *model]
        with started(*self.words(*words), cwd=self.folder / "work", env=self.env) as running:
            if kills:
                time.sleep(self.chance.uniform(0.05, 1.5))
                self.kill(running.process)
            ended = running.ended(120)
        wait_until(lambda: not self.servers())  # its keeper ends it
        return ended

    def kill(self, process: Forked) -> None:
        if self.chance.random() < 0.5:
            for pid in self.servers():
                os.kill(pid, signal.SIGKILL)
                self.kills.append("server")
                return
        if process.poll() is None:
            process.kill()
            self.kills.append("quoth")

    def servers(self) -> list[int]:
        """The processes whose command names the file of effects: the server, and what starts it."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:  # it has ended
                    continue
                found += [int(entry.name)] if os.fsencode(self.folder / "effects") in words else []
        return found

    def decide(self) -> None:
        """Decide what waits, as a careful person."""
        for asked in json.loads(self.said("pending", "--json").out):
            if asked["kind"] == "question":
                said = self.said("answer", asked["id"], "size=large")
            elif asks_fact(asked["reason"]) and EFFECTS[asked["tool"]] in self.effects:
                said = self.said("deny", asked["id"], "--why", "it was done")
            else:
                said = self.said("approve", asked["id"])
            assert said.code == 0, said.err

    def find_session(self) -> None:
        if not self.session:
            found = json.loads(self.said("sessions", "--json").out)
            self.session = found[-1]["id"] if found else ""

    def play(self) -> str:
        """What is wrong in the end; empty for nothing."""
        self.begin()
        for _ in range(LIVES):
            said = self.live(kills=len(self.kills) < self.most)
            if "All is done." in said.out:
                break
            self.find_session()
            self.decide()
        else:
            return f"not over after {LIVES} processes"
        found, wanted = sorted(self.effects), sorted(EFFECTS.values())
        # A call whose server was killed ends as a failure, and the scripted model does not repeat it.
        fits = found == wanted or ("server" in self.kills and len({*found}) == len(found) <= len(wanted))
        return "" if fits else f"{found} after the kills {self.kills}"


def story(seed: int, most: int = KILLS) -> tuple[str, int]:
    """What is wrong after a story of at most that many kills, empty for nothing, and their number."""
    folder = Path(tempfile.mkdtemp(prefix="mcp-"))
    try:
        told = Story(folder, random.Random(seed), most)
        wrong = told.play()
        return (f"seed {seed}: {wrong}" if wrong else ""), len(told.kills)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    wrong, kills, seed = list[str](), 0, 0
    while kills < wanted:
        said, killed = story(seed)
        wrong += [said] if said else []
        kills, seed = kills + killed, seed + 1
    print(*wrong, sep="\n")
    print(f"{kills} kills in {seed} stories, {len(wrong)} wrong.")


if __name__ == "__main__":
    main()
