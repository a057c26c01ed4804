"""The body and the guard of ``fetch``: one page, and each redirect as a call of its own through the door.

Knows the context of a call, requests and pages; it must not know rules or the door: it asks ``ctx.may_reach``
and makes its calls by ``ctx.dispatch``, so that rules, a person and the audit see every address.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

from quoth.tools.call.call import Verdict
from quoth.tools.call.context import ToolContext
from quoth.tools.call.images import image_value, is_image
from quoth.tools.call.web_url import WebUrl, read_url
from quoth.tools.errors import Pending, ToolError, ToolFailure
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import number_of
from quoth.tools.web.request import ask, require_no_known_address

DEFAULT = "markdown"
MAX_REDIRECTS = 5

_way: ContextVar[tuple[WebUrl, ...]] = ContextVar("way", default=())  # the addresses that led to this one


def may_fetch(url: str, ctx: ToolContext) -> Verdict:
    """The guard: nobody is asked about what is no address, or about this machine and its network where no
    rule names them; who is asked about a redirect is told which page leads there. Raises ToolFailure,
    ``invalid`` or ``denied``."""
    try:
        read = read_url(url)
    except ToolError as error:
        raise ToolFailure("invalid", str(error)) from None
    require_no_known_address(read, ctx.may_reach)
    way = _way.get()
    return Verdict("allow", f"{way[-1].place} leads on to it" if way else "")


async def fetch(url: str, wanted: str, ctx: ToolContext) -> Any:
    """The page at an address as data, or the result of the call for the address to which it leads on."""
    from quoth.tools.web.page import ACCEPT, page_of

    here = read_url(url)
    ctx.effect(f"requested:GET {here.place}")
    response = await ask(here, ACCEPT[wanted], ctx.may_reach)
    if response.moved:
        return await _follow(here, response.moved, wanted, ctx)
    if wanted != "json" and is_image(response.body):
        name = here.path.rpartition("/")[2] or here.host
        return {"url": str(here), "image": image_value(ctx, response.body, name)}
    return await asyncio.to_thread(page_of, response, wanted)  # a page may be made to take long


async def _follow(here: WebUrl, moved: str, wanted: str, ctx: ToolContext) -> Any:
    way = (*_way.get(), here)
    try:
        there = read_url(moved.partition("#")[0])
    except ToolError as error:
        raise ToolError(f"{here.place} leads on to an address that is refused: {error}") from None
    if there in way:
        raise ToolError(f"{here.place} leads on to {there.place}, which led here: it goes round in a circle.")
    if len(way) > MAX_REDIRECTS:
        raise ToolError(
            f"{way[0].place} leads on more than {number_of(MAX_REDIRECTS, 'time')}; it is given up."
        )
    if ctx.dispatch is None:
        raise ToolError(f"{here.place} leads on to {there.place}, and nobody can be asked about that here.")
    args = {"url": str(there)} if wanted == DEFAULT else {"url": str(there), "as": wanted}
    before = _way.set(way)
    try:
        result = await ctx.dispatch(CallForm("fetch", args), "redirect")
    finally:
        _way.reset(before)
    if result.ok:
        if result.follow_up:
            ctx.say(result.follow_up)
        return result.value
    if result.status == "pending":
        raise Pending(result.message)
    raise ToolFailure(result.status, f"{here.place} leads on to {there.place}: {result.message}")
