"""The list of models: configured, answering and missing ones, and how to get the missing ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from quoth.neuro.backends.providers import PROVIDERS, ApiKey, Defaults, Provider, added, find_provider, key_of
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.storage.secrets import beside_loop
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.neuro.backends.base import Backend

Opened: TypeAlias = "tuple[ApiKey, Backend] | QuothError"
SHOWN = 6  # models shown of a server

State = Literal["ready", "missing", "down"]


@dataclass
class ProviderStatus:
    """The state of a provider; ``answers`` is None if it was not asked."""

    name: str
    state: State
    detail: str
    spec: str
    url: str | None = None
    key: str = ""  # the environment variable of its key
    key_from: str = ""
    answers: bool | None = None
    models: list[str] = field(default_factory=list)
    default: bool = False  # whether one of its models is the default


@dataclass(frozen=True)
class ModelList:
    """``spec`` is the default model, empty if there is none, ``default`` a sentence about it; ``troubles``
    are further problems."""

    rows: Sequence[ProviderStatus]
    spec: str
    default: str
    troubles: Sequence[str] = ()

    def __str__(self) -> str:
        width = max(len(row.spec) for row in self.rows)
        lines = [f"{row.spec:{width}}  {row.state:7}  {row.detail}" for row in self.rows]
        return "\n".join([*lines, "", self.default])


async def list_models(config: Defaults, *, check: bool = False) -> ModelList:
    """The state of all providers. Servers on this machine are asked; others only with ``check``."""
    others = list(added())
    rows = [
        *PROVIDERS.values(),
        *config.providers.values(),
        *(one for one in others if isinstance(one, Provider)),
    ]
    servers = [row for row in rows if row.backend is not None]
    # One after another: a keyring that is locked asks the person once.
    opened, (spec, default) = await beside_loop(
        lambda: ([_opened(row, config) for row in servers], _default(config))
    )
    backends = {row.name: one for row, one in zip(servers, opened, strict=True)}
    found = await asyncio.gather(*(_look(row, config, check, backends.get(row.name)) for row in rows))
    for row in found:
        row.default = bool(spec) and spec.partition(":")[0] == row.name
    return ModelList(
        found, spec, default, [*map(str, (one for one in others if isinstance(one, UsageError))), *_resting()]
    )


async def specs_of(config: Defaults) -> tuple[str, list[str]]:
    """The spec of the default model, empty if there is none; and the specs of models to choose from: those of
    servers of this machine, the embedded ones, and the usual one of each provider with a key."""
    found, listed = [], await list_models(config)
    for row in listed.rows:
        provider = find_provider(row.name, config.providers)
        if row.state != "ready" or provider is None:
            continue
        usual = [provider.example] if row.key_from and not row.answers else []
        found += [f"{row.name}:{name}" for name in row.models] or usual
        found += [row.name] if row.name.startswith("local") else []
    return listed.spec, found


def _default(config: Defaults) -> tuple[str, str]:
    """The default model and a sentence about it; or an empty text and the reason why there is none."""
    from quoth.neuro.backends.select import default_model, provider_of

    by = "QUOTH_MODEL" if os.environ.get("QUOTH_MODEL") else "config.hy" if config.model else ""
    try:
        spec = default_model(config=config)
        provider_of(spec, config)
    except UsageError as error:
        why = str(error).removesuffix(" What there is: quoth models")  # this is that list
        return "", f"{by}: {why}" if by else why
    return spec, f"Without --model: {visible(spec)}{by and f', from {by}'}."


def _resting() -> list[str]:
    """A sentence for each server that this process does not use for a while."""
    from quoth.neuro.backends.base import resting

    return [
        f"{one.server} failed too often; quoth tries it again in {one.left or 0:.0f} s. {one.why}"
        for one in resting()
    ]


def _opened(provider: Provider, config: Defaults) -> Opened:
    """The back end of a server with its key, or why there is none."""
    from quoth.neuro.backends.select import choose_backend

    try:
        return key_of(provider), choose_backend(provider.example or provider.name, config=config)
    except QuothError as error:
        return error


async def _look(provider: Provider, config: Defaults, check: bool, opened: Opened | None) -> ProviderStatus:
    found = ProviderStatus(provider.name, "ready", provider.help, provider.spec, key=provider.key)
    if opened is not None:
        await _look_at_server(found, provider, config, check, opened)
    elif provider.name.startswith("local"):
        from quoth.neuro.backends.weights import how_to_get, is_installed

        if not is_installed(provider.name):
            found.state, found.detail = "missing", how_to_get(provider.name)
    return found


async def _look_at_server(
    found: ProviderStatus, provider: Provider, config: Defaults, check: bool, opened: Opened
) -> None:
    from quoth.neuro.backends.base import ModelError, NoKeyError
    from quoth.neuro.backends.http import HttpBackend, models_of
    from quoth.tools.call.redaction import redact_url

    found.url = redact_url(provider.url) if provider.url else None
    if isinstance(opened, QuothError):
        login = f"set {provider.key}, or type: quoth models login {provider.name}"
        found.state, found.detail = "missing", login if isinstance(opened, NoKeyError) else str(opened)
        return
    key, backend = opened
    found.key_from = key.source
    if provider.name in config.providers:
        found.detail = f"{found.url}, {provider.help}"
    if key.secret:
        found.detail = f"key: {key.source}"
    is_here = _is_here(provider.url)
    if not isinstance(backend, HttpBackend) or not (check or is_here):
        return
    try:
        found.models = await models_of(backend)
        found.answers, found.detail = True, _told(found)
    except ModelError as error:
        found.state, found.answers, found.detail = "down", False, str(error)
        if is_here and error.why == "down":
            found.detail = f"no server answers at {found.url}; start it, or give its address with --base-url"


def _told(found: ProviderStatus) -> str:
    if not found.models:
        return f"{found.url} answers but lists no models"
    shown = ", ".join(map(visible, found.models[:SHOWN]))
    more = f" and {len(found.models) - SHOWN} more" if len(found.models) > SHOWN else ""
    return f"{found.url} has {shown}{more}"


def _is_here(url: str | None) -> bool:
    """Whether an address belongs to this machine."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    host = urlsplit(url or "").hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
