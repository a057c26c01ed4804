"""The commands ``quoth worker`` and ``catalog``: offer tools to other machines over Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.common import policy_options, show_result
from quoth.agent.cli.options import (
    DONE,
    INTERRUPTED,
    Actions,
    CatalogOptions,
    OfferOptions,
    Options,
    argument,
    option,
)
from quoth.agent.run.crowd import search_seldom
from quoth.agent.settings import at_least_one
from quoth.agent.terminal.output import complain, print_json, print_line, results_only
from quoth.agent.worker.assembly import Files, Offer, Reloader, door_of
from quoth.tools.catalog.connection import (
    RedisUrl,
    check_sync,
    checked_prefix,
    connected,
    needed,
    redis_url,
    sync_client,
    told,
)
from quoth.tools.catalog.payload import (
    ForeignCatalog,
    Key,
    build_catalog_payload,
    new_key,
    read_key,
)
from quoth.tools.catalog.store import (
    changes,
    followed,
    kept_versions,
    load_catalog,
    load_version,
    never,
    publish_catalog,
)
from quoth.tools.errors import StoreError, UsageError
from quoth.tools.storage.paths import CATALOG_KEY, catalog_key_path

if TYPE_CHECKING:
    from quoth.tools.registry.table import ToolTable


class WorkerOptions(OfferOptions):
    groups = f"policy {OfferOptions.groups} --shared --trace --trace-content"
    jobs: int = option(
        "--jobs", "N", "maximum number of calls at the same time (default: 10)", type=at_least_one, default=10
    )
    memory: str | None = option(
        "--memory", "MB", "maximum memory of the worker in megabytes (default: no limit)"
    )
    health: str | None = option(
        "--health", "PORT", "serve /live and /ready at this port of 127.0.0.1, or at HOST:PORT"
    )
    takeover: int = option(
        "--takeover",
        "SECONDS",
        "other workers take the calls of a worker that was silent for N seconds (default: 30)",
        type=at_least_one,
        default=30,
    )


def worker(options: WorkerOptions) -> int:
    import asyncio
    import logging
    from pathlib import Path

    from quoth.agent.trace.opening import open_tracer
    from quoth.tools.call.context import ToolContext
    from quoth.tools.storage.database import Store
    from quoth.tools.storage.paths import store_path

    if options.remote:
        raise UsageError("Give a worker its Redis server with --redis URL; --remote is for callers.")
    if options.without:
        raise UsageError(
            "A worker offers only the tools of its files; --without is for tools that ship with quoth."
        )
    options.project.require_rules()
    url, prefix = redis_url(options.redis, ca=options.redis_ca), checked_prefix(options.key_prefix)
    needed("taskiq", "taskiq_redis")
    secret = (catalog_key_path(options.key), *url.files)
    rules = policy_options(options)
    files = Files(options.tools, options.folder, rules, options.allow, secret)
    context = ToolContext(files.workspace())

    @cache
    def store() -> Store:
        return Store(store_path(options.folder))

    logging.getLogger("taskiq").addHandler(logging.NullHandler())  # the worker prints what matters
    with results_only():
        offers: Reloader[Offer] = Reloader(files.offer, files.paths())
        from quoth.agent.worker.service import Service, limit_memory

        for note in offers.made.policy.notes:
            complain(note)
        key, shared = _key(options), rules.open_shared()
        tracer = open_tracer(options.trace and Path(options.trace), content=options.trace_content)
        if options.memory is not None:
            limit_memory(options.memory, options.jobs)
        service = Service(
            offers,
            lambda offer: door_of(offer, store, shared, tracer),
            context,
            (url, key, prefix),
            _said_as(options.json),
            takeover=float(options.takeover),
        )
        search_seldom()
        try:
            return DONE if asyncio.run(service.run(options.jobs, options.health)) else INTERRUPTED
        except ForeignCatalog as error:
            raise UsageError(
                f"{error} Give this worker the key of the other workers with --key FILE, or its own --prefix."
            ) from None
        except StoreError as error:
            raise UsageError(str(error)) from None
        finally:
            store().close()


def _key(options: Options) -> Key:
    """The given key; at the default path, create a missing key."""
    import os

    from quoth.tools.storage.paths import is_missing

    path = catalog_key_path(options.key)
    if options.key or os.environ.get(CATALOG_KEY) or not is_missing(path):
        return read_key(path)
    key = new_key(path)
    complain(f"Created the key {path}. Copy it to each calling machine, readable only by its user.")
    return key


def _said_as(as_json: bool) -> Any:
    def say(event: str, sentence: str, **data: Any) -> None:
        if as_json:
            print_json({"event": event, **data})
        else:
            complain(sentence)

    return say


class CatalogShowOptions(CatalogOptions):
    name: str | None = argument("NAME", "the tool to show (default: all)", nargs="?")


class KeyOptions(CatalogOptions):
    what: str = argument("WHAT", "new: create a key; show: print its name", choices=("new", "show"))


def publish(options: OfferOptions) -> int:
    """Publish the tools of the files."""
    if not options.tools:
        raise UsageError("There is nothing to publish. Give a file of tools with --tools FILE.")
    table = _offered(options)
    url, seal, prefix = place_of(options)

    async def work() -> int:
        async with connected(url) as client:
            version, digest = await publish_catalog(client, table, key=seal, prefix=prefix)
        if options.json:
            made = {"version": version, "schema_hash": digest, "prefix": prefix, "tools": table.names()}
            print_json(made)
        else:
            print_line(f"Published v{version} of {prefix}: {', '.join(table.names())}.")
        return DONE

    return asyncio.run(work())


def show(options: CatalogShowOptions) -> int:
    """Print the published catalog, or one tool of it."""
    from quoth.agent.cli.tools import listed
    from quoth.tools.registry.table import ToolTable
    from quoth.tools.registry.tool import entry_tool

    url, seal, prefix = place_of(options)

    async def work() -> int:
        async with connected(url) as client:
            found = await _published(client, url, seal, prefix)
            kept = await kept_versions(client, prefix=prefix)
        table = ToolTable(tuple(entry_tool(entry, never) for entry in found["tools"]))
        if options.name:
            from quoth.agent.terminal.pages import tool_page

            tool = table.get(options.name)
            entry = next(entry for entry in found["tools"] if entry["name"] == tool.name)
            print_json(entry) if options.json else print_line(tool_page(tool))
        elif options.json:
            print_json({**found, "prefix": prefix, "key": seal.name, "kept": kept})
        else:
            print_line(f"v{found['version']} of {prefix} at {url.shown}, signed with the key {seal.name}")
            print_line(f"hash {found['schema_hash']}")
            for line in listed(table):
                print_line(line)
            for name, users in found["permissions"].items():
                print_line(f"{name} is for {', '.join(users) or 'nobody'}.")
        return DONE

    return asyncio.run(work())


def diff(options: OfferOptions) -> int:
    """Print how the published tools differ from the tools of the files, or from the previous version."""
    offered = build_catalog_payload(_offered(options))["tools"] if options.tools else None
    url, seal, prefix = place_of(options)

    async def work() -> int:
        async with connected(url) as client:
            found = await _published(client, url, seal, prefix)
            before, after = found["tools"], offered
            names = [f"v{found['version']}", "the files"]
            if after is None:
                older = [one for one in await kept_versions(client, prefix=prefix) if one < found["version"]]
                old = await load_version(client, older[0], key=seal, prefix=prefix) if older else None
                if old is None:
                    raise UsageError(
                        f"v{found['version']} is the first version. To compare it with files: --tools FILE"
                    )
                before, after = old["tools"], before
                names = [f"v{old['version']}", names[0]]
        made = changes(before, after)
        if options.json:
            print_json({"from": names[0], "to": names[1], **made.names()})
        elif not made:
            print_line(f"{names[0]} and {names[1]} have the same tools.")
        else:
            print_line(f"From {names[0]} to {names[1]}:")
            for line in made.lines():
                print_line(line)
        return DONE

    return asyncio.run(work())


def watch(options: CatalogOptions) -> int:
    """Print the published catalog, then a line for each change, until Ctrl-C."""
    from quoth.tools.text import number_of

    url, seal, prefix = place_of(options)
    last = ""

    def trouble(error: StoreError | None) -> None:
        nonlocal last
        said = str(error) if error else ""
        if said != last:
            complain(said or "The connection works again.")
        last = said

    async def work() -> int:
        before: dict[str, Any] | None = None
        async for found in followed(url, seal, prefix, trouble):
            if found is None:
                print_json({"version": None}) if options.json else print_line("No catalog is published.")
            else:
                made = changes(before["tools"], found["tools"]) if before else None
                if options.json:
                    told = {"version": found["version"], "schema_hash": found["schema_hash"]}
                    print_json(told | (made.names() if made is not None else {}))
                else:
                    what = made.summary() if made is not None else number_of(len(found["tools"]), "tool")
                    print_line(f"v{found['version']}  {what}")
            before = found
        return DONE

    return asyncio.run(work())


def key(options: KeyOptions) -> int:
    """Create the key, or print its name, never the key itself."""
    path = catalog_key_path(options.key)
    made = new_key(path) if options.what == "new" else read_key(path)
    if options.json:
        print_json({"path": str(path), "name": made.name})
    elif options.what == "new":
        print_line(f"Created the key {made.name}: {path}")
        print_line(
            "Copy this file to each machine that publishes or uses these tools. Anyone who has it is trusted."
        )
    else:
        print_line(f"{made.name}  {path}")
    return DONE


def place_of(options: CatalogOptions) -> tuple[RedisUrl, Key, str]:
    """The server, key and prefix of the options."""
    prefix = checked_prefix(options.key_prefix)
    url = redis_url(options.redis or options.remote, ca=options.redis_ca)
    return url, read_key(catalog_key_path(options.key)), prefix


def _offered(options: OfferOptions) -> ToolTable:
    """The tools that a worker with these options offers, each with its users."""
    from quoth.agent.run.options import PolicyOptions

    rules = PolicyOptions(options.policy)
    with results_only():
        return Files(options.tools, options.folder, rules, options.allow).offer().table


async def _published(client: Any, url: RedisUrl, seal: Key, prefix: str) -> dict[str, Any]:
    found = await load_catalog(client, key=seal, prefix=prefix)
    if found is None:
        raise StoreError(f"No catalog of {prefix} is published at {url.shown}.")
    return found


class DeadOptions(CatalogOptions):
    id: str = argument("ID", "id of the call, as quoth catalog dead lists it")


def dead(options: CatalogOptions) -> int:
    """Print the dead letters without their arguments."""
    from quoth.agent.terminal.requests import when
    from quoth.tools.remote.dead import dead_calls

    with _client(options) as place:
        found = dead_calls(*place)
    if options.json:
        print_json([one.to_json() for one in found])
        return DONE
    for one in found:
        told = "not signed"
        if one.call is not None:
            who = one.call.user or "nobody"
            told = f"{one.call.form.get('tool')}, {who}, {when(one.sent)}, {one.tries} times"
        print_line(f"{one.id}  {told}")
    if not found:
        print_line("There are no dead letters.")
    return DONE


def retry(options: DeadOptions) -> int:
    """Run a dead letter's call again, and print its result."""
    from quoth.tools.call.call import ToolResult
    from quoth.tools.remote.dead import retry

    with _client(options) as place:
        tool, ended = retry(*place, options.id)
    told = "\n".join(ended.said) or ended.message
    status: Any = ended.status
    made = ToolResult(options.id, tool, status, ended.value, told, tuple(ended.side_effects))
    return show_result(made, options.json)


def drop(options: DeadOptions) -> int:
    """Delete a dead letter."""
    from quoth.tools.remote.dead import drop

    with _client(options) as place:
        found = drop(*place, options.id)
    if options.json:
        print_json(found.to_json())
    else:
        print_line(f"Dropped {found.id}.")
    return DONE


@contextmanager
def _client(options: CatalogOptions) -> Iterator[tuple[Any, Key, str]]:
    """A client of the server, key and prefix. Turns errors of the server into QuothErrors."""
    url, key, prefix = place_of(options)
    client = sync_client(url)
    try:
        with told(url):
            check_sync(client)
            yield client, key, prefix
    finally:
        client.close()


ACTIONS: Actions = {
    "publish": (publish, "Publish the tools of the --tools files."),
    "show": (show, "Show the published tools, or one of them."),
    "diff": (diff, "Compare the published tools with the version before, or with the --tools files."),
    "watch": (watch, "Print a line for each change until Ctrl-C."),
    "key": (key, "Create the signing key, or show its name."),
    "dead": (dead, "List the calls during which three workers stopped."),
    "retry": (retry, "Send one of these calls to the workers again."),
    "drop": (drop, "Remove one of these calls."),
}
