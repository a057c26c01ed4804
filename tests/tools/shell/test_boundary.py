"""The boundary: which kind works, what a program finds inside it, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from words import files, quoth

from quoth.tools.errors import ToolError
from quoth.tools.installing import install_extra
from quoth.tools.shell import boundary as module
from quoth.tools.shell.boundary import Boundary, ControlGroup, Kind, boundary_kind, confined, why_none
from quoth.tools.shell.bubblewrap import NO_BWRAP, candidates, watched
from quoth.tools.shell.bubblewrap import _held as held
from quoth.tools.shell.landlock import filter_program
from quoth.tools.shell.running import Running
from quoth.tools.shell.view import environment, limit_words

KINDS: tuple[Kind, ...] = ("bubblewrap", "landlock")


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """What works is found out once a process; here, once a test."""
    yield
    for answer in (module._found, module._bwrap, module._landlock):
        answer.cache_clear()


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/stock.txt").write_text("12 bolts")
    return tmp_path / "shop"


def runs(kind: Kind, root: Path, *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command = confined(words, Boundary(root, more.pop("cwd", root), **more), kind)
    try:
        return subprocess.run(
            command.argv,
            env=command.env,
            pass_fds=command.pass_fds,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        command.close()


def says(kind: Kind, root: Path, script: str, **more: Any) -> str:
    done = runs(kind, root, "sh", "-c", script, **more)
    return f"{done.stdout}{done.stderr}".strip()


@pytest.mark.parametrize("kind", KINDS)
def test_a_program_works_in_the_workspace_and_ends_as_outside(kind: Kind, shop: Path) -> None:
    (shop / "back").mkdir()
    script = "cat ../stock.txt; echo 3 nuts > ../new.txt; pwd; echo $QUOTH_INSIDE; cat; exit 7"
    done = runs(kind, shop, "sh", "-c", script, cwd=shop / "back")
    assert (done.returncode, done.stdout) == (7, f"12 bolts{shop}/back\n1\n")
    assert (shop / "new.txt").read_text() == "3 nuts\n"
    assert runs(kind, shop, "sh", "-c", "kill -9 $$").returncode == 137
    assert runs(kind, shop, "nuts-and-bolts").returncode == 127


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_named_is_seen_and_what_is_not_is_hidden(
    kind: Kind, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, config = tmp_path / "home", tmp_path / "home/.config/quoth"
    for name in (".config/quoth/skills/s", ".config/quoth/keys", ".gitconfig", ".ssh/id", "cache/x"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("QUOTH_CONFIG", str(config))
    named: dict[str, Any] = {
        "readable": (home / ".gitconfig", config / "skills", home / "nothing"),
        "writable": (home / "cache",),
    }
    names = " ".join(str(home / name) for name in (".config/quoth/skills/s", ".gitconfig", "cache/x"))
    assert says(kind, shop, f"cat {names}", **named) == ".config/quoth/skills/s.gitconfigcache/x"
    script = (
        f"cat {config}/keys || cat {home}/.ssh/id || echo x > {home}/.gitconfig || echo x > {config}/skills/s"
    )
    assert runs(kind, shop, "sh", "-c", script, **named).returncode
    assert says(kind, shop, f"echo y > {home}/cache/x && echo written", **named) == "written"
    assert (home / "cache/x").read_text() == "y\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_network_is_reached_where_it_is_allowed(kind: Kind, shop: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = (
            "import socket, sys",
            f"socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), 5)",
        )
        program = (sys.executable, "-I", "-S", "-c", "\n".join(words))
        assert runs(kind, shop, *program).returncode
        assert runs(kind, shop, *program, network=True).returncode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_what_is_hidden_may_be_shown(kind: Kind, shop: Path) -> None:
    (shop / ".quoth/skills").mkdir(parents=True)
    (shop / ".quoth/skills/s").write_text("a skill")
    (shop / ".quoth/policy.hy").write_text("secret")
    own: dict[str, Any] = {"hidden": (shop / ".quoth",), "readable": (shop / ".quoth/skills",)}
    assert says(kind, shop, "cat .quoth/skills/s; cat .quoth/policy.hy 2>/dev/null", **own) == "a skill"


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_in_the_workspace_shows_nothing_of_home(
    kind: Kind, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    (shop / ".quoth").symlink_to(home)
    (shop / ".git").symlink_to(home)
    assert "secret" not in says(kind, shop, f"cat .quoth/config .git/config {home}/config")


def test_a_git_folder_that_cannot_be_copied_is_read_only(shop: Path) -> None:
    git = shop / ".git"
    git.mkdir()
    (git / "config").write_text("[core]")
    says("bubblewrap", shop, "cd .git; echo ../evil > commondir; mkdir -p hooks; touch HEAD hooks/pre-commit")
    assert sorted(os.listdir(git)) == ["config"]
    shutil.rmtree(git)
    git.write_text("gitdir: /main/.git")  # as in a work tree of its own
    assert "gitdir: /main" in says("bubblewrap", shop, "echo gitdir: evil > .git; mv .git x; cat .git")
    assert git.read_text() == "gitdir: /main/.git"


def test_a_link_put_in_place_of_a_folder_is_not_followed(shop: Path, tmp_path: Path) -> None:
    (shop / ".git").symlink_to(tmp_path)
    with pytest.raises(ToolError, match="replaced while a program was starting"):
        held(shop / ".git", opened := [])
    for number in opened:
        os.close(number)


def test_a_program_gets_no_open_file_but_its_three(shop: Path) -> None:
    (shop / ".git/hooks").mkdir(parents=True)
    (shop / "key").write_text("secret")
    listed = says("bubblewrap", shop, "ls /proc/self/fd", hidden=(shop / "key",))
    assert listed.split() == ["0", "1", "2", "3"]  # the last is the folder that ls reads


MAKEFILE = """all: hello
\t./hello
\t$(PYTHON) -m pytest -q test_hello.py
\tif command -v npm; then npm run --silent hello; fi
\tgit init -q kept
\tcd kept && echo 1 > a && git add a && git -c user.name=ann -c user.email=ann@example.org commit -qm one
\tcd kept && git status --short && git log --format=%s
hello: hello.c
\t$(CC) -O -o $@ $<
"""


@pytest.mark.parametrize("kind", KINDS)
def test_real_programs_work_inside(kind: Kind, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing := [name for name in ("make", "cc", "git") if not shutil.which(name)]:
        pytest.fail(f"this test needs {', '.join(missing)}")
    (shop / "Makefile").write_text(MAKEFILE)
    (shop / "hello.c").write_text('#include <stdio.h>\nint main(void) { puts("compiled"); }\n')
    (shop / "test_hello.py").write_text("def test_hello(tmp_path): (tmp_path / 'x').write_text('y')\n")
    (shop / "package.json").write_text('{"scripts": {"hello": "echo from npm"}}')
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    done = runs(
        kind, shop, "make", "-s", f"PYTHON={sys.executable}", variables=("PYTEST_DISABLE_PLUGIN_AUTOLOAD",)
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert said[0] == "compiled"
    assert said[-1] == "one"
    assert "1 passed" in done.stdout
    assert not shutil.which("npm") or "from npm" in said


def test_all_end_with_the_one_that_started_them(shop: Path) -> None:
    command = confined(
        ("sh", "-c", "setsid sleep 98.7 & echo ready; wait"), Boundary(shop, shop), "bubblewrap"
    )
    process = subprocess.Popen(
        command.argv, env=command.env, pass_fds=command.pass_fds, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.kill()
    assert process.stdout.read() == b""  # whoever could write to it has ended
    process.wait()
    command.close()


def test_a_child_whose_bwrap_was_killed_before_it_was_tied_to_it_starts_nothing(shop: Path) -> None:
    command = confined(("touch", "started"), Boundary(shop, shop), "bubblewrap")
    command.let_go()
    ended = subprocess.run(command.argv, env=command.env, pass_fds=command.pass_fds, capture_output=True)
    command.close()
    assert (ended.returncode != 0, (shop / "started").exists()) == (True, False)


def test_a_start_that_is_cancelled_leaves_nothing(shop: Path) -> None:
    """At 20 moments of its first 40 ms; half of the sandboxes went on without the tie."""

    async def cancelled(after: float) -> None:
        command = confined(("sh", "-c", "touch started; sleep 97.6"), Boundary(shop, shop), "bubblewrap")
        start = Running.start(
            command.argv,
            cwd=shop,
            env=command.env,
            pass_fds=command.pass_fds,
            kept=False,
            let_go=command.let_go,
        )
        starting = asyncio.create_task(start)
        await asyncio.sleep(after)
        starting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await (await starting).put_away()
        command.close()

    async def often() -> None:
        before = len(os.listdir("/proc/self/fd"))
        for moment in range(20):
            await cancelled(moment / 500)
        assert len(os.listdir("/proc/self/fd")) == before

    asyncio.run(often())
    left = subprocess.run(("pgrep", "-fc", "bwrap.*sleep 97[.]6"), capture_output=True, text=True)
    assert left.stdout == "0\n"


def test_nothing_starts_once_the_one_that_asked_for_it_is_gone(shop: Path) -> None:
    command = confined(("touch", "started"), Boundary(shop, shop), "bubblewrap")
    assert command.ends_all
    words = ["sh", "-c", '"$@"; exit $?', "sh", *command.argv]  # another one starts it
    ended = subprocess.run(words, env=command.env, pass_fds=command.pass_fds)
    command.close()
    assert (ended.returncode, (shop / "started").exists()) == (1, False)


@pytest.mark.parametrize(
    ("wish", "kind", "why"),
    [
        ("", "bubblewrap", ""),
        ("bubblewrap", "bubblewrap", ""),
        ("landlock", "landlock", ""),
        ("none", "", "QUOTH_BOUNDARY is none."),
        ("docker", "", "QUOTH_BOUNDARY is 'docker': it must be bubblewrap, landlock, seatbelt or none."),
        ("seatbelt", "", "Seatbelt works only on macOS."),
    ],
)
def test_the_environment_chooses_among_what_works(
    wish: str, kind: Kind, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUOTH_BOUNDARY", wish)
    assert (boundary_kind(), why_none()) == (kind, why)


@pytest.mark.parametrize(("wish", "code"), [("landlock", 0), ("none", 3), ("seatbelt", 3), ("docker", 2)])
def test_an_option_of_the_command_chooses_too(wish: str, code: int, tmp_path: Path) -> None:
    rules = files(tmp_path, {"rules.hy": "(allow (shell))"}) / "rules.hy"
    words = ("call", '(shell :argv ["true"])', "--policy", str(rules), "--no-input")
    assert quoth(*words, "--boundary", wish, cwd=tmp_path, env={"QUOTH_BOUNDARY": "bubblewrap"}).code == code


def test_what_does_not_work_is_not_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("quoth.tools.shell.bubblewrap.candidates", lambda: [str(broken)])
    monkeypatch.delenv("QUOTH_BOUNDARY", raising=False)
    assert boundary_kind() == "landlock"
    module._found.cache_clear()
    module._landlock.cache_clear()
    monkeypatch.setattr("quoth.tools.shell.landlock.library", lambda: "")
    assert boundary_kind() == ""
    assert why_none() == (
        "Bubblewrap does not work here (bwrap: No permissions to create new namespace), and Landlock does not"
        f" work here (to install it: {install_extra('landlock')})."
    )
    module._bwrap.cache_clear()
    monkeypatch.setenv("QUOTH_BOUNDARY", "bubblewrap")
    monkeypatch.setattr("quoth.tools.shell.bubblewrap.candidates", list)
    assert why_none() == f"Bubblewrap does not work here ({NO_BWRAP})."


def test_no_program_of_the_workspace_builds_the_boundary(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bwrap", "setpriv"):  # as one that ran inside may have put into .venv/bin
        (shop / name).write_text(f'#!/bin/sh\ntouch {shop}/outside\nexec /usr/bin/{name} "$@"\n')
        (shop / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{shop}:{os.environ['PATH']}")
    assert str(shop / "bwrap") not in candidates()
    assert all(str(shop) not in word for word in watched.__wrapped__())
    assert not (shop / "outside").exists()


def test_the_home_folder_is_no_workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sentence = f"The workspace {tmp_path} contains {tmp_path}, whose files a program must not see"
    with pytest.raises(ToolError, match=sentence):
        confined(["true"], Boundary(tmp_path, tmp_path), "bubblewrap")


def test_keys_of_the_environment_stay_out(tmp_path: Path) -> None:
    given = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "SSH_AUTH_SOCK": "/x",
        "GITHUB_TOKEN": "k",
        "SHOP": "1",
        "HOME": "/h",
    }
    assert environment(Boundary(tmp_path, tmp_path, variables=("SHOP",)), given) == {
        name: value for name, value in given.items() if name in ("PATH", "LC_ALL", "SHOP", "HOME")
    } | {"TMPDIR": "/tmp", "QUOTH_INSIDE": "1"}


def test_limits_are_told_in_the_units_of_the_shell(tmp_path: Path) -> None:
    usual = Boundary(tmp_path, tmp_path)
    assert limit_words(usual) == ("1024", "2097152", "3600", "2097152", "256", "")
    assert limit_words(usual, processes=False, tied=True)[4:] == ("0", "tied")
    small = Boundary(tmp_path, tmp_path, file_size=1023, memory=2047)
    assert limit_words(small)[1::2] == ("1", "1", "")


def test_a_control_group_is_gone_afterwards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("quoth.tools.shell.boundary.HERE", tmp_path)
    monkeypatch.setattr("quoth.tools.shell.boundary.memberships", lambda: ["8:cpu:/", "7:pids:/", "0::/"])
    (tmp_path / "pids").mkdir()
    group = ControlGroup(1 << 30, 20)
    assert group.folder is not None
    assert (group.folder / "pids.max").read_text() == "20"
    for file in group.folder.iterdir():  # those of the kernel go with the folder
        file.unlink()
    alive, abandoned = (tmp_path / f"pids/quoth-{process}-9" for process in (os.getpid(), 4999999))
    alive.mkdir()
    abandoned.mkdir()
    monkeypatch.setattr(Path, "write_text", lambda *_: 0)
    group.close()
    assert [left.name for left in (tmp_path / "pids").iterdir()] == [alive.name]


def test_where_no_control_group_may_be_made_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quoth.tools.shell.boundary.HERE", Path("/nowhere"))
    group = ControlGroup(1 << 30, 20)
    assert group.folder is None
    group.close()


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_each_jump_of_the_filter_lands_inside(machine: str) -> None:
    program = filter_program(machine)
    steps = [program[at : at + 8] for at in range(0, len(program), 8)]
    assert 60 < len(steps) < 4096
    for place, step in enumerate(steps):
        if step[0] & 7 == 5:  # a jump
            assert place + 1 + max(step[2], step[3]) < len(steps)
    assert filter_program("riscv64") == b""
