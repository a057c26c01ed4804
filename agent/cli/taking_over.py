"""Restores the options of a session for the command that continues it.

Knows sessions and options; runs nothing.
"""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.options import OptionsT
from quoth.tools.errors import UsageError
from quoth.tools.storage.missing import is_missing

if TYPE_CHECKING:
    from quoth.tools.storage.database import Store

KEPT = {"key": "key-file"}  # options whose name in the opening of a session is another


def take_over(options: OptionsT, store: Store | None, session: str, user: str) -> OptionsT:
    """Return the options, with those of the session for the ones not given now. Missing files of tools are
    left out; AsyncAgent.changes reports them. Raises UsageError if an imported session would choose code,
    rules or a server, or if the address of the server held a secret."""
    from quoth.agent.run.channels import VARIABLE, channels_of
    from quoth.agent.session.session import Session
    from quoth.tools.call.redaction import SECRET
    from quoth.tools.history.transcript import Transcript

    given: dict[str, Any] = {}
    foreign = False
    if store is not None:
        known = Session(Transcript(lambda: store), session, user, Path())
        given, foreign = known.given(), known.foreign()
    more: dict[str, Any] = {
        name: value
        for name in (
            *("model", "base_url", "policy", "gate", "gate_command", "dialect", "belt"),
            *("search", "search_keys", "after_tags", "instructions", "temperature", "timeout"),
            *(("remote", "prefix", "key", "redis_ca") if not options.remote else ()),
            *(("shared", "prefix", "key", "redis_ca") if given.get("shared") and not options.shares else ()),
        )
        if (value := given.get(KEPT.get(name, name.replace("_", "-")))) and vars(options)[name] is None
    }
    if given.get("tools") and not options.tools:
        more["tools"] = [file for file in given["tools"] if foreign or not is_missing(file)]
    for name in ("without", "local"):
        if given.get(name) and not vars(options)[name]:
            more[name] = given[name]
    if given.get("plan"):
        more["planning"] = True
    if given.get("knowledge"):
        more["knowledge"] = True
    if options.search and "://" not in options.search:  # a folder has no keys
        more.pop("search_keys", None)
    if given.get("search") == "" and not (options.search or os.environ.get("QUOTH_SEARCH")):
        raise UsageError(
            f"Session {session} searched at an address that is not kept. Give it again: --search URL, or in"
            " QUOTH_SEARCH."
        )
    for name in ("sources", "channels"):
        if given.get(name) and not vars(options)[name]:
            more[name] = [f"{one}={where}" for one, where in given[name].items()]
    if lost := [word for word in more.get("channels", ()) if word.endswith("=")]:
        named = channels_of((), os.environ.get(VARIABLE, ""))
        if missing := [word.rstrip("=") for word in lost if word.rstrip("=") not in named]:
            raise UsageError(
                f"Session {session} had the channel {missing[0]}, whose address is not kept. Give it again:"
                f" --channel {missing[0]}=URL, or in {VARIABLE}."
            )
        more["channels"] = [word for word in more["channels"] if word not in lost]
    if foreign and (outside := [name for name in more if reaches_out(name, more[name])]):
        chosen = " ".join(_as_typed(name, one) for name in outside for one in _listed(more[name]))
        raise UsageError(
            f"Session {session} was imported, and what runs code, makes rules or names a server is for you to"
            f" choose: it had {chosen}. Give these, or others."
        )
    if SECRET in str(more.get("base_url", "")):
        raise UsageError(
            f"The address of the model's server held a secret, which is not kept:"
            f" {more['base_url']}. Give it again: --base-url URL"
        )
    limits = None if foreign else given.get("limits")
    who = user if options.user is None else options.user
    return replace(options, session=session, user=who, limits=limits, **more)


def reaches_out(name: str, value: Any) -> bool:
    """Whether a setting of an imported session needs the user's own choice: it runs code, makes rules or
    sends the conversation to a server. Every model but the embedded ones counts, for it names a file, a
    provider or a server's model."""
    from quoth.agent.run.subagents import EMBEDDED

    if name == "model":
        return value not in EMBEDDED
    judges = ("policy", "gate", "gate_command")
    names = (*judges, "tools", "base_url", "sources", "channels", "search", "remote", "shared")
    return name in names and bool(value)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _as_typed(name: str, value: str) -> str:
    name = {"sources": "source", "channels": "channel"}.get(name, name)
    return f"--{name.replace('_', '-')} {shlex.quote(value)}"
