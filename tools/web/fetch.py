"""The body and the guard of ``fetch``: one page; each redirect is a separate call through the door.

It asks ``ctx.may_reach`` and runs its calls by ``ctx.dispatch``, so that rules, a person and the audit see
every address."""

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

_way: ContextVar[tuple[WebUrl, ...]] = ContextVar("way", default=())  # the addresses that redirected here


def may_fetch(url: str, ctx: ToolContext) -> Verdict:
    """The guard. An invalid address, or an address of this machine or its network that no rule names, is
    refused without asking a person. A question about a redirect names the page that redirects. Raises
    ToolFailure, ``invalid`` or ``denied``."""
    try:
        read = read_url(url)
    except ToolError as error:
        raise ToolFailure("invalid", str(error)) from None
    require_no_known_address(read, ctx.may_reach)
    way = _way.get()
    return Verdict("allow", f"{way[-1].place} redirects to it" if way else "")


async def fetch(url: str, wanted: str, ctx: ToolContext) -> Any:
    """The page at an address as data, or, if it redirects, the result of the call for that address."""
    from quoth.tools.web.page import ACCEPT, page_of

    here = read_url(url)
    ctx.effect(f"requested:GET {here.place}")
    response = await ask(here, ACCEPT[wanted], ctx.may_reach)
    if response.moved:
        return await _follow(here, response.moved, wanted, ctx)
    if wanted != "json" and is_image(response.body):
        name = here.path.rpartition("/")[2] or here.host
        return {"url": str(here), "image": image_value(ctx, response.body, name)}
    return await asyncio.to_thread(page_of, response, wanted)  # a hostile page can take long


async def _follow(here: WebUrl, moved: str, wanted: str, ctx: ToolContext) -> Any:
    way = (*_way.get(), here)
    try:
        there = read_url(moved.partition("#")[0])
    except ToolError as error:
        raise ToolError(f"{here.place} redirects to an address that is refused: {error}") from None
    if there in way:
        raise ToolError(f"{here.place} redirects to {there.place}, which redirected here: a loop.")
    if len(way) > MAX_REDIRECTS:
        raise ToolError(
            f"{way[0].place} redirects more than {number_of(MAX_REDIRECTS, 'time')}, which is the maximum."
        )
    if ctx.dispatch is None:
        raise ToolError(f"{here.place} redirects to {there.place}, and no person can be asked here.")
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
    raise ToolFailure(result.status, f"{here.place} redirects to {there.place}: {result.message}")
