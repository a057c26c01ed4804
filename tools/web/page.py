"""Turns a server's answer into data for a model: Markdown, plain text, JSON, or the unchanged text.

The text was written by strangers: it is data, and code that shows it must make invisible characters visible.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

from quoth.tools.errors import ToolError
from quoth.tools.installing import install_command
from quoth.tools.text import excerpt, one_line
from quoth.tools.web.answer import text_of
from quoth.tools.web.request import Response

HTML = ("text/html", "application/xhtml+xml")
ACCEPT = {
    "markdown": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
    "text": "text/plain, text/html;q=0.9, */*;q=0.5",
    "json": "application/json, */*;q=0.5",
    "raw": "*/*",
}
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset=["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
_ENCODING = re.compile(rb"""\A<\?xml[^>]{0,200}?encoding=["']([A-Za-z0-9_.-]{1,40})""")
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_TOP = re.compile(r"\A---\n(?!\n).*?\n---\n+", re.DOTALL)  # the converter's output for the head of a page
MAX_TITLE = 200
MAX_TEXT = 5_000_000  # characters of a converted page
MAX_BASE = 200
# A cell with a rowspan or colspan. The pattern does not backtrack, even with many blanks in the page.
_WIDE = re.compile(r"(?i)\b(?:col|row)(span\s*+=)(?!\s*+[\"']?\s*+\d(?!\d))")


def page_of(response: Response, wanted: str) -> dict[str, Any]:
    """The page as data, with its address. Raises ToolError."""
    page: dict[str, Any] = {"url": str(response.url), "type": response.kind or "unknown"}
    text = _text(response)
    if wanted == "json":
        return {**page, "data": _json(text, response)}
    if wanted == "raw" or response.kind not in HTML:
        return {**page, "text": text}
    title, text = _from_html(text, str(response.url), plain=wanted == "text")
    return {**page, "title": title, "text": text} if title else {**page, "text": text}


def _text(response: Response) -> str:
    """The body as text. Raises ToolError if it is not text."""
    body = response.body
    for mark, charset in _MARKS:
        if body.startswith(mark):
            return text_of(body, charset)
    if b"\0" in body[:8192]:
        kind = response.kind or "an unknown type"
        raise ToolError(f"{response.url.place} is not text: it is {excerpt(kind)}, {len(body):,} bytes.")
    charset = response.charset
    if not charset and (found := _CHARSET.search(body[:2048]) or _ENCODING.search(body[:300])):
        charset = found[1].decode()
    try:
        return text_of(body, charset)
    except LookupError:  # unknown character set
        return text_of(body, "")


def _json(text: str, response: Response) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        kind = excerpt(response.kind or "an unknown type")
        raise ToolError(f"{response.url.place} is not valid JSON{where}: it is {kind}.") from None


def _from_html(html: str, base: str, *, plain: bool) -> tuple[str, str]:
    """The title and the text of a page; links and images have absolute addresses."""
    try:
        import html_to_markdown as converter  # imported here: it takes 30 ms, and only pages need it
    except ImportError:
        raise ToolError(
            f"HTML cannot be converted. Install the converter: {install_command('html-to-markdown')}. "
            'Or fetch the page with :as "raw".'
        ) from None

    options = converter.ConversionOptions(
        output_format="plain" if plain else "markdown",
        base_url=base if len(base) <= MAX_BASE else None,  # the converter writes it before each link
        exclude_selectors=["svg"],
        inline_data_media="drop_element",
        skip_images=plain,
    )
    try:
        made = converter.convert(_WIDE.sub(r"\1", html), options)
    except Exception as error:  # any exception of the library, caused by a stranger's page
        raise ToolError(
            f'This page cannot be converted ({type(error).__name__}). Fetch it with :as "raw".'
        ) from None
    title = one_line(made.metadata.document.title or "", MAX_TITLE)
    text = made.content or ""
    if len(text) > MAX_TEXT:
        raise ToolError(
            f'As Markdown this page has more than {MAX_TEXT:,} characters. Fetch it with :as "raw".'
        )
    return title, (text if plain else _TOP.sub("", text, count=1)).strip()
