"""The common part of the backends over HTTP: connections, retries and deadlines.

answers.py reads the replies, failures.py words the failures.
"""

from __future__ import annotations

import asyncio
import random
import re
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any
from weakref import WeakKeyDictionary

from quoth.neuro.backends import wire
from quoth.neuro.backends.answers import (
    LONGEST,
    Body,
    Bound,
    PartialReply,
    Stream,
    TooLongError,
    events_of,
    whole_of,
)
from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Breaker,
    Completion,
    ModelError,
    RequestOptions,
    ToolChoice,
    breaker_of,
)
from quoth.neuro.backends.failures import MISSHAPEN, Server, TransientError, error_of, parsed
from quoth.neuro.backends.messages import ADAPTED, Messages, Wire, to_json
from quoth.neuro.backends.request import (
    REPLY_TOKENS,
    Adaptations,
    ModelRequest,
    Payload,
    Pool,
    basic,
    header_safe,
    join,
    portable_schema,
    tools_without,
)
from quoth.neuro.backends.wordings import (
    FINISHES,
    KEYS,
    OPTIONS,
    meaning_of,
    refused_name,
    reply_limit,
    says,
)
from quoth.tools.call.redaction import SENT, credentials
from quoth.tools.storage.lean_httpx import USER_AGENT, UnknownEncodingError, httpx
from quoth.tools.storage.log_sync import own_turn

USUAL = Adaptations()
SCHEMA_FIELDS = ("response_format", "text", "output_config")
MISFITS = (400, 404, 422, 500)  # the model may not support a part of the request
MOST_CALLS = 1_000  # maximum of native calls in one reply

_JOINED: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakKeyDictionary[HttpBackend, Pool]]
_JOINED = WeakKeyDictionary()


def _joined() -> WeakKeyDictionary[HttpBackend, Pool]:
    """The pools of this event loop, by the back ends that use them."""
    return _JOINED.setdefault(asyncio.get_running_loop(), WeakKeyDictionary())


class HttpBackend(Server):
    """One model on one server. ``options`` are added to the request body; the value None removes a field.

    ``timeout`` (seconds) bounds each try or, when a reply streams, each pause in it. ``total`` (seconds)
    bounds a reply with all its tries and waits; default: ten minutes, or more for a longer ``timeout``."""

    takes_grammar = False
    tool_view = ""
    takes_images = True  # the server refuses them for models without
    thinking_tokens = 0  # additional tokens of a reply beyond its limit
    context: int | None = None  # only its server knows

    def __init__(
        self,
        model: str,
        url: tuple[httpx.URL, tuple[str, str] | None],
        api_key: str | None,
        name: str,
        *,
        key_variable: str,
        timeout: float = 120.0,
        total: float | None = None,
        connect_timeout: float = 10.0,
        retries: int = 2,
        options: Mapping[str, Any] | None = None,
        usual: Adaptations = USUAL,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        super().__init__(model, *url, header_safe(api_key, key_variable), key_variable)
        self.name = name
        self._url, self._auth = url
        self._timeout = timeout
        self._total = max(600.0, 2 * timeout) if total is None else total
        self._usual = self._adapted = usual
        self._note = ""  # for the user, with the next completion
        self._connect_timeout = connect_timeout
        self._retries = retries
        self._options: dict[str, Any] = dict(options or {})
        self._transport = transport
        server = f"{self._url.scheme}://{self._url.netloc.decode()}"
        self._breaker = Breaker(server) if transport else breaker_of(server)
        self._sleep = sleep

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: ToolChoice = "auto",
        options: RequestOptions = NO_OPTIONS,
    ) -> Completion:
        def ask() -> tuple[dict[str, Any], dict[str, list[bytes]]]:
            shown = None if tools is None else tools_without(tools, self._adapted.keys)
            return self._asked(messages, max_tokens, shown, tool_choice, on_text is not None)

        self._recall(messages)
        asked, parts = ask()
        if grammar is not None and self.takes_grammar:
            asked["grammar"] = grammar
        elif options.schema is not None:
            calls = tools is not None and tool_choice != "none"
            asked |= self._schema_fields(portable_schema(options.schema), calls)
        if options.temperature is not None:
            asked["temperature"] = options.temperature
        for name in REPLY_TOKENS:
            if self._adapted.most_tokens and name in asked:
                asked[name] = min(asked[name], self._adapted.most_tokens)
        seconds = self._total if options.seconds is None else min(self._total, options.seconds)
        SENT.learn(*self._credentials)
        hear, heard_all = (None, None) if on_text is None else SENT.stream(on_text)
        request = ModelRequest(
            asked, parts, tools is not None, hear, messages, options, lambda: ask()[1], max_tokens, seconds
        )
        try:
            async with asyncio.timeout(seconds):
                with self._breaker.asking():
                    answer = await self._answer(request)
        except TimeoutError as error:
            failure = self._out_of_time(request.queues, seconds, self._total)
            if failure.why == "slow":  # otherwise the server is not at fault
                self._breaker.told(str(failure))
            raise failure from error
        finally:
            if heard_all is not None:
                heard_all()
        await own_turn()  # many replies may arrive at once
        return answer

    async def _answer(self, request: ModelRequest) -> Completion:
        """The answer, after retries if necessary; no retry after a part of it was shown."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._attempt(request)
            except TransientError as failure:
                # Jitter spreads the retries of clients; it need not be cryptographic.
                backoff = 0.5 * 2 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311
                pause = max(failure.wait, backoff)
                impatient = request.wants.patience is not None and pause > request.wants.patience
                if tries > self._retries or request.shown or impatient:
                    after = f"After {tries} tries: " if tries > 1 else ""
                    raise ModelError(
                        f"{after}{failure}", failure.why, begun=failure.begun
                    ) from failure.__cause__
                await self._wait(pause, str(failure), request.wants.on_wait)

    async def _wait(self, seconds: float, why: str, on_wait: Callable[[float, str], None] | None) -> None:
        """Wait before the next try, and report the countdown, even of a short wait, because a trace records
        each try."""
        if on_wait is None:
            await self._sleep(seconds)
            return
        while seconds > 0:
            on_wait(seconds, why)
            await self._sleep(min(seconds, 1.0))
            seconds -= 1.0
        on_wait(0.0, why)

    async def aclose(self) -> None:
        if (pool := _joined().pop(self, None)) is not None:
            await pool.leave()

    def _pieces(self, messages: Messages, writes: Wire) -> list[bytes]:
        """The conversation in the format for the model."""
        return messages.pieces(writes if self._adapted.images else wire.without_images(writes))

    # Different for each kind of server

    def _asked(
        self, messages: Messages, max_tokens: int, tools: bytes | None, choice: ToolChoice, streams: bool
    ) -> tuple[dict[str, Any], dict[str, list[bytes]]]:
        """The options and parts of a request."""
        raise NotImplementedError

    def _headers(self) -> dict[str, str]:
        raise NotImplementedError

    def _schema_fields(self, schema: dict[str, Any], calls: bool) -> dict[str, Any]:
        """The options that enforce an answer by ``schema``; empty if they would forbid allowed ``calls``."""
        return {}

    def _adapt(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """Adapt the request after a refusal of this kind of server; false if there is no adaptation."""
        return False

    def _whole(self, reply: dict[str, Any]) -> PartialReply:
        """The answer in a reply that is not a stream."""
        raise NotImplementedError

    def _stream(self) -> Stream:
        raise NotImplementedError

    # One try

    def _pool(self) -> Pool:
        """The connections shared in this event loop."""
        joined = _joined()
        if (pool := joined.get(self)) is None:
            own = self._transport
            pool = joined[self] = join(self._url) if own is None else Pool(partial(_ready, own))
        return pool

    @cached_property
    def _sent_headers(self) -> httpx.Headers:
        """The headers of every request."""
        known = {
            "host": self._url.netloc.decode(),
            "accept": "*/*",
            "accept-encoding": "gzip",
            "connection": "keep-alive",
            "user-agent": USER_AGENT,
            "content-type": "application/json",
            **(self._headers() if self._key else {}),
        }
        if self._auth is not None:  # the address takes precedence over a key
            known["authorization"] = basic(self._auth)
        return httpx.Headers(known)

    @cached_property
    def _credentials(self) -> tuple[str, ...]:
        return tuple(credentials(self._sent_headers, self._url))

    def _sent(self, payload: Payload) -> httpx.Request:
        """The request to send. The caller enforces the time limit of its reply."""
        headers = httpx.Headers(self._sent_headers)
        headers["content-length"] = str(payload.length)
        waits = {"connect": self._connect_timeout}
        return httpx.Request(
            "POST", self._url, headers=headers, stream=payload, extensions={"timeout": waits}
        )

    def _payload(self, request: ModelRequest) -> Payload:
        settings = {"model": self._model, **self._options, **request.options}
        if (most := request.wants.most_tokens) is not None:
            settings |= {name: min(settings[name], most) for name in REPLY_TOKENS if name in settings}
        sent = {
            key: value
            for key, value in settings.items()
            if value is not None and _option(key, value) not in self._adapted.options
        }
        request.sent = sent
        pieces = [to_json(sent)[:-1]]
        for key, part in request.parts.items():
            pieces += [b',"%b":' % key.encode(), *part]
        return Payload([*pieces, b"}"])

    async def _attempt(self, request: ModelRequest) -> Completion:
        payload = self._payload(request)
        response: httpx.Response | None = None
        pool, request.queues = self._pool(), True
        async with pool.place(self._url) as transport:
            request.queues = False
            with self._failing(lambda: response):
                async with asyncio.timeout(self._timeout) as deadline:
                    response = await transport.handle_async_request(self._sent(payload))
                    async with aclosing(response):
                        if response.status_code == 200:
                            completion = await self._answered(response, request, deadline)
                            if request.unread:  # an HTTP/2 server does not notice a closed reply
                                await pool.close(transport)
                            return completion
                        refusal = await whole_of(response)
        if response.status_code in MISFITS:
            fault = error_of(parsed(refusal))
            tries = (self._loosen, self._adapt, self._leave_out, self._shorten)
            if any(change(fault, request) for change in tries):
                return await self._attempt(request)
        raise self._refused(response, refusal, request.has_tools, request.left)

    async def _answered(
        self, response: httpx.Response, request: ModelRequest, deadline: asyncio.Timeout
    ) -> Completion:
        on_text, body = request.on_text, Body(response)
        if await body.is_stream():
            deadline.reschedule(None)  # from here on only pauses are timed
            answer = await self._listen(body, request)
        else:
            reply = self.object_of(await whole_of(body))
            with self._shaped():
                answer = self._whole(reply)
        if answer.finish == "stop" and answer.usage.output_tokens >= request.limit:
            answer.finish = "length"  # llama.cpp's Responses report it as complete
        if answer.finish not in FINISHES:
            raise self._broken_off(str(answer.finish))
        if answer.length > LONGEST:
            raise TooLongError
        if len(answer.calls) > MOST_CALLS:
            self._garbage(f"{len(answer.calls):,} calls in one reply")
        if on_text is not None and not request.shown and answer.finish != "refused":
            on_text("".join(answer.pieces))  # from a server that cannot stream
        changed = self._adapted.data(self._usual)
        adapted = {ADAPTED: {"model": self._place, **changed}} if changed else {}
        note, self._note = self._note, ""
        return answer.completion(request.messages.turn, request.start, note, adapted)

    @property
    def _place(self) -> str:
        """A unique name of this model on this server."""
        return f"{self.name} {self._shown}"

    def _recall(self, messages: Messages) -> None:
        """Use the adaptations of the conversation's last reply, which may come from another process."""
        reply = messages.last_reply()
        kept = reply.get("kept", {}).get(ADAPTED) if reply else None
        if isinstance(kept, dict) and kept.get("model") == self._place:
            self._adapted = self._adapted.with_data(kept)

    def _change(self, **how: Any) -> None:
        """Adapt requests from now on."""
        self._adapted = replace(self._adapted, **how)

    @contextmanager
    def _failing(self, answered: Callable[[], httpx.Response | None]) -> Iterator[None]:
        """Turn an exception into a sentence that says why there is no reply."""
        try:
            yield
        except httpx.ConnectTimeout as error:
            raise TransientError(
                self._unreachable(f"no connection in {self._connect_timeout:g} s"), "down"
            ) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise ModelError(
                f"{self._shown} gave no answer for {self._timeout:g} s; it is slow or overloaded, or needs a"
                " longer timeout.",
                "slow",
            ) from error
        except httpx.RequestError as error:
            if answered() is not None:
                raise self._cut_off() from error
            raise self._no_way(error) from error
        except TooLongError:
            response = answered()
            self._too_long(response.status_code if response is not None else 200)
        except UnknownEncodingError as error:
            self._garbage(f"a reply compressed as {self._quote(error)}, which it was not asked for")
        except zlib.error:
            self._garbage("a reply that cannot be decompressed")
        except Exception as error:  # httpx does not wrap all errors of HTTP/2
            if not type(error).__module__.startswith("h2."):
                raise
            raise self._cut_off() from error

    def _rewrite(self, request: ModelRequest, error: Mapping[str, Any], **how: bool) -> bool:
        """Adapt the format of the whole conversation; false if that changes nothing, because the ``error``
        was about something else. The next completion has a note about it for the user."""
        before = self._adapted
        self._change(**how)
        parts = request.rewrite()
        if parts == request.parts:
            self._adapted = before
            return False
        request.parts = parts
        words = f'"{self._quote(error.get("message"))}"'
        self._add_note(
            f"did not accept the conversation ({words}); it is sent in another format from now on."
        )
        return True

    def _drop(self, option: str, request: ModelRequest) -> bool:
        """Leave out an option from now on; false if it was not sent."""
        self._change(options=self._adapted.options | {_option(option, request.sent.get(option))})
        return option in request.sent

    def _leave_out(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """From now on leave out the option, or the key in the schemas of the tools, that the ``error``
        refuses; false for any other error. A chosen temperature that is out of range is not left out."""
        if meaning_of(error) is not None or (request.sent.get("temperature") and says(error, "range")):
            return False
        sent = [name for name in OPTIONS if name in request.sent and request.sent[name] is not None]
        if option := refused_name(error, sent):
            self._add_note(f"does not accept {option}; it is left out from now on.")
            return self._drop(option, request)
        tools = b"".join(request.parts.get("tools", ()))
        key = refused_name(error, [key for key in KEYS if b'"%b"' % key.encode() in tools])
        if not key or key in self._adapted.keys:
            return False
        self._change(keys=self._adapted.keys | {key})
        self._add_note(f"does not accept {key} in the schemas of tools; it is left out from now on.")
        request.parts = request.rewrite()
        return True

    def _add_note(self, what: str) -> None:
        """Add a note about a refusal of the server to the next completion."""
        self._note = f"{self._note} {self._shown} {what}".strip()

    def _loosen(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """From now on leave out the schema of the answer, or the images of results, if the server refuses
        it."""
        images = [image for message in request.messages for image in message.get("images", ())]
        of_calls = bool(images) and all("size" in image for image in images)  # never those of a person
        if of_calls and self._adapted.images and says(error, "images"):
            self._change(images=False)
            request.parts = request.rewrite()
            return True
        field = next((name for name in SCHEMA_FIELDS if name in request.options), "")
        if not field or not says(error, "schema"):
            return False
        return self._drop(field, request)

    def _shorten(self, error: dict[str, Any], request: ModelRequest) -> bool:
        """From now on ask for no more reply tokens than the server allows; false for any other error."""
        most = 0 if request.shortened else reply_limit(error)
        asked = next((name for name in REPLY_TOKENS if name in request.options), "")
        if not asked or not 0 < most < request.options[asked]:
            return False
        request.options[asked], request.shortened = most, True
        self._change(most_tokens=most)
        return True

    async def _listen(self, body: Body, request: ModelRequest) -> PartialReply:
        loop = asyncio.get_running_loop()
        stream, length, heard = self._stream(), 0, 0.0
        bound, cut = Bound(request.tokens, request.limit), False
        try:
            async with (
                asyncio.timeout(self._timeout) as silence,
                aclosing(events_of(body)) as events,
            ):
                async for event in events:
                    try:
                        piece = "" if stream.done else stream.hear(event)
                    except MISSHAPEN:
                        self._garbage("a reply of another shape")
                    if (length := length + len(piece)) > LONGEST:
                        raise TooLongError
                    if piece and request.on_text is not None:
                        request.shown = True
                        request.on_text(piece)
                    if cut := not stream.done and bound.is_passed(piece):
                        break
                    # Setting the timer costs as much as reading an event, so it is not done for each.
                    if stream.done or loop.time() - heard > self._timeout / 100:
                        heard = loop.time()
                        # The end is read, for a short time, so that the connection can be used again.
                        silence.reschedule(heard + (1.0 if stream.done else self._timeout))
        except TimeoutError:
            if not stream.done:
                raise
            request.unread = True
        with self._shaped():
            answer = stream.end()
        if cut:
            request.unread = True
            answer.finish = "length"
        elif answer.finish is None and not stream.done:
            raise self._cut_off()
        return answer


def _option(name: str, value: Any) -> str:
    """The name under which a refused option is remembered. Values of ``tool_choice`` differ: a server that
    refuses ``required`` may accept ``none``."""
    return f"{name} {value}" if name == "tool_choice" else name


async def _ready(transport: httpx.AsyncBaseTransport) -> httpx.AsyncBaseTransport:
    return transport


SECONDS = 3.0
_ENDPOINT = re.compile(r"/(chat/completions|messages|responses)$")


async def models_of(backend: HttpBackend) -> list[str]:
    """The names of the models at a backend's server; closes the backend. Raises ModelError with the sentence
    of a failed request."""
    backend._timeout = backend._connect_timeout = SECONDS
    url = backend._url.copy_with(path=_ENDPOINT.sub("/models", backend._url.path))
    response: httpx.Response | None = None
    SENT.learn(*backend._credentials)
    try:
        with backend._failing(lambda: response):
            async with asyncio.timeout(SECONDS), backend._pool().place(url) as transport:
                # Not by httpx's client, which logs each address with the key that may be in it.
                request = httpx.Request("GET", url, headers=backend._sent_headers)
                response = await transport.handle_async_request(request)
                async with aclosing(response):
                    raw = await whole_of(response)
        if response.status_code != 200:
            raise backend._refused(response, raw, False, 0.0)
        return _names(SENT.data(backend._json(raw)))
    except TransientError as failure:
        raise ModelError(str(failure), failure.why) from None
    finally:
        await backend.aclose()


def _names(reply: Any) -> list[str]:
    rows = reply.get("data") if isinstance(reply, dict) else None
    return [str(row["id"]) for row in rows or () if isinstance(row, dict) and "id" in row]
