"""The body of an HTTP answer, bounded, and what went wrong on its way in a sentence: for ``fetch`` and for
tools made by ``def-http-tool``.

Knows HTTP and its errors; it must not know what is asked for, or who may ask.
"""

from __future__ import annotations

import contextlib
import ssl
import zlib
from collections.abc import Iterator

from quoth.tools.call.redaction import SENT
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.storage.lean_httpx import UnknownEncodingError, httpx, inflated
from quoth.tools.text import excerpt


async def body_of(response: httpx.Response, place: str, limit: int) -> bytes:
    """The decompressed body. Raises ToolError for one of more than ``limit`` bytes, and what ``explained``
    explains."""
    body = bytearray()
    pieces = inflated(response.aiter_raw(), response.headers.get("content-encoding", ""))
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            body += piece
            if len(body) > limit:
                raise ToolError(f"{place} answered with more than {limit:,} bytes.")
    return bytes(body)


def text_of(body: bytes, charset: str) -> str:
    """The text of a body, without the keys that this process has sent. Raises LookupError for an unknown
    character set."""
    return SENT.without(body.decode(charset or "utf-8", "replace"))


@contextlib.contextmanager
def explained(place: str, seconds: float) -> Iterator[None]:
    """Say in a sentence what went wrong on the way to ``place``, an address without its query."""
    from quoth.tools.storage.lean_httpx import httpx

    try:
        yield
    except (httpx.TimeoutException, TimeoutError):
        raise ToolFailure("timeout", f"{place} did not answer within {seconds:g} s.") from None
    except UnknownEncodingError as error:
        name = excerpt(str(error))
        raise ToolError(f"{place} answered compressed as {name}, which it was not asked for.") from None
    except zlib.error:
        raise ToolError(f"{place} answered with what cannot be decompressed.") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        if (fault := certificate_fault(error)) is not None:
            raise ToolError(f"{place} has a certificate that is not to be trusted: {fault}.") from None
        said = excerpt(SENT.without(str(error)), 100).rstrip(".") or "the connection broke off"
        if "WRONG_VERSION_NUMBER" in said:
            said = "it does not speak TLS; its address may begin with http://"
        raise ToolError(f"{place} cannot be reached: {said}.") from None


def certificate_fault(error: BaseException | None) -> str | None:
    """What is wrong with the certificate, where that is what stands behind an error."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return excerpt(error.verify_message.rstrip("."), 120)
        error = error.__cause__ or error.__context__
    return None
