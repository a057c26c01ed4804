"""The bounded body of an HTTP answer, and messages for HTTP errors: for ``fetch`` and for tools made by
``def-http-tool``."""

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
    """The decompressed body. Raises ToolError if it has more than ``limit`` bytes, and the errors that
    ``explained`` explains."""
    body = bytearray()
    pieces = inflated(response.aiter_raw(), response.headers.get("content-encoding", ""))
    async with contextlib.aclosing(pieces):
        async for piece in pieces:
            body += piece
            if len(body) > limit:
                raise ToolError(f"{place} answered with more than {limit:,} bytes.")
    return bytes(body)


def text_of(body: bytes, charset: str) -> str:
    """The text of a body, with the keys that this process has sent removed. Raises LookupError for an unknown
    character set."""
    return SENT.without(body.decode(charset or "utf-8", "replace"))


@contextlib.contextmanager
def explained(place: str, seconds: float) -> Iterator[None]:
    """Turn HTTP errors into ToolError with a sentence. ``place`` is the address without its query."""
    from quoth.tools.storage.lean_httpx import httpx

    try:
        yield
    except (httpx.TimeoutException, TimeoutError):
        raise ToolFailure("timeout", f"{place} did not answer within {seconds:g} s.") from None
    except UnknownEncodingError as error:
        name = excerpt(str(error))
        raise ToolError(f"{place} answered with the compression {name}, which was not requested.") from None
    except zlib.error:
        raise ToolError(f"{place} answered with data that cannot be decompressed.") from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        if (fault := certificate_fault(error)) is not None:
            raise ToolError(f"{place} has a certificate that cannot be trusted: {fault}.") from None
        said = excerpt(SENT.without(str(error)), 100).rstrip(".") or "the connection was lost"
        if "WRONG_VERSION_NUMBER" in said:
            said = "it does not speak TLS; write http://"
        raise ToolError(f"{place} cannot be reached: {said}.") from None


def certificate_fault(error: BaseException | None) -> str | None:
    """What is wrong with the server's certificate, if that caused the error; otherwise None."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return excerpt(error.verify_message.rstrip("."), 120)
        error = error.__cause__ or error.__context__
    return None
