"""What a page is: a function from a visit to a title and a body. It runs in a thread, so it may block."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from quoth.agent.markup import Child, Html, el
from quoth.agent.session.undo import Undo
from quoth.tools.consent.broker import Broker
from quoth.tools.consent.decisions import Proposal
from quoth.tools.consent.requests import Decision, Request
from quoth.tools.consent.shown import Files
from quoth.tools.policy.policy import Layer
from quoth.tools.storage.database import Store

CSRF = "csrf"  # the field of a form with the token of the visitor


class Desk(Protocol):
    """The workspace that the pages show."""

    @property
    def folder(self) -> Path: ...

    @property
    def owner(self) -> str:
        """The name of the user who runs the server."""

    def memory(self, agent: str) -> AbstractContextManager[Any]:
        """The memory of an agent, in the workspace's store or in a database; None while it has none. Raises
        QuothError."""

    def layers(self) -> tuple[Sequence[Layer], Sequence[str]]:
        """The files of rules that apply here, and notes about them. Raises UsageError."""

    def store(self) -> Store | None:
        """The store; None while the workspace has none."""

    def broker(self) -> Broker | None:
        """The requests; None while nothing was ever asked."""

    def looking(self, asked: Request, *, decides: bool) -> tuple[Broker, str]:
        """A broker that knows the tools of the session that asked, and so the changes of the call; and why
        it does not, if so. The tools are loaded again if the visitor ``decides``."""

    def preview(self, asked: Request, decision: Decision) -> tuple[Decision, Proposal | None]:
        """A decision with its defaults, and an edited call with its changes. Raises QuothError."""

    def decide(self, asked: Request, decision: Decision, shown: Files | None) -> None:
        """Record a decision as the commands do; ``shown`` are the file contents that were shown. Raises
        QuothError."""

    def resuming(self, asked: Request) -> str:
        """The command that continues the session of a decided request; empty if nothing waits there."""

    def undoing(self, session: str, user: str) -> AbstractContextManager[Undo]:
        """The undo of a session by a user, as the command has it; within it no other process drives the
        session. Raises QuothError."""

    def version(self) -> str:
        """A text that differs once something was recorded."""


@dataclass(frozen=True)
class Visitor:
    """Who looks: the name of the key, and whether it may decide."""

    name: str
    decides: bool
    csrf: str = field(repr=False)


@dataclass(frozen=True)
class Visit:
    """One request of a visitor. ``params`` are the names in the path, ``query`` is behind it, ``form`` are
    the fields of a form that was sent."""

    visitor: Visitor
    desk: Desk
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def users(self) -> Collection[str]:
        """The users whose requests and sessions this visitor sees: its own name, and for the key ``me`` also
        the user who runs the server."""
        own = self.visitor.name
        return {own, self.desk.owner} if own == "me" else {own}

    def post(self, to: str, /, *children: Child, **fields: str) -> Html:
        """A form that is sent to the path ``to``, with hidden ``fields`` and the visitor's token."""
        hidden = [
            el("input", type="hidden", name=name, value=value)
            for name, value in {CSRF: self.visitor.csrf, **fields}.items()
        ]
        return el("form", hidden, children, method="post", action=to)


@dataclass(frozen=True)
class ViewPage:
    """A page. With ``live``, it is fetched again once something was recorded. ``status`` is that of HTTP."""

    title: str
    body: Html
    live: bool = False
    status: int = 200


@dataclass(frozen=True)
class Redirection:
    """Go to this path instead."""

    path: str


Made: TypeAlias = "ViewPage | Redirection"


@dataclass(frozen=True)
class ViewPlace:
    """A path, as Starlette writes it, and what makes its page; QuothError becomes a page with its sentence.
    ``name`` is its word in the navigation. One that ``posts`` takes a form, whose token was checked. It, and
    one that ``decides``, answers only visitors who may decide."""

    path: str
    make: Callable[[Visit], Made]
    name: str = ""
    posts: bool = False
    decides: bool = False


def confirmation(
    visit: Visit, title: str, shown: Child, to: str, word: str, back: str, /, **fields: str
) -> ViewPage:
    """The page that asks once more before ``fields`` are sent to ``to``; ``shown`` is exactly what will be
    done, and ``word`` the button's."""
    buttons = el(
        "p", el("button", word, type="submit", class_="main"), " ", el("a", "Back, change nothing", href=back)
    )
    return ViewPage(title, el("section", el("h1", title), shown, visit.post(to, buttons, **fields)))
