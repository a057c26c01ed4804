"""Argument vectors in rules: a program is the same by its word, its path and behind a program that runs it.

A literal vector in a rule fits only as it is written. Another spelling of it is undecided, so that it counts
for a deny and an ask, and never for an allow. Knows calls as rules see them; it must not know how rules are
written, or run anything.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from quoth.tools.policy.predicates import EvaluationContext, Predicate, Truth

# Programs that run the program that their arguments name.
WRAPPERS = frozenset(
    (
        *(
            "env",
            "xargs",
            "find",
            "nice",
            "nohup",
            "setsid",
            "timeout",
            "time",
            "watch",
            "sudo",
            "doas",
            "ssh",
        ),
        *("parallel", "script", "strace", "ltrace", "gdb", "busybox", "toybox", "ionice", "chrt", "taskset"),
        *("stdbuf", "unshare", "nsenter", "chroot", "flock", "su", "runuser", "setpriv", "prlimit", "npx"),
        *("uvx", "pipx", "uv", "poetry", "docker", "podman", "systemd-run", "exec", "command", "fd", "entr"),
    )
)
# Programs that run what stands in an argument, in their input or in a file.
INTERPRETERS = frozenset(
    (
        *("sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh", "pwsh", "python", "pypy", "node"),
        *("deno", "bun", "perl", "ruby", "php", "lua", "luajit", "awk", "gawk", "mawk", "tclsh", "osascript"),
        *("emacs", "guile", "sbcl", "hy", "julia", "Rscript"),
    )
)
RUNNERS = WRAPPERS | INTERPRETERS
_VERSION = re.compile(r"[-\d.]+\Z")  # python3.12
_PLAIN_WORD = re.compile(r"[\w./:=,+@%-]*\Z", re.ASCII)
_SPLITS = re.compile(r"-[a-zA-Z]*S|--split")  # env -S"rm a"
_NO_PROGRAM = "\0"


def program(word: str) -> str:
    """The name of a program: the last part of its path, without a version."""
    name = word.rpartition("/")[2]
    return _VERSION.sub("", name) or name


def of_vector(plain: Predicate, items: Sequence[Predicate], texts: Sequence[str | None]) -> Predicate:
    """The predicate ``plain`` of a literal vector, and of the other spellings of a program's arguments.
    ``items`` are its parts, and ``texts`` those of them that are texts."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        truth = plain(value, facts)
        if truth is None or "runs" not in facts.tool.effects or not _is_vector(value):
            return truth
        first, name = items[0](value[0], facts), value[0].rpartition("/")[2]
        if truth:
            excluded = items[0](_NO_PROGRAM, facts) and not items[0](name, facts)
            return None if excluded or _is_of_workspace(value[0], facts) else True
        if not first and items[0](name, facts):  # by its path
            value = [name, *value[1:]]
            return None if plain(value, facts) is not False or _behind_options(value, facts) else False
        return None if (_behind_options if first else _may_run)(value, facts) else False

    def _behind_options(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether options stand before the words that the rule names: ``git -C x push`` is a push."""
        pairs = enumerate(zip(items, value, strict=False))
        wrong = next((place for place, (item, word) in pairs if item(word, facts) is False), len(value))
        options = any(word.startswith("-") for word in value[1 : wrong + 1])
        return options and all(text is None or text in value[wrong:] for text in texts[wrong:])

    def _may_run(value: Sequence[str], facts: EvaluationContext) -> bool:
        """Whether a program may run one that the rule names."""
        name = program(value[0])
        if name in INTERPRETERS:
            return not _runs_file(name, value[1:])
        if name not in WRAPPERS:
            return False
        return any(
            not _PLAIN_WORD.match(word)
            or items[0](word, facts) is not False
            or items[0](word.rpartition("/")[2], facts) is not False
            or _SPLITS.match(word)
            or (program(word) in RUNNERS and _may_run(value[place:], facts))
            for place, word in enumerate(value[1:], 1)
        )

    return test


def _runs_file(name: str, rest: Sequence[str]) -> bool:
    """Whether an interpreter runs a file or a module, and nothing that its arguments or its input say."""
    if not rest:
        return False
    return not rest[0].startswith("-") or (name in ("python", "pypy") and rest[0] == "-m" and len(rest) > 1)


def _is_of_workspace(word: str, facts: EvaluationContext) -> bool:
    """Whether PATH finds the program in the workspace, where a model may have written it. One that is
    written as a path is that very file."""
    if "/" in word:
        return False
    found = shutil.which(word)
    return found is not None and (not Path(found).is_absolute() or Path(found).is_relative_to(facts.root))


def _is_vector(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(isinstance(word, str) for word in value)
