"""The models of one agent: its own, chosen at the first use, and others that a tool names. It closes the
models that it opened.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

from quoth.agent.config.config import NO_CONFIG, Config
from quoth.agent.run.budget import BudgetError, Purse
from quoth.agent.run.options import ModelOptions
from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Backend,
    Completion,
    MovedError,
    RequestOptions,
    Usage,
    as_backend,
    message_tokens,
)
from quoth.neuro.backends.messages import Messages
from quoth.neuro.backends.providers import NO_SETTINGS, ServerSettings
from quoth.neuro.backends.select import choose_backend, for_run, is_same, provider_of
from quoth.tools.errors import ToolError, ToolFailure, UsageError
from quoth.tools.registry.table import ToolTable
from quoth.tools.storage.secrets import beside_loop

if TYPE_CHECKING:
    from quoth.agent.trace.tracer import Tracer
    from quoth.neuro.prompt.dialects import Dialect


class Models:
    """The agent's model and its other models. ``belt``: how it sees its tools (see ToolOptions). ``chosen``:
    the dialect of its conversations, None until it is chosen. ``config`` has the values that the options
    leave open."""

    def __init__(
        self,
        options: ModelOptions,
        config: Config = NO_CONFIG,
        *,
        belt: Literal["full", "few", "search"] | None = None,
    ) -> None:
        self._config = config
        self.options = options
        self.belt = belt
        self.chosen: Dialect | None = None
        given = None if isinstance(options.model, str) else options.model
        self._given = given is not None
        self._own: Backend | None = None if given is None else as_backend(given)
        self._others: dict[str, Backend] = {}
        self._variants: dict[ServerSettings, Backend] = {}  # its own model with overridden options of runs
        self._closed = False
        self._opening = asyncio.Lock()
        self._like: Models | None = None  # the Models whose own model these share
        self._before: Models | None = None  # the Models that these replaced; closed with these

    @property
    def name(self) -> str:
        """The spec of the agent's model, or the name of its Backend; empty until it is chosen."""
        if isinstance(self.options.model, str):
            return self.options.model
        return "" if self._own is None else self._own.name

    def backend(self) -> Backend:
        """The agent's own model, chosen at the first use. Raises UsageError when no model is available."""
        self._require_open()
        if self._own is None:
            self._own = self._chosen(self.options) if self._like is None else self._like.backend()
        return self._own

    async def open(self) -> None:
        """Choose the agent's own model in a thread: its key may be in a keyring that waits for a person, and
        its modules are large. Raises UsageError."""
        if self._like is not None:
            await self._like.open()
        async with self._opening:
            if self._own is None:
                await beside_loop(self.backend)

    def _chosen(self, options: ModelOptions) -> Backend:
        from quoth.agent.terminal.progress import weights_progress

        spec = options.model if isinstance(options.model, str) else None
        return choose_backend(spec, options.settings, progress=weights_progress(), config=self._config)

    def for_run(self) -> Callable[[], Backend]:
        """A function that returns the agent's own model for one run, opened at the first use."""
        return cache(self._for_run)

    def _for_run(self) -> Backend:
        return for_run(self.backend())

    def require(self, spec: str) -> None:
        """Raise UsageError if the provider of a spec is unknown."""
        provider_of(spec, self._config)

    def other(self, spec: str) -> Backend:
        """The model of another spec, opened once. Raises UsageError."""
        self._require_open()
        if spec not in self._others:
            same = spec.partition(":")[0] == self.name.partition(":")[0]
            settings = self.options.settings if same else NO_SETTINGS
            self._others[spec] = choose_backend(spec, settings, config=self._config)
        return self._others[spec]

    @property
    def instructions(self) -> str:
        """The instructions for the model before any task."""
        said = self.options.instructions
        return (self._config.instructions if said is None else said) or ""

    @property
    def request_options(self) -> RequestOptions | None:
        """The options of each request besides the conversation."""
        said = self.options.temperature
        warm = self._config.temperature if said is None else said
        return None if warm is None else RequestOptions(temperature=warm)

    def overridden(self, overrides: Mapping[str, Any]) -> Models:
        """These models with the options of one run. Another key or time-out needs its own model, which is
        closed with these."""
        if not overrides:
            return self
        made = Models(replace(self.options, **overrides), self._config, belt=self.belt)
        made.chosen, made._others, made._variants = self.chosen, self._others, self._variants
        if {"api_key", "timeout"} & overrides.keys():
            made._own = made._own_for(made.options)
        else:
            made._own, made._like = self._own, self
        return made

    def with_model(self, spec: str) -> Models:
        """The models of an agent that changes its own model to ``spec``. The server and the key of the
        options are kept only if the provider is the same."""
        options = replace(self.options, model=spec, dialect=None)
        if spec.partition(":")[0] != self.name.partition(":")[0]:
            options = replace(options, base_url=None, api_key=None)
        made = Models(options, self._config, belt=self.belt)
        made._before = self
        return made

    def with_dialect(self, dialect: str | None) -> Models:
        """These models, called in another notation."""
        made = self.overridden({"dialect": dialect})
        made.chosen, made._before = None, self
        return made

    def _own_for(self, options: ModelOptions) -> Backend:
        settings = options.settings
        if settings not in self._variants:
            self._variants[settings] = self._chosen(options)
        return self._variants[settings]

    def must_act(self, backend: Backend) -> bool:
        """Whether a run with this model must call a tool before it answers."""
        wanted = self.options.must_act
        return backend.takes_grammar if wanted is None else wanted

    @property
    def search(self) -> bool:
        """Whether the agent's model searches its tools instead of seeing them all."""
        return self.belt == "search"

    def few_of(self, backend: Backend, dialect: Dialect, table: ToolTable, task: str) -> tuple[str, ...]:
        """The few tools that a model sees in full for a task; empty if it sees all of them. By default a
        model that must act sees few."""
        if not dialect.takes_few or not (
            self.belt == "few" or (self.belt is None and self.must_act(backend))
        ):
            return ()
        from quoth.agent.run.few import fitting  # here: a large model needs no choice

        return fitting(table, task)

    @property
    def forces(self) -> bool:
        """Whether ``must_act`` depends on the model."""
        return self.options.must_act is None

    def dialect(self) -> tuple[Dialect, str]:
        """The dialect of the agent's model, and a note for a person if it has just been chosen. Raises
        UsageError for an unknown dialect, or one that does not fit the model or the tool list."""
        note = ""
        if self.chosen is None:
            self.chosen, note = self._dialect_for(
                self.backend(), self.options.dialect or self._config.dialect
            )
        return self.chosen, note

    def dialect_of(self, backend: Backend, table: ToolTable, *, searched: bool) -> tuple[Dialect, bool]:
        """The dialect of a sub-agent's model for the tools in ``table``, and whether the model searches them.
        It is the agent's dialect if the model is the same and these tools can be called in it."""
        from quoth.neuro.prompt.dialects import CALL_FORM  # here: a call of a person has no dialect

        search = self.search and searched
        for wanted in (self.options.dialect if is_same(backend, self._own) else None, None):
            with contextlib.suppress(UsageError):
                dialect, _ = self._dialect_for(backend, wanted, search=search, tools=len(table.shown) > 0)
                dialect.opening(table, search=search)  # raises if no tool can be called in it
                return dialect, search
        return CALL_FORM, False

    def _dialect_for(
        self, backend: Backend, wanted: str | None, *, search: bool | None = None, tools: bool = True
    ) -> tuple[Dialect, str]:
        from quoth.neuro.prompt.dialects import choose_dialect

        takes_tools = bool(backend.tool_view) and tools
        searched = self.search if search is None else search
        return choose_dialect(
            backend.name,
            wanted,
            takes_tools=takes_tools,
            search=searched,
            configured=self._config.providers,
        )

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("This agent is closed.")

    async def aclose(self) -> None:
        """Close the models that this object opened; a Backend of the caller stays open."""
        self._closed = True
        opened = [*self._others.values(), *self._variants.values()]
        if self._own is not None and not self._given and self._like is None:
            opened.append(self._own)
        if self._before is not None:
            await self._before.aclose()
        for ended in await asyncio.gather(*(one.aclose() for one in opened), return_exceptions=True):
            if isinstance(ended, BaseException):
                raise ended


# An agent's own model as a service for its tools. A tool's question to the model is not part of the
# conversation of a run.


class OwnModel:
    """The agent's own model as a ModelProvider. ``backend`` returns it and is called for each question.
    ``spend`` gets the usage of each answer, and ``purse`` pays for it."""

    def __init__(
        self,
        backend: Callable[[], Backend],
        spend: Callable[[Usage], None] = lambda usage: None,
        purse: Purse | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self._backend = backend
        self._spend = spend
        self._purse = purse
        self._tracer = tracer

    async def complete(
        self, prompt: str, *, system: str = "", max_tokens: int = 1024, grammar: str | None = None
    ) -> str:
        """The model's answer to a prompt, as ``answer`` gives it."""
        messages = Messages()
        if system:
            messages.append("system", system)
        messages.append("user", prompt)
        return await self.answer(messages, max_tokens, grammar=grammar)

    async def answer(
        self,
        messages: Messages,
        max_tokens: int,
        options: RequestOptions = NO_OPTIONS,
        grammar: str | None = None,
    ) -> str:
        """The model's answer to a conversation. Raises ToolError if there is no model or it refuses, and
        ModelError if it fails.

        The deadline is the caller's: it cancels this method, which stops the generation."""
        try:
            backend = for_run(self._backend())
        except UsageError as error:
            raise ToolError(f"There is no model to ask. {error}") from None
        while True:
            try:
                completion = await self._asked(backend, messages, max_tokens, options, grammar)
                break
            except MovedError:  # the next model of the cascade answers
                continue
            except BudgetError as error:
                raise ToolFailure("limited", str(error)) from None
        self._spend(completion.usage)
        if completion.finish == "refused":
            from quoth.agent.run.observation import refused  # here: it is rare

            raise ToolError(refused(backend.name, completion.text))
        from quoth.neuro.reading.reply import read_reply  # here: few tools ask the model

        return read_reply(completion.text).content

    async def _asked(
        self,
        backend: Backend,
        messages: Messages,
        max_tokens: int,
        options: RequestOptions,
        grammar: str | None,
    ) -> Completion:
        ask = backend.complete if self._tracer is None else partial(self._tracer.request, backend)
        more: dict[str, Any] = {"grammar": grammar} if grammar and backend.takes_grammar else {}
        if self._purse is None:
            return await ask(messages, max_tokens=max_tokens, options=options, **more)

        def size() -> int:
            return sum(map(message_tokens, messages))

        async with self._purse.paying(backend, size, max_tokens) as payment:
            options, most = self._purse.options(payment, options), payment.reply_tokens
            completion = await ask(messages, max_tokens=most, options=options, **more)
            self._purse.settle(payment, completion)
        return completion
