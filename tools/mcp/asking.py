"""What a server asks while a call is open: questions to a person, the roots, and a model's answer.

A question, a form or a page to open, is a request to the person in the store, as those of a tool's own body
are; no model, rule or ``--yes`` answers it. Since the revision 2026-07-28 a server answers a call with what
it needs (InputRequiredResult) and a state of its own. Both are written down before the person is asked, so
that the answer may come days later, in another process: the same call, or its resumption, then continues
with that state, once. They belong to this call, its server and its digest. In earlier revisions the server
asks while its call is open; without an answer the call ends there, and another one begins at the start.

Must not decide anything itself: the door does. Everything that a server says is data.
"""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from quoth.tools.call.answer_form import ACCEPT, DECLINE, read_form
from quoth.tools.call.call import Call
from quoth.tools.call.context import ToolContext, place_of_wait
from quoth.tools.call.question import Question
from quoth.tools.call.redaction import sounds_secret
from quoth.tools.errors import ToolError, ToolFailure, UsageError
from quoth.tools.lisp.forms import CallForm
from quoth.tools.text import number_of, short
from quoth.tools.visible import visible

if TYPE_CHECKING:
    import mcp_types as types

MAX_ROUNDS = 10  # answers of a server that only ask, in one call, over all processes
MAX_REQUESTS = 10  # in one of them
MAX_STATE = 256 * 1024  # characters of a server's state and of its requests
MESSAGE_CHARS = 2_000
URL_CHARS = 2_000
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)  # seconds, where a server needs nothing but time
DONE = "done"  # the answer to a page that was opened
Send = Callable[[str | None, Mapping[str, Any] | None], Awaitable[Any]]
Wire = Mapping[str, Any]


class Questions:
    """What one server asks. Its ``elicit``, ``sample`` and ``roots`` are for the SDK: they serve the requests
    of revisions before 2026-07-28."""

    def __init__(self, server: str, root: Path, *, sampling: bool = False) -> None:
        self._server, self._root, self.sampling = server, root, sampling
        self._open: list[_Asker] = []

    async def answered(self, send: Send, *, ctx: ToolContext, call: Call, version: str) -> Any:
        """The result of a request to the server, once all that it asks is answered. ``send`` sends it, with
        the server's state and the answers to it; ``version`` is the digest of the tool. Raises ToolFailure,
        also ``pending`` where a person has not answered yet."""
        asker = _Asker(self._server, self._root, self.sampling, ctx, call, version)
        self._open.append(asker)
        try:
            return await asker.result_of(send)
        finally:
            self._open.remove(asker)

    async def elicit(self, context: Any, params: types.ElicitRequestParams) -> Any:
        return await self._of_the_open_call({"method": "elicitation/create", "params": _wire(params)})

    async def sample(self, context: Any, params: types.CreateMessageRequestParams) -> Any:
        return await self._of_the_open_call({"method": "sampling/createMessage", "params": _wire(params)})

    async def roots(self, context: Any) -> types.ListRootsResult:
        return _roots(self._root)

    async def _of_the_open_call(self, request: Wire) -> Any:
        """A handshake revision does not say which call asks."""
        if len(self._open) == 1:
            return await self._open[0].while_open(request)
        why = number_of(len(self._open), "call") + (" is" if len(self._open) == 1 else " are")
        return _error(f"quoth cannot tell which call asks: {why} open. It answers when one is.")


@dataclass(eq=False)
class _Asker:
    """One call that is open."""

    server: str
    root: Path
    sampling: bool
    ctx: ToolContext
    call: Call
    version: str
    rounds: int = 0
    failure: ToolFailure | None = field(default=None)  # of a question in a handshake revision

    async def result_of(self, send: Send) -> Any:
        state, answers = await self._earlier()
        pauses = iter(PAUSES)
        while True:
            said = await self._sent(send, state, answers)
            if getattr(said, "result_type", "") != "input_required":
                return said
            self._count_round()
            state, answers = said.request_state, None
            requests = {key: _wire(request) for key, request in (said.input_requests or {}).items()}
            if requests:
                self._require_small(state, requests)
                self._keep(state, requests)
                answers = await self._answers(requests)
                self._drop()
            else:
                await asyncio.sleep(next(pauses, PAUSES[-1]))

    async def _earlier(self) -> tuple[str | None, Mapping[str, Any] | None]:
        """The state and the answers with which an earlier attempt at this call continues."""
        kept = self._kept()
        if kept is None:
            return None, None
        self.rounds = kept["rounds"]
        answers = await self._answers(kept["requests"])
        self._drop()
        return kept["state"], answers

    async def _sent(self, send: Send, state: str | None, answers: Mapping[str, Any] | None) -> Any:
        """The server's answer; a question that was not answered while the call was open goes first."""
        try:
            said = await send(state, answers)
        except ToolError as error:
            if self.failure is not None:
                raise self.failure from error
            raise
        if self.failure is not None:
            raise self.failure
        return said

    async def while_open(self, request: Wire) -> Any:
        """The answer to a request of a handshake revision. What the person has not answered ends the call."""
        self.rounds += 1
        if self.rounds > MAX_ROUNDS:
            return _error(f"quoth answers at most {MAX_ROUNDS} requests of a call.")
        try:
            return await self._answer(request)
        except ToolFailure as failure:
            self.failure = self.failure or failure
        except Exception as error:  # the server must not wait for an answer
            self.failure = self.failure or ToolFailure("error", f"{self._who} was not answered: {error}")
        if request["method"] == "elicitation/create":
            return _elicited("cancel" if self.failure.status == "pending" else DECLINE)
        return _error(self.failure.message)

    # The stored state of a wait

    @property
    def _place(self) -> str:
        return place_of_wait(self.call)

    def _kept(self) -> Mapping[str, Any] | None:
        snapshots = self.ctx.snapshots
        if snapshots is None:
            return None
        try:
            kept = snapshots.find(self._place, self.version)
        except UsageError as error:  # it was changed in the store
            raise ToolFailure("error", f"{error} Repeat the call.") from None
        return kept if kept is not None and kept["server"] == self.server else None

    def _keep(self, state: str | None, requests: Mapping[str, Wire]) -> None:
        if self.ctx.snapshots is not None:
            kept = {"server": self.server, "rounds": self.rounds, "state": state, "requests": requests}
            self.ctx.snapshots.keep(self._place, self.call.session, self.version, kept)

    def _drop(self) -> None:
        """Before the answers are sent: if this process ends now, it is not known whether they were."""
        if self.ctx.snapshots is not None:
            self.ctx.snapshots.drop(self._place)

    # Questions

    async def _answers(self, requests: Mapping[str, Wire]) -> dict[str, Any]:
        try:
            for request in requests.values():
                self._require_allowed(request)
            return {key: await self._answer(request, key) for key, request in requests.items()}
        except ToolFailure as failure:
            if failure.status != "pending":
                self._drop()
            raise

    async def _answer(self, request: Wire, key: str = "") -> Any:
        self._require_allowed(request)
        params = request.get("params") or {}
        if request["method"] == "roots/list":
            return _roots(self.root)
        if request["method"] == "sampling/createMessage":
            return await self._sampled(params, key)
        said = await self.ctx.permission.ask(question_of(self.server, params, self.rounds))
        if params.get("mode") == "url":
            return _elicited(ACCEPT if said == DONE else DECLINE)
        return _elicited(DECLINE) if said == DECLINE else _elicited(ACCEPT, json.loads(said)[ACCEPT])

    async def _sampled(self, params: Wire, key: str) -> Any:
        """A model's answer, by a call of ``think`` through the door."""
        import mcp_types as types

        dispatch = self.ctx.dispatch
        assert dispatch is not None, "the door gives every body one"
        args: dict[str, Any] = {"prompt": _prompt(params)}
        args |= {"system": system} if (system := params.get("systemPrompt")) else {}
        name = f"sample {self.rounds} {key}"
        result = await dispatch(CallForm("think", args), name)
        if not result.ok:
            raise ToolFailure(result.status, f"{self._who} asked a model: {result.message}")
        text = types.TextContent(text=str(result.value))
        return types.CreateMessageResult(role="assistant", content=text, model="quoth", stop_reason="endTurn")

    # Refusals

    @property
    def _who(self) -> str:
        return f"The MCP server {self.server}"

    def _count_round(self) -> None:
        self.rounds += 1
        if self.rounds > MAX_ROUNDS:
            self._drop()
            raise ToolFailure(
                "error", f"{self._who} asked {MAX_ROUNDS} times without an end; it was stopped."
            )

    def _require_small(self, state: str | None, requests: Mapping[str, Wire]) -> None:
        if len(requests) > MAX_REQUESTS:
            much = f"{len(requests)} questions at once; the limit is {MAX_REQUESTS}"
        elif (chars := len(state or "") + len(json.dumps(requests))) > MAX_STATE:
            much = f"{chars:,} characters to keep; the limit is {MAX_STATE:,}"
        else:
            return
        raise ToolFailure("error", f"{self._who} sent {much}.")

    def _require_allowed(self, request: Wire) -> None:
        if why := refusal(request, sampling=self.sampling):
            raise ToolFailure("denied", f"{self._who} {why}")


def refusal(request: Wire, *, sampling: bool) -> str:
    """Why a request of a server is not passed on, as a clause after the server's name; empty if it may be."""
    method, params = request.get("method"), request.get("params") or {}
    if method == "roots/list":
        return ""
    if method == "sampling/createMessage":
        return _sampling_refusal(params, sampling)
    if method != "elicitation/create":
        return f"asked for {visible(short(str(method), 60))}, which quoth does not know."
    if params.get("mode") == "url":
        return _url_refusal(str(params.get("url", "")))
    schema = params.get("requestedSchema") or {}
    if asks_secret(str(params.get("message", "")), schema):
        return (
            "asked for a secret in a form. quoth passes no password, key or token to a server that way: it"
            " must use a page of its own, or a variable in its configuration."
        )
    try:
        read_form(schema)
    except UsageError as error:
        return f"asked with a form that quoth cannot show: {error}."
    return ""


def _sampling_refusal(params: Wire, sampling: bool) -> str:
    if not sampling:
        return "asked for a model's answer. Sampling is off; (mcp-sampling True) in config.hy turns it on."
    if params.get("tools"):
        return "asked a model to call tools of the server. quoth's models call its own tools only."
    try:
        _prompt(params)
    except ToolFailure as failure:
        return failure.message
    return ""


def _prompt(params: Wire) -> str:
    """The messages of a sampling request as one text. Raises ToolFailure for anything but text."""
    rows = []
    for message in params.get("messages") or ():
        content = message.get("content")
        for part in content if isinstance(content, list) else [content]:
            if not isinstance(part, Mapping) or part.get("type") != "text":
                raise ToolFailure("denied", "asked a model about something that is not a text.")
            rows.append((str(message.get("role", "user")), str(part.get("text", ""))))
    if len(rows) == 1:
        return rows[0][1]
    return "\n\n".join(f"{role.upper()}: {text}" for role, text in rows)


def _url_refusal(url: str) -> str:
    parts = _parts(url)
    if parts is None or len(url) > URL_CHARS or visible(url) != url or not url.isascii() or " " in url:
        return "asked you to open a page whose address is not a plain URL."
    host = parts.hostname or ""
    local = host in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and local):
        return f"asked you to open {short(url, 200)}; only https pages are shown."
    if "@" in parts.netloc or not host:
        return f"asked you to open {short(url, 200)}, which hides its host."
    return ""


def _parts(url: str) -> Any:
    try:
        parts = urlsplit(url)
        _ = parts.hostname, parts.port
    except ValueError:
        return None
    return parts


def asks_secret(message: str, schema: Wire) -> bool:
    """Whether a form asks for a password, key, token or code. A form without a field to type in asks for
    none: it may mention one."""
    properties = schema.get("properties")
    fields = properties.items() if isinstance(properties, Mapping) else ()
    texts = []
    for name, node in fields:
        if (
            not isinstance(node, Mapping)
            or node.get("type") == "boolean"
            or "enum" in node
            or "oneOf" in node
        ):
            continue
        if node.get("type") == "array":
            continue
        if node.get("format") == "password" or node.get("writeOnly") is True or sounds_secret(str(name)):
            return True
        spelt = re.sub(r"(?<=[a-z])(?=[A-Z])|[_.-]+", " ", str(name))
        texts += [spelt, str(node.get("title", "")), str(node.get("description", ""))]
    return bool(texts) and any(_secrets().search(_plain(text)) for text in (message, *texts))


# Words for secrets in texts of forms, in the languages of most forms.
_NAMES = (
    "password passcode passwd passphrase credential passwort kennwort geheim senha wachtwoord lösenord"
    " salasana jelszó hasło heslo parola şifre contraseña contrasenya"
    " пароль 密码 密碼 パスワード 暗証 비밀번호 סיסמ"
)
_PHRASES = (
    r"pass (?:word|phrase|code)|mot de passe|(?:seed|recovery) phrase|card number|\b(?:token|secret)s?\b"
    r"|\b(?:api|access|private|ssh|secret|recovery|encryption)[ _-]?keys?\b|one[ -]time (?:code|password)"
    r"|(?:security|verification|recovery) code|\b(?:pin|cv[vc]|otp)\b"
)


@cache
def _secrets() -> re.Pattern[str]:
    names = "|".join(re.escape(_plain(name)) for name in _NAMES.split())
    return re.compile(f"{names}|{_PHRASES}")


def _plain(text: str) -> str:
    """Small letters without accents, look-alike forms and characters that are not seen."""
    letters = unicodedata.normalize("NFKD", text[: 4 * MESSAGE_CHARS]).casefold()
    return "".join(char for char in letters if unicodedata.category(char) not in ("Mn", "Cf", "Cc"))


def question_of(server: str, params: Wire, number: int) -> Question:
    """The question of an elicitation request, for a person; the server's words are quoted."""
    again = f" ({number})" if number > 1 else ""
    message = visible(short(str(params.get("message", "")), MESSAGE_CHARS), lines=True)
    quoted = "\n".join(f"> {line}" for line in message.splitlines() or [""])
    if params.get("mode") == "url":
        url = str(params["url"])
        host = urlsplit(url).hostname
        text = (
            f"The MCP server {server} asks you to open a page{again}:\n{quoted}\n{url}\nIts host is {host}."
            f" quoth does not open it. Answer {DONE} when you have been there, or {DECLINE}."
        )
        return Question(text, (DONE, DECLINE), only=True)
    schema = params.get("requestedSchema") or {}
    form = read_form(schema)
    text = "\n".join([f"The MCP server {server} asks{again}:", quoted, *form.rows])
    return Question(text, form.choices, only=bool(form.choices), form=schema)


def _elicited(action: str, content: Any = None) -> Any:
    import mcp_types as types

    return types.ElicitResult.model_validate({"action": action, "content": content})


def _roots(root: Path) -> types.ListRootsResult:
    import mcp_types as types

    return types.ListRootsResult.model_validate({"roots": [{"uri": root.as_uri(), "name": root.name}]})


def _error(sentence: str) -> Any:
    import mcp_types as types

    return types.ErrorData(code=types.INVALID_REQUEST, message=sentence)


def _wire(model: Any) -> dict[str, Any]:
    """A message of the SDK as it is on the wire."""
    return dict(model.model_dump(mode="json", by_alias=True, exclude_none=True))
