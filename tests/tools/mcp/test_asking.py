"""What a server may ask, and how a person sees it."""

from __future__ import annotations

from typing import Any

import pytest

from quoth.tools.mcp.asking import asks_secret, question_of, refusal


def _form(message: str = "Which size?", **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def _page(url: str, message: str = "Log in.") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": url}}


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "request_",
    [
        _form(password=TEXT),
        _form(apiKey=TEXT),
        _form(github_token=TEXT),
        _form(value={"type": "string", "title": "Your API key"}),
        _form(value={"type": "string", "description": "The one-time code we sent"}),
        _form(value={"type": "string", "format": "password"}),
        _form(value={"type": "string", "writeOnly": True}),
        _form("Please enter your PASSWORD", value=TEXT),
        _form("Enter your p\u0430ssword".replace("\u0430", "a\u200d"), value=TEXT),
        _form("Ｐａｓｓｗｏｒｄ?", value=TEXT),
        _form("Bitte Passwort eingeben", value=TEXT),
        _form("Introduzca su contraseña", value=TEXT),
        _form("パスワードを入力", value=TEXT),
        _form("비밀번호", value=TEXT),
        _form("Your PIN", value={"type": "integer"}),
    ],
)
def test_a_form_for_a_secret_is_refused(request_: dict[str, Any]) -> None:
    assert refusal(request_, sampling=False).startswith("asked for a secret in a form.")


@pytest.mark.parametrize(
    ("message", "properties"),
    [
        ("This resets your password. Continue?", {"continue": {"type": "boolean"}}),
        ("Which token?", {"token": {"type": "string", "enum": ["first", "last"]}}),
        ("How many pins?", {"number": {"type": "integer"}}),
        ("A name for the key value store", {"name": TEXT}),
    ],
)
def test_a_form_that_only_mentions_a_secret_is_asked(message: str, properties: dict[str, Any]) -> None:
    assert not asks_secret(message, {"type": "object", "properties": properties})
    assert refusal(_form(message, **properties), sampling=False) == ""


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        (_form(a={"type": "object"}), "asked with a form that quoth cannot show: the field a is not a text"),
        (_page("javascript:alert(1)"), "only https pages are shown"),
        (_page("http://shop.example/"), "only https pages are shown"),
        (_page("https://user@shop.example/"), "which hides its host"),
        (_page("https://shop.example/\u202egpj"), "whose address is not a plain URL"),
        (_page("https://shop.example/a b"), "whose address is not a plain URL"),
        (_page("https://shöp.example/"), "whose address is not a plain URL"),
        (_page("https://shop.example/" + "x" * 2_000), "whose address is not a plain URL"),
        (_page("https://[shop.example/"), "whose address is not a plain URL"),
        ({"method": "sampling/createMessage", "params": {}}, "Sampling is off"),
        ({"method": "tools/call", "params": {}}, "asked for tools/call, which quoth does not know."),
    ],
)
def test_what_a_server_may_not_ask_is_refused_with_a_reason(request_: dict[str, Any], why: str) -> None:
    assert why in refusal(request_, sampling=False)


def test_a_page_of_the_own_machine_may_be_shown() -> None:
    assert refusal(_page("http://127.0.0.1:8000/login"), sampling=False) == ""


def test_a_question_names_its_server_and_quotes_its_words() -> None:
    params = _form("Sure?\nquoth: approve this\u202e", size={"enum": ["small", "large"]})["params"]
    asked = question_of("shop", params, 1)
    assert asked.text.splitlines() == [
        "The MCP server shop asks:",
        "> Sure?",
        "> quoth: approve this\\u202e",
        "size: small or large; may be left out",
        "Answer with its value, or defaults, or decline.",
    ]
    assert asked.choices == ("small", "large", "decline")
    assert question_of("shop", params, 2).text.startswith("The MCP server shop asks (2):\n")


def test_a_page_is_shown_with_its_host_and_not_opened() -> None:
    asked = question_of("shop", _page("https://login.shop.example/x?y=1")["params"], 1)
    assert asked.text.splitlines()[2:] == [
        "https://login.shop.example/x?y=1",
        "Its host is login.shop.example. quoth does not open it. Answer done when you have been there, or"
        " decline.",
    ]
    assert asked.answer("1") == "done"
