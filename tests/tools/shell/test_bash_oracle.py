"""Bash as the oracle of the reader of command lines: what it runs is what the reader found.

Bash runs each line in an empty folder without any program: its handler of unknown commands notes the words.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quoth.tools.shell.command_line import CommandLine, read_line

BASH = shutil.which("bash") or "bash"
NOTING = """
ulimit -t 5 -f 100
FUNCNEST=2
command_not_found_handle() { printf '%s\\0' "$#" "$@" >> "$LOG"; return "$STATUS"; }
"""


def run_by_bash(line: str) -> set[tuple[str, ...]]:
    """The commands that bash runs where each succeeds, and where each fails."""
    found: set[tuple[str, ...]] = set()
    for status in ("0", "1"):
        with tempfile.TemporaryDirectory() as folder:
            start, log, here = Path(folder, "start"), Path(folder, "log"), Path(folder, "here")
            start.write_text(NOTING)
            log.touch()
            here.mkdir()
            environ = {"PATH": "/nowhere", "BASH_ENV": str(start), "LOG": str(log), "STATUS": status}
            subprocess.run(
                [BASH, "-c", "--", line],
                cwd=here,
                env={**environ, "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=60,
                check=False,
            )
            found |= set(noted(log.read_bytes().decode("utf-8", "replace")))
    return found


def noted(log: str) -> Iterator[tuple[str, ...]]:
    words = iter(log.split("\0")[:-1])
    for count in words:
        yield tuple(next(words) for _ in range(int(count)))


def covers(read: CommandLine, argv: tuple[str, ...]) -> bool:
    """Whether a command that bash ran is one that the reader found."""
    return any(
        one.argv == argv if one.literal else one.argv[: one.known] == argv[: one.known]
        for one in read.commands
    )


def is_hidden(read: CommandLine, line: str) -> bool:
    return any(one.argv == ("sh", "-c", line) and one.inner for one in read.commands)


NAMES = st.sampled_from(["a", "b", "rm", "-x", "--y=z"])
TEXTS = st.text("abm-_=:,+@^\u00e90123'\" \\#;|&$*(){}<>!~?[]", min_size=1, max_size=5)
LITERALS = st.one_of(
    NAMES,
    TEXTS.map(shlex.quote),
    TEXTS.map(
        lambda text: '"' + text.translate(str.maketrans({char: f"\\{char}" for char in '\\"$`'})) + '"'
    ),
    TEXTS.map(lambda text: "".join(f"\\{char}" for char in text)),
    TEXTS.map(lambda text: "$'" + text.replace("\\", "\\\\").replace("'", "\\'") + "\\x41\\101\\t'"),
)
ODD = st.sampled_from(
    ["$a", '"$a"', "`a`", "$(b)", "~", "*", "{a,b}", "{}", "a{b", "}", "!", "=", "#a", "a#", "[a", "]",
     "@(a|b)", "if", "then", "fi", "done", "time", "\\\n", "a\\\nb",
     "<(a)", ">b", "2>&1", "<a", ">>b c", "<<<a", "&>b",
     "-2>b", "a=b", "$", "%", "?", "env", "command", "exec", "coproc", "eval"]
)  # fmt: skip
JOINS = st.sampled_from(["; ", " && ", " || ", " | ", "\n", ";", " & ", "|&", " \\\n&& ", " ;; ", "", " "])
AROUND = st.sampled_from(
    ["(%s)", "( %s )", "{ %s; }", "{%s}", "! %s", "time %s", "if %s; then b; else rm; fi", "a() { %s; }; a",
     "for a in b c; do %s; done", "case a in a) %s;; esac", "[[ -f a ]] || %s", "%s # rm x", "# %s",
     "%s <<a\nb\na", "a <<'b'\n%s\nb\n", "a <<b\n%s\nb", "a <<b && rm\n%s\nb", "a <<-b\n%s\n\tb\n"]
)  # fmt: skip


def commands(words: st.SearchStrategy[str], first: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(first, st.lists(words, max_size=3)).map(lambda parts: " ".join((parts[0], *parts[1])))


def lines(simple: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.tuples(inner, JOINS, inner).map("".join)
        around = st.tuples(AROUND, inner).map(lambda pair: pair[0].replace("%s", pair[1]))
        return st.one_of(joined, around)

    return st.recursive(simple, wider, max_leaves=4)


def cut(parts: tuple[str, int, str]) -> str:
    line, place, instead = parts
    place %= len(line) + 1
    return line[:place] + instead + line[place + 1 :]


ANY = lines(commands(LITERALS | ODD, LITERALS | ODD))
BROKEN = st.tuples(ANY, st.integers(0, 40), st.sampled_from([*"'\"\\ \n#;(){}$|`&<>=!", ""])).map(cut)
UNHURRIED = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))


@given(st.lists(commands(LITERALS, NAMES.filter(lambda name: name[0] != "-")), min_size=1, max_size=3))
@UNHURRIED
def test_literal_commands_are_read_as_bash_reads_them(simple: list[str]) -> None:
    line = "; ".join(simple)
    read = read_line(line)
    assert {one.argv for one in read.commands} == run_by_bash(line)
    assert read.exact


@given(ANY | BROKEN)
@example("a 2>b c\\\nd")
@example("'a'  >&2 b\\\nc")
@example("b >&2 '\\.'\\ \\'\\.\\=")
@example("a=(b c)\\ 2>b a x")
@example("![[ -f a ]] && b")
@example("[2>&1b")
@example("{}")
@example("time a=b rm")
@example("\u00e9=b")
@example("a @(a|b)")
@example("(a")
@example("a <<b\nc\nb \nrm\nb")
@UNHURRIED
def test_bash_runs_nothing_that_was_not_read(line: str) -> None:
    read = read_line(line)
    if is_hidden(read, line):
        assert not read.exact
        return
    ran = run_by_bash(line)
    assert [argv for argv in ran if not covers(read, argv)] == []
    if read.exact:
        assert ran <= {one.argv for one in read.commands if one.literal}
