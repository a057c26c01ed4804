"""The limits of a run, and the run of the current call: what a host needs to know about runs, apart from the
files of the run itself, which a call of a person does not load."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import fields
from typing import Any, Literal, Self

from quoth.tools.history.receipts import WINDOW_SECONDS
from quoth.tools.lazy_dataclass import dataclass

# After a reply with calls: the run ends and the model sees their results with the next message, or it sees
# them at once.
AfterTags = Literal["stop", "continue"]
# The run of the current call: a Run, whose file is above this one.
RUNNING: ContextVar[Any] = ContextVar("RUNNING", default=None)
CALLING: ContextVar[str] = ContextVar("CALLING", default="")  # the key of the current call


@dataclass(frozen=True)
class RunLimits:
    """The limits of a run; each is a maximum.

    ``steps``: replies of the model.
    ``calls``: calls in these replies.
    ``repeats``: repetitions of the same call before the run is stopped.
    ``window``: seconds within which a repeated call is answered by its receipt (0: never).
    ``faults``: unusable replies in a row.
    ``result_chars``: characters of one result that the model sees at once.
    ``reply_tokens``: tokens of one reply (None: depends on the model).
    ``context``: the model's context window in tokens (None: the known size, neuro/backends/base.py).
    ``parallel``: calls of one reply that run at once, if they only read.
    ``tokens`` (in and out), ``cost`` (US dollars) and ``seconds`` bound the whole run (None: no bound).
    """

    steps: int = 25
    calls: int = 100
    repeats: int = 3
    window: float = WINDOW_SECONDS
    faults: int = 3
    result_chars: int = 6000
    reply_tokens: int | None = None
    context: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    parallel: int = 4

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Self:
        """The limits that a session has kept, without limits that this version does not know."""
        known = {one.name for one in fields(cls)}
        return cls(**{name: value for name, value in kept.items() if name in known})
