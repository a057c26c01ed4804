"""Runs a command line, and writes down which settings it reads (tests/agent/cli/test_settings_used.py)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from quoth.agent.cli import main as command_line
from quoth.agent.settings import ROWS

AGENT = {"model", "tools", "policy", "services", "memory", "redis", "session", "limits", "plan"}


def run() -> None:
    """The command in ``sys.argv``; the names go into a JSON file beside the script."""
    seen: set[str] = set()
    record(seen)
    try:
        command_line.main(sys.argv[1:])
    finally:
        Path(sys.argv[0]).with_suffix(".json").write_text(json.dumps(sorted(seen)))


COPYING = ("__init__", "take_over")  # what reads all of them, to pass them on


def record(seen: set[str]) -> None:
    from quoth.agent.cli import common

    plain, whole = command_line.parsed, common.settings_of

    class Reads(dict[str, Any]):
        def get(self, name: str, default: Any = None) -> Any:
            seen.add(name)
            return super().get(name, default)

        def items(self) -> Any:
            return ((name, self[name]) for name in self)

        def __getitem__(self, name: str) -> Any:
            seen.add(name)
            return super().__getitem__(name)

    def recording(words: Any, given: Any) -> Any:
        do, options = plain(words, given)
        kind = type(options)

        def read(self: Any, name: str) -> Any:
            caller = sys._getframe(1).f_code
            copies = caller.co_filename.endswith("dataclasses.py") or caller.co_name in COPYING
            if name in ROWS and not copies:
                seen.add(name)
            found = object.__getattribute__(self, name)
            return Reads(found) if name == "__dict__" and not copies else found

        own = type(kind.__name__, (kind,), {"__getattribute__": read, "__module__": kind.__module__})
        return do, own(**vars(options))

    def all_of_an_agent(*given: Any, **more: Any) -> Any:
        seen.update(name for name, row in ROWS.items() if row.group in AGENT)
        return whole(*given, **more)

    command_line.parsed = recording
    common.settings_of = all_of_an_agent
