"""The table of settings: one row for each. The command line, ``config.hy``, the opening of a session,
``resume``, ``replay`` and ``quoth help settings`` are made from it.

A row is a field of CommandSettings. The fields of an agent that rows name are in agent/run/options.py and
agent/run/channels.py.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, dataclass_transform

from quoth.neuro.backends.providers import specs

# Parsers of option values; argparse reports their errors.


def a_name(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a command line may contain bytes that are not UTF-8
        raise argparse.ArgumentTypeError(f"expected UTF-8 text, not {text!a}") from None
    if not text.strip():
        raise argparse.ArgumentTypeError("expected a name, not an empty text")
    return text


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number, 1 or more, not {text}")
    return int(text)


def whole_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected a whole number, not {text}")
    return int(text)


def whole_seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number of seconds, not {text}")
    return float(text)


def dollars(text: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?|\.\d{1,9}", text) or not float(text):
        raise argparse.ArgumentTypeError(f"expected a number of US dollars above 0, such as 0.25, not {text}")
    return float(text)


def warmth(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 2:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 2, not {text}")
    return found


def key_file(text: str) -> str:
    if not text.startswith("@"):  # the message does not repeat the value: it may be the key
        raise argparse.ArgumentTypeError(
            "a key on the command line can be seen by others; name the file that contains it, @FILE, or store"
            " the key: quoth models login PROVIDER"
        )
    return text


# Rows


@dataclass(frozen=True, slots=True)
class Row:
    """The properties of a setting besides its name, type, default, flag and help.

    ``group``: the group in which help shows it.
    ``to``: the field of an agent's options that it fills, such as ``"model.timeout"``; empty if the command
    line uses it otherwise.
    ``form``: its form in ``config.hy``, ``"timeout"`` or ``"budget :steps"``.
    ``check``: the name of the check of its value there (agent/config/reading.py).
    ``kept``: its name in the opening of a session; empty if a session does not keep it
    (``HostServices.kept`` writes a part of ``services`` there).
    ``outside``: an imported session may not choose it, because it runs code, makes rules or names a server.
    ``replayed``: ``quoth replay`` takes it from the command line, and without it there from the session.
    ``per_run``: ``Agent.run`` can override it."""

    group: str
    to: str = ""
    form: str = ""
    check: str = ""
    kept: str = ""
    outside: bool = False
    replayed: bool = False
    per_run: bool = False


def setting(words: str, help: str, row: Row, **more: Any) -> Any:
    """Return a dataclass field for a setting. ``words`` are its flag and the name of its value; ``…`` after
    the name means that it may be repeated; without a value it is a switch. ``more`` goes to argparse."""
    flag, _, metavar = words.partition(" ")
    if metavar.endswith("…"):
        help, more = f"{help}; may be repeated", {"action": "append", "default": (), **more}
    elif not metavar and "action" not in more:
        more = {"action": "store_true", "default": False}
    known = {"metavar": metavar.removesuffix("…")} if metavar else {}
    default = more.pop("default", None)
    return field(default=default, metadata={"flags": [flag], "help": help, "row": row, **known, **more})


@dataclass_transform(eq_default=False)
@dataclass(init=False, repr=False, eq=False)
class CommandSettings:
    """The settings of a command line. A setting that is not given is None, empty or False.

    All subclasses are dataclasses and share one ``__init__``, because generating one for each would double
    the start time of a command."""

    model: str | None = setting(
        "--model SPEC",
        f"{specs()} (default: see quoth models)",
        Row("model", "model.model", form="model", kept="model", outside=True),
    )
    agent: str | None = setting(
        "--agent NAME",
        "the agent of agents/NAME.hy beside config.hy: its model, instructions, tools and rules",
        Row("agent", "policy.agent", kept="agent", outside=True, replayed=True),
        type=a_name,
    )
    dialect: str | None = setting(
        "--dialect NAME",
        "how the model writes calls: call-form, plist, json, tags, native or run (default: the best for the"
        " model)",
        Row("model", "model.dialect", form="dialect", kept="dialect", replayed=True),
    )
    after_tags: Literal["stop", "continue"] | None = setting(
        "--after-tags WHAT",
        "after a reply that contains calls: stop, or continue with their results (default: stop in a chat,"
        " otherwise continue)",
        Row("model", "model.after_tags", kept="after-tags"),
        choices=("stop", "continue"),
    )
    base_url: str | None = setting(
        "--base-url URL",
        "address of the model's server, such as http://127.0.0.1:8080/v1",
        Row("model", "model.base_url", kept="base-url", outside=True),
    )
    instructions: str | None = setting(
        "--instructions TEXT",
        "instructions for the model, sent before the task; @FILE reads them from a file",
        Row(
            "model",
            "model.instructions",
            form="instructions",
            check="text",
            kept="instructions",
            per_run=True,
        ),
    )
    temperature: float | None = setting(
        "--temperature T",
        "sampling temperature, 0 to 2 (default: the server's own)",
        Row("model", "model.temperature", form="temperature", kept="temperature", per_run=True),
        type=warmth,
    )
    timeout: float | None = setting(
        "--timeout SECONDS",
        "stop waiting when the model's server has sent nothing for N seconds (default: 120)",
        Row("model", "model.timeout", form="timeout", check="seconds", kept="timeout", per_run=True),
        type=at_least_one,
    )
    api_key: str | None = setting(
        "--api-key @FILE",
        "file that contains the API key (default: the stored key or the provider's environment variable)",
        Row("model", "model.api_key", per_run=True),
        type=key_file,
    )
    reply_tokens: int | None = setting(
        "--max-reply-tokens N",
        "maximum number of tokens in one reply (default: depends on the model's context)",
        Row(
            "model",
            "limits.reply_tokens",
            form="max-reply-tokens",
            check="whole",
            kept="limits",
            per_run=True,
        ),
        type=at_least_one,
    )
    workspace: str | None = setting(
        "--workspace DIR",
        "folder the tools work in (default: the project's root)",
        Row("common"),
    )
    tools: Sequence[str] = setting(
        "--tools FILE…",
        "load tools from a .hy or .py file",
        Row("tools", "tools.tools", kept="tools", outside=True, replayed=True),
    )
    mcp: Sequence[str] = setting(
        "--mcp FILE…",
        "use the MCP servers that this JSON file lists under mcpServers",
        Row("tools", "tools.mcp", form="mcp", check="files", kept="mcp", outside=True, replayed=True),
    )
    mcp_sampling: bool = setting(
        "--mcp-sampling",
        "let MCP servers ask the agent's model, under the rules for think",
        Row(
            "tools",
            "tools.mcp_sampling",
            form="mcp-sampling",
            check="sampling",
            kept="mcp-sampling",
            outside=True,
            replayed=True,
        ),
    )
    belt: Literal["full", "few", "search"] | None = setting(
        "--belt KIND",
        "how tools are listed for the model: full, few (six that fit the task, the others by name) or search "
        "(one line for each; default: few for an embedded model, else full)",
        Row("model", "tools.belt", kept="belt", replayed=True),
        choices=("full", "few", "search"),
    )
    without: Sequence[str] = setting(
        "--without NAME…",
        "leave out a built-in tool",
        Row("tools", "tools.without", kept="without", replayed=True),
    )
    remote: str | None = setting(
        "--remote URL",
        "Redis where workers offer tools, redis://HOST; put a URL with a password into QUOTH_REDIS or @FILE",
        Row("redis", kept="remote", outside=True, replayed=True),
    )
    local: Sequence[str] = setting(
        "--local TOOL…", "run this tool here although a worker offers it too", Row("redis", kept="local")
    )
    prefix: str | None = setting(
        "--prefix NAME", "prefix of the keys in Redis (default: sg)", Row("redis", kept="prefix")
    )
    key: str | None = setting(
        "--key FILE",
        "file of the key that signs messages between machines (default: QUOTH_CATALOG_KEY)",
        Row("redis", kept="key-file"),
    )
    redis_ca: str | None = setting(
        "--redis-ca FILE",
        "certificate authority of a rediss:// server, a PEM file",
        Row("redis", kept="redis-ca"),
    )
    shared: str | None = setting(
        "--shared URL",
        "Redis where machines share limits and requests, redis://HOST (default: QUOTH_SHARED)",
        Row("redis", kept="shared", outside=True),
    )
    sources: Sequence[str] = setting(
        "--source NAME=PATH…",
        "let tools read a folder or file outside the workspace under this name",
        Row("tools", kept="sources", outside=True),
    )
    channels: Sequence[str] = setting(
        "--channel NAME=WHERE…",
        "let tools send messages to a file or web address under this name",
        Row("services", kept="channels", outside=True),
    )
    knowledge: bool = setting(
        "--knowledge",
        "let the model collect sources, claims and learnings in the folder knowledge/",
        Row("tools", kept="knowledge"),
    )
    search: str | None = setting(
        "--search WHERE",
        "what the tool research searches: a SearXNG server, a URL with {query}, or a folder",
        Row("services", kept="search", outside=True),
    )
    search_keys: str | None = setting(
        "--search-keys MAP",
        "names of the fields in the search server's JSON: results=…,title=…,url=…,text=…",
        Row("services", kept="search-keys"),
    )
    policy: str | None = setting(
        "--policy FILE",
        "add the rules of this file to yours and the workspace's",
        Row("policy", "policy.file", kept="policy", outside=True, replayed=True),
    )
    gate: str | None = setting(
        "--gate FILE.hy",
        "a Hy file whose function check reviews the calls of tools with :gate",
        Row("policy", "policy.gate", kept="gate", outside=True, replayed=True),
    )
    gate_command: str | None = setting(
        "--gate-command CMD",
        "a program that judges every call: it reads JSON from stdin; exit code 0 allows, 2 denies",
        Row(
            "policy",
            "policy.gate_command",
            form="gate-command",
            check="gate_command",
            kept="gate-command",
            outside=True,
            replayed=True,
        ),
    )
    review: str | None = setting(
        "--review SPEC",
        "a model that looks at each call before you are asked: it may deny it, or tell you what to look at",
        Row("policy", "policy.review", form="review", check="review", kept="review", outside=True),
        type=a_name,
    )
    boundary: str | None = setting(
        "--boundary KIND",
        "what confines programs: bubblewrap, landlock, seatbelt or none (default: the first that works)",
        Row("policy"),
        choices=("bubblewrap", "landlock", "seatbelt", "none"),
    )
    memory: str | None = setting(
        "--memory URL",
        "PostgreSQL database with the memory, postgresql://… (default: QUOTH_MEMORY, else the workspace's)",
        Row("memory"),
    )
    user: str | None = setting(
        "--user NAME",
        "name of the user, for rules and records (default: the login name)",
        Row("common"),
        type=a_name,
    )
    session: str | None = setting(
        "--session ID",
        "session to record this in (default: a new one)",
        Row("session"),
        type=a_name,
    )
    trace: str | None = setting(
        "--trace FILE",
        "append a JSON line to FILE for each run, turn, model request and call",
        Row("session", "services.trace"),
    )
    trace_content: bool = setting(
        "--trace-content",
        "include prompts, replies, arguments and results in the trace, without secrets",
        Row("session", "services.trace_content"),
    )
    json: bool = setting("--json", "print JSON to stdout and nothing else", Row("common"))
    yes: bool = setting("--yes", "answer yes to every permission question", Row("asking"))
    no_input: bool = setting(
        "--no-input", "never ask a question; a call that needs one waits for quoth approve", Row("asking")
    )
    debug: bool = setting("--debug", "print the Python traceback of each error to stderr", Row("common"))
    steps: int | None = setting(
        "--max-steps N",
        "maximum number of model turns (default: 25)",
        Row("limits", "limits.steps", form="budget :steps", check="whole", kept="limits"),
        type=at_least_one,
    )
    calls: int | None = setting(
        "--max-calls N",
        "maximum number of tool calls (default: 100)",
        Row("limits", "limits.calls", form="budget :calls", check="whole", kept="limits"),
        type=at_least_one,
    )
    tokens: int | None = setting(
        "--max-tokens N",
        "maximum number of tokens, sent and received together (default: no limit)",
        Row("limits", "limits.tokens", form="budget :tokens", check="whole", kept="limits"),
        type=at_least_one,
    )
    cost: float | None = setting(
        "--max-cost USD",
        "maximum cost in US dollars; needs quoth[prices] (default: no limit)",
        Row("limits", "limits.cost", form="budget :cost", check="number", kept="limits"),
        type=dollars,
    )
    seconds: float | None = setting(
        "--max-seconds N",
        "stop after N seconds, not counting time spent waiting for you (default: no limit)",
        Row("limits", "limits.seconds", form="budget :seconds", check="seconds", kept="limits"),
        type=at_least_one,
    )
    repeats: int | None = setting(
        "--max-repeats N",
        "stop after the same call was repeated N times (default: 3)",
        Row("limits", "limits.repeats", kept="limits"),
        type=at_least_one,
    )
    context: int | None = setting(
        "--max-context N",
        "size of the model's context in tokens (default: as known of the model)",
        Row("limits", "limits.context", kept="limits"),
        type=at_least_one,
    )
    window: float | None = setting(
        "--repeat-window SECONDS",
        "answer a call repeated within N seconds with its earlier result; 0 runs it again (default: 300)",
        Row("limits", "limits.window", kept="limits"),
        type=whole_seconds,
    )
    plan_mode: bool | None = setting(
        "--plan",
        "plan mode: run only calls that read; every other call becomes a step of a flight plan",
        Row("plan", kept="plan"),
        action=argparse.BooleanOptionalAction,
    )
    worktree: bool = setting(
        "--worktree",
        "work in a git worktree of its session, beside the project; quoth worktrees merges it",
        Row("plan", kept="worktree"),
    )

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **given: Any) -> None:
        vars(self).update({one.name: one.default for one in fields(self)} | given)


ROWS: dict[str, Row] = {one.name: one.metadata["row"] for one in fields(CommandSettings)}
FLAGS: dict[str, str] = {one.name: one.metadata["flags"][0] for one in fields(CommandSettings)}


def is_given(value: Any) -> bool:
    """Whether a setting has a value: 0 is a value; None, False, an empty text or list is not."""
    return value not in (None, "", (), []) and value is not False


def filled(given: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The settings of one part of an agent's options, such as ``"model"``, by the names of its fields."""
    return {
        row.to.partition(".")[2]: given[name]
        for name, row in ROWS.items()
        if row.to.startswith(f"{part}.") and is_given(given.get(name))
    }


# The heading of help under which each group is shown, in the order of the headings.
GROUPS = {
    "model": "model",
    "agent": "model",
    "limits": "limits of a run",
    "policy": "rules and approvals",
    "asking": "rules and approvals",
    "plan": "rules and approvals",
    "tools": "tools",
    "services": "tools",
    "session": "session, memory and trace",
    "memory": "session, memory and trace",
    "common": "workspace and output",
    "redis": "other machines",
}
HOLDERS = {
    "model": "ModelOptions",
    "tools": "ToolOptions",
    "policy": "PolicyOptions",
    "services": "HostServices",
    "limits": "RunLimits",
}


def as_org() -> str:
    """The page of the manual that lists each setting, as Org text."""
    lines = [
        "#+TITLE: Settings",
        "#+DESCRIPTION: each option of the command line, in config.hy, in Python and in a session",
        "",
        "A setting comes from the command line, then from the continued session, then from =config.hy=.",
    ]
    for title in dict.fromkeys(GROUPS.values()):
        lines += ["", f"* {title[:1].upper()}{title[1:]}"]
        for one in fields(CommandSettings):
            row = one.metadata["row"]
            if GROUPS[row.group] != title:
                continue
            holder, _, keyword = row.to.partition(".")
            said = [f"config.hy: ~({row.form} …)~"] if row.form else []
            said += [f"Python: ~{HOLDERS[holder]}({keyword}=…)~"] if row.to else []
            said += ["a run can override it"] if row.per_run else []
            said += ["kept in a session"] if row.kept else []
            flag = " ".join(filter(None, [one.metadata["flags"][0], one.metadata.get("metavar")]))
            help = re.sub(r"\S*=\S*", r"~\g<0>~", one.metadata["help"])
            lines.append(f"- ={flag}= :: {help}. {'; '.join(said)}".rstrip(". ") + ".")
    return "\n".join([*lines, ""])
