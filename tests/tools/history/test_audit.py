"""The audit trail: who said what of each call, and a chain in which nothing is changed unnoticed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sentences import COULD_NOT_BE_WRITTEN, ITS_GUARD_REFUSED_THESE_ARGUMENTS, WAS_CHANGED_AFTER_IT_WAS
from words import Spy, files, gateway, script, tool

from quoth.tools.call.call import ALLOW, Verdict, ask, deny
from quoth.tools.errors import InvalidCallError, StoreError
from quoth.tools.history.audit import ALL, COLUMNS, StoreAudit, Verification, _hash
from quoth.tools.storage.database import Store


def row(number: int, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = dict.fromkeys(COLUMNS, "x")
    made |= {"id": f"c{number}", "depth": 0, "round": 0, "place": number, "duration_ms": 3, "parent": None}
    made |= {"confidence": 0.5}
    made |= {"ts": f"2026-03-10T12:00:{number:02}.000+00:00", "side_effects": ("wrote:a",)}
    return made | more


@pytest.fixture
def trail(store: Store) -> StoreAudit:
    """A trail of six rows."""
    audit = StoreAudit(lambda: store)
    for number in range(1, 7):
        audit.write(row(number))
    return audit


def faults(trail: StoreAudit) -> list[str]:
    return [str(fault) for fault in trail.verify().faults]


# What a row says


class Says:
    """A policy, gate or person with one answer."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def _say(self) -> Any:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def judge(self, *_: Any) -> Any:
        return self._say()

    async def check(self, *_: Any) -> Any:
        return self._say()

    async def request(self, *_: Any) -> Any:
        return self._say()


def test_a_row_says_what_policy_guard_gate_and_person_said() -> None:
    here = gateway(
        tool(guard=Spy(ask("large")), gate=True, params={"x": {"type": int}}, body=lambda x: x),
        policy=Says(Verdict("ask", "it may", rule="(ask (probe))")),
        gate=Says(ALLOW),
        consent=Says(ALLOW),
    )
    assert here.pass_through("(probe 1)").ok
    (found,) = here.rows
    said = {name: found[name] for name in ("policy", "rule", "guard", "gate", "consent", "message", "form")}
    assert said == {
        "policy": "ask: it may",
        "rule": "(ask (probe))",
        "guard": "ask: large",
        "gate": "allow",
        "consent": "allow",
        "message": "",
        "form": "(probe :x 1)",
    }
    assert found["schema_hash"] == here.door.table.schema_hash


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"policy": Says(deny("no"))}, {"policy": "deny: no"}),
        ({"policy": Says(deny())}, {"policy": "deny"}),
        ({"policy": Says(OSError("x"))}, {"policy": "deny: the policy failed (OSError: x)"}),
        ({"guard": Spy(False)}, {"policy": "allow", "guard": f"deny: {ITS_GUARD_REFUSED_THESE_ARGUMENTS}"}),
        ({"guard": Spy(True)}, {"policy": "allow", "guard": "allow"}),
        ({"gate": Says(deny("no"))}, {"policy": "allow", "gate": "deny: no"}),
        (
            {"gate": Says(OSError("x")), "gate_failure": "open"},
            {"policy": "allow", "gate": "failed open: OSError: x"},
        ),
        ({"policy": Says(ask("?")), "consent": Says(None)}, {"policy": "ask: ?", "consent": "pending"}),
        (
            {"policy": Says(ask("?")), "consent": Says(deny("no"))},
            {"policy": "ask: ?", "consent": "deny: no"},
        ),
    ],
)
def test_a_row_says_who_stopped_the_call(options: dict[str, Any], said: dict[str, str]) -> None:
    parts = {key: options[key] for key in ("policy", "gate", "consent") if key in options}
    rest = {key: options[key] for key in options if key not in parts}
    here = gateway(tool(gate="gate" in parts, **rest), **parts)
    result = here.pass_through("(probe)")
    (found,) = here.rows
    asked = {name: found[name] for name in ("policy", "guard", "gate", "consent") if found[name]}
    assert asked == said
    assert found["message"] in (result.message, result.message.replace("(OSError)", "(OSError: x)"))


def test_a_call_that_is_no_call_of_a_tool_has_its_row_with_all_it_said() -> None:
    here = gateway(tool())
    here.pass_through('(nobody :x "y" 1)')
    here.pass_through("(probe 1)")
    assert [(found["status"], found["form"]) for found in here.rows] == [
        ("unknown", '(nobody 1 :x "y")'),
        ("invalid", "(probe 1)"),
    ]


def test_a_table_whose_hash_cannot_be_made_still_has_an_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    here = gateway(tool(), tool("broken"))

    def broken(lines: Any) -> Any:
        raise InvalidCallError("This type has no schema.")

    monkeypatch.setattr("quoth.tools.registry.table.lines_hash", broken)
    assert here.pass_through("(probe)").ok
    assert here.rows[0]["schema_hash"] == ""


# The chain


def test_a_trail_that_nobody_touched_is_whole(trail: StoreAudit, store: Store) -> None:
    found = trail.verify()
    assert found == Verification(6, list(trail.select())[-1]["hash"])
    assert found.ok
    links = [(found["prev"], found["hash"]) for found in trail.select()]
    assert links[0][0] == ""
    assert [prev for prev, _ in links[1:]] == [own for _, own in links[:-1]]
    assert len({own for _, own in links}) == 6


def test_an_empty_trail_is_whole(store: Store) -> None:
    assert StoreAudit(lambda: store).verify() == Verification(0, "")


CHANGED = f"Row 3 (call c3) {WAS_CHANGED_AFTER_IT_WAS}."
NUMBERS = ("depth", "round", "place", "duration_ms", "confidence")


def changes() -> Iterator[tuple[str, str, list[str]]]:
    """One change for every column."""
    for column in COLUMNS:
        value = "9" if column in NUMBERS else "forged"
        found = CHANGED.replace("c3", "forged") if column == "id" else CHANGED
        yield f"{column} changed", f"UPDATE audit SET {column} = '{value}' WHERE seq = 3", [found]


TAMPERED: list[tuple[str, str, list[str]]] = [
    *changes(),
    (
        "changed, with a hash of its own",
        "UPDATE audit SET status = 'ok', hash = 'FORGED' WHERE seq = 3",
        [CHANGED, "Row 4 (call c4) does not continue row 3."],
    ),
    ("a row removed", "DELETE FROM audit WHERE seq = 3", ["Row 3 is missing."]),
    ("rows removed", "DELETE FROM audit WHERE seq IN (3, 4)", ["Rows 3 to 4 are missing."]),
    ("the first removed", "DELETE FROM audit WHERE seq = 1", ["Row 1 is missing."]),
    ("the last removed", "DELETE FROM audit WHERE seq = 6", ["Row 6 is missing at the end."]),
    ("the end removed", "DELETE FROM audit WHERE seq > 3", ["Rows 4 to 6 are missing at the end."]),
    ("all removed", "DELETE FROM audit", ["Rows 1 to 6 are missing at the end."]),
    (
        "removed and closed up",
        "DELETE FROM audit WHERE seq = 3; UPDATE audit SET seq = seq - 1 WHERE seq > 3",
        [
            *(f"Row {n} (call c{n + 1}) {WAS_CHANGED_AFTER_IT_WAS}." for n in (3, 4, 5)),
            "Row 6 is missing at the end.",
        ],
    ),
    (
        "two rows in each other's place",
        "UPDATE audit SET seq = 99 WHERE seq = 3; UPDATE audit SET seq = 3 WHERE seq = 4;"
        "UPDATE audit SET seq = 4 WHERE seq = 99",
        [
            f"Row 3 (call c4) {WAS_CHANGED_AFTER_IT_WAS}.",
            f"Row 4 (call c3) {WAS_CHANGED_AFTER_IT_WAS}.",
            "Row 5 (call c5) does not continue row 4.",
        ],
    ),
    (
        "a row put in",
        "INSERT INTO audit (id, ts, session, user, route, depth, round, place, tool, digest, status, stage,"
        " duration_ms, side_effects) VALUES ('f', '', '', '', '', 0, 0, 0, '', '', '', '', 0, '[]')",
        ["Row 7 (call f) was not written by the audit."],
    ),
    (
        "the hash taken out",
        "UPDATE audit SET hash = '' WHERE seq = 6",
        [
            "Row 6 (call c6) was not written by the audit.",
            "The head of the trail is not that of row 6.",
        ],
    ),
    (
        "the head set back",
        "UPDATE audit_head SET seq = 5",
        ["Row 6 (call c6) was inserted after the audit's last row."],
    ),
    (
        "another head",
        "UPDATE audit_head SET hash = 'x'",
        ["The head of the trail is not that of row 6."],
    ),
    ("no head", "DELETE FROM audit_head", ["The head of the trail is missing."]),
]


@pytest.mark.parametrize(
    ("sql", "found"), [case[1:] for case in TAMPERED], ids=[case[0] for case in TAMPERED]
)
def test_what_was_done_to_the_trail_is_found_and_named(
    trail: StoreAudit, store: Store, sql: str, found: list[str]
) -> None:
    store.execute(sql)
    assert faults(trail) == found
    assert not trail.verify().ok


def forged(store: Store, **more: Any) -> dict[str, Any]:
    """A row with a hash that fits, made by somebody who knows how."""
    ((seq, prev),) = store.execute("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1")
    made = row(7) | {"side_effects": "[]", "seq": seq + 1, "prev": prev} | more
    made["hash"] = _hash(made)
    marks = ", ".join("?" * len(ALL))
    store.execute(f"INSERT INTO audit ({', '.join(ALL)}) VALUES ({marks})", [made[name] for name in ALL])
    return made


def test_a_forged_row_whose_hash_fits_is_found_by_the_head(trail: StoreAudit, store: Store) -> None:
    forged(store)
    assert faults(trail) == ["Row 7 (call c7) was inserted after the audit's last row."]
    trail.write(row(8))
    assert faults(trail) == ["Row 8 (call c8) does not continue row 7."]


def test_a_forged_row_before_the_first_is_found(trail: StoreAudit, store: Store) -> None:
    forged(store, seq=0, prev="")
    assert faults(trail) == ["Row 1 (call c1) does not continue row 0."]


def test_a_trail_goes_on_after_it_was_cut_and_the_cut_stays_found(trail: StoreAudit, store: Store) -> None:
    store.execute("DELETE FROM audit WHERE seq > 4")
    trail.write(row(7))
    assert faults(trail) == ["Rows 5 to 6 are missing."]


def test_a_row_that_was_put_in_does_not_stop_the_audit(trail: StoreAudit, store: Store) -> None:
    store.execute("UPDATE audit SET seq = 7 WHERE seq = 6")
    trail.write(row(8))
    assert faults(trail) == ["Row 6 is missing.", f"Row 7 (call c6) {WAS_CHANGED_AFTER_IT_WAS}."]


def test_without_a_head_nothing_more_is_acknowledged(store: Store) -> None:
    store.execute("DELETE FROM audit_head")
    result = gateway(tool(), audit=StoreAudit(lambda: store)).pass_through("(probe)")
    assert (result.status, result.message) == (
        "error",
        f"The audit row {COULD_NOT_BE_WRITTEN}: RuntimeError: the head of the audit trail is missing.",
    )


def test_what_the_chain_cannot_find_a_noted_head_does(trail: StoreAudit, store: Store) -> None:
    noted = trail.verify().head
    trail.write(row(7))
    assert trail.verify(head=noted[:12]).ok
    store.execute("DELETE FROM audit; UPDATE audit_head SET seq = 0, hash = ''")
    trail.write(row(1))
    assert trail.verify().ok  # a new trail that fits
    assert [str(fault) for fault in trail.verify(head=noted).faults] == [
        f"No row has the hash {noted}, which was noted from this trail."
    ]


def test_two_rows_with_one_id_leave_the_chain_as_it_was(trail: StoreAudit) -> None:
    with pytest.raises(StoreError):
        trail.write(row(6))
    assert trail.verify().rows == 6
    trail.write(row(7))
    assert trail.verify().ok


def test_a_column_of_tomorrow_leaves_the_hashes_of_today(trail: StoreAudit, store: Store) -> None:
    (first, *_) = store.execute(f"SELECT {', '.join(ALL)} FROM audit ORDER BY seq")
    old = dict(zip(ALL, first, strict=True))
    assert _hash(old | {"tomorrow": ""}) == old["hash"] == _hash(old | {"tomorrow": None})
    assert _hash(old | {"tomorrow": 0}) != old["hash"]


WRITER = """
import sys
from quoth.tools.history.audit import COLUMNS, StoreAudit
from quoth.tools.storage.database import Store

store = Store(sys.argv[1])
audit = StoreAudit(lambda: store)
print("ready", flush=True)
sys.stdin.readline()
for number in range(50):
    row = dict.fromkeys(COLUMNS, "x") | {"id": f"{sys.argv[2]}-{number}", "parent": None, "side_effects": ()}
    audit.write(row | {"depth": 0, "round": 0, "place": number, "duration_ms": 0, "confidence": 0.5})
"""


def test_two_processes_write_one_chain(tmp_path: Path) -> None:
    files(tmp_path, {"writer.py": WRITER})
    path = tmp_path / "s.sqlite"
    both = [
        subprocess.Popen(
            [sys.executable, str(tmp_path / "writer.py"), str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for process in both:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=120)
        assert process.returncode == 0
    store = Store(path)
    audit = StoreAudit(lambda: store)
    assert audit.verify().rows == 100
    assert faults(audit) == []
    store.close()


DIES = """
import os, signal, sys
from quoth.tools.history import audit as rooms
from quoth.tools.storage.database import Store

store = Store(sys.argv[1])


made = rooms._hash


def dying(row):
    if row["id"] == "dies" and sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    return made(row)


rooms._hash = dying
trail = rooms.StoreAudit(lambda: store)
for name in ("a", "dies"):
    row = dict.fromkeys(rooms.COLUMNS, "x") | {"id": name, "parent": None, "side_effects": ()}
    trail.write(row | {"depth": 0, "round": 0, "place": 0, "duration_ms": 0, "confidence": 0.5})
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("when", "rows"), [("before", 1), ("after", 2)])
def test_a_writer_that_is_killed_leaves_a_whole_chain(tmp_path: Path, when: str, rows: int) -> None:
    path = tmp_path / "s.sqlite"
    assert script(DIES, path, when, cwd=tmp_path).code == -9
    store = Store(path)
    audit = StoreAudit(lambda: store)
    audit.write(row(1))
    assert (audit.verify().rows, faults(audit)) == (rows + 1, [])
    store.close()


# Reading


def test_rows_are_filtered_and_the_last_of_them_come_in_their_order(trail: StoreAudit) -> None:
    trail.write(row(7, tool="other", status="denied", user="ann", session="s2"))
    trail.write(row(8, tool="other"))

    def places(last: int | None = None, **filters: str) -> list[int]:
        return [found["place"] for found in trail.select(last=last, **filters)]

    assert places() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert places(last=3) == [6, 7, 8]
    assert places(last=99) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert places(tool="other") == [7, 8]
    assert places(tool="other", last=1) == [8]
    assert places(tool="x", last=2) == [5, 6]
    assert places(status="denied") == places(user="ann") == places(session="s2") == [7]
    assert places(since="2026-03-10T12:00:06.000+00:00") == [6, 7, 8]
    assert places(since="2026-03-10T12:00:06.000+00:00", last=2) == [7, 8]
    assert places(since="2026-03-11T00:00:00.000+00:00") == []
    trail.write(row(9, ts="2026-03-12T08:00:00.000+00:00"))
    trail.write(row(10, ts="2026-03-10T23:00:00.000+00:00"))  # of a call that took long
    assert places(since="2026-03-11T00:00:00.000+00:00") == [9]
    assert places(since="2026-03-10T12:00:08.000+00:00") == [8, 9, 10]
    assert places(user="nobody") == places(user="nobody", last=1) == []


def test_a_long_trail_is_read_page_by_page(
    trail: StoreAudit, monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr("quoth.tools.history.audit.PAGE", 2)
    assert [found["place"] for found in trail.select()] == [1, 2, 3, 4, 5, 6]
    assert trail.verify().rows == 6
    rows = trail.select()
    next(rows)
    trail.write(row(7))  # while it is read
    assert len(list(rows)) == 6


def test_rows_that_come_while_it_is_verified_are_no_fault(
    trail: StoreAudit, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = trail._pages

    def busy(*args: Any, **options: Any) -> Iterator[dict[str, Any]]:
        trail.write(row(7))
        yield from pages(*args, **options)

    monkeypatch.setattr(trail, "_pages", busy)
    assert (trail.verify().rows, trail._pages is busy) == (6, True)


def test_side_effects_somebody_broke_are_shown_as_they_are(trail: StoreAudit, store: Store) -> None:
    store.execute("UPDATE audit SET side_effects = 'broken' WHERE seq = 1")
    store.execute("UPDATE audit SET side_effects = '3' WHERE seq = 2")
    assert [found["side_effects"] for found in trail.select(last=6)][:2] == [["broken"], [3]]
