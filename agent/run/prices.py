"""What a model's tokens cost, in US dollars, from the price list of genai-prices, without any request.

Knows names of models, and genai-prices, which is loaded only where cost is bounded, because loading takes
half a second. The table of providers says who asks for money.
"""

from __future__ import annotations

from collections.abc import Mapping

from quoth.neuro.backends.base import Usage
from quoth.neuro.backends.providers import NONE, Provider, find_provider
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra


def cost_of(model: str, usage: Usage, configured: Mapping[str, Provider] = NONE) -> float:
    """The price in US dollars; ``configured`` are providers beside those of the table. Raises UsageError when
    it is unknown."""
    kind, _, name = model.partition(":")
    provider = find_provider(kind, configured)
    if provider is not None and provider.free:
        return 0.0
    unknown = f"The cost of {model} cannot be bounded: its price is not known; bound its tokens instead."
    if provider is None or provider.price is None or not name:
        raise UsageError(unknown)
    try:
        from genai_prices import Usage as Tokens
        from genai_prices import calc_price
    except ImportError:
        raise UsageError(
            f"The cost of {model} cannot be bounded without the package genai-prices:"
            f" {install_extra('prices')}"
        ) from None
    cached = min(usage.cached_tokens, usage.input_tokens)  # some servers count otherwise
    tokens = Tokens(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=cached,
        cache_write_tokens=min(usage.written_tokens, usage.input_tokens - cached),
    )
    try:
        return float(calc_price(tokens, model_ref=name, provider_id=provider.price).total_price)
    except LookupError:
        raise UsageError(unknown) from None
