"""What a person is told to type next, printed in one place.

Knows how it is said; which command goes on is for others to say.
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
    """Tell how to decide each of the ``requests``, for which ``typed`` spells the commands, and which command
    goes on then."""
    for one in requests:
        refusal = typed("deny", one, also=" --why TEXT")
        complain(f"To decide: {typed('approve', one)}, or: {refusal}", name)
    complain(f"{aim}: {command}", name)
