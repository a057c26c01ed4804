"""quoth view: opens the pages of ``quoth serve`` in a browser, and serves them if no server does."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

from quoth.agent.cli.consent import require_no_agent
from quoth.agent.cli.options import DONE, option, switch
from quoth.agent.cli.serve import ServeOptions, need_serve, serve_until_stopped
from quoth.agent.terminal.input import require_person
from quoth.agent.terminal.output import complain, print_line
from quoth.tools.storage.paths import state_dir

if TYPE_CHECKING:
    from quoth.agent.view.running import ViewServer


class ViewOptions(ServeOptions):
    """Options of ``quoth view``."""

    name: str = option("--as", "NAME", "look with the rights of this key (default: me)", "me")
    prints: bool = switch("--print", "print the address for another device, and open no browser")


def view(options: ViewOptions) -> int:
    """Let a browser in: an address with a code that works once, within a minute."""
    require_person()
    require_no_agent()
    from quoth.agent.serve.keys import read_keys
    from quoth.agent.view.door import make_code
    from quoth.agent.view.running import found

    def show(running: ViewServer) -> None:
        read_keys(Path(running.keys)).named(options.name)
        address = running.url(make_code(state_dir(), running.server, options.name))
        if options.prints:
            tunnel = f"ssh -L {running.port}:127.0.0.1:{running.port} HOST"
            complain(f"The address works once, within a minute. On another device, first: {tunnel}")
            print_line(address)
        else:
            _open(address)

    if (running := found(options.folder)) is None:
        need_serve("view")
        return serve_until_stopped(options, show)
    show(running)
    return DONE


def _open(address: str) -> None:
    import webbrowser

    def opening() -> None:
        if not webbrowser.open(address):
            complain("No browser can be opened here. For another device: quoth view --print")

    thread = threading.Thread(target=opening, daemon=True)  # a browser in a terminal stays until it is left
    thread.start()
    thread.join(5)
