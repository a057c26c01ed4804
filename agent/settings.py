"""The table of settings: one row for each. The command line, ``config.hy``, the opening of a session,
``resume``, ``replay`` and ``quoth help settings`` are made from it.

A row is a field of CommandSettings. Knows texts only; the fields of an agent that rows name are in
agent/run/options.py and agent/run/channels.py.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, dataclass_transform

from quoth.neuro.backends.providers import specs

# What an option of the command line may be; argparse reports what these complain of.


def a_name(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a command line may contain bytes that are not text
        raise argparse.ArgumentTypeError(f"UTF-8 text is needed, not {text!a}") from None
    return text


def at_least_one(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 is needed, not {text}")
    return int(text)


def whole_number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"a whole number is needed, not {text}")
    return int(text)


def whole_seconds(text: str) -> float:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number of seconds is needed, not {text}")
    return float(text)


def dollars(text: str) -> float:
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?|\.\d{1,9}", text) or not float(text):
        raise argparse.ArgumentTypeError(f"a number of US dollars above 0 is needed, as in 0.25, not {text}")
    return float(text)


def warmth(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found <= 2:
        raise argparse.ArgumentTypeError(f"a number from 0 to 2 is needed, not {text}")
    return found


def key_file(text: str) -> str:
    if not text.startswith("@"):  # it is not repeated: it may be the key
        raise argparse.ArgumentTypeError(
            "a key that is typed can be seen by others; name a file that holds it, @FILE, or type:"
            " quoth models login PROVIDER"
        )
    return text


# Rows


@dataclass(frozen=True, slots=True)
class Row:
    """What there is to know of a setting beside its name, type, default, flag and help.

    ``group`` is the group in which help shows it. ``to`` is the field of an agent's options that it fills,
    ``"model.timeout"``; empty where the command line makes something else of it. ``form`` is how
    ``config.hy`` says it, ``"timeout"`` or ``"budget :steps"``, and ``check`` names what its value may be
    there (agent/config/reading.py). ``kept`` is its name in the opening of a session; empty for what a
    session does not keep (a part of ``services`` is written there by ``HostServices.kept``). ``outside``:
    an imported session may not choose it, because it runs code, makes rules or names a server.
    ``replayed``: ``quoth replay`` takes it as it is given, else as the session has it. ``per_run``:
    ``Agent.run`` can override it."""

    group: str
    to: str = ""
    form: str = ""
    check: str = ""
    kept: str = ""
    outside: bool = False
    replayed: bool = False
    per_run: bool = False


def setting(words: str, help: str, row: Row, **more: Any) -> Any:
    """Return a dataclass field for a setting. ``words`` are its flag and the name of its value, which ends
    with ``…`` where the option may be repeated; without a value it is a switch. ``more`` goes to argparse."""
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
    """Each setting as a command line gives it. One that was not given is None, empty or False.

    All subclasses are dataclasses, and share one ``__init__``: generating one for each would double a
    command's start time."""

    model: str | None = setting(
        "--model SPEC",
        f"{specs()} (default: see quoth models)",
        Row("model", "model.model", form="model", kept="model", outside=True),
    )
    dialect: str | None = setting(
        "--dialect NAME",
        "how the model calls tools: call-form, plist, json, tags, native, run (default: by model)",
        Row("model", "model.dialect", form="dialect", kept="dialect", replayed=True),
    )
    after_tags: Literal["stop", "continue"] | None = setting(
        "--after-tags WHAT",
        "after a reply with calls, stop or continue (default: stop in a chat, else continue)",
        Row("model", "model.after_tags", kept="after-tags"),
        choices=("stop", "continue"),
    )
    base_url: str | None = setting(
        "--base-url URL",
        "the address of the model's server",
        Row("model", "model.base_url", kept="base-url", outside=True),
    )
    instructions: str | None = setting(
        "--instructions TEXT",
        "what the model is told before any task, or @FILE that holds it",
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
        "sampling temperature, 0 to 2",
        Row("model", "model.temperature", form="temperature", kept="temperature", per_run=True),
        type=warmth,
    )
    timeout: float | None = setting(
        "--timeout SECONDS",
        "how long the model's server may be silent (default: 120)",
        Row("model", "model.timeout", form="timeout", check="seconds", kept="timeout", per_run=True),
        type=at_least_one,
    )
    api_key: str | None = setting(
        "--api-key @FILE",
        "the key of the model's server (default: see quoth models)",
        Row("model", "model.api_key", per_run=True),
        type=key_file,
    )
    reply_tokens: int | None = setting(
        "--max-reply-tokens N",
        "tokens one reply of the model may have (default: by what it can read)",
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
        "the folder the file tools may touch (default: the project's root)",
        Row("common"),
    )
    tools: Sequence[str] = setting(
        "--tools FILE…",
        "a .hy or .py file of tools",
        Row("tools", "tools.tools", kept="tools", outside=True, replayed=True),
    )
    belt: Literal["full", "search"] | None = setting(
        "--belt KIND",
        "full, or search: one line a tool",
        Row("model", "tools.belt", kept="belt", replayed=True),
        choices=("full", "search"),
    )
    without: Sequence[str] = setting(
        "--without NAME…",
        "leave out a tool that ships",
        Row("tools", "tools.without", kept="without", replayed=True),
    )
    remote: str | None = setting(
        "--remote URL",
        "redis://…, where workers offer tools (a password: in QUOTH_REDIS, or @FILE)",
        Row("redis", kept="remote", outside=True, replayed=True),
    )
    local: Sequence[str] = setting(
        "--local TOOL…", "keep this tool here though it is remote too", Row("redis", kept="local")
    )
    prefix: str | None = setting(
        "--prefix NAME", "what the keys in Redis begin with (default: sg)", Row("redis", kept="prefix")
    )
    key: str | None = setting(
        "--key FILE",
        "the key shared with the workers (default: QUOTH_CATALOG_KEY)",
        Row("redis", kept="key-file"),
    )
    redis_ca: str | None = setting(
        "--redis-ca FILE", "the CA of a rediss:// server", Row("redis", kept="redis-ca")
    )
    shared: str | None = setting(
        "--shared URL",
        "redis://…, where machines share limits and requests (default: QUOTH_SHARED)",
        Row("redis", kept="shared", outside=True),
    )
    sources: Sequence[str] = setting(
        "--source NAME=PATH…",
        "a folder or file that tools may read",
        Row("tools", kept="sources", outside=True),
    )
    channels: Sequence[str] = setting(
        "--channel NAME=WHERE…",
        "a file or web address that messages can be sent to",
        Row("services", kept="channels", outside=True),
    )
    knowledge: bool = setting(
        "--knowledge",
        "gather sources, claims and learnings in the folder knowledge/",
        Row("tools", kept="knowledge"),
    )
    search: str | None = setting(
        "--search WHERE",
        "where research looks: a SearXNG server, an address with {query}, or a folder",
        Row("services", kept="search", outside=True),
    )
    search_keys: str | None = setting(
        "--search-keys MAP",
        "where a server's answer has results=,title=,url=,text=",
        Row("services", kept="search-keys"),
    )
    policy: str | None = setting(
        "--policy FILE",
        "rules for this run, beside yours and the workspace's",
        Row("policy", "policy.file", kept="policy", outside=True, replayed=True),
    )
    gate: str | None = setting(
        "--gate FILE.hy",
        "a reviewer of the calls of tools that want one",
        Row("policy", "policy.gate", kept="gate", outside=True, replayed=True),
    )
    gate_command: str | None = setting(
        "--gate-command CMD",
        "a program that judges every call: JSON on stdin, exit 0 allows, 2 denies",
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
    boundary: str | None = setting(
        "--boundary KIND",
        "what confines programs: bubblewrap, landlock, seatbelt or none (default: the best that works)",
        Row("policy"),
        choices=("bubblewrap", "landlock", "seatbelt", "none"),
    )
    memory: str | None = setting(
        "--memory URL",
        "postgresql://…, the memory (default: QUOTH_MEMORY, or that of the workspace)",
        Row("memory"),
    )
    user: str | None = setting(
        "--user NAME", "who is asking (default: the login name)", Row("common"), type=a_name
    )
    session: str | None = setting(
        "--session ID",
        "the session the calls belong to (default: a new one)",
        Row("session"),
        type=a_name,
    )
    trace: str | None = setting(
        "--trace FILE",
        "append a line of JSON to FILE for each run, turn, request and call",
        Row("session", "services.trace"),
    )
    trace_content: bool = setting(
        "--trace-content",
        "also prompts, replies, arguments and results, without secrets",
        Row("session", "services.trace_content"),
    )
    json: bool = setting("--json", "print JSON to stdout and nothing else", Row("common"))
    yes: bool = setting("--yes", "answer yes to every permission question", Row("asking"))
    no_input: bool = setting("--no-input", "never ask; such a call stays pending", Row("asking"))
    debug: bool = setting("--debug", "show the traceback of each error on stderr", Row("common"))
    steps: int | None = setting(
        "--max-steps N",
        "maximum number of model turns (default: 25)",
        Row("limits", "limits.steps", form="budget :steps", check="whole", kept="limits"),
        type=at_least_one,
    )
    calls: int | None = setting(
        "--max-calls N",
        "maximum number of calls (default: 100)",
        Row("limits", "limits.calls", form="budget :calls", check="whole", kept="limits"),
        type=at_least_one,
    )
    tokens: int | None = setting(
        "--max-tokens N",
        "stop before a request that may take more tokens, in and out (default: no bound)",
        Row("limits", "limits.tokens", form="budget :tokens", check="whole", kept="limits"),
        type=at_least_one,
    )
    cost: float | None = setting(
        "--max-cost USD",
        "stop before a request that may cost more (default: no bound; needs quoth[prices])",
        Row("limits", "limits.cost", form="budget :cost", check="number", kept="limits"),
        type=dollars,
    )
    seconds: float | None = setting(
        "--max-seconds N",
        "stop after N seconds, not counting time spent waiting for you (default: no bound)",
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
        "tokens the model can read at once (default: as known of the model)",
        Row("limits", "limits.context", kept="limits"),
        type=at_least_one,
    )
    window: float | None = setting(
        "--repeat-window SECONDS",
        "answer a call that is repeated within N seconds by its earlier result; 0: never (default: 300)",
        Row("limits", "limits.window", kept="limits"),
        type=whole_seconds,
    )
    plan_mode: bool | None = setting(
        "--plan",
        "plan mode: a call that does more than read is not run, and becomes a step of a flight plan",
        Row("plan", kept="plan"),
        action=argparse.BooleanOptionalAction,
    )

    def __init_subclass__(cls) -> None:
        dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, **given: Any) -> None:
        vars(self).update({one.name: one.default for one in fields(self)} | given)


ROWS: dict[str, Row] = {one.name: one.metadata["row"] for one in fields(CommandSettings)}
FLAGS: dict[str, str] = {one.name: one.metadata["flags"][0] for one in fields(CommandSettings)}


def is_given(value: Any) -> bool:
    """Whether a setting has a value: 0 is one, and None, False, an empty text or list is not."""
    return value not in (None, "", (), []) and value is not False


def filled(given: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Of settings by name those of one part of an agent's options, ``"model"`` for example, by its fields."""
    return {
        row.to.partition(".")[2]: given[name]
        for name, row in ROWS.items()
        if row.to.startswith(f"{part}.") and is_given(given.get(name))
    }


GROUPS = {
    "common": "common options",
    "model": "the model",
    "tools": "tools and what they read",
    "policy": "rules",
    "services": "messages and searches",
    "memory": "memory",
    "redis": "other machines",
    "session": "the session and its trace",
    "asking": "questions",
    "limits": "limits of a run",
    "plan": "plan mode",
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
        "A setting comes from the command line, else from the continued session, else from =config.hy=.",
    ]
    for group, title in GROUPS.items():
        lines += ["", f"* {title[:1].upper()}{title[1:]}"]
        for one in fields(CommandSettings):
            row = one.metadata["row"]
            if row.group != group:
                continue
            holder, _, keyword = row.to.partition(".")
            said = [f"config.hy: ~({row.form} …)~"] if row.form else []
            said += [f"Python: ~{HOLDERS[holder]}({keyword}=…)~"] if row.to else []
            said += ["a run can override it"] if row.per_run else []
            said += ["kept in a session"] if row.kept else []
            flag = " ".join(filter(None, [one.metadata["flags"][0], one.metadata.get("metavar")]))
            lines.append(f"- ={flag}= :: {one.metadata['help']}. {'; '.join(said)}".rstrip(". ") + ".")
    return "\n".join([*lines, ""])
