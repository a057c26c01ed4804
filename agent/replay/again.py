"""Reads a session for a replay, and rebuilds an agent with its recorded settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from quoth.agent.run.channels import service_options
from quoth.agent.run.host import SessionHost, open_host
from quoth.agent.run.options import ModelOptions, PolicyOptions, ToolOptions
from quoth.agent.session.drift import versions_of
from quoth.agent.settings import FLAGS, ROWS, filled, is_given
from quoth.agent.terminal.input import read_file
from quoth.tools.call.services import Services
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.history.event import Event, TranscriptError
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.transfer import read_written
from quoth.tools.knowledge.base import FileKnowledge
from quoth.tools.policy.project import find_project
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import is_missing

# Settings that are files of tools, with words for all of them and for one.
FILES_OF_TOOLS = (("tools", "tools", "tool file"), ("mcp", "MCP servers", "file of MCP servers"))


def session_in_store(store: Store, session: str) -> list[Event]:
    """All events of a session, without declared secrets. Raises TranscriptError if an event was altered."""
    transcript = Transcript(lambda: store)
    transcript.verify(session)
    return [
        event if event.text is event.shown else replace(event, text=event.shown)
        for event in transcript.events(session)
    ]


def session_in_file(path: Path) -> tuple[str, list[Event]]:
    """The id and events of a session file that ``quoth export`` wrote. Raises UsageError."""
    try:
        session, events = read_written(read_file(path).replace("\r\n", "\n").replace("\r", "\n"))
    except TranscriptError as error:
        raise TranscriptError(f"{path}: {error}") from None
    return session, events


@dataclass(frozen=True)
class Opening:
    """The options in a session's opening. ``foreign``: it was imported, so no user of this machine chose its
    files and rules."""

    said: Mapping[str, Any]
    foreign: bool = False


Make = Callable[[Opening], SessionHost]
JUDGES = {"policy": "policy file", "gate": "gate file", "gate_command": "gate"}


def rebuilt_agent(
    given: Opening,
    notes: list[str],
    *,
    workspace: str | Path | None = None,
    session: str,
    chosen: Mapping[str, Any] = MappingProxyType({}),
    live: bool = False,
    services: Services | None = None,
    remote: ToolOptions | None = None,
) -> SessionHost:
    """An agent with the session's settings, without a model. The settings ``chosen`` now, by name, replace
    the session's. ``notes`` gets a sentence for each setting that cannot be restored. With ``live``, its
    calls may use ``services``, and a missing policy or gate raises UsageError. ``remote`` replaces the
    session's place of remote tools; if they cannot be reached, that is a note too."""
    said: dict[str, Any] = {name: given.said.get(row.kept) for name, row in ROWS.items() if row.replayed}
    said |= {name: value for name, value in chosen.items() if name in said and is_given(value)}
    root = find_project().root if workspace is None else workspace
    for name, what in JUDGES.items() if live else ():
        if not is_given(said[name]) or is_given(chosen.get(name)):
            continue
        if given.foreign or (name != "gate_command" and is_missing(said[name])):
            why = "was chosen on another machine" if given.foreign else "does not exist"
            how = f"{FLAGS[name]} {'CMD' if name == 'gate_command' else 'FILE'}"
            raise UsageError(f"The {what} {said[name]} {why}; give the one to use: {how}")
    for name, whole, one in FILES_OF_TOOLS:
        if is_given(chosen.get(name)):
            continue
        named: list[str] = list(said.get(name) or ())
        if named and given.foreign:
            notes.append(
                f"These {whole} were chosen on another machine and are not loaded: {', '.join(named)}."
            )
            named = []
        notes += [f"The {one} {file} is not there any more." for file in named if is_missing(file)]
        said[name] = [file for file in named if not is_missing(file)]
    services = service_options(services)
    if given.said.get("knowledge"):  # for its tools; a replay stores nothing
        services = replace(services, knowledge_base=FileKnowledge(Workspace(root)))
    if (places := given.said.get("sources")) and not given.foreign:
        try:
            services = replace(services, sources=places)
        except UsageError as error:
            notes.append(f"The sources are missing. {error}")
    return open_host(
        workspace=root,
        tools=_with_remote(ToolOptions(**filled(said, "tools")), given, remote, notes),
        model=ModelOptions(**filled(said, "model")),
        policy=PolicyOptions(**filled(said, "policy"))
        if live
        else None,  # without live calls, none is judged
        session=session,
        user=str(given.said.get("user", "")),
        services=services,
    )


def _with_remote(
    options: ToolOptions, given: Opening, chosen: ToolOptions | None, notes: list[str]
) -> ToolOptions:
    """The options with the remote tools of the session, or with the ones ``chosen`` now."""
    said = given.said
    where: Any = said.get("remote") if chosen is None else chosen.remote or said.get("remote")
    if not where:
        return options
    from quoth.agent.run.own import open_catalog, remote_url  # here: most sessions have none

    if chosen is None or chosen.remote is None:
        if given.foreign:
            notes.append(f"Remote tools were chosen on another machine and are not used: {where}.")
            return options
        local, prefix, key = said.get("local") or (), said.get("prefix") or "sg", said.get("key-file")
    else:
        local, prefix, key = chosen.local, chosen.prefix, chosen.key
    try:
        if isinstance(where, str):
            where = remote_url(where, ca=said.get("redis-ca"), typed=False)
        return replace(options, remote=open_catalog(where, prefix, key), local=local)
    except QuothError as error:
        notes.append(f"The remote tools are missing. {error}")
        return options


def tools_since(then: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    """One sentence each for changed, missing and new tools between two openings."""
    versions, now = versions_of(then), versions_of(given)
    became = {
        "have changed": [name for name in versions if name in now and now[name] != versions[name]],
        "are missing": [name for name in versions if name not in now],
        "are new": [name for name in now if name not in versions],
    }
    for what, names in became.items():
        if names:
            yield f"Tools that {what}: {', '.join(names)}."


def opening_before(events: Iterable[Event], seq: int, user: str, foreign: int) -> Opening:
    """The user's last opening before event ``seq``; the first ``foreign`` events were imported."""
    given = Opening({})
    for event in events:
        if event.kind == "session" and event.seq < seq and (data := event.data).get("user") == user:
            given = Opening(data, event.seq <= foreign)
    return given
