"""Each setting behind each command is used or refused. Before a command all may stand: for a script, that is
what all its commands share."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from words import files, quoth

from quoth.agent.cli import main as command_line
from quoth.agent.cli.options import OF_ALL, Options, options_of, parsed
from quoth.agent.settings import FLAGS, ROWS
from quoth.tools.errors import UsageError

VOCABULARY = Path(__file__).parents[2] / "vocabulary"


def kinds() -> Iterator[tuple[list[str], type[Options]]]:
    """Each command, or action of one, with its options."""
    for rows in command_line.COMMANDS.values():
        for name, (place, _) in rows.items():
            found = command_line._found(place)
            actions = {action: do for action, (do, _) in found.items()} if isinstance(found, dict) else None
            for words, do in (
                [([name, one], do) for one, do in actions.items()] if actions else [([name], found)]
            ):
                yield words, vars(import_module(do.__module__))[do.__annotations__["options"]]


KINDS = {" ".join(words): kind for words, kind in kinds()}


def own(kind: type[Options]) -> set[str]:
    """The options of its own that have the name of a setting: ``--agent`` of ``quoth memory`` is an id."""
    flags = {flag for one in options_of(kind) if "row" not in one.metadata for flag in one.metadata["flags"]}
    named = {name for one in kind.__mro__ if issubclass(one, Options) for name in vars(one) if name in ROWS}
    return named | {name for name in ROWS if FLAGS[name] in flags}


def shown(kind: type[Options]) -> set[str]:
    """The settings that a command says it uses, beside those that every command takes."""
    groups = set(kind.groups.split())
    taken = {one.name for one in options_of(kind)}
    named = {name for name, row in ROWS.items() if row.group in groups or FLAGS[name] in groups}
    return {name for name in (named & taken) - own(kind) if ROWS[name].group not in OF_ALL}


def spelt(name: str) -> list[str]:
    one = next(one for one in options_of(command_line.ReplOptions) if one.name == name)
    if one.metadata.get("action") not in (None, "append"):
        return [FLAGS[name]]
    value = (one.metadata.get("choices") or ["1"])[0]
    return [FLAGS[name], f"@{value}" if name == "api_key" else value]


def needed(kind: type[Options]) -> list[str]:
    """A word for each argument that the command must have."""
    rows = [one.metadata for one in options_of(kind) if not one.metadata["flags"]]
    return [str((row.get("choices") or ["x"])[0]) for row in rows if row.get("nargs") not in ("?", "*")]


OF_ANOTHER = {"mcp add"}  # what follows its arguments is the command line of another program


@pytest.mark.parametrize("name", KINDS)
def test_a_setting_that_a_command_does_not_use_is_refused_behind_it(name: str) -> None:
    kind, words = KINDS[name], [*name.split(), *needed(KINDS[name])]
    whole, its_own = command_line.parser(), command_line.parser(words)
    for setting, row in ROWS.items():
        if row.group in OF_ALL or row.group in ("limits", "plan") or setting in own(kind):
            continue
        given = [*words, *spelt(setting)]
        if name in OF_ANOTHER:
            pass
        elif setting in shown(kind):
            parsed(its_own, given)
        else:
            with pytest.raises(UsageError, match=rf"^quoth {words[0]} does not use {FLAGS[setting]}\. See: "):
                parsed(its_own, given)
        parsed(whole, [*spelt(setting), *words])


# What a command is given, so that it looks at each setting that its help shows. One that makes an agent of
# its settings uses all those of an agent.
SCRIPT = '(write-file :path "a.txt" :content "x")\n---\nIt waits.'
PLAN = "* PLAN one\n#+begin_src hy\n(+ 1 2)\n#+end_src\n"
RUN = ["run", "Write.", "--model", "scripted:r.txt"]
NO_REDIS = "redis://127.0.0.1:1"
REMOTE = ["--remote", NO_REDIS]
USES: dict[str, list[list[str]]] = {
    "run": [[*RUN, "--session", "s3"]],
    "chat": [["chat", "--model", "scripted:chat.txt"]],
    "fly": [["fly", "plan.org"]],
    "resume": [["resume", "s2", "And?"]],
    "models": [["models", "test", "scripted:chat.txt"], ["models"]],
    "call": [["call", '(echo :text "hi")']],
    "eval": [["eval", "(* 6 7)"]],
    "read": [["read", "hi.txt"], ["read", "hi.txt", *REMOTE]],
    "tools": [["tools"], ["tools", "test", "t.hy"]],
    "belt": [["belt", "--model", "scripted:r.txt", "--policy", "p.hy"], ["belt", *REMOTE]],
    "policy check": [["policy", "check"], ["policy", "check", *REMOTE]],
    "policy explain": [["policy", "explain", '(echo :text "x")']],
    "policy revoke": [["policy", "revoke"], ["policy", "revoke", "--shared", NO_REDIS]],
    "audit": [["audit"]],
    "pending": [["pending"], ["pending", "--shared", NO_REDIS]],
    "approve": [["approve", "REQUEST", "--resume"]],
    "deny": [["deny", "plan.org"]],
    "answer": [["answer", "QUESTION", "red", "--resume"]],
    "undo": [["undo", "s2"]],
    "worktrees merge": [["worktrees", "merge", "s5"]],
    "replay": [["replay", "--session", "s2", "--live-tools"]],
    "lift": [["lift", "--session", "s2"], ["lift", "s2", *REMOTE]],
    "test add": [
        ["test", "add", "--session", "s2", "--expect", "1"],
        ["test", "add", "s2", "--expect", "1", *REMOTE],
    ],
    "test run": [["test", "run", "--model", "scripted:chat.txt"]],
    "doctor": [["doctor"]],
    "remind": [["remind", "--to", "desk", "--channel", "desk=desk.txt"]],
    **{name: [[*name.split(), *needed(kind)]] for name, kind in KINDS.items() if name.startswith("memory ")},
    **{f"mcp {name}": [["mcp", name, "x"]] for name in ("list", "trust", "diff", "login", "remove")},
    "memory import": [["memory", "import", "memory.org"]],
}
ELSEWHERE = {  # what needs a Redis, an editor or a server: tests/agent/worker, test_catalog.py, test_mcp.py
    name
    for name in KINDS
    if name.split()[0] in ("worker", "catalog", "acp", "guard", "serve", "view")
    or name in ("mcp call", "mcp serve", "mcp proxy")
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("desk")
    tool = (
        '(require quoth [def-cognitive-tool])\n(def-cognitive-tool probe "P." :examples [(probe)] :body 1)\n'
    )
    texts = {"r.txt": SCRIPT, "chat.txt": "Hello.", "plan.org": PLAN, "t.hy": tool, "p.hy": "(allow (echo))"}
    case = "* Messages\n#+begin_example\nHi.\n#+end_example\n* Expect\n#+begin_src hy\nresult\n#+end_src\n"
    texts |= {
        "evaluations/one.org": case,
        "ask.txt": '(ask-person :question "Which?")\n---\nDone.',
        "memory.org": "#+TITLE: Memory\n",
    }
    files(folder, {**texts, "hi.txt": '(echo :text "hi")\n---\nHi.\n---\nAnd more.'})
    with pytest.MonkeyPatch.context() as own:
        own.setenv("QUOTH_STATE", str(folder.with_name("state")))
        assert quoth(*RUN, "--session", "s1", cwd=folder).code == 3
        assert quoth("run", "Hi.", "--model", "scripted:hi.txt", "--session", "s2", cwd=folder).code == 0
        ask = ["run", "Ask.", "--model", "scripted:ask.txt", "--session", "s4"]
        assert quoth(*ask, cwd=folder).code == 3
        make = "git init -q; git add r.txt; git -c user.name=a -c user.email=a@b commit -qm first"
        subprocess.run(["sh", "-c", make], cwd=folder, check=True)
        assert quoth(*RUN, "--yes", "--session", "s5", "--worktree", cwd=folder).code == 0
        yield folder


@pytest.fixture
def desk(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUOTH_STATE", str(here.with_name("state")))
    return here


@pytest.mark.parametrize("name", [name for name in KINDS if shown(KINDS[name]) and name not in ELSEWHERE])
def test_a_command_looks_at_each_setting_of_its_help(name: str, desk: Path) -> None:
    seen: set[str] = {"boundary"}  # main reads it
    for words in USES[name]:
        waiting = {one["session"]: one["id"] for one in json.loads(quoth("pending", "--json", cwd=desk).out)}
        known = {"REQUEST": waiting.get("s1"), "QUESTION": waiting.get("s4")}
        seen |= looked_at([known.get(word) or word for word in words], desk)
    assert shown(KINDS[name]) - seen == set()


def looked_at(words: list[str], folder: Path) -> set[str]:
    """The settings that a command line reads, run in a process of its own: a sandbox survives no fork."""
    path = folder.with_name("reading.py")
    way = f"import sys\nsys.path.insert(0, {str(VOCABULARY)!r})\n"
    path.write_text(f"{way}import settings_read\nsettings_read.run()\n")
    quoth(str(path), *words, cwd=folder)
    seen: list[str] = json.loads(path.with_suffix(".json").read_text())
    return set(seen)
