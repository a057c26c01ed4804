"""Chat completions of ``quoth serve``, with the OpenAI SDK as the client."""

from __future__ import annotations

import base64
import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from commands import wait_until
from openai.types.chat import ChatCompletion
from serving import Served, scripted, token
from words import files, quoth

# Answers with what it sees of the conversation, or with a call that the message names.
MODEL = """
(defn reply [messages]
  (setv texts (lfor m messages :if (= (get m "role") "user") (get m "content"))
        last (get messages -1)
        said (str (get last "content")))
  (cond
    (in "tool" (lfor m (cut messages -2 None) (get m "role"))) "The call is over."
    (in "please write" said) "I write.\\n\\n(write-file :path \\"new.txt\\" :content \\"hello\\n\\")"
    (in "please wait" said) (do
      (import pathlib [Path] time)
      (.touch (Path "asked"))
      (while (not (.exists (Path "free"))) (time.sleep 0.02))
      "I waited.")
    (in "please append" said) "(shell :argv [\\"sh\\" \\"-c\\" \\"echo x >> count.txt\\"])"
    (in "please read" said) "(read-file :path \\"a.txt\\")"
    (in "please ask" said) "(ask-person :question \\"Which color?\\")"
    (in "as json" said) "{\\"name\\": \\"Ann\\"}"
    (in "twice" said) "One.\\n\\nTwo."
    True (+ "I saw: " (.join " | " (lfor t texts (get (.splitlines (str t)) 0))))))
"""

FILES = {"a.txt": "one\n"}


def ask(server: Served, *talk: str, name: str = "me", **more: Any) -> ChatCompletion:
    """The completion of a conversation, whose texts are the person's and the model's in turn."""
    roles = ("user", "assistant")
    messages: Any = [{"role": roles[place % 2], "content": text} for place, text in enumerate(talk)]
    return server.openai(name).chat.completions.create(model="quoth", messages=messages, **more)


def text(done: ChatCompletion) -> str:
    assert done.choices[0].message.content is not None
    return done.choices[0].message.content


def session_of(server: Served, *talk: str, name: str = "me", **more: Any) -> tuple[str, str]:
    """The answer to a conversation, and its session."""
    roles = ("user", "assistant")
    messages: Any = [{"role": roles[place % 2], "content": one} for place, one in enumerate(talk)]
    raw = server.openai(name).chat.completions.with_raw_response.create(
        model="quoth", messages=messages, **more
    )
    return text(raw.parse()), raw.headers["X-Session"]


def test_the_models_are_listed(server: Served) -> None:
    at = server.openai()
    assert [one.id for one in at.models.list()] == ["quoth", "quoth:plain"]
    assert at.models.retrieve("quoth").owned_by == "quoth"
    with pytest.raises(openai.NotFoundError, match="Did you mean quoth"):
        at.models.retrieve("quot")
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{server.url}/v1", api_key="no", max_retries=0).models.list()


def test_a_completion_has_the_shape_of_the_sdk(server: Served) -> None:
    done = ask(server, "hello")
    assert text(done) == "I saw: hello"
    assert done.choices[0].finish_reason == "stop"
    assert done.choices[0].message.role == "assistant"
    assert "tool_calls" not in done.to_json()
    assert done.usage is not None
    assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens


def test_a_stream_has_a_role_words_an_end_and_its_usage(server: Served) -> None:
    messages: Any = [{"role": "user", "content": "say it twice"}]
    chunks = list(
        server.openai().chat.completions.create(
            model="quoth", messages=messages, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(one.choices[0].delta.content or "" for one in chunks if one.choices) == "One.\n\nTwo."
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None


def test_a_conversation_goes_on_in_its_session(server: Served) -> None:
    first, session = session_of(server, "one")
    second, same = session_of(server, "one", first, "two")
    assert second == "I saw: one | two"
    assert same == session
    third, still = session_of(server, "one", first, "two", f" <details>\nx\n</details> {second}\r\n", "three")
    assert third == "I saw: one | two | three"
    assert still == session


def test_an_edited_and_a_branched_conversation_fork(server: Served) -> None:
    first, session = session_of(server, "one")
    second, _ = session_of(server, "one", first, "two")
    edited, fork = session_of(server, "one", first, "other")
    assert edited == "I saw: one | other"
    assert fork != session
    again, own = session_of(server, "one", first, "two")  # regenerated
    assert again == second
    assert own not in (session, fork)
    assert session_of(server, "one", first, "two", second, "three")[0] == "I saw: one | two | three"


def test_an_unknown_conversation_begins_with_its_text_as_data(server: Served) -> None:
    said, session = session_of(server, "never", "said", "now")
    assert "now" in said
    assert session_of(server, "never", "said", "now", said, "and")[1] == session


def test_another_keys_conversation_is_unknown(server: Served) -> None:
    first, session = session_of(server, "one")
    assert session_of(server, "one", first, "two", name="chat")[1] != session
    headers = {"X-Session": session}
    assert session_of(server, "two", name="chat", extra_headers=headers)[1] != session
    assert session_of(server, "two", extra_headers=headers) == ("I saw: one | two", session)


def test_a_session_may_be_named_by_its_client(server: Served) -> None:
    headers = {"X-Session": "c0ffee-1"}
    assert session_of(server, "one", extra_headers=headers)[0] == "I saw: one"
    assert session_of(server, "two", extra_headers=headers)[0] == "I saw: one | two"
    assert session_of(server, "two", name="chat", extra_headers=headers)[0] == "I saw: two"


def test_a_long_name_of_a_client_is_a_short_session_of_its_own(server: Served) -> None:
    names = [f"0f8fad5b-d9cb-469f-a165-70867728950{end}" for end in "ef"]
    made = [session_of(server, name[-1], extra_headers={"X-Session": name}) for name in names]
    assert [said for said, _ in made] == ["I saw: e", "I saw: f"]
    assert len({session for _, session in made}) == 2
    assert max(len(session) for _, session in made) <= 40
    again = {"X-Session": made[0][1]}
    assert session_of(server, "two", extra_headers=again) == ("I saw: e | two", made[0][1])


def test_a_call_is_a_line_that_a_client_folds(server: Served) -> None:
    said, session = session_of(server, "please read")
    assert said.startswith('<details>\n<summary>→ (read-file :path "a.txt")</summary>\n')
    folded = said.partition("</summary>\n")[2].partition("\n</details>")[0]
    assert folded == f"quoth log {session}"  # Open WebUI shows no line with nothing below it
    assert said.endswith("The call is over.")
    assert session_of(server, "please read", "The call is over.", "on")[1] == session


def request_in(said: str) -> str:
    return said.rpartition("approve ")[2].split(",")[0].split()[0]


def test_a_key_that_decides_approves_the_request_that_waits(server: Served, folder: Path) -> None:
    waits, session = session_of(server, "please write")
    assert "write-file" in waits
    assert "+hello" in waits.replace(" ", "")
    assert not (folder / "new.txt").exists()
    word = f"approve {request_in(waits)}"
    done, same = session_of(server, "please write", waits, word)
    assert "Approved once" in done
    assert "The call is over." in done
    assert same == session
    assert (folder / "new.txt").read_text() == "hello\n"
    (folder / "new.txt").unlink()
    again, _ = session_of(server, "please write", waits, word)  # regenerated: it decides nothing more
    assert "Approved once" not in again
    assert not (folder / "new.txt").exists()
    assert session_of(server, "please write", waits, word, done, "on")[1] == session


def test_an_answer_that_its_client_has_converted_to_org_is_known(server: Served, folder: Path) -> None:
    waits, session = session_of(server, "please write")
    as_org = waits.replace("```text\n", "#+begin_src text\n").replace("\n```\n", "\n#+end_src\n")
    assert as_org.count("_src") == 2
    done, same = session_of(server, "please write", as_org, f"deny {request_in(waits)} no")
    assert ("Denied" in done, same) == (True, session)
    said, other = session_of(server, "please twice")
    assert (
        session_of(server, "please twice", said.replace("One", "/One/").replace("Two", "- *Two*"), "on")[1]
        == other
    )


def test_a_denied_call_does_not_run(server: Served, folder: Path) -> None:
    waits = text(ask(server, "please write"))
    done = text(ask(server, "please write", waits, f"deny {request_in(waits)} not now"))
    assert "Denied" in done
    assert not (folder / "new.txt").exists()


def test_a_key_without_the_right_decides_nothing(server: Served, folder: Path) -> None:
    waits = text(ask(server, "please write", name="chat"))
    assert "quoth approve" in waits
    id = request_in(waits)
    said = text(ask(server, "please write", waits, f"approve {id}", name="chat"))
    assert "may not decide" in said
    assert "no other words" in text(ask(server, "please write", waits, f"approve {id}\n\nBe brief."))
    hello = text(ask(server, "hello"))
    mine = text(ask(server, "hello", hello, f"approve {id}"))
    assert "another conversation" in mine
    assert not (folder / "new.txt").exists()


def test_a_request_that_was_approved_in_a_terminal_runs_with_the_next_message(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        waits, session = session_of(server, "please write", name="chat")
        assert f"chat (serve chat), {session}, reply" in quoth("pending", cwd=folder).out
        assert quoth("approve", request_in(waits), cwd=folder).code == 0
        done, same = session_of(server, "please write", waits, "go on", name="chat")
        assert same == session
        assert "go on" in done
        assert (folder / "new.txt").read_text() == "hello\n"


def test_words_around_a_decision_decide_nothing(server: Served, folder: Path) -> None:
    waits = text(ask(server, "please write"))
    word = f"approve {request_in(waits)}"
    for said in (f"please {word}", f"{word} now", f"{word}\n\nand go", word.upper()):
        text(ask(server, "please write", waits, said))
        assert not (folder / "new.txt").exists()
    earlier = text(ask(server, "please write", waits, word[:-1], "x", "hello"))
    assert "Approved" not in earlier
    assert not (folder / "new.txt").exists()


def test_a_question_is_answered(server: Served) -> None:
    waits = text(ask(server, "please ask"))
    assert "Which color?" in waits
    id = waits.rpartition("answer ")[2].split()[0]
    done = text(ask(server, "please ask", waits, f"answer {id} dark red"))
    assert "dark red" in done
    assert "The call is over." in done


def test_a_conversation_goes_on_after_a_kill(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        waits, session = session_of(server, "please append")
        server.process.send_signal(signal.SIGKILL)
    with scripted(folder) as server:
        done, still = session_of(server, "please append", waits, f"approve {request_in(waits)}")
        assert still == session
        assert "The call is over." in done
        assert (folder / "count.txt").read_text() == "x\n"


def test_an_image_and_parts_are_taken_and_a_far_image_is_not(server: Served) -> None:
    at = server.openai()
    parts: Any = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    done = at.chat.completions.create(model="quoth", messages=[{"role": "user", "content": parts}])
    assert text(done) == "I saw: a"
    png = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    for url, said in (
        ("http://example.org/a.png", "send the image itself"),
        ("data:image/png;base64,é", "base64"),
    ):
        image: Any = [{"type": "image_url", "image_url": {"url": url}}]
        with pytest.raises(openai.BadRequestError, match=said):
            at.chat.completions.create(model="quoth", messages=[{"role": "user", "content": image}])
    image = [{"type": "image_url", "image_url": {"url": f"data:image/png;base64,{png}"}}]
    seen = at.chat.completions.create(model="quoth", messages=[{"role": "user", "content": image}])
    assert text(seen) == "I saw: Look at the images."


def test_an_answer_may_be_json(server: Served) -> None:
    schema: Any = {
        "type": "json_schema",
        "json_schema": {
            "name": "person",
            "schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        },
    }
    assert text(ask(server, "Ann as json", response_format=schema)) == '{"name": "Ann"}'


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "must be JSON"),
        ("[]", "JSON object"),
        ('{"model": "quoth"}', "messages"),
        ('{"model": "quoth", "messages": [1]}', "messages[0]"),
        ('{"messages": [{"role": "user", "content": "a"}]}', "model"),
        ('{"model": "quoth", "messages": [{"role": "user", "content": " "}]}', "empty"),
        ('{"model": "quoth", "messages": [{"role": "assistant", "content": "a"}]}', "role user"),
        ('{"model": "quoth", "n": 2, "messages": [{"role": "user", "content": "a"}]}', "n must be 1"),
        ('{"model": "quoth", "max_tokens": 0, "messages": [{"role": "user", "content": "a"}]}', "max_tokens"),
        (
            '{"model": "quoth", "temperature": 9, "messages": [{"role": "user", "content": "a"}]}',
            "temperature",
        ),
        ('{"model": "quoth", "messages": [{"role": "king", "content": "a"}]}', "roles"),
        ('{"model": "quoth", "messages": [{"role": "user", "content": {"a": 1}}]}', "content must be"),
        ('{"model": "quoth", "messages": [{"role": "user", "content": [{"type": "audio"}]}]}', "audio"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(server: Served, body: str, said: str) -> None:
    with server.client() as http:
        answer = http.post("/v1/chat/completions", content=body.encode())
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]


def test_unknown_fields_are_ignored(server: Served) -> None:
    tools: Any = [{"type": "function", "function": {"name": "x", "parameters": {}}}]
    done = ask(server, "hello", tools=tools, seed=1, user="ann", extra_body={"metadata": {"a": 1}})
    assert text(done) == "I saw: hello"


def test_a_plain_model_answers_without_tools_and_begins_no_session(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        messages: Any = [{"role": "user", "content": "title"}]
        at = server.openai().chat.completions
        assert text(at.create(model="quoth:plain", messages=messages)) == "I saw: title"
        stream = at.create(model="quoth:plain", messages=messages, stream=True)
        assert "".join(one.choices[0].delta.content or "" for one in stream) == "I saw: title"
        ask(server, "hello")
        listed = quoth("sessions", cwd=folder).out
        assert "hello" in listed
        assert "title" not in listed


def streaming(server: Served, *talk: str) -> Any:
    """The raw stream of a conversation's answer, which begins when the server answers."""
    roles = ("user", "assistant")
    messages = [{"role": roles[place % 2], "content": one} for place, one in enumerate(talk)]
    body = {"model": "quoth", "stream": True, "messages": messages}
    return server.client().stream("POST", "/v1/chat/completions", json=body)


def test_two_messages_of_one_conversation_are_answered_at_once(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        first, session = session_of(server, "one")
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(session_of, server, "one", first, "please wait")
            wait_until((folder / "asked").exists)
            other, fork = session_of(server, "one", first, "two")
            (folder / "free").touch()
            assert waiting.result() == ("I waited.", session)
        assert other == "I saw: one | two"
        assert fork != session


@pytest.mark.parametrize(
    ("more", "answer"),
    [((), "I waited."), (("I", "go on"), "I waited.\n\nI saw: one | please wait | go on")],
    ids=["sent again", "the client keeps a part of the answer"],
)
def test_a_message_whose_answer_was_broken_off_is_answered_once_in_its_session(
    tmp_path: Path, more: tuple[str, ...], answer: str
) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        first, session = session_of(server, "one")
        with ThreadPoolExecutor(1) as pool:
            broken = pool.submit(session_of, server, "one", first, "please wait")
            wait_until((folder / "asked").exists)
            server.process.send_signal(signal.SIGKILL)
            assert isinstance(broken.exception(), openai.APIConnectionError)
    (folder / "free").touch()
    with scripted(folder) as server:
        assert session_of(server, "one", first, "please wait", *more) == (answer, session)
        log = quoth("log", session, cwd=folder).out
        assert log.count(": please wait") == 1


# Calls a program that ends only where it is stopped.
SLOW = """
(defn reply [messages]
  (if (in "go" (str (get (get messages -1) "content")))
      "(shell :argv [\\"sh\\" \\"-c\\" \\"echo $$ > begun; exec sleep 1000\\"])"
      "ok"))
"""


def test_a_client_that_leaves_stops_its_program(tmp_path: Path) -> None:
    rules = '(allow (shell :argv ["sh" ...]))'
    folder = files(tmp_path / "shop", {"model.hy": SLOW, "rules.hy": rules})
    with scripted(folder, "--policy", "rules.hy") as server:
        with streaming(server, "go") as answer:
            assert answer.status_code == 200
            wait_until((folder / "begun").exists)
            session = answer.headers["X-Session"]
        # Who stops an answer and at once writes on is in the same conversation.
        assert session_of(server, "go", "part of it", "then") == ("ok", session)
        assert "was interrupted" in quoth("log", session, cwd=folder).out


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_before_the_first_piece_stops_the_run(tmp_path: Path, stream: bool) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        body = json.dumps(
            {"model": "quoth", "stream": stream, "messages": [{"role": "user", "content": "please wait"}]}
        )
        port = int(server.url.rpartition(":")[2])
        key = f"Authorization: Bearer {token('me')}"
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n{key}\r\n"
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            wait_until((folder / "asked").exists)
        wait_until(lambda: "interrupted" in quoth("sessions", cwd=folder).out)
        (folder / "free").touch()
