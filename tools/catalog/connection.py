"""The Redis server for the catalog, calls and limits: its URL, its clients, and its errors."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote, urlsplit

from quoth.tools.call.redaction import SENT
from quoth.tools.errors import ServerError, UsageError, did_you_mean
from quoth.tools.installing import install_extra
from quoth.tools.text import excerpt

if TYPE_CHECKING:
    import redis
    import redis.asyncio

VARIABLE: Final = "QUOTH_REDIS"
OLDEST: Final = (6, 2)
CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 5.0  # deadline of one answer; blocking commands set a longer one
SCHEMES: Final = ("redis", "rediss", "unix")
OPTIONS: Final = ("db", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")  # allowed in the query of the URL
FORMS: Final = "redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss://… with TLS, or unix:///PATH"
ESCAPES: Final = "in the password write %40 for @, %2F for /, %3A for :, %23 for #, %3F for ?"
PREFIX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}\Z")

SILENT: Final = "it does not answer"

# Messages of servers and of the system, and what each means. Any other message is shown only if it contains
# no secret of the URL.
MEANINGS: Final = (
    (r"WRONGPASS|invalid username-password|invalid password", "its user or password is wrong"),
    (r"without any password configured", "the URL has a password, but the server does not use one"),
    (r"NOAUTH|Authentication required|unauthenticated", "it needs a user or password, but the URL has none"),
    (r"WRONGTYPE", "another program has stored a value of another type under a key of quoth"),
    (r"LOADING", "it is still loading its data"),
    (r"READONLY|read only replica", "it is a read-only replica; give the URL of the primary"),
    (r"OOM |used memory > ", "its memory is full (maxmemory)"),
    (r"MISCONF", "it cannot write to its disk"),
    (r"max number of clients", "it has no free connection"),
    (r"[Cc]luster|CROSSSLOT|^MOVED |^ASK ", "it is a cluster; quoth needs a single server"),
    (
        r"permissions? to access|access at least one",
        "its user may not use these keys or channels; the ACL must allow ~PREFIX:* and &PREFIX:*, with the"
        " prefix that is used here",
    ),
    (r"permissions to run the '([a-z|]+)' command", r"its user may not use the command \1 (ACL)"),
    (r"has no permissions|NOPERM|can't run this|ACL failure", "its user has no permission for that (ACL)"),
    (r"mismatch|doesn't match", "its certificate is for another host"),
    (r"certificate has expired", "its certificate has expired"),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "its certificate is not signed by a trusted CA; give the file of its CA: --redis-ca FILE",
    ),
    (r"certificate required|CERTIFICATE_REQUIRED", "it needs a client certificate (ssl_certfile=…)"),
    (r"WRONG_VERSION_NUMBER|wrong version number|record layer", "it does not speak TLS; write redis://"),
    (r"[Nn]ame or service|nodename|resolution|getaddrinfo", "its host name is unknown"),
    (r"refused|Connect call failed|No such file|unreachable|No route", "no server answers there"),
    (r"Permission denied", "you have no permission to open its socket"),
    (r"Timeout|timed out", SILENT),
    (r"reset|closed|ended|Broken pipe|lost|Error while reading|aborted", "the connection was lost"),
    (r"Protocol|InvalidResponse", "the server there is not Redis"),
)


@dataclass(frozen=True)
class RedisUrl:
    """A checked URL. ``full`` is only for clients; ``shown`` is without user, password and options."""

    full: str = field(repr=False)
    shown: str
    ca: str = ""
    files: tuple[Path, ...] = ()  # the files that contain it, if it was not given directly
    _secrets: tuple[str, ...] = field(default=(), repr=False)

    def options(self, read: float = READ_SECONDS) -> dict[str, Any]:
        """The arguments of clients and pools (``from_url``) besides ``full``: raw bytes, deadlines."""
        return {
            "decode_responses": False,
            "protocol": 2,  # so that answers always have the same shape
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_timeout": read,
            **({"ssl_ca_certs": self.ca} if self.ca else {}),
        }

    def kept(self, name: str) -> dict[str, str]:
        """The URL to record in the opening of a session, as a dictionary with the key ``name``: without user
        and password."""
        return {name: self.shown, **({"redis-ca": str(Path(self.ca).resolve())} if self.ca else {})}

    def betrayed_by(self, text: str) -> bool:
        """Whether a text contains a secret of the URL."""
        return any(secret in text for secret in self._secrets)


def redis_url(
    given: str | None, variable: str = VARIABLE, *, ca: str | None = None, typed: bool = True
) -> RedisUrl:
    """The given URL, or the one in the environment variable ``variable``. ``@FILE`` means the first line of a
    file that only its owner may read. A URL ``typed`` as an option must not contain a password, because
    ``ps`` shows it to every user. ``ca`` is the file of a CA. Raises UsageError, which never shows the
    URL."""
    text = given or os.environ.get(variable) or ""
    if not text:
        raise UsageError(
            f"No Redis server is given. Give its URL with --redis URL, or set {variable} to {FORMS}."
        )
    inside = text.startswith("@")
    files = (Path(text[1:]).expanduser(),) if inside else ()
    for file in files:
        text = _line_of(file)
    url = replace(_checked(text, ca), files=files)
    if given and typed and not inside and (":" in urlsplit(text).netloc.rpartition("@")[0]):
        raise UsageError(
            "A password on the command line can be seen by everybody on this machine; set"
            f" {variable} to the whole URL, or write @FILE, a file with the URL that only you may read."
        )
    needed()
    return url


def _line_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            line = file.readline(4096).strip()
    except OSError as error:
        raise UsageError(f"The file {path} of the URL cannot be read: {error.strerror}.") from None
    if mode & 0o077:
        raise UsageError(f"Other users may read or write {path}, which contains a URL. Run: chmod 600 {path}")
    return line.decode("utf-8", "replace")


def _checked(text: str, ca: str | None) -> RedisUrl:
    scheme, colon, _ = text.partition("://")
    if not colon or scheme not in SCHEMES:
        what = f"{excerpt(scheme, 20)}://" if colon else "text without ://"
        hint = did_you_mean(scheme, SCHEMES) if colon else ""
        raise UsageError(f"The URL of a Redis server must be {FORMS}, not {what}.{hint}")
    try:
        parts = urlsplit(text)
        port = parts.port
        asked = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        parts = port = None  # type: ignore[assignment]
        asked = {}
    fine = parts is not None and not parts.fragment and "@" not in f"{parts.path}{parts.query}"
    if fine and scheme == "unix":
        fine = len(parts.path) > 1 and not parts.hostname
    elif fine:
        fine = bool(parts.hostname) and port != 0 and re.fullmatch(r"(/[0-9]{0,4})?", parts.path) is not None
    if not fine:
        raise UsageError(f"The URL of the Redis server cannot be read. Write {FORMS}; {ESCAPES}.")
    for name in asked:
        if name not in OPTIONS or (name == "db" and scheme != "unix"):
            raise UsageError(
                f"The URL of the Redis server has the unknown option {excerpt(name)}. The options are"
                f" {', '.join(OPTIONS[1:])} for rediss://, and db for unix://."
            )
    files = [one for name in OPTIONS[1:] for one in asked.get(name, [])] + [ca] * bool(ca)
    if files and scheme != "rediss":
        raise UsageError("A CA or a certificate needs a server with TLS: its URL must begin with rediss://.")
    for file in files:
        if not file or not Path(file).is_file():
            raise UsageError(f"There is no file {file} for TLS.")
    if not all(number.isdecimal() for number in asked.get("db", [])):
        raise UsageError("The db in the URL of the Redis server must be a number.")
    secrets = tuple(
        form
        for one in (parts.username, parts.password)
        if one
        for form in {one, unquote(one), quote(unquote(one))}
    )
    place = "" if scheme == "unix" else parts.netloc.rpartition("@")[2]
    SENT.learn(*(unquote(one) for one in [parts.password] if one))
    number = f"?db={asked['db'][0]}" if "db" in asked else ""
    return RedisUrl(text, f"{scheme}://{place}{parts.path}{number}", ca or "", _secrets=secrets)


def checked_prefix(prefix: str) -> str:
    """A prefix of keys. Raises UsageError."""
    if PREFIX.match(prefix):
        return prefix
    raise UsageError(f"The prefix {excerpt(prefix)} is invalid. Use 1 to 64 letters, digits and . _ : -")


def needed(*more: str) -> None:
    """Raise UsageError if the packages of the extra are not installed."""
    for name in ("redis", "msgpack", *more):
        if find_spec(name) is None:
            raise UsageError(f"Redis needs {name}, which is not installed: {install_extra('redis')}.")


# Clients


def async_client(url: RedisUrl, read: float = READ_SECONDS) -> redis.asyncio.Redis:
    """A client that connects when needed. It never repeats a command by itself, because the server may have
    run the command without answering. ``read`` is the deadline of an answer, in seconds. Close it
    (``aclose``)."""
    from redis.asyncio import Redis

    client: redis.asyncio.Redis = Redis.from_url(url.full, **async_options(url, read))
    return client


def async_options(url: RedisUrl, read: float) -> dict[str, Any]:
    """The options of an asynchronous client or of its connection pool."""
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return {"retry": Retry(NoBackoff(), 0), **url.options(read)}


def sync_client(url: RedisUrl, read: float = READ_SECONDS) -> redis.Redis:
    """A synchronous client like ``async_client``. Safe to use in several threads."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    client: redis.Redis = Redis.from_url(url.full, retry=Retry(NoBackoff(), 0), **url.options(read))
    return client


@asynccontextmanager
async def connected(url: RedisUrl) -> AsyncIterator[redis.asyncio.Redis]:
    """A client of a checked server (``check``), closed at the end. Errors of the server become
    ServerError."""
    client = async_client(url)
    try:
        with told(url):
            await check(client)
            yield client
    finally:
        with suppress(Exception):
            await client.aclose()


async def check(client: redis.asyncio.Redis) -> None:
    """Raise ServerError if the server cannot be used: too old, or a cluster."""
    with _asking():
        _look_at(await client.info("server"))
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # redis-py loses a cancellation while it connects
        raise asyncio.CancelledError


def check_sync(client: redis.Redis) -> None:
    """Like ``check``, for a synchronous client."""
    with _asking():
        _look_at(client.info("server"))


@contextmanager
def _asking() -> Iterator[None]:
    from redis.exceptions import ConnectionError as Lost
    from redis.exceptions import NoPermissionError

    try:
        yield
    except NoPermissionError:  # an ACL may forbid INFO
        pass
    except Lost as error:
        if re.search("closed|reset|while (reading|writing)|[Bb]roken pipe", str(error)):
            raise _Unfit("it closes the connection at once; if it needs TLS, write rediss://") from None
        raise


def _look_at(info: dict[str, Any]) -> None:
    version = str(info.get("redis_version", "0"))
    if info.get("redis_mode") == "cluster":
        raise _Unfit("it is a cluster; quoth needs a single server")
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        raise _Unfit(f"it is Redis {excerpt(version)}; quoth needs {'.'.join(map(str, OLDEST))} or newer")


class _Unfit(Exception):
    """A server that answers but cannot be used."""


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended: redis-py loses a cancellation that comes while it connects."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=0.05)


def clock_offset(client: redis.Redis) -> float:
    """The server's clock minus ours, in seconds: add it to ``time.time()`` to get the server's time."""
    before = time.time()
    told: Any = client.time()
    seconds, micros = told
    return float(seconds + micros / 1e6 - (before + time.time()) / 2)


# Errors


@contextmanager
def told(url: RedisUrl) -> Iterator[None]:
    """Turn errors of the server and of the network into ServerError. Defects of quoth stay as they are."""
    from redis.exceptions import RedisError

    try:
        yield
    except (RedisError, _Unfit) as error:
        raise trouble(error, url) from None


def trouble(error: BaseException, url: RedisUrl) -> ServerError:
    """The error as ServerError, whose ``why`` is only the reason."""
    return ServerError(f"The Redis at {url.shown} cannot be used", _why(error, url))


def sentence_of(error: BaseException, url: RedisUrl) -> str:
    """The error as a sentence for people and models, without secrets."""
    return str(trouble(error, url))


def _why(error: BaseException, url: RedisUrl) -> str:
    if isinstance(error, _Unfit):
        return str(error)
    said = f"{getattr(error, 'status_code', None) or ''} {error}".strip()
    if not said or isinstance(error, TimeoutError):
        said = f"{type(error).__name__} {said}"
    # redis-py wraps the system's message, sometimes without its words.
    inner = error.__cause__ or error.__context__
    for words in (said, f"{inner or ''}", f"{type(error).__name__}"):
        for pattern, meaning in MEANINGS:
            if match := re.search(pattern, words):
                hint = ", or not with TLS" if meaning == SILENT and url.shown.startswith("rediss") else ""
                return match.expand(meaning) + hint
    return (
        "it refuses the connection" if url.betrayed_by(said) else excerpt(SENT.without(said), 120).rstrip(".")
    )
