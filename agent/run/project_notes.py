"""What the people of a project have written for agents: AGENTS.md, those of its folders, and skills, each
only as a person has trusted it.

Knows files and trust; it must not know models, runs or the wording of a prompt.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from quoth.agent.run.host import SessionHost
from quoth.neuro.prompt.surroundings import Notes, skills_text
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.knowledge.skill_folders import has_folders
from quoth.tools.policy.trust import Trust, digest_of
from quoth.tools.storage.same_file import is_missing

NOTES = "AGENTS.md"
MOST_NOTES = 6_000  # characters of all of them
MOST_NESTED = 50
TRUST = Trust(kind=".agents")
NESTED = Trust(kind=".nested")
UNTRUSTED = "{} is not trusted, so models are not shown it; read it, then run: quoth trust"
CHANGED = "{} has changed since it was trusted, so the model is not shown it; read it, then run: quoth trust"


def project_notes(host: SessionHost) -> list[Notes]:
    """AGENTS.md, and those of the folders below it, that are as a person trusted them; they are told of one
    that is not so any more. Where there is no room for a text, its file is only named."""
    shown, room = [], MOST_NOTES
    for file, data in _trusted(host):
        text = data.decode("utf-8", "replace")
        if len(text) > room:
            text = f"{text[:room]}\n… (read-file shows the rest)" if room else "… (read-file shows it)"
        room -= min(len(text), room)
        shown.append(Notes(file, digest_of(data), text))
    return shown


def _trusted(host: SessionHost) -> Iterator[tuple[str, bytes]]:
    root = host.workspace.root
    for note in untrusted_notes(root):
        host.events.note(note)
    try:
        own = TRUST.trusted(root)
        trusted = {**({NOTES: own} if own else {}), **NESTED.each(root)}
    except UsageError as error:
        host.events.note(f"The model is not shown {NOTES}. {error}")
        return
    for file, digest in trusted.items():
        try:
            data = _read(host.workspace, file)
        except ToolError as error:
            host.events.note(f"The model is not shown {file}. {error}")
            continue
        if digest_of(data) == digest:
            yield file, data
        else:
            host.events.note(CHANGED.format(file))


def untrusted_notes(root: Path, *, nested: bool = False) -> list[str]:
    """A sentence about the AGENTS.md of a workspace if nobody has trusted it; with ``nested`` also about each
    of those in its folders, for which the whole workspace is walked."""
    files = [] if is_missing(root / NOTES) or TRUST.remembers(root) else [NOTES]
    if nested and root.is_dir():
        files += sorted(nested_notes(root).keys() - NESTED.each(root).keys())
    return [UNTRUSTED.format(file) for file in files]


def untrusted(root: Path) -> str:
    """One sentence about its AGENTS.md and its skills, if nobody has trusted them."""
    if not has_folders(root):
        return "".join(untrusted_notes(root))
    from quoth.tools.knowledge.skills import untrusted_skills  # here: few have skills

    names = [*(NOTES for _ in untrusted_notes(root)), *untrusted_skills(root)]
    if len(names) < 2:
        return "".join(map(UNTRUSTED.format, names))
    which = ", ".join(names)
    return f"{which} are not trusted, so models are not shown them; read them, then run: quoth trust"


def notes_for_agents(root: Path) -> bytes | None:
    """The text of a workspace's AGENTS.md, None if there is none. Raises UsageError for one that cannot be
    shown."""
    if is_missing(root / NOTES):
        return None
    return _checked(Workspace(root), NOTES)


def nested_notes(root: Path) -> dict[str, bytes]:
    """The AGENTS.md of the folders of a workspace, without its own: those that are least deep first, at most
    MOST_NESTED. Raises UsageError."""
    workspace = Workspace(root)
    found = [workspace.shown(file) for file in workspace.walk(".") if file.name == NOTES]
    found = sorted((file for file in found if file != NOTES), key=lambda file: (file.count("/"), file))
    return {file: _checked(workspace, file) for file in found[:MOST_NESTED]}


def _checked(workspace: Workspace, file: str) -> bytes:
    try:
        return _read(workspace, file)
    except ToolError as error:
        raise UsageError(str(error)) from None


def _read(workspace: Workspace, file: str) -> bytes:
    with workspace.open_read(file) as opened:
        return opened.read(1_000_000)


def known_skills(host: SessionHost) -> str:
    """What a model is told of the skills that count; a person is told of those that do not."""
    if not has_folders(host.workspace.root):
        return ""
    from quoth.tools.knowledge.skills import load_skills  # here: few have skills

    try:
        skills = load_skills(host.workspace.root)
    except UsageError as error:
        host.events.note(f"The model is told of no skill. {error}")
        return ""
    for fault in skills.faults:
        host.events.note(fault)
    return skills_text({skill.name: skill.description for skill in skills.known.values()})
