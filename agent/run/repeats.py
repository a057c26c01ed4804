"""The repeat brake for tools that may be repeated: how often such a call came back with the same result.

Other repeated calls are answered by their receipt (agent/loop.hy). Knows records of calls as data; it must
not know the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

from quoth.agent.reply import CallRecord
from quoth.tools.registry.table import ToolTable

LOOK_BACK = 40  # calls


def repeats_of(
    records: Sequence[CallRecord], calls: Sequence[CallRecord], table: ToolTable
) -> dict[str, int]:
    """For the records of a turn, the last of ``calls``: how many earlier turns made the same call with the
    same result, by the key of the call. A call counts that may be repeated and does not report that its
    program still runs."""
    end = len(calls) - len(records)
    earlier = calls[max(0, end - LOOK_BACK) : end]
    counted = (one for one in records if _may_be_repeated(one, table) and not _still_runs(one))
    return {one.key: turns for one in counted if (turns := _turns_with(one, earlier))}


def _turns_with(record: CallRecord, earlier: Sequence[CallRecord]) -> int:
    """How many turns have made this call with this result since a new call changed something."""
    turns = set[str]()
    for place in range(len(earlier) - 1, -1, -1):
        before = earlier[place]
        if _is_same(before, record):
            turns.add(before.key.rpartition(".")[0])
        elif before.form.digest == record.form.digest:
            break  # it had another result
        elif before.result.side_effects and not any(_is_same(one, before) for one in earlier[:place]):
            break
    return len(turns)


def _may_be_repeated(record: CallRecord, table: ToolTable) -> bool:
    tool = record.form.tool
    return tool in table and table.get(tool).allow_repeat


def _still_runs(record: CallRecord) -> bool:
    value = record.result.value
    return isinstance(value, dict) and value.get("running") is True


def _is_same(one: CallRecord, other: CallRecord) -> bool:
    a, b = one.result, other.result
    return (
        one.form.digest == other.form.digest
        and a.status == b.status
        and a.value == b.value
        and (a.ok or a.message == b.message)  # an ok one may say how many calls are left
    )
