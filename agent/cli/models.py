"""The command ``quoth models``: which models there are, what is missing, and the keys of providers.

Knows how providers are shown and how a key is typed; where keys are kept and what a server says is known in
neuro/backends.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from quoth.agent.cli.options import DONE, Commands, Options, argument, switch
from quoth.agent.terminal.output import complain, is_terminal, print_json, print_line
from quoth.agent.terminal.person import require_person
from quoth.neuro.backends.providers import PROVIDERS, Provider, added, find_provider, names
from quoth.tools.errors import QuothError, UsageError, did_you_mean
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.config.config import Config

ACTIONS = ("login", "logout")
SHOWN = 6  # models of a server
LONGEST_NAME = 30  # of a provider; what is longer may be a key at the wrong place

State = Literal["ready", "missing", "down"]


@dataclass(init=False, repr=False, eq=False)
class ModelsOptions(Options):
    """Options of ``quoth models``."""

    what: str | None = argument("ACTION", "login stores the key of a provider, logout removes it", nargs="?")
    provider: str | None = argument("PROVIDER", "whose key", nargs="?")
    stdin: str | None = argument("-", "the key is piped into standard input", nargs="?")
    check: bool = switch("--check", "ask the providers whose key is known, too")


@dataclass
class Found:
    """What is known of a provider; ``answers`` is None where it was not asked."""

    name: str
    state: State
    detail: str
    spec: str = ""
    url: str | None = None
    key: str = ""
    key_from: str = ""
    answers: bool | None = None
    models: list[str] = field(default_factory=list)


def add(commands: Commands) -> None:
    about = "Show which models there are and what is missing; store the keys of providers (login, logout)."
    commands.add("models", about, ModelsOptions, models)


def models(options: ModelsOptions) -> int:
    from quoth.agent.config.loading import load_config

    config = load_config(options.folder)
    for note in config.notes:
        complain(note)
    if options.what is None:
        return _list(options, config)
    if options.what not in ACTIONS:
        hint = did_you_mean(options.what, ACTIONS) or " They are login and logout."
        raise UsageError(f"There is no action {visible(options.what)} of quoth models.{hint}")
    require_person()
    provider = _provider(options.provider, config)
    return _login(options, provider) if options.what == "login" else _logout(options, provider)


# Keys


def _provider(name: str | None, config: Config) -> Provider:
    with_keys = [one for one in names(config.providers) if one not in PROVIDERS or PROVIDERS[one].key]
    if name is None:
        raise UsageError(f"Name a provider: {', '.join(with_keys)}.")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"That is no provider. They are {', '.join(with_keys)}.")
    provider = find_provider(name, config.providers)
    if provider is None:
        hint = did_you_mean(name, with_keys) or f" They are {', '.join(with_keys)}."
        raise UsageError(f"There is no provider {visible(name)}.{hint}")
    if not provider.key:
        raise UsageError(f"{name} needs no key.")
    return provider


def _login(options: ModelsOptions, provider: Provider) -> int:
    from quoth.neuro.backends.keys import is_set, store_key

    where = store_key(provider, _typed(options, provider))
    if options.json:
        print_json({"status": "stored", "provider": provider.name, "where": where})
    else:
        print_line(f"The key of {provider.name} is stored in {where}.")
    if is_set(provider):
        complain(f"{provider.key} is set, and comes before it.")
    return DONE


def _typed(options: ModelsOptions, provider: Provider) -> str:
    """The key, from the terminal or a pipe; never from an argument, where every process could read it."""
    if options.stdin is not None:
        if options.stdin != "-":
            raise UsageError(
                "A key is no argument: other processes would see it. Leave it out; it is asked for."
            )
        if is_terminal(sys.stdin):
            raise UsageError("- reads the key from a pipe, and standard input is a terminal; leave it out.")
        from quoth.agent.terminal.input import read_stdin

        return read_stdin()
    if options.no_input or not is_terminal(sys.stdin):
        raise UsageError(
            f"A key is typed at a terminal; to pipe one in, end with -: quoth models login {provider.name} -"
        )
    import getpass

    try:
        return getpass.getpass(f"Key of {provider.name} (it is not shown): ")
    except EOFError:
        raise UsageError("No key was given; nothing is stored.") from None


def _logout(options: ModelsOptions, provider: Provider) -> int:
    from quoth.neuro.backends.keys import forget_key, is_set

    places = forget_key(provider)
    if options.json:
        print_json({"status": "removed" if places else "none", "provider": provider.name, "where": places})
    elif places:
        print_line(f"The key of {provider.name} is removed from {' and '.join(places)}.")
    else:
        print_line(f"No key of {provider.name} is stored.")
    if is_set(provider):
        complain(f"{provider.key} is still set.")
    return DONE


# The list


def _list(options: ModelsOptions, config: Config) -> int:
    import asyncio

    others = list(added())
    rows = [*PROVIDERS.values(), *config.providers.values()]
    rows += [other for other in others if isinstance(other, Provider)]

    async def look() -> list[Found]:
        return await asyncio.gather(*(_found(row, config, options.check) for row in rows))

    found = asyncio.run(look())
    default, why = _default(config)
    if options.json:
        print_json([{**asdict(row), "default": default.partition(":")[0] == row.name} for row in found])
    else:
        width = max(len(row.spec) for row in found)
        for row in found:
            print_line(f"{row.spec:{width}}  {row.state:7}  {row.detail}")
        print_line(f"\nWithout --model: {default}{why}." if default else f"\n{why}")
    for other in others:
        if isinstance(other, UsageError):
            complain(str(other))
    return DONE


def _default(config: Config) -> tuple[str, str]:
    """The model that is taken where none is named, and why; or only why there is none."""
    from quoth.neuro.backends.select import default_model

    try:
        name = default_model(config=config)
    except UsageError as error:
        return "", str(error)
    if os.environ.get("QUOTH_MODEL"):
        return name, ", from QUOTH_MODEL"
    return name, ", from config.hy" if config.model else ""


async def _found(provider: Provider, config: Config, check: bool) -> Found:
    """What is known of a provider, asked if it is on this machine, or if it is to be checked."""
    found = Found(provider.name, "ready", provider.help, provider.spec, key=provider.key)
    if provider.name.startswith("local"):
        from quoth.neuro.backends.weights import is_installed

        if not is_installed(provider.name):
            found.state, found.detail = "missing", f"pip install 'quoth[{provider.name}]'"
        return found
    if provider.backend is None:
        return found
    await _ask(found, provider, config, check)
    return found


async def _ask(found: Found, provider: Provider, config: Config, check: bool) -> None:
    from quoth.neuro.backends.base import ModelError
    from quoth.neuro.backends.http import HttpBackend
    from quoth.neuro.backends.keys import key_of
    from quoth.neuro.backends.probe import models_of
    from quoth.neuro.backends.select import choose_backend
    from quoth.tools.call.redaction import redact_url

    found.url = redact_url(provider.url) if provider.url else None
    try:
        key = key_of(provider)
        found.key_from = key.source
        if provider.needs_key and not key.secret:
            found.state = "missing"
            found.detail = f"set {provider.key}, or type: quoth models login {provider.name}"
            return
        backend = choose_backend(provider.example or provider.name, config=config)
    except QuothError as error:
        found.state, found.detail = "missing", str(error)
        return
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
        if str(error).startswith("Cannot reach") and is_here:
            found.detail = f"nothing answers at {found.url}; start it, or name its address by --base-url"


def _told(found: Found) -> str:
    if not found.models:
        return f"{found.url} answers, and names no model"
    shown = ", ".join(map(visible, found.models[:SHOWN]))
    more = f" and {len(found.models) - SHOWN} more" if len(found.models) > SHOWN else ""
    return f"{found.url} has {shown}{more}"


def _is_here(url: str | None) -> bool:
    """Whether an address is on this machine."""
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    host = urlsplit(url or "").hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
