"""Responses of ``quoth serve``, with the OpenAI SDK as the client."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.responses import Response
from pydantic import BaseModel
from serving import Served, scripted
from words import files

# Answers with what it sees of the conversation, or with a call that the message names.
MODEL = """
(defn reply [messages]
  (setv texts (lfor m messages :if (= (get m "role") "user") (get m "content"))
        said (str (get (get messages -1) "content")))
  (cond
    (and (in "20 degrees" (str (cut messages -3 None))) (!= said "hello")) "It is 20 degrees."
    (in "weather" said) "<think>Where?</think>Let me look.\\n\\n(client--get-weather :city \\"Paris\\")"
    (in "tool" (lfor m (cut messages -2 None) (get m "role"))) "The call is over."
    (in "please write" said) "(write-file :path \\"new.txt\\" :content \\"hello\\n\\")"
    (in "as json" said) "{\\"name\\": \\"Ann\\"}"
    (in "twice" said) "One.\\n\\nTwo."
    (in "rules?" said) (str (any (gfor m messages (in "Be brief." (str (get m "content"))))))
    True (+ "I saw: " (.join " | " (lfor t texts (get (.splitlines (str t)) 0))))))
"""


WEATHER: Any = {
    "type": "function",
    "name": "get_weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    "strict": True,
}


class Person(BaseModel):
    name: str


def ask(server: Served, input: Any, name: str = "me", **more: Any) -> Response:
    return server.openai(name).responses.create(model="quoth", input=input, **more)


def test_a_response_has_the_shape_of_the_sdk(server: Served) -> None:
    done = ask(server, "hello", metadata={"a": "b"}, instructions="Be brief.")
    assert done.output_text == "I saw: hello"
    assert (done.status, done.object, done.metadata) == ("completed", "response", {"a": "b"})
    assert done.instructions == "Be brief."
    assert done.id.startswith("resp_")
    assert done.usage is not None
    assert done.usage.total_tokens == done.usage.input_tokens + done.usage.output_tokens
    Response.model_validate(done.model_dump())


def test_a_stream_has_the_events_of_the_sdk_in_order(server: Served) -> None:
    with server.openai().responses.stream(model="quoth", input="say it twice") as stream:
        seen = list(stream)
        final = stream.get_final_response()
    assert final.output_text == "One.\n\nTwo."
    raw = list(ask(server, "say it twice", stream=True))
    kinds = [one.type.removeprefix("response.") for one in raw]
    deltas = kinds.count("output_text.delta")
    assert kinds == [
        *("created", "in_progress", "output_item.added", "content_part.added"),
        *["output_text.delta"] * deltas,
        *("output_text.done", "content_part.done", "output_item.done", "completed"),
    ]
    assert deltas == 2
    assert [one.sequence_number for one in raw] == [*range(len(raw))]
    assert len(seen) >= len(raw)


def test_a_response_is_continued_by_its_id_and_branched(server: Served) -> None:
    first = ask(server, "one")
    second = ask(server, "two", previous_response_id=first.id)
    assert second.output_text == "I saw: one | two"
    assert second.previous_response_id == first.id
    assert ask(server, "three", previous_response_id=second.id).output_text == "I saw: one | two | three"
    assert ask(server, "other", previous_response_id=first.id).output_text == "I saw: one | other"


def test_an_unknown_response_and_another_keys_are_refused(server: Served) -> None:
    first = ask(server, "one")
    for id, name in ((first.id, "chat"), ("resp_0", "me")):
        with pytest.raises(openai.BadRequestError, match="not found") as refused:
            ask(server, "two", name, previous_response_id=id)
        assert refused.value.code == "previous_response_not_found"
        assert refused.value.param == "previous_response_id"


def test_instructions_are_for_one_response(server: Served) -> None:
    first = ask(server, "rules?", instructions="Be brief.")
    assert first.output_text == "True"
    assert ask(server, [{"role": "developer", "content": "Be brief."}, user("rules?")]).output_text == "True"
    assert ask(server, "rules?").output_text == "False"


def user(content: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": content}


def test_items_parts_and_images_are_taken(server: Served) -> None:
    before = ask(server, "one")
    talk = [user("one"), *(item.model_dump() for item in before.output), user("two")]
    assert ask(server, talk).output_text == "I saw: one | two"
    png = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    image = {"type": "input_image", "image_url": png}
    assert ask(server, [user([image])]).output_text == "I saw: Look at the images."
    assert ask(server, [user([{"type": "input_text", "text": "a"}, image])]).output_text == "I saw: a"


def test_a_response_may_be_json(server: Served) -> None:
    done = server.openai().responses.parse(model="quoth", input="Ann as json", text_format=Person)
    assert done.output_parsed == Person(name="Ann")


def test_a_call_of_the_client_is_an_item_and_its_output_continues(server: Served) -> None:
    first = ask(server, "the weather?", tools=[WEATHER], tool_choice="auto")
    thought, call = first.output
    assert thought.type == "reasoning"
    assert [one.text for one in thought.content or ()] == ["Where?"]
    assert call.type == "function_call"
    assert (call.name, json.loads(call.arguments), call.status) == (
        "get_weather",
        {"city": "Paris"},
        "completed",
    )
    assert first.tools[0].type == "function"
    told = {"type": "function_call_output", "call_id": call.call_id, "output": "20 degrees"}
    done = ask(server, [told], tools=[WEATHER], previous_response_id=first.id)
    assert [one.type for one in done.output] == ["message"]
    assert done.output_text == "It is 20 degrees."
    sent = [user("the weather?"), *(one.model_dump() for one in first.output), told]
    assert ask(server, sent, tools=[WEATHER]).output_text == done.output_text  # as clients send it whole
    assert ask(server, "hello", previous_response_id=done.id).output_text.endswith("| hello")
    for id, name in ((call.call_id, "chat"), ("x", "me")):
        called = {"type": "function_call", "call_id": id, "name": "get_weather", "arguments": "{}"}
        with pytest.raises(openai.BadRequestError, match="is not that of a call for this key"):
            ask(server, [user("x"), called, {**told, "call_id": id}], name, tools=[WEATHER])


def test_a_stream_has_thoughts_and_calls_as_items(server: Served) -> None:
    with server.openai().responses.stream(model="quoth", input="the weather?", tools=[WEATHER]) as stream:
        kinds = [one.type.removeprefix("response.") for one in stream]
        final = stream.get_final_response()
    assert [one.type for one in final.output][-1] == "function_call"
    assert "function_call_arguments.done" in kinds
    raw = list(ask(server, "the weather?", tools=[WEATHER], stream=True))
    assert [one.sequence_number for one in raw] == [*range(len(raw))]
    added = [one.item.type for one in raw if one.type == "response.output_item.added"]
    done = [one.item for one in raw if one.type == "response.output_item.done"]
    assert added == [one.type for one in done] == [one.type for one in raw[-1].response.output]
    Response.model_validate(raw[-1].response.model_dump())


def test_a_response_is_read_again_and_forgotten(server: Served) -> None:
    at, first = server.openai().responses, ask(server, "one")
    assert at.retrieve(first.id) == first
    [*_, last] = ask(server, "two", previous_response_id=first.id, stream=True)
    assert at.retrieve(last.response.id).output_text == "I saw: one | two"
    with pytest.raises(openai.NotFoundError, match="not found"):
        server.openai("chat").responses.retrieve(first.id)
    with pytest.raises(openai.NotFoundError, match="not found"):
        server.openai("chat").responses.delete(first.id)
    shown = ask(server, "the key is sk-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    assert "sk-abc" in shown.output_text
    assert "sk-abc" not in at.retrieve(shown.id).output_text
    at.delete(first.id)
    for forgotten in (first.id, ask(server, "two", store=False).id, "resp_0", "%2e%2e"):
        with pytest.raises(openai.NotFoundError, match="not found"):
            at.retrieve(forgotten)
    with pytest.raises(openai.BadRequestError, match="not found"):
        ask(server, "more", previous_response_id=first.id)


def test_a_plain_model_keeps_no_response(server: Served) -> None:
    done = server.openai().responses.create(model="quoth:plain", input="title")
    assert done.output_text == "I saw: title"
    with pytest.raises(openai.BadRequestError, match="keeps no response"):
        server.openai().responses.create(model="quoth:plain", input="a", previous_response_id=done.id)
    with pytest.raises(openai.NotFoundError, match="Did you mean quoth"):
        server.openai().responses.create(model="quot", input="a")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("{", "must be JSON"),
        ('{"model": "quoth"}', "input must be"),
        ('{"model": "quoth", "input": []}', "input must be"),
        ('{"model": "quoth", "input": " "}', "empty"),
        ('{"model": "quoth", "input": [1]}', "input[0]"),
        ('{"model": "quoth", "input": [{"type": "function_call", "name": "a"}]}', "input[0].call_id"),
        ('{"model": "quoth", "input": [{"type": "function_call_output", "call_id": ""}]}', "call_id"),
        (
            '{"model": "quoth", "input": [{"type": "function_call_output", "call_id": "x"}]}',
            "input[0].output",
        ),
        (
            '{"model": "quoth", "input": [{"type": "function_call_output", "call_id": "x", "output": ""}]}',
            "last message",
        ),
        ('{"model": "quoth", "input": "a", "tools": [{"type": "function", "name": ""}]}', "tools[0].name"),
        ('{"model": "quoth", "input": "a", "tools": 1}', "tools must be a list"),
        ('{"model": "quoth", "input": [{"type": "item_reference", "id": "a"}]}', "item_reference"),
        ('{"model": "quoth", "input": "a", "instructions": 1}', "instructions is text"),
        ('{"model": "quoth", "input": "a", "max_output_tokens": 0}', "max_output_tokens"),
        ('{"model": "quoth", "input": "a", "text": {"format": {"type": "xml"}}}', "text.format"),
        ('{"input": "a"}', "model"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(server: Served, body: str, said: str) -> None:
    with server.client() as http:
        answer = http.post("/v1/responses", content=body.encode())
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]


def test_a_response_is_continued_after_a_restart_and_decides(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        first = ask(server, "one")
        waits = ask(server, "please write", previous_response_id=first.id)
    with scripted(folder) as server:
        id = waits.output_text.rpartition("approve ")[2].split(",")[0]
        done = ask(server, f"approve {id}", previous_response_id=waits.id)
        assert "The call is over." in done.output_text
        assert (folder / "new.txt").read_text() == "hello\n"
        assert ask(server, "on", previous_response_id=done.id).output_text.startswith("I saw: one | please")
