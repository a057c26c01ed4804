"""An agent's own model as a service for its tools.

Knows backends, and nothing of the loop: a tool's question to the model belongs to no run's conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from quoth.agent.run.budget import BudgetError, Purse
from quoth.agent.run.observation import refused
from quoth.neuro.backends.base import Backend, Completion, MovedError, Usage
from quoth.neuro.backends.cascade import for_run
from quoth.neuro.backends.context_window import message_tokens
from quoth.neuro.backends.messages import Messages
from quoth.tools.errors import ToolError, ToolFailure, UsageError

if TYPE_CHECKING:
    from quoth.agent.trace.tracer import Tracer


class OwnModel:
    """The agent's own model as a ModelProvider. ``backend`` returns it, and is called for each question;
    ``spend`` gets the usage of each answer, for which ``purse`` pays."""

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

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        """The model's answer. Raises ToolError when there is no model or it refuses, ModelError when it
        cannot answer.

        It has no deadline of its own: at the tool's deadline it is cancelled, which stops the generation."""
        try:
            backend = for_run(self._backend())
        except UsageError as error:
            raise ToolError(f"There is no model to ask. {error}") from None
        messages = Messages()
        if system:
            messages.append("system", system)
        messages.append("user", prompt)
        while True:
            try:
                completion = await self._asked(backend, messages, max_tokens)
                break
            except MovedError:  # a cascade's next model answers
                continue
            except BudgetError as error:
                raise ToolFailure("limited", str(error)) from None
        self._spend(completion.usage)
        if completion.finish == "refused":
            raise ToolError(refused(backend.name, completion.text))
        from quoth.neuro.reading.reply import read_reply  # here: few tools ask the model

        return read_reply(completion.text).content

    async def _asked(self, backend: Backend, messages: Messages, max_tokens: int) -> Completion:
        ask = backend.complete if self._tracer is None else partial(self._tracer.request, backend)
        if self._purse is None:
            return await ask(messages, max_tokens=max_tokens)

        def size() -> int:
            return sum(map(message_tokens, messages))

        async with self._purse.paying(backend, size, max_tokens) as payment:
            options, most = self._purse.options(payment), payment.reply_tokens
            completion = await ask(messages, max_tokens=most, options=options)
            self._purse.settle(payment, completion)
        return completion
