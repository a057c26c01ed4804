"""The pages of flights: the list, and the board of one, with what each step of its plan has come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from quoth.agent.flight.plan_file import FlightLog, PlanFile, StepStatus, read_flight
from quoth.agent.flight.report import WORDS
from quoth.agent.flight.status import FlightState
from quoth.agent.markup import Child, Html, el, html
from quoth.agent.plan.model import Part, Plan
from quoth.agent.session.html import pairs
from quoth.agent.session.index import read_leniently
from quoth.agent.session.render import minute
from quoth.agent.session.session import Session, is_driven
from quoth.agent.view.page import ViewPage, ViewPlace, Visit
from quoth.agent.view.sessions import address, is_own, require_own, table
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.history.event import Event
from quoth.tools.history.transcript import Transcript
from quoth.tools.storage.database import Store
from quoth.tools.text import number_of, short

LIST = "/view/flights"
MOST = 50  # flights in the list
TEXT_CHARS = 400
COLORS = {"DONE": "ok", "FAILED": "bad", "DENIED": "bad"}  # of a step; all others wait
OF_FLIGHT = {"done": "ok", "failed": "bad"}
BY_TIME = "SELECT session FROM events WHERE kind = 'flight' GROUP BY session ORDER BY max(at) DESC, session"


def flights(visit: Visit) -> ViewPage:
    """The latest flights."""
    store = visit.desk.store()
    rows = [] if store is None else [_row(store, one) for one in islice(_latest(visit, store), MOST)]
    heads = ("flight", "begun", "status", "plan")
    how = el("p", "No plan was flown here. To fly one: ", el("code", "quoth fly PLAN.org"))
    body = table("Flights, the latest first", heads, rows) if rows else how
    return ViewPage("Flights", html(el("h1", "Flights"), body), live=True)


def _latest(visit: Visit, store: Store) -> Iterator[Event]:
    """The first events of the visitor's flights."""
    for (session,) in store.execute(BY_TIME):
        if is_own(visit, store, session):
            yield from reversed(_begun(store, session))


def _begun(store: Store, session: str) -> list[Event]:
    """The first events of the flights of a session."""

    def look(transcript: Transcript) -> list[Event]:
        return [event for event in transcript.events(session, kind="flight") if not event.status]

    return read_leniently(store, look)


def _row(store: Store, event: Event) -> list[Child]:
    said = event.said
    last = read_leniently(
        store, lambda found: [e for e in found.events(event.session, kind="flight") if e.key == event.key]
    )
    status = _status(store, event.session, last[-1].status if last else "")
    return [
        el("a", str(said.get("title") or Path(str(said["plan"])).name), href=f"{LIST}/{_name(event)}"),
        el("time", minute(event.at), datetime=event.at),
        el("b", status, class_=OF_FLIGHT.get(status, "wait")),
        str(said["plan"]),
    ]


def _name(event: Event) -> str:
    return f"{address(event.session).rpartition('/')[2]}/{event.key}"


def _status(store: Store, session: str, status: str) -> str:
    return status or ("running" if is_driven(Path(store.path), session) else "broken off")


def board(visit: Visit) -> ViewPage:
    """The board of one flight."""
    name, key = visit.params["session"], visit.params["flight"]
    store = require_own(visit, name)
    event = next((one for one in _begun(store, name) if one.key == key), None)
    if event is None:
        raise UsageError(f"Session {name} has no flight {short(key, 40)}.")
    transcript = Transcript(lambda: store)
    log = read_leniently(
        store, lambda found: read_flight(Session(found, name, str(event.data["user"]), Path()), event)
    )
    foreign = transcript.imported(name) >= event.seq  # the path is one of another machine
    plan, why = (None, "It was imported, so its plan is not read.") if foreign else _plan(log.plan)
    status = _status(store, name, log.status)
    title = str(event.said.get("title") or Path(log.plan).name)
    told: dict[str, Child] = {
        "status": el("b", status, class_=OF_FLIGHT.get(status, "wait")),
        "plan": log.plan,
        "begun": minute(event.at),
        "session": el("a", name, href=address(name, event.seq)),
    }
    if status == "pending":
        told["waiting"] = el("a", "What waits for you", href="/view/")
    shown = _planned(_Board(plan, log)) if plan is not None else _recorded(log)
    note = el("p", why, class_="wait") if why else None
    return ViewPage(f"Flight: {short(title, 80)}", html(el("h1", title), pairs(told), note, shown), live=True)


def _plan(path: str) -> tuple[Plan | None, str]:
    """The present plan; or None and why there is none."""
    try:
        plan = PlanFile(path).plan
    except QuothError as error:
        return None, f"The plan cannot be shown, only its record. {error}"
    faults = number_of(len(plan.faults), "fault")
    return plan, f"The plan has {faults} now: quoth fly {path} --check" if plan.faults else ""


@dataclass(frozen=True)
class _Step:
    """One line of a board."""

    word: str
    latest: StepStatus | None
    waits: tuple[str, ...] = ()


class _Board:
    """The steps of a plan with their present status."""

    def __init__(self, plan: Plan, log: FlightLog) -> None:
        self.plan, self.log = plan, log
        self._state = FlightState(plan, log)

    def step(self, part: Part) -> _Step:
        latest, status = self.log.latest(part.id), self._state.status(part)
        before = self.plan.waits.get(part.id, ())
        open_ones = tuple(one for one in before if not self._state.passed(self.plan.by_id[one]))
        return _Step(
            WORDS[status] if status else part.todo or "PLAN", latest, open_ones if not status else ()
        )

    def groups(self) -> Iterator[tuple[Part | None, list[Part]]]:
        """The steps in the order of the file, by the group that contains them."""
        found: dict[Part | None, list[Part]] = {}
        for step in self.plan.steps:
            found.setdefault(step.parent, []).append(step)
        yield from found.items()


def _planned(own: _Board) -> Html:
    """The board: a table for each group of steps."""
    words = Counter(own.step(step).word for step in own.plan.steps)
    done = el(
        "progress",
        f"{words['DONE']} of {len(own.plan.steps)}",
        value=words["DONE"],
        max=max(len(own.plan.steps), 1),
        aria_label="Steps that are done",
    )
    said = ", ".join(f"{number} {word.lower()}" for word, number in words.items())
    parts: list[Child] = [el("p", done, f" {said}")]
    for group, steps in own.groups():
        if group is not None:
            parts.append(el("h2", " › ".join(one.title for one in (*group.around, group))))
        caption = f"Steps of {group.title}" if group is not None else "Steps"
        parts.append(table(caption, HEADS, [_line(own, step) for step in steps]))
    return html(parts)


HEADS = ("step", "status", "tries", "seconds", "what is said")


def _line(own: _Board, part: Part) -> list[Child]:
    one = own.step(part)
    more: list[Child] = (
        [el("p", short(one.latest.text, TEXT_CHARS))] if one.latest and one.latest.text else []
    )
    if one.waits:
        more.append(el("p", f"waits for {', '.join(one.waits)}", class_="quiet"))
    if part.expect:
        more.append(el("p", "expects ", el("code", short(part.expect, TEXT_CHARS)), class_="quiet"))
    head = html(part.title, el("br"), el("span", part.id, class_="quiet"))
    return [head, _word(own.log, one.word, one.latest), *_numbers(one.latest), html(more)]


def _word(log: FlightLog, word: str, latest: StepStatus | None) -> Html:
    shown = el("b", word, class_=COLORS.get(word, "wait"))
    if latest is None:
        return shown
    return html(
        shown, " ", el("a", f"{log.session.id}.{latest.seq}", href=address(log.session.id, latest.seq))
    )


def _numbers(latest: StepStatus | None) -> list[Child]:
    if latest is None:
        return ["", ""]
    return [f"{latest.attempt}", f"{latest.seconds:.1f}" if latest.seconds else ""]


def _recorded(log: FlightLog) -> Html:
    """The recorded steps of a plan that cannot be read."""
    rows: list[list[Child]] = []
    for name, history in log.history.items():
        latest = history[-1]
        word = WORDS.get(latest.status, latest.status.upper())
        rows.append([name, _word(log, word, latest), *_numbers(latest), short(latest.text, TEXT_CHARS)])
    return table("Recorded steps", HEADS, rows) if rows else el("p", "No step was recorded.")


PLACES = (
    ViewPlace(LIST, flights, "Flights"),
    ViewPlace(f"{LIST}/{{session}}/{{flight}}", board),
)
