"""The numbers that this room promises. Tests of a limit go by its name, so a slip of one is seen here."""

from __future__ import annotations

from promised import numbers

PROMISED = {
    "ignored.MAX_BYTES": 200_000,
    "ignored.MAX_LINES": 2_000,
    "images.MAX_BYTES": 5_000_000,
    "images.MAX_SEGMENTS": 1_000,
    "images.MAX_SIDE": 65_535,
    "images.MAX_FOUND": 20,
    "images.MAX_DEPTH": 3,
    "keeping.MAX_FILE": 20_000_000,
    "canonical.MOST_NAMES": 200_000,
    "canonical.MOST_REPOSITORIES": 100,
    "canonical.SHOWN": 5,
    "call.COMPARED": 2_000,
    "question.MOST_CHARS": 4_000,
    "question.MOST_CHOICES": 9,
    "question.CHOICE_CHARS": 200,
    "question.ANSWER_CHARS": 20_000,
    "redaction.KEPT_CHARS": 2_000,
    "redaction.MARGIN": 4_096,
    "redaction.SHORTEST": 4,
    "redaction.SHORTEST_KEY": 8,
    "redaction.MOST": 100,
    "service_types.MAX_HITS": 100,
    "web_url.MAX_CHARS": 4_000,
    "web_url.MAX_DECODED": 5,
    "web_url.PORTS": {"http": 80, "https": 443},
    "workspace.REMEMBERED": 2_000,
    "workspace.MAX_BYTES": 5_000_000,
    "workspace.TRIES": 20,
    "call.ArgumentOrigin._field_defaults": {"values": (), "more": 0, "aims": True},
    "call.Call.depth": 0,
    "call.Call.round": 0,
    "call.Call.order": 0,
    "call.Call.event": 0,
    "ignored.Ignored.files": 0,
    "ignored.Ignored.folders": 0,
    "keeping.FileWrite._field_defaults": {"mode": 0, "folders": 0, "unsaved": False},
    "service_types.Block.limit": 0,
    "service_types.Block.version": 1,
    "service_types.SearchOptions.limit": 10,
}


def test_no_number_changes_by_accident() -> None:
    assert numbers("tools.call", PROMISED) == PROMISED
