"""Embeds texts with the table of word vectors in the package wordllama: nothing is downloaded or sent.

Two files of the package are read, after a check of their hash, and nothing in it is imported. The vector of a
text is the mean of the rows of its tokens. numpy and tokenizers are loaded, in a thread, at the first text.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quoth.tools.errors import ToolError
from quoth.tools.installing import install_extra
from quoth.tools.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

PACKAGE: Final = "wordllama"
DIMENSIONS: Final = 256  # the length of a row of the table
NAME: Final = f"{PACKAGE}-l2-supercat-{DIMENSIONS}"
BEFORE: Final = f"{PACKAGE}-0.4"  # the earlier name of vectors from the same table
_LOADING: Final = threading.Lock()


@dataclass(frozen=True)
class DataFile:
    """A file of the package: its path there, and the SHA-256 of its bytes without trailing white space."""

    path: str
    sha256: str

    def read(self, folder: Path) -> bytes:
        """Its bytes. Raises OSError, and ValueError if the hash is wrong."""
        data = (folder / self.path).read_bytes()
        if hashlib.sha256(data.rstrip(b"\n")).hexdigest() != self.sha256:
            raise ValueError(f"{self.path} is not the file with the SHA-256 {self.sha256}")
        return data


# The files of the releases 0.2.2.post0 and 0.4 of the package.
WEIGHTS: Final = DataFile(
    "weights/l2_supercat_256.safetensors", "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"
)
TOKENIZER: Final = DataFile(
    "tokenizers/l2_supercat_tokenizer_config.json",
    "bf467c9e0f536bda271283c6ef85eb1a943e3196b621c8a912d64953b205df83",
)


def installed() -> bool:
    """Whether the package is installed; it is not imported."""
    return find_spec(PACKAGE) is not None


def _folder() -> Path:
    """The folder of the package. Raises ModuleNotFoundError."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(PACKAGE)
    return Path(spec.submodule_search_locations[0])


class WordLlama:
    """An Embedder that runs in this process."""

    dimensions = DIMENSIONS
    name = NAME

    async def embed(self, texts: Sequence[str]) -> Sequence[bytes]:
        return await asyncio.to_thread(self._embed, texts)

    def _embed(self, texts: Sequence[str]) -> list[bytes]:
        if not texts:
            return []
        tokenizer, table = self._model
        readable = [text.encode(errors="replace").decode() for text in texts]
        tokens = tokenizer.encode_batch(readable, add_special_tokens=False)
        return [_mean(table, one.ids) for one in tokens]

    @property
    def _model(self) -> tuple[Any, NDArray[Any]]:
        with _LOADING:
            return self._loaded

    @cached_property
    def _loaded(self) -> tuple[Any, NDArray[Any]]:
        """The tokenizer, and the table with a row for each token. Raises ToolError."""
        try:
            import numpy
            from tokenizers import Tokenizer

            weights, words = (file.read(_folder()) for file in (WEIGHTS, TOKENIZER))
            start = 8 + int.from_bytes(weights[:8], "little")  # after a header in JSON there is one tensor
            table = numpy.frombuffer(weights, "<f2", offset=start).reshape(-1, DIMENSIONS)
            tokenizer = Tokenizer.from_str(words.decode())
            tokenizer.no_padding()
            tokenizer.no_truncation()
            return tokenizer, table.astype("<f4")
        except Exception as error:  # foreign packages, perhaps half installed
            raise ToolError(
                f"The embedding model of the package {PACKAGE} cannot be loaded ({type(error).__name__}); "
                f"install it again with {install_extra('vectors')}."
            ) from None


def _mean(table: NDArray[Any], tokens: Sequence[int]) -> bytes:
    """The mean of the rows of these tokens as float32, normalised to length 1; all 0 without tokens."""
    if not tokens:
        return bytes(4 * DIMENSIONS)
    mean = table[tokens].mean(axis=0)
    length = float((mean @ mean) ** 0.5)
    return bytes((mean / length if length else mean).astype("<f4").tobytes())
