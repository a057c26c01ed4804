"""``quoth serve``: one server on loopback for clients of other protocols. Each part has its routes; a
request passes the gate first."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from quoth.agent.serve.gate import RequestGate, refuse, without_port
from quoth.agent.serve.keys import KeySource


async def ends_at_once(deadline: asyncio.Future[None]) -> bool:
    return True


@dataclass(frozen=True)
class ServedPart:
    """A part of the server: its routes, the paths that need no key at the gate (``/view/`` and all below it),
    and what is open while it serves. When the server is about to end, ``ending`` finishes what is in progress
    until the deadline is done, breaks off the rest, and returns whether nothing was broken off."""

    routes: Sequence[BaseRoute]
    open_paths: Collection[str] = ()
    serving: Callable[[], AbstractAsyncContextManager[object]] = field(default=contextlib.nullcontext)
    ending: Callable[[asyncio.Future[None]], Awaitable[bool]] = ends_at_once


async def health(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok", "version": version("quoth")})


async def _missing(request: Request, error: Exception) -> JSONResponse:
    return refuse(404, f"There is nothing at {request.url.path}.")


async def _wrong_method(request: Request, error: Exception) -> JSONResponse:
    return refuse(405, f"{request.method} is not served at {request.url.path}.")


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return refuse(error.status_code, error.detail)


def build_app(
    parts: Sequence[ServedPart],
    keys: KeySource,
    *,
    hosts: Collection[str] = (),
    origins: Collection[str] = (),
) -> RequestGate:
    """The whole application. ``hosts`` and ``origins`` are allowed beside loopback."""

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part.serving())
            yield

    app = Starlette(
        routes=[Route("/health", health), *(route for part in parts for route in part.routes)],
        exception_handlers={404: _missing, 405: _wrong_method, HTTPException: _refused},
        lifespan=lifespan,
    )
    public = {"/health", *(path for part in parts for path in part.open_paths)}
    known = [without_port(host) for host in hosts]
    return RequestGate(app, keys, known, [one.lower().rstrip("/") for one in origins], public)
