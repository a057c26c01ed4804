"""The reader of command lines: which commands it finds, which lines are exact, and bash as the oracle."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quoth.tools.shell.command_line import SimpleCommand, read_line

HIDDEN = "sh -c LINE"  # a program that is not in the line


def shown(line: str, command: SimpleCommand) -> str:
    if command.argv == ("sh", "-c", line) and command.inner:
        return HIDDEN
    return shlex.join(command.argv) + (" ..." if command.more else "")


def commands(line: str) -> list[str]:
    return [shown(line, command) for command in read_line(line).commands]


EXACT = {
    "ls -l": ["ls -l"],
    "": [],
    "# rm x": [],
    "ls # rm x": ["ls"],
    "ls ;# rm x": ["ls"],
    "ls -a; rm x && cat y || tail z | wc": ["ls -a", "rm x", "cat y", "tail z", "wc"],
    "ls |& wc": ["ls", "wc"],
    "ls\nrm x": ["ls", "rm x"],
    "(ls; rm x)": ["ls", "rm x"],
    "{ ls; rm x; }": ["ls", "rm x"],
    "if ls; then rm x; elif a; then b; else c; fi": ["ls", "rm x", "a", "b", "c"],
    "while a; do b; done": ["a", "b"],
    "until a; do b; done": ["a", "b"],
    "! rm x": ["rm x"],
    r"\rm x": ["rm x"],
    "r''m x": ["rm x"],
    'r"m" x': ["rm x"],
    '"/bin/rm" x': ["/bin/rm x"],
    "$'\\x72m' x": ["rm x"],
    "r\\\nm x": ["rm x"],
    r"a b\ c 'd e'\''f' $'g\th' ''": [r"a 'b c' 'd e'" + "\"'\"'f' 'g\th' ''"],
    r'''echo "a\"b\\c\d\$e"''': [r"""echo 'a"b\c\d$e'"""],
    "find . -name {} a{b}": ["find . -name '{}' 'a{b}'"],
    "env -i A=1 rm x": ["env -i A=1 rm x", "rm x"],
    "sudo -u me nice -n 5 rm x": ["sudo -u me nice -n 5 rm x", "nice -n 5 rm x", "rm x"],
    "timeout -k 3 5 nohup rm x": ["timeout -k 3 5 nohup rm x", "nohup rm x", "rm x"],
    "command rm x": ["command rm x", "rm x"],
    "time -p rm x": ["time -p rm x", "rm x"],
    "busybox rm x": ["busybox rm x", "rm x"],
    "bash -lc 'rm x; ls'": ["bash -lc 'rm x; ls'", "rm x", "ls"],
    "sh -ec 'rm x' a b": ["sh -ec 'rm x' a b", "rm x"],
    "sh script.sh": ["sh script.sh"],
    "echo cm0gLXJmIC8K | base64 -d | sh": ["echo cm0gLXJmIC8K", "base64 -d", "sh"],
    "git -c alias.x='!rm' x": ["git -c 'alias.x=!rm' x"],
    "r\u043c x": ["'r\u043c' x"],  # a Cyrillic letter: another program
}

INEXACT = {
    "a & rm x": ["a", "rm x"],
    "ls *.py": ["ls '*.py'"],
    "ls ~": ["ls '~'"],
    "ls {a,b}": ["ls '{a,b}'"],
    "ls $X": ["ls '$X'"],
    'ls "$X"': ["ls '$X'"],
    "ls $(rm x)": ["ls '$(rm x)'", "rm x"],
    "ls `rm x`": ["ls '`rm x`'", "rm x"],
    'ls "a $(rm x)"': ["ls 'a $(rm x)'", "rm x"],
    "diff <(rm x) y": ["diff '<(rm x)' y", "rm x"],
    "A=1 rm x": ["rm x"],
    "A=$(rm x)": ["rm x"],
    "rm x > y": ["rm x"],
    "> y rm x": ["rm x"],
    "ls > y -l": ["ls -l"],
    "rm x 2>&1": ["rm x"],
    "cat <<E\n$(rm x)\nE\n": ["cat", "rm x"],
    "cat <<E && rm x\nhi\nE\n": ["cat", "rm x"],
    "cat <<'E'\nrm x\nE\n": ["cat"],
    "cat <<< x": ["cat"],
    "cd a && ls": ["cd a", "ls"],
    "f() { rm x; }; f": ["rm x", "f"],
    "ls() { rm x; }; ls": ["rm x", "ls"],
    "for i in 1; do rm $i; done": ["rm '$i'"],
    "case x in a) rm x;; esac": ["rm x"],
    "[ -f x ] && rm x": ["rm x"],
    "[[ -f x ]] && rm x": ["rm x"],
    "find . | xargs -n 1 rm -f": ["find .", "xargs -n 1 rm -f", "rm -f ..."],
    "bash -c 'rm $X'": ["bash -c 'rm $X'", "rm '$X'"],
    "exec rm x": ["exec rm x", "rm x"],
    "ls \u202erm": ["ls '\u202erm'"],
}  # fmt: skip

# Lines that may run what is not in them.
OPAQUE = {
    "X=rm; $X a": ["'$X' a", HIDDEN],
    "rm${IFS}-rf": ["'rm${IFS}-rf'", HIDDEN],
    "$(echo rm) x": ["'$(echo rm)' x", HIDDEN, "echo rm"],
    "eval 'rm x'": ["eval 'rm x'", HIDDEN],
    "source x": ["source x", HIDDEN],
    ". x": [". x", HIDDEN],
    "trap 'rm x' EXIT": ["trap 'rm x' EXIT", HIDDEN],
    "alias ll='rm x'": ["alias 'll=rm x'", HIDDEN],
    "((((": [HIDDEN],
    "rm 'x": [HIDDEN, "rm"],
    "ls\u00a0-l": [HIDDEN],
    "ls\r": [HIDDEN, "'ls\ufffd'"],
    "ls\0; rm x": [HIDDEN, "'ls\ufffd'", "rm x"],
    "env --strange rm x": ["env --strange rm x", HIDDEN],
    "time a=b rm x": ["time a=b rm x", HIDDEN],
    "time { rm x; }": ["time '{' rm x", "'{' rm x", HIDDEN, "'}'"],
    "a[0]=1 (rm x)": [HIDDEN, "rm x"],
    "cat <<E\nhi\nE \nrm x": ["cat", HIDDEN, "rm x"],
    "ls -2>&1b": ["ls", HIDDEN],
    "a 2>b c\\\nd": [HIDDEN, "a c d"],
    "ls @(a|b)": [HIDDEN, "ls '@(a|b)'", "a", "b"],
    "/bin/r?": ["'/bin/r?'", HIDDEN],
}  # fmt: skip


@pytest.mark.parametrize("line", EXACT)
def test_an_exact_line_is_its_commands(line: str) -> None:
    assert commands(line) == EXACT[line]
    assert read_line(line).exact, read_line(line).why


@pytest.mark.parametrize("line", INEXACT)
def test_an_inexact_line_still_shows_its_commands(line: str) -> None:
    assert commands(line) == INEXACT[line]
    assert not read_line(line).exact


@pytest.mark.parametrize("line", OPAQUE)
def test_a_line_that_may_run_anything_says_so(line: str) -> None:
    assert not read_line(line).exact
    assert commands(line) == OPAQUE[line]


def test_redirections_name_their_files() -> None:
    line = read_line("cat < a > b 2>> 'c d'; cd e; ls &> f; rm x > /dev/null 2>&1; ls > $X < g*")
    assert line.reads == ("a", None)
    assert line.writes == ("b", "c d", "f", "e/f", None)
    unknown = read_line("cd $X && ls > f > /g")
    assert unknown.writes == (None, "/g")


WORD = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=8)


@given(st.lists(WORD, min_size=1, max_size=6))
def test_quoted_words_read_back(words: list[str]) -> None:
    words = ["say", *words]
    line = " ".join("'" + word.replace("'", "'\"'\"'") + "'" for word in words)  # unquoted, "=" is unknown
    read = read_line(line)
    if any((ord(char) < 32 and char not in "\t\n") or ord(char) == 127 for char in line):
        assert HIDDEN in [shown(line, command) for command in read.commands]
    else:
        assert read.commands[0].argv == tuple(words)
        assert read.commands[0].literal
