"""Any server that speaks OpenAI's chat completions, over httpx: OpenAI itself, Ollama, llama.cpp, vLLM, …

Must not know tools, forms or the loop. No sentence it raises ever holds the key or a URL's password.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from weakref import WeakKeyDictionary

import httpx
from httpx_sse import EventSource

from neuro.backends.base import Completion, Messages, ModelError, Usage
from tools.errors import UsageError

LONGEST_WAIT = 30.0  # seconds; a server that asks for more is reported, not waited for
LONGEST_QUOTE = 300  # characters of a server's own words that are shown


class _Transient(Exception):
    """A failure worth another try, after ``wait`` seconds at least; its text is the sentence for a person."""

    def __init__(self, sentence: str, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.wait = wait


class OpenAIBackend:
    """One model on one server. ``extra`` adds to the request body; a value of None removes a default.

    ``timeout`` bounds each try, or, once a reply streams, each silence in it. ``tool_role`` sends ``tool``
    messages as they are; by default they go as ``user``, for OpenAI refuses them without call ids.
    """

    def __init__(
        self,
        model: str,
        base_url: str = "https://api.openai.com/v1",
        api_key: str | None = None,
        name: str | None = None,
        timeout: float = 120.0,
        connect_timeout: float = 10.0,
        retries: int = 2,
        extra: Mapping[str, Any] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        takes_grammar: bool = False,
        *,
        tool_role: bool = False,
        key_variable: str = "OPENAI_API_KEY",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.name = name or f"openai:{model}"
        self.takes_grammar = takes_grammar
        self._model = model
        self._url, self._auth = _endpoint(base_url)
        # What a person is shown: no user, no password, no query (some servers take their key there).
        self._shown = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.path}"
        self._key = _header_safe(api_key, key_variable)
        self._key_variable = key_variable
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._retries = retries
        self._options: dict[str, Any] = {"temperature": 0, **(extra or {})}
        self._length_option = "max_tokens"
        self._transport = transport
        self._tool_role = tool_role
        self._sleep = sleep
        self._client: httpx.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # The bytes of each conversation with its tool messages renamed: no old message is serialised again.
        self._renamed: WeakKeyDictionary[Messages, list[bytes]] = WeakKeyDictionary()

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        history = self._history(messages)
        options: dict[str, Any] = {self._length_option: max_tokens}
        if grammar is not None and self.takes_grammar:
            options["grammar"] = grammar
        if on_text is not None:
            options |= {"stream": True, "stream_options": {"include_usage": True}}
        start = time.monotonic()
        tries = 0
        while True:
            tries += 1
            try:
                return await self._attempt(history, options, on_text, start)
            except _Transient as failure:
                if tries > self._retries:
                    after = f" (tried {tries} times)" if tries > 1 else ""
                    raise ModelError(f"{failure}{after}") from failure.__cause__
                # Jitter keeps clients from knocking in step; it guards no secret.
                backoff = 0.5 * 2 ** (tries - 1) * random.uniform(0.5, 1.0)  # noqa: S311
                await self._sleep(max(failure.wait, backoff))

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    def _history(self, messages: Messages) -> bytes:
        if self._tool_role:
            return messages.as_json()
        known = self._renamed.setdefault(messages, [])
        for index in range(len(known), len(messages)):
            message = messages[index]
            role = "user" if message["role"] == "tool" else message["role"]
            known.append(_json({"role": role, "content": message["content"]}))
        return b"[" + b",".join(known) + b"]"

    def _http(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # connections belong to the loop that opened them
            headers = {"content-type": "application/json"}
            if self._key:
                headers["authorization"] = f"Bearer {self._key}"
            limits = httpx.Timeout(self._timeout, connect=self._connect_timeout)
            self._client = httpx.AsyncClient(
                headers=headers, timeout=limits, auth=self._auth, transport=self._transport
            )
            self._loop = loop
        return self._client

    async def _attempt(
        self,
        history: bytes,
        options: dict[str, Any],
        on_text: Callable[[str], None] | None,
        start: float,
    ) -> Completion:
        settings = {"model": self._model, **self._options, **options}
        head = _json({key: value for key, value in settings.items() if value is not None})
        body = head[:-1] + b',"messages":' + history + b"}"
        answered = False
        try:
            async with (
                asyncio.timeout(self._timeout) as deadline,
                self._http().stream("POST", self._url, content=body) as response,
            ):
                answered = True
                if response.status_code == 200:
                    if on_text is None:
                        text, finish, usage = self._whole(await response.aread())
                    elif "text/event-stream" in response.headers.get("content-type", ""):
                        deadline.reschedule(None)  # from here on each silence is timed instead
                        text, finish, usage = await self._stream(response, on_text)
                    else:  # a server that cannot stream
                        text, finish, usage = self._whole(await response.aread())
                        on_text(text)
                    return Completion(text, _usage(usage, time.monotonic() - start), finish)
                refusal = await response.aread()
        except httpx.ConnectTimeout as error:
            raise _Transient(self._unreachable(f"no connection in {self._connect_timeout:g} s")) from error
        except (TimeoutError, httpx.TimeoutException) as error:
            raise ModelError(
                f"{self._shown} gave no answer for {self._timeout:g} s; it is slow or overloaded."
            ) from error
        except httpx.RequestError as error:
            if answered:
                raise self._cut_off() from error
            raise _Transient(self._unreachable(str(error) or type(error).__name__)) from error
        if response.status_code == 400 and self._adapt(refusal, options):
            return await self._attempt(history, options, on_text, start)
        raise self._refused(response, refusal)

    def _adapt(self, refusal: bytes, options: dict[str, Any]) -> bool:
        """Give up an option this model does not know; true when there was one. (OpenAI's reasoning models
        refuse ``temperature``, and take ``max_completion_tokens`` for ``max_tokens``.)"""
        error = _error_of(_parsed(refusal))
        if error.get("code") not in ("unsupported_parameter", "unsupported_value"):
            return False
        if error.get("param") == "temperature":
            return self._options.pop("temperature", None) is not None
        if error.get("param") == "max_tokens" and "max_tokens" in options:
            self._length_option = "max_completion_tokens"
            options[self._length_option] = options.pop("max_tokens")
            return True
        return False

    def _whole(self, raw: bytes) -> tuple[str, str, Any]:
        reply = _parsed(raw)
        if reply is None:
            self._garbage(f"text that is not JSON ({self._quote(raw.decode(errors='replace'))})")
        choice = self._choice(reply)
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, dict):
            self._garbage("JSON without choices")
        return _text(message), _finish(choice), reply.get("usage")

    async def _stream(self, response: httpx.Response, on_text: Callable[[str], None]) -> tuple[str, str, Any]:
        loop = asyncio.get_running_loop()
        pieces: list[str] = []
        finish, usage, done = None, None, False
        try:
            async with (
                asyncio.timeout(self._timeout) as silence,
                aclosing(EventSource(response).aiter_sse()) as events,
            ):
                async for event in events:
                    if event.data == "[DONE]":
                        done = True
                        # Read on to the end, so that the connection can serve again; but not for long.
                        silence.reschedule(loop.time() + 1.0)
                        continue
                    silence.reschedule(loop.time() + self._timeout)
                    chunk = _parsed(event.data)
                    if chunk is None:
                        self._garbage(f"text that is not JSON ({self._quote(event.data)})")
                    choice = self._choice(chunk)
                    usage = chunk.get("usage") or usage
                    if choice is not None:
                        if piece := _text(choice.get("delta") or {}):
                            pieces.append(piece)
                            on_text(piece)
                        finish = _finish(choice) if choice.get("finish_reason") else finish
        except TimeoutError:
            if not done:
                raise
        if finish is None and not done:
            raise self._cut_off()
        return "".join(pieces), finish or "stop", usage

    def _choice(self, reply: Any) -> dict[str, Any] | None:
        """The first choice, or None; an error told in the place of an answer is raised."""
        if not isinstance(reply, dict):
            self._garbage("JSON without choices")
        if reply.get("error"):
            raise ModelError(f"{self._shown} failed: {self._quote(_error_of(reply)['message'])}")
        choices = reply.get("choices")
        return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None

    def _refused(self, response: httpx.Response, raw: bytes) -> _Transient | ModelError:
        status = response.status_code
        said = str(_error_of(_parsed(raw)).get("message") or "").strip()
        tail = f" It said: {self._quote(said)}" if said else ""
        if status in (401, 403) and self._key:
            sentence = f"{self._shown} refused the key ({status}); check {self._key_variable}.{tail}"
        elif status in (401, 403):
            sentence = f"{self._shown} wants a key ({status}); set {self._key_variable}.{tail}"
        elif status == 404:
            sentence = f"{self._shown} has no model {self._model}, or no such address (404).{tail}"
        elif status == 400:
            sentence = f"{self._shown} refused the request (400): {self._quote(said) or 'it did not say why'}"
        elif status in (429, 500, 502, 503, 504):
            failed = f"{self._shown} {'is limiting requests' if status == 429 else 'failed'} ({status})"
            wait = _seconds(response.headers.get("retry-after", ""))
            if wait <= LONGEST_WAIT:
                return _Transient(f"{failed}.{tail}", wait)
            sentence = f"{failed} and asks to wait {wait:.0f} s.{tail}"
        else:
            sentence = f"{self._shown} answered with status {status} instead of a reply.{tail}"
        return ModelError(sentence)

    def _garbage(self, what: str) -> NoReturn:
        raise ModelError(f"{self._shown} answered with {what}. Is it an OpenAI-compatible server?")

    def _cut_off(self) -> ModelError:
        return ModelError(f"The answer from {self._shown} was cut off in the middle; try again.")

    def _unreachable(self, why: str) -> str:
        return f"Cannot reach {self._shown} ({why}). Is the server running?"

    def _quote(self, words: Any) -> str:
        """A server's own words: one short line, without escapes that steer a terminal and without the key."""
        text = str(words)
        for secret in (self._key, self._auth and self._auth[1]):
            text = text.replace(secret, "***") if secret else text
        text = " ".join("".join(char if char.isprintable() else " " for char in text).split())
        return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"


def _endpoint(base_url: str) -> tuple[httpx.URL, tuple[str, str] | None]:
    """The address to post to, and the user and password that stood in it: httpx logs the URLs it asks."""
    try:
        url = httpx.URL(base_url)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:  # not repeated: it may hold a password
        raise UsageError("The base URL must look like http://127.0.0.1:8080/v1.")
    auth = (url.username, url.password) if url.userinfo else None
    return url.copy_with(userinfo=b"", path=url.path.rstrip("/") + "/chat/completions"), auth


def _header_safe(key: str | None, variable: str) -> str | None:
    key = (key or "").strip()
    if not (key.isascii() and key.isprintable()):  # httpx would complain, and print the key
        raise UsageError(f"{variable} holds characters that no key can have.")
    return key or None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _error_of(reply: Any) -> dict[str, Any]:
    """The error object of an answer, with a message; some servers send a bare string instead."""
    error = reply.get("error") or reply.get("detail") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        return {**error, "message": error.get("message") or json.dumps(error)}
    return {"message": error} if error else {}


def _text(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str) else ""


def _finish(choice: dict[str, Any]) -> str:
    return "length" if choice.get("finish_reason") == "length" else "stop"


def _usage(usage: Any, seconds: float) -> Usage:
    def count(source: Any, key: str) -> int:
        value = source.get(key) if isinstance(source, dict) else None
        return value if isinstance(value, int) else 0

    details = usage.get("prompt_tokens_details") if isinstance(usage, dict) else None
    return Usage(
        count(usage, "prompt_tokens"),
        count(usage, "completion_tokens"),
        count(details, "cached_tokens"),
        seconds,
    )


def _seconds(retry_after: str) -> float:
    """The wait a Retry-After header asks for: seconds or a date; 0 when there is none to read."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
