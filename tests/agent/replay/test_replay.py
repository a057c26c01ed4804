"""Replay: what a session was is what the loop makes of it now, or what differs is shown; nothing is done."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import many
from sentences import (
    CANNOT_BE_USED,
    IS_NOT_THERE_ANY_MORE,
    THERE_IS_NO_FILE,
    THERE_IS_NO_SESSION,
    THIS_IS_NOT_A_SESSION,
    WAS_CHANGED_AFTER_IT_WAS,
)
from words import (
    Agent,
    Spy,
    complaint,
    files,
    grouped,
    lines,
    quoth,
    scripted,
    table_of,
    tool,
)

from quoth.agent.client import AsyncAgent
from quoth.agent.events import AgentEvent
from quoth.agent.replay.again import session_in_file
from quoth.agent.replay.replay import Replay
from quoth.agent.run.limits import RunLimits
from quoth.agent.testing import replays
from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.select import ScriptedBackend
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import UsageError
from quoth.tools.history.audit import StoreAudit
from quoth.tools.history.event import Event, TranscriptError, read_event
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.transfer import written
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


class Shop:
    """A workspace with tools whose bodies count, and a session s of ann's in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stock: Any = "3 apples"
        self.did: list[str] = []

    def look(self) -> Any:
        self.did.append("look")
        return self.stock

    def sell(self, fruit: str, ctx: ToolContext) -> str:
        self.did.append(f"sell {fruit}")
        ctx.effect(f"sold:{fruit}")
        return f"sold {fruit}"

    def tools(self, about: str = "Look at the stock.", **sell: Any) -> list[CognitiveTool]:
        params = sell or {"fruit": {"type": str, "default": "plum"}}
        pin = {"pin": {"type": str, "secret": True}}
        made = [
            tool("look", self.look, effects=["reads"]),
            tool("sell", self.sell, params=params, effects=["writes"]),
            tool("unlock", lambda pin: "open", params=pin),
        ]
        return [described(made[0], about), *made[1:]]

    def agent(self, *replies: Any, **options: Any) -> Agent:
        model = replies[0] if replies and callable(replies[0]) else None
        given = {
            "session": "s",
            "user": "ann",
            "tools": self.tools(),
            "model": ScriptedBackend(model) if model else scripted(*replies),
            "consent": "yes",
            **options,
        }
        return Agent(**grouped(workspace=self.folder, **given))

    def runs(self, *replies: Any, task: str = "Do it.", **options: Any) -> None:
        with self.agent(*replies, **options) as it:
            it.run(task)

    def replayed(self, live_tools: bool = False, **options: Any) -> Replay:
        """A replay by an agent whose model cannot be opened, and that no body ran for without leave."""
        before = list(self.did)
        with self.agent(**{"model": "ollama:nobody", "base_url": "http://127.0.0.1:9", **options}) as it:
            found = it.replay("s", live_tools=live_tools)
        assert live_tools or self.did == before
        return found

    def events(self) -> list[Event]:
        store = Store(store_path(self.folder))
        events = list(Transcript(lambda: store).events("s"))
        store.close()
        return events

    def exported(self, count: int | None = None, edit: Callable[[str], str] = str) -> str:
        """The first ``count`` events of the session as a file holds them, edited as if they were so."""
        edited: list[Event] = []
        for event in self.events()[:count]:
            edited.append(read_event("s", edit(event.shown), edited[-1].digest if edited else ""))
        return lines(written(edited, "s", len(edited), "0"))

    def kept(self) -> tuple[list[str], int]:
        """All that the store has of the session, and how many audit rows there are."""
        store = Store(store_path(self.folder))
        found = [event.digest for event in Transcript(lambda: store).events("s")]
        rows = len(StoreAudit(lambda: store).rows())
        store.close()
        return found, rows


def described(made: CognitiveTool, about: str) -> CognitiveTool:
    import dataclasses

    return dataclasses.replace(made, description=about)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_each_step_is_read_as_often_in_a_long_run(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """And few of its events at all: what is written now as it was then need not be read."""
    from quoth.tools.history import event

    read, reads = event._read, []
    monkeypatch.setattr(
        event, "_read", lambda text, *args, **named: reads.append(text) or read(text, *args, **named)
    )
    counts: list[int] = []
    for session, steps in (("s", 5), ("t", 10), ("u", 15)):
        calls = [f'(sell :fruit "plum {number}")' for number in range(steps)]
        shop.runs(*calls, "Sold.", session=session)
        event._read_once.cache_clear()
        reads.clear()
        with shop.agent(model="ollama:nobody", base_url="http://127.0.0.1:9") as agent:
            assert agent.replay(session).same
        counts.append(len(reads))
    assert counts[2] - counts[1] == counts[1] - counts[0] <= 4 * 5


# What is as recorded


def simple(shop: Shop) -> None:
    shop.runs("(look)", '(sell "plum") (eval (+ 1 2))', "Sold.")


def talk(shop: Shop) -> None:
    with shop.agent("(look)", "Three.", "(sell)", "Sold.") as it:
        it.say("What is there?")
        it.say("Sell one.")
    with shop.agent("(look)", "None.") as it:
        it._wait(it._agent.follow("And now?"))


def unreadable(shop: Shop) -> None:
    shop.runs("(look", "(look) (nothing-such)", "", "Three.")


def stuck(shop: Shop) -> None:
    shop.runs(*["(look)"] * 9)


def too_long(shop: Shop) -> None:
    shop.runs("(look)", "(sell)", limits=RunLimits(steps=2))


def model_down(shop: Shop) -> None:
    def reply(messages: Any) -> str:
        if len(messages) > 3:
            raise ModelError("The model is down.")
        return "(look)"

    shop.runs(reply)


def model_up_again(shop: Shop) -> None:
    model_down(shop)
    with shop.agent("(sell)", "Sold.") as it:
        it.resume()


def asked(shop: Shop) -> None:
    shop.runs("(look) (sell) (look)", consent=None)


def approved(shop: Shop) -> None:
    asked(shop)
    with shop.agent("(look)", "Sold.", consent=None) as it:
        it.broker.decide(it.broker.requests()[0].id, Decision("once", "ann"))
        it._agent._changed = "The tool look has changed."
        it.resume()


def native(shop: Shop) -> None:
    call = {"name": "look", "arguments": {}}
    shop.runs({"tool_calls": [call, {"name": "sell", "arguments": '{"fruit":'}]}, "Three.", dialect="native")


def program(shop: Shop) -> None:
    said = {"tool_calls": [{"name": "run", "arguments": {"program": "(look) ; see\n(sell)"}}]}
    shop.runs(said, "Three.", dialect="run")


def searched(shop: Shop) -> None:
    shop.runs("(look)", "Three.", belt="search")


def secret(shop: Shop) -> None:
    shop.runs('(unlock "hunter22")', '(unlock :pin "hunter22")', "Open.", task="Unlock with hunter22.")


def interrupted(shop: Shop) -> None:
    def stop(event: AgentEvent) -> None:
        if event.kind == "result":
            it.interrupt()

    with shop.agent("(look) (sell)", "Three.", on_event=stop) as it:
        it.run("Do it.")


def by_hand(shop: Shop) -> None:
    with shop.agent() as it:
        it.call("(look)")
        it.eval("(sell)")


def sub_agent(shop: Shop) -> None:
    shop.runs('(cognitive-loop "Look.")', "(look)", "Three.", "It says three.")


def sub_agents(shop: Shop) -> None:
    """A run of a sub-agent that runs another, which is given one tool and data, and one of a person."""
    inner = '(eval (cognitive-loop "Sell." :tools ["sell"] :value "plums" :steps 3))'
    shop.runs('(cognitive-loop "Look.")', inner, '(sell "pear")', "Sold.", "Done.", "Well done.")
    with shop.agent("(look)", "Three.") as it:
        it.call('(cognitive-loop "Look again.")')


def cleared(shop: Shop) -> None:
    """A conversation that was shortened, so that its requests are not what is said of it in the end."""
    calls = [f'(eval (* "3 apples " {200 + n}))' for n in range(9)]
    shop.runs(*calls, "Sold.", limits=RunLimits(context=7000, window=0))


def summarised(shop: Shop) -> None:
    calls = ["(sell) " + "So be it. " * 90] * 12
    shop.runs(*calls, "Sold.", limits=RunLimits(context=5000, window=0))


# Each session with the numbers of its runs, requests and calls.
SESSIONS: dict[Callable[[Shop], None], tuple[int, int, int]] = {
    simple: (1, 3, 3),
    talk: (3, 6, 3),
    unreadable: (1, 4, 1),
    stuck: (1, 4, 5),
    too_long: (1, 2, 2),
    model_down: (1, 2, 1),
    model_up_again: (1, 3, 2),
    asked: (1, 1, 3),
    approved: (1, 3, 4),
    native: (1, 2, 1),
    program: (1, 2, 1),
    searched: (1, 2, 1),
    secret: (1, 3, 2),
    interrupted: (1, 1, 2),
    by_hand: (0, 0, 0),
    sub_agent: (2, 4, 2),
    sub_agents: (4, 8, 4),
    cleared: (1, 10, 9),
    summarised: (1, 13, 10),
}
OPTIONS: dict[Callable[[Shop], None], dict[str, Any]] = {
    native: {"dialect": "native"},
    program: {"dialect": "run"},
    searched: {"belt": "search"},
}


@pytest.mark.parametrize(("session", "kind"), [(cleared, "cleared"), (summarised, "summary")])
def test_these_conversations_were_shortened(shop: Shop, session: Callable[[Shop], None], kind: str) -> None:
    session(shop)
    assert kind in [event.kind for event in shop.events()]


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_a_session_is_as_recorded(shop: Shop, session: Callable[[Shop], None]) -> None:
    session(shop)
    before = shop.kept()
    found = shop.replayed(**OPTIONS.get(session, {}))
    assert found.diff == ""
    assert found.same
    assert (found.runs, found.requests, found.calls) == SESSIONS[session]
    assert shop.kept() == before
    file = shop.folder / "s.hy"
    file.write_text(shop.exported())
    kept = replays(file, tools=shop.tools(), **OPTIONS.get(session, {}))
    assert str(kept) == str(found)


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.__name__)
def test_a_session_that_was_broken_off_anywhere_is_as_far_as_it_goes(
    shop: Shop, session: Callable[[Shop], None]
) -> None:
    session(shop)
    kinds = [event.kind for event in shop.events()]
    first = kinds.index("stimulus") + 1 if "stimulus" in kinds else 1
    for count in range(first, len(kinds), max(1, 60 // many(1))):  # each second, or each
        files(shop.folder, {"s.hy": shop.exported(count)})
        replays(shop.folder / "s.hy", tools=shop.tools(), **OPTIONS.get(session, {}))


# What is not


def test_another_description_is_another_prompt_and_all_after_it_stays_comparable(shop: Shop) -> None:
    simple(shop)
    found = shop.replayed(tools=shop.tools("Look around."))
    assert found.diff.startswith("--- s.3 recorded\n+++ s.3 now\n@@")
    changed = [line for line in found.diff.splitlines()[3:] if line[0] in "+-"]
    assert changed == ["-- look: Look at the stock.", "+- look: Look around."]
    assert str(found) == "s: 1 run, 3 requests, 3 calls: 1 difference."
    assert found.notes == ["Tools that have changed: look."]


def test_another_default_is_no_other_call_and_another_parameter_is(shop: Shop) -> None:
    shop.runs('(sell "plum")', "Sold.")
    found = shop.replayed(tools=shop.tools(what={"type": str}))
    assert [one.what for one in found.differences] == ["request", "call"]
    assert found.differences[-1].diff == lines(
        "--- s.5 recorded",
        "+++ s.5 now",
        "@@ -1,2 +1,2 @@",
        " (sell",
        '-  :fruit "plum")',
        '+  :what "plum")',
    ).rstrip("\n")


def test_a_tool_that_is_gone_is_named(shop: Shop) -> None:
    shop.runs("(look)", "Three.")
    found = shop.replayed(tools=[])
    assert found.notes == ["Tools that are missing: look, sell, unlock."]
    assert found.differences[0].what == "request"


def test_another_dialect_is_another_prompt(shop: Shop) -> None:
    shop.runs("(look)", "Three.")
    first, *_ = shop.replayed(dialect="plist").differences
    assert first.diff == lines(
        "--- s.2 recorded",
        "+++ s.2 now",
        "@@ -1 +1 @@",
        '-(stimulus :dialect "call-form" :in-text True)',
        '+(stimulus :dialect "plist" :in-text True)',
    ).rstrip("\n")


def test_a_prompt_that_cannot_be_made_any_more_is_told(shop: Shop) -> None:
    shop.runs("(look)", "Three.", dialect="run")
    (only,) = shop.replayed(dialect="run", tools=table_of(tool("look"))).differences
    assert only.now == "; The dialect run needs the tool eval, and this table has none."


# A line of the simple session, what is put in its place, and the difference that this makes.
EDITED = {
    "an answer to a request": (
        "(look) -> ok:\\n3 apples",
        "(look) -> ok:\\n4 apples",
        ["request"],
        '-4 apples")\n+3 apples")',
    ),
    "a call": (
        '(sell :fruit "plum")',
        '(sell :fruit "pear")',
        ["call"],
        '-  :fruit "pear")\n+  :fruit "plum")',
    ),
    "the status of the end": (
        ':status "done"',
        ':status "failed"',
        ["end"],
        '-(end :status "failed"\n+(end :status "done"',
    ),
    "the text of the end": (
        ':status "done" :text "Sold."',
        ':status "done" :text "Bought."',
        ["end"],
        '-  :text "Bought.")\n+  :text "Sold.")',
    ),
    "what the model said": (
        ':text "(look)"',
        ':text "(look 1)"',
        ["call", "request"],
        "-(look)\n+(look\n+  1)",
    ),
    "what it said last": (
        ':text "Sold." :usage',
        ':text "(look)" :usage',
        ["call", "end"],
        '-(end :status "done"\n-  :text "Sold.")\n+(end :status "interrupted"',
    ),
    "an early end": (
        ':text "(look)" :usage',
        ':text "None." :usage',
        ["request", "end"],
        '-  :text "Sold.")\n+  :text "None.")',
    ),
}


@pytest.mark.parametrize("edit", EDITED)
def test_what_is_different_is_shown(shop: Shop, edit: str) -> None:
    simple(shop)
    before, after, what, shown = EDITED[edit]
    assert before in shop.exported(), shop.exported()
    left = [1]  # times that it is to be replaced

    def edited(text: str) -> str:
        return text.replace(before, after, left.pop()) if before in text and left else text

    file = shop.folder / "s.hy"
    file.write_text(shop.exported(edit=edited))
    said = complaint(AssertionError, lambda: replays(file, tools=shop.tools()))
    assert shown in said
    with shop.agent() as it:
        assert [one.what for one in it.replay(file).differences] == what


def test_an_event_that_was_changed_is_found_first(shop: Shop) -> None:
    simple(shop)
    store = Store(store_path(shop.folder))
    store.execute("UPDATE events SET form = replace(form, 'plum', 'pear') WHERE seq = 8")
    store.close()
    assert complaint(TranscriptError, shop.replayed) == f"Event s.8 {WAS_CHANGED_AFTER_IT_WAS}."


# What is wrong with a file, and what is said of it.
BROKEN: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (
        lambda text: "",
        f"{THIS_IS_NOT_A_SESSION}: a file of quoth export begins with (quoth-session …).",
    ),
    "a line less": (
        lambda text: "\n".join(text.splitlines()[:-1]),
        "15 of the 16 events of session s are here.",
    ),
    "another word": (
        lambda text: text.replace("Sold.", "Bought."),
        f"Event s.15 {WAS_CHANGED_AFTER_IT_WAS}, or is missing.",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_file_that_holds_no_whole_session_is_refused(shop: Shop, broken: str) -> None:
    simple(shop)
    breaks, message = BROKEN[broken]
    file = shop.folder / "s.hy"
    file.write_text(breaks(shop.exported()))
    assert complaint(TranscriptError, lambda: replays(file)) == f"{file}: {message}"


def complaint_of_any(act: Callable[[], Any]) -> str:
    with pytest.raises(UsageError) as caught:
        act()
    return str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no.hy"
    assert complaint(UsageError, lambda: replays(path)) == f"{THERE_IS_NO_FILE} {path}."
    files(tmp_path, {"bytes": b"\xff"})
    assert complaint_of_any(lambda: session_in_file(tmp_path / "bytes")).endswith("bytes is not UTF-8 text.")


def test_a_run_without_its_beginning_is_not_replayed(shop: Shop) -> None:
    simple(shop)
    files(shop.folder, {"s.hy": shop.exported(edit=lambda text: text.replace("(stimulus ", "(summary "))})
    said = complaint(TranscriptError, lambda: replays(shop.folder / "s.hy"))
    assert said.endswith(f"Event s.5 {CANNOT_BE_USED}: its run r1 has no beginning.")


def test_a_limit_that_there_is_not_is_not_replayed(shop: Shop) -> None:
    simple(shop)
    files(shop.folder, {"s.hy": shop.exported(edit=lambda text: text.replace('"calls" 100', '"cals" 100'))})
    said = complaint(TranscriptError, lambda: replays(shop.folder / "s.hy"))
    assert said == "Event s.2 cannot be replayed: there is no limit cals. Did you mean calls?"


# Calls that only read, once more


def test_what_is_read_again_and_has_changed_is_shown(shop: Shop) -> None:
    simple(shop)
    assert str(shop.replayed(live_tools=True)).endswith("as recorded; of 1 call run again none changed.")
    shop.stock = ["4 apples", "1 plum"]
    found = shop.replayed(live_tools=True)
    assert found.same
    assert found.diff == lines(
        "--- s.6 recorded: (look)",
        "+++ s.6 now: (look)",
        "@@ -1,2 +1,3 @@",
        ' (receipt :status "ok"',
        '-  :value "3 apples")',
        '+  :value ["4 apples"',
        '+          "1 plum"])',
    ).rstrip("\n")
    assert str(found).endswith("as recorded; of 1 call run again 1 changed.")
    assert shop.did == ["look", "sell plum", "look", "look"]


def test_calls_of_a_person_and_of_programs_are_read_again_too(shop: Shop) -> None:
    with shop.agent() as it:
        it.call("(look)")
        it.eval("[(look) (sell)]")
    assert shop.replayed(live_tools=True).looks == 2
    assert shop.did.count("sell plum") == 1


def test_what_a_rule_denies_or_asks_by_now_is_not_read(shop: Shop) -> None:
    simple(shop)
    for rule, message in {
        "(deny (look))": "look was denied: p.hy:1 says (deny (look)).",
        "(ask (look))": "look asks a person, and this is a dry run.",
    }.items():
        files(shop.folder, {"p.hy": rule})
        (only,) = shop.replayed(live_tools=True, policy=shop.folder / "p.hy").changed
        now = only.now.replace(f"{shop.folder}/", "")
        assert now == f'(receipt :status "denied"\n  :message "{message}")'
    assert shop.did.count("look") == 1
    with shop.agent() as it:
        assert it.broker.requests() == []


def test_each_call_that_is_made_again_is_in_the_audit_and_not_in_the_transcript(shop: Shop) -> None:
    simple(shop)
    events, rows = shop.kept()
    shop.replayed(live_tools=True)
    assert shop.kept() == (events, rows + 1)
    with shop.agent() as it:
        row = it.audit.rows()[-1]
    assert (row["tool"], row["route"], row["session"], row["user"]) == ("look", "replay", "s", "ann")


def test_a_call_whose_secret_is_not_kept_is_not_made_again(shop: Shop) -> None:
    peek = tool("peek", Spy("x"), params={"pin": {"type": str, "secret": True}})
    with shop.agent(tools=[peek]) as it:
        it.call('(peek "hunter22")')
    found = shop.replayed(live_tools=True, tools=[peek])
    assert (found.looks, found.notes) == (
        0,
        [
            "A call of peek was not run again: its secret is not kept.",
            "1 call by a person: taken from the record, not compared.",
        ],
    )


# The command


SHOP = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool count-fruit "Count a fruit."
  :parameters [fruit {:type str}]
  :effects    [:reads]
  :body       (.count (.decode (.read (.open-read ctx.workspace "stock.txt"))) fruit))
"""
REPLIES = '(count-fruit "apple")\n---\nThere is one.\n'


def market(folder: Path, *more: str) -> Path:
    """A workspace with a session s that was begun with a file of tools."""
    files(folder, {"shop.hy": SHOP, "r.txt": REPLIES, "stock.txt": "apple pear"})
    words = ["--model", "scripted:r.txt", "--tools", "shop.hy", "--session", "s", *more]
    assert quoth("run", "Count apples.", *words, cwd=folder).code == 0
    return folder


def test_the_command_restores_the_tools_and_says_in_a_line_that_nothing_is_different(tmp_path: Path) -> None:
    market(tmp_path, "--dialect", "plist")
    (tmp_path / "r.txt").unlink()
    for words in (["s"], ["--last"], ["--session", "s"]):
        said = quoth("replay", *words, cwd=tmp_path)
        assert (said.code, said.out) == (0, "s: 1 run, 2 requests, 1 call: as recorded.\n")
    data = json.loads(quoth("replay", "s", "--json", cwd=tmp_path).out)
    assert data == {
        "session": "s",
        "runs": 1,
        "requests": 2,
        "calls": 1,
        "looks": 0,
        "differences": [],
        "changed": [],
        "notes": [],
        "same": True,
    }


def test_the_command_shows_a_difference_and_fails(tmp_path: Path) -> None:
    market(tmp_path)
    files(tmp_path, {"shop.hy": SHOP.replace("Count a fruit", "Count one"), "stock.txt": "apple apple"})
    said = quoth("replay", "s", "--live-tools", cwd=tmp_path)
    assert said.code == 1
    assert said.err == "quoth: Tools that have changed: count-fruit.\n"
    assert "-- count-fruit: Count a fruit.\n+- count-fruit: Count one.\n" in said.out
    assert said.out.endswith(
        '+++ s.6 now: (count-fruit :fruit "apple")\n'
        '@@ -1,2 +1,2 @@\n (receipt :status "ok"\n-  :value 1)\n+  :value 2)\n'
        "s: 1 run, 2 requests, 1 call: 1 difference; of 1 call run again 1 changed.\n"
    )
    (difference,) = json.loads(quoth("replay", "s", "--json", cwd=tmp_path).out)["differences"]
    assert (difference["event"], difference["what"], difference["run"]) == ("s.3", "request", "r1")


def test_the_command_says_what_is_not_there_any_more(tmp_path: Path) -> None:
    market(tmp_path)
    (tmp_path / "shop.hy").unlink()
    said = quoth("replay", "s", cwd=tmp_path)
    assert (said.code, said.err.splitlines()) == (
        1,
        [
            f"quoth: The tool file {tmp_path / 'shop.hy'} {IS_NOT_THERE_ANY_MORE}.",
            "quoth: Tools that are missing: count-fruit.",
        ],
    )


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("policy", "(allow (count-fruit))"),
        ("gate", "(import quoth [allow]) (defn check [tool call ctx] (allow))"),
    ],
)
def test_what_judged_and_is_not_there_any_more_stops_live_tools_alone(
    tmp_path: Path, option: str, text: str
) -> None:
    files(tmp_path, {"p.hy": text})
    market(tmp_path, f"--{option}", "p.hy")
    (tmp_path / "p.hy").unlink()
    assert quoth("replay", "s", cwd=tmp_path).code == 0
    said = quoth("replay", "s", "--live-tools", cwd=tmp_path)
    told = f"The {option} file {tmp_path / 'p.hy'} does not exist; give the one to use: --{option} FILE"
    assert (said.code, said.err) == (2, f"quoth: {told}\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "Give a session, or --last. See: quoth replay --help"),
        (["--last"], f"{THERE_IS_NO_SESSION} in this workspace."),
        (["s9"], f"{THERE_IS_NO_SESSION} s9 in this workspace."),
    ],
)
def test_the_command_needs_a_session(tmp_path: Path, words: list[str], message: str) -> None:
    said = quoth("replay", *words, cwd=tmp_path)
    assert (said.code, said.out, said.err) == (2, "", f"quoth: {message}\n")


def test_a_file_is_replayed_where_there_is_no_store(shop: Shop, tmp_path_factory: Any) -> None:
    simple(shop)
    there = files(tmp_path_factory.mktemp("there"), {"s.hy": shop.exported()})
    with Agent(workspace=there, tools=shop.tools()) as it:
        assert it.replay(there / "s.hy").same
    assert "count" not in quoth("replay", "s.hy", cwd=there).err


def test_a_session_with_several_tables_is_replayed_with_each(shop: Shop) -> None:
    for dialect in ("plist", "json"):
        shop.runs('{"tool": "echo", "args": {"text": "hi"}}', "Hi.", dialect=dialect, tools=[])
    said = quoth("replay", "s", cwd=shop.folder)
    assert (said.code, said.out) == (0, "s: 2 runs, 4 requests, 2 calls: as recorded.\n")


async def test_the_helper_works_in_an_asynchronous_test_too(shop: Shop) -> None:
    async with AsyncAgent(workspace=shop.folder, session="s", model=scripted("Hi.")) as agent:
        await agent.run("Say hi.")
        assert (await agent.replay()).same
    files(shop.folder, {"s.hy": shop.exported()})
    assert str(replays(shop.folder / "s.hy")) == "s: 1 run, 1 request, no calls: as recorded."


def test_a_prompt_of_a_sub_agent_that_is_another_is_shown(shop: Shop) -> None:
    sub_agents(shop)
    found = shop.replayed(tools=shop.tools(fruit={"type": str, "default": "plum", "doc": "Which"}))
    runs = [one.run.count("/") for one in found.differences]
    assert {one.what for one in found.differences} == {"request"}
    assert sorted(runs) == [0, 1, 2, 5]


def test_what_a_replay_shows_has_no_secret_while_the_run_still_has_it(shop: Shop) -> None:
    shop.runs('(unlock "hunter22") (sell)', consent=None, task="Unlock.")
    found = shop.replayed(tools=[])
    assert [one.what for one in found.differences] == ["request", "call", "call", "end"]
    assert "hunter22" not in json.dumps(found.to_json())


def test_an_imported_session_loads_no_tools_and_follows_no_rules_of_elsewhere(
    tmp_path: Path, tmp_path_factory: Any
) -> None:
    files(tmp_path, {"p.hy": "(allow (count-fruit))"})
    here, there = market(tmp_path, "--policy", "p.hy"), tmp_path_factory.mktemp("there")
    assert quoth("export", "s", "s.hy", cwd=here).code == 0
    assert quoth("import", str(here / "s.hy"), cwd=there).code == 0
    note = f"quoth: These tools were chosen on another machine and are not loaded: {here / 'shop.hy'}.\n"
    for of in ("s", str(here / "s.hy")):
        said = quoth("replay", of, cwd=there)
        assert (said.code, said.err.startswith(note)) == (1, True)
        tools = ["--tools", str(here / "shop.hy")]
        assert quoth("replay", of, *tools, cwd=there).out == "s: 1 run, 2 requests, 1 call: as recorded.\n"
        said = quoth("replay", of, *tools, "--live-tools", cwd=there)
        message = (
            f"The policy file {here / 'p.hy'} was chosen on another machine; give the one to use: "
            "--policy FILE"
        )
        assert (said.code, said.err) == (2, f"quoth: {message}\n")
