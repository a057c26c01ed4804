"""Argument vectors in rules: a program is the same by its word, its path and behind a program that runs it.

A literal vector in a rule fits only as it is written. Another spelling of it is undecided, so that it counts
for a deny and an ask, and never for an allow. Knows calls as rules see them; it must not know how rules are
written, or run anything.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from quoth.tools.policy.predicates import EvaluationContext, Predicate, Truth, equals_list
from quoth.tools.storage.paths import real_path

# Programs that run the program that their arguments name.
WRAPPERS = frozenset(
    (
        *("env", "xargs", "find", "nice", "nohup", "setsid", "timeout", "time", "watch", "sudo", "doas"),
        *("parallel", "script", "strace", "ltrace", "gdb", "busybox", "toybox", "ionice", "chrt", "taskset"),
        *("stdbuf", "unshare", "nsenter", "chroot", "flock", "su", "runuser", "setpriv", "prlimit", "npx"),
        *("uvx", "pipx", "uv", "poetry", "docker", "podman", "systemd-run", "exec", "command", "fd", "entr"),
        *("ssh", "deno", "bun"),
    )
)
# Wrappers that take each word as it is: none of them passes one through a shell.
PLAIN = frozenset(
    (
        *("env", "nice", "nohup", "setsid", "timeout", "time", "ionice", "chrt", "taskset", "stdbuf"),
        *("setpriv", "prlimit", "uv"),
    )
)
FED = frozenset(("xargs", "parallel"))  # wrappers whose input gives them more words
# Programs that run what stands in an argument, in their input or in a file.
INTERPRETERS = frozenset(
    (
        *(
            "rbash",
            "sh",
            "bash",
            "dash",
            "zsh",
            "ksh",
            "ash",
            "fish",
            "csh",
            "tcsh",
            "pwsh",
            "python",
            "pypy",
            "node",
        ),
        *("perl", "ruby", "php", "lua", "luajit", "awk", "gawk", "mawk", "tclsh", "osascript"),
        *("emacs", "guile", "sbcl", "hy", "julia", "Rscript"),
    )
)
PROGRAMMED = frozenset(("awk", "gawk", "mawk"))  # their first argument is a program
# Programs whose arguments name no program; any other one may run what its arguments name.
DATA_ONLY = frozenset(
    ("ls", "cat", "head", "tail", "echo", "printf", "wc", "uniq", "cut", "tr", "grep", "egrep", "fgrep",
     "diff", "cmp", "stat", "file", "du", "df", "mkdir", "rmdir", "touch", "cp", "mv", "ln", "chmod",
     "chown", "pwd", "date", "true", "false", "test", "basename", "dirname", "realpath", "readlink",
     "id", "whoami", "uname", "which", "type", "sleep", "seq", "tee", "base64", "od", "xxd", "tree",
     "jq", "md5sum", "sha256sum", "pytest", "ruff", "mypy", "black", "isort", "prettier", "eslint",
     "shellcheck")
)  # fmt: skip
# Commands of git that run no program that their arguments name.
_OF_GIT = frozenset(
    ("add", "commit", "status", "log", "diff", "show", "branch", "checkout", "switch", "restore",
     "stash", "tag", "merge", "blame", "ls-files", "rev-parse", "init", "mv",
     "reset", "cherry-pick", "revert", "describe", "shortlog")
)  # fmt: skip
_RUN_TEXT = ("timeit", "pdb", "code")  # modules of Python that run what an argument says
RUNNERS = WRAPPERS | INTERPRETERS
_VERSION = re.compile(r"[-\d.]+\Z")  # python3.12
_PLAIN_WORD = re.compile(r"[\w./:=,+@%-]*\Z", re.ASCII)
_SPLITS = re.compile(r"-[a-zA-Z]*S|--s(?:p|=|\Z)")  # env -S"rm a"
_EXEC = re.compile(r"-(exec|ok)")  # find runs no program without one of these
_RUNS_MORE = re.compile(r"system|[|@]|\A(?:-[feEil]|--)")  # nor does awk
_NO_PROGRAM = "\0"
_WORDS = re.compile(r"[\w.+-]+")
_QUOTES = str.maketrans("", "", "'\"\\")  # a shell takes them out: r''m
_COMPUTES = re.compile(r"`|\$[\w({]")


def program(word: str) -> str:
    """The name of a program: the last part of its path, without a version."""
    name = word.rpartition("/")[2]
    return _VERSION.sub("", name) or name


def of_vector(
    items: Sequence[Predicate], texts: Sequence[str | None], programs: Collection[str], more: bool
) -> Predicate:
    """The predicate of a literal vector, with ``more`` words at its end perhaps, and of the other spellings
    of a program's arguments. ``items`` are its parts, ``texts`` those of them that are texts, and
    ``programs`` the texts with which the first is equality."""
    plain, rest = equals_list(items, more), equals_list(items[1:], more)
    names = {_last_part(word) for word in programs}

    def test(value: Any, facts: EvaluationContext) -> Truth:
        truth = plain(value, facts)
        if truth is None or "runs" not in facts.tool.effects or not _is_vector(value):
            return truth
        if truth:
            name = _last_part(value[0])
            excluded = items[0](_NO_PROGRAM, facts) and not items[0](name, facts)
            return None if excluded or _is_of_workspace(value[0], facts) else True
        if not _is_named(value[0], facts):
            return None if _may_run(value, facts) else False
        return None if rest(value[1:], facts) is not False or _behind_options(value, facts) else False

    def _is_named(word: str, facts: EvaluationContext) -> bool:
        """Whether the rule names the program of this word, by any path."""
        name = _last_part(word)
        return name in names or any(items[0](one, facts) is not False for one in {word, name})

    def _behind_options(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether options stand before the words that the rule names: ``git -C x push`` is a push."""
        pairs = enumerate(zip(items[1:], value[1:], strict=False), 1)
        wrong = next((place for place, (item, word) in pairs if item(word, facts) is False), len(value))
        options = any(word.startswith("-") for word in value[1 : wrong + 1])
        return options and all(text is None or text in value[wrong:] for text in texts[wrong:])

    def _may_run(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether a program may run one that the rule names."""
        name = program(value[0])
        if name in INTERPRETERS and not _runs_file(name, value[1:]):
            return True
        if (
            name in PROGRAMMED
            or _is_data_only(name, value[1:])
            or (name == "find" and not any(map(_EXEC.match, value)))
        ):
            return False
        named = _names(value, facts)
        if named or name not in WRAPPERS:
            return named
        wrappers = WRAPPERS.intersection(map(program, value))
        plain = wrappers <= PLAIN
        others = PROGRAMMED if FED.isdisjoint(wrappers) else PROGRAMMED | WRAPPERS
        return any(
            not (plain or _PLAIN_WORD.match(word))
            or _is_named(word, facts)
            or _SPLITS.match(word)
            or program(word) in others
            or (program(word) in INTERPRETERS and not _runs_file(program(word), value[place : place + 2]))
            for place, word in enumerate(value[1:], 2)
        )

    def _names(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether the arguments of a program that may run others name one, or say what nobody can tell."""
        if items[0](_NO_PROGRAM, facts):  # the rule is about all programs but some
            return False
        words = [word.translate(_QUOTES) for word in takewhile(lambda word: word not in DATA_ONLY, value[1:])]
        parts = [part for word in words for part in _WORDS.findall(word)]
        parts += [part[2:] for part in parts if part[:1] == "-"]  # -Irm
        named = any(_is_named(part, facts) for part in parts)
        return (
            (named and all(text is None or text in parts for text in texts[1:]))
            or any(_COMPUTES.search(word) or _may_run_text(word) for word in words)
            or any(_interprets(value[place : place + 3]) for place in range(1, len(words) + 1))
        )

    return test


def _may_run_text(word: str) -> bool:
    """Whether a text of several words has the name of an interpreter in it."""
    parts = _WORDS.findall(word)
    return len(parts) > 1 and any(program(part) in INTERPRETERS for part in parts)


def _interprets(value: Sequence[str]) -> bool:
    """Whether words behind those of another program may be an interpreter and its text."""
    name = program(value[0])
    return name in INTERPRETERS and (name in PROGRAMMED or not _runs_file(name, value[1:]))


def _is_data_only(name: str, rest: Sequence[str]) -> bool:
    """Whether the arguments of a program are no programs."""
    if name != "git":
        return name in DATA_ONLY
    while rest[:1] == ["-C"] or rest[:1] == ["--no-pager"]:
        rest = rest[2 if rest[0] == "-C" else 1 :]
    return bool(rest) and rest[0] in _OF_GIT


def _last_part(word: str) -> str:
    return word.rpartition("/")[2]


def _runs_file(name: str, rest: Sequence[str]) -> bool:
    """Whether an interpreter runs a file or a module, and nothing that its arguments or its input say."""
    if not rest:
        return False
    if name in PROGRAMMED:
        return not any(map(_RUNS_MORE.search, rest))
    if rest[0] == "-m" and rest[1:2] and rest[1] in _RUN_TEXT:
        return False
    return not rest[0].startswith("-") or (name in ("python", "pypy") and rest[0] == "-m" and len(rest) > 1)


def _is_of_workspace(word: str, facts: EvaluationContext) -> bool:
    """Whether PATH finds the program in the workspace, by a link perhaps: a model may have written it. One
    that is written as a path is that very file."""
    if "/" in word or (found := shutil.which(word)) is None:
        return False
    places = (real_path(Path(found).parent), real_path(Path(found)))
    return not Path(found).is_absolute() or any(place.is_relative_to(facts.root) for place in places)


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) for word in value)
