"""Finds the command that a wrapper runs: ``env A=1 rm x`` runs ``rm x``, ``sh -c 'rm x'`` the line ``rm x``.

Wrappers are read by structure: options, operands, variables, then the command. An option that is not in the
table ends the reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from quoth.tools.shell.shell_words import Word

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "rbash"))
_ASSIGNMENT = re.compile(r"\w+=")


class WrapperOptions(NamedTuple):
    """The options of a wrapper, and what precedes its command. ``attached`` letters take the rest of their
    word as an optional value."""

    flags: str = ""
    values: str = ""
    attached: str = ""
    long_flags: tuple[str, ...] = ()
    long_values: tuple[str, ...] = ()
    operands: int = 0
    variables: bool = False
    more: bool = False  # the command receives further words


class WrappedCommand(NamedTuple):
    """What a wrapper runs: a command, or a ``line`` of a shell. With ``more`` the command receives further
    words. Neither: the wrapper could not be read."""

    words: Sequence[Word] = ()
    line: str | None = None
    more: bool = False


_SUDO = WrapperOptions(
    "AbBEHikKnNPsSvl",
    "ughpCrtTDRU",
    long_flags=("--preserve-env", "--non-interactive", "--background", "--login", "--shell", "--set-home"),
    long_values=("--user", "--group", "--host", "--prompt", "--chdir", "--preserve-env"),
    variables=True,
)
WRAPPERS = {
    "env": WrapperOptions(
        "i0v",
        "uC",
        long_flags=("--ignore-environment", "--null", "--debug"),
        long_values=("--unset", "--chdir"),
        variables=True,
    ),
    "sudo": _SUDO,
    "doas": WrapperOptions("Lns", "aCu"),
    "nohup": WrapperOptions(),
    "setsid": WrapperOptions("cfw", long_flags=("--ctty", "--fork", "--wait")),
    "time": WrapperOptions("pvaq", "fo", long_flags=("--portability", "--verbose", "--append", "--quiet"),
                    long_values=("--format", "--output")),
    "command": WrapperOptions("p"),
    "builtin": WrapperOptions(),
    "exec": WrapperOptions("cl", "a"),
    "nice": WrapperOptions("0123456789", "n", long_values=("--adjustment",)),
    "ionice": WrapperOptions("t", "cnpP", long_flags=("--ignore",), long_values=("--class", "--classdata")),
    "stdbuf": WrapperOptions("", "ioe", long_values=("--input", "--output", "--error")),
    "timeout": WrapperOptions("v", "ks", long_flags=("--foreground", "--preserve-status", "--verbose"),
                       long_values=("--kill-after", "--signal"), operands=1),
    "busybox": WrapperOptions(),
    "toybox": WrapperOptions(),
    "xargs": WrapperOptions("0oprtx", "EIJLnPRsSad", attached="eil",
                     long_flags=("--null", "--no-run-if-empty", "--verbose", "--interactive", "--exit",
                                 "--open-tty"),
                     long_values=("--arg-file", "--delimiter", "--max-args", "--max-procs", "--max-lines",
                                  "--max-chars", "--replace", "--eof", "--process-slot-var"), more=True),
}  # fmt: skip
_SHELL_FLAGS = frozenset("abefhiklmnprstuvxBCDEHPT")
_SHELL_LONG = ("--login", "--norc", "--noprofile", "--posix", "--restricted", "--verbose", "--noediting")


def inner_of(words: Sequence[Word]) -> WrappedCommand | None:
    """What a command runs; None if it is not a wrapper, or runs nothing that its words name."""
    name = words[0].text.rpartition("/")[2]
    if name in SHELLS:
        return _line_of(words)
    options = WRAPPERS.get(name)
    if options is None or len(words) == 1:
        return None
    place = _after_options(words, options)
    if place is None:
        return WrappedCommand()
    place += options.operands
    if name == "time" and place < len(words) and _ASSIGNMENT.match(words[place].text):
        return WrappedCommand()  # the keyword of bash takes variables, the program does not
    while options.variables and place < len(words) and _ASSIGNMENT.match(words[place].text):
        place += 1
    return WrappedCommand(words[place:], more=options.more) if place < len(words) else None


def _after_options(words: Sequence[Word], options: WrapperOptions) -> int | None:
    """The place of the first word after the options; None if an option is not known."""
    place = 1
    while place < len(words):
        text, known = words[place]
        if not known:
            return None
        if text == "--":
            return place + 1
        if not text.startswith("-") or text == "-":
            return place
        if text.startswith("--"):
            name, equals, _ = text.partition("=")
            if name not in options.long_flags and name not in options.long_values:
                return None
            place += 1 if equals or name in options.long_flags else 2
            continue
        taken = _letters(text[1:], options)
        if not taken:
            return None
        place += taken
    return place


def _letters(letters: str, options: WrapperOptions) -> int:
    """How many words a group of short options takes; 0 if one is not known."""
    for place, letter in enumerate(letters, 1):
        if letter in options.attached:
            return 1
        if letter in options.values:
            return 1 if place < len(letters) else 2
        if letter not in options.flags:
            return 0
    return 1


def _line_of(words: Sequence[Word]) -> WrappedCommand | None:
    """The line that a shell receives with ``-c``."""
    runs_line, place = False, 1
    while place < len(words):
        text, known = words[place]
        if not known:
            return WrappedCommand()
        if text[:1] not in ("-", "+") or text in ("-", "--"):
            place += text in ("-", "--")
            break
        if text.startswith("--"):
            if text not in _SHELL_LONG:
                return WrappedCommand()
            place += 1
            continue
        letters = text[1:]
        runs_line = runs_line or (text[0] == "-" and "c" in letters)
        if not _SHELL_FLAGS.issuperset(letters.replace("c", "").replace("o", "").replace("O", "")):
            return WrappedCommand()
        place += 1 + letters.count("o") + letters.count("O")
    if not runs_line or place >= len(words):
        return None
    return WrappedCommand(line=words[place].text) if words[place].known else WrappedCommand()
