"""How a model is to be reached, apart from its name, and what counts where nothing was said.

Plain data. Must not know a provider, nor where configuration is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from quoth.neuro.backends.providers import Provider


@dataclass(frozen=True, repr=False)
class Settings:
    """What the caller says of a model's server. None leaves it to the configuration, then to the back end.

    ``timeout`` is how many seconds the server may be silent."""

    base_url: str | None = None  # it may hold a password: there is no repr
    api_key: str | None = None
    timeout: float | None = None
    temperature: float | None = None


class Defaults(Protocol):
    """What a configuration says of models (agent/config). ``providers`` are its own, by name."""

    @property
    def model(self) -> str | None: ...

    @property
    def timeout(self) -> float | None: ...

    @property
    def temperature(self) -> float | None: ...

    @property
    def providers(self) -> Mapping[str, Provider]: ...


@dataclass(frozen=True)
class NoDefaults:
    """Nothing is configured."""

    model: str | None = None
    timeout: float | None = None
    temperature: float | None = None
    providers: Mapping[str, Provider] = field(default_factory=dict)


NO_SETTINGS = Settings()
NO_DEFAULTS = NoDefaults()
