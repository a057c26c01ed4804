"""The build backend: setuptools, with README.org as Markdown for the index, and archives that are the same
whoever builds them.

pyproject.toml names it. It runs before anything is installed: it knows setuptools and the standard library.
"""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import get_requires_for_build_wheel as get_requires_for_build_wheel

EPOCH = 1577836800  # 2020-01-01: the time of every file in an archive
DESCRIPTION = Path("build", "README.md")
OWN = (".ci/quoth_build.py", "README.org")
PICTURE = re.compile(r"\[\[file:[^]\[]+\.png\]\]")  # has no address on the index

# Hooks


def prepare_metadata_for_build_wheel(folder: str, settings: Any = None) -> str:
    _describe()
    return build_meta.prepare_metadata_for_build_wheel(folder, settings)


def prepare_metadata_for_build_editable(folder: str, settings: Any = None) -> str:
    _describe()
    return build_meta.prepare_metadata_for_build_editable(folder, settings)


def build_editable(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    _describe()
    return build_meta.build_editable(folder, settings, metadata)


def build_wheel(folder: str, settings: Any = None, metadata: str | None = None) -> str:
    _describe()
    name = build_meta.build_wheel(folder, settings, metadata)
    level_wheel(Path(folder, name))
    return name


def build_sdist(folder: str, settings: Any = None) -> str:
    _describe()
    name = build_meta.build_sdist(folder, settings)
    level_sdist(Path(folder, name))
    return name


def _describe() -> None:
    DESCRIPTION.parent.mkdir(exist_ok=True)
    DESCRIPTION.write_text(markdown(Path("README.org").read_text(encoding="utf-8")), encoding="utf-8")


# Archives


def level_wheel(path: Path) -> None:
    """Write a wheel again with the same time, rights and order for everybody; its metadata comes last."""
    with zipfile.ZipFile(path) as archive:
        files = {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files, key=lambda name: (".dist-info/" in name, name)):
            info = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            info.external_attr, info.create_system = 0o100644 << 16, 3
            archive.writestr(info, files[name], zipfile.ZIP_DEFLATED)


def level_sdist(path: Path) -> None:
    """The same for a source archive; setuptools leaves out what only this file reads, and adds some tests."""
    with tarfile.open(path) as archive:
        found = ((member.name.partition("/"), archive.extractfile(member)) for member in archive.getmembers())
        files = {name: file.read() for (_, _, name), file in found if file is not None}
    files.update((place, Path(place).read_bytes()) for place in OWN)
    files = {name: data for name, data in files.items() if not name.startswith(("tests/", "build/"))}
    files["quoth.egg-info/SOURCES.txt"] = "".join(f"{name}\n" for name in sorted(files)).encode()
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=EPOCH) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, data in sorted(files.items()):
            info = tarfile.TarInfo(f"{path.name.removesuffix('.tar.gz')}/{name}")
            info.size, info.mtime, info.mode = len(data), EPOCH, 0o644
            archive.addfile(info, io.BytesIO(data))


# README.org as Markdown


def markdown(text: str) -> str:
    """Org as README.org uses it: headings, blocks, tables, code and links to files."""
    return "\n".join(_lines(iter(text.splitlines()))).strip() + "\n"


def _lines(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        begun = re.match(r"(\s*)#\+begin_(src|example)\s*(\S*)", line)
        if begun:
            yield from _block(lines, begun)
        elif title := re.match(r"#\+TITLE:\s*(.*)", line):
            yield f"# {title[1]}"
        elif heading := re.match(r"(\*+) (.*)", line):
            yield f"{'#' * (len(heading[1]) + 1)} {_inline(heading[2])}"
        elif line.startswith("|"):
            yield from _table(line, lines)
        elif not line.startswith("#+") and not PICTURE.fullmatch(line):
            yield _inline(line)


def _block(lines: Iterable[str], begun: re.Match[str]) -> Iterator[str]:
    indent, kind, language = begun.groups()
    yield f"```{language if kind == 'src' else ''}"
    for line in lines:
        if line.strip() == f"#+end_{kind}":
            break
        yield re.sub(r"^(\s*),(?=\*|#\+|,)", r"\1", line.removeprefix(indent))
    yield "```"


def _table(line: str, lines: Iterator[str]) -> Iterator[str]:
    """A table, whose first row is its head, and the rest of the text."""
    first = True
    while line.startswith("|"):
        if not line.startswith("|-"):
            cells = [_inline(cell.strip()) for cell in line.strip().strip("|").split("|")]
            yield f"| {' | '.join(cells)} |"
            if first:
                yield "|---" * len(cells) + "|"
                first = False
        line = next(lines, "")
    yield from _lines(chain([line], lines))


def _inline(text: str) -> str:
    """=code= and ~code~ outside of words, and links: those to a file have no address on the index."""
    text = re.sub(r"\[\[file:([^]\[]+)\](?:\[([^]\[]+)\])?\]", lambda m: f"={m[2] or m[1]}=", text)
    text = re.sub(r"\[\[([^]\[]+)\]\[([^]\[]+)\]\]", r"[\2](\1)", text)
    parts = re.split(r"(?<![\w=~])(?:=(\S|\S[^=]*?\S)=|~(\S|\S[^~]*?\S)~)(?![\w=~])", text)
    shown = [re.sub(r"([\\`*_<>\[\]])", r"\\\1", plain) for plain in parts[::3]]
    words = [_code(one or other) for one, other in zip(parts[1::3], parts[2::3], strict=True)]
    return "".join(part for pair in zip(shown, [*words, ""], strict=True) for part in pair)


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"
