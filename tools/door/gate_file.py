"""Loads a gate from a person's Hy file: the function ``check`` that it defines.

It knows Hy files; it must not know calls, or what the answer of a gate leads to.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.hy_loader import load_hy_file
from quoth.tools.registry.define import registering_in
from quoth.tools.registry.table import ToolTable

SHAPE = "(defn :async check [tool call ctx] …)"


class FileGate:
    """The gate in a Hy file. Its ``check`` may be asynchronous or not. Raises UsageError for a file without
    such a function."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.suffix != ".hy":
            raise UsageError(f"{path} is no gate file; a gate is written in a file that ends in .hy.")
        with registering_in(ToolTable()):  # a gate file gives no tools
            module = load_hy_file(self.path)
        self.check: Any = getattr(module, "check", None)
        if not callable(self.check):
            own = [name for name, value in vars(module).items() if inspect.isfunction(value)]
            hint = did_you_mean("check", own)
            raise UsageError(f"{path} defines no function check: {SHAPE}.{hint}")
        try:
            inspect.signature(self.check).bind(None, None, None)
        except TypeError:
            line = getattr(getattr(self.check, "__code__", None), "co_firstlineno", 1)
            names = " ".join(inspect.signature(self.check).parameters)
            raise UsageError(f"{path}:{line}: check takes [{names}]; it is called so: {SHAPE}.") from None
