"""One key from each kind of server that sends it back: it reaches no screen, record, export, file or memory.

A server sends it as it is, in base64, percent-encoded, escaped as JSON and in hexadecimal. The model writes
what it was told into a file and a memory block, and says it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from far_tools import set_password
from loopback import Answer, Handler, loopback, sse
from sentences import CANNOT_BE_REACHED
from server_speech import OPENAI
from servers import redis_server
from words import files, quoth, started

from quoth.tools.catalog.connection import redis_url

KEY = 'k9/very+secret"1234'
BARE = json.dumps(KEY)[1:-1]
IN_BASE64 = [base64.b64encode(b"x" * shift + KEY.encode()).decode() for shift in range(3)]
SPELT = [
    f"Bearer {KEY}",
    f"basic {base64.b64encode(f'Authorization: Bearer {KEY}.'.encode()).decode()}",
    f"url {base64.urlsafe_b64encode(f'ann:{KEY}'.encode()).decode()}",
    f"form {quote(KEY, safe='')} {quote(KEY, safe='').replace('%2F', '%2f')}",
    f"json {BARE}",
    f"hex {KEY.encode().hex()}",
]
TOLD = "; ".join(["You sent", *SPELT])
TRACES = {
    *(KEY, BARE, quote(KEY, safe=""), quote(KEY), KEY.encode().hex(), BARE.replace("\\", "\\\\")),
    *(text[4:-5] for text in IN_BASE64),
    *(text[4:-5].replace("+", "-").replace("/", "_") for text in IN_BASE64),
}
TOOLS = """(require quoth [def-cognitive-tool def-http-tool])
(import os pathlib)
(def-http-tool issue "Read the issue." :url (get os.environ "TRACKER")
  :headers {"X-Tracker-Token" (get os.environ "TRACKER_KEY")})
"""
FAR = """(require quoth [def-cognitive-tool])
(import pathlib)
(def-cognitive-tool issue "Read the issue." :effects [:memory] :body
  (do (setv told (.read-text (pathlib.Path "told.txt")))
      (ctx.say told) (ctx.effect told)
      (if (.exists (pathlib.Path "fails")) (raise (ValueError told)) {"you" told told [told]})))
"""
POLICY = '(allow (fetch :url (host "127.0.0.1")))\n(allow (any-tool))\n'
# The model looks, keeps in a file and in memory what it was told, and says the end of all that it has heard.
TALK = """
(setv LOOK "{look}"  KEEP "(eval (do (setv told (str {look}))
   (write-file :path \\"out.txt\\" :content told)
   (recall :operation \\"insert\\" :label \\"notes\\" :content told) told))")
(setv turn 0)
(defn reply [messages]
  (global turn)
  (setv turn (+ turn 1))
  (if (< turn 3) (get [LOOK KEEP] (- turn 1)) (+ "I heard: " (str (list messages)))))
"""
Words = tuple[list[str], dict[str, str]]


def says(text: str, status: int = 200, kind: str = "text/plain", **headers: str) -> Answer:
    return lambda handler: handler.send(status, text.encode(), kind, **headers)


@contextmanager
def http_tool(folder: Path, answer: Answer) -> Iterator[Words]:
    files(folder, {"t.hy": TOOLS, "talk.hy": TALK.format(look="(issue)")})
    with loopback(answer) as server:
        env = {"TRACKER": server.base_url, "TRACKER_KEY": KEY}
        yield ["--tools", "t.hy", "--model", "scripted:talk.hy"], env


@contextmanager
def search(folder: Path, answer: Answer) -> Iterator[Words]:
    look = '(semantic-search :query \\"a song\\")'
    files(folder, {"talk.hy": TALK.format(look=look)})
    with loopback(answer) as server:
        env = {"QUOTH_EMBEDDER": f"openai:m@{server.base_url}", "OPENAI_API_KEY": KEY}
        yield ["--model", "scripted:talk.hy"], env


@contextmanager
def model(*answers: Answer, page: Answer | None = None) -> Iterator[Words]:
    """A model server with these answers for each run, and a page beside it."""

    def answer(handler: Handler) -> None:
        asked = sum(path.endswith("completions") for path, *_ in server.requests) - 1
        reply = page if page and handler.command == "GET" else answers[asked % len(answers)]
        reply(handler)

    with loopback(answer) as server:
        env = {"OPENAI_API_KEY": KEY}
        yield ["--model", "openai:m", "--base-url", server.base_url], env


def call(name: str, **arguments: str) -> Answer:
    def answer(handler: Handler) -> None:
        text = json.dumps(arguments).replace("PAGE", f"http://{handler.headers['host']}/page")
        pieces = [text[at : at + 7] for at in range(0, len(text), 7)]
        sse(*OPENAI.begin, *OPENAI.call(name, *pieces), *OPENAI.end)(handler)

    return answer


@contextmanager
def talking(folder: Path) -> Iterator[Words]:
    keep = call("write-file", path="out.txt", content=TOLD)
    note = call("recall", operation="insert", label="notes", content=TOLD)
    with model(call(f"no-{KEY}", text=TOLD), keep, note, OPENAI.stream(*TOLD)) as words:
        yield words


@contextmanager
def refusing(folder: Path) -> Iterator[Words]:
    with model(says(json.dumps({"error": {"message": TOLD[:250]}}), 400, "application/json")) as words:
        yield words


@contextmanager
def fetching(folder: Path, page: Answer) -> Iterator[Words]:
    program = (
        '(do (setv told (str (fetch :url "PAGE"))) (write-file :path "out.txt" :content told)'
        ' (recall :operation "insert" :label "notes" :content told) told)'
    )
    with model(
        call("fetch", url="PAGE"), call("eval", form=program), OPENAI.stream("Done."), page=page
    ) as words:
        yield words


@contextmanager
def worker(folder: Path, *, fails: bool) -> Iterator[Words]:
    far = files(folder / "far", {"far.hy": FAR, "told.txt": TOLD} | ({"fails": ""} if fails else {}))
    files(folder, {"talk.hy": TALK.format(look="(issue)")})
    with redis_server() as url:
        set_password(redis_url(url, typed=False), KEY)
        env = {"QUOTH_REDIS": url.replace("unix://", f"unix://kiosk:{quote(KEY, safe='')}@")}
        with started("worker", "--tools", "far.hy", "--prefix", "p", cwd=far, env=env) as running:
            running.says("Started with 1 tool")
            yield ["--remote", url, "--prefix", "p", "--model", "scripted:talk.hy"], env


HTML = f"<html><head><title>{TOLD}</title></head><body><p>{TOLD}</p><a href='/?k={KEY}'>x</a></body></html>"
KINDS = {
    "model": talking,
    "model that refuses": refusing,
    "tool over HTTP": lambda folder: http_tool(folder, says(TOLD)),
    "tool over HTTP, JSON": lambda folder: http_tool(
        folder, says(json.dumps({"you": [TOLD], TOLD: 1}), kind="application/json")
    ),
    "tool over HTTP that refuses": lambda folder: http_tool(folder, says(TOLD, 401)),
    "page": lambda folder: fetching(folder, says(HTML, kind="text/html")),
    "page that refuses": lambda folder: fetching(folder, says(TOLD, 403)),
    "page that leads on": lambda folder: fetching(
        folder, says("", 302, location=f"/page?a={quote(KEY, safe='')}")
    ),
    "worker": lambda folder: worker(folder, fails=False),
    "worker that fails": lambda folder: worker(folder, fails=True),
    "embedding server that refuses": lambda folder: search(folder, says(TOLD, 400)),
}
PLACES = ["screen", "json", "log", "audit", "export", "file", "memory", "store"]


@pytest.fixture(scope="module", params=KINDS)
def places(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is in each place after a server of this kind has sent the key back."""
    folder, store = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("state")
    state = {"QUOTH_STATE": str(store), "QUOTH_CONFIG": str(store / "config")}
    files(folder, {"p.hy": POLICY})
    with pytest.MonkeyPatch.context() as patch:
        for name, value in state.items():
            patch.setenv(name, value)
        return _after(KINDS[request.param], folder, store)


def _after(kind: Callable[[Path], Any], folder: Path, store: Path) -> dict[str, str]:
    with kind(folder) as (words, env):

        def told(*command: str) -> str:
            said = quoth(*command, cwd=folder, env=env)
            return said.out + said.err

        given = ("run", "Look at the issue.", "--yes", "--policy", "p.hy", *words)
        screen = told(*given, "--session", "s1", "--debug")
        shown = told(*given, "--session", "s2", "--json")
        out = folder / "out.txt"
        return {
            "screen": screen,
            "json": shown,
            "log": told("log", "s1") + told("log", "s1", "--json"),
            "audit": told("audit") + told("audit", "--json"),
            "export": told("export", "s1"),
            "file": out.read_text() if out.exists() else "",
            "memory": told("memory", "export"),
            "store": "".join(
                path.read_bytes().decode("latin-1") for path in sorted(store.rglob("*")) if path.is_file()
            ),
        }


@pytest.mark.sampled
@pytest.mark.parametrize("place", PLACES)
def test_a_key_that_a_server_sends_back_is_nowhere(places: dict[str, str], place: str) -> None:
    assert [trace for trace in sorted(TRACES) if trace in places[place]] == []


def test_what_the_server_says_beside_the_key_is_heard(places: dict[str, str]) -> None:
    """The story is about a server that was asked and did answer."""
    assert "[secret]" in places["log"] or "***" in places["log"], places["screen"]


def test_the_traces_are_those_of_the_key() -> None:
    assert all(any(trace in unquote(spelt) or trace in spelt for trace in TRACES) for spelt in SPELT)


def test_a_token_in_the_path_of_an_address_is_in_no_effect_and_no_error(tmp_path: Path) -> None:
    bot = """(require quoth [def-http-tool])
    (import os)
    (def-http-tool bot "Ask the bot." :url (+ "http://127.0.0.1:1/bot" (get os.environ "BOT_TOKEN") "/me"))"""
    files(tmp_path, {"bot.hy": bot})
    said = quoth(
        "call", "--yes", "--json", "(bot)", "--tools", "bot.hy", cwd=tmp_path, env={"BOT_TOKEN": KEY}
    )
    assert f"/bot[secret]/me {CANNOT_BE_REACHED}" in said.out
    assert [trace for trace in TRACES if trace in said.out + quoth("audit", "--json", cwd=tmp_path).out] == []


def test_a_key_that_no_header_can_have_is_not_in_the_refusal(tmp_path: Path) -> None:
    files(tmp_path, {"t.hy": TOOLS})
    env = {"TRACKER": "http://127.0.0.1:1/", "TRACKER_KEY": f"{KEY}\n"}
    said = quoth("call", "--yes", "(issue)", "--tools", "t.hy", cwd=tmp_path, env=env)
    assert said.code == 1
    assert [trace for trace in TRACES if trace in said.out + said.err] == []


def test_a_file_of_the_person_is_read_as_it_is(tmp_path: Path) -> None:
    """A model that changes a line of it writes the others back."""
    files(tmp_path, {".config": f"key = {KEY}\n", "t.hy": TOOLS})
    program = '(do (issue) (write-file :path ".config" :content (+ (read-file :path ".config") "on")))'
    with loopback(says("fine")) as server:
        env = {"TRACKER": server.base_url, "TRACKER_KEY": KEY}
        said = quoth("eval", program, "--yes", "--tools", "t.hy", cwd=tmp_path, env=env)
    assert said.code == 0, said.err
    assert KEY in (tmp_path / ".config").read_text()
