"""Turns the failures of a model server into sentences for a person: refusals, and errors it reported.

Knows how servers word errors, not how requests are sent. No sentence contains the key or a secret in the URL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

import httpx

from quoth.neuro.backends.answers import LONGEST
from quoth.neuro.backends.base import ContextFullError, ModelError, ToolsRefusedError
from quoth.neuro.backends.context_window import overflow
from quoth.tools.text import printable, short

LONGEST_WAIT = 30.0  # seconds; a server that asks for more is reported, not waited for
SECRET = 4  # characters of a user's name or of a query's value that may be a secret
LONGEST_QUOTE = 300  # characters of a server's own words that are shown
WORDS = 4_000  # characters of them that are looked at
PASSING = (429, 500, 502, 503, 504, 529)
# How servers say that they take no tools; some of them with a status of 500.
_TOOLS = r"\b(?:tools?|functions?|tool_choice|function[ _]call(?:s|ing)?)\b(?![.\[])"
_REFUSAL = (
    r"(?:not (?:support|enabled|permitted|allowed|available|accept)|found that support|requires"
    r"|unsupported|unknown|unrecogni[sz]ed)"
)
_TOOLS_REFUSED = re.compile(
    rf"{_TOOLS}[^.\n]{{0,60}}{_REFUSAL}|{_REFUSAL}[^.\n]{{0,60}}{_TOOLS}", re.IGNORECASE
)
_NO_TOOLS = re.compile(r"not support tool|unsupported param: tools|tools param requires", re.IGNORECASE)


class TransientError(Exception):
    """A failure worth another try, after at least ``wait`` seconds; its text is the sentence for a person."""

    def __init__(self, sentence: str, wait: float = 0.0) -> None:
        super().__init__(sentence)
        self.wait = wait


class Server:
    """One model on one server, and the sentences about it. ``auth`` is the user and password in its address;
    ``key_variable`` is the environment variable of its key."""

    kind = "a server of the right kind"
    tool_view = ""

    def __init__(
        self,
        model: str,
        url: httpx.URL,
        auth: tuple[str, str] | None,
        key: str | None,
        key_variable: str,
    ) -> None:
        self._model = model
        # What a person is shown: no user, no password, no query (some servers take their key there).
        self._shown = f"{url.scheme}://{url.netloc.decode()}{url.path}"
        self._key = key
        self._key_variable = key_variable
        self._secrets = _secrets(key, auth, url)

    def _json(self, raw: bytes | str) -> Any:
        reply = parsed(raw)
        if reply is None:
            text = raw if isinstance(raw, str) else raw[: 4 * WORDS].decode(errors="replace")
            self._garbage(f"text that is not JSON ({self._quote(text)})")
        return reply

    def _refused(self, response: httpx.Response, raw: bytes, had_tools: bool) -> TransientError | ModelError:
        status = response.status_code
        error = error_of(parsed(raw))
        said = str(error.get("message") or "")
        quoted = self._quote(said)
        tail = f" It said: {quoted}" if quoted else ""
        if had_tools and _refuses_tools(status, error, said):
            self.tool_view = ""
            return ToolsRefusedError(f"{self._shown} takes no tools for {self._model} ({status}).{tail}")
        if status in (400, 413, 500) and (window := overflow(error)) is not None:
            return ContextFullError(f"{self._shown} refused the request ({status}): {quoted}", window)
        if status in (401, 403) and self._key:
            sentence = f"{self._shown} refused the key ({status}); check {self._key_variable}.{tail}"
        elif status in (401, 403):
            sentence = f"{self._shown} wants a key ({status}); set {self._key_variable}.{tail}"
        elif status == 404:
            sentence = f"{self._shown} has no model {self._model}, or no such address (404).{tail}"
        elif status == 400:
            sentence = f"{self._shown} refused the request (400): {quoted or 'it did not say why'}"
        elif status in PASSING:
            does = {429: "is limiting requests", 529: "is overloaded"}.get(status, "failed")
            failed = f"{self._shown} {does} ({status})"
            wait = seconds_of(response.headers.get("retry-after", ""))
            if wait <= LONGEST_WAIT:
                return TransientError(f"{failed}.{tail}", wait)
            sentence = f"{failed} and asks to wait {wait:.0f} s.{tail}"
        else:
            sentence = f"{self._shown} answered with status {status} instead of a reply.{tail}"
        return ModelError(sentence)

    def _failed(self, reply: Any) -> NoReturn:
        """An error told in the place of an answer."""
        error = error_of(reply)
        sentence = f"{self._shown} failed: {self._quote(error['message'])}"
        window = overflow(error)
        raise ModelError(sentence) if window is None else ContextFullError(sentence, window)

    @contextmanager
    def _shaped(self) -> Iterator[None]:
        """A reply may hold anything, also a list where a number should be."""
        try:
            yield
        except (TypeError, KeyError, AttributeError):
            self._garbage("a reply of another shape")

    def _garbage(self, what: str) -> NoReturn:
        raise ModelError(f"{self._shown} answered with {what}. Is it {self.kind}?")

    def _too_long(self, status: int) -> NoReturn:
        """Not one of the failures that are worth another try."""
        code = "" if status == 200 else f"status {status} and "
        self._garbage(f"{code}more than {LONGEST:,} bytes; it was stopped there")

    def _cut_off(self) -> ModelError:
        return ModelError(f"The answer from {self._shown} was cut off in the middle; try again.")

    def _unreachable(self, why: str) -> str:
        return f"Cannot reach {self._shown} ({self._quote(why)}). Is the server running?"

    def _quote(self, words: Any) -> str:
        """A server's own words: one short line, without escapes that steer a terminal and without secrets."""
        whole = str(words)
        text = whole[:WORDS]
        for secret in self._secrets:
            text = text.replace(secret, "***")
        if len(whole) >= WORDS and self._secrets:  # half a secret may stand at the cut
            text = text[: -len(self._secrets[0])]
        return short(" ".join(printable(text, instead=" ").split()), LONGEST_QUOTE + 1)


def _secrets(key: str | None, auth: tuple[str, str] | None, url: httpx.URL) -> list[str]:
    """The texts that must not be shown, the longest first: key, password, possible secrets in the address."""
    user, password = auth or ("", "")
    raw = [pair.partition("=")[2] for pair in url.query.decode(errors="replace").split("&")]
    perhaps = [user, *raw, *url.params.values()]
    found = {key or "", password, *(word for word in perhaps if len(word) >= SECRET)} - {""}
    return sorted(found, key=len, reverse=True)


def _refuses_tools(status: int, error: Mapping[str, Any], said: str) -> bool:
    """Whether a server refuses native tools as such, and not one of them or a message."""
    if error.get("code") == "context_length_exceeded" or str(error.get("param")).startswith("messages"):
        return False
    if status in (400, 404, 422):
        return _TOOLS_REFUSED.search(said) is not None
    return status >= 500 and _NO_TOOLS.search(said) is not None


def parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def error_of(reply: Any) -> dict[str, Any]:
    """The error object of a reply, always with a ``message``, which is shortened to WORDS characters; empty
    if the reply holds no error. Some servers send a bare string."""
    error = reply.get("error") or reply.get("detail") if isinstance(reply, dict) else None
    if isinstance(error, dict):
        return {**error, "message": str(error.get("message") or json.dumps(error))[:WORDS]}
    return {"message": str(error)[:WORDS]} if error else {}


def count_in(source: Any, key: str) -> int:
    value = source.get(key) if isinstance(source, dict) else None
    return value if isinstance(value, int) else 0


def seconds_of(retry_after: str) -> float:
    """The wait in seconds that a Retry-After header (a number or a date) asks for; 0 if unreadable."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
