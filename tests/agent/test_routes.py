"""Law: one door. Each way a call can come is stopped by a denying guard and by a denying rule, and a tool
that walks through files leaves out those that a rule denies, whichever way it was called.

A new route is added to ROUTES (tools/call/context.py), or the door refuses it; and to WAYS here, or this
fails.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import hy
import pytest
from caller import KEY, at_work, calling
from sentences import THESE_WORDS_ARE_IN
from words import (
    Spy,
    files,
    form,
    gateway,
    grouped,
    hy_forms,
    lines,
    python_nodes,
    quoth,
    scripted,
    sources,
    tool,
)

from quoth import ToolOptions
from quoth.agent.client import AsyncAgent
from quoth.neuro.prompt.dialects import DIALECTS
from quoth.tools.call.call import CLIENTS, ROUTES, TYPED, Route
from quoth.tools.catalog import publish_catalog
from quoth.tools.catalog.remote_table import LiveCatalog
from quoth.tools.consent.requests import Decision
from quoth.tools.history.audit import StoreAudit
from quoth.tools.loading import load_tools
from quoth.tools.policy.files import parse_layer
from quoth.tools.policy.policy import RulesPolicy
from quoth.tools.registry.table import ToolTable
from quoth.tools.remote.sender import Sender
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

TOOLS = """
(require quoth [def-cognitive-tool])
(import pathlib [Path]  quoth.tools.lisp.forms [CallForm])
(def-cognitive-tool probe "Leave a mark."
  :tag        "PROBE"
  :parameters [text {:type str}]
  :guard      (if (= text "stop") GUARD True)
  :body       (when (.may-read ctx text) (.touch (/ (Path "HERE") text))))
(def-cognitive-tool relay "Have the probe called."
  :body (. (await (.dispatch ctx (CallForm "probe" {"text" "stop"}))) status))
"""
PROBE = '(probe :text "stop")'
# How the call is judged: the answer of the guard, the rule, the end of the call and the stage of that end.
JUDGED = {
    "a denying guard": ('(deny "not today")', "(allow (probe))", "denied", "guard"),
    "a denying rule": ("True", '(deny (probe :text "stop"))', "denied", "policy"),
    "a rule about the files it walks through": (
        "True",
        '(allow (probe)) (deny (read-file :path "./stop"))',
        "ok",
        "body",
    ),
    "nothing that denies": ("True", "(allow (probe))", "ok", "body"),
}


@dataclass
class World:
    """A workspace with a probe that is judged in one of the ways of JUDGED."""

    here: Path
    judged: str
    redis: Callable[[], str] = str  # the URL of a server

    def __post_init__(self) -> None:
        guard, rule, _, _ = JUDGED[self.judged]
        for name, said in (("allows.hy", "True"), ("judges.hy", guard)):
            files(self.here, {name: TOOLS.replace("GUARD", said).replace("HERE", str(self.here))})
        files(self.here, {"policy.hy": lines(["(allow (relay))", '(ask (probe :text "go"))'], rule)})
        files(self.here, {"asks.hy": "(ask (probe))"})

    @asynccontextmanager
    async def agent(self, *replies: Any, **options: Any) -> Any:
        given = {"tools": [self.here / "judges.hy"], "policy": self.here / "policy.hy", "session": "s1"}
        model = scripted(*replies)
        async with AsyncAgent(**grouped(workspace=self.here, model=model, **given | options)) as agent:
            yield agent

    async def command(self, *words: str, stdin: str | None = None) -> None:
        quoth(*words, "--tools", "judges.hy", "--policy", "policy.hy", cwd=self.here, stdin=stdin)

    def rows(self) -> list[dict[str, Any]]:
        store = Store(store_path(self.here))
        try:
            return StoreAudit(lambda: store).rows()
        finally:
            store.close()

    def chain(self) -> list[dict[str, Any]]:
        """The row of the last probe, and before it those of the calls in which it was made."""
        rows = [row for row in self.rows() if row["route"] != "decision"]
        by_id = {row["id"]: row for row in rows}
        found = [[row for row in rows if row["tool"] == "probe" and '"stop"' in row["form"]][-1]]
        while found[0]["parent"]:
            found.insert(0, by_id[found[0]["parent"]])
        return found


def reply(said: Any, dialect: str | None = None) -> Callable[[World], Awaitable[None]]:
    """A model says it."""

    async def bring(world: World) -> None:
        async with world.agent(said, "Done.", dialect=dialect) as agent:
            await agent.run("Do it.")

    return bring


def command(*words: str, stdin: str | None = None) -> Callable[[World], Awaitable[None]]:
    """A person types it."""
    return lambda world: world.command(*words, stdin=stdin)


def python(text: str, *, as_form: bool = False) -> Callable[[World], Awaitable[None]]:
    """A Python program makes it."""

    async def bring(world: World) -> None:
        async with world.agent() as agent:
            await agent.call(form(text) if as_form else text, route="python")

    return bring


def client(route: Route, how: str = "call") -> Callable[[World], Awaitable[None]]:
    """A client program sends it, or a program with it."""

    async def bring(world: World) -> None:
        async with world.agent() as agent:
            await getattr(agent, how)(PROBE, route=route)

    return bring


async def resumed(world: World) -> None:
    """It waits, is approved, and is carried on by another agent, which judges anew."""
    before = {"tools": [world.here / "allows.hy"], "policy": world.here / "asks.hy"}
    async with world.agent(**before) as agent:
        assert (await agent.call(PROBE)).status == "pending"
        agent.broker.decide(agent.broker.requests()[0].id, Decision("once"))
    async with world.agent() as agent:
        await agent.resume()


async def resumed_reply(world: World) -> None:
    """The same of a call that a model made."""
    before = {"tools": [world.here / "allows.hy"], "policy": world.here / "asks.hy"}
    async with world.agent(PROBE, **before) as agent:
        assert (await agent.run("Do it.")).status == "pending"
        agent.broker.decide(agent.broker.requests()[0].id, Decision("once"))
    async with world.agent("Done.") as agent:
        await agent.resume()


async def sub_agent(world: World) -> None:
    """A sub-agent of a person makes it."""
    async with world.agent(PROBE, "Done.") as agent:
        await agent.call('(cognitive-loop "Do it.")', route="python")


async def sub_agent_of_a_model(world: World) -> None:
    """A sub-agent of a model makes it."""
    async with world.agent('(cognitive-loop :task "Do it.")', PROBE, "Done.", "Done.") as agent:
        await agent.run("Do it.")


async def programs_and_sub_agents(world: World) -> None:
    """A program makes it, of a sub-agent that a program runs, and that was given the probe by name."""
    async with world.agent(f"(eval {PROBE})", "Done.") as agent:
        program = '(cognitive-loop "Do it." :tools ["eval" "probe"])'
        await agent.eval(program, route="python")


async def resumed_sub_agent(world: World) -> None:
    """It is the call of a sub-agent that waits, is approved, and is carried on by another agent."""
    before = {"tools": [world.here / "allows.hy"], "policy": world.here / "asks.hy"}
    async with world.agent(PROBE, **before) as agent:
        assert (await agent.call('(cognitive-loop "Do it.")')).status == "pending"
        agent.broker.decide(agent.broker.requests()[0].id, Decision("once"))
    async with world.agent("Done.") as agent:
        await agent.resume()


async def edited(world: World) -> None:
    """A person has it made in place of another call."""

    class Person:
        async def request(self, *_: Any) -> Decision:
            return Decision("edit", "ann", form=form(PROBE))

    async with world.agent(consent=Person()) as agent:
        await agent.call('(probe :text "go")')


async def approved_flight(world: World) -> None:
    """It is a form of a plan that a person has approved, which is flown by another agent, which judges
    anew."""
    files(world.here, {"plan.org": f"* PLAN a\n#+begin_src hy\n{PROBE}\n#+end_src\n"})
    quoth("approve", "plan.org", "--tools", "judges.hy", cwd=world.here)
    await world.command("fly", "plan.org")


async def flight_of_a_model(world: World) -> None:
    """A model makes it in a step of prose."""
    files(world.here, {"plan.org": "* PLAN a\nDo it.\n"})
    async with world.agent(PROBE, "Done.") as agent:
        await agent.fly(world.here / "plan.org")


async def resumed_flight(world: World) -> None:
    """It waits in a flight, is approved, and is carried on by another agent."""
    files(world.here, {"plan.org": f"* PLAN a\n#+begin_src hy\n{PROBE}\n#+end_src\n"})
    before = {"tools": [world.here / "allows.hy"], "policy": world.here / "asks.hy"}
    async with world.agent(**before) as agent:
        assert (await agent.fly(world.here / "plan.org")).status == "pending"
        agent.broker.decide(agent.broker.requests()[0].id, Decision("once"))
    async with world.agent() as agent:
        await agent.fly(world.here / "plan.org")


async def replayed(world: World) -> None:
    """It was made, and is made again by a replay, which judges anew."""
    before = {"tools": [world.here / "allows.hy"], "policy": world.here / "asks.hy", "consent": "yes"}
    async with world.agent(PROBE, "Done.", **before) as agent:
        await agent.run("Do it.")
    (world.here / "stop").unlink()
    async with world.agent() as agent:
        assert (await agent.replay(live_tools=True)).looks == 1


def chat(said: Any, dialect: str | None = "tags") -> Callable[[World], Awaitable[None]]:
    """A model says it in a chat."""

    async def bring(world: World) -> None:
        async with world.agent(said, "Done.", dialect=dialect, session=None) as agent:
            await agent.for_chat("7").say("Do it.", speaker="ann", turn="m1")

    return bring


async def resumed_chat(world: World) -> None:
    """The same, and it waits, is approved, and is carried on by another agent."""
    before = {"tools": [world.here / "allows.hy"], "policy": world.here / "asks.hy", "session": None}
    async with world.agent("PROBE: stop", dialect="tags", **before) as agent:
        reply = await agent.for_chat("7").say("Do it.", speaker="ann", turn="m1")
        assert reply.status == "pending"
        agent.broker.decide(agent.broker.requests()[0].id, Decision("once"))
    async with world.agent("Done.", dialect="tags", session=None) as agent:
        await agent.for_chat("7").say("Do it.", speaker="ann", turn="m1")


@asynccontextmanager
async def far_away(world: World, redis: str) -> AsyncIterator[Any]:
    """A worker with the tools and the rules of a world, and the catalogue that it has published."""
    table = load_tools([world.here / "judges.hy"], ToolTable())
    policy = RulesPolicy([parse_layer("given", (world.here / "policy.hy").read_bytes(), "policy.hy")])
    store = Store(store_path(world.here))
    try:
        async with (
            calling(redis, *table) as caller,
            at_work(caller, world.here, policy=policy, audit=StoreAudit(lambda: store)),
        ):
            await publish_catalog(caller.redis, table, key=KEY, prefix=caller.prefix)
            yield LiveCatalog(caller.url, KEY, caller.prefix, Sender(caller.url, KEY, caller.prefix))
    finally:
        store.close()


async def delegated(world: World) -> None:
    """A worker makes it for an agent on another machine."""
    async with far_away(world, world.redis()) as catalog:
        folder = files(world.here / "far", {"mine.hy": "(allow (probe))"})
        options = {"tools": ToolOptions(remote=catalog), "policy": folder / "mine.hy"}
        async with AsyncAgent(**grouped(workspace=folder, **options)) as agent:
            await agent.call(PROBE, route="python")


# What a model that speaks a dialect says, and by which routes that comes.
SPOKEN: dict[str, tuple[tuple[Route, ...], Any]] = {
    "call-form": (("reply",), PROBE),
    "plist": (("reply",), '(:target :tool :action :call :tool "probe" :args (:text "stop"))'),
    "json": (("reply",), '{"tool": "probe", "args": {"text": "stop"}}'),
    "tags": (("reply",), "PROBE: stop"),
    "native": (("reply",), {"tool_calls": [{"name": "probe", "arguments": {"text": "stop"}}]}),
    "run": (("reply", "program"), {"tool_calls": [{"name": "run", "arguments": {"program": PROBE}}]}),
}
# Every way a call of the probe can come: the routes of the calls in which it lies and its own, and how it is
# brought.
WAYS: dict[str, tuple[tuple[Route, ...], Callable[[World], Awaitable[None]]]] = {
    **{dialect: (routes, reply(said, dialect)) for dialect, (routes, said) in SPOKEN.items()},
    **{
        f"{dialect} in a chat": (("chat", *routes[1:]), chat(said, dialect))
        for dialect, (routes, said) in SPOKEN.items()
    },
    "a user's tool in a chat": (("chat", "tool"), chat("(relay)", None)),
    "resumed call of a chat": (("chat",), resumed_chat),
    "nested in a program": (("reply", "program"), reply(f"(eval (do (+ 1 2) {PROBE}))")),
    "recursive eval": (("reply", "program", "program"), reply(f"(eval (eval {json.dumps(PROBE)}))")),
    "REPL line": (("repl",), command(stdin=PROBE + "\n")),
    "program of a REPL line": (("repl", "program"), command(stdin=f"(eval :form (quote {PROBE}))\n")),
    "quoth call": (("call",), command("call", PROBE)),
    "quoth eval": (("eval", "program"), command("eval", PROBE)),
    "quoth call of a program": (("call", "program"), command("call", f"(eval {PROBE})")),
    "Python, a text": (("python",), python(PROBE)),
    "Python, a form": (("python",), python(PROBE, as_form=True)),
    "a user's tool": (("python", "tool"), python("(relay)")),
    "a user's tool, said by a model": (("reply", "tool"), reply("(relay)")),
    "a user's tool in a program": (("python", "program", "tool"), python("(eval (relay))")),
    "sub-agent": (("python", "agent"), sub_agent),
    "sub-agent of a model": (("reply", "agent"), sub_agent_of_a_model),
    "program of a sub-agent in a program": (
        ("python", "program", "agent", "program"),
        programs_and_sub_agents,
    ),
    "resumed sub-agent": (("call", "agent"), resumed_sub_agent),
    "resumed call": (("call",), resumed),
    "resumed call of a model": (("reply",), resumed_reply),
    "edited call": (("call",), edited),
    "flight plan": (("flight", "program"), approved_flight),
    "step of prose of a flight plan": (("reply",), flight_of_a_model),
    "resumed flight plan": (("flight", "program"), resumed_flight),
    "replayed call": (("replay",), replayed),
    "call of another machine": (("remote",), delegated),
    **{f"call of a client by {route}": ((route,), client(route)) for route in sorted(CLIENTS)},
    **{
        f"program of a client by {route}": ((route, "program"), client(route, "eval"))
        for route in sorted(CLIENTS)
    },
}


@pytest.mark.sampled
@pytest.mark.parametrize("judged", JUDGED)
@pytest.mark.parametrize("way", WAYS)
async def test_every_way_is_stopped_by_what_denies_and_by_nothing_else(
    tmp_path: Path, way: str, judged: str, request: pytest.FixtureRequest
) -> None:
    _, _, status, stage = JUDGED[judged]
    routes, bring = WAYS[way]
    world = World(tmp_path, judged, lambda: request.getfixturevalue("redis"))
    await bring(world)
    assert (tmp_path / "stop").exists() is (judged == "nothing that denies")
    chain = world.chain()
    assert tuple(row["route"] for row in chain) == routes
    assert (chain[-1]["status"], chain[-1]["stage"]) == (status, stage)


# Who denies a call that an agent has a worker make, and the ends of the call on both sides: there, and here.
SIDES = {
    "the worker's guard": ("a denying guard", "(allow (probe))", [("denied", "guard")], ("denied", "body")),
    "the worker's rule": ("a denying rule", "(allow (probe))", [("denied", "policy")], ("denied", "body")),
    "the caller's rule": ("nothing that denies", "(deny (probe))", [], ("denied", "policy")),
    "the caller's rule for what is remote": (
        "nothing that denies",
        "(deny (remote)) (allow (probe))",
        [],
        ("denied", "policy"),
    ),
    "nobody": ("nothing that denies", "(allow (probe))", [("ok", "body")], ("ok", "body")),
}


@pytest.mark.parametrize("side", SIDES)
async def test_either_side_of_a_delegated_call_can_stop_it(tmp_path: Path, side: str, redis: str) -> None:
    judged, rule, there, here = SIDES[side]
    world = World(tmp_path / "worker", judged)
    folder = files(tmp_path / "caller", {"mine.hy": rule})
    async with far_away(world, redis) as catalog:
        options = {"tools": ToolOptions(remote=catalog), "policy": folder / "mine.hy"}
        async with AsyncAgent(**grouped(workspace=folder, **options)) as agent:
            result = await agent.call(PROBE, route="python")
            (row,) = agent.audit.rows()
    assert (tmp_path / "worker" / "stop").exists() is (side == "nobody")
    assert [(one["status"], one["stage"]) for one in world.rows()] == there
    assert (row["status"], row["stage"]) == here
    assert result.status == here[0]


def test_no_route_and_no_dialect_is_without_such_a_test() -> None:
    assert set(itertools.chain.from_iterable(routes for routes, _ in WAYS.values())) == set(ROUTES)
    assert get_args(Route) == ROUTES
    assert set(SPOKEN) == set(DIALECTS)
    assert {status for _, _, status, _ in JUDGED.values()} == {"denied", "ok"}


@pytest.mark.parametrize("route", ["python", *sorted(CLIENTS)])
async def test_what_a_client_sends_counts_as_no_words_of_the_person(tmp_path: Path, route: Route) -> None:
    (tmp_path / "careful.hy").write_text("(careful)")
    mail = tool("mail", params={"to": {"type": str, "role": "destination"}}, effects=["net"])
    options = {"tools": [mail], "policy": tmp_path / "careful.hy", "session": "s"}
    async with AsyncAgent(**grouped(workspace=tmp_path, model=scripted(), **options)) as agent:
        result = await agent.call('(mail "x@evil.example")', route=route)
        words = [one.words for request in agent.broker.requests() for one in request.origins]
    assert result.status == ("ok" if route in TYPED else "pending")
    assert words == ([] if route in TYPED else [f"client on route {route}"])


async def test_a_rule_and_an_origin_name_the_client(tmp_path: Path) -> None:
    rules = '(careful)\n(deny (read-file) (client "zed"))\n(deny (mail) (client (not "zed")))'
    (tmp_path / "careful.hy").write_text(rules)
    mail = tool("mail", params={"to": {"type": str, "role": "destination"}}, effects=["net"])
    found = {}
    for channel in ("acp zed", "acp emacs", "terminal"):
        (folder := tmp_path / channel).mkdir()
        (folder / "a.txt").write_text("one")
        options = {"tools": [mail], "policy": tmp_path / "careful.hy", "channel": channel}
        model = scripted('(read-file "a.txt")', "Done.")
        async with AsyncAgent(**grouped(workspace=folder, model=model, **options)) as agent:
            sent = await agent.eval('(mail "x@evil.example")', route="acp")
            (read,) = (await agent.run("Read it.")).calls
            words = [one.words for request in agent.broker.requests() for one in request.origins]
        found[channel] = sent.status, read.result.status, words
    assert found == {
        "acp zed": ("pending", "denied", ["client zed"]),
        "acp emacs": ("denied", "ok", []),
        "terminal": ("denied", "ok", []),
    }


@pytest.mark.parametrize(
    ("route", "by"), [("flight", "computed by your plan"), ("eval", "computed by your form")]
)
async def test_a_computed_value_is_not_called_the_models_own(tmp_path: Path, route: Route, by: str) -> None:
    mail = tool("mail", params={"to": {"type": str}, "subject": {"type": str}}, effects=["net"])
    async with AsyncAgent(
        **grouped(workspace=tmp_path, model=scripted(), tools=[mail], session="s")
    ) as agent:
        await agent.eval('(mail :to (+ "x@evil" ".example") :subject "The apples")', route=route)
        (request,) = agent.broker.requests()
    told = {one.argument: (one.words, one.marked) for one in request.origins}
    assert told["to"] == (by, True)
    assert told["subject"][0] in ("in your task", "in the text of the plan")


def test_the_door_refuses_a_route_it_does_not_know() -> None:
    body, guard = Spy(), Spy()
    door = gateway(tool("probe", body, guard=guard))
    result = door.pass_through("(probe)", route="sideways")
    assert (result.status, result.message) == (
        "denied",
        "probe was refused: unknown route sideways.",
    )
    assert (body.ran, guard.ran) == (False, False)
    assert [(row["status"], row["stage"], row["route"]) for row in door.rows] == [
        ("denied", "look-up", "sideways")
    ]
    for route in ROUTES:
        assert door.pass_through("(probe)", route=route).ok


# Words that stand in an earlier result of the session

SPELLINGS = [said for _, said in SPOKEN.values() if isinstance(said, str)]
QUOTING = {
    **{f"{name}, quoted": (said, name) for name, (_, said) in SPOKEN.items()},
    "run in text": (PROBE, "run"),
    "nested in a program": (f"(eval (do (+ 1 2) {PROBE}))", None),
    "recursive eval": (f"(eval (eval {json.dumps(PROBE)}))", None),
}


def asks(name: str, said: Any) -> str:
    """The call that is asked about; none where a provider hands it over as a call."""
    if isinstance(said, dict):
        return "done"
    return "eval" if "eval" in said or name == "run in text" else "probe"


ASKED: dict[str, tuple[str, Callable[[World], Awaitable[None]]]] = {
    **{name: (asks(name, said), reply(said, dialect)) for name, (said, dialect) in QUOTING.items()},
    "sub-agent": ("probe", sub_agent),
    "sub-agent of a model": ("probe", sub_agent_of_a_model),
    "resumed sub-agent": ("done", resumed_sub_agent),  # a person has approved it
    "resumed call of a model": ("done", resumed_reply),
    "a user's tool, said by a model": ("done", reply("(relay)")),  # other words
    **{
        name: ("done", WAYS[name][1])
        for name in ("REPL line", "quoth call", "quoth eval", "Python, a text", "Python, a form",
                     "a user's tool", "resumed call", "edited call")
    },
}  # fmt: skip


@pytest.mark.parametrize("way", ASKED)
async def test_quoted_words_wait_for_a_person_whatever_the_rules_allow(tmp_path: Path, way: str) -> None:
    asked, bring = ASKED[way]
    world = World(tmp_path, "nothing that denies")
    for name in ("allows.hy", "judges.hy"):
        text = (tmp_path / name).read_text()
        told = '(def-cognitive-tool mail "Read the mail." :effects [:reads] :body MAIL)'
        told = told.replace("MAIL", json.dumps(lines(*SPELLINGS)))
        files(tmp_path, {name: text.replace(':tag        "PROBE"', ':tag "PROBE" :effects [:writes]') + told})
    rules = (tmp_path / "policy.hy").read_text()
    files(tmp_path, {"policy.hy": rules + "\n(allow (eval))\n(allow (cognitive-loop))"})
    async with world.agent() as agent:
        await agent.call("(mail)")
    await bring(world)
    waits = [row for row in world.rows() if f"{THESE_WORDS_ARE_IN} the result of mail" in row["message"]]
    assert (tmp_path / "stop").exists() is (asked == "done")
    if asked != "done":
        assert {(row["tool"], row["status"], row["stage"]) for row in waits} >= {
            (asked, "pending", "consent")
        }


# The sources know no other route

# An audit row of a person's decision, which is no call; an example in the language of policies; and the
# context of no call at all.
NO_CALL = {"decision", '(route "reply")', ""}


def routes_in_python(text: str) -> list[str]:
    """The texts that are given as a route: an argument, a default, an item of a dictionary, an assignment."""
    found: list[str] = []
    for node in python_nodes(text):
        for value in _given_python(node):
            found += [
                leaf.value
                for leaf in ast.walk(value)
                if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str)
            ]
    return found


def _given_python(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.keyword) and node.arg == "route":
        yield _results(node.value)
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == "route":
                yield _results(value)
    elif isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(getattr(target, "id", getattr(target, "attr", "")) == "route" for target in targets):
            yield _results(node.value)
    elif isinstance(node, ast.arguments):
        named = [*node.posonlyargs, *node.args]
        pairs = [
            *zip(named[::-1], node.defaults[::-1], strict=False),
            *zip(node.kwonlyargs, node.kw_defaults, strict=True),
        ]
        for argument, default in pairs:
            if argument.arg == "route" and default is not None:
                yield default


def _results(value: ast.AST) -> ast.AST:
    """Of ``a if test else b`` the two, and not the test; of what is computed nothing."""
    if isinstance(value, ast.IfExp):
        return ast.List([_results(value.body), _results(value.orelse)])  # type: ignore[list-item]
    if isinstance(value, ast.Call | ast.Subscript | ast.Attribute | ast.Compare):
        return ast.List([])
    return value


def routes_in_hy(text: str) -> list[str]:
    """The same of Hy: ``:route "x"`` and ``"route" "x"``."""
    found: list[str] = []
    pending: list[Any] = list(hy_forms(text))
    while pending:
        node = pending.pop()
        if isinstance(node, hy.models.Sequence):
            for name, value in itertools.pairwise(node):
                given = name == hy.models.Keyword("route") or name == hy.models.String("route")
                if given and isinstance(value, hy.models.String):
                    found.append(str(value))
            pending.extend(node)
    return found


def test_every_route_in_the_sources_is_one_of_the_table() -> None:
    python, lisp = ([path.read_text() for path in sources(suffix)] for suffix in (".py", ".hy"))
    found = {route for text in python if "route" in text for route in routes_in_python(text)}
    found |= {route for text in lisp if "route" in text for route in routes_in_hy(text)}
    assert found - NO_CALL <= set(ROUTES)
    assert set(ROUTES) - found <= CLIENTS  # hosts of quoth may use these


@pytest.mark.parametrize(
    "text",
    [
        'new_call(form, route="side")',
        'new_call(form, **{"route": "side"})',
        'replace(call, route="program" if nested else "side")',
        'def call(form, *, route="side"): pass',
        'def call(form, route: Route = "side"): pass',
        'class Run:\n    route: Route = "side"',
        'run.route = "side"',
    ],
)
def test_the_check_of_python_can_fail(text: str) -> None:
    assert "side" in routes_in_python(text)


@pytest.mark.parametrize(
    "text",
    [
        '(new-call form :route "side")',
        '(new-call form #** {"route" "side"})',
        '(setv marks {"a" 1  "route" "side"})',
    ],
)
def test_the_check_of_hy_can_fail(text: str) -> None:
    assert routes_in_hy(text) == ["side"]


@pytest.mark.parametrize(
    "text", ["path(route)", 'f("route", "side")', 'route == "side"', "f(route=call.route)", 'row["route"]']
)
def test_the_check_of_python_lets_other_words_be(text: str) -> None:
    assert routes_in_python(text) == []
