"""The hooks of other agents as one table: how each names a call, what its tools do, and how it is answered.

Every row says where its format was read, and when.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

OWN_SECONDS = 20.0  # after this long our process denies
KILL_SECONDS = 22  # after this long it is killed, also while it waits; the installed line then denies
HOOK_SECONDS = 30  # the timeout that the installed lines give the hook, above both

UNKNOWN_EFFECTS = ("net", "writes")  # of a tool that is in no row
ANY_COMMAND = ("runs", "net", "writes", "deletes")  # of a tool that runs any command of the shell


@dataclass(frozen=True)
class AgentTool:
    """A tool of another agent. ``paths`` are the parameters that are paths, or lists of paths; ``here`` is
    the one that means the current folder if it is missing. ``command`` is the parameter with a command line,
    of bash or of a shell that quoth cannot read, ``patch`` the one with a patch in Codex's format."""

    effects: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    here: str = ""
    command: str = ""
    bash: bool = True
    patch: str = ""
    also: tuple[str, ...] = ()  # its other parameters that rules may name


READS, WRITES, NET, RUNS = ("reads",), ("writes",), ("net",), ANY_COMMAND


@dataclass(frozen=True)
class AgentFormat:
    """One agent. ``event`` is its hook; ``asks`` and ``allows`` say whether the agent takes these answers.
    ``flat`` answers are two fields; the others are nested below the event. ``settings`` are the files that
    configure its hooks. ``unseen`` are the actions that reach no hook, in words for the manual; ``read``
    names the pages and the date."""

    name: str
    title: str
    event: str
    tools: Mapping[str, AgentTool] = field(repr=False)
    asks: bool = True
    allows: bool = True
    flat: bool = False
    every: str = "*"  # the matcher of all tools
    settings: tuple[str, ...] = ()
    mark: str = ""  # the environment variable that its commands have
    project: str = ""  # the environment variable of its hooks that names the folder where it was started
    then: str = ""  # what else the person does, after installing
    unseen: tuple[str, ...] = ()
    read: str = ""

    def answer(self, kind: str, reason: str) -> str:
        """The answer as one line of JSON; nothing for an allow that the agent does not take."""
        if kind == "allow" and not self.allows:
            return ""
        reason = reason or "quoth says so"  # Codex runs a call that is denied without a reason
        if self.flat:
            return json.dumps({"decision": kind, "reason": reason})
        said = {"hookEventName": self.event, "permissionDecision": kind, "permissionDecisionReason": reason}
        return json.dumps({"hookSpecificOutput": said})


CLAUDE_CODE = AgentFormat(
    "claude-code",
    "Claude Code",
    "PreToolUse",
    MappingProxyType(
        {
            "Bash": AgentTool(RUNS, command="command", also=("description", "timeout", "run_in_background")),
            "Monitor": AgentTool(RUNS, command="command"),
            "PowerShell": AgentTool(RUNS, command="command", bash=False),
            "Read": AgentTool(READS, ("file_path",), also=("offset", "limit", "pages")),
            "Write": AgentTool(WRITES, ("file_path",), also=("content",)),
            "Edit": AgentTool(WRITES, ("file_path",), also=("old_string", "new_string", "replace_all")),
            "MultiEdit": AgentTool(WRITES, ("file_path",), also=("edits",)),
            "NotebookEdit": AgentTool(
                WRITES, ("notebook_path",), also=("new_source", "cell_id", "cell_type", "edit_mode")
            ),
            "Glob": AgentTool(READS, ("path",), here="path", also=("pattern",)),
            "Grep": AgentTool(
                READS, ("path",), here="path", also=("pattern", "glob", "type", "output_mode", "multiline")
            ),
            "LS": AgentTool(READS, ("path",), here="path"),
            "LSP": AgentTool(READS, ("filePath",)),
            "WebFetch": AgentTool(NET, also=("url", "prompt")),
            "WebSearch": AgentTool(NET, also=("query", "allowed_domains", "blocked_domains")),
            "Skill": AgentTool(READS, also=("skill", "args")),
            "AskUserQuestion": AgentTool(("asks",)),
            "SendMessage": AgentTool(("messages",)),
            **dict.fromkeys(
                (
                    *("Agent", "Task", "TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"),
                    *("TaskOutput", "TaskStop", "BashOutput", "KillShell", "ToolSearch"),
                    *("EnterPlanMode", "ExitPlanMode", "CronList", "ScheduleWakeup", "ReportFindings"),
                ),
                AgentTool(),
            ),
        }
    ),
    settings=(
        "~/.claude/settings.json",
        "~/.claude/settings.local.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    project="CLAUDE_PROJECT_DIR",
    mark="CLAUDECODE",
    then='"onFailure" has an effect from Claude Code 2.1.295 on. To see the hook: /hooks',
    unseen=(
        "a file that you name with =@= in a prompt",
        "a command that you type after =!=",
        "what a command does once it runs: a script that it starts, a file that it writes",
        "what the server of an MCP tool does",
    ),
    read=(
        "code.claude.com/docs/en/hooks and /tools-reference; tried with Claude Code 2.1.197, 29 November 2026"
    ),
)
GEMINI_CLI = AgentFormat(
    "gemini-cli",
    "Gemini CLI",
    "BeforeTool",
    MappingProxyType(
        {
            "run_shell_command": AgentTool(
                RUNS,
                ("dir_path", "directory"),
                here="dir_path",
                command="command",
                also=("description", "is_background"),
            ),
            "read_file": AgentTool(READS, ("file_path", "absolute_path"), also=("start_line", "end_line")),
            "read_many_files": AgentTool(READS, ("include", "paths")),
            "write_file": AgentTool(WRITES, ("file_path",), also=("content",)),
            "replace": AgentTool(WRITES, ("file_path",), also=("instruction", "old_string", "new_string")),
            "list_directory": AgentTool(READS, ("dir_path", "path"), here="dir_path"),
            "glob": AgentTool(READS, ("dir_path", "path"), here="dir_path", also=("pattern",)),
            "grep_search": AgentTool(
                READS, ("dir_path", "path"), here="dir_path", also=("pattern", "include_pattern")
            ),
            "search_file_content": AgentTool(READS, ("dir_path", "path"), here="dir_path"),
            "web_fetch": AgentTool(NET, also=("prompt",)),
            "google_web_search": AgentTool(NET, also=("query",)),
            "save_memory": AgentTool(("memory", "writes"), also=("fact",)),
            "activate_skill": AgentTool(READS, also=("name",)),
            "get_internal_docs": AgentTool(READS),
            "ask_user": AgentTool(("asks",)),
            **dict.fromkeys(
                (
                    *("write_todos", "enter_plan_mode", "exit_plan_mode", "update_topic"),
                    *("codebase_investigator", "cli_help", "complete_task", "invoke_agent"),
                    *("list_background_processes", "read_background_output"),
                    *(f"tracker_{one}_task" for one in ("create", "update", "get")),
                    *("tracker_list_tasks", "tracker_add_dependency", "tracker_visualize"),
                ),
                AgentTool(),
            ),
        }
    ),
    flat=True,
    every=".*",
    settings=("~/.gemini/settings.json", ".gemini/settings.json"),
    project="GEMINI_PROJECT_DIR",
    mark="GEMINI_CLI",
    then="To see the hook: /hooks panel",
    unseen=(
        "a file that you name with =@= in a prompt",
        "a command that you type after =!=",
        "what a command does once it runs",
        "what the server of an MCP tool does",
    ),
    read=(
        "docs/hooks/reference.md and packages/core/src/hooks/types.ts (whose HookDecision has ask)"
        " of google-gemini/gemini-cli; tried with Gemini CLI 0.61.0, 29 November 2026"
    ),
)
CODEX = AgentFormat(
    "codex",
    "Codex",
    "PreToolUse",
    MappingProxyType(
        {
            "Bash": AgentTool(RUNS, command="command"),
            "apply_patch": AgentTool(("writes", "deletes"), patch="command"),
            "view_image": AgentTool(READS, ("path",)),
            "read_file": AgentTool(READS, ("file_path",)),
            "list_dir": AgentTool(READS, ("dir_path",), here="dir_path"),
            "grep_files": AgentTool(READS, ("path",), here="path"),
            "request_user_input": AgentTool(("asks",)),
            **dict.fromkeys(("update_plan", "get_goal", "create_goal", "update_goal"), AgentTool()),
        }
    ),
    asks=False,
    allows=False,
    settings=("~/.codex/config.toml", "~/.codex/hooks.json", ".codex/config.toml", ".codex/hooks.json"),
    mark="CODEX_THREAD_ID",
    then="Codex runs a new hook only after you trust it: /hooks",
    unseen=(
        "=write_stdin=: the input of a command that already runs",
        "=exec= of code mode: the program that calls the tools; the calls themselves are seen",
        "tools that run at OpenAI, such as web search",
        "what a command does once it runs",
        "what the server of an MCP tool does",
    ),
    read=(
        "codex-rs/hooks (events/pre_tool_use.rs, engine/output_parser.rs), codex-rs/config/src/hook_config.rs"
        " and codex-rs/core/src/tools/handlers of openai/codex; tried with Codex 0.171.0, 29 November 2026"
    ),
)
FORMATS: Mapping[str, AgentFormat] = MappingProxyType(
    {one.name: one for one in (CLAUDE_CODE, GEMINI_CLI, CODEX)}
)


def fields_of(agent: AgentFormat, data: Any) -> tuple[str, dict[str, Any], str, str]:
    """The tool, its arguments, the current folder and the session of a hook's input; the three agents name
    them alike. Raises ValueError with the field that is wrong."""
    if not isinstance(data, dict):
        raise ValueError("it is not a JSON object")
    event = data.get("hook_event_name", agent.event)
    if event != agent.event:
        raise ValueError(f'"hook_event_name" is not {agent.event}')
    tool, given, cwd = data.get("tool_name"), data.get("tool_input"), data.get("cwd")
    if not isinstance(tool, str) or not tool.strip():
        raise ValueError('"tool_name" is missing')
    if not isinstance(given, dict):
        raise ValueError('"tool_input" is not an object')
    if not isinstance(cwd, str) or not cwd.startswith("/"):
        raise ValueError('"cwd" is not an absolute path')
    session = data.get("session_id")
    context = data.get("mcp_context")
    names = ("server_name", "tool_name")  # Gemini CLI's own name of the tool may be cut
    if (
        tool.startswith("mcp_")
        and isinstance(context, dict)
        and all(isinstance(context.get(one), str) for one in names)
    ):
        tool = f"mcp__{context['server_name']}__{context['tool_name']}"
    return tool, given, cwd, session if isinstance(session, str) else ""
