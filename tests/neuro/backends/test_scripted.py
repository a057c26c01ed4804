"""The scripted backend, and how a backend is chosen from a spec, the environment or what is installed.

Knows no network: choosing a script must not even load httpx.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sentences import (
    AND_ONE_MORE_WAS_ASKED,
    DID_YOU_MEAN_OPENAI,
    OR_NAME_A_SERVER_WITH,
    THE_SCRIPT_IS_EXHAUSTED,
    THERE_IS_NO_MODEL,
    THERE_IS_NO_MODEL_FILE,
    THERE_IS_NO_SCRIPT_FILE,
    TYPE_QUOTH_MODELS_LOGIN,
)

from quoth.neuro.backends import weights
from quoth.neuro.backends.base import Backend, Completion, ModelError
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.providers import ServerSettings
from quoth.neuro.backends.select import ScriptedBackend, choose_backend, load_scripted
from quoth.tools.errors import UsageError


def said(*contents: str) -> Messages:
    messages = Messages()
    for content in contents:
        messages.append("user", content)
    return messages


async def test_replies_come_one_by_one() -> None:
    backend = ScriptedBackend(["one", "two"])
    assert isinstance(backend, Backend)
    assert [(await backend.complete(said("a"))).text for _ in range(2)] == ["one", "two"]


@pytest.mark.parametrize(
    ("replies", "sentence"),
    [
        ([], f"{THE_SCRIPT_IS_EXHAUSTED}: it has 0 replies {AND_ONE_MORE_WAS_ASKED}."),
        (["a"], f"{THE_SCRIPT_IS_EXHAUSTED}: it has 1 reply {AND_ONE_MORE_WAS_ASKED}."),
        (["a", "b"], f"{THE_SCRIPT_IS_EXHAUSTED}: it has 2 replies {AND_ONE_MORE_WAS_ASKED}."),
    ],
)
async def test_an_exhausted_script_says_how_many_replies_it_held(replies: list[str], sentence: str) -> None:
    backend = ScriptedBackend(replies)
    for _ in replies:
        await backend.complete(said("a"))
    with pytest.raises(ModelError) as raised:
        await backend.complete(said("a"))
    assert str(raised.value) == sentence


async def test_a_function_answers_what_it_is_shown() -> None:
    backend = ScriptedBackend(lambda messages: messages[len(messages) - 1]["content"].upper())
    assert (await backend.complete(said("a", "hello"))).text == "HELLO"


async def test_the_function_may_be_async() -> None:
    async def reply(messages: Messages) -> str:
        return f"{len(messages)} messages"

    assert (await ScriptedBackend(reply).complete(said("a", "b"))).text == "2 messages"


async def test_a_function_that_gives_no_text_is_told_so() -> None:
    backend = ScriptedBackend(lambda _: 42)  # type: ignore[arg-type, return-value]
    with pytest.raises(ModelError, match=r"^A scripted reply must be text, but the script returned int\.$"):
        await backend.complete(said("a"))


async def test_native_calls_are_scripted_as_mappings_or_completions() -> None:
    call = {"name": "echo", "arguments": {"text": "hi"}}
    whole = Completion("Done.", calls=({"id": "c9", "name": "echo", "arguments": "{"},))
    backend = ScriptedBackend([{"text": "I look.", "tool_calls": [call, {**call, "id": "c1"}]}, whole])
    assert isinstance(backend, Backend)
    first = await backend.complete(said("a"), tools=b"[]", tool_choice="required")
    assert first.text == "I look."
    assert [dict(made) for made in first.calls] == [
        {"id": "call_1_0", "name": "echo", "arguments": '{"text": "hi"}'},
        {"id": "c1", "name": "echo", "arguments": '{"text": "hi"}'},
    ]
    assert await backend.complete(said("a")) is whole
    assert (backend.tools, backend.choices) == ([b"[]", None], ["required", "auto"])


async def test_a_scripted_call_without_a_name_is_told_so() -> None:
    backend = ScriptedBackend([{"tool_calls": ["echo"]}])
    with pytest.raises(ModelError, match=r"^A scripted tool call is a mapping: "):
        await backend.complete(said("a"))


async def test_the_whole_reply_is_streamed() -> None:
    pieces: list[str] = []
    await ScriptedBackend(["hello"]).complete(said("a"), on_text=pieces.append)
    assert pieces == ["hello"]


async def test_what_was_shown_is_kept_and_each_request_is_a_prefix_of_the_next() -> None:
    backend = ScriptedBackend(["one", "two"])
    messages = said("first")
    for _ in range(2):
        messages.append("assistant", (await backend.complete(messages)).text)
        messages.append("user", "next")
    first, second = backend.seen
    assert first == b'[{"role":"user","content":"first"}]'
    assert second.startswith(first[:-1])
    assert len(second) > len(first)


@pytest.mark.parametrize(
    ("script", "replies"),
    [
        ("one\n", ["one"]),
        ("one\n---\ntwo\n", ["one", "two"]),
        ("one\n---\ntwo\n---\n", ["one", "two"]),
        ("one\n---\n\n---\nthree", ["one", "", "three"]),
        ("(f :a 1)\n\n(g)\n---\n  indented ---\n", ["(f :a 1)\n\n(g)", "  indented ---"]),
        ("one\r\n---\r\ntwo", ["one", "two"]),
    ],
)
async def test_a_text_script_is_cut_at_lines_of_dashes(
    script: str, replies: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "replies.txt"
    path.write_bytes(script.encode())
    backend = load_scripted(path)
    assert backend.name == f"scripted:{path}"
    assert [(await backend.complete(said("a"))).text for _ in replies] == replies
    with pytest.raises(ModelError, match="exhausted"):
        await backend.complete(said("a"))


def test_a_missing_script_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_scripted(tmp_path / "none.txt")
    assert str(raised.value) == f"{THERE_IS_NO_SCRIPT_FILE} {tmp_path / 'none.txt'}."


@pytest.mark.parametrize("content", [b"", b" \n\n"])
def test_an_empty_script_is_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "replies.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"is empty; write replies separated by lines of ---\.$"):
        load_scripted(path)


def test_a_script_that_is_not_text_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "replies.txt"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="Cannot read the script file"):
        load_scripted(path)


@pytest.mark.parametrize(
    ("source", "reply"),
    [
        ('(defn reply [messages] (+ "saw " (get (get messages -1) "content")))', "saw b"),
        ('(defn reply [] "always this")', "always this"),
        ("(defn :async reply [messages] (str (len messages)))", "2"),
    ],
)
async def test_a_hy_script_answers_by_its_function_reply(source: str, reply: str, tmp_path: Path) -> None:
    path = tmp_path / "replies.hy"
    path.write_text(source)
    assert (await load_scripted(path).complete(said("a", "b"))).text == reply


def test_a_hy_script_without_reply_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "replies.hy"
    path.write_text("(setv answer 42)")
    with pytest.raises(UsageError, match=r"must define a function: \(defn reply \[messages\] …\)\.$"):
        load_scripted(path)


async def test_a_hy_reply_that_raises_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "replies.hy"
    path.write_text("(defn reply [messages] (/ 1 0))")
    with pytest.raises(ModelError) as raised:
        await load_scripted(path).complete(said("a"))
    assert str(raised.value) == f"reply in {path} raised ZeroDivisionError: division by zero"


# Choosing


@pytest.mark.parametrize(
    ("spec", "base_url", "environ", "kind", "takes_grammar"),
    [
        ("openai:gpt-x", None, {"OPENAI_API_KEY": "k"}, "OpenAIBackend", False),
        ("openai:gpt-x", "http://127.0.0.1:1/v1", {}, "OpenAIBackend", False),
        ("ollama:qwen3:8b", None, {}, "OpenAIBackend", False),
        ("llamacpp:qwen", "http://127.0.0.1:1/v1", {}, "OpenAIBackend", True),
        ("local", None, {}, "LocalBackend", True),
        ("local-small", None, {}, "LocalBackend", True),
        (None, None, {"QUOTH_MODEL": "local-small", "OPENAI_API_KEY": "k"}, "LocalBackend", True),
        (None, None, {"OPENAI_API_KEY": "k"}, "OpenAIBackend", False),
        ("anthropic:claude-x", None, {"ANTHROPIC_API_KEY": "k"}, "AnthropicBackend", False),
        ("anthropic:claude-x", "http://127.0.0.1:1", {}, "AnthropicBackend", False),
    ],
)
def test_a_spec_chooses_its_backend(
    spec: str | None, base_url: str | None, environ: dict[str, str], kind: str, takes_grammar: bool
) -> None:
    backend = choose_backend(spec, ServerSettings(base_url=base_url), environ=environ)
    assert type(backend).__name__ == kind
    assert backend.name == (spec or environ.get("QUOTH_MODEL") or "openai:gpt-5-mini")
    assert backend.takes_grammar is takes_grammar


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "openai:gpt-5-mini"),
        (["ANTHROPIC_API_KEY"], "anthropic:claude-haiku-5-5"),
    ],
)
def test_without_a_spec_the_first_provider_whose_key_is_set_is_chosen(keys: list[str], name: str) -> None:
    assert choose_backend(None, environ=dict.fromkeys(keys, "k")).name == name


def test_a_path_chooses_that_file(tmp_path: Path) -> None:
    path = tmp_path / "my.gguf"
    path.write_bytes(b"GGUF and more")
    assert choose_backend(f"local:{path}", environ={}).name == f"local:{path}"


async def test_a_scripted_spec_reads_its_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.txt"
    path.write_text("hello")
    backend = choose_backend(f"scripted:{path}", environ={})
    assert (await backend.complete(said("a"))).text == "hello"


def test_choosing_a_script_loads_neither_httpx_nor_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "replies.txt"
    path.write_text("hello")
    program = (
        "import sys; from quoth.neuro.backends.select import choose_backend; "
        f"choose_backend('scripted:{path}'); "
        "print([name for name in ('httpx', 'xllamacpp', 'hy') if name in sys.modules])"
    )
    root = Path(__file__).parents[3]
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_without_a_spec_the_installed_local_model_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "local_available", lambda: "local-small")
    assert choose_backend(None, environ={}).name == "local-small"


@pytest.mark.parametrize(
    ("spec", "base_url", "sentence"),
    [
        (
            None,
            None,
            "No model is chosen. Name one with --model (or QUOTH_MODEL), give a key (set OPENAI_API_KEY, "
            f"or {TYPE_QUOTH_MODELS_LOGIN} openai), or run: quoth models get local. "
            "To list all: quoth models",
        ),
        (None, "http://x/v1", "--base-url needs the name of a model there: --model openai:NAME"),
        (
            "openai:gpt-x",
            None,
            "openai:gpt-x needs a key: set OPENAI_API_KEY, type quoth models login openai, "
            f"{OR_NAME_A_SERVER_WITH}.",
        ),
        (
            "anthropic:",
            None,
            "anthropic: needs a name after the colon, as in anthropic:claude-haiku-5-5.",
        ),
        ("openai", None, "openai: needs a name after the colon, as in openai:gpt-5-mini."),
        ("ollama:", None, "ollama: needs a name after the colon, as in ollama:qwen3."),
        ("scripted:", None, "scripted: needs a name after the colon, as in scripted:replies.txt."),
        ("openai:x", "127.0.0.1:8080", "The base URL must look like http://127.0.0.1:8080/v1."),
        (
            "local",
            "http://x/v1",
            "--base-url cannot be used with local; it needs a server, such as openai:NAME.",
        ),
        (
            "anthropic:claude",
            None,
            "anthropic:claude needs a key: set ANTHROPIC_API_KEY, type quoth models login anthropic, "
            f"{OR_NAME_A_SERVER_WITH}.",
        ),
        (
            "opanai:gpt-5",
            None,
            f"{THERE_IS_NO_MODEL} opanai:gpt-5. {DID_YOU_MEAN_OPENAI}:gpt-5? To list all: quoth models",
        ),
        ("local:/nowhere/x.gguf", None, f"{THERE_IS_NO_MODEL_FILE} /nowhere/x.gguf."),
    ],
)
def test_a_spec_that_cannot_be_used_is_a_sentence(
    spec: str | None, base_url: str | None, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "local_available", lambda: None)
    with pytest.raises(UsageError) as raised:
        choose_backend(spec, ServerSettings(base_url=base_url), environ={})
    assert str(raised.value) == sentence
