"""What an agent gives its tools: the services of its host, and its own model where the host gave none.

Knows backends, and nothing of the loop: a tool's question to the model is no part of any run's conversation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quoth.neuro.backends.base import Backend, Usage
from quoth.neuro.backends.messages import Messages
from quoth.tools.call.services import NO_MODEL, Services
from quoth.tools.errors import ToolError, UsageError


class OwnModel:
    """The agent's own model as a ModelProvider. ``backend`` chooses it, at the first question; ``spend`` is
    told what each answer cost."""

    def __init__(
        self, backend: Callable[[], Backend], spend: Callable[[Usage], None] = lambda usage: None
    ) -> None:
        self._backend = backend
        self._spend = spend

    async def complete(self, prompt: str, *, system: str = "", max_tokens: int = 1024) -> str:
        """The model's answer. Raises ToolError when there is no model, ModelError when it cannot answer.

        The caller's deadline is the tool's own: past it this is cancelled, which stops the generation."""
        try:
            backend = self._backend()
        except UsageError as error:
            raise ToolError(f"There is no model to ask. {error}") from None
        messages = Messages()
        if system:
            messages.append("system", system)
        messages.append("user", prompt)
        completion = await backend.complete(messages, max_tokens=max_tokens)
        self._spend(completion.usage)
        return completion.text


def with_own_model(services: Services, backend: Callable[[], Backend]) -> Services:
    """``services``, with the agent's own model unless they hold one."""
    return replace(services, model=OwnModel(backend)) if services.model is NO_MODEL else services
