"""Keeps a vector for each passage and finds those that are nearest to a query in meaning.

It must not know words, scores or where a model comes from. A vector takes a byte for each dimension, scaled
to its largest part: the angle between two stays what it was. A model that is new embeds again what another
has embedded, in the order of the passages and a bounded time at each search; until it is done, the vectors of
the old model are asked with the old model.
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from quoth.tools.call.services import Embedder
from quoth.tools.errors import StoreError, ToolError
from quoth.tools.storage.database import Store

BATCH: Final = 256  # passages that are embedded in one transaction
SECONDS: Final = 0.5  # of one search that may be spent on embedding what is new
PACKAGE: Final = "sqlite_vec"

NEAREST: Final = """
    SELECT passage, 1 - vec_distance_cosine(vec_int8(vector), vec_int8(?)) AS nearness FROM passage_vectors
    WHERE model = ?"""

Nearness = dict[int, float]  # of passages, by their ids: the cosine
Texts = Callable[[Sequence[int]], dict[int, str]]


@dataclass(frozen=True)
class VectorModel:
    """A model that has embedded passages, the first ones up to the passage ``upto``. It has 0 ``dimensions``
    until its first vector tells them."""

    id: int
    name: str
    dimensions: int
    upto: int


def loaded(store: Store) -> bool:
    """Whether vectors can be compared on this store: sqlite-vec is loaded at the first search."""
    try:
        store.execute("SELECT vec_version()")
    except Exception:  # no such function
        if find_spec(PACKAGE) is None:
            return False
        import sqlite_vec

        try:
            store.load_extension(sqlite_vec.loadable_path())
        except (StoreError, OSError):
            return False
    return True


def models(store: Store) -> list[VectorModel]:
    """The models that have embedded passages, the newest first."""
    rows = store.execute("SELECT id, name, dimensions, upto FROM vector_models ORDER BY id DESC")
    return [VectorModel(*row) for row in rows]


def small(vector: bytes, dimensions: int = 0) -> bytes:
    """A vector of float32 in a byte for each dimension. Raises ToolError for one that has not that many."""
    if not vector or len(vector) % 4 or (dimensions and len(vector) != 4 * dimensions):
        raise ToolError(
            f"The embedding model gave a vector of {len(vector)} bytes where {4 * dimensions} were to come."
        )
    parts = array("f", vector)
    largest = max(map(abs, parts))
    if not 0 < largest < float("inf"):
        return bytes([1]) + bytes(len(parts) - 1)  # an empty text has no direction
    scale = 127 / largest
    return array("b", [round(part * scale) for part in parts]).tobytes()


async def embed_new(store: Store, embedder: Embedder, texts: Texts, seconds: float = SECONDS) -> None:
    """Embed passages that have no vector of this model yet, for about so many seconds, in batches that are
    one transaction each. ``texts`` reads the passages of these ids. Raises ToolError when the model fails."""
    if store.read_only:
        return
    end = time.monotonic() + seconds
    while True:
        model, batch = _next(store, embedder)
        if not batch:
            return
        said = await asyncio.to_thread(texts, batch)
        vectors = await vectors_of(embedder, list(said.values()))
        size = model.dimensions or len(vectors[0]) // 4 if vectors else 0
        found = dict(zip(said, (small(vector, size) for vector in vectors), strict=True))
        await asyncio.to_thread(_keep, store, model, batch[-1], found)
        if time.monotonic() >= end:
            return


async def vectors_of(embedder: Embedder, texts: Sequence[str]) -> Sequence[bytes]:
    """A vector for each text. Raises ToolError when the model fails, or gives more or fewer."""
    vectors = await embedder.embed(texts)
    if len(vectors) != len(texts):
        raise ToolError(f"The embedding model gave {len(vectors)} vectors for {len(texts)} texts.")
    return vectors


def _next(store: Store, embedder: Embedder) -> tuple[VectorModel, list[int]]:
    """The row of this model, and the next passages it must embed."""
    known = models(store)
    if not known or known[0].name != embedder.name:
        store.execute(
            "INSERT INTO vector_models (name, dimensions, upto) VALUES (?, ?, 0)",
            (embedder.name, embedder.dimensions),
        )
        known = models(store)
    rows = store.execute("SELECT id FROM passages WHERE id > ? ORDER BY id LIMIT ?", (known[0].upto, BATCH))
    if not rows and known[1:]:  # every passage has a vector of the new model
        with store.transaction() as run:
            run("DELETE FROM passage_vectors WHERE model < ?", (known[0].id,))
            run("DELETE FROM vector_models WHERE id < ?", (known[0].id,))
    return known[0], [int(id) for (id,) in rows]


def _keep(store: Store, model: VectorModel, upto: int, vectors: dict[int, bytes]) -> None:
    with store.transaction() as run:
        ((reached,),) = run("SELECT max(upto) FROM vector_models WHERE id = ?", (model.id,)) or [(None,)]
        if reached != model.upto:  # another process was quicker
            return
        for id, vector in vectors.items():  # one may be gone by now
            run(
                "INSERT OR REPLACE INTO passage_vectors (passage, model, vector)"
                " SELECT id, ?, ? FROM passages WHERE id = ?",
                (model.id, vector, id),
            )
        size = len(next(iter(vectors.values()), b"")) or model.dimensions
        run("UPDATE vector_models SET upto = ?, dimensions = ? WHERE id = ?", (upto, size, model.id))


class Nearest:
    """The question of one search, as vectors of the models that have embedded the passages."""

    def __init__(self, store: Store, asked: dict[int, bytes]) -> None:
        self._store = store
        self._asked = asked  # by model

    @classmethod
    async def to(
        cls, store: Store, text: str, embedder: Embedder, older: Callable[[str], Embedder | None]
    ) -> Nearest:
        """What is near to a text; ``older`` gives the embedder of an older model, if there still is one.
        Raises ToolError when the model fails."""
        asked: dict[int, bytes] = {}
        for model in models(store):
            one = embedder if model.name == embedder.name else older(model.name)
            if one is not None and model.dimensions:
                vectors = await one.embed([text])
                asked[model.id] = small(vectors[0], model.dimensions)
        return cls(store, asked)

    def __bool__(self) -> bool:
        return bool(self._asked)

    def best(self, limit: int, where: str = "", values: Iterable[Any] = ()) -> Nearness:
        """The nearest passages, all or those with ids ``where`` says."""
        found: list[tuple[int, float]] = []
        for model, vector in self._asked.items():
            sql = f"{NEAREST}{where} ORDER BY nearness DESC LIMIT ?"
            found += [(row[0], row[1]) for row in self._store.execute(sql, (vector, model, *values, limit))]
        return dict(sorted(found, key=lambda one: -one[1])[:limit])

    def of(self, passages: Sequence[int]) -> Nearness:
        """How near these passages are."""
        marks = ", ".join("?" * len(passages))
        return self.best(len(passages), f" AND passage IN ({marks})", passages) if passages else {}
