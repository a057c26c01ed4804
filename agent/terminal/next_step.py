"""Prints the commands that a person can type next.

Knows the wording; the caller chooses the commands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quoth.agent.terminal.output import complain


def tell_next(
    aim: str,
    command: str,
    *,
    requests: Iterable[str] = (),
    typed: Callable[..., str] = lambda *words, also="": "",
    name: str = "quoth: ",
) -> None:
    """Print for each of the ``requests`` the commands that decide it, as ``typed`` spells them, and then
    ``aim`` with the ``command`` that continues. ``name`` begins each line."""
    for one in requests:
        refusal = typed("deny", one, also=" --why TEXT")
        complain(f"To decide: {typed('approve', one)}, or: {refusal}", name)
    complain(f"{aim}: {command}", name)
