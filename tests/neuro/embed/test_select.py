"""Which embedding model is used: what QUOTH_EMBEDDER names, else what is installed."""

from __future__ import annotations

import re

import pytest
from sentences import IS_NOT_INSTALLED

from quoth.neuro.embed import select
from quoth.neuro.embed.endpoint import Endpoint
from quoth.neuro.embed.select import choose_embedder, embedder_named
from quoth.neuro.embed.wordllama import WordLlama
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra


def test_what_is_installed_is_used_where_nothing_is_named() -> None:
    assert isinstance(choose_embedder({}), WordLlama)
    assert isinstance(choose_embedder({"QUOTH_EMBEDDER": "wordllama"}), WordLlama)


def test_none_searches_words_alone() -> None:
    assert choose_embedder({"QUOTH_EMBEDDER": "none"}) is None


def test_without_the_extra_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "installed", lambda: False)

    assert choose_embedder({}) is None
    with pytest.raises(UsageError, match=re.escape(f"which {IS_NOT_INSTALLED}: {install_extra('vectors')}")):
        choose_embedder({"QUOTH_EMBEDDER": "wordllama"})
    assert embedder_named("wordllama-0.4.0") is None


@pytest.mark.parametrize("spec", ["openai:small", "openai:small@http://127.0.0.1:8080/v1"])
def test_a_server_is_named_with_its_model(spec: str) -> None:
    model = choose_embedder({"QUOTH_EMBEDDER": spec})

    assert isinstance(model, Endpoint)
    assert model.name == spec
    again = embedder_named(model.name)
    assert again is not None
    assert again.name == spec


@pytest.mark.parametrize("spec", ["opnai:small@http://ann:hunter2@host", "http://ann:hunter2@host/v1"])
def test_an_unknown_model_names_the_known_ones_and_no_password(spec: str) -> None:
    with pytest.raises(UsageError) as told:
        choose_embedder({"QUOTH_EMBEDDER": spec})

    assert str(told.value) == (
        "QUOTH_EMBEDDER must be wordllama, none, openai:MODEL or openai:MODEL@http://HOST:PORT/v1."
    )


@pytest.mark.parametrize("model", ["http://127.0.0.1:1/v1?key=hunter2#m", "m?key=hunter2", "m#hunter2"])
def test_an_address_is_no_model(model: str) -> None:
    with pytest.raises(UsageError, match=r"server as openai:MODEL or openai:MODEL@http://HOST:PORT/v1\.$"):
        choose_embedder({"QUOTH_EMBEDDER": f"openai:{model}"})


def test_a_model_of_before_is_asked_again_only_if_it_is_the_same() -> None:
    now = WordLlama().name

    assert isinstance(embedder_named(now), WordLlama)
    assert isinstance(embedder_named("wordllama-0.4.0.post1"), WordLlama)  # of the same table
    assert embedder_named("wordllama-0.0.1") is None
    assert embedder_named("something else") is None
    assert embedder_named("openai:@nowhere") is None
