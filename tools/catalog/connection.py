"""The Redis server that catalogue, calls and limits go through: its URL, its clients, and how it fails.

Knows addresses, secrets and what servers answer; it must not know tools, keys or what is kept in the server.
"""

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
READ_SECONDS: Final = 5.0  # of one answer; who blocks for longer asks for more
SCHEMES: Final = ("redis", "rediss", "unix")
OPTIONS: Final = ("db", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile")  # what may stand behind the ?
FORMS: Final = "redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss://… with TLS, or unix:///PATH"
ESCAPES: Final = "write %40 for an @ in the password, %2F for a /, %3A for a :, %23 for a #, %3F for a ?"
PREFIX: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,63}\Z")

SILENT: Final = "it does not answer"

# What a server or the system says, and what it means. Any other sentence is shown only if it holds nothing
# of the URL that is a secret.
MEANINGS: Final = (
    (r"WRONGPASS|invalid username-password|invalid password", "its user or password is wrong"),
    (r"without any password configured", "the URL has a password, and the server wants none"),
    (r"NOAUTH|Authentication required|unauthenticated", "it wants a user or password, and the URL has none"),
    (r"WRONGTYPE", "somebody has put something else in the place of a key of quoth's"),
    (r"LOADING", "it is still loading its data"),
    (r"READONLY|read only replica", "it is a replica, which cannot be written; name the primary"),
    (r"OOM |used memory > ", "its memory is full (maxmemory)"),
    (r"MISCONF", "it cannot write to its disk"),
    (r"max number of clients", "it has no connection left"),
    (r"[Cc]luster|CROSSSLOT|^MOVED |^ASK ", "it is a cluster, and only a single server will do"),
    (
        r"permissions? to access|access at least one",
        "its user may not use these keys or channels; an ACL needs ~PREFIX:* and &PREFIX:*, with the prefix"
        " that is used here",
    ),
    (r"permissions to run the '([a-z|]+)' command", r"its user may not use the command \1 there (ACL)"),
    (r"has no permissions|NOPERM|can't run this|ACL failure", "its user may not do that there (ACL)"),
    (r"mismatch|doesn't match", "its certificate is for another host"),
    (r"certificate has expired", "its certificate has expired"),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "its certificate is signed by nobody trusted here; name the file of its CA with --redis-ca FILE",
    ),
    (r"certificate required|CERTIFICATE_REQUIRED", "it wants a certificate of ours (ssl_certfile=…)"),
    (r"WRONG_VERSION_NUMBER|wrong version number|record layer", "it does not speak TLS; write redis://"),
    (r"[Nn]ame or service|nodename|resolution|getaddrinfo", "its host name is unknown"),
    (r"refused|Connect call failed|No such file|unreachable|No route", "no server answers there"),
    (r"Permission denied", "its socket may not be opened"),
    (r"Timeout|timed out", SILENT),
    (r"reset|closed|ended|Broken pipe|lost|Error while reading|aborted", "the connection was lost"),
    (r"Protocol|InvalidResponse", "what answers there is no Redis"),
)


@dataclass(frozen=True)
class RedisUrl:
    """A checked URL. Only clients are given ``full``; ``shown`` is without user, password and options."""

    full: str = field(repr=False)
    shown: str
    ca: str = ""
    files: tuple[Path, ...] = ()  # where it stands, if it was not given itself
    _secrets: tuple[str, ...] = field(default=(), repr=False)

    def options(self, read: float = READ_SECONDS) -> dict[str, Any]:
        """What clients and pools (``from_url``) are given beside ``full``: bytes as they are, deadlines."""
        return {
            "decode_responses": False,
            "protocol": 2,  # answers have the same shape whatever the server and the library
            "socket_connect_timeout": CONNECT_SECONDS,
            "socket_timeout": read,
            **({"ssl_ca_certs": self.ca} if self.ca else {}),
        }

    def kept(self, name: str) -> dict[str, str]:
        """Where it is, under this name, for the opening of a session: without user and password."""
        return {name: self.shown, **({"redis-ca": str(Path(self.ca).resolve())} if self.ca else {})}

    def betrayed_by(self, text: str) -> bool:
        """Whether a text holds a secret of the URL."""
        return any(secret in text for secret in self._secrets)


def redis_url(
    given: str | None, variable: str = VARIABLE, *, ca: str | None = None, typed: bool = True
) -> RedisUrl:
    """The URL that was given, or that of ``variable``; ``@FILE`` is the first line of a file that only its
    owner may read. One that was ``typed`` as an option holds no password, for ``ps`` shows it to everybody;
    ``ca`` is the file of a CA. Raises UsageError, which never shows the URL."""
    text = given or os.environ.get(variable) or ""
    if not text:
        raise UsageError(
            f"No Redis server is named: give its URL as an option, or set {variable} to {FORMS}."
        )
    inside = text.startswith("@")
    files = (Path(text[1:]).expanduser(),) if inside else ()
    for file in files:
        text = _line_of(file)
    url = replace(_checked(text, ca), files=files)
    if given and typed and not inside and (":" in urlsplit(text).netloc.rpartition("@")[0]):
        raise UsageError(
            "A password on the command line can be seen by everybody on this machine; set"
            f" {variable} to the whole URL, or write @FILE for a file that holds it and only you may read."
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
        raise UsageError(f"Others may read or write {path}, which holds a URL; type chmod 600 {path}.")
    return line.decode("utf-8", "replace")


def _checked(text: str, ca: str | None) -> RedisUrl:
    scheme, colon, _ = text.partition("://")
    if not colon or scheme not in SCHEMES:
        what = f"{excerpt(scheme, 20)}://" if colon else "a text without ://"
        hint = did_you_mean(scheme, SCHEMES) if colon else ""
        raise UsageError(f"The URL of a Redis server is {FORMS}, not {what}.{hint}")
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
        raise UsageError(f"The URL of the Redis server cannot be read; it is {FORMS}; {ESCAPES}.")
    for name in asked:
        if name not in OPTIONS or (name == "db" and scheme != "unix"):
            raise UsageError(
                f"The URL of the Redis server has an option {excerpt(name)}; the options are"
                f" {', '.join(OPTIONS[1:])} for rediss://, and db for unix://."
            )
    files = [one for name in OPTIONS[1:] for one in asked.get(name, [])] + [ca] * bool(ca)
    if files and scheme != "rediss":
        raise UsageError("A CA or a certificate is for a server with TLS; its URL begins with rediss://.")
    for file in files:
        if not file or not Path(file).is_file():
            raise UsageError(f"There is no file {file} for TLS.")
    if not all(number.isdecimal() for number in asked.get("db", [])):
        raise UsageError("The db of the URL of the Redis server is a number.")
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
    raise UsageError(
        f"The prefix {excerpt(prefix)} cannot be used; it is 1 to 64 letters, digits and . _ : - ."
    )


def needed(*more: str) -> None:
    """Raises UsageError where the packages of the extra are not installed."""
    for name in ("redis", "msgpack", *more):
        if find_spec(name) is None:
            raise UsageError(f"Redis needs {name}, which is not installed: {install_extra('redis')}.")


# Clients


def async_client(url: RedisUrl, read: float = READ_SECONDS) -> redis.asyncio.Redis:
    """A client that opens connections when it needs them. It repeats no command by itself: the server may
    have done what it did not answer. ``read`` is the deadline of an answer. Close it (``aclose``)."""
    from redis.asyncio import Redis

    client: redis.asyncio.Redis = Redis.from_url(url.full, **async_options(url, read))
    return client


def async_options(url: RedisUrl, read: float) -> dict[str, Any]:
    """The options of such a client, or of its pool of connections."""
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    return {"retry": Retry(NoBackoff(), 0), **url.options(read)}


def sync_client(url: RedisUrl, read: float = READ_SECONDS) -> redis.Redis:
    """The same for code that is not asynchronous. Safe to use in several threads."""
    from redis import Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    client: redis.Redis = Redis.from_url(url.full, retry=Retry(NoBackoff(), 0), **url.options(read))
    return client


@asynccontextmanager
async def connected(url: RedisUrl) -> AsyncIterator[redis.asyncio.Redis]:
    """A client of a server that was looked at (``check``), closed at the end. What goes wrong with the
    server is a ServerError."""
    client = async_client(url)
    try:
        with told(url):
            await check(client)
            yield client
    finally:
        with suppress(Exception):
            await client.aclose()


async def check(client: redis.asyncio.Redis) -> None:
    """Raises ServerError for a server that will not do: too old, or a cluster."""
    with _asking():
        _look_at(await client.info("server"))
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # redis-py loses it while it connects
        raise asyncio.CancelledError


def check_sync(client: redis.Redis) -> None:
    """The same for a client that is not asynchronous."""
    with _asking():
        _look_at(client.info("server"))


@contextmanager
def _asking() -> Iterator[None]:
    from redis.exceptions import ConnectionError as Lost
    from redis.exceptions import NoPermissionError

    try:
        yield
    except NoPermissionError:  # an ACL may forbid the question
        pass
    except Lost as error:
        if re.search("closed|reset|while (reading|writing)|[Bb]roken pipe", str(error)):
            raise _Unfit("it hangs up at once; if it wants TLS, write rediss://") from None
        raise


def _look_at(info: dict[str, Any]) -> None:
    version = str(info.get("redis_version", "0"))
    if info.get("redis_mode") == "cluster":
        raise _Unfit("it is a cluster, and only a single server will do")
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        raise _Unfit(f"it is Redis {excerpt(version)}, and {'.'.join(map(str, OLDEST))} is the oldest")


class _Unfit(Exception):
    """A server that answers but will not do."""


async def cancelled(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks until they have ended: redis-py loses a cancellation that comes while it connects."""
    while running := [task for task in tasks if not task.done()]:
        for task in running:
            task.cancel()
        await asyncio.wait(running, timeout=0.05)


def clock_offset(client: redis.Redis) -> float:
    """How many seconds the server's clock is ahead of ours; ``time.time()`` plus it is the server's time."""
    before = time.time()
    told: Any = client.time()
    seconds, micros = told
    return float(seconds + micros / 1e6 - (before + time.time()) / 2)


# How it fails


@contextmanager
def told(url: RedisUrl) -> Iterator[None]:
    """Turns what a server or the way to it does wrong into ServerError; our own mistakes stay as they are."""
    from redis.exceptions import RedisError

    try:
        yield
    except (RedisError, _Unfit) as error:
        raise trouble(error, url) from None


def trouble(error: BaseException, url: RedisUrl) -> ServerError:
    """What is wrong, as an error whose ``why`` is the reason alone."""
    return ServerError(f"The Redis at {url.shown} cannot be used", _why(error, url))


def sentence_of(error: BaseException, url: RedisUrl) -> str:
    """What is wrong, in a sentence for people and models, without a secret."""
    return str(trouble(error, url))


def _why(error: BaseException, url: RedisUrl) -> str:
    if isinstance(error, _Unfit):
        return str(error)
    said = f"{getattr(error, 'status_code', None) or ''} {error}".strip()
    if not said or isinstance(error, TimeoutError):
        said = f"{type(error).__name__} {said}"
    # redis-py wraps what the system says, and not always with all its words.
    inner = error.__cause__ or error.__context__
    for words in (said, f"{inner or ''}", f"{type(error).__name__}"):
        for pattern, meaning in MEANINGS:
            if match := re.search(pattern, words):
                hint = ", or not with TLS" if meaning == SILENT and url.shown.startswith("rediss") else ""
                return match.expand(meaning) + hint
    return "it refuses" if url.betrayed_by(said) else excerpt(SENT.without(said), 120).rstrip(".")
