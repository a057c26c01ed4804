"""The pages of ``quoth serve`` in this process: a workspace, visitors, and the forms of their pages."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path

import uvicorn
from serving import key_file
from starlette.testclient import TestClient

from quoth.agent.cli.desk import WorkspaceDesk
from quoth.agent.cli.main import parser
from quoth.agent.cli.options import parsed
from quoth.agent.cli.serve import listening
from quoth.agent.serve.app import build_app
from quoth.agent.serve.gate import RequestGate
from quoth.agent.serve.keys import read_keys
from quoth.agent.view.door import ViewDoor, make_code
from quoth.agent.view.part import view_part
from quoth.agent.view.places import PLACES
from quoth.tools.storage.paths import state_dir

EMPTY = ("br", "hr", "input", "link", "meta")


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Form:
    """A form of a page: where it goes, its fields as they are, and the words of its button."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    button: str = ""


class _Forms(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(said["action"]))
        elif tag == "input" and said["type"] != "radio":
            self.forms[-1].fields[said["name"]] = said.get("value", "")
        elif tag in ("textarea", "button"):
            self._inside = f"{tag} {said.get('name', '')}".strip()

    def handle_endtag(self, tag: str) -> None:
        self._inside = "" if tag in ("textarea", "button") else self._inside

    def handle_data(self, data: str) -> None:
        kind, _, name = self._inside.partition(" ")
        if kind == "button":
            self.forms[-1].button += data
        elif kind:
            self.forms[-1].fields[name] = self.forms[-1].fields.get(name, "") + data


def forms(page: str) -> dict[str, Form]:
    """The forms of a page, by the words of their buttons."""
    return {one.button.removesuffix(" …"): one for one in _Forms(page).forms}


class Browser(TestClient):
    """A browser with scripts off."""

    status = 0

    def see(self, path: str) -> str:
        """The page at a path."""
        answer = self.get(path)
        self.status = answer.status_code
        return answer.text

    def press(self, page: str, button: str, **fields: str) -> str:
        """Send the form of a page, with these fields in the place of its own, and follow where it leads."""
        form = forms(page)[button]
        answer = self.post(form.action, data={**form.fields, **fields}, follow_redirects=True)
        self.status = answer.status_code
        return answer.text


@dataclass
class Viewed:
    """The server of a workspace."""

    folder: Path
    keys: Path
    clock: Clock = field(default_factory=Clock)
    stopping: bool = False

    @cached_property
    def door(self) -> ViewDoor:
        return ViewDoor(state_dir(), "here", read_keys(self.keys), self.clock)

    @cached_property
    def app(self) -> RequestGate:
        return build_app([view_part(self.door, self.desk, PLACES, lambda: self.stopping)], self.door.keys)

    @cached_property
    def desk(self) -> WorkspaceDesk:
        words = ["serve", "--workspace", str(self.folder)]
        return WorkspaceDesk(parsed(parser(words), words)[1])

    def outside(self, **headers: str) -> Browser:
        """A browser that is not let in."""
        return Browser(self.app, "http://127.0.0.1:8420", headers=headers, follow_redirects=False)

    def code(self, name: str = "me", server: str = "here") -> str:
        return make_code(self.door.state, server, name, self.clock)

    @contextlib.contextmanager
    def served(self) -> Iterator[str]:
        """Within it the pages are served on a port of loopback; the address of them."""
        config = uvicorn.Config(self.app, log_level="error", lifespan="on")
        server = uvicorn.Server(config)
        with contextlib.closing(listening(0)) as sock:
            thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]})
            thread.start()
            try:
                yield f"http://127.0.0.1:{sock.getsockname()[1]}/view/"
            finally:
                server.should_exit = self.stopping = True
                thread.join()

    def browser(self, name: str = "me") -> Browser:
        """A browser that is let in by a key."""
        browser = self.outside()
        browser.get("/view/in", params={"code": self.code(name)})
        return browser


def viewed(folder: Path) -> Viewed:
    return Viewed(folder, key_file(folder.parent))
