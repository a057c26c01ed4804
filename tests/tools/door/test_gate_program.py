"""A gate that is a program: it is asked about every call, gets it as JSON without secrets, and whatever it
does but exit with 0 denies the call."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from sentences import BELONGS_TO_QUOTH_ITSELF_AND, CANNOT_BE_READ, IT_DID_NOT_ANSWER_WITHIN
from words import Spy, complaint, files, gateway, quoth, shipped, tool

from quoth import PolicyOptions
from quoth.agent.run.options import kept
from quoth.tools.call.call import GateDecision
from quoth.tools.door.user_gates import GateProgram, gate_words
from quoth.tools.errors import UsageError

SH = "/bin/sh"
TEXT = {"x": {"type": str}}


def asked(script: str, *tools: Any, form: str = '(probe :x "hello")', **parts: Any) -> Any:
    """What becomes of a call that this shell script judges, and its body."""
    body = Spy("done")
    here = gateway(
        *(tools or (tool(params=TEXT, body=lambda x: body()),)),
        gate_programs=[GateProgram([SH, "-c", script])],
        **parts,
    )
    return here.pass_through(form), body


ANSWERS = {
    "it allows": ("exit 0", "ok", ""),
    "it denies": ("echo no >&2; exit 2", "denied", "probe was denied: no."),
    "it denies on stdout": ("echo never; exit 2", "denied", "probe was denied: never."),
    "it denies without a word": ("exit 2", "denied", "probe was denied: sh denied it without a reason."),
    "it says what a terminal obeys": (
        r"printf '\033[2Jgone' >&2; exit 2",
        "denied",
        r"probe was denied: \x1b[2Jgone.",
    ),
    "it fails": (
        "echo oh >&2; exit 1",
        "denied",
        "probe was denied: the gate failed (sh exited with code 1).",
    ),
    "it crashes": (
        r"printf 'Traceback:\n  line 1\nValueError: oh\n' >&2; exit 1",
        "denied",
        "probe was denied: the gate failed (sh exited with code 1).",
    ),
    "it is killed": (
        "kill -9 $$",
        "denied",
        "probe was denied: the gate failed (sh was killed by signal 9).",
    ),
    "it reads nothing": ("exec <&-; exit 0", "ok", ""),
    "it talks without end": ("yes | head -c 1000000; exit 2", "denied", "probe was denied: y"),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_only_an_exit_with_0_allows_a_call(answer: str) -> None:
    script, status, message = ANSWERS[answer]
    result, body = asked(script)
    assert (result.status, body.ran) == (status, status == "ok")
    assert result.message.startswith(message)


def test_a_program_that_is_late_or_not_there_denies_and_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(GateProgram, "seconds", 0.5)
    result, body = asked(f"setsid sleep 60 & echo $! > {tmp_path}/child; sleep 60")
    assert result.message == f"probe was denied: the gate failed ({IT_DID_NOT_ANSWER_WITHIN} 0.5 s)."
    assert not body.ran
    assert not Path(f"/proc/{(tmp_path / 'child').read_text().strip()}").exists()
    here = gateway(tool(), gate_programs=[GateProgram(["/nowhere/gate"])])
    assert here.pass_through("(probe)").message.startswith(
        "probe was denied: the gate failed (gate cannot be started: "
    )


def test_it_fails_closed_whatever_the_tool_says() -> None:
    open_tool = tool(params=TEXT, body=lambda x: x, gate=True, gate_failure="open")
    assert asked("exit 1", open_tool)[0].status == "denied"


def test_the_own_gate_of_a_tool_is_asked_behind_it() -> None:
    class Never:
        async def check(self, *_: Any) -> GateDecision:
            return GateDecision(False, "not today")

    gated = tool(params=TEXT, body=lambda x: x, gate=True)
    assert asked("exit 0", gated, gate=Never())[0].message == "probe was denied: not today."
    assert asked("echo mine; exit 2", gated, gate=Never())[0].message == "probe was denied: mine."


def test_what_it_is_told_has_no_secrets_and_is_whole(tmp_path: Path) -> None:
    text = f"password: hunter2 {'x' * 50_000}"
    login = tool(
        "login",
        params={"key": {"type": str, "secret": True}, "text": {"type": str}},
        body=lambda key, text: "in",
        effects=[],
    )
    form = f'(login :key "sesame" :text "{text} sesame")'
    result, _ = asked(f"cat > {tmp_path}/asked", login, form=form)
    assert result.ok, result.message
    told = json.loads((tmp_path / "asked").read_text())
    assert told["args"] == {
        "key": "[secret]",
        "text": f"password: [secret] {'x' * 50_000} [secret]",
    }
    assert {name: told[name] for name in ("tool", "effects", "depth", "route")} == {
        "tool": "login",
        "effects": [],
        "depth": 0,
        "route": "python",
    }
    assert told["digest"] == result.audit["digest"]
    assert "sesame" not in (tmp_path / "asked").read_text()


def test_the_calls_of_a_program_are_asked_too(tmp_path: Path) -> None:
    place = files(tmp_path, {"a.txt": "a"})
    script = 'read -r call; case "$call" in *\'"tool": "read-file"\'*) echo never >&2; exit 2;; esac'
    here = shipped(place, gate_programs=[GateProgram([SH, "-c", script])])
    assert here.pass_through("(eval (+ 1 2))").value == 3
    assert "never" in here.pass_through('(eval (read-file :path "a.txt"))').message


# How it is named


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("", "The gate names no program; an example is ./gate.py --strict."),
        ("'x", f"The gate {CANNOT_BE_READ}: no closing quotation; it is 'x"),
        ("no-such-gate --x", "The gate: program no-such-gate not found."),
        ("./plain.txt", "The gate: ./plain.txt cannot be run; make it executable with chmod +x."),
    ],
)
def test_what_is_no_program_is_told(tmp_path: Path, given: str, sentence: str, monkeypatch: Any) -> None:
    monkeypatch.chdir(files(tmp_path, {"plain.txt": ""}))
    assert complaint(UsageError, lambda: gate_words(given, "The gate")) == sentence


def test_its_files_are_named_whole_and_no_tool_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = files(tmp_path, {"gate.py": "import sys; sys.exit('write' in sys.stdin.read() and 2)"})
    monkeypatch.chdir(place)
    words = gate_words(f"{sys.executable} gate.py strict", "The gate")
    assert words == (str(Path(sys.executable).absolute()), str(place / "gate.py"), "strict")
    assert kept("policy", PolicyOptions(gate_command=words))["gate-command"].endswith("gate.py strict")
    write = '(write-file :path "gate.py" :content "import sys")'
    said = quoth("call", write, "--yes", "--gate-command", "/bin/true gate.py", cwd=place)
    assert said.err == f"quoth: error: gate.py {BELONGS_TO_QUOTH_ITSELF_AND}.\n"


def test_it_is_kept_with_the_session_and_asked_when_that_goes_on(tmp_path: Path) -> None:
    write = '(write-file :path "a.txt" :content "a")'
    gate = "#!/bin/sh\necho asked >> asked.txt\n"
    place = files(tmp_path, {"gate.sh": gate, "s.replies": f"{write}\n---\nDone."})
    (place / "gate.sh").chmod(0o755)
    run = ("run", "x", "--model", "scripted:s.replies", "--session", "s1", "--no-input")
    assert quoth(*run, "--gate-command", "./gate.sh", cwd=place).code == 3
    assert (place / "asked.txt").read_text() == "asked\n"
    (request,) = json.loads(quoth("pending", "--json", cwd=place).out)
    assert quoth("approve", request["id"], "--resume", cwd=place).out == "Done.\n"
    assert (place / "asked.txt").read_text() == "asked\nasked\n"
    assert (place / "a.txt").read_text() == "a"
