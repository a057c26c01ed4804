"""Turns the failures of a model server into sentences for a person: refusals, and errors it reported.

No sentence contains the key or a secret in the URL.
"""

from __future__ import annotations

import json
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn

from quoth.neuro.backends.answers import LONGEST
from quoth.neuro.backends.base import (
    ContextFullError,
    ModelError,
    RequestRefusedError,
    ToolsRefusedError,
    Why,
)
from quoth.neuro.backends.request import PLACES
from quoth.neuro.backends.wordings import meaning_of, says, wait_in, window_in
from quoth.tools.call.redaction import SENT
from quoth.tools.storage.lean_httpx import httpx
from quoth.tools.text import printable, short

LONGEST_WAIT = 300.0  # seconds; a longer wait is an error
SECRET = 4  # minimum of characters of a user name or a query value that may be a secret
LONGEST_QUOTE = 300  # maximum of characters quoted from a server
MOST_TOKENS = 1_000_000_000  # maximum that a server may report
WORDS = 4_000  # maximum of characters of a server's message that are read
MISSHAPEN = (TypeError, KeyError, AttributeError)  # raised for a reply of another shape
PASSING = (408, 425, 429)  # statuses below 500 that a retry may fix
DOES = {429: "is limiting requests", 529: "is overloaded"}
UNKNOWN_CA = (2, 18, 19, 20, 21)  # OpenSSL's numbers for a certificate of an unknown signer


class TransientError(Exception):
    """A failure worth a retry after at least ``wait`` seconds. Its text is the sentence for a person; ``why``
    and ``begun`` go to the ModelError that is raised if no retry helps."""

    def __init__(self, sentence: str, why: Why, wait: float = 0.0, *, begun: bool = False) -> None:
        super().__init__(sentence)
        self.why: Why = why
        self.wait = wait
        self.begun = begun


class Server:
    """One model on one server, and the sentences about it. ``auth`` is the user and password in its address;
    ``key_variable`` is the environment variable of its key."""

    name = ""  # the spec of the model
    kind = "a server of the right kind"
    holds = ""  # the field of its replies with the answer
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
        self._url = url
        self._shown = _shown(url)
        self._key = key
        self._key_variable = key_variable
        self._secrets = secrets_of(key, auth, url)

    def _json(self, raw: bytes | str) -> Any:
        reply = parsed(raw)
        if reply is None:
            text = _as_text(raw).strip()
            said = self._quote(_words_of(text)) or "a page without a title"
            if not text:
                raise self.answerless("nothing")
            self._garbage(f"text that is not JSON ({said})")
        return reply

    def object_of(self, raw: bytes | str) -> dict[str, Any]:
        """The JSON object of a reply, or of one of its events. An error in it is raised."""
        reply = self._json(raw)
        if not isinstance(reply, dict):
            raise self.answerless()
        if reply.get("error") or _own_error(reply):
            self._failed(reply)
        return reply

    def _refused(
        self, response: httpx.Response, raw: bytes, had_tools: bool, left: float
    ) -> TransientError | ModelError:
        """The error for a response without a reply; ``left`` are the seconds left for retries."""
        status = response.status_code
        error = error_of(parsed(raw)) or {"message": _words_of(_as_text(raw))}
        said = str(error.get("message") or "")
        quoted = self._quote(said)
        tail = f" It said: {quoted}" if quoted else ""
        why: Why = ""
        if had_tools and _refuses_tools(status, error):
            self.tool_view = ""
            return ToolsRefusedError(f"{self._shown} takes no tools for {self._model} ({status}).{tail}")
        means = meaning_of(error)
        refused = f"{self._shown} refused the request ({status}): {quoted or 'it did not say why'}"
        if means == "long" or status == 413:
            return ContextFullError(refused, window_in(error) or 0)
        if means == "filtered":
            return ModelError(f"The content filter of {self._shown} stopped this request ({status}).{tail}")
        if status == 402 or means == "bill":
            why = "bill"
            sentence = (
                f"{self._shown} requires payment ({status}): "
                f"the account has no credit, or has reached its limit.{tail}"
            )
        elif means == "limited" or status in PASSING or (status >= 500 and status != 501):
            limits = means == "limited" and status < 500
            does = "is limiting requests" if limits else DOES.get(status, "failed")
            failed = f"{self._shown} {does} ({status})"
            wait = seconds_of(response.headers.get("retry-after", "")) or wait_in(error)
            why = "limited" if limits or status in DOES else "failed"
            if wait <= min(LONGEST_WAIT, left):
                return TransientError(f"{failed}.{tail}", why, wait)
            late = ", which is longer than this reply may take" if wait <= LONGEST_WAIT else ""
            sentence = f"{failed} and asks to wait {wait:.0f} s{late}.{tail}"
        elif status in (401, 403) and self._key:
            why = "key"
            sentence = f"{self._shown} refused the key ({status}); check {self._key_variable}.{tail}"
        elif status in (401, 403):
            why = "key"
            login = f"type quoth models login {self.name.partition(':')[0]}"
            sentence = f"{self._shown} requires a key ({status}); set {self._key_variable}, or {login}.{tail}"
        elif status == 407:
            sentence = f"The proxy for {self._shown} requires a user name and a password (407).{tail}"
            why = "down"
        elif status in (404, 405, 410):
            sentence = f"{self._shown} has no model {self._model}, or no such address ({status}).{tail}"
        elif status in (400, 422):
            return ModelError(refused) if says(error, "range") else RequestRefusedError(refused)
        elif status < 400 and (there := self._redirected(response)):
            sentence = (
                f"{self._shown} redirects to {there} ({status}). The redirect was not followed, because it "
                f"would send the key there. If it is the right server: --base-url {there}"
            )
        else:
            sentence = f"{self._shown} answered with status {status} instead of a reply.{tail}"
        return ModelError(sentence, why)

    def _redirected(self, response: httpx.Response) -> str:
        """The target of a redirect, without secrets; empty if it is missing."""
        try:
            there = self._url.join(response.headers.get("location", ""))
        except httpx.InvalidURL:
            return ""
        known = there.scheme in ("http", "https") and there.host and there != self._url
        return self._quote(_shown(there.copy_with(userinfo=b""))) if known else ""

    def _failed(self, reply: Any) -> NoReturn:
        """Raise the error that a reply contains instead of an answer."""
        error, means = error_of(reply), meaning_of(error_of(reply))
        sentence = f"{self._shown} failed: {self._quote(error['message'])}"
        if means == "long":
            raise ContextFullError(sentence, window_in(error) or 0)
        if means in ("bill", "filtered"):
            raise ModelError(sentence, "bill" if means == "bill" else "")
        code = f"{error.get('type')} {error.get('code')}"
        if means in ("limited", "busy") or re.search(r"\b(?:429|5\d\d)\b", code):
            limited = means == "limited" or re.search("overloaded|429|529", code)
            raise TransientError(sentence, "limited" if limited else "failed", wait_in(error))
        raise ModelError(sentence, "failed")

    @contextmanager
    def _shaped(self) -> Iterator[None]:
        """In this context, a reply of another shape raises ModelError."""
        try:
            yield
        except MISSHAPEN:
            self._garbage("a reply of another shape")

    def _garbage(self, what: str) -> NoReturn:
        raise ModelError(f"{self._shown} answered with {what}. Is it {self.kind}?", "garbage")

    def answerless(self, what: str = "") -> TransientError:
        """The error for a reply without an answer; busy servers and gateways send such, so it is retried."""
        what = what or f"JSON without {self.holds}"
        return TransientError(f"{self._shown} answered with {what}. Is it {self.kind}?", "garbage")

    def _too_long(self, status: int) -> NoReturn:
        """Raise an error that is not retried."""
        code = "" if status == 200 else f"status {status} and "
        self._garbage(f"{code}more than {LONGEST:,} bytes; it was stopped there")

    def _out_of_time(self, queued: bool, seconds: float, most: float) -> ModelError:
        """The error after the ``seconds`` for a reply, of at most ``most``."""
        if queued:
            sentence = (
                f"No request was sent to {self._shown} within {seconds:g} s: "
                f"{PLACES} other requests of this process were in progress there all the time."
            )
            return ModelError(sentence, "limited")
        sentence = f"{self._shown} did not finish its reply within {seconds:g} s."
        return ModelError(sentence, "slow" if seconds == most else "")

    def _cut_off(self) -> TransientError:
        sentence = f"The answer from {self._shown} was cut off in the middle."
        return TransientError(sentence, "down", begun=True)

    def _broken_off(self, reason: str) -> TransientError:
        sentence = (
            f"The answer from {self._shown} was cut off: its server ended it with {self._quote(reason)}."
        )
        return TransientError(sentence, "failed", begun=True)

    def _unreachable(self, why: str, hint: str = "Is the server running?") -> str:
        return f"Cannot reach {self._shown} ({self._quote(why)}). {hint}"

    def _no_way(self, error: httpx.RequestError) -> TransientError | ModelError:
        """The error if no request could be sent, or no reply arrived."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError | socket.gaierror):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            own = " To use your own CA, set SSL_CERT_FILE." if cause.verify_code in UNKNOWN_CA else ""
            what = cause.verify_message.rstrip(".")
            return ModelError(f"The certificate of {self._shown} is not valid: {what}.{own}", "down")
        if isinstance(cause, ssl.SSLError):
            hint = "Does it support https, or should its address begin with http://?"
            return ModelError(self._unreachable(getattr(cause, "reason", None) or str(cause), hint), "down")
        if isinstance(cause, socket.gaierror):
            hint = "Check its name and your network connection."
            return TransientError(self._unreachable(str(cause.strerror), hint), "down")
        if isinstance(error, httpx.ProxyError):
            hint = "Check the proxy in your environment variables."
            return ModelError(self._unreachable(f"the proxy said {error}", hint), "down")
        if isinstance(error, httpx.ConnectError):
            return TransientError(self._unreachable(str(error) or type(error).__name__), "down")
        return TransientError(f"{self._shown} closed the connection without an answer.", "down")

    def _quote(self, words: Any) -> str:
        """A quote from a server: one short line, without terminal escapes and without secrets."""
        whole = str(words)
        text = whole[:WORDS]
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = SENT.without(text)
        if len(whole) >= WORDS and self._secrets:  # the cut may leave half a secret
            text = text[: -3 * len(self._secrets[0])]  # its length in percent codes
        return short(" ".join(printable(text, instead=" ").split()), LONGEST_QUOTE + 1)


def secrets_of(key: str | None, auth: tuple[str, str] | None, url: httpx.URL) -> list[str]:
    """The texts that must not be shown, the longest first: key, password, possible secrets in the address."""
    user, password = auth or ("", "")
    raw = [pair.partition("=")[2] for pair in url.query.decode(errors="replace").split("&")]
    perhaps = [user, *raw, *url.params.values()]
    found = {key or "", password, *(word for word in perhaps if len(word) >= SECRET)} - {""}
    return sorted(found, key=len, reverse=True)


def _shown(url: httpx.URL) -> str:
    """The address for a person: without user, password and query (some servers take their key there)."""
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"


def _as_text(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw[: 4 * WORDS].decode(errors="replace")


def _words_of(page: str) -> str:
    """The words of a reply that is not JSON: the title of a page, or a plain text."""
    if "<" not in page:
        return page
    title = re.search(r"<title>([^<]{1,300})</title>", page, re.IGNORECASE)
    return title.group(1) if title else ""


def _refuses_tools(status: int, error: Mapping[str, Any]) -> bool:
    """Whether a server refuses native tools in general, and not one of them or a message."""
    if status >= 500:  # llama.cpp reports it as server_error, which is transient otherwise
        return says(error, "no-tools")
    if meaning_of(error) is not None:
        return False
    # If other roles have not helped, the template of its model has no place for results.
    return says(error, "alternate", "only-users") or (status in (400, 404, 422) and says(error, "tools"))


def parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def error_of(reply: Any) -> dict[str, Any]:
    """The error object of a reply, always with a ``message``, which is shortened to WORDS characters; empty
    if there is no error. Some servers send a string, some a list, some the error itself."""
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    if not isinstance(reply, dict):
        return {}
    error = reply.get("error") or reply.get("detail") or _own_error(reply)
    if not error and isinstance(reply.get("message"), str):
        error = reply
    if isinstance(error, list):
        error = "; ".join(map(_fault_of_field, error))
    if isinstance(error, dict):
        return {**error, "message": str(error.get("message") or json.dumps(error))[:WORDS]}
    return {"message": str(error)[:WORDS]} if error else {}


def _own_error(reply: Mapping[str, Any]) -> dict[str, Any]:
    """The error that MiniMax sends with status 200 in a reply without choices; empty if there is none."""
    told = reply.get("base_resp")
    if not isinstance(told, dict) or not told.get("status_code"):
        return {}
    return {"code": told["status_code"], "message": str(told.get("status_msg") or "")}


def _fault_of_field(fault: Any) -> str:
    """One fault of a list in FastAPI's format: the field, without the word body, and the message."""
    if not isinstance(fault, dict) or not fault.get("msg"):
        return str(fault)
    place = fault.get("loc")
    field = ".".join(map(str, place[1:])) if isinstance(place, list) else ""
    return f"{field}: {fault['msg']}" if field else str(fault["msg"])


def count_in(source: Any, key: str) -> int:
    """A reported number of tokens, limited to the range 0 to MOST_TOKENS."""
    value = source.get(key) if isinstance(source, dict) else None
    return min(max(value, 0), MOST_TOKENS) if type(value) is int else 0


def seconds_of(retry_after: str) -> float:
    """The wait in seconds of a Retry-After header (a number or a date); 0 if unreadable."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return 0.0
