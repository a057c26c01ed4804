"""The command ``quoth completion``: a script with which bash, zsh or fish completes commands and options.

Knows the parser and the shells; what a word may be is read off the options, so that nothing is listed twice.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from quoth.agent.cli.options import DONE, Commands, Options, argument
from quoth.agent.cli.parser import Parser
from quoth.agent.terminal.output import print_json, print_line
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.visible import visible

FILE, FOLDER = "FILE", "DIR"  # what completes as a path


@dataclass(frozen=True)
class Level:
    """A command line up to a command or action: its words, what may follow, what each option takes, and what
    it takes as arguments: choices, or FILE or DIR."""

    words: str
    help: dict[str, str]  # of commands and options
    takes: dict[str, tuple[str, ...]]
    arguments: tuple[str, ...]


@dataclass(init=False, repr=False, eq=False)
class CompletionOptions(Options):
    shell: str = argument("SHELL", "bash, zsh or fish")


def add(commands: Commands) -> None:
    about = "Print a script with which a shell completes commands, options and files."
    whole = commands.whole
    commands.add("completion", about, CompletionOptions, lambda options: completion(options, whole))


def completion(options: CompletionOptions, whole: Parser | None) -> int:
    if options.shell not in SCRIPTS:
        hint = did_you_mean(options.shell, SCRIPTS) or f" There are {', '.join(SCRIPTS)}."
        raise UsageError(f"There is no completion for {visible(options.shell)}.{hint}")
    assert whole is not None, "it is a command and no action"
    script = SCRIPTS[options.shell](list(levels(whole, "")))
    print_json({"shell": options.shell, "script": script}) if options.json else print_line(script)
    return DONE


def levels(parser: Parser, words: str) -> Iterator[Level]:
    """The level of a parser, and those of its commands."""
    if parser.fill is not None:
        fill, parser.fill = parser.fill, None
        fill(parser)
    help: dict[str, str] = {}
    takes: dict[str, tuple[str, ...]] = {}
    arguments: tuple[str, ...] = ()
    inner: list[Level] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            help |= {one.dest: one.help or "" for one in action._choices_actions}
            for name, one in action.choices.items():
                inner += levels(one, f"{words} {name}".strip())
        elif action.option_strings:
            for flag in (one for one in action.option_strings if one.startswith("--")):
                help[flag] = action.help or ""
                if action.nargs != 0:
                    takes[flag] = _takes(action)
        else:
            arguments += _takes(action)
    yield Level(words, help, takes, arguments)
    yield from inner


# What the arguments may be of which the parser knows no choices.
KNOWN = {
    ("quoth models", "ACTION"): ("login", "logout"),
    ("quoth audit", "verify"): ("verify",),
    ("quoth new", "KIND"): ("tool", "plan", "policy", "bridge"),
    ("quoth completion", "SHELL"): ("bash", "zsh", "fish"),
}


def _takes(action: argparse.Action) -> tuple[str, ...]:
    """What an option or argument takes: its choices, or a path if its name in the help says so."""
    name = action.metavar if isinstance(action.metavar, str) else ""
    if action.choices:
        return tuple(map(str, action.choices))
    for (_, metavar), words in KNOWN.items():
        if name == metavar and not action.option_strings:
            return words
    if name == FOLDER:
        return (FOLDER,)
    return (FILE,) if any(part in name for part in ("FILE", "PATH", "PLAN", "SESSION")) else ()


def _kinds(takes: tuple[str, ...]) -> tuple[bool, bool, str]:
    """Whether files and folders complete, and the other words."""
    return FILE in takes, FOLDER in takes, " ".join(one for one in takes if one not in (FILE, FOLDER))


def _cases(levels: list[Level]) -> str:
    """What is known, as branches of a case that bash and zsh share: of ``quoth memory`` the words that may
    follow, of ``quoth memory <>`` what it takes as arguments, of ``quoth memory --kind`` what that takes.
    What the common options take stands at ``quoth`` alone."""
    common = set(levels[0].takes)
    found: dict[str, str] = {"quoth -": " ".join(word for word in levels[0].help if word.startswith("-"))}
    for one in levels:
        place = f"quoth {one.words}".strip()
        own = [word for word in one.help if not word.startswith("-") or word not in levels[0].help]
        found[place] = " ".join(own)
        found[f"{place} <>"] = " ".join(one.arguments)
        for flag, takes in one.takes.items():
            if not one.words or flag not in common:
                found[f"{place} {flag}"] = " ".join(takes) or "ANY"
    return "\n".join(
        f"    {shlex.quote(key)}) echo {shlex.quote(said)} ;;" for key, said in found.items() if said
    )


SHARED = """\
_quoth_known() {
  case "$1" in
CASES
  esac
}
_quoth_at() {  # the command line up to its command and action
  local at=quoth one
  for one in "$@"; do
    case " $(_quoth_known "$at") " in *" $one "*) [ "${one#-}" = "$one" ] && at="$at $one" ;; esac
  done
  echo "$at"
}
_quoth_takes() {  # FILE, DIR, ANY or words; $1: where we are, $2: the word before, $3: this one
  local takes=
  case "$2" in
    --*) takes=$(_quoth_known "$1 $2")
         [ -n "$takes" ] || takes=$(_quoth_known "quoth $2") ;;
  esac
  if [ -n "$takes" ]; then
    echo "$takes"
  elif [ "${3#-}" != "$3" ]; then
    echo "$(_quoth_known "$1") $(_quoth_known 'quoth -')"
  else
    echo "$(_quoth_known "$1") $(_quoth_known "$1 <>")"
  fi
}"""

BASH = """\
# Completion of quoth in bash: eval "$(quoth completion bash)", in ~/.bashrc for every shell.
SHARED
_quoth() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} at one found=() words=()
  at=$(_quoth_at "${COMP_WORDS[@]:1:COMP_CWORD-1}")
  for one in $(_quoth_takes "$at" "$before" "$word"); do
    case $one in
      FILE) compopt -o filenames 2>/dev/null; mapfile -t -O "${#found[@]}" found < <(compgen -f -- "$word") ;;
      DIR) compopt -o filenames 2>/dev/null; mapfile -t -O "${#found[@]}" found < <(compgen -d -- "$word") ;;
      ANY) ;;
      *) [[ $one == -* && $word != -* ]] || words+=("$one") ;;
    esac
  done
  COMPREPLY=("${found[@]}" $(compgen -W "${words[*]}" -- "$word"))
}
complete -F _quoth quoth"""

ZSH = """\
#compdef quoth
# Completion of quoth in zsh: eval "$(quoth completion zsh)", in ~/.zshrc after compinit for every shell.
SHARED
_quoth() {
  local word=${words[CURRENT]} before=${words[CURRENT-1]} at one
  local -a plain
  at=$(_quoth_at "${(@)words[2,CURRENT-1]}")
  for one in ${=$(_quoth_takes "$at" "$before" "$word")}; do
    case $one in
      FILE) _files ;;
      DIR) _files -/ ;;
      ANY) ;;
      *) [[ $one == -* && $word != -* ]] || plain+=("$one") ;;
    esac
  done
  (( $#plain )) && compadd -- $plain
}
(( $+functions[compdef] )) && compdef _quoth quoth"""


def _bash(levels: list[Level]) -> str:
    return BASH.replace("SHARED", SHARED.replace("CASES", _cases(levels)))


def _zsh(levels: list[Level]) -> str:
    return ZSH.replace("SHARED", SHARED.replace("CASES", _cases(levels)))


def _fish(levels: list[Level]) -> str:
    lines = ["# Completion of quoth in fish: quoth completion fish > ~/.config/fish/completions/quoth.fish"]
    names = [one.words for one in levels if one.words and " " not in one.words]
    lines.append("complete -c quoth -f")
    for one in levels:
        before = [f"__fish_seen_subcommand_from {word}" for word in one.words.split()]
        inner = [word for word in one.help if not word.startswith("-")] if one.words else names
        if inner:
            before.append(f"not __fish_seen_subcommand_from {' '.join(inner)}")
        when = f" -n {shlex.quote('; and '.join(before))}" if before else ""
        files, folders, words = _kinds(one.arguments)
        if files or folders:
            path = "-F" if files else "-a '(__fish_complete_directories)'"
            lines.append(f"complete -c quoth{when} {path}")
        if words:
            lines.append(f"complete -c quoth{when} -a {shlex.quote(words)}")
        for word, help in one.help.items():
            said = f" -d {shlex.quote(help)}"
            if not word.startswith("--"):
                lines.append(f"complete -c quoth{when} -a {word}{said}")
                continue
            if one.words and word in levels[0].help:
                continue  # a common option, which stands at the top already
            files, folders, words = _kinds(one.takes.get(word, ()))
            path = " -rF" if files else " -xa '(__fish_complete_directories)'" if folders else ""
            path = path or (f" -xa {shlex.quote(words)}" if words else " -x" if word in one.takes else "")
            place = "" if not one.words else when
            lines.append(f"complete -c quoth{place} -l {word[2:]}{path}{said}")
    return "\n".join(lines)


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
