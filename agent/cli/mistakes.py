"""What is said of a command or an option that there is not: the nearest one, or where to look.

Knows words only; the parser knows which there are.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoth.tools.errors import UsageError, did_you_mean, nearest
from quoth.tools.visible import visible

# What other programs call our commands, where the spelling alone would not lead there.
MEANT = {
    word: ours
    for ours, words in {
        "run": "ask prompt do exec task query",
        "chat": "talk",
        "sessions": "ls list history",
        "log": "show cat transcript",
        "rm": "delete remove",
        "resume": "continue",
        "models": "login logout auth key keys providers",
        "tools": "functions",
        "fly": "flight plan plans",
        "policy": "rules permissions",
        "pending": "requests approvals",
        "new": "init create scaffold template",
        "doctor": "check status diagnose info health",
        "help": "man manual docs",
        "quoth, without a command": "repl shell",
        "quoth --version": "version",
        "quoth tools test": "test",
    }.items()
    for word in words.split()
}


def no_command(what: str, word: str, program: str, known: Sequence[str]) -> UsageError:
    """The error for a ``what``, command or action, that ``program`` has not."""
    whole = f" of {program}" if what == "action" else ""
    meant = MEANT.get(word.lower(), "") if what == "command" else ""
    hint = f" Did you mean {meant}?" if meant and meant.split(",")[0].split()[0] in (*known, "quoth") else ""
    hint = hint or did_you_mean(word, known) or f" The {what}s{whole} are {', '.join(known)}."
    return UsageError(f"There is no {what} {visible(word)}{whole}.{hint}")


def no_option(word: str, program: str, known: Sequence[str], where: str) -> UsageError:
    """The error for an option that ``program`` has not; ``where`` is said if none ``known`` is near."""
    near = nearest(word.lstrip("-"), [one.lstrip("-") for one in known if abs(len(one) - len(word)) < 4])
    return UsageError(
        f"{program} has no option {visible(word)}{where if near is None else f'. Did you mean --{near}?'}"
    )
