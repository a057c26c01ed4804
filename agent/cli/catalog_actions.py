"""The actions of ``quoth catalog``: publish tools for other machines, see what is there, make the key.

Knows how catalogues are printed; the work is in tools/catalog. It calls no tool.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.options import DONE, CatalogOptions, Commands, OfferOptions, argument
from quoth.agent.terminal.output import complain, print_json, print_line
from quoth.tools.errors import StoreError, UsageError

if TYPE_CHECKING:
    from quoth.tools.catalog.connection import RedisUrl
    from quoth.tools.catalog.signing import Key
    from quoth.tools.registry.table import ToolTable


@dataclass(init=False, repr=False, eq=False)
class CatalogShowOptions(CatalogOptions):
    name: str | None = argument("NAME", "the tool to show", nargs="?")


@dataclass(init=False, repr=False, eq=False)
class KeyOptions(CatalogOptions):
    what: str = argument("WHAT", "new, or show", choices=("new", "show"))


def add(catalog: Commands) -> None:
    catalog.add("publish", "Publish the tools of the --tools files.", OfferOptions, publish)
    catalog.add("show", "Show what is published, or one tool of it.", CatalogShowOptions, show)
    about = "Show what differs from the version before, or from the --tools files."
    catalog.add("diff", about, OfferOptions, diff)
    catalog.add("watch", "Print a line for each change, until Ctrl-C.", CatalogOptions, watch)
    catalog.add("key", "Make the key, or show which it is.", KeyOptions, key)


def publish(options: OfferOptions) -> int:
    """Publish the tools of the files."""
    from quoth.tools.catalog.connection import connected
    from quoth.tools.catalog.store import publish_catalog

    if not options.tools:
        raise UsageError("There is nothing to publish; name a file of tools with --tools FILE.")
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
    """Print the catalogue that is published, or one tool of it."""
    from quoth.agent.cli.tools import listed
    from quoth.tools.catalog.changes import never
    from quoth.tools.catalog.connection import connected
    from quoth.tools.catalog.store import kept_versions
    from quoth.tools.registry.entry import tool_of
    from quoth.tools.registry.table import ToolTable

    url, seal, prefix = place_of(options)

    async def work() -> int:
        async with connected(url) as client:
            found = await _published(client, url, seal, prefix)
            kept = await kept_versions(client, prefix=prefix)
        table = ToolTable(tuple(tool_of(entry, never) for entry in found["tools"]))
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
    """Print how the published tools differ from those of the files, or from the version before."""
    from quoth.tools.catalog.changes import changes
    from quoth.tools.catalog.connection import connected
    from quoth.tools.catalog.payload import build_catalog_payload
    from quoth.tools.catalog.store import kept_versions, load_version

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
                        f"There is no version before v{found['version']};"
                        " compare it with files by --tools FILE."
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
    """Print what is published now, and a line for each change, until Ctrl-C."""
    from quoth.tools.catalog.changes import changes
    from quoth.tools.catalog.store import followed
    from quoth.tools.text import number_of

    url, seal, prefix = place_of(options)
    last = ""

    def trouble(error: StoreError | None) -> None:
        nonlocal last
        said = str(error) if error else ""
        if said != last:
            complain(said or "All is well again.")
        last = said

    async def work() -> int:
        before: dict[str, Any] | None = None
        async for found in followed(url, seal, prefix, trouble):
            if found is None:
                print_json({"version": None}) if options.json else print_line("Nothing is published.")
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
    """Make the key, or show its name; never the key itself."""
    from quoth.tools.catalog.signing import key_path, new_key, read_key

    path = key_path(options.key)
    made = new_key(path) if options.what == "new" else read_key(path)
    if options.json:
        print_json({"path": str(path), "name": made.name})
    elif options.what == "new":
        print_line(f"Made the key {made.name}: {path}")
        print_line(
            "Copy this file to each machine that publishes or uses these tools; who has it is believed."
        )
    else:
        print_line(f"{made.name}  {path}")
    return DONE


def place_of(options: CatalogOptions) -> tuple[RedisUrl, Key, str]:
    """The server, the key and the prefix that the options name."""
    from quoth.tools.catalog.connection import checked_prefix, redis_url
    from quoth.tools.catalog.signing import key_path, read_key

    prefix = checked_prefix(options.key_prefix)
    url = redis_url(options.redis or options.remote, ca=options.redis_ca)
    return url, read_key(key_path(options.key)), prefix


def _offered(options: OfferOptions) -> ToolTable:
    """What a worker with these options offers: the tools of the files, and for whom they are."""
    from quoth.agent.terminal.output import results_only
    from quoth.agent.worker.assembly import Files

    with results_only():
        return Files(options.tools, options.folder, options.policy, allow=options.allow).offer().table


async def _published(client: Any, url: RedisUrl, seal: Key, prefix: str) -> dict[str, Any]:
    from quoth.tools.catalog.store import load_catalog

    found = await load_catalog(client, key=seal, prefix=prefix)
    if found is None:
        raise StoreError(f"No catalogue of {prefix} is published at {url.shown}.")
    return found
