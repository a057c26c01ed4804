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
from quoth.agent.settings import FLAGS, ROWS, CommandSettings, is_given
from quoth.tools.errors import UsageError
from quoth.tools.storage.missing import is_missing

if TYPE_CHECKING:
    from quoth.tools.storage.database import Store

PLACE = ("prefix", "key", "redis_ca")  # they go with the remote or shared server that is taken


def take_over(options: OptionsT, store: Store | None, session: str, user: str) -> OptionsT:
    """Return the options, with those of the session for the ones not given now. Missing files of tools are
    left out; AsyncAgent.changes reports them. Raises UsageError if an imported session would choose code,
    rules or a server, or if the address of the server held a secret."""
    from quoth.agent.session.session import Session
    from quoth.tools.call.redaction import SECRET
    from quoth.tools.history.transcript import Transcript

    said: dict[str, Any] = {}
    foreign = False
    if store is not None:
        known = Session(Transcript(lambda: store), session, user, Path())
        said, foreign = known.given(), known.foreign()
    now = vars(options)
    left_out = {name for name in ("remote", *PLACE) if options.remote}
    left_out = left_out - {*PLACE} if said.get("shared") and not options.shares else left_out
    left_out |= {"shared"} if options.shares else set()
    left_out |= {"search_keys"} if options.search and "://" not in options.search else set()  # it is a folder
    more: dict[str, Any] = {
        name: said[row.kept]
        for name, row in ROWS.items()
        if row.kept in said and row.kept != "limits" and name not in left_out
        if is_given(said[row.kept]) and now[name] in (getattr(CommandSettings, name), [])
    }
    if not foreign and "tools" in more:
        more["tools"] = [file for file in more["tools"] if not is_missing(file)]
    for name in more.keys() & {"sources", "channels"}:
        more[name] = [f"{one}={where}" for one, where in more[name].items()]
    if said.get("search") == "" and not (options.search or os.environ.get("QUOTH_SEARCH")):
        raise UsageError(
            f"Session {session} searched at an address that is not kept. Give it again: --search URL, or in"
            " QUOTH_SEARCH."
        )
    if "channels" in more:
        more["channels"] = _with_address(more["channels"], session)
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
    limits = None if foreign else said.get("limits")
    who = user if options.user is None else options.user
    return replace(options, session=session, user=who, limits=limits, **more)


def _with_address(channels: list[str], session: str) -> list[str]:
    """The channels whose address is kept. Raises UsageError if the environment does not name another."""
    from quoth.agent.run.channels import VARIABLE, channels_of

    named = channels_of((), os.environ.get(VARIABLE, ""))
    for name in (word.rstrip("=") for word in channels if word.endswith("=")):
        if name not in named:
            raise UsageError(
                f"Session {session} had the channel {name}, whose address is not kept. Give it again:"
                f" --channel {name}=URL, or in {VARIABLE}."
            )
    return [word for word in channels if not word.endswith("=")]


def reaches_out(name: str, value: Any) -> bool:
    """Whether a setting of an imported session needs the user's own choice: it runs code, makes rules or
    sends the conversation to a server. Every model but the embedded ones counts, for it names a file, a
    provider or a server's model."""
    from quoth.agent.run.subagents import EMBEDDED

    return ROWS[name].outside and not (name == "model" and value in EMBEDDED)


def _listed(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _as_typed(name: str, value: str) -> str:
    return f"{FLAGS[name]} {shlex.quote(value)}"
