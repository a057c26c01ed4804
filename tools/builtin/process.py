"""Runs programs and HTTP requests for tools defined by ``def-shell-tool`` and ``def-http-tool``.

Programs are started with an argument vector, never by a shell. Every started process is stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from quoth.tools.call.context import ToolContext
from quoth.tools.call.redaction import SENT, credentials, from_environment
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.shell.running import CapturedOutput, Running
from quoth.tools.shell.view import INSIDE
from quoth.tools.storage.addresses import certificates
from quoth.tools.web.answer import body_of, explained, text_of

MAX_OUTPUT = 100_000


async def run_argv(argv: Sequence[Any], *, cwd: str = ".", timeout: float = 30, ctx: ToolContext) -> str:  # noqa: ASYNC109  the caller's deadline comes first
    """Run a program in the folder ``cwd`` of the workspace and return its standard output, at most MAX_OUTPUT
    bytes of it.

    Items of ``argv`` become texts; None is left out and a list is spliced in. Raises ToolError when the
    program is missing or fails (with its standard error), ToolFailure ``timeout`` after ``timeout`` seconds.
    All processes that the program has started end with the call (tools/shell/keeper.py).
    """
    words = _words(argv)
    if not words:
        raise ToolError("There is no program to run.")
    folder = ctx.workspace.resolve(cwd)
    if not folder.is_dir():
        raise ToolError(f"There is no folder {cwd} to run {words[0]} in.")
    ctx.effect(f"ran:{words[0]}")
    try:
        program = await Running.start(words, cwd=folder, env={**os.environ, INSIDE: "1"})
    except (OSError, ValueError) as error:
        raise ToolError(f"{words[0]} cannot be started: {error}.") from None
    out, err = CapturedOutput(MAX_OUTPUT), CapturedOutput(MAX_OUTPUT)
    try:
        async with asyncio.timeout(timeout):
            code = await program.communicate(out.add, err.add)
    except FileNotFoundError:
        raise ToolError(f"There is no program {words[0]} on this machine.") from None
    except TimeoutError:
        raise ToolFailure("timeout", f"{words[0]} did not finish within {timeout:g} s.") from None
    except OSError as error:
        why = str(error.strerror).lower()
        raise ToolError(f"{words[0]} cannot be started: {why}.") from None
    finally:
        await program.put_away()
    if code:
        said = (err.text or out.text).strip() or "without output"
        raise ToolError(f"{words[0]} ended with {code}: {said}")
    return out.text


def _words(argv: Sequence[Any]) -> list[str]:
    words: list[str] = []
    for item in argv:
        if isinstance(item, (list, tuple)):
            words += _words(item)
        elif item is not None:
            words.append(str(item))
    return words


async def http_request(
    url: str,
    *,
    method: str = "GET",
    query: Mapping[str, Any] | None = None,
    json: Any = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 30,  # noqa: ASYNC109
    ctx: ToolContext,
) -> Any:
    """The JSON or text of one response. Raises ToolError for a failed connection, a status of 300 and
    above, or a body over MAX_OUTPUT bytes, and ToolFailure ``timeout`` after ``timeout`` seconds.
    ``query`` is escaped; a value put into ``url`` is not."""
    from quoth.tools.storage.lean_httpx import httpx

    headers = {"accept-encoding": "gzip"} | {name.lower(): value for name, value in (headers or {}).items()}
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ToolError(f"{url} is not an address: {error}.") from None
    SENT.learn(*credentials(headers, target, chosen=False), *from_environment(url, query, json))
    place = f"{target.scheme}://{target.netloc.decode()}{target.path}"
    ctx.effect(f"requested:{method.upper()} {place}")
    with explained(place, timeout):
        verify = await certificates(target.scheme)
        async with (
            asyncio.timeout(timeout),
            httpx.AsyncClient(timeout=timeout, follow_redirects=False, verify=verify) as client,
            client.stream(method.upper(), target, params=query, json=json, headers=headers) as response,
        ):
            body = await body_of(response, place, MAX_OUTPUT)
    text = text_of(body, response.encoding or "")
    if response.status_code >= 300:
        raise ToolError(f"{place} answered {response.status_code}: {text.strip()[:300]}")
    return _json_or_text(text, response.headers.get("content-type", ""))


def _json_or_text(text: str, kind: str) -> Any:
    if "json" in kind:
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return text
