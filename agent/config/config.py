"""What the user's ``config.hy`` may say, as plain data.

Must not know where the file is, how it is written, or who obeys it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from quoth.neuro.backends.providers import Provider
from quoth.tools.policy.spending import DailyBudget

if TYPE_CHECKING:
    from quoth.tools.shell.after import AfterWrite


@dataclass(frozen=True)
class Config:
    """The settings of a user and of a trusted workspace; None is what nobody has said.

    ``budget`` bounds each run, by the names of RunLimits; ``daily`` bounds a day. ``providers`` are those
    configured beside the table, ``gate_command`` is the program that judges every call, ``after`` are those
    that run after a file was written, ``shell`` is what programs of the tool shell may see beside the
    workspace, by the names of Boundary, ``notes`` sentences for a person about files that do not count."""

    model: str | None = None
    dialect: str | None = None
    temperature: float | None = None
    timeout: float | None = None
    instructions: str | None = None
    reply_tokens: int | None = None
    budget: Mapping[str, float] = field(default_factory=dict)
    daily: tuple[DailyBudget, ...] = ()
    providers: Mapping[str, Provider] = field(default_factory=dict, repr=False)
    gate_command: tuple[str, ...] | None = None
    after: tuple[AfterWrite, ...] = ()
    shell: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


NO_CONFIG: Final = Config()
