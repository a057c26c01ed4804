"""What a request costs by each of the transports that could stand below a back end. Prints an Org table.

python tests/bench/transports.py [--rounds 25] [--requests 40]

Server and way of measuring are those of backends.py: all in turns within one run, CPU of this process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
from collections.abc import Callable
from typing import Any

import httpx
from backends import TASK, Once, measured, server, spread, table


def transports() -> dict[str, Callable[[], httpx.AsyncBaseTransport]]:
    """What may be below a back end: httpx's own transport, which is, and the libraries that are no part of
    quoth only where they are installed."""
    found: dict[str, Callable[[], httpx.AsyncBaseTransport]] = {
        "httpx's own transport": lambda: httpx.AsyncHTTPTransport(verify=False),
    }
    for name, module, kind in (
        ("httpx-aiohttp", "httpx_aiohttp", "AiohttpTransport"),
        ("pyreqwest", "pyreqwest.compatibility.httpx", "HttpxTransport"),
    ):
        with contextlib.suppress(ImportError):
            found[name] = getattr(importlib.import_module(module), kind)
    return found


async def transported(rounds: int, count: int) -> None:
    from quoth.neuro.backends.messages import Messages
    from quoth.neuro.backends.openai import OpenAIBackend

    messages = Messages()
    for _ in range(200):
        messages.append("user", TASK * 15)

    def once(backend: Any) -> Once:
        async def ask() -> float:
            assert (await backend.complete(messages)).text
            return 0.0

        return ask

    with server() as base:
        backends = {
            name: OpenAIBackend("m", f"{base}/whole/v1", "sk-none", transport=make())
            for name, make in transports().items()
        }
        asks = {name: once(backend) for name, backend in backends.items()}
        found: dict[str, list[float]] = {name: [] for name in asks}
        for turn in range(rounds + 1):
            for name, ask in asks.items():
                cpu, _ = await measured(ask, count)
                if turn:  # the first makes everything warm
                    found[name].append(cpu * 1000)
        for backend in backends.values():
            await backend._transport.aclose()
        own = next(iter(found.values()))
        table(
            ["a request of 200 messages by", "ms of CPU (least-most)", "to the first"],
            [
                [name, spread(took), spread([one / mine for one, mine in zip(took, own, strict=True)])]
                for name, took in found.items()
            ],
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--requests", type=int, default=40)
    given = parser.parse_args()
    asyncio.run(transported(given.rounds, given.requests))


if __name__ == "__main__":
    main()
