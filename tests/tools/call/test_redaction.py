"""Redaction: what is declared secret or looks like a secret is not written down, whatever road it takes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import IS_TRUE_OR_FALSE_NOT, IT_IS_CALLED_AS
from words import complaint, form, gateway, load, shipped, story, tool

from quoth import Agent
from quoth.agent.terminal.ask import AskTerminal
from quoth.tools.call.call import Verdict, ask, deny, new_call
from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import (
    KEPT_CHARS,
    Redactor,
    map_texts,
    may_hold_secrets,
    redact,
    redact_url,
    sounds_secret,
)
from quoth.tools.call.workspace import Workspace
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import DefinitionError, ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import MAX_DEPTH, Code
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.function import cognitive_tool, tool_of
from quoth.tools.registry.parameters import Secret
from quoth.tools.registry.table import ToolTable

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\nq83v\n-----END RSA PRIVATE KEY-----"
LOGIN = {"user": {}, "pin": {"secret": True}}


def kept(text: str, params: Any = (), names: Any = ()) -> str:
    """How a call form is written down."""
    return Redactor(form(text), params, names).form_text()


# What looks like a secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (PEM, "[secret]"),
        (f"a {PEM} b", "a [secret] b"),
        (PEM[:60], "[secret]"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nx", "[secret]"),
        ("use sk-proj-abcDEF123456 now", "use [secret] now"),
        ("sk-ant-api03-abcdef_ghi", "[secret]"),
        ("ghp_0123456789abcdefABCDEF", "[secret]"),
        ("github_pat_11ABC_xyz0123", "[secret]"),
        ("glpat-abcdefgh1234", "[secret]"),
        ("AKIAIOSFODNN7EXAMPLE", "[secret]"),
        ("AIzaSyA-1234567890abcdefghijklmnop", "[secret]"),
        ("xoxb-123456789012-abcdef", "[secret]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-_1", "[secret]"),
        ("Authorization: Bearer abc.def-123", "Authorization: [secret] [secret]"),
        ("bearer   abcdef123", "bearer [secret]"),
        ("postgres://ann:pa55@db.example/x", "postgres://ann:[secret]@db.example/x"),
        ("OPENAI_API_KEY=abc", "OPENAI_API_KEY=[secret]"),
        ("export KEY='a b' n=1", "export KEY=[secret] n=1"),
        ("https://x.example/?key=abc&n=1", "https://x.example/?key=[secret]&n=1"),
        ("token=abc, n=1", "token=[secret], n=1"),
        ("GITHUB_TOKEN: abc", "GITHUB_TOKEN: [secret]"),
        ("DB_PASSWORD_PROD = hunter2", "DB_PASSWORD_PROD = [secret]"),
        ('{"password": "a \\" b", "n": 1}', '{"password": [secret], "n": 1}'),
        ("{'Password': 'x'}", "{'Password': [secret]}"),
        ('(setv token "abc") (f :api-key "x")', '(setv token "[secret]") (f :api-key "[secret]")'),
        ("login --password abc --n 1", "login --password [secret] --n 1"),
        ("secret => 'x'", "secret => [secret]"),
        ("password=", "password="),
    ],
)
def test_what_looks_like_a_secret_is_hidden(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert redact(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "the password is wrong",
        "max_tokens=600 keyboard: qwerty",
        "A token is a word; the key to it all",
        "task-list risk-free desk-",
        '(grep-search :pattern "TODO" :path "src")',
        "https://example.org:8080/a@b",
        "bearer of news",
        "3f9ab04b4d7f8bd07a8e2b0d1c25aab2",
    ],
)
def test_what_does_not_is_left_alone(text: str) -> None:
    assert redact(text) == text


PIECES = [*'sk-_=:"\\ a1>', "token", "key=", "Bearer ", "[secret]", "password", "abcdefgh", "--"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "piece",
    [
        "sk-",
        "token ",
        "-----BEGIN A-----",
        "key=",
        "password\\\"'",
        "://",
        "bearer ",
        "eyJaaaaaaaaa.",
        '\\"',
        "a-",
    ],
)
def test_no_text_takes_long(piece: str) -> None:
    begun = time.perf_counter()
    redact(piece * (200_000 // len(piece)))
    redact("token" + piece * (200_000 // len(piece)))
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(
    "name", ["password", "Api_Key", "github-token", "x-api-key", "--secret", "db.passwd"]
)
def test_some_names_say_that_they_are_secret(name: str) -> None:
    assert sounds_secret(name)


@pytest.mark.parametrize("name", ["tokens", "max-tokens", "key", "secretary", "password-hint", "pattern", ""])
def test_other_names_do_not(name: str) -> None:
    assert not sounds_secret(name)


# Forms


def test_arguments_and_keys_that_sound_secret_are_hidden_whatever_they_hold() -> None:
    assert kept('(curl :password 1234 :headers {"X-Api-Key" ["a"] "n" 1} :token None :n 1)') == (
        '(curl :headers {"X-Api-Key" "[secret]"  "n" 1} :n 1 :password "[secret]" :token None)'
    )
    assert (
        kept('(run :argv ["x" "--token" "abc" "-n" "3"])')
        == '(run :argv ["x" "--token" "[secret]" "-n" "3"])'
    )


def test_declared_secrets_are_hidden_in_every_spelling() -> None:
    made = tool("login", params=LOGIN)
    for text in (
        '(login :user "ann" :pin "12ab")',
        '(LOGIN :PIN "12ab" :User "ann")',
        '(:tool "login" :args (:user "ann" :pin "12ab"))',
    ):
        assert kept(text, made.params) == '(login :pin "[secret]" :user "ann")'


def test_where_it_is_not_sure_which_argument_is_secret_all_are_hidden() -> None:
    made = tool("login", params=LOGIN)
    assert kept('(login "ann" "12ab")', made.params) == '(login "[secret]" "[secret]")'
    assert kept('(login :user "ann" :pinn "12ab")', made.params) == '(login :pinn "[secret]" :user "ann")'


def test_the_call_itself_and_its_digest_are_not_changed() -> None:
    call = form('(login :pin "12ab")')
    digest = call.digest
    Redactor(call, tool("login", params=LOGIN).params)
    assert (call.args, call.digest) == ({"pin": "12ab"}, digest)


def test_a_declared_secret_in_a_program_is_known_by_its_keyword() -> None:
    text = '(eval :form (do (login :user "ann" :pin "12ab") (login :PIN 1234 :user "bob")))'
    assert kept(text, names={"pin"}) == (
        '(eval :form (do (login :user "ann" :pin "[secret]") (login :PIN "[secret]" :user "bob")))'
    )


def test_long_forms_are_cut_and_no_secret_is_cut_in_two() -> None:
    for place in range(KEPT_CHARS - 60, KEPT_CHARS + 10, 3):
        text = "x" * place + " ghp_" + "a1" * 18 + " " + "y" * 9000
        shown = Redactor(CallForm("echo", {"text": text})).form_text()
        assert len(shown) == KEPT_CHARS
        assert shown.endswith("…")
        assert "ghp" not in shown


def test_a_form_of_any_size_and_shape_can_be_shown() -> None:
    deep: Any = "x"
    for _ in range(300):
        deep = [deep]
    assert "…" in Redactor(CallForm("f", {"x": deep})).form_text()
    assert len(Redactor(CallForm("f", {"x": list(range(10**6))})).form_text()) == KEPT_CHARS
    assert Redactor(CallForm("f", {"x": "\ud800"})).form_text() == '(f :x "\\ud800")'


def test_a_person_sees_all_but_what_was_declared() -> None:
    made = tool("login", params=LOGIN)
    call = form('(login :user "token=abc ghp_0123456789" :pin "12ab")')
    hide = Redactor(call, made.params, by_looks=False)
    assert str(hide.form) == '(login :user "token=abc ghp_0123456789" :pin "[secret]")'
    assert hide.text("12ab is short; token=abc") == "[secret] is short; token=abc"


# The ways a secret could get into the audit


def leaks(made: Any, text: str = '(login "ann" "hunter2")', **parts: Any) -> Any:
    """The row of a call whose secret is hunter2, after it was searched for the secret."""
    here = gateway(made, **parts)
    here.pass_through(text)
    (row,) = here.rows
    assert "hunter2" not in str(row)
    return row


def test_no_row_holds_a_secret_that_body_guard_gate_or_person_repeat() -> None:
    class Says:
        async def check(self, *_: Any) -> Verdict:
            return ask("is hunter2 right?")

        async def request(self, *_: Any) -> Verdict:
            return deny("hunter2 is bad")

    def body(pin: str, ctx: ToolContext) -> None:
        ctx.effect(f"sent:{pin}")
        ctx.say(f"used {pin}")
        raise ToolError(f"{pin} is wrong")

    row = leaks(tool("login", body, params=LOGIN))
    assert (row["message"], row["side_effects"]) == ("[secret] is wrong", ("sent:[secret]",))
    row = leaks(tool("login", params=LOGIN, guard=lambda pin: deny(f"{pin}?")))
    assert row["guard"] == "deny: [secret]?"
    row = leaks(tool("login", params=LOGIN, gate=True), gate=Says(), consent=Says())
    assert (row["gate"], row["consent"]) == ("ask: is [secret] right?", "deny: [secret] is bad")


@pytest.mark.parametrize(
    "text",
    [
        '(login "ann" ["hunter2"])',
        '(login "ann" hunter2)',
        '(login "ann" (f "hunter2"))',
        '(login "ann" "x" "hunter2")',
        '(login :user "ann" :pinn "hunter2")',
        '(login :user "ann" :pin {"a" ["hunter2"]})',
    ],
)
def test_no_row_of_an_invalid_call_holds_it(text: str) -> None:
    row = leaks(tool("login", params=LOGIN), text)
    assert row["status"] == "invalid"


def test_a_wrong_secret_is_not_repeated_to_anybody() -> None:
    result = gateway(tool("login", params=LOGIN)).pass_through('(login "ann" :pin 123456)')
    assert (
        result.message
        == f"login: :pin should be str, not [secret]. {IT_IS_CALLED_AS} (login :user str :pin str)."
    )
    result = gateway(tool("login", params=LOGIN)).pass_through('(login "ann" :pin hunter2)')
    assert "hunter2" not in result.message


def test_a_call_that_never_came_to_its_tool_is_redacted_too(tmp_path: Path) -> None:
    here = gateway(tool("login", params=LOGIN), max_depth=1)
    here.pass_through('(login "ann" "hunter2")', depth=2)
    here.door.refuse(
        new_call(form('(login "ann" "hunter2")')), ToolContext(Workspace(tmp_path)), "limited", "x"
    )
    assert [row["stage"] for row in here.rows] == ["look-up", "host"]
    assert "hunter2" not in str(here.rows)


def test_a_program_with_a_secret_leaves_none(tmp_path: Path) -> None:
    here = shipped(tmp_path, tool("login", body=lambda pin: "in", params=LOGIN))
    assert here.pass_through('(eval (login :user "ann" :pin "hunter2"))').ok
    assert len(here.rows) == 2
    assert "hunter2" not in str(here.rows)


def test_what_a_tool_gets_and_gives_is_not_redacted() -> None:
    here = gateway(tool("login", body=lambda pin: {"got": pin}, params=LOGIN))
    result = here.pass_through('(login "ann" "hunter2")')
    assert result.value == {"got": "hunter2"}


# What a person is shown


async def test_a_question_hides_what_was_declared_and_shows_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Types:
        async def ask(self, question: str) -> str:
            return "y"

    made = tool("login", params=LOGIN)
    call = new_call(form('(login :user "token=abc" :pin "hunter2")'))
    assert await AskTerminal(Types()).request(made, call, "hunter2 is short") == Decision()
    shown = capsys.readouterr().err
    assert '(login :user "token=abc" :pin "[secret]")\n  asked because [secret] is short\n' in shown


def test_a_transcript_hides_what_was_declared_and_the_tool_gets_it(tmp_path: Path) -> None:
    heard: list[str] = []
    got: list[str] = []
    told = story(
        tmp_path,
        '(login :user "ann" :pin "hunter2")',
        "Done.",
        tools=[tool("login", body=lambda pin: got.append(pin), params=LOGIN)],
        on_event=lambda event: heard.append(str(event.data)) if event.kind == "call" else None,
    )
    assert got == ["hunter2"]
    assert heard == ['(login :user "ann" :pin "[secret]")']
    assert "hunter2" not in str(told.reply.to_json())
    assert told.reply.calls[0].form.args["pin"] == "hunter2"


# Declaring


def test_a_secret_parameter_is_declared_in_hy_and_in_python(tmp_path: Path) -> None:
    (tmp_path / "t.hy").write_text(
        "(require quoth [def-cognitive-tool])\n"
        '(def-cognitive-tool login "Log in." :parameters [pin {:type str :secret True}] :body pin)\n'
    )
    table = load(tmp_path / "t.hy")
    assert [param.secret for param in table.get("login").params] == [True]
    assert table.secrets == {"pin"}

    def sign_in(user: str, code: Annotated[str, Secret("The one-time code.")]) -> str:
        """Sign in."""
        return code

    with registering_in(ToolTable()):
        made = tool_of(cognitive_tool(sign_in))
    assert [(param.secret, param.doc) for param in made.params] == [(False, ""), (True, "The one-time code.")]


@pytest.mark.parametrize("given", ["yes", 1, None])
def test_secret_is_true_or_false(given: Any) -> None:
    said = complaint(DefinitionError, lambda: tool(params={"x": {"secret": given}}))
    assert said.startswith(f"probe, parameter x: :secret {IS_TRUE_OR_FALSE_NOT} ")


def test_an_agent_writes_no_secret_into_its_store(tmp_path: Path, state: Path) -> None:
    with Agent(workspace=tmp_path, tools=[tool("login", body=lambda pin: None, params=LOGIN)]) as it:
        assert it.call('(login "ann" "hunter2-hunter2")').ok
        assert it.call(f'(echo :text "{PEM}")').ok
    written = b"".join(path.read_bytes() for path in state.rglob("*") if path.is_file())
    assert b"login" in written
    assert b"hunter2" not in written
    assert b"MIIEpAIBAAKCAQEA" not in written


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://ann:hunter22@example.org/a@b", "https://[secret]@example.org/a@b"),
        ("https://hunter22@example.org", "https://[secret]@example.org"),
        ("ann:hunter22@example.org", "[secret]@example.org"),
        ("https:\\\\hunter22@example.org", "https:\\\\[secret]@example.org"),
        ("https://example.org/@ann?to=ann@example.org", "https://example.org/@ann?to=ann@example.org"),
    ],
)
def test_who_logs_in_by_an_address_is_shown_to_nobody(url: str, shown: str) -> None:
    assert Redactor(CallForm("fetch", {"url": url}), by_looks=False).form.args == {"url": shown}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://x.example/a?b", "https://x.example/a?b"),
        ("https://x.example/?key=1&v=2&q=", "https://x.example/?key=[secret]&v=2&q="),
        ("https://x.example/?V=2#a", "https://x.example/?V=2#a"),
        ("https://ann:pin@x.example/?x=y@z", "https://[secret]@x.example/?x=[secret]"),
    ],
)
def test_an_address_is_shown_with_what_is_harmless(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_only_what_may_be_a_secret_is_looked_through() -> None:
    assert [may_hold_secrets(text) for text in ("A Bearer of news", "ordinary words", "")] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1234, "[secret]"),
        (123, 123),  # too short to be looked for elsewhere
        (True, True),
        (None, None),
        (["1234", {"a": 12.5}], "[secret]"),
    ],
)
def test_a_declared_secret_is_hidden_wherever_it_stands(value: Any, shown: Any) -> None:
    made = tool("login", params={"pin": {"type": Any, "secret": True}, "note": {"type": Any, "default": ""}})
    call = CallForm("login", {"pin": value, "note": [value, f"It is {value}.", {str(value): value}]})
    hide = Redactor(call, made.params)
    hidden = shown == "[secret]" and not isinstance(value, list)
    assert hide.form.args["pin"] == (shown if shown in (True, None) else "[secret]")
    if hidden:
        assert hide.form.args["note"] == ["[secret]", "It is [secret].", {"[secret]": "[secret]"}]
        assert hide.text(f"No {value} here") == "No [secret] here"
    elif not isinstance(value, list):
        assert hide.form.args["note"] == call.args["note"]
    else:
        assert hide.text("1234 and 12.5") == "[secret] and [secret]"


@pytest.mark.parametrize(("depth", "told"), [(MAX_DEPTH, "hunter2"), (MAX_DEPTH + 1, "…")])
def test_a_form_is_looked_through_to_a_depth(depth: int, told: str) -> None:
    value: Any = "hunter2"
    for _ in range(depth):
        value = [value]
    assert told in Redactor(CallForm("f", {"x": value})).form_text()
    mapped = map_texts(value, lambda text: text.upper())
    for _ in range(depth):
        (mapped,) = mapped
    assert mapped == "HUNTER2"


def test_texts_and_numbers_that_spell_a_secret_are_replaced_in_data() -> None:
    def hide(text: str) -> str:
        return text.replace("1234", "[secret]")

    data = {"1234": [1234, 12345, True, None, ("x1234",)], "a": Code("(f 1234)")}
    assert map_texts(data, hide) == {
        "[secret]": ["[secret]", 12345, True, None, ["x[secret]"]],
        "a": "(f [secret])",
    }
    nested: Any = 1234
    for _ in range(MAX_DEPTH):
        nested = {"a": nested}
    assert "1234" not in str(map_texts(nested, hide))
    assert "1234" in str(map_texts({"a": nested}, hide))


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ('(login :pin "12ab")', '(login :pin "[secret]")'),
        ("(login :pin 1234)", '(login :pin "[secret]")'),
        ("(login :pin secret-of-mine)", '(login :pin "[secret]")'),
        ("(login :pins 1234)", "(login :pins 1234)"),
    ],
)
def test_a_program_that_is_spelt_as_a_text_is_a_program(program: str, shown: str) -> None:
    made = tool("run-it", params={"form": {"type": Code}, "text": {"type": str, "default": ""}})
    call = CallForm("run-it", {"form": program, "text": program})
    hide = Redactor(call, made.params, {"pin"}, by_looks=False)
    assert hide.form.args == {"form": shown, "text": program}
    assert hide.text("the pin 1234, 12ab or secret-of-mine") == {
        '"12ab")': "the pin 1234, [secret] or secret-of-mine",
        "1234)": "the pin [secret], 12ab or secret-of-mine",
    }.get(program.rpartition(":pin ")[2], "the pin 1234, 12ab or secret-of-mine")
