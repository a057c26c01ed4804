"""Finding an embedded model's file, with tiny models made on the spot: joined, stamped, refused, downloaded.

Knows neither llama.cpp nor the network; the real model is joined by the tests of the local backend.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from logging import getLogger
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from sentences import IS_NOT_INSTALLED, THERE_IS_NO_MODEL_FILE

from quoth.agent.cli import main as cli
from quoth.neuro.backends import weights
from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.select import choose_backend
from quoth.neuro.backends.weights import Weights, explicit_weights, find_weights, local_available
from quoth.tools.errors import UsageError

CONTENT = b"GGUF" + bytes(range(256)) * 40
PIECES = [CONTENT[:4000], CONTENT[4000:8000], CONTENT[8000:]]
TINY = Weights(
    package="quoth-tiny-part",
    version="1.0",
    part_size=4000,
    part_marks=" ".join(hashlib.sha256(piece).hexdigest()[:8] for piece in PIECES),
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repo="Nobody/Tiny-GGUF",
    file="tiny.gguf",
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``local-small`` is the tiny model, ``local`` one that is nowhere, and nothing can be downloaded."""
    nowhere = Weights("quoth-nowhere-part", "1.0", 3, "a b", 5, "0" * 64, "Nobody/Nowhere", "nowhere.gguf")
    monkeypatch.setattr(weights, "KNOWN", {"local": nowhere, "local-small": TINY})
    monkeypatch.setattr(weights, "CHUNK", 1000)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    monkeypatch.setenv("QUOTH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Put parts on sys.path as pip would. Importing one would fail the test."""
    site = tmp_path / "site"

    def install(pieces: list[bytes | None]) -> None:
        for number, content in enumerate(pieces, 1):
            if content is not None:
                folder = site / f"quoth_tiny_part{number}"
                (folder / "data").mkdir(parents=True, exist_ok=True)
                (folder / "__init__.py").write_text("raise SystemExit('the code of a part was run')")
                (folder / "data" / f"part{number:02}.bin").write_bytes(content)
        monkeypatch.syspath_prepend(site)

    return install


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(name: str = "local-small") -> str:
    with pytest.raises(ModelError) as raised:
        find_weights(name)
    return str(raised.value)


def test_installed_parts_are_joined_once(install: Callable[..., None], models: Path) -> None:
    install(PIECES)
    seen: list[tuple[int, int]] = []
    path = find_weights("local-small", progress=lambda _, done, total: seen.append((done, total)))
    assert path == models / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert names(models) == ["tiny.gguf", "tiny.gguf.sha256"]
    assert seen == sorted(seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    seen.clear()
    before = path.stat().st_mtime_ns
    assert find_weights("local-small", progress=lambda _, done, total: seen.append((done, total))) == path
    assert (seen, path.stat().st_mtime_ns) == ([], before)


def test_the_folder_can_be_chosen(install: Callable[..., None], tmp_path: Path) -> None:
    install(PIECES)
    assert find_weights("local-small", cache_dir=tmp_path / "mine") == tmp_path / "mine" / "tiny.gguf"


def test_parts_with_another_content_are_refused_and_removed(
    install: Callable[..., None], models: Path
) -> None:
    altered = [PIECES[0], PIECES[1][:-1] + b"!", PIECES[2]]
    install(altered)
    wrong = hashlib.sha256(b"".join(altered)).hexdigest()
    assert refused() == (
        "The packages quoth-tiny-part1 to quoth-tiny-part3 do not contain the model: "
        f"joined, their sha256 is {wrong}, not {TINY.sha256}. Reinstall quoth-tiny-part2."
    )
    assert names(models) == []


@pytest.mark.parametrize(
    ("pieces", "missing"),
    [
        ([PIECES[0], None, PIECES[2]], "quoth-tiny-part2"),
        ([None, PIECES[1], None], "quoth-tiny-part1, quoth-tiny-part3"),
    ],
)
def test_missing_parts_are_named(
    install: Callable[..., None], pieces: list[bytes | None], missing: str
) -> None:
    install(pieces)
    assert refused() == (
        f"Parts of the model local-small are not installed: {missing}. Run: quoth models get local-small"
    )


def test_a_model_that_is_nowhere_names_the_command_that_gets_it() -> None:
    assert refused("local") == f"The model local {IS_NOT_INSTALLED}. Run: quoth models get local"


def test_an_unknown_model_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=r"^There is no local model named locale\. Did you mean local\?$"):
        find_weights("locale")


def test_two_joins_at_once_end_in_one_good_file(install: Callable[..., None], models: Path) -> None:
    install(PIECES)
    together = threading.Barrier(4)
    found: list[Path] = []

    def wait(doing: str, done: int, total: int) -> None:
        if done == 1000:  # all are inside a join before any of them ends
            together.wait(30)

    threads = [
        threading.Thread(target=lambda: found.append(find_weights("local-small", progress=wait)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [models / "tiny.gguf"] * 4
    assert found[0].read_bytes() == CONTENT
    assert names(models) == ["tiny.gguf", "tiny.gguf.sha256"]


def test_an_interrupted_join_leaves_nothing_behind(install: Callable[..., None], models: Path) -> None:
    install(PIECES)

    def interrupt(doing: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        find_weights("local-small", progress=interrupt)
    assert names(models) == []


def test_the_rest_of_a_killed_join_is_swept(install: Callable[..., None], models: Path) -> None:
    install(PIECES)
    models.mkdir(parents=True)
    old, running = models / ".tiny.gguf.1-1.part", models / ".tiny.gguf.2-2.part"
    for left in (old, running):
        left.write_bytes(b"GG")
    os.utime(old, (time.time() - 7200, time.time() - 7200))
    find_weights("local-small")
    assert (old.exists(), running.exists()) == (False, True)


def test_a_file_whose_stamp_does_not_fit_is_verified_again(
    install: Callable[..., None], models: Path
) -> None:
    install(PIECES)
    path = find_weights("local-small")
    os.utime(path, (1, 1))
    seen: list[int] = []
    assert find_weights("local-small", progress=lambda _, done, total: seen.append(done)) == path
    assert seen[-1] == len(CONTENT)
    seen.clear()
    find_weights("local-small", progress=lambda _, done, total: seen.append(done))
    assert seen == []


@pytest.mark.parametrize("spoilt", [CONTENT[:-1], CONTENT[:-1] + b"!"])
def test_a_spoilt_file_is_joined_anew(install: Callable[..., None], models: Path, spoilt: bytes) -> None:
    install(PIECES)
    path = find_weights("local-small")
    path.write_bytes(spoilt)
    os.utime(path, (1, 1))
    assert find_weights("local-small").read_bytes() == CONTENT


def test_a_full_disk_is_told_before_anything_is_written(
    install: Callable[..., None], models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(PIECES)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
    assert refused() == (
        f"The model needs 0 MB in {models}, but only 0 MB are free. "
        "Make room, or set QUOTH_CACHE to a folder on another disk."
    )
    assert names(models) == []


def test_a_cache_that_cannot_be_written_is_a_sentence(install: Callable[..., None], tmp_path: Path) -> None:
    install(PIECES)
    (tmp_path / "cache").write_text("a file where a folder should be")
    assert refused() == (
        f"Cannot put the model local-small into {tmp_path / 'cache' / 'models'}: Not a directory. "
        "Set QUOTH_CACHE to a folder you can write to."
    )


# Downloading


def hub(monkeypatch: pytest.MonkeyPatch, download: Callable[..., Any]) -> None:
    module = ModuleType("huggingface_hub")
    module.hf_hub_download = download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)


def test_without_parts_the_file_is_downloaded_and_verified(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def download(repo: str, file: str, *, local_dir: Path) -> str:
        asked.append(f"{repo}/{file}")
        (local_dir / file).write_bytes(CONTENT)
        return str(local_dir / file)

    hub(monkeypatch, download)
    for _ in range(2):
        assert find_weights("local-small").read_bytes() == CONTENT
    assert asked == ["Nobody/Tiny-GGUF/tiny.gguf"]
    assert names(models) == ["tiny.gguf", "tiny.gguf.sha256"]


def test_a_download_with_another_content_is_removed(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(repo: str, file: str, *, local_dir: Path) -> str:
        (local_dir / file).write_bytes(CONTENT[:-1] + b"!")
        return str(local_dir / file)

    hub(monkeypatch, download)
    assert refused() == (
        "The file downloaded from huggingface.co/Nobody/Tiny-GGUF is not the model local-small: "
        f"its sha256 is not {TINY.sha256}. It was removed; try again."
    )
    assert names(models) == []


def test_a_network_that_is_down_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def download(*_: object, **__: object) -> str:
        getLogger("huggingface_hub.utils._http").warning("Retrying in 1s [Retry 1/5].")
        raise ConnectionError("Name or service not known\nand a page of details")

    hub(monkeypatch, download)
    assert refused() == (
        "Cannot download the model local-small from huggingface.co/Nobody/Tiny-GGUF "
        "(Name or service not known). To fetch it from Python's package index: quoth models get local-small"
    )
    assert caplog.messages == []  # they would be in the bar


def test_a_model_of_the_hub_alone_is_downloaded_once(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = replace(TINY, package="", part_size=0, part_marks="", file="alone.gguf")
    monkeypatch.setitem(weights.HUB, "qwen3-0.6b", alone)
    asked: list[str] = []

    def download(repo: str, file: str, *, local_dir: Path) -> str:
        asked.append(f"{repo}/{file}")
        (local_dir / file).write_bytes(CONTENT)
        return str(local_dir / file)

    with pytest.raises(ModelError, match="needs the package huggingface_hub"):
        weights.fetch_weights("qwen3-0.6b")
    hub(monkeypatch, download)
    assert weights.fetch_weights("qwen3-0.6b").read_bytes() == CONTENT
    assert find_weights("qwen3-0.6b").read_bytes() == CONTENT
    assert asked == ["Nobody/Tiny-GGUF/alone.gguf"]
    assert local_available() is None  # nothing was tried with it: it is taken by name only


def test_a_model_of_the_hub_has_a_spec_and_a_command(
    models: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(weights.HUB, "qwen3-0.6b", TINY)
    (models / TINY.file).parent.mkdir(parents=True, exist_ok=True)
    (models / TINY.file).write_bytes(CONTENT)
    assert cli.main(["models", "get", "qwen3-0.6b"]) == 0
    said = capsys.readouterr().err
    assert "No task of quoth's own was tried on qwen3-0.6b." in said
    assert "quoth models test local:qwen3-0.6b" in said
    assert choose_backend("local:qwen3-0.6b").name == "local:qwen3-0.6b"


# What is there


def test_nothing_local_is_available_without_parts_or_file() -> None:
    assert local_available() is None


def test_all_parts_make_a_model_available(install: Callable[..., None]) -> None:
    install([*PIECES[:2], None])
    assert local_available() is None
    install(PIECES)
    assert local_available() == "local-small"


def test_a_joined_file_makes_a_model_available_and_the_big_one_is_preferred(
    install: Callable[..., None], models: Path
) -> None:
    install(PIECES)
    find_weights("local-small")
    (models / "nowhere.gguf").write_bytes(b"GGUF")
    assert local_available() == "local-small"
    (models / "nowhere.gguf").write_bytes(b"GGUF!")
    assert local_available() == "local"


def test_a_model_is_not_available_without_llama_cpp(
    install: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(PIECES)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert local_available() is None


def test_an_explicit_file_must_be_there_and_be_gguf(tmp_path: Path) -> None:
    path = tmp_path / "my.gguf"
    with pytest.raises(UsageError) as missing:
        explicit_weights(path)
    assert str(missing.value) == f"{THERE_IS_NO_MODEL_FILE} {path}."
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError) as other:
        explicit_weights(path)
    assert str(other.value) == f"{path} is not a GGUF model file (it does not begin with GGUF)."
    with pytest.raises(UsageError, match=r"^Cannot read the model file .*: Is a directory\.$"):
        explicit_weights(tmp_path)
    path.write_bytes(b"GGUF and the rest")
    assert explicit_weights(path) == path
