"""The transcript: forms kept in order, chained by digests, read back as they were, taken elsewhere."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sentences import (
    CANNOT_BE_READ,
    CANNOT_BE_USED,
    NO_TOOL_HAS_THE_TAG,
    THIS_IS_NOT_A_SESSION,
    WAS_CHANGED_AFTER_IT_WAS,
)
from words import PausableClock, complaint, form

from quoth.tools.call.redaction import SECRET, may_hold_secrets, redact
from quoth.tools.errors import UsageError
from quoth.tools.history.event import (
    KINDS,
    Event,
    TranscriptError,
    _as_read,
    _as_we_write,
    digest_of,
    event_form,
    one_field,
    read_event,
    read_form,
    written_data,
    written_form,
)
from quoth.tools.history.receipts import BEGUN, bound_to
from quoth.tools.history.transcript import FEW, Transcript, without_secrets
from quoth.tools.history.transfer import NEEDED, POSSIBLE, copy_session, read_written, receipts_of, written
from quoth.tools.lisp.forms import CallForm
from quoth.tools.lisp.printer import Code
from quoth.tools.storage.database import Store


@pytest.fixture
def transcript(store: Store) -> Transcript:
    return Transcript(lambda: store, PausableClock())


BEGINNING = {
    "text": "Do it.",
    "user": "ann",
    "turn": "",
    "model": "scripted",
    "dialect": "call-form",
    "in-text": True,
    "search": False,
    "must-act": False,
    "limits": {"steps": 25, "window": 300.0, "context": None},
}


def of_ann(transcript: Transcript, session: str = "s", run: str = "r1") -> None:
    """The beginning of a session."""
    transcript.add(session, "session", {"user": "ann", "tools": []})
    transcript.add(session, "stimulus", BEGINNING, run=run)


def events(transcript: Transcript, session: str = "s") -> list[Event]:
    return list(transcript.events(session))


def reread(lines: list[str], session: str = "s") -> list[Event]:
    """The events that forms spell, one a line."""
    found: list[Event] = []
    for line in lines:
        found.append(read_event(session, line, found[-1].digest if found else ""))
    return found


# What is kept


def test_events_are_kept_in_order_with_their_marks(transcript: Transcript) -> None:
    of_ann(transcript)
    assert transcript.add("s", "interrupt", {}, run="r1", parent=2) == 3
    first, second, third = events(transcript)
    at = "2026-03-10T12:00:00.000+00:00"
    assert first.text == f'(session :seq 1 :at "{at}" :user "ann" :tools [])'
    assert second.data == BEGINNING
    assert (third.text, third.id) == (f'(interrupt :seq 3 :at "{at}" :run "r1" :parent 2)', "s.3")
    assert second.to_json() == {
        "id": "s.2",
        "seq": 2,
        "at": at,
        "kind": "stimulus",
        "run": "r1",
        "parent": 0,
        "key": "",
        **{name.replace("-", "_"): value for name, value in BEGINNING.items()},
        "digest": second.digest,
    }


def test_each_digest_holds_all_that_came_before(transcript: Transcript) -> None:
    of_ann(transcript)
    first, second = events(transcript)
    assert first.digest == digest_of("", first.text)
    assert second.digest == digest_of(first.digest, second.text)
    transcript.verify("s")


def test_sessions_and_runs_are_told_apart(store: Store) -> None:
    clock = PausableClock()
    transcript = Transcript(lambda: store, clock)
    of_ann(transcript, "a")
    of_ann(transcript, "b")
    clock.wait(1)
    transcript.add("a", "stimulus", {"text": "More."}, run="r2")
    assert [(name, count) for name, count, *_ in transcript.sessions()] == [("b", 2), ("a", 3)]
    assert [event.seq for event in transcript.events("a", run="r2")] == [3]
    assert [event.seq for event in transcript.events("a", kind="stimulus", after=2)] == [3]
    last = transcript.last("a", "stimulus")
    assert last is not None
    assert last.data["text"] == "More."
    assert transcript.last("a", "end") is None
    assert transcript.count("a", "stimulus") == 2


def test_more_events_than_a_page_are_all_read(transcript: Transcript) -> None:
    for _ in range(450):
        transcript.add("s", "interrupt", {})
    assert [event.seq for event in transcript.events("s")] == list(range(1, 451))


# What was tampered with is found

TAMPERINGS = [
    (
        "UPDATE events SET form = replace(form, 'Do it', 'Do all') WHERE seq = 2",
        "Event s.2 was changed after",
    ),
    ("UPDATE events SET digest = replace(digest, '0', '1') WHERE seq = 1", "Event s.1 was changed"),
    ("DELETE FROM events WHERE seq = 1", "Event 1 of session s is missing."),
    ("DELETE FROM events WHERE seq = 2", "Event 2 of session s is missing."),
    ("UPDATE events SET seq = 9 WHERE seq = 3", "Event 3 of session s is missing."),
]


@pytest.mark.parametrize(("sql", "sentence"), TAMPERINGS, ids=[sentence for _, sentence in TAMPERINGS])
def test_a_changed_or_missing_event_is_named(
    transcript: Transcript, store: Store, sql: str, sentence: str
) -> None:
    of_ann(transcript)
    transcript.add("s", "end", {"status": "done"}, run="r1", status="done")
    transcript.verify("s")
    store.execute(sql)
    assert complaint(TranscriptError, lambda: transcript.verify("s")).startswith(sentence)


NO_EVENTS = [
    "(session)",
    '(session :seq 1 :at 2 :user "ann")',
    '(session :seq "1" :at "2026")',
    '(boom :seq 1 :at "2026")',
]


@pytest.mark.parametrize("text", NO_EVENTS)
def test_what_is_no_event_is_refused(text: str) -> None:
    said = complaint(TranscriptError, lambda: read_event("s", text, ""))
    assert said == f"This is not an event of a transcript: {text}"


@pytest.mark.parametrize("text", ["", "session", "(session :seq", "(session :seq 1 :seq 2)"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    said = complaint(TranscriptError, lambda: read_event("s", text, ""))
    assert said.startswith(f"An event of the transcript {CANNOT_BE_READ}: ")


# What is hidden


def test_a_secret_stays_in_the_true_form_until_the_run_is_over(transcript: Transcript) -> None:
    transcript.hide("s", ["hunter2"])
    transcript.add("s", "reply", {"text": 'say "hunter2"'}, run="r1")
    (event,) = events(transcript)
    assert event.data["text"] == 'say "hunter2"'
    assert event.said["text"] == f'say "{SECRET}"'
    assert "hunter2" not in json.dumps(event.to_json())
    transcript.forget_secrets("s", run="r1")
    (after,) = events(transcript)
    assert (after.data, after.digest) == (event.said, event.digest)
    transcript.verify("s")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_secret_that_comes_after_a_look_without_one_is_removed(
    store: Store, transcript: Transcript, elsewhere: bool
) -> None:
    transcript.forget_secrets("s", key="c0")  # finds none, and remembers that
    assert not transcript.has_secrets("s")
    with contextlib.closing(Store(store.path)) as other:
        writer = Transcript(lambda: other) if elsewhere else transcript
        writer.hide("s", ["hunter2"])
        writer.add("s", "call", {"form": 'say "hunter2"'}, key="c1")
    transcript.forget_secrets("s", key="c1")
    (event,) = events(transcript)
    assert event.text == event.shown


# Round trips

NAMES = st.from_regex(r"[a-z][a-z-]{0,8}[a-z]", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)
PROGRAMS = st.sampled_from(
    [
        "(+ 1 2)",
        "(do (setv x 1)\n  x) ; and a comment; with (a paren\n(echo x)",
        '(echo "; no comment")\n\n',
        "(f #* xs :k 'a `(b ~c) #{1 2} #(3 4))",
        'f"{x !r :>{w}} é \U0001f600"',
        "not a form (",
        "; only a comment",
    ]
)
FORMS = st.builds(
    CallForm,
    st.sampled_from(["echo", "write-file", "eval"]),
    st.dictionaries(NAMES, VALUES | PROGRAMS.map(Code), max_size=4),
    st.lists(VALUES | PROGRAMS.map(Code), max_size=2).map(tuple),
)


@given(kind=st.sampled_from(KINDS), value=VALUES, call=FORMS, run=st.sampled_from(["", "r1", "r1/2.0/agent"]))
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_an_event_reads_back_as_it_was(kind: Any, value: Any, call: CallForm, run: str) -> None:
    store = Store(":memory:")
    transcript = Transcript(lambda: store)
    transcript.add("s", "session", {"user": "ann"})
    data = {"value": value, "form": written_form(call), "status": "ok"}
    transcript.add("s", kind, data, run=run, parent=1, key="r1/1.0", status="ok")
    kept = events(transcript)
    store.close()
    assert reread([event.shown for event in kept]) == kept
    assert kept[1].data["value"] == value
    assert str(read_form(kept[1].data["form"])) == str(call)
    for name in ("value", "form", "status", "other"):
        assert one_field(kept[1].shown, name) == kept[1].said.get(name)
    if kind not in NEEDED:
        assert read_written("\n".join(written(kept, "s", len(kept), "1"))) == ("s", kept)


@pytest.mark.parametrize(
    "said",
    [
        {"text": ' :usage {"input_tokens" 1}', "usage": {"input_tokens": 2}},
        {"text": 'a \\" :usage ', "usage": {"input_tokens": 2}},
        {"text": ":usage", "calls": [{"usage": {"input_tokens": 1}}], "usage": {"input_tokens": 2}},
        {"kept": {"a": {"usage": 1}}, "form": Code("(f :usage 1)"), "usage": {"input_tokens": 2}},
        {"usage-of": {"input_tokens": 1}, "usage": {"input_tokens": 2}},
        {"usage": {"input_tokens": 2}, "text": ":usage"},
    ],
)
def test_a_field_is_found_whatever_stands_around_it(transcript: Transcript, said: dict[str, Any]) -> None:
    transcript.add("s", "reply", said)
    (event,) = events(transcript)
    assert one_field(event.shown, "usage") == {"input_tokens": 2}
    assert one_field(event.shown, "nothing") is None
    with pytest.raises(TranscriptError):
        one_field(event.shown[:-3], "nothing")


def test_half_a_character_is_kept_as_its_escape(transcript: Transcript) -> None:
    transcript.add("s", "reply", {"text": "a\ud83d", "other": r"\ud83d \\" + "\udfff\n"})
    (event,) = events(transcript)
    assert event.data == {"text": r"a\ud83d", "other": r"\ud83d \\" + "\\udfff\n"}
    assert reread([event.shown]) == [event]


@pytest.mark.parametrize(
    "code",
    ["(do (setv x 1)\n  x) ; a comment", "(a) (b)", '"text"', "x", "(f :k [1 {2 3}])", "#| no |# (", ""],
)
def test_the_text_of_a_program_stays_as_it_was_written(code: str) -> None:
    call = CallForm("eval", {"form": Code(code), "dry-run": True})
    store = Store(":memory:")
    transcript = Transcript(lambda: store)
    transcript.add("s", "call", {"form": written_form(call)})
    found = read_form(events(transcript)[0].data["form"])
    assert (found, type(found.args["form"]), found.digest) == (call, Code, call.digest)
    store.close()


# Taken elsewhere


def test_a_copy_has_the_same_digests_and_an_id_is_given_once(transcript: Transcript, store: Store) -> None:
    of_ann(transcript)
    assert transcript.copy(transcript.events("s"), "t") == 2
    assert [(e.text, e.digest) for e in events(transcript, "t")] == [
        (e.text, e.digest) for e in events(transcript)
    ]
    again = complaint(UsageError, lambda: transcript.copy(transcript.events("s"), "t"))
    assert again == "There is a session t already."
    store.execute("UPDATE events SET form = replace(form, 'ann', 'bob') WHERE session = 's'")
    assert complaint(TranscriptError, lambda: transcript.copy(transcript.events("s"), "u")) == (
        f"Event s.1 {WAS_CHANGED_AFTER_IT_WAS}."
    )
    assert events(transcript, "u") == []


NO_HEADER = f"{THIS_IS_NOT_A_SESSION}: a file of quoth export begins with (quoth-session …)."
DAMAGES: list[tuple[str, Callable[[list[str]], list[str]], str]] = [
    ("empty", lambda text: [], NO_HEADER),
    (
        "no header",
        lambda text: text[1:],
        f"{THIS_IS_NOT_A_SESSION}: a file of quoth export begins with (quoth-session …).",
    ),
    (
        "no lisp",
        lambda text: ["{}", *text],
        "This is not an exported session: a file of quoth export begins with (quoth-session …).",
    ),
    (
        "newer",
        lambda text: [text[0].replace(":format 1", ":format 2"), *text[1:]],
        "This session was written by a newer quoth, 0.9.",
    ),
    ("cut short", lambda text: text[:-1], "2 of the 3 events of session s are here."),
    (
        "changed",
        lambda text: [line.replace("Do it.", "Do all.") for line in text],
        f"Event s.2 {WAS_CHANGED_AFTER_IT_WAS}, or is missing.",
    ),
    (
        "missing",
        lambda text: [*text[:1], *text[2:]],
        f"Event s.1 {WAS_CHANGED_AFTER_IT_WAS}, or is missing.",
    ),
    (
        "moved",
        lambda text: [text[0], text[1], text[3], text[2]],
        f"Event s.2 {WAS_CHANGED_AFTER_IT_WAS}, or is missing.",
    ),
    (
        "no digest",
        lambda text: [*text[:3], text[3].partition(" ; ")[0]],
        f"Event s.3 {WAS_CHANGED_AFTER_IT_WAS}, or is missing.",
    ),
]


@pytest.mark.parametrize(("damage", "sentence"), [d[1:] for d in DAMAGES], ids=[d[0] for d in DAMAGES])
def test_a_damaged_text_is_refused_with_the_event(
    transcript: Transcript, damage: Callable[[list[str]], list[str]], sentence: str
) -> None:
    of_ann(transcript)
    transcript.add("s", "interrupt", {}, run="r1")
    text = list(written(transcript.events("s"), "s", 3, "0.9"))
    assert read_written("\n".join(text)) == ("s", events(transcript))
    assert read_written("; kept by ann\r\n\r\n" + "\r\n".join(text)) == ("s", events(transcript))
    assert complaint(TranscriptError, lambda: read_written("\n".join(damage(text)))) == sentence


# What an event says that was written by hand, and what is wrong with it.
SAYING = {
    "session": {"user": "ann"},
    "stimulus": BEGINNING,
    "memory": {"step": 1, "blocks": [{"label": "place", "text": "Lisbon", "permission": "human"}]},
    "tools": {"step": 2, "text": "TOOLS: probe is gone."},
    "request": {"talk": 1, "from": 0, "messages": [{"role": "user", "content": "Do it."}]},
    "reply": {"text": "Done."},
    "tags": {"lines": [[1, "RESEARCH: a", 0], [2, "FOO: b", f"{NO_TOOL_HAS_THE_TAG} FOO"]]},
    "call": {"id": "c", "form": Code("(look)"), "user": "ann"},
    "receipt": {"id": "c", "status": "ok"},
    "sent": {"text": "Hello.", "to": "user"},
    "spent": {"usage": {"calls": 1}, "steps": 1, "calls": 1},
    "approval": {"said": "yes"},
    "undo": {"text": "Put back a.txt", "files": ["a.txt"]},
    "end": {"status": "done", "text": "Done."},
}


def by_hand(kind: Any, data: dict[str, Any], run: str = "r1") -> str:
    """The text of a session whose last event says this: the complaint about it, or nothing."""
    store = Store(":memory:")
    transcript = Transcript(lambda: store)
    transcript.add("s", "session", {"user": "ann"})
    if kind != "stimulus":
        transcript.add("s", "stimulus", BEGINNING, run="r1")
    if kind == "reply":
        transcript.add("s", "request", SAYING["request"], run="r1")
    last = transcript.add("s", kind, data, run=run, parent=3 if kind == "reply" else 0)
    text = "\n".join(written(transcript.events("s"), "s", last, "1"))
    store.close()
    try:
        read_written(text)
    except TranscriptError as error:
        return str(error).removeprefix(f"Event s.{last} {CANNOT_BE_USED}: ")
    return ""


@pytest.mark.parametrize("kind", NEEDED)
def test_an_event_that_lacks_what_it_must_say_or_says_nonsense_is_refused(kind: Any) -> None:
    whole: dict[str, Any] = SAYING[kind]
    assert by_hand(kind, whole) == ""
    for name in NEEDED[kind]:
        without = {key: value for key, value in whole.items() if key != name}
        assert by_hand(kind, without) == f"it has no :{name}."
        assert by_hand(kind, {**whole, name: None}) == f"its :{name} is None."
    for name in POSSIBLE.get(kind, {}):
        assert by_hand(kind, {**whole, name: None}) == ""
        assert by_hand(kind, {**whole, name: [7]}) == f"its :{name} is [7]."


@pytest.mark.parametrize(
    ("kind", "run", "more", "sentence"),
    [
        ("session", "", {"limits": {"steps": "many"}}, 'its :limits is {"steps" "many"}.'),
        ("session", "", {"limits": {"steps": True}}, 'its :limits is {"steps" True}.'),
        ("session", "", {"versions": {"look": 1}}, 'its :versions is {"look" 1}.'),
        ("session", "", {"model": 7}, "its :model is 7."),
        ("session", "", {"from": {"session": "a"}}, 'its :from is {"session" "a"}.'),
        ("stimulus", "", {}, "it begins no new run."),
        ("stimulus", "r1", {"after": "r1"}, "there is no run r1 before it."),
        ("stimulus", "r1", {"turn": None}, "its :turn is None."),
        ("stimulus", "r1/1.0/agent", {"turn": None}, ""),
        ("memory", "r1", {"blocks": [{"label": "place"}]}, 'its :blocks is [{"label" "place"}].'),
        ("request", "r1", {"messages": [{"role": "user"}]}, 'its :messages is [{"role" "user"}].'),
        ("call", "r2", {}, "its run r2 has no beginning."),
        ("call", "", {"user": 1}, "its :user is 1."),
        ("call", "r1", {"form": {"tool": "look"}}, 'its :form is {"tool" "look"}.'),
        ("call", "r1", {"form": SECRET}, ""),
        ("receipt", "", {"id": None}, "its :id is None."),
    ],
)
def test_what_an_event_says_is_of_its_kind(kind: Any, run: str, more: dict[str, Any], sentence: str) -> None:
    assert by_hand(kind, {**SAYING[kind], **more}, run) == sentence


def test_a_run_begins_once(transcript: Transcript) -> None:
    of_ann(transcript)
    transcript.add("s", "stimulus", {**BEGINNING, "after": "r1"}, run="r2")
    text = lambda: "\n".join(written(events(transcript), "s", len(events(transcript)), "1"))  # noqa: E731
    assert len(read_written(text())[1]) == 3
    transcript.add("s", "stimulus", {**BEGINNING, "after": "r2"}, run="r1")
    said = complaint(TranscriptError, lambda: read_written(text()))
    assert said == f"Event s.4 {CANNOT_BE_USED}: it begins no new run."


BAD_NAMES = ["two words", "L\n(write-file)\n;", "a\tb", "a\x1b[2J", "a\u2028b", "\x85"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_is_no_word_is_refused(transcript: Transcript, name: str) -> None:
    of_ann(transcript)
    whole = list(transcript.events("s"))
    said = complaint(TranscriptError, lambda: read_written("\n".join(written(whole, name, 2, "1"))))
    assert said == f"{THIS_IS_NOT_A_SESSION}: its id is not one word without control characters."
    for marks in ({"run": name}, {"key": name}):
        store = Store(":memory:")
        other = Transcript(lambda store=store: store)
        of_ann(other)
        other.add("s", "interrupt", {}, **marks)
        text = "\n".join(written(other.events("s"), "s", 3, "1"))
        store.close()
        said = complaint(TranscriptError, lambda text=text: read_written(text))
        assert (
            said
            == "Event s.3 cannot be used: its :run, :key or :at is not one word without control characters."
        )


def test_a_reply_that_answers_nothing_is_no_part_of_a_session(transcript: Transcript) -> None:
    of_ann(transcript)
    transcript.add("s", "reply", {"text": "hi"}, run="r1", parent=1)
    text = "\n".join(written(transcript.events("s"), "s", 3, "1"))
    assert complaint(TranscriptError, lambda: read_written(text)).startswith("Event s.3 ")


def called(transcript: Transcript, key: str, text: str, status: str = "", **more: Any) -> None:
    """A call of ann's run, and its receipt if it has one."""
    does = {"does": more.pop("does")} if "does" in more else {}
    told = {"id": "c", "form": Code(text), **does}
    seq = transcript.add("s", "call", told, run="r1", key=key)
    if status:
        data = {"id": "c", "status": status, **more}
        transcript.add("s", "receipt", data, run="r1", parent=seq, key=key, status=status)


def rows(transcript: Transcript) -> list[tuple[str, str]]:
    return [(row[0], row[4]) for row in receipts_of(events(transcript))]


def test_the_calls_inside_of_an_unfinished_one_get_their_receipts(transcript: Transcript) -> None:
    of_ann(transcript)
    called(transcript, "r1/1.0", "(eval x)", "ok", value=1)
    called(transcript, "r1/1.0/a", "(put 1)", "ok", value=1, effects=["put:1"])
    called(transcript, "r1/2.0", "(eval x)")
    called(transcript, "r1/2.0/a", "(put 2)", "ok", value=[2], message="done", effects=["put:2"])
    called(transcript, "r1/2.0/b", "(put 3)", "denied", stage="policy")
    called(transcript, "r1/2.0/c", "(put 4)", "denied", stage="consent", message="no")
    called(transcript, "r1/2.0/d", "(put 5)", "pending", stage="consent")
    called(transcript, "r1/2.0/e", "(put 6)", does=["writes"])
    called(transcript, "r1/2.0/f", "(look)")
    called(transcript, "r1/2.0/g", "(put 7)", "cancelled", does=["writes"])
    called(transcript, "r1/2.0/h", "(put 8)", "cancelled", does=["writes"], stage="host")
    found = list(receipts_of(events(transcript)))
    assert [(row[0], row[4]) for row in found] == [
        ("r1/2.0/a", "ok"),
        ("r1/2.0/c", "denied"),
        ("r1/2.0/e", BEGUN),
        ("r1/2.0/g", BEGUN),
    ]
    assert found[0][1] == bound_to(form("(put 2)"), "ann")
    assert (json.loads(found[0][6]), found[0][5]) == ({"value": [2], "message": "done"}, True)


def test_a_call_that_began_again_has_no_receipt_any_more(transcript: Transcript) -> None:
    of_ann(transcript)
    called(transcript, "r1/1.0", "(put 1)", "pending", does=["writes"], stage="consent")
    assert rows(transcript) == []
    called(transcript, "r1/1.0", "(put 1)", does=["writes"])
    assert rows(transcript) == [("r1/1.0", BEGUN)]
    assert transcript.count("s", "call") == 1
    called(transcript, "r1/1.0", "(put 1)", "ok", does=["writes"])
    assert rows(transcript) == []  # of a run's own call its transcript tells


def test_receipts_are_those_of_the_new_session(transcript: Transcript, store: Store) -> None:
    of_ann(transcript)
    called(transcript, "r1/1.0", "(eval x)")
    called(transcript, "r1/1.0/a", "(put 1)", "ok", value=1)
    copy_session(store, events(transcript), "t")
    found = store.execute("SELECT key, session, status, repeats FROM receipts")
    assert found == [("t/r1/1.0/a", "t", "ok", 0)]
    transcript.remove("t")
    assert store.execute("SELECT key FROM receipts") == []
    assert [name for name, *_ in transcript.sessions()] == ["s"]


SAID_SECRETLY = [
    "sk-proj-abcDEF123456",
    "OPENAI_API_KEY=abc",
    "Password: 'hunter2'",
    "postgres://ann:pa55@db.example/x",
    "ghp_0123456789abcdefABCDEF",
    "AKIAIOSFODNN7EXAMPLE",
    "Bearer abc.def-123",
    "-----BEGIN A PRIVATE KEY-----\nx",
    'a "quoted"\ttext\\ \x00\ud800é',
    "hunter2",
]
NAMED_SECRETLY = ["text", "Password", "api-key", "access_token", "db.secret", "clientSecret", "base"]
SAID = st.recursive(
    st.sampled_from(SAID_SECRETLY) | st.text(max_size=6) | st.integers() | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMED_SECRETLY), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from(NAMED_SECRETLY), SAID, max_size=3))
def test_what_is_hidden_in_an_event_can_be_seen_in_its_text(data: dict[str, Any]) -> None:
    if without_secrets(data, redact) is not data:
        assert may_hold_secrets(written_data(data))


def test_most_events_hold_nothing_to_hide() -> None:
    assert not may_hold_secrets(written_data({"id": "c1", "form": '(echo :text "hello")', "route": "loop"}))


@pytest.mark.parametrize("at", [("base-url",), ("to", "base-url")])
def test_the_address_of_a_server_is_shown_without_its_query(
    transcript: Transcript, at: tuple[str, ...]
) -> None:
    said: Any = "h.example/v1?sig=abc"
    for name in reversed(at):
        said = {name: said}
    written = transcript.append("s", "tools", said)
    assert "abc" in written.text
    assert "abc" not in written.shown


SHORT = st.sampled_from(["", "r1", "r2", "ok", "error", ':status "ok"', 'a"b'])
CHANGED = st.sampled_from(["", "seq", "at", "run", "parent", "key", "kind", "status", "shown"])


@given(
    st.sampled_from(KINDS),
    st.integers(1, 3),
    SHORT,
    SHORT,
    st.integers(0, 2),
    st.dictionaries(st.sampled_from(["status", "text", "seq", "run"]), SHORT, max_size=3),
    CHANGED,
    SHORT,
)
def test_the_quick_look_at_an_event_finds_what_reading_it_finds(
    kind: Any, seq: int, run: str, key: str, parent: int, data: dict[str, str], changed: str, to: str
) -> None:
    shown = event_form(kind, seq, "2026-01-31", run, parent, key, data)
    said: dict[str, Any] = {"status": data.get("status", "")}
    if changed == "shown":
        shown = shown.replace("ok", "error", 1)
    elif changed in ("seq", "parent"):
        said[changed] = 7
    elif changed == "kind":
        said[changed] = next(other for other in KINDS if other != kind)
    elif changed:
        said[changed] = to
    event = Event(
        "s", **{"seq": seq, "at": "2026-01-31", "run": run, "kind": kind, "parent": parent, "key": key}
        | {"text": shown, "shown": shown, "digest": ""} | said
    )  # fmt: skip
    if _as_we_write(event):
        assert _as_read(event)


def test_the_quick_look_knows_most_events_as_we_write_them(transcript: Transcript) -> None:
    event = transcript.append("s", "stimulus", {"text": "Look.", "status": "ok"}, run="r1", status="ok")
    assert _as_we_write(event)


def test_events_are_read_backwards_by_kind(transcript: Transcript) -> None:
    for number in range(2 * FEW + 1):
        transcript.append("s", "call", {"id": f"{number}", "form": "(a)", "user": ""}, run="")
        transcript.append("s", "memory", {"number": number})
    found = [event.data["number"] for event in transcript.backwards("s", "memory")]
    assert found == [*reversed(range(2 * FEW + 1))]
    assert [*transcript.backwards("t", "memory")] == []


def test_what_was_imported_is_counted(transcript: Transcript) -> None:
    assert transcript.imported("s") == 0
    transcript.mark_imported("s", 3)
    transcript.mark_imported("s", 4)
    assert (transcript.imported("s"), transcript.imported("t")) == (4, 0)


def test_a_run_is_found_by_its_key(transcript: Transcript) -> None:
    assert (transcript.runs("s"), transcript.run_of("s", "k")) == (0, "")
    for run in ("r1", "r1/sub", "r2"):
        transcript.append("s", "stimulus", {"turn": "t"}, run=run, key=f"k-{run}")
    assert transcript.runs("s") == 2
    assert [transcript.run_of("s", f"k-{run}") for run in ("r1", "r2", "r3")] == ["r1", "r2", ""]


def test_an_event_knows_whether_it_says_the_same(transcript: Transcript) -> None:
    data = {"text": "a", "n": 1}
    event = transcript.append("s", "memory", data)
    assert event.says(data)
    assert [event.says(other) for other in ({"text": "a"}, {**data, "n": 2}, {})] == [False] * 3
