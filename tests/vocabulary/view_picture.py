"""The picture of the page of a request, as README and the manual show it.

``PYTHONPATH=tests/vocabulary python tests/vocabulary/view_picture.py`` takes it again; look at it before it
is committed.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

PICTURE = Path(__file__).parents[2] / "agent" / "manual" / "view.png"
WIDTH, HEIGHT = 800, 790
OLD = "apples 2.10\npears 2.40\nplums 3.00\n"
TASK = "Put the new prices of pears and quinces into prices.txt"
REPLIES = (
    '(read-file :path "prices.txt")',
    '(write-file :path "prices.txt" :content "apples 2.10\\npears 2.80\\nplums 3.00\\nquinces 3.50\\n")',
)
TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d"
# What is another in each run is the same in each picture.
FIX = """{
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const node = walker.currentNode
    node.data = node.data.replaceAll(ID, "hm4kq").replaceAll(SESSION, "s5e0c81f2")
      .replace(/until TIME/g, "until 2026-11-29 09:30").replace(/(?<!until )TIME/g, "2026-11-22 09:30")
  }
}""".replace("TIME", TIME)


def taken(root: Path) -> tuple[bytes, str]:
    """A picture of the page, made in this folder, and the page's text."""
    from browser import Chromium
    from viewing import viewed
    from words import agent, files

    view = viewed(files(root / "shop", {"prices.txt": OLD}))
    with agent(view.folder, *REPLIES, user="me") as one, view.served() as home:
        assert one.run(TASK).status == "pending"
        (request,) = one.broker.requests()
        browser = Chromium(root / "chromium")
        try:
            tab = browser.tab()
            tab.looks(width=WIDTH, height=HEIGHT, scripts=False)  # the page would fetch itself again
            tab.ask("Emulation.setScrollbarsHidden", hidden=True)
            tab.go(f"{home}in?code={view.code()}")
            tab.go(f"{home}request/{request.id}")
            tab.run(FIX.replace("ID", repr(request.id)).replace("SESSION", repr(request.session)))
            return tab.picture(), re.sub(r"\n+", "\n", tab.text)
        finally:
            browser.close()


def main() -> None:
    from pictures import small

    with tempfile.TemporaryDirectory() as folder:
        os.environ["QUOTH_STATE"], os.environ["QUOTH_CONFIG"] = f"{folder}/state", f"{folder}/config"
        PICTURE.write_bytes(small(*taken(Path(folder))))
    print(f"{PICTURE.name}: {PICTURE.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
