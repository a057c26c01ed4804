"""Web addresses, with exactly one reading: rules, the guard and the request see the same host and path, and
an address that two programs may read differently is refused. Also which IP addresses are public.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote, urlsplit

from quoth.tools.errors import ToolError
from quoth.tools.text import excerpt

MAX_CHARS = 4000
MAX_DECODED = 5  # times
PORTS = {"http": 80, "https": 443}
LOCAL_NAME = "localhost"

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")  # text that programs read as a part of an IPv4 address
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})?")
_KEPT = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")


class WebUrl(NamedTuple):
    """A parsed address. ``host`` is a name in small ASCII letters without a last dot, or an IP address as
    the ipaddress module writes it; ``path`` has no dots to resolve and no needless escapes; ``query`` begins
    with its question mark, if there is one."""

    scheme: str
    host: str
    port: int
    path: str
    query: str = ""

    @property
    def netloc(self) -> str:
        """Host and port as in a request."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """The address without its query, which may contain a secret: for messages."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    def __str__(self) -> str:
        return self.place + self.query

    @property
    def address(self) -> Address | None:
        """The host as an IP address; None for a name."""
        return as_address(self.host)

    @property
    def is_local_name(self) -> bool:
        """Whether the host is ``localhost`` or a name below it: always this machine, never looked up."""
        return self.host == LOCAL_NAME or self.host.endswith(f".{LOCAL_NAME}")


@lru_cache(maxsize=256)
def read_url(text: str) -> WebUrl:
    """Parse an address. Raises ToolError; its message never contains a possible password."""
    if len(text) > MAX_CHARS:
        raise ToolError(f"This address has {len(text):,} characters; the limit is {MAX_CHARS:,}.")
    if not text.isprintable() or " " in text or "\\" in text:
        raise ToolError(
            "An address contains no spaces, backslashes or control characters; write %20 for a space."
        )
    found = _SCHEME.match(text)
    scheme = found[1].lower() if found else ""
    if scheme not in PORTS:
        raise _no_scheme(text, scheme)
    try:
        parts = urlsplit(text)
        netloc, port = parts.netloc, parts.port
    except ValueError:  # its message may contain a password
        raise ToolError("This address cannot be read: its server or port is invalid.") from None
    if "@" in netloc:
        raise ToolError(
            "An address with a user name or password is not fetched; leave out the part before the @."
        )
    if not text[len(scheme) + 1 :].startswith("//") or not netloc:
        raise ToolError(f"This address names no server; an example is {scheme}://example.org/page.")
    if port == 0:
        raise ToolError("A port must be a number from 1 to 65535.")
    name, colon, digits = netloc.rpartition(":")
    if not colon or (digits and not digits.isdecimal()):
        name = netloc
    host = read_host(name)
    if not name.isascii():  # a person who is asked may confuse it with another name
        raise ToolError(f"Write the server's name in ASCII: {host} instead of {excerpt(name)}.")
    query = f"?{_encoded(parts.query)}" if parts.query else ""
    return WebUrl(scheme, host, port or PORTS[scheme], _path(parts.path), query)


def normal_form(text: str) -> str:
    """The normal spelling of an address, by which addresses are compared; empty for any other text."""
    if text[:4].lower() != "http":
        return ""
    try:
        return str(read_url(text))
    except ToolError:
        return ""


def _no_scheme(text: str, scheme: str) -> ToolError:
    if "@" in text:  # it may contain a password
        return ToolError("An address begins with https:// or http:// and contains no user name or password.")
    if not text:
        return ToolError("The address is empty; an example is https://example.org/page.")
    rest = text[len(scheme) + 1 :]
    if scheme and not (rest[:1].isdecimal() or "." in scheme):  # example.org:80/ has no scheme
        return ToolError(f"Only http and https addresses are fetched, not {excerpt(scheme)}.")
    if text.startswith(("/", ".", "~")) and not text.startswith("//"):
        return ToolError(f"{excerpt(text, 80)} is a path, not an address; read-file reads files.")
    return ToolError(f"{excerpt(text, 80)} has no scheme; write https://{excerpt(text.lstrip('/'), 80)}.")


def read_host(text: str) -> str:
    """A host as rules and requests see it; other letters are converted to ASCII. Raises ToolError."""
    if text.startswith("["):
        try:
            if not text.endswith("]") or "%" in text:
                raise ValueError
            return str(IPv6Address(text[1:-1]))
        except ValueError:
            raise ToolError(f"{excerpt(text)} is not an IPv6 address.") from None
    host = (text if text.isascii() else _in_ascii(text)).lower()
    host = host.removesuffix(".")
    labels = host.split(".")
    if _NUMBER.match(labels[-1]):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise ToolError(
                f"{excerpt(text)} is not an IP address: write four numbers from 0 to 255, such as 192.0.2.1."
            ) from None
    if len(host) > 253 or not all(map(_LABEL.match, labels)):
        raise ToolError(f"{excerpt(text) or 'An empty text'} is not the name of a server.")
    return host


def _in_ascii(host: str) -> str:
    import idna  # here: few names need it

    try:
        return idna.encode(host, uts46=True).decode()
    except idna.IDNAError:
        raise ToolError(f"{excerpt(host)} is not the name of a server.") from None


def _encoded(text: str) -> str:
    """A path or query in printable ASCII: escapes in capital letters, and only where they are needed."""

    def tidy(found: re.Match[str]) -> str:
        if found[1] is None:
            return "%25"
        code = int(found[1], 16)
        return chr(code) if code in _KEPT else f"%{found[1].upper()}"

    text = quote(text, safe="%/?#[]@!$&'()*+,;=:-._~|")
    return _ESCAPE.sub(tidy, text)


def _path(text: str) -> str:
    """A path with the segments . and .. resolved, as in a request."""
    kept: list[str] = []
    segments = _encoded(text).split("/")
    for number, segment in enumerate(segments):
        last = number == len(segments) - 1
        if segment == "..":
            if len(kept) > 1 and not kept.pop():  # some servers join the slashes first
                raise ToolError("Servers disagree on an address with // before ..; leave out one slash.")
        elif segment != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    path = "/".join(kept)
    return path if path.startswith("/") else f"/{path}"


def plain_path(path: str) -> str | None:
    """The path with its escapes decoded, as a server reads it; None for a path that servers may read
    differently: with an escaped slash, an empty segment, parameters, or escapes in escapes."""
    decoded = unquote(path)
    if decoded.count("/") != path.count("/") or not decoded.isprintable():
        return None
    return decoded if loosest_path(path) == decoded else None


def loosest_path(path: str) -> str:
    """The path as the most tolerant server reads it: fully decoded, backslashes as slashes, letters in their
    plain form, without parameters, empty segments, and dots or spaces after a name."""
    for _ in range(MAX_DECODED):
        if (decoded := unquote(path)) == path:
            break
        path = decoded
    parts = unicodedata.normalize("NFKC", path.partition("\0")[0]).replace("\\", "/").split("/")
    kept: list[str] = []
    for part in parts:
        name = part.partition(";")[0]
        if name == "..":
            del kept[-1:]
        elif name := name.rstrip(". "):
            kept.append(name)
    return "/" + "/".join(kept) + ("/" if kept and not parts[-1] else "")


def loosest_form(text: str) -> str:
    """An address in small letters, with its path as the most tolerant server reads it; empty for any other
    text."""
    if text[:4].lower() != "http":
        return ""
    try:
        url = read_url(text)
    except ToolError:
        return ""
    path = url.path if plain_path(url.path) is not None else loosest_path(url.path)
    return str(url._replace(path=path)).lower()


# IP addresses

_NOT_PUBLIC = tuple(
    (what, tuple(map(ip_network, networks)))
    for what, networks in (
        ("an address of this machine", ("127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128")),
        ("a link-local address", ("169.254.0.0/16", "fe80::/10")),
        (
            "a private address",
            ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"),
        ),
        ("a multicast address", ("224.0.0.0/4", "ff00::/8")),
        # Reserved for protocols, tests and examples; 168.63.129.16 serves settings to a cloud's machines.
        (
            "a reserved address",
            (
                *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"),
                *("203.0.113.0/24", "240.0.0.0/4", "168.63.129.16/32"),
                *("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"),
            ),
        ),
    )
)
_PUBLIC_V6 = ip_network("2000::/3")
_CARRIES_V4 = ip_network("64:ff9b::/96")  # a gateway forwards to the IPv4 address in the last four bytes


def as_address(text: str) -> Address | None:
    """A host as an IP address; None for a name."""
    try:
        return ip_address(text)
    except ValueError:
        return None


def not_public(address: Address) -> str:
    """The kind of an IP address outside the public network, in words; empty for a public address."""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or (
            IPv4Address(int(address) & 0xFFFFFFFF) if address in _CARRIES_V4 else None
        )
        if inner is not None:
            return not_public(inner)
    for what, networks in _NOT_PUBLIC:
        if any(address in network for network in networks):
            return what
    return "a reserved address" if address.version == 6 and address not in _PUBLIC_V6 else ""
