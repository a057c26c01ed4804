"""``quoth worker``: makes the calls of other machines with the tools of its files.

Knows its options and how the worker's state is told; the work is in agent/worker and tools/remote.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.options import DONE, INTERRUPTED, Commands, Options, at_least_one, option
from quoth.agent.terminal.output import complain, print_json, results_only
from quoth.tools.errors import StoreError, UsageError

if TYPE_CHECKING:
    from quoth.tools.catalog.signing import Key


@dataclass(init=False, repr=False, eq=False)
class WorkerOptions(Options):
    redis: str | None = option(
        "--redis", "URL", "redis://…, rediss://… or @FILE that holds it (default: QUOTH_REDIS)"
    )
    allow: Sequence[str] = option(
        "--allow",
        "TOOL=USER,…",
        "who alone may call a tool; may be repeated (default: everybody)",
        action="append",
        default=(),
    )
    jobs: int = option("--jobs", "N", "calls at once (default: 10)", type=at_least_one, default=10)
    memory: str | None = option(
        "--memory", "MB", "all the memory that the worker may use (default: no limit)"
    )
    health: str | None = option(
        "--health", "PORT", "answer /live and /ready there, on this machine; HOST:PORT elsewhere"
    )
    takeover: int = option(
        "--takeover",
        "SECONDS",
        "after so long others make the calls of a worker that is gone (default: 30)",
        type=at_least_one,
        default=30,
    )


def add(commands: Commands) -> None:
    about = "Make the calls of other machines with the tools of your files, over Redis."
    commands.add("worker", about, WorkerOptions, worker)


def worker(options: WorkerOptions) -> int:
    import asyncio
    import logging

    from quoth.agent.worker.assembly import Files
    from quoth.agent.worker.memory import limit_memory
    from quoth.tools.catalog.connection import checked_prefix, redis_url
    from quoth.tools.catalog.signing import key_path
    from quoth.tools.catalog.store import PREFIX
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if options.without:
        raise UsageError("A worker offers the tools of its files alone; --without is for those that ship.")
    url, prefix = redis_url(options.redis, ca=options.redis_ca), checked_prefix(options.prefix or PREFIX)
    files = Files(
        options.tools,
        options.folder,
        options.policy,
        options.gate,
        options.allow,
        own=(key_path(options.key),),
    )
    files.workspace()  # a folder that there is not is said before a key is made

    @cache
    def store() -> Store:
        return Store(store_path(options.folder))

    logging.getLogger("taskiq").addHandler(logging.NullHandler())  # what matters is told by the worker
    with results_only():
        from quoth.agent.worker.service import Service

        service = Service(
            files,
            url,
            _key(options),
            store,
            _said_as(options.json),
            prefix=prefix,
            jobs=options.jobs,
            takeover=float(options.takeover),
            health=options.health,
        )
        if options.memory is not None:
            limit_memory(options.memory, options.jobs)
        for note in service.notes:
            complain(note)
        try:
            return DONE if asyncio.run(service.run()) else INTERRUPTED
        except StoreError as error:
            raise UsageError(str(error)) from None
        finally:
            store().close()


def _key(options: Options) -> Key:
    """The key that is given; at the default place one is made, if there is none."""
    import os

    from quoth.tools.catalog.signing import VARIABLE, key_path, new_key, read_key

    path = key_path(options.key)
    if options.key or os.environ.get(VARIABLE) or path.exists():
        return read_key(path)
    key = new_key(path)
    complain(f"Made the key {path}. Callers on other machines need a copy of it, which only they may read.")
    return key


def _said_as(as_json: bool) -> Any:
    def say(event: str, sentence: str, **data: Any) -> None:
        if as_json:
            print_json({"event": event, **data})
        else:
            complain(sentence)

    return say
