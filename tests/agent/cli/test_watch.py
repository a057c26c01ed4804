"""``quoth fly --due`` and ``--watch``: plans that fly at the times on their headlines."""

from __future__ import annotations

import json
import plistlib
import re
import shlex
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from kills import MORTAL
from words import Said, files, lines, quoth, started, wait_until

TODO = "#+TODO: PLAN APPROVED RUNNING WAITING | DONE FAILED DENIED SKIPPED"
ZONE = "#+PROPERTY: ZONE UTC"
TOOLS = (
    """
(require quoth [def-cognitive-tool])
(def-cognitive-tool note "Write a line down."
  :parameters [text {:type str}]
  :effects    [:writes]
  :body       (do (with [out (open (/ ctx.workspace.root "notes") "a")] (.write out f"{text}\\n")) text))
"""
    + MORTAL
)
RULES = "(allow (note))\n"


def plan(time: str, *forms: str) -> str:
    steps = [line for form in forms for line in (f"** PLAN {form[1:5]}", "#+begin_src hy", form, "#+end_src")]
    return lines(TODO, ZONE, "* PLAN Build: it", f"SCHEDULED: {time}", *steps)


class Skies:
    def __init__(self, folder: Path) -> None:
        self.folder = files(folder, {"tools.hy": TOOLS, "rules.hy": RULES})
        (folder / "plans").mkdir()

    def put(self, time: str, *forms: str, name: str = "plan.org") -> Path:
        path = self.folder / "plans" / name
        path.write_text(plan(time, *forms))
        return path

    def words(self, *more: str) -> list[str]:
        return ["fly", "plans", "--tools", "tools.hy", "--user", "ann", *more]

    def fly(self, *more: str) -> Said:
        return quoth(*self.words(*more), cwd=self.folder)

    @property
    def notes(self) -> list[str]:
        path = self.folder / "notes"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def skies(tmp_path: Path) -> Skies:
    return Skies(tmp_path)


def test_what_is_due_is_flown_and_moved_to_its_next_time(skies: Skies) -> None:
    skies.put("<2026-01-05 Mon 09:00>", '(note :text "old")', name="a.org")
    skies.put("<2999-01-01 Tue ++1y>", '(note :text "later")', name="b.org")
    files(skies.folder / "plans", {"c.org": "* PLAN no time\n(+ 1 2)\n"})
    skies.put("<2026-01-05 Mon 09:00>", '(note :text "linked")').rename(skies.folder / "e.org")
    (skies.folder / "plans" / "link.org").symlink_to("../e.org")
    said = skies.fly("--due", "--policy", "rules.hy")
    assert said.code == 0
    assert re.findall(r"^quoth: (\w\.org: due .*)$", said.err, re.MULTILINE) == [
        "e.org: due 2026-01-05 Mon 09:00",
        "a.org: due 2026-01-05 Mon 09:00",
        "b.org: due 2999-01-01 Tue 00:00, again by ++1y",
    ]
    assert skies.notes == ["linked", "old"]
    assert "- Flown for <2026-01-05 Mon 09:00>: done" in (skies.folder / "plans" / "a.org").read_text()
    assert (skies.fly("--due", "--policy", "rules.hy").code, skies.notes) == (0, ["linked", "old"])


def test_a_yes_to_one_occurrence_is_none_to_the_next(skies: Skies) -> None:
    path = skies.put("<2026-01-05 Mon 09:00 +1000w>", '(note :text "mine")')
    said = skies.fly("--due")
    (request,) = re.findall(r"quoth approve (\w+)", said.err)
    assert skies.fly("--due").code == 0  # it waits
    assert quoth("approve", request, "--tools", "tools.hy", "--user", "ann", cwd=skies.folder).code == 0
    assert skies.fly("--due").code == 0
    assert skies.notes == ["mine"]
    path.write_text(path.read_text().replace("2045", "2026"))  # the next one has come
    skies.fly("--due")
    assert skies.notes == ["mine"]
    (other,) = json.loads(quoth("pending", "--json", "--user", "ann", cwd=skies.folder).out)
    assert other["id"] != request


def test_a_watcher_killed_in_a_flight_continues_it(skies: Skies) -> None:
    path = skies.put("<2026-01-05 Mon 09:00 +1000w>", '(note :text "one")', "(mortal)", '(note :text "two")')
    words = skies.words("--watch", "--policy", "rules.hy")
    with started(*words, cwd=skies.folder) as running:
        assert running.ended().code == -signal.SIGKILL
    assert skies.notes == ["one"]
    with started(*words, cwd=skies.folder) as running:
        wait_until(lambda: "Flown for" in path.read_text())
        soon = datetime.now() + timedelta(seconds=1)
        skies.put(f"<{soon:%Y-%m-%d %a %H:%M}>", '(note :text "new")', name="new.org")  # seen while it runs
        wait_until(lambda: "new" in skies.notes)
        running.process.send_signal(signal.SIGTERM)
        running.process.wait(60)
    assert skies.notes == ["one", "two", "new"]


def test_a_plan_with_a_mistake_is_told_once_and_flown_when_it_is_mended(skies: Skies) -> None:
    skies.put("<2026-01-05 Mon 09:00>", '(nute :text "x")')
    said = skies.fly("--due", "--policy", "rules.hy")
    assert said.code == 1
    assert "Did you mean note?" in said.err
    skies.put("<2026-01-05 Mon 09:00>", '(note :text "x")')
    assert (skies.fly("--due", "--policy", "rules.hy").code, skies.notes) == (0, ["x"])


def test_options_of_one_flight_are_refused(skies: Skies) -> None:
    for more, wanted in [
        (["--watch", "--due"], "Use either --watch or --due, not both."),
        (["--watch", "--only", "x"], "--only is for one flight; leave it out, or --watch."),
        (["--due", "--check"], "--check runs nothing, so --due has no effect with it"),
        (["--service", "cron"], "--service prints how --watch is started for you; give --watch too."),
    ]:
        said = skies.fly(*more)
        assert said.code == 2
        assert wanted in said.err
    said = quoth("fly", "nowhere", "--due", cwd=skies.folder)
    assert (said.code, said.err) == (2, "quoth: nowhere is neither a plan nor a folder of plans.\n")
    assert "No plan here has a time." in skies.fly("--due").err


def test_a_service_is_started_with_the_same_words(skies: Skies) -> None:
    odd = skies.folder / 'a "b" $c 100%'
    odd.mkdir()
    words = ["fly", "--watch", str(odd), "--workspace", str(skies.folder)]

    def service(kind: str) -> str:
        said = quoth("fly", str(odd), "--watch", "--service", kind, "--workspace", ".", cwd=skies.folder)
        assert said.code == 0
        return said.out

    found = plistlib.loads(service("launchd").encode())
    assert found["ProgramArguments"][-5:] == words
    line = service("cron").removeprefix("* * * * * ").replace("\\%", "%")
    assert shlex.split(line)[-5:] == [one.replace("--watch", "--due") for one in words]
    unit = service("systemd")
    (start,) = re.findall("^ExecStart=(.*)$", unit, re.MULTILINE)
    assert shlex.split(start.replace("%%", "%").replace("$$", "$"))[-5:] == words
    run = subprocess.run(
        ["sh", "-c", line.replace("--due", "--due --json")], capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
