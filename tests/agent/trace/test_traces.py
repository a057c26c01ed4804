"""Traces: what was done, as spans in one another, in a file of JSON lines or for OpenTelemetry; and no word
of what was said, unless that is asked for."""

from __future__ import annotations

import asyncio
import json
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import quoth
from loopback import KEY, Sleeps, failure, loopback, sse, status
from sentences import CANNOT_BE_WRITTEN, IS_NOT_INSTALLED
from words import files, scripted, tool

from quoth import Agent, AsyncAgent, Completion, ScriptedBackend, ToolError, Usage, UsageError
from quoth.agent.run.channels import HostServices
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.openai import OpenAIBackend
from quoth.tools.installing import install_extra

COST = Usage(input_tokens=10, output_tokens=2, cached_tokens=4)
Span = dict[str, Any]

LEAD = ["(eval (len (list-files)))\n(fail)", '(cognitive-loop :task "Help.")', "All done."]
HELP = ["(list-files)", "There is one file."]


def lead_and_help() -> ScriptedBackend:
    """A model whose run has a program, a call that fails, and a sub-agent; each reply costs COST."""

    def reply(messages: Messages) -> Completion:
        (task, *_) = [message["content"] for message in messages if message["role"] == "user"]
        said = sum(message["role"] == "assistant" for message in messages)
        return Completion((HELP if task.startswith("Help") else LEAD)[said], COST)

    return ScriptedBackend(reply)


def fail() -> str:
    raise ToolError("The pin hunter22 is wrong.")


def spans(file: Path) -> list[Span]:
    """The spans of a trace in the order in which they began."""
    return sorted(map(json.loads, file.read_text().splitlines()), key=lambda span: span["start"])


def tree(found: Sequence[Span]) -> list[str]:
    """The spans by name, each set in below the one that it was begun for."""
    depth: dict[str, int] = {}
    for span in found:
        depth[span["span"]] = depth.get(span["parent"], -1) + 1
    return ["  " * depth[span["span"]] + span["name"] for span in found]


async def traced(folder: Path, model: Any = None, **more: Any) -> list[Span]:
    """The trace of a run."""
    given = {"tools": [tool("fail", fail, effects=["reads"])], "trace": folder / "t.jsonl", **more}
    services = {name: given.pop(name) for name in ("trace", "trace_content") if name in given}
    model = lead_and_help() if model is None else model
    home = files(folder / "home", {"a.txt": "x"})
    async with AsyncAgent(workspace=home, model=model, services=HostServices(**services), **given) as agent:
        await agent.run("Lead me.")
    return spans(folder / "t.jsonl")


WHOLE = """\
invoke_agent quoth
  turn 1
    chat scripted
    execute_tool eval
      execute_tool list-files
    execute_tool fail
  turn 2
    chat scripted
    execute_tool cognitive-loop
      invoke_agent quoth
        turn 1
          chat scripted
          execute_tool list-files
        turn 2
          chat scripted
  turn 3
    chat scripted"""


async def test_a_run_with_a_program_a_sub_agent_and_a_failing_call_reads_as_a_tree(tmp_path: Path) -> None:
    found = await traced(tmp_path)
    assert "\n".join(tree(found)) == WHOLE
    assert len({span["trace"] for span in found}) == 1
    assert [(span["name"], span["error"]) for span in found if span["status"] == "error"] == [
        ("execute_tool fail", "error")
    ]


async def test_the_attributes_are_those_of_the_conventions(tmp_path: Path) -> None:
    run, turn, request, program, inner, failed, *_ = await traced(tmp_path, session="s", user="ann")
    usage = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 2}
    assert request["attributes"].items() >= {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.cache_read.input_tokens": 4,
        **usage,
    }.items()  # fmt: skip
    assert (turn["kind"], turn["attributes"]) == ("turn", {"quoth.turn": 1})
    assert run["attributes"] == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "quoth",
        "gen_ai.conversation.id": "s",
        "quoth.run": "r1",
        "quoth.status": "done",
        "quoth.steps": 5,
        "quoth.calls": 3,
        "gen_ai.usage.input_tokens": 50,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 20,
    }
    assert [one["attributes"]["quoth.route"] for one in (program, inner)] == ["reply", "program"]
    assert {
        name: failed["attributes"][name] for name in ("gen_ai.tool.name", "quoth.status", "error.type")
    } == {"gen_ai.tool.name": "fail", "quoth.status": "error", "error.type": "error"}


def test_the_id_of_a_call_is_that_of_its_audit(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, services=HostServices(trace=tmp_path / "t.jsonl")) as agent:
        result = agent.call('(echo "a")')
    (span,) = spans(tmp_path / "t.jsonl")
    assert (span["parent"], span["attributes"]["gen_ai.tool.call.id"]) == (None, result.id)


def said(text: str) -> dict[str, Any]:
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}


async def test_a_request_that_was_tried_again_says_so(tmp_path: Path) -> None:
    with loopback(failure(429, "The prompt Lead me. is too much.")) as server:
        server.answers.append(status(200, said("Done.")))
        model = OpenAIBackend("gpt-x", base_url=server.base_url, api_key=KEY, sleep=Sleeps())
        found = await traced(tmp_path, model)
        await model.aclose()
    (request,) = [span for span in found if span["kind"] == "request"]
    (event,) = request["events"]
    assert (event["name"], event["http.response.status_code"], request["status"]) == ("retry", 429, "ok")
    assert event["seconds"] > 0
    assert (request["name"], request["attributes"]["gen_ai.provider.name"]) == ("chat gpt-x", "openai")


async def test_a_request_that_failed_says_of_what_kind_its_failure_was(tmp_path: Path) -> None:
    with loopback(failure(401, "no")) as server:
        model = OpenAIBackend("gpt-x", base_url=server.base_url, api_key=KEY, sleep=Sleeps())
        run, _turn, request = await traced(tmp_path, model)
        await model.aclose()
    assert [(span["status"], span["error"]) for span in (run, request)] == [
        ("error", "failed"),
        ("error", "key"),
    ]
    assert KEY not in (tmp_path / "t.jsonl").read_text()


async def test_a_streamed_request_tells_when_its_first_words_came(tmp_path: Path) -> None:
    piece = {"choices": [{"delta": {"content": "Hi."}, "finish_reason": "stop"}]}
    with loopback(sse(piece, "[DONE]")) as server:
        model = OpenAIBackend("gpt-x", base_url=server.base_url, api_key=KEY)
        found = await traced(tmp_path, model, on_event=lambda event: None)
        await model.aclose()
    request = next(span for span in found if span["kind"] == "request")
    assert 0 < request["attributes"]["gen_ai.response.time_to_first_chunk"] <= request["seconds"]


async def test_what_was_stopped_is_cancelled_and_the_run_interrupted(tmp_path: Path) -> None:
    class Silent(ScriptedBackend):
        async def complete(self, messages: Messages, **more: Any) -> Completion:
            agent.interrupt()
            await asyncio.Event().wait()
            raise AssertionError("nothing wakes it")

    services = HostServices(trace=tmp_path / "t.jsonl")
    async with AsyncAgent(workspace=tmp_path, model=Silent([]), services=services) as agent:
        await agent.run("Do it.")
    found = spans(tmp_path / "t.jsonl")
    assert [(span["kind"], span.get("error")) for span in found] == [
        ("run", "interrupted"),
        ("turn", None),
        ("request", "cancelled"),
    ]


# What was said


SECRET = {"pin": {"type": str, "secret": True}}
TALK = ('(unlock :pin "hunter22")\n(echo :text "password=abcdefgh")', "Open, by hunter22.")


async def test_without_content_no_word_is_in_a_trace(tmp_path: Path) -> None:
    await traced(tmp_path)
    text = (tmp_path / "t.jsonl").read_text()
    said = ("Lead me", "Help", "All done", "hunter22", "is wrong", "a.txt", "(len", "There is one")
    assert [word for word in said if word in text] == []


async def test_with_content_prompts_arguments_and_results_are_there_and_no_secret(tmp_path: Path) -> None:
    unlock = tool("unlock", lambda pin: f"opened with {pin}", params=SECRET)
    found = await traced(tmp_path, scripted(*TALK), tools=[unlock], trace_content=True, consent="yes")
    first, second = [span["attributes"] for span in found if span["kind"] == "request"]
    assert first["gen_ai.input.messages"][-1] == {
        "role": "user",
        "parts": [{"type": "text", "content": "Lead me."}],
    }
    (answer,) = second["gen_ai.output.messages"]
    assert answer["parts"][0]["content"] == "Open, by [secret]."
    unlocked, echoed = [span["attributes"] for span in found if span["kind"] == "call"]
    assert unlocked["gen_ai.tool.call.arguments"] == '(unlock :pin "[secret]")'
    assert unlocked["gen_ai.tool.call.result"] == '"opened with [secret]"'
    assert echoed["gen_ai.tool.call.result"] == '"password=[secret]"'
    text = (tmp_path / "t.jsonl").read_text()
    assert "hunter22" not in text
    assert "abcdefgh" not in text


# The file


def test_the_command_line_appends_to_a_file_of_the_user(tmp_path: Path) -> None:
    files(tmp_path, {"m.txt": "(list-files)\n---\nOne."})
    for _ in range(2):
        ran = quoth("run", "Look.", "--model", "scripted:m.txt", "--trace", "t.jsonl", cwd=tmp_path)
        assert (ran.code, ran.out) == (0, "One.\n")
    found = spans(tmp_path / "t.jsonl")
    assert [span["kind"] for span in found] == 2 * ["run", "turn", "request", "call", "turn", "request"]
    assert len({span["trace"] for span in found}) == 2
    assert stat.S_IMODE((tmp_path / "t.jsonl").stat().st_mode) == 0o600


def test_the_steps_of_a_flight_are_in_its_span(tmp_path: Path) -> None:
    plan = "* PLAN One\n#+begin_src hy\n(list-files)\n#+end_src\n"
    files(tmp_path, {"plan.org": plan})
    quoth("fly", "plan.org", "--trace", "t.jsonl", cwd=tmp_path)
    flight, *rest = spans(tmp_path / "t.jsonl")
    assert (flight["name"], flight["parent"]) == ("invoke_workflow flight", None)
    assert tree([flight, *rest])[-1].strip() == "execute_tool list-files"
    assert {span["trace"] for span in rest} == {flight["trace"]}


BAD = [
    (
        ["--trace", "no/t.jsonl"],
        f"The trace FOLDER/no/t.jsonl {CANNOT_BE_WRITTEN}: No such file or directory.",
    ),
    (["--trace-content"], "--trace-content (trace_content=True) needs --trace FILE (trace=…)."),
]


@pytest.mark.parametrize(("words", "sentence"), BAD, ids=["no folder", "content alone"])
def test_a_trace_that_cannot_be_is_refused_before_the_run(
    words: list[str], sentence: str, tmp_path: Path
) -> None:
    ran = quoth("run", "Look.", "--model", "scripted:m.txt", *words, cwd=tmp_path)
    assert (ran.code, ran.err) == (2, f"quoth: {sentence.replace('FOLDER', str(tmp_path))}\n")


async def test_a_file_that_goes_away_hurts_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    model, services = scripted("(list-files)", "Two."), HostServices(trace=folder / "t.jsonl")
    async with AsyncAgent(workspace=tmp_path, model=model, services=services) as agent:
        (folder / "t.jsonl").unlink()
        folder.rmdir()
        assert (await agent.run("Look.")).text == "Two."
    sentence = f"The trace {folder / 't.jsonl'} is incomplete: No such file or directory."
    assert [record.getMessage() for record in caplog.records] == [sentence]


# OpenTelemetry


@pytest.fixture(scope="module")
def collected() -> Any:
    """What the program's own providers collect of spans and metrics."""
    from opentelemetry import metrics, trace
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    kept, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader]))
    return kept, reader, trace.get_tracer("program")


async def test_opentelemetry_gets_the_same_spans_within_the_programs_own(
    collected: Any, tmp_path: Path
) -> None:
    kept, reader, program = collected
    lines = await traced(tmp_path)
    with program.start_as_current_span("program"):
        async with AsyncAgent(
            workspace=tmp_path / "home",
            model=lead_and_help(),
            tools=[tool("fail", fail, effects=["reads"])],
            services=HostServices(trace="otel", trace_content=True),
        ) as agent:
            await agent.run("Lead me.")
    found = sorted(kept.get_finished_spans(), key=lambda span: span.start_time)
    as_lines = [
        {"span": one.context.span_id, "parent": one.parent and one.parent.span_id, "name": one.name}
        for one in found
    ]
    assert tree(as_lines) == ["program", *(f"  {line}" for line in tree(lines))]
    assert [one.name for one in found if one.status.status_code.name == "ERROR"] == ["execute_tool fail"]
    request = next(one for one in found if one.name == "chat scripted")
    assert request.kind.name == "CLIENT"
    assert json.loads(request.attributes["gen_ai.input.messages"])[-1]["role"] == "user"
    measured = {
        metric.name: sum(point.sum for point in metric.data.data_points)
        for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
    }
    assert measured["gen_ai.client.token.usage"] == 5 * (10 + 2)
    assert measured["gen_ai.client.operation.duration"] > 0


def test_without_the_extra_a_sentence_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(__import__("sys").modules, "quoth.agent.trace.otel", None)
    with pytest.raises(
        UsageError, match=re.escape(f"OpenTelemetry {IS_NOT_INSTALLED}: {install_extra('otel')}")
    ):
        Agent(workspace=tmp_path, services=HostServices(trace="otel"))


ALONE = """
import sys
from quoth import Agent, ScriptedBackend
from quoth.tools.installing import install_extra
with Agent(workspace=".", model=ScriptedBackend(["(list-files)", "Done."])) as agent:
    agent.run("Look.")
print([name for name in sys.modules if name.startswith("quoth.agent.trace.")])
"""


def test_where_nothing_is_traced_no_tracer_is_imported(tmp_path: Path) -> None:
    files(tmp_path, {"alone.py": ALONE})
    ran = quoth("alone.py", cwd=tmp_path, bare=True)
    assert ran.out == "['quoth.agent.trace.opening']\n", ran.err
