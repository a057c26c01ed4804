"""Chooses the embedding model that QUOTH_EMBEDDER names, or the installed one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from quoth.neuro.embed.wordllama import BEFORE, PACKAGE, WordLlama, installed
from quoth.tools.call.services import Embedder
from quoth.tools.errors import UsageError
from quoth.tools.installing import install_extra

VARIABLE: Final = "QUOTH_EMBEDDER"
NONE: Final = "none"


def choose_embedder(environ: Mapping[str, str] = os.environ) -> Embedder | None:
    """The embedding model of this user: the one that QUOTH_EMBEDDER names, otherwise wordllama if it is
    installed, otherwise None (then only words are searched). Loads nothing yet. Raises UsageError."""
    spec = environ.get(VARIABLE, "")
    if not spec:
        return WordLlama() if installed() else None
    if wants_none(environ):
        return None
    found = _named(spec, environ)
    if found is None:
        raise UsageError(
            # The value is not quoted: it may contain a password or a key.
            f"{VARIABLE} must be {PACKAGE}, {NONE}, openai:MODEL or openai:MODEL@http://HOST:PORT/v1."
        )
    if isinstance(found, WordLlama) and not installed():
        raise UsageError(f"{VARIABLE} is {PACKAGE}, which is not installed: {install_extra('vectors')}.")
    return found


def wants_none(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this user wants to search only words."""
    return environ.get(VARIABLE) == NONE


def embedder_named(name: str) -> Embedder | None:
    """The embedding model with this name, if it can still be used; for vectors that it made earlier."""
    try:
        found = _named(name, os.environ)
    except UsageError:
        return None
    if isinstance(found, WordLlama):
        same = name == found.name or name.startswith(BEFORE)
        return found if same and installed() else None
    return found if found is not None and found.name == name else None


def _named(spec: str, environ: Mapping[str, str]) -> Embedder | None:
    if spec == PACKAGE or spec.startswith(f"{PACKAGE}-"):
        return WordLlama()
    kind, _, rest = spec.partition(":")
    if kind != "openai":
        return None
    from quoth.neuro.embed.endpoint import KEY, OPENAI, Endpoint  # here: httpx is slow to import

    model, _, url = rest.partition("@")
    return Endpoint(model, url or OPENAI, environ.get(KEY, ""))
