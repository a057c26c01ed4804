"""Embeds texts at a server that speaks OpenAI's ``/v1/embeddings``: OpenAI, llama-server, Ollama, vLLM.

No sentence contains the key, or a user or password of the address.
"""

from __future__ import annotations

import asyncio
import math
import re
from array import array
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final

from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.failures import secrets_of
from quoth.neuro.backends.request import Pool, basic, join
from quoth.tools.call.redaction import SENT, credentials
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.storage.lean_httpx import httpx
from quoth.tools.text import excerpt

OPENAI: Final = "https://api.openai.com/v1"
KEY: Final = "OPENAI_API_KEY"
BATCH: Final = 64  # maximum of texts in one request
LONGEST: Final = 50_000_000  # maximum of bytes in an answer
MOST_DIMENSIONS: Final = 16_384
QUOTED: Final = 200  # maximum of characters quoted from a server
NO_MODEL: Final = re.compile(r"://|[?@#]")  # parts of an address, which may be secret


class Endpoint:
    """An Embedder at a server. ``deadline`` (seconds) bounds each whole request."""

    def __init__(self, model: str, base_url: str = OPENAI, key: str = "", *, deadline: float = 30.0) -> None:
        try:
            url = httpx.URL(base_url)
        except (httpx.InvalidURL, TypeError):
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host or not model or NO_MODEL.search(model):
            raise UsageError("Name an embedding server as openai:MODEL or openai:MODEL@http://HOST:PORT/v1.")
        self._auth = (url.username, url.password) if url.username or url.password else None
        bare = url.copy_with(username=None, password=None, query=None, fragment=None)
        self._shown = str(bare).rstrip("/")
        self._url = url.copy_with(username=None, password=None, path=f"{url.path.rstrip('/')}/embeddings")
        self._model = model
        self._key = key
        self._secrets = secrets_of(key, self._auth, self._url)
        self._deadline = deadline
        self.dimensions = 0  # known after the first answer
        self.name = f"openai:{model}" + ("" if self._shown == OPENAI else f"@{self._shown}")

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        found: list[bytes] = []
        pool = join(self._url)
        try:
            for start in range(0, len(texts), BATCH):
                found += await self._batch(pool, texts[start : start + BATCH])
        finally:
            await pool.leave()
        return found

    async def _batch(self, pool: Pool, texts: Sequence[str]) -> list[bytes]:
        body = {"model": self._model, "input": [text.encode(errors="replace").decode() for text in texts]}
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        if self._auth is not None:
            headers["Authorization"] = basic(self._auth)
        request = httpx.Request("POST", self._url, json=body, headers=headers)
        SENT.learn(*credentials(headers, self._url))
        try:
            async with pool.place(self._url) as transport, asyncio.timeout(self._deadline):
                # Not by httpx's client, which logs each address with the key that may be in it.
                response = await transport.handle_async_request(request)
                async with aclosing(response):
                    raw = b""
                    async for piece in response.aiter_bytes():
                        raw += piece
                        if len(raw) > LONGEST:
                            raise ToolError(f"{self._shown} answered with more than {LONGEST:,} bytes.")
        except ModelError as error:  # it cannot be reached
            raise ToolError(str(error)) from None
        except (TimeoutError, httpx.TimeoutException):
            raise ToolError(f"{self._shown} sent no embeddings within {self._deadline:g} s.") from None
        except httpx.HTTPError as error:
            why = self._quote(str(error)) or type(error).__name__
            raise ToolError(f"Cannot reach {self._shown} for embeddings ({why}).") from None
        return self._read(response, raw, len(texts))

    def _read(self, response: httpx.Response, raw: bytes, count: int) -> list[bytes]:
        status = response.status_code
        if status in (401, 403):
            raise ToolError(
                f"{self._shown} {'refused the key' if self._key else 'requires a key'} ({status}); "
                f"{'check' if self._key else 'set'} {KEY}."
            )
        if status != 200:
            said = self._quote(raw[: 8 * QUOTED].decode(errors="replace"))
            raise ToolError(f"{self._shown} sent no embeddings of {self._model} ({status}). It said: {said}")
        try:
            import json

            data: Any = json.loads(raw)["data"]
            rows = sorted(data, key=lambda one: one["index"])
            vectors = [_unit([float(part) for part in row["embedding"]]) for row in rows]
        except (ValueError, TypeError, KeyError, OverflowError):
            raise ToolError(f"The answer of {self._shown} does not contain embeddings.") from None
        sizes = {len(vector) for vector in vectors}
        if len(vectors) != count or len(sizes) != 1 or not 0 < len(vectors[0]) <= 4 * MOST_DIMENSIONS:
            raise ToolError(f"{self._shown} answered with {len(vectors)} embeddings for {count} texts.")
        self.dimensions = self.dimensions or len(vectors[0]) // 4
        return vectors

    def _quote(self, said: str) -> str:
        for secret in self._secrets:
            said = said.replace(secret, "***")
        # The cut may leave half of a key.
        return excerpt(SENT.without(said)[: 4 * QUOTED], QUOTED)


def _unit(parts: list[float]) -> bytes:
    length = math.sqrt(sum(part * part for part in parts))
    if not 0 < length < math.inf:
        raise ValueError
    return array("f", [part / length for part in parts]).tobytes()
