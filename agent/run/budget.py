"""The budget of a run: steps, calls, tokens, US dollars and seconds, a share of which can be lent to a
sub-agent and returned.

A share is taken before the sub-agent begins, and the maximum of a request before it is sent, so that parallel
work never spends more than the budget. The reply settles a request at the model's configured prices or those
of genai-prices.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import field, replace
from typing import Any, Literal, NamedTuple, Self

from quoth.neuro.backends.base import (
    NO_OPTIONS,
    Backend,
    Completion,
    ModelError,
    RequestOptions,
    Usage,
    tokens_in,
)
from quoth.neuro.backends.providers import NONE, Provider, find_provider
from quoth.neuro.backends.select import CascadeRun
from quoth.tools.call.context import PausableClock
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.installing import install_extra
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.policy.spending import NO_SPENDING, NOTHING, NoRoomError, Spending
from quoth.tools.text import money

# The minimum of steps for a sub-agent; with fewer it waits while others may return some.
ENOUGH = 4
BOUNDS = ("tokens", "cost", "seconds")  # the bounds of a run besides steps and calls


class SpentError(Exception):
    """Nothing is left to lend, and no sub-agent is running that could return anything."""


@dataclass
class Budget:
    """The bounds of a run, and what the run and its sub-agents have spent: steps, calls, tokens (in and out),
    cost (US dollars) and seconds, not counting the time while a person is asked. None means unbounded.

    ``kept`` steps are never lent, because a run needs one for its answer."""

    steps: int
    calls: int
    kept: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    steps_taken: int = 0
    calls_taken: int = 0
    tokens_taken: int = 0
    cost_taken: float = 0.0

    def __post_init__(self) -> None:
        self.clock = PausableClock()  # pauses while a person is asked
        self.earlier = 0.0  # seconds spent in earlier processes
        self._begun = time.monotonic()
        self._borrowers = 0
        self._reserved = 0  # requests in flight
        self._returned = asyncio.Event()

    @classmethod
    def of(cls, limits: Any, kept: int = 0) -> Self:
        """The budget of a run with these RunLimits."""
        return cls(limits.steps, limits.calls, kept, limits.tokens, limits.cost, limits.seconds)

    @property
    def steps_left(self) -> int:
        return self.steps - self.steps_taken

    @property
    def calls_left(self) -> int:
        return self.calls - self.calls_taken

    @property
    def tokens_left(self) -> float:
        return math.inf if self.tokens is None else self.tokens - self.tokens_taken

    @property
    def cost_left(self) -> float:
        return math.inf if self.cost is None else self.cost - self.cost_taken

    @property
    def seconds_taken(self) -> float:
        return self.earlier + time.monotonic() - self._begun - self.clock.held

    @property
    def seconds_left(self) -> float:
        return math.inf if self.seconds is None else self.seconds - self.seconds_taken

    @property
    def bounded(self) -> tuple[str, ...]:
        """The names in BOUNDS that have a bound."""
        return tuple(name for name in BOUNDS if getattr(self, name) is not None)

    @property
    def bounds(self) -> dict[str, float | None]:
        """The bounds, by the names of RunLimits."""
        return {name: getattr(self, name) for name in ("steps", "calls", *BOUNDS)}

    def left(self) -> Mapping[str, float]:
        """The rest of each bounded amount."""
        names = ("steps", "calls", *self.bounded)
        return {name: max(0, round(getattr(self, f"{name}_left"), 9)) for name in names}

    # Requests

    def reserve(self, tokens: int, cost: float) -> None:
        """Count the maximum of a request as spent, until ``settle`` corrects it."""
        self._reserved += 1
        self.take(tokens, cost)

    def settle(self, tokens: int, cost: float) -> None:
        """Add the difference between a finished request and its reservation; it may be negative."""
        self._reserved -= 1
        self.take(tokens, cost)
        self._returned.set()

    def take(self, tokens: int, cost: float, earlier: float = 0.0) -> None:
        """Count tokens and cost as spent, and the seconds of an ``earlier`` process."""
        self.tokens_taken += tokens
        self.cost_taken += cost
        self.earlier += earlier

    async def returned(self) -> bool:
        """Wait until a request in flight is settled; false if there is none."""
        if not self._reserved:
            return False
        self._returned.clear()
        await self._returned.wait()
        return True

    # Sub-agents

    @property
    def _lendable(self) -> int:
        return self.steps_left - self.kept

    @property
    def _spent(self) -> bool:
        return self._lendable <= 0 or self.tokens_left <= 0 or self.cost_left <= 0

    @asynccontextmanager
    async def lend(
        self, share: Budget, steps: int | None = None, calls: int | None = None
    ) -> AsyncIterator[None]:
        """Lend steps and calls to ``share`` for the time of the context, by default half of the rest, and
        half of the tokens and US dollars. Unused ones are returned. Both have the same remaining time. Raises
        SpentError."""
        enough = ENOUGH if steps is None else min(ENOUGH, steps)
        while (self._lendable < enough or self._spent) and self._borrowers:
            self._returned.clear()
            await self._returned.wait()
        if self._spent:
            raise SpentError
        lent_steps = min(self._lendable, max(enough, _half(self._lendable)) if steps is None else steps)
        lent_calls = min(self.calls_left, _half(self.calls_left) if calls is None else max(0, calls))
        self.steps_taken += lent_steps
        self.calls_taken += lent_calls
        self._borrowers += 1
        share.steps = share.steps_taken + lent_steps
        share.calls = share.calls_taken + lent_calls
        lent_tokens, lent_cost = 0, 0.0
        if self.tokens is not None:
            lent_tokens = _half(self.tokens - self.tokens_taken)
            share.tokens = lent_tokens
        if self.cost is not None:
            lent_cost = self.cost_left / 2
            share.cost = lent_cost
        self.take(lent_tokens, lent_cost)
        share.seconds, share.earlier = self.seconds, self.earlier
        share.clock, share._begun = self.clock, self._begun
        try:
            yield
        finally:
            self.steps_taken -= max(0, share.steps_left)
            self.calls_taken -= max(0, share.calls_left)
            self.take(share.tokens_taken - lent_tokens, share.cost_taken - lent_cost)
            self._borrowers -= 1
            self._returned.set()


def _half(number: int) -> int:
    return (number + 1) // 2


LEAST_REPLY = 128  # tokens; a shorter reply is not worth a request, unless the caller wants a shorter one


Bound = Literal["tokens", "cost", "seconds", "day"]


class BudgetError(ModelError):
    """A request was not sent, or was abandoned, because it exceeds the budget. ``bound`` is the amount of the
    run that is used up, or its user's ``day``."""

    ends_with = "budget"

    def __init__(self, said: str, bound: Bound) -> None:
        super().__init__(said)
        self.bound = bound


@dataclass
class Payment:
    """The reservation for one request: ``tokens`` and ``cost`` (US dollars), for an input of ``size`` tokens
    and a reply of at most ``reply_tokens``. ``most`` is the maximum with thoughts, if it is lower than usual.
    ``place`` is its row in the day's count. ``took`` is its real usage, once known. ``requests`` is the
    number of requests that it counts as."""

    model: str
    size: int
    reply_tokens: int
    most: int | None = None
    tokens: int = 0
    cost: float = 0.0
    requests: int = 1
    place: int | None = None
    took: tuple[int, float] | None = None
    heard: bool = False  # whether a part of the reply has arrived

    def record(self, wanted: int, told: Usage) -> dict[str, Any]:
        """The data that the transcript keeps besides the reply and its reported usage (``told``); ``wanted``
        is the wanted maximum of reply tokens."""
        tokens, cost = self.took or (0, 0.0)
        kept = {
            "cost": cost or None,
            "tokens": tokens if tokens != told.tokens else None,
            "limit": self.reply_tokens if self.reply_tokens < wanted else None,
        }
        return {name: value for name, value in kept.items() if value is not None}

    def hearing(self, on_text: Callable[[str], None] | None) -> Callable[[str], None] | None:
        """``on_text``, but also sets ``heard``."""
        if on_text is None:
            return None

        def hear(piece: str) -> None:
            self.heard = True
            on_text(piece)

        return hear


@dataclass(frozen=True)
class Funds:
    """The daily budgets of a host's users for models, and its configured providers: their prices are known by
    their kind."""

    daily: Spending = NO_SPENDING
    providers: Mapping[str, Provider] = field(default_factory=dict)

    def cost(self, model: str, usage: Usage) -> float:
        """The cost of a usage in US dollars. Raises UsageError when the model's price is unknown."""
        return cost_of(model, usage, self.providers)


NO_FUNDS = Funds()


class Purse(NamedTuple):
    """The budget of a run, and the daily budget of its user."""

    budget: Budget
    funds: Funds = NO_FUNDS
    user: str = ""

    @property
    def priced(self) -> bool:
        """Whether costs are bounded, so that prices are needed."""
        return self.budget.cost is not None or "cost" in self.funds.daily.bounds(self.user)

    def require_price(self, backend: Backend) -> None:
        """Raise UsageError if the cost is bounded and the price of a model that may be asked is unknown."""
        if self.priced:
            for one in backend.models if isinstance(backend, CascadeRun) else (backend,):
                self.funds.cost(one.name, Usage())

    def spent(self) -> dict[str, Any]:
        """The part of the budget that was spent."""
        budget = self.budget
        cost = {"cost": budget.cost_taken} if self.priced else {}
        return {"tokens": budget.tokens_taken, **cost, "seconds": round(budget.seconds_taken, 3)}

    def left(self) -> dict[str, Any]:
        """The rest of each bounded amount; of the day's, under ``today``."""
        left: dict[str, Any] = dict(self.budget.left())
        with suppress(StoreError):  # then the day's rest is unknown
            if today := self.funds.daily.left(self.user):
                left["today"] = today
        return left

    @asynccontextmanager
    async def paying(self, backend: Backend, size: Callable[[], int], wanted: int) -> AsyncIterator[Payment]:
        """Reserve a request of ``size`` tokens to ``backend`` for the time of the context, with a reply of up
        to ``wanted`` tokens, or of fewer if the budget allows no more. The body calls ``settle``. Without it,
        a request that failed before any reply counts nothing, and any other counts its whole reservation.
        Raises BudgetError if the request exceeds the budget, or the time of the run is over."""
        payment = await self._reserved(backend, size, wanted)
        left = self.budget.seconds_left
        try:
            async with asyncio.timeout(None if left == math.inf else left) as deadline:
                if payment.place is not None:
                    await self._taken(payment)
                yield payment
        except TimeoutError as error:
            if not deadline.expired():
                raise
            raise self._too_late() from error
        except ModelError as error:
            if self.budget.seconds_left <= 0:  # the backend, which knows the deadline, stopped first
                raise self._too_late() from error
            if not (payment.heard or error.begun):
                payment.took = (0, 0.0)
                payment.requests = 0
            raise
        finally:
            tokens, cost = payment.took or (payment.tokens, payment.cost)
            more = (tokens - payment.tokens, cost - payment.cost)
            self.budget.settle(*more)
            if payment.place is not None and payment.took is not None:
                self.funds.daily.settle(self.user, payment.place, *more, payment.requests - 1)

    def options(self, payment: Payment, options: RequestOptions = NO_OPTIONS) -> RequestOptions:
        """The options of a request, with its maximum of tokens and seconds."""
        left = self.budget.seconds_left
        if left != math.inf:
            options = replace(options, seconds=min(left, options.seconds or left))
        return options if payment.most is None else replace(options, most_tokens=payment.most)

    def settle(self, payment: Payment, completion: Completion) -> None:
        """Count the usage of a request as its model reports it; estimate the numbers that are missing."""
        used = completion.usage
        if payment.size and not (used.input_tokens and used.output_tokens):
            calls = sum(tokens_in(call["name"]) + tokens_in(call["arguments"]) for call in completion.calls)
            said = used.output_tokens or tokens_in(completion.text) + calls
            used = replace(used, input_tokens=used.input_tokens or payment.size, output_tokens=said)
        payment.took = (used.tokens, self.funds.cost(payment.model, used) if self.priced else 0.0)

    def recall(self, model: str, usage: Usage, kept: Mapping[str, Any], *, live: bool) -> None:
        """Count a request of an earlier process. If that one did not bound the cost and this one does,
        compute the cost now."""
        if (cost := kept.get("cost")) is None:
            cost = self.funds.cost(model, usage) if live and self.budget.cost is not None else 0.0
        self.budget.take(kept.get("tokens", usage.tokens), cost, usage.seconds)

    async def _reserved(self, backend: Backend, size: Callable[[], int], wanted: int) -> Payment:
        budget, bounds, model = self.budget, self.funds.daily.bounds(self.user), backend.name
        if not (budget.bounded or bounds):
            budget.reserve(0, 0.0)
            return Payment(model, 0, wanted)
        if budget.seconds_left <= 0:
            raise self._too_late()
        asked, before, least = size(), -1, min(wanted, LEAST_REPLY)
        whole = wanted + getattr(backend, "thinking_tokens", 0)
        while True:
            today = self.funds.daily.left(self.user)
            most = self._payable(model, asked, whole, today)
            if most < whole and await budget.returned():
                continue  # a settled request has returned a part
            if most < least:
                raise self._too_little(model, asked, least, today)
            limit = most if most < whole else None
            tokens, cost = asked + most, self._price(model, asked, most)
            payment = Payment(model, asked, min(wanted, most), limit, tokens, cost)
            try:
                if bounds:
                    payment.place = self.funds.daily.reserve(self.user, tokens, cost)
            except NoRoomError as error:
                if most == before:
                    raise BudgetError(str(error), "day") from None
                before = most  # another process may have taken it
                continue
            budget.reserve(tokens, cost)
            return payment

    async def _taken(self, payment: Payment) -> None:
        """Wait until the reservation is on disk. If that fails, the request is not sent."""
        try:
            await self.funds.daily.on_disk()
        except BaseException:
            payment.took, payment.requests = (0, 0.0), 0
            raise

    def _payable(self, model: str, size: int, wanted: int, today: Mapping[str, float]) -> int:
        """The longest affordable reply, up to ``wanted`` tokens; below 0 if even the input is too
        expensive."""
        tokens = min(self.budget.tokens_left, today.get("tokens", math.inf))
        cost = min(self.budget.cost_left, today.get("cost", math.inf)) + NOTHING
        most = int(min(wanted, tokens - size))
        if (whole := self._price(model, size, wanted)) > cost:
            start = self._price(model, size, 0)
            a_token = (whole - start) / wanted
            most = min(most, math.floor((cost - start) / a_token) if a_token else -1)
        return most

    def _price(self, model: str, input_tokens: int, output_tokens: int) -> float:
        """The maximum cost of a request: all of its input is counted as written to the provider's cache."""
        if not self.priced:
            return 0.0
        try:
            return self.funds.cost(model, Usage(input_tokens, output_tokens, written_tokens=input_tokens))
        except UsageError as error:
            raise BudgetError(str(error), "cost") from None

    def _too_late(self) -> BudgetError:
        said = f"The run was stopped: its time of {self.budget.seconds:g} s is over."
        return BudgetError(said, "seconds")

    def _too_little(self, model: str, size: int, reply: int, today: Mapping[str, float]) -> BudgetError:
        """Why a request with a reply of ``reply`` tokens exceeds the budget."""
        budget, tokens = self.budget, size + reply
        cost = self._price(model, size, reply)
        rest_of_day = f"the daily budget of {self.user or 'this user'}"
        bounds: list[tuple[float, float, float | None, str, Callable[[float], str], Bound]] = [
            (tokens, budget.tokens_left, budget.tokens, " tokens", "{:,.0f}".format, "tokens"),
            (cost, budget.cost_left, budget.cost, "", money, "cost"),
            (tokens, today.get("tokens", math.inf), None, " tokens", "{:,.0f}".format, "day"),
            (cost, today.get("cost", math.inf), None, "", money, "day"),
        ]
        known = [bound for bound in bounds if bound[1] != math.inf]
        needed, left, whole, noun, told, name = next((one for one in known if one[0] > one[1]), known[-1])
        of = rest_of_day if whole is None else told(whole)
        said = (
            f"The run was stopped before a request that may take {told(needed)}{noun}:"
            f" {told(max(0, left))} of {of} are left."
        )
        return BudgetError(said, name)


def price_of(model: str, usage: Usage) -> float | None:
    """The cost in US dollars; 0 for a scripted model, and None where the price is unknown."""
    try:
        return 0.0 if model.startswith("scripted:") else cost_of(model, usage)
    except UsageError:
        return None


def cost_of(model: str, usage: Usage, configured: Mapping[str, Provider] = NONE) -> float:
    """The cost in US dollars; ``configured`` are providers besides those of the table. Raises UsageError when
    the price is unknown."""
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
    cached = min(usage.cached_tokens, usage.input_tokens)  # some servers count differently
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
