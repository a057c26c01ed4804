"""The router of an agent: it brings messages to the user of the session, and to the channels of the host:
files and web addresses.

Any part of a web address may be a password or a token, so messages name only its host.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from quoth.tools.call.call import CLIENTS
from quoth.tools.call.ports import Audit
from quoth.tools.call.services import (
    NO_KNOWLEDGE,
    NO_MEMORY,
    NO_ROUTER,
    NO_SOURCES,
    NO_WEB_SEARCH,
    USER,
    Embedder,
    Services,
    SourceManager,
)
from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.registry.values import encodable
from quoth.tools.storage.addresses import certificates, web_address
from quoth.tools.storage.file_lock import hold

# The services that a host gives the tools of an agent: memory, knowledge, sources, channels; and the trace of
# its runs.


@dataclass(frozen=True)
class HostServices(Services):
    """The services that a host gives the tools of an agent, and its knowledge:
    ``HostServices(memory=notes, knowledge="It is blue.")``.

    ``sources`` may also be folders and files by name, ``sources={"manual": "docs/manual"}``. Without a
    ``router``, messages to the user are events named ``message`` and are in the Reply, and ``channels`` are
    the other names that a message can be sent to, files or web addresses (agent/run/channels.py):
    ``channels={"ops": "ops.jsonl"}``. ``channel="discord"`` says where the user is; requests for approval
    show it. The channel of a client program is its route and its name, ``channel="acp zed"``, which rules can
    name.

    With a ``knowledge_base`` the agent has the tools that file learnings, and the rules that allow them in a
    chat. ``web_search`` is the search engine of its tool ``research``:
    ``web_search=open_web_search("https://searx.example")``.

    Besides the fields of Services, tools may read ``knowledge``, a text of the host; ``confidence=0.9``, the
    host's confidence from 0 to 1; and ``agent_id="librarian"``, the name of the caller. ``audit`` records the
    calls instead of the store, ``audit=MemoryAudit()``.

    Without ``memory`` the agent uses the memory of its workspace; with ``memory_url="postgresql://…"`` the
    memory in a database, and no record contains the URL. ``embedder`` turns texts into vectors,
    ``embedder=MyModel()``; None is the installed one, or the one that QUOTH_EMBEDDER names.

    ``trace="run.jsonl"`` appends a line to that file for each run, turn, request and call; ``trace="otel"``
    sends them to OpenTelemetry (``quoth help traces``). ``trace_content=True`` adds prompts, replies,
    arguments and results, without secrets.
    """

    knowledge: str | None = None
    confidence: float | None = None
    agent_id: str = "agent"
    audit: Audit | None = None
    memory_url: str | None = field(default=None, repr=False)  # it may contain a password
    embedder: Embedder | None = None
    sources: Any = NO_SOURCES  # a SourceManager, or paths by name
    channels: Mapping[str, str | Path] = field(default_factory=dict)
    channel: str = "python"
    trace: str | Path | None = None
    trace_content: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.sources, Mapping):
            object.__setattr__(self, "sources", _folders(self.sources))
        super().__post_init__()
        if not isinstance(self.channels, Mapping):
            raise UsageError(
                f"channels is a dict of places by name, {{'ops': 'ops.jsonl'}}, not {self.channels!r}."
            )
        if self.channels and self.router is not NO_ROUTER:
            raise UsageError("A router delivers every message: leave out channels or router.")
        if not isinstance(self.channel, str):
            raise UsageError(f"channel is a text, not {self.channel!r}.")
        sure, number = self.confidence, isinstance(self.confidence, int | float)
        if not (self.knowledge is None or isinstance(self.knowledge, str)):
            raise UsageError(f"knowledge is a text or None, not {self.knowledge!r}.")
        if sure is not None and not (number and not isinstance(sure, bool) and 0 <= sure <= 1):
            raise UsageError(f"confidence is a number from 0 to 1 or None, not {sure!r}.")
        if not (self.trace is None or isinstance(self.trace, str | Path)):
            raise UsageError(f"trace is the path of a file, 'otel' or None, not {self.trace!r}.")
        if not (isinstance(self.agent_id, str) and self.agent_id):
            raise UsageError(f"agent_id is a text that is not empty, not {self.agent_id!r}.")
        if self.memory_url is not None and not isinstance(self.memory_url, str):
            raise UsageError("memory_url is the URL of a database or None.")
        if self.memory_url and self.memory is not NO_MEMORY:
            raise UsageError("An agent has one memory: give memory or memory_url, not both.")

    @property
    def client(self) -> str:
        """The name of the client program, of a channel such as ``acp zed``; empty for none."""
        route, _, name = self.channel.partition(" ")
        return name if route in CLIENTS else ""

    @property
    def memory_kind(self) -> str:
        """The kind of database of the memory; empty for the memory of the workspace."""
        return "postgresql" if self.memory_url else ""

    @property
    def gathers(self) -> bool:
        """Whether there is a knowledge base."""
        return self.knowledge_base is not NO_KNOWLEDGE

    @property
    def kept(self) -> dict[str, Any]:
        """The folders and channels for the opening of a session, and whether it gathers knowledge; a web
        address only by its name, because any part of it may be secret."""

        kept: dict[str, Any] = {}
        if self.gathers:
            kept["knowledge"] = True
        if self.web_search is not NO_WEB_SEARCH:
            kept["search"] = ""  # an address, or an object of the host
            kept |= getattr(self.web_search, "kept", {})
        if isinstance(paths := getattr(self.sources, "paths", None), Mapping):
            kept["sources"] = {name: str(path) for name, path in paths.items()}
        if self.channels:
            made = [channel(name, where) for name, where in self.channels.items()]
            kept["channels"] = {one.name: "" if one.is_web else one.where for one in made}
        return kept

    @property
    def for_tools(self) -> Services:
        """Only the fields of Services."""
        return Services(**{one.name: getattr(self, one.name) for one in fields(Services)})


def _folders(paths: Mapping[str, str | Path]) -> SourceManager:
    if not paths:
        return NO_SOURCES
    from quoth.tools.knowledge.sources import FolderSources  # here: few agents have sources

    return FolderSources(paths)


def service_options(given: Services | None) -> HostServices:
    if given is None or isinstance(given, HostServices):
        return given or HostServices()
    if not isinstance(given, Services):
        raise UsageError(f"services is a Services(memory=…, …), not {given!r}.")
    return HostServices(**vars(given))


POST_SECONDS = 10.0
VARIABLE = "QUOTH_CHANNELS"
FORM = "NAME=WHERE, such as ops=ops.jsonl or ops=https://example.org/hook"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NEXT = re.compile(rf"\n|,(?=\s*{_NAME.pattern}=)")  # an address may contain commas


class Channel(NamedTuple):
    """A named place for messages: ``where`` is the absolute path of a file, or a web address."""

    name: str
    where: str

    @property
    def is_web(self) -> bool:
        return "://" in self.where

    @property
    def shown(self) -> str:
        """Its file or address, without the parts that may be secret."""
        return (
            f"{urlsplit(self.where).scheme}://{urlsplit(self.where).hostname}" if self.is_web else self.where
        )


def channel(name: str, where: str | Path) -> Channel:
    """A channel. Raises UsageError for an invalid name, file or address."""
    text = str(where)
    if not _NAME.fullmatch(name):
        told = "" if "/" in name or ":" in name else f", not {name!r}"
        raise UsageError(f"A channel is {FORM}; its name is letters, digits, dots and hyphens{told}.")
    if name == USER:
        raise UsageError(f"The channel {USER} is the user of the session; choose another name.")
    if not text:
        raise UsageError(f"The channel {name} has no file or address; write {FORM}.")
    if "://" in text:
        if web_address(text) is None:
            told = "is not a web address; it must begin with http:// or https://"
            raise UsageError(f"The address of the channel {name} {told}.")
        return Channel(name, text)
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        raise UsageError(f"The channel {name} must be a file, but {path} is a folder.")
    if not path.parent.is_dir():
        raise UsageError(f"The channel {name} cannot be written: there is no folder {path.parent}.")
    return Channel(name, str(path))


def channels_of(words: Iterable[str], variable: str = "") -> dict[str, str]:
    """The channels of the command line, each ``NAME=WHERE``, and other names from the environment variable
    QUOTH_CHANNELS. Raises UsageError."""
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
    """Delivers messages: to the user by ``deliver``, to other channels directly. ``sender`` is the agent."""

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
                    raise OSError(0, "it could not be written completely")
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
