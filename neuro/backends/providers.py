"""The table of providers, named by the first word of a model's spec, from ``openai`` to ``scripted``; and
their keys.

Every list of providers (help, manual, errors, ``quoth models``, prices, plans) is made from it. No back end
is imported here, and no server is asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from quoth.tools.errors import UsageError
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.storage.paths import keys_path
from quoth.tools.storage.secrets import forget_secret, in_file, in_keyring, private_text, store_secret

GROUP = "quoth.backends"  # the group of entry points for providers of other packages
NONE: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, eq=False)  # each generated method slows the start of every command
class Provider:
    """One row: ``Provider("groq", "Groq", "groq:openai/gpt-oss-20b", url="https://…", key="GROQ_API_KEY")``.

    ``example``: a whole spec; the default model if only the key of this provider is set.
    ``backend``: the module and class for its server, None without a server. The class is called with the
    model's name, ``name=`` (the spec), and ``base_url=``, ``api_key=``, ``key_variable=``, ``timeout=`` and
    ``extra=`` (fields of each request) if they are known, and with ``options``.
    ``key``: the environment variable of its key; with ``needs_key`` it is required.
    ``price``: its name in the price list of genai-prices: empty if it costs nothing, None if unknown.
    ``dialect``: the dialect of its models, empty if that depends on the model."""

    name: str
    help: str
    example: str = ""
    backend: tuple[str, str] | None = None
    url: str | None = None
    key: str = ""
    needs_key: bool = False
    price: str | None = None
    dialect: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spec(self) -> str:
        """The form of its specs, for help: ``openai:NAME``."""
        shapes = {"local": "local[:FILE]", "scripted": "scripted:FILE", "cascade": "cascade:A,B,…"}
        return shapes.get(self.name) or (f"{self.name}:NAME" if self.example else self.name)

    @property
    def free(self) -> bool:
        return self.price == ""


_OPENAI = ("quoth.neuro.backends.openai", "OpenAIBackend")
_RESPONSES = ("quoth.neuro.backends.openai", "ResponsesBackend")
_ANTHROPIC = ("quoth.neuro.backends.anthropic", "AnthropicBackend")


def _hosted(name: str, help: str, model: str, url: str, key: str, **more: Any) -> Provider:
    """A provider on the internet, which requires a key; most have OpenAI's API."""
    given = {"backend": _OPENAI, "price": name} | more
    return Provider(name, help, f"{name}:{model}", url=url, key=key, needs_key=True, **given)


def _here(name: str, help: str, port: int, key: str, **options: Any) -> Provider:
    """A server on this machine, which costs nothing; it may require a key."""
    url = f"http://127.0.0.1:{port}/v1"
    return Provider(name, help, f"{name}:qwen3", _OPENAI, url, key, price="", options=options)


ROWS = (
    _hosted("openai", "OpenAI", "gpt-5-mini", "https://api.openai.com/v1", "OPENAI_API_KEY"),
    _hosted(
        "openai-responses",
        "OpenAI by its Responses API, which keeps thoughts",
        "gpt-5-mini",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        backend=_RESPONSES,
        price="openai",
    ),
    _hosted(
        "anthropic",
        "Anthropic",
        "claude-haiku-5-5",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        backend=_ANTHROPIC,
        dialect="native",
    ),
    _hosted(
        "openrouter",
        "OpenRouter: models of many makers",
        "anthropic/claude-haiku-5.5",
        "https://openrouter.ai/api/v1",
        "OPENROUTER_API_KEY",
        options={"thoughts": "reasoning_details"},
    ),
    _hosted(
        "groq",
        "Groq",
        "openai/gpt-oss-20b",
        "https://api.groq.com/openai/v1",
        "GROQ_API_KEY",
        dialect="native",
        options={"thoughts": ""},  # it refuses messages with thoughts
    ),
    _hosted(
        "mistral",
        "Mistral",
        "mistral-small-latest",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        dialect="native",
        # It always sends the usage and refuses the option for it (422). The ids of calls have its own format.
        # A user message may not follow a result, and messages may have no other fields.
        options={"stream_usage": False, "short_ids": True, "thoughts": ""},
    ),
    _hosted(
        "deepseek",
        "DeepSeek",
        "deepseek-chat",
        "https://api.deepseek.com/v1",
        "DEEPSEEK_API_KEY",
        dialect="native",
        options={"must_think": True},  # it refuses its own calls without their thoughts
    ),
    _hosted(
        "moonshot",
        "Kimi, by Moonshot AI",
        "kimi-k3",
        "https://api.moonshot.ai/v1",
        "MOONSHOT_API_KEY",
        price="moonshotai",
        dialect="native",
        # Like DeepSeek; and it ignores the temperature.
        options={"must_think": True, "extra": {"temperature": None}},
    ),
    _hosted(
        "zai",
        "GLM, by Z.ai",
        "glm-5.1",
        "https://api.z.ai/api/paas/v4",
        "ZAI_API_KEY",
        dialect="native",
    ),
    _hosted(
        "gemini",
        "Gemini, at its OpenAI-compatible address",
        "gemini-3.5-flash",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        "GEMINI_API_KEY",
        price="google",
        dialect="native",
        options={"signed_calls": True, "thoughts": ""},
    ),
    _here("ollama", "Ollama on this machine", 11434, "OLLAMA_API_KEY"),
    _here("vllm", "vLLM on this machine", 8000, "VLLM_API_KEY"),
    _here("lmstudio", "LM Studio on this machine", 1234, "LM_API_TOKEN"),
    # llama-server itself reads this variable.
    _here("llamacpp", "llama.cpp's server on this machine", 8080, "LLAMA_API_KEY", takes_grammar=True),
    Provider("local", "embedded, Qwen2.5-Coder 1.5B, or a GGUF file of yours", price=""),
    Provider("local-small", "embedded, Qwen2.5-Coder 0.5B", price=""),
    Provider(
        "scripted",
        "replies from a file, separated by lines of ---, or a .hy file with a function reply",
        "scripted:replies.txt",
        price="",
    ),
    Provider("cascade", "the first of several models that answers", "cascade:openai:gpt-5-mini,local"),
)
PROVIDERS: dict[str, Provider] = {row.name: row for row in ROWS}


def find_provider(name: str, configured: Mapping[str, Provider] = NONE) -> Provider | None:
    """The provider of that name: in the table, configured, or of another package. None if there is none.
    Raises UsageError if its package fails to load."""
    return PROVIDERS.get(name) or configured.get(name) or _added(name)


def names(configured: Mapping[str, Provider] = NONE) -> list[str]:
    """All names of providers, without loading other packages."""
    return list(dict.fromkeys([*PROVIDERS, *configured, *_entry_points()]))


def specs(configured: Mapping[str, Provider] = NONE) -> str:
    """The forms of specs, for a sentence: ``openai:NAME, anthropic:NAME, … or scripted:FILE``."""
    *most, last = [row.spec for row in (*configured.values(), *ROWS)]
    return f"{', '.join(most)} or {last}"


def added() -> Iterator[Provider | UsageError]:
    """The providers of other packages; for one that fails to load, its UsageError."""
    for name in _entry_points():
        if name in PROVIDERS:
            continue
        try:
            if provider := _added(name):
                yield provider
        except UsageError as error:
            yield error


@cache
def _entry_points() -> Mapping[str, Any]:
    from importlib.metadata import entry_points  # here: few names are not in the table

    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _added(name: str) -> Provider | None:
    point = _entry_points().get(name)
    if point is None:
        return None
    try:
        found = point.load()
        provider = found if isinstance(found, Provider) else found()
    except (Exception, SystemExit) as error:  # foreign code: report every error as a sentence
        why = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise UsageError(
            f"The provider {name} of the package {_package(point)} cannot be loaded: {why}"
        ) from error
    if not isinstance(provider, Provider) or provider.name != name:
        raise UsageError(
            f"The entry point {name} of the package {_package(point)} is not a Provider named {name}."
        )
    return provider


def _package(point: Any) -> str:
    return point.dist.name if point.dist is not None else str(point.value)


@dataclass(frozen=True, repr=False)
class ServerSettings:
    """The caller's settings of a model's server. None means the configuration's, or else the back end's.

    ``timeout``: seconds that the server may be silent."""

    base_url: str | None = None  # it may contain a password, so there is no repr
    api_key: str | None = None
    timeout: float | None = None
    temperature: float | None = None


class Defaults(Protocol):
    """The settings of models in a configuration (agent/config). ``providers`` are its providers by name."""

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
    """An empty configuration."""

    model: str | None = None
    timeout: float | None = None
    temperature: float | None = None
    providers: Mapping[str, Provider] = field(default_factory=dict)


NO_SETTINGS = ServerSettings()
NO_DEFAULTS = NoDefaults()


# The keys of providers: from the environment, then the system's keyring, then a file that only its owner may
# read. No key is ever shown.


LONGEST_KEY = 5_000  # maximum characters


@dataclass(frozen=True)
class ApiKey:
    """A key, empty if there is none; ``source`` is its place, for a sentence such as "check …"."""

    secret: str = field(default="", repr=False)
    source: str = ""


NO_KEY = ApiKey()


def key_of(provider: Provider, environ: Mapping[str, str] = os.environ, given: str | None = None) -> ApiKey:
    """The key of a provider, ``given`` or found. Raises UsageError for a key that cannot be used."""
    if given is not None:
        return ApiKey(given, "the given key")
    return _from_environment(provider, environ) if is_set(provider, environ) else stored_key(provider)


def first_with_key(providers: Iterable[Provider], environ: Mapping[str, str]) -> Provider | None:
    """The first provider whose key is set in the environment, otherwise the first with a stored key."""
    wanting = [one for one in providers if one.needs_key]
    found = (one for one in wanting if is_set(one, environ))
    return next(found, None) or next((one for one in wanting if stored_key(one).secret), None)


def stored_key(provider: Provider) -> ApiKey:
    """The key that ``quoth models login`` has stored. Raises UsageError if its place cannot be read."""
    if not provider.key:
        return NO_KEY
    if secret := in_keyring(provider.key, f", or set {provider.key}", needed=provider.needs_key):
        return ApiKey(secret, f"{provider.key} in the keyring")
    path = keys_path()
    if secret := in_file(path).get(provider.key, ""):
        return ApiKey(secret, f"{provider.key} in {path}")
    return NO_KEY


def store_key(provider: Provider, secret: str) -> str:
    """Store a key, in the keyring if there is one. Returns its place. Raises UsageError."""
    secret = secret.strip()
    if not secret:
        raise UsageError("The key is empty; nothing was stored.")
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise UsageError("A key has only printable ASCII characters without spaces; nothing was stored.")
    if len(secret) > LONGEST_KEY:
        raise UsageError(f"A key has at most {LONGEST_KEY:,} characters; nothing was stored.")
    return store_secret(provider.key, secret, keys_path())


def forget_key(provider: Provider) -> list[str]:
    """Remove a stored key from all places. Returns these places. Raises UsageError."""
    return forget_secret(provider.key, keys_path(), f", or set {provider.key}")


def is_set(provider: Provider, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment has the key."""
    return bool(provider.key and environ.get(provider.key, "").strip())


def _from_environment(provider: Provider, environ: Mapping[str, str]) -> ApiKey:
    return ApiKey(environ[provider.key].strip(), provider.key)


def key_in_file(path: Path) -> str:
    """The single key in a file. Raises UsageError."""
    try:
        return private_text(path).strip()
    except OSError as error:
        raise UsageError(f"The key in {path} cannot be read: {error.strerror}.") from None
