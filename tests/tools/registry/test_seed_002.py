"""The second seed to the letter: a strict typed registry, ``register(name, InputModel)`` as a decorator,
``dispatch(name, raw_input)``, and ``echo`` on a fresh import."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from pydantic import Field, SecretStr, ValidationError, computed_field, model_validator
from sentences import THERE_IS_ALREADY_A_TOOL, THERE_IS_NO_TOOL_NAMED
from words import agent, complaint

from quoth import (
    DefinitionError,
    DuplicateToolError,
    EchoToolInput,
    EchoToolOutput,
    InvalidCallError,
    Registry,
    StrictModel,
    ToolContext,
    ToolError,
    ToolTable,
    UnknownToolError,
    Workspace,
    belt,
    cognitive_tool,
    dispatch,
    echo_tool,
    register,
    registering_in,
    registry,
)
from quoth.testing import tool_context


class GreetInput(StrictModel):
    name: str = Field(description="Whose", min_length=1)
    times: int = Field(default=1, le=3)

    @model_validator(mode="after")
    def _not_nobody(self) -> GreetInput:
        if self.name == "nobody":
            raise ValueError("nobody is not greeted")
        return self


class GreetOutput(StrictModel):
    said: list[str]
    at: datetime


@pytest.fixture
def greeting() -> Registry:
    private = Registry()

    @private.register("greet", GreetInput)
    def greet(given: GreetInput) -> GreetOutput:
        """Greet somebody."""
        return GreetOutput(said=[f"Hello, {given.name}"] * given.times, at=datetime(2026, 1, 2))

    return private


def test_echo_is_dispatched_on_a_fresh_import() -> None:
    program = 'from quoth import dispatch; print(repr(dispatch("echo", {"text": "hi"})))'
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("EchoToolOutput(text='hi')\n", "")


def test_echo_takes_and_gives_models_too() -> None:
    assert dispatch("echo", EchoToolInput(text="hi")) == EchoToolOutput(text="hi")
    assert issubclass(EchoToolInput, StrictModel)
    assert issubclass(EchoToolOutput, StrictModel)
    assert registry.table.get("echo") is echo_tool
    assert "echo" in registry.names()


def test_a_call_gives_the_model_that_the_function_declares(greeting: Registry) -> None:
    assert greeting.dispatch("greet", {"name": "ann", "times": 2}) == GreetOutput(
        said=["Hello, ann"] * 2, at=datetime(2026, 1, 2)
    )
    assert greeting.names() == ["greet"]


async def test_a_coroutine_may_dispatch_too(greeting: Registry) -> None:
    assert greeting.dispatch("greet", {"name": "ann"}).said == ["Hello, ann"]
    assert (await asyncio.to_thread(greeting.dispatch, "greet", {"name": "ben"})).said == ["Hello, ben"]


@pytest.mark.parametrize(
    "raw", [{}, {"name": 1}, {"name": "ann", "tims": 1}, {"name": "ann", "times": "1"}, {"name": "nobody"}]
)
def test_bad_input_is_pydantics_own_error(greeting: Registry, raw: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        greeting.dispatch("greet", raw)


def test_an_unknown_tool_is_a_key_error_with_the_nearest_name(greeting: Registry) -> None:
    said = complaint(UnknownToolError, lambda: greeting.dispatch("gret", {}))
    assert said == f"{THERE_IS_NO_TOOL_NAMED} gret. Did you mean greet?"
    assert issubclass(UnknownToolError, KeyError)


def test_a_name_is_registered_once(greeting: Registry) -> None:
    def again(given: GreetInput) -> str:
        """Greet."""
        return given.name

    said = complaint(DuplicateToolError, lambda: greeting.register("greet", GreetInput)(again))
    assert said.startswith(f"{THERE_IS_ALREADY_A_TOOL} greet, defined at ")
    assert issubclass(DuplicateToolError, ValueError)
    greeting.register("greet", GreetInput, replace=True)(again)
    assert greeting.dispatch("greet", {"name": "ann"}) == "ann"


def test_the_tool_is_as_any_other_for_an_agent(greeting: Registry, tmp_path) -> None:  # type: ignore[no-untyped-def]
    greet = greeting.table.get("greet")
    shown = belt(greeting.table)
    assert "Parameters: :name str (Whose), :times int = 1" in shown
    assert 'Returns: {"said" list of str "at" datetime}' in shown
    with agent(tmp_path, tools=[greet]) as it:
        assert it.call('(greet "ann")').value == {"said": ["Hello, ann"], "at": "2026-01-02T00:00:00"}
        said = it.call('(greet :name "nobody")')
        assert (said.status, said.message.split(".")[0]) == ("invalid", "greet: nobody is not greeted")
        assert it.call('(greet "ann" 4)').message.startswith(
            "greet: :times should be less than or equal to 3"
        )


def test_what_a_tool_returns_is_checked(greeting: Registry) -> None:
    @greeting.register("wrong", GreetInput)
    async def wrong(given: GreetInput) -> GreetOutput:
        """Return what it does not declare."""
        return {"said": given.name}  # type: ignore[return-value]

    said = complaint(ToolError, lambda: greeting.dispatch("wrong", {"name": "ann"}))
    assert said.startswith('wrong returned a value in which ["said"] is a str, ')


def test_register_and_dispatch_are_of_the_current_table() -> None:
    with registering_in(ToolTable()) as table:

        @register("shout", EchoToolInput)
        def shout(given: EchoToolInput) -> str:
            """Say it aloud."""
            return given.text.upper()

        assert dispatch("shout", {"text": "hi"}) == "HI"
        assert table.names() == ["shout"]
    assert "shout" not in registry.names()


def test_what_is_no_model_and_no_function_of_one_is_told() -> None:
    with registering_in(ToolTable()):
        said = complaint(DefinitionError, lambda: register("x", dict))  # type: ignore[arg-type]
        assert said == "x: its input is a pydantic model, such as a StrictModel; not <class 'dict'>."
        two = complaint(DefinitionError, lambda: register("x", GreetInput, description="X.")(lambda a, b: a))
        assert two == "x: its function takes one GreetInput, and not 2 parameters."


def test_a_tool_without_an_input_model_names_its_arguments() -> None:
    with pytest.raises(InvalidCallError, match=":pattern is missing"):
        dispatch("grep-search", {})


class Login(StrictModel):
    name: str
    key: SecretStr


class Area(StrictModel):
    width: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def square(self) -> int:
        return self.width**2


def test_a_secret_value_arrives() -> None:
    private = Registry()

    @private.register("log-in", Login)
    def log_in(given: Login) -> str:
        """Log in."""
        return given.key.get_secret_value()[::-1]

    assert private.dispatch("log-in", Login(name="ann", key=SecretStr("xyzzy"))) == "yzzyx"
    assert private.dispatch("log-in", {"name": "ann", "key": SecretStr("xyzzy")}) == "yzzyx"
    assert private.dispatch("log-in", {"name": "ann", "key": "xyzzy"}) == "yzzyx"


def test_a_value_is_the_one_that_the_function_returns(tmp_path: Path) -> None:
    runs = []

    def area() -> Area:
        """Measure."""
        runs.append(1)
        return Area(width=3)

    def place() -> Path:
        """Say where."""
        return tmp_path / "a.txt"

    def places() -> list[Path]:
        """Say where."""
        return [tmp_path / "a.txt"]

    private = Registry()
    with registering_in(private.table):
        for function in (area, place, places):
            cognitive_tool(function)
    context = tool_context(tmp_path, tools=private.table)
    for given in (context, ToolContext(Workspace(tmp_path))):
        assert private.dispatch("area", {}, given) == Area(width=3)
        assert private.dispatch("place", {}, given) == tmp_path / "a.txt"
        assert private.dispatch("places", {}, given) == [tmp_path / "a.txt"]
    assert len(runs) == 2
