"""The router of an agent: it brings messages to the user of the session, and to channels the host has named,
which are files and web addresses.

Knows files and servers; it must not know terminals or runs. The address of a server may hold a password or a
token in any part of it, so no sentence says more of it than the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from quoth.tools.call.services import USER
from quoth.tools.call.values import encodable
from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.storage.addresses import certificates, web_address
from quoth.tools.storage.file_lock import hold

POST_SECONDS = 10.0
VARIABLE = "QUOTH_CHANNELS"
FORM = "NAME=WHERE, such as ops=ops.jsonl or ops=https://example.org/hook"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NEXT = re.compile(rf"\n|,(?=\s*{_NAME.pattern}=)")  # an address may hold commas


class Channel(NamedTuple):
    """A named way to people: ``where`` is the absolute path of a file, or an address."""

    name: str
    where: str

    @property
    def is_web(self) -> bool:
        return "://" in self.where

    @property
    def shown(self) -> str:
        """Where it leads, without the parts of an address that may be secret."""
        return (
            f"{urlsplit(self.where).scheme}://{urlsplit(self.where).hostname}" if self.is_web else self.where
        )


def channel(name: str, where: str | Path) -> Channel:
    """A channel. Raises UsageError with a sentence for what cannot be one."""
    text = str(where)
    if not _NAME.fullmatch(name):
        told = "" if "/" in name or ":" in name else f", not {name!r}"
        raise UsageError(f"A channel is {FORM}; its name is letters, digits, dots and hyphens{told}.")
    if name == USER:
        raise UsageError(f"The channel {USER} is the user of the session; choose another name.")
    if not text:
        raise UsageError(f"The channel {name} leads nowhere; it is {FORM}.")
    if "://" in text:
        if web_address(text) is None:
            told = "is none; it begins with http:// or https://"
            raise UsageError(f"The address of the channel {name} {told}.")
        return Channel(name, text)
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        raise UsageError(f"The channel {name} is a file of messages, and {path} is a folder.")
    if not path.parent.is_dir():
        raise UsageError(f"The channel {name} cannot be written: there is no folder {path.parent}.")
    return Channel(name, str(path))


def channels_of(words: Iterable[str], variable: str = "") -> dict[str, str]:
    """The channels of the command line, each ``NAME=WHERE``, and those of the variable QUOTH_CHANNELS that it
    does not name. Raises UsageError."""
    found = _read(_NEXT.split(variable), VARIABLE)
    return found | _read(words, "--channel")


def _read(words: Iterable[str], place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in filter(None, (word.strip() for word in words)):
        name, mark, where = word.partition("=")
        if not mark:
            raise UsageError(f"{place} takes {FORM}.")
        one = channel(name.strip(), where.strip())
        if one.name in found:
            raise UsageError(f"{place} names the channel {one.name} twice.")
        found[one.name] = one.where
    return found


class HostRouter:
    """Brings messages to the user by ``deliver``, to other channels by itself. ``sender`` is the agent."""

    def __init__(
        self, deliver: Callable[[str], None], channels: Mapping[str, str | Path], sender: str = ""
    ) -> None:
        self._deliver = deliver
        self._channels = {name: channel(name, where) for name, where in channels.items()}
        self._sender = sender

    async def list_channels(self) -> Sequence[str]:
        return list(self._channels)

    async def send_message(self, message: str, *, to: str = USER) -> None:
        if to == USER:
            self._deliver(message)
            return
        found = self._channels.get(to)
        if found is None:
            known = [USER, *self._channels]
            raise ToolError(
                f"There is no channel {to}.{did_you_mean(to, known)} The channels are {', '.join(known)}."
            )
        at = datetime.now(UTC).isoformat(timespec="seconds")
        data = {"at": at, "from": self._sender, "to": to, "text": encodable(message)}
        if found.is_web:
            await _post(found, data)
        else:
            await asyncio.to_thread(_append, found, data)


def _append(to: Channel, data: Mapping[str, str]) -> None:
    """Append a line to the channel's file, all of it or nothing, and sync it."""
    import json

    line = json.dumps(data, ensure_ascii=False).encode() + b"\n"
    try:
        with hold(f"channel {os.path.realpath(to.where)}"), Path(to.where).open("a+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            if size:
                file.seek(size - 1)
                line = line if file.read(1) == b"\n" else b"\n" + line
            try:
                if file.write(line) != len(line):
                    raise OSError(0, "it could not be written as a whole")
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(file.fileno(), size)
                raise
    except OSError as error:
        raise _undelivered(to, f"{to.shown}: {error.strerror}") from None
    except UsageError as error:
        raise _undelivered(to, str(error).rstrip(".")) from None


async def _post(to: Channel, data: Mapping[str, str]) -> None:
    """Post a message to the channel's address, within POST_SECONDS."""
    from quoth.tools.storage.lean_httpx import httpx

    try:
        verify = await certificates(urlsplit(to.where).scheme)
        async with (
            asyncio.timeout(POST_SECONDS),
            httpx.AsyncClient(timeout=POST_SECONDS, follow_redirects=False, verify=verify) as client,
            client.stream("POST", to.where, json=dict(data)) as response,
        ):
            status = response.status_code
    except (httpx.TimeoutException, TimeoutError):
        raise _undelivered(to, f"{to.shown} did not answer within {POST_SECONDS:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise _undelivered(to, f"{to.shown} cannot be reached ({type(error).__name__})") from None
    if status >= 300:
        raise _undelivered(to, f"{to.shown} answered {status}")


def _undelivered(to: Channel, why: str) -> ToolError:
    return ToolError(f"The message did not reach the channel {to.name}: {why}.")
