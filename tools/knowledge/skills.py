"""Skills: folders with a SKILL.md, a guide for one kind of task. They are the user's own skills, and the
skills of a workspace that a person trusts by the hash of all their files.

The format is Agent Skills: front matter with ``name`` and ``description``, then Markdown. Nothing is run
here."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quoth.tools.call.keeping import beginning_of
from quoth.tools.errors import UsageError
from quoth.tools.knowledge.skill_folders import KIND, WORKSPACE_FOLDERS, folders_in, user_skills
from quoth.tools.policy.files import Trust, at_home
from quoth.tools.text import number_of, short
from quoth.tools.visible import visible

GUIDE = "SKILL.md"
TRUST = Trust(kind=KIND)
MOST_FILES, MOST_BYTES, LONGEST_GUIDE = 200, 5_000_000, 100_000
LONGEST_NAME, LONGEST_DESCRIPTION = 64, 1024
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_KEY = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*)|)$")


@dataclass(frozen=True)
class Skill:
    """One skill. ``folder`` is its path as a person writes it, ``guide`` is its text."""

    name: str
    description: str
    guide: str
    folder: str
    files: Mapping[str, bytes] = field(repr=False)

    @property
    def digest(self) -> str:
        """The SHA-256 of all its files and their names."""
        return _digest(self.files)


@dataclass(frozen=True)
class Skills:
    """The usable skills, by name, and a sentence about each folder that cannot be used."""

    known: Mapping[str, Skill]
    faults: tuple[str, ...] = ()


NO_SKILLS = Skills({})


def load_skills(root: Path) -> Skills:
    """The user's skills, and the skills of the workspace that are unchanged since they were trusted. The
    first skill with a name is used. Raises UsageError if the record of trust cannot be read."""
    trusted = TRUST.each(root)

    def trusted_one(skill: Skill) -> None:
        if trusted.get(skill.folder) != skill.digest:
            what = "has changed since it was trusted" if skill.folder in trusted else "is not trusted"
            raise UsageError(f"The skill {skill.folder} {what}; read it, then run: quoth trust")

    mine = _read_all((at_home(folder), folder) for folder in folders_in(user_skills()))
    return _read_all(_of_workspace(root), trusted_one, mine)


def untrusted_skills(root: Path) -> list[str]:
    """The folders of a workspace's skills that are not trusted."""
    trusted = TRUST.each(root)
    return [skill.folder for skill in skills_to_trust(root).known.values() if skill.folder not in trusted]


def skills_to_trust(root: Path) -> Skills:
    """All skills of a workspace, trusted or not."""
    return _read_all(_of_workspace(root))


def _read_all(
    folders: Iterable[tuple[str, Path]],
    check: Callable[[Skill], None] = lambda skill: None,
    before: Skills = NO_SKILLS,
) -> Skills:
    """The skills ``before``, and the skills in these folders that pass a check."""
    known, faults = {**before.known}, [*before.faults]
    for place, folder in folders:
        try:
            skill = _read(folder, place)
            check(skill)
            if skill.name in known:
                first = known[skill.name].folder
                raise UsageError(f"Two skills are named {skill.name}: {first} is used, {place} is ignored.")
            known[skill.name] = skill
        except UsageError as error:
            faults.append(str(error))
    return Skills(known, tuple(faults))


# Folders


def _of_workspace(root: Path) -> Iterator[tuple[str, Path]]:
    """The folders of the workspace's skills, each with its name for people."""
    root = root.resolve()
    for name in WORKSPACE_FOLDERS:
        if (root / name).resolve() == root / name:  # a link could lead anywhere
            for folder in folders_in(root / name, links=False):
                yield f"{name}/{visible(folder.name)}", folder


def _files(folder: Path, place: str) -> dict[str, bytes]:
    """The files of a skill by their relative names, without links. Raises UsageError if they are too many or
    too large."""
    found: dict[str, bytes] = {}
    room = MOST_BYTES
    for within, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", ".git"))
        for name in sorted(names):
            path = Path(within, name)
            data = beginning_of(path, room + 1)
            if data is None:
                continue
            room -= len(data)
            if room < 0 or len(found) == MOST_FILES:
                most = f"{MOST_BYTES // 10**6} MB" if room < 0 else number_of(MOST_FILES, "file")
                raise UsageError(f"The skill {place} is too large: the maximum is {most}.")
            found[path.relative_to(folder).as_posix()] = data
    return found


def _digest(files: Mapping[str, bytes]) -> str:
    whole = hashlib.sha256()
    for name, data in sorted(files.items()):
        whole.update(f"{len(name)} {name} {len(data)} ".encode(errors="surrogateescape") + data)
    return whole.hexdigest()


# The guide


def _read(folder: Path, place: str) -> Skill:
    """The skill in a folder. Raises UsageError if the folder is not a skill."""
    files = _files(folder, place)
    if GUIDE not in files:
        if (folder / GUIDE).is_symlink():
            raise UsageError(f"{place}/{GUIDE} is a link, which is not followed. Put the file itself there.")
        raise UsageError(f"The folder {place} is not a skill: it does not contain {GUIDE}.")
    if len(files[GUIDE]) > LONGEST_GUIDE:
        raise UsageError(f"{place}/{GUIDE} is too large: the maximum is {LONGEST_GUIDE:,} bytes.")
    try:
        text = files[GUIDE].decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{place}/{GUIDE} is not UTF-8 text.") from None
    said, guide = front_matter(text, f"{place}/{GUIDE}")
    name, description = said.get("name", ""), said.get("description", "")
    wanted = visible(folder.name)
    if not name:
        raise UsageError(f"{place}/{GUIDE} has no name. Write in its front matter: name: {wanted}")
    if name != folder.name:
        told = short(name, LONGEST_NAME)
        raise UsageError(f"{place}/{GUIDE} has the name {told}, not the name of its folder: {wanted}")
    if not _NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        raise UsageError(
            f"{place} is not a skill name. Use a-z, 0-9 and single hyphens, at most {LONGEST_NAME}."
        )
    if not description:
        raise UsageError(f"{place}/{GUIDE} has no description. Write description: and when to use the skill.")
    if len(description) > LONGEST_DESCRIPTION:
        most = f"{LONGEST_DESCRIPTION:,}"
        raise UsageError(f"{place}/{GUIDE} has a description of more than {most} characters.")
    return Skill(name, description, guide, place, files)


def front_matter(text: str, name: str) -> tuple[dict[str, str], str]:
    """The keys of the front matter that have a text, and the text after the front matter. It is read
    leniently: a colon inside a text needs no quotes. Raises UsageError if there is no front matter."""
    lines = text.splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise UsageError(f"{name} has no front matter. Begin with a line ---, then name: and description:")
    end = next((place for place, line in enumerate(lines[1:], 1) if line.rstrip() == "---"), 0)
    if not end:
        raise UsageError(f"The front matter of {name} does not end. Close it with a line ---")
    said: dict[str, list[str]] = {}
    key = ""
    for line in lines[1:end]:
        if found := _KEY.match(line):
            key = found[1].lower()
            said[key] = [found[2] or ""]
        elif key and line.strip() and line[0] in " \t":
            said[key].append(line.strip())
    return {key: _plain(words) for key, words in said.items()}, "\n".join(lines[end + 1 :]).strip()


def _plain(words: list[str]) -> str:
    """The text of a value, without quotes, a block sign, or a comment after it."""
    first, *more = words
    if more and re.fullmatch(r"[>|][+-]?\d?", first.strip()):
        first = ""
    text = " ".join(filter(None, [first.strip(), *more]))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1].replace('\\"', '"')
    return re.sub(r"\s#.*$", "", text).strip()
