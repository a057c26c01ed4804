"""A value that a model wrote in another type is the declared one everywhere: in the form, its digest, the
rules, the request to a person, the receipt, the transcript and the body; the audit has the old one. Only a
model's reply is read so."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from words import table_of, tool

from quoth import Agent, HostServices, ModelOptions, PolicyOptions
from quoth.agent.events import AgentEvent
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages, NativeCall
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.consent.requests import Decision
from quoth.tools.registry.table import ToolTable, cognitive_tools

MENDED = ':limit "5" was read as 5.'


class Caller:
    """A model that calls once and then answers."""

    takes_grammar = False
    name = "caller"
    tool_view = "openai"
    context = None

    def __init__(self, *replies: Completion) -> None:
        self.replies = [*replies, Completion("Done.")]
        self.asked: list[Messages] = []

    async def complete(self, messages: Messages, *, on_text: Any = None, **options: Any) -> Completion:
        self.asked.append(messages)
        completion = self.replies.pop(0)
        if on_text is not None:
            for char in completion.text:
                on_text(char)
        return completion

    async def aclose(self) -> None:
        """Nothing to free."""


def native(arguments: str) -> Completion:
    return Completion("", calls=(NativeCall(id="c1", name="probe", arguments=arguments),))


REPLIES = {
    "native": native('{"limit": "5"}'),
    "call-form": Completion('(probe :limit "5")'),
    "json": Completion('{"tool": "probe", "args": {"limit": "5"}}'),
    "plist": Completion('(:target :tool :action :call :tool "probe" :args (:limit "5"))'),
}


def probing(bodies: list[Any], **options: Any) -> ToolTable:
    params = {"limit": {"type": int}}
    return table_of(tool("probe", lambda limit: bodies.append(limit), params=params, **options))


@pytest.mark.parametrize("dialect", REPLIES)
@pytest.mark.parametrize("effects", [["reads"], ["writes"]])
@pytest.mark.parametrize("streams", [False, True])
def test_the_value_is_mended_everywhere_and_the_old_one_is_told(
    tmp_path: Path, dialect: str, effects: list[str], streams: bool
) -> None:
    bodies: list[Any] = []
    policy = tmp_path / "p.hy"
    policy.write_text('(allow (probe :limit (<= 5)))\n(deny (probe :limit "5"))\n')
    told: list[Any] = []

    def listen(event: AgentEvent) -> None:
        if event.kind in ("call", "written"):
            told.append(str(event.data))

    with Agent(
        workspace=tmp_path,
        model=ModelOptions(Caller(REPLIES[dialect]), dialect=dialect),
        tools=probing(bodies, effects=effects),
        policy=PolicyOptions(policy),
        on_event=listen if streams else None,
        services=HostServices(audit=MemoryAudit()),
    ) as agent:
        reply = agent.run("Probe.")
        (row,) = agent.audit.rows()
    (record,) = reply.calls
    assert (record.result.status, bodies) == ("ok", [5])
    assert {str(record.form), row["form"], *told} == {"(probe :limit 5)"}
    assert MENDED in row["repairs"]


def test_a_person_is_asked_for_the_mended_call_and_its_yes_runs_it(tmp_path: Path) -> None:
    bodies: list[Any] = []

    def begun(*replies: Completion) -> Agent:
        model = ModelOptions(Caller(*replies), dialect="native")
        return Agent(workspace=tmp_path, model=model, tools=probing(bodies, effects=["writes"]), session="s")

    with begun(REPLIES["native"]) as agent:
        assert agent.run("Probe.").status == "pending"
        (request,) = agent.broker.requests()
        assert request.form == "(probe :limit 5)"
        agent.broker.decide(request.id, Decision("once", "ann"))
    with begun() as agent:
        (reply,) = agent.resume()
    assert (reply.status, bodies) == ("done", [5])


def test_what_goes_back_to_the_server_is_json(tmp_path: Path) -> None:
    bodies: list[Any] = []
    sent: list[list[str]] = []
    for model in (Caller(native("{'limit': '5',}")), Caller()):
        with Agent(
            workspace=tmp_path,
            model=ModelOptions(model, dialect="native"),
            tools=probing(bodies, effects=["reads"]),
            session="s",
        ) as agent:
            agent.say("Probe.")
        said = [call for message in model.asked[-1] for call in message.get("calls", ())]
        sent.append([call["arguments"] for call in said])
    assert sent == [['{"limit": "5"}'], ['{"limit": "5"}']]
    assert bodies == [5]


def test_only_what_a_model_says_is_mended(tmp_path: Path) -> None:
    bodies: list[Any] = []
    program = Completion('(eval :form (probe :limit "5"))')
    import_module("quoth.tools.builtin")
    table = table_of(*probing(bodies, effects=["reads"]), cognitive_tools.get("eval"))
    with Agent(workspace=tmp_path, model=ModelOptions(Caller(program)), tools=table) as agent:
        (record,) = agent.run("Probe.").calls
        results = [agent.call('(probe :limit "5")'), agent.eval('(probe :limit "5")'), record.result]
    assert [(one.ok, ':limit should be int, not "5"' in one.message) for one in results] == [
        (False, True)
    ] * 3
    assert bodies == []
