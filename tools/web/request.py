"""Requests one page from a web server: looks up its name once, checks every address of it, and connects only
to the checked addresses.

The rules decide by ``may_reach`` whether an address of the local network is allowed. This module does not
follow redirects, keep cookies, or send anything from the environment. It also ignores proxies from the
environment: a proxy would look up the name itself, unchecked."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quoth.tools.call.redaction import SENT
from quoth.tools.call.web_url import WebUrl, as_address, not_public
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.storage.addresses import trusted
from quoth.tools.text import excerpt, one_line
from quoth.tools.web.answer import body_of, certificate_fault, explained, text_of

if TYPE_CHECKING:
    from quoth.tools.storage.lean_httpx import httpx

SECONDS = 20.0  # for one page, including name look-ups
MAX_BYTES = 5_000_000  # of a decompressed page
MAX_ADDRESSES = 4  # maximum number of addresses tried for one server
REDIRECTS = (301, 302, 303, 307, 308)
AGENT = "quoth (a person's assistant; fetches one page at a time)"


@dataclass(frozen=True)
class Response:
    """A server's answer: a page, or, with ``moved``, the address of a redirect."""

    url: WebUrl
    kind: str = ""  # the media type, in lower case and without parameters
    charset: str = ""
    body: bytes = b""
    moved: str = ""


def require_reachable(url: WebUrl, address: str, may_reach: Callable[[str], bool]) -> None:
    """Raise ToolFailure if an address belongs to this machine or its network and no rule names it."""
    found = as_address(address)
    what = not_public(found) if found is not None else "not an address"
    if not what or may_reach(address):
        return
    leads = f"{url.host} is" if url.host == address else f"{url.host} resolves to {address},"
    named = url.netloc if url.host == address or url.is_local_name else f'{url.host}" "{address}'
    raise ToolFailure(
        "denied", f'{leads} {what}. To allow it, add a rule: (allow (fetch :url (host "{named}"))).'
    )


def require_no_known_address(url: WebUrl, may_reach: Callable[[str], bool]) -> None:
    """Like ``require_reachable``, for the addresses that are known without a look-up."""
    for address in _known(url) or ():
        require_reachable(url, address, may_reach)


def _known(url: WebUrl) -> list[str] | None:
    """The addresses of a host that is an IP address or a name of this machine; None for any other name."""
    if url.address is not None:
        return [url.host]
    return ["127.0.0.1", "::1"] if url.is_local_name else None


async def look_up(host: str, port: int) -> list[str]:
    """The IP addresses of a name, from the system's resolver. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))


async def addresses_of(url: WebUrl, may_reach: Callable[[str], bool]) -> list[str]:
    """The checked addresses to connect to. If one is refused, all are refused."""
    found = _known(url)
    if found is None:
        try:
            found = await look_up(url.host, url.port)
        except (OSError, UnicodeError):
            raise ToolError(
                f"The host name {excerpt(url.host, 80)} is unknown, or it cannot be looked up."
            ) from None
    for address in found:
        require_reachable(url, address, may_reach)
    return found[:MAX_ADDRESSES]


async def ask(url: WebUrl, accept: str, may_reach: Callable[[str], bool]) -> Response:
    """The answer of the server. Raises ToolError, and ToolFailure ``timeout`` or ``denied``."""
    from quoth.tools.storage.lean_httpx import httpx

    with explained(url.place, SECONDS):
        async with asyncio.timeout(SECONDS):
            addresses = await addresses_of(url, may_reach)
            verify = await trusted() if url.scheme == "https" else False
            async with httpx.AsyncClient(timeout=SECONDS, verify=verify, trust_env=False) as client:
                failed: httpx.ConnectError | None = None  # the first error is the most useful
                for address in addresses:
                    try:
                        return await _ask_at(client, url, address, accept)
                    except httpx.ConnectError as error:
                        failed = failed or error
                        if certificate_fault(error) is not None:
                            raise
                if failed is not None:
                    raise failed
    raise ToolError(f"{url.host} has no address.")


async def _ask_at(client: httpx.AsyncClient, url: WebUrl, address: str, accept: str) -> Response:
    """One GET at one address, for the server named in ``url``."""
    from quoth.tools.storage.lean_httpx import httpx

    target = httpx.URL(
        scheme=url.scheme, host=address, port=url.port, raw_path=f"{url.path}{url.query}".encode()
    )
    headers = {"host": url.netloc, "accept": accept, "accept-encoding": "gzip", "user-agent": AGENT}
    extensions: Mapping[str, Any] = {} if url.address else {"sni_hostname": url.host}
    async with client.stream("GET", target, headers=headers, extensions=extensions) as response:
        if response.status_code in REDIRECTS:
            return Response(url, moved=_moved(url, response))
        kind, _, _ = response.headers.get("content-type", "").partition(";")
        kind, body = kind.strip().lower()[:100], b""
        if response.status_code < 300 or kind.startswith("text/plain"):
            body = await body_of(response, url.place, MAX_BYTES)
        if response.status_code >= 300:
            said = one_line(text_of(body, ""), 200)
            reason = one_line(SENT.without(response.reason_phrase), 60)
            raise ToolError(
                f"{url.place} answered {response.status_code} {reason}".rstrip()
                + (f": {said}" if said else ".")
            )
        return Response(url, kind, response.charset_encoding or "", body)


def _moved(url: WebUrl, response: httpx.Response) -> str:
    from urllib.parse import urljoin, urlsplit

    place = SENT.without(str(response.headers.get("location", "")).strip())
    if not place:
        raise ToolError(f"{url.place} answered {response.status_code} without the address of the page.")
    try:
        parts = urlsplit(place)
        if parts.scheme and not parts.netloc:  # http:path; browsers and libraries disagree about it
            return place
        return urljoin(str(url), place)
    except ValueError:
        return place  # the code that parses it reports the error
