"""quoth guard against calls that mean another thing than they seem, and against its own failures: no call
that a rule denies passes, and whatever fails denies."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apsw
import pytest
from hooks import AGENTS, answered, guarded, ran, sent, writing
from words import files, quoth

from quoth.agent.guard import hook, judging
from quoth.agent.guard.formats import FORMATS, HOOK_SECONDS, KILL_SECONDS, OWN_SECONDS
from quoth.tools.shell import command_line
from quoth.tools.storage import database
from quoth.tools.storage.paths import store_path

RULES = """
(deny (shell :argv ["rm" ...]) :why "no rm")
(deny (any-tool :path ".env") :why "keys")
(allow (shell :argv ["ls" ...]))
(allow (shell :argv ["cat" ...]))
(allow (claude-code--bash))
"""


@pytest.fixture
def here(tmp_path: Path, state: Path) -> Path:
    files(state / "config", {"policy.hy": RULES})
    root = files(tmp_path / "till", {".git/HEAD": "", ".env": "KEY=1\n", "src/a.py": "a\n"})
    (root / "link").symlink_to(".env")
    (root / "folder").symlink_to(".")
    return root


DENIED_LINES = (
    "rm x",
    "ls && rm x",
    "ls; rm x",
    "ls | rm x",
    "ls & rm x",
    "(rm x)",
    "! rm x",
    "if ls; then rm x; fi",
    "f() { rm x; }; f",
    "/bin/rm x",
    "r''m x",
    "\\rm x",
    "bash -c 'rm x'",
    "bash -c \"bash -c 'rm x'\"",
    "env A=1 rm x",
    "sudo -u root rm x",
    "echo $(rm x)",
    "echo `rm x`",
    "cat <(rm x)",
    "cat <<EOF\n$(rm x)\nEOF",
    "bash <<EOF\nrm x\nEOF",
    "find . -exec rm {} +",
    "echo x | xargs rm",
    "eval 'rm x'",
    "cat < .env",
    "cat < src/../.env",
    "cat < link",
    "echo a > .env",
    "echo a >> folder/.env",
    "cd src && cat < ../.env",
    "quoth approve abc",
    "python -m quoth approve abc",
    "Q=quoth; $Q approve x",
    "qu''oth appr\\ove x",
    "env -u CODEX_THREAD_ID quo''th tr'us't",
)
# Of these it is not known what they do. A rule may match, so a person decides, or it is denied.
UNKNOWN_LINES = (
    "$X x",
    "cat < $F",
    "ls > $F",
    "$(echo r)m x",
    "echo `echo \\`rm x\\``",
    "[[ 'a[$(rm x)]' -eq 1 ]]",
    "[ -v 'a[$(rm x)]' ]",
    "test -v 'a[$(rm x)]'",
    "unset 'a[$(rm x)]'",
    "x='a[$(rm x)]'; echo $((x))",
    "printf -v 'a[`rm x`]' 1",
)
# An allow of these must not count: only a person, or the agent's own rules, may say so.
UNREAD_LINES = ("ls $X", "ls *", "ls > out", "ls $(date)", "ls 'a", "ls &", "cat <<EOF\na\nEOF", "A=1 ls")


@pytest.mark.parametrize("line", DENIED_LINES)
def test_a_command_line_hides_no_command_and_no_file(line: str, here: Path) -> None:
    assert ran("claude-code", line, here, may_allow=True).kind == "deny"
    assert ran("codex", line, here).kind == "deny"


def test_the_files_of_a_line_are_those_of_the_folder_of_the_call(here: Path, state: Path) -> None:
    files(
        state / "config", {"policy.hy": '(deny (read-file :path ".env")) (deny (write-file :path "src/a"))'}
    )
    assert ran("codex", "cat < ../.env", here / "src").kind == "deny"
    assert ran("codex", "echo > a", here / "src").kind == "deny"
    assert ran("codex", "cat < .env; echo > src/a", here / "src").kind == ""


@pytest.mark.parametrize("line", UNKNOWN_LINES)
def test_what_cannot_be_known_is_not_let_through(line: str, here: Path) -> None:
    assert ran("claude-code", line, here, may_allow=True).kind in ("ask", "deny")
    assert ran("codex", line, here).kind == "deny"


@pytest.mark.parametrize("line", UNREAD_LINES)
def test_no_allow_covers_what_cannot_be_read(line: str, here: Path) -> None:
    assert ran("claude-code", line, here, may_allow=True).kind != "allow"
    assert ran("claude-code", "ls a; cat b", here, may_allow=True).kind == "allow"


def test_without_the_parser_no_line_is_allowed_and_none_escapes(
    here: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "_parser", lambda: None)
    assert ran("claude-code", "ls a", here, may_allow=True).kind == "ask"
    assert ran("claude-code", "ls && rm x", here, may_allow=True).kind == "ask"
    assert ran("codex", "rm x", here).kind == "deny"
    files(state / "config", {"policy.hy": '(allow (shell :argv ["ls" ...])) (allow (claude-code--bash))'})
    assert ran("claude-code", "ls a", here, may_allow=True).kind == ""


def test_a_shell_that_cannot_be_read_is_not_allowed(here: Path, state: Path) -> None:
    assert guarded("claude-code", "PowerShell", {"command": "ls a"}, here, may_allow=True).kind == "ask"
    assert guarded("claude-code", "PowerShell", {"command": "rm x"}, here).kind == "ask"
    files(
        state / "config", {"policy.hy": '(allow (shell :argv ["ls" ...])) (allow (claude-code--power-shell))'}
    )
    assert guarded("claude-code", "PowerShell", {"command": "ls a"}, here, may_allow=True).kind == ""


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("path", [".env", "src/../.env", "link", "folder/folder/.env", "./folder/link"])
def test_no_spelling_of_a_path_escapes_a_rule(path: str, agent: str, here: Path) -> None:
    assert "keys" in guarded(agent, *writing(agent, path), here).reason
    assert "keys" in guarded(agent, *writing(agent, f"{here}/{path}"), here).reason
    assert "keys" in guarded(agent, *writing(agent, f"../{path}"), here / "src").reason


@pytest.mark.parametrize(
    "patch",
    [
        "*** Begin Patch\n*** Add File: a\n+a\n*** Update File: .env\n*** End Patch",
        "*** Begin Patch\n*** Update File: a\n*** Move to: .env\n*** End Patch",
        "*** Begin Patch\n *** Delete File:   .env  \r\n*** End Patch",
        "*** Begin Patch\n*** Environment ID: x\n*** Delete File: .env\n*** End Patch",
    ],
)
def test_each_file_of_a_patch_is_seen(patch: str, here: Path) -> None:
    assert "keys" in guarded("codex", "apply_patch", {"command": patch}, here).reason
    assert "keys" in ran("codex", f"apply_patch <<'EOF'\n{patch}\nEOF", here).reason


@pytest.mark.parametrize("args", [{}, {"command": ""}, {"command": 1}, {"command": "*** Begin Patch"}])
def test_a_patch_without_a_file_is_denied(args: dict[str, Any], here: Path) -> None:
    assert guarded("codex", "apply_patch", args, here).kind == "deny"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_tool_that_is_in_no_row_is_judged_by_the_names_of_its_arguments(agent: str, here: Path) -> None:
    assert "no rm" in guarded(agent, "exec_command", {"cmd": "rm x", "workdir": "."}, here).reason
    assert "no rm" in guarded(agent, "BASH", {"command": "ls; rm x"}, here).reason
    assert "keys" in guarded(agent, "peek", {"targetFile": "src/../.env"}, here).reason
    assert guarded(agent, "exec_command", {"cmd": "ls"}, here).kind == ""


def test_an_argument_cannot_take_the_place_of_the_files_of_a_patch(here: Path) -> None:
    patch = "*** Begin Patch\n*** Delete File: .env\n*** End Patch"
    for args in ({"command": patch, "paths": ["a"]}, {"paths": ["a"], "command": patch}):
        assert guarded("codex", "apply_patch", args, here).kind == "deny"


def test_a_tilde_that_may_be_a_name_is_denied(here: Path) -> None:
    files(here, {"~/a": ""})
    assert "write it in full" in guarded("claude-code", "Read", {"file_path": "~/a"}, here).reason


@pytest.mark.parametrize("path", ["/proc/self/cwd/.env", "/proc/./thread-self/cwd/.env"])
def test_a_path_that_depends_on_the_process_is_denied(path: str, here: Path) -> None:
    assert "write it in full" in guarded("claude-code", "Read", {"file_path": path}, here).reason
    assert ran("codex", f"cat < {path}", here).kind == "deny"


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_changes_neither_rules_nor_records_nor_its_own_hooks(
    agent: str, here: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (f"{state}/config/policy.hy", f"{here}/.quoth/policy.hy", f"{state}/workspaces/x.sqlite"):
        assert "belongs to quoth" in guarded(agent, *writing(agent, path), here).reason
        assert "belongs to quoth" in ran(agent, f"echo > {path}", here).reason
    for path in FORMATS[agent].settings:
        for folder in () if path.startswith("~") else (here, here / "src"):
            for name in (path, f"{here}/{path}"):
                said = guarded(agent, *writing(agent, name), folder)
                assert (said.kind, "hooks" in said.reason) == ("deny" if agent == "codex" else "ask", True)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_does_not_decide_its_own_request(agent: str, here: Path, state: Path) -> None:
    files(state / "config", {"policy.hy": '(ask (shell :argv ["make" ...]))'})
    request = ran("codex", "make", here).reason.partition("quoth approve ")[2].split()[0]
    assert ran(agent, f"quoth approve {request}", here).kind == "deny"
    said = quoth("approve", request, cwd=here, env={FORMATS[agent].mark: "1"})  # by a script that it wrote
    assert (said.code, FORMATS[agent].title in said.err) == (2, True)
    assert ran("codex", "make", here).kind == "deny"


# Inputs that cannot be read


def broken(here: Path) -> dict[str, bytes]:
    good = sent("codex", "Bash", {"command": "ls"}, here)
    call = json.loads(good)
    return {
        "nothing": b"",
        "no JSON": b"{",
        "a list": b"[]",
        "more than one value": good + good,
        "not UTF-8": good.replace(b'"ls"', b'"\xff"'),
        "UTF-16": good.decode().encode("utf-16"),
        "a name twice": good[:-1] + b', "cwd": "/"}',
        "an argument twice": good.replace(b'{"command": "ls"}', b'{"command": "ls", "command": "rm x"}'),
        "no number": good.replace(b'"ls"', b"NaN"),
        "half a character": good.replace(b'"ls"', b'"\\ud800"'),
        "another event": json.dumps(call | {"hook_event_name": "PostToolUse"}).encode(),
        "no tool": json.dumps(call | {"tool_name": None}).encode(),
        "arguments of another kind": json.dumps(call | {"tool_input": "ls"}).encode(),
        "no arguments": json.dumps({key: call[key] for key in call if key != "tool_input"}).encode(),
        "no command": json.dumps(call | {"tool_input": {}}).encode(),
        "two arguments of one name": json.dumps(
            call | {"tool_input": {"command": "ls", "Command": "rm"}}
        ).encode(),
        "no folder": json.dumps(call | {"cwd": "nowhere"}).encode(),
        "a folder that is gone": json.dumps(call | {"cwd": f"{here}/gone"}).encode(),
        "a NUL in the folder": json.dumps(call | {"cwd": "/\0"}).encode(),
        "very deep": good.replace(b'"ls"', b"[" * 100_000 + b"]" * 100_000),
        "very long": good.replace(b'"ls"', b'"' + b"a" * judging.MOST_BYTES + b'"'),
        "a path with NUL": sent("codex", "view_image", {"path": "a\0b"}, here),
        "a path that is a number": sent("codex", "view_image", {"path": 3}, here),
    }


@pytest.mark.parametrize("case", broken(Path("/")))
def test_an_input_that_cannot_be_read_is_denied(case: str, here: Path) -> None:
    assert answered("codex", broken(here)[case]).kind == "deny"


def test_a_long_text_is_judged_like_a_short_one(here: Path) -> None:
    text = "x = 1\n" * 300_000
    assert guarded("claude-code", "Write", {"file_path": "a.py", "content": text}, here).kind == ""
    assert guarded("claude-code", "Write", {"file_path": ".env", "content": text}, here).kind == "deny"
    assert ran("claude-code", "ls " + "a " * 40_000 + "; rm x", here).kind == "deny"
    longer = "ls " + "a " * 600_000  # more than quoth reads
    assert ran("claude-code", longer, here, may_allow=True).kind == "ask"
    assert ran("codex", longer, here).kind == "deny"


# What fails around it


def test_rules_that_cannot_be_read_deny(here: Path, state: Path) -> None:
    files(state / "config", {"policy.hy": "(deny"})
    assert ran("codex", "ls", here).kind == "deny"
    assert ran("codex", "ls", here, policy="/gone.hy").kind == "deny"


def test_trusted_rules_that_have_changed_or_are_gone_deny(here: Path) -> None:
    files(here, {".quoth/policy.hy": '(deny (shell :argv ["make" ...]))'})
    quoth("trust", "--yes", cwd=here)
    files(here, {".quoth/policy.hy": ""})
    assert "has changed" in ran("codex", "ls", here).reason
    (here / ".quoth/policy.hy").unlink()
    assert "is gone" in ran("codex", "ls", here).reason


def test_a_store_that_cannot_be_written_denies(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ran("codex", "ls", here).kind == ""
    monkeypatch.setattr(database, "BUSY_MS", 20)
    locked = apsw.Connection(str(store_path(here)))
    locked.execute("BEGIN EXCLUSIVE")
    assert ran("codex", "ls", here).kind == "deny"
    locked.close()
    assert ran("codex", "ls", here).kind == ""
    store_path(here).write_bytes(b"no database" * 1000)
    assert ran("codex", "ls", here).kind == "deny"


def test_a_failure_of_quoth_itself_denies_without_its_words(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("KEY=1")

    monkeypatch.setattr(judging, "load_policy", fails)
    said = ran("codex", "ls", here)
    assert said.kind == "deny"
    assert "ValueError" in said.reason
    assert "KEY" not in said.reason


def test_our_deadlines_are_below_that_of_the_hook() -> None:
    assert OWN_SECONDS < KILL_SECONDS < HOOK_SECONDS
    assert hook.parsed_words(["codex", "--strict"]) == (FORMATS["codex"], {"strict": True})
    assert hook.parsed_words(["codex", "--stric"]) is None


def test_an_approval_in_one_folder_is_not_one_for_another(here: Path, state: Path) -> None:
    files(state / "config", {"policy.hy": '(ask (shell :argv ["make" ...]))'})
    files(here, {"src/a-b/c": "", "src-a/b/c": ""})
    places = [here, here / "src", here / "src/a-b", here / "src-a/b"]
    asked = [ran("codex", "make", place).reason.partition("quoth approve ")[2].split()[0] for place in places]
    assert len({*asked}) == len(places)
    assert "works in src" in quoth("pending", asked[1], cwd=here).out  # the person sees where
    quoth("approve", asked[1], cwd=here)
    assert [ran("codex", "make", place).kind for place in places] == ["deny", "", "deny", "deny"]


def test_of_calls_at_the_same_time_one_alone_uses_the_approval(here: Path, state: Path) -> None:
    files(state / "config", {"policy.hy": '(ask (shell :argv ["make" ...]))'})
    request = ran("codex", "make", here).reason.partition("quoth approve ")[2].split()[0]
    quoth("approve", request, cwd=here)
    with ThreadPoolExecutor(8) as at_once:
        kinds = [said.kind for said in at_once.map(lambda _: ran("codex", "make", here), range(8))]
    assert sorted(kinds) == ["", *["deny"] * 7]
