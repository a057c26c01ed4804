"""The command ``quoth guard``: judges the calls of another agent from its hook, or prints the lines that
install it. A hook of a plain form does not come here (agent/guard/hook.py)."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from quoth.agent.cli.options import DONE, Options, argument, option, switch
from quoth.agent.guard.formats import FORMATS, AgentFormat
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import UsageError, no_such

INSTALL = "install"


class GuardOptions(Options):
    works_in_workspace, groups = False, "--policy"
    what: Sequence[str] = argument(
        "AGENT",
        f"judge the call on stdin, in the format of this agent: {', '.join(FORMATS)};"
        " with install before it: print the settings that run this as its hook",
        default=(),
        nargs="*",
    )
    strict: bool = switch("--strict", "ask about a call that no rule names (default: its own rules decide)")
    may_allow: bool = switch(
        "--may-allow", "say allow where a rule allows the call, so that the agent does not ask"
    )
    socket: str | None = option(
        "--socket", "PATH", "answer hooks at this socket until stopped; with install: settings that use it"
    )


def guard(options: GuardOptions) -> int:
    words = list(options.what)
    if options.workspace is not None:
        raise UsageError("The guard works in the project of each call; leave out --workspace.")
    if not words and options.socket is not None:
        return _serve(options, Path(options.socket))
    if words[:1] == [INSTALL]:
        return _install(options, _agent(words[1:], f"quoth guard {INSTALL}"))
    agent = _agent(words, "quoth guard")
    if options.socket is not None:
        raise UsageError("A guard with a socket serves every agent: quoth guard --socket PATH")
    from quoth.agent.guard import hook

    return hook.run(agent, _given(options))


def _given(options: GuardOptions) -> dict[str, Any]:
    policy = {"policy": str(Path(options.policy).expanduser().absolute())} if options.policy else {}
    user = {"user": options.user} if options.user else {}
    return {"strict": options.strict, "may_allow": options.may_allow, **policy, **user}


def _agent(words: Sequence[str], command: str) -> AgentFormat:
    if len(words) != 1:
        raise UsageError(f"Name one agent: {command} {' | '.join(FORMATS)}")
    if words[0] not in FORMATS:
        raise UsageError(no_such("agent", words[0], FORMATS))
    return FORMATS[words[0]]


def _serve(options: GuardOptions, path: Path) -> int:
    from quoth.agent.guard.judging import GuardSettings
    from quoth.agent.guard.server import serve

    settings = GuardSettings(**_given(options))
    asyncio.run(serve(path, settings, lambda: complain(f"Answering at {path}. Stop with Ctrl-C.")))
    return DONE


def _install(options: GuardOptions, agent: AgentFormat) -> int:
    """Print the settings; to stderr, where they go and what does not apply yet."""
    from quoth.agent.guard.install import hook_command, lines
    from quoth.tools.policy.files import load_policy
    from quoth.tools.policy.project import find_project

    socket = None if options.socket is None else str(Path(options.socket).expanduser().absolute())
    words = [f"--{name.replace('_', '-')}" for name in ("strict", "may_allow") if getattr(options, name)]
    words += [
        word
        for name in ("policy", "user")
        if name in (given := _given(options))
        for word in (f"--{name}", given[name])
    ]
    if socket is not None and words:
        raise UsageError(
            f"The guard at the socket decides that: give {' '.join(words)} to quoth guard --socket"
        )
    policy = load_policy(find_project().root, options.policy)
    if options.json:
        command = hook_command(agent, words, socket)
        print_json({"agent": agent.name, "files": list(agent.settings), "command": command})
    else:
        print_line(lines(agent, words, socket))
    complain(f"Nothing was written. Put this into {agent.settings[0]}, then restart {agent.title}.")
    if agent.then:
        complain(agent.then)
    if find_spec("tree_sitter_bash") is None:
        complain("It reads command lines only with: pip install 'quoth[guard]'")
    for note in policy.notes:
        complain(note)
    if not policy.layers:
        complain("You have no rules yet, so the guard denies nothing: see quoth help guard")
    sys.stderr.flush()
    return DONE
