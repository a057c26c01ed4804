"""Embeds texts with wordllama, a table of word vectors in a wheel of 16 MB: nothing is downloaded or sent.

It brings numpy and takes a second to import, so it is loaded, in a thread, when the first text is embedded.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from quoth.tools.errors import ToolError

PACKAGE: Final = "wordllama"
DIMENSIONS: Final = 256  # of the table in the wheel
_LOADING: Final = threading.Lock()


def installed() -> bool:
    """Whether the package is here; it is not imported."""
    return find_spec(PACKAGE) is not None


class WordLlama:
    """An Embedder that runs in this process."""

    dimensions = DIMENSIONS

    @cached_property
    def name(self) -> str:
        from importlib.metadata import PackageNotFoundError, version  # here: it imports the whole of email

        try:
            return f"{PACKAGE}-{version(PACKAGE)}"
        except PackageNotFoundError:
            return PACKAGE

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        vectors = self._model.embed([text.encode(errors="replace").decode() for text in texts], norm=True)
        return [row.astype("<f4").tobytes() for row in vectors]

    @property
    def _model(self) -> Any:
        with _LOADING:
            return self._loaded

    @cached_property
    def _loaded(self) -> Any:
        root = logging.getLogger()
        level, handlers = root.level, root.handlers[:]
        try:
            import wordllama

            # Without these two it would ask the net for what lies beside it.
            folder = Path(wordllama.__file__).parent
            return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
        except Exception as error:  # a package of somebody else, perhaps half installed
            raise ToolError(
                f"The embedding model of the package {PACKAGE} cannot be loaded ({type(error).__name__}); "
                "install it again with pip install 'quoth[vectors]'."
            ) from None
        finally:  # it sets up the logging of the whole process, whose lines nobody asked for
            root.setLevel(level)
            root.handlers[:] = handlers
