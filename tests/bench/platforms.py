"""Where quoth installs from wheels alone: the groups of pyproject.toml, on other platforms than this one.

python -m tests.bench.platforms

pip resolves with the tags of each platform and the bounds of pyproject.toml, and installs nothing. Left out:
hy, which is pure Python and comes as source, and the parts of models, which are data.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
GROUPS = ("core", "local", "all", "test")
SOURCE = re.compile(r"hy$|.*-part\d+$")
MINUTES = 5


@dataclass(frozen=True)
class Platform:
    """A platform as pip knows it. ``marks`` are what markers see there; ``tags`` the newest first."""

    name: str
    python: str
    tags: Sequence[str]
    marks: Mapping[str, str]


def _glibc(machine: str) -> list[str]:
    return [*(f"manylinux_2_{minor}_{machine}" for minor in range(36, 16, -1)), f"manylinux2014_{machine}"]


def _linux(machine: str) -> dict[str, str]:
    return {"sys_platform": "linux", "platform_machine": machine, "platform_system": "Linux"}


def _macos(first: int) -> list[str]:
    return [f"macosx_{major}_0_{kind}" for major in range(first, 10, -1) for kind in ("arm64", "universal2")]


MAC = {"sys_platform": "darwin", "platform_machine": "arm64", "platform_system": "Darwin"}
MUSL = ["musllinux_1_2_x86_64", "musllinux_1_1_x86_64"]
PLATFORMS = (
    *(
        Platform("Linux x86", version, _glibc("x86_64"), _linux("x86_64"))
        for version in ("3.11", "3.14", "3.15")
    ),
    *(Platform("Linux ARM", version, _glibc("aarch64"), _linux("aarch64")) for version in ("3.12", "3.14")),
    Platform("macOS 13 ARM", "3.12", _macos(13), MAC),
    Platform("macOS 14 ARM", "3.14", _macos(14), MAC),
    Platform("musl x86", "3.12", MUSL, _linux("x86_64")),
)


def requirements(group: str, platform: Platform) -> list[str]:
    """The requirements of a group on this platform, those of the groups that it names among them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return sorted(set(_expanded(project, group, platform)))


def _expanded(project: Mapping[str, object], group: str, platform: Platform) -> Iterator[str]:
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    for line in project["dependencies"] if group == "core" else extras[group]:  # type: ignore[attr-defined]
        one = Requirement(line)
        if one.marker and not one.marker.evaluate({**platform.marks, "python_version": platform.python}):
            continue
        if one.name == "quoth":
            for extra in one.extras:
                yield from _expanded(project, extra, platform)
        elif not SOURCE.match(one.name):
            one.marker = None
            yield str(one)


def resolves(platform: Platform, wanted: Sequence[str]) -> bool:
    """Whether pip finds wheels for these and all that they need."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "pip", "install", "-q", "--dry-run", "--ignore-installed"]
        words += ["--only-binary", ":all:", "--target", folder, "--implementation", "cp"]
        words += ["--python-version", platform.python]
        for tag in platform.tags:
            words += ["--platform", tag]
        said = subprocess.run([*words, *wanted], capture_output=True, text=True, timeout=60 * MINUTES)
    return said.returncode == 0


def lacking(platform: Platform, group: str) -> list[str]:
    """The requirements of the group that no wheel meets."""
    wanted = requirements(group, platform)
    if resolves(platform, wanted):
        return []
    return [Requirement(one).name for one in wanted if not resolves(platform, [one])] or ["they do not fit"]


def main() -> None:
    print(
        "| platform | Python | " + " | ".join(GROUPS) + " |\n|---+---+" + "---+" * (len(GROUPS) - 1) + "---|"
    )
    for platform in PLATFORMS:
        found = [", ".join(lacking(platform, group)) or "ok" for group in GROUPS]
        row = " | ".join("no: " + one if one != "ok" else one for one in found)
        print(f"| {platform.name} | {platform.python} | {row} |", flush=True)


if __name__ == "__main__":
    main()
