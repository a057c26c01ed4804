"""The table of providers: what is made of it, what other packages add, and how it chooses a model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from loopback import loopback, said, sse, status
from pages import page
from sentences import (
    CANNOT_BE_LOADED,
    CANNOT_BE_OPENED,
    OR_NAME_A_SERVER_WITH,
    THERE_IS_NO_MODEL,
    TYPE_QUOTH_MODELS_LOGIN,
)
from words import complaint

from quoth.agent.run.budget import cost_of
from quoth.neuro.backends import providers
from quoth.neuro.backends.base import NoKeyError, Usage, Window, window_of
from quoth.neuro.backends.http import HttpBackend
from quoth.neuro.backends.providers import (
    PROVIDERS,
    ROWS,
    NoDefaults,
    Provider,
    ServerSettings,
    find_provider,
)
from quoth.neuro.backends.select import choose_backend, default_model
from quoth.neuro.prompt.dialects import choose_dialect
from quoth.tools.errors import UsageError

ACME = Provider(
    "acme", "Acme", "acme:anvil", PROVIDERS["groq"].backend, "https://acme.example/v1", "ACME_KEY"
)
SERVERS = [row for row in ROWS if row.backend is not None]


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The entry points of other packages, by name: what each gives when it is loaded, or raises."""
    given: dict[str, Any] = {}

    class Point(EntryPoint):
        dist = None

        def load(self) -> Any:
            if isinstance(given[self.name], BaseException):
                raise given[self.name]
            return given[self.name]

    def found() -> dict[str, Point]:
        return {name: Point(name, f"{name}_quoth:PROVIDER", providers.GROUP) for name in given}

    monkeypatch.setattr(providers, "_entry_points", found)
    providers._added.cache_clear()
    yield given
    providers._added.cache_clear()


# What is made of the table


def test_the_manual_shows_the_table() -> None:
    rows = re.findall(r"^\| =(.+?)= +\| (.+?) +\| (?:=(\w+)=)? *\|$", page("models"), re.M)
    assert [row for row in rows if row[0] in {one.spec for one in ROWS}] == [
        (row.spec, row.help, row.key) for row in ROWS
    ]


def test_help_and_errors_name_every_provider() -> None:
    from quoth.agent.cli.options import Options

    told = Options.__dataclass_fields__["model"].metadata["help"]
    refused = complaint(UsageError, lambda: choose_backend("xyz:x"))
    assert all(row.spec in told and row.spec in refused for row in ROWS)


@pytest.mark.parametrize("row", SERVERS, ids=lambda row: row.name)
def test_a_name_and_a_key_are_enough(row: Provider) -> None:
    backend = choose_backend(row.example, environ={row.key: "sk-1"})
    assert isinstance(backend, HttpBackend)
    assert (backend.name, backend._key, backend._key_variable) == (row.example, "sk-1", row.key)
    assert row.url
    assert str(backend._url).startswith(row.url)
    assert dict(backend._sent_headers).keys() & {"authorization", "x-api-key"}


@pytest.mark.parametrize("row", SERVERS, ids=lambda row: row.name)
def test_only_who_takes_money_wants_a_key(row: Provider) -> None:
    assert row.needs_key is (row.price != "")
    if row.needs_key:
        assert complaint(NoKeyError, lambda: choose_backend(row.example, environ={})) == (
            f"{row.example} needs a key: set {row.key}, {TYPE_QUOTH_MODELS_LOGIN} {row.name}, "
            f"{OR_NAME_A_SERVER_WITH}."
        )
    else:
        assert choose_backend(row.example, environ={}).name == row.example


def test_time_out_and_temperature_are_settings_or_configured() -> None:
    def chosen(settings: ServerSettings, spec: str = "ollama:x") -> tuple[float, Any]:
        backend: Any = choose_backend(
            spec, settings, environ={}, config=NoDefaults(timeout=300, temperature=0.5)
        )
        return backend._timeout, getattr(backend, "_options", {}).get("temperature")

    assert chosen(ServerSettings()) == (300, 0.5)
    assert chosen(ServerSettings(timeout=7, temperature=0)) == (7, 0)
    assert chosen(ServerSettings(), "local-small")[0] == 300


def test_settings_show_neither_key_nor_address() -> None:
    assert "secret" not in repr(ServerSettings(base_url="https://ann:secret@x", api_key="sk-secret"))


def test_mistral_is_not_asked_for_what_it_refuses() -> None:
    backend: Any = choose_backend("mistral:x", environ={"MISTRAL_API_KEY": "k"})
    assert "stream_options" not in backend._stream_options


@pytest.mark.parametrize(
    ("environ", "config", "spec"),
    [
        ({"QUOTH_MODEL": "local", "GROQ_API_KEY": "k"}, NoDefaults("ollama:x"), "local"),
        ({"GROQ_API_KEY": "k"}, NoDefaults("ollama:x"), "ollama:x"),
        ({"GROQ_API_KEY": "k", "OLLAMA_API_KEY": "k"}, NoDefaults(), "groq:openai/gpt-oss-20b"),
        ({"GROQ_API_KEY": " "}, NoDefaults("local"), "local"),
    ],
)
def test_what_is_taken_where_no_model_is_named(
    environ: dict[str, str], config: NoDefaults, spec: str
) -> None:
    assert default_model(environ=environ, config=config) == spec


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_signatures_of_geminis_calls_go_back_with_them(streamed: bool) -> None:
    signed = {"google": {"thought_signature": "c2lnbmVk"}}
    made = [
        {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}, "extra_content": signed},
        {"index": 1, "id": "c2", "function": {"name": "rest", "arguments": "{}"}},
    ]
    choice = {"index": 0, "finish_reason": "tool_calls"}
    whole = status(200, {"choices": [{**choice, "message": {"content": None, "tool_calls": made}}]})
    with loopback(
        sse({"choices": [{**choice, "delta": {"tool_calls": made}}]}, "[DONE]") if streamed else whole
    ) as server:
        asked: Any = {"tools": b"[]", "on_text": print if streamed else None}
        backend = choose_backend(
            "gemini:x", ServerSettings(server.base_url), environ={"GEMINI_API_KEY": "sk-1"}
        )
        messages = said("Look.")
        first = await backend.complete(messages, **asked)
        messages.append("assistant", first.text, calls=first.calls, kept=first.kept)
        await backend.complete(messages, **asked)
        sent = server.asked()["messages"][1]["tool_calls"]
        assert [call.get("extra_content") for call in sent] == [signed, None]
        other = choose_backend("openai:x", ServerSettings(server.base_url), environ={})
        await other.complete(messages, **asked)
        assert "extra_content" not in str(server.asked()), "others may refuse a field that they do not know"
        for one in (backend, other):
            await one.aclose()


# Prices, windows, dialects


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_provider_has_its_price(row: Provider) -> None:
    if row.price:
        assert cost_of(row.example, Usage(1_000_000, 1_000_000)) > 0
    elif row.free:
        assert cost_of(row.example or row.name, Usage(1_000_000, 1_000_000)) == 0


def test_no_more_is_priced_as_cached_than_was_read() -> None:
    assert cost_of("openai:gpt-4o", Usage(9, 1, 50)) == cost_of("openai:gpt-4o", Usage(9, 1, 9)) > 0


@pytest.mark.parametrize("model", ["nobody:x", "acme:anvil", "openai:gpt-of-mine"])
def test_a_price_that_is_not_known_cannot_be_bounded(model: str) -> None:
    told = complaint(UsageError, lambda: cost_of(model, Usage(1, 1), {"acme": ACME}))
    assert told == f"The cost of {model} cannot be bounded: its price is not known; bound its tokens instead."


@pytest.mark.parametrize(
    ("model", "tokens", "known", "dialect"),
    [
        ("openai-responses:gpt-5-mini", 272_000, True, "native"),
        ("openrouter:anthropic/claude-haiku-5.5", 200_000, True, "native"),
        ("openrouter:openai/gpt-5-mini", 272_000, True, "native"),
        ("openrouter:qwen/qwen3-32b", 32_768, False, "call-form"),
        ("groq:openai/gpt-oss-20b", 131_072, True, "native"),
        ("groq:llama-3.3-70b-versatile", 131_072, False, "native"),
        ("mistral:mistral-small-latest", 131_072, False, "native"),
        ("deepseek:deepseek-v4-pro", 1_000_000, True, "native"),
        ("deepseek:deepseek-chat", 131_072, False, "native"),
        ("gemini:gemini-3.5-flash", 1_000_000, True, "native"),
        ("vllm:qwen3", 32_768, False, "call-form"),
        ("lmstudio:qwen3", 4_096, False, "call-form"),
    ],
)
def test_windows_and_dialects(model: str, tokens: int, known: bool, dialect: str) -> None:
    environ = dict.fromkeys([row.key for row in ROWS if row.key], "k")
    assert window_of(choose_backend(model, environ=environ)) == Window(tokens, known)
    assert choose_dialect(model)[0].name == dialect


# Other packages


def test_another_package_adds_a_provider(packages: dict[str, Any]) -> None:
    packages |= {"acme": ACME, "made": lambda: Provider("made", "Made", price="")}
    assert find_provider("acme") is ACME
    assert [one.name for one in providers.added() if isinstance(one, Provider)] == ["acme", "made"]
    backend = choose_backend("acme:anvil", environ={"ACME_KEY": "k"})
    assert backend.name == "acme:anvil"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            ImportError("No module named 'acme_core'"),
            f"{CANNOT_BE_LOADED}: ImportError: No module named 'acme_core'",
        ),
        (ZeroDivisionError(), f"{CANNOT_BE_LOADED}: ZeroDivisionError"),
        (42, f"{CANNOT_BE_LOADED}: TypeError: 'int' object is not callable"),
        (SystemExit("no"), f"{CANNOT_BE_LOADED}: SystemExit: no"),
        (lambda: 1 / 0, f"{CANNOT_BE_LOADED}: ZeroDivisionError: division by zero"),
    ],
)
def test_one_that_fails_to_load_is_a_sentence(packages: dict[str, Any], given: Any, why: str) -> None:
    packages["acme"] = given
    sentence = f"The provider acme of the package acme_quoth:PROVIDER {why}"
    assert complaint(UsageError, lambda: choose_backend("acme:anvil")) == sentence
    assert [str(one) for one in providers.added()] == [sentence]
    assert choose_backend("ollama:x", environ={}).name == "ollama:x"


@pytest.mark.parametrize(("module", "name"), [("acme_none", "Backend"), ("os", "nothing"), ("os", "getcwd")])
def test_one_whose_back_end_fails_is_a_sentence(packages: dict[str, Any], module: str, name: str) -> None:
    packages["acme"] = replace(ACME, backend=(module, name))
    said = complaint(UsageError, lambda: choose_backend("acme:x", environ={"ACME_KEY": "sec-ret"}))
    assert said.startswith(f"acme:x {CANNOT_BE_OPENED}: its back end {module}.{name} failed (")


def test_one_of_another_name_is_a_sentence(packages: dict[str, Any]) -> None:
    packages["acne"] = ACME
    assert complaint(UsageError, lambda: find_provider("acne")) == (
        "The entry point acne of the package acme_quoth:PROVIDER is not a Provider named acne."
    ).replace("acme_quoth", "acne_quoth")


def test_the_table_comes_before_other_packages(packages: dict[str, Any]) -> None:
    packages["openai"] = ACME
    assert find_provider("openai") is PROVIDERS["openai"]
    assert [*providers.added()] == []


def test_what_is_near_is_named(packages: dict[str, Any]) -> None:
    packages["acme"] = ACME
    told = complaint(UsageError, lambda: choose_backend("acne:anvil", environ={}))
    assert told == f"{THERE_IS_NO_MODEL} acne:anvil. Did you mean acme:anvil? To list all: quoth models"
