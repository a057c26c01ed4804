"""Chooses the backend from ``--model``, the environment, the configuration or the installed packages; it may
also be a list of models, or a script.

A backend is imported only after it is chosen: choosing a script must not load httpx or llama.cpp.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Backend,
    Completion,
    ContextFullError,
    ModelError,
    MovedError,
    NoKeyError,
    RequestOptions,
    ToolChoice,
    ToolsRefusedError,
    takes_images,
    tells_intent,
    window_of,
)
from quoth.neuro.backends.messages import Message, Messages, NativeCall, SentBytes
from quoth.neuro.backends.providers import (
    NO_DEFAULTS,
    NO_KEY,
    NO_SETTINGS,
    ROWS,
    Defaults,
    Provider,
    ServerSettings,
    find_provider,
    first_with_key,
    key_of,
    names,
    specs,
)
from quoth.tools.errors import UsageError, nearest
from quoth.tools.text import number_of

if TYPE_CHECKING:
    from quoth.neuro.backends.weights import Progress


# The beginnings of models' names and their providers; open models are probably on this machine.
MAKERS = {
    **dict.fromkeys(("gpt-", "chatgpt-", "o1", "o3", "o4"), "openai"),
    **dict.fromkeys(("mistral-", "codestral-", "ministral-", "magistral-"), "mistral"),
    **dict.fromkeys(("llama3", "llama-", "qwen", "gemma", "phi"), "ollama"),
    "claude-": "anthropic",
    "gemini-": "gemini",
    "deepseek-": "deepseek",
    "kimi-": "moonshot",
    "glm-": "zai",
}


def choose_backend(
    spec: str | None,
    settings: ServerSettings = NO_SETTINGS,
    *,
    environ: Mapping[str, str] = os.environ,
    progress: Progress | None = None,
    config: Defaults = NO_DEFAULTS,
) -> Backend:
    """The backend named by ``spec``, the environment, the configuration or the installation. Raises
    UsageError."""
    spec = default_model(settings, environ, config) if spec is None else spec
    if settings.base_url and ":" not in spec and find_provider(spec, config.providers) is None:
        raise UsageError(f"There is no model {spec}. Did you mean openai:{spec}?")
    provider, model = provider_of(spec, config)
    if provider.backend is not None:
        return _on_server(spec, model, provider, settings, environ, config)
    if provider.name == "cascade":
        return _cascade(spec, model, settings, environ, progress, config)
    if settings.base_url:
        raise UsageError(f"--base-url cannot be used with {spec}; it needs a server, such as openai:NAME.")
    if provider.name == "scripted":
        return load_scripted(Path(model).expanduser())
    from quoth.neuro.backends.local import LocalBackend
    from quoth.neuro.backends.weights import HUB

    said = _said(settings, config)
    file = Path(model) if model and model not in HUB else None
    return LocalBackend(spec, file, progress=progress, **said)


def _cascade(
    spec: str,
    listed: str,
    settings: ServerSettings,
    environ: Mapping[str, str],
    progress: Progress | None,
    config: Defaults,
) -> Backend:
    """The usable models of a list. The settings of a server apply to the only server in the list."""
    members = [one.strip() for one in listed.split(",")]
    if len(members) < 2 or not all(members) or any(one.startswith("cascade:") for one in members):
        raise UsageError(f"{spec} is not a list of models. Example: cascade:openai:gpt-5-mini,local.")
    served = [one for one in members if provider_of(one, config)[0].backend is not None]
    alone = replace(settings, base_url=None, api_key=None)
    if alone != settings and len(served) != 1:
        has = f"has {' and '.join(served)}" if served else "has none"
        raise UsageError(
            f"A base URL or key is for one server, but {spec} {has}. Configure each server separately."
        )
    made: dict[str, Backend] = {}
    lacks: dict[str, NoKeyError] = {}
    for one in members:
        own = settings if one in served else alone
        try:
            made[one] = choose_backend(one, own, environ=environ, progress=progress, config=config)
        except NoKeyError as error:
            lacks[one] = error
    if not made:
        raise NoKeyError(" ".join(map(str, lacks.values())))
    like = next(iter(made.values()))
    return Cascade([made.get(one) or Missing(one, str(lacks[one]), like) for one in members])


def provider_of(spec: str, config: Defaults = NO_DEFAULTS) -> tuple[Provider, str]:
    """The provider of a spec, and the name of the model there. Raises UsageError."""
    kind, colon, model = spec.partition(":")
    provider = find_provider(kind, config.providers)
    whole = provider is not None and not provider.example  # a name such as local, alone
    if provider is None or (whole and colon and not (kind == "local" and model)):
        hint = "" if provider else _meant(spec, names(config.providers))
        hint = f"{hint} To list all: quoth models" if hint else f" Choose {specs(config.providers)}."
        raise UsageError(f"There is no model {spec}.{hint}")
    if provider.example and not model:
        raise UsageError(f"{kind}: needs a name after the colon, as in {provider.example}.")
    return provider, model


def tool_view_of(spec: str, config: Defaults = NO_DEFAULTS) -> str:
    """The view of the tool list in which this model takes native tools; empty if it takes none. Opens no
    backend, so it needs no key. Raises UsageError."""
    provider, model = provider_of(spec, config)
    if provider.name == "cascade":
        return tool_view_of(model.partition(",")[0].strip(), config)
    own = {"scripted": ("quoth.neuro.backends.select", "ScriptedBackend")}
    module, name = provider.backend or own.get(provider.name, ("", ""))
    return str(getattr(getattr(import_module(module), name), "tool_view", "")) if module else ""


def _meant(spec: str, known: Sequence[str]) -> str:
    """A hint for a spec without a provider: a name such as gpt-5-mini lacks only its provider."""
    maker = next((maker for begin, maker in MAKERS.items() if spec.startswith(begin)), "")
    if maker:
        return f" Did you mean {maker}:{spec}?"
    kind, colon, model = spec.partition(":")
    near = nearest(kind, known, 0.7)  # the names are short
    return f" Did you mean {near}{colon}{model}?" if near else ""


def named_model(environ: Mapping[str, str] = os.environ, config: Defaults = NO_DEFAULTS) -> str:
    """The spec of the default model that the user has named, empty if there is none."""
    return environ.get("QUOTH_MODEL") or config.model or ""


def default_model(
    settings: ServerSettings = NO_SETTINGS,
    environ: Mapping[str, str] = os.environ,
    config: Defaults = NO_DEFAULTS,
) -> str:
    """The spec of the default model. It may read stored keys. Raises UsageError if there is none."""
    if named := named_model(environ, config):
        return named
    if settings.base_url:
        raise UsageError("--base-url needs the name of a model there: --model openai:NAME")

    if provider := first_with_key((*ROWS, *config.providers.values()), environ):
        return provider.example
    from quoth.neuro.backends.weights import how_to_get, local_available

    if found := local_available():
        return found
    raise UsageError(
        "No model is chosen. Name one with --model (or QUOTH_MODEL), give a key (set OPENAI_API_KEY, or type "
        f"quoth models login openai), or run: {how_to_get('local')}. To list all: quoth models"
    )


def _on_server(
    spec: str,
    model: str,
    provider: Provider,
    settings: ServerSettings,
    environ: Mapping[str, str],
    config: Defaults,
) -> Backend:
    assert provider.backend is not None, "the provider has a server"
    key = key_of(provider, environ, settings.api_key)
    if provider.needs_key and not key.secret and not settings.base_url:
        raise NoKeyError(
            f"{spec} needs a key: set {provider.key}, type quoth models login {provider.name}, or name a "
            "server with --base-url."
        )
    module, name = provider.backend
    given: dict[str, Any] = {"name": spec, **provider.options}
    if url := settings.base_url or provider.url:
        given["base_url"] = url
    if provider.key or key is not NO_KEY:
        given |= {"api_key": key.secret or None, "key_variable": key.source or provider.key}
    said = _said(settings, config)
    if "temperature" in said:
        given["extra"] = {**given.get("extra", {}), "temperature": said.pop("temperature")}
    try:
        made: Backend = getattr(import_module(module), name)(model, **given, **said)
    except (
        ImportError,
        AttributeError,
        TypeError,
    ) as error:  # from another package; its text may contain the key
        what = f"its back end {module}.{name} failed ({type(error).__name__})"
        raise UsageError(f"{spec} cannot be opened: {what}.") from error
    return made


def _said(settings: ServerSettings, config: Defaults) -> dict[str, Any]:
    """The time-out and temperature, if they are set."""
    found = {
        "timeout": config.timeout if settings.timeout is None else settings.timeout,
        "temperature": config.temperature if settings.temperature is None else settings.temperature,
    }
    return {name: value for name, value in found.items() if value is not None}


# A list of models, ``cascade:A,B,…``: the first one that can answer does.


PATIENCE = 2.0  # maximum seconds to wait for a model while there is another


class CascadeRun:
    """The position of one conversation in a list of models; it only moves down. As a backend it is the
    current model. If that fails and there is another, it moves there and raises MovedError."""

    def __init__(self, models: Sequence[Backend], place: int = 0) -> None:
        self.models = tuple(models)
        self._place = place

    @property
    def _now(self) -> Backend:
        return self.models[self._place]

    @property
    def _next(self) -> Backend | None:
        below = self.models[self._place + 1 :]
        return below[0] if below else None

    @property
    def name(self) -> str:
        return self._now.name

    @property
    def takes_grammar(self) -> bool:
        return self._now.takes_grammar

    @property
    def tool_view(self) -> str:
        return self._now.tool_view

    @property
    def context(self) -> int | None:
        return self._now.context

    @property
    def takes_images(self) -> bool:
        return takes_images(self._now)

    @property
    def thinking_tokens(self) -> int:
        """Additional tokens of a reply beyond its limit."""
        return getattr(self._now, "thinking_tokens", 0)

    @property
    def tells_intent(self) -> bool:
        """Whether it is asked which tools a task needs."""
        return tells_intent(self._now)

    @property
    def roomier(self) -> bool:
        """Whether the next model has a larger window than this one."""
        return self._next is not None and window_of(self._next).tokens > window_of(self._now).tokens

    def for_run(self) -> CascadeRun:
        """A new position in the list for one run, from here on."""
        return CascadeRun(self.models, self._place)

    def stand_at(self, place: int, name: str) -> None:
        """Continue at the position of an earlier process, if the list is the same."""
        kind = name.partition(":")[0]
        if place < len(self.models) and self.models[place].name.partition(":")[0] == kind:
            self._place = place

    async def complete(
        self,
        messages: Messages,
        *,
        on_text: Callable[[str], None] | None = None,
        options: RequestOptions = NO_OPTIONS,
        **asked: Any,
    ) -> Completion:
        shown = False

        def show(piece: str) -> None:
            nonlocal shown
            shown = shown or bool(piece)
            if on_text is not None:
                on_text(piece)

        if self._next is not None:
            options = replace(options, patience=PATIENCE)
        try:
            heard = None if on_text is None else show
            return await self._now.complete(messages, on_text=heard, options=options, **asked)
        except ModelError as error:
            following = self._next
            if following is None or shown or not self._may_move(error):
                raise
            sentence = f"{self.name} did not answer; {following.name} is asked instead. {error}"
            self._place += 1
            raise MovedError(sentence, self._place, begun=error.begun) from error

    def _may_move(self, error: ModelError) -> bool:
        """Whether another model may answer after this error."""
        return self.roomier if isinstance(error, ContextFullError) else bool(error.why)

    async def aclose(self) -> None:
        """Do nothing: the owner of the models closes them."""


class Cascade(CascadeRun):
    """The list itself. Each request to it begins with the first model and moves down the list; a run has its
    own position (``for_run``)."""

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        tools: bytes | None = None,
        **asked: Any,
    ) -> Completion:
        """As for any backend. Raises ToolsRefusedError if the next model takes tools in another format."""
        way = self.for_run()
        while True:
            try:
                own = grammar if way.takes_grammar else None
                return await way.complete(messages, grammar=own, tools=tools, **asked)
            except MovedError as error:
                if tools is not None and way.tool_view != self.tool_view:
                    raise ToolsRefusedError(str(error)) from error

    async def aclose(self) -> None:
        for ended in await asyncio.gather(*(one.aclose() for one in self.models), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended


class Missing:
    """A model in a list that cannot be asked, for the reason ``why``; its other properties are those of
    ``like``."""

    def __init__(self, name: str, why: str, like: Backend) -> None:
        self.name = name
        self.tool_view, self.takes_grammar, self.context = like.tool_view, like.takes_grammar, like.context
        self._why = why

    async def complete(self, messages: Messages, **asked: object) -> Completion:
        raise ModelError(self._why, "key")

    async def aclose(self) -> None:
        """Do nothing: it has no resources."""


def is_same(one: Backend, other: Backend | None) -> bool:
    """Whether both are the same backend, or positions in the same list."""
    if isinstance(one, CascadeRun) and isinstance(other, CascadeRun):
        return one.models == other.models
    return one is other


def for_run(backend: Backend) -> Backend:
    """The backend for one run."""
    return backend.for_run() if isinstance(backend, CascadeRun) else backend


# A backend that answers from a script: for tests of quoth and for users' tests of their agents. It records
# every request, so that a test can check the prefix law.


Scripted = str | Mapping[str, Any] | Completion
Reply = Callable[[Messages], Scripted | Awaitable[Scripted]]


class ScriptedBackend:
    """Replies in order from a list, or from a function (plain or async) of the messages. A function in the
    list gives its reply in its turn.

    A reply is a text, a Completion, or for native calls a mapping
    ``{"text": "…", "tool_calls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}]}`` (text and id
    may be left out; arguments may also be JSON text, to script invalid JSON). With ``whole`` the list covers
    the conversation from its beginning: a resumed conversation gets the next reply of it."""

    takes_grammar = False
    tool_view = "openai"
    takes_images = True
    context: int | None = None

    def __init__(
        self, replies: Iterable[Scripted | Reply] | Reply, name: str = "scripted", *, whole: bool = False
    ) -> None:
        self.name = name
        self.seen = SentBytes()  # messages.as_json() of each request, in order
        self.tools: list[bytes | None] = []  # the tools of each request
        self.choices: list[ToolChoice] = []  # the tool choice of each request
        # Whether it is asked which tools a task needs; otherwise its replies are for the task alone.
        self.tells_intent = bool(getattr(replies, "intent", False))
        self._reply: Callable[[Messages], Any] = (
            replies if callable(replies) else _one_by_one(list(replies), whole)
        )

    async def complete(
        self,
        messages: Messages,
        *,
        grammar: str | None = None,
        max_tokens: int = 1024,
        on_text: Callable[[str], None] | None = None,
        tools: bytes | None = None,
        tool_choice: ToolChoice = "auto",
        options: RequestOptions = NO_OPTIONS,
    ) -> Completion:
        self.seen.add(messages)
        self.tools.append(tools)
        self.choices.append(tool_choice)
        answer: Any = self._reply(messages)
        answer = answer(messages) if callable(answer) else answer
        completion = _completion(await answer if inspect.isawaitable(answer) else answer, messages.turn)
        if on_text is not None:
            on_text(completion.text)
        return completion

    async def aclose(self) -> None:
        """Do nothing: a script has no resources."""


def _completion(reply: object, turn: int) -> Completion:
    if isinstance(reply, Completion):
        return reply
    if isinstance(reply, str):
        return Completion(reply)
    if not isinstance(reply, Mapping):
        raise ModelError(f"A scripted reply must be text, but the script returned {type(reply).__name__}.")
    calls = [_call(call, f"call_{turn}_{place}") for place, call in enumerate(reply.get("tool_calls", ()))]
    return Completion(str(reply.get("text", "")), calls=tuple(calls))


def _call(call: Any, id: str) -> NativeCall:
    if not isinstance(call, Mapping) or "name" not in call:
        raise ModelError('A scripted tool call is a mapping: {"name": "echo", "arguments": {"text": "hi"}}.')
    arguments = call.get("arguments", {})
    return NativeCall(
        id=str(call.get("id", id)),
        name=str(call["name"]),
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False),
    )


def _one_by_one(replies: list[Scripted | Reply], whole: bool) -> Callable[[Messages], Scripted | Reply]:
    rest = iter(replies)
    begun = not whole

    def reply(messages: Messages) -> Scripted | Reply:
        nonlocal begun
        if not begun:
            begun = True
            said = sum(message["role"] == "assistant" for message in messages)
            next(islice(rest, said, said), None)
        for text in rest:
            return text
        count = number_of(len(replies), "reply", "replies")
        raise ModelError(f"The script is exhausted: it has {count} and one more was asked for.")

    return reply


def load_scripted(path: Path) -> ScriptedBackend:
    """The script in a file: replies separated by lines of ``---``, or a ``.hy`` file defining ``reply``."""
    if not path.is_file():
        raise UsageError(f"There is no script file {path}.")
    replies = _hy_reply(path) if path.suffix == ".hy" else _text_replies(path)
    return ScriptedBackend(replies, name=f"scripted:{path}", whole=True)


def _text_replies(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"Cannot read the script file {path}: {error}.") from error
    if not text.strip():
        raise UsageError(f"The script file {path} is empty; write replies separated by lines of ---.")
    replies = [""]
    for line in text.splitlines(keepends=True):
        if line.rstrip() == "---":
            replies.append("")
        else:
            replies[-1] += line
    if not replies[-1].strip():  # a separator after the last reply begins no new one
        replies.pop()
    return [reply.strip("\n") for reply in replies]


def _hy_reply(path: Path) -> Reply:
    from quoth.tools.hy_loader import load_hy_file  # here: a text script does not need Hy

    reply = getattr(load_hy_file(path), "reply", None)
    if not callable(reply):
        raise UsageError(f"The script {path} must define a function: (defn reply [messages] …).")
    wants_messages = bool(inspect.signature(reply).parameters)

    async def answer(messages: Messages) -> Scripted:
        shown: list[Message] = list(messages)
        arguments = (shown,) if wants_messages else ()
        try:
            # In a thread, because a slow script must not block an interrupt.
            text: Any = await asyncio.to_thread(reply, *arguments)
            return await text if inspect.isawaitable(text) else text  # type: ignore[no-any-return]  # checked by complete
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(f"reply in {path} raised {type(error).__name__}: {error}") from error

    answer.intent = getattr(reply, "intent", False)  # type: ignore[attr-defined]
    return answer
