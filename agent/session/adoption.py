"""Moves the sessions and the memory of a subfolder's store to that of its project: quoth sessions --adopt.

Everything is copied before the old file is renamed, so an interrupted command can be run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quoth.agent.session.index import unfinished_sessions
from quoth.tools.errors import UsageError
from quoth.tools.history.transcript import Transcript
from quoth.tools.history.transfer import copy_session
from quoth.tools.memory.sqlite import SqliteMemory
from quoth.tools.memory.transfer import Carried
from quoth.tools.storage.database import BESIDE, Store
from quoth.tools.storage.file_lock import not_in_use
from quoth.tools.text import number_of

NAMED = 5  # maximum number of names in a message


class Adopted(NamedTuple):
    """The moved sessions and blocks, and the path of the old store, which keeps the audit and the earlier
    contents of files."""

    sessions: int
    blocks: int
    kept: Path


async def adopt(old: Path, new: Path, user: str) -> Adopted:
    """Move all sessions and blocks. Raises UsageError, and moves nothing, if a session waits or is in use, or
    a name is taken."""
    with not_in_use(old):
        source, target = Store(old), Store(new)
        try:
            _require_ended(source)
            sessions = _new_sessions(source, target)
            blocks = await _new_blocks(source, target, user)
            with target.transaction():
                for agent, every in blocks.items():
                    await _memory(target, agent, user).import_blocks(every)
                for session in sessions:
                    _copy(source, target, session)
        finally:
            source.close()
            target.close()
        return Adopted(len(sessions), sum(map(len, blocks.values())), _put_aside(old))


def _require_ended(source: Store) -> None:
    waiting = {name for name, _ in unfinished_sessions(source)}
    waiting |= Transcript(lambda: source).outline.awaited()
    ((messages,),) = source.execute("SELECT count(*) FROM inbox WHERE state != 'answered'")
    if waiting or messages:
        what = _listed(sorted(waiting), "session") if waiting else number_of(messages, "message of a chat")
        raise UsageError(
            f"{what} waits here or was broken off, and its paths begin at this folder. Finish it or remove it"
            " first: quoth sessions --workspace ."
        )


def _new_sessions(source: Store, target: Store) -> list[str]:
    """The sessions that the target does not have."""
    found, taken = [], []
    for row in Transcript(lambda: source).outline.sessions():
        digests = [
            [event.digest for event in Transcript(lambda: store).events(row.session)]  # noqa: B023
            for store in (source, target)
        ]
        if not digests[1]:
            found.append(row.session)
        elif digests[0] != digests[1]:
            taken.append(row.session)
    if taken:
        raise UsageError(f"The project has other sessions of the same name: {_listed(taken, 'session')}.")
    return found


async def _new_blocks(source: Store, target: Store, user: str) -> dict[str, list[Carried]]:
    """The blocks that the target does not have, by agent."""
    found: dict[str, list[Carried]] = {}
    taken = []
    for (agent,) in source.execute("SELECT DISTINCT agent FROM blocks ORDER BY agent"):
        old, new = _memory(source, agent, user), _memory(target, agent, user)
        for block in await old.list_blocks():
            there = await new.get_block(block.label)
            if there is None:
                found.setdefault(agent, []).append(Carried(block, await old.history(block.label)))
            elif there.text != block.text:
                taken.append(block.label)
    if taken:
        raise UsageError(f"The project's memory has other texts of the same name: {_listed(taken, 'block')}.")
    return found


def _memory(store: Store, agent: str, user: str) -> SqliteMemory:
    return SqliteMemory(lambda: store, agent, user=user, person=True)


def _copy(source: Store, target: Store, session: str) -> None:
    old = Transcript(lambda: source)
    old.verify(session)
    copy_session(target, list(old.events(session)), session)
    for row in source.execute("SELECT user, id, at, text FROM texts WHERE session = ?", (session,)):
        sql = "INSERT INTO texts (session, user, id, at, text) VALUES (?, ?, ?, ?, ?)"
        target.execute(sql, (session, *row))
    if foreign := old.imported(session):
        Transcript(lambda: target).mark_imported(session, foreign)


def _put_aside(old: Path) -> Path:
    """Rename the old store, so that the subfolder no longer has one. Returns its new path."""
    number = 1
    while (kept := old.with_name(f"{old.stem}.adopted-{number}")).exists():
        number += 1
    for end in (*BESIDE, ""):  # the file itself last, so that an interrupted command finds it again
        beside = old.with_name(f"{old.name}{end}")
        if beside.exists():
            beside.rename(f"{kept}{end}")
    old.with_suffix(".told").unlink(missing_ok=True)
    return kept


def _listed(names: list[str], what: str) -> str:
    return f"{number_of(len(names), what)} ({', '.join(names[:NAMED])}{', …' if len(names) > NAMED else ''})"
