"""quoth run --worktree and quoth worktrees: an agent beside the person, and its work brought back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from git_layouts import Place, repository
from words import files, quoth

from quoth.tools.storage.paths import worktrees_dir

REPLIES = """(read-file :path "a.txt")
---
(edit-file :path "{shop}/a.txt" :old "one" :new "ONE")
---
(write-file :path "rules.hy" :content "(allow)")
---
(write-file :path "src/secret/key" :content "x")
---
(read-file :path "../../../../outside.txt")
---
Done.
"""
RULES = '(deny (write-file :path (under "{shop}/src/secret")))\n'


@pytest.fixture
def place(tmp_path: Path) -> Place:
    found = repository(tmp_path)
    found.sh("mkdir src/secret; touch src/secret/key; git add .; git commit -q -m second")
    shop = found.shop
    files(tmp_path, {"replies.txt": REPLIES.format(shop=shop), "outside.txt": "outside"})
    files(shop, {"rules.hy": RULES.format(shop=shop), "mine.txt": "mine"})
    return found


RUN = "run", "--worktree", "--yes", "--model", "scripted:../replies.txt", "--policy", "rules.hy"


def test_an_agent_works_beside_the_person_under_the_rules_of_the_project(place: Place) -> None:
    shop = place.shop
    run = quoth(*RUN, "--session", "s1", "Shout.", cwd=shop)
    assert run.code == 0, run.err
    assert "2 changed files of yours" in run.err
    assert "says (deny" in run.err  # the rule names a path of the project
    assert "belongs to quoth itself" in run.err  # the rules, which are also protected there
    assert "outside the workspace" in run.err
    assert (shop / "a.txt").read_text() == "one\n"
    assert place.sh("git status --short").split() == ["??", "mine.txt", "??", "rules.hy"]
    listed = json.loads(quoth("worktrees", "list", "--json", cwd=shop).out)
    assert [(one["name"], one["ahead"], one["running"]) for one in listed] == [("s1", 1, False)]
    assert place.sh(f"git log -1 --format=%B {listed[0]['branch']}") == "Shout.\n\nQuoth-Session: s1\n\n"
    assert "(worktree)" in quoth("sessions", cwd=shop).out
    assert "+ ONE" in quoth("diff", "s1", cwd=shop).out  # as for any session
    seen = quoth("worktrees", "diff", "s1", cwd=shop)
    assert (seen.code, seen.out.count("│ + ")) == (0, 1)

    asked = quoth("worktrees", "merge", "s1", cwd=shop)
    assert asked.code == 3
    request = json.loads(quoth("pending", "--json", cwd=shop).out)[0]
    assert "ONE" in json.dumps(request)
    assert quoth("approve", request["id"], cwd=shop).code == 0
    assert quoth("resume", request["session"], cwd=shop).code == 0
    assert (shop / "a.txt").read_text() == "ONE\n"
    assert quoth("worktrees", "remove", "s1", cwd=shop).code == 0
    assert quoth("worktrees", "list", "--json", cwd=shop).out == "[]\n"


def test_a_yes_is_for_the_commit_that_was_shown(place: Place) -> None:
    shop = place.shop
    quoth(*RUN, "--session", "s1", "Shout.", cwd=shop)
    quoth("worktrees", "merge", "s1", cwd=shop)
    request = json.loads(quoth("pending", "--json", cwd=shop).out)[0]
    assert quoth("approve", request["id"], cwd=shop).code == 0
    folder = worktrees_dir(shop) / "s1"
    (folder / "a.txt").write_text("something else\n")
    head = place.sh("git rev-parse HEAD").strip()
    note = folder.with_name("s1.merging")
    note.write_text(json.dumps({"head": head, "new": head}))  # as if it was killed
    assert "quoth worktrees merge s1" in quoth("sessions", cwd=shop).err
    note.unlink()
    quoth("worktrees", "diff", "s1", cwd=shop)  # which commits it
    said = quoth("resume", request["session"], cwd=shop)
    assert said.code != 0
    assert (shop / "a.txt").read_text() == "one\n"


def test_a_worktree_is_not_a_project_of_its_own(place: Place) -> None:
    quoth(*RUN, "--session", "s1", "Shout.", cwd=place.shop)
    folder = worktrees_dir(place.shop) / "s1"
    named = ("run", "x", "--workspace", str(folder))
    for said in (quoth("sessions", cwd=folder / "src"), quoth(*named, cwd=place.shop)):
        assert said.code == 2
        assert "quoth resume s1" in said.err
    undone = quoth("undo", "s1", "--yes", cwd=place.shop)
    assert undone.code == 0, undone.err
    assert (folder / "a.txt").read_text() == "one\n"
    asked = quoth("worktrees", "remove", "s1", cwd=place.shop)
    assert (asked.code, folder.exists()) == (2, True)
    for words in (("merge", "s2"), ("diff", "s2"), ("remove", "s2")):
        assert "s1" in quoth("worktrees", *words, cwd=place.shop).err
    bad = quoth("run", "x", "--worktree", "--session", "a b", cwd=place.shop)
    assert bad.code == 2


def test_a_worktree_in_which_a_request_waits_is_not_removed(place: Place) -> None:
    asks = tuple(word for word in RUN if word != "--yes")
    assert quoth(*asks, "--session", "s1", "Shout.", cwd=place.shop).code == 3
    (request,) = json.loads(quoth("pending", "--json", cwd=place.shop).out)
    refused = quoth("worktrees", "remove", "s1", "--yes", cwd=place.shop)
    assert (refused.code, (worktrees_dir(place.shop) / "s1").exists()) == (2, True)
    how = refused.err.partition("quoth deny ")[2].split()
    assert how == [request["id"]]
    assert quoth("deny", *how, cwd=place.shop).code == 0
    removed = quoth("worktrees", "remove", "s1", "--yes", cwd=place.shop)
    assert removed.code == 0, removed.err
