"""Turns the failures of a model server into sentences for a person: refusals, and errors it reported.

Knows how servers word errors, not how requests are sent. No sentence contains the key or a secret in the URL.
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

LONGEST_WAIT = 300.0  # seconds; a server that asks for more is reported, not waited for
SECRET = 4  # characters of a user's name or of a query's value that may be a secret
LONGEST_QUOTE = 300  # characters of a server's own words that are shown
MOST_TOKENS = 1_000_000_000  # that a server may say it used
WORDS = 4_000  # characters of them that are looked at
MISSHAPEN = (TypeError, KeyError, AttributeError)  # raised where a reply holds other things than it should
PASSING = (408, 425, 429)  # statuses below 500 that another try may get over
DOES = {429: "is limiting requests", 529: "is overloaded"}
UNKNOWN_CA = (2, 18, 19, 20, 21)  # OpenSSL's numbers for a certificate whose signer is not known


class TransientError(Exception):
    """A failure worth another try, after at least ``wait`` seconds; its text is the sentence for a person,
    ``why`` and ``begun`` are those of the ModelError which it becomes when no try helps."""

    def __init__(self, sentence: str, why: Why, wait: float = 0.0, *, begun: bool = False) -> None:
        super().__init__(sentence)
        self.why: Why = why
        self.wait = wait
        self.begun = begun


class Server:
    """One model on one server, and the sentences about it. ``auth`` is the user and password in its address;
    ``key_variable`` is the environment variable of its key."""

    name = ""  # the spec it was chosen by
    kind = "a server of the right kind"
    holds = ""  # the field of its replies that has the answer
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
        """The JSON object of a reply, or of one event of it; an error told in its place is raised."""
        reply = self._json(raw)
        if not isinstance(reply, dict):
            raise self.answerless()
        if reply.get("error") or _own_error(reply):
            self._failed(reply)
        return reply

    def _refused(
        self, response: httpx.Response, raw: bytes, had_tools: bool, left: float
    ) -> TransientError | ModelError:
        """What an answer without a reply says; ``left`` are the seconds in which it may be tried again."""
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
                f"{self._shown} wants to be paid ({status}): "
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
            late = ", longer than this reply may take" if wait <= LONGEST_WAIT else ""
            sentence = f"{failed} and asks to wait {wait:.0f} s{late}.{tail}"
        elif status in (401, 403) and self._key:
            why = "key"
            sentence = f"{self._shown} refused the key ({status}); check {self._key_variable}.{tail}"
        elif status in (401, 403):
            why = "key"
            login = f"type quoth models login {self.name.partition(':')[0]}"
            sentence = f"{self._shown} wants a key ({status}); set {self._key_variable}, or {login}.{tail}"
        elif status == 407:
            sentence = f"The proxy on the way to {self._shown} wants a name and a password (407).{tail}"
            why = "down"
        elif status in (404, 405, 410):
            sentence = f"{self._shown} has no model {self._model}, or no such address ({status}).{tail}"
        elif status in (400, 422):
            return ModelError(refused) if says(error, "range") else RequestRefusedError(refused)
        elif status < 400 and (there := self._redirected(response)):
            sentence = (
                f"{self._shown} says to ask {there} instead ({status}). That was not done, because the key "
                f"would go there too; if it is the right server: --base-url {there}"
            )
        else:
            sentence = f"{self._shown} answered with status {status} instead of a reply.{tail}"
        return ModelError(sentence, why)

    def _redirected(self, response: httpx.Response) -> str:
        """Where a reply sends its request, as a person may be shown it; empty if it does not say."""
        try:
            there = self._url.join(response.headers.get("location", ""))
        except httpx.InvalidURL:
            return ""
        known = there.scheme in ("http", "https") and there.host and there != self._url
        return self._quote(_shown(there.copy_with(userinfo=b""))) if known else ""

    def _failed(self, reply: Any) -> NoReturn:
        """An error told in the place of an answer."""
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
        """A reply may hold anything, also a list where a number should be."""
        try:
            yield
        except MISSHAPEN:
            self._garbage("a reply of another shape")

    def _garbage(self, what: str) -> NoReturn:
        raise ModelError(f"{self._shown} answered with {what}. Is it {self.kind}?", "garbage")

    def answerless(self, what: str = "") -> TransientError:
        """A reply without its answer: busy servers and gateways send such, so it is worth another try."""
        what = what or f"JSON without {self.holds}"
        return TransientError(f"{self._shown} answered with {what}. Is it {self.kind}?", "garbage")

    def _too_long(self, status: int) -> NoReturn:
        """Not one of the failures that are worth another try."""
        code = "" if status == 200 else f"status {status} and "
        self._garbage(f"{code}more than {LONGEST:,} bytes; it was stopped there")

    def _out_of_time(self, queued: bool, seconds: float, most: float) -> ModelError:
        """Why there is no answer in the ``seconds`` that a reply may take, of ``most`` that it ever may."""
        if queued:
            sentence = (
                f"No request was sent to {self._shown} within {seconds:g} s: "
                f"{PLACES} others of this process were under way there all the time."
            )
            return ModelError(sentence, "limited")
        sentence = f"{self._shown} did not come to an end within {seconds:g} s."
        return ModelError(sentence, "slow" if seconds == most else "")

    def _cut_off(self) -> TransientError:
        sentence = f"The answer from {self._shown} was cut off in the middle."
        return TransientError(sentence, "down", begun=True)

    def _broken_off(self, reason: str) -> TransientError:
        sentence = f"The answer from {self._shown} broke off: its server ended it with {self._quote(reason)}."
        return TransientError(sentence, "failed", begun=True)

    def _unreachable(self, why: str, hint: str = "Is the server running?") -> str:
        return f"Cannot reach {self._shown} ({self._quote(why)}). {hint}"

    def _no_way(self, error: httpx.RequestError) -> TransientError | ModelError:
        """Why no request could be sent, or no reply came."""
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLError | socket.gaierror):
            cause = cause.__cause__ or cause.__context__
        if isinstance(cause, ssl.SSLCertVerificationError):
            own = " A CA of your own is named by SSL_CERT_FILE." if cause.verify_code in UNKNOWN_CA else ""
            what = cause.verify_message.rstrip(".")
            return ModelError(f"{self._shown} shows a certificate that is not good: {what}.{own}", "down")
        if isinstance(cause, ssl.SSLError):
            hint = "Does it speak https, or is its address one with http://?"
            return ModelError(self._unreachable(getattr(cause, "reason", None) or str(cause), hint), "down")
        if isinstance(cause, socket.gaierror):
            hint = "Is its name right, and is there a network?"
            return TransientError(self._unreachable(str(cause.strerror), hint), "down")
        if isinstance(error, httpx.ProxyError):
            hint = "The environment names a proxy; does it let requests through?"
            return ModelError(self._unreachable(f"the proxy said {error}", hint), "down")
        if isinstance(error, httpx.ConnectError):
            return TransientError(self._unreachable(str(error) or type(error).__name__), "down")
        return TransientError(f"{self._shown} closed the connection without an answer.", "down")

    def _quote(self, words: Any) -> str:
        """A server's own words: one short line, without escapes that steer a terminal and without secrets."""
        whole = str(words)
        text = whole[:WORDS]
        for secret in self._secrets:
            text = text.replace(secret, "***")
        text = SENT.without(text)
        if len(whole) >= WORDS and self._secrets:  # half a secret may stand at the cut
            text = text[: -3 * len(self._secrets[0])]  # in percent codes
        return short(" ".join(printable(text, instead=" ").split()), LONGEST_QUOTE + 1)


def secrets_of(key: str | None, auth: tuple[str, str] | None, url: httpx.URL) -> list[str]:
    """The texts that must not be shown, the longest first: key, password, possible secrets in the address."""
    user, password = auth or ("", "")
    raw = [pair.partition("=")[2] for pair in url.query.decode(errors="replace").split("&")]
    perhaps = [user, *raw, *url.params.values()]
    found = {key or "", password, *(word for word in perhaps if len(word) >= SECRET)} - {""}
    return sorted(found, key=len, reverse=True)


def _shown(url: httpx.URL) -> str:
    """What a person is shown: no user, no password, no query (some servers take their key there)."""
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"


def _as_text(raw: bytes | str) -> str:
    return raw if isinstance(raw, str) else raw[: 4 * WORDS].decode(errors="replace")


def _words_of(page: str) -> str:
    """What a reply that is no JSON says: the title of a page, or a plain text."""
    if "<" not in page:
        return page
    title = re.search(r"<title>([^<]{1,300})</title>", page, re.IGNORECASE)
    return title.group(1) if title else ""


def _refuses_tools(status: int, error: Mapping[str, Any]) -> bool:
    """Whether a server refuses native tools as such, and not one of them or a message."""
    if status >= 500:  # llama.cpp calls it a server_error, which else is one that passes
        return says(error, "no-tools")
    if meaning_of(error) is not None:
        return False
    # Where other roles have not helped, the template of its model has no place for results.
    return says(error, "alternate", "only-users") or (status in (400, 404, 422) and says(error, "tools"))


def parsed(raw: bytes | str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def error_of(reply: Any) -> dict[str, Any]:
    """The error object of a reply, always with a ``message``, which is shortened to WORDS characters; empty
    if the reply holds no error. Some servers send a bare string, some a list, some the error itself."""
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
    """The error that MiniMax tells with status 200 beside a reply without choices; empty if none is."""
    told = reply.get("base_resp")
    if not isinstance(told, dict) or not told.get("status_code"):
        return {}
    return {"code": told["status_code"], "message": str(told.get("status_msg") or "")}


def _fault_of_field(fault: Any) -> str:
    """One fault of a list, as FastAPI reports them: the field, without the word body, and what is wrong."""
    if not isinstance(fault, dict) or not fault.get("msg"):
        return str(fault)
    place = fault.get("loc")
    field = ".".join(map(str, place[1:])) if isinstance(place, list) else ""
    return f"{field}: {fault['msg']}" if field else str(fault["msg"])


def count_in(source: Any, key: str) -> int:
    """A number of tokens, within what one reply can have taken, whatever a server says."""
    value = source.get(key) if isinstance(source, dict) else None
    return min(max(value, 0), MOST_TOKENS) if type(value) is int else 0


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
