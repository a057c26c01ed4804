"""Keeps a vector for each passage and finds the passages nearest to a query in meaning.

A stored vector has one byte for each dimension, scaled to its largest component; scaling does not change the
angle between two vectors. A new model embeds all passages again, in their order and for a limited time at
each search. Until it is done, the old vectors are searched with the old model."""

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

BATCH: Final = 256  # passages embedded in one transaction
SECONDS: Final = 0.5  # time that one search may spend on embedding new passages
PACKAGE: Final = "sqlite_vec"

NEAREST: Final = """
    SELECT passage, 1 - vec_distance_cosine(vec_int8(vector), vec_int8(?)) AS nearness FROM passage_vectors
    WHERE model = ?"""

Nearness = dict[int, float]  # the cosine, by passage id
Texts = Callable[[Sequence[int]], dict[int, str]]


@dataclass(frozen=True)
class VectorModel:
    """A model that has embedded the passages up to id ``upto``. ``dimensions`` is 0 before its first
    vector."""

    id: int
    name: str
    dimensions: int
    upto: int


def loaded(store: Store) -> bool:
    """Whether this store can compare vectors. Loads sqlite-vec at the first search."""
    try:
        store.execute("SELECT vec_version()")
    except Exception:  # the function is missing
        if find_spec(PACKAGE) is None:
            return False
        import sqlite_vec

        try:
            store.load_extension(sqlite_vec.loadable_path())
        except (StoreError, OSError):
            return False
    return True


def models(store: Store) -> list[VectorModel]:
    """The models that have embedded passages, newest first."""
    rows = store.execute("SELECT id, name, dimensions, upto FROM vector_models ORDER BY id DESC")
    return [VectorModel(*row) for row in rows]


def small(vector: bytes, dimensions: int = 0) -> bytes:
    """A float32 vector with one byte for each dimension. Raises ToolError if it does not have
    ``dimensions``."""
    if not vector or len(vector) % 4 or (dimensions and len(vector) != 4 * dimensions):
        raise ToolError(
            f"The embedding model returned a vector of {len(vector)} bytes instead of {4 * dimensions}."
        )
    parts = array("f", vector)
    largest = max(map(abs, parts))
    if not 0 < largest < float("inf"):
        return bytes([1]) + bytes(len(parts) - 1)  # the zero vector of an empty text has no direction
    scale = 127 / largest
    return array("b", [round(part * scale) for part in parts]).tobytes()


async def embed_new(store: Store, embedder: Embedder, texts: Texts, seconds: float = SECONDS) -> None:
    """Embed passages without a vector of this model, for about ``seconds``, each batch in one transaction.
    ``texts`` reads passages by id. Raises ToolError if the model fails."""
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
    """A vector for each text. Raises ToolError if the model fails or returns a different number of
    vectors."""
    vectors = await embedder.embed(texts)
    if len(vectors) != len(texts):
        raise ToolError(f"The embedding model returned {len(vectors)} vectors for {len(texts)} texts.")
    return vectors


def _next(store: Store, embedder: Embedder) -> tuple[VectorModel, list[int]]:
    """The row of this model, and the ids of the next passages to embed."""
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
        if reached != model.upto:  # another process was first
            return
        for id, vector in vectors.items():  # a passage may have been removed
            run(
                "INSERT OR REPLACE INTO passage_vectors (passage, model, vector)"
                " SELECT id, ?, ? FROM passages WHERE id = ?",
                (model.id, vector, id),
            )
        size = len(next(iter(vectors.values()), b"")) or model.dimensions
        run("UPDATE vector_models SET upto = ?, dimensions = ? WHERE id = ?", (upto, size, model.id))


class Nearest:
    """A query as a vector of each model that has embedded passages."""

    def __init__(self, store: Store, asked: dict[int, bytes]) -> None:
        self._store = store
        self._asked = asked  # by model

    @classmethod
    async def to(
        cls, store: Store, text: str, embedder: Embedder, older: Callable[[str], Embedder | None]
    ) -> Nearest:
        """The query ``text``. ``older`` returns the embedder of an older model, or None. Raises ToolError if
        the model fails."""
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
        """The nearest passages; ``where`` is an SQL condition on their ids."""
        found: list[tuple[int, float]] = []
        for model, vector in self._asked.items():
            sql = f"{NEAREST}{where} ORDER BY nearness DESC LIMIT ?"
            found += [(row[0], row[1]) for row in self._store.execute(sql, (vector, model, *values, limit))]
        return dict(sorted(found, key=lambda one: -one[1])[:limit])

    def of(self, passages: Sequence[int]) -> Nearness:
        """The nearness of these passages."""
        marks = ", ".join("?" * len(passages))
        return self.best(len(passages), f" AND passage IN ({marks})", passages) if passages else {}
