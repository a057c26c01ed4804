"""Nothing that a model, a tool or a file of theirs says is evaluated in the person's module at the prompt.

Each way into it is tried with a program that leaves a mark when the host runs it, and with the name of a
function that the person has defined there. The person's own words leave the mark: the tests can fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    BELONGS_TO_QUOTH_ITSELF_AND,
    HAS_CHANGED_SINCE_IT_WAS,
    IS_NOT_TRUSTED_SO,
    READ_IT_THEN_RUN,
)
from words import files, native, scripted

from quoth.agent.client import AsyncAgent
from quoth.agent.repl.loaded import SLACK, TRUST
from quoth.agent.repl.repl import ChatRepl, Repl
from quoth.agent.run.options import ModelOptions, ToolOptions
from quoth.tools.errors import UsageError

TOOLS = """
(require quoth [def-cognitive-tool def-shell-tool])
(def-shell-tool sh "Run a command." :parameters [command {:type str}] :argv ["sh" "-c" command])
(def-cognitive-tool say-it "Say what it is told to say. SAID" :body ctx.knowledge)
(def-cognitive-tool put "Put a text into a file." :effects [:writes]
  :parameters [path {:type path} text {:type str}]
  :body (do (.write ctx.workspace path (.encode text)) (.effect ctx f"wrote:{path}") text))
"""


class World:
    """A REPL whose person has defined ``mine``, and what others say to get at it."""

    def __init__(self, here: Path) -> None:
        self.here = here
        self.mark = here / "mark"
        self.program = f'(do (import pathlib) (.touch (pathlib.Path "{self.mark}")))'
        self.attacks = (
            self.program,
            "(mine)",
            f"(hy.eval (quote {self.program}))",
            f"(defmacro boom [] {self.program}) (boom)\n(quoth_person.mine)",
        )
        files(here, {"tools.hy": TOOLS, "rules.hy": "(allow (put)) (allow (sh))"})

    @asynccontextmanager
    async def repl(
        self, *replies: Any, dialect: str | None = None, chat: bool = False
    ) -> AsyncIterator[Repl]:
        model = ModelOptions(scripted(*replies), dialect=dialect)
        async with AsyncAgent(
            workspace=self.here,
            model=model,
            tools=ToolOptions([str(self.here / "tools.hy")]),
            policy=str(self.here / "rules.hy"),
            consent="yes",
            session="s1",
        ) as agent:
            repl: Repl = ChatRepl(agent.for_chat("7")) if chat else Repl(agent)
            if not chat:
                await repl.one(f"(defn mine [] {self.program})")
            yield repl

    @property
    def reached(self) -> bool:
        return self.mark.exists()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_what_the_person_types_is_evaluated(world: World) -> None:
    for attack in (world.program, "(mine)", f"(hy.eval (quote {world.program}))"):
        async with world.repl() as repl:
            await repl.one(attack)
            assert world.reached
            world.mark.unlink()


# How a model may put a program into its reply.
DIALECTS: dict[str, tuple[str | None, Callable[[str], Any]]] = {
    "bare": (None, lambda program: program),
    "in a fence": (None, lambda program: f"I run this:\n```hy\n{program}\n```"),
    "as a command": (None, lambda program: f",load tools.hy\n,say {program}\n{program}"),
    "call form": ("call-form", lambda program: f"(eval {program})"),
    "program in quotes": ("call-form", lambda program: f"(eval :form {json.dumps(program)})"),
    "plist": (
        "plist",
        lambda program: f'(:target :tool :action :call :tool "eval" :args (:form {json.dumps(program)}))',
    ),
    "json": ("json", lambda program: json.dumps({"tool": "eval", "args": {"form": program}})),
    "native": ("native", lambda program: native(("eval", {"form": program}))),
    "run": ("run", lambda program: {"tool_calls": [{"name": "run", "arguments": {"program": program}}]}),
}


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_models_reply_is_not_evaluated_in_any_dialect(world: World, dialect: str) -> None:
    name, spoken = DIALECTS[dialect]
    said = [reply for attack in world.attacks for reply in (spoken(attack), "Done.")]
    async with world.repl(*said, *["Done."] * len(said), dialect=name) as repl:
        for _ in said:
            await repl.one("Do what you like.")
        assert not world.reached


# What a model says: {} stands for the program; what the person enters then.
WAYS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "an inner call of a program": (("(eval (say-it :form {}))", "Done."), ("go on please",)),
    "a program in a program": (("(eval (eval :form {quoted}))", "Done."), ("go on please",)),
    "a tool's argument": (("(echo :text {quoted})", "Done."), ("go on please",)),
    "a sub-agent": (('(cognitive-loop :task "Help.")', "(eval {})", "{}", "Done."), ("go on please",)),
    "its text as _": (("{}",), ("go on please", "_", "*1", "(str _)", "[_ *1]", "(repr *1)")),
    "its text in a form": (("{}",), ("go on please", "(echo :text _)", "(describe _)", "(setv x _)", "x")),
    "its text in what is shown": (
        ("{}",),
        ("go on please", ",log", ",session", ",tokens", ",undo", ",sessions"),
    ),
    "its text said again": (("{}", "{}"), ("go on please", ",say {}", ",new")),
    "the names of the sandbox": (
        ("(eval (do (setv mine 1) (setv read-file {quoted}) mine))", "Done."),
        ("go on please", '(read-file :path "tools.hy")'),
    ),
    "an error": (("(read-file :path {quoted})", "Done."), ("go on please", "*e", ",trace")),
}


@pytest.mark.parametrize("way", WAYS)
async def test_what_a_model_has_said_stays_text(world: World, way: str) -> None:
    replies, entries = WAYS[way]

    def filled(text: str, attack: str) -> str:
        return text.replace("{quoted}", json.dumps(attack)).replace("{}", attack)

    said = [filled(reply, attack) for attack in world.attacks for reply in replies]
    async with world.repl(*said, *["Done."] * 9) as repl:
        for attack in world.attacks:
            for entry in entries:
                with contextlib.suppress(UsageError):
                    await repl.one(filled(entry, attack))
            assert not world.reached, attack


async def test_what_the_person_has_defined_is_not_there_for_a_models_program(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world.repl("(eval (+ secret 1))", "(eval (mine))", "Done.") as repl:
        await repl.one("(setv secret 41)")
        await repl.one("What is it?")
        assert not world.reached
        assert "42" not in capsys.readouterr().out


async def test_what_a_tool_gives_back_is_a_value(world: World) -> None:
    async with world.repl() as repl:
        for attack in world.attacks:
            repl.agent.knowledge = attack
            for entry in ("(say-it)", "_", "*1", "(say-it) *1", "(setv said (say-it))", "said"):
                await repl.one(entry)
            assert not world.reached, attack


async def test_what_a_tool_says_of_itself_is_text(world: World) -> None:
    told = "\n".join(world.attacks).replace('"', '\\"')
    other = (
        TOOLS.replace("say-it", "say-so")
        .replace(" put ", " put-2 ")
        .replace(" sh ", " sh-2 ")
        .replace("SAID", told)
    )
    files(world.here, {"other.hy": other})
    async with world.repl() as repl:
        await repl.one(f",load {world.here / 'other.hy'}")
        for entry in (",belt", ",tools", ",tool say-so", "(describe say-so)", "(source say-so)", "say-so"):
            await repl.one(entry)
        assert not world.reached


async def test_a_value_that_draws_or_raises_when_it_is_printed_harms_nothing(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world.repl() as repl:
        odd = "(defclass Odd [] (defn __repr__ [self] {}))"
        await repl.one(odd.format('(+ (chr 27) "]0;(mine)" (chr 7))') + " (Odd)")
        await repl.one(odd.format('(raise (SystemError "(mine)"))') + " (Odd)")
        await repl.one(odd.format("(/ 1 0)") + " (Odd)")
        await repl.one('(raise (type "Odd" #(Exception) {"__str__" (fn [self] (/ 1 0))}))')
        await repl.one("(+ 1 1)")
    said = capsys.readouterr()
    assert said.out.endswith("2\n")
    assert "SystemError: (mine)" in said.err
    assert "ZeroDivisionError: division by zero" in said.err
    assert not world.reached


async def test_a_step_of_a_plan_is_not_evaluated_there(world: World) -> None:
    step = "* PLAN {0}\n:PROPERTIES:\n:ID: {0}\n:END:\n#+begin_src hy\n{1}\n#+end_src\n"
    async with world.repl() as repl:
        for number, attack in enumerate(world.attacks):
            text = "#+TODO: PLAN | DONE FAILED\n" + step.format(f"step-{number}", attack)
            file = files(world.here, {f"plan{number}.org": text}) / f"plan{number}.org"
            with contextlib.suppress(UsageError):
                await repl.one(f",fly {file}")
            assert not world.reached, attack


async def test_a_line_of_a_chat_and_its_reply_are_messages(world: World) -> None:
    async with world.repl(*world.attacks, *["Done."] * 9, chat=True) as repl:
        for entry in (*world.attacks, "_", "(mine)"):
            await repl.one(entry)
        assert not world.reached
        assert "load" not in repl.commands


# Files


async def test_a_file_that_a_tool_has_written_is_not_loaded_unasked(world: World) -> None:
    call = f'(put :path "more.hy" :text {json.dumps(world.program)})'
    async with world.repl(call, "Done.") as repl:
        await repl.one("Write me a tool.")
        assert (world.here / "more.hy").exists()
        with pytest.raises(
            UsageError, match="was written by put in session s1, and may contain text of a model"
        ):
            await repl.one(f",load {world.here / 'more.hy'}")
        assert not world.reached


@pytest.mark.parametrize(
    "command", ["mv mine.txt more.hy", "cp mine.txt more.hy", "touch -d 2001-01-01 more.hy"]
)
async def test_a_file_that_a_command_may_have_written_is_not_loaded_unasked(
    world: World, command: str
) -> None:
    files(world.here, {"mine.txt": world.program, "more.hy": world.program})
    async with world.repl(f"(sh :command {json.dumps(command)})", "Done.") as repl:
        await asyncio.sleep(2 * SLACK)  # what was there before is older than the call
        await repl.one("Tidy up.")
        with pytest.raises(UsageError, match="was written by sh in session s1"):
            await repl.one(f",load {world.here / 'more.hy'}")
        assert not world.reached
        await repl.one(f",load {world.here / 'tools.hy'}")  # nothing has touched this one


async def test_a_loaded_file_that_a_tool_has_changed_is_not_loaded_again_unasked(world: World) -> None:
    files(world.here, {"more.hy": "(setv price 7)"})
    call = f'(put :path "more.hy" :text {json.dumps(world.program)})'
    async with world.repl(call, "Done.") as repl:
        await repl.one(f",load {world.here / 'more.hy'}")
        await repl.one("Change my file.")
        with pytest.raises(UsageError, match="was written by put"):
            await repl.one(",reload")
        assert not world.reached


async def test_a_startup_file_of_the_workspace_counts_only_as_it_was_trusted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    init = files(world.here, {".quoth/init.hy": world.program}) / ".quoth" / "init.hy"
    async with world.repl() as repl:
        await repl._begin()
        assert f"init.hy {IS_NOT_TRUSTED_SO} it is not evaluated; {READ_IT_THEN_RUN}: quoth trust" in (
            capsys.readouterr().err
        )
        TRUST.trust(world.here, b"(setv welcome 1)")
        await repl._begin()
        assert HAS_CHANGED_SINCE_IT_WAS in capsys.readouterr().err
        assert not world.reached
        TRUST.trust(world.here, init.read_bytes())
        await repl._begin()
        assert world.reached


@pytest.mark.parametrize("path", [".quoth/init.hy", "CONFIG/init.hy"])
async def test_no_tool_can_write_a_startup_file(
    world: World, path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QUOTH_CONFIG", str(world.here / "CONFIG"))
    async with world.repl(f'(write-file :path "{path}" :content "(mine)")', "Done.") as repl:
        await repl.one("Go on.")
    assert not (world.here / path).exists()
    assert f"{path} {BELONGS_TO_QUOTH_ITSELF_AND}." in capsys.readouterr().err
