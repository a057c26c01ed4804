"""The part ``/view`` of ``quoth serve``: lets visitors in, checks what forms send, and makes pages in
threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from typing import TypeAlias
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from quoth.agent.markup import el
from quoth.agent.serve.app import ServedPart
from quoth.agent.terminal.output import complain
from quoth.agent.view.door import COOKIE_SECONDS, ViewDoor, is_own
from quoth.agent.view.frame import HEADERS, HOME, document
from quoth.agent.view.page import CSRF, Desk, Made, Redirection, ViewPage, ViewPlace, Visit, Visitor
from quoth.agent.view.peer import is_stranger
from quoth.tools.errors import QuothError

FILES = {
    "style.css": "text/css; charset=utf-8",
    "view.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
LOOK_SECONDS = 1.0  # between looks whether something was recorded
ALIVE_LOOKS = 15  # looks between comments that keep a connection open
LARGEST = 200_000  # bytes of a form
MOST_FIELDS = 50


Served: TypeAlias = Callable[[Request], Awaitable[Response]]


def view_part(
    door: ViewDoor, desk: Desk, places: Sequence[ViewPlace], stopping: Callable[[], bool] = lambda: False
) -> ServedPart:
    """The routes of ``places``. Streams end once the server is ``stopping``."""
    view = _View(door, desk, places, stopping)
    own = [
        Route("/view", view.home),
        Route("/view/in", view.near(view.enter)),
        Route("/view/out", view.near(view.leave), methods=["POST"]),
        Route("/view/events", view.near(view.events)),
        *(Route(f"/view/{name}", _file(name)) for name in FILES),
    ]
    shown = [
        Route(place.path, view.near(view.serve(place)), methods=["POST" if place.posts else "GET"])
        for place in places
    ]
    missing = Route("/view/{rest:path}", view.near(view.missing), methods=["GET", "POST"])
    return ServedPart([*own, *shown, missing], open_paths=["/view", "/view/"])


class _View:
    def __init__(
        self, door: ViewDoor, desk: Desk, places: Sequence[ViewPlace], stopping: Callable[[], bool]
    ) -> None:
        self._door, self._desk, self._places, self._stopping = door, desk, places, stopping

    def near(self, serve: Served) -> Served:
        """The same for processes of this user alone; other users may have seen a code or a cookie."""

        async def served(request: Request) -> Response:
            if await asyncio.to_thread(is_stranger, request.scope):
                return self._outside("These pages answer only the user who runs the server.", 403)
            return await serve(request)

        return served

    async def home(self, request: Request) -> Response:
        return RedirectResponse(HOME, 303, HEADERS)

    async def enter(self, request: Request) -> Response:
        """Take a code, and continue without it in the address."""
        if request.method != "GET":  # a program that only looks at a link must not use it up
            return Response(status_code=405, headers=HEADERS)
        if (value := self._door.enter(request.query_params.get("code", ""))) is None:
            return self._outside(
                "This address was used before, is older than a minute, or is of another server."
            )
        answer = RedirectResponse(HOME, 303, HEADERS)
        answer.set_cookie(
            self._door.cookie,
            value,
            max_age=int(COOKIE_SECONDS),
            path="/view",
            httponly=True,
            samesite="lax",
        )
        return answer

    async def leave(self, request: Request) -> Response:
        if (visitor := self._visitor(request)) is not None:
            if isinstance(form := await _sent(request, visitor), ViewPage):
                return self._drawn(form, self._visit(request, visitor))
            self._door.leave(request.cookies[self._door.cookie])
        answer = self._outside("You are signed out.", 200)
        answer.delete_cookie(self._door.cookie, path="/view", httponly=True, samesite="lax")
        return answer

    async def events(self, request: Request) -> Response:
        """A line whenever something was recorded."""
        if self._visitor(request) is None:
            return Response(status_code=401, headers=HEADERS)

        first = await asyncio.to_thread(self._desk.version)  # later records are announced

        async def lines() -> AsyncIterator[str]:
            seen, looks = first, 0
            yield "retry: 3000\n\n"
            while self._visitor(request) is not None and not self._stopping():
                await asyncio.sleep(LOOK_SECONDS)
                looks += 1
                if (now := await asyncio.to_thread(self._desk.version)) != seen:
                    seen = now
                    yield "data: changed\n\n"
                elif looks % ALIVE_LOOKS == 0:
                    yield ": still here\n\n"

        return StreamingResponse(lines(), headers=HEADERS, media_type="text/event-stream")

    def serve(self, place: ViewPlace) -> Served:
        async def served(request: Request) -> Response:
            if (visitor := self._visitor(request)) is None:
                return self._outside("You are not signed in.")
            form = await _sent(request, visitor) if place.posts else {}
            if isinstance(form, ViewPage):
                return self._drawn(form, self._visit(request, visitor))
            visit = self._visit(request, visitor, form)
            if (place.posts or place.decides) and not visitor.decides:
                return self._drawn(_trouble(f"The key {visitor.name} may look, not decide.", 403), visit)
            return self._drawn(await asyncio.to_thread(_made, place, visit), visit)

        return served

    async def missing(self, request: Request) -> Response:
        if (visitor := self._visitor(request)) is None:
            return self._outside("You are not signed in.")
        page = _trouble(f"There is nothing at {request.url.path}.", 404)
        return self._drawn(page, self._visit(request, visitor))

    def _visitor(self, request: Request) -> Visitor | None:
        return self._door.visitor(request.cookies.get(self._door.cookie, ""))

    def _visit(self, request: Request, visitor: Visitor, form: Mapping[str, str] | None = None) -> Visit:
        query = dict(request.query_params)
        return Visit(visitor, self._desk, request.url.path, dict(request.path_params), query, form or {})

    def _drawn(self, made: Made, visit: Visit) -> Response:
        if isinstance(made, Redirection):
            return RedirectResponse(made.path, 303, HEADERS)
        return HTMLResponse(document(made, self._places, visit), made.status, HEADERS)

    def _outside(self, sentence: str, status: int = 401) -> Response:
        how = el("p", "To sign in, type in a terminal: ", el("code", "quoth view"))
        other = el("p", "For another device: ", el("code", "quoth view --print"))
        page = ViewPage(
            "Sign in", el("section", el("h1", "Sign in"), el("p", sentence), how, other), status=status
        )
        return HTMLResponse(document(page, (), None), status, HEADERS)


def _made(place: ViewPlace, visit: Visit) -> Made:
    try:
        return place.make(visit)
    except QuothError as error:
        return _trouble(str(error), 409 if place.posts else 404)
    except Exception as error:
        complain(f"{visit.path}: {type(error).__name__}: {error}")
        return _trouble(f"This page could not be made ({type(error).__name__}).", 500)


def _trouble(sentence: str, status: int) -> ViewPage:
    back = el("p", el("a", "What waits", href=HOME))
    return ViewPage(
        "Not done",
        el(
            "section",
            el("h1", "Not done"),
            el("pre" if "\n" in sentence else "p", sentence, role="alert"),
            back,
        ),
        status=status,
    )


async def _sent(request: Request, visitor: Visitor) -> dict[str, str] | ViewPage:
    """The fields of a form that a page of this visitor has sent, or the page that refuses it."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc.lower() != request.headers["host"].lower():
        return _trouble("The form came from another page.", 403)
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST:
            return _trouble(f"The form is larger than {LARGEST // 1000} KB.", 413)
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:  # UnicodeDecodeError is one
        return _trouble("The form cannot be read.", 400)
    fields = dict(pairs)
    if len(fields) < len(pairs):
        return _trouble("A field of the form is given twice.", 400)
    if not is_own(visitor, fields.pop(CSRF, "")):
        return _trouble("The form is of another session. Go back, reload the page, and send it again.", 403)
    return fields


def _file(name: str) -> Callable[[Request], object]:
    text = files("quoth.agent.view").joinpath(name).read_bytes()

    async def served(request: Request) -> Response:
        return Response(text, headers=HEADERS | {"Cache-Control": "no-cache"}, media_type=FILES[name])

    return served
