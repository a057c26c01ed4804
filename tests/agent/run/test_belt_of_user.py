"""What a model is shown where the rules deny its user a tool always: nothing of it. A call of it is denied
nevertheless, with the reason, and all else stays as it was."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    THE_PROGRAM_USES,
    THERE_IS_NO_POLICY_FILE,
    THERE_IS_NO_TOOL_NAMED,
    THESE_TOOLS_ARE_GONE_AND,
    WHICH_IS_NOT_DEFINED,
)
from words import MemoryAudit, files, native, quoth, scripted, tool

from quoth.agent.client import AsyncAgent
from quoth.agent.reply import Reply
from quoth.agent.run.channels import HostServices
from quoth.agent.run.options import ModelOptions, ToolOptions
from quoth.agent.testing import replays
from quoth.tools.call.context import ToolContext
from quoth.tools.consent.requests import Decision
from quoth.tools.registry.table import CognitiveTool

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")

TEXT = {"text": {"type": str, "default": "x"}}
DENIED = "crimson was denied: rules.hy:1 says (deny (crimson))"
NEVER = "(deny (crimson))"


class Panel:
    """A workspace with rules and some buttons, of which one is crimson. ``ask`` gives work to a sub-agent."""

    def __init__(self, folder: Path, rules: str = NEVER, **options: Any) -> None:
        self.folder = files(folder, {"rules.hy": rules})
        self.options = options
        self.model = scripted()

    @property
    def tools(self) -> list[CognitiveTool]:
        async def ask(text: str, ctx: ToolContext, call: Any) -> str:
            return await ctx.team.run(text, call=call, context=ctx)

        buttons = [
            tool(name, lambda text: text, params=TEXT, tag=name.upper()) for name in ("crimson", "teal")
        ]
        asking = tool("asking", lambda text: text, params=TEXT, effects=["writes"])
        return [*buttons, asking, tool("ask", ask, params=TEXT)]

    def agent(self, *says: Any, **options: Any) -> AsyncAgent:
        self.model = scripted(*says)
        given = {**self.options, **options}
        return AsyncAgent(
            workspace=self.folder,
            tools=ToolOptions(given.pop("tools", self.tools), given.pop("belt", "full")),
            model=ModelOptions(self.model, dialect=given.pop("dialect", None)),
            **{"policy": self.folder / "rules.hy", "session": "s", "user": "ann", **given},
        )

    def runs(self, *says: Any, **options: Any) -> Reply:
        async def story() -> Reply:
            async with self.agent(*says, **options) as made:
                return await made.run("Press it.")

        return asyncio.run(story())

    def shown(self, request: int = 0) -> str:
        """All that the model was sent at a request, its native tools too."""
        return self.model.seen[request].decode() + (self.model.tools[request] or b"").decode()


@pytest.fixture(autouse=True)
def rules_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


DIALECTS = ("call-form", "plist", "json", "tags", "native", "run")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_dialect_shows_it(tmp_path: Path, dialect: str) -> None:
    panel = Panel(tmp_path, dialect=dialect)
    assert panel.runs("Done.").status == "done"
    assert "crimson" not in panel.shown().lower()
    assert "teal" in panel.shown().lower()


def test_what_is_asked_is_shown(tmp_path: Path) -> None:
    panel = Panel(tmp_path, "(ask (crimson))", dialect="tags")
    panel.runs("Done.")
    assert "CRIMSON" in panel.shown()


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        ("call-form", "(crimson)"),
        ("call-form", '(eval (crimson "a"))'),
        ("plist", "(:target :tool :action :call :tool crimson :args ())"),
        ("json", '{"tool": "crimson", "args": {}}'),
        ("tags", "CRIMSON: a"),
        ("native", native(("crimson", {}))),
        ("run", native(("run", {"program": "(crimson)"}))),
    ],
)
def test_a_call_of_it_is_denied_with_the_reason_and_recorded(
    tmp_path: Path, dialect: str, reply: Any
) -> None:
    audit = MemoryAudit()
    panel = Panel(tmp_path, dialect=dialect, services=HostServices(audit=audit))
    done = panel.runs(reply, "Done.")
    assert [call.result.status for call in done.calls] == ["denied"]
    assert "says (deny (crimson))" in done.calls[0].result.message
    assert "says (deny (crimson))" in panel.shown(1)
    assert ("crimson", "denied", "policy") in [(r["tool"], r["status"], r["stage"]) for r in audit.rows()]


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ('(crimso :text "a")', f"{THERE_IS_NO_TOOL_NAMED} crimso. Available tools: "),
        ('(eval (crimso "a"))', f"{THE_PROGRAM_USES} crimso, {WHICH_IS_NOT_DEFINED}."),
        ("(eval (crimso))", f"{THE_PROGRAM_USES} crimso, {WHICH_IS_NOT_DEFINED}."),
    ],
)
def test_no_hint_names_it(tmp_path: Path, reply: str, message: str) -> None:
    panel = Panel(tmp_path)
    (call,) = panel.runs(reply, "Done.").calls
    assert call.result.message.startswith(message)
    assert "crimson" not in panel.shown(1)


def test_a_belt_to_search_neither_describes_nor_finds_it(tmp_path: Path) -> None:
    panel = Panel(tmp_path, belt="search")
    looks = (
        '(describe :name "crimson")',
        '(search-tools :words "crimson test")',
        '(describe :name "crimsn")',
    )
    described, found, near = (call.result for call in panel.runs(*looks, "Done.").calls)
    assert described.message.startswith(
        f"{THERE_IS_NO_TOOL_NAMED} crimson. Available tools: ask, ask-person, asking, block"
    )
    assert "- teal: A tool for a test." in found.value
    assert "crimson" not in str(found.value)
    assert "crimson" not in near.message
    panel = Panel(tmp_path, "(ask (crimson))", belt="search")
    assert panel.runs(looks[0], "Done.").calls[0].result.ok


@pytest.mark.parametrize(
    "rule",
    [
        '(deny (crimson :text "y"))',
        '(deny (crimson) (user "ben"))',
        '(deny (crimson) (route "chat"))',
        '(deny (crimson) (route "reply"))',  # a program may call it
        "(deny (crimson) (depth > 3))",
        "(deny (crimson) (confidence < 0.5))",
        "(quota crimson 1 :per :day)",
    ],
)
def test_what_a_rule_denies_under_a_condition_is_shown(tmp_path: Path, rule: str) -> None:
    panel = Panel(tmp_path, rule)
    panel.runs("Done.")
    assert "- crimson: A tool for a test." in panel.shown()


def test_a_sub_agent_is_shown_what_it_may_call(tmp_path: Path) -> None:
    panel = Panel(tmp_path, '(deny (crimson) (route (one-of "reply" "program")))\n(deny (teal) (nested))')
    panel.runs('(ask "x")', "Inner.", "Outer.")
    outer, inner, _ = (panel.shown(place) for place in range(3))
    assert ("- crimson:" in outer, "- teal:" in outer) == (False, True)
    assert ("- crimson:" in inner, "- teal:" in inner) == (True, False)


def test_a_chat_hides_what_nobody_there_may_call(tmp_path: Path) -> None:
    rules = '(deny (crimson) (user "ann"))\n(deny (teal) (route (one-of "chat" "program")))'
    panel = Panel(tmp_path, rules, user="bot")

    async def story() -> None:
        async with panel.agent("Hello.", "(crimson)", "(crimson)") as host:
            chat = host.for_chat("7")
            await chat.say("Hello", speaker="ben")
            refused = await chat.say("Press", speaker="ann")
            done = await chat.say("Press", speaker="ben")
            assert [call.result.status for call in (*refused.calls, *done.calls)] == ["denied", "ok"]
            await chat.aclose()

    asyncio.run(story())
    assert "- crimson:" in panel.shown()
    assert "- teal:" not in panel.shown()
    assert len({json.loads(seen)[0]["content"] for seen in panel.model.seen}) == 1


@pytest.mark.parametrize("dialect", ["call-form", "native"])
def test_a_run_that_goes_on_is_shown_what_it_was_shown(tmp_path: Path, dialect: str) -> None:
    panel = Panel(tmp_path, dialect=dialect)
    call = native(("asking", {})) if dialect == "native" else "(asking)"
    assert panel.runs(call).status == "pending"
    files(tmp_path, {"rules.hy": "(deny (teal))"})

    async def go_on() -> Any:
        async with panel.agent(native(("teal", {})) if dialect == "native" else "(teal)", "Done.") as made:
            (waiting,) = made.broker.requests()
            made.broker.decide(waiting.id, Decision("once", "ann"))
            return await made.resume()

    (reply,) = asyncio.run(go_on())
    assert [call.result.status for call in reply.calls] == ["ok", "denied"]  # the rules of now decide
    assert "crimson" not in panel.shown()
    assert b"teal" not in (panel.model.tools[0] or b"")
    assert panel.runs("Done.").status == "done"  # and a new run is shown what they let be shown now
    assert ("crimson" in panel.shown(), "teal" in panel.shown()) == (True, False)


@pytest.mark.parametrize("dialect", ["tags", "native"])
def test_a_session_replays_as_it_was_shown_without_its_rules(tmp_path: Path, dialect: str) -> None:
    panel = Panel(tmp_path, dialect=dialect)
    panel.runs("Done.")
    (tmp_path / "rules.hy").unlink()

    async def again() -> Any:
        async with panel.agent(policy=None) as made:
            return await made.replay()

    found = asyncio.run(again())
    assert (found.same, found.requests) == (True, 1), found.diff
    files(tmp_path, {"s.hy": quoth("export", "s", cwd=tmp_path).out})
    assert replays(tmp_path / "s.hy", tools=panel.tools).requests == 1


def test_a_step_of_a_flight_is_shown_what_it_may_call(tmp_path: Path) -> None:
    plan = "* PLAN Press it\nPress the button.\n"
    panel = Panel(files(tmp_path, {"plan.org": plan}))

    async def fly() -> Any:
        async with panel.agent("Done.") as made:
            return await made.fly(tmp_path / "plan.org")

    asyncio.run(fly())
    assert "teal" in panel.shown()
    assert "crimson" not in panel.shown()


@pytest.mark.parametrize("dialect", ["call-form", "tags", "native", "run"])
def test_the_hints_and_examples_of_a_dialect_do_not_name_it(tmp_path: Path, dialect: str) -> None:
    panel = Panel(tmp_path, "(deny (effects :writes))\n(deny (grep-search))", dialect=dialect)
    panel.runs("Done.")
    shown = panel.shown().replace(
        r'["grep-search', ""
    )  # an example of cognitive-loop, as its author wrote it
    shown = shown.replace(r"[\"grep-search", "")
    assert [name for name in ("edit-file", "write-file", "grep-search") if name in shown] == []
    if dialect in ("call-form", "plist", "json", "native"):
        assert "- If the task is about a file, begin with read-file.\\n- To compute, use eval;" in shown


def test_the_note_on_changed_tools_does_not_name_it(tmp_path: Path) -> None:
    panel = Panel(tmp_path)
    panel.runs("(asking)")

    async def go_on() -> Any:
        panel.options["tools"] = [tool("asking", lambda text: text, params=TEXT, effects=["writes"])]
        async with panel.agent("Done.") as made:
            (waiting,) = made.broker.requests()
            made.broker.decide(waiting.id, Decision("deny", "ann"))
            await made.resume()

    asyncio.run(go_on())
    assert f"{THESE_TOOLS_ARE_GONE_AND}: ask, teal." in panel.shown()
    assert "crimson" not in panel.shown()


# For a person


def test_the_commands_leave_it_out_for_that_user(tmp_path: Path) -> None:
    files(tmp_path, {"p.hy": '(deny (write-file) (user "ben"))'})
    told = "quoth: Not shown, because the rules deny ben every call of it: write-file\n"
    for words in (["tools"], ["tools", "--json"], ["belt", "--view", "run"]):
        for user, there in (("ann", True), ("ben", False))[words != ["tools"] :]:
            said = quoth(*words, "--policy", "p.hy", "--user", user, cwd=tmp_path)
            assert (said.code, said.err) == (0, "" if there else told)
            assert ("write-file" in said.out) is there
    page = quoth("tools", "write-file", "--policy", "p.hy", "--user", "ben", cwd=tmp_path)
    assert page.out.startswith("(write-file ")
    assert quoth("tools", "--policy", "none.hy", cwd=tmp_path).err == (
        f"quoth: {THERE_IS_NO_POLICY_FILE} none.hy.\n"
    )


def test_a_person_may_look_it_up_nowhere_either(tmp_path: Path) -> None:
    panel = Panel(tmp_path, belt="search")

    async def story() -> Any:
        async with panel.agent() as made:
            return await made.call('(describe :name "crimson")'), await made.call("(crimson)")

    looked, called = asyncio.run(story())
    assert looked.message.startswith(f"{THERE_IS_NO_TOOL_NAMED} crimson.")
    assert called.message.startswith("crimson was denied: ")
