"""Takes the credentials that this process sends to servers out of what servers send back.

Every text of a server passes ``SENT`` where it enters: replies and refusals of models and of embedding
servers (neuro), messages of workers, pages and redirects, and what a body returns to the door. Knows texts;
it must not know servers or tools. A key is recognised in pieces of a stream, in base64, percent-encoded,
escaped as in JSON or HTML, and in hexadecimal. Not recognised: another encoding, a key divided among several
fields, and one of fewer than SHORTEST characters without its header: it would be found in ordinary words.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

from quoth.tools.call.redaction import HARMLESS, SECRET, map_texts, sounds_secret

if TYPE_CHECKING:
    from quoth.tools.storage.lean_httpx import httpx

SHORTEST = 8  # characters
MOST = 100  # credentials; the one that was sent longest ago is forgotten first
# Headers that say nothing of who asks.
_COMMON = re.compile(
    r"accept(-\w+)?|cache-control|connection|content-\w+|date|host|if-[\w-]+|origin|range|referer|user-agent",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?:.*[-_.])?(?:auth|key|sig|signature|session|cookie|appid)\Z", re.DOTALL)
_RANDOM = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])\S{16,}\Z")


def credentials(headers: Mapping[str, str], url: httpx.URL, *, chosen: bool = True) -> Iterator[str]:
    """The texts by which a request shows a server who asks. In an address that a person has ``chosen`` for
    a server any value of the query may be one; in another, one whose name says so."""
    yield url.password
    for name, value in url.params.multi_items():
        if _names_credential(name) or (chosen and name.lower() not in HARMLESS):
            yield value
    for name, value in headers.items():
        if not _COMMON.fullmatch(name):
            yield from _in_header(value.strip(), sure=_names_credential(name))


def from_environment(*parts: object) -> Iterator[str]:
    """The secrets of the environment that are in parts of a request."""
    whole = repr(parts)
    for name, value in os.environ.items():
        if len(value) >= SHORTEST and sounds_secret(name) and value in whole:
            yield value


def _names_credential(name: str) -> bool:
    return sounds_secret(name) or _NAME.match(name.lower()) is not None


def _in_header(value: str, *, sure: bool) -> Iterator[str]:
    scheme, _, rest = value.partition(" ")
    words = [rest or scheme, *(word.strip('"') for word in re.split(r"[\s;,]+", rest or scheme))]
    words += [word.partition("=")[2].strip('"') for word in words]
    found = [word for word in words if len(word) >= SHORTEST and (sure or _RANDOM.match(word))]
    if scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            found.append(base64.b64decode(rest).decode().partition(":")[2])
    yield from found or ([value] if sure else [])


class Echoes:
    """The credentials that were sent, and texts without them. Safe to use in several threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, ...]] = {}  # how each may be spelt
        self._spellings: tuple[str, ...] = ()  # of all, the longest first
        self._begins: frozenset[str] = frozenset()  # their first letters
        self._lock = threading.Lock()

    def learn(self, *secrets: str) -> None:
        """Remember what is about to be sent."""
        with self._lock:
            found = {secret: self._known.get(secret) for secret in secrets if len(secret) >= SHORTEST}
            known = {secret: spelt for secret, spelt in self._known.items() if secret not in found}
            known |= {secret: spelt or _spellings(secret) for secret, spelt in found.items()}
            self._known = dict(list(known.items())[-MOST:])
            if None in found.values():
                every = {spelling for spelt in self._known.values() for spelling in spelt}
                self._spellings = tuple(sorted(every, key=len, reverse=True))
                self._begins = frozenset(spelling[0] for spelling in every)

    def forget(self) -> None:
        """Forget them all, for another test."""
        self._known, self._spellings, self._begins = {}, (), frozenset()

    def without(self, text: str) -> str:
        """The text without any of them."""
        for spelling in self._spellings:
            text = text.replace(spelling, SECRET)
        return text

    def data(self, value: Any) -> Any:
        """Plain data without any of them."""
        return map_texts(value, self.without) if self._spellings else value

    def json(self, text: str) -> str:
        """JSON text, whose letters may be escapes, without any of them."""
        text = self.without(text)
        if "\\" not in text or not self._spellings:
            return text
        try:
            data: Any = json.loads(text)
        except (ValueError, RecursionError):
            return text
        bare = self.data(data)
        return text if bare == data else json.dumps(bare, ensure_ascii=False)

    def stream(self, on_text: Callable[[str], None]) -> tuple[Callable[[str], None], Callable[[], None]]:
        """A listener that passes words on without them, and what passes on the rest at the end: an end that
        may be the beginning of a key is held back until it is known."""
        held = ""

        def hear(piece: str) -> None:
            nonlocal held
            text = self.without(held + piece)
            held = self._begun(text)
            if passed := text[: len(text) - len(held)]:
                on_text(passed)

        def end() -> None:
            nonlocal held
            if held:
                on_text(held)
            held = ""

        return (hear, end) if self._spellings else (on_text, end)

    def _begun(self, text: str) -> str:
        """The longest end of a text with which one of them may begin."""
        longest = len(self._spellings[0]) - 1
        for start in range(max(0, len(text) - longest), len(text)):
            if text[start] in self._begins:
                end = text[start:]
                if any(spelling.startswith(end) for spelling in self._spellings):
                    return end
        return ""


def _spellings(secret: str) -> tuple[str, ...]:
    import html  # here: most commands send nothing

    data, escaped = secret.encode(errors="surrogatepass"), quote(secret, safe="", errors="replace")
    lower = re.sub(r"%..", lambda match: match[0].lower(), escaped)
    found = {secret, escaped, lower, quote(secret, errors="replace"), quote_plus(secret, errors="replace")}
    found |= {json.dumps(secret)[1:-1], html.escape(secret), data.hex(), data.hex().upper()}
    for shift in range(3):  # where it begins among the three bytes that four letters of base64 stand for
        coded = base64.b64encode(bytes(shift) + data).decode()
        whole = coded[-(-shift * 8 // 6) : (shift + len(data)) * 8 // 6]
        found |= {whole, whole.replace("+", "-").replace("/", "_")}
    return tuple(found)


SENT = Echoes()  # what this process has sent
