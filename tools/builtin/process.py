"""Runs programs and HTTP requests for tools made by ``def-shell-tool`` and ``def-http-tool``.

It knows no table and no door. Programs get an argument vector, never a shell; everything started is stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import signal
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quoth.tools.call.context import ToolContext
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.storage.addresses import verified
from quoth.tools.storage.inflate import UnknownEncodingError, inflated

MAX_OUTPUT = 100_000
KEEPER = str(Path(__file__).with_name("keeper.py"))
INSIDE = "QUOTH_INSIDE"  # set for programs that tools run: quoth takes no decisions from them


async def run_argv(argv: Sequence[Any], *, cwd: str = ".", timeout: float = 30, ctx: ToolContext) -> str:  # noqa: ASYNC109  the caller's deadline comes first
    """Run a program in the folder ``cwd`` of the workspace and return its standard output, cut at MAX_OUTPUT.

    Items of ``argv`` become texts; None is left out and a list is spliced in. Raises ToolError when the
    program is missing or fails (with its standard error), ToolFailure ``timeout`` after ``timeout`` seconds.
    All processes that the program has started end with the call (tools/builtin/keeper.py).
    """
    words = _words(argv)
    if not words:
        raise ToolError("There is no program to run.")
    folder = ctx.workspace.resolve(cwd)
    if not folder.is_dir():
        raise ToolError(f"There is no folder {cwd} to run {words[0]} in.")
    ctx.effect(f"ran:{words[0]}")
    report, told = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", KEEPER, str(told), str(os.getpid()), *words),
            pass_fds=[told],
            cwd=folder,
            env={**os.environ, INSIDE: "1"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except BaseException as error:
        os.close(report)
        if not isinstance(error, OSError | ValueError):
            raise
        raise ToolError(f"{words[0]} cannot be started: {error}.") from None
    finally:
        os.close(told)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(timeout):
            out, err = await asyncio.gather(_read(process.stdout), _read(process.stderr))
            _tell(process, signal.SIGUSR1)
            await process.wait()
        how, _, number = os.read(report, 100).decode().partition(" ")
    except TimeoutError:
        raise ToolFailure("timeout", f"{words[0]} did not finish within {timeout:g} s.") from None
    finally:
        os.close(report)
        await _put_away(process)
    code = int(number or -signal.SIGKILL)  # somebody has killed the keeper
    if how == "errno":
        if code == errno.ENOENT:
            raise ToolError(f"There is no program {words[0]} on this machine.")
        raise ToolError(f"{words[0]} cannot be started: {OSError(code, os.strerror(code), words[0])}.")
    if code:
        raise ToolError(f"{words[0]} ended with {code}: {(err or out).strip() or 'it said nothing'}")
    return out


async def _put_away(process: asyncio.subprocess.Process) -> None:
    """Have the keeper kill everything, and wait for it even if this task is cancelled."""
    _tell(process, signal.SIGTERM)
    cancelled = False
    while process.returncode is None:
        try:
            await process.wait()
        except asyncio.CancelledError:
            cancelled = True
    process._transport.close()  # type: ignore[attr-defined]  # asyncio has no public word for this
    if cancelled:
        raise asyncio.CancelledError
    await asyncio.sleep(0)  # its pipes are closed in the next turn of the loop


def _tell(keeper: asyncio.subprocess.Process, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has ended
        keeper.send_signal(what)


def _words(argv: Sequence[Any]) -> list[str]:
    words: list[str] = []
    for item in argv:
        if isinstance(item, (list, tuple)):
            words += _words(item)
        elif item is not None:
            words.append(str(item))
    return words


async def _read(stream: asyncio.StreamReader) -> str:
    """A stream's text; bytes after the first MAX_OUTPUT are read and dropped."""
    kept, dropped = bytearray(), 0
    while chunk := await stream.read(65536):
        room = MAX_OUTPUT - len(kept)
        kept += chunk[:room]
        dropped += max(0, len(chunk) - room)
    text = kept.decode("utf-8", "backslashreplace")
    return f"{text}\n[{dropped} more bytes not shown]" if dropped else text


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
    import httpx

    headers = {"accept-encoding": "gzip"} | {name.lower(): value for name, value in (headers or {}).items()}
    try:
        target = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ToolError(f"{url} is no address: {error}.") from None
    place = f"{target.scheme}://{target.host}{target.path}"
    verify = verified(target.scheme)
    ctx.effect(f"requested:{method.upper()} {place}")
    try:
        async with (
            asyncio.timeout(timeout),
            httpx.AsyncClient(timeout=timeout, follow_redirects=False, verify=verify) as client,
            client.stream(method.upper(), target, params=query, json=json, headers=headers) as response,
        ):
            body = bytearray()
            pieces = inflated(response.aiter_raw(), response.headers.get("content-encoding", ""))
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    body += piece
                    if len(body) > MAX_OUTPUT:
                        raise ToolError(f"{place} answered with more than {MAX_OUTPUT} bytes.")
    except (httpx.TimeoutException, TimeoutError):
        raise ToolFailure("timeout", f"{place} did not answer within {timeout:g} s.") from None
    except UnknownEncodingError as error:
        name = str(error)[:40]
        raise ToolError(f"{place} answered compressed as {name}, which it was not asked for.") from None
    except zlib.error:
        raise ToolError(f"{place} answered with what cannot be decompressed.") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise ToolError(f"{place} cannot be reached: {error or type(error).__name__}.") from None
    text = body.decode(response.encoding or "utf-8", "replace")
    if response.status_code >= 300:
        raise ToolError(f"{place} answered {response.status_code}: {text.strip()[:300]}")
    return _json_or_text(text, response.headers.get("content-type", ""))


def _json_or_text(text: str, kind: str) -> Any:
    if "json" in kind:
        with contextlib.suppress(ValueError):
            return json.loads(text)
    return text
