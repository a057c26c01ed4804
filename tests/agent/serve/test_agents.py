"""Agents of the user's configuration as models of ``quoth serve``, with the OpenAI SDK as the client."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest
from sentences import CANNOT_BE_OPENED
from serving import Served, serving, token
from words import files, quoth

from quoth.tools.storage.paths import agents_dir

# Tries to write, and answers with the results that it sees.
WRITES = """
(defn reply [messages]
  (setv last (get messages -1))
  (if (.endswith (str (get last "content")) "now.")
      "(write-file :path \\"new.txt\\" :content \\"hello\\n\\")"
      "NAME looked."))
"""


def ask(server: Served, model: str, *talk: str, **headers: str) -> tuple[str, str]:
    """The answer of a model to a conversation, and its session."""
    at = openai.OpenAI(base_url=f"{server.url}/v1", api_key=token("me"), max_retries=0)
    messages: Any = [{"role": ("user", "assistant")[at % 2], "content": one} for at, one in enumerate(talk)]
    raw = at.chat.completions.with_raw_response.create(model=model, messages=messages, extra_headers=headers)
    return str(raw.parse().choices[0].message.content), raw.headers.get("X-Session", "")


def test_each_agent_is_a_model_with_its_own_tools_and_rules(tmp_path: Path) -> None:
    folder = files(
        tmp_path / "shop",
        {"model.hy": WRITES.replace("NAME", "The server"), "reader.hy": WRITES.replace("NAME", "The reader")},
    )
    reader = f'(model "scripted:{folder}/reader.hy")\n(tools "read-*")\n'
    files(agents_dir(), {"reader.hy": reader, "bad.hy": '(tools "x" y)', "quoth.hy": '(modle "x")'})
    with serving(folder, "--model", "scripted:model.hy") as server:
        at = openai.OpenAI(base_url=f"{server.url}/v1", api_key=token("me"), max_retries=0)
        names = ["quoth", "bad", "reader"]
        assert [one.id for one in at.models.list()] == [one + end for one in names for end in ("", ":plain")]
        said, session = ask(server, "reader", "Write now.")
        assert "The reader looked" in said
        assert 'reader.hy:2 says (tools "read-*")' in said
        assert not (folder / "new.txt").exists()
        waits, other = ask(server, "quoth", "Write now.")
        assert "approve " in waits
        assert other != session
        title, none = ask(server, "reader:plain", "Title now.")
        assert title.startswith("(write-file")
        assert none == ""
        mixed, same = ask(
            server, "reader", "Again now.", **{"X-Session": other}
        )  # under the rules of the reader
        assert same == other
        assert "says (tools" in mixed
        with pytest.raises(openai.BadRequestError, match=CANNOT_BE_OPENED) as told:
            ask(server, "bad", "Write now.")
        assert "bad.hy" not in str(told.value)  # its lines are the owner's
        with pytest.raises(openai.NotFoundError, match="Did you mean reader"):
            ask(server, "raeder", "Write now.")
    assert not (folder / "new.txt").exists()
    assert "denied" in quoth("resume", session, "Again now.", cwd=folder).err
