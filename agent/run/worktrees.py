"""Git worktrees of sessions: opens one for a session that works beside others, and commits its work.

Rules, store, memory and settings stay those of the project; only the folder of file tools and programs is
another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quoth.tools.call.redaction import redact
from quoth.tools.call.workspace import Workspace
from quoth.tools.errors import QuothError, UsageError
from quoth.tools.storage.paths import NAMES_OF_WORKTREES, real_path, worktree_place
from quoth.tools.text import number_of, short

SUBJECT = 72  # characters of the first line of a commit's message


def open_worktree(workspace: Workspace, session: str) -> tuple[Workspace, str]:
    """The workspace of a session in its own git worktree, and a sentence about it. Raises UsageError."""
    from quoth.tools.shell.worktrees import Worktrees  # here: most agents work in the project

    if not NAMES_OF_WORKTREES.fullmatch(session):
        raise UsageError(
            f"A worktree is named after its session, and {session} cannot name one: use at most 64 letters,"
            " digits, hyphens and dots."
        )
    try:
        repository = Worktrees(workspace.home)
        made, new = repository.open(session)
        left_out = repository.outside() if new else 0
    except (QuothError, OSError) as error:
        raise UsageError(str(error)) from None
    place = worktree_place(workspace.home, session)
    assert place is not None, "it was opened"
    if real_path(place) != real_path(made.folder) / place.relative_to(made.folder):
        raise UsageError(
            f"{workspace.home} is behind a link in commit {made.tip[:12]}, so nothing can work there."
        )
    place.mkdir(parents=True, exist_ok=True)  # the project may be a folder that is in no commit
    said = f"Session {session} works in its git worktree {made.folder}"
    said += f", which begins with commit {made.tip[:12]}." if new else "."
    if left_out:
        files = number_of(left_out, "changed file")
        said += f" It does not contain {files} of yours that {'is' if left_out == 1 else 'are'} in no commit."
    return workspace.at(place), said


def commit_work(workspace: Workspace, session: str, task: str) -> str:
    """Commit the changes in a session's worktree; returns the last commit on its branch. Raises ToolError."""
    from quoth.tools.shell.worktrees import Worktrees

    subject = short(" ".join(redact(task).split()), SUBJECT) or f"Work of session {session}"
    return Worktrees(workspace.home).commit(session, f"{subject}\n\nQuoth-Session: {session}\n")


def how_to_merge(session: str, commit: str) -> str:
    """A text for the caller of a sub-agent in a worktree; ``commit`` is empty if it could not be made."""
    if not commit:
        return f"\n\nIts work is in the worktree {session}, not committed."
    call = f'(merge-worktree :name "{session}" :commit "{commit}")'
    return f"\n\nIts work is on the branch quoth/{session}. To merge it: {call}"


async def keep_work(workspace: Workspace, session: str, task: str, note: Callable[[str], object]) -> str:
    """Commit the changes of a run in the worktree of its session; returns the last commit on its branch. A
    failure is reported to the user, and the result is empty: the work stays in the worktree."""
    try:
        return await asyncio.to_thread(commit_work, workspace, session, task)
    except (QuothError, OSError) as error:
        note(f"The work of session {session} is in {workspace.root}, but could not be committed. {error}")
        return ""
