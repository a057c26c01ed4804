"""The version of a tool's code: a hash over its file and the local files that it imports, transitively.

It parses the imports of Python and Hy files, and runs nothing. Local files are those outside the standard
library, installed packages and quoth itself. Imports computed at run time, and files that are only read, are
missed.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import hy.models as m

from quoth.tools.errors import QuothError, ToolError
from quoth.tools.lisp.reader import read_all
from quoth.tools.registry.values import plain

# Places in a user's code: whether a file is theirs, and the file and line of a function or an error.


INSTALLED = frozenset(("site-packages", "dist-packages"))
_OURS = Path(__file__).resolve().parents[2]


def is_local(path: Path) -> bool:
    """Whether a file is a person's own: outside the standard library, installed packages and quoth."""
    return not _is_foreign(path.resolve())


def place_of_function(function: Callable[..., Any] | None) -> str:
    """The first line of a function, as ``file:line``; empty if no file is known."""
    while isinstance(function, partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None) if function else None
    return _place(code.co_filename, code.co_firstlineno) if code else ""


def within_partials(function: Callable[..., Any]) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The function within partials, and the arguments that these fill, by name."""
    filled: dict[str, Any] = {}
    while isinstance(function, partial):
        with contextlib.suppress(TypeError, ValueError):
            given = inspect.signature(function.func).bind_partial(*function.args)
            filled = {**given.arguments, **filled}
        filled = {**function.keywords, **filled}
        function = function.func
    return function, filled


def place_of_error(error: BaseException) -> str:
    """The last line of a user's own code that an error came through, as ``file:line``; empty for none."""
    frames = reversed(traceback.extract_tb(error.__traceback__))
    return next(filter(None, (_place(frame.filename, frame.lineno or 1) for frame in frames)), "")


def users_traceback(error: BaseException) -> str:
    """The traceback of an error, from the first line of a user's own code on."""
    told = traceback.TracebackException.from_exception(error)
    first = next((at for at, frame in enumerate(told.stack) if _place(frame.filename, 1)), 0)
    told.stack = traceback.StackSummary.from_list(told.stack[first:])
    return "".join(told.format()).rstrip()


def _place(file: str, line: int) -> str:
    shown = _shown(file, Path.cwd())
    return f"{shown}:{line}" if shown else ""


@lru_cache(256)  # thousands of tools may be in one file
def _shown(file: str, here: Path) -> str:
    path = Path(file)
    if not path.is_file() or not is_local(path):
        return ""
    path = path.resolve()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


@lru_cache(4096)
def _is_foreign(path: Path) -> bool:
    if not INSTALLED.isdisjoint(path.parts):  # also those of another environment that this one can see
        return True
    return any(folder == path or folder in path.parents for folder in _foreign())


@lru_cache(1)
def _foreign() -> tuple[Path, ...]:
    import sysconfig

    names = ("stdlib", "platstdlib", "purelib", "platlib")
    ours = [_OURS / package for package in ("agent", "neuro", "tools")]
    return tuple({*ours, *(Path(sysconfig.get_paths()[name]).resolve() for name in names)})


SUFFIXES = (".py", ".hy")
MAX_FILES = 1000
_WORDS = re.compile(r"\.*[^\W\d][\w.-]*")  # in an unreadable file, any word may be a module


def code_of(module: str) -> str:
    """SHA-256 over the contents and names of a loaded module's file and all local files it imports, as they
    are now; its own file may have any name. Empty for quoth's own modules and those without a file."""
    start = _file_of(module)
    if start is None or not is_local(start):
        return ""
    found = _contents(start)
    told = sorted(
        (os.path.relpath(path, start.parent) if path != start else "", sha256(data).hexdigest())
        for path, data in found.items()
    )
    return sha256(repr(told).encode("utf-8", "surrogateescape")).hexdigest()


def code_with_filled(code: str, function: Callable[..., Any]) -> str:
    """A version of code, including the arguments that partials fill: their data, or the names of their
    types."""
    _, filled = within_partials(inspect.unwrap(function, stop=lambda inner: isinstance(inner, partial)))
    if not filled:
        return code
    data = {name: _data_or_name(value) for name, value in filled.items()}
    return sha256(json.dumps([code, data], sort_keys=True, default=str).encode()).hexdigest()


def _data_or_name(value: Any) -> Any:
    try:
        return plain(value)
    except ToolError:
        kind = value if hasattr(value, "__qualname__") else type(value)
        return {"name": f"{kind.__module__}.{kind.__qualname__}"}


def local_files(start: Path) -> set[Path]:
    """A file of code, and all local files that it imports, as the files are now."""
    return {*_contents(start.resolve())}


def _contents(start: Path) -> dict[Path, bytes]:
    """The contents of a file and of all local files that it imports."""
    found: dict[Path, bytes] = {}
    pending = [start]
    while pending and len(found) < MAX_FILES:
        path = pending.pop()
        if path not in found:
            with contextlib.suppress(OSError):
                found[path] = path.read_bytes()
                pending += _imported(path, found[path])
    return found


@lru_cache(256)
def own_code(module: str) -> str:
    """SHA-256 of only the module's own file, for tools that ship with quoth; empty without a file."""
    file = _file_of(module)
    return "" if file is None else sha256(file.read_bytes()).hexdigest()


def _file_of(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).resolve() if file else None


@lru_cache(256)
def _imported(path: Path, content: bytes) -> tuple[Path, ...]:
    """The local files that a file with this content imports."""
    names = set(_names(content.decode("utf-8", "replace"), path.suffix))
    roots = _roots()
    return tuple(sorted({file for name in names for file in _files(name, path.parent, roots)}))


def _names(text: str, suffix: str) -> Iterator[str]:
    """The modules a file names, relative ones with their dots."""
    try:
        yield from list(_of_python(ast.parse(text)) if suffix == ".py" else _of_hy(read_all(text)))
    except (SyntaxError, ValueError, QuothError, RecursionError):
        yield from (word.replace("-", "_") for word in _WORDS.findall(text))


def _of_python(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield base
            yield from (_inside(base, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
                yield node.args[0].value


def _of_hy(forms: Any) -> Iterator[str]:
    pending = list(forms)
    while pending:
        form = pending.pop()
        if not isinstance(form, m.Sequence) or not form:
            continue
        pending.extend(form)
        name = _dotted(form)
        if name.startswith(("hy.I.", "hy.R.")):
            yield name[5:].replace("/", ".")
        head = str(form[0]) if isinstance(form[0], m.Symbol) else ""
        if head in ("import", "require"):
            base = ""
            for item in form[1:]:
                if isinstance(item, m.List):
                    yield from (_inside(base, _dotted(one)) for one in item)
                elif name := _dotted(item):
                    base = name
                    yield base
        elif _dotted(form[0]).endswith(("import_module", "import-module", "__import__")):
            yield from (str(item) for item in form[1:2] if isinstance(item, m.String))


def _inside(base: str, name: str) -> str:
    """The dotted name of an imported name, which may be a module, too."""
    return base + name if base.endswith(".") else f"{base}.{name}"


def _dotted(form: Any) -> str:
    """A name as Python knows it, whose parts may have been read one by one."""
    if isinstance(form, m.Symbol):
        return str(form).replace("-", "_")
    if not isinstance(form, m.Expression) or len(form) < 2 or not all(isinstance(i, m.Symbol) for i in form):
        return ""
    first, *rest = map(str, form)
    if set(first) != {"."}:
        return ""
    text = "".join([first, ".".join(rest[1:])]) if rest[0] == "None" else ".".join(rest)
    return text.replace("-", "_")


def _files(name: str, folder: Path, roots: list[Path]) -> Iterator[Path]:
    """The local files that importing ``name`` runs, seen from a file in ``folder`` with these
    roots."""
    bare = name.lstrip(".")
    if bare != name:
        for _ in range(len(name) - len(bare) - 1):
            folder = folder.parent
        roots = [folder]
    else:
        roots = [folder, *roots]
    parts = [part for part in bare.split(".") if part]
    for root in roots:
        for part in parts or [""]:
            root = root / part
            for file in (f"{root}{end}" for end in ("/__init__.py", "/__init__.hy", *SUFFIXES)):
                # A file may name hundreds of modules, each of which may be in a dozen of places.
                if os.path.isfile(file) and is_local(real := Path(file).resolve()):  # noqa: PTH113
                    yield real


def _roots() -> list[Path]:
    """The folders that are searched for modules, without our own and installed ones."""
    return [root for root in (Path(entry).resolve() for entry in sys.path) if is_local(root)]
