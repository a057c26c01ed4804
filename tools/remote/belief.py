"""What a worker believes of a message, and what it says of one that it does not.

Knows keys, messages and forms; it must not know Redis or doors.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from quoth.tools.call.call import Call
from quoth.tools.catalog.payload import Key
from quoth.tools.errors import STATUSES, InvalidCallError, Status
from quoth.tools.lisp.forms import CallForm, from_json
from quoth.tools.remote import names
from quoth.tools.remote.wire import Delegated, Ended, WireError, unpack


class Refused(Exception):
    """A call that does not come as far as the door: how it ends, and whether its caller is told."""

    def __init__(self, status: Status, message: str, *, silent: bool = False) -> None:
        super().__init__(message)
        self.status, self.message, self.silent = status, message, silent


def believed(key: Key, prefix: str, packed: bytes) -> Delegated:
    """The call, if it is signed and meant for here. Raises Refused."""
    try:
        said = unpack(key, packed, Delegated)
    except WireError as error:
        raise Refused("denied", f"A call was refused. {error}", silent=True) from None
    assert isinstance(said, Delegated)
    why = ""
    if said.prefix != prefix:
        why = f"It was granted for the prefix {said.prefix}, and this worker has {prefix}."
    elif not said.replies.startswith(names.replies(prefix, "")):
        why = "Its reply is wanted in another place than the stream of a caller."
    if why:  # its caller, if there is one, does not read here
        raise Refused("denied", f"A call was refused. {why}", silent=True)
    return said


def form_of(said: Delegated) -> CallForm:
    """The form of a call. Raises Refused for one that is not what was granted."""
    try:
        form = from_json(said.form)
    except InvalidCallError as error:
        raise Refused("invalid", str(error)) from None
    if form.digest != said.digest:
        raise Refused("denied", f"{form.tool} was refused: its grant is for another form.")
    return form


def kept_result(key: Key, said: Delegated, packed: bytes) -> Ended | None:
    """The result that an earlier delivery has kept, if there is one. Raises Refused for one that is not of
    this call."""
    if not packed:
        return None
    try:
        ended = unpack(key, packed, Ended)
        assert isinstance(ended, Ended)
        if (ended.key, ended.digest) != (said.key, said.digest) or ended.status not in STATUSES:
            raise WireError("It belongs to another call.")
        return ended
    except WireError as error:
        raise Refused("error", f"The kept result of {tool_of(said)} is not believed. {error}") from None


def tool_of(said: Delegated) -> str:
    return str(said.form.get("tool", "The call"))[:100]


def call_of(said: Delegated, form: CallForm) -> Call:
    """The call as the door of the worker sees it. It is always one that may have been begun before."""
    return Call(
        id=said.id,
        form=form,
        route="remote",
        user=said.user,
        session=said.session,
        depth=said.depth,
        parent=said.parent or None,
        message=said.message,
        key=said.key,
        resumed=True,
        confidence=said.confidence,
    )


def ended_of(
    key: Key,
    said: Delegated,
    status: Status,
    message: str,
    value: Any = None,
    told: list[str] | None = None,
    effects: list[str] | None = None,
) -> bytes:
    """A packed result; one that is too long or no plain data is an error."""
    ended = Ended(said.grant, said.key, said.digest, status, value, message, told or [], effects or [])
    try:
        return ended.pack(key)
    except WireError as error:
        what = f"{tool_of(said)} was done, but its result cannot be sent. {error}"
        short = dataclasses.replace(ended, status="error", value=None, message=what, said=[])
        return dataclasses.replace(short, side_effects=short.side_effects[:100]).pack(key)
