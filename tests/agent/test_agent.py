"""Agent and AsyncAgent: opened, used from anywhere, closed to the last process; and what they refuse."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    EXPECTED_ONE_FORM_FOUND_A,
    HAS_NO_VALUE,
    IS_NEVER_CLOSED,
    IS_NOT_A_FOLDER,
    IT_WRITES_FILES,
    ITS_NAME_MUST_END,
    THE_TASK_IS_EMPTY,
    THERE_IS_ALREADY_A_TOOL,
    THERE_IS_NO_FILE,
)
from words import (
    TalkingFunction,
    agent,
    async_agent,
    complaint,
    files,
    sandboxes,
    scripted,
    table_of,
    threads,
    tool,
)

from quoth import Agent, HostServices
from quoth.agent.events import AgentEvent
from quoth.neuro.backends.base import Completion
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.call import ALLOW, Call, Verdict, deny
from quoth.tools.call.ports import MemoryAudit
from quoth.tools.errors import DuplicateToolError, UsageError
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.storage.paths import store_path

GREET = """
(require quoth [def-cognitive-tool])
(def-cognitive-tool greet "Greet somebody."
  :parameters [who {:type str}]
  :body (+ "Hello, " who))
"""


pytestmark = pytest.mark.usefixtures("nothing_is_left_running")


# Opened and closed


def test_an_agent_calls_evaluates_and_runs(tmp_path: Path) -> None:
    with agent(tmp_path, "Done.") as it:
        assert it.call('(echo :text "hi")').value == "hi"
        assert it.eval("(+ 1 2)").value == 3
        assert it.run("Do it.").text == "Done."
        assert [row["route"] for row in it.audit.rows()] == ["python", "python"]


async def test_an_async_agent_does_the_same(tmp_path: Path) -> None:
    async with async_agent(tmp_path, "Done.") as it:
        assert (await it.call('(echo :text "hi")')).value == "hi"
        assert (await it.eval("(+ 1 2)")).value == 3
        assert (await it.run("Do it.")).text == "Done."


def test_the_sandbox_starts_with_the_first_program_and_ends_with_the_agent(tmp_path: Path) -> None:
    before = sandboxes()  # a fixture of other tests may hold one
    with agent(tmp_path) as it:
        it.call('(echo :text "hi")')
        assert sandboxes() == before
        it.eval("1")
        assert sandboxes() > before
    assert sandboxes() == before


def test_the_thread_of_an_agent_ends_with_it(tmp_path: Path) -> None:
    before = threads()
    it = agent(tmp_path)
    assert threads() == before + 1
    it.close()
    assert threads() == before


def test_closing_twice_is_once(tmp_path: Path) -> None:
    it = agent(tmp_path)
    it.eval("1")
    it.close()
    it.close()
    with it:
        pass


async def test_closing_an_async_agent_twice_is_once(tmp_path: Path) -> None:
    it = async_agent(tmp_path)
    await it.eval("1")
    await it.aclose()
    await it.aclose()


@pytest.mark.parametrize("use", ["call", "eval", "run", "say"])
def test_a_closed_agent_says_so_and_starts_nothing(tmp_path: Path, use: str) -> None:
    it = agent(tmp_path, "Done.")
    it.close()
    assert complaint(UsageError, lambda: getattr(it, use)("(echo 1)")) == "This agent is closed."
    it.interrupt()


@pytest.mark.parametrize("use", ["call", "eval", "run", "say"])
async def test_a_closed_async_agent_says_so_and_starts_nothing(tmp_path: Path, use: str) -> None:
    it = async_agent(tmp_path, "Done.")
    await it.aclose()
    with pytest.raises(UsageError) as raised:
        await getattr(it, use)("(echo 1)")
    assert str(raised.value) == "This agent is closed."


def test_an_agent_is_closed_when_its_block_raises(tmp_path: Path) -> None:
    def use() -> None:
        with agent(tmp_path) as it:
            it.eval("1")
            raise RuntimeError("enough")

    assert complaint(RuntimeError, use) == "enough"


def test_an_agent_that_cannot_be_made_leaves_no_thread(tmp_path: Path) -> None:
    complaint(UsageError, lambda: Agent(workspace=tmp_path / "none"))


class Closing(TalkingFunction):
    """A model that remembers being closed."""

    tool_view, context = "", None

    def __init__(self) -> None:
        super().__init__(lambda messages: "Done.")
        self.closed = 0

    async def aclose(self) -> None:
        self.closed += 1
        raise OSError("it does not want to")


def test_a_model_that_was_given_is_not_closed(tmp_path: Path) -> None:
    model = Closing()
    with Agent(workspace=tmp_path, model=model, services=HostServices(audit=MemoryAudit())) as it:
        it.run("Do it.")
    assert model.closed == 0


def test_an_agent_whose_model_fails_to_close_is_closed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Closing()
    monkeypatch.setattr("quoth.agent.run.models.choose_backend", lambda *_, **__: model)
    it = Agent(workspace=tmp_path, model="scripted:any", services=HostServices(audit=MemoryAudit()))
    it.run("Do it.")
    it.eval("1")
    with pytest.raises(OSError, match="it does not want to"):
        it.close()
    assert model.closed == 1
    it.close()


def test_an_agent_that_did_nothing_leaves_nothing_on_disk(tmp_path: Path, state: Path) -> None:
    with Agent(workspace=tmp_path, model=scripted()):
        pass
    assert list(state.iterdir()) == []


def test_rows_of_two_agents_in_one_workspace_lie_in_one_store(tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        with Agent(workspace=tmp_path, user=name, session="s-" + name) as it:
            it.call('(echo :text "hi")')
    with Agent(workspace=tmp_path) as it:
        assert [(row["user"], row["session"]) for row in it.audit.rows()] == [
            ("ann", "s-ann"),
            ("bob", "s-bob"),
        ]
    assert store_path(tmp_path).exists()
    assert list(tmp_path.iterdir()) == []


# What it is made of


def test_tools_are_files_or_tools_made_in_python(tmp_path: Path) -> None:
    files(tmp_path, {"greet.hy": GREET})
    mine = tool("mine", lambda: "mine")
    with agent(tmp_path, tools=[tmp_path / "greet.hy", mine]) as it:
        assert it.call('(greet :who "Ann")').value == "Hello, Ann"
        assert it.call("(mine)").value == "mine"
        assert it.call('(echo :text "still")').value == "still"
    with agent(tmp_path) as other:
        assert other.call("(mine)").status == "unknown"
        assert other.call('(greet :who "Ann")').status == "unknown"


def test_a_table_replaces_the_tools_that_ship(tmp_path: Path) -> None:
    with agent(tmp_path, tools=table_of(tool("mine"))) as it:
        assert it.table.names() == ["mine"]
        assert it.call('(echo :text "hi")').status == "unknown"


def test_the_same_tool_given_twice_is_once_and_another_of_its_name_is_refused(tmp_path: Path) -> None:
    mine: CognitiveTool = tool("mine")
    agent(tmp_path, tools=[mine, mine]).close()
    said = complaint(DuplicateToolError, lambda: agent(tmp_path, tools=[mine, tool("mine")]))
    assert said.startswith(f"{THERE_IS_ALREADY_A_TOOL} mine, defined at {mine.place}; write replace=True ")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"workspace": "/no/such/folder"}, f"The workspace /no/such/folder {IS_NOT_A_FOLDER}."),
        ({"limits": 5}, "limits are RunLimits(steps=10, …), not 5."),
        ({"model": 5}, "model is a spec, a Backend or ModelOptions(…), not 5."),
        ({"tools": 5}, "tools are files of tools, functions or a ToolTable, not 5."),
        ({"tools": ["x.txt"]}, f"x.txt is not a tool file: {ITS_NAME_MUST_END} or .py."),
        ({"tools": ["none.hy"]}, f"{THERE_IS_NO_FILE} none.hy."),
        ({"tools": [42]}, "42 is not a tool; tools are .hy and .py files, functions and methods."),
        ({"consent": "no"}, "consent is \"yes\", None or an object with a method request, not 'no'."),
        ({"user": "b\ud83d"}, r"The user b\ud83d contains an invalid character (an unpaired surrogate)."),
        ({"session": "\udcff"}, r"The session \udcff contains an invalid character (an unpaired surrogate)."),
        ({"consent": True}, 'consent is "yes", None or an object with a method request, not True.'),
    ],
)
def test_what_cannot_be_used_is_told_in_a_sentence(options: dict[str, Any], sentence: str) -> None:
    assert complaint(UsageError, lambda: Agent(**options)) == sentence


def test_a_workspace_that_is_a_file_is_no_workspace(tmp_path: Path) -> None:
    files(tmp_path, {"a": "x"})
    assert complaint(UsageError, lambda: Agent(workspace=tmp_path / "a")) == (
        f"The workspace {tmp_path / 'a'} {IS_NOT_A_FOLDER}."
    )


def test_without_any_model_the_three_ways_are_named_at_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.neuro.backends.weights.local_available", lambda: None)
    with Agent(workspace=tmp_path) as it:
        assert it.eval("(+ 1 2)").value == 3
        sentence = complaint(UsageError, lambda: it.run("Do it."))
    assert "--model" in sentence
    assert "OPENAI_API_KEY" in sentence
    assert "or run: quoth models get local. To list all: quoth models" in sentence


@pytest.mark.parametrize("task", ["", "  \n"])
def test_an_empty_task_is_refused_before_the_model_is_asked(tmp_path: Path, task: str) -> None:
    with agent(tmp_path) as it:
        assert complaint(UsageError, lambda: it.run(task)) == f"{THE_TASK_IS_EMPTY}."


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("", "line 1, column 1: there is no form here; write one, like (name :key value)\n\n^"),
        (
            '(echo :text "a") (echo)',
            f"line 1, column 18: {EXPECTED_ONE_FORM_FOUND_A}; give one at a time\n"
            '(echo :text "a") (echo)\n                 ^',
        ),
        ("(echo", f"line 1, column 1: this ( {IS_NEVER_CLOSED}; add ) at the end\n(echo\n^"),
        ("[1 2]", 'A call is a form such as (echo :text "hi"); this is [1 2].'),
        ("(echo :text)", f"In (echo …) the argument :text {HAS_NO_VALUE}."),
    ],
)
def test_a_form_that_is_no_call_is_an_invalid_result(tmp_path: Path, form: str, message: str) -> None:
    with agent(tmp_path) as it:
        result = it.call(form)
    assert (result.status, result.message) == ("invalid", message)


# Consent


class Person:
    """Somebody who answers, and remembers what was asked."""

    def __init__(self, answer: Verdict | None) -> None:
        self.answer = answer
        self.asked: list[str] = []

    async def request(self, tool: CognitiveTool, call: Call, reason: str) -> Verdict | None:
        self.asked.append(f"{call.form} because {reason}")
        return self.answer


WRITE = '(write-file :path "a" :content "x")'


@pytest.mark.parametrize(
    ("consent", "status"),
    [
        ("yes", "ok"),
        (None, "pending"),
        (Person(ALLOW), "ok"),
        (Person(deny("not today")), "denied"),
        (Person(None), "pending"),
    ],
)
def test_consent_decides_what_is_asked(tmp_path: Path, consent: Any, status: str) -> None:
    with agent(tmp_path, consent=consent) as it:
        assert it.call(WRITE).status == status
    assert (tmp_path / "a").exists() is (status == "ok")


def test_a_person_is_shown_the_whole_form_and_the_reason(tmp_path: Path) -> None:
    person = Person(ALLOW)
    with agent(tmp_path, consent=person) as it:
        it.call('(read-file :path "a")')
        it.call(WRITE)
    assert person.asked == [f"{WRITE} because {IT_WRITES_FILES}"]


# Conversations


def heard(request: bytes) -> list[str]:
    return [message["content"] for message in json.loads(request) if message["role"] == "user"]


def test_say_goes_on_and_run_begins_anew(tmp_path: Path) -> None:
    model = scripted("One.", "Two.", "Three.", "Four.", "Five.")
    with Agent(workspace=tmp_path, model=model, services=HostServices(audit=MemoryAudit())) as it:
        it.say("first")
        it.say("second")
        it.run("apart")
        it.say("third")
        it.forget()
        it.say("new")
    said = [
        [word for word in ("first", "second", "apart", "third", "new") if word in heard(request)]
        for request in model.seen
    ]
    assert said == [["first"], ["first", "second"], ["apart"], ["first", "second", "third"], ["new"]]


def test_a_task_with_bytes_that_are_no_text_does_not_hurt(tmp_path: Path) -> None:
    with agent(tmp_path, "Done.") as it:
        assert it.run("look at \udcff").text == "Done."


# Threads, loops, interrupts


def test_many_threads_may_use_one_agent(tmp_path: Path) -> None:
    values: list[Any] = []
    with agent(tmp_path) as it:
        workers = [
            threading.Thread(target=lambda n=n: values.append(it.eval(f"(* {n} {n})").value))
            for n in range(8)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(it.audit.rows()) == 8
    assert sorted(values) == [n * n for n in range(8)]


async def test_an_agent_may_be_used_where_a_loop_is_running(tmp_path: Path) -> None:
    with agent(tmp_path, "Done.") as it:
        assert it.run("Do it.").text == "Done."


def test_a_tool_may_use_its_own_agent(tmp_path: Path) -> None:
    held: list[Agent] = []
    with agent(tmp_path, tools=[tool("inner", lambda: held[0].eval("(+ 1 2)").value)]) as it:
        held.append(it)
        assert it.call("(inner)").value == 3


def test_a_listener_that_waits_for_its_own_agent_is_told_instead_of_hanging(tmp_path: Path) -> None:
    said: list[str] = []

    def listener(event: AgentEvent) -> None:
        said.append(complaint(UsageError, lambda: it.eval("1")))

    with agent(tmp_path, "Done.", on_event=listener) as it:
        assert it.run("Do it.").text == "Done."
    assert set(said) == {"A listener or an async tool cannot wait for its own agent; use AsyncAgent there."}


def test_an_interrupt_from_another_thread_ends_a_run(tmp_path: Path) -> None:
    thinking = threading.Event()

    async def reply(messages: Messages) -> str:
        thinking.set()
        await asyncio.Event().wait()
        return "never"

    with Agent(
        workspace=tmp_path, model=TalkingFunction(reply), services=HostServices(audit=MemoryAudit())
    ) as it:
        threading.Thread(target=lambda: thinking.wait(60) and it.interrupt()).start()
        assert it.run("Do it.").status == "interrupted"


def test_ctrl_c_reaches_the_caller_and_cancels_the_call(tmp_path: Path) -> None:
    running, ended = threading.Event(), threading.Event()

    async def slow() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with agent(tmp_path, tools=table_of(tool("slow", slow))) as it:
        main = threading.main_thread().ident
        assert main
        threading.Thread(target=lambda: running.wait(60) and signal.pthread_kill(main, signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            it.call("(slow)")
        assert ended.wait(60)
        assert it.call("(slow-down)").status == "unknown"
        assert [row["status"] for row in it.audit.rows()] == ["cancelled", "unknown"]


def test_ctrl_c_while_the_work_is_handed_over_cancels_it_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, ended = threading.Event(), threading.Event()
    hand_over = asyncio.run_coroutine_threadsafe

    async def slow() -> None:
        running.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    def interrupted(*work: Any) -> Any:
        hand_over(*work)
        running.wait(60)
        raise KeyboardInterrupt

    with agent(tmp_path, tools=table_of(tool("slow", slow, timeout=3600))) as it:
        with monkeypatch.context() as patch:
            patch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
            with pytest.raises(KeyboardInterrupt):
                it.call("(slow)")
        assert ended.wait(60)
        assert it.call("(slow-down)").status == "unknown"
        assert [row["status"] for row in it.audit.rows()] == ["cancelled", "unknown"]


def test_closing_an_agent_ends_what_other_threads_are_waiting_for(tmp_path: Path) -> None:
    begun = threading.Semaphore(0)

    async def slow() -> None:
        begun.release()
        await asyncio.sleep(3600)

    tools = table_of(tool("slow", slow, timeout=7200))
    with agent(tmp_path, "(slow)", "(slow)", tools=tools) as it, ThreadPoolExecutor() as pool:
        run, streamed = pool.submit(it.run, "Go."), pool.submit(lambda: list(it.stream("Go.")))
        called = pool.submit(it.call, "(slow)")
        for _ in range(3):
            begun.acquire()
        it.close()
        assert run.result(60).status == "interrupted"
        assert streamed.result(60)[-1].kind == "end"
        with pytest.raises(CancelledError):
            called.result(60)


def test_a_completion_is_all_a_model_needs_to_give(tmp_path: Path) -> None:
    class Model:
        name = "mine"
        takes_grammar = True

        async def complete(self, messages: Messages, **options: Any) -> Completion:
            return Completion("Done.")

        async def aclose(self) -> None:
            """Nothing to free."""

    with Agent(workspace=tmp_path, model=Model(), services=HostServices(audit=MemoryAudit())) as it:
        assert it.run("Do it.").text == "Done."
