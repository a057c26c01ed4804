"""Files of MCP servers: what other programs write is read; each mistake is a sentence with its place."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quoth.tools.errors import UsageError
from quoth.tools.mcp.config import (
    OWN_NAME,
    TRUST,
    ServerConfig,
    add_server,
    expand,
    load_servers,
    own_servers,
    parse,
    read_servers,
    remove_server,
    shown_target,
)
from quoth.tools.mcp.servers import pins_of
from quoth.tools.storage.paths import user_servers

TIME = {"command": "uvx", "args": ["mcp-server-time"]}


def servers(**said: Any) -> bytes:
    return json.dumps({"mcpServers": said}).encode()


def test_files_of_other_programs_are_read() -> None:
    data = servers(
        Time={**TIME, "type": "stdio", "env": {"TZ": "${TZ:-UTC}"}, "cwd": "sub", "autoApprove": ["now"]},
        git_hub={
            "type": "http",
            "url": "https://example.org/mcp",
            "headers": {"Authorization": "Bearer ${T}"},
        },
        off={"command": "x", "disabled": True},
    )
    found = parse(b"\xef\xbb\xbf" + data, "f.json")
    assert set(found.configs) == {"time", "git-hub"}
    time = found.find("Time")
    assert (time.command, time.args, time.cwd) == ("uvx", ("mcp-server-time",), "sub")
    assert time.target == '["uvx", "mcp-server-time"]'
    assert found.notes == ("f.json: time: quoth ignores autoApprove.",)
    assert found.find("git_hub").target == "https://example.org/mcp"
    assert "Bearer" not in repr(found.configs)


def test_what_looks_like_a_secret_is_not_shown() -> None:
    key = "sk-abcdefghijklmnopqrstuv"
    assert key not in ServerConfig("a", url=f"https://x.org/mcp?key={key}").shown
    assert key not in ServerConfig("a", "x", ("--api-key", key)).shown
    assert ServerConfig("a", "x", ("--token", "hunter", "two")).shown == '["x", "--token", "[secret]", "two"]'
    assert shown_target("https://x.org/mcp?k=hunter") == "https://x.org/mcp?k=[secret]"
    assert ServerConfig("a", "uvx", ("time", "--tz=UTC")).shown == '["uvx", "time", "--tz=UTC"]'


MISTAKES: dict[str, tuple[bytes, str]] = {
    "no JSON": (b'{"mcpServers": {\n  x}}', "f:2:3: this is not JSON"),
    "no UTF-8": (b"\xff", "f is not UTF-8 text."),
    "no mcpServers": (b'{"mcpServer": {}}', "f has no mcpServers. Did you mean mcpServers?"),
    "a list": (b"[]", "f has no mcpServers. Example: {"),
    "twice": (b'{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "a is given twice"),
    "deep": (b'{"mcpServers": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    "no object": (servers(a="uvx"), "f: mcpServers.a must be an object, not text."),
    "an argument": (servers(a={**TIME, "args": ["x", 1]}), "mcpServers.a.args[1] must be text, not a number"),
    "a variable": (servers(a={**TIME, "env": {"X": True}}), "a.env.X must be text, not true or false."),
    "neither": (servers(a={"commands": "x"}), "either a command or a url. Did you mean command?"),
    "both": (servers(a={**TIME, "url": "https://x.org"}), "either a command or a url, not both."),
    "sse": (servers(a={"type": "sse", "url": "https://x.org"}), "the transport sse is not supported"),
    "a type": (servers(a={**TIME, "type": "stdioo"}), "There is no transport stdioo. Did you mean stdio?"),
    "another type": (servers(a={**TIME, "type": "http"}), "type is http, which has no command"),
    "headers": (servers(a={**TIME, "headers": {"A": "b"}}), "a server with a command has no headers"),
    "arguments": (servers(a={"url": "https://x.org", "args": ["b"]}), "a server with a url has no args"),
    "a header": (servers(a={"url": "https://x.org", "headers": {"A B": "c"}}), "A B is not the name of"),
    "a url": (servers(a={"url": "ftp://x.org"}), "the url must be like https://example.org/mcp."),
    "a password": (servers(a={"url": "https://me:pw-1@x.org"}), "contains a user name or password"),
    "a name": (servers(**{"7up": TIME}), "7up is not the name of a server"),
    "two hyphens": (servers(**{"a--b": TIME}), "a--b is not the name of a server"),
    "a reserved name": (servers(MCP=TIME), "f: a server cannot be named mcp"),
    "a long name": (servers(**{"a" * 41: TIME}), "has 41 characters; at most 40 are allowed."),
    "one name": (servers(**{"my_git": TIME, "My-Git": TIME}), "my_git and My-Git would both be named my-git"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_each_mistake_is_a_sentence(case: str) -> None:
    data, sentence = MISTAKES[case]
    with pytest.raises(UsageError) as caught:
        parse(data, "f")
    assert sentence in str(caught.value)
    assert "pw-1" not in str(caught.value)


def test_variables_are_expanded_when_the_server_starts() -> None:
    said = {
        "command": "${BIN}/x",
        "args": ["--port", "${PORT:-80}", "$HOME", "a${X%y}"],
        "env": {"K": "${KEY}"},
    }
    config = read_servers({"a": said}, "f").find("a")
    assert config.args[1] == "${PORT:-80}"
    done = expand(config, {"BIN": "/opt", "KEY": "secret", "PORT": ""})
    assert (done.command, done.args) == ("/opt/x", ("--port", "80", "$HOME", "a${X%y}"))
    assert done.env == {"K": "secret"}


@pytest.mark.parametrize(
    ("config", "environ", "sentence"),
    [
        (ServerConfig("a", "${BIN}", source="f"), {}, "f: a needs the variable BIN, which is not set."),
        (ServerConfig("a", "x", ("${env:BIN}",)), {}, "${env:BIN} is not supported; write ${VAR}"),
        (ServerConfig("a", "x", ("${OUR_KEY}",)), {"OUR_KEY": "sk-1"}, "the key of a model provider"),
        (ServerConfig("a", url="${U}"), {"U": "http://a b"}, "the url must be like"),
        (ServerConfig("a", url="https://x", headers={"A": "${V}"}), {"V": "b\r\nC: d"}, "printable ASCII"),
        (ServerConfig("a", "x", ("${V}",)), {"V": "b\0"}, "contains a NUL character"),
    ],
)
def test_what_cannot_be_expanded_is_refused(
    config: ServerConfig, environ: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        expand(config, environ, ["OUR_KEY"])
    assert sentence in str(caught.value)
    assert "sk-1" not in str(caught.value)


def test_a_workspace_file_counts_once_it_is_trusted(tmp_path: Path) -> None:
    own = tmp_path / OWN_NAME
    own.write_bytes(servers(time=TIME))
    found = load_servers(tmp_path)
    assert found.configs == {}
    assert found.notes == (
        f"{own} is not trusted, so its servers are not used; read it, then run: quoth trust",
    )
    TRUST.trust(tmp_path, own_servers(tmp_path) or b"")
    assert set(load_servers(tmp_path).configs) == {"time"}
    own.write_bytes(servers(time={"command": "evil"}))
    with pytest.raises(UsageError, match="has changed since it was trusted"):
        load_servers(tmp_path)


def test_the_file_of_the_command_line_counts_first_and_the_workspace_last(tmp_path: Path) -> None:
    given = tmp_path / "given.json"
    given.write_bytes(servers(a={"command": "given"}))
    add_server(ServerConfig("a", "mine"))
    add_server(ServerConfig("b", "mine"))
    own = servers(b={"command": "evil"}, c={"command": "own"})
    (tmp_path / OWN_NAME).write_bytes(own)
    TRUST.trust(tmp_path, own)
    found = load_servers(tmp_path, [given])
    assert {name: one.command for name, one in found.configs.items()} == {
        "a": "given",
        "b": "mine",
        "c": "own",
    }
    assert len(found.notes) == 2
    assert found.notes[1] == f"{OWN_NAME}: the server b is not used; that of {user_servers()} counts."


def test_servers_are_added_and_removed(tmp_path: Path) -> None:
    path = add_server(ServerConfig("time", "uvx", ("mcp-server-time",), {"TZ": "UTC"}))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    document = json.loads(path.read_bytes())
    path.write_text(json.dumps({**document, "theme": "dark"}))
    add_server(ServerConfig("hub", url="https://example.org/mcp", headers={"X": "${Y}"}))
    with pytest.raises(UsageError, match="To remove it: quoth mcp remove time"):
        add_server(ServerConfig("time", "x"))
    add_server(ServerConfig("time", "y"), replacing=True)
    assert json.loads(path.read_bytes()) == {
        "theme": "dark",
        "mcpServers": {
            "time": {"command": "y"},
            "hub": {"url": "https://example.org/mcp", "headers": {"X": "${Y}"}},
        },
    }
    assert (remove_server("Time"), remove_server("time")) == (path, None)
    assert set(load_servers(tmp_path).configs) == {"hub"}


def test_an_unknown_server_is_named_with_its_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"There is no MCP server x\. Add one: quoth mcp add NAME COMMAND"):
        load_servers(tmp_path).find("x")
    add_server(ServerConfig("github", "x"))
    with pytest.raises(UsageError, match="There is no MCP server githib"):
        load_servers(tmp_path).find("githib")


def test_a_given_file_is_not_taken_for_that_of_the_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / OWN_NAME).write_bytes(servers(time=TIME))
    monkeypatch.chdir(there)
    given = load_servers(here, [OWN_NAME]).find("time")
    assert given.named == f"time --mcp {there / OWN_NAME}"
    assert pins_of(given, here) != pins_of(replace(given, source=OWN_NAME), here)
