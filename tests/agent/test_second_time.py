"""What has begun is not begun a second time, unless a person who was asked exactly that has said so."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Said, quoth

from quoth.tools.call.ports import BEGUN_BEFORE

TOOLS = """
(require quoth [def-cognitive-tool])
(import os signal)

(defn count [ctx]
  (with [out (open (/ ctx.workspace.root "ran") "a")] (.write out "x")))

(defn die-once [ctx]
  (setv mark (/ ctx.workspace.root "died"))
  (when (not (.exists mark))
    (.touch mark)
    (os.kill (os.getpid) signal.SIGKILL)))

(defn :async ask [ctx] (await (.request ctx.permission "more" "it wants more")) "done")
(defn :async act-and-ask [ctx] (count ctx) (await (ask ctx)))
(defn :async ask-and-act [ctx] (await (ask ctx)) (count ctx) "done")
(defn :async tell-and-ask [ctx] (count ctx) (.effect ctx "counted") (await (ask ctx)))

(def-cognitive-tool act "Act, and ask." :parameters [] :effects [:memory]
  :body (act-and-ask ctx))
(def-cognitive-tool ask-first "Ask, and act." :parameters [] :effects [:memory] :asks-first True
  :body (ask-and-act ctx))
(def-cognitive-tool ask-last "Say that it asks first, but act." :parameters [] :effects [:memory]
  :asks-first True
  :body (tell-and-ask ctx))
(def-cognitive-tool fall "Act, and be killed the first time." :parameters [] :effects [:writes]
  :body (do (count ctx) (die-once ctx) "done"))
"""


class Place:
    """A workspace with these tools, and how often one of them has acted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "tools.hy").write_text(TOOLS)

    def quoth(self, *words: str) -> Said:
        return quoth(*words, "--tools", "tools.hy", "--no-input", cwd=self.folder)

    def decide(self, *words: str) -> Said:
        return quoth(*words, "--no-input", cwd=self.folder)

    @property
    def request(self) -> str:
        import json

        (one,) = json.loads(quoth("pending", "--json", cwd=self.folder).out)
        return str(one["id"])

    @property
    def times(self) -> int:
        ran = self.folder / "ran"
        return len(ran.read_text()) if ran.exists() else 0


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_body_goes_on_where_it_asked(place: Place) -> None:
    said = place.quoth("call", "(act)", "--yes")
    assert (said.code, place.times) == (0, 1)


@pytest.mark.parametrize("tool", ["act", "ask-first", "ask-last"])
def test_a_request_that_is_undecided_is_the_same_after_resume(place: Place, tool: str) -> None:
    assert place.quoth("call", f"({tool})", "--session", "s").code == 3
    request, times = place.request, place.times
    said = place.quoth("resume", "s")
    assert (said.code, place.request, place.times) == (3, request, times)
    assert request in said.err + said.out


@pytest.mark.parametrize(("tool", "asks"), [("act", True), ("ask-first", False), ("ask-last", True)])
def test_a_body_that_may_have_acted_is_asked_about_when_it_is_resumed(
    place: Place, tool: str, asks: bool
) -> None:
    place.quoth("call", f"({tool})", "--session", "s")
    place.decide("approve", place.request)
    times = place.times
    said = place.quoth("resume", "s", "--yes")
    if not asks:
        assert (said.code, place.times) == (0, 1)
        return
    assert (said.code, place.times) == (3, times)
    assert BEGUN_BEFORE in said.err + said.out
    place.decide("approve", place.request)
    assert place.quoth("resume", "s", "--yes").code == 0
    assert place.times == times + 1  # a person said so
    assert "run again" in quoth("audit", cwd=place.folder).out


@pytest.mark.parametrize("form", ["(ask-first)", '(write-file :path "a" :content "b")', "(eval (ask-first))"])
def test_no_request_stays_open_for_what_yes_has_allowed(place: Place, form: str) -> None:
    assert place.quoth("call", form, "--session", "s").code == 3
    assert place.request
    assert place.quoth("resume", "s", "--yes").code == 0
    assert quoth("pending", "--json", cwd=place.folder).out == "[]\n"


def test_no_request_stays_open_for_what_a_scope_has_allowed(place: Place) -> None:
    for name in "ab":
        waits = place.quoth("call", f'(write-file :path "{name}" :content "")', "--session", "s")
        assert waits.code == 3
    last = waits.err.partition("request ")[2].partition(")")[0]
    assert place.decide("approve", last, "--scope", "(write-file)", "--yes").code == 0
    assert place.quoth("resume", "s").code == 0
    assert quoth("pending", "--json", cwd=place.folder).out == "[]\n"


@pytest.mark.parametrize("grant", ["--yes", "--for", "--scope"])
def test_no_permission_answers_that_a_call_was_begun_before(place: Place, grant: str) -> None:
    if grant == "--yes":
        assert place.quoth("call", "(fall)", "--session", "s", "--yes").code == -9
    else:
        assert place.quoth("call", "(fall)", "--session", "s").code == 3
        more = ["--for", "1h"] if grant == "--for" else ["--scope", "--yes"]
        assert place.decide("approve", place.request, *more, "--tools", "tools.hy").code == 0
        assert place.quoth("resume", "s").code == -9
    said = place.quoth("resume", "s", *(["--yes"] if grant == "--yes" else []))
    assert (said.code, place.times) == (3, 1)
    assert BEGUN_BEFORE in said.err + said.out
    assert f"quoth approve {place.request}" in said.err + said.out
    refused = place.decide("approve", place.request, "--for", "1h")
    assert (refused.code, place.times) == (2, 1)
    assert place.decide("approve", place.request).code == 0
    assert (place.quoth("resume", "s").code, place.times) == (0, 2)
