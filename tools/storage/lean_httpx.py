"""The one place that imports httpx; everything else takes it from here. To change to its continuation httpx2,
which has the same interface, change the import: a test runs back ends and web on it.

httpx comes without its command line, which it imports wherever rich and click are installed: they more than
double the time and the memory that it takes. This file must not know what httpx is used for.
"""

from __future__ import annotations

import sys
from typing import Any

MAIN = "httpx._main"

if "httpx" in sys.modules:
    import httpx as httpx
else:
    modules: dict[str, Any] = sys.modules
    modules[MAIN] = None  # not installed, which httpx expects
    try:
        import httpx as httpx
    finally:
        del modules[MAIN]

USER_AGENT = f"python-{httpx.__name__}/{httpx.__version__}"
# The logs of the library below it, httpcore or httpcore2, about requests and responses.
WIRE_LOGS = tuple(f"{httpx.__name__.replace('httpx', 'httpcore')}.{name}" for name in ("http11", "http2"))
