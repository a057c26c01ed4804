"""Remote tools in a run: beside the agent's own, taken up anew between turns only, and told to the model."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from far_tools import FarTools, fruit
from sentences import THESE_TOOLS_ARE_GONE_AND
from servers import redis_server
from words import agent, complaint, files, quoth, scripted, table_of, tool

from quoth import Agent, ToolOptions
from quoth.agent.client import AsyncAgent
from quoth.agent.run.limits import RunLimits
from quoth.agent.session.index import fork_session
from quoth.neuro.prompt.belt import NEWS, news_text
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.catalog.connection import RedisUrl
from quoth.tools.catalog.payload import ForeignCatalog, new_key
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.paths import catalog_key_path

pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


@pytest.fixture
def far(redis: str) -> FarTools:
    return FarTools(redis, fruit())


def acting(do: Callable[[], Any]) -> CognitiveTool:
    """A tool whose call is the moment in which somebody else does something."""

    def body() -> str:
        do()
        return "done"

    return tool("probe", body)


def shopping(workspace: Path, far: FarTools, *replies: str, tools: Any = (), **options: Any) -> Agent:
    """An agent with the tools of a shop beside its own."""
    remote = ToolOptions(tools, remote=far.catalog, prefix=far.prefix)
    return agent(workspace, *replies, tools=remote, session="s1", **options)


def changing(far: FarTools, *tools: CognitiveTool) -> CognitiveTool:
    """A tool of the agent's own, in whose call the shop offers other tools."""

    def change() -> None:
        far.publish(*tools)
        far.heard()

    return acting(change)


def told(requests: list[bytes]) -> list[list[str]]:
    """What each request tells of changed tools."""
    return [
        [one["content"] for one in json.loads(each) if one["content"].startswith(NEWS)] for each in requests
    ]


def requests(one: Agent) -> list[bytes]:
    """What the model was sent."""
    return list(one._agent.models.backend().seen)  # type: ignore[attr-defined]


def events(one: Agent, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in one._agent.transcript.events("s1", kind=kind)]  # type: ignore[arg-type]


CHANGED = f"""{NEWS}

Changed, and called so now:
- count-fruit: A tool for a test.
  Parameters: :kind str (Which fruit)"""


# One run


def test_a_model_uses_remote_tools_as_it_uses_others(tmp_path: Path, far: FarTools) -> None:
    with shopping(tmp_path, far, '(count-fruit :fruit "pears")', "There are 30.") as ann:
        reply = ann.run("How many pears?")
        assert (reply.text, [call.result.value for call in reply.calls]) == ("There are 30.", [30])
        assert "- count-fruit: A tool for a test." in requests(ann)[0].decode()
        assert events(ann, "tools") == []


def test_a_change_is_told_at_the_next_turn_and_the_model_calls_the_tool_anew(
    tmp_path: Path, far: FarTools
) -> None:
    replies = ("(probe)", '(count-fruit :kind "pears")', "There are 30.")
    with shopping(tmp_path, far, *replies, tools=[changing(far, fruit(word="kind"))]) as ann:
        reply = ann.run("How many pears?")
        assert (reply.text, [call.result.status for call in reply.calls]) == ("There are 30.", ["ok", "ok"])
        assert told(requests(ann)) == [[], [CHANGED], [CHANGED]]
        assert events(ann, "tools") == [{"step": 2, "text": CHANGED}]


def test_a_call_with_parameters_of_before_is_refused_and_planned_again(tmp_path: Path, far: FarTools) -> None:
    replies = ('(count-fruit :fruit "pears")', '(count-fruit :kind "pears")', "There are 30.")
    with shopping(tmp_path, far, *replies) as ann:
        ann._agent.host.parts.remote._catalog.watch = lambda: None  # nobody listens
        far.publish(fruit(word="kind"))
        reply = ann.run("How many pears?")
        assert [call.result.status for call in reply.calls] == ["error", "ok"]
        assert told(requests(ann)) == [[], [CHANGED], [CHANGED]]


def test_what_is_new_or_gone_is_told_too(tmp_path: Path, far: FarTools) -> None:
    with shopping(tmp_path, far, "(probe)", "Done.", tools=[changing(far, tool("weigh"))]) as ann:
        ann.run("Do it.")
        assert told(requests(ann))[-1] == [
            f"{NEWS}\n\nNew:\n- weigh: A tool for a test.\n  Parameters: none\n\n"
            "Gone, and cannot be called any more:\ncount-fruit"
        ]
        assert ann.call("(count-fruit :fruit 1)").status == "unknown"


def test_of_many_changes_a_few_are_shown_and_the_others_named() -> None:
    many = [tool(f"t{number:03}") for number in range(130)]
    text = news_text(table_of(), table_of(*many))
    assert text.count("Parameters:") == 10
    assert text.endswith("t108, t109, and 20 more")


def test_a_change_that_no_model_sees_is_not_told(tmp_path: Path, far: FarTools) -> None:
    hidden = fruit(shown=False)
    with shopping(
        tmp_path, far, "(probe)", "Done.", tools=[changing(far, fruit(), tool("pin", shown=False))]
    ) as ann:
        ann.run("Do it.")
        assert told(requests(ann)) == [[], []]
        assert "pin" in ann.table
    assert news_text(table_of(hidden), table_of()) == ""


def test_secrets_of_a_tool_that_came_later_are_hidden_too(tmp_path: Path, far: FarTools) -> None:
    pin = tool("pin", lambda code: "ok", params={"code": {"type": str, "secret": True}})
    with shopping(
        tmp_path, far, "(probe)", '(pin :code "hush-1234")', "Done.", tools=[changing(far, pin)]
    ) as ann:
        ann.run("Do it.")
        shown = [event.shown for event in ann._agent.transcript.events("s1")]
        assert not any("hush-1234" in text for text in shown)
        assert any("(pin :code" in text for text in shown)


# A conversation, and what is below a run


def test_what_changed_between_two_messages_is_told_with_the_second(tmp_path: Path, far: FarTools) -> None:
    with shopping(tmp_path, far, "Hello.", "There you are.") as ann:
        ann.say("Hello.")
        far.publish(fruit(word="kind"))
        far.heard()
        ann.say("Go on.")
        assert told(requests(ann)) == [[], [CHANGED]]


def test_a_sub_agent_goes_on_with_the_new_form_of_its_tools_and_no_others(
    tmp_path: Path, far: FarTools
) -> None:
    replies = (
        '(cognitive-loop :task "Count." :tools ["probe" "count-fruit"])',
        "(probe)",
        '(count-fruit :kind "pears")',
        "There are 30.",
        "30.",
    )
    changes = changing(far, fruit(word="kind"), tool("weigh"))
    with shopping(tmp_path, far, *replies, tools=[changes]) as ann:
        assert ann.run("How many pears?").text == "30."
        below, above = told(requests(ann))[2], told(requests(ann))[-1]
        assert (below, "weigh" in above[0]) == ([CHANGED], True)


def test_a_shorter_conversation_still_tells_of_the_tools(tmp_path: Path, far: FarTools) -> None:
    long = tool("long", lambda: "x" * 3000, allow_repeat=True)
    replies = ["(probe)", *["(long)"] * 5, "Done."]
    with shopping(
        tmp_path,
        far,
        *replies,
        tools=[changing(far, fruit(word="kind")), long],
        limits=RunLimits(context=6000),
    ) as ann:
        ann.run("Do it.")
        assert events(ann, "summary") or events(ann, "cleared")
        assert told(requests(ann))[-1] == [CHANGED]


def test_chats_side_by_side_have_the_same_tools_and_are_each_told(tmp_path: Path, far: FarTools) -> None:
    async def talk() -> list[bytes]:
        model = scripted("Hello.", "Hello.", '(count-fruit :kind "pears")', "Well.")
        options = ToolOptions(remote=far.catalog, prefix=far.prefix)
        async with AsyncAgent(workspace=tmp_path, tools=options, model=model) as bot:
            first, second = bot.for_chat("a"), bot.for_chat("b")
            for chat in (first, second):
                await chat.say("Hello.")
            await asyncio.to_thread(far.publish, fruit(word="kind"))
            await asyncio.to_thread(far.heard)
            assert (await first.say("How many?")).calls[0].result.value == 30
            await second.say("And you?")
        return list(model.seen)

    assert told(asyncio.run(talk())) == [[], [], [CHANGED], [CHANGED]]


def test_each_step_of_a_flight_has_the_tools_of_its_time(tmp_path: Path, far: FarTools) -> None:
    files(tmp_path, {"p.org": PLAN})
    with shopping(tmp_path, far, tools=[changing(far, fruit(count=31, allow_repeat=True))]) as ann:
        report = ann.fly(tmp_path / "p.org")
    assert [(step.id, step.status) for step in report.steps] == [("one", "done"), ("two", "done")]
    assert len(far.calls) == 2


PLAN = """
* PLAN One
:PROPERTIES:
:ID: one
:END:
#+begin_src hy
(count-fruit :fruit "pears")
(probe)
#+end_src
* PLAN Two
:PROPERTIES:
:ID: two
:EXPECT: (= result 31)
:END:
#+begin_src hy
(count-fruit :fruit "pears")
#+end_src
"""


# The record


def test_resumed_it_is_answered_from_the_record_without_a_server(tmp_path: Path, far: FarTools) -> None:
    replies = ("(probe)", '(count-fruit :kind "pears")')  # and then the model is gone
    with shopping(tmp_path, far, *replies, tools=[changing(far, fruit(word="kind"))]) as ann:
        assert ann.run("How many pears?").status == "failed"
    with agent(tmp_path, "There are 30.", session="s1") as ann:
        (reply,) = ann.resume()
        (request,) = requests(ann)
        assert (reply.text, told([request])) == ("There are 30.", [[CHANGED]])
        assert f"{THESE_TOOLS_ARE_GONE_AND}: count-fruit, probe." in request.decode()
    assert len(far.calls) == 1


def test_resumed_with_the_same_tools_it_is_told_of_them_once(tmp_path: Path, far: FarTools) -> None:
    change = changing(far, fruit(word="kind"))
    with shopping(tmp_path, far, "(probe)", tools=[change]) as ann:
        assert ann.run("How many pears?").status == "failed"
    with shopping(tmp_path, far, "30.", tools=[change]) as ann:
        assert list(ann._agent.host.changes()) == []
        ann.resume()
        (request,) = requests(ann)
        assert (told([request]), "have changed since" in request.decode()) == ([[CHANGED]], False)


def test_a_fork_goes_on_from_what_was_told(tmp_path: Path, far: FarTools) -> None:
    change = changing(far, fruit(word="kind"))
    with shopping(tmp_path, far, "(probe)", tools=[change]) as ann:
        assert ann.run("How many pears?").status == "failed"
        fork, _ = fork_session(ann._agent.store, "s1")
    with agent(tmp_path, "30.", tools=[change], session=fork) as ann:
        ann.resume()
        assert told(requests(ann)) == [[CHANGED]]


def test_between_two_processes_a_person_and_the_model_hear_of_changed_tools(
    tmp_path: Path, far: FarTools
) -> None:
    with shopping(tmp_path, far, "Hello.") as ann:
        ann.say("Hello.")
    far.publish(fruit(word="kind"), tool("weigh"))
    with shopping(tmp_path, far, "30.") as ann:
        assert list(ann._agent.host.changes()) == [
            "The tool count-fruit has changed since the session was last used.",
            "The tool weigh was added since the session was last used.",
        ]
        ann.say("How many?")
        assert "they are called as (count-fruit :kind str)." in requests(ann)[0].decode()


def test_replayed_a_session_whose_tools_changed_makes_the_same_calls(tmp_path: Path, far: FarTools) -> None:
    replies = ("(probe)", '(count-fruit :kind "pears")', "There are 30.")
    with shopping(tmp_path, far, *replies, tools=[changing(far, fruit(word="kind"))]) as ann:
        ann.run("How many pears?")
        found = ann.replay()
    # Only the belt of today is not that of then.
    assert [one.what for one in found.differences] == ["request"]
    assert all("(Which fruit)" in one.diff for one in found.differences)
    made = len(far.calls)
    exported = quoth("export", "s1", cwd=tmp_path).out
    assert exported.count("(tools :seq") == 1
    files(tmp_path, {"s1.lisp": exported})
    assert quoth("import", "s1.lisp", "--as", "s2", cwd=tmp_path).code == 0
    said = quoth("log", "s2", cwd=tmp_path).out
    assert "◦ message to the model: TOOLS: the tools that you can call have changed." in said
    assert len(far.calls) == made


def test_replayed_without_a_server_it_is_said_that_the_tools_are_not_here(tmp_path: Path) -> None:
    with redis_server() as url:
        far = FarTools(url, fruit())
        with shopping(tmp_path, far, '(count-fruit :fruit "pears")', "30.") as ann:
            ann.run("How many pears?")
    said = quoth("replay", "s1", cwd=tmp_path)
    assert said.code == 1
    assert said.err.startswith(
        f"quoth: The remote tools are missing. The Redis at {url} cannot be used: no server answers there.\n"
        "quoth: Tools that are missing: count-fruit.\n"
    )


def test_where_the_tools_are_is_kept_and_never_the_password(tmp_path: Path, far: FarTools) -> None:
    with shopping(tmp_path, far) as ann:
        assert ann.call('(count-fruit :fruit "pears")').value == 30
        (given,) = events(ann, "session")
    assert (given["remote"], given["prefix"]) == (far.url.shown, far.prefix)
    assert given["remote-versions"].startswith("count-fruit ")
    assert "count-fruit" not in given["versions"]


def test_no_tool_reads_the_key_or_the_url(tmp_path: Path, far: FarTools) -> None:
    key = shutil.copy(catalog_key_path(), tmp_path / "shop.key")
    url = tmp_path / "url.txt"
    url.touch(mode=0o600)
    url.write_text(far.url.full)
    options = ToolOptions(remote=f"@{url}", prefix=far.prefix, key=key)
    with agent(tmp_path, tools=options) as ann:
        assert ann.call('(list-files :pattern "*.*")').value == []
        said = [ann.call(f'(read-file :path "{name}")').message for name in ("shop.key", "url.txt")]
    secret = "{} is a secret of quoth's, which no tool may read."
    assert said == [secret.format("shop.key"), secret.format("url.txt")]


def test_a_catalogue_that_is_not_believed_leaves_a_row_in_the_audit(tmp_path: Path, far: FarTools) -> None:
    far.publish(tool("steal"), key=new_key(tmp_path / "other.key"))
    options = ToolOptions(remote=RedisUrl(far.url.full, far.url.shown), prefix=far.prefix)
    audit = MemoryAudit()
    why = complaint(ForeignCatalog, lambda: agent(tmp_path, tools=options, audit=audit))
    (row,) = audit.rows()
    assert (row["status"], row["stage"], row["message"]) == ("denied", "catalog", why)


# What the rules here, or the users there, deny always


def test_a_tool_of_other_users_is_neither_shown_nor_sent(tmp_path: Path, far: FarTools) -> None:
    far.table.permit({"count-fruit": ["ann"]})
    far.publish_again()
    with shopping(tmp_path, far, '(count-fruit :fruit "pears")', "No.", user="ben") as ben:
        (call,) = ben.run("How many pears?").calls
        assert (call.result.status, call.result.message) == (
            "denied",
            "count-fruit was denied: ben may not call it.",
        )
        assert b"- count-fruit:" not in requests(ben)[0]
        assert far.calls == []
    place = ["--remote", far.url.shown, "--prefix", far.prefix]
    for user, there in (("ann", True), ("ben", False)):
        assert ("count-fruit" in quoth("tools", *place, "--user", user, cwd=tmp_path).out) is there


@pytest.mark.parametrize(
    ("rule", "shown"),
    [("(deny (remote))", False), ('(deny (remote "PREFIX"))', False), ('(deny (remote "x"))', True)],
)
def test_rules_about_remote_tools_hide_them(tmp_path: Path, far: FarTools, rule: str, shown: bool) -> None:
    files(tmp_path, {"p.hy": rule.replace("PREFIX", far.prefix)})
    replies = ('(count-fruit :fruit "pears")', "Done.")
    with shopping(tmp_path, far, *replies, policy=tmp_path / "p.hy") as ann:
        (call,) = ann.run("How many pears?").calls
        assert (call.result.ok, b"- count-fruit:" in requests(ann)[0]) == (shown, shown)
        assert bool(far.calls) is shown


def test_of_changed_tools_only_what_may_be_called_is_told(tmp_path: Path, far: FarTools) -> None:
    files(tmp_path, {"p.hy": "(deny (weigh))"})

    def change() -> None:
        far.publish(tool("weigh"), tool("taste"), fruit())
        far.table.permit({"count-fruit": ["ben"]})
        far.publish_again()
        far.heard()

    with shopping(
        tmp_path,
        far,
        "(probe)",
        "(weigh)",
        "Done.",
        tools=[acting(change)],
        policy=tmp_path / "p.hy",
        user="ann",
    ) as ann:
        done = ann.run("Do it.")
        assert [call.result.status for call in done.calls] == ["ok", "denied"]
        assert told(requests(ann))[1] == [
            f"{NEWS}\n\nNew:\n- taste: A tool for a test.\n  Parameters: none\n\n"
            "Gone, and cannot be called any more:\ncount-fruit"
        ]
