"""The predicates of policy rules: each is a closure over (value, facts).

A predicate returns True, False, or None if it is undecided: a number compared with a text, a pattern that
takes too long, an invalid path.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from quoth.tools.call.call import Call, ValueOrigin
from quoth.tools.call.canonical import workspace_of
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError
from quoth.tools.policy.spending import account_of
from quoth.tools.registry.param_types import WorkspacePath, paths_at, with_paths
from quoth.tools.registry.parameters import Param
from quoth.tools.registry.table import CognitiveTool
from quoth.tools.registry.values import REST, UNKNOWN

if TYPE_CHECKING:
    from quoth.tools.call.context import Origins

MATCH_SECONDS = 0.1  # for all patterns that are tried on one call

Truth: TypeAlias = bool | None
_MISSING: Any = object()
_UNTIDY = frozenset(("", ".", ".."))
ABSOLUTE = ("/", "~", "")  # the first character of a path that is not simply below the root; or empty


# A call as rules see it


class ResolvedPath(NamedTuple):
    """A place inside the workspace: the path components below the root, and the file identities (device,
    inode) of existing components."""

    parts: list[str]
    ids: list[tuple[int, int]]


class Noted(NamedTuple):
    """The origin of a value of an argument; the value may be a link ``inside`` that argument."""

    argument: str
    value: Any
    origin: ValueOrigin
    inside: bool = False


class EvaluationContext:
    """One call as rules see it, with a cache of lookups while it is judged."""

    __slots__ = (
        *("_deadline", "_root_id", "_trails", "argument", "call", "noted", "origins", "root", "tool"),
        "workspace",
    )

    def __init__(
        self, tool: CognitiveTool, call: Call, workspace: Workspace, origins: Origins | None = None
    ) -> None:
        self.tool = tool
        self.call = call
        self.origins = origins  # None: origins are undecided
        self.argument = ""  # the argument on which a predicate of origins is tested
        self.noted: dict[str, Noted] = {}  # the last finding for each such argument
        self.workspace = workspace = workspace_of(tool, workspace)
        self.root = str(workspace.root)
        self._deadline = 0.0
        self._root_id: tuple[int, int] | None = None
        self._trails: dict[str, ResolvedPath | None] | None = None

    def seconds_left(self) -> float:
        now = time.monotonic()
        if not self._deadline:
            self._deadline = now + MATCH_SECONDS
        return self._deadline - now

    def root_id(self) -> tuple[int, int]:
        """The device and inode of the workspace's root."""
        if self._root_id is None:
            found = os.lstat(self.root)
            self._root_id = (found.st_dev, found.st_ino)
        return self._root_id

    def trail(self, path: str) -> ResolvedPath | None:
        """The place of a path, links resolved; None if outside the workspace. Raises ToolError if invalid."""
        trails = self._trails
        if trails is None:
            trails = self._trails = {}
        found: ResolvedPath | None = trails.get(path, _MISSING)
        if found is _MISSING:
            found = trails[path] = _trail(self.workspace, self.root, path)
        return found


def _trail(workspace: Workspace, root: str, path: str) -> ResolvedPath | None:
    parts = path.split("/")
    if not _UNTIDY.isdisjoint(parts):
        parts = [part for part in parts if part not in ("", ".")]
    if path[:1] not in ABSOLUTE and ".." not in parts:
        ids = _ids(root, parts)
        if ids is not None:
            return ResolvedPath(parts, ids)
    real = workspace.locate(path)
    if real != workspace.root and workspace.root not in real.parents:
        return None
    parts = list(real.relative_to(workspace.root).parts)
    ids = _ids(root, parts)
    if ids is None:
        raise ToolError(f"{path} changed while it was being resolved.")
    return ResolvedPath(parts, ids)


def _ids(root: str, parts: list[str]) -> list[tuple[int, int]] | None:
    """The identities of the existing components of a path; None if one is a link or cannot be read."""
    found: list[tuple[int, int]] = []
    try:
        for part in parts:
            root = f"{root}/{part}"
            seen = os.lstat(root)
            if stat.S_ISLNK(seen.st_mode):
                return None
            found.append((seen.st_dev, seen.st_ino))
    except (FileNotFoundError, NotADirectoryError):
        return found
    except (OSError, ValueError):
        return None
    return found


class PagePath(str):
    """The path of a web address."""

    __slots__ = ()


class UserName(str):
    """The name of the user of a call."""

    __slots__ = ()


# Predicates

Predicate: TypeAlias = Callable[[Any, EvaluationContext], Truth]


def anything(value: Any, facts: EvaluationContext) -> Truth:
    return True


def all_of(parts: Sequence[Predicate]) -> Predicate:
    if not parts:
        return anything
    if len(parts) == 1:
        return parts[0]

    def test(value: Any, facts: EvaluationContext) -> Truth:
        truth: Truth = True
        for part in parts:
            said = part(value, facts)
            if said is False:
                return False
            truth = truth and said
        return truth

    return test


def any_of(parts: Sequence[Predicate]) -> Predicate:
    if len(parts) == 1:
        return parts[0]

    def test(value: Any, facts: EvaluationContext) -> Truth:
        truth: Truth = False
        for part in parts:
            said = part(value, facts)
            if said:
                return True
            if said is None:
                truth = None
        return truth

    return test


def is_intended(_: Any, facts: EvaluationContext) -> Truth:
    """Whether the task needs the tool of the call, as its model said before it read anything foreign."""
    return None if facts.origins is None else facts.origins.intended(facts.call)


def negated(part: Predicate) -> Predicate:
    def test(value: Any, facts: EvaluationContext) -> Truth:
        said = part(value, facts)
        return None if said is None else not said

    return test


ANOTHER: Any = object()  # a value that no rule names literally; nothing else is known about it


def _unequal(value: Any) -> Truth:
    """False for plain data, which is known to differ; None (undecided) for anything else."""
    plain = value is None or value is ANOTHER or isinstance(value, (bool, int, float, str, list, tuple, dict))
    return False if plain else None


def _is_number(value: Any) -> bool:
    """Whether a value is a number other than NaN, which compares with nothing."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def equals_text(wanted: str) -> Predicate:
    """The text, or the same path. Another spelling of the same web address, or of the same user's name, is
    undecided."""
    address = _loosest(wanted)

    def test(value: Any, facts: EvaluationContext) -> Truth:
        if isinstance(value, WorkspacePath):
            return _same_path(value, wanted, facts)
        if not isinstance(value, str):
            return _unequal(value)
        if isinstance(value, UserName):
            return True if value == wanted else None if account_of(value) == account_of(wanted) else False
        if isinstance(value, PagePath):
            return True if value == wanted else None if _alike(value, wanted) else False
        return True if value == wanted else None if address and _alike(_loosest(value), address) else False

    return test


def _address(text: str) -> str:
    """The normal form of a web address; empty for any other text."""
    if text[:4].lower() != "http":
        return ""
    from quoth.tools.call.web_url import normal_form  # here: few calls name one

    return normal_form(text)


def _loosest(text: str) -> str:
    """A web address as the most tolerant server reads it; empty for any other text."""
    if text[:4].lower() != "http":
        return ""
    from quoth.tools.call.web_url import loosest_form  # here: few calls name one

    return loosest_form(text)


def _alike(one: str, other: str) -> bool:
    """Whether some servers return the same page, because they ignore case or a slash at the end."""
    return one.lower().rstrip("/") == other.lower().rstrip("/")


def _same_path(value: WorkspacePath, wanted: str, facts: EvaluationContext) -> Truth:
    """Whether a path that the door has resolved is the place that a rule names, in any spelling. Undecided
    for another name of the same file (a hard link)."""
    if value == wanted:
        return True
    try:
        place = facts.trail(value)
    except ToolError:
        return None
    if place is None or wanted[:1] in ABSOLUTE or ".." in wanted:
        return _spelt_alike(value, wanted, facts)
    exists = len(place.ids) == len(place.parts)
    try:
        found = os.stat(f"{facts.root}/{wanted}")  # noqa: PTH116  a Path takes twice as long
    except FileNotFoundError:  # an existing file differs from a missing one
        return False if exists else _spelt_alike(value, wanted, facts)
    except NotADirectoryError:  # a slash after a file
        return _spelt_alike(value, wanted, facts)
    except (OSError, ValueError):
        return None
    if not exists or (found.st_dev, found.st_ino) != (place.ids[-1] if place.ids else facts.root_id()):
        return False
    if found.st_nlink == 1 or stat.S_ISDIR(found.st_mode):
        return True  # also where the file system has another spelling for the name
    return _spelt_alike(value, wanted, facts) or None


def _spelt_alike(value: WorkspacePath, wanted: str, facts: EvaluationContext) -> Truth:
    try:
        return facts.workspace.canonical(wanted) == value
    except ToolError:
        return None


def equals_number(wanted: float) -> Predicate:
    def test(value: Any, facts: EvaluationContext) -> Truth:
        return value == wanted if _is_number(value) else _unequal(value)

    return test


def identical(wanted: bool | None) -> Predicate:
    def test(value: Any, facts: EvaluationContext) -> Truth:
        return True if value is wanted else _unequal(value)

    return test


def equals_list(items: Sequence[Predicate], more: bool) -> Predicate:
    count = len(items)

    def test(value: Any, facts: EvaluationContext) -> Truth:
        if not isinstance(value, (list, tuple)):
            return _unequal(value)
        truth: Truth = True
        if has_rest(value):
            value = value[:-1]
            if len(value) > count and not more:
                return False
            truth = True if more and len(value) >= count else None
        elif len(value) < count or (len(value) > count and not more):
            return False
        for item, each in zip(items, value, strict=False):
            said = item(each, facts)
            if said is False:
                return False
            truth = truth and said
        return truth

    return test


def equals_dict(items: Mapping[str, Predicate]) -> Predicate:
    each = all_of([at_key(name, predicate) for name, predicate in items.items()])

    def test(value: Any, facts: EvaluationContext) -> Truth:
        if not isinstance(value, Mapping):
            return _unequal(value)
        return False if value.keys() != items.keys() else each(value, facts)

    return test


def at_key(name: str, predicate: Predicate) -> Predicate:
    def test(value: Any, facts: EvaluationContext) -> Truth:
        if not isinstance(value, Mapping):
            return None
        return predicate(value[name], facts) if name in value else False

    return test


def compares(sign: str, bound: float) -> Predicate:
    compare: Callable[[float, float], bool] = {
        ">": lambda value, bound: value > bound,
        ">=": lambda value, bound: value >= bound,
        "<": lambda value, bound: value < bound,
        "<=": lambda value, bound: value <= bound,
    }[sign]

    def test(value: Any, facts: EvaluationContext) -> Truth:
        return compare(value, bound) if _is_number(value) else None

    return test


def has_rest(value: Any) -> bool:
    """Whether further items may follow those of a list."""
    return isinstance(value, (list, tuple)) and bool(value) and value[-1] is REST


def length(predicate: Predicate) -> Predicate:
    def test(value: Any, facts: EvaluationContext) -> Truth:
        if has_rest(value):
            return None
        return predicate(len(value), facts) if isinstance(value, (str, list, tuple, Mapping)) else None

    return test


def of_items(predicate: Predicate, *, every: bool) -> Predicate:
    """The predicates ``any`` and ``every``. On an empty list ``any`` is false and ``every`` is true."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        if not isinstance(value, (list, tuple)):
            return None
        truth: Truth = None if has_rest(value) else every
        for item in value[:-1] if has_rest(value) else value:
            said = predicate(item, facts)
            if said is (not every):
                return said
            if said is None:
                truth = None
        return truth

    return test


_NOTHING = "\0"


def matches(pattern: Any) -> Predicate:
    """The pattern occurs in the text and, for a web address, in its normal form; undecided if it occurs in
    only one of them."""

    def test(value: Any, facts: EvaluationContext) -> Truth:
        if not isinstance(value, str):
            return None
        said, other = occurs(value, facts), _address(value)
        if not other and value.endswith("\n") and "$" in pattern.pattern:  # $ matches before a last newline
            return said if occurs(f"{value}{_NOTHING}", facts) is said else None
        if other not in ("", value) and occurs(other, facts) is not said:
            return None
        if said is False and (loosest := value.lower() if isinstance(value, PagePath) else _loosest(value)):
            more = {loosest, loosest.rstrip("/")}
            return False if all(occurs(one, facts) is False for one in more) else None
        return said

    def occurs(value: str, facts: EvaluationContext) -> Truth:
        left = facts.seconds_left()
        if left <= 0:
            return None
        try:
            return pattern.search(value, timeout=left) is not None
        except TimeoutError:
            return None

    return test


def under(folder: str) -> Predicate:
    """The path is the folder or inside it, links resolved. Outside the workspace nothing matches."""

    simple = folder[:1] not in ABSOLUTE

    def test(value: Any, facts: EvaluationContext) -> Truth:
        if not isinstance(value, str):
            return None
        try:
            place = facts.trail(value)
            if place is None:
                return False
            if simple and (known := _leads_through(place, folder, facts)) is not None:
                return known
            base = facts.trail(folder)
        except ToolError:
            return None
        return base is not None and place.parts[: len(base.parts)] == base.parts

    return test


def _leads_through(place: ResolvedPath, folder: str, facts: EvaluationContext) -> bool | None:
    """Whether the folder contains the place, judged by file identity: one lookup, independent of links and
    of how the file system spells names. None if neither exists."""
    try:
        found = os.stat(f"{facts.root}/{folder}")  # noqa: PTH116  a Path takes twice as long
    except FileNotFoundError:
        return False if len(place.ids) == len(place.parts) else None  # existing places have existing parents
    except OSError:
        return None
    identity = (found.st_dev, found.st_ino)
    return identity in place.ids or identity == facts.root_id()


ANY_PATH = "path"  # in a rule for any tool: each path of a call, in any argument


def each_path(predicate: Predicate, *, every: bool) -> Predicate:
    """The predicate matches one path of the call, or with ``every`` all of them. Paths are found by parameter
    type, or in an argument named ``path``. False for a call without paths."""

    def test(args: Any, facts: EvaluationContext) -> Truth:
        said = [
            (True if predicate is anything and value is UNKNOWN else None)
            if value is UNKNOWN or value is _PERHAPS
            else predicate(value, facts)
            for value in paths_of_call(args, facts.tool)
        ]
        if not said:
            return False
        decides = not every
        return decides if decides in said else None if None in said else every

    return test


def paths_of_call(args: Mapping[str, Any], tool: CognitiveTool) -> list[Any]:
    """Each path that a call names; a value that is not a text represents an unknown path."""
    typed = {param.name: param.type for param in tool.path_params}
    values: list[Any] = [args[ANY_PATH]] if ANY_PATH in args and ANY_PATH not in typed else []
    for name in typed.keys() & args.keys():
        values += [_unknown_path(tool, name)] if args[name] is UNKNOWN else paths_at(typed[name], args[name])
    return values


_PERHAPS: Any = object()  # an unknown number of unknown paths


def _unknown_path(tool: CognitiveTool, name: str) -> Any:
    """The placeholder for an unknown argument of paths: UNKNOWN if every call has exactly one path there."""
    param = next(param for param in tool.path_params if param.name == name)
    one = param.type is WorkspacePath and (param.required or param.default is not None)
    return UNKNOWN if one else _PERHAPS


def argument(name: str, predicate: Predicate, missing: Truth) -> Predicate:
    def test(args: Any, facts: EvaluationContext) -> Truth:
        value = args.get(name, _MISSING)
        if value is UNKNOWN:
            return True if predicate is anything else None
        return missing if value is _MISSING else predicate(value, facts)

    return test


def only_these(names: frozenset[str]) -> Predicate:
    """All arguments except ``names`` have their default values."""

    def test(args: Any, facts: EvaluationContext) -> Truth:
        truth: Truth = True
        for param in facts.tool.params:
            said = param.name in names or has_default(param, args, facts)
            if said is False:
                return False
            truth = truth and said
        return truth

    return test


def has_default(param: Param, args: Mapping[str, Any], facts: EvaluationContext) -> Truth:
    """Whether an argument has its default value."""
    default = param.default
    value = args.get(param.name, default)
    if value is default:
        return True
    if value is UNKNOWN:
        return None
    if param.holds_paths:  # the door has resolved the default, too
        try:
            default = with_paths(param.type, default, facts.workspace.canonical)
        except ToolError:
            return None
    return (type(value), value) == (type(default), default)
