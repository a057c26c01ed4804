"""Reads policy files, and records which of them a person trusts."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoth.tools.errors import UsageError
from quoth.tools.policy.project import OWN_NAME, user_policy, workspace_policy
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import is_missing, private_folder, state_dir

if TYPE_CHECKING:
    from quoth.tools.policy.policy import Layer, LayerKind, RulesPolicy

# Records the trusted text of a workspace's own file: its SHA-256, stored in the state folder. Nothing inside
# a workspace can reach these records, so a workspace cannot trust itself.


def digest_of(data: bytes) -> str:
    """The SHA-256 of ``data`` in hex."""
    return hashlib.sha256(data).hexdigest()


class Trust:
    """One small record for each workspace with a trusted policy, or trusted files of another ``kind``, named
    by the workspace's real path."""

    def __init__(self, folder: Path | None = None, kind: str = "") -> None:
        self._folder, self._kind = folder, kind

    @property
    def folder(self) -> Path:
        return self._folder or state_dir() / "trust"

    def _file(self, root: Path) -> Path:
        return self.folder / f"{digest_of(os.fsencode(root.resolve()))[:32]}{self._kind}.json"

    def trusted(self, root: Path) -> str | None:
        """The trusted SHA-256 of this workspace's file, or None. Raises UsageError if the record cannot be
        read."""
        digest = self._record(root, "sha256", str)
        return None if digest is None else str(digest)

    def each(self, root: Path) -> dict[str, str]:
        """The trusted SHA-256 of each of several files or folders of this workspace, by name. Raises
        UsageError if the record cannot be read."""
        return {**(self._record(root, "each", dict) or {})}

    def _record(self, root: Path, key: str, kind: type) -> Any:
        """The content of a workspace's record; None if there is none. Raises UsageError."""
        file = self._file(root)
        try:
            said = json.loads(file.read_bytes())[key]
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, TypeError, KeyError):
            said = None
        if not isinstance(said, kind):
            raise UsageError(f"The trust record {file} cannot be read; remove it and run: quoth trust")
        return said

    def trust(self, root: Path, data: bytes) -> str:
        """Trust this text in this workspace, replacing any earlier one; return its SHA-256."""
        digest = digest_of(data)
        self._keep(root, {"sha256": digest})
        return digest

    def trust_each(self, root: Path, digests: Mapping[str, str]) -> None:
        """Trust these files or folders of this workspace, by name, and no others of this kind."""
        if not digests:
            self.forget(root)
            return
        self._keep(root, {"sha256": digest_of(repr(sorted(digests.items())).encode()), "each": dict(digests)})

    def _keep(self, root: Path, said: dict[str, object]) -> None:
        record = {**said, "workspace": os.fsencode(root.resolve()).decode(errors="replace")}
        try:
            private_folder(self.folder)
            replace_file(self._file(root), [json.dumps(record, ensure_ascii=False).encode()], 0o600)
        except OSError as error:
            raise UsageError(f"The trust cannot be stored in {self.folder}: {error.strerror}.") from None

    def remembers(self, root: Path) -> bool:
        """Whether there is a record of this workspace, even if it cannot be read."""
        return not is_missing(self._file(root))

    def forget(self, root: Path) -> bool:
        """Remove the trust of this workspace; False if there was none. Raises UsageError."""
        try:
            self._file(root).unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise UsageError(f"The trust in {root} cannot be revoked: {error.strerror}.") from None
        return True


@contextlib.contextmanager
def lent_trust(root: Path, other: Path) -> Iterator[None]:
    """Within the block, the same texts are trusted in the workspace ``other`` as in ``root``. Raises
    UsageError."""
    folder = Trust().folder
    mine, theirs = (digest_of(os.fsencode(one.resolve()))[:32] for one in (root, other))
    lent = {folder / f"{theirs}{one.name.removeprefix(mine)}": one for one in folder.glob(f"{mine}*.json")}
    try:
        try:
            for record, own in lent.items():
                replace_file(record, [own.read_bytes()], 0o600)
        except OSError as error:
            raise UsageError(f"The trust cannot be stored in {folder}: {error.strerror}.") from None
        yield
    finally:
        for record in lent:
            record.unlink(missing_ok=True)


MAX_BYTES = 1_000_000


def load_policy(
    root: Path,
    given: str | Path | None = None,
    *,
    more: Sequence[Layer] = (),
    shipped: Path | None = None,
    counted: bool = False,
) -> RulesPolicy:
    """The policy of a workspace: the user's layer, the workspace's own if it is trusted, the ``given`` file,
    ``more`` layers, and a ``shipped`` file of rules. ``counted``: the door counts its quotas and cooldowns.
    Raises UsageError for a file that cannot be read, or has changed since it was trusted."""
    layers = _layers_of_user()
    data, notes = trusted_bytes(root, workspace_policy(root), Trust(), "its rules do not apply")
    if data is not None:
        layers.append(parse_layer("workspace", data, OWN_NAME))
    if given is not None:
        layers.append(read_layer("given", Path(given), str(given)))
    layers += more
    if shipped is not None:
        layers.append(shipped_layer(shipped))
    from quoth.tools.policy.policy import RulesPolicy  # here: a configuration is read without rules

    return RulesPolicy(layers, counted=counted, notes=notes)


def trusted_bytes(root: Path, own: Path, trust: Trust, so: str) -> tuple[bytes | None, list[str]]:
    """A workspace's ``own`` file if it is trusted; otherwise None, with a note if the file exists. ``so`` is
    the consequence in the note. Raises UsageError if a trusted file has changed or is gone."""
    trusted = trust.trusted(root)
    if trusted is None:
        note = f"{own} is not trusted, so {so}; read it, then run: quoth trust"
        return None, [] if is_missing(own) else [note]
    data = read_bytes(own, f"{own} was trusted and is gone; restore it, or run: quoth trust")
    if digest_of(data) != trusted:
        raise UsageError(f"{own} has changed since it was trusted; read it, then run: quoth trust")
    return data, []


def layers_to_check(root: Path, given: str | Path | None = None) -> tuple[list[Layer], list[str]]:
    """The layers of ``load_policy``, plus the workspace's own policy even if it is not trusted, with a
    note about that."""
    layers, notes, own = _layers_of_user(), [], workspace_policy(root)
    if not is_missing(own):
        data = read_bytes(own, f"{own} is gone.")
        layers.append(parse_layer("workspace", data, OWN_NAME))
        if Trust().trusted(root) != digest_of(data):
            notes.append(f"{own} is not trusted in its present form; read it, then run: quoth trust")
    if given is not None:
        layers.append(read_layer("given", Path(given), str(given)))
    return layers, notes


def own_policy(root: Path) -> tuple[Layer, bytes] | None:
    """A workspace's own policy and its text, trusted or not; None if there is none. Raises UsageError if it
    cannot be read."""
    own = workspace_policy(root)
    if is_missing(own):
        return None
    data = read_bytes(own, f"There is no {OWN_NAME} in {root}.")
    return parse_layer("workspace", data, OWN_NAME), data


def _layers_of_user() -> list[Layer]:
    mine = user_policy()
    return [] if is_missing(mine) else [read_layer("user", mine, at_home(mine))]


def shipped_layer(path: Path) -> Layer:
    """A file of rules that ships in this package, under its name there."""
    name = Path("quoth", *path.relative_to(Path(__file__).parents[2]).parts)
    return read_layer("shipped", path, str(name))


def read_layer(kind: LayerKind, path: Path, name: str) -> Layer:
    """Read a policy file as a layer; ``name`` is its name in messages."""
    return parse_layer(kind, read_bytes(path, f"There is no policy file {path}."), name)


def parse_layer(kind: LayerKind, data: bytes, name: str) -> Layer:
    """Parse the text of a policy file as a layer."""
    from quoth.tools.policy.language import read_orders  # here: as above
    from quoth.tools.policy.policy import Layer

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not UTF-8 text.") from None
    orders = read_orders(text, name)
    for one in orders.effects if kind != "user" else ():
        where = "A person says the effects of a server's tool: write this into your own policy.hy"
        raise UsageError(one.place.complaint(f"{where} ({at_home(user_policy())})."))
    return Layer(kind, name, orders)


def read_bytes(path: Path, missing: str) -> bytes:
    """A regular file of at most MAX_BYTES. Raises UsageError, with ``missing`` if there is none."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a regular file.")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(missing) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is larger than {MAX_BYTES} bytes.")
    return data


def at_home(path: Path) -> str:
    """A path as a person writes it, with ``~`` for home."""
    try:
        return f"~/{path.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(path)
