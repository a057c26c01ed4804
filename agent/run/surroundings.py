"""The message for a model about the place of its work: date, folder, a bounded list of files, and the notes
of the project and its user for agents.

It is made once, at the start of a conversation, and recorded with the stimulus, so a resumed or replayed run
has the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

from quoth.agent.run.host import SessionHost
from quoth.neuro.prompt.surroundings import Notes, skills_text, surroundings_text
from quoth.tools.call.call import Route, new_call
from quoth.tools.call.ignored import SKIPPED, Ignored
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import ToolError, UsageError
from quoth.tools.knowledge.skill_folders import has_folders
from quoth.tools.lazy_dataclass import dataclass
from quoth.tools.lisp.forms import CallForm
from quoth.tools.policy.files import Trust, digest_of
from quoth.tools.policy.policy import Walk
from quoth.tools.policy.project import below
from quoth.tools.registry.param_types import WorkspacePath
from quoth.tools.registry.table import ToolTable, cognitive_tools
from quoth.tools.storage.paths import is_missing
from quoth.tools.text import number_of

FILE_TOOLS = ("read-file", "list-files", "grep-search", "write-file", "edit-file")
LISTER, READER, SKILL = "list-files", "read-file", "skill"
MOST_ENTRIES = 40
MOST_LOOKED_AT = 5_000  # file names; most are only counted


def surroundings_of(host: SessionHost, table: ToolTable, user: str = "", route: Route = "reply") -> str:
    """The message for the model of a run with these tools; empty without tools for files."""
    skills = known_skills(host)
    skills = skills if SKILL in table and table.get(SKILL).shown else ""
    if not any(name in table and table.get(name).shown for name in FILE_TOOLS):
        return skills
    may_list = _listable(host, user or host.user, route)
    found = None if may_list is None else list_files(host.workspace, may_list)
    names, more = (None, 0) if found is None else found
    notes, root = project_notes(host), host.workspace.home
    here = surroundings_text(date.today(), root.name or "/", names, more, notes, below(root))
    return f"{here}\n{skills}" if skills else here


# Files


@dataclass
class _Folder:
    """A folder of the first level: its files, and the number of files in each folder below."""

    name: str
    files: list[str]
    below: list[tuple[str, int]]

    @property
    def entries(self) -> list[str]:
        return [*self.files, *(f"{name}/ ({number_of(many, 'file')})" for name, many in self.below)]

    @property
    def counted(self) -> str:
        many = len(self.files) + sum(many for _, many in self.below)
        return f"{self.name}/ ({number_of(many, 'file')})"


def list_files(workspace: Workspace, may_list: Callable[[str], bool]) -> tuple[list[str], int]:
    """The files of the first two levels, and the number of files in each folder below. A folder without room
    in the list has only its number of files. At most MOST_ENTRIES lines, and the number of further ones."""
    left, ignored = iter(range(MOST_LOOKED_AT)), Ignored(workspace.root)

    def listable(folder: Path) -> tuple[list[str], list[Path]]:
        files, folders = _inside(workspace, folder, ignored, left)
        return [file for file in files if may_list(file)], folders

    def count(folder: Path) -> int:
        found, left_to_look = 0, [folder]
        while left_to_look:
            files, folders = listable(left_to_look.pop())
            found += len(files)
            left_to_look += reversed(folders)
        return found

    files, folders = listable(workspace.root)
    below = []
    for folder in folders:
        inside, deeper = listable(folder)
        counts = [(workspace.shown(one), count(one)) for one in deeper]
        made = _Folder(workspace.shown(folder), inside, [one for one in counts if one[1]])
        if made.entries:
            below.append(made)
    room = MOST_ENTRIES - len(files) - len(below)  # each folder has at least one line
    shown = set()
    for made in sorted(below, key=lambda one: len(one.entries)):  # small folders first: more of them fit
        if len(made.entries) - 1 <= room:
            room -= len(made.entries) - 1
            shown.add(made.name)
    entries = [
        *files,
        *(line for one in below for line in (one.entries if one.name in shown else [one.counted])),
    ]
    return entries[:MOST_ENTRIES], max(len(entries) - MOST_ENTRIES, 0)


def _inside(
    workspace: Workspace, folder: Path, ignored: Ignored, left: Iterator[int]
) -> tuple[list[str], list[Path]]:
    """The files and the folders in a folder, except hidden ones, links, secrets and files that git
    ignores."""
    files, folders = [], []
    try:
        with os.scandir(folder) as found:
            for entry, _ in zip(found, left, strict=False):
                if entry.name.startswith(".") or entry.is_symlink():
                    continue
                path = folder / entry.name
                if ignored.leaves_out(path.relative_to(workspace.root).as_posix(), folder=entry.is_dir()):
                    continue
                if entry.is_dir() and entry.name not in SKIPPED:
                    folders.append(path)
                elif entry.is_file() and not workspace.is_secret(path):
                    files.append(workspace.spelling(path))
    except OSError:
        return [], []
    return sorted(files), sorted(folders)


def _listable(host: SessionHost, user: str, route: Route) -> Callable[[str], bool] | None:
    """A function that says whether list-files would show a file to this user's model. None if list-files may
    not be called without a question."""
    # The rules about a built-in tool apply even if it is not offered.
    tool, reader = cognitive_tools.find(LISTER), cognitive_tools.find(READER)
    if tool is None:
        return None
    if not host.policy.strict(tool) and (reader is None or not host.policy.strict(reader)):
        return lambda path: True
    args = {"path": WorkspacePath("."), "pattern": "*", "limit": MOST_ENTRIES}
    marks = {"route": route, "user": user, "client": host.door.client}
    call = new_call(CallForm(LISTER, {"path": "."}), session=host.session, **marks)
    context = host.context(user=user)
    if host.policy.judge(tool, call, args, context).kind != "allow":
        return None
    walk = Walk(host.policy, tool, call, args, host.workspace, reader, origins=context.origins)
    return walk.may_list


# The notes of a project for agents: its AGENTS.md, those of its folders, and skills; each only in the version
# that a person has trusted.


NOTES = "AGENTS.md"
MOST_NOTES = 6_000  # maximum of characters in all notes
MOST_NESTED = 50
TRUST = Trust(kind=".agents")
NESTED = Trust(kind=".nested")
UNTRUSTED = "{} is not trusted, so models do not see it; read it, then run: quoth trust"
CHANGED = "{} has changed since it was trusted, so the model does not see it; read it, then run: quoth trust"


def project_notes(host: SessionHost) -> list[Notes]:
    """The trusted AGENTS.md files of the workspace and its folders. A person gets a note about a file that
    has changed since. If there is no room for a text, only its file is named."""
    shown, room = [], MOST_NOTES
    for file, data in _trusted(host):
        text = data.decode("utf-8", "replace")
        if len(text) > room:
            text = f"{text[:room]}\n… (read-file shows the rest)" if room else "… (read-file shows it)"
        room -= min(len(text), room)
        shown.append(Notes(file, digest_of(data), text))
    return shown


def _trusted(host: SessionHost) -> Iterator[tuple[str, bytes]]:
    workspace = host.workspace
    root = workspace.home
    if workspace.root != root:  # a worktree may lack them, or have others
        workspace = Workspace(root)
    for note in untrusted_notes(root):
        host.events.note(note)
    try:
        own = TRUST.trusted(root)
        trusted = {**({NOTES: own} if own else {}), **NESTED.each(root)}
    except UsageError as error:
        host.events.note(f"The model does not see {NOTES}. {error}")
        return
    for file, digest in trusted.items():
        try:
            data = _read(workspace, file)
        except ToolError as error:
            host.events.note(f"The model does not see {file}. {error}")
            continue
        if digest_of(data) == digest:
            yield file, data
        else:
            host.events.note(CHANGED.format(file))


def untrusted_notes(root: Path, *, nested: bool = False) -> list[str]:
    """A sentence about the AGENTS.md of a workspace if it is not trusted. ``nested`` adds one for each
    untrusted AGENTS.md in its folders, and walks the whole workspace for that."""
    files = [] if is_missing(root / NOTES) or TRUST.remembers(root) else [NOTES]
    if nested and root.is_dir():
        files += sorted(nested_notes(root).keys() - NESTED.each(root).keys())
    return [UNTRUSTED.format(file) for file in files]


def untrusted(root: Path) -> str:
    """One sentence about its AGENTS.md and its skills, if they are not trusted."""
    if not has_folders(root):
        return "".join(untrusted_notes(root))
    from quoth.tools.knowledge.skills import untrusted_skills  # here: few have skills

    names = [*(NOTES for _ in untrusted_notes(root)), *untrusted_skills(root)]
    if len(names) < 2:
        return "".join(map(UNTRUSTED.format, names))
    which = ", ".join(names)
    return f"{which} are not trusted, so models do not see them; read them, then run: quoth trust"


def notes_for_agents(root: Path) -> bytes | None:
    """The text of a workspace's AGENTS.md, None if there is none. Raises UsageError if it cannot be used."""
    if is_missing(root / NOTES):
        return None
    return _checked(Workspace(root), NOTES)


def nested_notes(root: Path) -> dict[str, bytes]:
    """The AGENTS.md files in the folders of a workspace, without its own: the least deep first, at most
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
    """The message for a model about the usable skills; a person gets notes about the others."""
    if not has_folders(host.workspace.home):
        return ""
    from quoth.tools.knowledge.skills import load_skills  # here: few have skills

    try:
        skills = load_skills(host.workspace.home)
    except UsageError as error:
        host.events.note(f"The model sees no skills. {error}")
        return ""
    for fault in skills.faults:
        host.events.note(fault)
    return skills_text({skill.name: skill.description for skill in skills.known.values()})
