"""Who may call a tool of a worker: the option ``--allow``, and the rules that name users.

It knows words, rules and tables; it must not know how a worker checks them.
"""

from __future__ import annotations

from collections.abc import Iterable

from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.lisp.forms import kebab
from quoth.tools.policy.offer import permissions_of
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.parameters import NAME
from quoth.tools.registry.table import EVERYBODY, ToolTable


def read_allow(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The users by tool, of options such as ``count-fruit=ann,ben``; those of a tool that is named twice add
    up. Raises UsageError."""
    found: dict[str, tuple[str, ...]] = {}
    for word in words:
        name, equals, rest = word.partition("=")
        tool, users = kebab(name.strip()), [user.strip() for user in rest.split(",")]
        if not equals or not NAME.match(tool):
            raise UsageError(f"--allow takes TOOL=USER,…, such as count-fruit=ann,ben; not {word}.")
        if not all(users):
            raise UsageError(f"--allow {word} has an empty name; every user of {tool} is written {tool}=*.")
        if EVERYBODY in users and len(users) > 1:
            raise UsageError(f"--allow {word} names users beside *, which is everybody.")
        found[tool] = tuple(dict.fromkeys((*found.get(tool, ()), *users)))
    return found


def permissions_for(
    policy: RulesPolicy, table: ToolTable, allow: dict[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The users of each tool that not everybody may call: those whom ``allow`` and the rules let call it.
    Raises UsageError for a tool that is not in the table."""
    for name, users in allow.items():
        if name not in table:
            hint = did_you_mean(name, table.names()) or f" The tools are {', '.join(table.names())}."
            raise UsageError(f"--allow names {name}, and there is no such tool.{hint}")
        for user in users:
            if "=" in user and user.split("=")[0].strip() in table:
                raise UsageError(
                    f"--allow {name}=… names another tool, too: give {user} an --allow of its own."
                )
    found = {table.get(name).name: users for name, users in allow.items() if EVERYBODY not in users}
    for name, users in permissions_of(policy, table).items():
        found[name] = tuple(user for user in found.get(name, users) if user in users)
    return found
