"""Asks a server which models it has: a quick look at whether it answers, and takes the key.

A part of the back ends over HTTP, whose sentences it uses; must not know who asks, or what for.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from typing import Any

from quoth.neuro.backends.answers import whole_of
from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.failures import TransientError
from quoth.neuro.backends.http import HttpBackend
from quoth.tools.call.redaction import SENT
from quoth.tools.storage.lean_httpx import httpx

SECONDS = 3.0
_ENDPOINT = re.compile(r"/(chat/completions|messages|responses)$")


async def models_of(backend: HttpBackend) -> list[str]:
    """The names of the models at its server; the backend is closed. Raises ModelError, with the sentence of a
    request that fails."""
    backend._timeout = backend._connect_timeout = SECONDS
    url = backend._url.copy_with(path=_ENDPOINT.sub("/models", backend._url.path))
    response: httpx.Response | None = None
    SENT.learn(*backend._credentials)
    try:
        with backend._failing(lambda: response):
            async with asyncio.timeout(SECONDS), backend._pool().place(url) as transport:
                # Not by httpx's client, which writes each address to the log, with the key that may be in it.
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
