"""The verdict on a line of shell commands, each judged as a call of ``shell``, its redirections as calls of
``read-file`` and ``write-file``: the strictest wins.

An allow needs an exact line, and a rule for each command in it. Of a command that a wrapper runs only a deny
or an ask counts: the wrapper itself was judged, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from quoth.tools.call.call import Verdict
from quoth.tools.registry.values import REST, UNKNOWN
from quoth.tools.shell.command_line import CommandLine, SimpleCommand, read_line

# The verdict of the rules on a call, by the name of its tool and its arguments; None if no rule decides it.
# An argument may be UNKNOWN, and the last item of ``argv`` REST: a rule may then be undecided. Forms contain
# neither.
Judge = Callable[[str, Mapping[str, Any]], Verdict | None]


def judge_line(line: str, judge: Judge) -> Verdict | None:
    """The strictest verdict of the rules on a line; None if they leave it undecided."""
    read = read_line(line)
    verdicts = [judge(*call) for call in calls_of(read)]
    for kind in ("deny", "ask"):
        if found := next((one for one in verdicts if one is not None and one.kind == kind), None):
            return found
    allows = [judge("shell", _call(command)) for command in read.commands if not command.inner]
    if read.exact and allows and None not in allows:
        return allows[0]
    return None


def calls_of(line: CommandLine) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls that a line amounts to. A command with unknown words is two: with their sources, which may
    name programs, and with anything behind the words that are known."""
    for command in line.commands:
        yield "shell", _call(command)
        if not command.literal:
            yield "shell", {"argv": [*command.argv[: command.known], REST]}
    for tool, paths in (("read-file", line.reads), ("write-file", line.writes)):
        for path in paths:
            yield tool, {"path": UNKNOWN if path is None else path}


def _call(command: SimpleCommand) -> dict[str, Any]:
    return {"argv": list(command.argv)}
