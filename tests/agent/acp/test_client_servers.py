"""The servers that a client passes are kept apart, in files that only their user can read."""

from __future__ import annotations

import os

import pytest
from acp.schema import EnvVariable, McpServerStdio

from quoth.agent.acp.client_servers import keep_servers
from quoth.tools.errors import UsageError
from quoth.tools.mcp.config import read_file


def passed(name: str, command: str) -> McpServerStdio:
    return McpServerStdio(name=name, command=command, args=[], env=[EnvVariable(name="TOKEN", value="plum")])


def test_each_server_has_a_file_of_its_own() -> None:
    files = keep_servers("zed", [passed("Time", "one"), passed("git_hub", "two")])
    found = [next(iter(read_file(file).configs.values())) for file in files]
    assert [(one.name, one.command) for one in found] == [("time", "one"), ("git-hub", "two")]
    assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert files[0].parent.stat().st_mode & 0o777 == 0o700
    files[0].write_bytes(b"\xff")  # it is written anew
    assert keep_servers("zed", [passed("Time", "one")]) == files[:1]
    assert read_file(files[0]).configs["time"].command == "one"


def test_a_file_that_no_client_passes_any_more_is_removed_in_time() -> None:
    used, old = keep_servers("zed", [passed("time", "one"), passed("git", "two")])
    (other,) = keep_servers("emacs", [passed("git", "two")])
    for file in (used, old, other):
        os.utime(file, (0, 0))
    assert keep_servers("zed", [passed("time", "one")]) == [used]
    assert [used.exists(), old.exists(), other.exists()] == [True, False, False]
    assert keep_servers("zed", [passed("time", "one")]) == [used]
    assert used.exists()


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("git_hub", "The client zed passes two MCP servers of one name"),
        ("Git-Hub", "would both be named git-hub"),
    ],
)
def test_one_server_never_replaces_another(second: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        keep_servers("zed", [passed("git_hub", "one"), passed(second, "two")])
