"""Whose process a connection comes from. Every user of a machine reaches the ports of loopback, may read a
code in the words with which a browser was started, and may have a server to which a browser sends its
cookies."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # proc(5): of Linux; other systems have none
OWN, OTHER, UID, INODE = 1, 2, 7, 9  # the columns


def is_stranger(scope: Any) -> bool:
    """Whether the process at the other end of an HTTP connection is of another user than this one and root.
    False where the system does not say it. A closed connection counts as a stranger's."""
    client, server = scope.get("client"), scope.get("server")
    try:
        ends = [(ipaddress.ip_address(host), int(port)) for host, port in (client, server)]
    except (TypeError, ValueError):  # not over a socket of the internet
        return False
    if not TABLES[0].exists():
        return False
    wanted = [(_hex(*ends[0], wide), _hex(*ends[1], wide)) for wide in (False, True)]
    rows = [row for row in _rows() if (row[OWN], row[OTHER]) in wanted]
    return not any(row[INODE] != "0" and int(row[UID]) in (0, os.getuid()) for row in rows)


def _rows() -> Iterator[list[str]]:
    for table in TABLES:
        with contextlib.suppress(FileNotFoundError):
            yield from (line.split() for line in table.read_text().splitlines()[1:])


def _hex(host: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int, wide: bool) -> str:
    """An end of a connection as the tables write it: words of 32 bits in the order of this machine. A
    ``wide`` socket has IPv4 addresses in IPv6."""
    packed = host.packed
    if wide and host.version == 4:
        packed = socket.inet_pton(socket.AF_INET6, f"::ffff:{host}")
    words = (packed[at : at + 4] for at in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"
