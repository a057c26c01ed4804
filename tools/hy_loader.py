"""Loads Hy: a bytecode cache for our own ``.hy`` modules, and users' tool files with readable errors.

Only this file, or ``import_module`` with a string, imports Hy from Python.

We need our own cache: pip does not precompile Hy, ``PYTHONDONTWRITEBYTECODE`` and read-only installs switch
Python's cache off (each start would then compile every file again), and Python's cache keeps a stale macro
expansion if only the macro file changed. Entries are keyed by content, including the macro file's content.
"""

from __future__ import annotations

import codecs
import contextlib
import hashlib
import importlib.machinery
import importlib.util
import itertools
import marshal
import os
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import cache_dir, real_path

PACKAGE = "quoth"
# The files that determine how a definition expands: the macros, and the Hy functions they call.
_MACROS = tuple(Path(__file__).parent / name for name in ("macros.hy", "registry/expand.hy"))


def is_ours(module: str) -> bool:
    """Whether a module of that name is in our own package."""
    return module.partition(".")[0] == PACKAGE


class _CachingLoader(importlib.machinery.SourceFileLoader):
    """Hy's loader with its bytecode kept in ``cache_dir()`` under a content key."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        source = self.get_data(path)
        entry = _entry(fullname, path, source)
        with contextlib.suppress(OSError, ValueError, EOFError, TypeError):
            kept = entry.read_bytes()
            if hashlib.sha256(kept[32:]).digest() == kept[:32]:  # marshal may crash on damaged data
                code = marshal.loads(kept[32:])  # noqa: S302  our own cache, as __pycache__ is Python's
                if isinstance(code, CodeType):
                    return code
        compiled: CodeType = self.source_to_code(source, path)
        data = marshal.dumps(compiled)
        _store(entry, hashlib.sha256(data).digest() + data)
        return compiled


class _FreshLoader(importlib.machinery.SourceFileLoader):
    """Hy's loader without bytecode: the macros that a user's file uses may change at any time."""

    def get_code(self, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path).removeprefix(codecs.BOM_UTF8), path)


def _entry(fullname: str, path: str, source: bytes) -> Path:
    import hy

    key = hashlib.sha256()
    for part in (
        source,
        *(file.read_bytes() for file in _MACROS),
        path.encode(),
        hy.__version__.encode(),
        importlib.util.MAGIC_NUMBER,
    ):
        key.update(len(part).to_bytes(8, "big") + part)
    place = hashlib.sha256(path.encode()).hexdigest()[:8]
    return cache_dir() / "hy" / f"{fullname}.{place}.{key.hexdigest()[:24]}.bin"


def _store(entry: Path, data: bytes) -> None:
    """Write atomically and drop older versions; a cache that cannot be written is only slower."""
    with contextlib.suppress(OSError):
        entry.parent.mkdir(parents=True, exist_ok=True)
        replace_file(entry, [data])
        stem = entry.name.rsplit(".", 2)[0]
        for old in entry.parent.glob(f"{stem}.*.bin"):
            if old != entry:
                old.unlink(missing_ok=True)


class _Finder:
    """Finds the ``.hy`` modules of our own package and gives them the caching loader."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if path is None or not is_ours(fullname) or not package:
            return None
        for folder in path:
            file = os.path.join(folder, name + ".hy")  # noqa: PTH118  on the path of every import
            if os.path.isfile(file):  # noqa: PTH113
                import hy  # noqa: F401  patches the loader before the file is compiled

                return importlib.util.spec_from_file_location(
                    fullname, file, loader=_CachingLoader(fullname, file)
                )
        return None


def install() -> None:
    """Put the import finder first in ``sys.meta_path``, once. Packages call this in their ``__init__``."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        # Not a subclass of MetaPathFinder: importing importlib.abc costs 9 ms.
        sys.meta_path.insert(0, _Finder())


@cache
def _ask_for_frames_only() -> None:
    """Hy finds the caller of ``require`` by ``inspect.stack()``, which also looks up the file and the source
    lines of every frame: more than half of the load time of a small file. Hy uses only the caller's frame."""
    import inspect

    import hy.macros

    asked = ModuleType("inspect")
    vars(asked).update(vars(inspect), stack=lambda: [(sys._getframe(1),), (sys._getframe(2),)])
    hy.macros.inspect = asked


def load_hy_file(path: Path) -> ModuleType:
    """Run a user's ``.hy`` file as a new module. Raises UsageError with line, column and caret."""
    install()
    _ask_for_frames_only()
    from hy.errors import HyError

    source = read_source(path)
    name = module_name(path)
    loader = _FreshLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise UsageError(f"{path} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        told = _language_error if isinstance(error, HyError | SyntaxError) else run_error
        hint = _old_spelling(path, source, error) or _not_required(path, source, module, error)
        hint = hint or _odd_space(path, source)
        raise UsageError(hint or told(path, source, error) + not_found(path, error)) from None
    return module


def read_source(path: Path) -> str:
    """The text of a user's file. Raises UsageError."""
    try:
        return path.read_text(encoding="utf-8-sig")  # editors on Windows write a byte order mark
    except FileNotFoundError:
        raise UsageError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None


def module_name(path: Path) -> str:
    """The module name for a user's file, different from any importable name."""
    return "quoth_user_" + hashlib.sha256(str(real_path(path)).encode()).hexdigest()[:12]


def not_found(path: Path, error: BaseException) -> str:
    """A hint for a user's file that imports or requires a file beside it: a folder that a model can write to
    is not searched for imports."""
    found = re.search(r"No module named '([\w.]+)'", str(error))
    name = found[1] if found else ""
    beside = (path.parent / f"{name.partition('.')[0]}{end}" for end in (".py", ".hy", ""))
    if not name or not any(map(Path.exists, beside)):
        return ""
    folder = path.parent.resolve()
    return f"\nThe folder of the file is not searched; to search it: PYTHONPATH={folder} quoth …"


def _language_error(path: Path, source: str, error: Any) -> str:
    """Hy's own complaint as ``file:line:column: what``, the line, a caret."""
    from hy.errors import HyRequireError
    from hy.reader.exceptions import LexException

    if isinstance(error, LexException):
        from quoth.tools.lisp.reader import ReadError, read_all

        try:  # our reader finds the unclosed parenthesis, Hy's only the end of the file
            read_all(source)
        except ReadError as ours:
            hint = f"; {ours.hint}" if ours.hint else ""
            return located(path, source, ours.line, ours.column, f"{ours.message}{hint}")
    message = str(getattr(error, "msg", None) or error).strip()
    if isinstance(error, HyRequireError):
        return located(path, source, *_place_of_require(source, message), _no_macro(message))
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if lines and lines[0].startswith("expanding macro"):
        lines = [_plain(lines[-1])] if len(lines) > 1 else lines
    line, column = getattr(error, "lineno", None) or 1, getattr(error, "offset", None) or 1
    if message.startswith("Keyword argument") and (hint := plist_read(source, line, column)):
        lines = [hint]
    return located(path, source, line, column, " ".join(lines) or type(error).__name__)


def plist_read(source: str, line: int, column: int) -> str:
    """The hint for (getf x :k), which Hy takes for a call with an argument k; empty if there is none."""
    import hy

    for form in _expressions(source):
        read = (
            len(form) > 2 and form[0] == hy.models.Symbol("getf") and isinstance(form[2], hy.models.Keyword)
        )
        if read and (form[2].start_line, form[2].start_column) == (line, column):
            written = hy.repr(form[1]).removeprefix("'")
            return f'getf is of Common Lisp; write (get {written} "{form[2].name}").'
    return ""


def _expressions(source: str) -> Iterator[Any]:
    """Every expression of a file, outermost first, in the order of the text."""
    import hy

    pending = list(hy.read_many(source))[::-1]
    while pending:
        form = pending.pop()
        if isinstance(form, hy.models.Expression):
            yield form
            pending.extend(form[::-1])


def _old_spelling(path: Path, source: str, error: BaseException) -> str:
    """The error of a file that imports a part of quoth as a separate package; empty for other errors."""
    found = re.search(
        r"No module named '(tools|neuro|agent)\b|(tools|neuro|agent)[\w.]* is a part of quoth", str(error)
    )
    if not found:
        return ""
    import hy

    room = found[1] or found[2]
    for form in _expressions(source):
        head = str(form[0]) if form and isinstance(form[0], hy.models.Symbol) else ""
        for item, names in itertools.pairwise([*form[1:], None] if head in ("require", "import") else []):
            module = hy.repr(item).lstrip("'").removeprefix("(. ").rstrip(")").replace(" ", ".")
            if module.partition(".")[0] == room:
                of_it = room == "tools" and isinstance(names, hy.models.List)
                new = "quoth" if of_it else f"quoth.{module}"
                taken = f" {hy.repr(names).lstrip(chr(39))}" if isinstance(names, hy.models.List) else ""
                told = f"{room} is a part of quoth: ({head} {new}{taken})."
                return located(path, source, item.start_line, item.start_column, told)
    return ""


def _not_required(path: Path, source: str, module: ModuleType, error: BaseException) -> str:
    """The error of a file that uses a macro of ours without requiring it; empty for other errors. Hy takes
    the definition for a call, and reports a name inside it."""
    if not isinstance(error, NameError):
        return ""
    import hy

    ours = importlib.import_module(f"{PACKAGE}.tools.macros")._hy_macros.keys()
    missing = ours - getattr(module, "_hy_macros", {}).keys()
    for form in _expressions(source):
        if form and isinstance(form[0], hy.models.Symbol) and hy.mangle(form[0]) in missing:
            told = f"{form[0]} is a macro: begin the file with (require quoth [{form[0]}])."
            return located(path, source, form.start_line, form.start_column, told)
    return ""


def _odd_space(path: Path, source: str) -> str:
    """The error of a file with a no-break space, or a similar character, outside its texts, which Hy takes
    for a part of a name; empty for other files."""
    from quoth.tools.lisp.reader import ReadError, read_all

    try:
        read_all(source)
    except ReadError as error:
        if error.message.startswith("the character U+"):
            return located(path, source, error.line, error.column, f"{error.message}; {error.hint}")
    return ""


def _place_of_require(source: str, message: str) -> tuple[int, int]:
    """The position of the name that cannot be required; Hy itself does not report it."""
    import hy

    names = set(re.findall(r"\w+", message)) - {"quoth", "tools", "macros"}
    for form in _expressions(source):
        if form and form[0] == hy.models.Symbol("require"):
            inner = list(form[1:])[::-1]
            while inner:
                item = inner.pop()
                if isinstance(item, hy.models.Sequence):
                    inner.extend(list(item)[::-1])
                elif isinstance(item, hy.models.Symbol) and hy.mangle(str(item)) in names:
                    return item.start_line, item.start_column
    return 1, 1


def _no_macro(message: str) -> str:
    found = re.match(r"Could not require name (\w+) from <module '([\w.]+)'", message)
    if not found:
        return message
    import hy

    name, module = found.groups()
    macros = getattr(sys.modules.get(module), "_hy_macros", {})
    shown = [str(hy.unmangle(known)).replace("_", "-") for known in macros]
    wanted = str(hy.unmangle(name)).replace("_", "-")
    return f"{module} has no macro {wanted}." + did_you_mean(wanted, shown)


def run_error(path: Path, source: str, error: BaseException, first_column: int = 1) -> str:
    """An error raised while the file ran: the last line inside the file, and the exception. Hy counts columns
    from 1, Python from 0. For a definition, the place of the faulty parameter is used instead."""
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    line = frames[-1].lineno if frames and frames[-1].lineno else 1
    column = 1 + (frames[-1].colno or first_column) - first_column if frames else 1
    file, *parameter = getattr(error, "place", None) or ("",)
    if file == str(path):
        line, column = parameter
    return located(path, source, line, column, _plain(f"{type(error).__name__}: {error}"))


def _plain(text: str) -> str:
    """The text without the class name before our own sentences."""
    for prefix in ("DefinitionError: ", "DuplicateToolError: ", "quoth.tools.errors."):
        text = text.removeprefix(prefix)
    return text


def located(path: Path, source: str, line: int, column: int, message: str) -> str:
    """``path:line:column: message``, then that line of ``source`` and a caret under the column."""
    lines = source.split("\n")  # as Hy counts them: a form feed does not end a line
    shown = lines[line - 1] if 0 < line <= len(lines) else ""
    place = f"{path}:{line}:{column}: {message}"
    return f"{place}\n  {shown}\n  {' ' * (column - 1)}^" if shown.strip() else place
