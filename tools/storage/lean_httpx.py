"""httpx without its command line, which it imports wherever rich and click are installed: they more than
double the time and the memory that it takes. It must not know what httpx is used for.
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
