"""The commands ``quoth audit`` and ``stats``: the calls of this workspace, and the tokens and money used."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import open_store
from quoth.agent.cli.options import DONE, Options, argument, option
from quoth.agent.session.stats import Amounts, Stats
from quoth.agent.session.stats import stats as counted
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import STATUSES, UsageError, did_you_mean, no_such
from quoth.tools.history.audit import StoreAudit, Verification, lost_head
from quoth.tools.text import SECONDS, count, file_name, money, number_of, short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quoth.tools.storage.database import Store

UNITS = {unit[0]: seconds for unit, seconds in SECONDS.items()}


class AuditOptions(Options):
    """Options of ``quoth audit``. The common options ``--session`` and ``--user`` are filters here."""

    groups = "--session"
    verify: str | None = argument(
        "verify", "verify: check whether a row was changed, removed or inserted", nargs="?"
    )
    tool: str | None = option("--tool", "NAME", "show only calls of this tool")
    status: str | None = option(
        "--status", "STATUS", "show only calls with this result: ok, denied, limited, …"
    )
    since: str | None = option(
        "--since",
        "WHEN",
        "show only calls since a time in UTC (2026-03-10, 2026-03-10T14:05) or in the last 30m, 2h, 7d",
    )
    last: str | None = option("--last", "N", "show only the last N calls")
    head: str | None = option(
        "--head", "HASH", "with verify: also check that the row with this hash still exists"
    )


def audit(options: AuditOptions) -> int:
    """Print or verify the rows; the exit code is 1 if the trail was altered."""
    if options.verify not in (None, "verify"):
        hint = did_you_mean(options.verify, ["verify"]) or " The only action is: quoth audit verify."
        raise UsageError(f"Unknown action of quoth audit: {options.verify}.{hint}")
    if options.verify:
        return _verify(options)
    if options.head:
        raise UsageError("--head needs verify: quoth audit verify --head HASH")
    last, filters = _last(options.last), _filters(options)
    with open_store(options, lists=True) as store:
        trail = _trail(store)
        found = False
        for row in trail.select(last=last, **filters) if trail else ():
            found = True
            print_json(row) if options.json else print_line(_line(row))
        if not found and options.tool is not None:
            names = {str(row["tool"]) for row in trail.select()} if trail else set()
            hint = "" if filters["tool"] in names else did_you_mean(filters["tool"], sorted(names - {""}))
            complain(f"The audit has no such call of {filters['tool']}.{hint}")
    return 0


def _trail(store: Store | None) -> StoreAudit | None:
    """The trail of the workspace, or None if it has no store."""
    return None if store is None else StoreAudit(lambda: store)


# Filters


def _filters(options: AuditOptions) -> dict[str, str]:
    from quoth.tools.lisp.forms import kebab

    filters: dict[str, str] = {}
    if options.tool is not None:
        filters["tool"] = kebab(options.tool)
    if options.status is not None:
        if options.status not in STATUSES:
            raise UsageError(no_such("status", options.status, STATUSES))
        filters["status"] = options.status
    if options.since is not None:
        filters["since"] = time_since(options.since)
    more = {"session": options.session, "user": options.user}
    return filters | {name: value for name, value in more.items() if value}


def _last(text: str | None) -> int | None:
    if text is None:
        return None
    many = int(text.lstrip("0")[:18] or 0) if text.isdecimal() else 0  # no trail has more rows
    if many < 1:
        raise UsageError(f"--last takes a whole number, 1 or more, not {text}.")
    return many


def time_since(text: str) -> str:
    """Return the time of ``--since`` in the format of the rows: UTC, ISO 8601, milliseconds. Raises
    UsageError."""
    now = datetime.now(UTC)
    ago = re.fullmatch(r"(\d{1,6})([smhdw])", text)
    try:
        if ago:
            when = now - timedelta(seconds=int(ago[1]) * UNITS[ago[2]])
        else:
            when = datetime.fromisoformat(text)
            when = (when if when.tzinfo else when.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since takes a time such as 2026-03-10 or 2026-03-10T14:05 (UTC), or 30m, 2h, 7d; not {text}."
        ) from None
    return when.isoformat(timespec="milliseconds")


# Looks


def _line(row: dict[str, Any]) -> str:
    """One row for a person: the call and its status; below it the policy, rule, consent and message."""
    when = str(row["ts"])[:19].replace("T", " ")
    what = row["form"] or (f"({row['tool']} …)" if row["tool"] else row["stage"])  # older rows have no form
    ended = f"{row['status']:<9} {row['duration_ms']:>6} ms"
    first = f"{row['seq']:>5}  {when}  {ended}  {row['user']}  {row['session']}  {row['route']}  {what}"
    judges = ("policy", "rule", "guard", "gate")
    notes = [f"{name}: {row[name]}" for name in judges if row[name] not in ("", "allow")]
    if (confidence := row.get("confidence")) is not None:
        notes.append(f"confidence: {confidence:g}")
    if row["consent"]:
        notes.append(f"consent: {row['consent']}")
    if row["repairs"]:
        notes.append(f"repaired: {row['repairs']}")
    details = {**row["details"]}
    if (asked := details.pop("asked_ms", None)) is not None:
        notes.append(f"a person was asked for {asked / 1000:.0f} s")
    if details:
        notes.append(f"details: {json.dumps(details, ensure_ascii=False)}")
    if row["message"]:
        notes.append(str(row["message"]))
    if row["side_effects"]:
        notes.append("did " + ", ".join(file_name(str(effect)) for effect in row["side_effects"]))
    return "\n       ".join(visible(text, lines=True).replace("\n", "\n       ") for text in (first, *notes))


# Verifying


def _verify(options: AuditOptions) -> int:
    filters = {"tool": options.tool, "status": options.status, "since": options.since, "last": options.last}
    for name, value in filters.items():
        if value is not None:
            raise UsageError(f"quoth audit verify checks every row; leave out --{name}.")
    head = (options.head or "").lower()
    if options.head is not None and not re.fullmatch(r"[0-9a-f]{8,64}", head):
        raise UsageError(
            "--head must be a hash that quoth audit verify printed, or at least its first 8 digits."
        )
    with open_store(options, lists=True) as store:
        trail = _trail(store)
        if trail is None:
            found = Verification(0, "", faults=[lost_head(head)] if head else [])
        else:
            found = trail.verify(head=head)
    if options.json:
        faults = [{"seq": fault.seq, "id": fault.id, "fault": str(fault)} for fault in found.faults]
        print_json({"ok": found.ok, "rows": found.rows, "head": found.head, "faults": faults})
    else:
        rows = number_of(found.rows, "row")
        for fault in found.faults:
            print_line(str(fault))
        if found.ok:
            print_line(f"{rows}, the chain is intact." + (f" Head: {found.head}" if found.head else ""))
        else:
            faults_found = number_of(len(found.faults), "fault")
            complain(f"The audit trail was changed after it was written: {faults_found} in {rows}.")
    return 0 if found.ok else 1


BAR = 16  # cells of the longest bar: with it a row of a day has 80 columns
BLOCKS = " ▏▎▍▌▋▊▉"
TOOLS = 12  # tools shown
NAME = 40  # characters shown of a tool's name, which a model may have invented


class StatsOptions(Options):
    since: str = option(
        "--since",
        "WHEN",
        "count only since a time in UTC (2026-03-10) or the last 2h, 7d (default: 30d)",
        default="30d",
    )


def stats(options: StatsOptions) -> int:
    """Print the charts."""
    from quoth.agent.run.budget import price_of

    since = time_since(options.since)
    with open_store(options, lists=True) as store:
        found = counted(store, since, price_of) if store is not None else Stats()
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
    """Format rows as lines: first column left-aligned, numbers right-aligned, the bar last."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for first, *numbers, chart in rows:
        cells = [f"{text:>{width}}" for text, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells, chart]).rstrip())
    return lines


def bar(part: int, whole: int, cells: int = BAR) -> str:
    """A bar of length ``part / whole * cells``, to an eighth of a cell; at least one eighth if ``part`` >
    0."""
    eighths = max(round(part * cells * 8 / whole), 1) if part and whole else 0
    return ("█" * (eighths // 8) + BLOCKS[eighths % 8]).rstrip()
