"""One connection to a PostgreSQL server, opened and migrated at first use, and its errors.

It runs a synchronous function in a transaction. Messages never contain the user or the password of the URL.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, LiteralString, TypeVar
from urllib.parse import parse_qs, urlsplit

from quoth.tools.call.redaction import SENT
from quoth.tools.errors import ServerError, UsageError
from quoth.tools.installing import install_extra

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

OLDEST: Final = 130000  # oldest supported version, as server_version_num: PostgreSQL 13
CONNECT_SECONDS: Final = 5
STATEMENT_SECONDS: Final = 10
ATTEMPTS: Final = 6  # maximum number of attempts at a transaction that conflicts with another one
MIGRATING: Final = 0x71756F7468  # advisory lock of the processes that migrate the schema

# Why a server refuses the connection, by a part of its message. Any other message is shown if it contains no
# secret of the URL.
REFUSALS: Final[tuple[tuple[str, str], ...]] = (
    ("password authentication failed", "its user or password is wrong"),
    ("no password supplied", "it needs a password"),
    ("no pg_hba.conf entry", "its user may not connect from this machine"),
    ("too many clients", "the server has no free connection"),
    ("remaining connection slots", "the server has no free connection"),
    ("starting up", "the server is starting"),
    ("shutting down", "the server is shutting down"),
    ("onnection refused", "no server answers there"),
    ("No such file", "no server answers there"),
    ("timeout expired", "no server answers there"),
    ("imed out", "no server answers there"),
    ("translate host name", "its host name is unknown"),
    ("resolve host", "its host name is unknown"),
    ("invalid port number", "its port is not a number from 1 to 65535"),
    ("invalid integer value", "its port, or an option of it, is not a number"),
)
# Errors of a transaction that are not defects of quoth, by SQLSTATE or its class.
TROUBLE: Final[dict[str, str]] = {
    "57014": f"it took longer than {STATEMENT_SECONDS} seconds",
    "55P03": "another process has locked it",
    "25006": "it is read-only",
    "42501": "its user has no permission for that",
    "53100": "the disk of the server is full",
    "53": "the server does not have enough resources",
    "58": "the disk of the server has failed",
    "XX": "it is damaged",
}
AGAIN: Final = (
    "40001",
    "40P01",
    "23505",
    "42710",
    "42P07",
)  # another transaction was first: run it again on the current data


def shown_url(url: str) -> str:
    """A URL without user, password and options, to be shown."""
    try:
        parts = urlsplit(url)
        options = parse_qs(parts.query)
    except ValueError:
        return "postgresql://…"
    if "@" in f"{parts.path}{parts.query}{parts.fragment}":  # a password with an unescaped / or ?
        return f"{parts.scheme}://…"
    place = parts.netloc.rpartition("@")[2] or next(iter(options.get("host", ())), "")
    if any(not re.fullmatch(r"(\[[^]]*\]|[^:]*)(:[0-9]*)?", one) for one in place.split(",")):
        return f"{parts.scheme}://…"  # the host and port may be USER:PASSWORD
    return f"{parts.scheme}://{place}{parts.path}"


class Postgres:
    """A PostgreSQL database. Raises UsageError if the URL is invalid or psycopg is not installed, and later
    ServerError if the server cannot be used. ``steps`` are the migrations of its schema ``quoth``."""

    def __init__(self, url: str, steps: tuple[str, ...]) -> None:
        if find_spec("psycopg") is None:
            raise UsageError(
                f"Memory in PostgreSQL needs psycopg, which is not installed: {install_extra('postgres')}."
            )
        self._url, self._steps = url, steps
        self.shown = shown_url(url)
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._secrets = self._checked()

    def _checked(self) -> list[str]:
        """Check the URL and return the parts of it that may be secret."""
        import psycopg
        from psycopg.conninfo import conninfo_to_dict

        try:
            parts = conninfo_to_dict(self._url)
        except (psycopg.Error, UnicodeError, ValueError):
            raise UsageError(
                "The URL of the memory cannot be read. Write postgresql://USER:PASSWORD@HOST:PORT/DATABASE,"
                " with %40 for @ and %2F for / in the password."
            ) from None
        SENT.learn(str(parts.get("password") or ""))
        return [str(value) for name, value in parts.items() if value and name not in ("host", "dbname")]

    def run(self, work: Callable[[psycopg.Connection[Any], bool], tuple[T, bool]]) -> T:
        """Run ``work`` in one transaction and return its result. ``work`` returns the result and whether it
        wrote anything. If another transaction was first, it is run again with its second argument true, and
        must then lock the rows it reads. If the connection was lost before anything was committed, it is run
        once more."""
        import psycopg
        from psycopg import IsolationLevel

        with self._lock, self._told():
            lost = False
            for attempt in range(ATTEMPTS):
                connection = self._open()
                saving = False
                try:
                    connection.isolation_level = (
                        IsolationLevel.READ_COMMITTED if attempt else IsolationLevel.REPEATABLE_READ
                    )
                    with connection.transaction():
                        result, saving = work(connection, attempt > 0)
                    return result
                except psycopg.Error as error:
                    if error.sqlstate in AGAIN and attempt + 1 < ATTEMPTS:
                        continue
                    if not connection.closed:
                        raise
                    self._drop()
                    if saving:
                        raise ServerError(
                            f"The connection to {self.shown} was lost while a change was saved",
                            "the change may be saved or not, so check before you repeat it",
                        ) from None
                    if lost:
                        raise
                    lost = True
            raise AssertionError("not reached")  # the last attempt raises

    def hang_up(self) -> None:
        """Close the socket, so that a thread waiting for a server that does not answer gets an error."""
        connection = self._connection
        if connection is not None and not connection.closed:
            with contextlib.suppress(Exception), socket.socket(fileno=connection.fileno()) as line:
                try:
                    line.shutdown(socket.SHUT_RDWR)
                finally:
                    line.detach()  # psycopg closes it

    def close(self) -> None:
        """Close the connection. May be called twice; the next use opens a new one."""
        with self._lock:
            self._drop()

    def __del__(self) -> None:
        if getattr(self, "_connection", None) is not None:  # it was never closed
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _open(self) -> psycopg.Connection[Any]:
        """The open connection, or a new one."""
        import psycopg

        if self._connection is not None and not self._connection.closed:
            return self._connection
        try:
            connection = psycopg.connect(
                self._url,
                autocommit=True,
                connect_timeout=CONNECT_SECONDS,
                client_encoding="utf8",
                application_name="quoth",
                tcp_user_timeout=STATEMENT_SECONDS * 1000,
                prepare_threshold=None,  # poolers do not keep prepared statements
            )
        except psycopg.Error as error:
            raise ServerError(f"The memory at {self.shown} cannot be opened", self._refusal(error)) from None
        self._connection = connection
        try:
            self._prepare(connection)
        except BaseException:
            self._drop()
            raise
        return connection

    def _prepare(self, connection: psycopg.Connection[Any]) -> None:
        info = connection.info
        why = ""
        if info.server_version < OLDEST:
            version = info.parameter_status("server_version") or info.server_version
            why = f"the server is PostgreSQL {version}, and quoth needs {OLDEST // 10000} or newer"
        elif (encoding := info.parameter_status("server_encoding")) != "UTF8":
            why = f"the encoding of the database is {encoding}, and must be UTF8"
        if why:
            raise ServerError(f"The memory at {self.shown} cannot be used", why)
        connection.execute(
            f"SET statement_timeout = '{STATEMENT_SECONDS}s'; SET lock_timeout = '{STATEMENT_SECONDS}s';"
            f"SET idle_in_transaction_session_timeout = '{STATEMENT_SECONDS}s';"
            "SET search_path = quoth, public; SET client_min_messages = error"
        )
        self._migrate(connection)

    def _migrate(self, connection: psycopg.Connection[Any]) -> None:
        """Migrate the schema. One process does it while the others wait."""
        if self._version(connection) == len(self._steps):
            return
        # The lock is taken before the transaction, whose snapshot then includes the work of other processes.
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATING])
        try:
            with connection.transaction():
                version = self._version(connection)  # another process may have been first
                if version == 0:
                    connection.execute("CREATE SCHEMA IF NOT EXISTS quoth")
                    connection.execute("CREATE TABLE quoth.versions (version integer PRIMARY KEY)")
                for number, step in enumerate(self._steps[version:], version + 1):
                    connection.execute(step)
                    connection.execute("INSERT INTO quoth.versions VALUES (%s)", [number])
        finally:
            connection.execute("SELECT pg_advisory_unlock(%s)", [MIGRATING])

    def _version(self, connection: psycopg.Connection[Any]) -> int:
        (there,) = _row(connection, "SELECT to_regclass('quoth.versions') IS NOT NULL")
        if not there:
            return 0
        (version,) = _row(connection, "SELECT coalesce(max(version), 0) FROM quoth.versions")
        if version > len(self._steps):
            raise ServerError(
                f"The memory at {self.shown} cannot be used", "it was made by a newer quoth; use that version"
            )
        return int(version)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Turn errors of the server into ServerError. Defects of quoth stay as they are."""
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            state = error.sqlstate or ""
            why = TROUBLE.get(state) or TROUBLE.get(state[:2])
            if why is None and (self._connection is None or state in AGAIN):
                why = "other processes keep changing it" if state in AGAIN else "the connection was lost"
            if why is None:
                raise
            raise ServerError(f"The memory at {self.shown} could not be used", why) from None

    def _refusal(self, error: Exception) -> str:
        """Why the server refuses the connection, without secrets."""
        said = str(error)
        for words, why in REFUSALS:
            if words in said:
                return why
        if " does not exist" in said and "database " in said:
            return "the server does not have a database of that name"
        if " does not exist" in said and "role " in said:
            return "its user or password is wrong"
        lines = said.strip().splitlines() or ["it gives no reason"]
        why = lines[0].rpartition("failed: ")[2].rstrip(".")
        refuses = any(secret in why for secret in self._secrets)
        return "it refuses the connection" if refuses else SENT.without(why)


def _row(connection: psycopg.Connection[Any], sql: LiteralString) -> tuple[Any, ...]:
    """The only row of a statement."""
    (row,) = connection.execute(sql).fetchall()
    return tuple(row)
