"""Which roles a server takes in a conversation, and how it says so: some servers, and the templates of some
models, refuse a role, or two messages of one side.

Knows words of errors; it must not know how a conversation is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Roles:
    """The roles that a server takes: whether ``system`` is one; with ``strict`` the assistant has to say
    something between a result and the next message of the user."""

    system: bool = True
    strict: bool = False


ALL_ROLES = Roles()

_SYSTEM = r"\b(?:system|developer)['\"`]?[ _](?:role|message|prompt|instruction)s?\b"
_REFUSED = r"(?:not |un)(?:be )?(?:support|allow|enabl|accept|permit)"
_NO_SYSTEM = re.compile(
    rf"{_SYSTEM}[^.\n]{{0,40}}{_REFUSED}|{_REFUSED}\w*[^.\n]{{0,40}}{_SYSTEM}"
    r"|roles?\b[^.\n]{0,20}['\"`]system['\"`]|['\"`]system['\"`] is not |unexpected role system\b",
    re.IGNORECASE,
)
_ONLY = re.compile(r"\bonly (?:supports? )?['\"`]?user\b[^.\n]{0,40}\broles?\b", re.IGNORECASE)
_ALTERNATE = re.compile(
    r"\balternat(?:e|es|ing|ion)\b|unexpected role '?user'? after role '?tool"
    r"|\b(?:consecutive|multiple|two) [^.\n]{0,20}\b(?:user|assistant|same role)\b",
    re.IGNORECASE,
)


def roles_to_try(said: str, roles: Roles) -> list[Roles]:
    """What may be tried, in this order, where a server refuses the roles of a conversation; nothing where its
    words are about something else."""
    if _ALTERNATE.search(said):
        return [replace(roles, strict=True), Roles(system=False, strict=True)]
    return [replace(roles, system=False)] if _NO_SYSTEM.search(said) or _ONLY.search(said) else []


def refuses_results(said: str) -> bool:
    """Whether words that no other roles have helped against can be about the results of native calls."""
    return bool(_ALTERNATE.search(said) or _ONLY.search(said))
