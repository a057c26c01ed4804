"""``quoth worker``: makes the calls of other machines with the tools of its files.

Knows its options and how the worker's state is told; the work is in agent/worker and tools/remote.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import begin_to_serve, policy_options
from quoth.agent.cli.options import DONE, INTERRUPTED, Commands, OfferOptions, Options, option
from quoth.agent.settings import at_least_one
from quoth.agent.terminal.output import complain, print_json, results_only
from quoth.tools.errors import StoreError, UsageError

if TYPE_CHECKING:
    from quoth.tools.catalog.signing import Key


@dataclass(init=False, repr=False, eq=False)
class WorkerOptions(OfferOptions):
    groups = f"{OfferOptions.groups} --shared --trace --trace-content"
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
    from pathlib import Path

    from quoth.agent.trace.opening import open_tracer
    from quoth.agent.worker.assembly import Files, Offer, door_of
    from quoth.agent.worker.memory import limit_memory
    from quoth.agent.worker.reload import Reloader
    from quoth.tools.call.context import ToolContext
    from quoth.tools.catalog.connection import checked_prefix, needed, redis_url
    from quoth.tools.catalog.payload import ForeignCatalog
    from quoth.tools.catalog.signing import key_path
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if options.remote:
        raise UsageError("A worker is told of its Redis with --redis URL; --remote is for those who call it.")
    if options.without:
        raise UsageError("A worker offers the tools of its files alone; --without is for those that ship.")
    options.project.require_rules()
    url, prefix = redis_url(options.redis, ca=options.redis_ca), checked_prefix(options.key_prefix)
    needed("taskiq", "taskiq_redis")
    secret = (key_path(options.key), *url.files)
    files = Files(
        *(options.tools, options.folder, options.policy, options.gate, options.allow, secret),
        gate_command=options.gate_command,
    )
    context = ToolContext(files.workspace())

    @cache
    def store() -> Store:
        return Store(store_path(options.folder))

    logging.getLogger("taskiq").addHandler(logging.NullHandler())  # what matters is told by the worker
    with results_only():
        offers: Reloader[Offer] = Reloader(files.offer, files.paths())
        from quoth.agent.worker.service import Service

        for note in offers.made.policy.notes:
            complain(note)
        key, shared = _key(options), policy_options(options).open_shared()
        tracer = open_tracer(options.trace and Path(options.trace), content=options.trace_content)
        if options.memory is not None:
            limit_memory(options.memory, options.jobs)
        service = Service(
            offers,
            lambda offer: door_of(offer, store, shared, tracer),
            context,
            url,
            key,
            _said_as(options.json),
            prefix=prefix,
            jobs=options.jobs,
            takeover=float(options.takeover),
            health=options.health,
        )
        begin_to_serve()
        try:
            return DONE if asyncio.run(service.run()) else INTERRUPTED
        except ForeignCatalog as error:
            raise UsageError(
                f"{error} Give this worker the key of the others with --key FILE, or a --prefix of its own."
            ) from None
        except StoreError as error:
            raise UsageError(str(error)) from None
        finally:
            store().close()


def _key(options: Options) -> Key:
    """The key that is given; at the default place one is made, if there is none."""
    import os

    from quoth.tools.catalog.signing import VARIABLE, key_path, new_key, read_key
    from quoth.tools.storage.missing import is_missing

    path = key_path(options.key)
    if options.key or os.environ.get(VARIABLE) or not is_missing(path):
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
