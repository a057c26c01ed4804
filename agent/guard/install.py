"""The lines that put the guard in front of an agent, to copy into its settings: printed, never written.

Agents let a call through if its hook ends with a code that they do not know, is not found or is late. So the
hook is a line of ``sh`` that prints the answer of our process if that ended well, and otherwise a deny.
"""

from __future__ import annotations

import json
import shlex
import sys

from quoth.agent.guard.formats import HOOK_SECONDS, AgentFormat
from quoth.tools.installing import own_program

FAILED = "quoth denies this call: its guard did not answer."
LINE = 'a=$({}) && printf %s "$a" || printf %s "$0"'
# Sends the input to a running guard and prints its answer. Only the C module of sockets, so that it starts in
# a fraction of the time; an answer without its first line does not count.
CLIENT = (
    "import _socket,sys,os;s=_socket.socket(1,1);s.settimeout(%d);s.connect(sys.argv[1]);"
    's.sendall((sys.argv[2]+"\\n").encode()+sys.stdin.buffer.read());s.shutdown(1);a=b"";'
    'exec("while b:=s.recv(65536):a+=b");'
    'k,_,a=a.partition(b"\\n");k==b"answer" and a[-1:]==b"\\n" or os._exit(1);os.write(1,a[:-1])'
)


def lines(agent: AgentFormat, words: list[str], socket: str | None = None) -> str:
    """The settings of the agent, with ``words`` as further options of ``quoth guard``; with ``socket``, of a
    guard that is running there."""
    command = hook_command(agent, words, socket)
    if agent.name == "codex":
        return "\n".join(
            [
                "[[hooks.PreToolUse]]",
                "[[hooks.PreToolUse.hooks]]",
                'type = "command"',
                f"command = {json.dumps(command)}",
                f"timeout = {HOOK_SECONDS}",
            ]
        )
    hook: dict[str, object] = {"type": "command", "command": command}
    if agent.flat:
        hook |= {"name": "quoth", "timeout": HOOK_SECONDS * 1000}
    else:
        hook |= {"timeout": HOOK_SECONDS, "onFailure": "block"}
    return json.dumps({"hooks": {agent.event: [{"matcher": agent.every, "hooks": [hook]}]}}, indent=2)


def hook_command(agent: AgentFormat, words: list[str], socket: str | None = None) -> str:
    """The command of the hook, for any shell: it prints one answer and ends with 0."""
    if socket is None:
        own = shlex.join([*own_program(), "guard", agent.name, *words])
    else:
        client = CLIENT % (HOOK_SECONDS - 2)
        own = shlex.join([sys.executable, "-I", "-S", "-c", client, socket, agent.name])
    return shlex.join(["sh", "-c", LINE.format(own), agent.answer("deny", FAILED)])
