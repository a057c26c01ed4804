"""The command ``quoth stats``: calls, denials, tokens and cost by day and by tool, as charts of a terminal.

Knows options and the look of the charts; the counting is in agent/session/stats.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quoth.agent.cli.common import open_store
from quoth.agent.cli.options import DONE, Commands, Options, option
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.text import count, money, short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quoth.agent.session.stats import Amounts, Price
    from quoth.neuro.backends.base import Usage

BAR = 16  # cells of the longest bar: with it a row of a day has 80 columns
BLOCKS = " ▏▎▍▌▋▊▉"
TOOLS = 12  # as many are shown
NAME = 40  # characters of the name of one, which a model may have made up


@dataclass(init=False, repr=False, eq=False)
class StatsOptions(Options):
    since: str = option(
        "--since",
        "WHEN",
        "only since a time (2026-03-10, UTC) or within 2h, 7d (default: 30d)",
        default="30d",
    )


def add(commands: Commands) -> None:
    commands.add(
        "stats", "Show calls, denials, tokens and cost by day, and calls by tool.", StatsOptions, stats
    )


def stats(options: StatsOptions) -> int:
    """Print the charts."""
    from quoth.agent.cli.audit import time_since
    from quoth.agent.session.stats import Stats
    from quoth.agent.session.stats import stats as counted

    since = time_since(options.since)
    with open_store(options, lists=True) as store:
        found = counted(store, since, _price()) if store is not None else Stats()
    if options.json:
        print_json(found.to_json())
        return DONE
    if not found.days:
        complain(f"Nothing was called in this workspace since {since[:10]}.")
        return DONE
    for line in _days(found.days):
        print_line(line)
    if found.tools:
        print_line("")
    for line in _tools(found.most()):
        print_line(line)
    if unpriced := sum(one.unpriced for one in found.days.values()):
        complain(f"{count(unpriced, 'token')} have no known price.")
    return DONE


def _price() -> Price:
    """Ask the price list; each model that it does not know is told as None."""
    from quoth.agent.run.prices import cost_of
    from quoth.tools.errors import UsageError

    def price(model: str, usage: Usage) -> float | None:
        try:
            return 0.0 if model.startswith("scripted:") else cost_of(model, usage)
        except UsageError:
            return None

    return price


def _days(days: dict[str, Amounts]) -> list[str]:
    rows = [["day", "calls", "denied", "asked", "tokens in", "tokens out", "cost", ""]]
    most = max(one.calls for one in days.values())
    for day, one in sorted(days.items()):
        numbers = [one.calls, one.denied, one.asked, one.input_tokens, one.output_tokens]
        rows.append([day, *(f"{number:,}" for number in numbers), money(one.cost), bar(one.calls, most)])
    return _table(rows)


def _tools(tools: Sequence[tuple[str, Amounts]]) -> list[str]:
    rows = [["tool", "calls", "denied", "failed", "ms a call", ""]]
    most = max((one.calls for _, one in tools), default=0)
    for name, one in tools[:TOOLS]:
        numbers = [one.calls, one.denied, one.failed, round(one.ms / one.calls) if one.calls else 0]
        rows.append(
            [short(visible(name), NAME), *(f"{number:,}" for number in numbers), bar(one.calls, most)]
        )
    more = [f"… {count(len(tools) - TOOLS, 'more tool')}"] if len(tools) > TOOLS else []
    return [*_table(rows), *more]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines: the first column to the left, numbers to the right, the bar last."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for first, *numbers, chart in rows:
        cells = [f"{text:>{width}}" for text, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells, chart]).rstrip())
    return lines


def bar(part: int, whole: int, cells: int = BAR) -> str:
    """A bar whose length is ``part`` of ``whole``, to an eighth of a cell; what is not nothing is seen."""
    eighths = max(round(part * cells * 8 / whole), 1) if part and whole else 0
    return ("█" * (eighths // 8) + BLOCKS[eighths % 8]).rstrip()
