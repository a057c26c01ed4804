"""The commands ``quoth catalog dead``, ``retry`` and ``drop``: calls that nobody tries any more.

Knows how they are printed; the work is in tools/remote/dead.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from quoth.agent.cli.catalog_actions import place_of
from quoth.agent.cli.options import DONE, CatalogOptions, Commands, argument
from quoth.agent.terminal.output import print_json, print_line

if TYPE_CHECKING:
    from quoth.tools.catalog.signing import Key


@dataclass(init=False, repr=False, eq=False)
class DeadOptions(CatalogOptions):
    id: str = argument("ID", "the call, as quoth catalog dead lists it")


def add(catalog: Commands) -> None:
    catalog.add("dead", "List the calls that ended three workers.", CatalogOptions, dead)
    catalog.add("retry", "Have one of them made once more.", DeadOptions, retry)
    catalog.add("drop", "Forget one of them.", DeadOptions, drop)


def dead(options: CatalogOptions) -> int:
    """List them, without their arguments."""
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
    """Make one once more, and show its result."""
    from quoth.agent.cli.common import show_result
    from quoth.tools.call.call import ToolResult
    from quoth.tools.remote.dead import retry

    with _client(options) as place:
        tool, ended = retry(*place, options.id)
    told = "\n".join(ended.said) or ended.message
    status: Any = ended.status
    made = ToolResult(options.id, tool, status, ended.value, told, tuple(ended.side_effects))
    return show_result(made, options.json)


def drop(options: DeadOptions) -> int:
    """Forget one."""
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
    """A client of the server, the key and the prefix; what goes wrong with the server is told in words."""
    from quoth.tools.catalog.connection import check_sync, sync_client, told

    url, key, prefix = place_of(options)
    client = sync_client(url)
    try:
        with told(url):
            check_sync(client)
            yield client, key, prefix
    finally:
        client.close()
