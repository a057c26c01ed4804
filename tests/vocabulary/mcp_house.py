"""A workspace with the fixture server of MCP, trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_server import Fixture, config
from words import AsyncAgent

from quoth.tools.mcp.config import read_file
from quoth.tools.mcp.pins import MORE, pinned, write_pins
from quoth.tools.mcp.servers import fields_of, pins_of

SAID = "A server for tests."


class House:
    """A workspace with the fixture server, which is trusted as it is now, and the rules of its person."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> None:
        self.root, self.own = root / "work", root / "own"
        self.root.mkdir()
        self.own.mkdir()
        monkeypatch.setenv("QUOTH_CONFIG", str(self.own))
        self.knobs, self.effects = root / "knobs.json", root / "effects.txt"
        self.file = root / "servers.json"
        argv = ("--knobs", str(self.knobs), "--effects", str(self.effects), *more)
        self.file.write_text(json.dumps(config(*argv)))
        self.config = read_file(self.file).configs["fixture"]
        self.pins = pins_of(self.config, self.root)
        self.trust()

    def trust(self, **knobs: Any) -> None:
        """Trust the tools that the server has with these knobs."""
        self.knobs.write_text(json.dumps(knobs))
        tools = fields_of(Fixture(knobs=str(self.knobs)).tools())
        pins = pinned("fixture", self.config.target, tools, resources=True, prompts=True)
        write_pins(self.pins, replace(pins, more=MORE, instructions=SAID))

    def turn(self, **knobs: Any) -> None:
        """Change the server."""
        self.knobs.write_text(json.dumps(knobs))

    def rules(self, text: str) -> None:
        (self.own / "policy.hy").write_text(text)

    def agent(self, **more: Any) -> AsyncAgent:
        return AsyncAgent(workspace=self.root, mcp=[self.file], **{"consent": "yes", **more})

    @property
    def written(self) -> list[str]:
        """The effects of the server's tools so far."""
        return self.effects.read_text().splitlines() if self.effects.exists() else []
