"""The commands ``quoth mcp``: add MCP servers, trust their tools, show how these have changed, call one."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quoth.agent.cli.common import run_call, text_of
from quoth.agent.cli.mcp_serve import mcp_proxy, mcp_serve, pins_named, servers_of
from quoth.agent.cli.options import (
    AFTER,
    DONE,
    FAILED,
    Actions,
    AgentOptions,
    Options,
    Parser,
    argument,
    option,
    parsed,
    switch,
)
from quoth.agent.config.loading import load_config
from quoth.agent.run.servers import setup_of
from quoth.agent.settings import is_given
from quoth.agent.terminal.input import read_file, require_person
from quoth.agent.terminal.output import complain, print_json, print_line, tell_next
from quoth.tools.errors import UsageError, no_such
from quoth.tools.installing import install_extra
from quoth.tools.lisp.forms import CallForm
from quoth.tools.mcp.config import (
    ServerConfig,
    add_server,
    remove_server,
    server_name,
    shown_target,
)
from quoth.tools.mcp.entries import Effects, entry_name, refused_names, schema_fault, stated_effects
from quoth.tools.mcp.pins import (
    MAX_SAID,
    Fields,
    ServerPins,
    ToolChange,
    ToolPin,
    bounded,
    changes,
    forget_pins,
    lines_of,
    pinned,
    read_pins,
    unified,
    write_pins,
)
from quoth.tools.mcp.server_log import log_path
from quoth.tools.mcp.servers import fields_of, pins_of
from quoth.tools.policy.files import at_home, load_policy
from quoth.tools.text import listed as listed_words
from quoth.tools.text import number_of
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from quoth.tools.mcp.connection import Connection

T = TypeVar("T")
GROUPS = "--mcp"
DIGITS = 32  # of a digest: with fewer a server could make two forms that begin alike
SERVER = "the name of a server"


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text}")
    return name, value


class AddOptions(Options):
    name: str = argument("NAME", "the name of the server here, such as github")
    words: Sequence[str] = argument(
        "COMMAND", "its URL, or its program and arguments", nargs=argparse.REMAINDER, default=()
    )
    env: Sequence[tuple[str, str]] = option(
        "--env",
        "NAME=VALUE",
        "a variable for the program, such as TOKEN='${TOKEN}'; may be repeated",
        action="append",
        default=(),
        type=_pair,
    )
    header: Sequence[tuple[str, str]] = option(
        "--header",
        "NAME=VALUE",
        "a header for the URL, such as Authorization='Bearer ${TOKEN}'; may be repeated",
        action="append",
        default=(),
        type=_pair,
    )
    cwd: str = option(
        "--cwd", "DIR", "the program's folder, relative to the workspace (default: an empty one)", default=""
    )
    replace: bool = switch("--replace", "replace a server of that name")


class CommandOptions(AddOptions):
    """The options again, where they follow the name."""

    name: str = argument("COMMAND", "its URL, or its program")


class ServerOptions(Options):
    groups = GROUPS
    name: str = argument("SERVER", SERVER)


class LoginOptions(ServerOptions):
    client_id: str | None = option(
        "--client-id", "ID", "quoth's name at the authorization server, if you registered it there"
    )
    client_secret: str | None = option("--client-secret", "@FILE", "the file with the secret of that name")


class ListOptions(Options):
    groups = GROUPS
    name: str | None = argument("SERVER", "show the tools of this server (default: all servers)", nargs="?")


class ToolCallOptions(AgentOptions):
    name: str = argument("SERVER", SERVER)
    tool: str = argument("TOOL", "the name of its tool, there or here")
    args: str = argument(
        "ARGS",
        "its arguments as a JSON object; - reads them from stdin (default: {})",
        nargs="?",
        default="{}",
    )


# Servers


def add(options: AddOptions) -> int:
    """Add a server to the user's own file."""
    require_person()
    options = _whole(options)
    words = [*options.words]
    name, url = server_name(options.name), words[0].startswith(("https://", "http://"))
    if url and len(words) > 1:
        raise UsageError(f"A URL takes no arguments: {visible(words[1])}")
    if not url and not options.cwd and (file := next(filter(_is_here, words), "")):
        raise UsageError(
            f"{visible(file)} is in this folder, but the server starts in an empty one. Give its path from /,"
            " or --cwd . for the workspace."
        )
    config = ServerConfig(
        name,
        command="" if url else words[0],
        args=() if url else tuple(words[1:]),
        env=dict(options.env),
        cwd=options.cwd,
        url=words[0] if url else "",
        headers=dict(options.header),
    )
    file = at_home(add_server(config, replacing=options.replace))
    if options.json:
        print_json({"status": "added", "server": name, "file": file})
        return DONE
    print_line(f"Added {name} to {file}.")
    tell_next("To see its tools and trust them", options.typed("mcp", "trust", name))
    return DONE


def _is_here(word: str) -> bool:
    """Whether a word of a command line is the name of a file below the current folder."""
    return not word.startswith(("-", "/")) and ("." in word or "/" in word) and Path(word).is_file()


def _whole(options: AddOptions) -> AddOptions:
    """The options, with the ones behind the name. Read again there, the server's program is in place of the
    name."""
    if not any(word != "--" for word in options.words):
        raise UsageError(f"Give the server's URL or its program: quoth mcp add {options.name} COMMAND…")
    parser = Parser(prog="quoth mcp add")
    parser.add_fields(CommandOptions, AFTER)
    parser.set_defaults(kind=CommandOptions, do=add, command="mcp add")
    _, more = parsed(parser, options.words)
    assert isinstance(more, CommandOptions)
    given = {name: value for name, value in vars(more).items() if is_given(value)}
    words = [given.pop("name"), *given.pop("words", ())]
    joined: dict[str, Any] = {
        name: [*getattr(options, name), *given.pop(name, ())] for name in ("env", "header")
    }
    return replace(options, words=words, **joined, **given)


def remove(options: ServerOptions) -> int:
    """Remove a server from the user's own file, and the trust in its tools."""
    require_person()
    known = servers_of(options)
    config = known.configs.get(name := server_name(options.name))
    file = remove_server(name)
    forgotten = config is not None and forget_pins(pins_of(config, options.folder))
    if config is not None and config.url and "${" not in config.url and find_spec("mcp"):
        from quoth.tools.mcp.oauth import forget_login

        forget_login(config.url)
    if file is None and not forgotten:
        known.find(name)  # raises for an unknown name
        raise UsageError(f"{name} is listed in {config.source if config else '?'}; remove it there.")
    if options.json:
        print_json({"status": "removed", "server": name, "file": file and at_home(file)})
    elif file is None:
        print_line(
            f"The tools of {name} are no longer trusted. To remove the server, edit {_source(config)}."
        )
    else:
        print_line(f"Removed {name} from {at_home(file)}.")
    return DONE


def _source(config: ServerConfig | None) -> str:
    return config.source if config else "its file"


def show(options: ListOptions) -> int:
    """Print the servers, or the tools of one."""
    if options.name is not None:
        return _show_tools(options, options.name)
    found = servers_of(options)
    for note in found.notes:
        complain(note)
    rows = [_row(config, options) for config in found.configs.values()]
    if options.json:
        print_json(rows)
        return DONE
    for row in rows:
        print_line(f"{row['name']}  {row['state']}  {visible(row['target'])}  ({row['source']})")
        if row["log"] and Path(row["log"]).exists():
            print_line(f"  log: {row['log']}")
    if not rows:
        print_line("You have no MCP servers. To add one: quoth mcp add NAME COMMAND…")
    return DONE


def _row(config: ServerConfig, options: Options) -> dict[str, Any]:
    log = "" if config.url else str(log_path(config.name))
    row = {"name": config.name, "target": config.shown, "source": config.source, "log": log}
    try:
        pins = read_pins(pins_of(config, options.folder))
    except UsageError as error:
        return {**row, "trusted": False, "tools": 0, "state": "unreadable", "message": str(error)}
    if pins is None:
        return {**row, "trusted": False, "tools": 0, "state": "not trusted"}
    same = pins.address == config.target
    state = number_of(len(pins.tools), "tool") if same else "changed"
    return {**row, "trusted": same, "tools": len(pins.tools), "state": state, "at": pins.at}


def _show_tools(options: ListOptions, name: str) -> int:
    rows = _tools_json(pins_named(options, name), options)
    if options.json:
        print_json(rows)
        return DONE
    for row in rows:
        hints = f"  says {', '.join(row['says'])}" if row["says"] else ""
        print_line(f"{row['name']}  {_effects_words(row['effects'])}  digest {row['digest'][:DIGITS]}{hints}")
    return DONE


def _tools_json(pins: ServerPins, options: Options) -> list[dict[str, Any]]:
    stated, rows = _stated(options), []
    for pin in pins.tools.values():
        effects, rule = stated_effects(stated, name := entry_name(pins.server, pin.name), pin)
        row = {"name": name, "tool": pin.name, "digest": pin.digest, "effects": list(effects), "rule": rule}
        rows.append({**row, "says": list(pin.says), **({"fault": pin.fault} if pin.fault else {})})
    return rows


def _effects_words(effects: Sequence[str]) -> str:
    return " ".join(f":{effect}" for effect in effects)


def _stated(options: Options) -> Effects:
    return load_policy(options.folder, options.policy).effects


# Trust


def trust(options: ServerOptions) -> int:
    """Show all that a server says of its tools, ask, and trust them in this form."""
    from quoth.agent.terminal.ask import confirmed

    require_person()
    config = servers_of(options).find(options.name)
    path = pins_of(config, options.folder)
    before = _earlier(config, options)
    listed, more = _connected(config, options, _everything)
    pins = pinned(
        config.name,
        config.target,
        listed.tools,
        before,
        resources=more[0],
        prompts=more[1],
        fault=schema_fault,
    )
    pins = replace(pins, more=listed.more, instructions=listed.instructions)
    changed = changes(before or pins, config.target, listed.tools)
    refused = refused_names(config.name, pins.tools, lambda name: "")
    if before is not None and before.digest == pins.digest and before.address == pins.address:
        return _told_trusted(options, pins, f"{config.name} is trusted in this form already.", changed)
    if not options.json or not options.yes:
        complain("\n".join(_shown(config, listed, pins, before, changed, refused, _stated(options))), name="")
    if not options.yes and not confirmed(f"Trust these tools of {config.name}?", no_input=options.no_input):
        complain("Nothing was trusted.")
        return FAILED
    write_pins(path, pins)
    return _told_trusted(
        options, pins, f"{config.name} is trusted: {number_of(len(pins.tools), 'tool')}.", changed
    )


def _told_trusted(options: Options, pins: ServerPins, sentence: str, changed: dict[str, ToolChange]) -> int:
    if options.json:
        said = {"status": "trusted", "server": pins.server, "digest": pins.digest}
        said |= {"instructions": pins.instructions} if pins.instructions else {}
        tools = {"tools": _tools_json(pins, options)}
        print_json({**said, **tools, "changes": [_change_json(one) for one in changed.values()]})
    else:
        print_line(sentence)
    return DONE


def _shown(
    config: ServerConfig,
    listed: _Listing,
    pins: ServerPins,
    before: ServerPins | None,
    changed: dict[str, ToolChange],
    refused: dict[str, str],
    stated: Effects,
) -> Iterator[str]:
    """What a person reads before the question. Tools that are trusted in this form are only counted."""
    yield f"The MCP server {config.name} ({config.source})"
    yield f"  {'URL' if config.url else 'command'}: {visible(config.shown)}"
    if before is not None and before.address != config.target:
        yield f"  before: {visible(shown_target(before.address))}"
    if listed.said:
        yield f"  it says it is {visible(listed.said)}"
    offers = [what for what, offered in (("resources", pins.resources), ("prompts", pins.prompts)) if offered]
    if offers := [*offers, *pins.more]:
        yield f"  it also offers {listed_words(offers)}"
    if pins.instructions and (before is None or before.instructions != pins.instructions):
        yield "  its instructions, for the models of clients of quoth mcp proxy:"
        yield from (f"  > {visible(line)}" for line in bounded(pins.instructions.splitlines()))
    same = 0
    for name, pin in pins.tools.items():
        if before is not None and name not in changed:
            same += 1
            continue
        yield ""
        yield from _shown_tool(pins, pin, changed.get(name), stated)
        if why := refused.get(name) or (pin.fault and f"It is left out: {pin.fault}"):
            yield f"  {why}"
    for name, change in changed.items():
        if name not in pins.tools:
            yield ""
            yield change.sentence()
    if same:
        yield f"\n{number_of(same, 'tool')} as trusted before."


def _shown_tool(pins: ServerPins, pin: ToolPin, change: ToolChange | None, stated: Effects) -> Iterator[str]:
    effects, rule = stated_effects(stated, name := entry_name(pins.server, pin.name), pin)
    head = f"{name}  digest {pin.digest[:DIGITS]}"
    yield head if change is None else f"{head}  {change.what}"
    if change is not None and change.before is not None:
        yield from (f"  {line}" for line in bounded(change.difference()))
    else:
        yield from (f"  {line}" for line in bounded(lines_of(pin.fields)))
    by = f"by {rule}" if rule else "the default: each call asks"
    yield f"  effects: {_effects_words(effects)} ({by})"
    if not rule and pin.renewed and name in stated:
        one = next(iter(stated[name]))
        kept = f'(effects {name} {_effects_words(one.effects)} :digest "{pin.digest[:DIGITS]}")'
        yield f"  {one.place} is about an earlier form; for this one: {kept}"


def diff(options: ServerOptions) -> int:
    """Print how a server's present tools differ from the trusted ones; the exit code is 1 if they do."""
    config = servers_of(options).find(options.name)
    pins = pins_named(options, config.name)
    listed, _ = _connected(config, options, _everything)
    changed = changes(pins, config.target, listed.tools)
    said = unified(*(text.splitlines() for text in (pins.instructions, listed.instructions)))
    words = [visible(line) for line in said]
    if options.json:
        rows = [_change_json(one) for one in changed.values()]
        print_json({"server": config.name, "changes": rows, "instructions": words})
        return FAILED if changed or words else DONE
    for change in changed.values():
        print_line(change.sentence())
        for line in bounded(change.difference()):
            print_line(f"  {line}")
    if words:
        print_line("It gives models other instructions.")
        for line in bounded(words):
            print_line(f"  {line}")
    if not changed and not words:
        print_line(f"The tools of {config.name} are as you trusted them.")
        return DONE
    tell_next("To trust them as they are now", options.typed("mcp", "trust", config.name))
    return FAILED


def _change_json(change: ToolChange) -> dict[str, Any]:
    return {
        "kind": change.kind,
        "tool": change.tool,
        "message": change.sentence(),
        "difference": list(change.difference()),
    }


# Calls


def call(options: ToolCallOptions) -> int:
    """Call a tool of a server through the door."""
    config = servers_of(options).find(options.name)
    pins = pins_named(options, config.name)
    names = {entry_name(config.name, tool): tool for tool in pins.tools}
    own = [entry_name(config.name, one) for one in ("read-resource", "get-prompt")]
    wanted = next(
        (name for name in (options.tool, entry_name(config.name, options.tool)) if name in names), ""
    )
    if not wanted and (named := entry_name(config.name, options.tool)) in own:
        wanted = named
    if not wanted:
        raise UsageError(no_such("tool", options.tool, names.values(), "Its tools are", f" of {config.name}"))
    try:
        args = json.loads(text_of(options.args))
    except ValueError as error:
        raise UsageError(f"ARGS is not JSON: {error}.") from None
    except RecursionError:
        raise UsageError("ARGS is nested too deeply.") from None
    if not isinstance(args, dict):
        raise UsageError(f'ARGS is a JSON object, such as \'{{"text": "hi"}}\', not {visible(options.args)}.')
    form = CallForm(wanted, args)
    return run_call(options, lambda agent: agent.call(form))


def login(options: LoginOptions) -> int:
    """Log in to a server at a URL."""
    require_person()
    config = servers_of(options).find(options.name)
    _require_sdk()
    import webbrowser

    from quoth.tools.mcp.login import RegisteredClient
    from quoth.tools.mcp.login import login as log_in

    secret = options.client_secret
    if secret is not None and not secret.startswith("@"):  # the message does not repeat it
        raise UsageError("A secret on the command line can be seen by others: --client-secret @FILE")
    client = RegisteredClient(
        options.client_id or "", read_file(Path(secret[1:]).expanduser()).strip() if secret else ""
    )
    setup = setup_of(options.folder, load_config(options.folder))

    async def ask(address: str) -> None:
        complain(f"To log in to {config.name}, open this address: {visible(address)}")
        if has_screen():
            await asyncio.to_thread(webbrowser.open, address)

    place = asyncio.run(log_in(config, options.folder, ask, client, withheld=setup.withheld))
    if options.json:
        print_json({"status": "logged in" if place else "no login needed", "server": config.name})
    else:
        print_line(
            f"Logged in to {config.name}; the login is in {place}."
            if place
            else f"{config.name} needs no login."
        )
    return DONE


def has_screen(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a browser can open a window: one for terminals would take this terminal."""
    return sys.platform == "darwin" or bool({"DISPLAY", "WAYLAND_DISPLAY"} & environ.keys())


# Connecting


class _Listing:
    """What a server says: its tools as they are on the wire, its own name and version, what else it offers,
    and its instructions."""

    def __init__(self, tools: list[Fields], said: str, more: tuple[str, ...], instructions: str) -> None:
        self.tools, self.said, self.more, self.instructions = tools, said, more, instructions


async def _everything(connection: Connection) -> tuple[_Listing, tuple[bool, bool]]:
    """The server's tools, and whether it has resources and prompts."""
    listed = await connection.tools()
    said = f"{listed.server.name} {listed.server.version}" if listed.server else ""
    resources = await connection.resources() or await connection.resource_templates()
    more = tuple(one for one in listed.more if resources or one != "subscriptions")
    found = _Listing(fields_of(listed.tools), said, more, (listed.instructions or "")[:MAX_SAID])
    return found, (bool(resources), bool(await connection.prompts()))


def _connected(config: ServerConfig, options: Options, use: Callable[[Connection], Awaitable[T]]) -> T:
    """What ``use`` returns for a connection to the server, which is ended afterwards."""
    _require_sdk()
    setup = setup_of(options.folder, load_config(options.folder))

    async def work() -> T:
        async with aclosing(setup.connection(config)) as connection:
            return await use(connection)

    return asyncio.run(work())


def _require_sdk() -> None:
    if find_spec("mcp") is None:
        raise UsageError(f"MCP servers need the package mcp: {install_extra('mcp')}")


def _earlier(config: ServerConfig, options: Options) -> ServerPins | None:
    """The pins before; None also for pins that cannot be read, which a new trust replaces."""
    try:
        return read_pins(pins_of(config, options.folder))
    except UsageError as error:
        complain(str(error))
        return None


ACTIONS: Actions = {
    "add": (add, "Add a server: a program that is started, or a URL."),
    "list": (show, "List the servers, or the trusted tools of one."),
    "trust": (trust, "Show all that a server says of its tools, and trust it."),
    "diff": (diff, "Show how a server's tools differ from the trusted ones."),
    "login": (login, "Log in to a server at a URL."),
    "call": (call, "Call a tool of a server, under the same rules as a model."),
    "serve": (mcp_serve, "Serve tools to a client of MCP."),
    "proxy": (mcp_proxy, "Pass calls between a client of MCP and a server, under your rules."),
    "remove": (remove, "Remove a server, and the trust in its tools."),
}
