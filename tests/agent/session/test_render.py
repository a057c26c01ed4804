"""How a session looks to a person: every event in its place, what is inside of a call set in under it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import IS_ONE_TOO_MANY, IT_IS_CALLED_AS, IT_WRITES_FILES
from words import Agent, lines, scripted, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.run.limits import RunLimits
from quoth.agent.run.options import ModelOptions
from quoth.agent.session.org import as_org
from quoth.agent.session.render import as_text, fold, is_calls, one_event, title, tree
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.history.event import Event, read_event
from quoth.tools.history.transcript import Transcript
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

LONG = "\n".join(f"line {number}" for number in range(1, 31))


def put(x: int, ctx: ToolContext) -> str:
    ctx.effect(f"put:{x}")
    return f"put {x}"


def tools() -> list[CognitiveTool]:
    number = {"x": {"type": int, "default": 0}}
    secret = {"pin": {"type": str, "secret": True}}
    return [
        tool("look", lambda: LONG, effects=["reads"]),
        tool("put", put, params=number, effects=["writes"]),
        tool("pay", lambda pin: f"paid with {pin}", params=secret),
        tool("odd", lambda: "* a star\n#+end_example\n  ,* another\nplain"),
    ]


def session(
    folder: Path, *replies: str, task: str = "Do it.", then: Any = None, **options: Any
) -> list[Event]:
    """The events of ann's session, of a run with this script."""
    given = {"session": "s", "user": "ann", "tools": tools(), "model": scripted(*replies), **options}
    with Agent(workspace=folder, **given) as agent:
        agent.run(task)
        if then is not None:
            then(agent)
    return kept(folder)


def kept(folder: Path) -> list[Event]:
    store = Store(store_path(folder))
    events = list(Transcript(lambda: store).events("s"))
    store.close()
    return events


def shown(events: list[Event], **how: Any) -> str:
    """The log as text, without times and ids of requests."""
    text = lines(as_text(events, **how)).rstrip("\n")
    return re.sub(r"request \w{5}", "request ID", re.sub(r"20\d\d-\S+ \d\d:\d\d UTC", "WHEN", text))


# As text


def test_a_run_is_read_from_the_task_to_its_end(tmp_path: Path) -> None:
    events = session(tmp_path, 'I look.\n(echo :text "a")', "(put 1)", "Done.", consent="yes")
    assert shown(events) == lines(
        " 1 § ann, WHEN",
        " 2 ▶ r1, WHEN: Do it.",
        " 4 ‹ I look.",
        '     (echo :text "a")',
        ' 5 → (echo :text "a")',
        " 6 ← ok: a",
        " 9 → (put :x 1)",
        "10   ? allow: everything was allowed beforehand",
        "11 ← ok: put 1",
        "13 ‹ Done.",
        "14 ■ done in 3 steps",
    ).rstrip("\n")


def test_what_is_inside_of_a_call_is_set_in_under_it(tmp_path: Path) -> None:
    events = session(
        tmp_path,
        '(cognitive-loop :task "Look well.")',
        '(eval (do (echo "a") (put 2)))',
        "Looked.",
        "Done.",
        consent="yes",
    )
    text = shown(events)
    assert [line[3:] for line in text.splitlines()] == [
        "§ ann, WHEN",
        "▶ r1, WHEN: Do it.",
        '→ (cognitive-loop :task "Look well.")',
        "  ▷ Look well.",
        '  → (eval :form (do (echo "a") (put 2)))',
        '    → (echo :text "a")',
        "    ← ok: a",
        "    → (put :x 2)",
        "      ? allow: everything was allowed beforehand",
        "    ← ok: put 2",
        "  ← ok: put 2",
        "  ‹ Looked.",
        "  ■ done in 2 steps",
        "← ok: Looked.",
        "‹ Done.",
        "■ done in 4 steps",
    ]


def test_what_waited_and_was_approved_is_told_where_it_happened(tmp_path: Path) -> None:
    def approve(agent: Agent) -> None:
        agent.broker.decide(agent.broker.requests()[0].id, Decision(by="bob"))
        agent.resume()

    text = shown(session(tmp_path, "(put 1)", "Done.", then=approve))
    waits = f"pending: put waits for a person's approval: {IT_WRITES_FILES} (request ID)."
    assert [line[3:] for line in text.splitlines()][2:] == [
        "→ (put :x 1)",
        f"… {waits}",
        f"■ {waits}",
        "→ (put :x 1)",
        "  ? allow: approved by bob (request ID)",
        "← ok: put 1",
        "‹ Done.",
        "■ done in 2 steps",
    ]


def test_the_end_of_a_run_that_waits_without_a_word_is_its_status(tmp_path: Path) -> None:
    async def chat() -> None:
        silent = tool("put", put, params={"x": {"type": int}}, effects=["writes"], tag="PUT", replace=True)
        model = ModelOptions(scripted("PUT: 1"), dialect="tags")
        async with AsyncAgent(workspace=tmp_path, tools=[silent], model=model) as agent:
            await agent.for_chat("7", "s").say("Do it.")

    asyncio.run(chat())
    assert shown(kept(tmp_path)).endswith(" ■ pending")


def test_what_went_wrong_is_told(tmp_path: Path) -> None:
    replies = ('(read-file "a"]', "(put 1 2)", "(put 3)")
    signs = shown(session(tmp_path, *replies, limits=RunLimits(steps=3))).splitlines()
    told = [line[3:] for line in signs if line[3:4] in "!×~■…"]
    assert told == [
        "! not read: line 1, column 15: this ] does not close the ( at line 1, column 1; write ) instead",
        f"× invalid: put takes 1 argument; 2 {IS_ONE_TOO_MANY}. {IT_IS_CALLED_AS} (put [:x int = 0]).",
        f"… pending: put waits for a person's approval: {IT_WRITES_FILES} (request ID).",
        f"■ pending: put waits for a person's approval: {IT_WRITES_FILES} (request ID).",
    ]


def test_long_results_are_folded_unless_all_is_wanted(tmp_path: Path) -> None:
    events = session(tmp_path, "(look)", "Done.")
    assert "line 8\n    [… 19 lines folded …]\n    line 28" in shown(events)
    assert f"ok: {LONG}".replace("\n", "\n    ") in shown(events, full=True)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("", [""]),
        ("\n".join("abcdefghijkl"), list("abcdefghijkl")),
        ("\n".join("abcdefghijklm"), [*"abcdefgh", "[… 2 lines folded …]", *"klm"]),
        ("x" * 305, ["x" * 300 + "… 5 more characters"]),
    ],
)
def test_folding(text: str, folded: list[str]) -> None:
    assert fold(text, False) == folded
    assert fold(text, True) == text.split("\n")


def test_titles_and_replies_that_are_calls() -> None:
    assert title(" a\n b  c ") == "a b c"
    assert title("a" * 80) == "a" * 69 + "…"
    assert [is_calls(text) for text in ("(a 1) (b)", "", "Hi. (a)", "(a", "[1]")] == [
        True,
        True,
        *[False] * 3,
    ]


def test_colours_are_ours_and_no_others(tmp_path: Path) -> None:
    events = session(tmp_path, '(read-file "\x1b[31mred")', "\x1b]0;title\x07Done.")
    text = "\n".join(as_text(events, color=True))
    ours = {f"\x1b[{code}m" for code in ("0", "1", "31", "32", "33", "36")}
    assert set(re.findall(r"\x1b[^m]*m", text)) <= ours
    assert "\x1b[31m×\x1b[0m" in text
    assert "\x1b[31mred" not in text
    assert "\x1b[36m→\x1b[0m" in text
    assert "\x07" not in text
    assert "\x1b" not in "\n".join(as_text(events)).replace("\x1b[31m", "").replace("\x1b]0;", "")


# As Org


def blocks(text: str) -> tuple[list[str], list[str]]:
    """The headlines of an Org document, and the texts of its blocks as they are meant."""
    headlines, found, inside = [], [], ""
    for line in text.splitlines():
        if inside:
            assert not re.match(r"\*+ ", line), "a headline would end the block"
            if line == f"#+end_{inside}":
                inside = ""
            else:
                assert not re.match(r"[ \t]*#\+", line), line
                found[-1] += re.sub(r"^([ \t]*),(,*(?:\*|#\+))", r"\1\2", line) + "\n"
        elif begin := re.match(r"#\+begin_(\w+)", line):
            inside = begin[1]
            found.append("")
        elif re.match(r"\*+ ", line):
            headlines.append(line)
        else:
            assert re.match(r"#\+(TITLE|DATE): |:[\w-]+: |:(PROPERTIES|END):$|:END:$", line), line
    assert not inside
    return headlines, found


def test_an_org_document_has_a_headline_for_each_run_step_and_call(tmp_path: Path) -> None:
    task = "* Not a headline\n#+end_example\nand more words than a title holds, so that all of it is below"
    events = session(tmp_path, "So:\n(odd)", "(eval (do (odd)\n (odd)))", "Done.", task=task)
    headlines, texts = blocks(lines(as_org(events, "s")))
    assert [re.sub("20.*", "WHEN", line) for line in headlines] == [
        "* Opened: ann, WHEN",
        f"* r1: {title(task)}",
        "** Step 1",
        "*** Call odd",
        "** Step 2",
        "*** Call eval",
        "**** Call odd",
        "**** Call odd",
        "** Step 3",
        "** End: done",
    ]
    odd = "ok: * a star\n#+end_example\n  ,* another\nplain\n"
    assert texts[:4] == [f"{task}\n", "So:\n(odd)\n", "(odd)\n", odd]
    assert texts[-1] == "Done.\n"
    assert texts.count(odd) == 4


def test_every_digest_but_those_of_requests_is_in_a_drawer(tmp_path: Path) -> None:
    events = session(tmp_path, "(echo 1)", "Done.")
    text = lines(as_org(events, "s"))
    for event in events:
        if event.kind != "request":
            assert f":{event.seq}-{event.kind}: {event.at} {event.digest}\n" in text


def test_words_of_a_headline_that_look_like_tags_or_links_are_none(tmp_path: Path) -> None:
    events = session(tmp_path, "Done.", task="\u202eSee [[shell:rm -rf ~][the report]] :a:b:")
    assert "* r1: \\u202eSee [\u200b[shell:rm -rf ~][the report]] :a:b:.\n" in lines(as_org(events, "s"))


# Secrets, and single events


@pytest.mark.parametrize("end", ["Done.", "(put 1)"], ids=["over", "waiting"])
def test_a_declared_secret_is_nowhere(tmp_path: Path, end: str) -> None:
    events = session(tmp_path, '(pay :pin "hunter2x")', end, limits=RunLimits(steps=2))
    ways: list[Callable[[], Any]] = [
        lambda: "\n".join(as_text(events, full=True)),
        lambda: "\n".join(as_org(events, "s", full=True)),
        lambda: "\n".join(map(one_event, events)),
        lambda: [event.to_json() for event in events],
        lambda: [event.shown for event in events],
    ]
    for way in ways:
        assert "hunter2x" not in str(way())
        assert "[secret]" in str(way())


def test_the_forms_of_a_session_read_back_as_its_events(tmp_path: Path) -> None:
    program = '(eval (do (setv x "é\\n\\"") ; a comment\n  {"a" [1 None x]}))'
    events = session(tmp_path, program, "(odd) (look)", "Ünïcode \u2028 “done”.", task='Say "hi"\n\t\\ ;')
    back: list[Event] = []
    for event in events:
        back.append(read_event("s", event.shown, back[-1].digest if back else ""))
    assert back == events


def test_one_event_is_shown_in_full(tmp_path: Path) -> None:
    events = session(tmp_path, "Done.")
    end = events[-1]
    assert one_event(end).startswith("(end :seq 5")
    assert one_event(end).endswith(f"\n; s.5, digest {end.digest}")


def test_a_call_without_a_place_stands_by_itself(tmp_path: Path) -> None:
    """What is of an older passage of a call stands under the latest event of that call."""
    with Agent(workspace=tmp_path, session="s", user="ann", tools=tools()) as agent:
        agent.call("(put 1)")
        agent.broker.decide(agent.broker.requests()[0].id, Decision(by="ann"))
        agent.call("(put 1)")
        with pytest.raises(UsageError):
            agent.resume()
    nodes = tree(kept(tmp_path))
    assert [(node.event.kind, [one.event.kind for one in node.inside]) for node in nodes] == [
        ("session", []),
        ("call", ["receipt", "receipt"]),
        ("call", ["approval", "receipt"]),
    ]
