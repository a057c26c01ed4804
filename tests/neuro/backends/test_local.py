"""The embedded backend with the real small model: an answer, a grammar, a stop in the middle, clear failures.

Knows nothing of how good the answers are; that is measured elsewhere.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sentences import DID_NOT_FINISH_WITHIN

from quoth.neuro.backends.base import Backend, ModelError, RequestOptions
from quoth.neuro.backends.local import LocalBackend
from quoth.neuro.backends.messages import Messages
from quoth.tools.installing import install_extra

pytestmark = pytest.mark.timeout(1_200)  # on a machine with much else to do the model is slow

STORY = "Tell a very long story of a fox and a crow."


@pytest.fixture(scope="session")
def backend() -> Iterator[LocalBackend]:
    backend = LocalBackend("local-small", n_ctx=2048, threads=1)
    yield backend
    asyncio.run(backend.aclose())


def said(*turns: tuple[str, str]) -> Messages:
    messages = Messages()
    for role, content in turns:
        messages.append(role, content)
    return messages


async def test_it_answers_and_the_pieces_make_the_answer(backend: LocalBackend) -> None:
    assert isinstance(backend, Backend)
    messages = said(("user", "What is the capital of France? One word."))
    pieces: list[str] = []
    completion = await backend.complete(messages, max_tokens=10, on_text=pieces.append)
    assert "Paris" in completion.text
    assert "".join(pieces) == completion.text
    assert completion.finish == "stop"
    assert completion.usage.input_tokens > 10
    assert completion.usage.output_tokens > 0
    again = await backend.complete(messages, max_tokens=10)
    assert again.text == completion.text
    assert again.usage.cached_tokens > 10


async def test_it_says_what_it_does_before_its_first_word_and_is_used_again_once_closed() -> None:
    seen: list[tuple[str, int, int]] = []
    backend = LocalBackend(
        "local-small", n_ctx=2048, threads=1, progress=lambda *told: seen.append((told[0], told[1], told[2]))
    )
    pieces: list[int] = []
    await backend.aclose()
    long = said(("user", "word " * 120 + "Say yes."))
    completion = await backend.complete(long, max_tokens=2, on_text=lambda _: pieces.append(len(seen)))
    assert seen[:2] == [("loading", 0, 1), ("loading", 1, 1)]
    read = seen[2:]
    assert {doing for doing, _, _ in read} == {"reading"}
    assert len(read) > 1
    assert read[-1] == ("reading", completion.usage.input_tokens, completion.usage.input_tokens)
    assert pieces[0] == len(seen)
    await backend.aclose()
    assert (await backend.complete(said(("user", "hi")), max_tokens=1)).text
    await backend.aclose()


async def test_it_answers_by_a_schema(backend: LocalBackend) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    options = RequestOptions(schema={**schema, "additionalProperties": False})
    completion = await backend.complete(said(("user", "Ben is 42.")), options=options, max_tokens=20)
    assert re.fullmatch(r'\{\s*"age": \d+\s*\}', completion.text)


async def test_it_obeys_a_grammar(backend: LocalBackend) -> None:
    grammar = r'root ::= "(echo :text \"" [a-z]{1,4} "\")"'
    completion = await backend.complete(said(("user", "Echo hello.")), grammar=grammar, max_tokens=40)
    assert re.fullmatch(r'\(echo :text "[a-z]{1,4}"\)', completion.text)


async def test_a_reply_cut_at_max_tokens_says_so(backend: LocalBackend) -> None:
    completion = await backend.complete(said(("user", STORY)), max_tokens=2)
    assert (completion.finish, completion.usage.output_tokens) == ("length", 2)


async def test_a_tool_result_reaches_the_model_marked_as_one(backend: LocalBackend) -> None:
    async def tokens(role: str) -> int:
        messages = said(("user", "How many files?"), ("assistant", "(count-files)"), (role, "7316"))
        return (await backend.complete(messages, max_tokens=1)).usage.input_tokens

    # The model's own template puts <tool_response> marks around it; as a plain user message it has none.
    assert await tokens("tool") > await tokens("user")


async def test_cancelling_stops_the_generation_and_the_next_request_is_answered(
    backend: LocalBackend,
) -> None:
    pieces: list[str] = []
    started = asyncio.Event()

    def hear(piece: str) -> None:
        pieces.append(piece)
        started.set()

    task = asyncio.create_task(backend.complete(said(("user", STORY)), max_tokens=1500, on_text=hear))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    heard = len(pieces)
    completion = await backend.complete(said(("user", "Say yes.")), max_tokens=1)
    assert completion.text
    assert len(pieces) == heard < 100


async def test_requests_wait_for_each_other(backend: LocalBackend) -> None:
    replies = await asyncio.gather(
        *(backend.complete(said(("user", f"Say {word}.")), max_tokens=2) for word in ("yes", "no"))
    )
    assert all(reply.text for reply in replies)


async def test_an_error_in_the_listener_is_the_callers(backend: LocalBackend) -> None:
    def hear(piece: str) -> None:
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        await backend.complete(said(("user", STORY)), max_tokens=500, on_text=hear)


async def test_a_grammar_that_does_not_parse_is_a_sentence(backend: LocalBackend) -> None:
    with pytest.raises(ModelError) as raised:
        await backend.complete(said(("user", "hi")), grammar="root ::= (((")
    assert str(raised.value) == (
        "The model local-small cannot use the given grammar "
        "(Failed to initialize samplers: failed to parse grammar)."
    )


# As Gemma's: two roles, which take turns.
STRICT = """{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}
<|im_start|>{{ m['role'] }}
{{ m['content'] }}<|im_end|>
{% endfor %}<|im_start|>assistant
"""


async def test_a_template_whose_roles_take_turns_is_told_results_by_the_user(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import xllamacpp

    real = xllamacpp.Server

    def strict(params: Any) -> Any:
        assert params.fit_params is (len(xllamacpp.get_device_info()) > 1)
        params.chat_template = STRICT
        return real(params)

    monkeypatch.setattr(xllamacpp, "Server", strict)
    backend = LocalBackend("local-small", n_ctx=2048, threads=1)
    messages = said(
        ("system", "Be brief."),
        ("user", "Look."),
        ("assistant", "(look)"),
        ("tool", "12 apples"),
        ("user", "How many?"),
    )
    completion = await backend.complete(messages, max_tokens=10)
    assert "12" in completion.text
    assert "must alternate" in completion.note
    assert (await backend.complete(messages, max_tokens=10)).note == "", "it is known now"
    await backend.aclose()


async def test_a_conversation_longer_than_the_context_is_a_sentence(backend: LocalBackend) -> None:
    with pytest.raises(ModelError) as raised:
        await backend.complete(said(("user", "word " * 3000)))
    assert re.fullmatch(
        r"The conversation has 3\d\d\d tokens, more than the 2048 that local-small can read; "
        r"start a new session\.",
        str(raised.value),
    )


async def test_a_reply_that_takes_too_long_is_given_up(backend: LocalBackend) -> None:
    hurried = LocalBackend("local-small", n_ctx=512, threads=1, timeout=0.05)
    with pytest.raises(ModelError, match=rf"^The model local-small {DID_NOT_FINISH_WITHIN} 0\.05 s\.$"):
        await hurried.complete(said(("user", STORY)))
    await hurried.aclose()


async def test_nobody_else_on_the_machine_can_use_it(backend: LocalBackend) -> None:
    await backend.complete(said(("user", "hi")), max_tokens=1)
    address = backend._server.listening_address
    assert address.startswith("http://127.0.0.1:")
    request = urllib.request.Request(f"{address}/v1/chat/completions", b"{}")
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request)
    raised.value.close()
    assert raised.value.code == 401


async def test_without_llama_cpp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    mine = tmp_path / "my.gguf"
    mine.write_bytes(b"GGUF")
    for backend, extra in (
        (LocalBackend("local-small"), "local-small"),
        (LocalBackend(f"local:{mine}", mine), "llama"),
    ):
        with pytest.raises(ModelError) as raised:
            await backend.complete(said(("user", "hi")))
        assert str(raised.value) == (f"The model {backend.name} needs llama.cpp. Run: {install_extra(extra)}")


async def test_a_damaged_file_is_a_sentence(tmp_path: Path) -> None:
    damaged = tmp_path / "my.gguf"
    damaged.write_bytes(b"GGUF and nothing of use")
    with pytest.raises(ModelError) as raised:
        await LocalBackend("local:my.gguf", damaged).complete(said(("user", "hi")))
    assert str(raised.value) == (
        f"llama.cpp cannot load {damaged}: the file is damaged, of a kind this version cannot read, "
        "or too big for the available memory."
    )


PROGRAM = f"""
import asyncio, sys, threading
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.local import LocalBackend

def hear(piece):
    print(piece, flush=True)
    heard.set()

async def main():
    messages = Messages()
    messages.append("user", {STORY!r})
    await LocalBackend("local-small", n_ctx=4096, threads=1).complete(messages, max_tokens=3000, on_text=hear)

heard = threading.Event()
if sys.argv[1] == "wait":
    asyncio.run(main())
else:
    threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
    heard.wait()
"""


@pytest.mark.parametrize(("how", "code"), [("wait", -signal.SIGINT), ("leave", 0)])
def test_a_program_interrupted_or_ending_in_the_middle_ends_cleanly_and_llama_cpp_prints_nothing(
    how: str, code: int
) -> None:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, how],
        cwd=root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as program:
        watchdog = threading.Timer(1_200, program.kill)
        watchdog.start()
        assert program.stdout is not None
        assert program.stdout.readline()
        if how == "wait":
            program.send_signal(signal.SIGINT)
        _, errors = program.communicate()
        watchdog.cancel()
    assert program.returncode == code
    assert errors == "" or errors.rstrip().endswith("KeyboardInterrupt")
