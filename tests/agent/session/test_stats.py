"""What a workspace has used: each call and token once, on its day."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from words import Agent, files, quoth, scripted

from quoth.agent.cli.audit import bar
from quoth.agent.session.stats import Stats, stats
from quoth.neuro.backends.base import Completion, Usage
from quoth.tools.storage.database import Store
from quoth.tools.storage.paths import store_path

READS = Completion('(read-file :path "a.txt")\n(read-file :path "b.txt")', Usage(1000, 20))
WRITES = Completion('(write-file :path "a.txt" :content "x")', Usage(1100, 10))


def used(folder: Path, since: str = "", price: float | None = 0.5) -> Stats:
    store = Store(store_path(folder))
    try:
        return stats(store, since, lambda model, usage: price)
    finally:
        store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    files(tmp_path, {"a.txt": "apples", "p.hy": "(deny (write-file))"})
    model = scripted(READS, WRITES, Completion("Done.", Usage(1200, 5)))
    with Agent(workspace=tmp_path, session="s", user="ann", model=model, policy=tmp_path / "p.hy") as agent:
        agent.run("Do it.")
    return tmp_path


def test_calls_denials_tokens_and_cost_of_a_day(folder: Path) -> None:
    today = datetime.now(UTC).date().isoformat()
    found = used(folder)
    (day,) = found.days.values()
    assert [*found.days] == [today]
    assert (day.calls, day.denied, day.failed, day.asked) == (3, 1, 1, 0)
    assert (day.input_tokens, day.output_tokens, day.cost, day.unpriced) == (3300, 35, 1.5, 0)
    assert [(name, one.calls, one.denied) for name, one in found.most()] == [
        ("read-file", 2, 0),
        ("write-file", 1, 1),
    ]
    assert used(folder, price=None).days[today].unpriced == 3335
    assert not used(folder, since="2999-01-01").days


def test_replies_of_many_pages_and_runs_are_counted_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        model = scripted(Completion('Say ":usage {\\"input_tokens\\" 5}".', Usage(10, 1)))
        with Agent(workspace=folder, session="t", user="ann", model=model) as agent:
            agent.run("Do it.")
    before = used(folder).to_json()
    assert sum(day["input_tokens"] for day in before["days"]) == 3320
    monkeypatch.setattr("quoth.agent.session.stats.PAGE", 2)
    assert used(folder).to_json() == before


def test_a_time_on_a_day_leaves_out_what_was_before(folder: Path) -> None:
    store = Store(store_path(folder))
    store.execute("UPDATE audit SET ts = substr(ts, 1, 11) || '0' || seq || substr(ts, 14)")  # by the hour
    (_, (second,), _) = store.execute("SELECT ts FROM audit ORDER BY ts")
    store.close()
    assert sum(day.calls for day in used(folder, since=second).days.values()) == 2


def test_a_copy_of_a_session_is_not_counted_again(folder: Path) -> None:
    before = used(folder).to_json()
    quoth("export", "s", "s.hy", cwd=folder)
    assert quoth("import", "s.hy", "--as", "other", cwd=folder).code == 0
    assert quoth("fork", "s", cwd=folder).code == 0
    assert used(folder).to_json() == before


def test_the_command_draws_them_and_has_them_as_data(folder: Path) -> None:
    seen = quoth("stats", cwd=folder).out.splitlines()
    assert seen[0].split() == ["day", "calls", "denied", "asked", "tokens", "in", "tokens", "out", "cost"]
    assert seen[1].split()[1:] == ["3", "1", "0", "3,300", "35", "$0", "█" * 16]
    assert seen[4].split() == ["read-file", "2", "0", "1", seen[4].split()[4], "█" * 16]
    assert seen[5].split()[-1] == "█" * 8
    assert json.loads(quoth("stats", "--json", cwd=folder).out)["days"][0]["denied"] == 1


def test_a_name_that_a_model_made_up_is_cut(tmp_path: Path) -> None:
    with Agent(workspace=tmp_path, model=scripted(f"({'a' * 300} :x 1)", "Done.")) as agent:
        agent.run("Do it.")
    assert f"{'a' * 39}…  " in quoth("stats", cwd=tmp_path).out


def test_where_nothing_was_called(tmp_path: Path) -> None:
    none = quoth("stats", "--since", "2026-01-01", cwd=tmp_path)
    assert (none.code, none.out) == (0, "")
    assert none.err == "quoth: Nothing was called in this workspace since 2026-01-01.\n"
    assert quoth("stats", "--since", "q", cwd=tmp_path).code == 2


@pytest.mark.parametrize(("part", "text"), [(0, ""), (1, "▏"), (500, "██"), (1000, "████")])
def test_a_bar(part: int, text: str) -> None:
    assert bar(part, 1000, cells=4) == text
