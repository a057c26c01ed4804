"""The lines of the manual's page ``serve`` for each client, as that client uses them."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import calls
from emacs import EMACS, emacs
from mcp_client import behind, text_of
from pages import page
from serving import Served, serving, token
from words import files

# gptel's own keywords of this function, and how it sends: the address, the key, and the fields of a request.
GPTEL = """
(require 'cl-lib) (require 'url) (require 'json)
(unless (require 'gptel nil t)
  (cl-defun gptel-make-openai
      (name &key curl-args models stream key request-params header host (protocol "https") endpoint)
    (ignore curl-args request-params header)
    (list name (concat protocol "://" host endpoint) key stream models)))
(pcase-let* ((`(,_ ,address ,key ,stream ,models) BLOCK)
             (url-request-method "POST")
             (url-request-extra-headers
              `(("Content-Type" . "application/json") ("Authorization" . ,(concat "Bearer " key))))
             (url-request-data
              (encode-coding-string
               (json-encode `(:model ,(car models) :messages [(:role "user" :content "Hello.")]
                              :stream ,(or stream :json-false)))
               'utf-8)))
  (with-current-buffer (url-retrieve-synchronously address t nil 60) (princ (buffer-string))))
"""


def block(name: str) -> str:
    found = re.search(rf"^#\+begin_src \S+ :name {name}\n(.*?)^#\+end_src", page("serve"), re.DOTALL | re.M)
    assert found, name
    return found[1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = files(tmp_path_factory.mktemp("clients") / "shop", {"r.hy": '(defn reply [messages] "I hear.")'})
    with serving(folder, "--model", "scripted:r.hy", "--allow-host", "host.docker.internal") as found:
        yield found


def at(server: Served, text: str) -> str:
    """The lines of a client, with the port of the server and a token."""
    assert "8420" in text
    return text.replace("8420", server.url.rpartition(":")[2]).replace("TOKEN", token("me"))


@pytest.mark.skipif(not EMACS, reason="needs Emacs")
def test_gptel(server: Served, tmp_path: Path) -> None:
    said = emacs(tmp_path, script=GPTEL.replace("BLOCK", at(server, block("gptel"))))
    assert "text/event-stream" in said
    assert "I hear." in said
    assert "[DONE]" in said


def test_open_webui(server: Served) -> None:
    lines = at(server, block("open-webui")).splitlines()
    words = [word for line in lines if line.startswith("export ") for word in shlex.split(line)[1:]]
    given = dict(word.split("=", 1) for word in words)
    assert given["OPENAI_API_BASE_URL"] == f"{server.url}/v1"
    assert json.loads(given["DEFAULT_MODEL_PARAMS"]) == {"function_calling": "legacy"}
    own = {"Host": "host.docker.internal:8420", "Authorization": f"Bearer {given['OPENAI_API_KEY']}"}
    with server.client(None, **own) as http:
        models = [one["id"] for one in http.get("/v1/models").json()["data"]]
        assert given["TASK_MODEL_EXTERNAL"] in models
        ask = {"model": given["TASK_MODEL_EXTERNAL"], "messages": [{"role": "user", "content": "Title?"}]}
        said = http.post("/v1/chat/completions", json=ask).json()
        assert said["choices"][0]["message"]["content"] == "I hear."


def test_llm(server: Served) -> None:
    given = dict(re.findall(r'(\w+): "?([^"\n]+)', at(server, block("llm"))))
    with server.client() as http:
        ask = {"model": given["model_name"], "messages": [{"role": "user", "content": "Hello."}]}
        said = http.post(f"{given['api_base']}/chat/completions", json=ask).json()
    assert said["choices"][0]["message"]["content"] == "I hear."


def test_zed(server: Served) -> None:
    (one,) = json.loads(at(server, block("zed")))["language_models"]["openai_compatible"].values()
    assert one["api_url"] == f"{server.url}/v1"
    with server.client() as http:
        for model in one["available_models"]:
            ask = {
                "model": model["name"],
                "stream": True,
                "messages": [{"role": "user", "content": "Hello."}],
            }
            assert "I hear." in http.post(f"{one['api_url']}/chat/completions", json=ask).text


async def test_claude_desktop(tmp_path: Path) -> None:
    folder = files(tmp_path / "shop", {"a.txt": "one\n"})
    (one,) = json.loads(block("claude-desktop"))["mcpServers"].values()
    assert one["command"] == "quoth"
    args = [word.replace("/path/of/your/project", str(folder)) for word in one["args"]]
    async with behind([*calls(), *args], tmp_path) as found:
        assert text_of(await found.call_tool("read-file", {"path": "a.txt"})).startswith("one")
