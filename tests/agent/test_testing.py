"""What users test their tools with: a context, a model, a person, and fixtures of pytest."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from sentences import IS_NOT_A_FOLDER
from words import complaint, files

import quoth
from quoth import (
    Agent,
    DefinitionError,
    InvalidCallError,
    Registry,
    StrictModel,
    ToolContext,
    ToolError,
    UsageError,
    ask,
    cognitive_tool,
)
from quoth.testing import FakeModel, InMemoryStore, dispatch, memory_conforms, tool_context
from quoth.tools.errors import ToolFailure


def double(number: int, ctx: ToolContext) -> int:
    """Double a number."""
    ctx.effect(f"doubled:{number}")
    return 2 * number


# Seed 004: "Testing Tools with Mock Context"


async def test_block_tool() -> None:
    ctx = tool_context()
    result = await ctx.call("block", operation="append", label="test", content="test value")
    assert result["success"]
    assert (await ctx.memory.get_block("test")).text == "test value"  # type: ignore[union-attr]


def test_a_call_is_one_line() -> None:
    assert dispatch("block", {"operation": "append", "label": "test", "content": "test value"})["success"]
    assert quoth.dispatch("block", {"operation": "list"}, tool_context())["success"]


# A context


def test_a_function_is_called_with_a_context_or_through_its_door() -> None:
    ctx = tool_context(tools=[double])
    assert double(21, ctx) == 42
    assert ctx.side_effects == ["doubled:21"]
    assert dispatch("double", {"number": 4}, ctx) == 8


def test_one_tool_needs_no_list_and_a_function_no_name(tmp_path: Path) -> None:
    ctx = tool_context(tools=double)
    assert dispatch(double, {"number": 4}, ctx) == 8
    hy = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool one "One." :body 1)\n'
    assert dispatch("one", context=tool_context(tools=files(tmp_path, {"one.hy": hy}) / "one.hy")) == 1
    assert complaint(DefinitionError, lambda: dispatch(7)).startswith("7 is not a function")  # type: ignore[arg-type]


def test_without_tools_a_context_has_those_of_the_process() -> None:
    with quoth.registering_in(quoth.ToolTable()):
        cognitive_tool(double)
        assert dispatch("double", {"number": 4}) == 8


def test_errors_are_those_of_dispatch() -> None:
    class Asked(StrictModel):
        text: str

    registry = Registry()

    @registry.register("shout", Asked)
    def shout(given: Asked) -> str:
        """Shout."""
        return given.text.upper()

    ctx = tool_context(tools=registry.table)
    assert registry.dispatch("shout", {"text": "a"}, ctx) == dispatch("shout", {"text": "a"}, ctx) == "A"
    with pytest.raises(ValidationError):
        dispatch("shout", {"text": 1}, ctx)
    with pytest.raises(InvalidCallError):
        dispatch("double", {"number": "x"}, tool_context(tools=[double]))
    assert "Did you mean" in complaint(quoth.UnknownToolError, lambda: dispatch("blok", {}))


class OnlyReads:
    """A memory with the one method that the test's tool calls."""

    async def get_block(self, label: str) -> Any:
        return label.upper()


async def test_a_mock_needs_the_methods_it_is_asked_for_and_no_more() -> None:
    ctx = tool_context(memory=OnlyReads())
    assert await ctx.memory.get_block("a") == "A"
    with pytest.raises(AttributeError, match="list_blocks"):
        await ctx.memory.list_blocks()
    assert complaint(UsageError, lambda: quoth.Services(memory=OnlyReads())).startswith("Services(memory=…)")  # type: ignore[arg-type]


async def test_a_person_allows_refuses_and_answers() -> None:
    def guarded() -> str:
        """Ask first."""
        return "done"

    guarded = cognitive_tool(guard=lambda: ask("may I?"))(guarded)  # type: ignore[assignment]
    ctx = tool_context(tools=[guarded])
    assert await ctx.call("guarded") == "done"
    assert ctx.person.asked == [("(guarded)", "may I?")]
    with pytest.raises(ToolError, match="the person says no"):
        await tool_context(tools=[guarded], allows=False).call("guarded")
    ctx = tool_context(answers=["8080"])
    assert await ctx.call("ask-person", question="Which port?") == "8080"
    assert ctx.person.asked[-1] == ("Which port?", "")
    with pytest.raises(ToolError, match="No answer to 'Which port\\?' is left"):
        await ctx.call("ask-person", question="Which port?")
    await ctx.permission.request("edit", "it is yours")
    with pytest.raises(ToolFailure):
        await tool_context(allows=False).permission.request("edit", "it is yours")


async def test_messages_searches_limits_and_files_are_those_of_the_test() -> None:
    ctx = tool_context(user="ann", confidence=0.5)
    assert (ctx.user, ctx.confidence) == ("ann", 0.5)
    await ctx.call("send-message", message="Hello.")
    assert ctx.sent == [("user", "Hello.")]
    assert "your router has its own" in complaint(UsageError, lambda: tool_context(router=1).sent)
    await ctx.call("recall", operation="insert", label="notes", content="The project timeline.")
    assert [hit["label"] for hit in (await ctx.call("search", query="timeline"))["hits"]] == ["notes"]
    await ctx.call("write-file", path="a.txt", content="x")
    assert (Path(ctx.workspace.root) / "a.txt").read_text() == "x"
    seldom = cognitive_tool(daily_limit=1, cooldown=60)(lambda_free)
    ctx = tool_context(tools=[seldom])
    assert [await ctx.call("lambda-free"), await ctx.call("lambda-free")] == [1, 1]


def lambda_free() -> int:
    """Return one."""
    return 1


def test_the_folder_of_a_context_goes_with_it() -> None:
    import gc

    ctx = tool_context()
    root = Path(ctx.workspace.root)
    assert root.is_dir()
    del ctx
    gc.collect()
    assert not root.exists()


def test_a_workspace_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none", files(tmp_path, {"a.txt": ""}) / "a.txt"):
        assert complaint(UsageError, lambda path=path: tool_context(path)) == (
            f"The workspace {path} {IS_NOT_A_FOLDER}."
        )


def test_a_name_that_a_context_does_not_take_is_told_with_the_nearest() -> None:
    assert complaint(UsageError, lambda: tool_context(memry=1)) == (
        "tool_context takes no memry. Did you mean memory?"
    )


def test_the_memory_of_tests_does_what_tools_expect() -> None:
    tables: dict[str, dict[Any, Any]] = {"blocks": {}, "versions": {}, "shares": {}}
    memory_conforms(lambda agent_id: InMemoryStore(agent_id, tables=tables))


# A model


async def test_a_fake_model_answers_tools_and_agents(tmp_path: Path) -> None:
    model = FakeModel("Short.", "Shorter.")
    ctx = tool_context(model=model)
    assert await ctx.model.complete("Sum up.", system="Be brief.") == "Short."
    assert await ctx.call("think", prompt="Once more.") == "Shorter."
    assert model.asked == ["Sum up.", "Once more."]
    with pytest.raises(quoth.ModelError, match="it has 2 replies"):
        await model.complete("And?")
    echo = FakeModel(lambda messages: f"You said {[*messages][-1]['content']}")
    with Agent(workspace=tmp_path, model=echo) as agent:
        assert agent.run("hi").text.startswith("You said ")
    assert "hi" in echo.asked[0]


async def test_a_fake_model_gives_texts_and_functions_in_their_order() -> None:
    async def later(messages: Any) -> str:
        return f"c {len([*messages])}"

    model = FakeModel("a", lambda messages: f"b {len([*messages])}", later, {"text": "d"})
    assert [await model.complete("x") for _ in range(4)] == ["a", "b 2", "c 2", "d"]
    with pytest.raises(quoth.ModelError, match="4 replies"):
        await model.complete("x")
    first = FakeModel(lambda messages: "a", "b")
    assert [await first.complete("x"), await first.complete("x")] == ["a", "b"]


# pytest

TEST = '''
from pathlib import Path
from quoth import cognitive_tool, tool_of

def double(number: int) -> int:
    """Double a number."""
    return 2 * number

def test_an_agent(quoth_agent, tmp_path):
    agent = quoth_agent("(double :number 21)", "It is 42.", tools=[double])
    assert agent.run("What is 21 doubled?").text == "It is 42."
    assert agent.call('(write-file :path "a.txt" :content "x")').ok
    assert (tmp_path / "a.txt").read_text() == "x"
    assert quoth_agent(consent=None).call('(write-file :path "b.txt" :content "x")').status == "pending"

async def call(ctx):
    return await ctx.call("list-files")

def test_a_context(quoth_context, tmp_path):
    import asyncio
    (tmp_path / "a.txt").touch()
    assert asyncio.run(call(quoth_context)) == ["a.txt"]
'''


def test_pytest_finds_the_fixtures(tmp_path: Path) -> None:
    files(tmp_path, {"test_mine.py": TEST, "pytest.ini": "[pytest]\n"})
    known = entry_points(group="pytest11", name="quoth_agent")  # not in an install from before there was one
    plugin = [] if known else ["-p", "quoth.agent.pytest_plugin"]
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, "test_mine.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_the_plugin_imports_nothing_of_ours_before_it_is_used() -> None:
    program = (
        "import sys, quoth.agent.pytest_plugin; "
        "print([name for name in sys.modules if name.startswith('quoth')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['quoth', 'quoth.agent', 'quoth.agent.pytest_plugin']\n"


def test_the_names_of_testing_are_those_it_lists() -> None:
    import quoth.testing as testing

    assert testing.__all__ == sorted(testing.__all__) == dir(testing)
    assert all(getattr(testing, name) is not None for name in testing.__all__)
    with pytest.raises(AttributeError, match=r"module 'quoth\.testing' has no attribute 'Fake'"):
        testing.Fake  # noqa: B018
