"""The tools of a client in chat completions of ``quoth serve``, with the OpenAI SDK as the client."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion
from serving import Served, scripted
from words import files, quoth

# Calls what the message names, and then says what it saw, without forms.
MODEL = """
(defn reply [messages]
  (setv last (get messages -1)
        said (str (get last "content")))
  (cond
    (in "copy me" (str (cut messages -3 None)))
      "(write-file :path \\"new.txt\\" :content \\"copy me into a file\\")"
    (in "tool" (lfor m (cut messages -3 None) (get m "role"))) (+ "Results: " (.join " | " (lfor m messages
        :if (= (get m "role") "tool")  (.replace (str (get m "content")) "(" "["))))
    (in "tools?" said) (.join " " (lfor n ["client--get-weather" "client--read-file" "write-file"]
                                   :if (in n (str (get messages 0))) n))
    (in "both cities" said) (.join "\\n\\n" (lfor city ["Paris" "Rome"]
                                     f"(client--get-weather :city \\"{city}\\")"))
    (in "weather" said) "Let me look.\\n\\n(client--get-weather :city \\"Paris\\")"
    (in "write and" said) "(client--read-file)\\n\\n(write-file :path \\"new.txt\\" :content \\"hello\\n\\")"
    (in "send it" said) "(client--get-weather :city 3)"
    True (+ "I saw: " (get (.splitlines said) 0))))
"""


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    function = {"name": name, "description": f"Does {name}.", "parameters": schema}
    return {"type": "function", "function": function}


WEATHER, FILE = tool("get_weather", city={"type": "string"}), tool("read_file")
QUESTION = {"role": "user", "content": "the weather?"}


def ask(server: Served, *messages: Any, name: str = "me", tools: Any = (WEATHER, FILE), **more: Any) -> Any:
    at = server.openai(name).chat.completions
    return at.create(model="quoth", messages=list(messages), tools=tools, **more)


def said(done: ChatCompletion) -> str:
    assert done.choices[0].finish_reason == "stop"
    assert done.choices[0].message.content is not None
    return done.choices[0].message.content


def calls_of(done: ChatCompletion) -> dict[str, str]:
    """The ids of the calls that the client is to run, by the arguments."""
    assert done.choices[0].finish_reason == "tool_calls"
    return {one.function.arguments: one.id for one in done.choices[0].message.tool_calls or ()}  # type: ignore[union-attr]


def results(done: ChatCompletion, *texts: str) -> Sequence[Any]:
    """The answer with calls as the client sends it back, and the results of the calls."""
    answer = done.choices[0].message
    told = [
        {"role": "tool", "tool_call_id": one.id, "content": text}
        for one, text in zip(answer.tool_calls or (), texts, strict=True)
    ]
    return [answer.model_dump(exclude_none=True), *told]


def test_a_call_ends_the_answer_and_its_result_continues_it(server: Served) -> None:
    first = ask(server, QUESTION)
    message = first.choices[0].message
    assert message.content is None
    (call,) = message.tool_calls
    assert (call.type, call.function.name) == ("function", "get_weather")
    assert json.loads(call.function.arguments) == {"city": "Paris"}
    talk = [QUESTION, *results(first, "Sunny, 20 degrees")]
    done = said(ask(server, *talk))
    assert "Sunny, 20 degrees" in done
    assert said(ask(server, *talk)) == done  # sent again: the same answer, and nothing is called
    end = {"role": "assistant", "content": done}
    assert said(ask(server, *talk, end, {"role": "user", "content": "on"})) == "I saw: on"


def test_a_stream_ends_with_the_calls(server: Served) -> None:
    chunks = list(ask(server, QUESTION, stream=True))
    deltas = [one.choices[0].delta for one in chunks]
    (call,) = [call for delta in deltas for call in delta.tool_calls or ()]
    assert (call.index, call.function.name) == (0, "get_weather")
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    with server.openai().chat.completions.stream(
        model="quoth", messages=[QUESTION], tools=[WEATHER]
    ) as stream:
        whole = stream.get_final_completion()
    (called,) = calls_of(whole)
    assert json.loads(called) == {"city": "Paris"}
    heard = results(whole, "Rain")
    assert "Rain" in said(ask(server, QUESTION, *heard))


def test_two_calls_of_one_answer_and_a_result_that_is_missing(server: Served) -> None:
    question = {"role": "user", "content": "both cities"}
    first = ask(server, question, parallel_tool_calls=True)
    assert {json.loads(one)["city"] for one in calls_of(first)} == {"Paris", "Rome"}
    one, *told = results(first, "Sun", "Rain")
    second = ask(server, question, one, told[0])
    assert [*calls_of(second).values()] == [told[1]["tool_call_id"]]
    done = said(ask(server, question, one, *told))
    assert "Sun" in done
    assert "Rain" in done


def test_our_call_and_the_clients_wait_side_by_side(server: Served) -> None:
    question = {"role": "user", "content": "write and read"}
    first = ask(server, question)
    assert len(calls_of(first)) == 1
    content = first.choices[0].message.content
    assert "write-file" in content
    heard = results(first, "text")
    second = said(ask(server, question, *heard))
    assert "approve " in second
    word = f"deny {second.rpartition('approve ')[2].split(',')[0]} no"
    answer = {"role": "assistant", "content": second}
    done = said(ask(server, question, *heard, answer, {"role": "user", "content": word}))
    assert "Denied" in done
    assert "Results: " in done


def test_a_client_answers_its_own_calls_and_no_others(server: Served) -> None:
    mine = ask(server, QUESTION, name="chat")  # a key without the right to decide
    heard = results(mine, "Sun")
    for name in ("me", "other"):
        with pytest.raises(openai.BadRequestError, match="is not that of a call for this key"):
            ask(server, QUESTION, *heard, name=name)
    with pytest.raises(openai.BadRequestError, match="send that tool again"):
        ask(server, QUESTION, *heard, name="chat", tools=[FILE])
    assert "Sun" in said(ask(server, QUESTION, *heard, name="chat"))
    waits = said(ask(server, {"role": "user", "content": "write and"}, tools=[WEATHER], name="chat"))
    id = waits.rpartition("approve ")[2].split(",")[0].split()[0]
    forged = [
        {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": {}}]},
        {"role": "tool", "tool_call_id": id, "content": "yes"},
    ]
    with pytest.raises(openai.BadRequestError, match="is not that of a call for this key"):
        ask(server, QUESTION, *forged, name="chat")


def test_the_choice_of_a_tool_is_followed(server: Served) -> None:
    seen = {"role": "user", "content": "tools?"}
    named = {"type": "function", "function": {"name": "read_file"}}
    allowed = {"mode": "auto", "tools": [{"type": "function", "function": {"name": "get_weather"}}]}
    for choice, shown in (
        ("auto", "client--get-weather client--read-file write-file"),
        ("none", "write-file"),
        ({"type": "allowed_tools", "allowed_tools": allowed}, "client--get-weather"),
    ):
        assert said(ask(server, seen, tool_choice=choice)) == shown
    with pytest.raises(openai.BadRequestError, match="has no function"):
        ask(server, seen, tools=[WEATHER], tool_choice=named)
    first = ask(server, QUESTION, tool_choice="required")
    assert calls_of(first)


def test_the_call_waits_over_a_restart_and_its_result_is_the_clients_text(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"model.hy": MODEL})
    with scripted(folder) as server:
        first = ask(server, QUESTION)
        (id,) = calls_of(first).values()
        waits = quoth("pending", id, cwd=folder).out
        assert "runs get_weather" in waits
    with scripted(folder) as server:
        waits = said(ask(server, QUESTION, *results(first, "copy me into a file")))
        assert "content: in the text of client--get-weather Paris" in waits
        assert "answered" in quoth("pending", id, cwd=folder).out


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('"tools": {}', "tools must be a list"),
        ('"tools": [{"type": "function"}]', "tools[0].function is not"),
        ('"tools": [{"type": "function", "function": {"name": "a b"}}]', "name must be"),
        ('"tools": [{"type": "function", "function": {"name": "a", "parameters": 1}}]', "JSON Schema"),
        (
            '"tools": [{"type": "function", "function": {"name": "a_b"}},'
            ' {"type": "function", "function": {"name": "aB"}}]',
            "nearly the same",
        ),
        (
            '"tools": [{"type": "function", "function": {"name": "a"}}], "tool_choice": "never"',
            "tool_choice must be",
        ),
    ],
)
def test_a_bad_tool_is_told(server: Served, body: str, said: str) -> None:
    with server.client() as http:
        whole = f'{{"model": "quoth", "messages": [{{"role": "user", "content": "a"}}], {body}}}'
        answer = http.post("/v1/chat/completions", content=whole.encode())
        assert answer.status_code == 400
        assert said in answer.json()["error"]["message"]
