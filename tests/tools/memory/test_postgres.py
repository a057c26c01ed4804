"""What is special about a memory in PostgreSQL: the server, its failures, its schema, and its search."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory import done, said
from sentences import (
    CANNOT_BE_OPENED,
    CANNOT_BE_READ,
    CANNOT_BE_USED,
    COULD_NOT_BE_USED,
    IT_REFUSES_THE_CONNECTION,
    NO_SERVER_ANSWERS_THERE,
    THE_CONNECTION_WAS_LOST,
    THE_MAXIMUM_IS,
    THE_QUERY_IS_EMPTY,
)
from servers import PostgresServer, pretended_postgres

from quoth.tools.call.service_types import SearchOptions
from quoth.tools.errors import StoreError, ToolError, UsageError
from quoth.tools.installing import install_extra
from quoth.tools.memory import postgres, postgres_server
from quoth.tools.memory.postgres import PostgresMemory
from quoth.tools.memory.postgres_server import shown_url


@pytest.fixture
def memory(memory_url: str) -> Iterator[PostgresMemory]:
    opened = PostgresMemory(memory_url, "a")
    yield opened
    opened.close()


def told(url: str) -> str:
    """What a memory that cannot be used says at its first use."""
    with pytest.raises(StoreError) as caught:
        done(PostgresMemory(url, "a").list_blocks())
    assert "hush" not in str(caught.value)
    assert "zoe" not in str(caught.value)
    return str(caught.value)


# Servers that cannot be used


def test_where_no_server_is() -> None:
    sentence = f"The memory at postgresql://127.0.0.1:1/notes {CANNOT_BE_OPENED}: {NO_SERVER_ANSWERS_THERE}."
    assert told("postgresql://zoe:hush@127.0.0.1:1/notes") == sentence
    assert told("postgresql://zoe:hush@/notes?host=/nowhere").endswith(f": {NO_SERVER_ANSWERS_THERE}.")


def test_a_database_or_a_user_that_is_not_there(postgres: PostgresServer) -> None:
    assert told(postgres.of("nowhere")).endswith(": the server does not have a database of that name.")
    assert told(postgres.of("postgres", "zoe:hush")).endswith(": its user or password is wrong.")


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ('password authentication failed for user "zoe"', "its user or password is wrong"),
        ("fe_sendauth: no password supplied", "it needs a password"),
        ('no pg_hba.conf entry for host "::1", user "zoe"', "its user may not connect from this machine"),
        ("sorry, too many clients already", "the server has no free connection"),
        ("the database system is starting up", "the server is starting"),
        ("the moon is full", "FATAL:  the moon is full"),
        ("the moon is full, says zoe (hush-hush)", f"{IT_REFUSES_THE_CONNECTION}"),
    ],
)
def test_what_a_server_says_that_lets_nobody_in(says: str, why: str) -> None:
    with pretended_postgres(says) as url:
        assert told(url) == f"The memory at {shown_url(url)} {CANNOT_BE_OPENED}: {why}."


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("127.0.0.1:1/notes?sslmode=bogus", f"{IT_REFUSES_THE_CONNECTION}"),
        ("127.0.0.1:99999/notes", "its port is not a number from 1 to 65535"),
        ("127.0.0.1:1/notes?keepalives=hush", "its port, or an option of it, is not a number"),
    ],
)
def test_an_option_of_the_url_that_is_none(place: str, why: str) -> None:
    said = told(f"postgresql://u:e@{place}")
    assert said == f"The memory at postgresql://{place.partition('?')[0]} {CANNOT_BE_OPENED}: {why}."


def test_a_password_where_the_port_should_be_is_not_said() -> None:
    assert told("postgresql://zoe:hush/notes") == (
        f"The memory at postgresql://… {CANNOT_BE_OPENED}: its host name is unknown."
    )


def test_a_server_that_will_not_do() -> None:
    with pretended_postgres(version="9.6.24") as url:
        assert told(url).endswith("the server is PostgreSQL 9.6.24, and quoth needs 13 or newer.")
    with pretended_postgres(encoding="LATIN1") as url:
        assert told(url).endswith("the encoding of the database is LATIN1, and must be UTF8.")


def test_a_server_that_never_answers_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PATIENCE", 0.1)
    with pretended_postgres() as url:
        assert told(url) == f"The memory at {shown_url(url)} {COULD_NOT_BE_USED}: {THE_CONNECTION_WAS_LOST}."


def test_a_memory_of_a_newer_quoth_is_left_alone(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = (*postgres.MIGRATIONS, "CREATE TABLE quoth.more ()")
    with monkeypatch.context() as later:
        later.setattr(postgres, "MIGRATIONS", newer)
        done(PostgresMemory(database, "a").create_block("x"))
    assert told(database).endswith(f"{CANNOT_BE_USED}: it was made by a newer quoth; use that version.")


def test_an_older_schema_is_brought_up_to_date(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done(PostgresMemory(database, "a").create_block("x", "kept"))
    monkeypatch.setattr(postgres, "MIGRATIONS", (*postgres.MIGRATIONS, "CREATE TABLE quoth.more ()"))
    assert done(PostgresMemory(database, "a").get_block("x")).text == "kept"


def test_many_who_open_a_new_database_at_once_make_one_schema(database: str) -> None:
    async def go() -> None:
        await asyncio.gather(*(PostgresMemory(database, "a").create_block(f"{n}") for n in range(4)))

    done(go())
    assert len(done(PostgresMemory(database, "a").list_blocks())) == 4


def test_without_psycopg_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_server, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=re.escape(f"not installed: {install_extra('postgres')}.")):
        PostgresMemory("postgresql://host/db", "a")


@pytest.mark.parametrize("url", ["postgresql://zoe:hu%zzsh@host/db", "redis://zoe:hush@host"])
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match=rf"^The URL of the memory {CANNOT_BE_READ}\. ") as no:
        PostgresMemory(url, "a")
    assert "zoe" not in str(no.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://zoe:hush@host:5/db?password=hush", "postgresql://host:5/db"),
        ("postgres://host/db", "postgres://host/db"),
        ("postgresql:///db?host=/run/pg&user=zoe", "postgresql:///run/pg/db"),
        ("postgresql://zoe:hu/sh@host/db", "postgresql://…"),
        ("postgresql://zoe:hu?sh@host/db", "postgresql://…"),
        ("postgresql://zoe:hu#sh@host/db", "postgresql://…"),
        ("postgresql://zoe:hu@sh@host/db", "postgresql://host/db"),
        ("postgresql://[::1/db", "postgresql://…"),
    ],
)
def test_a_url_is_shown_without_user_and_password(url: str, shown: str) -> None:
    assert shown_url(url) == shown


# Connections


def cut(postgres: PostgresServer) -> None:
    """End the connections of every memory."""
    postgres.ask(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'quoth' AND pid != pg_backend_pid()"
    )


def test_a_lost_connection_is_opened_again(memory: PostgresMemory, postgres: PostgresServer) -> None:
    done(memory.create_block("x", "one"))
    cut(postgres)
    assert done(memory.get_block("x")).text == "one"
    cut(postgres)
    assert done(memory.append_to_block("x", "two")).text == "one\ntwo"  # it was lost before anything was sent


def test_a_connection_that_is_lost_while_a_change_is_saved_is_told(
    memory: PostgresMemory, postgres: PostgresServer
) -> None:
    done(memory.create_block("x", "one"))

    def work(connection: Any, locking: bool) -> tuple[None, bool]:
        connection.execute("UPDATE quoth.blocks SET text = 'two'")
        cut(postgres)
        return None, True

    with pytest.raises(StoreError) as caught:
        done(memory.in_thread(work))
    assert str(caught.value) == (
        f"The connection to {memory.server.shown} was lost while a change was saved: the change may be saved"
        " or not, so check before you repeat it."
    )
    assert done(memory.get_block("x")).text == "one"


def test_a_block_that_others_hold_for_too_long_is_told(
    memory: PostgresMemory, memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    done(memory.create_block("x", "one"))
    monkeypatch.setattr(postgres_server, "STATEMENT_SECONDS", 1)
    other = PostgresMemory(memory_url, "a")
    with psycopg.connect(memory_url) as holder:
        holder.execute("SELECT * FROM quoth.blocks FOR UPDATE")
        sentence = f"ServerError: The memory at {memory.server.shown} {COULD_NOT_BE_USED}: "
        assert said(other.append_to_block("x", "two")).startswith(sentence)
    assert done(other.append_to_block("x", "two")).text == "one\ntwo"


def test_a_database_that_may_only_be_read_is_told(memory: PostgresMemory) -> None:
    done(memory.create_block("x"))

    def read_only(connection: Any, locking: bool) -> tuple[None, bool]:
        connection.execute("SET default_transaction_read_only = on")
        return None, False

    done(memory.in_thread(read_only))
    sentence = f"ServerError: The memory at {memory.server.shown} {COULD_NOT_BE_USED}: it is read-only."
    assert said(memory.append_to_block("x", "two")) == sentence


def test_the_loop_goes_on_while_the_server_works(memory: PostgresMemory) -> None:
    async def go() -> list[str]:
        order: list[str] = []

        async def slow() -> None:
            await memory.in_thread(lambda connection, _: (connection.execute("SELECT pg_sleep(0.2)"), False))
            order.append("server")

        async def quick() -> None:
            await asyncio.sleep(0)
            order.append("loop")

        await asyncio.gather(slow(), quick())
        return order

    assert done(go()) == ["loop", "server"]


def test_psycopg_is_not_imported_before_a_memory_is_opened() -> None:
    import subprocess

    code = "import sys, quoth.tools.memory.postgres; sys.exit('psycopg' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# Search


class Colours:
    """An embedder that knows three meanings."""

    name, dimensions = "colours-1", 3

    async def embed(self, texts: Sequence[str]) -> list[bytes]:
        from array import array

        known = (("red", "crimson", "scarlet"), ("blue", "azure"), ("green", "emerald"))
        counts = [[float(any(word in text.lower() for word in words)) for words in known] for text in texts]
        return [array("f", numbers if any(numbers) else [0.5] * 3).tobytes() for numbers in counts]


def found(memory: PostgresMemory, query: str, scope: Any = "agent", **options: Any) -> list[str]:
    options = {"domain": "archival_memory", **options}
    return [hit.label for hit in done(memory.search(query, scope, SearchOptions(**options)))]


def remember(memory: PostgresMemory, **texts: str) -> None:
    for label, text in texts.items():
        done(memory.create_block(label, text, kind="archival"))


def test_words_are_found_by_their_stems_and_the_best_come_first(memory: PostgresMemory) -> None:
    remember(memory, one="Discussed the project timeline", two="Projects, projects: a deadline", three="Soup")
    assert found(memory, "project deadlines") == ["two", "one"]
    assert found(memory, "what was it") == []  # nothing but words that say little, which are nowhere here
    assert found(memory, "the") == ["one"]
    (hit,) = done(memory.search("soup", "agent", SearchOptions()))
    assert (hit.text, hit.source, hit.owner, dict(hit.parts)) == (
        "Soup",
        "archival_memory",
        "",
        {"words": 1.0},
    )
    assert hit.score == 1.0
    assert hit.at


def test_scope_domain_time_and_limit_bound_a_search(memory: PostgresMemory, memory_url: str) -> None:
    now = [1_770_000_000.0]  # 2026-02-02
    other = PostgresMemory(memory_url, "b", clock=lambda: now[0])
    remember(other, theirs="soup of the day", secret="soup of the night")
    done(other.share_block("theirs", "a"))
    mine = PostgresMemory(memory_url, "a", clock=lambda: now[0])
    remember(mine, old="soup of old")
    now[0] += 86_400
    remember(mine, new="soup of today")
    done(mine.create_block("core", "soup in view", kind="core"))
    assert sorted(found(mine, "soup")) == ["new", "old"]
    assert found(mine, "soup", "shared") == ["theirs"]
    assert sorted(found(mine, "soup", "all")) == ["new", "old", "theirs"]
    assert sorted(found(mine, "soup", domain="all")) == ["core", "new", "old"]
    assert found(mine, "soup", since="2026-02-03") == ["new"]
    assert found(mine, "soup", until="2026-02-02") == ["old"]
    assert len(found(mine, "soup", "all", limit=2)) == 2
    with pytest.raises(ToolError, match="Conversations cannot be searched here"):
        found(mine, "soup", domain="conversations")


def test_a_long_text_is_found_by_any_part_of_it_and_the_part_is_shown(memory: PostgresMemory) -> None:
    text = "\n".join(f"Line {number} says nothing much." for number in range(400))
    remember(memory, long=text)
    done(memory.append_to_block("long", "The needle is here."))
    (hit,) = done(memory.search("needle", "agent", SearchOptions()))
    assert "needle" in hit.text
    assert len(hit.text) <= 1000
    done(memory.replace_in_block("long", "needle", "thread"))
    assert found(memory, "needle") == []
    assert found(memory, "thread") == ["long"]
    assert found(memory, "line 7") == ["long"]
    done(memory.update_block_text("long", ""))
    assert found(memory, "thread") == []
    assert found(memory, "long") == ["long"]  # by its label


def test_passages_after_many_changes_are_those_of_the_text(memory: PostgresMemory) -> None:
    remember(memory, x="word " * 500)
    for change in (
        lambda: memory.append_to_block("x", "more " * 300),
        lambda: memory.update_block_text("x", "word " * 150 + "other " * 200),
        lambda: memory.append_to_block("x", "end"),
        lambda: memory.undo("x"),
        lambda: memory.update_block_text("x", "short"),
        lambda: memory.append_to_block("x", "longer " * 400),
    ):
        text = done(change()).text
        rows = done(memory._rows("SELECT start, length FROM quoth.passages ORDER BY start"))
        from quoth.tools.memory.passages import split

        assert rows == list(split(text))


def test_meaning_finds_what_has_none_of_the_words(memory: PostgresMemory) -> None:
    remember(memory, one="a crimson dress", two="an azure sky", three="an emerald ring")
    assert found(memory, "something scarlet") == []
    memory.embedder = Colours()
    assert found(memory, "something scarlet") == ["one"]
    (hit,) = done(memory.search("azure things", "agent", SearchOptions()))
    assert dict(hit.parts) == pytest.approx({"words": 1.0, "meaning": 1.0})
    assert found(memory, "azure", semantic=True, limit=1) == ["two"]
    done(memory.update_block_text("two", "a crimson sky"))
    assert sorted(found(memory, "scarlet")) == ["one", "two"]
    done(PostgresMemory(memory.server._url, "a", person=True).forget("one"))
    assert done(memory._rows("SELECT count(*) FROM quoth.vectors")) == [(2,)]


def test_what_is_missing_for_meanings_is_said(
    memory: PostgresMemory, memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(memory, one="a crimson dress")
    assert "pip install 'quoth[vectors]'" in done(memory.missing())
    with pytest.raises(
        ToolError, match="Only words can be searched, because no embedding model is installed"
    ):
        found(memory, "dress", semantic=True)
    memory.embedder = Colours()
    assert done(memory.missing()) == ""


def test_without_the_extension_words_are_searched(
    memory_url: str, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quoth.tools.memory.postgres.EXTENSION", "CREATE EXTENSION no_such_extension")
    memory = PostgresMemory(memory_url, "a", embedder=Colours())
    remember(memory, one="a crimson dress")
    sentence = "Only words can be searched, because the database cannot compare meanings: the server"
    assert done(memory.missing()) == f"{sentence} does not have pgvector."
    assert found(memory, "dress") == ["one"]
    with pytest.raises(ToolError, match=sentence):
        found(memory, "dress", semantic=True)


HOSTILE = st.one_of(st.characters(), st.sampled_from("&|!<->():*'\"\\%{}$;\0\ud800needle "))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(HOSTILE, max_size=60))
def test_a_query_never_is_syntax(memory: PostgresMemory, query: str) -> None:
    if done(memory.get_block("one")) is None:
        remember(memory, one="& | ! ( ) : * ' \" \\ needle")
    try:
        hits = found(memory, query)
    except ToolError as error:
        hits = [str(error)[:19]]
    assert hits in ([], ["one"], [f"{THE_QUERY_IS_EMPTY}."], ["The query contains "])


def test_a_query_of_a_megabyte_is_refused_with_a_sentence(memory: PostgresMemory) -> None:
    with pytest.raises(ToolError, match=f"{THE_MAXIMUM_IS}"):
        found(memory, "x " * 500_000)


def test_blocks_of_both_stores_are_alike(memory: PostgresMemory) -> None:
    made = done(memory.create_block("x", "one", limit=7))
    assert replace(made, created="", updated="") == replace(
        done(memory.get_block("x")), created="", updated=""
    )
