"""What the backends over HTTP share: connections, tries, deadlines, streams, and failures as sentences.

Must not know tools, forms or the loop. No sentence it raises ever holds the key or another secret of the URL.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import time
import urllib.request
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, NoReturn, Protocol

import httpx

from quoth.neuro.backends.base import (
    Completion,
    ContextFullError,
    ModelError,
    ToolChoice,
    ToolsRefusedError,
    Usage,
)
from quoth.neuro.backends.context_window import fewer, overflow
from quoth.neuro.backends.messages import Messages, NativeCall, to_json
from quoth.tools.errors import UsageError
from quoth.tools.text import printable, short

LONGEST_WAIT = 30.0  # seconds; a server that asks for more is reported, not waited for
SECRET = 4  # characters of a user's name or of a query's value that may be a secret
LONGEST_QUOTE = 300  # characters of a server's own words that are shown
REPLY_TOKENS = ("max_tokens", "max_completion_tokens")
WORDS = 4_000  # characters of them that are looked at
LONGEST = 8_000_000  # bytes of a reply, decompressed
# Around each few characters of a stream stand some hundred bytes that are no part of the reply; what is
# longer counts. So many events have more words than any model says at once, and hold no more memory.
AROUND = 400
MOST_EVENTS = 150_000
MOST_CALLS = 1_000  # native ones, in one reply
INFLATED = 65_536  # bytes that are decompressed at a time
PASSING = (429, 500, 502, 503, 504, 529)
# How servers say that they take no tools; some of them with a status of 500.
_TOOLS = r"\b(?:tools?|functions?|tool_choice|function[ _]call(?:s|ing)?)\b(?![.\[])"
_REFUSAL = (
    r"(?:not (?:support|enabled|permitted|allowed|available|accept)|found that support|requires"
    r"|unsupported|unknown|unrecogni[sz]ed)"
)
_TOOLS_REFUSED = re.compile(
    rf"{_TOOLS}[^.\n]{{0,60}}{_REFUSAL}|{_REFUSAL}[^.\n]{{0,60}}{_TOOLS}", re.IGNORECASE
)
_NO_TOOLS = re.compile(r"not support tool|unsupported param: tools|tools param requires", re.IGNORECASE)


class _TransientError(Exception):
    """A failure worth another try, after ``wait`` seconds at least; its text is the sentence for a person."""

    def __init__(self, sentence: str, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.wait = wait


@dataclass
class Request:
    """One request. ``options`` may be given up when the server does not know them; ``parts`` are fields of
    the body that are JSON already, in pieces."""

    options: dict[str, Any]
    parts: dict[str, list[bytes]]
    has_tools: bool
    on_text: Callable[[str], None] | None
    turn: int  # which request of the conversation it is
    shortened: bool = False  # whether fewer tokens are asked for than were at first
    start: float = field(default_factory=time.monotonic)


@dataclass
class Answer:
    """A reply as far as it has come."""

    pieces: list[str] = field(default_factory=list)
    calls: list[NativeCall] = field(default_factory=list)
    finish: str | None = None
    usage: Usage = field(default_factory=Usage)
    kept: dict[str, Any] | None = None

    @property
    def length(self) -> int:
        """Of its text and of what its calls are given."""
        return sum(map(len, [*self.pieces, *(call["arguments"] for call in self.calls)]))

    def completion(self, request: Request) -> Completion:
        taken: set[str] = set()
        for place, call in enumerate(self.calls):
            if not call["id"] or call["id"] in taken:  # each needs one of its own; not every server gives it
                call["id"] = f"call_{request.turn}_{place}"
            taken.add(call["id"])
        usage = Usage(
            self.usage.input_tokens,
            self.usage.output_tokens,
            self.usage.cached_tokens,
            time.monotonic() - request.start,
        )
        return Completion(
            "".join(self.pieces), usage, self.finish or "stop", tuple(self.calls), kept=self.kept
        )


class Payload:
    """The body of a request in pieces, so that a long conversation is sent without being copied together. It
    can be sent again."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.length = sum(map(len, pieces))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


class Stream(Protocol):
    """Puts an Answer together from the events of a stream. ``done`` says that the server has ended it."""

    done: bool

    def hear(self, data: str) -> str:
        """Take the data of one event; the text that is new."""
        ...

    def end(self) -> Answer:
        """All that came; its ``finish`` is None when it did not come to an end."""
        ...


class HttpBackend:
    """One model on one server. ``extra`` adds to the request body; a value of None removes a default.

    ``timeout`` bounds each try, or, once a reply streams, each silence in it; ``total`` bounds a reply with
    all its tries.
    """

    kind = "a server of the right kind"
    takes_grammar = False
    tool_view = ""
    context: int | None = None  # its server knows

    def __init__(
        self,
        model: str,
        url: tuple[httpx.URL, tuple[str, str] | None],
        api_key: str | None,
        name: str,
        *,
        key_variable: str,
        timeout: float = 120.0,
        total: float = 600.0,
        connect_timeout: float = 10.0,
        retries: int = 2,
        options: Mapping[str, Any] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name
        self._model = model
        self._url, self._auth = url
        # What a person is shown: no user, no password, no query (some servers take their key there).
        self._shown = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}"
        self._key = header_safe(api_key, key_variable)
        self._key_variable = key_variable
        self._secrets = _secrets(self._key, self._auth, self._url)
        self._timeout = timeout
        self._total = total
        self._most: int | None = None  # tokens of a reply, if the server has told
        self._connect_timeout = connect_timeout
        self._retries = retries
        self._options: dict[str, Any] = dict(options or {})
        self._transport = transport
        self._sleep = sleep
        self._carrier: httpx.AsyncBaseTransport | httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: ToolChoice = "auto",
    ) -> Completion:
        options, parts = self._asked(messages, max_tokens, tools, tool_choice, on_text is not None)
        if grammar is not None and self.takes_grammar:
            options["grammar"] = grammar
        for name in REPLY_TOKENS:
            if self._most is not None and name in options:
                options[name] = min(options[name], self._most)
        request = Request(options, parts, tools is not None, on_text, messages.turn)
        try:
            async with asyncio.timeout(self._total):
                return await self._answer(request)
        except TimeoutError as error:
            raise ModelError(f"{self._shown} did not come to an end within {self._total:g} s.") from error

    async def _answer(self, request: Request) -> Completion:
        """The answer, after as many tries as it takes."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._attempt(request)
            except _TransientError as failure:
                if tries > self._retries:
                    after = f" (tried {tries} times)" if tries > 1 else ""
                    raise ModelError(f"{failure}{after}") from failure.__cause__
                # Jitter keeps clients from knocking in step; it guards no secret.
                backoff = 0.5 * 2 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311
                await self._sleep(max(failure.wait, backoff))

    async def aclose(self) -> None:
        carrier, self._carrier = self._carrier, None
        if carrier is not None and self._loop is asyncio.get_running_loop():
            await carrier.aclose()

    # What each kind of server does its own way

    def _asked(
        self, messages: Messages, max_tokens: int, tools: bytes | None, choice: ToolChoice, streams: bool
    ) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
        """The options and parts of a request."""
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        raise NotImplementedError

    def _adapt(self, error: dict[str, Any], request: Request) -> bool:
        """Give up an option this model does not know; true when there was one."""
        raise NotImplementedError

    def _whole(self, reply: Any) -> Answer:
        """The answer a reply in one piece holds."""
        raise NotImplementedError

    def _stream(self) -> Stream:
        raise NotImplementedError

    # One try

    def _http(self) -> httpx.AsyncBaseTransport | httpx.AsyncClient:
        """What carries requests: a transport, or httpx's client where it has to find the way past proxies."""
        loop = asyncio.get_running_loop()
        if self._carrier is None or self._loop is not loop:  # connections belong to the loop that opened them
            proxied = any(name != "no" for name in urllib.request.getproxies())
            self._carrier = self._transport or (
                httpx.AsyncClient() if proxied else httpx.AsyncHTTPTransport()
            )
            self._loop = loop
        return self._carrier

    @cached_property
    def _sent_headers(self) -> httpx.Headers:
        """What every request says."""
        known = {
            "host": self._url.netloc.decode(),
            "accept": "*/*",
            "accept-encoding": "gzip",
            "connection": "keep-alive",
            "user-agent": f"python-httpx/{httpx.__version__}",
            "content-type": "application/json",
            **(self._headers() if self._key else {}),
        }
        if self._auth is not None:  # what stands in the address is stronger than a key
            user = ":".join(self._auth).encode()
            known["authorization"] = f"Basic {base64.b64encode(user).decode()}"
        return httpx.Headers(known)

    @asynccontextmanager
    async def _sent(self, payload: Payload) -> AsyncIterator[httpx.Response]:
        """The reply to a request; closed when it has been read, or will not be."""
        waits = {"connect": self._connect_timeout, **dict.fromkeys(("read", "write", "pool"), self._timeout)}
        headers = [*self._sent_headers.raw, (b"content-length", b"%d" % payload.length)]
        request = httpx.Request(
            "POST", self._url, headers=headers, content=payload, extensions={"timeout": waits}
        )
        http = self._http()
        if isinstance(http, httpx.AsyncClient):
            response = await http.send(request, stream=True)
        else:
            response = await http.handle_async_request(request)
        try:
            yield response
        finally:
            await response.aclose()

    def _payload(self, request: Request) -> Payload:
        settings = {"model": self._model, **self._options, **request.options}
        head = to_json({key: value for key, value in settings.items() if value is not None})
        pieces = [head[:-1]]
        for key, part in request.parts.items():
            pieces += [b',"%b":' % key.encode(), *part]
        return Payload([*pieces, b"}"])

    async def _attempt(self, request: Request) -> Completion:
        answered = False
        payload = self._payload(request)
        try:
            async with (
                asyncio.timeout(self._timeout) as deadline,
                self._sent(payload) as response,
            ):
                answered = True
                if response.status_code == 200:
                    if request.on_text is not None and "text/event-stream" in response.headers.get(
                        "content-type", ""
                    ):
                        deadline.reschedule(None)  # from here on each silence is timed instead
                        answer = await self._listen(response, request.on_text)
                    else:
                        reply = self._json(await self._read(response))
                        with self._shaped():
                            answer = self._whole(reply)
                        if request.on_text is not None:  # a server that cannot stream
                            request.on_text("".join(answer.pieces))
                    if answer.length > LONGEST:
                        self._too_long(response)
                    if len(answer.calls) > MOST_CALLS:
                        self._garbage(f"{len(answer.calls):,} calls in one reply")
                    return answer.completion(request)
                refusal = await self._read(response)
        except httpx.ConnectTimeout as error:
            raise _TransientError(
                self._unreachable(f"no connection in {self._connect_timeout:g} s")
            ) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise ModelError(
                f"{self._shown} gave no answer for {self._timeout:g} s; it is slow or overloaded."
            ) from error
        except httpx.RequestError as error:
            if answered:
                raise self._cut_off() from error
            raise _TransientError(self._unreachable(str(error) or type(error).__name__)) from error
        if response.status_code == 400:
            fault = error_of(parsed(refusal))
            if self._adapt(fault, request) or self._shorten(fault, request):
                return await self._attempt(request)
        raise self._refused(response, refusal, request.has_tools)

    def _shorten(self, error: dict[str, Any], request: Request) -> bool:
        """Ask for no more tokens than this model gives at once, from here on; false if that is not wrong."""
        most = 0 if request.shortened else fewer(error)
        asked = next((name for name in REPLY_TOKENS if name in request.options), "")
        if not asked or not 0 < most < request.options[asked]:
            return False
        request.options[asked], request.shortened = most, True
        self._most = most
        return True

    async def _read(self, response: httpx.Response) -> bytes:
        """All of a reply that is not too long."""
        pieces, length = [], 0
        async with aclosing(self._inflated(response)) as inflated:
            async for piece in inflated:
                pieces.append(piece)
                if (length := length + len(piece)) > LONGEST:
                    self._too_long(response)
        return b"".join(pieces)

    async def _inflated(self, response: httpx.Response) -> AsyncGenerator[bytes]:
        """The bytes of a reply, decompressed piece by piece: httpx makes sixty megabytes of sixty kilobytes
        at once."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "", "gzip", "x-gzip"):
            self._garbage(f"a reply compressed as {self._quote(encoding)}, which it was not asked for")
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 16) if "gzip" in encoding else None
        async for raw in response.aiter_raw():
            if inflate is None:
                yield raw
                continue
            piece = b""
            # What stands behind its end is read, so that the connection can serve again, and dropped.
            while not inflate.eof and (raw or len(piece) == INFLATED):
                try:
                    piece = inflate.decompress(raw, INFLATED)
                except zlib.error:
                    self._garbage("a reply that cannot be decompressed")
                raw = inflate.unconsumed_tail
                yield piece

    async def _events(self, response: httpx.Response) -> AsyncGenerator[str]:
        """The data of each event of a stream, as long as there is no end of neither one nor all of them."""
        rest, data = bytearray(), list[bytes]()
        since = counted = events = 0
        async with aclosing(self._inflated(response)) as inflated:
            async for piece in inflated:
                rest += piece
                if (since := since + len(piece)) > LONGEST:
                    self._too_long(response)
                if b"\n" not in piece and b"\r" not in piece:
                    continue
                lines = bytes(rest).splitlines(keepends=True)
                # A line feed may follow the return that a piece ends with.
                rest = bytearray(b"" if lines[-1].endswith(b"\n") else lines.pop())
                for line in map(bytes.strip, lines):
                    if line.startswith(b"data:"):
                        data.append(line[5:].lstrip())
                    elif not line and data:
                        event = b"\n".join(data).decode(errors="replace")
                        since, events, counted = 0, events + 1, counted + max(0, len(event) - AROUND)
                        if counted > LONGEST or events > MOST_EVENTS:
                            self._too_long(response)
                        data.clear()
                        yield event

    async def _listen(self, response: httpx.Response, on_text: Callable[[str], None]) -> Answer:
        loop = asyncio.get_running_loop()
        stream, length = self._stream(), 0
        try:
            async with (
                asyncio.timeout(self._timeout) as silence,
                aclosing(self._events(response)) as events,
            ):
                async for event in events:
                    with self._shaped():
                        piece = stream.hear(event)
                    if (length := length + len(piece)) > LONGEST:
                        self._too_long(response)
                    if piece:
                        on_text(piece)
                    # At its end it is read on, so that the connection can serve again; but not for long.
                    silence.reschedule(loop.time() + (1.0 if stream.done else self._timeout))
        except TimeoutError:
            if not stream.done:
                raise
        with self._shaped():
            answer = stream.end()
        if answer.finish is None and not stream.done:
            raise self._cut_off()
        return answer

    # Failures as sentences

    def _json(self, raw: bytes | str) -> Any:
        reply = parsed(raw)
        if reply is None:
            text = raw if isinstance(raw, str) else raw[: 4 * WORDS].decode(errors="replace")
            self._garbage(f"text that is not JSON ({self._quote(text)})")
        return reply

    def _refused(self, response: httpx.Response, raw: bytes, had_tools: bool) -> _TransientError | ModelError:
        status = response.status_code
        error = error_of(parsed(raw))
        said = str(error.get("message") or "")
        quoted = self._quote(said)
        tail = f" It said: {quoted}" if quoted else ""
        if had_tools and _refuses_tools(status, error, said):
            self.tool_view = ""
            return ToolsRefusedError(f"{self._shown} takes no tools for {self._model} ({status}).{tail}")
        if status in (400, 413, 500) and (window := overflow(error)) is not None:
            return ContextFullError(f"{self._shown} refused the request ({status}): {quoted}", window)
        if status in (401, 403) and self._key:
            sentence = f"{self._shown} refused the key ({status}); check {self._key_variable}.{tail}"
        elif status in (401, 403):
            sentence = f"{self._shown} wants a key ({status}); set {self._key_variable}.{tail}"
        elif status == 404:
            sentence = f"{self._shown} has no model {self._model}, or no such address (404).{tail}"
        elif status == 400:
            sentence = f"{self._shown} refused the request (400): {quoted or 'it did not say why'}"
        elif status in PASSING:
            does = {429: "is limiting requests", 529: "is overloaded"}.get(status, "failed")
            failed = f"{self._shown} {does} ({status})"
            wait = seconds_of(response.headers.get("retry-after", ""))
            if wait <= LONGEST_WAIT:
                return _TransientError(f"{failed}.{tail}", wait)
            sentence = f"{failed} and asks to wait {wait:.0f} s.{tail}"
        else:
            sentence = f"{self._shown} answered with status {status} instead of a reply.{tail}"
        return ModelError(sentence)

    def _failed(self, reply: Any) -> NoReturn:
        """An error told in the place of an answer."""
        error = error_of(reply)
        sentence = f"{self._shown} failed: {self._quote(error['message'])}"
        window = overflow(error)
        raise ModelError(sentence) if window is None else ContextFullError(sentence, window)

    @contextmanager
    def _shaped(self) -> Iterator[None]:
        """A reply may hold anything, also a list where a number should be."""
        try:
            yield
        except (TypeError, KeyError, AttributeError):
            self._garbage("a reply of another shape")

    def _garbage(self, what: str) -> NoReturn:
        raise ModelError(f"{self._shown} answered with {what}. Is it {self.kind}?")

    def _too_long(self, response: httpx.Response) -> NoReturn:
        """Not one of the failures that are worth another try."""
        code = "" if response.status_code == 200 else f"status {response.status_code} and "
        self._garbage(f"{code}more than {LONGEST:,} bytes; it was stopped there")

    def _cut_off(self) -> ModelError:
        return ModelError(f"The answer from {self._shown} was cut off in the middle; try again.")

    def _unreachable(self, why: str) -> str:
        return f"Cannot reach {self._shown} ({self._quote(why)}). Is the server running?"

    def _quote(self, words: Any) -> str:
        """A server's own words: one short line, without escapes that steer a terminal and without secrets."""
        whole = str(words)
        text = whole[:WORDS]
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if len(whole) >= WORDS and self._secrets:  # half a secret may stand at the cut
            text = text[: -len(self._secrets[0])]
        return short(" ".join(printable(text, instead=" ").split()), LONGEST_QUOTE + 1)


def endpoint(base_url: str, path: str, default: str = "") -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address to post to, and the user and password that stood in it: httpx logs the URLs it asks.

    ``default`` is the folder of an address that has none.
    """
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:  # not repeated: it may hold a password
        raise UsageError("The base URL must look like http://127.0.0.1:8080/v1.")
    auth = (url.username, url.password) if url.userinfo else None
    return url.copy_with(userinfo=b"", path=(url.path.rstrip("/") or default) + path), auth


def _secrets(key: str | None, auth: tuple[str, str] | None, url: httpx.URL) -> list[str]:
    """What must not be told, the longest first: key, password, and what in the address may be one."""
    user, password = auth or ("", "")
    raw = [pair.partition("=")[2] for pair in url.query.decode(errors="replace").split("&")]
    perhaps = [user, *raw, *url.params.values()]
    found = {key or "", password, *(word for word in perhaps if len(word) >= SECRET)} - {""}
    return sorted(found, key=len, reverse=True)


def _refuses_tools(status: int, error: Mapping[str, Any], said: str) -> bool:
    """Whether a server says that it takes no tools, and not that one of them, or a message, is wrong."""
    if error.get("code") == "context_length_exceeded" or str(error.get("param")).startswith("messages"):
        return False
    if status in (400, 404, 422):
        return _TOOLS_REFUSED.search(said) is not None
    return status >= 500 and _NO_TOOLS.search(said) is not None


def header_safe(key: str | None, variable: str) -> str | None:
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):  # httpx would complain, and print the key
        raise UsageError(f"{variable} holds characters that no key can have.")
    return key or None


def parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def error_of(reply: Any) -> dict[str, Any]:
    """The error object of an answer, with a message; some servers send a bare string instead. Of the message
    no more is kept than is looked at."""
    error = reply.get("error") or reply.get("detail") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        return {**error, "message": str(error.get("message") or json.dumps(error))[:WORDS]}
    return {"message": str(error)[:WORDS]} if error else {}


def count_in(source: Any, key: str) -> int:
    value = source.get(key) if isinstance(source, dict) else None
    return value if isinstance(value, int) else 0


def seconds_of(retry_after: str) -> float:
    """The wait a Retry-After header asks for: seconds or a date; 0 when there is none to read."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
