"""Chooses the model: from ``--model``, the environment, the configuration or what is installed to a backend.

Must not import a backend before it is chosen: choosing a script must not load httpx or llama.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.neuro.backends.base import Backend, NoKeyError
from quoth.neuro.backends.providers import (
    NO_DEFAULTS,
    NO_SETTINGS,
    ROWS,
    Defaults,
    Provider,
    ServerSettings,
    find_provider,
    names,
    specs,
)
from quoth.tools.errors import UsageError, nearest

if TYPE_CHECKING:
    from quoth.neuro.backends.weights import Progress

# How the names of models begin, and who has them; what anybody can run is likely to be on this machine.
MAKERS = {
    **dict.fromkeys(("gpt-", "chatgpt-", "o1", "o3", "o4"), "openai"),
    **dict.fromkeys(("mistral-", "codestral-", "ministral-", "magistral-"), "mistral"),
    **dict.fromkeys(("llama3", "llama-", "qwen", "gemma", "phi"), "ollama"),
    "claude-": "anthropic",
    "gemini-": "gemini",
    "deepseek-": "deepseek",
    "kimi-": "moonshot",
    "glm-": "zai",
}


def choose_backend(
    spec: str | None,
    settings: ServerSettings = NO_SETTINGS,
    *,
    environ: Mapping[str, str] = os.environ,
    progress: Progress | None = None,
    config: Defaults = NO_DEFAULTS,
) -> Backend:
    """The backend named by ``spec``, the environment, the configuration or the installation. Raises
    UsageError."""
    spec = default_model(settings, environ, config) if spec is None else spec
    if settings.base_url and ":" not in spec and find_provider(spec, config.providers) is None:
        raise UsageError(f"There is no model {spec}. Did you mean openai:{spec}?")
    provider, model = provider_of(spec, config)
    if provider.backend is not None:
        return _on_server(spec, model, provider, settings, environ, config)
    if provider.name == "cascade":
        return _cascade(spec, model, settings, environ, progress, config)
    if settings.base_url:
        raise UsageError(f"--base-url has no meaning for {spec}; it goes with a server, as openai:NAME.")
    if provider.name == "scripted":
        from quoth.neuro.backends.scripted import load_scripted

        return load_scripted(Path(model).expanduser())
    from quoth.neuro.backends.local import LocalBackend

    said = _said(settings, config)
    return LocalBackend(spec, Path(model) if model else None, progress=progress, **said)


def _cascade(
    spec: str,
    listed: str,
    settings: ServerSettings,
    environ: Mapping[str, str],
    progress: Progress | None,
    config: Defaults,
) -> Backend:
    """The models of a list that can be asked; what is said of a server is said of the only one there."""
    from quoth.neuro.backends.cascade import Cascade, Missing  # here: most agents have one model

    members = [one.strip() for one in listed.split(",")]
    if len(members) < 2 or not all(members) or any(one.startswith("cascade:") for one in members):
        raise UsageError(f"{spec} is no list of models, as in cascade:openai:gpt-5-mini,local.")
    served = [one for one in members if provider_of(one, config)[0].backend is not None]
    alone = replace(settings, base_url=None, api_key=None)
    if alone != settings and len(served) != 1:
        has = f"has {' and '.join(served)}" if served else "has none"
        raise UsageError(f"A base URL or key is for one server, and {spec} {has}. Configure each by itself.")
    made: dict[str, Backend] = {}
    lacks: dict[str, NoKeyError] = {}
    for one in members:
        own = settings if one in served else alone
        try:
            made[one] = choose_backend(one, own, environ=environ, progress=progress, config=config)
        except NoKeyError as error:
            lacks[one] = error
    if not made:
        raise NoKeyError(" ".join(map(str, lacks.values())))
    like = next(iter(made.values()))
    return Cascade([made.get(one) or Missing(one, str(lacks[one]), like) for one in members])


def provider_of(spec: str, config: Defaults = NO_DEFAULTS) -> tuple[Provider, str]:
    """The provider of a spec, and the name of the model there. Raises UsageError."""
    kind, colon, model = spec.partition(":")
    provider = find_provider(kind, config.providers)
    whole = provider is not None and not provider.example  # a name such as local, alone
    if provider is None or (whole and colon and not (kind == "local" and model)):
        hint = "" if provider else _meant(spec, names(config.providers))
        hint = f"{hint} What there is: quoth models" if hint else f" Choose {specs(config.providers)}."
        raise UsageError(f"There is no model {spec}.{hint}")
    if provider.example and not model:
        raise UsageError(f"{kind}: needs a name after the colon, as in {provider.example}.")
    return provider, model


def tool_view_of(spec: str, config: Defaults = NO_DEFAULTS) -> str:
    """The view of the belt in which this model takes native tools; empty where it takes none. It opens no
    backend, and so needs no key. Raises UsageError."""
    provider, model = provider_of(spec, config)
    if provider.name == "cascade":
        return tool_view_of(model.partition(",")[0].strip(), config)
    own = {"scripted": ("quoth.neuro.backends.scripted", "ScriptedBackend")}
    module, name = provider.backend or own.get(provider.name, ("", ""))
    return str(getattr(getattr(import_module(module), name), "tool_view", "")) if module else ""


def _meant(spec: str, known: Sequence[str]) -> str:
    """What a spec without a provider may mean: a name such as gpt-5-mini lacks only its own."""
    maker = next((maker for begin, maker in MAKERS.items() if spec.startswith(begin)), "")
    if maker:
        return f" Did you mean {maker}:{spec}?"
    kind, colon, model = spec.partition(":")
    near = nearest(kind, known)
    return f" Did you mean {near}{colon}{model}?" if near else ""


def default_model(
    settings: ServerSettings = NO_SETTINGS,
    environ: Mapping[str, str] = os.environ,
    config: Defaults = NO_DEFAULTS,
) -> str:
    """The spec of the model where none is named. Raises UsageError where there is none."""
    if named := environ.get("QUOTH_MODEL") or config.model:
        return named
    if settings.base_url:
        raise UsageError("--base-url needs the name of a model there: --model openai:NAME")
    from quoth.neuro.backends.keys import first_with_key  # here: most agents name their model

    if provider := first_with_key((*ROWS, *config.providers.values()), environ):
        return provider.example
    from quoth.neuro.backends.weights import how_to_get, local_available

    if found := local_available():
        return found
    raise UsageError(
        "No model is chosen. Name one with --model (or QUOTH_MODEL), give a key (set OPENAI_API_KEY, or type "
        f"quoth models login openai), or run: {how_to_get('local')}. What there is: quoth models"
    )


def _on_server(
    spec: str,
    model: str,
    provider: Provider,
    settings: ServerSettings,
    environ: Mapping[str, str],
    config: Defaults,
) -> Backend:
    from quoth.neuro.backends.keys import NO_KEY, key_of  # here: a script and an embedded model need none

    assert provider.backend is not None, "it is a server"
    key = key_of(provider, environ, settings.api_key)
    if provider.needs_key and not key.secret and not settings.base_url:
        raise NoKeyError(
            f"{spec} needs a key: set {provider.key}, type quoth models login {provider.name}, or name a "
            "server by --base-url."
        )
    module, name = provider.backend
    given: dict[str, Any] = {"name": spec, **provider.options}
    if url := settings.base_url or provider.url:
        given["base_url"] = url
    if provider.key or key is not NO_KEY:
        given |= {"api_key": key.secret or None, "key_variable": key.source or provider.key}
    said = _said(settings, config)
    if "temperature" in said:
        given["extra"] = {**given.get("extra", {}), "temperature": said.pop("temperature")}
    try:
        made: Backend = getattr(import_module(module), name)(model, **given, **said)
    except (
        ImportError,
        AttributeError,
        TypeError,
    ) as error:  # of another package; its words may hold the key
        what = f"{module}.{name}, its back end, fails ({type(error).__name__})"
        raise UsageError(f"{spec} cannot be opened: {what}.") from error
    return made


def _said(settings: ServerSettings, config: Defaults) -> dict[str, Any]:
    """The time-out and temperature, where somebody has said one."""
    found = {
        "timeout": config.timeout if settings.timeout is None else settings.timeout,
        "temperature": config.temperature if settings.temperature is None else settings.temperature,
    }
    return {name: value for name, value in found.items() if value is not None}
