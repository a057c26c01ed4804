"""The way to a Redis server: which URLs are taken, what is never shown, and what is said of each failure."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as Lost
from sentences import (
    A_PASSWORD_ON_THE_COMMAND,
    CANNOT_BE_READ,
    CANNOT_BE_USED,
    IT_REFUSES_THE_CONNECTION,
    NO_SERVER_ANSWERS_THERE,
    THE_CONNECTION_WAS_LOST,
    THE_REDIS_AT,
    THERE_IS_NO_FILE,
)
from servers import own_redis, pretended_redis

from quoth.tools.catalog import connection
from quoth.tools.catalog.connection import (
    RedisUrl,
    check_sync,
    checked_prefix,
    clock_offset,
    connected,
    redis_url,
    sentence_of,
    sync_client,
    told,
)
from quoth.tools.errors import StoreError, UsageError

FORMS = "redis://USER:PASSWORD@HOST:PORT/NUMBER, rediss://… with TLS, or unix:///PATH"
UNREAD = (
    f"The URL of the Redis server {CANNOT_BE_READ}. Write {FORMS}; in the password write %40 for @, %2F"
    " for /, %3A for :, %23 for #, %3F for ?."
)
OPTIONS = "The options are ssl_ca_certs, ssl_certfile, ssl_keyfile for rediss://, and db for unix://."
REFUSED = {
    "http://h": f"The URL of a Redis server must be {FORMS}, not http://.",
    "rdis://ann:hush@h": f"The URL of a Redis server must be {FORMS}, not rdis://. Did you mean redis?",
    "127.0.0.1:6379": f"The URL of a Redis server must be {FORMS}, not text without ://.",
    "redis://": UNREAD,
    "redis:///1": UNREAD,
    "redis://ann:hu/sh@h": UNREAD,
    "redis://ann:hu?sh@h": UNREAD,
    "redis://ann:hu#sh@h": UNREAD,
    "redis://[::1": UNREAD,
    "redis://h:0": UNREAD,
    "redis://h:99999": UNREAD,
    "redis://h/one": UNREAD,
    "redis://h/1/2": UNREAD,
    "unix://h/s": UNREAD,
    "unix://": UNREAD,
    "redis://h?protocol=3": f"The URL of the Redis server has the unknown option protocol. {OPTIONS}",
    "redis://h?password=hush": f"The URL of the Redis server has the unknown option password. {OPTIONS}",
    "redis://h?db=1": f"The URL of the Redis server has the unknown option db. {OPTIONS}",
    "unix:///s?db=one": "The db in the URL of the Redis server must be a number.",
    "rediss://h?ssl_ca_certs=none.pem": f"{THERE_IS_NO_FILE} none.pem for TLS.",
    "redis://h?ssl_ca_certs=none.pem": (
        "A CA or a certificate needs a server with TLS: its URL must begin with rediss://."
    ),
}
TYPED = (
    f"{A_PASSWORD_ON_THE_COMMAND}; set QUOTH_REDIS to the whole"
    " URL, or write @FILE, a file with the URL that only you may read."
)


def bulk(text: str) -> str:
    return f"${len(text)}\r\n{text}"


# What a server answers to a command, and what is said then.
SAID = {
    "its user or password is wrong": {
        "AUTH": "-WRONGPASS invalid username-password pair or user is disabled."
    },
    "the URL has a password, but the server does not use one": {
        "AUTH": "-ERR AUTH <password> called without any password configured for the default user. Are you"
        " sure your configuration is correct?"
    },
    "it needs a user or password, but the URL has none": {"INFO": "-NOAUTH Authentication required."},
    "it is Redis 5.0.14; quoth needs 6.2 or newer": {"INFO": bulk("redis_version:5.0.14")},
    "it is Redis 6.0.9; quoth needs 6.2 or newer": {"INFO": bulk("redis_version:6.0.9")},
    "it is a cluster; quoth needs a single server": {
        "INFO": bulk("redis_version:7.4.1\r\nredis_mode:cluster")
    },
    "it is still loading its data": {"INFO": "-LOADING Redis is loading the dataset in memory"},
    "it has no free connection": {"INFO": "-ERR max number of clients reached"},
    "it closes the connection at once; if it needs TLS, write rediss://": {"INFO": ""},
    THE_CONNECTION_WAS_LOST: {"SET": ""},
    "the server there is not Redis": {"INFO": "HTTP/1.1 400 Bad Request"},
    "it is a read-only replica; give the URL of the primary": {
        "SET": "-READONLY You can't write against a read only replica."
    },
    "its memory is full (maxmemory)": {"SET": "-OOM command not allowed when used memory > 'maxmemory'."},
    "another program has stored a value of another type under a key of quoth": {
        "SET": "-WRONGTYPE Operation against a key holding the wrong kind of value"
    },
    "it cannot write to its disk": {
        "SET": "-MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist."
    },
    "ERR it says something new": {"SET": "-ERR it says something new."},
    f"{IT_REFUSES_THE_CONNECTION}": {"SET": "-ERR it says something new of hush-hush"},
}


async def try_it(url: RedisUrl) -> None:
    async with connected(url) as client:
        await client.set("a", b"1")


def try_it_at_once(url: RedisUrl) -> None:
    client = sync_client(url)
    try:
        with told(url):
            check_sync(client)
            client.set("a", b"1")
    finally:
        client.close()


def refuses(url: RedisUrl, why: str) -> None:
    """It says this, in both kinds of code."""
    for attempt in (lambda: asyncio.run(try_it(url)), lambda: try_it_at_once(url)):
        with pytest.raises(StoreError) as refused:
            attempt()
        assert str(refused.value) == f"{THE_REDIS_AT} {url.shown} {CANNOT_BE_USED}: {why}."


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize(("url", "said"), REFUSED.items())
def test_a_url_that_will_not_do(url: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        redis_url(url)
    assert str(refused.value) == said


def test_without_a_url_it_says_where_one_may_stand() -> None:
    with pytest.raises(UsageError) as refused:
        redis_url(None)
    assert (
        str(refused.value)
        == f"No Redis server is given. Give its URL with --redis URL, or set QUOTH_REDIS to {FORMS}."
    )


@pytest.mark.parametrize("url", ["redis://:hush-hush@h", "rediss://ann:hush-hush@h:1/2", "unix://a:hush@/s"])
def test_no_password_is_taken_from_the_command_line(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError) as refused:
        redis_url(url)
    assert str(refused.value) == TYPED
    assert redis_url(url, typed=False).full == url
    monkeypatch.setenv("QUOTH_REDIS", url)
    assert redis_url(None).full == url


def test_a_file_with_the_url_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "redis.url"
    path.write_text("redis://ann:hush-hush@h:1/2\n")
    path.chmod(0o640)
    with pytest.raises(UsageError) as refused:
        redis_url(f"@{path}")
    assert str(refused.value) == (
        f"Other users may read or write {path}, which contains a URL. Run: chmod 600 {path}"
    )
    path.chmod(0o600)
    assert redis_url(f"@{path}").full == "redis://ann:hush-hush@h:1/2"
    with pytest.raises(UsageError) as refused:
        redis_url(f"@{tmp_path / 'none'}")
    assert (
        str(refused.value)
        == f"The file {tmp_path / 'none'} of the URL {CANNOT_BE_READ}: No such file or directory."
    )


def test_a_url_is_shown_without_its_secrets() -> None:
    url = redis_url("redis://ann:hush%2Dhush@h:1/2", typed=False)
    assert url.shown == "redis://h:1/2"
    assert "hush" not in repr(url)
    assert url.betrayed_by("the password hush-hush")
    assert redis_url("unix:///run/redis?db=3").shown == "unix:///run/redis?db=3"
    assert redis_url("redis://[::1]:7").shown == "redis://[::1]:7"


@pytest.mark.parametrize("prefix", ["", "a b", "é", "-a", "a\n", "a" * 65, "a*"])
def test_a_prefix_is_a_word(prefix: str) -> None:
    with pytest.raises(UsageError, match="Use 1 to 64 letters, digits and"):
        checked_prefix(prefix)
    assert checked_prefix("my.app:1_x-2") == "my.app:1_x-2"


@pytest.mark.parametrize(("said", "answers"), SAID.items())
def test_what_a_server_says_is_said_in_words(said: str, answers: dict[str, str]) -> None:
    with pretended_redis({"INFO": bulk("redis_version:7.4.1"), **answers}) as place:
        refuses(redis_url(place.replace("://", "://ann:hush-hush@"), typed=False), said)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("redis://127.0.0.1:1", NO_SERVER_ANSWERS_THERE),
        ("rediss://127.0.0.1:1", NO_SERVER_ANSWERS_THERE),
        ("unix:///none/there", NO_SERVER_ANSWERS_THERE),
        ("redis://nowhere.invalid", "its host name is unknown"),
    ],
)
def test_where_no_server_is(place: str, said: str) -> None:
    refuses(redis_url(place), said)


def test_a_server_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        for scheme, said in (
            ("redis", "it does not answer"),
            ("rediss", "it does not answer, or not with TLS"),
        ):
            url = redis_url(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}")
            client = sync_client(url, read=0.05)
            with pytest.raises(StoreError) as refused, told(url):
                check_sync(client)
            client.close()
            assert str(refused.value) == f"{THE_REDIS_AT} {url.shown} {CANNOT_BE_USED}: {said}."


def speaks_tls(program: str) -> bool:
    """Whether a redis-server was built with TLS."""
    return "libssl" in subprocess.run(["ldd", program], capture_output=True, text=True).stdout


def certificates(folder: Path) -> None:
    """A CA, and a certificate of it for localhost."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj"
    for words in (
        f"{make} /CN=ours -keyout ca.key -out ca.pem",
        f"{make} /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=CA:FALSE"
        " -CA ca.pem -CAkey ca.key -keyout s.key -out s.pem",
    ):
        subprocess.run(words.split(), cwd=folder, check=True, capture_output=True)


def test_a_server_with_tls(tmp_path: Path) -> None:
    program = shutil.which("redis-server")
    if program is None or not speaks_tls(program):
        pytest.skip("the redis-server of the wheel has no TLS, and this machine has no other one")
    certificates(tmp_path)
    port = free_port()
    files = ["--tls-cert-file", f"{tmp_path}/s.pem", "--tls-key-file", f"{tmp_path}/s.key"]
    files += ["--tls-ca-cert-file", f"{tmp_path}/ca.pem", "--tls-auth-clients", "no", "--bind", "127.0.0.1"]
    ca = str(tmp_path / "ca.pem")
    with own_redis("--tls-port", str(port), *files, program=program):
        asyncio.run(try_it(redis_url(f"rediss://localhost:{port}", ca=ca)))
        asyncio.run(try_it(redis_url(f"rediss://localhost:{port}?ssl_ca_certs={ca}")))
        try_it_at_once(redis_url(f"rediss://localhost:{port}", ca=ca))
        refuses(
            redis_url(f"rediss://localhost:{port}"),
            "its certificate is not signed by a trusted CA; give the file of its CA: --redis-ca FILE",
        )
        refuses(redis_url(f"rediss://127.0.0.1:{port}", ca=ca), "its certificate is for another host")
        refuses(
            redis_url(f"redis://localhost:{port}"),
            "it closes the connection at once; if it needs TLS, write rediss://",
        )


def test_what_an_acl_forbids(redis: str) -> None:
    owner = sync_client(redis_url(redis))
    url = redis_url(redis.replace("unix://", "unix://catalog-ann:hush-hush@"), typed=False)
    owner.acl_setuser("catalog-ann", enabled=True, passwords=["+hush-hush"], keys=["sg:*"], commands=["+get"])
    try:
        mine = sync_client(url)
        check_sync(mine)  # it may not ask INFO, which is no reason to refuse the server
        for command, said in (
            (("SET", "sg:a", "1"), "its user may not use the command set (ACL)"),
            (
                ("GET", "other"),
                "its user may not use these keys or channels; the ACL must allow ~PREFIX:* and &PREFIX:*",
            ),
        ):
            with pytest.raises(StoreError) as refused, told(url):
                mine.execute_command(*command)
            assert str(refused.value).startswith(f"{THE_REDIS_AT} {redis} {CANNOT_BE_USED}: {said}")
        mine.close()
    finally:
        owner.acl_deluser("catalog-ann")
        owner.close()


def test_the_clock_of_the_server_is_told_from_ours(redis: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = redis_url(redis)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    client = sync_client(url)
    assert 3599 < clock_offset(client) < 3601
    client.close()


async def test_who_is_cancelled_while_it_connects_ends(redis: str) -> None:
    url = redis_url(redis)

    async def for_ever() -> None:
        async with connected(url):
            await asyncio.Event().wait()

    for ticks in range(30):  # wherever it is when it hears of it
        task = asyncio.create_task(for_ever())
        for _ in range(ticks):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


def test_a_mistake_of_ours_stays_what_it_is() -> None:
    with pytest.raises(ZeroDivisionError), told(redis_url("redis://h")):
        _ = 1 / 0
    assert sentence_of(Lost("Connection closed by server."), redis_url("redis://h")) == (
        f"{THE_REDIS_AT} redis://h {CANNOT_BE_USED}: {THE_CONNECTION_WAS_LOST}."
    )


def test_a_client_comes_back_with_its_server() -> None:
    with own_redis("--appendonly", "yes", "--appendfsync", "always") as server:
        url = redis_url(server.url)
        client = sync_client(url)
        client.set("kept", b"1")
        server.kill()
        with pytest.raises(StoreError), told(url):
            client.get("kept")
        server.start()
        assert client.get("kept") == b"1"
        client.close()
