"""Which texts of a request are credentials, and where one is recognised.

The story of each kind of server is in tests/security/test_echoes.py.
"""

from __future__ import annotations

import base64

import pytest

from quoth.tools.call.redaction import MOST, Echoes, credentials, from_environment
from quoth.tools.storage.lean_httpx import httpx

KEY = "k9-very-secret-1234"


def learnt(headers: dict[str, str], url: str = "https://x.example/", *, chosen: bool = False) -> Echoes:
    echoes = Echoes()
    echoes.learn(*credentials(headers, httpx.URL(url), chosen=chosen))
    return echoes


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", f"Bearer {KEY}"),
        ("authorization", KEY),
        ("Authorization", f'Digest username=ann, response="{KEY}"'),
        ("X-Api-Key", KEY),
        ("Ocp-Apim-Subscription-Key", KEY),
        ("Cookie", f"theme=dark; sid={KEY}"),
        ("X-Whatever", "a1b2c3d4e5f6g7h8"),
    ],
)
def test_a_header_shows_who_asks_by_its_name_or_by_a_value_that_looks_random(name: str, value: str) -> None:
    key = KEY if KEY in value else value
    assert learnt({name: value}).without(f"You said {key}.") == "You said [secret]."


def test_a_password_is_known_from_its_header_and_from_its_address() -> None:
    told = "The password is correct-horse."
    assert learnt({"Authorization": "Basic YW5uOmNvcnJlY3QtaG9yc2U="}).without(told) != told
    assert learnt({}, "https://ann:correct-horse@x.example/").without(told) != told


@pytest.mark.parametrize(
    "headers",
    [
        {"User-Agent": "python-httpx/0.28.1", "Accept": "application/vnd.github.v3+json"},
        {"X-GitHub-Api-Version": "2022-11-28"},
        {"X-User": "margaret"},
    ],
)
def test_a_header_that_shows_nobody_is_left(headers: dict[str, str]) -> None:
    told = f"{headers}"
    assert learnt(headers).without(told) == told


def test_a_query_shows_who_asks_by_its_name_or_in_an_address_that_a_person_has_chosen() -> None:
    url = f"https://x.example/?q=a+long+question&token={KEY}&tenant=acme-prod"
    told = f"a long question, {KEY}, acme-prod"
    assert learnt({}, url).without(told) == "a long question, [secret], acme-prod"
    assert learnt({}, url, chosen=True).without(told) == "[secret], [secret], [secret]"


def test_a_short_key_is_recognised_with_its_header_alone() -> None:
    echoes = learnt({"Authorization": "Bearer ollama"})
    assert echoes.without("Bearer ollama was sent to ollama.") == "[secret] was sent to ollama."


def test_the_keys_sent_last_are_known() -> None:
    echoes = Echoes()
    for number in range(2 * MOST):
        echoes.learn("sent-with-each", f"one-time-key-{number:03}")
    told = f"sent-with-each one-time-key-000 one-time-key-{2 * MOST - 1}"
    assert echoes.without(told) == "[secret] one-time-key-000 [secret]"


@pytest.mark.parametrize("spelt", [KEY, KEY.encode().hex(), "k9+very/secret?1", "a1b2c3d4"])
def test_a_stream_holds_back_only_what_may_begin_a_key(spelt: str) -> None:
    echoes, heard = Echoes(), list[str]()
    echoes.learn(spelt)
    hear, end = echoes.stream(heard.append)
    for letter in f"one {spelt} two {spelt[:5]}":
        hear(letter)
    assert "".join(heard) == "one [secret] two "
    end()
    end()
    assert "".join(heard) == f"one [secret] two {spelt[:5]}"


def test_a_stream_without_keys_passes_on() -> None:
    heard: list[str] = []
    hear, end = Echoes().stream(heard.append)
    hear("a")
    end()
    assert heard == ["a"]


def test_a_key_may_come_in_base64_wherever_it_begins_there() -> None:
    echoes = Echoes()
    echoes.learn("key+of?just~so>much")
    for before in range(4):
        for behind in range(4):
            coded = base64.b64encode(b"x" * before + b"key+of?just~so>much" + b"y" * behind).decode()
            for text in (coded, coded.translate(str.maketrans("+/", "-_"))):
                found = echoes.without(text)
                assert "[secret]" in found, (before, behind)
                # Only letters of the key alone are hidden, and at most one is left at each end.
                left = found.replace("[secret]", "")
                assert len(left) <= -(-before * 8 // 6) + -(-behind * 8 // 6) + 4, (before, behind, found)


@pytest.mark.parametrize("length", [7, 8])
def test_a_key_has_eight_characters(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "a1b2c3d4"[:length]
    echoes = Echoes()
    echoes.learn(key)
    assert (echoes.without(f"It is {key}.") == "It is [secret].") == (length == 8)
    monkeypatch.setenv("SOME_TOKEN", key)
    monkeypatch.setenv("SOME_TOKENS", "a1b2c3d4e5")
    found = list(from_environment({"text": f"{key} a1b2c3d4e5"}))
    assert found == ([key] if length == 8 else [])
    assert list(from_environment("else")) == []


def test_json_stays_as_it_was_written_unless_a_key_is_in_it() -> None:
    echoes = Echoes()
    assert echoes.json('{"a": "\\u0041"}') == '{"a": "\\u0041"}'
    echoes.learn("AAAAAAAA1")
    assert echoes.json('{"a": "\\u0041"}') == '{"a": "\\u0041"}'
    assert echoes.json('{"a": "\\u0041AAAAAAA1"}') == '{"a": "[secret]"}'
    assert echoes.json('{"a": "\\u0041AAAAAAA1"') == '{"a": "\\u0041AAAAAAA1"'
    assert echoes.json('["AAAAAAAA1"]') == '["[secret]"]'
