"""The Streamable HTTP transport: the SDK's, with bounded replies; a failure ends only its request."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from quoth.tools.call.redaction import SENT, credentials
from quoth.tools.mcp.config import ServerConfig
from quoth.tools.mcp.messages import MAX_MESSAGE, NOT_SENT, UNANSWERED, Completed

SILENCE = 300.0  # seconds between two pieces of a stream; calls have deadlines of their own
CONNECT = 30.0  # seconds


@asynccontextmanager
async def http(config: ServerConfig, auth: httpx2.Auth | None = None) -> AsyncIterator[Any]:
    """Connect to a server at a URL, whose variables are expanded."""
    async with (
        client_for(config, auth) as client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        messages, requests = streams
        yield Completed(messages), requests


def client_for(config: ServerConfig, auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
    """A client for one server, whose headers go to no other origin."""
    headers = {"accept-encoding": "identity", **config.headers}
    address: Any = httpx2.URL(config.url)  # used as one of httpx, which has the same parts
    SENT.learn(*credentials(config.headers, address, chosen=False))
    timeout = httpx2.Timeout(CONNECT, read=SILENCE)
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=timeout,
        transport=_Bounded(httpx2.AsyncClient(verify=_authorities())),
    )


@cache
def _authorities() -> ssl.SSLContext:
    """Reading the certificates takes longer than a request."""
    return httpx2.create_ssl_context()


class _Bounded(httpx2.AsyncBaseTransport):
    """Sends through a client of its own, which knows the environment's proxies. A failed request becomes an
    error response, because for an exception the SDK ends the whole connection with all its open calls."""

    def __init__(self, inner: httpx2.AsyncClient) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.send(request, stream=True, auth=None, follow_redirects=False)
        except httpx2.ConnectError:
            return _failed(request, NOT_SENT, "the server cannot be reached")
        except httpx2.TransportError as error:
            return _failed(request, UNANSWERED, f"the request broke off ({type(error).__name__})")
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            return _failed(request, UNANSWERED, "the reply is compressed, which was not requested")
        events = response.headers.get("content-type", "").startswith("text/event-stream")
        body = _Stream(response, None if events else MAX_MESSAGE)  # the SDK bounds each event
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=body, extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Stream(httpx2.AsyncByteStream):
    """A body of at most ``most`` bytes. A failure is a StreamError, which the SDK reports to the caller."""

    def __init__(self, response: httpx2.Response, most: int | None) -> None:
        self._response, self._most = response, most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        try:
            async for piece in self._response.aiter_raw():
                size += len(piece)
                if self._most is not None and size > self._most:
                    raise httpx2.StreamError(f"the reply is larger than {self._most // 1_000_000} MB")
                yield piece
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"the reply broke off ({type(error).__name__})") from None

    async def aclose(self) -> None:
        await self._response.aclose()


def _failed(request: httpx2.Request, code: int, why: str) -> httpx2.Response:
    error = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": why}}
    return httpx2.Response(
        502, headers={"content-type": "application/json"}, content=json.dumps(error), request=request
    )
