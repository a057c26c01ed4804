"""The OpenAI SDK for Node.js as a client of ``quoth serve``: a chat with a tool, a stream, and responses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import npm
from serving import serving, token
from words import files

MODEL = """
(defn reply [messages]
  (setv last (get messages -1)
        said (str (get last "content")))
  (cond
    (in "tool" (lfor m (cut messages -2 None) (get m "role"))) "I know."
    (in "weather" said) "(client--get-weather :city \\"Paris\\")"
    True (+ "I saw: " (get (.splitlines said) 0))))
"""
SCRIPT = """
import OpenAI from "openai";
const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const model = "quoth";
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "Weather.", parameters } }];
const messages = [{ role: "user", content: "the weather?" }];
const first = await client.chat.completions.create({ model, messages, tools });
const { message, finish_reason } = first.choices[0];
const [call] = message.tool_calls;
messages.push(message, { role: "tool", tool_call_id: call.id, content: "sunny" });
const second = await client.chat.completions.create({ model, messages, tools });
let streamed = "";
const hello = [{ role: "user", content: "hello" }];
for await (const chunk of await client.chat.completions.create({ model, messages: hello, stream: true })) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
}
const one = await client.responses.create({ model, input: "one" });
const two = client.responses.stream({ model, input: "two", previous_response_id: one.id });
let deltas = "";
two.on("response.output_text.delta", (event) => { deltas += event.delta; });
const last = await two.finalResponse();
console.log(JSON.stringify({
  finish_reason, content: message.content, name: call.function.name, arguments: call.function.arguments,
  second: second.choices[0].message.content, streamed, one: one.output_text, deltas, last: last.output_text,
}));
"""

if npm.IS_ASKED:

    def test_the_sdk_for_node_chats_with_a_tool_streams_and_continues_a_response(tmp_path: Path) -> None:
        folder = files(tmp_path / "shop", {"model.hy": MODEL})
        script = tmp_path / "client.mjs"
        script.write_text(SCRIPT.replace('"openai"', json.dumps(npm.program("openai", "index.mjs"))))
        with serving(folder, "--model", "scripted:model.hy") as server:
            words = [npm.NODE, str(script), f"{server.url}/v1", token("me")]
            done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert json.loads(said.pop("arguments")) == {"city": "Paris"}
        assert said == {
            "finish_reason": "tool_calls",
            "content": None,
            "name": "get_weather",
            "second": "I know.",
            "streamed": "I saw: hello",
            "one": "I saw: one",
            "deltas": "I saw: two",
            "last": "I saw: two",
        }
