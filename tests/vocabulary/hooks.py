"""What the hooks of other agents send, with all the fields that their documentation names, and how an answer
in the format of an agent reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quoth.agent.guard.formats import FORMATS
from quoth.agent.guard.judging import GuardSettings, answer

AGENTS = tuple(FORMATS)
# What each agent sends beside the call itself.
RECORDED: dict[str, dict[str, Any]] = {
    "claude-code": {
        "session_id": "5f0c6b1e-8a1d-4f0e-9a53-0a4f2f6f7c11",
        "transcript_path": "/home/ann/.claude/projects/till/5f0c6b1e.jsonl",
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_use_id": "toolu_01TillAndPrices",
    },
    "gemini-cli": {
        "session_id": "b9a7-till",
        "transcript_path": "/home/ann/.gemini/tmp/till/chats/b9a7.json",
        "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-29T12:00:00.000Z",
    },
    "codex": {
        "session_id": "019a5c1e-7d2f-7b10-8d5a-2f6c5c9e1a00",
        "turn_id": "turn-3",
        "agent_id": None,
        "agent_type": None,
        "transcript_path": None,
        "hook_event_name": "PreToolUse",
        "model": "gpt-5",
        "permission_mode": "on-request",
        "tool_use_id": "call_7",
    },
}
# The tool by which each agent runs a command line, and the one by which it writes a file.
RUNNER = {"claude-code": "Bash", "gemini-cli": "run_shell_command", "codex": "Bash"}


def writing(agent: str, path: str) -> tuple[str, dict[str, Any]]:
    """The call by which an agent writes this file."""
    if agent == "codex":
        patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch"
        return "apply_patch", {"command": patch}
    tool = {"claude-code": "Write", "gemini-cli": "write_file"}[agent]
    return tool, {"file_path": path, "content": "b\n"}


def sent(agent: str, tool: str, args: dict[str, Any], cwd: Path | str, **more: Any) -> bytes:
    """The input of an agent's hook for this call."""
    call = {"cwd": str(cwd), "tool_name": tool, "tool_input": args}
    return json.dumps(RECORDED[agent] | call | more).encode()


@dataclass(frozen=True)
class Answered:
    """An answer of the guard: deny, ask, allow, or "" where it says nothing, and the reason."""

    kind: str
    reason: str = ""


def read_answer(agent: str, text: str) -> Answered:
    """The answer as the agent reads it: one JSON object with the fields it knows, or nothing."""
    if not text:
        return Answered("")
    said = json.loads(text)
    if agent == "gemini-cli":
        assert said.keys() == {"decision", "reason"}
        return Answered(said["decision"], said["reason"])
    assert said.keys() == {"hookSpecificOutput"}
    inner = said["hookSpecificOutput"]
    assert inner.keys() == {"hookEventName", "permissionDecision", "permissionDecisionReason"}
    assert inner["hookEventName"] == "PreToolUse"
    if agent == "codex":  # it runs the call after any other answer, and after a deny without a reason
        assert inner["permissionDecision"] == "deny"
        assert inner["permissionDecisionReason"].strip()
    return Answered(inner["permissionDecision"], inner["permissionDecisionReason"])


def answered(agent: str, data: bytes, **options: Any) -> Answered:
    return read_answer(agent, answer(FORMATS[agent], data, GuardSettings(**options)))


def guarded(agent: str, tool: str, args: dict[str, Any], cwd: Path | str, **options: Any) -> Answered:
    """The answer to a call of an agent."""
    return answered(agent, sent(agent, tool, args, cwd), **options)


def ran(agent: str, line: str, cwd: Path | str, **options: Any) -> Answered:
    """The answer to a command line of an agent."""
    return guarded(agent, RUNNER[agent], {"command": line}, cwd, **options)
