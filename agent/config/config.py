"""The settings of ``config.hy`` as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from quoth.neuro.backends.providers import Provider
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.policy.spending import DailyBudget

if TYPE_CHECKING:
    from quoth.tools.shell.after import AfterWrite


@dataclass(frozen=True)
class Config:
    """The settings of a user and of a trusted workspace; None means not set.

    ``budget`` limits each run, with the names of RunLimits; ``daily`` limits a day. ``providers`` are
    configured in addition to the built-in table. ``gate_command`` is the program that judges every call,
    ``review`` the model that looks at calls before the person is asked (agent/run/review.py), ``mcp`` are
    files that list MCP servers; with ``mcp_sampling`` these may ask the model. ``after`` are programs that
    run after a file was written. ``shell`` lists what programs of the tool shell may use besides the
    workspace, with the names of Boundary.
    ``notes`` are sentences for a person about ignored files."""

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
    review: str | None = None
    mcp: tuple[str, ...] | None = None
    mcp_sampling: bool | None = None
    after: tuple[AfterWrite, ...] = ()
    shell: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


NO_CONFIG: Final = Config()
