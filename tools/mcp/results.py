"""Results of servers as values of calls.

Structured content is the value, which the door checks by the tool's ``outputSchema``; the text beside it is
stored. Anything else is text, or a list of parts. Pictures, sounds and files are stored once in the session,
as its images are, and the value has their ids. All of it is untrusted data: only its types are interpreted.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable, Sequence
from typing import Any

from quoth.tools.call.context import ToolContext
from quoth.tools.call.images import MAX_BYTES, image_value, is_image
from quoth.tools.errors import ToolError, ToolFailure
from quoth.tools.registry.values import encodable
from quoth.tools.text import short

MAX_ERROR = 4_000  # characters of a server's error
MAX_BLOB = 5 * MAX_BYTES
MAX_PARTS = 1_000


def value_of(result: Any, ctx: ToolContext, server: str, *, declared: bool) -> Any:
    """The value of a call from the server's CallToolResult. ``declared``: the tool has an ``outputSchema``.
    Raises ToolError, and ToolFailure for the server's own error."""
    if result.is_error:
        raise ToolFailure("error", error_text(result.content, server))
    if result.structured_content is None:
        if declared:
            raise ToolError(f"The server {server} returned no structured content, which the tool declares.")
        return parts_of(result.content, ctx)
    _keep_beside(result.content, result.structured_content, ctx)
    return result.structured_content


def error_text(content: Sequence[Any], server: str) -> str:
    """The message of an error: the server's own text."""
    text = "\n".join(one.text for one in content if one.type == "text").strip()
    return f"The server {server} says: {short(encodable(text) or 'an error without a text', MAX_ERROR)}"


def _keep_beside(content: Sequence[Any], value: Any, ctx: ToolContext) -> None:
    """Store the content beside a structured value, unless it only repeats it, which servers do for older
    clients. It is not a part of the message, which in a chat a person reads as ours."""
    beside = [one for one in content if one.type != "text" or not _repeats(one.text, value)]
    if not beside:
        return
    kept = parts_of(beside, ctx)
    text = kept if isinstance(kept, str) else json.dumps(kept, ensure_ascii=False)
    if text.strip() and ctx.pages is not None and (id := ctx.pages.keep(text)):
        ctx.say(f'(more :id "{id}") shows what the server wrote beside this value.')


def _repeats(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False


def parts_of(content: Sequence[Any], ctx: ToolContext) -> Any:
    """Content as data: one text if there are only texts, else a list of parts."""
    if len(content) > MAX_PARTS:
        raise ToolError(f"The result has {len(content):,} parts; at most {MAX_PARTS:,} are read.")
    if all(one.type == "text" for one in content):
        return "\n".join(encodable(one.text) for one in content)
    return [_part(one, ctx, number) for number, one in enumerate(content, 1)]


def _part(one: Any, ctx: ToolContext, number: int) -> Any:
    if one.type == "text":
        return encodable(one.text)
    if one.type in ("image", "audio"):
        return blob(one.data, one.mime_type, f"{one.type} {number}", ctx)
    if one.type == "resource_link":
        named = {"resource": str(one.uri), "name": one.name, "type": one.mime_type}
        return {key: encodable(value) for key, value in named.items() if value}
    return resource(one.resource, ctx)


def resources(contents: Iterable[Any], ctx: ToolContext) -> Any:
    """The contents of a resource: the text if it is one text, else a list."""
    found = [resource(one, ctx) for one in contents]
    return found[0] if len(found) == 1 else found


def resource(one: Any, ctx: ToolContext) -> Any:
    if (text := getattr(one, "text", None)) is not None:
        said = {"resource": str(one.uri), "type": one.mime_type or "", "text": text}
        return {key: encodable(value) for key, value in said.items() if value}
    return blob(one.blob, one.mime_type or "", str(one.uri), ctx)


def blob(data: str, media: str, name: str, ctx: ToolContext) -> dict[str, Any]:
    """Data in base64 as a value: an image as the project's images are, anything else under an id too, with
    its type as the server says it and its size. Raises ToolError."""
    name = short(encodable(name), 200)
    if len(data) > MAX_BLOB * 4 // 3 + 4:
        raise ToolError(f"{name} has more than {MAX_BLOB:,} bytes, too many to keep.")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ToolError(f"{name} is not valid base64.") from None
    if is_image(decoded) and len(decoded) <= MAX_BYTES:
        try:
            return image_value(ctx, decoded, name)
        except ToolError:  # its header is broken: it is data like any other
            pass
    id = ctx.pages.keep(data) if ctx.pages is not None else ""
    if not id and ctx.pages is not None:
        raise ToolError(f"{name} cannot be kept: the store of the workspace is full.")
    return {"blob": id, "name": name, "type": short(encodable(media), 100), "bytes": len(decoded)}
