"""Who is let in to the pages. ``quoth view`` leaves a code in a folder that only its user can read, and opens
an address with it; the server takes the code away once, and gives the browser a cookie instead."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from quoth.agent.serve.keys import KeySource
from quoth.agent.view.page import Visitor
from quoth.tools.errors import UsageError
from quoth.tools.storage.atomic import new_file
from quoth.tools.storage.paths import private_folder

CODE_SECONDS = 60.0
COOKIE_SECONDS = 12 * 3600.0
MOST = 1000  # visitors at once
_CODE = re.compile(r"[\w-]{20,100}", re.ASCII)


def _folder(state: Path) -> Path:
    return state / "view" / "codes"


def make_code(state: Path, server: str, name: str, clock: Callable[[], float] = time.time) -> str:
    """A code that lets the key ``name`` in to the server with this id, once, for CODE_SECONDS. Raises
    UsageError."""
    code, folder, now = secrets.token_urlsafe(24), _folder(state), clock()
    data = {"server": server, "name": name, "until": now + CODE_SECONDS}
    try:
        private_folder(folder)
        for old in folder.iterdir():
            with contextlib.suppress(OSError):
                if old.stat().st_mtime < now - 2 * CODE_SECONDS:
                    old.unlink()
        new_file(folder / _name(code), [json.dumps(data).encode()], 0o600)
    except OSError as error:
        raise UsageError(f"A code cannot be written to {folder}: {error.strerror}.") from None
    return code


def _name(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


@dataclass
class ViewDoor:
    """The visitors of one server, each with the digest of its key's token. ``server`` is its id: codes for
    another one are refused, and the cookie has a name of its own, because browsers send a cookie to every
    port."""

    state: Path
    server: str
    keys: KeySource
    clock: Callable[[], float] = time.time
    _visitors: dict[str, tuple[Visitor, str, float]] = field(default_factory=dict)

    @property
    def cookie(self) -> str:
        return f"quoth-view-{self.server}"

    def enter(self, code: str) -> str | None:
        """The value of the cookie for a code; None if it is unknown, used, too old, or for another server."""
        if not _CODE.fullmatch(code):
            return None
        path = _folder(self.state) / _name(code)
        try:
            data = json.loads(path.read_bytes())
            path.unlink()  # of two who take it, one succeeds
            server, name, until = str(data["server"]), str(data["name"]), float(data["until"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        found = next((one for one in self.keys.keys if one.name == name), None)
        if server != self.server or self.clock() > until or found is None:
            return None
        value = secrets.token_urlsafe(32)
        visitor = Visitor(name, found.decides, secrets.token_urlsafe(24))
        self._visitors[_name(value)] = visitor, _name(found.token), self.clock() + COOKIE_SECONDS
        for old in [*self._over()]:
            self._visitors.pop(old, None)
        return value

    def _over(self) -> Iterator[str]:
        """The visitors whose time is over, and the oldest of too many."""
        names = [*self._visitors]
        yield from names[:-MOST]
        yield from [name for name in names if self._visitors[name][2] < self.clock()]

    def visitor(self, value: str) -> Visitor | None:
        """The visitor with this cookie, with the rights that its key has now; None once the key has another
        token."""
        visitor, token, until = self._visitors.get(_name(value), (None, "", 0.0))
        key = next((one for one in self.keys.keys if visitor and one.name == visitor.name), None)
        if visitor is None or key is None or _name(key.token) != token or self.clock() > until:
            return None
        return visitor if visitor.decides == key.decides else replace(visitor, decides=key.decides)

    def leave(self, value: str) -> None:
        self._visitors.pop(_name(value), None)


def is_own(visitor: Visitor, token: str) -> bool:
    """Whether a form came from a page of this visitor."""
    return hmac.compare_digest(visitor.csrf.encode(), token.encode("utf-8", "replace"))
