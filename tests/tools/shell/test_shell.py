"""The tools shell and process: programs of this machine, to their end or in the background."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sentences import (
    DID_NOT_FINISH_WITHIN,
    DOES_MORE_THAN_READ,
    IS_OUTSIDE_THE_WORKSPACE,
    IT_IS_CALLED_AS,
    WAS_ENDED_BY,
)
from words import agent, async_agent, files, started, story, wait_until

from quoth.agent.client import Agent
from quoth.agent.events import AgentEvent
from quoth.tools.call.call import ToolResult
from quoth.tools.errors import ToolError
from quoth.tools.lisp.printer import print_value
from quoth.tools.shell import background, boundary
from quoth.tools.shell.background import Background
from quoth.tools.shell.program import OutputLines, plain
from quoth.tools.shell.running import CapturedOutput, Running

KEY = "sk-abcdefghijklmnop"


@pytest.fixture
def heard() -> list[AgentEvent]:
    return []


@pytest.fixture
def here(tmp_path: Path, heard: list[AgentEvent]) -> Iterator[Agent]:
    (tmp_path / "shop").mkdir()
    with agent(tmp_path / "shop", consent="yes", on_event=heard.append) as made:
        yield made


def sh(script: str, **more: Any) -> str:
    options = "".join(f" :{name} {print_value(value)}" for name, value in more.items())
    return f'(shell :argv ["sh" "-c" {print_value(script)}]{options})'


def value(result: ToolResult) -> Any:
    assert result.ok, result.message
    return result.value


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


# What comes of a program

ENDS: dict[str, tuple[str, dict[str, Any], str]] = {
    # the call: its value, and what is said beside it
    '(shell :argv ["echo" "a  b" "*"])': ({"exit": 0, "output": "a  b *\n"}, ""),
    sh("echo one; echo two >&2; echo three; exit 3"): ({"exit": 3, "output": "one\ntwo\nthree\n"}, ""),
    '(shell :argv ["cat"] :stdin "as it is\\n")': ({"exit": 0, "output": "as it is\n"}, ""),
    '(shell :argv ["true"] :stdin "which nobody reads")': ({"exit": 0, "output": ""}, ""),
    '(shell :argv ["pwd"] :cwd "src")': ({"exit": 0, "output": "{shop}/src\n"}, ""),
    '(shell :argv ["./run.sh" "x"] :cwd "src")': ({"exit": 0, "output": "ran x\n"}, ""),
    sh("printf '\\033[31mred\\r\\n\\a\\377'"): ({"exit": 0, "output": "\\x1b[31mred\n\\x07\\xff"}, ""),
    sh("kill -TERM $$"): ({"exit": 143, "output": ""}, f"sh {WAS_ENDED_BY} SIGTERM."),
    '(shell :argv ["cat" "|" "wc"])': (
        {"exit": 1, "output": "cat: '|': No such file or directory\ncat: wc: No such file or directory\n"},
        'No shell reads :argv: | was an ordinary argument. To use a shell: ["sh" "-c" "…"].',
    ),
    '(shell :argv ["ls" "*.py"])': (
        {"exit": 2, "output": "ls: cannot access '*.py': No such file or directory\n"},
        'No shell reads :argv: *.py was an ordinary argument. To use a shell: ["sh" "-c" "…"].',
    ),
    sh("echo 'Could not resolve host: example.org'; exit 6"): (
        {"exit": 6, "output": "Could not resolve host: example.org\n"},
        "It had no network; :network True requests it.",
    ),
}  # fmt: skip


def test_a_result_is_the_exit_code_and_what_was_written_in_its_order(here: Agent, tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    files(shop, {"src/run.sh": '#!/bin/sh\necho ran "$@"\n'})
    (shop / "src/run.sh").chmod(0o755)
    for call, (wanted, said) in ENDS.items():
        result = here.call(call)
        wanted = {**wanted, "output": wanted["output"].replace("{shop}", str(shop))}
        assert (value(result), result.message) == (wanted, said), call
    assert here.call('(shell :argv ["true"])').side_effects == ("ran:true",)


NO_PROGRAM = 'There is no program to run: the first item of :argv names it, as in ["git" "status"].'
MISTAKES = {
    "(shell :argv [])": NO_PROGRAM,
    '(shell :argv [" "])': NO_PROGRAM,
    '(shell :argv ["gti" "log"])': 'There is no program "gti" here. Did you mean git?',
    '(shell :argv ["git status"])': (
        'There is no program "git status" here. Each word is a separate item: ["git" "status"].'
    ),
    '(shell :argv ["cd" "src"])': (
        'There is no program "cd" here. It is a shell word: name the folder by :cwd.'
    ),
    '(shell :argv ["export" "A=1"])': (
        'There is no program "export" here. It is a shell word: a shell knows it,'
        ' ["sh" "-c" "export A=1"].'
    ),
    '(shell :argv ["A=1" "ls"])': (
        'There is no program "A=1" here. To set a variable, use env: ["env" "A=1" "ls"].'
    ),
    '(shell :argv ["./nothing"])': 'There is no program "./nothing" here.',
    '(shell :argv ["./notes.txt"])': '"./notes.txt" cannot be executed: put the program that runs it first.',
    '(shell :argv ["./src"])': '"./src" is a folder.',
    '(shell :argv ["ls" "a\\0b"])': "An item of :argv cannot contain a NUL character.",
    '(shell :argv ["ls"] :cwd "none")': "There is no folder none to run ls in.",
    '(shell :argv ["ls"] :cwd "..")': f"shell was denied: .. {IS_OUTSIDE_THE_WORKSPACE} {{root}}/shop.",
    '(shell :argv ["ls"] :timeout 0)': "shell: :timeout should be greater than or equal to 1, not 0.",
    '(shell :argv "git log")': 'shell: :argv should be list of str, not "git log" (write ["git" "log"]).',
    '(shell :argv "it\'s")': 'shell: :argv should be list of str, not "it\'s" (write ["it\'s"]).',
    '(process :id "none")': (
        'No program "none" runs in the background. None is running: background programs end with'
        ' their session.'
    ),
    '(process :id "read-file")': (
        'No program "read-file" runs in the background. None is running: background programs end with'
        ' their session.'
        " read-file is a tool: (read-file :path …)"
    ),
}  # fmt: skip


def test_each_mistake_is_one_sentence_that_helps(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    files(tmp_path / "shop", {"notes.txt": "", "src/a": ""})
    with agent(tmp_path / "shop") as here:
        for call, sentence in MISTAKES.items():
            said = here.call(call).message.partition(f" {IT_IS_CALLED_AS}")[0]
            assert said == sentence.replace("{root}", str(tmp_path)), call
        assert here.broker.requests() == [], "nobody is asked in vain"


def test_a_program_that_takes_too_long_is_ended_and_its_output_told(here: Agent, tmp_path: Path) -> None:
    script = "echo begun; setsid sleep 100 & echo $! > child; sleep 100"
    result = here.call(sh(script, timeout=1))
    assert (result.status, result.message) == (
        "timeout",
        f"sh {DID_NOT_FINISH_WITHIN} 1 s, and was stopped. The end of its output:\nbegun",
    )
    assert "sleep 100" not in processes(tmp_path / "shop")


def processes(workspace: Path) -> str:
    """The command lines of what runs in a workspace."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cwd").readlink() == workspace:
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return "\n".join(found)


def test_a_program_ends_its_call_though_it_leaves_another_with_the_output_open(
    here: Agent, tmp_path: Path
) -> None:
    assert value(here.call(sh("sleep 100 & echo done"))) == {"exit": 0, "output": "done\n"}
    assert processes(tmp_path / "shop") == ""


async def test_a_cancelled_call_leaves_nothing(tmp_path: Path) -> None:
    async with async_agent(tmp_path, consent="yes") as here:
        call = asyncio.create_task(here.call(sh("echo x > begun; sleep 100")))
        while not (tmp_path / "begun").exists():
            await asyncio.sleep(0.01)
        assert "sleep 100" in processes(tmp_path), "so that this test could fail"
        call.cancel()
        await asyncio.wait({call})
    assert processes(tmp_path) == ""


# What a person sees meanwhile


def test_output_is_told_by_whole_lines_as_it_comes_and_kept_once(
    here: Agent, heard: list[AgentEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    script = f"echo {KEY}; printf 'half '; sleep 0.2; echo line; env | grep -c API_KEY"
    output = value(here.call(sh(script)))["output"]
    assert output == f"{KEY}\nhalf line\n0\n", "no key of the environment is passed"
    told = "".join(event.data for event in heard if event.kind == "output")
    assert told == "[secret]\nhalf line\n0\n"
    assert [event.data for event in heard if event.kind == "output"][-1] == "", "it has ended"
    stored = [json.dumps(event.data) for event in here._agent.transcript.events(here.session)]
    assert sum("half line" in text for text in stored) == 1


def test_a_private_key_is_not_told_though_it_comes_line_by_line() -> None:
    told: list[str] = []
    lines = OutputLines(told.append)
    for piece in (
        "a\n-----BEGIN RSA PRIVATE KEY-----\n",
        "MIIB\nxyz\n",
        "-----END RSA PRIVATE KEY-----\nb",
        "\n",
    ):
        lines.add(piece.encode())
    assert "".join(told) == "a\n[secret]\nb\n"


def test_of_too_much_the_beginning_and_the_end_are_kept() -> None:
    output = CapturedOutput(20)
    for number in range(10):
        output.add(b"%d23456\n" % number)
    assert output.text == "023456\n123\n[50 bytes not kept]\n56\n923456\n"


def test_plain_text_stays_as_it_is_and_what_a_terminal_obeys_is_visible() -> None:
    assert plain("Grüße, 世界\n\tok\n") == "Grüße, 世界\n\tok\n"
    assert plain("a\x1b]0;title\x07\x9b2J\u202eb\r\nc\rd") == "a\\x1b]0;title\\x07\\x9b2J\\u202eb\nc\\x0dd"


def test_a_model_sees_head_and_tail_of_a_long_output_and_more_shows_the_rest(tmp_path: Path) -> None:
    told = story(tmp_path, sh("seq 1 9999; exit 1"), "It failed.", consent="yes")
    seen = told.shown(2)
    assert '{"exit" 1}\noutput:\n1\n2\n' in seen
    assert "\n9998\n9999" in seen
    assert '(more :id "' in seen


# In the background


def test_a_program_in_the_background_goes_on_until_it_is_ended(here: Agent, tmp_path: Path) -> None:
    begun = here.call(sh("echo begun; read x; setsid sleep 100 & sleep 100", background=True))
    id = value(begun)["id"]
    assert begun.message == f'(process :id "{id}") shows its output; it ends with this session.'
    wait_until(lambda: value(here.call(f'(process "{id}")')).get("output") == "begun\n")
    assert value(here.call(f'(process "{id}" "wait" :timeout 0)')) == {"running": True, "output": "begun\n"}
    assert here.call(f'(process "{id[:-1]}")').message.endswith(f"Did you mean {id}?")
    assert value(here.call(f'(process "{id}" "kill")')) == {"exit": 137, "output": "begun\n"}
    assert processes(tmp_path / "shop") == ""
    none = here.call('(shell :argv ["cat"] :stdin "x" :background True)')
    assert none.message == "A program in the background has no input: leave :stdin out."
    ends = value(here.call(sh("echo over; exit 4", background=True)))["id"]
    assert value(here.call(f'(process "{ends}" :operation "wait")')) == {"exit": 4, "output": "over\n"}
    assert value(here.call(f'(eval (get (process :id "{ends}") "exit"))')) == 4
    dry = here.eval(f'(process "{ends}" "kill")', dry_run=True)
    assert f"kill {DOES_MORE_THAN_READ}" in f"{dry.value}{dry.message}"


def test_what_is_in_the_background_is_bounded_and_ends_with_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "MOST", 2)
    with agent(tmp_path, consent="yes") as here:
        ids = [value(here.call(sh("sleep 100", background=True)))["id"]]
        assert here.call('(process :id "?")').message.endswith(f"There is {ids[0]} (runs).")
        ids.append(value(here.call(sh("sleep 100", background=True)))["id"])
        said = here.call(sh("sleep 100", background=True)).message
        assert said == (
            "2 programs run in the background, the maximum: end one. "
            f"There are {ids[0]} (runs), {ids[1]} (runs)."
        )
        assert "sleep 100" in processes(tmp_path)
    assert processes(tmp_path) == ""


async def test_programs_that_have_ended_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "MOST", 1)
    programs = Background()
    done = asyncio.create_task(asyncio.sleep(0))
    await done
    for number in range(3):
        programs.require_room()
        programs._programs[str(number)] = replace(OF_NOTHING, reading=done)
    with pytest.raises(ToolError, match='No program "0"'):
        programs.look("0")
    assert list(programs._programs) == ["1", "2"]


OF_NOTHING: Any = background._Program("x", None, None, CapturedOutput(1), None)  # type: ignore[arg-type]


def test_all_of_it_ends_when_quoth_is_killed(tmp_path: Path) -> None:
    program = f"(do {sh('sleep 100; true', background=True)} {sh('sleep 100; true')})"
    with started("eval", program, "--yes", cwd=tmp_path) as running:
        wait_until(lambda: processes(tmp_path).splitlines().count("sleep 100 ") == 2)
        running.process.kill()
    wait_until(lambda: processes(tmp_path) == "", 10)


# Who is asked


@pytest.fixture
def unconfined(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("QUOTH_BOUNDARY", "none")
    boundary._found.cache_clear()
    yield
    boundary._found.cache_clear()


WHY = "no boundary confines it, so it can do everything that you can do (QUOTH_BOUNDARY is"


@pytest.mark.usefixtures("unconfined")
def test_where_nothing_confines_programs_a_person_is_asked_each_time(tmp_path: Path) -> None:
    rules = files(tmp_path, {"rules.hy": "(allow (shell))\n(allow (effects :runs))"}) / "rules.hy"
    call = '(shell :argv ["echo" "hi"])'
    with agent(tmp_path, policy=rules, session="s") as here:
        waits = here.call(call)
        assert (waits.status, WHY in waits.message) == ("pending", True)
        here.broker.decide(here.broker.requests()[0].id, decision("scope", rule="(allow (shell))"))
        assert value(here.call(call)) == {"exit": 0, "output": "hi\n"}, "the very call that was granted"
        for _ in range(2):
            assert here.call(call.replace("hi", "ho")).status == "pending", "no grant answers for another"
            here.broker.decide(here.broker.requests()[0].id, decision("once"))
            assert value(here.call(call.replace("hi", "ho"))) == {"exit": 0, "output": "ho\n"}
    with agent(tmp_path, policy=rules, consent="yes") as here:
        assert value(here.call(call)) == {"exit": 0, "output": "hi\n"}


def decision(kind: Any, **more: Any) -> Any:
    from quoth.tools.consent.requests import Decision

    return Decision(kind, "ann", **more)


NETWORK = {
    # what allows: whether it allows a program without the network, and with it
    "(allow (shell))": (True, False),
    "(allow _)": (True, False),
    '(allow (shell :argv ["echo" ...]))': (True, False),
    "(allow (effects :runs))": (True, False),
    '(allow (shell :argv ["echo" ...] :network True))': (False, True),
    "(allow (shell :network _))": (True, True),
    "(allow (shell)) (deny (shell :network True))": (True, False),
}


@pytest.mark.parametrize("rules", NETWORK)
def test_no_rule_allows_the_network_that_does_not_name_it(rules: str, tmp_path: Path) -> None:
    file = files(tmp_path, {"rules.hy": rules}) / "rules.hy"
    with agent(tmp_path, policy=file) as here:
        told = [here.call(f'(shell :argv ["echo" "x"]{more})') for more in ("", " :network True")]
    assert tuple(result.ok for result in told) == NETWORK[rules]


def test_a_workspace_around_the_home_folder_is_refused_before_anybody_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/ann").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home/ann"))
    with agent(tmp_path) as here:
        result = here.call('(shell :argv ["ls"])')
    assert (result.status, "start in a project's folder" in result.message) == ("invalid", True)


async def test_how_a_program_ended_is_left_to_asyncio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    running = await Running.start(["true"], cwd=tmp_path, env={}, alone=True)
    monkeypatch.setattr(subprocess.Popen, "poll", lambda self: asked.append(self))  # it would take it away
    assert running.process.stdout is not None
    assert await running.process.stdout.read() == b""
    assert await running.ended() == 0
    await running.put_away()
    assert asked == []


def test_a_program_may_not_change_the_code_of_the_tools(tmp_path: Path) -> None:
    own = '(require quoth [def-cognitive-tool])\n(def-cognitive-tool own "Say 1." :body 1)\n'
    files(tmp_path, {"own/tools.hy": own})
    script = "cat own/tools.hy; echo '(evil)' >> own/tools.hy; mv own away; true"
    with agent(tmp_path, tools=[tmp_path / "own/tools.hy"], consent="yes") as it:
        said = value(it.call(f'(shell :argv ["sh" "-c" "{script}"])'))["output"]
    assert said.startswith(own)
    assert (tmp_path / "own/tools.hy").read_text() == own


def test_a_program_may_decide_nothing(here: Agent) -> None:
    assert value(here.call('(shell :argv ["printenv" "QUOTH_INSIDE"])'))["output"] == "1\n"
    assert not os.environ.get("QUOTH_INSIDE")
