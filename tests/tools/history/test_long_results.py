"""more: what was too long to be shown whole is read to its last character, page by page."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from words import Gateway, PausableClock, complaint, gateway

from quoth.tools.errors import ToolError
from quoth.tools.history.long_results import KEPT_SECONDS, StorePages, id_of, more_form
from quoth.tools.registry.table import cognitive_tools
from quoth.tools.storage.database import Store

import_module("quoth.tools.builtin")
LONG = "".join(f"line {number}: ünïcödé 漢字 🦉\n" for number in range(400))


def pages(store: Store, session: str = "s1", user: str = "ann", chars: int = 500) -> StorePages:
    return StorePages(lambda: store, session, user, chars)


def here(texts: StorePages | None) -> Gateway:
    return gateway(cognitive_tools.get("more"), given={"pages": texts})


def read_back(door: Gateway, call: str) -> tuple[str, int]:
    """All that ``call`` shows, and the pages it took: each page names the call for the next."""
    whole, count = "", 0
    while call:
        result = door.pass_through(call)
        assert result.status == "ok", result.message
        whole, count = whole + result.value, count + 1
        named = re.search(r"; (\(more .*\)) shows the next part\.$", result.message)
        call = named.group(1) if named else ""
        assert named or result.message.endswith(": the end."), result.message
    return whole, count


def test_a_long_text_is_read_back_page_by_page(store: Store) -> None:
    texts = pages(store)
    whole, count = read_back(here(texts), more_form(texts.keep(LONG)))
    assert whole == LONG
    assert count > len(LONG) // 500


def test_a_page_ends_with_its_line_and_says_where_it_stands(store: Store) -> None:
    texts = pages(store, chars=25)
    id = texts.keep("one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
    result = here(texts).pass_through(f'(more "{id}")')
    assert (result.value, result.message) == (
        "one\ntwo\nthree\nfour\nfive\n",
        f'Characters 1 to 24 of 34; (more :id "{id}" :start 25) shows the next part.',
    )
    result = here(texts).pass_through(f'(more :id "{id}" :start 25)')
    assert (result.value, result.message) == ("six\nseven\n", "Characters 25 to 34 of 34: the end.")


@given(text=st.text(min_size=1), chars=st.integers(1, 40))
def test_no_character_is_ever_lost(text: str, chars: int) -> None:
    store = Store(":memory:")
    texts = pages(store, chars=chars)
    part, whole, start = "", "", 1
    id = texts.keep(text)
    while len(whole) < len(text):
        part, _ = texts.page(id, start)
        assert 1 <= len(part) <= chars
        whole, start = whole + part, start + len(part)
    store.close()
    assert whole == text


def test_what_no_file_can_hold_is_kept_as_a_question_mark(store: Store) -> None:
    texts = pages(store)
    assert texts.page(texts.keep("a\ud800\0b"))[0] == "a?\0b"


def test_an_id_is_short_and_made_from_the_text_alone(store: Store, tmp_path: Path) -> None:
    other = Store(tmp_path / "other.sqlite")
    ids = {
        pages(store).keep(LONG),
        pages(store).keep(LONG),
        pages(other, "s2", "bob").keep(LONG),
        id_of(LONG),
    }
    other.close()
    (id,) = ids
    assert re.fullmatch("[a-z2-7]{8}", id)
    assert pages(store).keep(LONG + "x") != id
    assert store.execute("SELECT count(*) FROM texts") == [(2,)]


def test_a_text_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    store = Store(path)
    id = pages(store).keep(LONG)
    store.close()
    again = Store(path)
    assert read_back(here(pages(again)), more_form(id))[0] == LONG
    again.close()


NOT_HERE = 'This session has no stored text "{near}".'
COPY = " A shortened result contains the id of its full text: copy that id."


@pytest.mark.parametrize(
    ("call", "status", "message"),
    [
        ('(more :id "zzz")', "error", NOT_HERE.format(near="zzz") + COPY),
        ('(more :id "{near}")', "error", NOT_HERE + " Did you mean {id}?"),
        ('(more :id "{id}" :start 99999)', "error", 'The text "{id}" has only {size:,} characters.'),
        ('(more :id "{id}" :start 0)', "invalid", None),
        ("(more)", "invalid", None),
    ],
)
def test_what_cannot_be_shown_is_told(store: Store, call: str, status: str, message: str | None) -> None:
    texts = pages(store)
    id = texts.keep(LONG)
    names = {"id": id, "near": id[:-1], "size": len(LONG)}
    result = here(texts).pass_through(call.format(**names))
    assert result.status == status
    assert message is None or result.message == message.format(**names)


@pytest.mark.parametrize(("session", "user"), [("s2", "ann"), ("s1", "bob"), ("", "")])
def test_another_sessions_and_another_users_text_is_refused(store: Store, session: str, user: str) -> None:
    id = pages(store).keep(LONG)
    door = here(pages(store, session, user))
    result = door.pass_through(more_form(id))
    assert (result.status, result.value) == ("error", None)
    assert result.message.startswith(
        f'This session has no stored text "{id}". A shortened result'
    )  # and names no other's
    assert here(pages(store)).pass_through(more_form(id)).status == "ok"


def test_without_texts_it_says_so() -> None:
    result = here(None).pass_through('(more :id "a")')
    assert (result.status, result.message) == ("error", "This session keeps no long results.")


def test_old_texts_are_forgotten_and_those_shown_again_are_not(store: Store) -> None:
    clock = PausableClock()
    first = StorePages(lambda: store, "s1", "ann", 500, clock)
    old, shown_again = first.keep("old"), first.keep("shown again")
    clock.wait(KEPT_SECONDS * 0.6)
    first.keep("shown again")
    clock.wait(KEPT_SECONDS * 0.6)
    later = StorePages(lambda: store, "s1", "ann", 500, clock)
    new = later.keep("new")
    assert complaint(ToolError, lambda: later.page(old)).startswith("This session has no stored text")
    assert [later.page(id)[0] for id in (shown_again, new)] == ["shown again", "new"]


def test_on_a_full_disk_nothing_is_promised(store: Store) -> None:
    store.execute("PRAGMA max_page_count = 1")  # which is as many as there are
    assert pages(store).keep("long " * 100_000) == ""
