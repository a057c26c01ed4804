"""Rules about argument vectors: a deny finds its program by each spelling, an allow only as it is written."""

from __future__ import annotations

import operator
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from words import form, table_of, tool

from quoth.tools.call.call import new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.workspace import Workspace
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.lint import check
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.param_types import WorkspacePath

RUN = tool("run", params={"argv": {"type": list[str]}}, effects=["runs"])


def verdict(rules: str, *argv: str, workspace: Path = Path("/nowhere")) -> str:
    """What the rules say of running ``argv``."""
    policy = RulesPolicy([parse_layer("given", rules.encode(), "p.hy")])
    call = new_call(form(f"(run :argv [{' '.join(map(repr_of, argv))}])"))
    context = ToolContext(Workspace(workspace))
    return str(policy.judge(RUN, call, {"argv": list(argv)}, context).kind)


def repr_of(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


NO_RM = '(allow (run)) (deny (run :argv ["rm" ...]))'
NO_PUSH = '(allow (run)) (deny (run :argv ["git" "push" ...]))'


@pytest.mark.parametrize(
    "argv",
    [
        ["rm", "a"],
        ["/bin/rm", "a"],
        ["./rm", "a"],
        ["../../bin/rm", "a"],
        ["env", "rm", "a"],
        ["/usr/bin/env", "A=1", "rm", "a"],
        ["env", "-S", "rm a"],
        ["env", "-Srm", "a"],
        ["env", "-vS", "rm"],
        ["nice", "-n", "5", "/bin/rm", "a"],
        ["timeout", "5", "nice", "rm"],
        ["timeout", "5", "sh", "-c", "r''m a"],
        ["sh", "-c", "r''m a"],
        ["sh", "-xc", "rm a"],
        ["sh"],
        ["bash5.2", "-lc", "$X a"],
        ["python3.11", "-c", "import os"],
        ["python3", "-ic", "import os"],
        ["perl", "-e", "unlink"],
        ["find", ".", "-exec", "rm", "{}", ";"],
        ["xargs", "rm"],
        ["busybox", "rm", "a"],
        ["sudo", "-u", "root", "rm"],
        ["env", "xargs", "sh", "-c", "x"],
        ["env", "--spl", "rm a"],
        ["env", "awk", "-v", "a=1", "BEGIN { system(a) }"],
        ["timeout", "5", "watch", "rm a"],
        ["xargs", "env"],
        ["nice", "xargs", "timeout", "5"],
        ["awk", "BEGIN { system(ARGV[1] ARGV[2]) }", "r", "m a"],
        ["awk", '{ print | "r" "m a" }'],
        ["gawk", '{ f = "sys" "tem"; @f("rm a") }'],
        ["deno", "eval", "new Deno.Command('r' + 'm')"],
        ["env"] * 100 + ["rm"],
        ["env", "tar", "--to-command=rm", "-xf", "a.tar"],
        ["tar", "--to-command=r''m a", "-xf", "a.tar"],
        ["tar", "-Irm", "-xf", "a.tar"],
        ["tar", "--checkpoint=1", "--checkpoint-action=exec=rm a", "-cf", "/dev/null", "a"],
        ["awk", 'BEGIN{system("r" "m a")}'],
        ["awk", "-f", "a.awk"],
        ["sed", "1e rm a", "f"],
        ["sed", "s/x/rm a/e", "f"],
        ["git", "-c", "alias.x=!rm a", "x"],
        ["git", "-c", "alias.x=!echo cm0gYQ== | base64 -d | sh", "x"],
        ["git", "-c", "alias.x=!$X a", "x"],
        ["git", "-C", "sub", "rebase", "--exec", "rm a", "main"],
        ["git", "bisect", "run", "rm", "a"],
        ["git", "fetch", "--upload-pack=rm a", "."],
        ["git", "submodule", "foreach", "r''m a"],
        ["make", "--eval=x:;rm a", "x"],
        ["make", "SHELL=/bin/rm", "x"],
        ["split", "--filter=rm a", "f"],
        ["gcc", "-wrapper", "rm,a", "x.c"],
        ["rsync", "-e", "rm a", "x:", "."],
        ["vim", "-es", "-c", "!rm a"],
        ["sqlite3", ":memory:", ".shell rm a"],
        ["cmake", "-E", "env", "rm", "a"],
        ["start-stop-daemon", "--start", "--exec", "/bin/rm", "--", "a"],
        ["/lib64/ld-linux-x86-64.so.2", "/bin/rm", "a"],
        ["rbash", "-c", "rm a"],
        ["python3", "-m", "timeit", "import os"],
        ["python3", "-m", "trace", "--trace", "rm"],
        ["some-new-runner", "--", "rm", "a"],
        ["some-new-runner", "bash", "-c", "x"],
        ["some-new-runner", "python3 -c x"],
        ["some-new-runner", "sh x"],
        ["python3", "-m"],
        ["git", "-C", "sub", "bisect", "run", "rm"],
        ["git", "-C", "rm"],
    ],
)
def test_a_deny_finds_its_program_by_each_spelling(argv: list[str]) -> None:
    assert verdict(NO_RM, *argv) == "deny"
    assert verdict(NO_RM.replace("deny", "ask"), *argv) == "ask"
    assert verdict('(allow (run :argv ["rm" ...]))', *argv) == ("allow" if argv[0] == "rm" else "ask")


@pytest.mark.parametrize(
    "argv",
    [
        ["ls", "rm"],
        ["python3", "-m", "pytest"],
        ["sh", "run.sh"],
        ["timeout", "60", "pytest", "-q"],
        ["env", "A=1", "python3", "-m", "pytest"],
        ["git", "commit", "-m", "rm a"],
        ["git", "-C", "sub", "--no-pager", "log", "--grep", "rm"],
        ["git", "-C", "sub", "add", "rm"],
        ["git", "--no-pager", "log", "rm"],
        ["some-new-tool", "sh", "run.sh", "farm"],
        ["awk", "{print $1, rm}", "f"],
        ["sed", "s/a/b/", "f"],
        ["tar", "-xf", "a.tar"],
        ["make", "test"],
        ["npm", "test"],
        ["cargo", "build", "--release"],
        ["pytest", "-k", "time and not rm"],
        ["ruff", "check", "--select=E,F", "src"],
        ["some-new-tool", "--all", "farm", "src/term.py"],
        ["farm"],
        ["/bin/farm"],
        ["timeout", "60", "pytest", "-k", "a or b"],
        ["env", "A=a b", "uv", "run", "pytest", "-k", "not rm"],
        ["find", ".", "-name", "*.py"],
        ["awk", "{ print $1 }", "a"],
        ["xargs", "python3", "a.py"],
        ["deno", "run", "a.ts"],
        ["env"] * 100 + ["ls"],
    ],
)
def test_a_deny_leaves_other_programs_alone(argv: list[str]) -> None:
    assert verdict(NO_RM, *argv) == "allow"


@pytest.mark.parametrize("argv", [["rm", "a"], ["/usr/bin/rm", "a"], ["env", "rm", "a"], ["./rm"]])
@pytest.mark.parametrize("first", ['"/bin/rm"', '(one-of "/bin/ls" "/bin/rm")'])
def test_a_deny_by_a_path_finds_the_program_by_each_other(argv: list[str], first: str) -> None:
    assert verdict(f"(allow (run)) (deny (run :argv [{first} ...]))", *argv) == "deny"


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (["git", "push"], "deny"),
        (["git", "-C", "x", "push"], "deny"),
        (["git", "--no-pager", "-c", "a=b", "push", "origin"], "deny"),
        (["/usr/bin/git", "-C", "x", "push"], "deny"),
        (["git", "--no-pager", "log"], "allow"),
        (["git", "commit", "-m", "push"], "allow"),
        (["git", "status"], "allow"),
    ],
)
def test_options_before_the_command_do_not_hide_it(argv: list[str], kind: str) -> None:
    assert verdict(NO_PUSH, *argv) == kind


@given(st.lists(st.sampled_from(["env", "nice", "timeout", "A=1", "-n", "5", "/usr/bin/env"]), max_size=4))
def test_no_row_of_wrappers_hides_a_program(before: list[str]) -> None:
    assert verdict(NO_RM, "env", *before, "/usr/bin/rm", "a") == "deny"


def test_a_long_row_of_wrappers_is_judged_in_one_go() -> None:
    assert verdict(NO_RM, *["env"] * 5_000, "ls") == "allow"  # where each looked at the rest: 2 ** 5000 steps
    assert verdict(NO_RM, *["env", "sh"] * 2_500) == "deny"


Wrap = Callable[[list[str]], list[str]]
# Each runs the program that it is given, in its own way.
WRAPS: list[Wrap] = [
    *(
        partial(operator.add, before)
        for before in (
            *(["env"], ["env", "A=1"], ["nice"], ["nice", "-n", "5"], ["nohup"], ["setsid", "-w"]),
            *(["timeout", "5"], ["stdbuf", "-o0"], ["xargs", "-a", "/dev/null"], ["flock", "-n", "lock"]),
            *(["chrt", "-o", "0"], ["ionice"], ["taskset", "1"], ["prlimit"], ["setpriv"], ["busybox"]),
            *(["/lib64/ld-linux-x86-64.so.2"], ["cmake", "-E", "env"], ["strace", "-o", "/dev/null"]),
        )
    ),
    lambda argv: ["find", ".", "-maxdepth", "0", "-exec", *argv, ";"],
    lambda argv: ["env", "-S", shlex.join(argv)],
    lambda argv: ["sh", "-c", shlex.join(argv)],
    lambda argv: ["bash", "-c", f"exec {shlex.join(argv)}"],
    lambda argv: ["script", "-qc", shlex.join(argv), "/dev/null"],
    lambda argv: ["python3", "-c", f"import os; os.execvp({argv[0]!r}, {argv!r})"],
    lambda argv: ["python3", "-m", "timeit", "-n1", "-r1", f"import subprocess; subprocess.run({argv!r})"],
    lambda argv: ["perl", "-e", f"exec {', '.join(map(repr, argv))}"],
    lambda argv: ["awk", f"BEGIN{{system({repr_of(shlex.join(argv))})}}"],
    lambda argv: ["sed", "-n", f"1e {shlex.join(argv)}", "file"],
    lambda argv: ["make", f"--eval=x:;{shlex.join(argv).replace('$', '$$')}", "x"],
    lambda argv: [
        *("tar", "-cf", "/dev/null", "--checkpoint=1", f"--checkpoint-action=exec={shlex.join(argv)}", "file")
    ],
    lambda argv: ["git", "-c", f"alias.x=!{shlex.join(argv)}", "x"],
    lambda argv: ["split", f"--filter={shlex.join(argv)}", "file"],
    lambda argv: ["sqlite3", ":memory:", f".shell {shlex.join(argv)}"],
    lambda argv: ["vim", "-es", "-c", f"!{shlex.join(argv)}", "-c", "qa!"],
]  # fmt: skip


@pytest.fixture(scope="module")
def remover(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program ``rm`` that makes the file that it is given."""
    place = tmp_path_factory.mktemp("remover")
    shutil.copy(shutil.which("touch") or "", place / "rm")
    return place


def does_run(argv: list[str], remover: Path) -> bool:
    """Whether the program that makes a file is run by this one."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "file").write_text("a line\n")
        env = os.environ | {"PATH": f"{remover}:{os.environ['PATH']}", "HOME": place}
        subprocess.run(argv, cwd=place, env=env, capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        return Path(place, "made").exists()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@example([WRAPS[0], WRAPS[2]], False)
@given(st.lists(st.sampled_from(WRAPS), min_size=1, max_size=3), st.booleans())
def test_whatever_does_run_the_program_counts_for_a_deny(
    remover: Path, wraps: list[Wrap], by_path: bool
) -> None:
    argv = [str(remover / "rm") if by_path else "rm", "made"]
    for wrap in wraps:
        argv = wrap(argv)
    ran = shutil.which(argv[0]) is not None and does_run(argv, remover)
    assert not ran or verdict(NO_RM, *argv) == "deny"


def test_the_ordinary_ways_to_run_a_program_do_so_here(remover: Path) -> None:
    for before in (["env"], ["nice"], ["timeout", "5"]):
        assert does_run([*before, "rm", "made"], remover)
    assert not does_run(["echo", "rm", "made"], remover)


def test_what_is_not_excluded_by_its_word_may_be_excluded_by_its_path() -> None:
    rules = '(allow (run :argv [(not "rm") ...]))'
    assert verdict(rules, "ls") == "allow"
    assert verdict(rules, "/bin/rm") == "ask"


def test_an_allow_is_for_no_program_that_the_workspace_puts_into_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "bin" / "ls"
    written.parent.mkdir()
    written.write_text("#!/bin/sh\n")
    written.chmod(0o755)
    rules = '(allow (run :argv [(one-of "ls" "./bin/ls") ...]))'
    assert verdict(rules, "ls", workspace=tmp_path) == "allow"
    monkeypatch.setenv("PATH", f"{written.parent}:/usr/bin:/bin")
    assert verdict(rules, "ls", workspace=tmp_path) == "ask"
    assert verdict(rules, "./bin/ls", workspace=tmp_path) == "allow"
    for number, (link, leads) in enumerate((("", written.parent), ("ls", written))):  # folder, then file
        outside = tmp_path.parent / f"{tmp_path.name}-{number}"
        if link:
            outside.mkdir()
        (outside / link).symlink_to(leads)
        monkeypatch.setenv("PATH", f"{outside}:/usr/bin:/bin")
        assert verdict(rules, "ls", workspace=tmp_path) == "ask"


WITH_MORE = tool(
    "run",
    params={
        "argv": {"type": list[str]},
        "cwd": {"type": WorkspacePath, "default": "."},
        "stdin": {"type": str | None, "default": None},
        "timeout": {"type": float, "default": 60.0},
        "background": {"type": bool, "default": False},
    },
    effects=["runs"],
)


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"timeout": 900.0}, "allow"),
        ({"cwd": WorkspacePath(".")}, "allow"),
        ({"cwd": WorkspacePath("sub")}, "ask"),
        ({"stdin": "import os"}, "ask"),
        ({"background": True}, "ask"),
    ],
)
def test_an_allow_of_a_program_is_for_its_own_folder_and_no_input(
    more: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    args = {
        "argv": ["pytest"],
        "cwd": WorkspacePath("."),
        "stdin": None,
        "timeout": 60.0,
        "background": False,
    }
    call, context = new_call(form('(run :argv ["pytest"])')), ToolContext(Workspace(tmp_path))
    for rule, expected in {
        '(allow (run :argv ["pytest" ...]))': kind,
        '(allow (run :argv ["pytest" ...] :cwd _ :stdin _ :background _))': "allow",
        "(allow (run))": "allow",
    }.items():
        policy = RulesPolicy([parse_layer("given", rule.encode(), "p.hy")])
        assert policy.judge(WITH_MORE, call, args | more, context).kind == expected


def test_lists_that_are_no_programs_are_compared_as_they_are() -> None:
    send = tool("send", params={"to": {"type": list[str]}}, effects=["messages"])
    policy = RulesPolicy([parse_layer("given", b'(allow (send)) (deny (send :to ["ann" ...]))', "p.hy")])
    call = new_call(form('(send :to ["x/ann"])'))
    said = policy.judge(send, call, {"to": ["x/ann"]}, ToolContext(Workspace(Path("/nowhere"))))
    assert said.kind == "allow"


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ('(allow (run :argv ["python3" ...]))', "python3 runs any program that its arguments name"),
        ('(allow (run :argv ["env" ...]))', "env runs any program"),
        ('(allow (run :argv [(one-of "ls" "find") ...]))', "find runs any program"),
        ('(allow (run :argv ["/usr/bin/git" ...]))', "git runs any program"),
        ('(allow (run :argv ["bash" "-c" ...]))', "bash runs any program"),
        ('(allow (run :argv ["uv" "run" ...]))', "uv runs any program"),
        ('(allow (run :argv ["docker" "run" "--rm" ...]))', "docker runs any program"),
        ('(allow (any-tool :argv ["python3" ...]))', "python3 runs any program"),
        ('(allow (run :argv ["uv" "run" "pytest" ...]))', ""),
        ('(allow (run :argv ["docker" "run" ...]))', "docker runs any program"),
        ('(allow (run :argv [(matches "^py") ...]))', "allows a shell or an interpreter"),
        ('(allow (run :argv [(not "rm") ...]))', "allows a shell or an interpreter"),
        ("(allow (run :argv (len < 4)))", "allows a shell or an interpreter"),
        ('(deny (run :argv ["rm -rf" ...]))', 'write ["rm" "-rf" ...]'),
        ('(allow (run :argv [(matches "^pytest$") ...]))', ""),
        ("(allow (run))", ""),
        ("(allow (run :argv _))", ""),
        ('(allow (run :argv ["git" "status" ...]))', ""),
        ('(allow (run :argv ["python" "-m" "pytest" ...]))', ""),
        ('(allow (run :argv ["ls" ...]))', ""),
        ('(ask (run :argv ["python3" ...]))', ""),
    ],
)
def test_an_allow_of_what_runs_anything_is_found(rule: str, found: str) -> None:
    findings = check(RulesPolicy([parse_layer("given", rule.encode(), "p.hy")]), table_of(RUN))
    assert [finding.message for finding in findings if found not in finding.message] == []
    assert bool(findings) == bool(found)


FILE = tool("file", params={"path": {"type": WorkspacePath}}, effects=["writes"])


@pytest.mark.parametrize(
    ("predicate", "pattern", "fits"),
    [
        ('"*.env"', r"\.env$", ["a.env", "b/.env"]),
        ('"**/.env"', r"(^|/)\.env$", [".env", "a/b/.env"]),
        ('"secrets/*"', "^secrets/", ["secrets/a", "secrets/a/b"]),
        ('(under "src/*.py")', r"^src/[^/]*\.py$", ["src/a.py"]),
        ('(one-of "a?.txt")', r"a[^/]\.txt$", ["ab.txt"]),
        ('"src/**/*.py"', r"^src/(.*/)?[^/]*\.py$", ["src/a.py", "src/b/c/a.py"]),
    ],
)
def test_a_pattern_of_a_shell_in_a_rule_is_found(
    predicate: str, pattern: str, fits: list[str], tmp_path: Path
) -> None:
    rule = f"(deny (file :path {predicate}))"
    policy = RulesPolicy([parse_layer("given", rule.encode(), "p.hy")])
    (finding,) = check(policy, table_of(FILE), Workspace(tmp_path))
    written = pattern.replace("\\", "\\\\")
    assert f'write (matches "{written}")' in finding.message
    assert all(re.search(pattern, path) for path in fits)


def test_a_file_whose_name_is_a_pattern_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "[id]*.tsx").touch()
    policy = RulesPolicy([parse_layer("given", b'(deny (file :path "[id]*.tsx"))', "p.hy")])
    assert check(policy, table_of(FILE), Workspace(tmp_path)) == []
