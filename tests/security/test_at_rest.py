"""What lies on the disk: no secret when a run has ended, nothing that others may read, and nothing that must
be written before it can be looked at."""

from __future__ import annotations

import ctypes
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentences import THE_CHAIN_IS_WHOLE
from words import Later, files, scripted, tool

from quoth import Agent, ModelOptions
from quoth.agent.cli import main as cli
from quoth.agent.repl.line import _history
from quoth.tools.call.call import ask
from quoth.tools.call.context import ToolContext, current_context
from quoth.tools.call.redaction import Redactor, redact_line, redact_url
from quoth.tools.consent.requests import Decision
from quoth.tools.errors import ToolError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.policy.files import Trust
from quoth.tools.sandbox.snapshots import _secret
from quoth.tools.storage.database import Store
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import private_folder, state_dir, store_path

# Secrets, when a run has ended

PIN = "hunter22"
LOGIN: dict[str, dict[str, Any]] = {
    "pin": {"secret": True},
    "code": {"type": int, "default": 0, "secret": True},
    "note": {"default": ""},
    "number": {"type": int, "default": 0},
    "path": {"default": "."},
}


def login(answer: Callable[..., Any] = lambda pin: "in", **options: Any) -> Any:
    """A tool with secrets. Its body gets what it needs of them."""
    return tool("login", answer, params=LOGIN, effects=["net"], **options)


def says(pin: str) -> str:
    context: ToolContext = current_context()
    context.say(f"{pin} was right")
    context.effect(f"login:{pin}")
    return "in"


def fails(pin: str) -> str:
    raise ToolError(f"{pin} is wrong.")


def on_disk(workspace: Path) -> bytes:
    """All of the store, as it lies there."""
    path = store_path(workspace)
    return b"".join(one.read_bytes() for one in path.parent.iterdir() if one.name.startswith(path.name))


ELSEWHERE = [
    ("the argument itself", f'(login :pin "{PIN}")', lambda pin: "in"),
    ("another argument", f'(login :pin "{PIN}" :note "my pin is {PIN}!")', lambda pin: "in"),
    ("a path", f'(login :pin "{PIN}" :path "src/{PIN}")', lambda pin: "in"),
    ("the value", f'(login :pin "{PIN}")', lambda pin: f"welcome, {pin}"),
    ("a value of parts", f'(login :pin "{PIN}")', lambda pin: {"said": [{"it": pin}]}),
    ("a key of a value", f'(login :pin "{PIN}")', lambda pin: {pin: 1}),
    ("the message", f'(login :pin "{PIN}")', says),
    ("an error", f'(login :pin "{PIN}")', fails),
    ("a program", f'(eval :form "(do (login :pin \\"{PIN}\\") (+ \\"{PIN}\\" \\"!\\"))")', lambda pin: pin),
]


@pytest.mark.parametrize(
    ("form", "answer"), [row[1:] for row in ELSEWHERE], ids=[row[0] for row in ELSEWHERE]
)
def test_a_declared_secret_is_nowhere_when_its_run_has_ended(tmp_path: Path, form: str, answer: Any) -> None:
    model = scripted(form, f"I used {PIN}.")
    with Agent(workspace=tmp_path, tools=[login(answer)], model=model, consent="yes", session="s1") as agent:
        assert agent.run("Log in.").status == "done"
    assert b"login" in on_disk(tmp_path)
    assert PIN.encode() not in on_disk(tmp_path)


def test_a_number_that_is_a_secret_is_nowhere_either(tmp_path: Path) -> None:
    form = '(login :pin "x" :code 73519462 :number 73519462 :note "73519462")'
    tools = [login(lambda code: {"code": code, "more": [code]})]
    with Agent(workspace=tmp_path, tools=tools, model=scripted(form, "Done."), consent="yes") as agent:
        assert agent.run("Log in.").status == "done"
    assert b"73519462" not in on_disk(tmp_path)


LOOKS = ["sk-abcdefghij0123456789", "ghp_0123456789abcdefghij", "https://ann:s3cretpw@h.example/x"]


@pytest.mark.parametrize("text", LOOKS)
def test_what_looks_like_a_secret_is_nowhere_when_its_run_has_ended(tmp_path: Path, text: str) -> None:
    secret = "s3cretpw" if "s3cretpw" in text else text
    files(tmp_path / "home", {"a.txt": f"{text}\n" + "x\n" * 40_000})
    model = scripted('(read-file :path "a.txt" :limit 100000)', f'(echo :text "{text}")', "Done.")
    with Agent(workspace=tmp_path / "home", model=model, consent="yes") as agent:
        assert agent.run(f"Look for {text}.").status == "done"
    assert secret.encode() not in on_disk(tmp_path / "home")


def test_a_run_that_waits_keeps_what_it_needs_and_then_forgets_it(tmp_path: Path) -> None:
    seen: list[str] = []
    asks = login(lambda pin: seen.append(pin) or pin, guard=lambda pin: ask(f"{pin} costs money"))
    options: dict[str, Any] = {"workspace": tmp_path, "tools": [asks], "session": "s1", "user": "ann"}
    form = f'(login :pin "{PIN}" :note "my pin is {PIN}")'
    with Agent(model=scripted(form), consent=Later(), **options) as agent:
        assert agent.run("Log in.").status == "pending"
    assert PIN.encode() in on_disk(tmp_path)
    with Agent(model=scripted("I am in."), **options) as agent:
        (asked,) = agent.broker.requests()
        agent.broker.decide(asked.id, Decision("once", "ann"))
        (reply,) = agent.resume()
        assert (reply.status, seen) == ("done", [PIN])
    assert PIN.encode() not in on_disk(tmp_path)


def test_a_call_of_a_person_forgets_its_secrets_too(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, tools=[login(lambda pin: pin)], model=None, consent="yes") as agent:
        assert agent.call(f'(login :pin "{PIN}" :note "{PIN}")').value == PIN
    assert PIN.encode() not in on_disk(tmp_path)


@pytest.mark.parametrize("value", [PIN, 'a"b\\c', "zwölf-ä", "12345", "line\nline", "[secret"])
def test_no_spelling_of_a_secret_is_left_in_a_record(value: str) -> None:
    params = login().params
    form = CallForm(
        "login", {"pin": value, "note": f"<{value}>", "path": Code(f'(f "{value}" :pin "{value}")')}
    )
    shown = str(Redactor(form, params, {"pin"}).form)
    assert value not in shown or value in "[secret]"
    person = str(Redactor(form, params, by_looks=False).form)
    assert "<" in person  # who decides sees the other arguments as they are


# Addresses of servers

URLS = [
    ("https://h.example/v1", "https://h.example/v1"),
    ("https://ann:pw@h.example/v1", "https://[secret]@h.example/v1"),
    ("https://token1234@h.example/v1", "https://[secret]@h.example/v1"),
    ("https://a:b@c@h.example/v1", "https://[secret]@h.example/v1"),
    ("https://h.example/v1?api-version=2024-10-21", "https://h.example/v1?api-version=2024-10-21"),
    ("https://h.example/v1?sig=abc", "https://h.example/v1?sig=[secret]"),
    ("https://h.example/?v=1&code=a%20b&x=&y", "https://h.example/?v=1&code=[secret]&x=&y"),
    ("https://h.example/?q=a=b=c", "https://h.example/?q=[secret]"),
]


@pytest.mark.parametrize(("url", "shown"), URLS)
def test_an_address_is_shown_without_what_lets_somebody_in(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    assert redact_url(shown) == shown


def test_the_secret_of_an_address_is_not_kept_also_while_something_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "http://ann:s3cretpw@127.0.0.1:9/v1?sig=0a1b2c3d"
    options: dict[str, Any] = {"workspace": tmp_path, "session": "s1", "user": "ann"}
    with Agent(model=ModelOptions("openai:x", base_url=url), consent=Later(), **options) as agent:
        assert agent.call('(write-file :path "a.txt" :content "x")').status == "pending"
    data = on_disk(tmp_path)
    assert b"s3cretpw" not in data
    assert b"0a1b2c3d" not in data
    assert b"http://[secret]@127.0.0.1:9/v1?sig=[secret]" in data
    monkeypatch.chdir(tmp_path)
    assert cli.main(["resume", "s1", "--user", "ann"]) == 2
    said = capsys.readouterr().err
    assert "held a secret, which is not kept: http://[secret]@127.0.0.1:9/v1" in said
    assert "--base-url URL" in said
    assert cli.main(["resume", "s1", "--user", "ann", "--base-url", url, "--yes"]) == 0


# The history of the REPL

LINES = [
    ('(login :pin "hunter22")', '(login :pin "[secret]")'),
    ('(login :pin "hunter22" :note "again hunter22")', '(login :pin "[secret]" :note "again [secret]")'),
    ('(do (setv x "hunter22") (login :pin "hunter22"))', '(do (setv x "[secret]") (login :pin "[secret]"))'),
    ("(login :pin 73519462 :note 73519462)", '(login :pin "[secret]" :note [secret])'),
    ("(login :pin my-pin) (print my-pin)", '(login :pin "[secret]") (print my-pin)'),
    ("my password: hunter22", "my password: [secret]"),
    ("use sk-abcdefghij0123456789 for it", "use [secret] for it"),
    ('(grep-search :pattern "pin")', '(grep-search :pattern "pin")'),
    ('(login :pin "hunter22"', '(login :pin "[secret]"'),
]


@pytest.mark.parametrize(("line", "kept"), LINES)
def test_the_history_holds_no_secret(line: str, kept: str) -> None:
    assert redact_line(line, {"pin"}) == kept
    history = _history(lambda: {"pin"})
    history.append_string(line)
    text = (state_dir() / "history").read_text()
    assert [one[1:] for one in text.splitlines() if one.startswith("+")] == [kept]
    assert history.get_strings() == [line]  # here and now it is as it was typed


# Modes


def make_all(workspace: Path) -> None:
    """All that is kept in the state folder."""
    with Agent(workspace=workspace, model=scripted("Hello."), consent="yes") as agent:
        agent.run("Say hello.")
        agent.call('(write-file :path "a.txt" :content "x")')
        _secret()
        Trust().trust(workspace / "other", b"(allow (echo))")
        _history(tuple).append_string("x")
        with hold("a", "no"):
            pass
        check_modes(least=7)  # while the store is open: its log and index, too


def check_modes(least: int) -> None:
    found = [state_dir(), *state_dir().rglob("*")]
    wrong = {
        str(path.relative_to(state_dir())): oct(stat.S_IMODE(path.stat().st_mode))
        for path in found
        if stat.S_IMODE(path.stat().st_mode) != (0o700 if path.is_dir() else 0o600)
    }
    assert wrong == {}
    assert len(found) >= least


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077], ids=oct)
def test_nothing_of_the_state_is_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mask: int
) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path / "deep" / "state"))
    (tmp_path / "home").mkdir()
    before = os.umask(mask)
    try:
        make_all(tmp_path / "home")
    finally:
        os.umask(before)
    assert (tmp_path / "home/a.txt").stat().st_mode & 0o777 == 0o666 & ~mask  # the workspace is the user's


def test_what_was_left_open_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUOTH_STATE", str(tmp_path / "state"))
    (tmp_path / "home").mkdir()
    make_all(tmp_path / "home")
    for path in [state_dir(), *state_dir().rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    monkeypatch.setattr("quoth.tools.storage.paths._CLOSED", set())
    make_all(tmp_path / "home")


def test_a_folder_that_is_shared_on_purpose_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, mode in (("tmp", 0o1777), ("home", 0o755)):
        folder = tmp_path / name
        folder.mkdir()
        folder.chmod(mode)
        monkeypatch.setenv("QUOTH_STATE", str(folder))
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        private_folder(folder / "workspaces")
        assert stat.S_IMODE(folder.stat().st_mode) == mode
        assert stat.S_IMODE((folder / "workspaces").stat().st_mode) == 0o700
    (tmp_path / "elsewhere").mkdir(mode=0o755)
    files(tmp_path / "elsewhere", {"other.txt": "x"})
    before = (tmp_path / "elsewhere/other.txt").stat().st_mode
    Store(tmp_path / "elsewhere/s.sqlite").close()
    assert (tmp_path / "elsewhere/other.txt").stat().st_mode == before


# Looking, where nothing can be written

LOOK = """
import sys
from quoth.agent.cli import main as cli
codes = []
for words in (["sessions"], ["sessions", "--json"], ["pending"], ["log", "s1"], ["log", "s1.1"], ["audit"],
              ["audit", "verify"]):
    print("##", *words, flush=True)
    codes.append(cli.main(words))
print("##", codes)
"""
KILLED = """
import os, signal
from quoth import Agent
agent = Agent(workspace=".", model=None, session="s1", user="ann")
agent.call('(echo :text "late words")')
os.kill(os.getpid(), signal.SIGKILL)
"""


def no_room() -> None:
    """Nothing can be written to any file: a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def no_right() -> None:
    """Root, too, may write only what the modes allow."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def closed(workspace: Path) -> None:
    """The state is as on a disk that may only be read."""
    for path in [*state_dir().rglob("*"), state_dir()]:
        path.chmod(0o500 if path.is_dir() else 0o400)


def nothing(workspace: Path) -> None:
    pass


def killed(workspace: Path) -> None:
    """A process has ended without putting its log into the store."""
    subprocess.run([sys.executable, "-c", KILLED], cwd=workspace, check=False)
    assert store_path(workspace).with_name(f"{store_path(workspace).name}-wal").stat().st_size


def moved(workspace: Path) -> None:
    """The same, and the index of that log is not there any more."""
    killed(workspace)
    store_path(workspace).with_name(f"{store_path(workspace).name}-shm").unlink()


DISKS = [
    ("full", no_room, [nothing]),
    ("full, after a crash", no_room, [killed]),
    ("only to be read", no_right, [closed]),
    ("only to be read, after a crash", no_right, [killed, closed]),
    ("only to be read, without an index", no_right, [moved, closed]),
]


@pytest.mark.parametrize(("limit", "before"), [row[1:] for row in DISKS], ids=[row[0] for row in DISKS])
def test_commands_that_only_look_need_no_room_and_no_right(
    tmp_path: Path, limit: Callable[[], None], before: list[Callable[[Path], None]]
) -> None:
    model = scripted('(echo :text "first words")', "Done.")
    with Agent(workspace=tmp_path, model=model, session="s1", user="ann") as agent:
        assert agent.run("Look.").status == "done"
        agent.call('(write-file :path "a.txt" :content "x")')
    for change in before:
        change(tmp_path)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOOK],
            cwd=tmp_path,
            preexec_fn=limit,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        for path in [state_dir(), *state_dir().rglob("*")]:
            path.chmod(0o700 if path.is_dir() else 0o600)
    assert "## [0, 0, 0, 0, 0, 0, 0]" in done.stdout, done.stdout + done.stderr
    assert "write-file" in done.stdout.partition("## pending")[2].partition("##")[0]
    assert "first words" in done.stdout
    assert ("late words" in done.stdout) == (before[0] in (killed, moved))
    assert THE_CHAIN_IS_WHOLE in done.stdout


def test_what_must_be_written_says_why_it_cannot(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, model=None, session="s1", user="ann") as agent:
        agent.call('(write-file :path "a.txt" :content "x")')
        (asked,) = agent.broker.requests()
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from quoth.agent.cli import main as cli; raise SystemExit(cli.main(['deny', '{asked.id}']))",
        ],
        cwd=tmp_path,
        preexec_fn=no_room,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "could not be" in done.stderr
    with Agent(workspace=tmp_path, model=None, session="s1", user="ann") as agent:
        assert [one.id for one in agent.broker.requests()] == [asked.id]


def test_an_older_store_that_cannot_be_brought_up_to_date_says_so(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, model=None, session="s1") as agent:
        agent.call('(echo :text "x")')
    newer = (
        "from quoth.agent.cli import main as cli\nfrom quoth.tools.storage import database\n"
        "database.MIGRATIONS += ('CREATE TABLE later (x)',)\nraise SystemExit(cli.main(['sessions']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", newer],
        cwd=tmp_path,
        preexec_fn=no_room,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "was written by an older quoth and must be upgraded before it can be read" in done.stderr
