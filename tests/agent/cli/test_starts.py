"""Each command comes up in a process in which nothing of ours is imported: it needs nothing that another
command alone imports."""

from __future__ import annotations

import json
import re
from pathlib import Path

from sentences import CREATED_THE_KEY, IS_STORED_IN
from words import files, quoth

RUN = ["run", "Write.", "--model", "scripted:r.txt"]
PLAN = "* PLAN one\n#+begin_src hy\n(+ 1 2)\n#+end_src\n"
# What each command is given here, its exit code and a part of what it prints.
STARTS: dict[str, tuple[list[str], int, str]] = {
    "run": ([*RUN, "--session", "s3"], 3, ""),
    "chat": (["chat", "--model", "scripted:chat.txt"], 0, "Hello.\n"),
    "acp": (["acp"], 2, ""),
    "models": (["models", "logout", "openai"], 0, "No key of openai is stored."),
    "call": (["call", '(echo :text "hi")'], 0, "hi\n"),
    "read": (["read"], 0, '(echo :text "hi")\n'),
    "tools": (["tools"], 0, "read-file  "),
    "belt": (["belt"], 0, "AVAILABLE TOOLS:\n"),
    "eval": (["eval", "(* 6 7)"], 0, "42\n"),
    "fly": (["fly", "plan.org"], 0, "DONE    one: 3\n"),
    "audit": (["audit"], 0, "write-file"),
    "policy": (["policy", "explain", "(echo)"], 2, ""),
    "trust": (["trust"], 2, ""),
    "mcp": (["mcp", "list"], 0, ""),
    "serve": (["serve", "--port", "99999"], 2, ""),
    "view": (["view", "--port", "99999"], 2, ""),
    "guard": (["guard", "install", "codex"], 0, "[[hooks.PreToolUse]]"),
    "pending": (["pending"], 0, "  (write-file"),
    "answer": (["answer", "REQUEST", "red"], 2, ""),
    "approve": (["approve", "REQUEST"], 0, "Approved once: (write-file"),
    "deny": (["deny", "REQUEST", "--why", "no"], 0, "Denied: (write-file"),
    "memory": (["memory", "status"], 0, f"The memory {IS_STORED_IN} "),
    "knowledge": (["knowledge", "list"], 0, ""),
    "catalog": (["catalog", "key", "new"], 0, f"{CREATED_THE_KEY} "),
    "sessions": (["sessions"], 0, "s1  "),
    "worktrees": (["worktrees", "list"], 2, ""),
    "log": (["log", "s1"], 0, "Write."),
    "diff": (["diff", "s2"], 0, ""),
    "undo": (["undo", "s2"], 2, ""),
    "fork": (["fork", "s2"], 0, ""),
    "export": (["export", "s2"], 0, "(quoth-session "),
    "import": (["import", "none.hy"], 2, ""),
    "resume": (["resume", "s2", "And?"], 0, ""),
    "test": (["test", "add", "s2", "--expect", '(in "more" result)'], 0, "say-hi.org"),
    "replay": (["replay", "s2"], 0, ""),
    "lift": (["lift", "s2"], 0, ""),
    "remind": (["remind"], 0, ""),
    "rm": (["rm", "s2", "--yes"], 0, ""),
    "gc": (["gc", "--dry-run"], 0, ""),
    "help": (["help"], 0, "start "),
    "stats": (["stats"], 0, "day  "),
    "doctor": (["doctor"], 0, "ok  sandbox"),
    "new": (["new", "plan", "release"], 0, "Wrote release.org."),
    "completion": (["completion", "bash"], 0, "_shtab_quoth()"),
    "worker": (["worker", "--redis", "redis://127.0.0.1"], 2, ""),
}


def test_each_command_comes_up_by_itself(tmp_path: Path) -> None:
    write = '(write-file :path "a.txt" :content "x")\n---\nIt waits.'
    files(
        tmp_path,
        {
            "chat.txt": "Hello.",
            "r.txt": write,
            "hi.txt": '(echo :text "hi")\n---\nHi.\n---\nAnd more.',
            "plan.org": PLAN,
        },
    )
    assert quoth(*RUN, "--session", "s1", cwd=tmp_path).code == 3
    assert quoth("run", "Say hi.", "--model", "scripted:hi.txt", "--session", "s2", cwd=tmp_path).code == 0
    for name, (words, code, part) in STARTS.items():
        if "REQUEST" in words:
            waiting = json.loads(quoth("pending", "--json", cwd=tmp_path).out)
            words = [word.replace("REQUEST", waiting[0]["id"]) for word in words]
        said = quoth(*words, cwd=tmp_path, stdin='(echo :text "hi")', bare=True)
        assert (name, said.code, "Traceback" in said.err) == (name, code, False), said.err
        assert part in said.out, name


def test_no_command_is_without_such_a_start(tmp_path: Path) -> None:
    told = re.search(r"The commands are (.*)\.", quoth("xyz", cwd=tmp_path).err)
    assert told
    assert set(told[1].split(", ")) == set(STARTS)


LIST = """
import contextlib, sys
from quoth.agent.cli.main import main
with contextlib.suppress(SystemExit):
    main(["--help"])
assert "quoth.tools.lisp" not in sys.modules  # it needs Hy, which takes long to come up
main(["tools"])
dear = "knowledge.skills call.ignored call.images call.question call.web_url policy.language shell.view"
dear += " origin.index registry.roles"
print([name for name in dear.split() if f"quoth.tools.{name}" in sys.modules], "acp" in sys.modules)
"""


def test_help_and_a_list_of_the_tools_import_nothing_that_only_calls_need(tmp_path: Path) -> None:
    files(tmp_path, {"list.py": LIST})
    said = quoth("list.py", cwd=tmp_path, bare=True)
    assert said.out.splitlines()[-1] == "[] False", said.err


ONE = """
import gc, sys
from quoth.agent.entry import main
frozen = gc.get_freeze_count()
looks = sum(one["collections"] for one in gc.get_stats())
sys.argv = ["quoth", "call", '(echo :text "hi")']
main()
print(sum(one["collections"] for one in gc.get_stats()) - looks, gc.get_freeze_count() > frozen + 10_000)
print(*sorted(name for name in sys.modules if name.startswith("quoth.agent.cli.")))
print("pydantic_core" in sys.modules, "acp" in sys.modules)
of_runs = "run spec observation driver compaction surroundings recorder".split()
others = ["quoth.neuro.prompt.dialects", "quoth.neuro.reading", "quoth.tools.policy.language"]
others += ["quoth.agent.config.agents", "quoth.tools.lisp.source", "quoth.tools.registry.returns"]
others += [f"quoth.tools.registry.{one}" for one in ("schema_params", "plain_schema", "whole_schema")]
print([name for name in [*(f"quoth.agent.run.{one}" for one in of_runs), *others] if name in sys.modules])
"""
EAGER = """
import dataclasses, re, sys
ours = {name: vars(one) for name, one in sys.modules.items() if name.startswith("quoth.")}
print([name for name, one in ours.items() if one.get("dataclass") is dataclasses.dataclass])
reading = [one for name, one in ours.items() if ".reading." in name or name == "quoth.tools.call.redaction"]
found = [(word, value) for one in reading for word, value in one.items()]
compiled = {word for word, value in found if isinstance(getattr(value, "__self__", value), re.Pattern)}
print(*sorted(compiled))
"""
FIRST_RUN = """
from quoth import Agent, ScriptedBackend
with Agent(model=ScriptedBackend(['(echo :text "x")', "Done."])) as agent:
    print(agent.run("Echo.").status)
"""


def test_a_call_imports_no_other_command_no_run_and_no_validator_of_pydantic_and_looks_for_no_garbage(
    tmp_path: Path,
) -> None:
    files(tmp_path, {"one.py": ONE})
    said = quoth("one.py", cwd=tmp_path, bare=True)
    mine = " ".join(f"quoth.agent.cli.{one}" for one in ("call", "common", "main", "options"))
    assert said.out.splitlines() == ["hi", "0 True", mine, "False False", "[]"], said.err


def test_a_start_compiles_methods_of_dataclasses_and_patterns_at_their_first_use(tmp_path: Path) -> None:
    files(tmp_path, {"one.py": ONE + EAGER, "run.py": FIRST_RUN + EAGER})
    for script, used in (("one.py", ""), ("run.py", "_CLOSERS _MARK _OPENERS _TO may_be_odd")):
        said = quoth(script, cwd=tmp_path, bare=True)
        assert said.out.splitlines()[-2:] == ["['quoth.agent.settings']", used], said.err
