"""What may be done without asking: the layers of policy that apply, and the verdict they give on a call.

Knows where policy files lie and that a workspace's own must be trusted; must not know doors or consent.

All rules of all layers are one set: deny is stronger than ask, ask than allow, and neither their order nor
their file matters. Where no rule matches, a tool's declared effects decide: reading and computing are
allowed, whatever can change something is asked; an allow lifts that. The rules of a workspace's own file can
only tighten, so its allows are passed over. A policy that cannot be read, or is not the one that was trusted,
is a UsageError: nothing starts without the rules a person gave it.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from quoth.tools.call.context import Call, ToolContext, Verdict, ask, deny
from quoth.tools.errors import UsageError
from quoth.tools.policy.language import KINDS, Key, Limit, Orders, Rule, read_orders
from quoth.tools.policy.predicates import Facts, Truth, anything
from quoth.tools.policy.trust import Trust, digest_of
from quoth.tools.registry.table import CognitiveTool

SILENT_EFFECTS = frozenset({"reads"})
IN_WORDS = {
    "writes": "it writes files",
    "runs": "it runs a program",
    "net": "it uses the network",
    "memory": "it changes memory",
}
FILE_NAME = "policy.hy"
WORKSPACE_FOLDER = ".quoth"
OWN_NAME = f"{WORKSPACE_FOLDER}/{FILE_NAME}"
MAX_BYTES = 1_000_000


class Policy(Protocol):
    """Judges a validated call before its guard runs. ``args`` are the body's, defaults included."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict: ...


class EffectsPolicy:
    """The built-in layer: a tool that only reads, or touches nothing, is allowed; any other is asked."""

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        return by_effects(tool)


def by_effects(tool: CognitiveTool) -> Verdict:
    """What the built-in layer says of any call of this tool."""
    felt = [IN_WORDS[effect] for effect in tool.effects if effect not in SILENT_EFFECTS]
    if felt:
        return ask(" and ".join(felt))
    return Verdict("allow", "it only reads" if tool.effects else "it touches nothing")


LayerKind = Literal["user", "workspace", "given"]


@dataclass(frozen=True)
class Layer:
    """One policy file: whose it is, under which name people know it, and what it says."""

    kind: LayerKind
    name: str
    orders: Orders

    def ignores(self, rule: Rule) -> bool:
        """A workspace may only tighten."""
        return self.kind == "workspace" and rule.kind == "allow"


class Match(NamedTuple):
    """A rule that matches a call, or whose match cannot be decided (``truth`` is None)."""

    layer: Layer
    rule: Rule
    truth: Truth

    @property
    def counts(self) -> bool:
        return self.rule.counts(self.truth) and not self.layer.ignores(self.rule)


@dataclass(frozen=True)
class Explanation:
    """Why a call would be judged as it would: every rule that matches, the one that decides (None: the
    default, or a limit that cannot be counted), and the default."""

    verdict: Verdict
    decided: Match | None
    matches: tuple[Match, ...]
    default: Verdict


class _Entry(NamedTuple):
    """A rule in the index: the stronger verdict first, then in the order of the files."""

    rank: tuple[int, int]
    test: Callable[[Mapping[str, Any], Facts], Truth]
    verdict: Verdict
    undecided: Verdict | None  # None: what cannot be decided does not count


class _Entries:
    """Rules that concern one tool, so kept that a call meets only those that may match it."""

    def __init__(self, rules: Iterable[tuple[_Entry, Key | None]]) -> None:
        self.loose: list[_Entry] = []
        keyed: dict[tuple[str, str], list[tuple[_Entry, Key]]] = {}
        for entry, key in rules:
            if key is None:
                self.loose.append(entry)
            else:
                keyed.setdefault((key.of, key.name), []).append((entry, key))
        self.keyed: list[tuple[Key, dict[str, list[_Entry]], list[_Entry]]] = []
        for pairs in keyed.values():
            by_text: dict[str, list[_Entry]] = {}
            for entry, key in pairs:
                for text in key.texts:
                    by_text.setdefault(text, []).append(entry)
            self.keyed.append((pairs[0][1], by_text, [entry for entry, _ in pairs]))

    def judge(self, args: Mapping[str, Any], facts: Facts) -> Verdict | None:
        """What the first rule that matches says."""
        entries = self.loose
        for key, by_text, every in self.keyed:
            value = key.value(args, facts)
            more = by_text.get(value) if isinstance(value, str) else every
            if more:
                entries = sorted([*entries, *more], key=_rank)
        for _, test, verdict, undecided in entries:
            truth = test(args, facts)
            if truth:
                return verdict
            if truth is None and undecided is not None:
                return undecided
        return None


_rank = itemgetter(0)


class _Indexed(NamedTuple):
    """The rules that concern one tool: denies and asks, and allows."""

    tool: CognitiveTool
    strict: _Entries
    allows: _Entries
    default: Verdict


class RulesPolicy:
    """The layers that apply, compiled: judging a call looks only at the rules that concern its tool.

    ``limits`` are data for whoever counts calls. Until somebody says that they are ``counted``, a tool that
    has one is denied: an unkept limit fails closed.
    """

    def __init__(
        self, layers: Sequence[Layer] = (), *, counted: bool = False, notes: Sequence[str] = ()
    ) -> None:
        self.layers = tuple(layers)
        self.counted = counted
        self.notes = tuple(notes)  # what a person should be told about the layers
        self.limits: tuple[Limit, ...] = tuple(one for layer in layers for one in layer.orders.limits)
        self._rules = tuple((layer, rule) for layer in layers for rule in layer.orders.rules)
        self._index: dict[str, _Indexed] = {}

    @property
    def digest(self) -> str:
        """Which rules these are, in 16 hex digits: the same for the same words in the same layers."""
        said = [
            [
                layer.kind,
                [[rule.kind, rule.text] for rule in layer.orders.rules],
                [limit.text for limit in layer.orders.limits],
            ]
            for layer in self.layers
        ]
        return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]

    def judge(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Verdict:
        """The strongest verdict of all rules that match, with the rule as written and its place."""
        indexed = self._index.get(tool.name)
        if indexed is None or indexed.tool is not tool:
            indexed = self._indexed(tool)
        facts = Facts(tool, call, context.workspace)
        return indexed.strict.judge(args, facts) or indexed.allows.judge(args, facts) or indexed.default

    def _indexed(self, tool: CognitiveTool) -> _Indexed:
        strict: list[tuple[_Entry, Key | None]] = []
        allows: list[tuple[_Entry, Key | None]] = []
        if uncounted := self._uncounted(tool):
            strict.append((_Entry((0, -1), anything, uncounted, uncounted), None))
        for number, (layer, rule) in enumerate(self._rules):
            if not rule.concerns(tool) or layer.ignores(rule):
                continue
            undecided = _says(rule, None) if rule.counts(None) else None
            entry = _Entry((KINDS.index(rule.kind), number), rule.test, _says(rule, True), undecided)
            key = next((key for key in rule.keys if not is_path_key(key, tool)), None)
            (allows if rule.kind == "allow" else strict).append((entry, key))
        strict.sort(key=lambda pair: pair[0].rank)
        indexed = _Indexed(tool, _Entries(strict), _Entries(allows), by_effects(tool))
        self._index[tool.name] = indexed
        return indexed

    def strict(self, tool: CognitiveTool) -> list[Rule]:
        """The denies and asks that concern a tool."""
        return [rule for _, rule in self._rules if rule.kind != "allow" and rule.concerns(tool)]

    def _uncounted(self, tool: CognitiveTool) -> Verdict | None:
        limits = self.limits_of(tool)
        if self.counted or not limits:
            return None
        return deny(f"{limits[0].place} limits it, and its calls cannot be counted here")

    def limits_of(self, tool: CognitiveTool) -> list[Limit]:
        """The quotas and cooldowns of a tool."""
        return [limit for limit in self.limits if limit.tool == tool.name]

    def explain(
        self, tool: CognitiveTool, call: Call, args: Mapping[str, Any], context: ToolContext
    ) -> Explanation:
        """The same verdict as ``judge``, with all that led to it."""
        matches = []
        for layer, rule in self._rules:
            if rule.concerns(tool):
                truth = rule.test(args, Facts(tool, call, context.workspace))
                if truth is not False:
                    matches.append(Match(layer, rule, truth))
        default = by_effects(tool)
        if uncounted := self._uncounted(tool):
            return Explanation(uncounted, None, tuple(matches), default)
        for kind in KINDS:
            for match in matches:
                if match.rule.kind == kind and match.counts:
                    verdict = _says(match.rule, match.truth)
                    return Explanation(verdict, match, tuple(matches), default)
        return Explanation(default, None, tuple(matches), default)


def is_path_key(key: Key, tool: CognitiveTool) -> bool:
    """Whether a key is of a path, which has more spellings than the one in the rule."""
    return key.of in ("argument", "first") and any(key.name == param.name for param in tool.path_params)


def _says(rule: Rule, truth: Truth) -> Verdict:
    unsure = "" if truth else ", and whether that fits cannot be decided"
    return Verdict(rule.kind, f"{rule.place} says {rule.text}{unsure}", rule.text)


# Where policies lie


def user_policy() -> Path:
    """``$QUOTH_CONFIG/policy.hy``, or in the platform's folder for configuration."""
    if named := os.environ.get("QUOTH_CONFIG"):
        return Path(named) / FILE_NAME
    import platformdirs

    return Path(platformdirs.user_config_dir("quoth", appauthor=False)) / FILE_NAME


def workspace_policy(root: Path) -> Path:
    """The workspace's own policy, which counts once it is trusted."""
    return root / WORKSPACE_FOLDER / FILE_NAME


def policy_files(root: Path, given: str | Path | None = None) -> tuple[Path, ...]:
    """Everything a tool must not write if policies are to stay what they are."""
    return (user_policy(), root / WORKSPACE_FOLDER, *([Path(given)] if given else []))


def load_policy(root: Path, given: str | Path | None = None, *, counted: bool = False) -> RulesPolicy:
    """The policy of a workspace: the user's, the workspace's own if it is trusted, and the one that was
    ``given``. ``counted`` says that the door counts its quotas and cooldowns. Raises UsageError for a file
    that cannot be read, or is not what was trusted."""
    layers, notes = [], []
    mine, own = user_policy(), workspace_policy(root)
    if os.path.lexists(mine):
        layers.append(read_layer("user", mine, _at_home(mine)))
    trusted = Trust().trusted(root)
    if trusted is not None:
        data = read_bytes(own, f"{own} was trusted and is gone; restore it, or run: quoth trust")
        if digest_of(data) != trusted:
            raise UsageError(f"{own} has changed since it was trusted; read it, then run: quoth trust")
        layers.append(parse_layer("workspace", data, OWN_NAME))
    elif os.path.lexists(own):
        notes.append(f"{own} is not trusted, so its rules are not kept; read it, then run: quoth trust")
    if given is not None:
        layers.append(read_layer("given", Path(given), str(given)))
    return RulesPolicy(layers, counted=counted, notes=notes)


def layers_to_check(root: Path, given: str | Path | None = None) -> tuple[list[Layer], list[str]]:
    """What ``load_policy`` would take, and the workspace's own policy even where it is not trusted, with a
    note about that."""
    layers, notes = [], []
    mine, own = user_policy(), workspace_policy(root)
    if os.path.lexists(mine):
        layers.append(read_layer("user", mine, _at_home(mine)))
    if os.path.lexists(own):
        data = read_bytes(own, f"{own} is gone.")
        layers.append(parse_layer("workspace", data, OWN_NAME))
        if Trust().trusted(root) != digest_of(data):
            notes.append(f"{own} is not trusted as it is; read it, then run: quoth trust")
    if given is not None:
        layers.append(read_layer("given", Path(given), str(given)))
    return layers, notes


def trust_workspace(root: Path) -> tuple[Layer, str] | None:
    """Trust the policy of a workspace as it is now: the layer it makes, and its SHA-256. None when there is
    none any more, and it is forgotten. Raises UsageError for one that cannot be read, or was never there."""
    own = workspace_policy(root)
    if not os.path.lexists(own):
        if Trust().forget(root):
            return None
        raise UsageError(f"There is no {OWN_NAME} in {root}.")
    data = read_bytes(own, f"There is no {OWN_NAME} in {root}.")
    layer = parse_layer("workspace", data, OWN_NAME)
    return layer, Trust().trust(root, data)


def read_layer(kind: LayerKind, path: Path, name: str) -> Layer:
    """A policy file as a layer."""
    return parse_layer(kind, read_bytes(path, f"There is no policy file {path}."), name)


def parse_layer(kind: LayerKind, data: bytes, name: str) -> Layer:
    """The text of a policy file as a layer."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text.") from None
    return Layer(kind, name, read_orders(text, name))


def read_bytes(path: Path, missing: str) -> bytes:
    """All of a regular file that is no larger than a policy can be. Raises UsageError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is no regular file.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(missing) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES} bytes.")
    return data


def _at_home(path: Path) -> str:
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
