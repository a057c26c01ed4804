"""A real browser without a window, where there is one. Knows how it is started."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def seen_in_browser(page: Path) -> str:
    """The page as the browser has it once its scripts have run, if it holds any."""
    assert BROWSER
    with tempfile.TemporaryDirectory() as own:
        how = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={own}"]
        what = ["--virtual-time-budget=2000", "--dump-dom", page.as_uri()]
        run = subprocess.run([BROWSER, *how, *what], capture_output=True, text=True, timeout=120, check=True)
    return run.stdout


# A browser that stays, driven by the DevTools protocol over two pipes


SECONDS = 120.0  # for an answer of the browser


class Chromium:
    """A browser without a window. Within it each tab has cookies of its own."""

    def __init__(self, folder: Path) -> None:
        assert BROWSER
        to, self._out = os.pipe()
        self._in, back = os.pipe()
        moves = "import os, sys; a, b = map(int, sys.argv[1:3]); a = os.dup(a); b = os.dup(b)"
        moves += "; os.dup2(a, 3); os.dup2(b, 4); [os.set_inheritable(one, True) for one in (3, 4)]"
        moves += "; os.execv(sys.argv[3], sys.argv[3:])"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
        flags += [f"--user-data-dir={folder}", "--disable-dev-shm-usage", "--disable-background-networking"]
        words = [sys.executable, "-ISc", moves, str(to), str(back), BROWSER, *flags]
        self._process = subprocess.Popen(words, pass_fds=(to, back), stderr=subprocess.DEVNULL)
        os.close(to)
        os.close(back)
        self._rest, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        with contextlib.suppress(OSError, AssertionError):
            self.ask("Browser.close")
        os.close(self._out)
        os.close(self._in)
        try:
            self._process.wait(SECONDS)
        finally:
            self._process.kill()

    def tab(self) -> Tab:
        own = self.ask("Target.createBrowserContext")["browserContextId"]
        target = self.ask("Target.createTarget", url="about:blank", browserContextId=own)["targetId"]
        return Tab(self, self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])

    def ask(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """The answer to a command; events that come before it are kept."""
        self._number += 1
        number, place = self._number, {"sessionId": session} if session else {}
        os.write(
            self._out,
            json.dumps({"id": number, "method": method, "params": params, **place}).encode() + b"\0",
        )
        while (said := self.next()).get("id") != number:
            self.events.append(said)
        assert "error" not in said, (method, said)
        found: dict[str, Any] = said["result"]
        return found

    def next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            assert select.select([self._in], [], [], SECONDS)[0], "the browser is silent"
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser has ended"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found


class Tab:
    """A tab: a page, and what can be done with it."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser, self._session = browser, session
        self.ask("Page.enable")
        self.ask("Log.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.ask(method, self._session, **params)

    def looks(
        self, *, width: int = 1000, height: int = 800, dark: bool = False, scripts: bool = True
    ) -> None:
        """What the next pages are shown on."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.ask("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Emulation.setScriptExecutionDisabled", value=not scripts)

    def go(self, address: str) -> None:
        """Open an address, and wait until it is loaded."""
        self._browser.events.clear()
        self.ask("Page.navigate", url=address)
        self._loaded()

    def _loaded(self) -> None:
        while not any(one.get("method") == "Page.loadEventFired" for one in self._browser.events):
            self._browser.events.append(self._browser.next())

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        said = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    def press(self, button: str) -> None:
        """Press the button or link with these words, and wait for the page that it leads to."""
        self._browser.events.clear()
        found = (
            f"[...document.querySelectorAll('button, a')].find(one => one.innerText.startsWith({button!r}))"
        )
        self.run(f"{found}.click()")
        self._loaded()

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + SECONDS
        while not self.run(script):
            assert time.monotonic() < end, self.run("document.body.innerText")
            time.sleep(0.05)

    @property
    def text(self) -> str:
        return str(self.run("document.body.innerText"))

    def complaints(self) -> list[str]:
        """What the browser has logged about the last page, such as what its policy of content refused."""
        events = [
            one["params"]["entry"] for one in self._browser.events if one.get("method") == "Log.entryAdded"
        ]
        return [f"{one['text']} {one.get('url', '')}" for one in events]

    def picture(self) -> bytes:
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])
