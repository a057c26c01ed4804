"""Searches for a query at a server that answers with JSON, or in a folder of files: the WebSearch of a host.

Results are texts of strangers: they are cleaned and cut, and addresses in them are not followed. The address
of a server may contain a password or a key in any part, so messages show only its host and port."""

from __future__ import annotations

import asyncio
import heapq
import json
import math
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from quoth.tools.call.redaction import SENT, credentials
from quoth.tools.call.service_types import WebHit
from quoth.tools.call.services import WebSearch
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError, did_you_mean
from quoth.tools.knowledge.sources import may_read
from quoth.tools.storage.addresses import certificates, web_address
from quoth.tools.text import excerpt, one_line, short
from quoth.tools.words import WORD

SECONDS = 10.0  # for the whole answer
MAX_BYTES = 2_000_000
MAX_ADDRESS = 2000  # characters; a result with a longer one is left out
QUERY = "{query}"
KEYS = {"results": "results", "title": "title", "url": "url", "text": "content"}  # as in SearXNG
FORM = "results=items,title=name,url=link,text=snippet"
PLACES = "https://searx.example, an address with {query} in it, or a folder such as notes/"


def open_web_search(spec: str, keys: str = "", root: str | Path = ".") -> WebSearch:
    """The search given by ``--search``: the address of a SearXNG server, any address with ``{query}`` in it
    that answers with JSON, or a folder, relative to ``root``. ``keys`` says where the results are in the
    answer of a server. Raises UsageError."""
    if not spec.strip():
        raise UsageError(f"--search is empty. Give {PLACES}.")
    if is_web(spec):
        return ServerSearch(spec, keys)
    if keys:
        raise UsageError("--search-keys are for a server, but --search is a folder.")
    return FolderSearch(spec, root)


def is_web(spec: str) -> bool:
    """Whether ``--search`` is a server."""
    return "://" in spec


class ServerSearch:
    """A search server: SearXNG, or any other server that answers a GET with JSON."""

    def __init__(self, address: str, keys: str = "") -> None:
        self._address = _address(address)
        self._keys = _keys(keys)
        self.kept = {"search-keys": keys} if keys else {}  # not the address, which may contain a secret

    @property
    def name(self) -> str:
        """The scheme, host and port of the server."""
        parts = urlsplit(self._address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    async def find(self, query: str, limit: int = 10) -> Sequence[WebHit]:
        """The server's results, in its order. Raises ToolError."""
        found = self._results(_json(await self._answer(query), self.name))
        hits = [hit for one in found if (hit := self._hit(one)) is not None]
        if found and not hits:
            raise self._lost(found[0], f"its results have no http address under {self._keys['url']}")
        return hits[: min(limit, MAX_HITS)]

    async def _answer(self, query: str) -> bytes:
        """The body of the server's answer. Raises ToolError."""
        import zlib

        from quoth.tools.storage.lean_httpx import UnknownEncodingError, httpx

        headers = {"accept": "application/json", "accept-encoding": "gzip"}
        try:
            SENT.learn(*credentials({}, httpx.URL(self._address)))
            verify = await certificates(urlsplit(self._address).scheme)
            async with (
                asyncio.timeout(SECONDS),
                httpx.AsyncClient(timeout=SECONDS, headers=headers, verify=verify) as client,
                client.stream("GET", _asking(self._address, query)) as response,
            ):
                self._check(response.status_code, response.headers.get("content-type", ""))
                encoding = response.headers.get("content-encoding", "")
                return await self._read(response.aiter_raw(), encoding)
        except (httpx.TimeoutException, TimeoutError):
            raise self._failed(f"did not answer within {SECONDS:g} s") from None
        except UnknownEncodingError:
            raise self._failed("answered with a compression that was not requested") from None
        except zlib.error:
            raise self._failed("answered with data that is not gzip, although it said so") from None
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            raise self._failed(f"cannot be reached ({type(error).__name__})") from None

    def _check(self, status: int, kind: str) -> None:
        if 300 <= status < 400:
            raise self._failed(f"answered {status}: redirects are not followed")
        if status == 403:
            raise self._failed("answered 403: SearXNG needs json in the setting search.formats")
        if status != 200:
            raise self._failed(f"answered {status}")
        kind = kind.partition(";")[0].strip().lower()
        if not (kind == "application/json" or kind.endswith("+json")):
            raise self._failed(f"answered with {excerpt(kind) or 'an unknown type'}, not with JSON")

    async def _read(self, raw: AsyncIterator[bytes], encoding: str) -> bytes:
        from quoth.tools.storage.lean_httpx import inflated

        data = bytearray()
        async for piece in inflated(raw, encoding):
            data += piece
            if len(data) > MAX_BYTES:
                raise self._failed(f"answered with more than {MAX_BYTES:,} bytes")
        return bytes(data)

    def _results(self, answer: Any) -> list[Any]:
        found = _at(answer, self._keys["results"])
        if not isinstance(found, list):
            where = self._keys["results"]
            what = f"it has no list of results under {where}" if where else "it is not a list"
            raise self._lost(answer, what)
        return found

    def _hit(self, one: Any) -> WebHit | None:
        """A result that can be shown; None if it has no address."""
        address = _at(one, self._keys["url"])
        if not isinstance(address, str) or not _is_address(address := address.strip()):
            return None
        title = _text(_at(one, self._keys["title"]), TITLE)
        return WebHit(title or short(address, TITLE), address, _text(_at(one, self._keys["text"]), TEXT))

    def _failed(self, what: str) -> ToolError:
        return ToolError(f"The search server {self.name} {what}.")

    def _lost(self, answer: Any, what: str) -> ToolError:
        """The error for an answer without results in the expected place."""
        names = [_text(name, 30) for name in answer][:8] if isinstance(answer, Mapping) else []
        has = f" (its keys: {', '.join(names)})" if names else ""
        return self._failed(f"answered with JSON, but {what}{has}. Set its keys: --search-keys {FORM}")


def _text(value: Any, chars: int) -> str:
    """A text or number of an answer, cleaned; an empty text for anything else."""
    return one_line(str(value), chars) if isinstance(value, str | int | float) else ""


def _address(spec: str) -> str:
    """The address of a server, with ``{query}`` in it. Raises UsageError."""
    spec = spec.strip()
    if (parts := web_address(spec)) is None:
        raise UsageError(f"The address of --search is invalid. Give {PLACES}.")
    if QUERY in parts.netloc or QUERY in parts.fragment:
        raise UsageError("The {query} of --search must be in the path of the address, or after its ?.")
    if QUERY in spec:
        return spec
    path = parts.path if parts.path.endswith("/search") else f"{parts.path.rstrip('/')}/search"
    more = [(name, value) for name, value in parse_qsl(parts.query) if name not in ("q", "format")]
    asked = urlencode([*more, ("format", "json")])
    return parts._replace(path=path, query=f"q={QUERY}&{asked}", fragment="").geturl()


def _asking(address: str, query: str) -> str:
    """The address for one query. The query can only add a text to it."""
    if not re.search(r"\w", query):
        raise ToolError("The query contains no word: it needs letters or digits.")
    return address.replace(QUERY, quote(query.encode("utf-8", "replace"), safe=""))


def _keys(text: str) -> dict[str, str]:
    """``KEYS``, with the keys that ``--search-keys`` names. Raises UsageError."""
    found = dict(KEYS)
    for word in filter(None, (word.strip() for word in text.split(","))):
        name, mark, path = (part.strip() for part in word.partition("="))
        if not mark:
            raise UsageError(f"--search-keys must be {FORM}, not {excerpt(word)}.")
        if name not in KEYS:
            raise UsageError(
                f"--search-keys has no key {excerpt(name)}.{did_you_mean(name, KEYS)} It takes {FORM}."
            )
        if not path and name != "results":  # the answer itself may be the list
            raise UsageError(f"--search-keys has no value for {name}. Write {FORM}.")
        found[name] = path
    return found


def _json(body: bytes, name: str) -> Any:
    try:
        return SENT.data(json.loads(body))
    except (ValueError, RecursionError):
        raise ToolError(f"The search server {name} answered with JSON that cannot be read.") from None


def _at(value: Any, path: str) -> Any:
    """The value at a dotted path in JSON data; None if there is none."""
    for part in filter(None, path.split(".")):
        if isinstance(value, list) and part.isdecimal():
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _is_address(text: str) -> bool:
    """Whether a text is a web address, not too long and without invisible characters."""
    if len(text) > MAX_ADDRESS or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
    except ValueError:
        return False


# Searching a folder of text files by words: the WebSearch of a host without a server. Files outside the
# folder and hidden files are not read, links are not followed, and the rules of the running call apply.


MAX_HITS = 20
TITLE, TEXT = 200, 500  # characters of a result
MAX_FILES = 5000
MAX_FILE_BYTES = 1_000_000  # of one file; the rest of a longer file is not searched
MAX_WORDS = 32
LINES = 3  # lines shown of a file

_TITLE = re.compile(r"(?im)^#\+title:[ \t]*(\S.*)$|^(?:\*+|#+)[ \t]+(\S.*)$")


@dataclass
class _FileWords:
    """A file with some of the words, and how often it has each."""

    file: Path
    text: str
    counts: dict[str, int]


class FolderSearch:
    """The text files of a folder, found by their words. Raises UsageError if it is not a folder."""

    def __init__(self, folder: str | Path, root: str | Path = ".") -> None:
        self._root = Path(root).resolve()
        try:
            self.folder = (self._root / Path(folder).expanduser()).resolve(strict=True)
            fine = self.folder.is_dir()
        except (OSError, RuntimeError, ValueError):
            fine = False
        if not fine:
            named = "" if "@" in str(folder) else f": {folder}"  # a mistyped address may contain a password
            raise UsageError(
                f"--search is not a folder{named}. The address of a server must begin with http://."
            )
        self.kept = {"search": str(self.folder)}  # in the opening of a session
        self._files = Workspace(self.folder)

    @property
    def name(self) -> str:
        return self._shown(self.folder)

    async def find(self, query: str, limit: int = 10) -> Sequence[WebHit]:
        """The files that contain the words, files with rarer words first. Raises ToolError."""
        words = list(dict.fromkeys(WORD.findall(query.casefold())))[:MAX_WORDS]
        if not words:
            raise ToolError("The query contains no word: it needs letters or digits.")
        return await asyncio.to_thread(self._find, words, min(limit, MAX_HITS))

    def _find(self, words: list[str], limit: int) -> list[WebHit]:
        deadline, looked, found = time.monotonic() + SECONDS, 0, list[_FileWords]()
        for file in self._files.walk("."):
            looked += 1
            if looked > MAX_FILES or time.monotonic() > deadline:
                raise ToolError(f"The folder {self.name} is too large to search. Give a smaller one.")
            # Hidden files, such as .env, are not for chats. A name with line ends would give an address of
            # several lines.
            if file.name.startswith(".") or not str(file).isprintable():
                continue
            if may_read(file) and (text := self._text(file)) is not None:
                there = Counter(WORD.findall(f"{file.stem} {text}".casefold()))
                counts = {word: there[word] for word in words}
                if any(counts.values()):
                    found.append(_FileWords(file, text, counts))
        rare = {
            word: math.log(1 + looked / having)
            for word in words
            if (having := sum(1 for one in found if one.counts[word]))
        }

        def score(one: _FileWords) -> float:
            return sum(rare[word] * (1 + math.log(often)) for word, often in one.counts.items() if often)

        best = heapq.nlargest(limit, found, key=score)
        titles = [_title(one) for one in best]
        return [
            WebHit(title, self._shown(one.file), _lines(one.text, title, rare))
            for title, one in zip(titles, best, strict=True)
        ]

    def _text(self, file: Path) -> str | None:
        """The text of a file; None if it is not text or cannot be read."""
        try:
            with self._files.open_read(self._files.shown(file)) as stream:
                data = stream.read(MAX_FILE_BYTES)
        except (ToolError, OSError):
            return None
        return None if b"\0" in data else data.decode("utf-8", "replace")

    def _shown(self, path: Path) -> str:
        """A path as an address: relative if it is inside the root, otherwise absolute."""
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else str(path)


def _title(one: _FileWords) -> str:
    """The title in a file, or its name."""
    found = _TITLE.search(one.text[:5000])
    return one_line(found[1] or found[2], TITLE) if found else one.file.name


def _lines(text: str, title: str, rare: dict[str, float]) -> str:
    """The lines of a text with the rarest words, in order, without its title."""

    def score(place: int) -> float:
        if lines[place].startswith("#+") or lines[place].lstrip("#* ").strip() == title:
            return 0.0
        return sum(rare.get(word, 0.0) for word in set(WORD.findall(lines[place].casefold())))

    lines = text.splitlines()
    best = heapq.nlargest(LINES, (place for place in range(len(lines)) if score(place)), key=score)
    return " … ".join(one_line(lines[place], TEXT // LINES - 3) for place in sorted(best))
