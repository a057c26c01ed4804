"""What a model's tokens cost, in US dollars, from the price list of genai-prices, without any request.

Knows names of models, and genai-prices, which is loaded only where cost is bounded, because loading takes
half a second. Embedded and scripted models cost nothing.
"""

from __future__ import annotations

from quoth.neuro.backends.base import Usage
from quoth.tools.errors import UsageError

FREE = ("local", "local-small", "scripted", "ollama", "llamacpp")


def cost_of(model: str, usage: Usage) -> float:
    """The price in US dollars. Raises UsageError when it is unknown."""
    provider, _, name = model.partition(":")
    if provider in FREE or not name:
        return 0.0
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        raise UsageError(
            f"The cost of {model} cannot be bounded without the package genai-prices:"
            " pip install 'quoth[prices]'"
        ) from None
    tokens = Tokens(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
        cache_write_tokens=usage.written_tokens,
    )
    try:
        return float(calc_price(tokens, model_ref=name, provider_id=provider).total_price)
    except LookupError:
        raise UsageError(f"The cost of {model} cannot be bounded: its price is not known.") from None
