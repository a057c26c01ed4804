"""The frame around every page: its head, navigation and policy of content. Nothing comes from elsewhere, and
no page needs a script."""

from __future__ import annotations

from collections.abc import Sequence

from quoth.agent.markup import Html, el, html
from quoth.agent.view.page import ViewPage, ViewPlace, Visit

HOME = "/view/"
HEADERS = {
    "Content-Security-Policy": "; ".join(
        [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ]
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers send forms with the origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def document(page: ViewPage, places: Sequence[ViewPlace], visit: Visit | None) -> str:
    """A whole page; without a visit, for a person who is not let in."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{page.title} · quoth"),
        el("link", rel="stylesheet", href="/view/style.css"),
        el("link", rel="icon", href="/view/icon.svg", type="image/svg+xml"),
        el("script", src="/view/view.js", defer=True) if visit else None,
    )
    main = el("main", page.body, id="main", tabindex=-1, data_live=page.live)
    skip = el("a", "Skip to the content", href="#main", class_="skip")
    news = el("p", id="news", role="status")  # the script writes here
    body = el("body", skip, _header(places, visit), news if visit else None, main)
    return "<!DOCTYPE html>\n" + html(el("html", head, body, lang="en")) + "\n"


def _header(places: Sequence[ViewPlace], visit: Visit | None) -> Html:
    if visit is None:
        return el("header", el("strong", "quoth"))
    links = [
        el(
            "li",
            el("a", place.name, href=place.path, aria_current="page" if _is_in(visit, place.path) else None),
        )
        for place in places
        if place.name
    ]
    seen = f"{visit.visitor.name} may {'decide' if visit.visitor.decides else 'look'}"
    out = visit.post("/view/out", el("button", "Sign out", class_="quiet"))
    return el(
        "header",
        el("p", el("strong", "quoth"), " ", el("span", visit.desk.folder.resolve().name), class_="where"),
        el("nav", el("ul", links), aria_label="Pages"),
        el("div", el("span", seen), out, class_="who"),
    )


def _is_in(visit: Visit, path: str) -> bool:
    """Whether the page of a visit is the one at this path, or below it."""
    return visit.path == path or (path != HOME and visit.path.startswith(f"{path}/"))
