"""What a request must pass before any part of ``quoth serve`` sees it: a known Host and Origin, so that no
page of another site reaches the server through a browser (DNS rebinding), a key, and a body of bounded size
that arrives in time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from quoth.agent.serve.keys import AccessKey, KeySource

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
MAX_BODY = 20_000_000  # bytes: a request with pictures
BODY_SECONDS = 60.0  # for the whole body of a request
KEY = "quoth.key"  # the name of the request's key in its scope


class BadBody(HTTPException):
    """The body of a request has more than MAX_BODY bytes, or did not arrive in time."""


def key_of(scope: Mapping[str, Any]) -> AccessKey:
    """The key of a request that has passed."""
    key: AccessKey = scope[KEY]
    return key


@dataclass(frozen=True)
class RequestGate:
    """The outermost application. ``hosts`` and ``origins`` are allowed beside loopback; ``open_paths`` need
    no key here: they are public, or have a door of their own."""

    app: App
    keys: KeySource
    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    open_paths: Collection[str] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            if (refusal := self._refusal(scope)) is not None:
                await refusal(scope, receive, send)
                return
            await self._answer(scope, receive, send)
        else:  # a WebSocket: nothing here speaks it
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        """Why a request does not pass; None for one that does, whose scope then has its key."""
        headers = _single(scope["headers"])
        if headers is None:
            return refuse(400, "A header that may be given once is given twice.")
        if without_port(headers.get("host", "")) not in {*LOOPBACK, *self.hosts}:
            return refuse(421, "This host is not served. See --allow-host.")
        if "origin" in headers and not self._is_own(headers["origin"]):
            return refuse(403, "Requests from this origin are refused. See --allow-origin.")
        if not headers.get("content-length", "0").isdecimal():
            return refuse(400, "Content-Length is not a number.")
        if int(headers.get("content-length", "0")) > MAX_BODY:
            return refuse(413, TOO_LARGE)
        if self._is_open(scope["path"]):
            return None
        scheme, _, token = headers.get("authorization", "").partition(" ")
        key = self.keys.find(token.strip() if scheme.lower() == "bearer" else headers.get("x-api-key", ""))
        if key is None:
            said = refuse(401, "Missing or unknown key. Send: Authorization: Bearer TOKEN")
            said.headers["WWW-Authenticate"] = "Bearer"
            return said
        scope[KEY] = key
        return None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that has passed. A stream ends once its key is removed."""
        key: AccessKey | None = scope.get(KEY)
        removed = False

        async def sending(message: MutableMapping[str, Any]) -> None:
            nonlocal removed
            if key is not None and message.get("more_body") and not self.keys.has(key):
                if not removed:
                    removed = True
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise OSError("The key was removed.")  # as if the client had left
            await send(message)

        try:
            await self.app(scope, _bounded(receive), sending)
        except Exception:
            if not removed:
                raise

    def _is_own(self, origin: str) -> bool:
        try:
            return origin in self.origins or without_port(urlsplit(origin).netloc) in LOOPBACK
        except ValueError:  # it is not a URL
            return False

    def _is_open(self, path: str) -> bool:
        return any(path == one or (one.endswith("/") and path.startswith(one)) for one in self.open_paths)


TOO_LARGE = f"The body is larger than {MAX_BODY // 1_000_000} MB."
ONCE = {"host", "origin", "authorization", "content-length", "x-api-key"}


def _single(pairs: list[tuple[bytes, bytes]]) -> dict[str, str] | None:
    """The headers by name; None if one that decides here is given twice."""
    named = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in pairs]
    names = [name for name, _ in named if name in ONCE]
    return None if len({*names}) < len(names) else dict(named)


def without_port(host: str) -> str:
    """The host of a Host header or an authority, in small letters."""
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdecimal() else host.lower()


def _bounded(receive: Receive) -> Receive:
    """``receive`` for a body of at most MAX_BODY bytes that arrives within BODY_SECONDS."""
    read, whole = 0, False
    end = asyncio.get_running_loop().time() + BODY_SECONDS

    async def bounded() -> MutableMapping[str, Any]:
        nonlocal read, whole
        if whole:
            return await receive()  # waits for the client to leave
        try:
            async with asyncio.timeout_at(end):
                message = await receive()
        except TimeoutError:
            raise BadBody(408, f"The body did not arrive within {BODY_SECONDS:g} s.") from None
        read += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if read > MAX_BODY:
            raise BadBody(413, TOO_LARGE)
        return message

    return bounded


def refuse(status: int, sentence: str) -> JSONResponse:
    """An error as OpenAI's SDKs read it."""
    kind = "authentication_error" if status == 401 else "invalid_request_error"
    error = {"message": sentence, "type": kind, "param": None, "code": None}
    return JSONResponse({"error": error}, status)
