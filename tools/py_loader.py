"""Loads a user's Python file of tools, with readable errors; the twin of ``load_hy_file``.

A module of the same name elsewhere is neither used nor replaced.
"""

from __future__ import annotations

import importlib.util
import linecache
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from quoth.tools.errors import UsageError
from quoth.tools.hy_loader import located, module_name, not_found, read_source, run_error


class _Loader(SourceFileLoader):
    """Python's loader without bytecode, so that the folder of a user's file gets no ``__pycache__``."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_py_file(path: Path) -> ModuleType:
    """Run a user's ``.py`` file as a new module. Raises UsageError with line, column and caret."""
    source = read_source(path)
    name = module_name(path)
    spec = importlib.util.spec_from_file_location(name, path, loader=_Loader(name, str(path)))
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(path))  # the source of its functions is looked up there
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        if isinstance(error, SyntaxError) and error.filename == str(path):
            place = (error.lineno or 1, error.offset or 1)
            raise UsageError(located(path, source, *place, error.msg)) from None
        raise UsageError(run_error(path, source, error, first_column=0) + not_found(path, error)) from None
    return module
